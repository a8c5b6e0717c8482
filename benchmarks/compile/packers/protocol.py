"""What an adapter does. Only `build` is timed; it must give what can be sent: a text, or messages in OpenAI
chat form.

`sources` maps each source's name to its candidates in the packer's own form, as `convert` made them before
(not timed: a real program holds its items already). System text and question must be in the result whole.
"""

from typing import Any

from workload import Candidate

Request = str | list[dict[str, Any]]


class Packer:
    """Base of the adapters."""

    def start(self, system: str, budget: int) -> None:
        """Begin (not timed): `budget` in tokens, of everything that is sent."""
        self.system = system
        self.budget = budget

    def convert(self, candidate: Candidate) -> Any:
        """Turn a candidate into the packer's own item (not timed)."""
        return candidate

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        """Compile one turn (timed)."""
        raise NotImplementedError
