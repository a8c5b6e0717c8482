"""`ContextItem`: one immutable piece of context with a type, a source, an age and a lineage."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from rung.errors import ContextTypeError
from rung.records.canonical import digest_of
from rung.records.labels import Labels, Sensitivity
from rung.records.text import LabelledText, Origin
from rung.records.types import ContextType

T = TypeVar("T", bound=ContextType)
T_co = TypeVar("T_co", bound=ContextType, covariant=True)

DIGEST_VERSION = 1


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="call"):
    """A call that a reply asks for. `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"


class Media(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="media"):
    """A reference to an image, a sound or a file: never its bytes in the text.

    `url` may be a `data:` address; its length never counts as tokens (see `rung.tokens`).
    """

    mime: str
    url: str
    digest: str | None = None
    tokens: int | None = None


class Opaque(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="opaque"):
    """A provider's own block, passed through byte for byte or dropped whole. `json` is its JSON text."""

    provider: str
    json: str


class Slot(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="slot"):
    """A named place in an instruction that shows another item as quoted data."""

    name: str
    item_id: str


Part = ToolCall | Media | Opaque | Slot


class ContextItem(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True, gc=False):
    """One piece of context. A store makes it; building one by hand gives nothing that a store accepts.

    Attributes:
        type: the class that says what it is.
        id: identifies this item.
        source: who brought it: `system`, `tool:order_lookup`, a retriever's name.
        media_type: `text/plain` or `application/json`.
        labels: tenant, subject, sensitivity and required scopes.
        session, turn, seq: the conversation, the turn in it, and the place in its order.
        created: when the store took it in; aware UTC.
        observed_at: when the source saw what it says; aware UTC, or None.
        expires_at: from when on it may not be asserted; aware UTC, or None.
        key: what fact it states, for example `order:1842`.
        version: the version of the document or value, as its source counts.
        integrity: how far it may steer; the lowest of its type's and its unendorsed parents'.
        derived_from: ids of its parents.
        via: the transform and validators that made it from them.
        parts: tool calls, media references, opaque blocks and slots beside the text.
        call_id: the call that a tool output answers.
        attrs: sorted pairs of descriptive text, such as `title` and `section`.
        digest: SHA-256 over every other field, versioned.
    """

    type: type[T_co]
    id: str
    source: str
    _body: str
    media_type: str = "text/plain"
    labels: Labels
    session: str | None = None
    turn: str | None = None
    seq: int = 0
    created: datetime
    observed_at: datetime | None = None
    expires_at: datetime | None = None
    key: str | None = None
    version: str | None = None
    integrity: int = 0
    derived_from: tuple[str, ...] = ()
    via: str | None = None
    parts: tuple[Part, ...] = ()
    call_id: str | None = None
    attrs: tuple[tuple[str, str], ...] = ()
    digest: bytes = b""

    @property
    def text(self) -> LabelledText:
        """The text with its labels: not a `str`, and it keeps saying where each piece came from."""
        return LabelledText(self._body, Origin(self.id, self.type.name, self.source))

    def reveal(self, reason: str) -> str:
        """The plain text, for a reason that a reviewer and the linter can see.

        What is revealed is a `str` like any other: a protected type refuses it by its fingerprint only.
        """
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ContextTypeError(
                f'item `{self.id}` is revealed without a reason (say why: item.reveal("shown to the user"))',
                item_id=self.id,
            )
        return self._body

    @property
    def tenant(self) -> str | None:
        return self.labels.tenant

    @property
    def subject(self) -> str | None:
        return self.labels.subject

    @property
    def sensitivity(self) -> Sensitivity:
        return self.labels.sensitivity

    @property
    def scopes(self) -> frozenset[str]:
        return self.labels.scopes

    @property
    def seen_at(self) -> datetime:
        """The moment its age is counted from: `observed_at` where known, else `created`."""
        return self.observed_at if self.observed_at is not None else self.created

    def attr(self, name: str) -> str | None:
        """A descriptive attribute such as `title`, or None."""
        return next((value for key, value in self.attrs if key == name), None)

    def computed_digest(self) -> bytes:
        """The digest as its fields give it now; equal to `digest` unless something was altered."""
        labels = self.labels
        return digest_of(
            DIGEST_VERSION,
            self.type.name,
            self.id,
            self.source,
            self._body,
            self.media_type,
            (labels.tenant, labels.subject, int(labels.sensitivity), sorted(labels.scopes)),
            (self.session, self.turn, self.seq),
            (self.created, self.observed_at, self.expires_at),
            (self.key, self.version, self.integrity),
            (self.derived_from, self.via),
            (self.parts, self.call_id, self.attrs),
        )

    def __repr__(self) -> str:
        facts = [f"id={self.id}", f"source={self.source!r}", f"chars={len(self._body)}"]
        facts += [f"{name}={value!r}" for name, value in (("key", self.key), ("version", self.version)) if value]
        if self.derived_from:
            facts.append(f"derived_from={list(self.derived_from)}")
        return f"<ContextItem[{self.type.__name__}] {' '.join(facts)}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("type", self.type.name), ("source", self.source)]

    def _refuse(self, *_: object) -> NoReturn:
        raise ContextTypeError(
            f"item `{self.id}` ({self.type.name} from `{self.source}`) does not become text "
            "(give the item itself to store.compile, fill a Template's slot with it, "
            'or call item.reveal("why"))',
            item_id=self.id,
            item_type=self.type.name,
        )

    def __str__(self) -> str:
        self._refuse()

    def __format__(self, _: str) -> str:
        self._refuse()

    def __bytes__(self) -> bytes:
        self._refuse()

    def __add__(self, other: object) -> NoReturn:
        self._refuse(other)

    def __radd__(self, other: object) -> NoReturn:
        self._refuse(other)

    def __mod__(self, other: object) -> NoReturn:
        self._refuse(other)

    def __mul__(self, other: object) -> NoReturn:
        self._refuse(other)

    __rmul__ = __mul__

    def __iter__(self) -> NoReturn:
        self._refuse()

    def __hash__(self) -> int:
        return hash(self.id)


def body(item: ContextItem[Any]) -> str:
    """The plain text of an item, for the library's own last step (assembly, counting, storing)."""
    return item._body  # pyright: ignore[reportPrivateUsage]


def sealed(item: ContextItem[T]) -> ContextItem[T]:
    """The same item with its digest computed."""
    return msgspec.structs.replace(item, digest=item.computed_digest())
