"""What OpenAI's Chat Completions and Responses endpoints refuse.

Sources are in `docs/assembly.md`: the API reference, the function calling guide, and the errors that the
endpoints give where the reference does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from rung.assembly.problems import Fields, Problem, fields, listed, name_of, refused, shape
from rung.assembly.rules import MEDIA_TYPES, TOOL_NAME, Pairs, Terms, object_schema, tool_name, unique_names

TOOLS = 128
DESCRIPTION = 1024
CHAT_CALL_ID = 40
RESPONSES_CALL_ID = 64

_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_INPUT_ROLES = frozenset({"system", "developer", "user", "assistant"})
_NAME = re.compile(r"[^\s<|\\/>]{1,64}\Z")
_PARTS = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "tool": frozenset({"text"}),
    "assistant": frozenset({"text", "refusal"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
}
_SAID = ("output_text", "refusal")
_GIVEN = ("input_text", "input_image", "input_file", "input_audio")
_CHAT = Terms(
    call_id="id",
    answers="tool_call_id",
    result="result",
    shared="two calls of one message share an id",
    orphan=(
        "a tool result answers no call of the assistant message before it",
        "drop it with its call, or put it directly after the call",
    ),
    unanswered=("a call has no result before the next message", "add its result directly after, or drop the call"),
)
_RESPONSES = Terms(
    call_id="call_id",
    answers="call_id",
    result="output",
    shared="two calls share an id",
    orphan=("an output answers no call before it", "drop it with its call, or send the call too"),
    unanswered=("a call has no output", "add its `function_call_output`, or drop the call"),
)


def chat_problems(request: Fields) -> Iterator[Problem]:
    """Findings in the keyword arguments of `client.chat.completions.create`."""
    messages = listed(request.get("messages"))
    if not messages:
        yield shape("messages", "there are no messages", "send at least one")
    entries = [fields(message) for message in messages]
    for i, message in enumerate(entries):
        if message is None:
            yield shape(f"messages[{i}]", "a message is not an object", "give it `role` and `content`")
        else:
            yield from _chat_message(f"messages[{i}]", message)
    yield from _chat_pairs([message or {} for message in entries])
    yield from _tools(request, nested=True)
    schema = fields(request.get("response_format"))
    if schema is not None and schema.get("type") == "json_schema":
        yield from _format("response_format.json_schema", fields(schema.get("json_schema")))


def _chat_message(place: str, message: Fields) -> Iterator[Problem]:
    role = name_of(message.get("role"))
    if role not in _CHAT_ROLES:
        yield refused(f"{place}.role", "role", "no such role", "use system, developer, user, assistant or tool")
        return
    name = message.get("name")
    if name is not None and (not isinstance(name, str) or not _NAME.match(name)):
        yield refused(
            f"{place}.name",
            "participant_name",
            "a name holds white space or one of `< | \\ / >`, or is not 1 to 64 characters",
            "leave the name out or change it",
        )
    content = message.get("content")
    calls = message.get("tool_calls")
    if content is None and not (role == "assistant" and (calls or message.get("refusal") or message.get("audio"))):
        yield refused(
            f"{place}.content",
            "content_required",
            "a message without calls has no content",
            "give it text, or leave the message out",
        )
    elif isinstance(content, list):
        yield from _chat_parts(f"{place}.content", role, cast("list[object]", content))
    elif content is not None and not isinstance(content, str):
        yield shape(f"{place}.content", "content is neither text nor a list of parts", "give one of these")
    if role == "tool" and not message.get("tool_call_id"):
        yield refused(
            f"{place}.tool_call_id",
            "result_call_id",
            "a tool result does not say which call it answers",
            "give it `tool_call_id`",
        )
    if calls is not None:
        if role != "assistant":
            yield refused(
                f"{place}.tool_calls",
                "calls_role",
                "calls stand in a message that is not the assistant's",
                "move them to an assistant message",
            )
        if not listed(calls):
            yield refused(f"{place}.tool_calls", "calls_empty", "the list of calls is empty", "leave `tool_calls` out")
        for j, call in enumerate(listed(calls)):
            yield from _call(f"{place}.tool_calls[{j}]", fields(call))


def _call(place: str, call: Fields | None) -> Iterator[Problem]:
    if call is None:
        yield shape(place, "a call is not an object", "give it `id`, `type` and `function`")
        return
    yield from _call_id(f"{place}.id", call.get("id"), CHAT_CALL_ID)
    kind = call.get("type")
    if kind not in ("function", "custom"):
        yield shape(f"{place}.type", "a call is of no known type", "give it `type: function`")
    if kind == "function":
        function = fields(call.get("function"))
        if function is None:
            yield shape(f"{place}.function", "a call names no function", "give it `name` and `arguments`")
            return
        yield from _function(f"{place}.function", function)


def _function(place: str, function: Fields) -> Iterator[Problem]:
    """A name, and arguments as a text, which need not be JSON, for models write what is not."""
    yield from tool_name(f"{place}.name", function.get("name"))
    if not isinstance(function.get("arguments"), str):
        yield refused(f"{place}.arguments", "arguments_text", "arguments are not a string", "send them as JSON text")


def _call_id(place: str, value: object, limit: int) -> Iterator[Problem]:
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        yield refused(
            place,
            "call_id",
            f"the id of a call is not a text of 1 to {limit} characters",
            "give it a shorter id, in the result too",
        )


def _chat_parts(place: str, role: str, parts: list[object]) -> Iterator[Problem]:
    if not parts:
        yield refused(place, "content_required", "the list of parts is empty", "give it a part")
    for i, value in enumerate(parts):
        part = fields(value)
        where = f"{place}[{i}]"
        kind = name_of(part.get("type")) if part is not None else ""
        if part is None or kind not in _PARTS.get(role, _PARTS["user"]):
            yield refused(
                where,
                "part_type",
                f"a message of role {role} takes no part of this type",
                "send text, or move the part to a user message",
            )
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield shape(f"{where}.text", "a text part has no text", "give it `text`")
        elif kind == "image_url":
            inner = fields(part.get("image_url"))
            yield from _image_url(f"{where}.image_url.url", inner.get("url") if inner is not None else None)
        elif kind == "input_audio":
            inner = fields(part.get("input_audio")) or {}
            if inner.get("format") not in ("wav", "mp3") or not inner.get("data"):
                yield refused(where, "media_shape", "audio is not base64 `data` of format wav or mp3", "convert it")
        elif kind == "file":
            inner = fields(part.get("file")) or {}
            if not (inner.get("file_id") or inner.get("file_data")):
                yield refused(
                    where,
                    "media_shape",
                    "a file has neither `file_id` nor `file_data`",
                    "upload it, or send it as a `data:` address",
                )


def _image_url(place: str, url: object) -> Iterator[Problem]:
    """An image's address: `https:`, or `data:` with an image type and base64."""
    if not isinstance(url, str) or not url:
        yield refused(place, "media_shape", "an image has no address", "give its `url`")
    elif url.startswith("data:"):
        head = url[5:80].partition(",")[0]
        if not head.endswith(";base64") or head.removesuffix(";base64") not in MEDIA_TYPES:
            yield refused(
                place,
                "media_shape",
                "a `data:` address is not base64 of a JPEG, PNG, GIF or WebP image",
                "say `data:image/png;base64,…`",
            )
    elif not url.startswith(("https://", "http://")):
        yield refused(
            place, "media_shape", "the address of an image is neither `https:` nor `data:`", "give one of these"
        )


