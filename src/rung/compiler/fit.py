"""fit: required first, then by priority and score, exactly within the turn's tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from rung.compiler.admit import admit
from rung.compiler.counting import Costs, Weighed
from rung.compiler.facts import facts_of
from rung.compiler.history import chosen, exchanges
from rung.compiler.keep import Shape
from rung.compiler.layout import context_message, prompt_of, quoted
from rung.compiler.past import Earlier, Window
from rung.compiler.plan import Candidate, Left, Plan
from rung.compiler.results import is_result, shorten
from rung.compiler.summaries import is_of_session, until
from rung.compiler.truncate import truncate
from rung.compiler.value import most_valuable
from rung.errors import BudgetError, names
from rung.policy.rules import SourcePolicy
from rung.records.item import body

HISTORY_SHARE = 0.6
"""Of what is left beside the required parts, the most that history takes while context competes with it."""


COMPONENTS = ("system", "knowledge", "memory")
"""What can have a cap of its own in a turn, beside the history and the tools."""

_OF_TYPE = {"evidence": "knowledge", "memory": "memory"}

_FEW = 512
"""Fewer candidates than this are sorted, although not all of them may be looked at."""


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of which every candidate is decided, those that are in, and the prompt of these with its tokens."""

    plan: Plan
    alive: Sequence[Candidate]
    weighed: Weighed


def fit(plan: Plan, costs: Costs) -> Fitted:
    """Choose what comes in.

    Raises:
        BudgetError: what is required does not fit; it names each required item with its tokens.
    """
    state: dict[str, Candidate] = {}
    # Nearly all candidates are passages that may come in; what is said of the others is asked of these few.
    few = [one for one in plan.candidates if one.required or one.place != "context"]
    required = _required(plan, few, costs, state)
    _require_system(plan, required)
    room = plan.available - _fit_summaries(plan, few, costs, state, required.weighed.total)
    optional = [one for one in plan.candidates if one.state is None and one.place == "context" and not one.required]
    mark = costs.mark
    sizes = [
        sized[1]
        if (sized := (facts := one.facts).sized)[0] is mark and one.label is facts.label and not one.attrs
        else _size(one, costs)
        for one in optional
    ]
    overhead = 0 if not optional or _has_required_context(few) else _context_overhead(costs, optional)
    wanted = sum(sizes) + overhead
    for_history = _history_shape(plan, few, costs, room, wanted)
    if plan.past is not None:
        plan = _fit_past(plan, plan.past, for_history, _session_summary(plan, few, state), costs)
    # What was said may stand in a template's slot too, and is decided apart there.
    said: dict[str, Candidate] = {}
    if plan.window is not None:
        room -= plan.window.cost
    else:
        past = [one for one in plan.candidates if one.place == "history" and one.state is None]
        room -= _fit_history(past, costs, said, for_history)
    if optional:
        room -= overhead
        first = most_valuable(optional, sizes, room) if plan.select == "value" else frozenset[int]()
        used = _used([state.get(one.item.id, one) for one in few], costs)
        caps = {name: cap - used.by_component.get(name, 0) for name, cap in plan.caps.items()}
        left = _fit_context(state, optional, sizes, room, costs, used.by_source, caps, first)
        plan = plan.with_(plan.candidates, left=left)
    if state or said:
        plan = plan.with_(
            tuple([(said if one.place == "history" else state).get(one.item.id, one) for one in plan.candidates])
        )
    return _settle_total(plan, costs, required)


def _fit_summaries(plan: Plan, few: Sequence[Candidate], costs: Costs, state: dict[str, Candidate], base: int) -> int:
    """Take in the summaries that fit beside what is required; what all of it costs."""
    summaries = [one for one in few if one.place == "summary" and not one.required and one.state is None]
    if not summaries:
        return base
    chosen = [state.get(one.item.id, one) for one in few if one.required and one.state is None]
    for one in summaries:
        total = costs.prompt(prompt_of(plan, [*chosen, one]))
        if total <= plan.available:
            chosen.append(one)
            base = total
        else:
            state[one.item.id] = one.out("excluded", "over_budget", size=total - base, left=plan.available - base)
    return base


def _size(one: Candidate, costs: Costs) -> int:
    """What a candidate's block adds; remembered with its facts where it is shown as in every turn."""
    facts = one.facts
    if one.attrs or one.text is not None or one.label != facts.label:
        return costs.block(quoted(one))
    sized = facts.sized
    if sized[0] is not costs.mark:
        sized = facts.sized = (costs.mark, costs.block(quoted(one)))
    return sized[1]


def _has_required_context(few: Sequence[Candidate]) -> bool:
    return any(one.alive and one.required and one.place == "context" and not one.owners for one in few)


