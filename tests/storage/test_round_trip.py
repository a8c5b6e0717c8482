"""Whatever an item holds, every backend gives it back equal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.ledger.backend import Backend
from rung.records.item import ContextItem, Media, Opaque, Slot, ToolCall, sealed
from rung.records.labels import Labels, Sensitivity
from rung.records.types import BUILTIN_TYPES
from rung.storage.rows import pack, unpack
from rung.testing.backend_contract import TYPES, OpenHandle, row

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40)
MAYBE = st.none() | TEXT
MOMENT = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 1, 1),
    timezones=st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))) | st.just(UTC),
)
PART = (
    st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT)
    | st.builds(Media, mime=TEXT, url=TEXT, digest=MAYBE, tokens=st.none() | st.integers(0, 10**6))
    | st.builds(Opaque, provider=TEXT, json=TEXT)
    | st.builds(Slot, name=TEXT, item_id=TEXT)
)
LABELS = st.builds(
    Labels,
    tenant=st.just("a"),
    subject=MAYBE,
    sensitivity=st.sampled_from(Sensitivity),
    scopes=st.frozensets(TEXT, max_size=4),
)


@st.composite
def items(draw: st.DrawFn) -> ContextItem[Any]:
    """A sealed item of any type with any fields."""
    return sealed(
        ContextItem(
            type=draw(st.sampled_from(BUILTIN_TYPES)),
            id=draw(TEXT),
            source=draw(TEXT),
            _body=draw(TEXT),
            media_type=draw(st.sampled_from(("text/plain", "application/json"))),
            labels=draw(LABELS),
            session=draw(MAYBE),
            turn=draw(MAYBE),
            seq=draw(st.integers(1, 2**53)),
            created=draw(MOMENT),
            observed_at=draw(st.none() | MOMENT),
            expires_at=draw(st.none() | MOMENT),
            key=draw(MAYBE),
            version=draw(MAYBE),
            integrity=draw(st.integers(0, 100)),
            derived_from=tuple(draw(st.lists(TEXT, max_size=3))),
            via=draw(MAYBE),
            parts=tuple(draw(st.lists(PART, max_size=3))),
            call_id=draw(MAYBE),
            attrs=tuple(draw(st.lists(st.tuples(TEXT, TEXT), max_size=3))),
        )
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(items(), max_size=6, unique_by=lambda item: item.id))
def test_any_item_comes_back_equal(open_handle: OpenHandle, batch: list[ContextItem[Any]]) -> None:
    """Every field, every part, every label, and the digest."""
    backend = _emptied(open_handle)
    with backend.write("a") as tx:
        assert tx.insert([row(item) for item in batch]) == [item.id for item in batch]
    assert list(backend.items(("a",))) == batch
    assert backend.get([item.id for item in batch], ("a",)) == {item.id: item for item in batch}
    for item in backend.items(("a",)):
        assert item.computed_digest() == item.digest
        assert list(backend.items(("a",), key=item.key, source=item.source, subject=item.labels.subject))
    for session in {item.session for item in batch if item.session is not None}:
        expected = sorted((i for i in batch if i.session == session), key=lambda i: (i.seq, batch.index(i)))
        assert backend.session_items(session, ("a",)) == expected
    assert {found.problem for found in backend.audit(("a",))} <= {None}
    backend.close()


def _emptied(open_handle: OpenHandle) -> Backend:
    """A backend without rows: the fixture is one for all examples."""
    backend = open_handle()
    if backend.name == "memory":
        return type(backend)(TYPES)  # type: ignore[call-arg]
    if backend.name == "postgres":
        connections: Any = vars(backend)["_connections"]
        with connections.connect() as connection:
            for table in ("items", "edges"):
                connection.execute(f"TRUNCATE {connections.quoted}.{table}".encode())
        vars(backend)["_cache"].clear()
        return backend
    connections = vars(backend)["_connections"]
    with connections.alone() as connection:
        for table in ("items", "edges"):
            connection.execute(f"DELETE FROM {table}")
    vars(backend)["_cache"].clear()
    return backend


@given(item=items())
def test_a_record_is_the_same_bytes_each_time(item: ContextItem[Any]) -> None:
    """The stored form depends on the item alone, not on the order in which sets were filled."""
    scopes = frozenset(sorted(item.labels.scopes, reverse=True))
    labels = Labels(
        tenant=item.labels.tenant,
        subject=item.labels.subject,
        sensitivity=item.labels.sensitivity,
        scopes=scopes,
    )
    again = ContextItem(
        **{
            **{name: getattr(item, name) for name in ContextItem.__struct_fields__},
            "labels": labels,
        }
    )
    assert pack(again) == pack(item)
    assert unpack(*pack(item), TYPES, item.id) == item


@pytest.mark.parametrize("field", ContextItem.__struct_fields__)
def test_no_field_of_an_item_is_forgotten(field: str, tmp_path: Path) -> None:
    """A field that items gain is stored without anybody thinking of it."""
    from rung.storage.rows import Record

    assert field in (*Record.__struct_fields__, "_body")
