"""The text that a block adds to its message."""

from __future__ import annotations

import msgspec

from rung.assembly.escape import escape, shield
from rung.assembly.frames import fill_slots, render_frame
from rung.assembly.invisible import Invisible, treat_invisible
from rung.assembly.messages import Block, Message

_TRUSTED = frozenset({"policy", "instruction"})
_RULE = "---\n"


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How a target writes text.

    Attributes:
        invisible: what becomes of invisible characters in quoted data.
        chat: the output is one plain text: roles are our tags, so untrusted text is escaped everywhere.
    """

    invisible: Invisible = "strip"
    chat: bool = False


def trusted(block: Block) -> bool:
    """Whether the text is the deployment's own: an instruction, a policy, or the compiler's words."""
    return block.type in _TRUSTED or (not block.type and block.item_id is None)


Segment = tuple[str | None, str]
"""The id of an item, and a text of it."""


def render_block(block: Block, style: Style, *, multi: bool) -> str:
    """The exact text that this block adds to its message.

    A quoted block is a frame. A literal one stands byte for byte, apart from the library's own tags in text
    that is not the deployment's. Where blocks stand together (`multi`), each ends in a newline and none
    begins with white space or `/` (a line `---` goes before one that would), so that the token counts of
    the parts add up to that of the whole.

    Args:
        block: what to render.
        style: the target's way of writing.
        multi: the message holds more than this block.
    """
    if block.form == "quoted":
        return render_frame(block, invisible=style.invisible, chat=style.chat)
    if block.slots:
        return "".join([text for _, text in segments(block, style, multi=multi)])
    text = _plain(block.text, block, style)
    if not multi and not style.chat:
        return text
    if not text or text.isspace():
        return ""
    if text[0] == "/" or text[0].isspace():
        text = _RULE + text
    return text if text[-1] == "\n" else text + "\n"


def segments(block: Block, style: Style, *, multi: bool) -> list[Segment]:
    """What `render_block` gives, cut where another item stands in a slot."""
    if not block.slots or block.form == "quoted":
        return [(block.item_id, render_block(block, style, multi=multi))]
    alone = not multi and not style.chat
    out: list[Segment] = []
    line_ended = True
    after_frame = False
    for piece in fill_slots(block.text, tuple(name for name, _ in block.slots)):
        if isinstance(piece, int):
            if not line_ended:
                out.append((block.item_id, "\n"))
            inner = block.slots[piece][1]
            out.append((inner.item_id, render_frame(inner, invisible=style.invisible, chat=style.chat)))
            line_ended = after_frame = True
            continue
        text = _plain(piece, block, style)
        if after_frame and text[:1] == "\n":  # the frame has ended this line already
            text = text[1:]
        if text:
            out.append((block.item_id, text))
            line_ended, after_frame = text[-1] == "\n", False
    if not alone and not line_ended:
        out.append((block.item_id, "\n"))
    if not alone and out and (out[0][1][0] == "/" or out[0][1][0].isspace()):
        out.insert(0, (block.item_id, _RULE))
    return out


def _plain(text: str, block: Block, style: Style) -> str:
    if trusted(block):
        return shield(text) if style.chat else text
    return escape(text, chat=True) if style.chat else shield(text)


def message_text(message: Message, style: Style) -> str:
    """The text content of a message: what its blocks add, one after the other."""
    blocks = message.blocks
    if len(blocks) == 1:
        return render_block(blocks[0], style, multi=False)
    return "".join([render_block(block, style, multi=True) for block in blocks])


def hidden_characters(block: Block) -> int:
    """How many invisible characters the quoted text and attributes of a block hold, its slots included."""
    total = 0
    if block.form == "quoted":
        total = treat_invisible(block.text, "keep")[1]
        for value in (block.label or block.item_id or "", block.source, *(value for _, value in block.attrs)):
            total += treat_invisible(value, "keep")[1]
    for _, inner in block.slots:
        total += hidden_characters(msgspec.structs.replace(inner, form="quoted"))
    return total
