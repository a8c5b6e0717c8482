"""Cutting plain text: beginnings, ends, both with the middle left out, and the last lines of a log.

Also what every rule shares: the piece it returns, the words that stand for what is left out, the wrapping
(tags, fence, header lines) that is never cut, and fences that stay in pairs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from rung.tokens import Tokenizer, grapheme_boundary, take_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a rule made of a text: the cut text, what it kept and left out in `unit`, and the rule applied."""

    text: str
    kept: int
    left: int
    unit: str
    rule: str


Cutter = Callable[[int], Piece | None]
"""Makes the piece for a number of tokens; None where nothing of the text would remain."""

_SINGULAR = {
    "lines": "line",
    "characters": "character",
    "rows": "row",
    "sections": "section",
    "blocks": "block",
}
_WORD_REACH = 40
_TAG_REACH = 500
_TAG_START = re.compile(r"<[/!?A-Za-z]")


def marker(left: int, unit: str, *, plain: bool = False) -> str:
    """The words that stand where something was left out: `[… 1,240 lines left out …]`."""
    number = str(left) if plain else f"{left:,}"
    return f"[… {number} {_SINGULAR[unit] if left == 1 else unit} left out …]"


def line_count(text: str, start: int = 0, end: int | None = None) -> int:
    """The lines of `text[start:end]`; a last line needs no newline to count."""
    stop = len(text) if end is None else end
    if start >= stop:
        return 0
    return text.count("\n", start, stop) + (text[stop - 1] != "\n")


def is_table_rule(line: str) -> bool:
    """Whether a line is the rule between a table's heading and its rows, as in Markdown, `psql` and `mysql`."""
    return ("-" in line or "=" in line) and ("|" in line or "+" in line) and not line.strip("-=|+: \t\r\n")


# --- the wrapping ----------------------------------------------------------------------------------------

_OPENING = re.compile(
    r"\s{0,100}(?:<\?xml[^<>]{0,200}\?>\s{0,20})?(?:<!doctype[^<>]{0,300}>\s{0,20})?"
    r"<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,800})?>[ \t]{0,20}\r?\n?",
    re.IGNORECASE,
)
_KEYS = "source|url|uri|from|file|path|title|subject|document|author|date|retrieved|observed|version"
_HEADER = re.compile(rf"(?:(?:{_KEYS})[ \t]?:[ \t][^\r\n]{{1,300}}\r?\n){{1,8}}(?:\r?\n)?", re.IGNORECASE)
_MATTER = re.compile(r"---\r?\n(?:[^\r\n]{0,300}\r?\n){1,20}?---\r?\n")
_CLOSING_REACH = 200


def unwrap(text: str) -> tuple[str, str, str]:
    """The text as (opening, body, closing): what is around the body says where it came from, or closes it.

    An element that spans the text, a code fence that spans it, front matter, and header lines such as
    `Source: …`; at most three layers.
    """
    start, end = 0, len(text)
    for _ in range(3):
        step = _element(text, start, end) or _whole_fence(text, start, end)
        if step is None:
            found = _HEADER.match(text, start, end) or _MATTER.match(text, start, end)
            step = (found.end(), end) if found and found.end() < end else None
        if step is None or step[0] >= step[1]:
            break
        start, end = step
    return text[:start], text[start:end], text[end:]


def _element(text: str, start: int, end: int) -> tuple[int, int] | None:
    opening = _OPENING.match(text, start, end)
    if opening is None:
        return None
    near = max(opening.end(), end - _CLOSING_REACH)
    closing = re.compile(rf"</{re.escape(opening[1])}\s*>\s*\Z", re.IGNORECASE).search(text[near:end])
    if closing is None or text.count(f"</{opening[1]}", start, end) > 1:
        return None
    return opening.end(), near + closing.start()


def _whole_fence(text: str, start: int, end: int) -> tuple[int, int] | None:
    opening = _FENCE.match(text, start, end)
    if opening is None:
        return None
    found = fences(text[start:end])
    if len(found) != 1 or text[start + found[0].end : end].strip():
        return None
    last = text.rfind("\n", start, start + found[0].end - 1) + 1
    return (start + found[0].body, last) if last > start + found[0].body else None


