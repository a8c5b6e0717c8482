"""The command `rung`: thin commands over public names."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; errors a person can mend are one line and exit code 2, other refusals 1."""
    from rung.cli.app import app
    from rung.errors import ConfigError, MissingExtraError, RungError

    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (ConfigError, MissingExtraError) as problem:
        print(f"rung: {problem}", file=sys.stderr)
        sys.exit(2)
    except RungError as problem:
        print(f"rung: {problem}", file=sys.stderr)
        sys.exit(1)
