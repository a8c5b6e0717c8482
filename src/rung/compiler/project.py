"""Projection of large tool results: the fields and rows that are wanted, and a token to go on reading.

A body of hundreds of megabytes is read once, in blocks; what is held is one page, one block and the longest
row allowed. The whole body is hashed on the way, so that the ledger can keep what was not shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

import msgspec

from rung.compiler.project_array import JsonArrayReader
from rung.compiler.project_fields import parse_fields, pick
from rung.compiler.project_readers import (
    BYTES,
    CsvReader,
    JsonLinesReader,
    LineReader,
    MatchReader,
    Page,
    Reader,
)
from rung.compiler.truncation_json import OMITTED, Reduction, decode, encode
from rung.errors import InputError, kind
from rung.records.canonical import plain
from rung.tokens.protocol import well_formed

Kind = Literal["text", "jsonl", "json", "csv", "tsv"]

_BLOCK = 262_144
_LEAST_BYTES = 256
_LONGEST_KEY = 500
_TOKEN = re.compile(r"p1\.([A-Za-z0-9_-]{1,6000})\.([0-9a-f]{12})\Z")


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """What to show of a body.

    Attributes:
        kind: `text` (also logs), `jsonl`, `json` (an array, or an object that holds it), `csv` or `tsv`.
        fields: paths (`order.items[].sku`, within a row) or names of columns; empty keeps all.
        rows_at: for `json`, the dotted names that lead to the array; empty takes the first array.
        match: for `text`, a regular expression; only lines in which it is found are shown.
        max_rows: rows of a page.
        tail: for `text` without `match`, last lines of the body shown under the first page.
        max_bytes: bytes of a page in UTF-8, at least 256.
        max_pages: pages that may be read, the first one included.

    Raises:
        InputError: a number out of range, a path or pattern that cannot be read, options that do not go
            together.
    """

    kind: Kind
    fields: tuple[str, ...] = ()
    rows_at: str = ""
    match: str | None = None
    max_rows: int = 100
    tail: int = 0
    max_bytes: int = 65_536
    max_pages: int = 100

    def __post_init__(self) -> None:
        if self.kind not in ("text", "jsonl", "json", "csv", "tsv"):
            raise InputError("`kind` is none of text, jsonl, json, csv, tsv", field="kind")
        for name, value, least in (
            ("max_rows", self.max_rows, 1),
            ("tail", self.tail, 0),
            ("max_bytes", self.max_bytes, _LEAST_BYTES),
            ("max_pages", self.max_pages, 1),
        ):
            if value < least:
                raise InputError(f"`{name}` is {value} (give {least} or more)", field=name)
        if self.kind in ("jsonl", "json"):
            parse_fields(self.fields)
        elif self.kind == "text" and self.fields:
            raise InputError("`fields` do not go with text (use `match`)", field="fields")
        if self.match is not None or self.tail:
            if self.kind != "text":
                raise InputError("`match` and `tail` go with text only", field="match" if self.match else "tail")
            if self.match is not None and self.tail:
                raise InputError("`match` and `tail` do not go together", field="tail")
        if self.match is not None:
            try:
                re.compile(self.match)
            except re.error as error:
                raise InputError(f"`match` is no regular expression: {error}", field="match") from error
        if self.rows_at and self.kind != "json":
            raise InputError("`rows_at` goes with json only", field="rows_at")

    @property
    def digest(self) -> str:
        """What a continuation is bound to: 16 hexadecimal digits over all fields."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]


