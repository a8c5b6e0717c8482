"""`Backend`: what the ledger needs of a storage. Small and synchronous; async callers go through a thread.

Every read and write names the tenants it may touch; a backend applies them as an exact match inside the
query. `None` stands for the deployment's own scope, which is visible to every tenant and written only by
handles that have no tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import msgspec

from rung.records.item import ContextItem

Tenants = tuple[str | None, ...]
"""The tenants whose rows a query may see: exact match, never a pattern."""


class NewRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item about to be written, with the keys it is found by.

    Attributes:
        item: complete, with id, seq and digest.
        content_key: 16 bytes of hash over the normalised text; empty for an item without text.
        identity: unique in the tenant where given. A second row with the same identity is not written, and
            the first one's id is returned in its stead.
    """

    item: ContextItem[Any]
    content_key: bytes = b""
    identity: bytes | None = None


class OriginRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One registration of some content. `ordinal` is the backend's order of writing: lower came first."""

    ordinal: int
    item_id: str
    type: str
    source: str
    tenant: str | None


class TextRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The text of an item, as the fingerprint index reads it. `beside`: see `rung.ledger.content.beside`."""

    ordinal: int
    item_id: str
    type: str
    source: str
    tenant: str | None
    text: str
    beside: tuple[str, ...] = ()


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something became invalid at `at`: every field that is given must match the item.

    `number` is the backend's order; 0 until it is written.
    """

    number: int = 0
    tenant: str | None = None
    at: datetime
    source: str | None = None
    key: str | None = None
    version: str | None = None
    item_id: str | None = None
    reason: str = "invalidated"


class LogEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One decision, as it is chained. `body` is canonical JSON without content; `link` is filled on writing.

    link = SHA-256(previous link of the tenant ‖ canonical MessagePack of the other fields).
    """

    number: int = 0
    tenant: str | None = None
    at: datetime
    kind: str
    body: str
    link: bytes = b""


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A named JSON document beside the items: a manifest, an endorsement, an approval, a session's head.

    `version` counts writes; a write may demand the version it expects.
    """

    kind: str
    id: str
    tenant: str | None = None
    session: str | None = None
    version: int = 0
    body: str


class StoredRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item as it is stored, with its place and the keys it is found by."""

    ordinal: int
    item: ContextItem[Any]
    content_key: bytes
    identity: bytes | None


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What remains of an erased item: nothing that it said, enough for its lineage and the log to verify."""

    ordinal: int = 0
    id: str
    type: str
    source: str
    tenant: str | None
    created: datetime
    derived_from: tuple[str, ...]
    digest: bytes
    at: datetime
    reason: str


