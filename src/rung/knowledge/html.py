"""HTML into blocks: what a reader sees, as Markdown text. Hidden elements and scripts are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rung.errors import missing_extra
from rung.knowledge.blocks import Block, Parsed

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_DROPPED_TEXT = """
script style noscript template head nav iframe object svg math canvas audio video form button select
textarea input dialog
"""
_DROPPED = frozenset(_DROPPED_TEXT.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS_TEXT = """
address article aside blockquote body dd details div dl dt fieldset figcaption figure footer header hr html
li main ol p pre section summary table ul
"""
_BLOCKS = frozenset(_BLOCKS_TEXT.split()) | frozenset(_HEADINGS)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])")


def read_html(text: str) -> Parsed:
    """What is visible of a page. The title is its `title`, or else its first `h1`.

    Raises:
        MissingExtraError: `selectolax` is not installed.
    """
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        raise missing_extra("selectolax", "knowledge") from None
    tree = LexborHTMLParser(text)
    named = tree.css_first("title")
    title = _squeeze(named.text(deep=True)) if named is not None else ""
    reader = _Reader()
    if tree.body is not None:
        reader.walk(tree.body)
    first = next((one for one in reader.blocks if one.kind == "heading" and one.level == 1), None)
    if not title and first is not None:
        title = first.text.lstrip("# ")
    return Parsed(title=title or None, blocks=tuple(reader.blocks))


class _Reader:
    """Collects blocks in reading order. It walks with a stack of its own: pages nest without limit."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._line: list[str] = []
        self._items: list[str] = []

    def walk(self, root: LexborNode) -> None:
        # A node is entered, then left: `None` marks its end.
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            tag = node.tag or ""
            if leaving:
                self._close(tag)
                continue
            if tag == "-text":
                self._line.append(node.text_content or "")
                continue
            if tag.startswith("-") or tag == "!doctype" or _invisible(node, tag):
                continue
            if tag == "br":
                self._line.append("\n")
                continue
            if tag in ("pre", "table"):
                self._end_line()
                self._end_list()
                self._whole(node, tag)
                continue
            if tag in _BLOCKS:
                self._end_line()
                if tag != "li" and tag not in ("p", "div"):
                    self._end_list()
                stack.append((node, True))
            stack.extend((child, False) for child in reversed(list(node.iter(include_text=True))))
        self._end_line()
        self._end_list()

    def _close(self, tag: str) -> None:
        text = _lines("".join(self._line))
        self._line.clear()
        if not text:
            return
        if tag == "li":
            self._items.append("- " + text.replace("\n", "\n  "))
            return
        self._end_list()
        level = _HEADINGS.get(tag, 0)
        if level:
            flat = _squeeze(text)
            self.blocks.append(Block(kind="heading", text="#" * level + " " + flat, level=level))
        else:
            self.blocks.append(Block(kind="text", text=text))

    def _end_line(self) -> None:
        text = _lines("".join(self._line))
        self._line.clear()
        if text:
            self._end_list()
            self.blocks.append(Block(kind="text", text=text))

    def _end_list(self) -> None:
        if self._items:
            parts = tuple(Block(kind="text", text=item) for item in self._items)
            self.blocks.append(Block(kind="text", text="\n".join(self._items), parts=parts))
            self._items.clear()

    def _whole(self, node: LexborNode, tag: str) -> None:
        if tag == "pre":
            code = node.text(deep=True).strip("\n")
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            if code.strip():
                self.blocks.append(Block(kind="code", text=f"{fence}\n{code}\n{fence}"))
            return
        rows = [
            "| " + " | ".join(_cell(cell) for cell in row.css("td, th")) + " |"
            for row in node.css("tr")
            if not _invisible(row, "tr")
        ]
        if len(rows) == 1:
            self.blocks.append(Block(kind="text", text=rows[0]))
        elif rows:
            header = rows[0] + "\n|" + " --- |" * max(1, rows[0].count(" | ") + 1)
            parts = tuple(Block(kind="text", text=row) for row in rows[1:])
            text = "\n".join((header, *rows[1:]))
            self.blocks.append(Block(kind="table", text=text, header=header, parts=parts))


def _invisible(node: LexborNode, tag: str) -> bool:
    if tag in _DROPPED:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").lower() == "true":
        return True
    return _HIDDEN.search((attributes.get("style") or "").lower()) is not None


def _cell(cell: LexborNode) -> str:
    return _squeeze(cell.text(deep=True, separator=" ")).replace("|", "\\|")


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _lines(text: str) -> str:
    return "\n".join(line for line in map(_squeeze, text.split("\n")) if line) if "\n" in text else _squeeze(text)
