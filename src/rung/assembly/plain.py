"""One plain text: each message a section between tags of our own, for clients that take a `prompt`."""

from __future__ import annotations

import re

import msgspec

from rung.assembly.escape import escape, escape_attribute, unescape, unescape_attribute
from rung.assembly.messages import Message, Prompt
from rung.assembly.render import Style, render_block
from rung.assembly.schemas import canonical_schema, sorted_tools

CUE = '<chat-message role="assistant">\n'
"""What a prompt ends with where a reply is wanted: the opening tag of the reply."""

CLOSING = "</chat-message>\n"

_SECTION = re.compile(r"^<(/?)(chat-[a-z-]+)((?: [a-z_]+=\"[^\"<>\n]*\")*)>$", re.MULTILINE)
_ATTR = re.compile(r' ([a-z_]+)="([^"]*)"')


def _tag(tag: str, /, **attrs: str | None) -> str:
    said = "".join(
        f' {key}="{escape_attribute(value, chat=True)}"' for key, value in attrs.items() if value is not None
    )
    return f"<{tag}{said}>\n"


def tool_sections(prompt: Prompt) -> list[str]:
    """The pieces that say which tools there are."""
    if not prompt.tools:
        return []
    out = ["<chat-tools>\n"]
    for tool in sorted_tools(prompt.tools):
        told = f"{tool.description}\n" if tool.description else ""
        body = escape(told + canonical_schema(tool.parameters), chat=True)
        out.append(f"{_tag('chat-tool', name=tool.name)}{body}\n</chat-tool>\n")
    return [*out, "</chat-tools>\n"]


def schema_section(prompt: Prompt) -> str:
    """The piece that says what form the reply has, or nothing."""
    if prompt.response_schema is None:
        return ""
    name, text = prompt.response_schema
    body = escape(canonical_schema(text), chat=True)
    return f"{_tag('chat-reply-schema', name=name)}{body}\n</chat-reply-schema>\n"


def opening(message: Message) -> str:
    """The opening tag of a message's section."""
    return _tag("chat-message", role=message.role, call_id=message.call_id, name=message.name)


def trailing(message: Message) -> list[str]:
    """The pieces after a message's blocks: its media, its calls, the closing tag."""
    out: list[str] = []
    for media in message.media:
        shown = None if media.url.startswith("data:") else media.url
        out.append(_tag("chat-media", mime=media.mime, url=shown).removesuffix("\n") + "</chat-media>\n")
    for call in message.calls:
        body = escape(call.arguments, chat=True)
        out.append(f"{_tag('chat-call', id=call.id, name=call.name)}{body}\n</chat-call>\n")
    return [*out, CLOSING]


def wants_cue(prompt: Prompt) -> bool:
    """Whether the next words are the reply: always, unless the last message is the reply's beginning."""
    return not prompt.messages or prompt.messages[-1].role != "assistant"


def text_request(prompt: Prompt, style: Style) -> dict[str, str]:
    """Keyword arguments of a completions client: `prompt`."""
    out = [*tool_sections(prompt), schema_section(prompt)]
    for message in prompt.messages:
        out.append(opening(message))
        out += [render_block(block, style, multi=True) for block in message.blocks]
        out += trailing(message)
    if wants_cue(prompt):
        out.append(CUE)
    return {"prompt": "".join(out)}


class Section(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One section of a plain-text prompt, read back: its tag, its attributes, the raw text inside."""

    tag: str
    attrs: tuple[tuple[str, str], ...]
    text: str


def parse_sections(prompt: str) -> tuple[Section, ...]:
    """The sections of a plain-text prompt in order, those inside a message after it."""
    out: list[tuple[int, Section]] = []
    stack: list[tuple[str, str, int]] = []
    for found in _SECTION.finditer(prompt):
        if not found[1]:
            stack.append((found[2], found[3], found.end() + 1))
        elif stack and stack[-1][0] == found[2]:
            tag, attrs, start = stack.pop()
            values = tuple((name, unescape_attribute(value)) for name, value in _ATTR.findall(attrs))
            out.append((start, Section(tag=tag, attrs=values, text=prompt[start : found.start()])))
    return tuple(section for _, section in sorted(out, key=lambda entry: entry[0]))


def display(text: str) -> str:
    """Rendered text as a reader wants it: every character reference undone."""
    return unescape(text)