# --- fences ----------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: where it starts, where its content does, where it ends, and how it is opened and closed."""

    start: int
    body: int
    end: int
    opening: str
    closing: str


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a Markdown text, in order (CommonMark 0.31, section 4.5); an open one ends the text."""
    if "```" not in text and "~~~" not in text:
        return []
    found: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        mark, info = line[1], line[2].strip()
        if opened is None:
            if mark[0] == "~" or "`" not in info:
                opened = line
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not info:
            found.append(_fence(opened, line.end()))
            opened = None
    if opened is not None:
        found.append(_fence(opened, len(text)))
    return found


def _fence(opened: re.Match[str], end: int) -> Fence:
    info = opened[2].strip()
    label = info if len(info) <= 40 else ""
    return Fence(opened.start(), opened.end(), end, opened[1][:20] + label, opened[1])


class Body:
    """A text that is cut at places: finds the good place near a wanted one, and keeps fences in pairs."""

    __slots__ = ("_fences", "_starts", "lined", "lines", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = line_count(text)
        self.lined = self.lines > 1
        self._fences = fences(text)
        self._starts = [fence.start for fence in self._fences]

    def inside(self, place: int) -> Fence | None:
        """The fence that a cut before `place` would break."""
        at = bisect_right(self._starts, place - 1) - 1
        if at >= 0 and self._fences[at].start < place < self._fences[at].end:
            return self._fences[at]
        return None

    def back(self, place: int) -> int:
        """The place at or before `place` for the end of a beginning: a line's end, a word's, a grapheme's."""
        if place <= 0 or place >= len(self.text):
            return min(max(place, 0), len(self.text))
        line = self.text.rfind("\n", 0, place) + 1
        if line * 2 >= place:
            return line
        tag = self.text.rfind("<", max(line, place - _TAG_REACH), place)
        if tag > 0 and self.text.find(">", tag, place) < 0 and _TAG_START.match(self.text, tag):
            return tag
        blank = self.text.rfind(" ", max(line, place - _WORD_REACH), place + 1)
        return blank if blank > 0 and grapheme_boundary(self.text, blank) else place

    def ahead(self, place: int) -> int:
        """The place at or after `place` for the start of an end."""
        size = len(self.text)
        if place <= 0 or place >= size:
            return min(max(place, 0), size)
        if self.text[place - 1] == "\n":
            return place
        line = self.text.find("\n", place) + 1
        if line and (size - line) * 2 >= size - place and line < size:
            return line
        # Never past this line, so that a tail that may be longer is never cut shorter.
        stop = line - 1 if line else size
        near = max(0, place - _TAG_REACH)
        tag = self.text.rfind("<", near, place)
        if tag >= 0 and self.text.find(">", tag, place) < 0 and _TAG_START.match(self.text, tag):
            end = self.text.find(">", place, min(stop, place + _TAG_REACH)) + 1
            if 0 < end < size and self.text.find("<", place, end) < 0 and grapheme_boundary(self.text, end):
                return end
        blank = self.text.find(" ", place, min(stop, place + _WORD_REACH))
        return blank + 1 if 0 <= blank < size - 1 and grapheme_boundary(self.text, blank + 1) else place

    def piece(self, head: int, tail: int, rule: str) -> Piece | None:
        """The text without `[head, tail)`, with the marker in its place."""
        text, size = self.text, len(self.text)
        if head <= 0 and tail >= size:
            return None
        whole = self.lined and (head == 0 or text[head - 1] == "\n") and (tail == size or text[tail - 1] == "\n")
        unit = "lines" if whole else "characters"
        left = line_count(text, head, tail) if whole else tail - head
        kept = (self.lines if whole else size) - left
        parts: list[str] = []
        if head:
            parts.append(text[:head] if text[head - 1] == "\n" else text[:head] + "\n")
            if fence := self.inside(head):
                parts.append(fence.closing + "\n")
        parts.append(marker(left, unit))
        if tail < size or text[-1] == "\n":
            parts.append("\n")
        if tail < size:
            if fence := self.inside(tail):
                parts.append(fence.opening + "\n")
            parts.append(text[tail:])
        return Piece(text="".join(parts), kept=kept, left=left, unit=unit, rule=rule)

    def reserve(self, tokenizer: Tokenizer) -> int:
        """Tokens to set aside for the longest marker of this text and the newlines around it."""
        return max(
            tokenizer.count(f"\n{marker(len(self.text), 'characters')}\n"),
            tokenizer.count(f"\n{marker(self.lines, 'lines')}\n"),
        )


# --- the rules -------------------------------------------------------------------------------------------


def cut_head(text: str, tokenizer: Tokenizer) -> Cutter:
    """Keep the beginning."""
    body = Body(text)
    reserve = body.reserve(tokenizer)

    def cut(room: int) -> Piece | None:
        head = body.back(len(take_tokens(tokenizer, text, max(0, room - reserve))))
        return body.piece(head, len(text), "head")

    return cut


def cut_tail(text: str, tokenizer: Tokenizer) -> Cutter:
    """Keep the end."""
    body = Body(text)
    reserve = body.reserve(tokenizer)

    def cut(room: int) -> Piece | None:
        taken = take_tokens(tokenizer, text, max(0, room - reserve), side="tail")
        return body.piece(0, body.ahead(len(text) - len(taken)), "tail")

    return cut


def cut_middle(text: str, tokenizer: Tokenizer) -> Cutter:
    """Keep the beginning and the end, half of the room each."""
    body = Body(text)
    reserve = body.reserve(tokenizer)

    def cut(room: int) -> Piece | None:
        free = max(0, room - reserve)
        head = body.back(len(take_tokens(tokenizer, text, free - free // 2)))
        tail = body.ahead(len(text) - len(take_tokens(tokenizer, text, free // 2, side="tail")))
        return body.piece(head, max(head, tail), "middle")

    return cut


def cut_log(text: str, tokenizer: Tokenizer) -> Cutter:
    """Keep the last whole lines; where not even the last one fits, its end, as `tail`."""
    body = Body(text)
    reserve = body.reserve(tokenizer)
    ending = cut_tail(text, tokenizer)

    def cut(room: int) -> Piece | None:
        start = len(text) - len(take_tokens(tokenizer, text, max(0, room - reserve), side="tail"))
        if start and text[start - 1] != "\n":
            start = text.find("\n", start) + 1 or len(text)
        return body.piece(0, start, "log") if start < len(text) else ending(room)

    return cut
