"""Structural truncation: the limit, identity, and what each rule keeps whole."""

from __future__ import annotations

import csv
import io
import json
import time

import pytest

from rung.compiler.truncate import RULES, Cut, truncate
from rung.compiler.truncation_text import fences, marker, unwrap
from rung.errors import InputError
from rung.tokens import CallableTokenizer, TiktokenTokenizer

O200K = TiktokenTokenizer()
CHARACTERS = CallableTokenizer(len, name="characters", exact=True)

LOG = "".join(f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z INFO worker {i} started\n" for i in range(3_000))
CSV = "id,name,note\n" + "".join(f'{i},"n, {i}","two\nlines"\n' for i in range(400))
MARKDOWN_TABLE = "# Orders\n\n| id | total |\n| --- | ---: |\n" + "".join(f"| {i} | {i}.00 |\n" for i in range(400))
BOX = "+----+------+\n| id | name |\n+----+------+\n" + "| 1  | abc  |\n" * 300 + "+----+------+\n"
PSQL = " id | name\n----+------\n" + "  1 | abc\n" * 300 + "(300 rows)\n"
MANUAL = "# Manual\n\nHow to use it.\n\n" + "".join(
    f"## Part {i}\n\nText of part {i}.\n\n```py\n# no heading\nx = {i}\n```\n\n" for i in range(200)
)
ORDERS = {
    "ok": True,
    "total": 500,
    "items": [{"id": i, "name": f"item {i}", "tags": ["a", "b"]} for i in range(500)],
}


def cut(text: str, rule: str, limit: int, **more: str) -> Cut:
    made = truncate(text, rule, limit, O200K, **more)
    assert made.tokens == O200K.count(made.text) <= limit
    return made


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("text", ["", "a", LOG[:500], CSV[:300], '{ "a": [1, 2] }', "a\r\nb\ud800"])
def test_a_text_within_the_limit_stays_as_it_is(rule: str, text: str) -> None:
    made = truncate(text, rule, O200K.count(text), O200K)
    assert (made.text, made.changed, made.fits, made.rule) == (text, False, True, "none")
    assert made.tokens == O200K.count(text)


@pytest.mark.parametrize("rule", RULES)
def test_where_not_even_the_marker_fits_the_result_is_empty_and_says_so(rule: str) -> None:
    made = truncate("word " * 500, rule, 3, O200K)
    assert (made.text, made.fits, made.tokens, made.kept) == ("", False, 0, 0)


def test_the_rule_none_never_cuts() -> None:
    assert not cut(LOG, "none", 2_000).fits


@pytest.mark.parametrize(("rule", "limit"), [("halve", 5), ("head", -1)])
def test_an_unknown_rule_and_a_negative_limit_are_refused(rule: str, limit: int) -> None:
    with pytest.raises(InputError):
        truncate("text", rule, limit, O200K)


def test_head_tail_and_middle_keep_whole_lines_and_count_the_others() -> None:
    lines = LOG.splitlines()
    for rule in ("head", "tail", "middle"):
        made = cut(LOG, rule, 400)
        left, unit = made.left_out
        assert unit == "lines"
        assert made.kept + left == len(lines)
        assert made.text.count(marker(left, unit)) == 1
        shown = [line for line in made.text.splitlines() if not line.startswith("[…")]
        front = {"head": made.kept, "tail": 0}.get(rule, made.text.split("[…")[0].count("\n"))
        assert shown == lines[:front] + lines[len(lines) - (made.kept - front) :]
        assert made.text.endswith("\n")


def test_log_keeps_the_last_whole_lines_under_the_marker() -> None:
    made = cut(LOG, "log", 400)
    first, *rest = made.text.splitlines()
    assert first == marker(3_000 - made.kept, "lines")
    assert rest == LOG.splitlines()[-made.kept :]
    assert made.tokens > 350


def test_a_log_whose_last_line_is_too_long_keeps_its_end_and_names_the_rule() -> None:
    made = cut("start\n" + "x=1 " * 5_000 + "the end", "log", 60)
    assert (made.rule, made.left_out[1]) == ("tail", "characters")
    assert made.text.endswith("the end")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<document source="kb:7">\n', "</document>\n"),
        ('<?xml version="1.0"?>\n<log>\n', "</log>"),
        ("```text\n", "```\n"),
        ("Source: https://example.com/log\nDate: 2026-01-01\n\n", ""),
        ("---\ntitle: Log\n---\n", ""),
        ('<tool_result id="1">\nSource: worker\n', "</tool_result>"),
    ],
)
@pytest.mark.parametrize("rule", ["head", "tail", "middle", "log", "section"])
def test_what_says_where_the_text_came_from_and_what_closes_it_stay(rule: str, opening: str, closing: str) -> None:
    made = cut(opening + LOG + closing, rule, 300)
    assert made.changed
    assert made.text.startswith(opening)
    assert made.text.endswith(closing)
    assert unwrap(made.text)[0] == opening