def _context_overhead(costs: Costs, optional: Sequence[Candidate]) -> int:
    first = optional[0]
    block = quoted(first)
    return costs.once("context", block, lambda: costs.messages((context_message([first]),)) - costs.block(block))


class _Used(NamedTuple):
    """The tokens that required items of the context block take."""

    by_source: dict[str, int]
    by_component: dict[str, int]


def _used(few: Sequence[Candidate], costs: Costs) -> _Used:
    used = _Used({}, {})
    for one in few:
        if one.required and one.alive and one.place == "context" and not one.owners:
            size, source, component = costs.block(quoted(one)), one.item.source, _OF_TYPE.get(one.facts.type, "")
            used.by_source[source] = used.by_source.get(source, 0) + size
            used.by_component[component] = used.by_component.get(component, 0) + size
    return used


class _Required(NamedTuple):
    """What must be in, and the prompt of it with its tokens."""

    shown: Sequence[Candidate]
    weighed: Weighed


def _required(plan: Plan, few: Sequence[Candidate], costs: Costs, state: dict[str, Candidate]) -> _Required:
    required = [one for one in few if one.required and one.state is None]
    for one in required:
        if one.place in ("context", "after") and one.rules.max_tokens is not None:
            now = state.get(one.item.id, one)
            state[one.item.id] = _cut(now, one.rules.max_tokens, costs)
    shown = [state.get(one.item.id, one) for one in required] if state else required
    weighed = costs.weigh(prompt_of(plan, shown))
    if weighed.total > plan.available:
        results = [
            one for one in shown if one.place == "after" and is_result(one) and one.item.id not in weighed.repeats
        ]
        state.update(shorten(results, weighed.total - plan.available, costs))
        shown = [state.get(one.item.id, one) for one in required]
        weighed = costs.weigh(prompt_of(plan, shown))
    total = weighed.total
    if total <= plan.available:
        return _Required(shown, weighed)
    sizes = _sizes(plan, shown, costs)
    raise BudgetError(
        f"required items need {total} tokens, the turn has {plan.available}: "
        f"{names(f'{name} {size}' for name, size in sizes)} (raise the budget or lower their max_tokens)",
        required=tuple(sizes),
        budget=plan.available,
        shortfall=total - plan.available,
    )


def _require_system(plan: Plan, required: _Required) -> None:
    """BudgetError where the instructions and policies take more than their cap."""
    cap = plan.caps.get("system")
    if cap is None:
        return
    items = required.weighed.items
    sizes = [(one.item, items.get(one.item.id, 0)) for one in required.shown if one.place == "instructions"]
    total = sum([size for _, size in sizes])
    if total > cap:
        told = names(f"{item.source}/{item.id} {size}" for item, size in sizes)
        raise BudgetError(
            f"the instructions need {total} tokens, their cap is {cap}: {told} (shorten them, or raise budget.system)",
            required=tuple((item.id, size) for item, size in sizes),
            budget=cap,
            shortfall=total - cap,
        )


def _sizes(plan: Plan, shown: Sequence[Candidate], costs: Costs) -> list[tuple[str, int]]:
    found = costs.weigh(prompt_of(plan, shown))
    items = found.items
    by_id = {one.item.id: one.item for one in shown}
    sizes = [
        (f"{by_id[item].source} {by_id[item].type.name} {item}", tokens)
        for item, tokens in items.items()
        if item is not None and item in by_id
    ]
    sizes += [(name, size) for name in ("tools", "response_schema") if (size := getattr(found, name))]
    sizes.append(("framing", found.constants + items.get(None, 0)))
    return sorted(sizes, key=lambda pair: -pair[1])


def _cut(one: Candidate, limit: int, costs: Costs) -> Candidate:
    """The candidate shortened by its source's rule to at most `limit` tokens, or as it is where it fits."""
    block = quoted(one) if one.place == "context" else None
    whole = costs.block(block) if block is not None else costs.tokenizer.count(_body(one))
    if whole <= limit or one.rules.truncation == "none":
        return one
    frame = 0
    if block is not None:
        shorter = msgspec.structs.replace(one, state="truncated", text="")
        frame = costs.block(quoted(shorter))
    room = limit - frame
    for _ in range(8):
        if room <= 0:
            return one
        made = truncate(_body(one), one.rules.truncation, room, costs.tokenizer, media_type=one.item.media_type)
        if not made.fits:
            return one
        cut = msgspec.structs.replace(
            one,
            state="truncated",
            text=made.text,
            params={
                **one.params,
                "left_out": f"{made.left_out[0]} {made.left_out[1]}" if made.left_out else "",
            },
        )
        size = costs.block(quoted(cut)) if block is not None else made.tokens
        if size <= limit:
            return cut
        # Escaping made it longer than its plain text; give that back and cut again.
        room -= max(1, size - limit)
    return one


