"""What may be asked of text that carries labels: the answer is a number or a truth value, never text.

A labelled text equals the `str` of the same characters and hashes like it, so it finds its key in a
dictionary of plain strings. Its labels take no part in that.
"""

from __future__ import annotations

from typing import NoReturn, SupportsIndex, TypeAlias, cast

from rung.errors import ContextTypeError, kind


class TextQuestions:
    """The questions of `str`, answered for the characters of a labelled text."""

    __slots__ = ("_text",)

    _text: str

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TextQuestions):
            return self._text == other._text
        return self._text == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __lt__(self, other: Plain) -> bool:
        return self._text < self._chars(other, "compare")

    def __le__(self, other: Plain) -> bool:
        return self._text <= self._chars(other, "compare")

    def __gt__(self, other: Plain) -> bool:
        return self._text > self._chars(other, "compare")

    def __ge__(self, other: Plain) -> bool:
        return self._text >= self._chars(other, "compare")

    def __contains__(self, sought: Plain) -> bool:
        return self._chars(sought, "search") in self._text

    def startswith(
        self,
        prefix: Plain | tuple[Plain, ...],
        start: SupportsIndex | None = None,
        end: SupportsIndex | None = None,
    ) -> bool:
        return self._text.startswith(self._any_of(prefix), start, end)

    def endswith(
        self,
        suffix: Plain | tuple[Plain, ...],
        start: SupportsIndex | None = None,
        end: SupportsIndex | None = None,
    ) -> bool:
        return self._text.endswith(self._any_of(suffix), start, end)

    def find(self, sub: Plain, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        return self._text.find(self._chars(sub, "search"), start, end)

    def rfind(self, sub: Plain, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        return self._text.rfind(self._chars(sub, "search"), start, end)

    def index(self, sub: Plain, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        return self._text.index(self._chars(sub, "search"), start, end)

    def rindex(self, sub: Plain, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        return self._text.rindex(self._chars(sub, "search"), start, end)

    def count(self, sub: Plain, start: SupportsIndex | None = None, end: SupportsIndex | None = None) -> int:
        return self._text.count(self._chars(sub, "search"), start, end)

    def isalnum(self) -> bool:
        return self._text.isalnum()

    def isalpha(self) -> bool:
        return self._text.isalpha()

    def isascii(self) -> bool:
        return self._text.isascii()

    def isdecimal(self) -> bool:
        return self._text.isdecimal()

    def isdigit(self) -> bool:
        return self._text.isdigit()

    def isidentifier(self) -> bool:
        return self._text.isidentifier()

    def islower(self) -> bool:
        return self._text.islower()

    def isnumeric(self) -> bool:
        return self._text.isnumeric()

    def isprintable(self) -> bool:
        return self._text.isprintable()

    def isspace(self) -> bool:
        return self._text.isspace()

    def istitle(self) -> bool:
        return self._text.istitle()

    def isupper(self) -> bool:
        return self._text.isupper()

    def _not_text(self, value: object, what: str) -> NoReturn:
        raise ContextTypeError(f"text does not {what} with a value of kind {kind(value)} (give a `str`)")

    def _chars(self, value: object, what: str) -> str:
        if isinstance(value, str):
            return value
        return value._text if isinstance(value, TextQuestions) else self._not_text(value, what)

    def _any_of(self, value: object) -> str | tuple[str, ...]:
        if isinstance(value, tuple):
            return tuple(self._chars(each, "search") for each in cast("tuple[object, ...]", value))
        return self._chars(value, "search")


Plain: TypeAlias = str | TextQuestions
