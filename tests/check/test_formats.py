"""Reports: each format says the same, in the shape that its reader requires."""

import io
import json
import re

import pytest

from rung.check import FORMATS, RULES, Finding, check_source, render, run_check
from rung.errors import InputError

SOURCE = """import requests
def ask(url):
    é = requests.get(url).text
    text = "é" + é
    return SystemMessage(content=text)
"""
FINDINGS = check_source(SOURCE.encode(), "src/a b.py")


def test_a_finding_says_place_reason_mend_and_flow():
    (found,) = FINDINGS
    assert (found.rule, found.place, found.end_line, found.end_col) == ("RUNG102", "src/a b.py:4:12", 4, 19)
    assert found.message == "HTTP response of `requests.get` reaches a system message"
    assert "store.compile" in found.mend
    assert [(step.line, step.col) for step in found.flow] == [(3, 9), (3, 5), (4, 12), (4, 5), (5, 34)]
    with pytest.raises(AttributeError):
        found.rule = "x"


def test_text_starts_each_finding_with_its_place_and_ends_with_the_count():
    lines = render(FINDINGS, "text").splitlines()
    assert lines[0].startswith("src/a b.py:4:12: RUNG102 error: ")
    assert lines[1].startswith("    why:  ")
    assert lines[2].startswith("    mend: ")
    assert lines[-1] == "1 finding in 1 file"
    assert render([], "text") == "no findings\n"


def test_json_holds_every_field():
    document = json.loads(render(FINDINGS, "json"))
    assert document["version"] == 1
    (row,) = document["findings"]
    assert set(row) == {*Finding.__dataclass_fields__, "level"}
    assert row["flow"][0] == {"line": 3, "col": 9, "note": FINDINGS[0].flow[0].note}


def test_sarif_has_what_github_code_scanning_requires():
    """The properties that GitHub's page on SARIF support calls required, and the limits that it states."""
    document = json.loads(render([*FINDINGS, *FINDINGS], "sarif"))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "rung check"
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for rule in driver["rules"]:
        assert rule["name"].isidentifier()
        assert rule["shortDescription"]["text"]
        assert len(rule["shortDescription"]["text"]) <= 1024
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        assert rule["properties"]["precision"] in ("very-high", "high", "medium", "low")
        assert all(isinstance(tag, str) for tag in rule["properties"]["tags"])
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "src/a%20b.py"
        assert set(place["region"]) == {"startLine", "startColumn", "endLine", "endColumn"}
        assert all(number >= 1 for number in place["region"].values())
        assert result["partialFingerprints"]["primaryLocationLineHash"]
        steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
        assert all(step["location"]["physicalLocation"]["region"]["startLine"] >= 1 for step in steps)
        assert all(step["location"]["message"]["text"] for step in steps)
    marks = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(marks)) == len(marks)


def test_a_fingerprint_survives_moved_lines():
    moved = check_source(("# one more line\n" + SOURCE).encode(), "src/a b.py")
    marks = [
        json.loads(render(found, "sarif"))["runs"][0]["results"][0]["partialFingerprints"]
        for found in (FINDINGS, moved)
    ]
    assert marks[0] == marks[1]


def test_github_annotations_are_one_escaped_line_each():
    report = render(check_source(SOURCE.encode(), "a,b:c%.py"), "github")
    assert report.count("\n") == 1
    head = r"::error file=a%2Cb%3Ac%25\.py,line=4,col=12,endLine=4,endColumn=19,title=RUNG102 [^:,]+::HTTP response"
    assert re.match(head, report)


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(InputError, match="`xml` is no format"):
        render([], "xml")


def test_exit_codes(tmp_path, capsys):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text(SOURCE, encoding="utf-8")
    good.write_text("x = 1\n", encoding="utf-8")
    out = io.StringIO()
    assert run_check([bad], out=out) == 1
    assert "RUNG102" in out.getvalue()
    assert run_check([good], "json", out=io.StringIO()) == 0
    assert run_check([tmp_path], "sarif", out=io.StringIO()) == 1
    good.write_text("def broken(:\n", encoding="utf-8")
    assert run_check([good], out=io.StringIO()) == 1
    usage = [
        ([], "text", None),
        ([tmp_path / "no"], "text", None),
        ([good], "xml", None),
        ([good], "text", tmp_path / "no"),
    ]
    for paths, format, config in usage:
        out = io.StringIO()
        assert run_check(paths, format, config, out) == 2
        assert out.getvalue() == ""
        assert capsys.readouterr().err.startswith("rung check: ")


def test_every_format_is_written_without_findings():
    assert {name: bool(render([], name)) for name in FORMATS} == {
        "text": True,
        "json": True,
        "sarif": True,
        "github": False,
    }
