"""`# rung: ignore[RULE]` comments: on a line of the finding, or for the whole file."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT = re.compile(r"#\s*rung:\s*ignore(?P<file>-file)?\s*(?:\[(?P<rules>[^\]]*)\])?(?=\s|$|#|[-–—:;,.])")


@dataclass(slots=True)
class Ignore:
    """One comment. No rules: all of them. `used` collects what it silenced."""

    line: int
    col: int
    rules: tuple[str, ...]
    whole_file: bool
    used: set[str] = field(default_factory=set[str])

    def covers(self, rule: str, lines: set[int]) -> bool:
        return (not self.rules or rule in self.rules) and (self.whole_file or self.line in lines)


def ignores(lines: tuple[str, ...]) -> list[Ignore]:
    """All ignore comments of a file, without those that only stand inside strings."""
    if not any("rung:" in line for line in lines):
        return []
    found: list[Ignore] = []
    for number, col, comment in _comments(lines):
        match = _COMMENT.search(comment)
        if match is None:
            continue
        rules = tuple(rule.strip() for rule in (match["rules"] or "").split(",") if rule.strip())
        found.append(Ignore(number, col + match.start() + 1, rules, match["file"] is not None))
    return found


def _comments(lines: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline))
    except (tokenize.TokenError, SyntaxError):
        # Newer syntax or broken code: a comment is then what looks like one at the end of a line.
        for number, line in enumerate(lines, 1):
            place = line.rfind("#", 0, line.find("rung:") + 1) if "rung:" in line else -1
            if place >= 0:
                yield number, place, line[place:]
        return
    for token in tokens:
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.start[1], token.string
