"""Policies from Python or TOML: read, merged over the defaults, checked for unguarded paths."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec

from rung.errors import ConfigError, PolicyError, kind, names
from rung.policy.rules import (
    RULES,
    USER_INTEGRITY,
    Budget,
    HistoryRule,
    Limits,
    PolicySet,
    SourcePolicy,
    Transition,
    TurnIntent,
    TypePolicy,
)
from rung.records.labels import Sensitivity

S = TypeVar("S")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\Z")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATIONS = ("max_age", "timeout", "clock_skew")

DEFAULT_TYPES: Mapping[str, TypePolicy] = {
    "policy": TypePolicy(integrity=100, protected=True, text="refuse"),
    "instruction": TypePolicy(integrity=100, protected=True, text="refuse"),
    "user": TypePolicy(integrity=USER_INTEGRITY, text="refuse"),
    "evidence": TypePolicy(integrity=60, freshness="document"),
    "memory": TypePolicy(integrity=60, freshness="memory"),
    "assistant": TypePolicy(integrity=20),
    "summary": TypePolicy(integrity=20),
    "task_state": TypePolicy(integrity=20),
    "tool_output": TypePolicy(integrity=20, freshness="live"),
}

DEFAULT_TRANSITIONS: tuple[Transition, ...] = (
    Transition(source="tool_output", target="evidence", validators=("envelope", "size")),
    Transition(source="evidence", target="memory", validators=("size",)),
    Transition(source="user", target="memory", validators=("size",)),
    Transition(source="user", target="instruction", validators=("approval",)),
    *(
        Transition(source=source, target=target, validators=("size",))
        for target in ("summary", "task_state")
        for source in ("user", "evidence", "memory", "assistant", "tool_output", "summary", "task_state")
        if source != target
    ),
)

DEFAULT_FRESHNESS: Mapping[str, float] = {
    "live": 300.0,
    "memory": 30 * 86400.0,
    "document": 0.0,
    "stable": 0.0,
}
"""Seconds; 0 means: no limit of age, versions and validity decide."""


def default_policy() -> PolicySet:
    """The policy of a store that is given none."""
    return validated(PolicySet(types=DEFAULT_TYPES, transitions=DEFAULT_TRANSITIONS, freshness=DEFAULT_FRESHNESS))


def load_policy(path: str | Path) -> PolicySet:
    """The policy of a TOML file, merged over the defaults.

    Raises:
        ConfigError: the file is missing, is not TOML, or has a wrong field; the message names path and mend.
        PolicyError: the policy contradicts itself or leaves an unguarded path into a protected type.
    """
    return policy_from(read_toml(path), origin=str(path))


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: the file is missing, unreadable, or not TOML.
    """
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"`{path}` does not exist (create it with `rung init`)", path=str(path)) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(
            f"`{path}` cannot be read: {problem} (check the path and its rights)", path=str(path)
        ) from None
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"`{path}` is not valid TOML: {problem} (correct that line)", path=str(path)) from None


def policy_from(tables: Mapping[str, Any], origin: str = "policy") -> PolicySet:
    """The policy of TOML-like tables: `types`, `transitions`, `sources`, `freshness`, `intents`, `rules`,
    `guards`, `budget`, `limits`, `history`, `conflicts`. Given entries are merged over the defaults; a list of
    transitions is added to the default ones, and an entry with the same ends replaces the default.
    """
    known = set(PolicySet.__struct_fields__)
    for name in tables:
        if name not in known:
            raise ConfigError(
                f"`{name}` is no section of a policy in {origin} (one of {names(sorted(known))})", path=name
            )
    types = dict(DEFAULT_TYPES)
    for name, table in _tables(tables, "types"):
        given = dict(table)
        if isinstance(given.get("integrity"), str):
            like = types.get(given["integrity"])
            if like is None:
                raise ConfigError(
                    f"`types.{name}.integrity` names the unknown type `{given['integrity']}` "
                    "(a number from 0 to 100, or a type listed before it)",
                    path=f"types.{name}.integrity",
                )
            given["integrity"] = like.integrity
        base: dict[str, Any] = msgspec.to_builtins(types[name]) if name in types else {}
        types[name] = convert(base | given, TypePolicy, f"types.{name}")
    transitions = {(t.source, t.target): t for t in DEFAULT_TRANSITIONS}
    for number, entry in enumerate(_list(tables, "transitions")):
        made = convert(entry, Transition, f"transitions[{number}]")
        transitions[made.source, made.target] = made
    freshness = dict(DEFAULT_FRESHNESS)
    for name, value in _table(tables, "freshness").items():
        freshness[name] = seconds(value, f"freshness.{name}")
    sources = {name: convert(table, SourcePolicy, f"sources.{name}") for name, table in _tables(tables, "sources")}
    intents = {
        name: convert({"name": name} | dict(table), TurnIntent, f"intents.{name}")
        for name, table in _tables(tables, "intents")
    }
    return validated(
        PolicySet(
            types=types,
            transitions=tuple(transitions.values()),
            sources=sources,
            freshness=freshness,
            intents=intents,
            rules=convert(_table(tables, "rules"), dict[str, Any], "rules"),
            guards=convert(tables.get("guards", ["approval"]), tuple[str, ...], "guards"),
            budget=convert(_table(tables, "budget"), Budget, "budget"),
            limits=convert(_table(tables, "limits"), Limits, "limits"),
            history=convert(_table(tables, "history"), HistoryRule, "history"),
            conflicts=convert(_table(tables, "conflicts"), dict[str, str], "conflicts"),
        )
    )


