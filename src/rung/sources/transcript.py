"""Transcripts: conversations in OpenAI's chat format become drafts of the conversation's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from rung.errors import ConfigError, InputError, PairingError, kind
from rung.records.canonical import canonical_json
from rung.records.draft import Draft
from rung.records.item import Media, Opaque, Part, ToolCall
from rung.records.types import Assistant, ToolOutput, User
from rung.sources.protocol import Fetch, Fetched
from rung.sources.simple import read_lines


def transcript_drafts(
    messages: Iterable[Mapping[str, Any]], *, session: str | None = None, trusted: bool = True
) -> list[Draft]:
    """The drafts of a conversation in OpenAI's chat format, in order.

    Args:
        messages: each a mapping with `role` and `content`; `tool_calls` and `tool_call_id` as OpenAI has them.
        session: the session that they belong to.
        trusted: the transcript comes from the deployment's own records. A client's own account of a
            conversation (`trusted=False`) may hold `user` and `assistant` messages only.

    Raises:
        InputError: a role that a transcript may not bring in; the message names its index and the role.
        PairingError: a tool result whose call is not there, or that answers a call a second time.
    """
    drafts: list[Draft] = []
    pending: dict[str, str] = {}
    answered: set[str] = set()
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"`messages[{number}]` is of kind {kind(message)}, not a mapping", field=f"messages[{number}]"
            )
        role = message.get("role")
        if role not in ("user", "assistant", "tool") or (role == "tool" and not trusted):
            raise InputError(
                f"`messages[{number}].role` is `{role}`, which a transcript may not bring in "
                f"({'user, assistant or tool' if trusted else 'a client gives user and assistant only'}; "
                "instructions come from their own channel)",
                field=f"messages[{number}].role",
            )
        text, parts = _content(message.get("content"), f"messages[{number}].content")
        if role == "user":
            drafts.append(Draft(type=User, content=text, source="user", session=session, parts=parts))
        elif role == "assistant":
            calls = tuple(_calls(message.get("tool_calls"), f"messages[{number}].tool_calls"))
            if calls and not trusted:
                raise InputError(
                    f"`messages[{number}].tool_calls`: a client cannot bring in tool calls (drop them)",
                    field=f"messages[{number}].tool_calls",
                )
            pending.update((call.id, call.name) for call in calls)
            drafts.append(Draft(type=Assistant, content=text, source="model", session=session, parts=(*parts, *calls)))
        else:
            drafts.append(_result(message, text, parts, number, pending, answered, session))
    return drafts


def _result(
    message: Mapping[str, Any],
    text: str,
    parts: tuple[Part, ...],
    number: int,
    pending: Mapping[str, str],
    answered: set[str],
    session: str | None,
) -> Draft:
    call_id = message.get("tool_call_id")
    if call_id is None:
        open_calls = [call for call in pending if call not in answered]
        if len(open_calls) != 1:
            raise PairingError(
                f"`messages[{number}]` is a tool result without an id and {len(open_calls)} calls are open "
                "(give its tool_call_id)",
                field=f"messages[{number}].tool_call_id",
            )
        call_id = open_calls[0]
    if call_id not in pending:
        raise PairingError(
            f"`messages[{number}]` answers the call `{call_id}`, which is not there (put its call before it)",
            field=f"messages[{number}].tool_call_id",
        )
    if call_id in answered:
        raise PairingError(
            f"`messages[{number}]` answers the call `{call_id}` a second time (keep one result for each call)",
            field=f"messages[{number}].tool_call_id",
        )
    answered.add(call_id)
    name = pending[call_id]
    return Draft(
        type=ToolOutput,
        content=text,
        source=f"tool:{name}",
        session=session,
        parts=parts,
        call_id=call_id,
        attrs={"tool": name},
    )


def _content(content: object, field: str) -> tuple[str, tuple[Part, ...]]:
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list | tuple):
        raise InputError(f"`{field}` is of kind {kind(content)} (text, a list of parts, or null)", field=field)
    texts: list[str] = []
    parts: list[Part] = []
    for index, entry in enumerate(cast("list[Any]", content)):
        part = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"type": "text", "text": entry}
        what = part.get("type")
        if what in ("text", "input_text", "output_text"):
            if not isinstance(part.get("text"), str):
                raise InputError(f"`{field}[{index}].text` is no text", field=f"{field}[{index}]")
            texts.append(part["text"])
        elif what == "image_url":
            url = part.get("image_url")
            address = cast("dict[str, Any]", url).get("url") if isinstance(url, dict) else url
            parts.append(Media(mime=_mime(str(address)), url=str(address)))
        elif what in ("input_image",):
            parts.append(Media(mime=_mime(str(part.get("image_url"))), url=str(part.get("image_url"))))
        else:
            parts.append(Opaque(provider="openai", json=canonical_json(part, f"{field}[{index}]")))
    return "\n".join(texts), tuple(parts)


def _mime(url: str) -> str:
    return url[5:].partition(";")[0].partition(",")[0] or "image/png" if url.startswith("data:") else "image/png"


def _calls(calls: object, field: str) -> Iterable[ToolCall]:
    if calls is None:
        return
    if not isinstance(calls, list | tuple):
        raise InputError(f"`{field}` is of kind {kind(calls)}, not a list", field=field)
    for index, entry in enumerate(cast("list[Any]", calls)):
        if not isinstance(entry, Mapping):
            raise InputError(f"`{field}[{index}]` is of kind {kind(entry)}, not a mapping", field=field)
        call = cast("Mapping[str, Any]", entry)
        function = cast("Mapping[str, Any]", call.get("function") or call)
        call_id, name = call.get("id"), function.get("name")
        if not isinstance(call_id, str) or not call_id or not isinstance(name, str) or not name:
            raise InputError(f"`{field}[{index}]` has no id or no name (give both)", field=f"{field}[{index}]")
        arguments = function.get("arguments", call.get("args", {}))
        yield ToolCall(
            id=call_id,
            name=name,
            arguments=arguments if isinstance(arguments, str) else canonical_json(arguments),
        )


class TranscriptFile(msgspec.Struct, frozen=True):
    """A conversation from a JSON-lines file in OpenAI's chat format: one message a line."""

    name: str
    path: str | Path
    session: str | None = None

    def fetch(self, want: Fetch) -> Fetched:
        return self.drafts(want.session)

    def drafts(self, session: str | None = None) -> list[Draft]:
        """The conversation's drafts.

        Raises:
            ConfigError: the file is missing, or a line is no JSON object.
            InputError, PairingError: as `transcript_drafts`.
        """
        messages: list[Mapping[str, Any]] = []
        for number, line in enumerate(read_lines(self.path), start=1):
            try:
                messages.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.ValidationError, msgspec.DecodeError) as problem:
                raise ConfigError(
                    f"`{self.path}` line {number}: {problem} (one JSON object a line)", path=str(self.path)
                ) from None
        return transcript_drafts(messages, session=self.session or session)
