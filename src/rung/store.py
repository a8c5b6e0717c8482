"""`ContextStore`: the handle through which an application adds, promotes, asks and compiles."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, LiteralString, TypeVar, Unpack, overload

import msgspec

from rung.compiler.candidates import CandidateCache
from rung.compiler.pasts import PastCache
from rung.errors import ConfigError, ContextTypeError, InputError, ScopeError, names
from rung.ledger import lineage
from rung.ledger.backend import Backend, Document, Event
from rung.ledger.channels import Endorsement, InstructionSource, file_source
from rung.ledger.detection import Detector, detect
from rung.ledger.known import known_types
from rung.ledger.ledger import Ledger
from rung.ledger.reach import DIRECT, Provenance, Reach, handed_out, name, within
from rung.policy.decision import Refusal
from rung.policy.load import default_policy, validated
from rung.policy.rules import PolicySet
from rung.records.clock import Clock, IdFactory, deterministic_ids, random_ids, system_clock
from rung.records.draft import Draft, ItemFields
from rung.records.item import ContextItem, Slot, body
from rung.records.labels import Sensitivity, combine
from rung.records.template import FilledTemplate, Template, TString, born, is_tstring
from rung.records.types import Assistant, ContextType, Instruction, Policy, User
from rung.transforms.transform import Derivation, transform
from rung.transforms.validators import BUILTIN, Validator, require_known

if TYPE_CHECKING:
    from rung.compiler.manifest import Manifest
    from rung.compiler.turn import Turn
    from rung.ledger.audit import EndorsementRecord
    from rung.transforms.replay import Replay

T = TypeVar("T", bound=ContextType)
P = TypeVar("P", Instruction, Policy)

_FIELDS = ItemFields.__annotations__.keys()


class _Core(msgspec.Struct, frozen=True, kw_only=True):
    """What all handles of one store share."""

    ledger: Ledger
    validators: Mapping[str, Validator]
    types: Mapping[str, type[ContextType]]
    channels: dict[str, InstructionSource]
    pasts: PastCache
    candidates: CandidateCache


class ContextStore:
    """The only door through which items enter, and what a turn is compiled from.

    Args:
        policy: the rules; `None` for the defaults (`rung.default_policy()`).
        backend: where items are kept; `None` keeps them in this process's memory. See `ContextStore.open`.
        types: the application's own context types.
        clock: gives the present moment as an aware UTC datetime.
        ids: `unique` (random), `deterministic` (same inputs, same ids), or a function of `IdParts`.
        validators: the application's own, by the names that its policy uses.
        instruction_sources: declared channels, usable by `load_instruction` before and after the seal.
        detector: finds secrets and personal data where a source's policy asks for it (`detect`).

    Raises:
        PolicyError: the policy contradicts itself, leaves an unguarded path, or names an unknown validator.
    """

    def __init__(
        self,
        policy: PolicySet | None = None,
        *,
        backend: Backend | None = None,
        types: Iterable[type[ContextType]] = (),
        clock: Clock = system_clock,
        ids: Literal["unique", "deterministic"] | IdFactory = "unique",
        validators: Mapping[str, Validator] | None = None,
        instruction_sources: Iterable[InstructionSource] = (),
        detector: Detector = detect,
    ) -> None:
        rules = default_policy() if policy is None else validated(policy)
        known = known_types(types, rules)
        checks = {**BUILTIN, **(validators or {})}
        require_known(rules, checks)
        if backend is None:
            from rung.storage.memory import MemoryBackend

            backend = MemoryBackend(known)
        factory = {"unique": random_ids, "deterministic": deterministic_ids}.get(ids) if isinstance(ids, str) else ids
        if factory is None:
            raise InputError(f"`ids` is `{ids}` (one of `unique`, `deterministic`, or a function)", field="ids")
        channels: dict[str, InstructionSource] = {}
        for source in instruction_sources:
            if source.name in channels:
                raise ConfigError(f"two instruction sources are named `{source.name}` (rename one)", path=source.name)
            channels[source.name] = source
        self._core = _Core(
            # A copy of its own: what is done to the caller's policy, or to the defaults, does not reach it.
            ledger=Ledger(backend, _own(rules), known, clock, factory, detector),
            validators=checks,
            types=known,
            channels=channels,
            pasts=PastCache(),
            candidates=CandidateCache(),
        )
        self._reach = Reach()
        self._sealed_at: int | None = None

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        policy: PolicySet | None = None,
        types: Iterable[type[ContextType]] = (),
        clock: Clock = system_clock,
        ids: Literal["unique", "deterministic"] | IdFactory = "unique",
        validators: Mapping[str, Validator] | None = None,
        instruction_sources: Iterable[InstructionSource] = (),
        detector: Detector = detect,
    ) -> ContextStore:
        """A store on a SQLite file (`agent.db`), on PostgreSQL (`postgresql://…`), or in memory (`:memory:`).

        Raises:
            SchemaVersionError: the file was written by a newer rung.
            MissingExtraError: the driver is not installed.
        """
        from rung.storage import open_backend

        rules = default_policy() if policy is None else validated(policy)
        types = tuple(types)
        backend = open_backend(where, known_types(types, rules))
        try:
            return cls(
                rules,
                backend=backend,
                types=types,
                clock=clock,
                ids=ids,
                validators=validators,
                instruction_sources=instruction_sources,
                detector=detector,
            )
        except BaseException:
            backend.close()
            raise

    # handles

    def scope(
        self, *, tenant: str | None = None, subject: str | None = None, session: str | None = None
    ) -> ContextStore:
        """A handle that reads and writes this tenant, subject and session only. It narrows, never widens.

        Names are compared exactly, code point by code point.

        Raises:
            ScopeError: this handle belongs to another tenant, subject or session already.
        """
        given = {"tenant": tenant, "subject": subject, "session": session}
        merged: dict[str, str | None] = {}
        for field, value in given.items():
            mine: str | None = getattr(self._reach, field)
            if value is not None:
                value = name(value, field)
                if mine is not None and value != mine:
                    raise ScopeError(
                        f"this handle has a {field} of its own, which a scope may narrow and not change "
                        "(take the scope from the store itself)",
                        reason=f"other_{field}",
                    )
            merged[field] = value if value is not None else mine
        view = object.__new__(type(self))
        view._core, view._reach, view._sealed_at = self._core, Reach(**merged), self._sealed_at
        return view

    def seal(self) -> None:
        """From now on only declared channels, registered items and templates built before bring in instructions.

        The seal belongs to this handle and to handles taken from it afterwards; it is not stored.
        """
        if self._sealed_at is None:
            self._sealed_at = time.monotonic_ns()

    @property
    def sealed(self) -> bool:
        return self._sealed_at is not None

    @property
    def policy(self) -> PolicySet:
        """A copy of the rules: altering it alters nothing."""
        rules: PolicySet = _own(self._core.ledger.policy)
        return rules

    @property
    def tenant(self) -> str | None:
        return self._reach.tenant

    @property
    def subject(self) -> str | None:
        return self._reach.subject

    @property
    def session(self) -> str | None:
        return self._reach.session

    def now(self) -> datetime:
        """The store's clock: aware UTC."""
        return self._core.ledger.now()

    def type_named(self, type_name: str) -> type[ContextType]:
        """The class of a type that the policy names.

        Raises:
            InputError: no such type.
        """
        found = self._core.types.get(type_name)
        if found is None:
            raise InputError(
                f"the type `{type_name}` is unknown (one of {names(sorted(self._core.types), 20)})",
                field="type",
            )
        return found

    # adding

    @overload
    def add(
        self,
        type: type[P],
        content: LiteralString | Template,
        *,
        source: str,
        endorsement: Endorsement | None = ...,
        **fields: Unpack[ItemFields],
    ) -> ContextItem[P]: ...

    @overload
    def add(
        self,
        type: type[T],
        content: Any,
        *,
        source: str,
        endorsement: Endorsement | None = ...,
        **fields: Unpack[ItemFields],
    ) -> ContextItem[T]: ...

    def add(
        self,
        type: type[Any],
        content: Any,
        *,
        source: str,
        endorsement: Endorsement | None = None,
        **fields: Unpack[ItemFields],
    ) -> ContextItem[Any]:
        """Take in one item of a declared type.

        Args:
            type: a context type, for example `ToolOutput`.
            content: text, a JSON value, or (for an instruction) a `Template`.
            source: who brings it, for example `tool:order_lookup`.
            endorsement: who answers for a protected text that untrusted items share runs of.
            fields: what else is known of it, see `ItemFields`: key, version, labels, times, parts, attributes.

        Raises:
            ContextTypeError: a type rule refuses it; nothing was stored.
            LaunderingError: a protected text shares a run with untrusted items (`hits`).
            InputError: a value is wrong; the message names it.
            ScopeError: a label would widen what this handle may reach.
        """
        if not fields.keys() <= _FIELDS:
            unknown = [name for name in fields if name not in _FIELDS]
            raise InputError(f"an item has no field {names(unknown)} (one of {names(_FIELDS, 24)})", field=unknown[0])
        before_seal = False
        if not isinstance(content, str):
            if isinstance(content, FilledTemplate) or is_tstring(content):
                return self._bound(type, content, source)
            if isinstance(content, Template):
                before_seal = self._sealed_at is not None and born(content) < self._sealed_at
                if content.slots:
                    fields["attrs"] = {**(fields.get("attrs") or {}), "slots": " ".join(content.slots)}
                content = content.text
        if "parts" in fields:
            fields["parts"] = tuple(fields["parts"])
        draft = Draft(type=type, content=content, source=source, **fields)
        provenance = DIRECT
        if endorsement is not None or before_seal:
            provenance = Provenance(endorsement=_bind(endorsement, content), before_seal=before_seal)
        return self._write([(draft, provenance)])[0]

    def add_many(self, drafts: Iterable[Draft], *, expected: int | None = None) -> list[ContextItem[Any]]:
        """Take in drafts in one atomic write, all or none: the cheap way for many.

        Args:
            drafts: what is offered.
            expected: the sequence number of the session's last item as the caller knows it (`store.last_seq()`);
                where another turn came first, nothing is written.

        Raises:
            ConflictError: the session has moved on (`expected`, `actual`).
        """
        offered = [(draft, DIRECT) for draft in drafts]
        return self._core.ledger.write(offered, self._reach, is_sealed=self.sealed, expected=expected)

    def last_seq(self) -> int:
        """The sequence number of the last item of this handle's session; 0 where there is none."""
        with self._core.ledger.backend.write(self._reach.tenant) as tx:
            return tx.next_seq(self._reach.session, 0) - 1

    def instruct(
        self,
        content: LiteralString | Template | FilledTemplate | TString,
        *,
        source: str = "system",
        endorsement: Endorsement | None = None,
        key: str | None = None,
    ) -> ContextItem[Instruction]:
        """Register an instruction: a literal, a `Template`, a filled one, or a t-string.

        Registering the same again gives the first item.

        Raises:
            ContextTypeError, LaunderingError: the text came from, or shares a run with, untrusted items.
        """
        return self.add(Instruction, content, source=source, endorsement=endorsement, key=key)

    def load_instruction(
        self, where: str | Path, *, type: type[Instruction] | type[Policy] = Instruction, key: str | None = None
    ) -> ContextItem[Any]:
        """The instruction of a declared channel: the name of an `InstructionSource`, or a file's path.

        A channel is authoritative: shared runs are recorded and not refused. After the seal a path must have
        been loaded before it.

        Raises:
            ConfigError: the file cannot be read, or the channel gave no valid text.
            ContextTypeError: the store is sealed and the path was not declared before.
        """
        channels = self._core.channels
        channel = channels.get(str(where))
        declared = channel is not None
        if channel is None:
            channel = file_source(where)
        text = channel.load(self._reach.tenant)
        draft = Draft(type=type, content=text, source=channel.name, key=key)
        provenance = Provenance(channel=channel.name) if declared or not self.sealed else DIRECT
        item = self._write([(draft, provenance)])[0]
        if not declared and not self.sealed:
            channels[str(where)] = channel
        return item

    def declare(self, source: InstructionSource) -> None:
        """Declare an instruction channel; possible until the seal.

        Raises:
            ConfigError: the store is sealed, or the name is taken.
        """
        if self.sealed:
            raise ConfigError(
                f"the store is sealed and `{source.name}` cannot be declared any more (declare it before)",
                path=source.name,
            )
        if source.name in self._core.channels:
            raise ConfigError(f"two instruction sources are named `{source.name}` (rename one)", path=source.name)
        self._core.channels[source.name] = source

    def user(self, content: Any, *, source: str = "user", **more: Any) -> ContextItem[User]:
        """The request of the person being served. It may quote anything; it steers no more than USER may."""
        return self.add(User, content, source=source, **more)

    def assistant(self, content: Any, *, source: str = "model", **more: Any) -> ContextItem[Assistant]:
        """An earlier reply of the model; `parts` holds its tool calls."""
        return self.add(Assistant, content, source=source, **more)

    def _write(self, drafts: Sequence[tuple[Draft, Provenance]]) -> list[ContextItem[Any]]:
        return self._core.ledger.write(drafts, self._reach, is_sealed=self.sealed)

    def _bound(self, type: type[Any], content: FilledTemplate | TString, source: str) -> ContextItem[Any]:
        filled = content if isinstance(content, FilledTemplate) else Template.from_tstring(content)
        items = self._core.ledger.issued([item for _, item in filled.bindings], self._reach)
        template = self.add(type, filled.template, source=source)
        parents = (template.id, *(item.id for item in items))
        revoked = self._core.ledger.revoked(parents, self._reach)
        for parent in parents:
            if parent in revoked:
                raise ContextTypeError(
                    f"item `{parent}` is revoked and fills no template ({revoked[parent]})", item_id=parent
                )
        labels = combine([template.labels, *(item.labels for item in items)])
        # The text that was judged is the one that is taken, whatever the template says when it is read again.
        draft = Draft(type=type, content=body(template), source=source, parts=_slots(template, filled, items))
        provenance = Provenance(parents=parents, via="fill:", labels=labels)
        return self._write([(draft, provenance)])[0]

    # changing type

    def promote(self, item: ContextItem[Any], to: type[T], *, endorsement: Endorsement | None = None) -> ContextItem[T]:
        """A new item of type `to` with the same content, after the policy's validators; `item` stays.

        Raises:
            ContextTypeError: the policy lists no such transition.
            TransformError: a validator refused.
        """
        return self.transform(item, to=to, endorsement=endorsement)

    def transform(
        self,
        items: ContextItem[Any] | Sequence[ContextItem[Any]],
        *,
        to: type[T],
        content: Any = None,
        source: str | None = None,
        key: str | None = None,
        version: str | None = None,
        attrs: Mapping[str, str] | None = None,
        observed_at: datetime | None = None,
        expires_at: datetime | None = None,
        session: str | None = None,
        subject: str | None = None,
        endorsement: Endorsement | None = None,
    ) -> ContextItem[T]:
        """A new item derived from one or more; the general form of `promote`.

        Strictest sensitivity, union of scopes and lowest integrity carry over.

        Raises:
            ContextTypeError, TransformError: see `promote`.
            ScopeError: the items belong to two tenants or two subjects.
        """
        given = [items] if isinstance(items, ContextItem) else list(items)
        return transform(
            self._core.ledger,
            given,
            to,
            self._reach,
            self._core.validators,
            derivation=Derivation(
                content=content,
                source=source,
                key=key,
                version=version,
                attrs=attrs,
                observed_at=observed_at,
                expires_at=expires_at,
                session=session,
                subject=subject,
            ),
            endorsement=endorsement,
            is_sealed=self.sealed,
        )

    # asking

    def get(self, item_id: str) -> ContextItem[Any]:
        """One item.

        Raises:
            UnknownItemError: it does not exist in this scope.
        """
        return handed_out(self._core.ledger.get([item_id], self._reach)[0])

    def items(
        self,
        type: type[ContextType] | None = None,
        *,
        source: str | None = None,
        key: str | None = None,
        session: str | None = None,
    ) -> Iterator[ContextItem[Any]]:
        """Items that this handle may read, in order of writing (in a session: of their sequence)."""
        reach, ledger = self._reach, self._core.ledger
        wanted = session if session is not None else reach.session
        if wanted is not None:
            found: Iterable[ContextItem[Any]] = ledger.backend.session_items(wanted, reach.tenants)
        else:
            found = ledger.backend.items(
                reach.tenants, types=None if type is None else frozenset({type.name}), source=source, key=key
            )
        for item in found:
            if (
                within(item, reach)
                and (type is None or item.type is type)
                and (source is None or item.source == source)
                and (key is None or item.key == key)
            ):
                yield handed_out(item)

    def ancestors(self, item: ContextItem[Any] | str) -> list[ContextItem[Any]]:
        """All that an item was derived from, nearest first; items erased since are left out."""
        ledger, reach = self._core.ledger, self._reach
        start = ledger.get([_id(item)], reach)[0]
        return [handed_out(one) for one in lineage.ancestors(ledger, start, reach)]

    def descendants(self, item: ContextItem[Any] | str) -> list[ContextItem[Any]]:
        """All that was derived from an item, nearest first."""
        ledger, reach = self._core.ledger, self._reach
        start = ledger.get([_id(item)], reach)[0]
        return [handed_out(one) for one in lineage.descendants(ledger, [start.id], reach)]

    def shown_in(self, item: ContextItem[Any] | str) -> list[str]:
        """The recorded turns that name an item."""
        start = self._core.ledger.get([_id(item)], self._reach)[0]
        return lineage.turns_shown(self._core.ledger.backend, self._reach.tenants, [start.id])

    def revoke(self, item: ContextItem[Any] | str, *, reason: str, through_turns: bool = False) -> list[str]:
        """Revoke an item and all that was derived from it: they stay readable and enter no turn. Their ids.

        Args:
            item: what to revoke.
            reason: why.
            through_turns: also the replies of turns that were shown any of it, and what was derived from them.
                Without it those turns are only named in the log.
        """
        ledger, reach = self._core.ledger, self._reach
        if not reason.strip():
            raise InputError("`reason` is empty (say why it is revoked)", field="reason")
        start = ledger.get([_id(item)], reach)[0]
        ids, turns = lineage.revocation(ledger, start.id, reach, through_turns=through_turns)
        ledger.revoke(ids, reach, reason, turns=turns)
        return ids

    def is_revoked(self, item: ContextItem[Any] | str) -> bool:
        """Whether an item was revoked."""
        return bool(self._core.ledger.revoked([_id(item)], self._reach))

    def invalidate(
        self,
        *,
        source: str | None = None,
        key: str | None = None,
        version: str | None = None,
        item: ContextItem[Any] | str | None = None,
        reason: str = "invalidated",
    ) -> int:
        """Say that what is known of a source, key, version or item no longer holds; its number.

        Items seen before this moment that match every given field are stale from now on, in every process.

        Raises:
            InputError: nothing is given.
        """
        if source is None and key is None and version is None and item is None:
            raise InputError("nothing to invalidate (give source, key, version or item)", field="source")
        ledger, reach = self._core.ledger, self._reach
        event = Event(
            tenant=reach.tenant,
            at=ledger.now(),
            source=source,
            key=key,
            version=version,
            item_id=None if item is None else _id(item),
            reason=reason,
        )
        with ledger.backend.write(reach.tenant) as tx:
            return tx.emit(event)

    def refusals(self) -> list[Refusal]:
        """What was refused in this tenant, or would have been (modes `warn` and `observe`), oldest first."""
        return self._core.ledger.refusals(self._reach)

    # the decision log

    def endorsements(self) -> list[EndorsementRecord]:
        """Every endorsement and declassification of this tenant and the deployment, oldest first."""
        from rung.ledger.audit import endorsements

        return endorsements(self._core.ledger, self._reach)

    def revoke_endorsement(self, number: int, *, by: str, reason: str) -> list[str]:
        """Take an endorsement back: what it let in is revoked, with all derived from it. Their ids."""
        from rung.ledger.audit import revoke_endorsement

        def derived(item_id: str) -> list[str]:
            return [one.id for one in lineage.descendants(self._core.ledger, [item_id], self._reach)]

        return revoke_endorsement(self._core.ledger, self._reach, number, by=by, reason=reason, descendants=derived)

    def declassify(
        self,
        item: ContextItem[T],
        *,
        sensitivity: Sensitivity | None = None,
        scopes: Iterable[str] | None = None,
        by: str,
        reason: str,
        digest: str = "",
    ) -> ContextItem[T]:
        """A new item with the same content for a wider audience; `item` stays. It is logged with who and why.

        Args:
            item: what is shown more widely.
            sensitivity, scopes: what the new item carries; None: as before.
            by, reason: who says so, and why.
            digest: SHA-256 of the text that was meant, in hexadecimal; empty: this text.

        Raises:
            InputError: nothing would be wider, something would be narrower, or `digest` is another text's.
        """
        from rung.ledger.audit import declassify

        wanted = None if scopes is None else frozenset(scopes)
        return declassify(
            self._core.ledger,
            item,
            self._reach,
            sensitivity=sensitivity,
            scopes=wanted,
            by=by,
            reason=reason,
            digest=digest,
        )

    def replay(self, policy: PolicySet, *, validators: Mapping[str, Validator] | None = None) -> Replay:
        """What another policy would have decided about everything in this tenant's log; nothing is written."""
        from rung.storage.memory import MemoryBackend
        from rung.transforms.replay import replay

        rules = validated(policy)
        types = known_types([kind for kind in self._core.types.values() if kind.name in rules.types], rules)
        types = {**self._core.types, **types}
        checks = {**self._core.validators, **(validators or {})}
        require_known(rules, checks)
        scratch = MemoryBackend(types)
        return replay(self._core.ledger, self._reach, rules, types=types, validators=checks, scratch=scratch)

    # compiling

    def compile(
        self,
        items: Iterable[ContextItem[Any] | FilledTemplate],
        *,
        budget: int | None = None,
        target: str = "openai-chat",
        **options: Any,
    ) -> Turn:
        """The turn of these items: chosen, ordered and fitted exactly within `budget` tokens.

        Instructions, policies and the last request are required. See `rung.compiler.compile_items`.

        Raises:
            BudgetError: what is required does not fit; it is named with its sizes.
            ForeignItemError: an item that this store did not issue, or that was altered.
        """
        from rung.compiler.entry import Options, compile_items

        given = [item if isinstance(item, ContextItem) else self.instruct(item) for item in items]
        try:
            made = Options(budget=budget, target=target, **options)
        except TypeError:
            raise InputError(
                f"no such option of compile: {names(sorted(set(options) - set(Options.__struct_fields__)))} "
                f"(one of {names(Options.__struct_fields__, 24)})",
                field="options",
            ) from None
        return compile_items(self._core.ledger, self._reach, given, made, self._core.pasts, self._core.candidates)

    def record(self, turn: Turn) -> None:
        """Keep a turn's manifest, so that it can be asked about later."""
        manifest = turn.manifest
        with self._core.ledger.backend.write(self._reach.tenant) as tx:
            # Numbered in the order of writing, whatever their clock said; the line feed is in no session's name.
            number = tx.next_seq(f"turns\n{self._reach.session or ''}", 1)
            tx.put(
                Document(
                    kind="turn",
                    id=f"{self._reach.session or ''}/{number:08d}/{manifest.turn}",
                    tenant=self._reach.tenant,
                    session=self._reach.session,
                    body=manifest.json(),
                )
            )

    def turns(self, session: str | None = None) -> Iterator[Manifest]:
        """The manifests of recorded turns, oldest first."""
        from rung.compiler.manifest import Manifest

        reach = self._reach
        wanted = session if session is not None else reach.session
        kept = self._core.ledger.backend.documents("turn", reach.tenants, session=wanted)
        for document in sorted(kept, key=lambda document: document.id):
            yield Manifest.from_json(document.body)

    # end

    def close(self) -> None:
        """Release the storage. Handles taken from this store end with it."""
        self._core.ledger.backend.close()

    def __enter__(self) -> ContextStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        reach = self._reach
        where = ", ".join(
            f"{field}={value!r}" for field in ("tenant", "subject", "session") if (value := getattr(reach, field))
        )
        return f"<ContextStore {self._core.ledger.backend.name}{' ' + where if where else ''}>"


