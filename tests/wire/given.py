"""Strategies: any item that a store could hold, and more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from rung.compiler.manifest import Conflict, Counter, Entry, Manifest, Prefix, Totals
from rung.records.item import ContextItem, Media, Opaque, Slot, ToolCall, sealed
from rung.records.labels import Labels, Sensitivity
from rung.records.types import BUILTIN_TYPES, ContextType


class Ticket(ContextType):
    """An application's own type."""


TYPES = {kind.name: kind for kind in (*BUILTIN_TYPES, Ticket)}

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
ids = st.text("0123456789abcdef", min_size=1, max_size=32)
maybe_name = st.none() | names
moments = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)
)  # microseconds and both ends of the calendar
labels = st.builds(
    Labels,
    tenant=maybe_name,
    subject=maybe_name,
    sensitivity=st.sampled_from(Sensitivity),
    scopes=st.frozensets(names, max_size=3),
)
parts = st.one_of(
    st.builds(ToolCall, id=ids, name=names, arguments=texts),
    st.builds(Media, mime=names, url=texts, digest=st.none() | texts, tokens=st.none() | st.integers(0, 2**40)),
    st.builds(Opaque, provider=names, json=texts),
    st.builds(Slot, name=names, item_id=ids),
)


@st.composite
def items(draw: st.DrawFn) -> ContextItem[Any]:
    return sealed(
        ContextItem(
            type=draw(st.sampled_from(sorted(TYPES.values(), key=lambda kind: kind.name))),
            id=draw(ids),
            source=draw(names),
            _body=draw(texts),
            media_type=draw(st.sampled_from(("text/plain", "application/json"))),
            labels=draw(labels),
            session=draw(maybe_name),
            turn=draw(maybe_name),
            seq=draw(st.integers(0, 2**62)),
            created=draw(moments),
            observed_at=draw(st.none() | moments),
            expires_at=draw(st.none() | moments),
            key=draw(maybe_name),
            version=draw(maybe_name),
            integrity=draw(st.integers(0, 100)),
            derived_from=tuple(draw(st.lists(ids, max_size=3))),
            via=draw(maybe_name),
            parts=tuple(draw(st.lists(parts, max_size=3))),
            call_id=draw(maybe_name),
            attrs=tuple(sorted(draw(st.dictionaries(names, texts, max_size=3)).items())),
        )
    )


params = st.dictionaries(names, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | names, max_size=3)
counts = st.integers(0, 10**6)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    entries = st.builds(
        Entry,
        source=names,
        item=st.none() | ids,
        type=maybe_name,
        tokens=counts,
        state=st.sampled_from(("included", "excluded", "stale")),
        reason=st.sampled_from(("selected", "over_budget")),
        params=params,
        label=maybe_name,
        count=counts,
    )
    conflicts = st.builds(
        Conflict,
        key=names,
        items=st.tuples(ids, ids),
        sources=st.tuples(names, names),
        times=st.tuples(names, names),
        settled=names,
    )
    return Manifest(
        turn=draw(ids),
        at=draw(moments).isoformat(),
        target="openai-chat",
        tenant=draw(maybe_name),
        session=draw(maybe_name),
        entries=tuple(draw(st.lists(entries, max_size=4))),
        totals=Totals(total=draw(counts), budget=draw(counts)),
        counter=Counter(tokenizer=draw(names), exact=draw(st.booleans()), framing="1"),
        conflicts=tuple(draw(st.lists(conflicts, max_size=2))),
        notes=tuple(draw(st.lists(texts, max_size=2))),
        prefix=draw(st.none() | st.builds(Prefix, tokens=counts, share=st.floats(0, 1))),
    )
