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

CHUNKING = "chunks v2"
"""Enters the version of each document: other chunks of the same text are another version."""

_LEAD = re.compile(r"[:：][*_\s]*$|^\s*(\*\*|__)[^*_]+\1\s*$")
"""The end of a line that announces what follows, or a line in bold in the place of a heading."""

_MARKER = re.compile(r"[ \t>]*(?:[-*+•]|\w{1,3}[.)])?[ \t]*")
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
    the first, and a section that only announces the next stands with it. Larger sections are cut between their
    blocks. A code block or a table row is never cut: where one alone exceeds the limit, its chunk does too. Each
    piece of a cut table begins with the table's header, and a heading, or a line that ends in a colon, stands
    with what it announces.
    """
    packed: list[_Piece] = []
    for section in _sections(parsed, title):
        pieces = _pieces(section, tokenizer, limit)
        if len(pieces) == 1 and packed and packed[-1].whole:
            last, piece = packed[-1], pieces[0]
            is_small = min(last.tokens, piece.tokens) < limit // 4 and not _split_lead(piece.text)[1]
            if is_small or _split_lead(last.text)[1]:
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
    held: list[Block] = []

    def close() -> None:
        if held:
            body = "\n\n".join(one.text for one in held)
            pieces.append(_Piece(section.path, body, tokenizer.count(body), False))
            held.clear()

    for block in section.blocks:
        if tokenizer.count("\n\n".join(one.text for one in (*held, block))) <= limit:
            held.append(block)
            continue
        lead = _taken_lead(held, tokenizer, limit)
        close()
        for part in _cut(block, tokenizer, limit, lead):
            close()
            held.append(msgspec.structs.replace(block, text=part))
    close()
    return pieces


def _taken_lead(held: list[Block], tokenizer: Tokenizer, limit: int) -> str:
    """Take what announces the next block off the end of `held`: headings and lines that end in a colon.

    It is at most half a chunk, so that what it announces has room beside it.
    """
    lead = ""
    while held:
        last = held[-1]
        rest, line = ("", last.text) if last.kind == "heading" else _split_lead(last.text)
        joined = _under(line, lead)
        if not line or last.kind in ("code", "table") or tokenizer.count(joined) > limit // 2:
            break
        lead = joined
        held.pop()
        if rest:
            held.append(msgspec.structs.replace(last, text=rest))
            break
    return lead


def _split_lead(text: str) -> tuple[str, str]:
    """A text without the sentence that announces what follows it, and that sentence, empty where there is none."""
    text = text.rstrip()
    start = text.rfind("\n") + 1
    line = text[start:]
    if _LEAD.search(line) is None:
        return text, ""
    for match in _SENTENCE.finditer(line):
        if 0 < match.end() < len(line) and _MARKER.fullmatch(line, 0, match.end()) is None:
            start = len(text) - len(line) + match.end()
    return text[:start].rstrip(), text[start:]


def _under(lead: str, text: str, between: str = "\n\n") -> str:
    return f"{lead}{between}{text}" if lead and text else lead or text


def _cut(block: Block, tokenizer: Tokenizer, limit: int, lead: str = "") -> Iterator[str]:
    """The texts of a block, each within the limit if its structure allows; the first of them under `lead`."""
    room = limit - tokenizer.count(lead) if lead else limit
    whole = _under(lead, block.text)
    if block.kind == "code" or tokenizer.count(whole) <= limit:
        yield whole
    elif block.kind == "table":
        yield from _packed([row.text for row in block.parts], tokenizer, limit, "\n", lead, block.header + "\n")
    elif block.parts:
        texts = [
            text for place, part in enumerate(block.parts) for text in _cut(part, tokenizer, limit if place else room)
        ]
        yield from _packed(texts, tokenizer, limit, "\n", lead)
    else:
        yield from _packed(list(_sentences(block.text, tokenizer, room)), tokenizer, limit, "", lead)


def _packed(
    texts: Sequence[str], tokenizer: Tokenizer, limit: int, between: str, lead: str, header: str = ""
) -> Iterator[str]:
    """Texts joined up to the limit. A line that ends in a colon begins the next piece, not the end of one."""
    held = _under(lead, header)
    is_begun = False
    for text in texts:
        joined = f"{held}{between}{text}" if is_begun else f"{held}{text}" if header else _under(held, text)
        if is_begun and tokenizer.count(joined) > limit:
            rest, line = ("", "") if header else _split_lead(held)
            if not rest or tokenizer.count(_under(line, text, "\n")) > limit:
                rest, line = held, ""
            yield rest.strip("\n")
            held = _under(line, text, between or "\n") if line else header + text
        else:
            held = joined
        is_begun = True
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