class Census(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much of one type a tenant holds."""

    tenant: str | None
    type: str
    items: int
    characters: int
    erased: int


class Audited(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored item that was read again.

    Attributes:
        id: what it is found by.
        problem: `digest` where it contradicts its digest, `columns` where it is filed under what it does not
            say, `unreadable`, or None.
        digest, derived_from: as it says itself; empty where it is unreadable.
    """

    id: str
    problem: str | None = None
    digest: bytes = b""
    derived_from: tuple[str, ...] = ()


class Transaction(Protocol):
    """One atomic unit of writing in one tenant. Left by an exception, it leaves nothing behind.

    What is written belongs to the transaction's tenant; an item, document, event or log entry that names
    another one raises `ScopeError`. (Documents, events and log entries may leave it out.) A transaction is
    used by one thread, and at most one is open in a thread.
    """

    def next_seq(self, session: str | None, count: int) -> int:
        """Reserve `count` consecutive numbers of a session; the first of them. A session starts at 1."""
        ...

    def origins(self, keys: Sequence[bytes], tenants: Tenants) -> Mapping[bytes, tuple[OriginRow, ...]]:
        """For each content key that is known: the first registration of each type, in order of writing."""
        ...

    def identities(self, identities: Sequence[bytes]) -> Mapping[bytes, str]:
        """The ids of the items that hold these identities already."""
        ...

    def insert(self, rows: Sequence[NewRow]) -> list[str]:
        """Write rows; for each its id, or the id of the row that holds its identity already.

        Raises:
            ConflictError: an id exists already.
        """
        ...

    def texts_since(self, ordinal: int, types: frozenset[str], tenants: Tenants) -> Iterator[TextRow]:
        """Texts of these types written after `ordinal`, in order; those of this transaction included.

        A cursor moved by it holds once the transaction has ended well: numbers of one that was undone may be
        given again. Outside an exclusive transaction of a shared backend it stops before what other writers
        have not finished, so that no row is ever passed over.
        """
        ...

    def log(self, entries: Sequence[LogEntry]) -> None:
        """Append decisions to the tenant's chain.

        An entry that brings its number and link (from an export) is kept as it is.

        Raises:
            IntegrityError: such an entry does not continue the chain.
        """
        ...

    def put(self, document: Document, *, expected: int | None = None) -> int:
        """Write a document; its new version: one more than the stored one; 1 or its own for a new document.

        Raises:
            ConflictError: `expected` is given and is not the stored version (0: must not exist).
        """
        ...

    def revoke(self, ids: Sequence[str], at: datetime, reason: str) -> None:
        """Mark items as revoked. A revoked item stays readable and never enters a turn."""
        ...

    def emit(self, event: Event) -> int:
        """Record an invalidation and tell the other handles; its number."""
        ...

    def erase(self, ids: Sequence[str], at: datetime, reason: str) -> list[str]:
        """Remove what these items of the tenant say, leaving tombstones; the ids that were erased now.

        Text, key, attributes, parts, labels, content key and identity are gone; an event per item with the
        reason `erased` tells the other handles. An erased item is found by `tombstones` only; its children
        and parents stay known.
        """
        ...

    def restore(self, tombstones: Sequence[Tombstone]) -> None:
        """Write tombstones that come from an export.

        Raises:
            ConflictError: an id exists already.
        """
        ...


class Backend(Protocol):
    """Where a ledger keeps its items. All methods are safe to call from any thread."""

    name: str
    shared: bool
    """Whether several machines may write: then there is no default tenant."""

    def write(self, tenant: str | None, *, exclusive: bool = False) -> AbstractContextManager[Transaction]:
        """Begin a write. An exclusive one runs alone in its tenant: it sees everything that other writers
        committed before it, and none of them commits while it runs. It is for protected items, which are rare.
        With tenant None an exclusive write runs alone in the whole backend.

        Raises:
            StoreBusyError: a bounded wait ran out.
        """
        ...

    def get(self, ids: Sequence[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        """The items that exist among these ids. They are the backend's own: give away copies only."""
        ...

    def children(self, ids: Sequence[str], tenants: Tenants) -> dict[str, tuple[str, ...]]:
        """For each id the items derived directly from it, in order of writing."""
        ...

    def session_items(
        self, session: str, tenants: Tenants, *, after: int = 0, limit: int | None = None
    ) -> list[ContextItem[Any]]:
        """The items of a session in order of their sequence number, from after `after` on."""
        ...

    def items(
        self,
        tenants: Tenants,
        *,
        types: frozenset[str] | None = None,
        source: str | None = None,
        key: str | None = None,
        subject: str | None = None,
        expired_at: datetime | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Iterator[ContextItem[Any]]:
        """Items in order of writing, from after the ordinal `after` on; each filter that is given must match.

        `expired_at`: only items whose `expires_at` is this moment or earlier.
        """
        ...

    def rows(self, tenants: Tenants, *, after: int = 0) -> Iterator[StoredRow]:
        """Items with their ordinals and keys, in order of writing, for exports and rebuilt indexes."""
        ...

    def tenants(self) -> tuple[str, ...]:
        """The tenants that anything is stored for, sorted; the deployment's own scope is not among them."""
        ...

    def tombstones(self, tenants: Tenants, ids: Sequence[str] | None = None) -> dict[str, Tombstone]:
        """The erased items among these ids, or all of them, in order of writing."""
        ...

    def census(self, tenants: Tenants) -> list[Census]:
        """What is stored, by tenant and type."""
        ...

    def audit(self, tenants: Tenants) -> Iterator[Audited]:
        """Read every stored item again, past any cache, and say whether it is as it was written."""
        ...

    def vacuum(self) -> None:
        """Give unused space back and remove what erased items left behind in files."""
        ...

    def revoked(self, ids: Sequence[str], tenants: Tenants) -> dict[str, str]:
        """Which of these are revoked, and why: the first reason stays."""
        ...

    def events(self, tenants: Tenants, *, after: int = 0) -> list[Event]:
        """Invalidations numbered after `after`."""
        ...

    def logged(self, tenants: Tenants, *, after: int = 0, kinds: frozenset[str] | None = None) -> Iterator[LogEntry]:
        """Decisions in their order."""
        ...

    def document(self, kind: str, id: str, tenants: Tenants) -> Document | None:
        """One document."""
        ...

    def documents(self, kind: str | None, tenants: Tenants, *, session: str | None = None) -> Iterator[Document]:
        """Documents of a kind, or of every kind, in order of id."""
        ...

    def close(self) -> None:
        """Release files, connections and threads. Closing twice is allowed."""
        ...
