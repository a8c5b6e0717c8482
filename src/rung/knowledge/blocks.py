"""The structure that every format is read into: a title and blocks in reading order."""

from __future__ import annotations

from typing import Literal

import msgspec

BlockKind = Literal["heading", "text", "code", "table"]


class Block(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A heading, a paragraph or list, a code block, or a table.

    Attributes:
        kind: what it is; decides where it may be cut.
        text: its characters as they are shown.
        level: 1 to 6 for a heading, otherwise 0.
        header: of a table: the lines that each piece of it begins with.
        parts: what it may be cut between: rows of a table, items of a list.
    """

    kind: BlockKind
    text: str
    level: int = 0
    header: str = ""
    parts: tuple[Block, ...] = ()


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was read: its own title, or None, and its blocks."""

    title: str | None
    blocks: tuple[Block, ...]
