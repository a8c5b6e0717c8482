"""`Turn`: what a compilation gives: the request, its manifest, and the way to compile it otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rung.assembly.messages import Prompt
from rung.compiler.manifest import Manifest


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled turn.

    Attributes:
        request: keyword arguments of the provider's client call, the model apart.
        manifest: why it is as it is.
        prompt: the neutral messages, before any provider's shape.
    """

    request: Mapping[str, Any]
    manifest: Manifest
    prompt: Prompt
    _again: Callable[..., Turn]

    @property
    def tokens(self) -> int:
        """The tokens of the request under the manifest's counter."""
        return self.manifest.totals.total

    @property
    def text(self) -> str:
        """The prompt of target `text`.

        Raises:
            AttributeError: another target; its request is a structure.
        """
        if "prompt" not in self.request:
            raise AttributeError(f"a turn for `{self.manifest.target}` is no text (retarget it to `text`)")
        return str(self.request["prompt"])

    def retarget(self, target: str) -> Turn:
        """The same inputs compiled for another target."""
        return self._again(target=target)

    def what_if(self, **changes: Any) -> Turn:
        """The same inputs compiled at another `budget`, `policy`, `target`, `clearance` or `reserve_output`."""
        return self._again(**changes)

    def __repr__(self) -> str:
        totals = self.manifest.totals
        return f"<Turn {self.manifest.turn} {self.manifest.target} {totals.total}/{totals.available} tokens>"