def _chat_pairs(messages: list[Fields]) -> Iterator[Problem]:
    """Each call answered once, directly after its message; each result after the call that it answers."""
    pairs = Pairs(_CHAT)
    for i, message in enumerate(messages):
        if message.get("role") == "tool":
            asked = name_of(message.get("tool_call_id"))
            if asked:
                yield from pairs.result(f"messages[{i}]", asked)
                pairs.answered.intersection_update(pairs.calls)  # what no call asked for is an orphan each time
            continue
        yield from pairs.close()
        pairs = Pairs(_CHAT)  # an id may come again in a later message
        for j, value in enumerate(listed(message.get("tool_calls"))):
            call_id = (fields(value) or {}).get("id")
            if isinstance(call_id, str):
                yield from pairs.call(f"messages[{i}].tool_calls[{j}]", call_id)
    yield from pairs.close()


def _tools(request: Fields, *, nested: bool) -> Iterator[Problem]:
    tools = listed(request.get("tools"))
    if len(tools) > TOOLS:
        yield refused(
            "tools", "tool_count", f"there are {len(tools)} tools, and the limit is {TOOLS}", "offer fewer in this turn"
        )
    found: list[object] = []
    for i, value in enumerate(tools):
        place = f"tools[{i}]"
        tool = fields(value)
        if tool is None:
            yield shape(place, "a tool is not an object", "give it `type` and `name`")
            found.append(None)
            continue
        if tool.get("type") != "function":
            if not isinstance(tool.get("type"), str):
                yield shape(f"{place}.type", "a tool has no type", "give it `type: function`")
            found.append(None)
            continue
        function = fields(tool.get("function")) if nested else tool
        where = f"{place}.function" if nested else place
        if function is None:
            yield shape(where, "a tool names no function", "give it `name` and `parameters`")
            found.append(None)
            continue
        found.append(function.get("name"))
        yield from tool_name(f"{where}.name", function.get("name"))
        description = function.get("description")
        if isinstance(description, str) and len(description) > DESCRIPTION:
            yield refused(
                f"{where}.description",
                "tool_description",
                f"a description has {len(description)} characters, and the limit is {DESCRIPTION}",
                "move the details into the instructions",
            )
        yield from object_schema(f"{where}.parameters", function.get("parameters"), required=False)
    yield from unique_names("tools", found)


