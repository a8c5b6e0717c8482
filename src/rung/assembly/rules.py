"""Rules that more than one provider has: names, schemas and texts, and that each call has its result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from rung.assembly.problems import Problem, fields, refused

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""OpenAI, API reference, function `name`; Anthropic, Define tools: the same letters, at most 64."""

MEDIA_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that both providers take (OpenAI, Images and vision; Anthropic, Vision)."""


def tool_name(place: str, name: object) -> Iterator[Problem]:
    """The pattern of a tool's name."""
    if not isinstance(name, str) or not TOOL_NAME.match(name):
        yield refused(
            place, "tool_name", "the name of a tool is not 1 to 64 letters, digits, `_` or `-`", "rename the tool"
        )


def unique_names(place: str, found: list[object]) -> Iterator[Problem]:
    """Each tool once."""
    seen: set[object] = set()
    for i, name in enumerate(found):
        if isinstance(name, str):
            if name in seen:
                yield refused(
                    f"{place}[{i}]", "tool_duplicate", f"a second tool is named `{name[:64]}`", "name each tool once"
                )
            seen.add(name)


def object_schema(place: str, schema: object, *, required: bool) -> Iterator[Problem]:
    """A parameter schema is a JSON Schema of type object."""
    if schema is None and not required:
        return
    found = fields(schema)
    if found is None:
        yield refused(place, "schema_object", "a schema is not an object", "give a JSON Schema")
    elif found.get("type") != "object":
        yield refused(
            place, "schema_object", "the schema of a tool is not of type `object`", 'give it `"type": "object"`'
        )


def encodable(place: str, value: object) -> Iterator[Problem]:
    """Every text can be sent: no lone surrogates, and no NUL."""
    stack: list[tuple[str, object]] = [(place, value)]
    while stack:
        where, current = stack.pop()
        if isinstance(current, str):
            if not current.isascii() and re.search("[\ud800-\udfff]", current):
                yield refused(
                    where or "request",
                    "encoding",
                    "a text holds a lone surrogate, which UTF-8 cannot say",
                    "replace it by U+FFFD",
                )
        elif isinstance(current, dict):
            inside = cast("dict[object, object]", current)
            stack += [(f"{where}.{key}" if where else str(key), inner) for key, inner in inside.items()]
        elif isinstance(current, list | tuple):
            items = cast("list[object]", current)
            stack += [(f"{where}[{i}]", inner) for i, inner in enumerate(items)]


class Terms(NamedTuple):
    """How a provider speaks of calls and their results.

    Attributes:
        call_id: the field of a call that holds its id.
        answers: the field of a result that names its call.
        result: what a result is called.
        shared: the fact that two calls have one id.
        orphan: the fact that a result has no call, and what to do.
        unanswered: the fact that a call has no result, and what to do.
    """

    call_id: str
    answers: str
    result: str
    shared: str
    orphan: tuple[str, str]
    unanswered: tuple[str, str]


class Pairs:
    """Calls and their results, met in order: an id belongs to one call, and each call has one result.

    Attributes:
        calls: where the calls stand that may be answered now, by id.
        answered: ids that results have named since the last `close`.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._seen: set[str] = set()
        self.calls: dict[str, str] = {}
        self.answered: set[str] = set()

    def call(self, place: str, call_id: str) -> Iterator[Problem]:
        """A call that may be answered from now on."""
        if call_id in self._seen:
            at = f"{place}.{self._terms.call_id}"
            yield refused(at, "call_id_duplicate", self._terms.shared, "give each call its own id")
        self._seen.add(call_id)
        self.calls[call_id] = place

    def result(self, place: str, call_id: str, *, elsewhere: bool = False) -> Iterator[Problem]:
        """A result; its call may stand `elsewhere` than in this request."""
        at, word = f"{place}.{self._terms.answers}", self._terms.result
        if call_id in self.answered:
            yield refused(at, "result_duplicate", f"a call has a second {word}", f"keep one {word} for each call")
        elif call_id not in self.calls and not elsewhere:
            yield refused(at, "result_orphan", *self._terms.orphan)
        self.answered.add(call_id)

    def close(self) -> Iterator[Problem]:
        """No result can follow for the calls so far."""
        for call_id, place in self.calls.items():
            if call_id not in self.answered:
                yield refused(place, "call_unanswered", *self._terms.unanswered)
        self.calls, self.answered = {}, set()