def test_json_inside_a_wrapper_is_cut_as_json() -> None:
    made = cut(f"<result>\n{json.dumps(ORDERS)}\n</result>", "json", 200)
    assert made.rule == "json"
    assert json.loads(made.text.removeprefix("<result>\n").removesuffix("</result>"))["ok"] is True


@pytest.mark.parametrize("rule", ["head", "tail", "middle"])
@pytest.mark.parametrize("limit", range(30, 90, 7))
def test_fences_stay_in_pairs(rule: str, limit: int) -> None:
    made = cut("Intro.\n\n```py\n" + "x = 1\n" * 200 + "```\n\nDone.\n\n~~~\n" + "y\n" * 99 + "~~~\n", rule, limit)
    assert made.text.count("```") % 2 == 0
    assert made.text.count("~~~") % 2 == 0
    assert "[…" in made.text


@pytest.mark.parametrize(
    ("text", "header", "closing", "kind"),
    [
        (CSV, "id,name,note\n", "", "text/csv"),
        (CSV, "id,name,note\n", "", "text/plain"),
        (CSV.replace("two\n", "").replace(",", "\t"), "id\tname\tnote\n", "", "text/tab-separated-values"),
        (MARKDOWN_TABLE, "# Orders\n\n| id | total |\n| --- | ---: |\n", "", "text/markdown"),
        (BOX, "+----+------+\n| id | name |\n+----+------+\n", "+----+------+\n", "text/plain"),
        (PSQL, " id | name\n----+------\n", "(300 rows)\n", "text/plain"),
    ],
)
def test_a_table_keeps_heading_delimiter_and_whole_rows(text: str, header: str, closing: str, kind: str) -> None:
    made = cut(text, "rows", 150, media_type=kind)
    left, unit = made.left_out
    assert (made.rule, unit) == ("rows", "rows")
    assert made.kept > 0
    assert made.kept + left == (300 if text in (BOX, PSQL) else 400)
    assert made.text.startswith(header)
    assert made.text.endswith(closing)
    rows = made.text.removeprefix(header).removesuffix(closing)
    assert text.startswith(header + rows[: rows.index("[…")].removesuffix("| "))


def test_a_cut_csv_still_reads_as_csv_with_the_same_columns() -> None:
    made = cut(CSV, "rows", 150, media_type="text/csv")
    rows = list(csv.reader(io.StringIO(made.text)))
    assert {len(row) for row in rows} == {3}
    assert rows[-1][0] == f"[… {made.left_out[0]} rows left out …]"


def test_a_heading_alone_that_does_not_fit_leaves_nothing() -> None:
    wide = ",".join(f"column{i}" for i in range(500)) + "\n" + "1,2\n" * 50
    assert not cut(wide, "rows", 100, media_type="text/csv").fits


def test_text_that_is_no_table_is_cut_by_sections() -> None:
    assert cut(MANUAL, "rows", 200).rule == "section"


def test_whole_sections_stay_in_order_and_no_fence_is_cut() -> None:
    made = cut(MANUAL, "section", 200)
    left, unit = made.left_out
    assert unit == "sections"
    assert made.kept + left == 201
    assert MANUAL.startswith(made.text[: made.text.index("[…")])
    assert made.text.startswith("# Manual\n")
    assert all(MANUAL.count(made.text[fence.start : fence.end]) == 1 for fence in fences(made.text))


def test_a_first_section_that_is_too_long_keeps_its_heading_and_whole_blocks() -> None:
    text = "# Title\n\n" + "".join(f"- entry {i} of the list\n" for i in range(300)) + "\n# Next\n\nEnd.\n"
    made = cut(text, "section", 80)
    assert made.left_out[1] == "blocks"
    assert made.text.startswith("# Title\n\n- entry 0 of the list\n")
    assert made.text.split("[…")[0].endswith(" of the list\n")


def test_a_fence_that_is_too_long_is_left_out_whole() -> None:
    made = cut("# Code\n\n```py\n" + "x = 1\n" * 500 + "```\n", "section", 60)
    assert made.text == "# Code\n\n[… 1 block left out …]\n"
    assert not cut("```py\n" + "x = 1\n" * 500 + "```\n\n```\ny\n```\n", "section", 60).fits


def test_a_table_in_a_section_is_cut_between_rows_and_keeps_its_delimiter_row() -> None:
    made = cut(MARKDOWN_TABLE, "section", 90)
    body = made.text.split("[…")[0]
    assert MARKDOWN_TABLE.startswith(body)
    assert body.endswith(".00 |\n")


def test_open_elements_of_cut_html_are_closed() -> None:
    parts = "".join(f"<section><h2>S{i}</h2><p>text {i}</p></section>" for i in range(300))
    made = cut(f"<main><div>{parts}</div></main>x", "section", 90, media_type="text/html; charset=utf-8")
    for name in ("main", "div", "section", "h2"):
        assert made.text.count(f"<{name}>") == made.text.count(f"</{name}>")


