"""Each rule finds its fault, with its place, in anybody's request, and a sound request has no findings."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.assembly.validate import check, validate
from rung.errors import ConfigError, RequestError

CHAT: dict[str, Any] = {
    "model": "gpt-x",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "user", "content": "v"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}},
}
RESPONSES: dict[str, Any] = {
    "input": [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}],
    "text": {"format": {"type": "json_schema", "name": "r", "schema": {"type": "object"}}},
}
ANTHROPIC: dict[str, Any] = {
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "c2ln"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "text", "text": "v"}],
        },
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
}
SOUND = {"openai-chat": CHAT, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "text": {"prompt": "p"}}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_request_has_no_findings(name: str) -> None:
    assert validate(SOUND[name], name) == []
    check(SOUND[name], name)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA"}}
MANY = [{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object"}}} for i in range(129)]
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
MARK = {"type": "ephemeral"}

# target, where to put what (a path), the value, and the finding: its place and its rule
FAULTS: list[tuple[str, str, Any, str, str]] = [
    ("openai-chat", "messages", [], "messages", "shape"),
    ("openai-chat", "messages.0", "text", "messages[0]", "shape"),
    ("openai-chat", "messages.0.role", "robot", "messages[0].role", "role"),
    ("openai-chat", "messages.0.content", None, "messages[0].content", "content_required"),
    ("openai-chat", "messages.1.content", [], "messages[1].content", "content_required"),
    ("openai-chat", "messages.1.content", 3, "messages[1].content", "shape"),
    ("openai-chat", "messages.1.name", "a b", "messages[1].name", "participant_name"),
    ("openai-chat", "messages.1.content.0", IMAGE, "messages[1].content[0].image_url.url", "media_shape"),
    ("openai-chat", "messages.1.content.0", {"type": "input_audio"}, "messages[1].content[0]", "media_shape"),
    ("openai-chat", "messages.1.content.0", {"type": "file"}, "messages[1].content[0]", "media_shape"),
    ("openai-chat", "messages.0.content", [IMAGE], "messages[0].content[0]", "part_type"),
    ("openai-chat", "messages.1.tool_calls", [CALL], "messages[1].tool_calls", "calls_role"),
    ("openai-chat", "messages.2.tool_calls", [], "messages[2].tool_calls", "calls_empty"),
    ("openai-chat", "messages.2.tool_calls.0.id", "x" * 41, "messages[2].tool_calls[0].id", "call_id"),
    ("openai-chat", "messages.2.tool_calls.0.type", "x", "messages[2].tool_calls[0].type", "shape"),
    ("openai-chat", "messages.2.tool_calls.1.id", "a", "messages[2].tool_calls[1].id", "call_id_duplicate"),
    (
        "openai-chat",
        "messages.2.tool_calls.0.function.name",
        "multi.tool",
        "messages[2].tool_calls[0].function.name",
        "tool_name",
    ),
    (
        "openai-chat",
        "messages.2.tool_calls.0.function.arguments",
        {},
        "messages[2].tool_calls[0].function.arguments",
        "arguments_text",
    ),
    ("openai-chat", "messages.3.tool_call_id", "zz", "messages[3].tool_call_id", "result_orphan"),
    ("openai-chat", "messages.3.tool_call_id", "zz", "messages[2].tool_calls[1]", "call_unanswered"),
    ("openai-chat", "messages.4.tool_call_id", "b", "messages[4].tool_call_id", "result_duplicate"),
    ("openai-chat", "messages.4.tool_call_id", None, "messages[4].tool_call_id", "result_call_id"),
    ("openai-chat", "messages.4", {"role": "user", "content": "x"}, "messages[2].tool_calls[0]", "call_unanswered"),
    ("openai-chat", "tools", MANY, "tools", "tool_count"),
    ("openai-chat", "tools.0.function.name", "a.b", "tools[0].function.name", "tool_name"),
    ("openai-chat", "tools.0.function.description", "x" * 1025, "tools[0].function.description", "tool_description"),
    ("openai-chat", "tools.0.function.parameters", {"type": "array"}, "tools[0].function.parameters", "schema_object"),
    ("openai-chat", "tools.0.function.parameters", [], "tools[0].function.parameters", "schema_object"),
    ("openai-chat", "tools.0", {"type": "function"}, "tools[0].function", "shape"),
    ("openai-chat", "response_format.json_schema.name", "a b", "response_format.json_schema.name", "schema_name"),
    ("openai-chat", "response_format.json_schema", 1, "response_format.json_schema", "shape"),
    ("openai-chat", "messages.0.content", "a\ud83db", "messages[0].content", "encoding"),
    ("openai-responses", "input", None, "input", "shape"),
    ("openai-responses", "input.0.role", "tool", "input[0].role", "role"),
    ("openai-responses", "input.0.content", None, "input[0].content", "content_required"),
    ("openai-responses", "input.3.content.0.type", "text", "input[3].content[0]", "part_type"),
    ("openai-responses", "input.1", {"type": "reasoning"}, "input[1]", "opaque_changed"),
    ("openai-responses", "input.2", {"role": "user", "content": "x"}, "input[1]", "reasoning_follower"),
    ("openai-responses", "input.2.call_id", "x" * 65, "input[2].call_id", "call_id"),
    ("openai-responses", "input.2.call_id", "q", "input[4].call_id", "result_orphan"),
    ("openai-responses", "input.4.call_id", "q", "input[2]", "call_unanswered"),
    ("openai-responses", "input.4.call_id", None, "input[4].call_id", "result_call_id"),
    (
        "openai-responses",
        "input.3",
        {"type": "function_call_output", "call_id": "a", "output": ""},
        "input[4].call_id",
        "result_duplicate",
    ),
    ("openai-responses", "input.4.output", None, "input[4].output", "shape"),
    ("openai-responses", "tools.0.name", "", "tools[0].name", "tool_name"),
    ("openai-responses", "text.format.name", None, "text.format.name", "schema_name"),
    ("anthropic", "messages", [], "messages", "shape"),
    ("anthropic", "system.0.text", " ", "system[0].text", "text_empty"),
    ("anthropic", "system.0.type", "image", "system[0]", "part_type"),
    ("anthropic", "messages.0.role", "tool", "messages[0].role", "role"),
    ("anthropic", "messages.0.role", "assistant", "messages[0]", "first_user"),
    ("anthropic", "messages.0.role", "assistant", "messages[1]", "alternation"),
    ("anthropic", "messages.0.role", "system", "messages[0]", "system_position"),
    ("anthropic", "messages.0.content", "", "messages[0].content", "text_empty"),
    ("anthropic", "messages.0.content", [], "messages[0].content", "content_required"),
    ("anthropic", "messages.1.content.0.signature", None, "messages[1].content[0].signature", "opaque_changed"),
    (
        "anthropic",
        "messages.1.content.0",
        {"type": "redacted_thinking"},
        "messages[1].content[0].data",
        "opaque_changed",
    ),
    ("anthropic", "messages.1.content.1.id", "a.b", "messages[1].content[1].id", "call_id"),
    ("anthropic", "messages.1.content.1.name", "a b", "messages[1].content[1].name", "tool_name"),
    ("anthropic", "messages.1.content.1.input", "{}", "messages[1].content[1].input", "arguments_object"),
    ("anthropic", "messages.1.content.0", USE, "messages[1].content[1].id", "call_id_duplicate"),
    ("anthropic", "messages.2.content.0.tool_use_id", "q", "messages[2].content[0].tool_use_id", "result_orphan"),
    ("anthropic", "messages.2.content.0.tool_use_id", "q", "messages[1].content[1]", "call_unanswered"),
    ("anthropic", "messages.2.content.0.tool_use_id", "", "messages[2].content[0].tool_use_id", "result_call_id"),
    (
        "anthropic",
        "messages.2.content",
        [{"type": "text", "text": "here is the output"}, RESULT],
        "messages[2].content[1]",
        "result_first",
    ),
    ("anthropic", "messages.2.content", [RESULT, RESULT], "messages[2].content[1].tool_use_id", "result_duplicate"),
    ("anthropic", "messages.2.content.1.text", "\n", "messages[2].content[1].text", "text_empty"),
    ("anthropic", "messages.2.content.1", USE, "messages[2].content[1]", "part_type"),
    ("anthropic", "messages.2.content.1", {"type": "image"}, "messages[2].content[1].source", "media_shape"),
    ("anthropic", "messages.3", {"role": "assistant", "content": "x "}, "messages[3].content", "prefill_whitespace"),
    (
        "anthropic",
        "messages.3",
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]},
        "messages[3].content[0]",
        "thinking_last",
    ),
    ("anthropic", "tools.0.name", "x" * 65, "tools[0].name", "tool_name"),
    ("anthropic", "tools.0.input_schema", None, "tools[0].input_schema", "schema_object"),
    ("anthropic", "tools.1", {"name": "f", "input_schema": {"type": "object"}}, "tools[1]", "tool_duplicate"),
    (
        "anthropic",
        "system",
        [{"type": "text", "text": "s", "cache_control": MARK}] * 5,
        "system[4]",
        "marker_count",
    ),
    (
        "anthropic",
        "messages.1.content.0.cache_control",
        MARK,
        "messages[1].content[0].cache_control",
        "marker_place",
    ),
    ("text", "prompt", None, "prompt", "shape"),
]


def broken(name: str, path: str, value: Any) -> dict[str, Any]:
    request: Any = copy.deepcopy(SOUND[name])
    where = request
    *steps, final = path.split(".")
    for step in steps:
        where = where[int(step)] if step.isdigit() else where[step]
    if final.isdigit() and int(final) == len(where):
        where.append(value)
    else:
        where[int(final) if final.isdigit() else final] = value
    return request  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "path", "value", "place", "rule"), FAULTS, ids=[f"{row[0]}-{row[4]}-{row[3]}" for row in FAULTS]
)
def test_a_fault_is_found_at_its_place(name: str, path: str, value: Any, place: str, rule: str) -> None:
    request = broken(name, path, value)
    found = {(problem.place, problem.rule) for problem in validate(request, name)}
    assert (place, rule) in found
    with pytest.raises(RequestError) as refused:
        check(request, name)
    assert refused.value.problems
    assert all(problem.what and problem.mend for problem in refused.value.problems)


JUNK: list[Any] = [None, 0, "", "x", [], {}, [None], [[]], {"role": []}, {"type": {}}, [{"type": "tool_use"}], True]


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("key", ["messages", "input", "system", "tools", "response_format", "text", "output_config"])
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_no_shape_of_a_request_breaks_the_rules_themselves(name: str, key: str, junk: Any) -> None:
    validate({**SOUND[name], key: junk}, name)
    validate({**SOUND[name], key: [junk, {"role": "user", "content": junk}, {"type": junk}]}, name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["user", "tool_use", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "type", "content", "id", "source", "tool_use_id", "name"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", SOUND)
@settings(max_examples=100)
@given(messages=st.lists(JSON, max_size=4), tools=JSON)
def test_any_json_is_judged_without_an_error_of_its_own(name: str, messages: list[Any], tools: Any) -> None:
    validate({"messages": messages, "input": messages, "system": tools, "tools": tools, "text": tools}, name)


def test_an_unknown_target_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="anthropic"):
        validate({}, "gemini")


def test_findings_hold_no_content() -> None:
    secret = "canary-5521"
    request = broken("anthropic", "messages.1.content.1.input", secret)
    request["messages"][0] = {"role": secret, "content": [{"type": secret}, secret]}
    assert secret not in "".join(str(problem) for problem in validate(request, "anthropic"))


def test_the_documentation_gives_the_source_of_each_rule() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "assembly.md").read_text(encoding="utf-8")
    source = Path(__file__).parents[2] / "src" / "rung" / "assembly"
    rules = {
        rule
        for module in ("problems.py", "rules.py", "rules_openai.py", "rules_anthropic.py")
        for rule in re.findall(r'refused\(\s*[^,]+,\s*"([a-z_]+)"', source.joinpath(module).read_text(encoding="utf-8"))
    }
    assert len(rules) > 25
    assert {rule for rule in rules if f"`{rule}`" not in page} == set()
