"""The general boilerplate: texts that stand in prompts and documents everywhere and name no deployment."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def general_boilerplate() -> tuple[str, ...]:
    """The texts of `boilerplate.txt`: licences, placeholders, import lines, scaffolds of schemas and requests."""
    text = resources.files("rung.policy").joinpath("boilerplate.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return tuple(part for part in map(str.strip, "\n".join(lines).split("\n\n")) if part)
