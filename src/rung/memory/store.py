"""`MemoryStore`: preferences, facts, interactions, feedback and standing requests of one person."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from rung.errors import InputError, RungError, ScopeError, TransformError, UnknownItemError, names
from rung.knowledge.values import Embed
from rung.ledger.channels import Endorsement
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach, handed_out
from rung.memory.extract import explicit
from rung.memory.keys import KEY_RULES, KeyRule, keys, written_key
from rung.memory.search import Fit, Matcher
from rung.memory.shelf import STANDING, Shelf, confidence_of, expiry_of, read_shelf, recency, record_of
from rung.memory.source import MemorySource
from rung.memory.values import (
    CATEGORIES,
    Category,
    Extract,
    Forgotten,
    MemoryHit,
    MemoryRecord,
    Proposal,
    Validate,
)
from rung.memory.writing import check, origin_of, plain_text
from rung.records.item import ContextItem, body
from rung.records.text import LabelledText
from rung.records.types import Instruction, Memory
from rung.storage.maintenance import erase
from rung.store import ContextStore, core

MOST_BYTES = 2_000
"""The longest memory, in bytes of UTF-8: what is kept is concise."""

MINIMUM = 0.3
LIMIT = 10


class MemoryStore:
    """What is kept of the person that a handle is scoped to. The memories are items of the `ContextStore` itself.

    Args:
        view: the store or a handle of it. Reading and writing need a subject, the handle's own or by `scope`.
        name: the source's name: of the memories, in policies and in intents.
        embed: texts to vectors, for search by meaning beside search by words.
        limit: the most memories of a search.
        minimum: the least score of one, 0 to 1.
        extract: what of a turn is kept by `after_turn`; None: nothing.
        validators: the application's own checks of a text that would be kept.
        most_bytes: the longest memory.
        always: categories whose memories fit every message at least with the minimum score.
        key_rules: when two texts are the same, by version of the rule; see `rung.memory.keys`.
    """

    def __init__(
        self,
        view: ContextStore,
        *,
        name: str = "memory",
        embed: Embed | None = None,
        limit: int = LIMIT,
        minimum: float = MINIMUM,
        extract: Extract | None = explicit,
        validators: Sequence[Validate] = (),
        most_bytes: int = MOST_BYTES,
        always: Iterable[str] = (),
        key_rules: Mapping[int, KeyRule] = KEY_RULES,
    ) -> None:
        if limit < 1 or not 0.0 <= minimum <= 1.0:
            raise InputError(
                f"`limit` is {limit} and `minimum` {minimum} (give at least 1, and a score from 0 to 1)", field="limit"
            )
        self._view = view
        self._name = name
        self._limit = limit
        self._minimum = minimum
        self._extract = extract
        self._validators = tuple(validators)
        self._most_bytes = most_bytes
        self._always = frozenset(_category(one) for one in always)
        self._key_rules = dict(key_rules)
        self._matcher = Matcher(embed)

    @property
    def name(self) -> str:
        """The source's name."""
        return self._name

    def scope(
        self, *, tenant: str | None = None, subject: str | None = None, session: str | None = None
    ) -> MemoryStore:
        """The same memory, narrowed to a tenant, a person and a session.

        Raises:
            ScopeError: this one belongs to another tenant, person or session already.
        """
        return self._of(self._view.scope(tenant=tenant, subject=subject, session=session))

    def _of(self, view: ContextStore) -> MemoryStore:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._view = view
        return made

    def _reach(self) -> tuple[Ledger, Reach]:
        ledger, reach = core(self._view)
        if reach.subject is None:
            raise ScopeError(
                "a memory belongs to a person and this handle has no subject (use store.scope(subject=…))",
                reason="no_subject",
            )
        return ledger, reach

    # writing

    def remember(
        self,
        items: ContextItem[Any] | Sequence[ContextItem[Any]],
        text: str | LabelledText | None = None,
        *,
        category: Category = "fact",
        key: str | None = None,
        id: str | None = None,
        supersedes: str | None = None,
        confidence: float | None = None,
        expires_at: datetime | None = None,
    ) -> ContextItem[Memory]:
        """Keep something: a MEMORY derived from USER or EVIDENCE items. What is known already is not kept twice.

        A memory of the same key is superseded by the later one, whichever comes in first; both stay in the store.

        Args:
            items: what it is derived from; its labels are theirs, and the oldest observation counts.
            text: what is kept; None: the one item's own text. Its figures, addresses and ids must occur there.
            category: `preference`, `fact`, `interaction`, `feedback` or `standing`.
            key: what it states, for example `user:name`; None: the item's own.
            id: a name for it, unique among this person's memories.
            supersedes: the id or name of the memory that it replaces; it need not be there yet.
            confidence: 0 to 1; a search weighs it.
            expires_at: from when on it may not be asserted; its freshness class (30 days) counts in any case.

        Raises:
            ContextTypeError: the items, or the text, are a tool's result or a model's reply.
            TransformError: a validator refused: too long, empty, or it states what its origin does not.
            ScopeError: the handle has no subject, or the items belong to another.
        """
        ledger, reach = self._reach()
        given = (items,) if isinstance(items, ContextItem) else tuple(items)
        if not given:
            raise InputError("a memory needs an item that it is derived from (give the USER item)", field="items")
        stored = ledger.issued(given, reach)
        wanted = plain_text(ledger, reach, text)
        _category(category)
        if confidence is not None and not 0.0 <= confidence <= 1.0:
            raise InputError(f"`confidence` is {confidence} (give 0 to 1)", field="confidence")
        shelf = read_shelf(ledger, reach)
        if id is not None and any(item.attr("id") == id for item in shelf.items.values()):
            raise InputError(f"a memory named `{id}` is there already (name it otherwise, or forget it)", field="id")
        says = wanted if wanted is not None else body(stored[0])
        fact = key if key is not None else stored[0].key
        known: tuple[ContextItem[Any], bool] | None = None
        # What the policy does not let become a memory is refused, and recorded, by the transform itself.
        if all(item.type is Memory or ledger.policy.transition(item.type.name, "memory") for item in stored):
            known = self._known(ledger, shelf, says, category, fact, confidence, stored, supersedes)
            if known is not None and known[1]:
                return cast("ContextItem[Memory]", handed_out(known[0]))
            proposal = Proposal(text=says, category=category, key=fact, items=tuple(stored))
            check(ledger, reach, proposal, self._validators, self._most_bytes, self._name)
        replaces = supersedes if supersedes is not None else (None if known is None else known[0].id)
        attrs = {"category": category, "origin": origin_of(stored)}
        attrs |= self._links(shelf, fact, replaces, stored)
        if id is not None:
            attrs["id"] = id
        if confidence is not None:
            attrs["confidence"] = f"{confidence:g}"
        same = written_key(says, self._key_rules)
        if same is not None:
            attrs["same"] = same
        ends = [one for one in (expires_at, *(item.expires_at for item in stored)) if one is not None]
        return self._view.transform(
            given, to=Memory, content=wanted, source=self._name, key=fact, attrs=attrs,
            expires_at=min(ends) if ends else None,
        )  # fmt: skip

    def _known(
        self,
        ledger: Ledger,
        shelf: Shelf,
        text: str,
        category: str,
        key: str | None,
        confidence: float | None,
        parents: Sequence[ContextItem[Any]],
        supersedes: str | None,
    ) -> tuple[ContextItem[Any], bool] | None:
        """A current memory that says the same, and whether it is enough as it stands."""
        wanted = set(keys(text, self._key_rules))
        if not wanted:
            return None
        for item in shelf.items.values():
            if item.type is not Memory or shelf.state(item.id) != "current" or item.id == supersedes:
                continue
            if (item.attr("category") == STANDING) is not (category == STANDING):
                continue
            if key is not None and item.key is not None and key != item.key:
                continue
            if wanted.isdisjoint((*keys(body(item), self._key_rules), item.attr("same") or "")):
                continue
            surer = confidence is not None and confidence > confidence_of(item)
            named = key is not None and item.key is None
            return item, not surer and not named and not self._worn(ledger, item, parents)
        return None

    def _worn(self, ledger: Ledger, item: ContextItem[Any], parents: Sequence[ContextItem[Any]]) -> bool:
        """Whether more than half of its life is over and it was observed again."""
        end = expiry_of(ledger, item)
        seen = min(parent.seen_at for parent in parents)
        return end is not None and seen > item.seen_at and ledger.now() - item.seen_at > (end - item.seen_at) / 2

    def _links(
        self, shelf: Shelf, key: str | None, supersedes: str | None, parents: Sequence[ContextItem[Any]]
    ) -> dict[str, str]:
        if supersedes is not None:
            return {"supersedes": supersedes}
        if key is None:
            return {}
        same = [
            item
            for item in shelf.items.values()
            if item.key == key and item.source == self._name and shelf.state(item.id) not in ("revoked", "superseded")
        ]
        if not same:
            return {}
        current = max(same, key=recency)
        late = min(parent.seen_at for parent in parents) < min(current.seen_at, current.created)
        return {"superseded_by" if late else "supersedes": current.id}

    def mark_standing(
        self,
        item: ContextItem[Any],
        text: str | None = None,
        *,
        endorsement: Endorsement | None = None,
    ) -> ContextItem[Any]:
        """Keep a request of the person that holds until it is forgotten; it is carried word for word in every turn.

        Without an endorsement it is a MEMORY of category `standing`: the model sees it as data, for as long as memories
        live. With one it becomes an INSTRUCTION, through the policy's approval: it steers, and has no expiry.

        Args:
            item: what the person said: a USER item.
            text: the part of it that holds, word for word; None: all of it.
            endorsement: who approves that it steers. It covers the whole text of the item.

        Raises:
            ContextTypeError, TransformError: not a USER item; or nobody approved it.
            LaunderingError: untrusted items share runs of it (name them: `Endorsement(covers=…)`).
            InputError: `text` is no part of the item.
        """
        ledger, reach = self._reach()
        if item.type.name != "user":
            raise InputError(
                f"`item` is {item.type.name}: only what a person says can stand (give the USER item)", field="item"
            )
        stored = ledger.issued([item], reach)[0]
        if text is not None and text not in body(stored):
            raise InputError("`text` is no part of the item, word for word (copy it from there)", field="text")
        if endorsement is None:
            return self.remember(item, text, category="standing")
        if text is not None and text != body(stored):
            raise InputError("an approval covers the whole item (leave `text` out)", field="text")
        # What was kept of these very words before is the person's own, and the instruction stands for it now.
        own = [
            one.id
            for one in read_shelf(ledger, reach).items.values()
            if one.type is Memory and one.attr("category") == STANDING and item.id in one.derived_from
        ]
        covering = msgspec.structs.replace(endorsement, covers=(*endorsement.covers, *own))
        attrs = {"category": STANDING, "origin": item.source}
        made = self._view.transform(item, to=Instruction, attrs=attrs, endorsement=covering)
        for one in own:
            self._view.revoke(one, reason="approved as an instruction")
        return made

    async def after_turn(self, view: ContextStore, items: Iterable[ContextItem[Any]]) -> list[ContextItem[Any]]:
        """Keep what `extract` finds in the items of a turn; what a check refuses is recorded and passed over.

        Args:
            view: the handle of the turn; without a subject nothing is kept.
            items: the turn's request, replies and results.
        """
        if self._extract is None or view.subject is None:
            return []
        found = self._extract(tuple(items))
        memory = self._of(view)
        out: list[ContextItem[Any]] = []
        for one in await found if inspect.isawaitable(found) else found:
            try:
                kept = memory.remember(
                    one.items, one.text, category=one.category, key=one.key, confidence=one.confidence
                )
            except (TransformError, TypeError) as problem:
                if not isinstance(problem, RungError):
                    raise
                continue
            out.append(kept)
        return out

    # reading

    def search(
        self, query: str, *, limit: int | None = None, minimum: float | None = None, categories: Iterable[str] = ()
    ) -> list[MemoryHit]:
        """The current memories that fit a message, best first.

        By words, the score is the root of the greater share: of the message's words that the memory holds, or of
        the memory's words that the message holds, rare words counting more. With `embed`, meaning is the cosine
        above the model's floor, and both are joined as 1 - (1 - words)(1 - meaning). The confidence multiplies it.
        So it is 0 to 1 and does not depend on the other hits. A memory that was replaced is found by its own words
        and gives the one in its place.

        Args:
            query: any text; nothing in it is syntax.
            limit: the most hits; None: the store's.
            minimum: the least score; None: the store's, 0.3.
            categories: only these; none given: all but `standing`, which every turn has anyway.
        """
        ledger, reach = self._reach()
        shelf = read_shelf(ledger, reach)
        asked = frozenset(_category(one) for one in categories)
        rankable = [
            item for item in shelf.items.values()
            if item.type is Memory and shelf.state(item.id) in ("current", "superseded")
            and shelf.state(shelf.last.get(item.id, item.id)) == "current"
        ]  # fmt: skip
        fits = self._matcher.fits(query.encode("utf-8", "replace").decode(), rankable)
        least = self._minimum if minimum is None else minimum
        best: dict[str, tuple[float, Fit]] = {}
        matched: dict[str, list[str]] = {}
        for item in rankable:
            fit = fits[item.id]
            end = shelf.items[shelf.last.get(item.id, item.id)]
            category = end.attr("category") or "fact"
            if category not in asked and (asked or category == STANDING):
                continue
            score = round(fit.score * confidence_of(end), 6)
            if category in self._always:
                score = max(score, least)
            if score < least or score <= 0:
                continue
            if end.id not in best or score > best[end.id][0]:
                best[end.id] = (score, fit)
            if end.id != item.id:
                matched.setdefault(end.id, []).append(item.id)
        order = sorted(best, key=lambda item_id: (-best[item_id][0], *_latest_first(shelf.items[item_id])))
        return [
            MemoryHit(
                item=handed_out(shelf.items[item_id]),
                score=best[item_id][0],
                lexical=best[item_id][1].lexical,
                semantic=best[item_id][1].semantic,
                replaced=_whole_paths(shelf, matched.get(item_id, ())),
            )
            for item_id in order[: self._limit if limit is None else limit]
        ]

    def standing(self) -> list[ContextItem[Any]]:
        """The requests that hold: approved ones (INSTRUCTION) first, then MEMORY, in order of writing."""
        ledger, reach = self._reach()
        shelf = read_shelf(ledger, reach)
        found = [
            item
            for item in shelf.items.values()
            if item.attr("category") == STANDING and shelf.state(item.id) == "current"
        ]
        return [handed_out(item) for item in sorted(found, key=lambda item: item.type is not Instruction)]

    def list(self, *, category: str | None = None, all: bool = False) -> list[MemoryRecord]:
        """The current memories, in order of writing; with `all` also what was replaced, is too old, or was revoked."""
        ledger, reach = self._reach()
        shelf = read_shelf(ledger, reach)
        wanted = None if category is None else _category(category)
        return [
            record_of(ledger, shelf, handed_out(item))
            for item in shelf.items.values()
            if (all or shelf.state(item.id) == "current") and wanted in (None, item.attr("category") or "fact")
        ]

    def show(self, id: str) -> MemoryRecord:
        """One memory, by its id, its name, or the beginning of its id.

        Raises:
            UnknownItemError: this person has no such memory.
        """
        ledger, reach = self._reach()
        shelf = read_shelf(ledger, reach)
        item = _found(shelf, id)
        return record_of(ledger, shelf, handed_out(ledger.get([item.id], reach)[0]))

    def forget(self, id: str, *, reason: str = "forgotten on request", keep_text: bool = False) -> Forgotten:
        """Forget a memory, what it had replaced, and what was derived from them: revoked, and their texts erased.

        What the person said in the conversation stays; see `rung.storage.maintenance.erase_subject` for all of it.

        Args:
            id: as for `show`.
            reason: why, as the log says; it must not repeat content.
            keep_text: revoke only: it enters no turn any more and stays readable for an audit.

        Raises:
            UnknownItemError: this person has no such memory.
        """
        ledger, reach = self._reach()
        shelf = read_shelf(ledger, reach)
        item = _found(shelf, id)
        ids: list[str] = []
        for one in (item.id, *_earlier(shelf, item.id)):
            ids += self._view.revoke(one, reason=reason)
        ids = [*dict.fromkeys(ids)]
        self._matcher.forget(ids)
        if keep_text:
            return Forgotten(ids=tuple(ids), erased=False)
        gone = erase(ledger.backend, item.labels.tenant, ids, at=ledger.now(), reason=reason)
        return Forgotten(ids=tuple(ids), turns=gone.turns)

    def source(self) -> MemorySource:
        """The memories as a source of a turn; each turn sees those of its own person only."""
        return MemorySource(self)


