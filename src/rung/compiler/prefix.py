"""How much of a request's beginning equals the previous turn's, and what broke it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rung.assembly.messages import Message, Prompt
from rung.compiler.counting import Costs
from rung.compiler.manifest import Entry, Manifest, Prefix

if TYPE_CHECKING:
    from rung.compiler.turn import Turn


def prefix(previous: Turn, prompt: Prompt, manifest: Manifest, costs: Costs) -> Prefix:
    """The report on a compiled turn beside the one before it.

    Providers reuse a prompt up to the first difference, tools first. What differs there is named by its item;
    the reason is what became of it: `added` (it is new), `changed`, or why it is no longer in.
    """
    if previous.manifest.target != manifest.target:
        return Prefix(tokens=0, share=0.0, reason="other_target")
    before = previous._prompt  # pyright: ignore[reportPrivateUsage]
    if before.tools != prompt.tools:
        return Prefix(tokens=0, share=0.0, reason="tools_changed")
    if before.response_schema != prompt.response_schema:
        return Prefix(tokens=0, share=0.0, reason="response_schema_changed")
    equal = 0
    for one, other in zip(before.messages, prompt.messages, strict=False):
        # What was the request is history in the next turn; on the wire it is the same.
        if one != other and msgspec.structs.replace(one, place=other.place) != other:
            break
        equal += 1
    same = msgspec.structs.replace(prompt, messages=prompt.messages[:equal])
    tokens = costs.prompt(same) if equal or prompt.tools else 0
    if equal == len(before.messages):
        return Prefix(tokens=tokens, share=_share(tokens, manifest))
    item = _first_difference(before.messages[equal], prompt.messages[equal : equal + 1])
    return Prefix(tokens=tokens, share=_share(tokens, manifest), broken_by=item, reason=_reason(item, manifest))


def _share(tokens: int, manifest: Manifest) -> float:
    return round(tokens / manifest.totals.total, 4) if manifest.totals.total else 0.0


def _first_difference(before: Message, now: Sequence[Message]) -> str | None:
    blocks = now[0].blocks if now else ()
    for number, block in enumerate(before.blocks):
        if number >= len(blocks) or blocks[number] != block:
            return block.item_id
    return blocks[len(before.blocks)].item_id if len(blocks) > len(before.blocks) else None


def _reason(item: str | None, manifest: Manifest) -> str:
    row: Entry | None = None if item is None else manifest.of(item)
    if row is None:
        return "gone"
    return "changed" if row.state in ("included", "truncated") else row.reason
