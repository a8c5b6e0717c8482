"""The past of a session, read once: exchanges with their costs and their place on the wire.

A turn reads what is new, finds the cut by bisection, and takes the kept exchanges as they were rendered. So its
cost depends on what is new and on what is sent, never on the length of the conversation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from rung.assembly.messages import Message, Prompt
from rung.assembly.repair import Repair
from rung.compiler.counting import Costs, Weighed
from rung.compiler.facts import is_talk
from rung.compiler.keep import Kept, Shape, keep
from rung.compiler.manifest import Entry
from rung.compiler.spoken import spoken_item
from rung.errors import VerificationError
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach
from rung.records.item import ContextItem, ToolCall
from rung.records.labels import Labels


class Exchange:
    """One request and all that answered it."""

    __slots__ = (
        "_referring",
        "_sent",
        "constants",
        "items",
        "labels",
        "notes",
        "results",
        "tokens",
        "turn",
    )

    def __init__(self, turn: str | None) -> None:
        self.turn = turn
        self.items: list[ContextItem[Any]] = []
        self.labels: frozenset[Labels] = frozenset()
        self.tokens = self.constants = 0
        self.notes: tuple[Repair, ...] = ()
        """What the target's rules made necessary to change."""
        self.results: Mapping[str, str] = {}
        """Its longer results as they are sent, by their text, with their call."""
        self._sent: Rendered | None = None
        self._referring: tuple[Mapping[str, str], Rendered] | None = None

    @property
    def cost(self) -> int:
        """Tokens of the whole exchange, its constants included."""
        return self.tokens + self.constants

    def take(self, item: ContextItem[Any]) -> None:
        """One more item of this exchange."""
        self.items.append(item)
        if item.labels not in self.labels:
            self.labels |= {item.labels}
        self.forget_rendered()

    def _messages(self) -> Prompt:
        return Prompt(messages=tuple([spoken_item(item, "history") for item in self.items]))

    def weigh(self, costs: Costs) -> None:
        """Count it, once."""
        found = costs.weigh(self._messages())
        self._sent, self.notes, self.results = _rendered(found, 0), found.repairs, found.results
        self.tokens = sum(found.items.values())
        self.constants = found.constants - costs.framing.per_request

    def rendered(self, costs: Costs, before: Mapping[str, str]) -> Rendered:
        """How it is sent after others; a result that repeats one of those `before` it only refers to its call."""
        repeated: dict[str, str] = {}
        if before and self.results:
            repeated = {text: call for text in self.results if (call := before.get(text)) is not None}
        if not repeated:
            if self._sent is None:
                self._sent = _rendered(costs.weigh(self._messages()), 0)
            return self._sent
        if self._referring is None or self._referring[0] != repeated:
            found = costs.weigh(self._messages(), repeated)
            self._referring = (repeated, _rendered(found, self.tokens - sum(found.items.values())))
        return self._referring[1]

    def forget_rendered(self) -> None:
        """Drop what was rendered: the exchange is no longer sent."""
        self._sent = self._referring = None


class Rendered(NamedTuple):
    """An exchange as it is sent: its messages, these as the provider takes them, the tokens that references save."""

    messages: tuple[Message, ...]
    wire: tuple[Any, ...]
    saved: int