class Projected(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a body.

    Attributes:
        text: the page: lines, JSON lines or separated values, at most `max_bytes` bytes.
        page: its number, from 1.
        rows: rows (for `text`: lines of the body's beginning) shown on it.
        first_row: the number of its first row in the body, from 0.
        rows_seen: rows passed over by this reading, shown or not; of a whole reading, all rows of the body.
        complete: whether the reading came to the end of the body, and all of it could be read.
        continuation: what `read_more` takes to show the next page; None where there is no next page.
        length: bytes of the body, where it was read whole.
        sha256: the hexadecimal digest of the body, where it was read whole.
        problem: what in the body could not be read, in words without its content.
        cancelled: whether the reading was cancelled; then the page may be short and nothing continues it.
    """

    text: str
    page: int
    rows: int
    first_row: int
    rows_seen: int
    complete: bool
    continuation: str | None = None
    length: int | None = None
    sha256: str | None = None
    problem: str | None = None
    cancelled: bool = False


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next page begins, and of which body under which projection."""

    key: str
    projection: str
    offset: int
    row: int
    page: int
    body: str


def project_stream(
    chunks: Iterable[str | bytes],
    projection: Projection,
    *,
    key: str = "",
    cancelled: Callable[[], bool] | None = None,
) -> Projected:
    """The first page of a body; the body is read to its end, hashed and counted.

    Args:
        chunks: the body in pieces of any size; text is taken as UTF-8.
        projection: what to show.
        key: the name under which the body can be read again; part of the continuation.
        cancelled: asked between blocks of 256 KiB; true ends the reading, and the page so far is returned.

    Raises:
        InputError: a chunk that is neither `str` nor `bytes`, a key longer than 500 characters.
    """
    if len(key) > _LONGEST_KEY:
        raise InputError(f"`key` has {len(key)} characters, the limit is {_LONGEST_KEY}", field="key")
    reader, shown = _reader(projection, 0, page=1, names=[])
    digest = hashlib.sha256()
    length = 0
    for block in _blocks(chunks):
        if cancelled is not None and cancelled():
            return _result(reader, shown, 1, 0, cancelled=True)
        digest.update(block)
        length += len(block)
        reader.feed(block)
    reader.finish()
    body = digest.hexdigest()
    result = _result(reader, shown, 1, 0, length=length, sha256=body)
    if not reader.full or projection.max_pages < 2 or not result.rows:
        return result
    place = _Place(
        key=key,
        projection=projection.digest,
        offset=reader.next_offset,
        row=result.rows,
        page=2,
        body=body[:16],
    )
    return msgspec.structs.replace(result, continuation=_pack(place))


def read_more(
    open_body: Callable[[int], Iterable[str | bytes]],
    continuation: str,
    projection: Projection,
    *,
    key: str = "",
    cancelled: Callable[[], bool] | None = None,
) -> Projected:
    """The next page of a body, read from where the last one ended until this one is full.

    Args:
        open_body: gives the body's chunks from a byte offset on. Called once, and for separated values once
            more for the names of the columns.
        continuation: what the last page gave.
        projection: the same as for the last page.
        key: the same as for the first page.
        cancelled: as for `project_stream`.

    Raises:
        InputError: a continuation that is malformed, or of another projection or key.
    """
    place = _unpack(continuation)
    if place.projection != projection.digest or place.key != key:
        raise InputError(
            "`continuation` belongs to another projection or body (pass the arguments of the first page)",
            field="continuation",
        )
    if place.page > projection.max_pages:
        raise InputError(f"`continuation` goes past page {projection.max_pages}", field="continuation")
    names: list[str] = []
    if projection.kind in ("csv", "tsv"):
        names = _column_names(open_body(0), projection)
    reader, shown = _reader(projection, place.offset, page=place.page, names=names)
    for block in _blocks(open_body(place.offset)):
        if cancelled is not None and cancelled():
            return _result(reader, shown, place.page, place.row, cancelled=True)
        reader.feed(block)
        if reader.full:
            break
    else:
        reader.finish()
    result = _result(reader, shown, place.page, place.row, partly=reader.full)
    if not reader.full or place.page >= projection.max_pages or not result.rows:
        return result
    following = msgspec.structs.replace(
        place, offset=reader.next_offset, row=place.row + result.rows, page=place.page + 1
    )
    return msgspec.structs.replace(result, continuation=_pack(following))


def project(
    value: Any, fields: Iterable[str] = (), *, max_rows: int | None = None, max_bytes: int | None = None
) -> Any:
    """The wanted part of a JSON value in memory; the value itself is not changed.

    Args:
        value: any value that has a JSON form.
        fields: paths such as `order.items[].sku`; empty keeps all. A path that selects nothing is left out.
        max_rows: arrays, at any depth, keep at most this many elements and end with `{"$omitted": n}`.
        max_bytes: the most that the canonical JSON text of the result takes; the largest parts are cut first.

    Raises:
        InputError: a path that cannot be read, a value without JSON form, or a cap too small for any result.
    """
    made = plain(value, "value")
    tree = parse_fields(fields)
    if tree:
        made = pick(made, tree)
    if max_rows is not None:
        if max_rows < 0:
            raise InputError(f"`max_rows` is {max_rows} (give 0 or more)", field="max_rows")
        made = _capped(made, max_rows)
    if max_bytes is not None and len(encode(made).encode()) > max_bytes:
        piece = Reduction(made, BYTES).best(max_bytes)
        if piece is None:
            raise InputError(f"nothing of the value fits `max_bytes` of {max_bytes}", field="max_bytes")
        made = decode(piece.text)
    return made


def _capped(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        return {key: _capped(inner, most) for key, inner in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        kept = [_capped(inner, most) for inner in items[:most]]
        return [*kept, {OMITTED: len(items) - most}] if len(items) > most else kept
    return value


def _reader(projection: Projection, offset: int, *, page: int, names: list[str]) -> tuple[Reader, Page]:
    if projection.kind == "text":
        # A line is set aside for the words that say how much was left out.
        free = projection.max_bytes - 64
        last = Page(projection.tail, free // 2) if projection.tail and page == 1 else None
        shown = Page(projection.max_rows, free - free // 2 if last else free)
        if projection.match is not None:
            return MatchReader(shown, offset, re.compile(projection.match)), shown
        return LineReader(shown, offset, tail=last), shown
    if projection.kind in ("csv", "tsv"):
        shown = Page(projection.max_rows + 1, projection.max_bytes)
        separator = "," if projection.kind == "csv" else "\t"
        return CsvReader(shown, offset, projection.fields, separator, names), shown
    shown = Page(projection.max_rows, projection.max_bytes)
    fields = parse_fields(projection.fields)
    if projection.kind == "jsonl":
        return JsonLinesReader(shown, offset, fields), shown
    path = tuple(projection.rows_at.split(".")) if projection.rows_at else ()
    return JsonArrayReader(shown, offset, fields, path, inside=page > 1), shown


def _column_names(chunks: Iterable[str | bytes], projection: Projection) -> list[str]:
    """The first record of the body."""
    reader, _ = _reader(projection, 0, page=1, names=[])
    assert isinstance(reader, CsvReader)
    for block in _blocks(chunks):
        reader.feed(block)
        if reader.names:
            break
    else:
        reader.finish()
    return reader.names


def _result(
    reader: Reader,
    shown: Page,
    page: int,
    first_row: int,
    *,
    partly: bool = False,
    cancelled: bool = False,
    length: int | None = None,
    sha256: str | None = None,
) -> Projected:
    rows = len(shown.rows) - (isinstance(reader, CsvReader) and bool(reader.names))
    return Projected(
        text=reader.text(),
        page=page,
        rows=max(rows, 0),
        first_row=first_row,
        rows_seen=reader.seen,
        complete=not (partly or cancelled or reader.problem),
        length=length,
        sha256=sha256,
        problem=reader.problem,
        cancelled=cancelled,
    )


def _blocks(chunks: Iterable[str | bytes]) -> Iterator[bytes]:
    """The body in blocks of about 256 KiB, however it was cut."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        for data in _encoded(chunk):
            held.append(data)
            size += len(data)
            if size >= _BLOCK:
                yield b"".join(held) if len(held) > 1 else data
                held, size = [], 0
    if held:
        yield b"".join(held)


def _encoded(chunk: object) -> Iterator[bytes]:
    if isinstance(chunk, str):
        for start in range(0, len(chunk), _BLOCK):
            yield well_formed(chunk[start : start + _BLOCK]).encode()
    elif isinstance(chunk, bytes | bytearray | memoryview):
        view = memoryview(cast(bytes, chunk)).cast("B")
        for start in range(0, len(view), _BLOCK):
            yield bytes(view[start : start + _BLOCK])
    else:
        raise InputError(f"a chunk is of kind {kind(chunk)} (give `str` or `bytes`)", field="chunks")


def _pack(place: _Place) -> str:
    data = base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()
    return f"p1.{data}.{hashlib.sha256(data.encode()).hexdigest()[:12]}"


def _unpack(continuation: str) -> _Place:
    match = _TOKEN.match(continuation)
    if match and hashlib.sha256(match[1].encode()).hexdigest()[:12] == match[2]:
        try:
            place = msgspec.json.decode(base64.urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)), type=_Place)
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            pass
        else:
            if place.offset >= 0 and place.row >= 0 and place.page >= 2:
                return place
    raise InputError("`continuation` is malformed (pass it as the last page gave it)", field="continuation")
