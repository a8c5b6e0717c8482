"""What every counter of tokens offers, and what may be asked of one that offers less."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable


@runtime_checkable
class Tokenizer(Protocol):
    """Counts the tokens of a text.

    `name` is what the manifest prints. `exact` says that the counts are those of the encoding named, not
    an estimate. `additive_newline` says that a text may be counted in parts: wherever one part ends in a
    newline and the next begins with neither white space nor `/`, the counts of the parts add up to the
    count of the whole.

    Two more attributes are used where present: `count_many(texts)`, and `joints`, a pattern whose empty
    matches are all the places where a text may be cut so (None for none).
    """

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    @property
    def additive_newline(self) -> bool: ...

    def count(self, text: str) -> int:
        """The tokens of `text`. Never raises for a `str`: a lone surrogate counts as U+FFFD, and text that
        spells a control token counts as ordinary text."""
        ...


def count_many(tokenizer: Tokenizer, texts: Iterable[str]) -> list[int]:
    """The tokens of each text; uses the tokenizer's own `count_many` where it has one."""
    own = getattr(tokenizer, "count_many", None)
    if own is not None:
        return list(own(texts))
    count = tokenizer.count
    return [count(text) for text in texts]


def well_formed(text: str) -> str:
    """The same text as a provider would read it: surrogate pairs joined, lone surrogates as U+FFFD.

    The rule is that of `tiktoken`, so that counts agree with it on every `str`.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
