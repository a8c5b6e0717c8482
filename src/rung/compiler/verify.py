"""verify: the manifest matches the request to the token, and no text stands in a channel above it."""

from __future__ import annotations

from typing import Any

from rung.assembly.messages import Block, Prompt
from rung.compiler.counting import Costs
from rung.compiler.manifest import Manifest
from rung.errors import VerificationError
from rung.policy.rules import PolicySet
from rung.tokens.request import count_request


def verify(
    manifest: Manifest,
    prompt: Prompt,
    request: dict[str, Any],
    costs: Costs,
    policy: PolicySet,
    *,
    full: bool,
) -> None:
    """Check a compiled turn; with `full` the whole request is counted anew.

    Args:
        manifest: of the whole turn.
        prompt: what was rendered for this turn; a session's past holds no instructions, see `rung.compiler.past`.
        request: the whole request.
        costs: who counts.
        policy: which types are protected.
        full: whether to count anew.

    Raises:
        VerificationError: it contradicts itself. That is a bug of rung's own.
    """
    totals = manifest.totals
    if totals.total > totals.available:
        raise VerificationError(
            f"the turn has {totals.total} tokens, above its {totals.available} (report this)", rule="budget"
        )
    rows = sum([entry.tokens for entry in manifest.entries])
    parts = rows + totals.tools + totals.response_schema + totals.framing
    if parts != totals.total:
        raise VerificationError(
            f"the manifest's rows sum to {parts}, the turn has {totals.total} (report this)", rule="sum"
        )
    for message in prompt.messages:
        if message.role == "system":
            _channel(message.blocks, policy)
    if full:
        counted = count_request(costs.framing, costs.tokenizer, request).total
        if counted != totals.total:
            raise VerificationError(
                f"the manifest says {totals.total} tokens, the request has {counted} (report this)",
                rule="recount",
            )


def _channel(blocks: tuple[Block, ...], policy: PolicySet) -> None:
    for block in blocks:
        if block.form == "literal" and block.item_id is not None and not policy.protected(block.type):
            raise VerificationError(
                f"`{block.type}` stands among the instructions (report this)",
                rule="channel",
                item_id=block.item_id,
            )