def _format(place: str, schema: Fields | None) -> Iterator[Problem]:
    if schema is None:
        yield shape(place, "the reply's schema is not an object", "give it `name` and `schema`")
        return
    name = schema.get("name")
    if not isinstance(name, str) or not TOOL_NAME.match(name):
        yield refused(
            f"{place}.name",
            "schema_name",
            "the name of the reply's schema is not 1 to 64 letters, digits, `_` or `-`",
            "rename it",
        )
    yield from object_schema(f"{place}.schema", schema.get("schema"), required=False)


def responses_problems(request: Fields) -> Iterator[Problem]:
    """Findings in the keyword arguments of `client.responses.create`."""
    value = request.get("input")
    if isinstance(value, list):
        yield from _items(cast("list[object]", value), chained=bool(request.get("previous_response_id")))
    elif not isinstance(value, str) and not request.get("previous_response_id"):
        yield shape("input", "there is no input", "send a text or a list of items")
    yield from _tools(request, nested=False)
    text = fields(request.get("text")) or {}
    schema = fields(text.get("format"))
    if schema is not None and schema.get("type") == "json_schema":
        yield from _format("text.format", schema)


def _items(items: list[object], *, chained: bool) -> Iterator[Problem]:
    pairs = Pairs(_RESPONSES)
    for i, value in enumerate(items):
        place = f"input[{i}]"
        item = fields(value)
        if item is None:
            yield shape(place, "an input item is not an object", "give it a `type`")
            continue
        kind = item.get("type", "message" if "role" in item else None)
        call_id = item.get("call_id")
        if kind == "message":
            yield from _input_message(place, item)
        elif kind == "function_call":
            yield from _call_id(f"{place}.call_id", call_id, RESPONSES_CALL_ID)
            yield from _function(place, item)
            if isinstance(call_id, str):
                yield from pairs.call(place, call_id)
        elif kind == "function_call_output":
            yield from _output(place, item, pairs, chained=chained)
        elif kind == "reasoning":
            yield from _reasoning(place, item, items[i + 1 :])
        elif not isinstance(kind, str):
            yield shape(f"{place}.type", "an input item has no type", "give it one")
    yield from pairs.close()


def _output(place: str, item: Fields, pairs: Pairs, *, chained: bool) -> Iterator[Problem]:
    call_id = name_of(item.get("call_id"))
    if not call_id:
        yield refused(
            f"{place}.call_id", "result_call_id", "an output does not say which call it answers", "give it `call_id`"
        )
        return
    yield from pairs.result(place, call_id, elsewhere=chained)
    if not isinstance(item.get("output"), str | list):
        yield shape(f"{place}.output", "an output has no text", "send its text, also where it is empty")


def _input_message(place: str, item: Fields) -> Iterator[Problem]:
    if name_of(item.get("role")) not in _INPUT_ROLES:
        yield refused(f"{place}.role", "role", "no such role", "use system, developer, user or assistant")
    allowed = _SAID if item.get("role") == "assistant" else _GIVEN
    content = item.get("content")
    if content is None:
        yield refused(
            f"{place}.content", "content_required", "a message has no content", "give it text, or leave it out"
        )
    for j, value in enumerate(listed(content)):
        part = fields(value) or {}
        where = f"{place}.content[{j}]"
        kind = part.get("type")
        if kind not in allowed:
            yield refused(
                where,
                "part_type",
                f"a message of this role takes no part of this type ({', '.join(allowed)})",
                "change the part's type",
            )
        elif kind == "input_image" and not part.get("file_id"):
            yield from _image_url(f"{where}.image_url", part.get("image_url"))
        elif kind == "input_file" and not any(part.get(key) for key in ("file_id", "file_data", "file_url")):
            yield refused(
                where, "media_shape", "a file has no `file_id`, `file_data` or `file_url`", "give one of them"
            )


def _reasoning(place: str, item: Fields, after: list[object]) -> Iterator[Problem]:
    """A reasoning item stands before the item that it led to, as it came."""
    if not (item.get("id") or item.get("encrypted_content")):
        yield refused(
            place,
            "opaque_changed",
            "a reasoning item has lost its `id` and its `encrypted_content`",
            "pass it through as it came, or drop it whole",
        )
    following = fields(after[0]) if after else None
    kind = following.get("type", "message") if following is not None else None
    own = kind != "message" or (following is not None and following.get("role") == "assistant")
    if following is None or not own or kind == "function_call_output":
        yield refused(
            place,
            "reasoning_follower",
            "a reasoning item is not followed by the item that it led to",
            "keep both or drop both",
        )
