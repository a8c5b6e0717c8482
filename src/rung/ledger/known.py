"""The types that a store knows: the library's own, the application's, and those that only a policy names."""

from __future__ import annotations

from collections.abc import Iterable

from rung.errors import ConfigError
from rung.policy.rules import PolicySet
from rung.records.types import BUILTIN_TYPES, ContextType


def known_types(own: Iterable[type[ContextType]], policy: PolicySet) -> dict[str, type[ContextType]]:
    """The types by name.

    Args:
        own: the application's classes.
        policy: each type must stand in it; a type that only it names gets a class of its own.

    Raises:
        ConfigError: two classes have one name, or a class is not in the policy.
    """
    known = {kind.name: kind for kind in BUILTIN_TYPES}
    for kind in own:
        if kind.name in known and known[kind.name] is not kind:
            raise ConfigError(f"two types are named `{kind.name}` (rename one)", path=f"types.{kind.name}")
        if kind.name not in policy.types:
            raise ConfigError(
                f"the type `{kind.name}` is not in the policy (declare `[types.{kind.name}]` with its integrity)",
                path=f"types.{kind.name}",
            )
        known[kind.name] = kind
    for declared in policy.types:
        if declared not in known:
            # Named in a TOML file only: the class is reached by store.type_named(name).
            known[declared] = type(declared, (ContextType,), {}, name=declared)
    return known