def _category(value: str) -> str:
    if value not in CATEGORIES:
        raise InputError(f"`{value}` is no category of memories (one of {names(CATEGORIES)})", field="category")
    return value


def _found(shelf: Shelf, name: str) -> ContextItem[Any]:
    item = shelf.find(name)
    if item is None:
        raise UnknownItemError(f"this person has no memory `{name}` (see `rung memory list`)", item_id=name)
    return item


def _earlier(shelf: Shelf, item_id: str) -> list[str]:
    """All that a memory replaced, directly or along a chain: forgetting it must not bring one of them back."""
    out: list[str] = []
    edge = [item_id]
    while edge:
        edge = [older for older, newer in shelf.later.items() if newer in edge and older not in (*out, item_id)]
        out += edge
    return out


def _latest_first(item: ContextItem[Any]) -> tuple[float, int, str]:
    seen = recency(item)[0]
    return (-seen.timestamp(), -item.seq, item.id)


def _whole_paths(shelf: Shelf, matched: Sequence[str]) -> tuple[ContextItem[Any], ...]:
    ids: dict[str, None] = {}
    for item_id in matched:
        path = shelf.path(item_id)
        if all(one not in shelf.aged for one in path):
            ids.update(dict.fromkeys(path))
    return tuple(handed_out(shelf.items[one]) for one in ids)
