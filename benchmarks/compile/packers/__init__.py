"""The packers that are compared, and where their adapters are.

To join: write `packers/<name>_packer.py` with a `Packer` (see `protocol.py`) and add one line here, for
example

    Entry("rung", "rung compile_context", "rung_packer", "Rung", "rung"),

An adapter's module is imported in the packer's own process only.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from packers.protocol import Packer


@dataclass(frozen=True)
class Entry:
    """One row of the table; `note` says what the packer cannot do of this work."""

    key: str
    title: str
    module: str
    adapter: str
    package: str = ""
    note: str = ""

    def load(self) -> Packer:
        """Import the adapter's module and make the adapter."""
        made: Packer = getattr(import_module(f"packers.{self.module}"), self.adapter)()
        return made

    def version(self) -> str:
        """Return the installed version, or an empty text."""
        try:
            return version(self.package) if self.package else ""
        except PackageNotFoundError:
            return ""


PACKERS: tuple[Entry, ...] = (
    Entry("rung", "rung ContextStore.compile", "rung_packer", "Rung", "rung"),
    Entry("reference", "sort by score, counts remembered", "reference", "Greedy", note="no checks, no manifest"),
    Entry(
        "ctxbudgeter",
        "ctxbudgeter ContextPack",
        "ctxbudgeter_packer",
        "Pack",
        "ctxbudgeter",
        "does not count its own ## headings",
    ),
    Entry("promptbudget", "promptbudget ContextPacker", "promptbudget_packer", "Sections", "promptbudget"),
    Entry(
        "astromesh",
        "astromesh-context ContextEngine",
        "astromesh_packer",
        "Engine",
        "astromesh-context",
        "does not count its own <context> tags",
    ),
    Entry(
        "astro-anchor",
        "astro-anchor ContextPipeline",
        "anchor_packer",
        "Pipeline",
        "astro-anchor",
        "seven kinds of source, no sources by name; the question is put after its text",
    ),
    Entry(
        "contextweaver",
        "contextweaver ContextManager",
        "contextweaver_packer",
        "Weaver",
        "contextweaver",
        "scores by its own rule, takes no score or source",
    ),
)
