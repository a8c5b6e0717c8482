"""`Compactor`: turns a session's older exchanges into a summary, in blocks, and only where it helps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec

from rung.assembly.messages import Block, Message
from rung.assembly.targets import target as target_of
from rung.compiler.counting import Costs, costs_for
from rung.compiler.manifest import Manifest
from rung.compiler.past import Exchange, Past
from rung.compiler.pasts import PastCache
from rung.compiler.summaries import session_summary, until
from rung.errors import ContextTypeError, InputError, TransformError
from rung.ledger.backend import Document
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach
from rung.records.item import ContextItem, body
from rung.records.labels import Sensitivity
from rung.records.types import Summary
from rung.store import ContextStore, core
from rung.summary.checks import BUILTIN_CHECKS, Check, SummaryCheck, failures_of
from rung.summary.extract import extract
from rung.summary.material import Material, boundaries, material
from rung.summary.values import Compaction, Summariser, SummaryRequest
from rung.tokens import Tokenizer, tokenizer_for
from rung.transforms.validators import Failure

HISTORY_SHARE = 0.6
"""Of a turn's budget, the most that history takes while context competes with it: as the compiler has it."""

ROUNDS = 8
MOST_TOKENS, LEAST_TOKENS = 1_000, 100


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One summary to be made.

    Attributes:
        previous: the summary so far.
        exchanges: what it newly stands for, preceded by earlier exchanges that gained an item since.
        seen: the last sequence number that the summary so far knew.
        until: the sequence number before the first exchange that stays.
        fresh: how many exchanges are new.
        tokens: what they take of a request.
        known: the sequence number of the latest item of the session.
        last: of the latest item that an attempt could have used.
    """

    previous: ContextItem[Any] | None
    exchanges: tuple[Exchange, ...]
    seen: int
    until: int
    fresh: int
    tokens: int
    known: int
    last: int


class Compactor:
    """Keeps a session's history between two marks. The originals stay in the store.

    Above `high` tokens, the oldest exchanges become a SUMMARY until at most `low` are left; a turn compiled with
    `history="session"` then shows the newest summary in their place. Up to there nothing changes, so that the
    beginning of the prompt stays for many turns.

    Args:
        summariser: makes the text, sync or async; None: the deterministic `extract`.
        high: tokens of history above which it begins; None: the policy's history tokens, at most 0.6 of the turn's.
        low: tokens of history that are left; None: half of `high`.
        recent: exchanges that stay verbatim, where they fit.
        budget: the most tokens of a summary; None: 1,000, and at most a third of the high mark.
        attempts: how often the summariser is asked before it is given up.
        fallback: use the extract where the summariser is given up.
        most: tokens of history that one summary newly stands for; more is done in several steps.
        abandon_after: exchanges after which a call without a result is not waited for any longer.
        clearance: what is more sensitive does not go into a summary.
        target, tokenizer: what tokens are counted for, as in a turn.
        checks: further checks of a summary, beside `BUILTIN_CHECKS`.
    """

    def __init__(
        self,
        summariser: Summariser | None = None,
        *,
        high: int | None = None,
        low: int | None = None,
        recent: int = 10,
        budget: int | None = None,
        attempts: int = 2,
        fallback: bool = False,
        most: int = 16_000,
        abandon_after: int = 50,
        clearance: Sensitivity = Sensitivity.RESTRICTED,
        target: str = "openai-chat",
        tokenizer: Tokenizer | str = "o200k_base",
        checks: Sequence[SummaryCheck] = (),
    ) -> None:
        for name, value in (
            ("budget", 1 if budget is None else budget),
            ("attempts", attempts),
            ("most", most),
            ("recent", recent),
        ):
            if value < 1:
                raise InputError(f"`{name}` is {value} (give at least 1)", field=name)
        if high is not None and low is not None and low >= high:
            raise InputError(f"`low` is {low}, not below `high` {high} (lower it)", field="low")
        self._summariser = summariser
        self._high = high
        self._low = low
        self._recent = recent
        self._budget = budget
        self._attempts = attempts
        self._fallback = fallback
        self._most = most
        self._abandon_after = abandon_after
        self._clearance = clearance
        self._checks = (*BUILTIN_CHECKS, *checks)
        counter = tokenizer_for(tokenizer) if isinstance(tokenizer, str) else tokenizer
        self._costs: Costs = costs_for(target_of(target), counter)
        self._pasts = PastCache()

    async def compact(
        self,
        view: ContextStore,
        *,
        available: int | None = None,
        manifest: Manifest | None = None,
        required: Iterable[ContextItem[Any]] = (),
    ) -> Compaction:
        """Compact the session of a handle where it has grown above the mark; otherwise do nothing.

        Args:
            view: a handle with a session.
            available: tokens that the session's turns may take; None: the policy's.
            manifest: of the session's latest turn; where it left exchanges out, they are summarised whatever the mark.
            required: items whose texts must go on, in the summary or beside it; a summary without one is refused.

        Raises:
            InputError: the handle has no session.
            ScopeError: it has no subject, and the session holds a person's items.
        """
        ledger, reach = core(view)
        if reach.session is None:
            raise InputError("a compaction needs a session (use store.scope(session=…))", field="session")
        must = tuple(body(item) for item in ledger.issued(required, reach))
        marks = self._marks(ledger, available)
        if manifest is not None and any(row.reason == "history_window" for row in manifest.entries):
            # What the turn had room for, the new summary included.
            room = manifest.totals.history + manifest.totals.summary
            high = max(1, min(marks[0], room - self._most_of(room)))
            marks = (high, min(marks[1], high // 2))
        done: Compaction | None = None
        for _ in range(ROUNDS):
            plan = await asyncio.to_thread(self._plan, ledger, reach, marks, done is not None)
            if isinstance(plan, Compaction):
                return done or plan
            made = await self._make(view, ledger, reach, plan, must, self._most_of(marks[0]))
            if made.status != "compacted":
                return made if done is None else done
            done = made if done is None else _joined(done, made)
        return done or Compaction(status="not_applied", reason="below_threshold")

    # what to do

    def _most_of(self, high: int) -> int:
        """The most tokens of a summary beside so much history."""
        return min(MOST_TOKENS, max(LEAST_TOKENS, high // 3)) if self._budget is None else self._budget

    def marks(self, view: ContextStore, available: int | None = None) -> tuple[int, int]:
        """The high and the low mark for a handle, in tokens."""
        return self._marks(core(view)[0], available)

    def _marks(self, ledger: Ledger, available: int | None) -> tuple[int, int]:
        rules = ledger.policy.budget
        room = rules.available() if available is None else available
        high = min(rules.history, int(room * HISTORY_SHARE)) if self._high is None else self._high
        low = high // 2 if self._low is None else min(self._low, max(0, high - 1))
        return high, low

    def _plan(self, ledger: Ledger, reach: Reach, marks: tuple[int, int], going_on: bool) -> Plan | Compaction:
        high, low = marks
        key = (id(ledger), reach.tenant, reach.subject, reach.session)
        lock, past = self._pasts.of(key, partial(Past, self._costs))
        with lock:
            past.read(ledger, reach)
            previous = session_summary(ledger, reach, past)
            reached = 0 if previous is None else until(previous)
            closed = past.closed
            start = past.covered(reached)
            sizes = [exchange.cost for exchange in closed[start:]]
            total = sum(sizes)
            if total <= (low if going_on else high):
                return Compaction(status="not_applied", reason="below_threshold", tokens_before=total)
            wanted = _cut(sizes, high, low, self._recent)
            ends = [end for end in boundaries(closed[start:], self._abandon_after) if 0 < end <= wanted]
            if not ends:
                return Compaction(
                    status="not_applied", reason="pending_call" if wanted > 0 else "recent", tokens_before=total
                )
            fitting = [end for end in ends if sum(sizes[:end]) <= self._most]
            end = fitting[-1] if fitting else ends[0]
            last = max(exchange.items[-1].seq for exchange in closed[start:])
            failed = _failed_at(ledger, reach)
            block = max(1, (high - low) // 2)
            since = sum(exchange.cost for exchange in closed if exchange.items[0].seq > failed)
            if failed > reached and since < block:
                return Compaction(status="not_applied", reason="no_new_material", tokens_before=total)
            stop = closed[start + end].items[0].seq - 1 if start + end < len(closed) else last
            seen = _number(previous, "seen")
            return Plan(
                previous=previous,
                exchanges=tuple(_late(closed[:start], seen)) + tuple(closed[start : start + end]),
                seen=seen,
                until=stop,
                fresh=end,
                tokens=sum(sizes[:end]),
                known=past.cursor,
                last=last,
            )

    # doing it

    async def _make(
        self, view: ContextStore, ledger: Ledger, reach: Reach, plan: Plan, must: tuple[str, ...], budget: int
    ) -> Compaction:
        given = await asyncio.to_thread(
            material, ledger, reach, plan.exchanges, plan.seen, plan.previous, self._costs.tokenizer, self._clearance
        )
        report = Compaction(
            status="ineffective",
            reason="too_many_attempts",
            exchanges=plan.fresh,
            withheld=given.withheld,
            carried=tuple(item.id for item in given.carried),
        )
        parents = [*([] if plan.previous is None else [plan.previous]), *given.parents]
        if not parents:
            failure = Failure(validator="material", code="nothing", detail="nothing of it may be summarised")
            await asyncio.to_thread(_note_failure, ledger, reach, plan.last)
            return msgspec.structs.replace(report, reason="nothing_to_summarise", failures=(failure,))
        makers: list[Summariser] = [extract] if self._summariser is None else [self._summariser] * self._attempts
        if self._summariser is not None and self._fallback:
            makers.append(extract)
        request = SummaryRequest(
            previous="" if plan.previous is None else body(plan.previous),
            lines=given.lines,
            budget=budget,
            count=self._costs.tokenizer.count,
        )
        failures: tuple[Failure, ...] = ()
        for number, maker in enumerate(makers, 1):
            request = msgspec.structs.replace(request, attempt=number, problems=failures)
            text, failures = await _asked(maker, request)
            if failures:
                continue
            check = self._check(text, plan, given, must, request, maker is not extract)
            failures = failures_of(check, self._checks)
            if not failures:
                try:
                    item = await asyncio.to_thread(self._write, view, text, plan, given, parents, maker)
                except TransformError as problem:
                    failures = tuple(problem.failures)
                    continue
                return msgspec.structs.replace(
                    report, status="compacted", reason="", summary=item, attempts=number,
                    tokens_before=check.before, tokens_after=check.after,
                )  # fmt: skip
        await asyncio.to_thread(_note_failure, ledger, reach, plan.last)
        return msgspec.structs.replace(report, attempts=len(makers), failures=failures, tokens_before=plan.tokens)

    def _check(
        self, text: str, plan: Plan, given: Material, must: tuple[str, ...], request: SummaryRequest, is_model: bool
    ) -> Check:
        previous = request.previous
        marked = tuple(body(item) for item in given.carried)
        return Check(
            text=text,
            tokens=self._costs.tokenizer.count(text),
            budget=request.budget,
            previous=previous,
            is_model=is_model,
            before=plan.tokens + (self._shown(previous) if previous else 0),
            after=self._shown(text),
            required=(*must, *marked),
            carried=marked,
        )

    def _shown(self, text: str) -> int:
        """What a summary takes of a request."""
        block = Block(item_id="s", form="quoted", type="summary", source="summary", label="0" * 8, text=text)
        return self._costs.messages([Message(role="user", place="summary", blocks=(block,))])

    def _write(
        self,
        view: ContextStore,
        text: str,
        plan: Plan,
        given: Material,
        parents: Sequence[ContextItem[Any]],
        maker: Summariser,
    ) -> ContextItem[Summary]:
        attrs = {
            "until": str(plan.until),
            "seen": str(plan.known),
            "exchanges": str(plan.fresh + _number(plan.previous, "exchanges")),
            "made_by": "extract" if maker is extract else "summariser",
        }
        if given.carried:
            attrs["carries"] = " ".join(item.id for item in given.carried)
        if plan.previous is not None:
            attrs["supersedes"] = plan.previous.id
        return view.transform(
            parents, to=Summary, content=text, source="summary", key=f"summary:{_mark_id(core(view)[1])}",
            attrs=attrs, session=view.session,
            observed_at=max(item.seen_at for item in parents),
        )  # fmt: skip


def _cut(sizes: Sequence[int], high: int, low: int, recent: int) -> int:
    """How many of the oldest exchanges go: until `low` is left; the recent ones stay while `high` holds them."""
    left, number = sum(sizes), 0
    while number < len(sizes) and left > low and len(sizes) - number > recent:
        left -= sizes[number]
        number += 1
    while number < len(sizes) - 1 and left > high:
        left -= sizes[number]
        number += 1
    return number


def _late(covered: Sequence[Exchange], seen: int) -> Iterable[Exchange]:
    """Exchanges that a summary stands for already and that gained an item since."""
    return (exchange for exchange in covered if exchange.items[-1].seq > seen)


def _number(previous: ContextItem[Any] | None, name: str) -> int:
    said = None if previous is None else previous.attr(name)
    return int(said) if said is not None and said.isdigit() else 0


async def _asked(maker: Summariser, request: SummaryRequest) -> tuple[str, tuple[Failure, ...]]:
    try:
        made = maker(request)
        text = await made if inspect.isawaitable(made) else made
    except ContextTypeError:
        raise
    except Exception as problem:
        detail = f"it raised {type(problem).__name__}"
        return "", (Failure(validator="summariser", code="summariser_failed", detail=detail),)
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        detail = f"it returned {type(text).__name__}, not text"
        return "", (Failure(validator="summariser", code="no_text", detail=detail),)
    return text.strip(), ()


def _joined(first: Compaction, second: Compaction) -> Compaction:
    return msgspec.structs.replace(
        second,
        exchanges=first.exchanges + second.exchanges,
        tokens_before=first.tokens_before + second.tokens_before - first.tokens_after,
        attempts=first.attempts + second.attempts,
        withheld=(*first.withheld, *second.withheld),
    )


def _mark_id(reach: Reach) -> str:
    return blake2b(msgspec.msgpack.encode((reach.subject, reach.session)), digest_size=16).hexdigest()


def _failed_at(ledger: Ledger, reach: Reach) -> int:
    """How far the session went when its last compaction was given up; 0 where none was."""
    kept = ledger.backend.document("compaction", _mark_id(reach), (reach.tenant,))
    return 0 if kept is None else int(msgspec.json.decode(kept.body)["last"])


def _note_failure(ledger: Ledger, reach: Reach, last: int) -> None:
    """Remember it in the store, so that no other process begins again before there is something new."""
    document = Document(
        kind="compaction",
        id=_mark_id(reach),
        tenant=reach.tenant,
        session=reach.session,
        body=msgspec.json.encode({"last": last}).decode(),
    )
    with ledger.backend.write(reach.tenant) as tx:
        tx.put(document)
