"""Blocks into chunks: whole sections where they fit, cut only where the structure allows it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from rung.knowledge.blocks import Block, Parsed
from rung.knowledge.markdown import heading
from rung.tokens.protocol import Tokenizer
from rung.tokens.take import take_tokens

CHUNKING = "chunks v1"
"""Enters the version of each document: other chunks of the same text are another version."""

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")


class Chunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A passage of a document.

    Attributes:
        anchor: its name within the document, from its section and not from its place, so that it stays when
            text is added elsewhere.
        section: the path of headings, joined by ` > `; empty for what stands under the title alone.
        text: as it is shown.
        tokens: of `text`.
    """

    anchor: str
    section: str
    text: str
    tokens: int


class _Section(msgspec.Struct, frozen=True, gc=False):
    path: tuple[str, ...]
    blocks: tuple[Block, ...]


class _Piece(msgspec.Struct, frozen=True, gc=False):
    path: tuple[str, ...]
    text: str
    tokens: int
    whole: bool


def chunk(parsed: Parsed, tokenizer: Tokenizer, limit: int, title: str) -> tuple[Chunk, ...]:
    """The chunks of a document, in reading order, without overlap.

    A section is a chunk of its own. Small neighbours (below a quarter of `limit` tokens) share one, named by
    the first; larger sections are cut between their blocks. A code block or a table row is never cut: where
    one alone exceeds the limit, its chunk does too. Each piece of a cut table begins with the table's header.
    """
    packed: list[_Piece] = []
    for section in _sections(parsed, title):
        pieces = _pieces(section, tokenizer, limit)
        if len(pieces) == 1 and packed and packed[-1].whole:
            last, piece = packed[-1], pieces[0]
            if min(last.tokens, piece.tokens) < limit // 4:
                joined = f"{last.text}\n\n{piece.text}"
                count = tokenizer.count(joined)
                if count <= limit:
                    packed[-1] = _Piece(last.path, joined, count, True)
                    continue
        packed += pieces
    taken: dict[str, int] = {}
    chunks: list[Chunk] = []
    for piece in packed:
        base = "/".join(map(_slug, piece.path)) or "top"
        taken[base] = taken.get(base, 0) + 1
        anchor = base if taken[base] == 1 else f"{base}.{taken[base]}"
        section_path = " > ".join(piece.path)
        chunks.append(Chunk(anchor=anchor, section=section_path, text=piece.text, tokens=piece.tokens))
    return tuple(chunks)


def _sections(parsed: Parsed, title: str) -> list[_Section]:
    """Blocks by the headings above them. The title's own heading is left to the attribution."""
    sections: list[_Section] = []
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    for place, block in enumerate(parsed.blocks):
        if block.kind != "heading":
            blocks.append(block)
            continue
        if any(one.kind != "heading" for one in blocks):
            sections.append(_Section(tuple(name for _, name in path), tuple(blocks)))
            blocks = []
        words = heading(block)
        if place == 0 and words == title and len(parsed.blocks) > 1:
            continue
        path = [(level, name) for level, name in path if level < block.level]
        if words and words != title:
            path.append((block.level, words))
        blocks.append(block)
    if blocks:
        sections.append(_Section(tuple(name for _, name in path), tuple(blocks)))
    return sections


def _pieces(section: _Section, tokenizer: Tokenizer, limit: int) -> list[_Piece]:
    text = "\n\n".join(block.text for block in section.blocks)
    count = tokenizer.count(text)
    if count <= limit:
        return [_Piece(section.path, text, count, True)]
    pieces: list[_Piece] = []
    held: list[str] = []

    def close() -> None:
        if held:
            body = "\n\n".join(held)
            pieces.append(_Piece(section.path, body, tokenizer.count(body), False))
            held.clear()

    for block in section.blocks:
        joined = "\n\n".join((*held, block.text))
        if tokenizer.count(joined) <= limit:
            held.append(block.text)
            continue
        parts = list(_cut(block, tokenizer, limit))
        if len(held) == 1 and held[0].startswith("#") and len(parts) > 1:
            # A heading is not left alone before the table or list that it announces.
            parts[0] = f"{held.pop()}\n\n{parts[0]}"
        close()
        for part in parts[:-1]:
            held.append(part)
            close()
        held.append(parts[-1])
    close()
    return pieces


def _cut(block: Block, tokenizer: Tokenizer, limit: int) -> Iterator[str]:
    """The texts of a block, each within the limit if its structure allows."""
    if block.kind == "code" or tokenizer.count(block.text) <= limit:
        yield block.text
    elif block.kind == "table":
        yield from _packed([row.text for row in block.parts], tokenizer, limit, block.header + "\n", "\n")
    elif block.parts:
        texts = [text for part in block.parts for text in _cut(part, tokenizer, limit)]
        yield from _packed(texts, tokenizer, limit, "", "\n")
    else:
        yield from _packed(list(_sentences(block.text, tokenizer, limit)), tokenizer, limit, "", "")


def _packed(texts: Sequence[str], tokenizer: Tokenizer, limit: int, before: str, between: str) -> Iterator[str]:
    held = ""
    for text in texts:
        joined = f"{held}{between}{text}" if held else before + text
        if held and tokenizer.count(joined) > limit:
            yield held.strip("\n")
            held = before + text
        else:
            held = joined
    if held.strip():
        yield held.strip("\n")


def _sentences(text: str, tokenizer: Tokenizer, limit: int) -> Iterator[str]:
    """Sentences, each with the blank behind it; one that exceeds the limit is cut between words."""
    start = 0
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    for end in (*ends, len(text)):
        sentence = text[start:end]
        start = end
        while sentence and tokenizer.count(sentence) > limit:
            taken = take_tokens(tokenizer, sentence, limit)
            blank = max(taken.rfind(" "), taken.rfind("\n"))
            size = blank + 1 if blank > len(taken) // 2 else max(1, len(taken))
            yield sentence[:size]
            sentence = sentence[size:]
        if sentence:
            yield sentence


def _slug(name: str) -> str:
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", name).casefold()).strip("-")[:60] or "section"
