"""Reading rows out of a stream of blocks in bounded memory: lines, JSON lines and separated values.

A reader shows rows until its page is full and from there on only counts. It works on bytes, so that the place
where the next page begins is exact.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any, Protocol

from rung.compiler.project_fields import Tree, pick
from rung.compiler.truncation_json import NOT_JSON, Reduction, decode, encode
from rung.compiler.truncation_text import marker
from rung.tokens import CallableTokenizer, grapheme_boundary

LINE_BYTES = 16_384
RECORD_BYTES = 1_048_576
ROW_BYTES = 4_194_304

BYTES = CallableTokenizer(
    lambda text: len(text.encode("utf-8", "surrogatepass")), name="bytes", exact=True, additive_newline=True
)


class Page:
    """The rows that are shown, within a number of rows and of bytes."""

    __slots__ = ("_max_bytes", "_max_rows", "rows", "size")

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self.rows: list[str] = []
        self.size = 0

    @property
    def room(self) -> int:
        """The bytes that one more row may take, its newline aside."""
        return self._max_bytes - self.size - 1

    def add(self, row: str) -> bool:
        """Show a row; false where it does not fit."""
        size = len(row.encode()) + 1
        if len(self.rows) >= self._max_rows or self.size + size > self._max_bytes:
            return False
        self.rows.append(row)
        self.size += size
        return True


class Reader(Protocol):
    """What drives through a stream; `seen` counts rows of this reading, shown or not."""

    seen: int
    full: bool
    next_offset: int

    @property
    def problem(self) -> str | None: ...

    def feed(self, block: bytes) -> None: ...

    def finish(self) -> None: ...

    def text(self) -> str: ...


class LineReader:
    """Lines of text. The end of the body is held back too where a page for it is given."""

    longest = LINE_BYTES
    """Bytes of a line that are looked at; of a longer one the rest is dropped."""

    problem: str | None
    _carry: bytes

    def __init__(self, page: Page, offset: int, *, tail: Page | None = None) -> None:
        self.seen = 0
        self.full = False
        self.next_offset = offset
        self.problem = None
        self.page = page
        self._tail = tail
        self._ring = b""
        self._carry = b""
        self._dropped = 0
        self._at = offset
        self._after = 0
        self._after_bytes = 0

    def feed(self, block: bytes) -> None:
        """Take the next block of the body."""
        data = self._carry + block if self._carry else block
        if self.full:
            self._feed_rest(data)
            return
        place = 0
        while (end := data.find(b"\n", place)) >= 0:
            if not self._take(data[place:end], end + 1 - place):
                self._feed_rest(data[place:])
                return
            place = end + 1
        self._carry = data[place:]
        self._trim()

    def _trim(self) -> None:
        over = len(self._carry) - self.longest
        if over > 0:
            self._dropped += over
            self._carry = self._carry[: self.longest]

    def finish(self) -> None:
        """Take the last line, which need not end in a newline."""
        if self._carry and not self.full and not self._take(self._carry, len(self._carry)):
            self._feed_rest(self._carry)
        if self.full and self._carry:
            data, self._carry = self._carry + b"\n", b""
            self._count(data)

    def _take(self, line: bytes, size: int) -> bool:
        """One whole line of `size` bytes in the body, some of which may have been dropped."""
        if self.row(line, self._dropped):
            self._at += size + self._dropped
            self._dropped = 0
            return True
        self.full = True
        self.next_offset = self.row_start()
        return False

    def _feed_rest(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if end:
            self._count(data[:end])
        self._carry = data[end:]
        if len(self._carry) > 2 * self.longest:
            self._carry = self._carry[: self.longest]

    def _count(self, data: bytes) -> None:
        rows = self.count(data)
        self.seen += rows
        self._after += rows
        if self._tail is not None:
            self._after_bytes += len(data)
            self._ring = (self._ring + data)[-(self._tail.room + LINE_BYTES) :]

    # --- what a kind of row decides ----------------------------------------------------------------------

    def row_start(self) -> int:
        """Where in the body the row begins that did not fit."""
        return self._at

    def row(self, line: bytes, dropped: int) -> bool:
        """Show one line; false where the page is full."""
        if not self.show(readable(line), dropped):
            return False
        self.seen += 1
        return True

    def show(self, text: str, dropped: int) -> bool:
        """Show a line, the first of a page always: shortened to what there is."""
        limit = LINE_BYTES if self.page.rows else min(LINE_BYTES, self.page.room)
        return self.page.add(shortened(text, dropped, limit))

    def count(self, data: bytes) -> int:
        """The rows in some whole lines that are not shown."""
        return data.count(b"\n")

    def text(self) -> str:
        """The lines shown, and words for those that were not."""
        rows = list(self.page.rows)
        if self.full:
            last: list[str] = []
            if self._tail is not None:
                held = self._ring.split(b"\n")[:-1]
                for line in reversed(held[len(self._ring) < self._after_bytes :]):  # the first may be half a line
                    if not self._tail.add(shortened(readable(line), 0, LINE_BYTES)):
                        break
                last = self._tail.rows[::-1]
            if left := self._after - len(last):
                rows.append(marker(left, "lines"))
            rows += last
        return "".join(f"{row}\n" for row in rows)


class MatchReader(LineReader):
    """Lines in whose first 16 KiB a pattern is found. `seen` counts all lines."""

    def __init__(self, page: Page, offset: int, match: re.Pattern[str]) -> None:
        super().__init__(page, offset)
        self._find = match.search

    def feed(self, block: bytes) -> None:
        data = self._carry + block if self._carry else block
        end = data.rfind(b"\n") + 1
        if self.full:
            self._feed_rest(data)
        elif self._lines(data, end):
            self._carry = data[end:]
            self._trim()

    def finish(self) -> None:
        if self._carry:
            data, self._carry = self._carry + b"\n", b""
            if self.full:
                self._feed_rest(data)
            else:
                self._lines(data, len(data))

    def _lines(self, data: bytes, end: int) -> bool:
        """Search the whole lines before `end`; false where the page got full, and the rest is counted."""
        text = data[:end].decode("utf-8", "replace")  # decoded at once: one call for each line would be slow
        lines = text.replace("\r\n", "\n").split("\n")[:-1]
        raw: list[bytes] = []
        place = done = 0
        for at, line in enumerate(lines):
            if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
                found = self._find(line.encode()[:LINE_BYTES].decode("utf-8", "ignore"))
            else:
                found = self._find(line)
            if found:
                raw = raw or data[:end].split(b"\n")
                place += sum(map(len, raw[done:at])) + at - done
                done = at
                if not self.show(line, self._dropped if not at else 0):
                    self.full = True
                    self.next_offset = self._at + place + (self._dropped if at else 0)
                    self.seen += at
                    self._feed_rest(data[place:])
                    return False
        self.seen += len(lines)
        if end:
            self._at += end + self._dropped
            self._dropped = 0
        return True

    def text(self) -> str:
        return "".join(f"{row}\n" for row in self.page.rows)


class JsonLinesReader(LineReader):
    """One JSON value a line, projected to some fields; blank lines are no rows."""

    longest = RECORD_BYTES

    def __init__(self, page: Page, offset: int, fields: Tree) -> None:
        super().__init__(page, offset)
        self._fields = fields

    def row(self, line: bytes, dropped: int) -> bool:
        if not line.strip():
            return True
        value = NOT_JSON if dropped or len(line) > RECORD_BYTES else decode(line)
        if value is NOT_JSON:
            if self.problem is None:
                self.problem = f"row {self.seen} of this page is no JSON value of at most {RECORD_BYTES} bytes"
            self.seen += 1
            return True
        if not show_value(self.page, value, self._fields):
            return False
        self.seen += 1
        return True

    def count(self, data: bytes) -> int:
        return filled_lines(data)

    def text(self) -> str:
        return "".join(f"{row}\n" for row in self.page.rows)


class CsvReader(LineReader):
    """Records of separated values, with some of the columns; a quoted field may span lines."""

    longest = RECORD_BYTES

    def __init__(self, page: Page, offset: int, fields: tuple[str, ...], separator: str, names: list[str]) -> None:
        super().__init__(page, offset)
        self._wanted = fields
        self._separator = separator
        self._columns: list[int] = []
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._odd = False
        self.names = names
        if names:
            self._choose(names)

    def _choose(self, names: list[str]) -> None:
        self.names = names
        missing = [name for name in self._wanted if name not in names]
        if missing:
            self.problem = f"no column `{missing[0]}`"
        self._columns = [names.index(name) for name in self._wanted if name in names]
        if not self._wanted:
            self._columns = list(range(len(names)))
        if not self.page.add(self._written([names[i] for i in self._columns])):
            self.problem = "the names of the columns are longer than `max_bytes`"

    def row_start(self) -> int:
        return self._at - self._pending_bytes

    def row(self, line: bytes, dropped: int) -> bool:
        size = len(line) + 1 + dropped
        if dropped or size > RECORD_BYTES:
            self.problem = self.problem or f"row {self.seen} of this page is longer than {RECORD_BYTES} bytes"
            self._pending, self._pending_bytes, self._odd = [], 0, False
            self.seen += 1
            return True
        odd = self._odd != bool(line.count(b'"') % 2)
        if odd and self._pending_bytes + size <= RECORD_BYTES:
            self._odd = True
            self._pending.append(line)
            self._pending_bytes += size
            return True
        record = b"\n".join([*self._pending, line])
        if record.strip() and not self._show(record):
            # What counts on sees the whole record again.
            self._carried = b"".join(part + b"\n" for part in self._pending)
            self._odd = False
            return False
        self._pending, self._pending_bytes, self._odd = [], 0, False
        return True

    _carried = b""

    def _show(self, record: bytes) -> bool:
        try:
            source = io.StringIO(readable(record), newline="")
            fields = next(csv.reader(source, delimiter=self._separator), list[str]())
        except csv.Error:
            fields = []
            self.problem = self.problem or f"row {self.seen} of this page cannot be read"
        if not self.names:
            self._choose(fields)
            return True
        if fields:
            cells = [fields[i] if i < len(fields) else "" for i in self._columns]
            row = self._written(cells)
            if len(self.page.rows) == 1 and len(row.encode()) > self.page.room:  # the first under the names
                share = max(0, self.page.room // max(1, len(cells)) - 4)
                row = self._written([shortened(cell.replace('"', "'"), 0, share) for cell in cells])
            if not self.page.add(row):
                return False
        self.seen += 1
        return True

    def _written(self, cells: list[str]) -> str:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=self._separator, lineterminator="").writerow(cells)
        return out.getvalue()

    def finish(self) -> None:
        super().finish()
        if self._pending and not self.full:  # a quote that nothing closed
            record = b"\n".join(self._pending)
            self.problem = self.problem or f"row {self.seen} of this page has a quote that nothing closes"
            self._pending = []
            if record.strip() and not self._show(record):
                self.full = True
                self.next_offset = self.row_start()
                self.seen += 1

    def _feed_rest(self, data: bytes) -> None:
        carried, self._carried = self._carried, b""
        super()._feed_rest(carried + data)

    def count(self, data: bytes) -> int:
        if not self._odd and b'"' not in data:
            return filled_lines(data)
        rows = 0
        for line in data.split(b"\n")[:-1]:
            if line.count(b'"') % 2:
                self._odd = not self._odd
            rows += not self._odd and bool(line.strip())
        return rows

    def text(self) -> str:
        return "".join(f"{row}\n" for row in self.page.rows)


def show_value(page: Page, value: Any, fields: Tree) -> bool:
    """Show a projected value as one line of canonical JSON; the first of a page is reduced where it is too
    large, so that reading goes on."""
    row = encode(pick(value, fields) if fields else value)
    if not page.rows and len(row.encode()) > page.room:
        piece = Reduction(decode(row), BYTES).best(page.room)
        row = piece.text if piece else "null"
    return page.add(row)


def readable(line: bytes) -> str:
    """A line as text: without CR at its end, U+FFFD for what is no UTF-8."""
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def shortened(text: str, dropped: int, limit: int) -> str:
    """A line of at most `limit` bytes; says so where it was longer, or where bytes of it were dropped before."""
    data = text.encode()
    if len(data) <= limit and not dropped:
        return text
    words = " [… rest of the line left out …]"
    head = data[: max(0, limit - len(words.encode()))].decode("utf-8", "ignore")
    while head and not grapheme_boundary(text, len(head)):
        head = head[:-1]
    return f"{head}{words}" if head else ""


def filled_lines(data: bytes) -> int:
    """The lines of some whole lines that are not blank."""
    if b"\n\n" not in data and b"\n\r" not in data and b"\n " not in data and data[:1] not in b"\r\n ":
        return data.count(b"\n")
    return sum(map(bool, map(bytes.strip, data.split(b"\n"))))
