"""Items, manifests and sessions come back as they were, in both encodings, and the published schemas say how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung import ContextStore, Evidence, InputError, ToolOutput
from rung.compiler.manifest import Manifest
from rung.errors import IntegrityError, WireError
from rung.records.item import ContextItem
from rung.wire import (
    Session,
    decode_item,
    decode_manifest,
    decode_session,
    encode_item,
    encode_manifest,
    encode_session,
    schemas,
    session_of,
)
from rung.wire.schema import Encoding

from .given import TYPES, items, manifests

ROOT = Path(__file__).parents[2]
ENCODINGS = ("json", "msgpack")
encodings = st.sampled_from(ENCODINGS)
ITEM_SCHEMA = jsonschema.Draft202012Validator(json.loads(schemas()["item.json"]))


@given(items(), encodings)
def test_an_item_comes_back_as_it_was(item: ContextItem[Any], encoding: Encoding) -> None:
    again = decode_item(encode_item(item, encoding), TYPES)
    assert again == item
    assert again.type is item.type
    assert [type(part) for part in again.parts] == [type(part) for part in item.parts]


@given(manifests(), encodings)
def test_a_manifest_comes_back_as_it_was(manifest: Manifest, encoding: Encoding) -> None:
    assert decode_manifest(encode_manifest(manifest, encoding)) == manifest


@settings(max_examples=30)
@given(st.lists(items(), max_size=4), st.lists(manifests(), max_size=2), encodings)
def test_a_session_comes_back_as_it_was(
    held: list[ContextItem[Any]], turns: list[Manifest], encoding: Encoding
) -> None:
    session = Session(session="s1", tenant="acme", items=tuple(held), turns=tuple(turns))
    assert decode_session(encode_session(session, encoding), TYPES) == session


@settings(max_examples=30)
@given(items())
def test_an_item_fits_the_published_schema(item: ContextItem[Any]) -> None:
    ITEM_SCHEMA.validate(json.loads(encode_item(item)))


def test_the_published_schemas_are_the_codes_own() -> None:
    folder = ROOT / "docs" / "schemas"
    published = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    assert published == schemas(), "write them again: python -m rung.wire docs/schemas"


def test_the_schemas_are_written_by_a_command(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "rung.wire", str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == set(schemas())


def test_a_stored_session_travels_whole(tmp_path: Path) -> None:
    with ContextStore.open(tmp_path / "a.db") as store:
        view = store.scope(tenant="acme", session="s1")
        rules = store.instruct("Answer from the order.")
        found = view.add(ToolOutput, {"status": "shipped"}, source="tool:orders", key="order:1")
        turn = view.compile([rules, view.promote(found, Evidence), view.user("Where is it?")], budget=500)
        view.record(turn)
        sent = session_of(view)
        assert [item.type.name for item in sent.items] == ["tool_output", "evidence", "user"]
        assert [made.turn for made in sent.turns] == [turn.manifest.turn]
        assert decode_session(encode_session(sent)) == sent


def test_a_session_has_a_name() -> None:
    with pytest.raises(InputError, match="no session is named"):
        session_of(ContextStore())


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from rung import ContextStore, ToolOutput\nfrom rung.wire import encode_item\n"
        "from datetime import datetime, UTC\n"
        "s = ContextStore(ids='deterministic', clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))\n"
        "i = s.add(ToolOutput, 'x', source='tool:t', scopes={'a', 'b', 'c', 'd', 'e'})\n"
        "print(encode_item(i).hex(), encode_item(i, 'msgpack').hex())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


ALTERED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the text": lambda row: row | {"text": row["text"] + "!"},
    "the type": lambda row: row | {"type": "instruction"},
    "the source": lambda row: row | {"source": "system"},
    "the sensitivity": lambda row: row | {"labels": row["labels"] | {"sensitivity": 0}},
    "the tenant": lambda row: row | {"labels": row["labels"] | {"tenant": "other"}},
    "the scopes": lambda row: row | {"labels": row["labels"] | {"scopes": []}},
    "the lineage": lambda row: row | {"derived_from": ["0" * 32]},
    "the transform": lambda row: row | {"via": "promote:approval"},
    "the integrity": lambda row: row | {"integrity": 100},
    "the age": lambda row: row | {"observed_at": "2030-01-01T00:00:00Z"},
    "the digest": lambda row: row | {"digest": ""},
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_altered_item_contradicts_its_digest(
    alter: Callable[[dict[str, Any]], dict[str, Any]], encoding: Encoding
) -> None:
    item = ContextStore().add(ToolOutput, "x", source="tool:t", scopes={"a"})
    row = alter(json.loads(encode_item(item)))
    if encoding == "msgpack":
        import base64

        row["digest"] = base64.b64decode(row["digest"])
    data = json.dumps(row).encode() if encoding == "json" else msgspec.msgpack.encode(row)
    with pytest.raises(WireError) as caught:
        decode_item(data)
    assert caught.value.reason == "digest_mismatch"


MALFORMED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a field too many": lambda row: row | {"trusted": True},
    "a field too few": lambda row: {key: value for key, value in row.items() if key != "labels"},
    "another version": lambda row: row | {"v": 2},
    "a naive time": lambda row: row | {"created": "2026-01-01T00:00:00"},
    "a sensitivity that is none": lambda row: row | {"labels": row["labels"] | {"sensitivity": 9}},
    "a number for a text": lambda row: row | {"text": 7},
    "a list": lambda row: [row],
}


@pytest.mark.parametrize("alter", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_item_is_named_and_not_quoted(alter: Callable[[dict[str, Any]], Any]) -> None:
    item = ContextStore().add(ToolOutput, "a secret text", source="tool:t")
    with pytest.raises(WireError) as caught:
        decode_item(json.dumps(alter(json.loads(encode_item(item)))).encode())
    assert caught.value.reason == "malformed"
    assert "secret" not in str(caught.value)


def test_a_type_that_is_not_known_here_is_named() -> None:
    item = ContextStore().add(ToolOutput, "x", source="tool:t")
    with pytest.raises(IntegrityError, match="tool_output"):
        decode_item(encode_item(item), {})


def test_an_encoding_is_one_of_two() -> None:
    item = ContextStore().add(ToolOutput, "x", source="tool:t")
    with pytest.raises(InputError, match="one of `json`, `msgpack`"):
        encode_item(item, "yaml")  # type: ignore[arg-type]


@given(st.binary(max_size=200))
def test_any_bytes_are_an_item_or_a_wire_error(data: bytes) -> None:
    for decode in (decode_item, decode_manifest, decode_session):
        with pytest.raises(WireError):
            decode(data)
