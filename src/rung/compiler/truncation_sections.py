"""Cutting documents: whole sections in order, else whole blocks of the first one.

Markdown (CommonMark 0.31: headings with `#` or underlined, fences, tables) and HTML (`h1` to `h6`). No cut
lies inside a fence or a table row; in HTML the elements that are open at the cut are closed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from rung.compiler.truncation_text import Cutter, Fence, Piece, cut_head, fences, is_table_rule, marker
from rung.tokens import Tokenizer, take_tokens

_ATX = re.compile(r"^ {0,3}#{1,6}(?:[ \t][^\n]*)?$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(?! {4}|[|>#\-*+\s])[^\n|]+\n {0,3}(?:=+|-{3,})[ \t]*$", re.MULTILINE)
_BLOCK = re.compile(
    r"(?:(?<=\n)|(?<=\A))(?=[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]|[ \t]*\|)|(?<=\n\n)(?=[^\n])", re.MULTILINE
)
_HTML_HEADING = re.compile(r"<h[1-6](?=[\s>])", re.IGNORECASE)
_HTML_BLOCK = re.compile(r"</(?:p|li|tr|div|pre|ul|ol|table|section|article|blockquote)\s*>\s*", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)(?:\s[^<>]*?)?(/?)>")
_VOID = re.compile(r"(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|td|th|tr)\Z")
_TITLE = 300


def cut_sections(text: str, tokenizer: Tokenizer, *, html: bool) -> Cutter:
    """Keep whole sections from the first on; where none fits, its heading and its whole blocks.

    A text without headings is cut between blocks. A first block of prose that is itself too long is cut as
    by `head`; a fence or a table row never is.
    """
    held = [] if html else fences(text)
    starts = _html_starts(text) if html else _markdown_starts(text, held)
    sections = _ends(text, starts)
    first = sections[0] if starts else len(text)
    blocks = _ends(text[:first], _blocks(text[:first], held, html=html))
    title = _title(text, starts)
    opening = cut_head(text, tokenizer)
    reserve = tokenizer.count(f"\n{marker(len(sections) + len(blocks), 'sections')}\n")
    in_fence = bool(held) and held[0].start < blocks[0]
    table = text[: blocks[0]].lstrip().startswith("|")

    def cut(room: int) -> Piece | None:
        size = len(take_tokens(tokenizer, text, max(0, room - reserve)))
        if whole := bisect_right(sections, size):
            unit = "sections" if len(sections) > 1 and starts else "blocks"
            return _piece(text[: sections[whole - 1]], whole, len(sections) - whole, unit, text, html=html)
        left = len(sections) - 1
        if kept := bisect_right(blocks, size):
            return _piece(text[: blocks[kept - 1]], kept, len(blocks) - kept + left, "blocks", text, html=html)
        if not in_fence and not table:
            return opening(room)
        if title and len(title) <= size:
            return _piece(title, 0, len(blocks) + left, "blocks", text, html=html)
        return None

    return cut


def _piece(head: str, kept: int, left: int, unit: str, text: str, *, html: bool) -> Piece:
    parts = [head if head.endswith("\n") else head + "\n"]
    if left:
        parts.append(marker(left, unit))
        if text.endswith("\n"):
            parts.append("\n")
    if html:
        parts.append(_closers(head))
    return Piece(text="".join(parts), kept=kept, left=left, unit=unit, rule="section")


def _ends(text: str, starts: list[int]) -> list[int]:
    """The ends of the parts that begin at `starts`; what is before the first start is a part too."""
    return [start for start in starts if start > 0] + [len(text)]


def _free(held: list[Fence]) -> Callable[[int], bool]:
    starts = [fence.start for fence in held]

    def free(place: int) -> bool:
        at = bisect_right(starts, place) - 1
        return at < 0 or place >= held[at].end or place == held[at].start

    return free


def _markdown_starts(text: str, held: list[Fence]) -> list[int]:
    free = _free(held)
    found = {match.start() for match in _ATX.finditer(text)}
    found.update(match.start() for match in _UNDERLINED.finditer(text))
    return sorted(place for place in found if free(place))


def _html_starts(text: str) -> list[int]:
    return [match.start() for match in _HTML_HEADING.finditer(text)]


def _blocks(text: str, held: list[Fence], *, html: bool) -> list[int]:
    """Where the blocks of a section start: paragraphs, list items, table rows, fences."""
    if html:
        return [match.end() for match in _HTML_BLOCK.finditer(text) if match.end() < len(text)]
    free = _free(held)
    found = {match.start() for match in _BLOCK.finditer(text)}
    for fence in held:
        found.update(place for place in (fence.start, fence.end) if place < len(text))
    title = _ATX.match(text)
    if title and title.end() + 1 < len(text):
        found.add(title.end() + 1)
    return sorted(place for place in found if free(place) and not _ruled(text, place))


def _ruled(text: str, place: int) -> bool:
    """Whether a delimiter row or the first row of a table starts here: they stay with the heading above."""
    end = text.find("\n", place)
    line = text[place : end if end >= 0 else len(text)]
    if "|" not in line or place == 0:
        return False
    above = text[text.rfind("\n", 0, place - 1) + 1 : place - 1]
    return is_table_rule(line) or is_table_rule(above)


def _title(text: str, starts: list[int]) -> str:
    """The line of the first heading, where it is short."""
    if not starts:
        return ""
    end = text.find("\n", starts[0]) + 1
    return text[starts[0] : end] if 0 < end - starts[0] <= _TITLE else ""


def _closers(head: str) -> str:
    """The closing tags of the elements that are open at the end of a beginning."""
    opened: list[str] = []
    for tag in _TAG.finditer(head):
        name = tag[2].lower()
        if _VOID.match(name) or tag[3]:
            continue
        if not tag[1]:
            opened.append(name)
        elif name in opened:
            while opened.pop() != name:
                pass
    return "".join(f"</{name}>" for name in reversed(opened))
