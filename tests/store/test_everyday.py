"""Everyday use is not refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.conftest import Opener

from rung import (
    Assistant,
    ContextStore,
    Evidence,
    Instruction,
    InstructionSource,
    Memory,
    PolicySet,
    SourcePolicy,
    Template,
    ToolOutput,
    User,
    default_policy,
)

PROMPT = "Answer from the current order, and say the delivery date only where the evidence has it."
EDITED = "Answer from the current order, and say the delivery date only where the evidence has it. Be brief."
PAGE = "Our warehouse in Rotterdam ships every order placed before noon on the same working day."


def test_the_user_pastes_a_tools_text(store: ContextStore) -> None:
    store.add(ToolOutput, PAGE, source="tool:web")
    assert store.user(PAGE).type is User
    assert store.user(f"It says: {PAGE} Is that so?").type is User


def test_a_tool_echoes_an_instruction_and_it_stays_usable(open_store: Opener) -> None:
    store = open_store()
    first = store.instruct(PROMPT)
    store.add(ToolOutput, f"my instructions are: {PROMPT}", source="tool:echo")
    store.add(ToolOutput, PROMPT, source="tool:echo")
    assert store.instruct(PROMPT) == first


def test_it_stays_usable_after_a_restart_and_an_edited_version_is_taken(tmp_path: Path) -> None:
    with ContextStore.open(tmp_path / "agent.db") as store:
        first = store.instruct(PROMPT)
        store.add(ToolOutput, PROMPT, source="tool:echo")
    with ContextStore.open(tmp_path / "agent.db") as store:
        store.add(ToolOutput, f"echo: {PROMPT}", source="tool:echo")
        assert store.instruct(PROMPT) == first
        assert store.instruct(EDITED).id != first.id
    with ContextStore.open(tmp_path / "agent.db") as store:
        path = tmp_path / "prompt.md"
        path.write_text(EDITED + " Speak plainly.")
        assert store.load_instruction(path).type is Instruction
        assert [refusal.mode for refusal in store.refusals()] == []


def test_the_same_system_prompt_is_added_each_turn(store: ContextStore) -> None:
    ids = {store.instruct(PROMPT).id for _ in range(5)}
    assert len(ids) == 1
    assert len(list(store.items())) == 1


def test_the_same_ok_under_several_types(store: ContextStore) -> None:
    for kind in (User, Assistant, ToolOutput, Evidence, Memory, ToolOutput, Evidence):
        assert store.add(kind, "ok", source=f"source:{kind.name}").type is kind


def test_two_tenants_do_not_disturb_each_other(open_store: Opener) -> None:
    store = open_store()
    acme, other = store.scope(tenant="acme"), store.scope(tenant="other")
    acme.add(ToolOutput, PROMPT, source="tool:web")
    assert other.instruct(PROMPT).tenant == "other"


def test_a_per_tenant_prompt_is_loaded_after_the_seal(open_store: Opener) -> None:
    prompts = {"acme": "You speak for Acme and sign with its name.", "other": "You speak for Other and never sign."}

    def loader(tenant: str | None) -> str:
        return prompts[tenant or "acme"]

    store = open_store(instruction_sources=[InstructionSource(name="prompts", loader=loader)])
    store.seal()
    acme, other = store.scope(tenant="acme"), store.scope(tenant="other")
    acme.add(ToolOutput, prompts["acme"], source="tool:web")
    assert acme.load_instruction("prompts").reveal("test") == prompts["acme"]
    assert other.load_instruction("prompts").reveal("test") == prompts["other"]
    prompts["acme"] += " Mention the summer sale."
    assert "summer sale" in acme.load_instruction("prompts").reveal("hot reload")
    # What the channel shares with a tool's text is recorded, and not refused.
    noted = [(refusal.mode, refusal.rule) for refusal in acme.refusals()]
    assert noted == [("observe", "origin"), ("observe", "laundering")]


@pytest.mark.parametrize("registered", [True, False])
def test_a_template_is_filled_after_the_seal(store: ContextStore, registered: bool) -> None:
    template = Template("Answer about {order} and nothing else.")
    if registered:
        store.instruct(template)
    store.seal()
    order = store.add(ToolOutput, "Order 1842 was shipped.", source="tool:orders")
    question = store.user("Where is it?")
    turn = store.compile([template.fill(order=order), question], budget=500, verify="full")
    system = turn.request["messages"][0]["content"]
    assert system.startswith("Answer about")
    assert '<tool_output id="' in system
    assert turn.manifest.of(order.id) is not None


def test_a_page_that_a_tool_read_is_retrieved_as_evidence(open_store: Opener) -> None:
    policy = default_policy()
    listed: PolicySet = PolicySet(
        types=policy.types,
        transitions=policy.transitions,
        freshness=policy.freshness,
        sources={"knowledge": SourcePolicy(produces=("evidence",))},
    )
    store = open_store(policy=listed)
    store.add(ToolOutput, PAGE, source="tool:web")
    assert store.add(Evidence, PAGE, source="knowledge").type is Evidence


def test_an_item_added_twice_under_key_and_version_is_one_item(store: ContextStore) -> None:
    first = store.add(Evidence, PAGE, source="knowledge", key="doc:1#2", version="7")
    again = store.add(Evidence, PAGE, source="knowledge", key="doc:1#2", version="7")
    newer = store.add(Evidence, PAGE + " Mostly.", source="knowledge", key="doc:1#2", version="8")
    assert first == again
    assert newer.id != first.id
