"""The system prompt as data: role, constraints, personality, escalation rules, output format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rung.errors import ConfigError
from rung.policy.load import convert


class SystemPrompt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stable part of a prompt, in this order. `role` is required; empty sections are left out.

    Attributes:
        role: who the model is and what for.
        constraints: what always holds.
        personality: how it speaks.
        escalation_rules: when it hands over to a person.
        output_format: the form of its answers.
    """

    role: str
    constraints: tuple[str, ...] = ()
    personality: str = ""
    escalation_rules: tuple[str, ...] = ()
    output_format: str = ""

    @classmethod
    def from_table(cls, table: Mapping[str, Any], path: str = "system") -> SystemPrompt:
        """From TOML-like data.

        Raises:
            ConfigError: a field is missing, unknown or of the wrong kind; the message names it.
        """
        made = convert(table, cls, path)
        if not made.role.strip():
            raise ConfigError(f"`{path}.role` is empty (say who the model is and what for)", path=f"{path}.role")
        for name in ("constraints", "escalation_rules"):
            for number, entry in enumerate(getattr(made, name)):
                if not entry.strip():
                    raise ConfigError(
                        f"`{path}.{name}[{number}]` is empty (remove it)", path=f"{path}.{name}[{number}]"
                    )
        return made

    def render(self) -> str:
        """The text: the same data, the same bytes."""
        sections = [self.role.strip()]
        if self.constraints:
            sections.append("# Constraints\n" + _bullets(self.constraints))
        if self.personality.strip():
            sections.append("# Personality\n" + self.personality.strip())
        if self.escalation_rules:
            sections.append("# Escalation\n" + _bullets(self.escalation_rules))
        if self.output_format.strip():
            sections.append("# Output format\n" + self.output_format.strip())
        return "\n\n".join(sections)


def _bullets(lines: tuple[str, ...]) -> str:
    return "\n".join("- " + " ".join(line.split()) for line in lines)
