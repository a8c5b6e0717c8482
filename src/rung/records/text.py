"""Text that carries its labels: `item.text`. It is not a `str`, so it never silently becomes one.

A labelled text is a plain text and its runs: how many characters came from which item, or from no item. What
makes text of text keeps the runs; what would make a `str` of it raises and names the item. Questions
(`==`, `in`, `find`, `startswith`, …) are answered as for the plain text: see `rung.records.questions`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple, NoReturn, SupportsIndex

from rung.errors import ContextTypeError, InputError, kind
from rung.records.questions import TextQuestions


class Origin(NamedTuple):
    """The item that a run of text came from."""

    item_id: str
    type: str
    source: str


class Span(NamedTuple):
    """A run of a labelled text: characters `start` to `end`, and the item they came from, or None."""

    start: int
    end: int
    origin: Origin | None


class LabelledText(TextQuestions):
    """Text whose runs know the items they came from.

    Args:
        text: the characters.
        origin: the item that they came from; None for text of the program's own, such as a separator.

    >>> order = LabelledText("Order 7: paid", Origin("a1", "tool_output", "tool:orders"))
    >>> ("Status: " + order[9:].upper()).spans[1]
    Span(start=8, end=12, origin=Origin(item_id='a1', type='tool_output', source='tool:orders'))
    """

    # `_sizes[i]` characters came from `_origins[i]`. Neighbours differ and no run is empty, except that an
    # empty text keeps one run, so that its errors still name an item. Sizes, not ends, so that joining two
    # texts shifts nothing; the ends are summed up once, when something is cut.
    __slots__ = ("_ends", "_origins", "_sizes")

    _sizes: tuple[int, ...]
    _origins: tuple[Origin | None, ...]
    _ends: list[int] | None

    # In `__new__`, so that calling `__init__` again alters nothing.
    def __new__(cls, text: str, origin: Origin | None = None) -> LabelledText:
        if type(text) is not str:
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"`text` is of kind {kind(text)}, not `str`", field="text")
            text = str.__str__(text)
        return _make(text, (len(text),), (origin,))

    # What it knows

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The distinct items that its characters came from, in the order of their first place."""
        return tuple(dict.fromkeys(origin for origin in self._origins if origin is not None))

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its runs in order: they cover every character, and neighbours differ in their origin."""
        if not self._text:
            return ()
        start = 0
        spans: list[Span] = []
        for end, origin in zip(self._run_ends(), self._origins, strict=True):
            spans.append(Span(start, end, origin))
            start = end
        return tuple(spans)

    def reveal(self, reason: str) -> str:
        """The plain text, for a reason that a reviewer and the linter can see.

        Raises:
            ContextTypeError: no reason is given.
        """
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ContextTypeError(
                f'{self._whose()} is revealed without a reason (say why: text.reveal("shown to the user"))',
                item_id=self._item_id(),
            )
        return self._text

    def __repr__(self) -> str:
        origins = self.origins
        ids = ", ".join(origin.item_id for origin in origins[:4]) or "no item"
        more = f" and {len(origins) - 4} more" if len(origins) > 4 else ""
        return f"<LabelledText {len(self._text)} characters from {ids}{more}>"

    # Putting together

    def __add__(self, other: str | LabelledText) -> LabelledText:
        if isinstance(other, LabelledText):
            return self._joined(other)
        if isinstance(other, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return self._joined(LabelledText(other))
        return NotImplemented

    def __radd__(self, other: str) -> LabelledText:
        if isinstance(other, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            return LabelledText(other)._joined(self)
        return NotImplemented

    def __mul__(self, times: SupportsIndex) -> LabelledText:
        try:
            count = times.__index__()
        except AttributeError:
            return NotImplemented
        if count <= 0 or not self._text:
            return self._cut(0, 0)
        if len(self._sizes) == 1:
            return _make(self._text * count, (self._sizes[0] * count,), self._origins)
        return self._all([self] * count)

    __rmul__ = __mul__

    def join(self, parts: Iterable[str | LabelledText]) -> LabelledText:
        """The parts with this text between them; `LabelledText(", ").join(…)` for a plain separator.

        `", ".join(…)` of a `str` cannot take labelled text: the interpreter raises its own TypeError.
        """
        pieces: list[LabelledText] = []
        for part in parts:
            if pieces:
                pieces.append(self)
            pieces.append(self._labelled(part, "join"))
        return self._all(pieces)

    def replace(self, old: str | LabelledText, new: str | LabelledText, count: SupportsIndex = -1) -> LabelledText:
        """Every `old` (or the first `count`) replaced by `new`; what is put in has the origins of `new`."""
        sought, limit = self._chars(old, "replace"), count.__index__()
        fresh = self._labelled(new, "replace")
        if limit == 0 or sought not in self._text:
            return self
        if sought and len(self._sizes) == len(fresh._sizes) == 1 and fresh._text:
            return self._alternated(self._text.split(sought, limit), fresh)
        if sought:
            return fresh.join(self.split(sought, limit))
        places = len(self._text) + 1
        places = places if limit < 0 else min(limit, places)
        pieces: list[LabelledText] = []
        for place in range(places):
            pieces += (fresh, self._cut(place, min(place + 1, len(self._text))))
        pieces.append(self._cut(min(places, len(self._text)), len(self._text)))
        return self._all(pieces)

    # Cutting

    def __getitem__(self, key: SupportsIndex | slice) -> LabelledText:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self._text))
            if step == 1:
                return self._cut(start, max(start, stop))
            if len(self._sizes) == 1:
                text = self._text[key]
                return _make(text, (len(text),), self._origins)
            return self._all([self._cut(place, place + 1) for place in range(start, stop, step)])
        if isinstance(key, str) or not hasattr(key, "__index__"):
            self._refuse("take a key")  # as the mapping of a "%(name)s"
        place = key.__index__()
        length = len(self._text)
        if not -length <= place < length:
            raise IndexError("labelled text index out of range")
        place %= length
        return self._cut(place, place + 1)

    def __iter__(self) -> Iterator[LabelledText]:
        place = 0
        for size, origin in zip(self._sizes, self._origins, strict=True):
            for char in self._text[place : place + size]:
                yield _make(char, (1,), (origin,))
            place += size

    def strip(self, chars: str | LabelledText | None = None) -> LabelledText:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | LabelledText | None = None) -> LabelledText:
        kept = len(self._text.lstrip(None if chars is None else self._chars(chars, "lstrip")))
        return self._cut(len(self._text) - kept, len(self._text))

    def rstrip(self, chars: str | LabelledText | None = None) -> LabelledText:
        return self._cut(0, len(self._text.rstrip(None if chars is None else self._chars(chars, "rstrip"))))

    def removeprefix(self, prefix: str | LabelledText) -> LabelledText:
        return self._cut(len(self._text) - len(self._text.removeprefix(self._chars(prefix, "removeprefix"))))

    def removesuffix(self, suffix: str | LabelledText) -> LabelledText:
        return self._cut(0, len(self._text.removesuffix(self._chars(suffix, "removesuffix"))))

    def split(self, sep: str | LabelledText | None = None, maxsplit: SupportsIndex = -1) -> list[LabelledText]:
        if sep is None:
            return self._found(self._text.split(None, maxsplit))
        plain = self._chars(sep, "split")
        return self._laid_out(self._text.split(plain, maxsplit), len(plain))

    def rsplit(self, sep: str | LabelledText | None = None, maxsplit: SupportsIndex = -1) -> list[LabelledText]:
        if sep is None:
            return self._found(self._text.rsplit(None, maxsplit))
        plain = self._chars(sep, "rsplit")
        return self._laid_out(self._text.rsplit(plain, maxsplit), len(plain))

    def splitlines(self, keepends: bool = False) -> list[LabelledText]:
        lines: list[LabelledText] = []
        place = 0
        for whole, line in zip(self._text.splitlines(True), self._text.splitlines(keepends), strict=True):
            lines.append(self._cut(place, place + len(line)))
            place += len(whole)
        return lines

    def partition(self, sep: str | LabelledText) -> tuple[LabelledText, LabelledText, LabelledText]:
        head, middle, tail = self._laid_out(self._text.partition(self._chars(sep, "partition")))
        return head, middle, tail

    def rpartition(self, sep: str | LabelledText) -> tuple[LabelledText, LabelledText, LabelledText]:
        head, middle, tail = self._laid_out(self._text.rpartition(self._chars(sep, "rpartition")))
        return head, middle, tail

    # Case: the whole text is mapped at once, since a mapping may look at its neighbours (a final sigma), and
    # the runs are sized again only if a character grew ("ß".upper() is "SS").

    def upper(self) -> LabelledText:
        return self._mapped(self._text.upper(), str.upper)

    def lower(self) -> LabelledText:
        return self._mapped(self._text.lower(), str.lower)

    def casefold(self) -> LabelledText:
        return self._mapped(self._text.casefold(), str.casefold)

    def swapcase(self) -> LabelledText:
        return self._mapped(self._text.swapcase(), str.swapcase)

    def capitalize(self) -> LabelledText:
        first = True

        def one(char: str) -> str:
            nonlocal first
            mapped = char.title() if first else char.lower()
            first = False
            return mapped

        return self._mapped(self._text.capitalize(), one)

    def title(self) -> LabelledText:
        after_cased = False

        def one(char: str) -> str:
            nonlocal after_cased
            mapped = char.lower() if after_cased else char.title()
            after_cased = char.isupper() or char.islower() or char.istitle()
            return mapped

        return self._mapped(self._text.title(), one)

    # What cannot keep the labels

    def __str__(self) -> str:
        self._refuse("become a `str`")

    def __format__(self, _: str) -> str:
        self._refuse("become part of a `str`")

    def __bytes__(self) -> bytes:
        self._refuse("become bytes")

    def __mod__(self, _: object) -> NoReturn:
        self._refuse("serve as a format")

    def __rmod__(self, _: object) -> NoReturn:
        self._refuse("become part of a `str`")

    def format(self, *_: object, **__: object) -> NoReturn:
        """Refused: text of an item is data, never a format."""
        self._refuse("serve as a format")

    def format_map(self, _: object) -> NoReturn:
        """Refused: text of an item is data, never a format."""
        self._refuse("serve as a format")

    def encode(self, *_: object, **__: object) -> NoReturn:
        """Refused: bytes carry no labels."""
        self._refuse("become bytes")

    def _uncovered(self, *_: object, **__: object) -> NoReturn:
        """Refused: this operation does not keep the labels."""
        self._refuse("take this operation with its labels")

    translate = expandtabs = center = ljust = rjust = zfill = _uncovered

    def __reduce__(self) -> tuple[object, ...]:
        return _make, (self._text, self._sizes, self._origins)

    if not TYPE_CHECKING:  # a type checker is to see no attribute that can be set

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise AttributeError(f"labelled text is immutable: `{name}` cannot be set")

        def __delattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"labelled text is immutable: `{name}` cannot be deleted")

    # Within

    def _item_id(self) -> str | None:
        return next((origin.item_id for origin in self._origins if origin is not None), None)

    def _whose(self) -> str:
        origins = self.origins
        if not origins:
            return "labelled text of no item"
        first = origins[0]
        more = f" and {len(origins) - 1} more" if len(origins) > 1 else ""
        return f"text of item `{first.item_id}` ({first.type} from `{first.source}`){more}"

    def _refuse(self, what: str) -> NoReturn:
        raise ContextTypeError(
            f"{self._whose()} does not {what} (give the item itself to store.compile, fill a Template's slot "
            'with it, or call .reveal("why"))',
            item_id=self._item_id(),
        )

    def _labelled(self, value: object, what: str) -> LabelledText:
        if isinstance(value, LabelledText):
            return value
        return LabelledText(value) if isinstance(value, str) else self._not_text(value, what)

    def _not_text(self, value: object, what: str) -> NoReturn:
        raise ContextTypeError(
            f"{self._whose()} does not {what} with a value of kind {kind(value)} (give a `str` or an item's .text)",
            item_id=self._item_id(),
        )

    def _joined(self, other: LabelledText) -> LabelledText:
        if not other._text:
            return self
        if not self._text:
            return other
        text = self._text + other._text
        if self._origins[-1] != other._origins[0]:
            return _make(text, self._sizes + other._sizes, self._origins + other._origins)
        sizes = (*self._sizes[:-1], self._sizes[-1] + other._sizes[0], *other._sizes[1:])
        return _make(text, sizes, self._origins + other._origins[1:])

    def _alternated(self, kept: list[str], fresh: LabelledText) -> LabelledText:
        """What is kept of a text of one run, with a text of one run between the pieces."""
        text, mine, theirs = fresh._text.join(kept), self._origins[0], fresh._origins[0]
        if mine == theirs:
            return _make(text, (len(text),), self._origins)
        put = len(fresh._text)
        sizes: list[int] = []
        origins: list[Origin | None] = []
        for piece in kept:
            if piece:
                sizes += (len(piece), put)
                origins += (mine, theirs)
            elif origins and origins[-1] is theirs:
                sizes[-1] += put
            else:
                sizes.append(put)
                origins.append(theirs)
        # One too many was put in, after the last piece.
        if sizes[-1] == put:
            return _make(text, tuple(sizes[:-1]), tuple(origins[:-1]))
        return _make(text, (*sizes[:-1], sizes[-1] - put), tuple(origins))

    def _all(self, pieces: list[LabelledText]) -> LabelledText:
        """The pieces one after another; if they hold no character, an empty text of this one's origin."""
        sizes: list[int] = []
        origins: list[Origin | None] = []
        for piece in pieces:
            if not piece._text:
                continue
            if origins and origins[-1] == piece._origins[0]:
                sizes[-1] += piece._sizes[0]
                sizes += piece._sizes[1:]
                origins += piece._origins[1:]
            else:
                sizes += piece._sizes
                origins += piece._origins
        if not sizes:
            return self._cut(0, 0)
        return _make("".join([piece._text for piece in pieces]), tuple(sizes), tuple(origins))

    def _run_ends(self) -> list[int]:
        ends = self._ends
        if ends is None:
            ends = list(accumulate(self._sizes))
            _set_ends(self, ends)
        return ends

    def _cut(self, start: int, stop: int | None = None) -> LabelledText:
        """Characters `start` to `stop`, where 0 ≤ start ≤ stop ≤ length."""
        length = len(self._text)
        stop = length if stop is None else stop
        if start == 0 and stop == length:
            return self
        text = self._text[start:stop]
        if len(self._sizes) == 1:
            return _make(text, (len(text),), self._origins)
        ends = self._run_ends()
        first = min(bisect_right(ends, start), len(ends) - 1)
        if stop <= ends[first]:
            return _make(text, (len(text),), (self._origins[first],))
        last = bisect_right(ends, stop - 1)
        sizes = (ends[first] - start, *self._sizes[first + 1 : last], stop - ends[last - 1])
        return _make(text, sizes, self._origins[first : last + 1])

    def _laid_out(self, pieces: Iterable[str], gap: int = 0) -> list[LabelledText]:
        """The pieces of this text that follow each other with `gap` characters between them."""
        out: list[LabelledText] = []
        place = 0
        for piece in pieces:
            out.append(self._cut(place, place + len(piece)))
            place += len(piece) + gap
        return out

    def _found(self, pieces: Iterable[str]) -> list[LabelledText]:
        """The pieces of this text that follow each other with white space between them.

        No piece but the first begins with white space, so the next place where it is found is its own.
        """
        out: list[LabelledText] = []
        place = 0
        for piece in pieces:
            place = self._text.find(piece, place)
            out.append(self._cut(place, place + len(piece)))
            place += len(piece)
        return out

    def _mapped(self, text: str, one: Callable[[str], str]) -> LabelledText:
        if len(self._sizes) == 1:
            return _make(text, (len(text),), self._origins)
        if len(text) == len(self._text):
            return _make(text, self._sizes, self._origins)
        # No character maps to nothing, so unequal lengths mean that some grew.
        grown = [0, *accumulate(len(one(char)) for char in self._text)]
        ends = [0, *(grown[end] for end in self._run_ends())]
        return _make(text, tuple(b - a for a, b in pairwise(ends)), self._origins)


_set_text = TextQuestions.__dict__["_text"].__set__
_set_sizes = LabelledText.__dict__["_sizes"].__set__
_set_origins = LabelledText.__dict__["_origins"].__set__
_set_ends = LabelledText.__dict__["_ends"].__set__


def _make(text: str, sizes: tuple[int, ...], origins: tuple[Origin | None, ...]) -> LabelledText:
    made = object.__new__(LabelledText)
    _set_text(made, text)
    _set_sizes(made, sizes)
    _set_origins(made, origins)
    _set_ends(made, None)
    return made
