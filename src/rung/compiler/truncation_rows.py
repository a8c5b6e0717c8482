"""Cutting tables: the heading rows stay, rows are kept whole from the first on, the rest is counted.

Formats: CSV and TSV (quoted fields may span lines, RFC 4180), Markdown tables, and the tables that `psql`,
`mysql` and the like print.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from rung.compiler.truncation_text import Cutter, Piece, is_table_rule, marker
from rung.tokens import Tokenizer, take_tokens

_PREAMBLE_LINES = 5
_CLOSING_LINES = 3
_SHORT = 300
_WIDEST = 4_000  # characters of a heading row


@dataclass(frozen=True, slots=True)
class Table:
    """Where the rows of a table lie in its text, and how a row that says what was left out is written.

    `ends[0]` is the end of the heading, `ends[n]` the end of row n; `text[ends[-1]:]` closes the table.
    """

    ends: list[int]
    left: str
    right: str
    plain: bool


def cut_rows(text: str, tokenizer: Tokenizer, kind: str) -> Cutter | None:
    """Keep the heading and the first whole rows; None where the text is no table.

    Args:
        text: the table, with at most five lines before it and three behind it.
        tokenizer: what counts.
        kind: the media type: `text/csv` and `text/tab-separated-values` decide, any other is found out.
    """
    table = None
    if kind not in ("text/csv", "text/tab-separated-values"):
        table = _ruled(text)
    table = table or _separated(text, kind)
    if table is None:
        return None
    total = len(table.ends) - 1
    table_text, closing = text[: table.ends[-1]], text[table.ends[-1] :]
    words = _row(table, total)
    reserve = tokenizer.count(f"\n{words}\n{closing}")

    def cut(room: int) -> Piece | None:
        size = len(take_tokens(tokenizer, table_text, max(0, room - reserve)))
        rows = bisect_right(table.ends, size) - 1
        if rows < 0:
            return None
        left = total - rows
        head = text[: table.ends[rows]]
        line = f"{_row(table, left)}\n" if left else ""
        if line and not head.endswith("\n"):
            line = "\n" + line
        done = f"{head}{line}{closing}"
        return Piece(
            text=done if text.endswith("\n") else done.removesuffix("\n"),
            kept=rows,
            left=left,
            unit="rows",
            rule="rows",
        )

    return cut


def _row(table: Table, left: int) -> str:
    return f"{table.left}{marker(left, 'rows', plain=table.plain)}{table.right}"


def _ruled(text: str) -> Table | None:
    """A table with a delimiter row under its heading."""
    lines: list[str] = re.findall(r"[^\n]*\n|[^\n]+", text)
    at = next((i for i, line in enumerate(lines[: _PREAMBLE_LINES + 3]) if is_table_rule(line)), -1)
    if at < 0:
        return None
    if at + 2 < len(lines) and is_table_rule(lines[at + 2]):  # a box: rule, names, rule
        at += 2
    elif at == 0:
        return None
    if "|" not in lines[at - 1] or max(map(len, lines[: at + 1])) > _WIDEST:
        return None
    first, last = at + 1, len(lines)
    while last > first and (len(lines) - last) < _CLOSING_LINES and not _is_row(lines[last - 1]):
        last -= 1
    if not all(_is_row(line) for line in lines[first:last]):
        return None
    if sum(map(len, lines[last:])) > _SHORT:
        return None
    ends = [sum(map(len, lines[:first]))]
    for line in lines[first:last]:
        ends.append(ends[-1] + len(line))
    return Table(ends, "| ", " |", False)


def _is_row(line: str) -> bool:
    return "|" in line and not is_table_rule(line)


_QUOTED = re.compile(r'"[^"]*"')


def _separated(text: str, kind: str) -> Table | None:
    """CSV or TSV: the first record is the heading."""
    first = text[: text.find("\n") + 1] or text
    if kind == "text/tab-separated-values":
        separator = "\t"
    elif kind == "text/csv":
        separator = max(",;\t", key=first.count)
    else:
        separator = max("\t,;|", key=first.count)
        if not first.count(separator):
            return None
    ends = _records(text, quotes=separator != "\t" or kind == "text/csv")
    if kind not in ("text/csv", "text/tab-separated-values") and not _looks_even(text, ends, separator):
        return None
    columns = _QUOTED.sub("", first).count(separator)
    return Table(ends, "", separator * columns, True)


def _records(text: str, *, quotes: bool) -> list[int]:
    """The end of each record; a newline inside double quotes ends none."""
    ends: list[int] = []
    place, odd = 0, False
    whole = quotes and '"' in text
    while place < len(text):
        end = text.find("\n", place) + 1 or len(text)
        if whole and text.count('"', place, end) % 2:
            odd = not odd
        if not odd:
            ends.append(end)
        place = end
    if odd:  # a quote that nothing closes quotes nothing
        return _records(text, quotes=False)
    return ends


def _looks_even(text: str, ends: list[int], separator: str) -> bool:
    """Whether the first records have as many separators each as the heading, quotes aside."""
    counts: list[int] = []
    start = 0
    for end in ends[:20]:
        record = text[start:end]
        if record.strip():
            counts.append(_QUOTED.sub("", record).count(separator))
        start = end
    return len(counts) > 1 and len(set(counts)) == 1
