"""What a provider would refuse in a request: one value for each finding, and how a request is read."""

from __future__ import annotations

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


def fields(value: object) -> Fields | None:
    """The value as an object, or None."""
    return cast(Fields, value) if isinstance(value, dict) else None


def listed(value: object) -> list[Any]:
    """The value as a list, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def refused(place: str, rule: str, what: str, mend: str) -> Problem:
    """A finding: where, by which rule, the fact and what to do."""
    return Problem(place=place, rule=rule, what=what, mend=mend)


def shape(place: str, what: str, mend: str) -> Problem:
    """A value of the wrong shape, of which nothing more can be said."""
    return refused(place, "shape", what, mend)


def name_of(value: object) -> str:
    """A role, type or id as a text: empty where the value is none."""
    return value if isinstance(value, str) else ""


def blank(value: object) -> bool:
    """Whether a text is empty or white space only."""
    return not isinstance(value, str) or not value.strip()
