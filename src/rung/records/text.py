"""Text that carries its labels: `item.text`. It is not a `str`, so it never silently becomes one."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from rung.errors import ContextTypeError


class Origin(NamedTuple):
    """The item that a run of text came from."""

    item_id: str
    type: str
    source: str


class LabelledText:
    """Text whose runs know the items they came from."""

    __slots__ = ("_origin", "_text")

    def __init__(self, text: str, origin: Origin) -> None:
        self._text = text
        self._origin = origin

    def reveal(self, reason: str) -> str:
        """The plain text, for a reason that a reviewer and the linter can see."""
        if not reason.strip():
            raise ContextTypeError("text is revealed without a reason (say why)")
        return self._text

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The distinct items that its characters came from."""
        return (self._origin,)

    def __len__(self) -> int:
        return len(self._text)

    def __repr__(self) -> str:
        return f"<LabelledText {len(self._text)} characters from {self._origin.item_id}>"

    def _refuse(self) -> NoReturn:
        raise ContextTypeError(
            f"text of item `{self._origin.item_id}` ({self._origin.type}) does not become a `str` "
            '(call .reveal("why"))',
            item_id=self._origin.item_id,
        )

    def __str__(self) -> str:
        self._refuse()
