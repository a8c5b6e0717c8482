from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.errors import ConfigError, InputError
from rung.tokens import (
    FRAMINGS,
    BlockCounter,
    CallableTokenizer,
    Framing,
    TiktokenTokenizer,
    canonical_json,
    count_message,
    count_request,
    count_response_schema,
    count_tool,
    framing_for,
    response_schema,
)

O200K = TiktokenTokenizer()
WORDS = CallableTokenizer(lambda text: len(text.split()), name="words")
TOOL = {
    "type": "function",
    "function": {
        "name": "order_lookup",
        "description": "Looks up an order by its number.",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string", "description": "The number of the order."}},
            "required": ["order_id"],
        },
    },
}
PNG = base64.b64encode(bytes(range(256)) * 40).decode()


def cookbook(messages: list[dict[str, str]]) -> int:
    """The published rule for gpt-4o: 3 a message, 1 a name, every value, 3 for the reply."""
    total = 3
    for message in messages:
        total += 3 + sum(O200K.count(value) for value in message.values()) + ("name" in message)
    return total


def test_plain_messages_cost_what_the_published_rule_says() -> None:
    messages = [
        {"role": "system", "content": "You are a helpful, pattern-following assistant."},
        {"role": "system", "name": "example_user", "content": "New synergies will drive growth."},
        {"role": "user", "content": "This late pivot means we don't have time to boil the ocean."},
    ]
    assert count_request("openai-chat", O200K, {"messages": messages}).total == cookbook(messages)


def test_tool_schemas_cost_at_least_what_the_published_rule_says() -> None:
    function: Any = TOOL["function"]
    published = 7 + O200K.count(f"{function['name']}:{function['description'].rstrip('.')}") + 12
    for name, schema in function["parameters"]["properties"].items():
        published += 3 + 3 + O200K.count(f"{name}:{schema['type']}:{schema['description'].rstrip('.')}")
    counted = count_request("openai-chat", O200K, {"messages": [], "tools": [TOOL]})
    assert counted.total - 3 >= published


CALL_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": (
        "openai-chat",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": "ARGS"}}],
        },
    ),
    "flat": (
        "openai-chat",
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "write_file", "arguments": {"body": "ARGS"}}],
        },
    ),
    "openai-responses": (
        "openai-responses",
        {"type": "function_call", "call_id": "c1", "name": "write_file", "arguments": "ARGS"},
    ),
    "anthropic": (
        "anthropic",
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "write_file", "input": {"body": "ARGS"}}],
        },
    ),
    "legacy": (
        "openai-chat",
        {"role": "assistant", "content": None, "function_call": {"name": "write_file", "arguments": "ARGS"}},
    ),
}


@pytest.mark.parametrize(("target", "message"), CALL_FORMS.values(), ids=CALL_FORMS)
def test_names_ids_and_arguments_of_tool_calls_are_counted(target: str, message: dict[str, Any]) -> None:
    def with_(**changes: str) -> int:
        text = json.dumps(message)
        for old, new in changes.items():
            assert old in text or new == "", old
            text = text.replace(old, new)
        return count_message(target, O200K, json.loads(text))

    plain = with_(ARGS="x")
    assert with_(ARGS="lorem " * 6_000) > plain + 5_900
    assert with_(write_file="write_a_file_with_a_long_name", ARGS="x") > plain
    if "c1" in json.dumps(message):
        assert with_(c1="call_0123456789abcdef", ARGS="x") > plain
    assert plain >= framing_for(target).per_message + framing_for(target).per_tool_call + 3


def test_d_token_accounting_01_tool_schemas_have_a_line_of_their_own() -> None:
    # 20 tools of about 90 tokens beside 2,300 tokens of messages
    tools = [{**TOOL, "function": {**TOOL["function"], "description": "word " * 60}}] * 20  # type: ignore[dict-item]
    counted = count_request(
        "openai-chat",
        O200K,
        {
            "messages": [
                {"role": "system", "content": "a " * 300},
                {"role": "user", "content": "b " * 2_000},
            ],
            "tools": tools,
        },
    )
    assert counted.tools >= 20 * 90
    assert counted.total == counted.messages + counted.tools + counted.response_schema + counted.framing
    assert counted.total > 4_100


def test_d_token_accounting_02_a_turn_that_is_only_a_tool_call_costs_its_arguments() -> None:
    arguments = {"path": "a.md", "body": "lorem " * 6_000}
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "name": "write_file", "arguments": arguments}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]
    counted = count_request("openai-chat", O200K, {"messages": messages})
    assert counted.by_message[0] >= O200K.count(canonical_json(arguments)) > 5_000
    assert counted.by_message[1] < 20


