"""`Turn`: what a compilation gives: the request, its manifest, and the way to compile it otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from rung.assembly.messages import Prompt
from rung.compiler.manifest import Manifest


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_copied(one) for one in cast("tuple[Any, ...]", value)])
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{name: _copied(getattr(value, name)) for name in value.__struct_fields__}
        )
    return value


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled turn.

    Attributes:
        request: keyword arguments of the provider's client call, the model apart.
        manifest: why it is as it is.
    """

    request: Mapping[str, Any]
    manifest: Manifest
    _prompt: Prompt
    _again: Callable[..., Turn]

    @property
    def prompt(self) -> Prompt:
        """The neutral messages, before any provider's shape. A copy: the next turns are made of the same ones."""
        prompt: Prompt = _copied(self._prompt)
        return prompt

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
