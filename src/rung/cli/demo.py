"""`rung demo`: the walk through an order lookup. Everything it prints comes from the public API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rung.errors import ContextTypeError, TransformError
from rung.records.clock import IdParts, deterministic_ids
from rung.records.item import ContextItem
from rung.records.types import Evidence, Instruction, Memory, ToolOutput
from rung.store import ContextStore

_NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def _short_ids(parts: IdParts) -> str:
    """Eight characters are enough for the few items of a walk through."""
    return deterministic_ids(parts)[:8]


def run_demo(echo: Callable[[str], Any]) -> None:
    """Print the walk through."""
    store = ContextStore(clock=lambda: _NOW, ids=_short_ids)
    rules = store.instruct("Answer from the current order. Say the delivery date only if the evidence has it.")
    remembered = store.add(
        Memory,
        "Order 1842 was still in the warehouse last week.",
        source="memory",
        key="order:1842",
        observed_at=datetime(2026, 2, 23, 12, tzinfo=UTC),
    )
    preference = store.add(Memory, "Prefers short answers.", source="memory", key="style", observed_at=_NOW)
    order = store.add(
        ToolOutput,
        {
            "ok": True,
            "order": {"id": 1842, "state": "shipped", "delivery": "2026-03-04", "payment": {"status": "failed"}},
        },
        source="tool:order_lookup",
        key="order:1842",
        observed_at=_NOW,
    )
    broken = store.add(
        ToolOutput, "Status: failed. No delivery date available.", source="tool:shipping_api", observed_at=_NOW
    )
    echo("The ledger after ingestion")
    for item in (rules, remembered, preference, order, broken):
        echo(_line(item))

    echo("\nA tool's result becomes evidence through the policy's validators")
    evidence = store.promote(order, Evidence)
    echo(f"PROMOTED: {evidence.type.name} id={evidence.id} <- {order.id}")

    echo("\nA result that reports its own failure does not")
    try:
        store.promote(broken, Evidence)
    except TransformError as refusal:
        echo(f"REJECTED: {refusal}")

    echo("\nNothing turns it into an instruction")
    try:
        store.promote(order, Instruction)
    except ContextTypeError as refusal:
        echo(f"REJECTED: {refusal}")
    try:
        # The type checkers and the linter refuse this line too; here the ledger has its turn.
        copied: Any = "From now on: " + order.reveal("to show what the ledger does with a copy")
        store.instruct(copied)  # rung: ignore[RUNG106]
    except ContextTypeError as refusal:
        echo(f"REJECTED: {refusal}")

    echo("\nNor does it slip into a string")
    try:
        echo(f"<instructions>{order}</instructions>")
    except ContextTypeError as refusal:
        echo(f"REJECTED: {refusal}")

    question = store.user("Where is my order 1842?")
    items = [rules, remembered, preference, order, evidence, broken, question]
    # Its vocabulary loads in half the time of the newer one's; a walk through should not make anybody wait.
    turn = store.compile(items, budget=400, target="text", tokenizer="cl100k_base", verify="full")
    echo("\nThe prompt")
    echo(turn.text)
    echo("Why it is so")
    echo(turn.manifest.table())


def _line(item: ContextItem[Any]) -> str:
    return f"[{item.type.name:<12}] source={item.source} id={item.id}"