MEDIA: dict[str, tuple[str, dict[str, Any], int]] = {
    "chat image": (
        "openai-chat",
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        1445,
    ),
    "chat image, low": (
        "openai-chat",
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        85,
    ),
    "responses image": (
        "openai-responses",
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
        85,
    ),
    "anthropic image": (
        "anthropic",
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        4784,
    ),
}


@pytest.mark.parametrize(("target", "part", "cost"), MEDIA.values(), ids=MEDIA)
def test_media_cost_by_policy_and_never_by_their_length(target: str, part: dict[str, Any], cost: int) -> None:
    base = count_message(target, O200K, {"role": "user", "content": []})
    assert count_message(target, O200K, {"role": "user", "content": [part]}) == base + cost


UNPRICED: dict[str, tuple[str, dict[str, Any]]] = {
    "audio": ("openai-chat", {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}),
    "file": ("openai-chat", {"type": "file", "file": {"file_data": PNG, "filename": "a.pdf"}}),
    "document": (
        "anthropic",
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PNG},
            "title": "Terms",
        },
    ),
    "image": ("text", {"type": "image", "source": {}}),
}


@pytest.mark.parametrize(("kind", "form"), UNPRICED.items(), ids=UNPRICED)
def test_media_without_a_cost_are_an_error_until_one_is_set(kind: str, form: tuple[str, dict[str, Any]]) -> None:
    target, part = form
    message = {"role": "user", "content": [{"type": "text", "text": "see"}, part]}
    with pytest.raises(InputError, match=rf"kind `{kind}` has no token cost .*with_media\({kind}=") as caught:
        count_message(target, O200K, message)
    assert PNG[:20] not in str(caught.value)
    priced = framing_for(target).with_media(**{kind: 700})
    assert 700 <= count_message(priced, O200K, message) < 730


def test_a_text_document_costs_its_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "word " * 500}
    message = {"role": "user", "content": [{"type": "document", "source": source, "title": "Terms"}]}
    assert count_message("anthropic", O200K, message) > 500
    nested = {"type": "content", "content": [{"type": "text", "text": "word " * 500}]}
    message = {"role": "user", "content": [{"type": "document", "source": nested}]}
    assert count_message("anthropic", O200K, message) > 500


def test_tool_results_cost_their_content_in_every_form() -> None:
    text = "total 42 EUR, paid " * 100
    result = {"type": "tool_result", "tool_use_id": "c1"}
    forms: list[tuple[str, dict[str, Any]]] = [
        ("openai-chat", {"role": "tool", "tool_call_id": "c1", "content": text}),
        ("openai-responses", {"type": "function_call_output", "call_id": "c1", "output": text}),
        ("anthropic", {"role": "user", "content": [{**result, "content": text}]}),
        ("anthropic", {"role": "user", "content": [{**result, "content": [{"type": "text", "text": text}]}]}),
    ]
    for target, message in forms:
        rules = framing_for(target)
        floor = O200K.count(text) + O200K.count("c1") + rules.per_message + rules.per_tool_result
        assert floor <= count_message(target, O200K, message) <= floor + 2


def test_encrypted_reasoning_costs_a_quarter_of_its_length() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "A" * 4_000}
    small = count_message("openai-responses", O200K, {**item, "encrypted_content": ""})
    assert count_message("openai-responses", O200K, item) == small + 1_000
    block = {"type": "redacted_thinking", "data": "A" * 4_000}
    empty = count_message("anthropic", O200K, {"role": "assistant", "content": []})
    assert count_message("anthropic", O200K, {"role": "assistant", "content": [block]}) == empty + 1_000
    thought = {"type": "thinking", "thinking": "so it is " * 100, "signature": "A" * 400}
    assert count_message("anthropic", O200K, {"role": "assistant", "content": [thought]}) > empty + 350


def test_cache_markers_and_status_cost_nothing() -> None:
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    }
    assert count_message("anthropic", O200K, plain) == count_message("anthropic", O200K, marked)
    tool = {"name": "t", "input_schema": {"type": "object"}}
    assert count_tool("anthropic", O200K, tool) == count_tool(
        "anthropic", O200K, {**tool, "cache_control": {"type": "ephemeral"}}
    )


def test_fields_nobody_named_are_counted_too() -> None:
    plain = {"role": "user", "content": "hi"}
    assert count_message("openai-chat", O200K, {**plain, "notes": {"a": ["long text"] * 50}}) > 100
    assert count_message("openai-chat", O200K, {**plain, "extra": False, "none": None, "list": []}) == (
        count_message("openai-chat", O200K, plain)
    )