def seconds(value: object, path: str) -> float:
    """Seconds from a number or from text such as `300`, `5m`, `30d`.

    Raises:
        ConfigError: neither; `path` names the field.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    if isinstance(value, str) and (found := _DURATION.match(value.strip())):
        return float(found[1]) * _UNIT[found[2]]
    raise ConfigError(f"`{path}` is {value!r}, no duration (seconds, or text like `5m`, `12h`, `30d`)", path=path)


def convert(value: object, into: type[S], path: str) -> S:
    """A frozen value of a TOML table, with errors that name the field.

    Raises:
        ConfigError: an unknown field, a wrong kind, a value outside its range.
    """
    if isinstance(value, Mapping):
        table: dict[str, Any] = dict(cast("Mapping[str, Any]", value))
        for field in _DURATIONS:
            if field in table:
                table[field] = seconds(table[field], f"{path}.{field}")
        for field in ("sensitivity", "clearance"):
            if isinstance(table.get(field), str):
                try:
                    table[field] = Sensitivity.parse(table[field])
                except ValueError as problem:
                    raise ConfigError(f"`{path}.{field}`: {problem}", path=f"{path}.{field}") from None
        value = table
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as problem:
        text, _, place = str(problem).partition(" - at ")
        where = path + place.strip("`").removeprefix("$")
        mend = ""
        if "unknown field" in text and hasattr(into, "__struct_encode_fields__"):
            allowed: tuple[str, ...] = getattr(into, "__struct_encode_fields__")  # noqa: B009 - not on type[S]
            mend = f" (one of {names(sorted(allowed), 24)})"
        raise ConfigError(f"`{where}`: {text[:1].lower()}{text[1:]}{mend}", path=where) from None


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = tables.get(name, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{name}` is of kind {kind(value)}, not a table (write `[{name}]`)", path=name)
    return cast("Mapping[str, Any]", value)


def _tables(tables: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in _table(tables, name).items():
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"`{name}.{key}` is of kind {kind(value)}, not a table (write `[{name}.{key}]`)",
                path=f"{name}.{key}",
            )
        yield key, cast("Mapping[str, Any]", value)


def _list(tables: Mapping[str, Any], name: str) -> list[Any]:
    value = tables.get(name, [])
    if not isinstance(value, list):
        raise ConfigError(f"`{name}` is of kind {kind(value)}, not a list (write `[[{name}]]`)", path=name)
    return cast("list[Any]", value)


def validated(policy: PolicySet) -> PolicySet:
    """The same policy with read-only mappings, after checking it.

    Raises:
        PolicyError: unknown names, contradictions, or an unguarded path into a protected type.
    """
    for name, mode in policy.rules.items():
        if name not in RULES:
            raise PolicyError(f"`rules.{name}` is no rule (one of {names(sorted(RULES), 20)})", path=f"rules.{name}")
        if mode not in ("enforce", "warn", "observe"):
            raise PolicyError(f"`rules.{name}` is {mode!r} (one of `enforce`, `warn`, `observe`)", path=f"rules.{name}")
    for name, given in policy.types.items():
        if given.integrity > USER_INTEGRITY and not given.protected:
            raise PolicyError(
                f"`types.{name}` has integrity {given.integrity}, above USER ({USER_INTEGRITY}), and is not protected: "
                "an unguarded path (set `protected = true` or lower its integrity)",
                path=f"types.{name}.protected",
            )
        if name in ("policy", "instruction") and not given.protected:
            raise PolicyError(
                f"`types.{name}` is what steers the model, and is not protected: an unguarded path "
                "(set `protected = true`)",
                path=f"types.{name}.protected",
            )
        if given.freshness is not None and given.freshness not in policy.freshness:
            raise PolicyError(
                f"`types.{name}.freshness` names the unknown class `{given.freshness}` "
                f"(one of {names(sorted(policy.freshness))})",
                path=f"types.{name}.freshness",
            )
    seen: set[tuple[str, str]] = set()
    for number, step in enumerate(policy.transitions):
        _check_transition(policy, step, f"transitions[{number}]", seen)
    for name, source in policy.sources.items():
        _check_source(policy, name, source)
    return msgspec.structs.replace(
        policy,
        types=MappingProxyType(dict(policy.types)),
        sources=MappingProxyType(dict(policy.sources)),
        freshness=MappingProxyType(dict(policy.freshness)),
        intents=MappingProxyType(dict(policy.intents)),
        rules=MappingProxyType(dict(policy.rules)),
        conflicts=MappingProxyType(dict(policy.conflicts)),
    )


def _check_transition(policy: PolicySet, step: Transition, path: str, seen: set[tuple[str, str]]) -> None:
    for end, name in (("from", step.source), ("to", step.target)):
        if name not in policy.types:
            raise PolicyError(
                f"`{path}.{end}` names the unknown type `{name}` (one of {names(sorted(policy.types), 20)}, "
                f"or declare `[types.{name}]`)",
                path=f"{path}.{end}",
            )
    if step.source == step.target:
        raise PolicyError(f"`{path}` leads from `{step.source}` to itself (remove it)", path=path)
    if (step.source, step.target) in seen:
        raise PolicyError(f"`{path}` lists `{step.source}` to `{step.target}` twice (keep one)", path=path)
    seen.add((step.source, step.target))
    weakness = unguarded(policy, step)
    if weakness:
        raise PolicyError(
            f"`{path}` leaves an unguarded path from `{step.source}` into the protected type `{step.target}`: "
            f"{weakness}",
            path=path,
        )


def unguarded(policy: PolicySet, step: Transition) -> str | None:
    """Why a transition into a protected type is no guard, with the mend; None where it is one."""
    if not policy.protected(step.target) or policy.integrity(step.source) >= policy.integrity(step.target):
        return None
    if not step.validators:
        return "it has no validators (list at least one)"
    if step.mode != "enforce":
        return f"its mode is `{step.mode}` (a guard enforces)"
    if policy.integrity(step.target) > USER_INTEGRITY and not set(step.validators) & set(policy.guards):
        return f"none of its validators is a guard (add one of {names(policy.guards)})"
    return None


def _check_source(policy: PolicySet, name: str, source: SourcePolicy) -> None:
    for made in source.produces:
        if made not in policy.types:
            raise PolicyError(
                f"`sources.{name}.produces` names the unknown type `{made}` (one of {names(sorted(policy.types), 20)})",
                path=f"sources.{name}.produces",
            )
        if policy.protected(made):
            raise PolicyError(
                f"`sources.{name}.produces` lists the protected type `{made}`: an unguarded path "
                "(declare an InstructionSource, or a transition with an approval)",
                path=f"sources.{name}.produces",
            )
    if source.freshness is not None and source.freshness not in policy.freshness:
        raise PolicyError(
            f"`sources.{name}.freshness` names the unknown class `{source.freshness}` "
            f"(one of {names(sorted(policy.freshness))})",
            path=f"sources.{name}.freshness",
        )
    if source.max_tokens is not None and source.min_tokens > source.max_tokens:
        raise PolicyError(
            f"`sources.{name}.min_tokens` is {source.min_tokens}, above its max_tokens {source.max_tokens} "
            "(lower one or raise the other)",
            path=f"sources.{name}.min_tokens",
        )


def explain(policy: PolicySet) -> str:
    """Who can become what, through which validators, as lines of text."""
    lines = ["types (integrity, from highest)"]
    for name, given in sorted(policy.types.items(), key=lambda pair: (-pair[1].integrity, pair[0])):
        state = "protected" if given.protected else ("trusted" if given.integrity >= USER_INTEGRITY else "untrusted")
        lines.append(f"  {name:<14} {given.integrity:>3}  {state}")
    lines.append("transitions")
    for step in policy.transitions:
        mode = "" if step.mode == "enforce" else f"  [{step.mode}]"
        lines.append(f"  {step.source} -> {step.target}  through {', '.join(step.validators) or 'no validator'}{mode}")
    lines.append("paths into protected types")
    protected = sorted(name for name, given in policy.types.items() if given.protected)
    for target in protected:
        paths = list(paths_into(policy, target))
        lines += [f"  {' -> '.join(nodes)}  through {', '.join(through)}" for nodes, through in paths]
        if not paths:
            lines.append(f"  {target}: none; only declared channels")
    lines.append("sources that register directly")
    listed = [(name, source.produces) for name, source in sorted(policy.sources.items()) if source.produces]
    lines += [f"  {name}: {', '.join(made)}" for name, made in listed] or ["  none"]
    lines.append("rules")
    lines += [f"  {rule:<11} {policy.mode(rule):<8} {text}" for rule, text in RULES.items()]
    return "\n".join(lines)


def paths_into(policy: PolicySet, target: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each chain of transitions that ends in `target`: its types, and the validators on the way."""

    def walk(nodes: tuple[str, ...], through: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        for step in policy.transitions:
            if step.target == nodes[0] and step.source not in nodes:
                chain, passed = (step.source, *nodes), (*step.validators, *through)
                yield chain, passed
                yield from walk(chain, passed)

    yield from walk((target,), ())
