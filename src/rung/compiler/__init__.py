"""The compiler: a frozen plan, pure passes over it, and the manifest that says why."""
