"""Markdown and plain text into blocks. Texts are slices of the source: nothing is rendered again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rung.knowledge.blocks import Block, Parsed

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:(?P<fields>.*?)\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(?P<title>\S.*?)[ \t]*$", re.MULTILINE)
_CLOSED = {"fence": "code", "code_block": "code", "html_block": "text"}
_CONTAINERS = ("bullet_list_open", "ordered_list_open", "blockquote_open", "list_item_open")


def read_text(text: str) -> Parsed:
    """Plain text: paragraphs at empty lines, no title, no sections."""
    paragraphs = (part.strip("\n") for part in re.split(r"\n[ \t]*\n", text))
    return Parsed(title=None, blocks=tuple(Block(kind="text", text=one) for one in paragraphs if one.strip()))


def read_markdown(text: str) -> Parsed:
    """CommonMark with tables. The title is the front matter's `title`, or else the first heading of level 1."""
    title: str | None = None
    front = _FRONT_MATTER.match(text)
    if front is not None:
        named = _TITLE.search(front["fields"] or "")
        title = named["title"].strip("\"'") if named else None
        text = text[front.end() :]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lines = text.split("\n")
    blocks = tuple(_blocks(tokens, lines, 0))
    if title is None:
        title = next((heading(one) for one in blocks if one.kind == "heading" and one.level == 1), None)
    return Parsed(title=title or None, blocks=blocks)


def heading(block: Block) -> str:
    """The words of a heading, without its marks."""
    lines = block.text.strip().split("\n")
    if len(lines) > 1 and re.fullmatch(r"[ \t]*(?:=+|-+)[ \t]*", lines[-1]):
        lines.pop()
    elif lines:
        lines[0] = re.sub(r"^#{1,6}(?:[ \t]+|$)", "", lines[0])
        lines[-1] = re.sub(r"(?:^|[ \t]+)#+[ \t]*$", "", lines[-1])
    return " ".join(" ".join(lines).replace("**", "").replace("`", "").split())


def _blocks(tokens: Sequence[Token], lines: list[str], level: int) -> list[Block]:
    found: list[Block] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        end = _closing(tokens, place)
        if token.level == level and token.map is not None:
            block = _block(token, tokens[place + 1 : end], lines)
            if block is not None:
                found.append(block)
        place = end + 1
    return found


def _closing(tokens: Sequence[Token], place: int) -> int:
    opened = tokens[place]
    if opened.nesting != 1:
        return place
    for end in range(place + 1, len(tokens)):
        if tokens[end].nesting == -1 and tokens[end].level == opened.level:
            return end
    return len(tokens) - 1


def _block(token: Token, inner: Sequence[Token], lines: list[str]) -> Block | None:
    start, end = token.map or (0, 0)
    text = "\n".join(lines[start:end]).rstrip()
    if not text.strip():
        return None
    if token.type == "heading_open":
        # Only a heading of the document itself opens a section; one in a quote or list is text.
        return Block(kind="heading" if token.level == 0 else "text", text=text, level=int(token.tag[1:]))
    if token.type == "table_open":
        rows = tuple(Block(kind="text", text=line) for line in lines[start + 2 : end] if line.strip())
        return Block(kind="table", text=text, header="\n".join(lines[start : start + 2]), parts=rows)
    if token.type in _CONTAINERS:
        parts = tuple(_blocks(inner, lines, token.level + 1))
        return Block(kind="text", text=text, parts=parts if _covers(parts, text) else ())
    return Block(kind="code" if _CLOSED.get(token.type) == "code" else "text", text=text)


def _covers(parts: tuple[Block, ...], text: str) -> bool:
    """Whether the parts hold all that the whole says: link definitions, for one, leave no token."""
    return "".join("".join(part.text for part in parts).split()) == "".join(text.split())