def _rendered(found: Weighed, saved: int) -> Rendered:
    messages = found.prompt.messages
    for message in messages:
        if message.role == "system":
            raise VerificationError("what was said stands among the instructions (report this)", rule="channel")
    return Rendered(messages, tuple(chain.from_iterable(found.wire)), saved)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the past that a turn sends. It holds while its past is in use.

    Attributes:
        wire: its messages as the provider takes them.
        messages: its neutral messages.
        tokens, constants: what they add.
        items: its items, for when they must be rendered anew.
        ids: theirs.
        labels: the distinct labels of its items.
        results: its longer results by their text, with the call that gave each first.
        notes: what the target's rules made necessary to change.
        rows: manifest rows: one for what is left out, one for what is in.
        left_out: the rows of what is not sent, alone.
        start, summary: how many exchanges a summary stands for, and its id.
    """

    wire: Sequence[Any] = ()
    messages: Sequence[Message] = ()
    tokens: int = 0
    constants: int = 0
    items: Sequence[ContextItem[Any]] = ()
    ids: Sequence[str] = ()
    labels: frozenset[Labels] = frozenset()
    results: Mapping[str, str] = {}
    notes: Sequence[Repair] = ()
    rows: tuple[Entry, ...] = ()
    left_out: tuple[Entry, ...] = ()
    start: int = 0
    summary: str | None = None

    @property
    def cost(self) -> int:
        return self.tokens + self.constants


def _none_revoked(_: Sequence[str]) -> Mapping[str, str]:
    return {}


class Past:
    """The closed exchanges of one session under one target and tokenizer. Used by one thread at a time."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._erasures: tuple[int, ...] = ()
        self.revoked: Callable[[Sequence[str]], Mapping[str, str]] = _none_revoked
        self._begin()

    def _begin(self) -> None:
        self._closed: list[Exchange] = []
        self._before: list[int] = [0]
        """`_before[i]`: the tokens of all exchanges before number i."""
        self._tokens: list[int] = [0]
        """The same without what the framing adds to them."""
        self._items: list[int] = [0]
        self._by_turn: dict[str, int] = {}
        self._open: Exchange | None = None
        self.calls: set[str] = set()
        self._rendered: set[int] = set()
        """The closed exchanges that hold what they are rendered as."""
        self._last: _Sent | None = None
        """What the last window sent."""
        self.clean = True
        """Whether each exchange may be rendered by itself: no call id is used twice."""
        self.cursor = 0
        self.summaries: list[ContextItem[Any]] = []
        """The session's own summaries, in order of writing."""

    @property
    def total(self) -> int:
        """Tokens of all closed exchanges."""
        return self._before[-1]

    @property
    def current(self) -> Exchange | None:
        """The exchange in progress: the request, and what has answered it so far."""
        return self._open

    @property
    def closed(self) -> Sequence[Exchange]:
        """The exchanges before the current one, in order."""
        return self._closed

    def covered(self, until: int) -> int:
        """How many closed exchanges began at a sequence number or before."""
        return bisect_right(self._closed, until, key=lambda exchange: exchange.items[0].seq)

    def read(self, ledger: Ledger, reach: Reach) -> None:
        """Take in what the session has gained; all of it anew where something of it was erased."""
        erased = ledger.erased(reach)
        counts = tuple(map(len, erased))
        if counts != self._erasures:
            before = self._erasures or (0,) * len(counts)
            gone = {item_id for ids, start in zip(erased, before, strict=True) for item_id in ids[start:]}
            self._erasures = counts
            current = () if self._open is None else self._open.items
            held = chain(current, self.summaries, *(exchange.items for exchange in self._closed))
            if any(item.id in gone for item in held):
                self._begin()
        self.revoked = partial(ledger.revoked, reach=reach)
        try:
            self.catch_up(ledger.session_after(reach, self.cursor))
        except BaseException:
            # Nothing half read is kept: the next turn begins anew.
            self._begin()
            raise

    def catch_up(self, items: Iterable[ContextItem[Any]]) -> None:
        """Take in what the session has gained; items in order of their sequence."""
        late: int | None = None
        for item in items:
            self.cursor = item.seq
            if item.type.name == "summary" and item.attr("until") is not None:
                self.summaries.append(item)
            if not is_talk(item):
                continue
            for part in item.parts:
                if isinstance(part, ToolCall):
                    self.clean = self.clean and part.id not in self.calls
                    self.calls.add(part.id)
            late = self._place(item, late)
        if late is not None:
            self._recount(late)

    def _place(self, item: ContextItem[Any], late: int | None) -> int | None:
        current = self._open
        if item.turn is not None:
            if current is not None and current.turn == item.turn:
                current.take(item)
                return late
            closed = self._by_turn.get(item.turn)
            if closed is not None:
                # Two turns were written at once: an item joins its own turn, wherever that stands.
                self._closed[closed].take(item)
                return closed if late is None else min(late, closed)
        begins = item.type.name == "user" if item.turn is None else True
        if current is None or begins:
            self._close()
            self._open = Exchange(item.turn)
        assert self._open is not None
        self._open.take(item)
        return late

    def _close(self) -> None:
        exchange = self._open
        if exchange is None:
            return
        exchange.weigh(self._costs)
        self._rendered.add(len(self._closed))
        if exchange.turn is not None:
            self._by_turn[exchange.turn] = len(self._closed)
        self._closed.append(exchange)
        self._before.append(self._before[-1] + exchange.cost)
        self._tokens.append(self._tokens[-1] + exchange.tokens)
        self._items.append(self._items[-1] + len(exchange.items))
        self._open = None

    def _recount(self, start: int) -> None:
        self._last = None
        for number in range(start, len(self._closed)):
            exchange = self._closed[number]
            exchange.weigh(self._costs)
            self._rendered.add(number)
            self._before[number + 1] = self._before[number] + exchange.cost
            self._tokens[number + 1] = self._tokens[number] + exchange.tokens
            self._items[number + 1] = self._items[number] + len(exchange.items)

    def at(self, turn: str | None) -> tuple[Exchange | None, Earlier]:
        """The exchange of the turn in progress, and the past before it.

        Another turn of the session may have begun meanwhile; what came after stays out of this one.
        """
        number = None if turn is None or (self._open and self._open.turn == turn) else self._by_turn.get(turn)
        if number is None:
            return self._open, Earlier(past=self)
        return self._closed[number], Earlier(past=self, until=number)

    def window(self, shape: Shape, until: int | None = None, start: int = 0, summary: str | None = None) -> Window:
        """The exchanges that are sent within the limits, of all or of the first `until`.

        A summary stands for those before number `start`.
        """
        last = len(self._closed) if until is None else until
        start = min(start, last)
        if until is None and not start:
            kept = keep(self._before, shape)
        else:
            sums = self._before[start : last + 1]
            kept = keep([each - sums[0] for each in sums], shape)
            kept = Kept(head=start + kept.head, gap=start + kept.gap, tail=start + kept.tail)
        sent = self._sent(kept, last, start, summary)
        if sent.window is not None:
            return sent.window
        tail = self._row(kept.tail, last, "included", sent.saved - sent.saved_in_head)
        sent.window = Window(
            wire=sent.wire,
            messages=sent.messages,
            tokens=sent.cost - sent.constants - sent.saved,
            constants=sent.constants,
            items=sent.items,
            ids=sent.ids,
            labels=sent.labels,
            results=sent.results,
            notes=sent.notes,
            rows=(*sent.rows, *tail),
            left_out=sent.left_out,
            start=start,
            summary=summary,
        )
        return sent.window

    def _sent(self, kept: Kept, last: int, start: int, summary: str | None) -> _Sent:
        """The exchanges that are kept, of the first `last`; mostly those of the turn before and what is new."""
        # Where a rendering fails, nothing half done is kept.
        sent, self._last = self._last, None
        about = (kept, start, summary)
        if sent is None or sent.about != about or sent.until > last:
            numbers = {*range(kept.head, kept.gap), *range(kept.tail, last)}
            for number in self._rendered - numbers:
                self._closed[number].forget_rendered()
            self._rendered = numbers
            sent = _Sent(about, kept.tail)
            for number in range(kept.head, kept.gap):
                sent.add(self._closed[number], self._costs)
            sent.saved_in_head = sent.saved
            before = (*self._row(0, start, "excluded", 0, summary), *self._row(start, kept.head, "excluded", 0))
            head = self._row(kept.head, kept.gap, "included", sent.saved)
            between = self._row(kept.gap, kept.tail, "excluded", 0)
            sent.rows, sent.left_out = (*before, *head, *between), (*before, *between)
        if sent.until < last:
            sent.window = None
            for number in range(sent.until, last):
                sent.add(self._closed[number], self._costs)
            sent.until = last
        self._last = sent
        return sent

    def _row(
        self, start: int, end: int, state: Literal["included", "excluded"], saved: int, summary: str | None = None
    ) -> tuple[Entry, ...]:
        if start >= end:
            return ()
        row = Entry(
            source="history",
            item=self._closed[start].items[0].id,
            last=self._closed[end - 1].items[-1].id,
            count=self._items[end] - self._items[start],
            tokens=self._tokens[end] - self._tokens[start] - saved if state == "included" else 0,
            state=state,
            reason="history" if state == "included" else "history_window" if summary is None else "summarised",
            params={} if summary is None else {"item": summary},
            place="history",
        )
        return (row,)


