"""Instruction channels: declared ways by which the deployment brings in its own instructions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from rung.errors import ConfigError, InputError


class Endorsement(msgspec.Struct, frozen=True, kw_only=True):
    """A person's word that a text may enter a protected type although untrusted items share runs of it.

    Attributes:
        by: who says so.
        reason: why.
        digest: SHA-256 of the endorsed text, in hexadecimal: it covers this text only.
        covers: ids of the items whose hits it covers; a hit of any other item is still refused.
        at: ISO 8601; filled when it is recorded.
    """

    by: str
    reason: str
    digest: str = ""
    covers: tuple[str, ...] = ()
    at: str = ""

    def __post_init__(self) -> None:
        for name in ("by", "reason"):
            if not getattr(self, name).strip():
                raise InputError(f"`{name}` of an endorsement is empty (say who, and why)", field=name)


class InstructionSource(msgspec.Struct, frozen=True, kw_only=True):
    """A declared channel: what its loader returns is authoritative, also after the seal.

    Per-tenant prompts, registries, A/B variants and hot reload come this way.

    Attributes:
        name: its name as a source; one namespace with all other sources.
        loader: called with the tenant (None for the deployment's own); returns the text.
        verify: called with the text; a false answer refuses it (a signature, a checksum, a review).
    """

    name: str
    loader: Callable[[str | None], str]
    verify: Callable[[str], bool] | None = None

    def load(self, tenant: str | None) -> str:
        """The text for a tenant.

        Raises:
            ConfigError: the loader failed, gave no text, or `verify` refused it.
        """
        try:
            text = self.loader(tenant)
        except Exception as problem:
            raise ConfigError(
                f"instruction source `{self.name}` failed: {type(problem).__name__} (mend its loader)",
                path=self.name,
            ) from problem
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"instruction source `{self.name}` gave no text (mend its loader)", path=self.name)
        if self.verify is not None and not self.verify(text):
            raise ConfigError(
                f"instruction source `{self.name}` gave a text that its verification refuses (publish it again)",
                path=self.name,
            )
        return text


def file_source(path: str | Path) -> InstructionSource:
    """The channel of one file named by the deployment."""
    # Not another file of that name after a change of directory; a link may be led elsewhere by its owner.
    resolved = Path(path).absolute()

    def loader(_: str | None) -> str:
        return resolved.read_text(encoding="utf-8")

    return InstructionSource(name=f"file:{resolved.name}", loader=loader)
