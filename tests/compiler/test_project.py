"""Projection: fields of a value, pages of a body in bounded memory, and going on from a token."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.compiler.project import Kind, Projected, Projection, project, project_stream, read_more
from rung.errors import InputError

ORDER = {
    "id": 7,
    "order": {"items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}, {"qty": 3}], "note": "x"},
    "a.b": {"c": 1},
    "grid": [[{"v": 1, "w": 2}], [{"v": 3}]],
}


def opener(body: bytes, size: int = 1_000) -> Callable[[int], Iterable[bytes]]:
    """The body from an offset on, in chunks."""
    return lambda offset: (body[at : at + size] for at in range(offset, len(body), size))


def pages(body: bytes, projection: Projection, size: int = 1_000) -> list[Projected]:
    """Every page of a body."""
    found = [project_stream(opener(body, size)(0), projection, key="k")]
    while (token := found[-1].continuation) is not None:
        found.append(read_more(opener(body, size), token, projection, key="k"))
    return found


# --- values in memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["id"], {"id": 7}),
        (["order.items[].sku"], {"order": {"items": [{"sku": "A"}, {"sku": "B"}]}}),
        (["order.items[].sku", "order.items[].qty", "id"], {"id": 7, "order": {"items": ORDER["order"]["items"]}}),  # type: ignore[index]
        (["order.items[]"], {"order": {"items": ORDER["order"]["items"]}}),  # type: ignore[index]
        (['"a.b".c'], {"a.b": {"c": 1}}),
        (["grid[][].v"], {"grid": [[{"v": 1}], [{"v": 3}]]}),
        (["order.items.sku"], None),
        (["nothing", "id.deeper"], None),
        ([], ORDER),
    ],
)
def test_field_paths_keep_the_shape_and_leave_the_rest(fields: list[str], expected: Any) -> None:
    assert project(ORDER, fields) == expected


def test_paths_go_into_each_element_of_an_array_at_the_top() -> None:
    assert project([{"a": 1, "b": 2}, {"a": 3}], ["a"]) == [{"a": 1}, {"a": 3}]
    assert project([{"a": 1, "b": 2}, {"a": 3}], ["[].a"]) == [{"a": 1}, {"a": 3}]


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", ".a", "a[0]", "a[", 'a"b', '""', "a" * 501])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="field path"):
        project({}, [path])


def test_rows_are_capped_at_any_depth_and_counted() -> None:
    value = {"a": list(range(9)), "b": [[1, 2, 3], [4]]}
    assert project(value, max_rows=2) == {"a": [0, 1, {"$omitted": 7}], "b": [[1, 2, {"$omitted": 1}], [4]]}
    assert value["a"] == list(range(9))


@settings(max_examples=80, deadline=None)
@given(
    value=st.recursive(
        st.integers() | st.text(max_size=90) | st.none(),
        lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
        max_leaves=25,
    ),
    most=st.integers(60, 400),
)
def test_bytes_are_capped_and_what_fits_stays(value: Any, most: int) -> None:
    try:
        made = project(value, max_bytes=most)
    except InputError:
        return
    size = len(msgspec.json.encode(value, order="sorted")) if not _huge(value) else most + 1
    assert len(json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()) <= most
    if size <= most:
        assert made == value


def _huge(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_huge, value.values()))
    if isinstance(value, list):
        return any(map(_huge, value))
    return isinstance(value, int) and abs(value) >= 2**63


def test_a_cap_too_small_for_anything_is_refused() -> None:
    with pytest.raises(InputError, match="max_bytes"):
        project([1] * 500, max_bytes=4)
    with pytest.raises(InputError, match="max_rows"):
        project([1], max_rows=-1)


# --- pages of a body -------------------------------------------------------------------------------------

ROWS = [{"id": i, "name": f"näme {i}", "nest": {"x": [1, {"y": "},{"}], "z": None}} for i in range(237)]
WANTED = [{"id": row["id"], "nest": {"z": None}} for row in ROWS]
JSONL = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()
ARRAY = json.dumps(ROWS, ensure_ascii=False).encode()
PRETTY = json.dumps({"total": 237, "meta": {"data": [0]}, "page": {"data": ROWS}, "next": None}, indent=2).encode()
FIRST = json.dumps({"total": 237, "text": "[1]", "rows": ROWS}).encode()


@pytest.mark.parametrize("size", [1, 7, 1_000, 10**6])
@pytest.mark.parametrize(
    ("kind", "body", "rows_at"),
    [("jsonl", JSONL, ""), ("json", ARRAY, ""), ("json", PRETTY, "page.data"), ("json", FIRST, "")],
    ids=["jsonl", "array", "path", "first array"],
)
def test_all_pages_together_are_all_rows(kind: Kind, body: bytes, rows_at: str, size: int) -> None:
    projection = Projection(kind=kind, fields=("id", "nest.z"), rows_at=rows_at, max_rows=50)
    found = pages(body, projection, size)
    assert [json.loads(line) for page in found for line in page.text.splitlines()] == WANTED
    assert [(page.page, page.first_row, page.rows) for page in found] == [
        (1, 0, 50), (2, 50, 50), (3, 100, 50), (4, 150, 50), (5, 200, 37),
    ]  # fmt: skip
    assert found[0].rows_seen == 237
    assert (found[0].length, found[0].sha256) == (len(body), hashlib.sha256(body).hexdigest())
    assert [page.complete for page in found] == [True, False, False, False, True]
    assert not any(page.problem for page in found)


@pytest.mark.parametrize("size", [1, 13, 10**6])
@pytest.mark.parametrize(("kind", "separator"), [("csv", ","), ("tsv", "\t")])
def test_separated_values_page_by_record_with_the_names_on_each_page(kind: Kind, separator: str, size: int) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator)
    rows = [[str(i), f'two\r\nlines, "{i}"', "ü" * (i % 5)] for i in range(120)]
    writer.writerows([["id", "note", "mark"], *rows])
    found = pages(out.getvalue().encode(), Projection(kind=kind, fields=("mark", "id"), max_rows=50), size)
    read = [list(csv.reader(io.StringIO(page.text), delimiter=separator)) for page in found]
    assert [page[0] for page in read] == [["mark", "id"]] * 3
    assert [row for page in read for row in page[1:]] == [[mark, number] for number, _, mark in rows]
    assert (found[0].rows, found[0].rows_seen, found[2].first_row, found[2].rows) == (50, 120, 100, 20)


@pytest.mark.parametrize("size", [1, 13, 10**6])
def test_text_shows_its_beginning_and_its_end_and_goes_on_between(size: int) -> None:
    lines = [f"line {i} é" for i in range(100)]
    body = "\r\n".join(lines).encode()
    found = pages(body, Projection(kind="text", max_rows=40, tail=3), size)
    assert found[0].text.splitlines() == [*lines[:40], "[… 57 lines left out …]", *lines[97:]]
    assert found[1].text.splitlines()[:40] == lines[40:80]
    assert found[2].text.splitlines() == lines[80:]
    assert (found[0].rows_seen, found[0].complete, found[2].complete) == (100, True, True)


@pytest.mark.parametrize("count", range(8))
def test_the_end_never_repeats_the_beginning(count: int) -> None:
    lines = [f"{i}" for i in range(count)]
    made = project_stream(["\n".join(lines)], Projection(kind="text", max_rows=3, tail=3))
    shown = made.text.splitlines()
    assert shown == lines if count <= 6 else shown == [*lines[:3], "[… 1 line left out …]", *lines[4:]]


@pytest.mark.parametrize("size", [1, 13, 10**6])
def test_only_matching_lines_are_shown_and_all_are_counted(size: int) -> None:
    lines = [f"{'ERROR é' if i % 9 == 0 else 'info'} {i}" for i in range(400)]
    found = pages("\n".join(lines).encode(), Projection(kind="text", match=r"^ERROR .* \d+$", max_rows=20), size)
    assert [line for page in found for line in page.text.splitlines()] == lines[::9]
    assert found[0].rows_seen == 400


def test_bytes_of_a_page_are_capped_and_a_row_that_is_too_large_alone_is_reduced() -> None:
    rows = [{"id": i, "text": "é" * 50_000} for i in range(5)]
    for kind, body in (("jsonl", "\n".join(map(json.dumps, rows))), ("json", json.dumps(rows))):
        found = pages(body.encode(), Projection(kind=kind, max_bytes=512))  # type: ignore[arg-type]
        assert [json.loads(page.text)["id"] for page in found] == [0, 1, 2, 3, 4]
        assert all(len(page.text.encode()) <= 512 for page in found)


@settings(max_examples=60, deadline=None)
@given(
    body=st.lists(
        st.sampled_from(["é", "x" * 300, "\n", "a,b", '"', "\r\n", '{"a":1}', "[", "]", ",", "🦊" * 99, "\x00"])
    )
    .map("".join)
    .map(str.encode),
    kind=st.sampled_from(["text", "jsonl", "json", "csv", "tsv"]),
    rows=st.integers(1, 5),
    size=st.integers(1, 50),
    noise=st.binary(max_size=4),
)
def test_any_bytes_give_pages_within_their_caps_and_an_end(
    body: bytes, kind: Kind, rows: int, size: int, noise: bytes
) -> None:
    body += noise + body
    tail = 2 if kind == "text" else 0
    found = pages(body, Projection(kind=kind, max_rows=rows, max_bytes=256, tail=tail), size)
    assert found[0].sha256 == hashlib.sha256(body).hexdigest()
    for page in found:
        assert page.rows <= rows
        assert len(page.text.encode()) <= 256
    assert found == pages(body, Projection(kind=kind, max_rows=rows, max_bytes=256, tail=tail), 10**6)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.recursive(
            st.none() | st.integers(-9, 9) | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=30,
    ),
    size=st.integers(1, 60),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_any_array_is_read_element_by_element(rows: list[Any], size: int, indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode()
    found = pages(body, Projection(kind="json", max_rows=4), size)
    assert [json.loads(line) for page in found for line in page.text.split("\n")[:-1]] == rows
    assert found[0].rows_seen == len(rows)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("json", '{"a": 1}', "no array"),
        ("json", "7", "no array"),
        ("json", "", "no array"),
        ("json", "{a: []}", "no JSON"),
        ("json", '[{"a": 1}, {"a"', "ends before"),
        ("json", '[{"a": 1}, "' + "x" * 9_000_000, "longer than"),
        ("jsonl", '{"a": 1}\n{broken\n{"a": 2}', "row 1 of this page"),
        ("jsonl", '{"a": 1}\n"' + "x" * 1_100_000 + '"', "row 1 of this page"),
        ("csv", 'a,b\n1,"open\n', "quote"),
    ],
)
def test_what_cannot_be_read_is_said_and_the_body_is_hashed_all_the_same(kind: Kind, body: str, problem: str) -> None:
    made = project_stream([body], Projection(kind=kind))
    assert made.problem is not None
    assert problem in made.problem
    assert not made.complete
    assert made.sha256 == hashlib.sha256(body.encode()).hexdigest()
    if kind == "jsonl":
        assert made.text.startswith('{"a":1}\n')


def test_a_column_that_is_not_there_is_named() -> None:
    made = project_stream(["a,b\n1,2\n"], Projection(kind="csv", fields=("b", "c")))
    assert (made.text, made.problem) == ("b\n2\n", "no column `c`")


# --- going on, and stopping ------------------------------------------------------------------------------


def test_pages_end_at_their_cap() -> None:
    found = pages(JSONL, Projection(kind="jsonl", max_rows=10, max_pages=3))
    assert len(found) == 3
    assert found[-1].rows == 10


def test_a_second_reading_takes_no_more_than_its_page_needs() -> None:
    read = 0

    def open_body(offset: int) -> Iterator[bytes]:
        nonlocal read
        for at in range(offset, len(body), 65_536):
            read += 65_536
            yield body[at : at + 65_536]

    body = JSONL * 200
    projection = Projection(kind="jsonl", max_rows=10)
    token = project_stream([body], projection).continuation
    assert token is not None
    assert read_more(open_body, token, projection).rows == 10
    assert read <= 5 * 65_536 < len(body)


def test_a_continuation_is_checked() -> None:
    projection = Projection(kind="jsonl", max_rows=10)
    token = project_stream([JSONL], projection, key="order:7").continuation
    assert token is not None
    assert token == project_stream([JSONL], projection, key="order:7").continuation
    wrong: list[tuple[str, Projection, str]] = [
        (token, Projection(kind="jsonl", max_rows=11), "order:7"),
        (token, projection, "order:8"),
        (token[:-1] + ("0" if token[-1] != "0" else "1"), projection, "order:7"),
        ("p1." + token[4:], projection, "order:7"),
        ("", projection, "order:7"),
        ("p1.e30.000000000000", projection, "order:7"),
    ]
    for given_token, given_projection, key in wrong:
        with pytest.raises(InputError, match="continuation"):
            read_more(opener(JSONL), given_token, given_projection, key=key)


def test_a_cancelled_reading_returns_what_it_has_and_no_digest() -> None:
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    def endless() -> Iterator[str]:
        while True:
            yield '{"a": 1}\n' * 10_000

    made = project_stream(endless(), Projection(kind="jsonl"), cancelled=cancelled)
    assert (made.cancelled, made.complete, made.sha256, made.length, made.continuation) == (
        True,
        False,
        None,
        None,
        None,
    )
    assert made.rows == 100


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "xml"},
        {"kind": "json", "max_rows": 0},
        {"kind": "json", "max_bytes": 10},
        {"kind": "text", "fields": ("a",)},
        {"kind": "text", "match": "("},
        {"kind": "text", "match": "a", "tail": 1},
        {"kind": "json", "match": "a"},
        {"kind": "csv", "rows_at": "a"},
        {"kind": "json", "fields": ("a[",)},
    ],
)
def test_a_projection_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Projection(**options)


def test_a_chunk_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="chunk"):
        project_stream([1], Projection(kind="text"))  # type: ignore[list-item]
    with pytest.raises(InputError, match="key"):
        project_stream([], Projection(kind="text"), key="k" * 501)


# --- size ------------------------------------------------------------------------------------------------

RECORD = b'{"id":1842,"name":"abc def","tags":["a","b"],"nested":{"y":[{"q":1},{"q":2}]}}'


def repeated(unit: bytes, size: int, before: bytes = b"", after: bytes = b"") -> Iterator[bytes]:
    block = unit * (65_536 // len(unit))
    yield before
    for _ in range(size // len(block)):
        yield block
    yield after


def test_two_hundred_megabytes_are_read_in_seconds() -> None:
    unit = b"2026-01-01T00:00:00Z INFO worker started id=42\n"
    start = time.process_time()
    made = project_stream(repeated(unit, 200_000_000), Projection(kind="text", tail=20))
    assert time.process_time() - start < 15
    assert made.length is not None
    assert made.length > 199_000_000
    assert made.rows_seen * len(unit) == made.length
    assert len(made.text) < 8_000


@pytest.mark.parametrize(
    ("projection", "chunks"),
    [
        (Projection(kind="text", tail=20), lambda: repeated(b"INFO worker started id=42\n", 30_000_000)),
        (Projection(kind="text", tail=20), lambda: repeated(b"no newline at all ", 30_000_000)),
        (
            Projection(kind="text", match="ERROR"),
            lambda: repeated(b"INFO worker started id=42, and more " * 9 + b"\n", 30_000_000),
        ),
        (Projection(kind="jsonl", fields=("id",)), lambda: repeated(RECORD + b"\n", 30_000_000)),
        (Projection(kind="json", fields=("id",)), lambda: repeated(RECORD + b",", 30_000_000, b"[", RECORD + b"]")),
        (Projection(kind="json"), lambda: repeated(b"never ends ", 30_000_000, b'["')),
        (Projection(kind="csv"), lambda: repeated(b"1842,abc def,12.5\n", 30_000_000)),
        (Projection(kind="csv"), lambda: repeated(b"never ends\n", 30_000_000, b'a\n"')),
    ],
    ids=["log", "one line", "match", "jsonl", "json", "one string", "csv", "one quote"],
)
def test_memory_stays_bounded(projection: Projection, chunks: Callable[[], Iterable[bytes]]) -> None:
    tracemalloc.start()
    try:
        made = project_stream(chunks(), projection)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (28_000_000 if made.problem else 12_000_000)
    assert made.length is not None
    assert made.length > 29_000_000