def core(store: ContextStore) -> tuple[Ledger, Reach]:
    """The ledger and the reach of a handle, for the library's own compiler and tools."""
    return store._core.ledger, store._reach  # pyright: ignore[reportPrivateUsage]


def _slots(template: ContextItem[Any], filled: FilledTemplate, items: Sequence[ContextItem[Any]]) -> tuple[Slot, ...]:
    known = frozenset((template.attr("slots") or "").split())
    names_of = [slot for slot, _ in filled.bindings]
    if not known.issuperset(names_of):
        raise InputError("a slot is filled that the template has not (build it again)", field="content")
    return tuple(Slot(name=slot, item_id=item.id) for slot, item in zip(names_of, items, strict=True))


def _id(item: ContextItem[Any] | str) -> str:
    return item if isinstance(item, str) else item.id


def _bind(endorsement: Endorsement | None, content: object) -> Endorsement | None:
    if endorsement is None:
        return None
    from rung.ledger.content import text_digest

    if not isinstance(content, str):
        raise InputError("an endorsement binds to text (give the text itself)", field="endorsement")
    digest = text_digest(content)
    if endorsement.digest and endorsement.digest != digest:
        raise InputError("the endorsement is bound to another text (endorse this one)", field="endorsement")
    return msgspec.structs.replace(endorsement, digest=digest)


def _own(value: Any) -> Any:
    """A copy that shares nothing that could be altered, however it is done."""
    if isinstance(value, msgspec.Struct):
        return type(value)(**{field: _own(getattr(value, field)) for field in value.__struct_fields__})
    if isinstance(value, Mapping):
        copied: dict[Any, Any] = {key: _own(value[key]) for key in value}  # pyright: ignore
        return MappingProxyType(copied) if isinstance(value, MappingProxyType) else copied
    if isinstance(value, list | tuple):
        return type(value)([_own(held) for held in value])  # pyright: ignore
    return value
