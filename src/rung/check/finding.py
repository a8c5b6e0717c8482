"""What the linter reports: a finding, and the steps by which text came from its source to the prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a flow: where (1-based line and column, in characters) and what happened there."""

    line: int
    col: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place in one file; lines and columns are 1-based and counted in characters."""

    rule: str
    path: str
    line: int
    col: int
    end_line: int
    end_col: int
    message: str
    why: str
    mend: str
    flow: tuple[Step, ...] = ()

    @property
    def place(self) -> str:
        """`file:line:col`, as editors and terminals understand it."""
        return f"{self.path}:{self.line}:{self.col}"

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Orders findings by place, then by rule: the same findings give the same report."""
        return (self.path, self.line, self.col, self.rule, self.message)
