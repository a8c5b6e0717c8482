"""From items to candidates: where each stands, whether it is required. Most are the same from turn to turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat

import msgspec

from rung.compiler.facts import facts_of
from rung.compiler.plan import Candidate, Place
from rung.errors import InputError, kind
from rung.policy.rules import PolicySet
from rung.records.item import ContextItem

_KEPT = 300_000


class CandidateCache:
    """What each item of a store was in the turn before, under the store's own policy; bounded, and safe for threads."""

    def __init__(self) -> None:
        self._known: dict[str, Candidate] = {}

    def of(
        self, items: Sequence[ContextItem[Any]], scores: Mapping[str, float], policy: PolicySet, first: int = 0
    ) -> list[Candidate]:
        """These items as candidates of the context block, numbered from `first` on."""
        known = self._known
        out: list[Candidate] = []
        for order, item in enumerate(items, first):
            item_id = item.id
            one = known.get(item_id)
            score = scores.get(item_id)
            if one is None or one.order != order or one.score != score or one.item is not item:
                one = self._made(item, order, score, one, policy)
            out.append(one)
        return out

    def _made(
        self, item: ContextItem[Any], order: int, score: float | None, held: Candidate | None, policy: PolicySet
    ) -> Candidate:
        facts = held.facts if held is not None and held.item is item else facts_of(item, policy)
        required = facts.rules.always_include
        score = None if score is None else _number(score)
        made = Candidate(
            item=item,
            place="context",
            facts=facts,
            score=score,
            required=required,
            order=order,
            rank=(-facts.rules.priority, 0.0 if score is None else -score, -facts.seen, order),
            reason="required" if required else "selected",
            label=facts.label,
        )
        # What stands elsewhere is kept once it is placed.
        return self._kept(made) if facts.place == "context" else made

    def placed(self, one: Candidate, place: Place) -> Candidate:
        """The candidate in its place outside the context block; a conversation's next turn may find it there."""
        required = one.facts.rules.always_include or place in ("instructions", "request", "after")
        return self._kept(
            msgspec.structs.replace(one, place=place, required=required, reason="required" if required else "selected")
        )

    def _kept(self, made: Candidate) -> Candidate:
        if len(self._known) >= _KEPT:
            self._known = {}
        self._known[made.item.id] = made
        return made


def _number(score: object) -> float:
    if type(score) is float and math.isfinite(score):
        return score
    if isinstance(score, bool) or not isinstance(score, SupportsFloat) or not math.isfinite(score):
        raise InputError(
            f"`scores` holds {score if isinstance(score, float) else kind(score)}, which ranks nothing "
            "(give finite numbers by item id)",
            field="scores",
        )
    return float(score)


def candidates(
    stored: Sequence[ContextItem[Any]],
    scores: Mapping[str, float],
    cache: CandidateCache,
    policy: PolicySet,
    get: Callable[[Sequence[str]], Sequence[ContextItem[Any]]],
) -> tuple[Candidate, ...]:
    """The candidates of a turn, in the order handed in; what their slots show comes after them.

    Args:
        stored: the store's own copies.
        scores: item id to score.
        cache: what they were before.
        policy: the turn's rules.
        get: the stored items of some ids.

    Raises:
        InputError: no request, or an unfilled template.
    """
    unique = list({item.id: item for item in stored}.values())
    out = cache.of(unique, scores, policy)
    special = [number for number, one in enumerate(out) if not one.facts.plain]
    for request in reversed(special):
        if out[request].facts.type == "user":
            break
    else:
        raise InputError("the turn has no request (add one: store.user(question))", field="items")
    owners: dict[str, tuple[str, ...]] = {}
    for number in special:
        one = out[number]
        facts = one.facts
        if facts.slots or facts.unfilled:
            _own(one, owners)
        if facts.place == "talk":
            place: Place = "request" if number == request else "history" if number < request else "after"
        else:
            place = facts.place
        if one.place != place:
            out[number] = cache.placed(one, place)
    if owners:
        shown = {item.id for item in unique}
        hidden = get([item_id for item_id in owners if item_id not in shown])
        out += cache.of(hidden, scores, policy, len(out))
        for number, one in enumerate(out):
            owned = owners.get(one.item.id)
            if owned:
                facts = facts_of(one.item, policy, quoted=True) if one.facts.place == "talk" else one.facts
                out[number] = msgspec.structs.replace(
                    one,
                    place="context",
                    facts=facts,
                    required=True,
                    reason="required",
                    owners=owned,
                    label=facts.label,
                )
    return tuple(out)


def _own(one: Candidate, owners: dict[str, tuple[str, ...]]) -> None:
    """Note what the slots of a template show."""
    if one.facts.unfilled:
        raise InputError(
            f"the template `{one.item.id}` has unfilled slots: {one.facts.unfilled} (fill them: template.fill(…))",
            field="items",
        )
    for slot in one.facts.slots:
        owners[slot.item_id] = (*owners.get(slot.item_id, ()), one.item.id)
