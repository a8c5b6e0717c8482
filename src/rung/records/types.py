"""Context types: a type is a class, never an instance and never guessed from text."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Never, Self

from rung.errors import ContextTypeError, InputError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class ContextType:
    """What an item is. Subclass it for an application's own type and name that type in the policy.

    The class is the type: `store.add(Evidence, text, …)` gives a `ContextItem[Evidence]`. A type has no
    instances, so calling one raises `ContextTypeError` and names the call that was meant.

    >>> class SupportTicket(ContextType): ...
    >>> SupportTicket.name
    'support_ticket'
    """

    name: ClassVar[str] = "context"
    mend: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = name if name is not None else _snake(cls.__name__)
        if not _NAME.match(cls.name):
            raise InputError(
                f"`{cls.name}` cannot name a context type (lower-case letters, digits and `_`, "
                "at most 64, starting with a letter)",
                field="name",
            )

    def __new__(cls, *args: Never, **kwargs: Never) -> Self:
        call = cls.__dict__.get("mend") or f"store.add({cls.__name__}, text, source=…)"
        raise ContextTypeError(
            f"`{cls.__name__}` is a type, not a constructor: items come from a store (use `{call}`)",
            target=cls.name,
        )


class Instruction(ContextType):
    """Text that steers the model: literals, files and templates of the deployment."""

    mend = "store.instruct(…)"


class Policy(ContextType):
    """An instruction that no turn may leave out."""

    mend = "store.add(Policy, text, source=…)"


class User(ContextType):
    """The request, or an earlier one, of the person or program being served."""

    mend = "store.user(text)"


class Assistant(ContextType):
    """An earlier reply of the model, its tool calls included."""


class Evidence(ContextType):
    """A passage or value that passed the validators or that a listed source observed itself."""

    mend = "store.promote(item, Evidence)"


class Memory(ContextType):
    """Something kept from an earlier session."""

    mend = "store.promote(item, Memory)"


class ToolOutput(ContextType):
    """What a tool returned."""


class Summary(ContextType):
    """A shorter form of earlier items, derived from them."""


class TaskState(ContextType):
    """The state of the work: plans, progress, what another agent delegated."""


BUILTIN_TYPES: tuple[type[ContextType], ...] = (
    Policy,
    Instruction,
    User,
    Evidence,
    Memory,
    Assistant,
    Summary,
    TaskState,
    ToolOutput,
)