_id_of = attrgetter("id")


class _Sent:
    """The exchanges of a window as they are rendered one after the other."""

    def __init__(self, about: tuple[Kept, int, str | None], until: int) -> None:
        self.about = about
        """What is kept, and what a summary stands for."""
        self.until = until
        """The number of the exchange after the last."""
        self.rows: tuple[Entry, ...] = ()
        """The manifest's rows up to the tail."""
        self.left_out: tuple[Entry, ...] = ()
        self.window: Window | None = None
        """All of it, until there is more."""
        self.wire: list[Any] = []
        self.messages: list[Message] = []
        self.items: list[ContextItem[Any]] = []
        self.ids: list[str] = []
        self.notes: list[Repair] = []
        self.labels: frozenset[Labels] = frozenset()
        self.saved = self.saved_in_head = self.constants = self.cost = 0
        self.results: dict[str, str] = {}

    def add(self, exchange: Exchange, costs: Costs) -> None:
        """One more exchange, after the others."""
        sent = exchange.rendered(costs, self.results)
        for text, call in exchange.results.items():
            self.results.setdefault(text, call)
        self.wire += sent.wire
        self.messages += sent.messages
        self.items += exchange.items
        self.ids += map(_id_of, exchange.items)
        self.notes += exchange.notes
        if not exchange.labels <= self.labels:
            self.labels |= exchange.labels
        self.saved += sent.saved
        self.constants += exchange.constants
        self.cost += exchange.cost


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """The past before the turn in progress.

    Attributes:
        past: the session's.
        until: how many of its closed exchanges came before; None: all.
        alone: whether its call ids are used by nothing else in the turn.
    """

    past: Past
    until: int | None = None
    alone: bool = True

    @property
    def clean(self) -> bool:
        return self.alone and self.past.clean

    def revoked(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Which of these items are revoked."""
        return self.past.revoked(ids)

    def window(self, shape: Shape, start: int = 0, summary: str | None = None) -> Window:
        """The exchanges that are sent within the limits; a summary stands for those before number `start`."""
        return self.past.window(shape, self.until, start, summary)
