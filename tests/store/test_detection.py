"""Secrets and personal data at ingestion: labelled, redacted or refused, as the source's policy says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung import ContextStore, ContextTypeError, Memory, PolicySet, Sensitivity, SourcePolicy, Summary, ToolOutput
from rung.ledger.detection import Find, detect, redacted
from rung.policy.load import default_policy

# Made up, and put together here so that no scanner takes this file for a leak.
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
AWS = "AKIA" + "QWERTYUIOPASDFGH"
FOUND = {
    "github": (f"token {GITHUB} in the config", "secret", "github_token"),
    "aws": (f"key={AWS}", "secret", "aws_access_key"),
    "private key": ("-----BEGIN RSA PRIVATE KEY-----\nx", "secret", "private_key"),
    "password": ('password = "hunter2hunter2"', "secret", "secret_keyword"),
    "email": ("write to jo.doe@example.org, please", "personal", "email"),
    "iban": ("pay to DE89 3704 0044 0532 0130 00 today", "personal", "iban"),
    "card": ("card 4111 1111 1111 1111 was charged", "personal", "card"),
    "phone": ("call +49 30 901820 at noon", "personal", "phone"),
}
CLEAN = ("Order 1842 was shipped on 2026-03-04.", "version 4.1.1.1", "DE89 is a code", "4111 1111 1111 1112", "a@b", "")


def store_with(**rules: Any) -> ContextStore:
    base = default_policy()
    return ContextStore(
        PolicySet(
            types=base.types,
            transitions=base.transitions,
            freshness=base.freshness,
            sources={"tool:x": SourcePolicy(**rules)},
        )
    )


@pytest.mark.parametrize("name", FOUND)
def test_each_kind_is_found_where_it_stands(name: str) -> None:
    text, family, kind = FOUND[name]
    found = detect(text)
    assert [(find.family, find.kind) for find in found] == [(family, kind)]
    assert text[found[0].start : found[0].end] not in redacted(text, found)


@pytest.mark.parametrize("text", CLEAN)
def test_ordinary_text_holds_nothing(text: str) -> None:
    assert detect(text) == []


def test_off_by_default() -> None:
    item = ContextStore().add(ToolOutput, FOUND["github"][0], source="tool:x")
    assert item.attr("detected") is None
    assert item.sensitivity == Sensitivity.INTERNAL


@pytest.mark.parametrize(("name", "level"), [("github", Sensitivity.RESTRICTED), ("email", Sensitivity.PERSONAL)])
def test_label_raises_the_sensitivity_and_it_carries_over(name: str, level: Sensitivity) -> None:
    store = store_with(detect="label")
    item = store.add(ToolOutput, FOUND[name][0], source="tool:x")
    assert item.sensitivity == level
    assert item.attr("detected") == f"1 {FOUND[name][2]}"
    summary = store.transform(item, to=Summary, content="shorter")
    assert summary.sensitivity == level


def test_redact_keeps_the_value_out_of_the_store() -> None:
    store = store_with(detect="redact")
    item = store.add(ToolOutput, {"note": f"use {GITHUB}", "to": "jo.doe@example.org"}, source="tool:x")
    text = item.reveal("test")
    assert text == '{"note":"use [github_token redacted]","to":"[email redacted]"}'
    assert item.media_type == "application/json"
    number = store.add(ToolOutput, {"card": 4111111111111111}, source="tool:x")
    assert number.reveal("test") == '{"card":[card redacted]}'
    assert number.media_type == "text/plain"


def test_refuse_keeps_the_item_out_and_says_what_it_held() -> None:
    store = store_with(detect="refuse")
    with pytest.raises(ContextTypeError, match="holds 1 github_token and its source's policy refuses") as refused:
        store.add(ToolOutput, FOUND["github"][0], source="tool:x")
    assert GITHUB not in str(refused.value)
    assert list(store.items()) == []
    assert [refusal.rule for refusal in store.refusals()] == ["detection"]
    assert store.add(Memory, FOUND["github"][0], source="another").id


def test_an_application_may_give_its_own_detector() -> None:
    def codeword(text: str) -> list[Find]:
        place = text.find("xyzzy")
        return [] if place < 0 else [Find(family="secret", kind="codeword", start=place, end=place + 5)]

    base = default_policy()
    policy = PolicySet(
        types=base.types,
        transitions=base.transitions,
        freshness=base.freshness,
        sources={"tool:x": SourcePolicy(detect="redact")},
    )
    store = ContextStore(policy, detector=codeword)
    assert store.add(ToolOutput, "say xyzzy now", source="tool:x").reveal("test") == "say [codeword redacted] now"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.sampled_from([text for text, _, _ in FOUND.values()]), st.text(max_size=80))
def test_finds_are_in_order_and_within_the_text(before: str, middle: str, after: str) -> None:
    text = f"{before}\n{middle}\n{after}"
    found = detect(text)
    assert found == detect(text)
    at = 0
    for find in found:
        assert at <= find.start < find.end <= len(text)
        at = find.end