def _body(one: Candidate) -> str:
    return body(one.item) if one.text is None else one.text


def _history_shape(plan: Plan, few: Sequence[Candidate], costs: Costs, room: int, wanted: int) -> Shape:
    """How much history may take, and how it is cut.

    Block and head depend on the stable part of the prompt only, and what other candidates want counts in steps of
    an eighth of it, so that a longer question or another passage does not move the cut.
    """
    fixed = tuple([one for one in few if one.state is None and (one.place == "instructions" or one.owners)])
    about = (fixed, plan.tools, plan.response_schema, plan.cache)
    stable = max(1, plan.available - costs.once("stable", about, lambda: costs.prompt(prompt_of(plan, fixed))))
    if plan.history_tokens is not None:
        stable = max(1, min(stable, plan.history_tokens))
    step = max(1, stable // 8)
    wanted = -(-wanted // step) * step
    limit = max(room - wanted, int(room * HISTORY_SHARE)) if wanted else room
    if plan.history_tokens is not None:
        limit = min(limit, plan.history_tokens)
    rule = plan.history_rule
    return Shape(
        limit=max(0, min(limit, room)),
        block=max(1, int(stable * rule.block)),
        head=int(stable * rule.head),
        epoch=rule.epoch,
    )


def _session_summary(plan: Plan, few: Sequence[Candidate], state: Mapping[str, Candidate]) -> Candidate | None:
    """The summary that stands for the session's older exchanges, where it is in."""
    for one in few:
        if one.place == "summary" and is_of_session(one.item, plan.session):
            found = state.get(one.item.id, one)
            if found.alive:
                return found
    return None


def _fit_past(plan: Plan, past: Earlier, shape: Shape, summary: Candidate | None, costs: Costs) -> Plan:
    """The plan with the window of its session's past, or with the window's items as candidates of their own
    where they cannot be taken as they were rendered."""
    if summary is None:
        window = past.window(shape)
    else:
        window = past.window(shape, past.past.covered(until(summary.item)), summary.item.id)
    return _with_window(plan, past, window, costs)


def _with_window(plan: Plan, past: Earlier, window: Window, costs: Costs) -> Plan:
    revoked = past.revoked(window.ids)
    if costs.target.listed is not None and past.clean and not revoked and _readable(plan, window):
        return msgspec.structs.replace(plan, window=window)
    members = tuple(
        Candidate(item=item, place="history", facts=facts_of(item, plan.policy), label="", order=-1, reason="history")
        for item in window.items
    )
    admitted = admit(plan.with_(members, revoked={**plan.revoked, **revoked})).candidates
    return plan.with_(
        (*admitted, *plan.candidates), window=None, rows=(*[row.own() for row in window.left_out], *plan.rows)
    )


def _readable(plan: Plan, window: Window) -> bool:
    for labels in window.labels:
        scopes = labels.scopes if plan.scopes is None else plan.scopes
        subject = plan.subject or labels.subject
        if labels.readable_by(clearance=plan.clearance, scopes=scopes, tenant=plan.tenant, subject=subject):
            return False
    return True


def _fit_history(history: Sequence[Candidate], costs: Costs, state: dict[str, Candidate], shape: Shape) -> int:
    past = exchanges(history, costs)
    kept = chosen(past, shape)
    for number, exchange in enumerate(past):
        for one in exchange.members:
            state[one.item.id] = (
                msgspec.structs.replace(one, reason="history")
                if number in kept
                else one.out("excluded", "history_window")
            )
    return sum(exchange.tokens for number, exchange in enumerate(past) if number in kept)


def _fit_context(
    state: dict[str, Candidate],
    optional: Sequence[Candidate],
    sizes: Sequence[int],
    room: int,
    costs: Costs,
    used: dict[str, int],
    caps: dict[str, int],
    first: Set[int],
) -> Left:
    """Fill the room by rank, those numbered in `first` before others of their priority.

    `used` is what required items of each source take already, `caps` what is left of each component's cap.
    """
    sources = {one.item.source: one.facts.rules for one in optional}
    pledged = _pledged(sources, used)
    if not (pledged or caps or any(map(_has_limits, sources.values()))):
        return _fill(optional, sizes, room, first)
    out: dict[int, tuple[str, dict[str, Any]]] = {}
    taken: dict[str, int] = {}
    for place in _by_rank(optional, first, whole=True):
        one, size = optional[place], sizes[place]
        source, rules = one.item.source, one.facts.rules
        limit, cap = rules.limit, rules.max_tokens
        if limit is not None and taken.get(source, 0) >= limit:
            out[one.order] = "over_limit", {"limit": limit}
            continue
        left = room if cap is None else min(room, cap - used.get(source, 0))
        component = _OF_TYPE.get(one.facts.type, "")
        share = caps.get(component, room)
        left = min(left, share)
        if pledged:
            left = min(left, room - sum([pledge for name, pledge in pledged.items() if name != source]))
        if size > left and rules.truncation != "none":
            shorter = _cut(one, left, costs)
            if shorter is not one:
                state[one.item.id] = shorter
                size = costs.block(quoted(shorter))
        if size > left:
            params: dict[str, Any] = {"size": size, "left": left if left > 0 else 0}
            if cap is not None and size > cap - used.get(source, 0):
                reason = "source_cap"
            elif size > share and share < room:
                reason, params["component"] = "component_cap", component
            else:
                reason = "over_budget"
            out[one.order] = reason, params
            continue
        room -= size
        used[source] = used.get(source, 0) + size
        if component in caps:
            caps[component] -= size
        taken[source] = taken.get(source, 0) + 1
        if source in pledged:
            pledged[source] = max(0, pledged[source] - size)
    return Left(looked=out, rest={}, room=max(room, 0))


def _fill(optional: Sequence[Candidate], sizes: Sequence[int], room: int, first: Set[int]) -> Left:
    """Fill the room by rank where nothing has a rule of its own: once the smallest does not fit, nothing does."""
    out: dict[int, tuple[str, dict[str, Any]]] = {}
    rest = dict(zip(map(_order, optional), sizes, strict=True))
    smallest = min(sizes)
    for place in _by_rank(optional, first, whole=len(optional) < _FEW):
        if room < smallest:
            break
        order, size = optional[place].order, sizes[place]
        del rest[order]
        if size > room:
            out[order] = "over_budget", {"size": size, "left": room}
        else:
            room -= size
    return Left(looked=out, rest=rest, room=max(room, 0))


def _by_rank(optional: Sequence[Candidate], first: Set[int], *, whole: bool) -> Iterator[int]:
    """The numbers of the candidates by rank; a heap gives the first of many, a sort all of them, the faster."""
    ranks = [one.rank for one in optional]
    if first:
        ranks = [(rank[0], number not in first, *rank[1:]) for number, rank in enumerate(ranks)]
    if whole:
        yield from sorted(range(len(optional)), key=ranks.__getitem__)
        return
    heapify(ranks)
    while ranks:
        yield bisect_left(optional, heappop(ranks)[-1], key=_order)


_order = attrgetter("order")


def _has_limits(rules: SourcePolicy) -> bool:
    return rules.limit is not None or rules.max_tokens is not None or rules.truncation != "none"


def _pledged(sources: Mapping[str, SourcePolicy], used: Mapping[str, int]) -> dict[str, int]:
    """Tokens kept for sources with a minimum share, until they have had it or run out of candidates."""
    least = {source: rules.min_tokens for source, rules in sources.items()}
    return {source: max(0, tokens - used.get(source, 0)) for source, tokens in least.items() if tokens}


def _settle_total(plan: Plan, costs: Costs, required: _Required) -> Fitted:
    """Make sure of the whole: where parts do not add up (another tokenizer, merged messages), recount and give way."""
    while True:
        alive = plan.alive()
        sent = 0 if plan.window is None else plan.window.cost
        before: Mapping[str, str] = {} if plan.window is None else plan.window.results
        weighed = required.weighed
        if alive != required.shown or not before.keys().isdisjoint(weighed.results):
            weighed = costs.weigh(prompt_of(plan, alive), before)
        over = weighed.total + sent - plan.available
        if over <= 0:
            return Fitted(plan=plan, alive=alive, weighed=weighed)
        loose = [one for one in alive if one.place in ("context", "summary") and not one.required]
        if loose:
            # A summary stands for much: it gives way last.
            last = max(loose, key=lambda one: (one.place != "summary", *one.rank))
            plan = _without(plan, [last], "over_budget", over)
            continue
        if plan.window is not None and plan.past is not None and plan.window.cost > 0:
            shape = Shape(limit=max(0, plan.window.cost - over), block=1)
            window = plan.past.window(shape, plan.window.start, plan.window.summary)
            plan = _with_window(plan, plan.past, window, costs)
            continue
        past = exchanges([one for one in alive if one.place == "history"], costs)
        if not past:
            raise BudgetError(
                f"required items need {plan.available + over} tokens, the turn has {plan.available} "
                "(raise the budget or lower their max_tokens)",
                required=tuple(_sizes(plan, alive, costs)),
                budget=plan.available,
                shortfall=over,
            )
        plan = _without(plan, past[0].members, "history_window", over)


def _without(plan: Plan, gone: Sequence[Candidate], reason: str, over: int) -> Plan:
    known = set(map(id, gone))
    return plan.with_(
        tuple(
            one.out("excluded", reason, **({"size": over} if reason == "over_budget" else {}))
            if id(one) in known
            else one
            for one in plan.candidates
        )
    )
