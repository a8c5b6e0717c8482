"""From a fitted plan to the request and its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from rung.assembly.messages import Message, Prompt
from rung.compiler.counting import Costs, Weighed
from rung.compiler.fit import Fitted
from rung.compiler.manifest import Entry, Manifest, Totals
from rung.compiler.past import Window
from rung.compiler.plan import Plan
from rung.records.canonical import canonical_json

_BEFORE_HISTORY = ("instructions", "summary")
_LABELLED = ("context", "summary")
_PLACES: tuple[str, ...] = ("instructions", "summary", "history", "context", "request")


def report(fitted: Fitted, costs: Costs) -> tuple[Prompt, dict[str, Any], Manifest]:
    """The neutral prompt, the request, and the manifest of a fitted plan."""
    plan, found = fitted.plan, fitted.weighed
    notes, constants, rows, total = found.repairs, found.constants, plan.rows, found.total
    by_place = dict.fromkeys(_PLACES, 0)
    window = plan.window
    own_rows = _entries(plan, found)
    for entry in (*rows, *own_rows):
        tokens = entry.tokens
        if tokens and entry.place is not None:
            by_place[entry.place] += tokens
    if window is not None:
        notes = (*window.notes, *notes)
        rows = (*[row.own() for row in window.rows], *rows)
        constants += window.constants
        total += window.cost
        by_place["history"] += window.tokens
    entries = (*rows, *own_rows)
    prompt, request = _joined(found, window, costs)
    shown: set[str] = set()
    exchange: str | None = None
    for one in fitted.alive:
        shown.add(one.item.id)
        if one.place == "request":
            exchange = one.item.turn
    own = 0
    for item, tokens in found.items.items():
        if item not in shown:
            own += tokens
    manifest = Manifest(
        turn=_turn_id(plan, entries, total),
        at=plan.now.isoformat(),
        target=plan.target,
        intent=None if plan.intent is None else plan.intent.name,
        tenant=plan.tenant,
        session=plan.session,
        exchange=exchange,
        entries=entries,
        totals=Totals(
            **by_place,
            tools=found.tools,
            response_schema=found.response_schema,
            framing=constants + own,
            total=total,
            budget=plan.budget,
            available=plan.available,
            reserve_output=plan.reserve_output,
        ),
        counter=msgspec.structs.replace(costs.counter),
        conflicts=plan.conflicts,
        notes=(*plan.notes, *map(_note, notes)) if notes else plan.notes,
    )
    return prompt, request, manifest


def _joined(found: Weighed, window: Window | None, costs: Costs) -> tuple[Prompt, dict[str, Any]]:
    """The whole prompt and its request; the messages of the window, rendered before, are taken as they are."""
    prompt, wire, listed = found.prompt, found.wire, costs.target.listed
    if listed is None:
        return prompt, costs.target.request(prompt, healed=True)
    if window is None:
        sent = [*chain.from_iterable(wire)]
    else:
        messages = prompt.messages
        cut = _stable(messages)
        prompt = msgspec.structs.replace(prompt, messages=(*messages[:cut], *window.messages, *messages[cut:]))
        sent = [*chain.from_iterable(wire[:cut]), *window.wire, *chain.from_iterable(wire[cut:])]
    # What is kept between turns is copied: a caller may change a request.
    return prompt, msgspec.to_builtins({**found.beside, listed: sent})


def _stable(messages: Sequence[Message]) -> int:
    """How many messages stand before the history."""
    for number, message in enumerate(messages):
        if message.place not in _BEFORE_HISTORY:
            return number
    return len(messages)


def _note(repair: Any) -> str:
    return canonical_json(msgspec.to_builtins(repair))


_item_of, _last_of = attrgetter("item"), attrgetter("last")
_state_of, _tokens_of = attrgetter("state"), attrgetter("tokens")


def _turn_id(plan: Plan, entries: Sequence[Entry], total: int) -> str:
    """The same inputs at the same moment give the same id."""
    seen = (
        [*map(_item_of, entries)],
        [*filter(None, map(_last_of, entries))],
        [*map(_state_of, entries)],
        [*map(_tokens_of, entries)],
    )
    about = plan.now, plan.target, plan.tenant, plan.subject, plan.session, plan.budget, total
    return blake2b(msgspec.msgpack.encode((seen, about)), digest_size=8, person=b"rung turn v2").hexdigest()


def _entries(plan: Plan, found: Weighed) -> list[Entry]:
    # An item that stands in two places has its tokens in its first row.
    items, repeats = dict(found.items), found.repeats
    looked: Mapping[int, tuple[str, dict[str, Any]]] = {}
    rest: Mapping[int, int] = {}
    room = 0
    if plan.left is not None:
        looked, rest, room = plan.left.looked, plan.left.rest, plan.left.room
    rows: list[Entry] = []
    for one in plan.candidates:
        item, facts, place, state, score = one.item, one.facts, one.place, one.state, one.score
        item_id = item.id
        tokens = size = 0
        params: dict[str, Any]
        unlooked = rest.get(one.order)
        if unlooked is not None:
            size = unlooked
            state, reason, params = "excluded", "over_budget", {"size": size, "left": room}
        elif one.order in looked:
            state, (reason, params) = "excluded", looked[one.order]
            size = params.get("size", 0)
        elif state is None or state == "truncated":
            tokens = items.pop(item_id, 0)
            params = {**one.params}
            reason = state or ("required" if one.required else one.reason)
            state = state or "included"
            if repeats and item_id in repeats:
                params["same_as"] = repeats[item_id]
        else:
            reason, params = one.reason, {**one.params}
            size = params.get("size", 0)
        if score is not None:
            params["score"] = score
        if facts.slots:
            params["slots"] = " ".join(slot.name for slot in facts.slots)
        rows.append(
            Entry(
                source=item.source,
                item=item_id,
                type=facts.type,
                version=item.version,
                key=item.key,
                observed_at=facts.observed,
                tokens=tokens,
                size=size,
                state=state,
                reason=reason,
                params=params,
                place="request" if place == "after" else place,
                label=one.label if place in _LABELLED else None,
            )
        )
    return _ranges(rows)


def _ranges(rows: Sequence[Entry]) -> list[Entry]:
    """One row for each stretch of history in one state; `count` and `last` say how far it reaches."""
    if "history" not in {row.place for row in rows}:
        return list(rows)
    out: list[Entry] = []
    for row in rows:
        last = out[-1] if out else None
        if (
            last is not None
            and row.place == last.place == "history"
            and (row.state, row.reason) == (last.state, last.reason)
            and row.state != "truncated"
            and not row.params
            and not last.params
        ):
            out[-1] = msgspec.structs.replace(
                last,
                source="history",
                type=last.type if last.type == row.type else None,
                key=None,
                version=None,
                observed_at=None,
                tokens=last.tokens + row.tokens,
                count=last.count + 1,
                last=row.item,
            )
        else:
            out.append(row)
    return out
