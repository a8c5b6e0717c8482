"""What Anthropic's Messages endpoint refuses.

Sources are in `docs/assembly.md`: the API reference, the pages on tool use, prompt caching, extended
thinking and vision, and the errors that the endpoint gives where they do not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rung.assembly.anthropic import MARKERS
from rung.assembly.problems import Fields, Problem, blank, fields, listed, name_of, refused, shape
from rung.assembly.rules import MEDIA_TYPES, Pairs, Terms, object_schema, tool_name, unique_names

_CALL_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
_THINKING = ("thinking", "redacted_thinking")
_TERMS = Terms(
    call_id="id",
    answers="tool_use_id",
    result="result",
    shared="two calls share an id",
    orphan=(
        "a result answers no call of the message before",
        "drop it with its call, or put it directly after the call",
    ),
    unanswered=(
        "a call has no result in the next message",
        "add its result at the beginning of that message, or drop the call",
    ),
)


def anthropic_problems(request: Fields) -> Iterator[Problem]:
    """Findings in the keyword arguments of `client.messages.create`."""
    yield from _system(request.get("system"))
    messages = listed(request.get("messages"))
    if not messages:
        yield shape("messages", "there are no messages", "send at least one user message")
    entries = [fields(message) or {} for message in messages]
    for i, message in enumerate(entries):
        yield from _message(f"messages[{i}]", message, last=i == len(entries) - 1)
    yield from _order(entries)
    yield from _pairs(entries)
    yield from _tools(listed(request.get("tools")))
    yield from _markers(request)
    schema = fields((fields(request.get("output_config")) or {}).get("format"))
    if schema is not None and schema.get("type") == "json_schema":
        yield from object_schema("output_config.format.schema", schema.get("schema"), required=True)


def _system(system: object) -> Iterator[Problem]:
    for i, value in enumerate(listed(system)):
        block = fields(value) or {}
        if block.get("type") != "text":
            yield refused(f"system[{i}]", "part_type", "a system block is not text", "send text blocks only")
        elif blank(block.get("text")):
            yield _empty(f"system[{i}].text")


def _empty(place: str) -> Problem:
    return refused(place, "text_empty", "a text block is empty or white space only", "leave the block out")


def _message(place: str, message: Fields, *, last: bool) -> Iterator[Problem]:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        yield refused(f"{place}.role", "role", "no such role", "use user or assistant; instructions go to `system`")
    content = message.get("content")
    prefill = last and role == "assistant"
    if isinstance(content, str):
        if not content.strip() and not (prefill and not content):
            yield _empty(f"{place}.content")
        elif prefill and content != content.rstrip():
            yield _trailing(f"{place}.content")
        return
    blocks = listed(content)
    if not blocks:
        if not prefill:
            yield refused(f"{place}.content", "content_required", "a message has no content", "leave the message out")
        return
    for j, value in enumerate(blocks):
        block = fields(value)
        if block is None:
            yield shape(f"{place}.content[{j}]", "a block is not an object", "give it a `type`")
        else:
            yield from _block(f"{place}.content[{j}]", str(role), block)
    final = fields(blocks[-1]) or {}
    if prefill and final.get("type") == "text":
        text = final.get("text")
        if isinstance(text, str) and text.strip() and text != text.rstrip():
            yield _trailing(f"{place}.content[{len(blocks) - 1}].text")
    if prefill and final.get("type") in _THINKING:
        yield refused(
            f"{place}.content[{len(blocks) - 1}]",
            "thinking_last",
            "the last block of the last assistant message is thinking",
            "send what it led to as well",
        )


def _trailing(place: str) -> Problem:
    return refused(place, "prefill_whitespace", "the beginning of a reply ends in white space", "strip its end")


def _block(place: str, role: str, block: Fields) -> Iterator[Problem]:
    kind = name_of(block.get("type"))
    if kind == "text":
        if blank(block.get("text")):
            yield _empty(f"{place}.text")
    elif kind == "tool_use":
        if role != "assistant":
            yield _misplaced(place, "a call stands in a message that is not the assistant's")
        call_id = block.get("id")
        if not isinstance(call_id, str) or not _CALL_ID.match(call_id):
            yield refused(
                f"{place}.id",
                "call_id",
                "the id of a call is not letters, digits, `_` or `-`",
                "rewrite the id, in the result too",
            )
        yield from tool_name(f"{place}.name", block.get("name"))
        if fields(block.get("input")) is None:
            yield refused(
                f"{place}.input",
                "arguments_object",
                "the input of a call is not an object",
                "parse the JSON text, or wrap what is no object",
            )
    elif kind == "tool_result":
        if role != "user":
            yield _misplaced(place, "a result stands in a message that is not the user's")
        if not name_of(block.get("tool_use_id")):
            yield refused(
                f"{place}.tool_use_id",
                "result_call_id",
                "a result does not say which call it answers",
                "give it `tool_use_id`",
            )
        for k, value in enumerate(listed(block.get("content"))):
            inner = fields(value) or {}
            if inner.get("type") == "text" and blank(inner.get("text")):
                yield _empty(f"{place}.content[{k}].text")
            elif inner.get("type") == "image":
                yield from _source(f"{place}.content[{k}]", inner)
    elif kind in _THINKING:
        yield from _thinking(place, role, block)
    elif kind in ("image", "document"):
        if role == "assistant":
            yield _misplaced(place, "an image or document stands in an assistant message")
        yield from _source(place, block)
    elif not kind:
        yield shape(f"{place}.type", "a block has no type", "give it one")


def _misplaced(place: str, what: str) -> Problem:
    return refused(place, "part_type", what, "move it to the other role")


def _thinking(place: str, role: str, block: Fields) -> Iterator[Problem]:
    if role != "assistant":
        yield _misplaced(place, "thinking stands in a message that is not the assistant's")
    proof = "signature" if block.get("type") == "thinking" else "data"
    whole = isinstance(block.get(proof), str) and block.get(proof)
    if not whole or (proof == "signature" and not isinstance(block.get("thinking"), str)):
        yield refused(
            f"{place}.{proof}",
            "opaque_changed",
            f"a thinking block has lost its `{proof}` or its text",
            "pass it through as it came, or drop it whole",
        )


def _source(place: str, block: Fields) -> Iterator[Problem]:
    source = fields(block.get("source")) or {}
    kind = source.get("type")
    image = block.get("type") == "image"
    wrong = (
        (kind == "base64" and not (source.get("data") and isinstance(source.get("media_type"), str)))
        or (kind == "base64" and image and name_of(source.get("media_type")) not in MEDIA_TYPES)
        or (kind == "base64" and str(source.get("data", "")).startswith("data:"))
        or (kind == "url" and not str(source.get("url", "")).startswith(("https://", "http://")))
        or (kind == "file" and not source.get("file_id"))
        or kind not in ("base64", "url", "file", *(() if image else ("text", "content")))
    )
    if wrong:
        yield refused(
            f"{place}.source",
            "media_shape",
            "a source is not base64 `data` with a `media_type` taken here, nor a `url` or a `file_id`",
            "give one of these; base64 without the `data:` prefix",
        )


def _order(messages: list[Fields]) -> Iterator[Problem]:
    """User first, and the roles in turn; a system message only directly after a user message."""
    for i, message in enumerate(messages):
        role = message.get("role")
        before = messages[i - 1].get("role") if i else None
        if role == "system" and before != "user":
            yield refused(
                f"messages[{i}]",
                "system_position",
                "a system message does not follow a user message",
                "move it to `system`, or mark it as a notice in a user message",
            )
        elif i == 0 and role == "assistant":
            yield refused(
                "messages[0]", "first_user", "the first message is not the user's", "begin with a user message"
            )
        elif role == before and role in ("user", "assistant"):
            yield refused(
                f"messages[{i}]",
                "alternation",
                f"two {role} messages stand in a row",
                "merge them into one message with separate blocks",
            )


def _pairs(messages: list[Fields]) -> Iterator[Problem]:
    """Every call answered once at the beginning of the next message; every id used by one call."""
    pairs = Pairs(_TERMS)
    for i, message in enumerate(messages):
        if message.get("role") == "assistant":
            for place, _, block in _blocks(i, message, "tool_use"):
                if isinstance(block.get("id"), str):
                    yield from pairs.call(place, block["id"])
        if i + 1 < len(messages):
            yield from _results(i + 1, messages[i + 1], pairs)
        yield from pairs.close()
        if i == 0:
            yield from _results(0, message, Pairs(_TERMS))


def _blocks(i: int, message: Fields, kind: str) -> list[tuple[str, int, Fields]]:
    """Place, number and fields of the blocks of a kind."""
    found = [(j, fields(block) or {}) for j, block in enumerate(listed(message.get("content")))]
    return [(f"messages[{i}].content[{j}]", j, block) for j, block in found if block.get("type") == kind]


def _results(i: int, message: Fields, pairs: Pairs) -> Iterator[Problem]:
    if message.get("role") != "user":
        return
    for order, (place, j, block) in enumerate(_blocks(i, message, "tool_result")):
        if order != j:
            yield refused(
                place,
                "result_first",
                "a result stands after other content",
                "put the results first, then the text",
            )
        call_id = name_of(block.get("tool_use_id"))
        if call_id:
            yield from pairs.result(place, call_id)


def _tools(tools: list[object]) -> Iterator[Problem]:
    found: list[object] = []
    for i, value in enumerate(tools):
        tool = fields(value)
        if tool is None:
            yield shape(f"tools[{i}]", "a tool is not an object", "give it `name` and `input_schema`")
            found.append(None)
            continue
        found.append(tool.get("name"))
        if tool.get("type") not in (None, "custom"):  # a tool that the provider defines
            continue
        yield from tool_name(f"tools[{i}].name", tool.get("name"))
        yield from object_schema(f"tools[{i}].input_schema", tool.get("input_schema"), required=True)
    yield from unique_names("tools", found)


def _markers(request: Fields) -> Iterator[Problem]:
    """At most four cache markers, none on an empty text or on thinking."""
    places = [f"tools[{i}]" for i, tool in enumerate(listed(request.get("tools"))) if _marked(tool)]
    places += [f"system[{i}]" for i, block in enumerate(listed(request.get("system"))) if _marked(block)]
    if _marked(request):
        places.append("cache_control")
    for i, value in enumerate(listed(request.get("messages"))):
        for j, block in enumerate(listed((fields(value) or {}).get("content"))):
            place = f"messages[{i}].content[{j}]"
            kind = (fields(block) or {}).get("type")
            if _marked(block):
                places.append(place)
                if kind in _THINKING:
                    yield refused(
                        f"{place}.cache_control",
                        "marker_place",
                        "a cache marker stands on thinking",
                        "put it on the block after",
                    )
            inner = listed((fields(block) or {}).get("content"))
            places += [f"{place}.content[{k}]" for k, part in enumerate(inner) if _marked(part)]
    if len(places) > MARKERS:
        yield refused(
            places[MARKERS],
            "marker_count",
            f"there are {len(places)} cache markers, and the limit is {MARKERS}",
            "keep those on the system text and the newest messages",
        )


def _marked(value: object) -> bool:
    found = fields(value)
    return found is not None and found.get("cache_control") is not None
