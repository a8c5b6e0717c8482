"""Named snippets: what is found, by rule, and what is not."""

from pathlib import Path

import pytest

from rung.check import RULES, check_source

CASES = Path(__file__).parent / "cases"


def table(name: str) -> list[tuple[str, tuple[str, ...], str]]:
    rows: list[tuple[str, tuple[str, ...], str]] = []
    for part in (CASES / name).read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, body = part.partition("\n")
        title, _, rules = head.partition(" | ")
        rows.append((title, tuple(rules.split()), body))
    return rows


FOUND = table("found.txt")
CLEAN = table("clean.txt")


@pytest.mark.parametrize(("title", "rules", "body"), FOUND, ids=[row[0] for row in FOUND])
def test_untrusted_text_is_found_where_it_becomes_an_instruction(title, rules, body):
    findings = check_source(body.encode(), "case.py")
    assert tuple(found.rule for found in findings) == rules, "\n".join(map(str, findings))


@pytest.mark.parametrize(("title", "rules", "body"), CLEAN, ids=[row[0] for row in CLEAN])
def test_ordinary_code_is_left_alone(title, rules, body):
    assert check_source(body.encode(), "case.py") == []


def test_both_tables_are_large_and_their_titles_differ():
    assert len(FOUND) >= 60
    assert len(CLEAN) >= 60
    titles = [row[0] for row in FOUND + CLEAN]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.id not in ("RUNG001",)], ids=lambda r: r.id)
def test_the_examples_of_a_rule_are_true(rule):
    imports = b"from rung import *\nfrom rung import ContextItem, ToolOutput, Evidence, ContextStore, Template\n"
    imports += b"import requests\nfrom pathlib import Path\n"
    if rule.kind == "custom":
        return
    assert rule.id in [found.rule for found in check_source(imports + rule.bad.encode(), "bad.py")]
    assert check_source(imports + rule.good.encode(), "good.py") == []


def test_every_rule_that_reads_code_has_a_case():
    covered = {rule for _, rules, _ in FOUND for rule in rules}
    assert set(RULES) - covered == {"RUNG001", "RUNG108"}
