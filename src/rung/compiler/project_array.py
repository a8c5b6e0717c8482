"""Reading the elements of one large JSON array out of a stream of blocks, in bounded memory."""

from __future__ import annotations

import json

import msgspec

from rung.compiler.project_fields import Tree
from rung.compiler.project_readers import ROW_BYTES, Page, show_value
from rung.compiler.truncation_json import NOT_JSON, decode

_SPACE = b" \t\r\n"
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_DECODER = json.JSONDecoder()


class JsonArrayReader:
    """The elements of one array: the body itself, or the member that a path of names leads to.

    Without a path it is the body's own array, or the first member of the body's object that is an array.
    """

    def __init__(self, page: Page, offset: int, fields: Tree, path: tuple[str, ...], *, inside: bool) -> None:
        self.seen = 0
        self.full = False
        self.next_offset = offset
        self.problem: str | None = None
        self._page = page
        self._fields = fields
        self._path = list(path)
        self._any = not path
        self._state = "array" if inside else "value"
        self._held = b""
        self._at = offset
        self._wanted = 0
        self._gap = b","

    def feed(self, block: bytes) -> None:
        """Take the next block of the body."""
        if self._state == "done":
            return
        self._held += block
        if len(self._held) >= self._wanted:
            self._step(last=False)

    def finish(self) -> None:
        """Read what is left."""
        if self._state != "done":
            self._step(last=True)
            if self._state != "done" and self.problem is None:
                self.problem = "the body ends before its array does" if self._state == "array" else "no array found"

    def text(self) -> str:
        """The elements shown, one a line."""
        return "".join(f"{row}\n" for row in self._page.rows)

    def _step(self, *, last: bool) -> None:
        while self._state in ("value", "member"):
            if not self._seek():
                break
        if self._state == "array":
            self._elements(last=last)
        self._wanted = max(262_144, 2 * len(self._held))
        if self._state != "done" and len(self._held) > ROW_BYTES and not last:
            self._fail(f"row {self.seen} of this page is longer than {ROW_BYTES} bytes")

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self._state = "done"
        self._held = b""

    def _drop(self, size: int) -> None:
        self._held = self._held[size:]
        self._at += size

    # Every byte is one character of Latin-1, and JSON's structure is ASCII: places found in the text are
    # places in the bytes.

    def _seek(self) -> bool:
        """One step towards the array; false where more of the body is needed."""
        if self._state == "member":
            return self._members()
        place = _skip(self._held, 0, _SPACE)
        if place == len(self._held):
            return False
        first = self._held[place : place + 1]
        if first == b"[" and not self._path:
            self._state = "array"
        elif first == b"{" and (self._path or self._any):
            self._state = "member"
        else:
            self._fail("no array found")
            return False
        self._drop(place + 1)
        return True

    def _members(self) -> bool:
        """Pass over the members of an object up to the one that is wanted."""
        text = self._held.decode("latin-1")
        wanted = self._path[0] if self._path else None
        place = 0
        while True:
            start = _skip(self._held, place, _SPACE + b",")
            if start == len(text) or text[start] != '"':
                if start < len(text):
                    self._fail("no array found" if text[start] == "}" else "the body is no JSON")
                    return False
                break
            end = _value_end(text, start)
            colon = _skip(self._held, end, _SPACE) if end >= 0 else len(text)
            value = _skip(self._held, colon + 1, _SPACE)
            if value >= len(text):
                break
            if text[colon] != ":":
                self._fail("the body is no JSON")
                return False
            name = decode(self._held[start:end])
            found = text[value] == "[" if wanted is None else name == wanted
            if found:
                self._path = self._path[1:]
                self._any = False
                self._state = "value"
                self._drop(value)
                return True
            end = _value_end(text, value)
            if end < 0:
                break
            place = end
        self._drop(place)
        return False

    def _elements(self, *, last: bool) -> None:
        if self.full and self._count_many() and not last:
            return
        text = self._held.decode("latin-1")
        place = 0
        while True:
            start = _skip(self._held, place, _SPACE + b",")
            if start == len(text):
                break
            if text[start] == "]":
                self._state = "done"
                self._held = b""
                return
            end = _value_end(text, start)
            if end < 0:
                break
            if not self.full and not self._show(self._held[start:end]):
                self.full = True
                self.next_offset = self._at + start
            if place:
                self._gap = self._held[place:start]
            self.seen += 1
            place = end
        self._drop(place)

    def _show(self, element: bytes) -> bool:
        value = decode(element)
        if value is NOT_JSON:
            self.problem = self.problem or f"row {self.seen} of this page is no JSON value"
            return True
        return show_value(self._page, value, self._fields)

    def _count_many(self) -> bool:
        """Count the elements of the held bytes at once, up to a comma that parts two of them.

        Up to a comma inside an element the bytes are no valid list, so a comma that parses is one between
        elements.
        """
        start = _skip(self._held, 0, _SPACE + b",")
        if start == len(self._held):
            return False
        joint = self._gap + _opening(self._held, start)
        comma = len(self._held)
        for _ in range(4):
            comma = self._held.rfind(joint, start, comma)
            if comma <= start:
                return False
            try:
                rows = _RAW_LIST.decode(b"[" + self._held[start:comma] + b"]")
            except (msgspec.MsgspecError, RecursionError):
                continue
            self.seen += len(rows)
            self._drop(comma)
            return True
        return False


def _opening(data: bytes, start: int) -> bytes:
    """How an element begins: its first member's name, which its neighbours mostly share."""
    if data[start : start + 1] not in (b"{", b"["):
        return b""
    end = data.find(b":", start, start + 64)
    return data[start : end + 1] if end > 0 and data[start : start + 1] == b"{" else data[start : start + 1]


def _skip(data: bytes, place: int, over: bytes) -> int:
    size = len(data)
    while place < size and data[place] in over:
        place += 1
    return place


def _value_end(text: str, start: int) -> int:
    """Where the JSON value at `start` ends, or -1 where the text does not hold all of it."""
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return -1
    return end if end < len(text) else -1  # a number at the end may go on