def test_an_array_ends_with_the_count_of_what_was_left_out() -> None:
    made = cut(json.dumps(list(range(1_000))), "json", 60)
    *shown, last = json.loads(made.text)
    assert shown == list(range(made.kept))
    assert last == {"$omitted": 1_000 - made.kept}
    assert made.left_out == (1_000 - made.kept, "elements")


def test_the_largest_array_is_cut_and_scalars_stay() -> None:
    value = json.loads(cut(json.dumps(ORDERS), "json", 120).text)
    assert (value["ok"], value["total"]) == (True, 500)
    assert value["items"][:2] == ORDERS["items"][:2]  # type: ignore[index]
    assert value["items"][-1] == {"$omitted": 500 - len(value["items"]) + 1}


def test_long_strings_are_cut_to_equal_shares_before_elements_go() -> None:
    hits = [{"id": i, "text": f"hit {i} " + "lorem ipsum " * 400} for i in range(5)]
    made = cut(json.dumps(hits), "json", 500)
    value = json.loads(made.text)
    assert [hit["id"] for hit in value] == [0, 1, 2, 3, 4]
    assert all(hit["text"].endswith("characters left out …]") for hit in value)
    assert made.left_out[1] == "characters"
    assert made.tokens > 400


def test_an_object_of_many_members_says_how_many_went() -> None:
    value = json.loads(cut(json.dumps({f"k{i}": i for i in range(500)} | {"$omitted": 1}), "json", 60).text)
    assert value["k0"] == 0
    assert value["$$omitted"] + len(value) - 1 == 501


def test_json_that_fits_without_its_white_space_loses_nothing() -> None:
    made = cut(json.dumps(ORDERS, indent=8), "json", O200K.count(json.dumps(ORDERS)))
    assert json.loads(made.text) == ORDERS
    assert made.left_out[0] == 0


@pytest.mark.parametrize(
    "text", ["{'a': 1} " * 200, "[1, 2, NaN]" * 100, "[" * 5_000 + "]" * 5_000, "[1e400]" + " " * 9_000]
)
def test_what_is_no_json_is_cut_in_the_middle_and_says_so(text: str) -> None:
    assert cut(text, "json", 60).rule == "middle"


def test_numbers_keep_their_digits() -> None:
    made = cut(json.dumps([123456789012345678901234567890, 0.1] + ["x"] * 400), "json", 60)
    assert made.text.startswith('[123456789012345678901234567890,0.1,"x"')


def test_a_log_of_megabytes_is_capped_at_head_and_tail_in_no_time() -> None:
    """Case d-tool-output-size-01."""
    body = "2026-01-01T00:00:00Z INFO worker started id=42\n" * 90_000
    start = time.process_time()
    made = cut(body, "middle", 2_000)
    assert time.process_time() - start < 3
    assert made.tokens > 1_900
    assert made.left_out == (90_000 - made.kept, "lines")
    head, tail = made.text.split(marker(made.left_out[0], "lines") + "\n")
    assert body.startswith(head)
    assert body.endswith(tail)


def test_the_tokenizer_reads_what_is_kept_and_not_the_rest() -> None:
    read = 0

    class Watching(TiktokenTokenizer):
        __slots__ = ()

        def count(self, text: str) -> int:
            nonlocal read
            read += len(text)
            return TiktokenTokenizer.count(self, text)

    for rule in ("head", "tail", "middle", "log", "rows", "section"):
        read = 0
        truncate(LOG * 30, rule, 1_000, Watching())
        assert read < 60_000, rule


def test_the_same_cap_holds_whatever_the_origin() -> None:
    """Case d-tool-output-size-02: one line of markup without a newline."""
    made = [cut("<div>row</div>" * 60_000, "middle", 2_000) for _ in ("builtin", "mcp")]
    assert made[0] == made[1]
    assert made[0].tokens > 1_900
    head, _, tail = made[0].text.split("\n")
    assert head.rfind(">") > head.rfind("<")
    assert tail.find("<") < tail.find(">")


@pytest.mark.parametrize("limit", range(21))
@pytest.mark.parametrize("rule", ["head", "tail", "middle", "log"])
def test_no_emoji_is_halved(rule: str, limit: int) -> None:
    """Case d-encoding-04, with the marker's own length added to each limit."""
    text = "aaaaaaaaa🦊👩‍👩‍👧‍👦bbbbbbbb" * 20
    words = len(marker(len(text), "characters")) + 1
    made = truncate(text, rule, limit + words, CHARACTERS)
    assert len(made.text) <= limit + words
    for part in made.text.split("\n"):
        if not part.startswith("[…"):
            assert part in text
            assert part.strip("ab").startswith(("🦊", "👩‍👩‍👧‍👦")) or not part.strip("ab")
            assert part.count("👩‍👩‍👧‍👦") * 3 == part.count("\u200d")


def test_a_first_result_larger_than_its_source_is_shortened_or_left_out() -> None:
    """Case d-budget-03: 2,500 tokens under a cap of 200."""
    memory = "The customer prefers e-mail. " * 417
    assert O200K.count(memory) > 2_400
    assert cut(memory, "head", 200).tokens > 180
    assert not cut(memory, "none", 200).fits
