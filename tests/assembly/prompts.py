"""Prompts for these tests: one with a text in every field, and strategies over all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.assembly.breakouts import BREAKOUTS

from rung.assembly.messages import Block, Message, Prompt, ToolSchema
from rung.records.item import Media, Opaque, ToolCall

TARGETS = ("openai-chat", "openai-responses", "anthropic", "text")

SCHEMA = '{"additionalProperties":false,"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"}'


def everywhere(text: str) -> Prompt:
    """A whole turn with `text` in every field that text of others can reach."""
    said = text + "\nz"  # a blank message would be dropped, and that is another rule
    evidence = Block(
        item_id="e1",
        form="quoted",
        type="evidence",
        source=text,
        label=text,
        text=text,
        attrs=(("title", text), (text, text)),
    )
    memory = Block(item_id="m1", form="quoted", type="memory", text=text, mark="^")
    rules = Block(item_id="i1", type="instruction", text="Use {data}\nonly.", slots=(("data", evidence),))
    return Prompt(
        messages=(
            Message(
                role="system",
                place="instructions",
                blocks=(rules, Block(type="policy", text="No.")),
                cache=True,
            ),
            Message(role="user", place="history", name=text, blocks=(Block(item_id="u1", type="user", text=said),)),
            Message(
                role="assistant",
                place="history",
                blocks=(Block(item_id="a1", type="assistant", text=said),),
                calls=(ToolCall(id="c1", name="look", arguments=said),),
            ),
            Message(
                role="tool",
                place="history",
                call_id="c1",
                blocks=(Block(item_id="t1", type="tool_output", text=said),),
                cache=True,
            ),
            Message(
                role="system",
                place="history",
                blocks=(Block(item_id="n1", type="instruction", text="Stop."),),
            ),
            Message(role="user", place="context", blocks=(evidence, memory, evidence)),
            Message(role="user", place="request", blocks=(Block(item_id="q1", type="user", text=said),)),
        ),
        tools=(ToolSchema(name="look", description="d" + text, parameters=SCHEMA), ToolSchema(name="act")),
        response_schema=("reply", SCHEMA),
    )


def skeleton(request: Any, depth: int = 0) -> Any:
    """The shape of a request: keys, roles, types and numbers of parts, without the texts."""
    if isinstance(request, dict):
        return {
            key: value if key in ("role", "type", "cache_control") else skeleton(value, depth + 1)
            for key, value in request.items()
            if key not in ("name", "input")
        }
    if isinstance(request, list):
        return [skeleton(value, depth + 1) for value in request]
    return type(request).__name__


TEXTS = st.text(max_size=40) | st.sampled_from(BREAKOUTS)
_IDS = st.sampled_from(["a", "b", "c", "c.1", "x" * 70])
_BLOCK = st.builds(
    Block,
    item_id=st.none() | st.sampled_from(["i1", "i2", "i3"]),
    form=st.sampled_from(["literal", "quoted"]),
    type=st.sampled_from(["", "instruction", "policy", "user", "assistant", "evidence", "tool_output"]),
    source=st.just("kb") | TEXTS,
    text=TEXTS | st.sampled_from(["a {s} b", "{s}", "{s}\n\n {s}"]),
    label=TEXTS,
    attrs=st.just(()) | st.tuples(st.tuples(st.just("title"), TEXTS)),
    slots=st.just(()) | st.builds(lambda text: (("s", Block(item_id="s1", type="evidence", text=text)),), TEXTS),
    mark=st.none() | st.just("^"),
)
_CALL = st.builds(
    ToolCall,
    id=_IDS,
    name=st.just("look"),
    arguments=st.sampled_from(["{}", '{"b":1,"a":"ü"}', "[1]", "oops", ""]),
)
_OPAQUE = st.sampled_from(
    [
        Opaque(provider="anthropic", json='{"type":"thinking","thinking":"hm","signature":"c2ln"}'),
        Opaque(provider="openai", json='{"type":"reasoning","id":"r1","summary":[],"encrypted_content":"abcd"}'),
        Opaque(provider="other", json='{"x":1}'),
    ]
)
_BLOCKS = st.lists(_BLOCK, max_size=3).map(tuple)
_MEDIA = st.lists(
    st.sampled_from(
        [
            Media(mime="image/png", url="https://a.b/c.png"),
            Media(mime="image/png", url="data:image/png;base64,AAAA"),
        ]
    ),
    max_size=2,
).map(tuple)
MESSAGE = st.one_of(
    st.builds(Message, role=st.just("system"), place=st.just("instructions"), blocks=_BLOCKS, cache=st.booleans()),
    st.builds(
        Message,
        role=st.just("user"),
        place=st.sampled_from(["history", "context", "request"]),
        blocks=_BLOCKS,
        media=_MEDIA,
        name=st.none() | TEXTS,
        cache=st.booleans(),
    ),
    st.builds(
        Message,
        role=st.just("assistant"),
        place=st.just("history"),
        blocks=_BLOCKS,
        calls=st.lists(_CALL, max_size=3, unique_by=lambda call: call.id).map(tuple),
        opaque=st.lists(_OPAQUE, max_size=2).map(tuple),
        cache=st.booleans(),
    ),
    st.builds(
        Message,
        role=st.just("tool"),
        place=st.just("history"),
        blocks=_BLOCKS,
        call_id=st.none() | _IDS,
        name=st.none() | st.just("look"),
        cache=st.booleans(),
    ),
)
PROMPTS = st.builds(
    Prompt,
    messages=st.lists(MESSAGE, max_size=8).map(tuple),
    tools=st.lists(
        st.builds(
            ToolSchema,
            name=st.sampled_from(["look", "act"]),
            description=TEXTS.map(lambda text: text[:500]),
            parameters=st.just(SCHEMA),
        ),
        max_size=2,
        unique_by=lambda tool: tool.name,
    ).map(tuple),
    response_schema=st.none() | st.just(("reply", SCHEMA)),
)
