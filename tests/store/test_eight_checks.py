"""The eight checks of the original idea, through the public API."""

from __future__ import annotations

import pytest

from rung import ContextStore, ContextTypeError, Evidence, Instruction, Memory, ToolOutput, TransformError

ORDER = {"ok": True, "order": {"id": 1842, "state": "shipped", "payment": {"status": "failed"}}}


def test_evidence_is_registered_with_its_type(store: ContextStore) -> None:
    item = store.add(Evidence, "Refunds take five working days.", source="handbook")
    assert item.type is Evidence
    assert item.source == "handbook"
    assert store.get(item.id) == item


def test_evidence_does_not_become_an_instruction(store: ContextStore) -> None:
    item = store.add(Evidence, "Refunds take five working days.", source="handbook")
    with pytest.raises(ContextTypeError, match="evidence cannot be inserted into instruction context") as refused:
        store.promote(item, Instruction)
    assert item.id in str(refused.value)


def test_a_memory_stays_unchanged_beside_a_current_value(store: ContextStore) -> None:
    memory = store.add(Memory, "Order 1842 is in the warehouse.", source="memory", key="order:1842")
    before = store.get(memory.id)
    store.promote(store.add(ToolOutput, ORDER, source="tool:orders", key="order:1842"), Evidence)
    assert store.get(memory.id) == before == memory


def test_the_current_value_is_promoted_with_visible_lineage(store: ContextStore) -> None:
    order = store.add(ToolOutput, ORDER, source="tool:orders")
    evidence = store.promote(order, Evidence)
    assert evidence.type is Evidence
    assert evidence.derived_from == (order.id,)
    assert evidence.via == "promote:envelope,size"
    assert store.ancestors(evidence) == [order]
    assert store.descendants(order) == [evidence]


def test_both_are_distinct_items(store: ContextStore) -> None:
    order = store.add(ToolOutput, ORDER, source="tool:orders")
    evidence = store.promote(order, Evidence)
    assert order.id != evidence.id
    assert order.digest != evidence.digest
    assert order.reveal("compared") == evidence.reveal("compared")


def test_tool_output_does_not_become_an_instruction(store: ContextStore) -> None:
    order = store.add(ToolOutput, ORDER, source="tool:orders")
    message = (
        f"tool_output cannot be inserted into instruction context "
        f"(content first registered as tool_output, id={order.id})"
    )
    with pytest.raises(ContextTypeError) as refused:
        store.promote(order, Instruction)
    assert str(refused.value) == message
    with pytest.raises(ContextTypeError) as refused:
        store.add(Instruction, order.reveal("test"), source="system")
    assert str(refused.value) == message


def test_the_source_item_is_unaffected_by_the_refusal(store: ContextStore) -> None:
    order = store.add(ToolOutput, ORDER, source="tool:orders")
    before = list(store.items())
    with pytest.raises(ContextTypeError):
        store.promote(order, Instruction)
    assert list(store.items()) == before == [order]
    assert store.promote(order, Evidence).derived_from == (order.id,)


FAILED = {
    "isError": {"isError": True, "content": []},
    "error": {"error": "no such order"},
    "error object": {"error": {"code": 5}},
    "ok false": {"ok": False},
    "success false": {"success": False, "data": None},
    "http status": {"status_code": 503},
    "status number": {"status": 404},
    "status word": {"status": "failed"},
    "status words": {"status": "Timed out"},
    "prose status": "Status: failed. No delivery date available.",
    "prose error": "Error: connection refused",
    "prose traceback": "Traceback (most recent call last):\n  File x\nValueError: no order",
    "prose last line": "looking up order\nstep 1\nstep 2\nstep 3\nstep 4\nstep 5\nKeyError: 'order'",
    "prose http": "HTTP/1.1 500 Internal Server Error",
    "prose bare http": "503 Service Unavailable",
    "prose request": "The request timed out.",
    "prose unable": "Unable to reach the order service",
    "markdown": "**Error:** no such order",
    "empty": "   ",
}

SUCCEEDED = {
    "payment failed": {"order": {"id": 1842, "payment": {"status": "failed", "error": "declined"}}},
    "no errors": "0 errors found",
    "no errors in prose": "No errors found in 12 files.",
    "error null": {"error": None, "order": 1},
    "error empty": {"error": "", "order": 1},
    "ok": {"ok": True, "status": "shipped"},
    "status 200": {"status": 200},
    "a list": [{"error": "an old one"}, {"id": 2}],
    "a story about failure": "The order was delivered after the first attempt failed on Monday.",
    "an article on errors": "How error handling works in our shop: see chapter 4.",
    "a number": "42",
    "unable inside": "The courier says the customer was unable to sign, and left it with a neighbour.",
}


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_result_is_not_promoted(store: ContextStore, name: str) -> None:
    item = store.add(ToolOutput, FAILED[name], source="tool:shipping_api")
    with pytest.raises(TransformError, match="tool output from 'tool:shipping_api' failed validation") as refused:
        store.promote(item, Evidence)
    assert refused.value.failures[0].validator == "envelope"
    assert list(store.items()) == [item]


@pytest.mark.parametrize("name", SUCCEEDED)
def test_a_successful_result_is_promoted(store: ContextStore, name: str) -> None:
    item = store.add(ToolOutput, SUCCEEDED[name], source="tool:orders")
    assert store.promote(item, Evidence).derived_from == (item.id,)


def test_the_refusal_of_a_failed_result_quotes_it(store: ContextStore) -> None:
    item = store.add(ToolOutput, "Status: failed. No delivery date available.", source="tool:shipping_api")
    with pytest.raises(TransformError) as refused:
        store.promote(item, Evidence)
    assert str(refused.value) == (
        "tool output from 'tool:shipping_api' failed validation and cannot become evidence: "
        "'Status: failed. No delivery date available.'"
    )
