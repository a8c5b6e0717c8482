"""What a provider would refuse in a request: one value for each finding, and what all rules share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that a provider would refuse.

    Attributes:
        place: where, as a path: `messages[3].tool_calls[0].id`.
        rule: the stable id of the rule; `docs/assembly.md` gives each one's source.
        what: the fact, without content.
        mend: what to do.
    """

    place: str
    rule: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.mend})"


Fields = dict[str, Any]

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""OpenAI, API reference, function `name`; Anthropic, Define tools: the same letters, at most 64."""

MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that both providers take (OpenAI, Images and vision; Anthropic, Vision)."""


def fields(value: object) -> Fields | None:
    """The value as an object, or None."""
    return cast(Fields, value) if isinstance(value, dict) else None


def listed(value: object) -> list[Any]:
    """The value as a list, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def shape(place: str, what: str, mend: str) -> Problem:
    """A value of the wrong shape, of which nothing more can be said."""
    return Problem(place=place, rule="shape", what=what, mend=mend)


def name_of(value: object) -> str:
    """A role, type or id as a text: empty where the value is none."""
    return value if isinstance(value, str) else ""


def blank(value: object) -> bool:
    """Whether a text is empty or white space only."""
    return not isinstance(value, str) or not value.strip()


def tool_name(place: str, name: object) -> Iterator[Problem]:
    """The pattern of a tool's name."""
    if not isinstance(name, str) or not TOOL_NAME.match(name):
        yield Problem(
            place=place,
            rule="tool_name",
            what="the name of a tool is not 1 to 64 letters, digits, `_` or `-`",
            mend="rename the tool",
        )


def unique_names(place: str, found: list[object]) -> Iterator[Problem]:
    """Each tool once."""
    seen: set[object] = set()
    for i, name in enumerate(found):
        if isinstance(name, str):
            if name in seen:
                yield Problem(
                    place=f"{place}[{i}]",
                    rule="tool_duplicate",
                    what=f"a second tool is named `{name[:64]}`",
                    mend="name each tool once",
                )
            seen.add(name)


def object_schema(place: str, schema: object, *, required: bool) -> Iterator[Problem]:
    """A parameter schema is a JSON Schema of type object."""
    if schema is None and not required:
        return
    found = fields(schema)
    if found is None:
        yield Problem(place=place, rule="schema_object", what="a schema is not an object", mend="give a JSON Schema")
    elif found.get("type") != "object":
        yield Problem(
            place=place,
            rule="schema_object",
            what="the schema of a tool is not of type `object`",
            mend='give it `"type": "object"`',
        )


def text_arguments(place: str, arguments: object) -> Iterator[Problem]:
    """Arguments as OpenAI takes them: a text, which need not be JSON, for models write what is not."""
    if not isinstance(arguments, str):
        yield Problem(
            place=place,
            rule="arguments_text",
            what="arguments are not a string",
            mend="send them as JSON text",
        )


def encodable(place: str, value: object) -> Iterator[Problem]:
    """Every text can be sent: no lone surrogates, and no NUL."""
    stack: list[tuple[str, object]] = [(place, value)]
    while stack:
        where, current = stack.pop()
        if isinstance(current, str):
            if not current.isascii() and re.search("[\ud800-\udfff]", current):
                yield Problem(
                    place=where or "request",
                    rule="encoding",
                    what="a text holds a lone surrogate, which UTF-8 cannot say",
                    mend="replace it by U+FFFD",
                )
        elif isinstance(current, dict):
            inside = cast("dict[object, object]", current)
            stack += [(f"{where}.{key}" if where else str(key), inner) for key, inner in inside.items()]
        elif isinstance(current, list | tuple):
            items = cast("list[object]", current)
            stack += [(f"{where}[{i}]", inner) for i, inner in enumerate(items)]


def data_url(place: str, url: object) -> Iterator[Problem]:
    """An image's address: `https:`, or `data:` with an image type and base64."""
    if not isinstance(url, str) or not url:
        yield Problem(place=place, rule="media_shape", what="an image has no address", mend="give its `url`")
    elif url.startswith("data:"):
        head = url[5:80].partition(",")[0]
        if not head.endswith(";base64") or head.removesuffix(";base64") not in MEDIA_TYPES:
            yield Problem(
                place=place,
                rule="media_shape",
                what="a `data:` address is not base64 of a JPEG, PNG, GIF or WebP image",
                mend="say `data:image/png;base64,…`",
            )
    elif not url.startswith(("https://", "http://")):
        yield Problem(
            place=place,
            rule="media_shape",
            what="the address of an image is neither `https:` nor `data:`",
            mend="give one of these",
        )
