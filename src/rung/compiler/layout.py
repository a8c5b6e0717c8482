"""order: the ladder. From candidates that are in to neutral messages, stable parts first.

tools │ policy and instructions │ summary │ history │ one context block │ the request │ what followed it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rung.assembly.messages import Block, Message, Prompt
from rung.compiler.labels import MEMORY_GROUPS, canonical
from rung.compiler.manifest import hash_like
from rung.compiler.plan import Candidate, Plan
from rung.compiler.spoken import spoken_item
from rung.records.item import Slot, body


def prompt_of(plan: Plan, alive: Sequence[Candidate]) -> Prompt:
    """The neutral prompt of these candidates."""
    by_id: dict[str, Candidate] = {}
    rules: list[Candidate] = []
    summary: list[Candidate] = []
    context: list[Candidate] = []
    history: list[Message] = []
    current: list[Message] = []
    for one in alive:
        place = one.place
        if place == "context":
            if one.owners:
                by_id[one.item.id] = one
            else:
                context.append(one)
        elif place == "instructions":
            rules.append(one)
        elif place == "summary":
            summary.append(one)
        elif place == "history":
            history.append(spoken(one))
        else:
            current.append(spoken(one))
    messages: list[Message] = []
    if rules:
        blocks = tuple([instruction_block(one, by_id) for one in sorted(rules, key=_rule_order)])
        messages.append(Message(role="system", place="instructions", blocks=blocks))
    if summary:
        messages.append(Message(role="user", place="summary", blocks=tuple([quoted(one) for one in summary])))
    messages += history
    if context:
        messages.append(context_message(sorted(context, key=canonical)))
    messages += current
    if plan.cache and plan.target in _MARKED:
        mark(messages)
    return Prompt(messages=tuple(messages), tools=plan.tools, response_schema=plan.response_schema)


_MARKED = frozenset({"anthropic"})
"""Providers that reuse a prompt up to a mark only; the others take the longest equal beginning by themselves."""


def mark(messages: list[Message]) -> None:
    """Ask for a cache mark where a stable part ends: the instructions, the history, and the turn in progress."""
    for place in ("instructions", "history"):
        ends = [number for number, message in enumerate(messages) if message.place == place]
        if ends:
            messages[ends[-1]] = msgspec.structs.replace(messages[ends[-1]], cache=True)
    if messages and messages[-1].role == "tool":
        messages[-1] = msgspec.structs.replace(messages[-1], cache=True)


def _rule_order(one: Candidate) -> tuple[int, int]:
    return (0 if one.item.type.name == "policy" else 1, one.order)


def context_message(context: Iterable[Candidate]) -> Message:
    """The one block of context: quoted items, in canonical order."""
    return Message(role="user", place="context", blocks=tuple(quoted(one) for one in context))


def instruction_block(one: Candidate, by_id: Mapping[str, Candidate]) -> Block:
    """An instruction as it stands, with the items of its slots as quoted data."""
    if one.facts.slots or one.text is not None:
        return _instruction_block(one, by_id)
    if one.facts.literal is None:
        one.facts.literal = _instruction_block(one, by_id)
    return one.facts.literal


def _instruction_block(one: Candidate, by_id: Mapping[str, Candidate]) -> Block:
    slots = tuple((part.name, quoted(by_id[part.item_id])) for part in one.item.parts if isinstance(part, Slot))
    return Block(
        item_id=one.item.id,
        form="literal",
        type=one.item.type.name,
        source=one.item.source,
        text=_text(one),
        slots=slots,
    )


def quoted(one: Candidate) -> Block:
    """An item as framed data: its type, label, source, and when it was seen."""
    facts = one.facts
    if one.state is not None or one.text is not None or one.attrs or one.label != facts.label:
        return _quoted(one)
    if facts.block is None:
        facts.block = _quoted(one)
    return facts.block


def _quoted(one: Candidate) -> Block:
    item = one.item
    attrs = [
        (name, value)
        for name in ("title", "section", "category", "origin")
        if (value := item.attr(name)) is not None and value != item.source
    ]
    if item.type.name == "memory":
        attrs = [(name, MEMORY_GROUPS.get(value, value) if name == "category" else value) for name, value in attrs]
    version = item.attr("label") or item.version
    if version is not None and not hash_like(version):
        attrs.append(("version", version))
    if item.observed_at is not None:
        attrs.append(("observed_at", item.observed_at.isoformat(timespec="seconds").replace("+00:00", "Z")))
    if one.state == "truncated":
        attrs.append(("state", "truncated"))
    attrs += one.attrs
    return Block(
        item_id=item.id,
        form="quoted",
        type=item.type.name,
        source=item.source,
        text=_text(one),
        label=one.label,
        attrs=tuple(attrs),
        mark=one.rules.mark,
    )


def spoken(one: Candidate) -> Message:
    """An item of the conversation: its role comes from its type, never from its text."""
    if one.place == "history" or one.text is not None:
        return spoken_item(one.item, "history" if one.place == "history" else "request", _text(one))
    if one.facts.spoken is None:
        one.facts.spoken = spoken_item(one.item, "request")
    return one.facts.spoken


def _text(one: Candidate) -> str:
    return body(one.item) if one.text is None else one.text