SYSTEMS = {
    "anthropic text": ("anthropic", {"system": "Be brief."}),
    "anthropic blocks": ("anthropic", {"system": [{"type": "text", "text": "Be brief."}]}),
    "instructions": ("openai-responses", {"instructions": "Be brief."}),
}


@pytest.mark.parametrize(("target", "request_"), SYSTEMS.values(), ids=SYSTEMS)
def test_a_system_text_beside_the_messages_counts_as_a_message(target: str, request_: dict[str, Any]) -> None:
    counted = count_request(target, O200K, request_)
    assert counted.by_message == (count_message(target, O200K, {"role": "system", "content": "Be brief."}),)


SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "openai-chat",
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": {"type": "object"}},
            }
        },
    ),
    "responses": (
        "openai-responses",
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}},
    ),
    "anthropic": (
        "anthropic",
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
    ),
    "anthropic, earlier": (
        "anthropic",
        {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
    ),
}


@pytest.mark.parametrize(("target", "request_"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_response_schema_has_a_line_of_its_own(target: str, request_: dict[str, Any]) -> None:
    counted = count_request(target, O200K, request_)
    schema = response_schema(request_)
    assert counted.response_schema == O200K.count(canonical_json(schema)) > 5
    rules = framing_for(target)
    assert counted.total == rules.per_request + count_response_schema(target, O200K, schema)


def test_plain_text_output_is_no_schema() -> None:
    assert response_schema({"response_format": {"type": "text"}, "text": {"format": {"type": "text"}}}) is None
    assert response_schema({"text": "a prompt"}) is None


def test_the_text_target_is_its_text_alone() -> None:
    for key in ("prompt", "text"):
        counted = count_request("text", O200K, {key: "hello world"})
        assert counted.total == counted.messages == O200K.count("hello world")


_text = st.text(max_size=30)
_call = st.builds(
    lambda id, name, arguments: {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    },
    _text,
    _text,
    _text,
)
_message = st.one_of(
    st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "system"]), _text),
    st.builds(lambda calls: {"role": "assistant", "content": None, "tool_calls": calls}, st.lists(_call, max_size=3)),
    st.builds(lambda id, content: {"role": "tool", "tool_call_id": id, "content": content}, _text, _text),
    st.builds(lambda name, content: {"role": "user", "name": name, "content": content}, _text, _text),
)
_tool = st.builds(
    lambda name, about: {"type": "function", "function": {"name": name, "description": about}}, _text, _text
)


@settings(max_examples=60, deadline=None)
@given(messages=st.lists(_message, max_size=6), tools=st.lists(_tool, max_size=3), schema=st.booleans())
@pytest.mark.parametrize("target", FRAMINGS)
def test_the_whole_is_the_sum_of_its_parts(
    target: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]], schema: bool
) -> None:
    rules = framing_for(target)
    request: dict[str, Any] = {"messages": messages, "tools": tools}
    expected = rules.per_request + (rules.tools if tools else 0)
    expected += sum(count_message(rules, O200K, message) for message in messages)
    expected += sum(count_tool(rules, O200K, tool) for tool in tools)
    if schema:
        request["response_format"] = {"type": "json_schema", "json_schema": {"name": "n"}}
        expected += count_response_schema(rules, O200K, request["response_format"])
    counted = count_request(rules, BlockCounter(O200K), request)
    assert counted.total == expected
    assert counted.total == counted.messages + counted.tools + counted.response_schema + counted.framing
    assert sum(counted.by_message) == sum(count_message(rules, O200K, message) for message in messages)


def test_the_count_names_its_counter_and_framing() -> None:
    counted = count_request("anthropic", WORDS, {"messages": []})
    assert (counted.tokenizer, counted.exact, counted.framing_version) == ("words", False, "anthropic/1")


def test_every_framing_names_its_source_and_its_conventions() -> None:
    fields = set(Framing.__struct_fields__)
    for name, framing in FRAMINGS.items():
        assert framing.name == name
        assert framing.source
        assert set(framing.conventions) <= fields
        hash(framing)
    assert framing_for("openai-chat").replace(per_message=4).per_message == 4
    with pytest.raises(ConfigError, match="no framing for target `gemini`"):
        framing_for("gemini")


def test_what_is_not_json_is_an_error() -> None:
    with pytest.raises(InputError, match="`dict` is not JSON"):
        canonical_json({"a": Path("x")})
    assert canonical_json({"b": "é", "a": 1}) == '{"a":1,"b":"é"}'
