"""The linter's configuration: `[tool.rung.check]` in `pyproject.toml`, or a file of the same table.

[tool.rung.check]
exclude = ["tests/*"]                 # globs over paths below the checked root
select = ["RUNG1"]                    # ids or prefixes; empty: all
ignore = ["RUNG302"]
report-unused-ignores = true
sanitizers = ["acme.clean.*"]
carriers = ["acme.text.*"]
sources = [{ kind = "tool", call = "acme.search.*" }]
sinks = [{ call = "acme.Bot", argument = "rules", position = 0, channel = "a bot's rules" }]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rung.check.rules import RULES
from rung.check.tables import KINDS, Sink, Source
from rung.errors import ConfigError, kind, names

DEFAULT_EXCLUDE = (
    ".git", ".hg", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", "build", "dist", ".eggs",
    "site-packages", ".mypy_cache", ".ruff_cache", ".pytest_cache",
)  # fmt: skip
"""Folders that are never walked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """What to check and what to add to the tables."""

    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    sanitizers: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    sinks: tuple[Sink, ...] = ()
    report_unused_ignores: bool = False

    def wants(self, rule: str) -> bool:
        """Whether findings of this rule are reported. The longer prefix wins; `ignore` wins a tie."""
        chosen = max((len(prefix) for prefix in self.select if rule.startswith(prefix)), default=-1)
        if self.select and chosen < 0:
            return False
        return max((len(prefix) for prefix in self.ignore if rule.startswith(prefix)), default=-2) < max(chosen, 0)


def load_config(path: str | Path | None = None, *, start: str | Path = ".") -> CheckConfig:
    """Reads `path`; without one, the nearest `pyproject.toml` at or above `start`; else the defaults.

    Raises ConfigError for a file that cannot be read and for a field that is unknown or wrong.
    """
    found = Path(path) if path is not None else _nearest(Path(start))
    if found is None:
        return CheckConfig()
    try:
        document = tomllib.loads(found.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the configuration `{found}` cannot be read: {error}", path="") from error
    table = _table(_table(_table(document, "tool"), "rung"), "check")
    if not table and path is not None and found.name != "pyproject.toml":
        table = {key: value for key, value in document.items() if key != "tool"}
    return _build(table)


def _nearest(start: Path) -> Path | None:
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / "pyproject.toml").is_file():
            return candidate / "pyproject.toml"
    return None


def _table(parent: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"`{key}` is a {kind(value)}, a table is wanted", path=key)
    return cast("dict[str, Any]", value)


_LISTS = ("exclude", "select", "ignore", "sanitizers", "carriers")
_FIELDS = (*_LISTS, "sources", "sinks", "report-unused-ignores")


def _build(table: Mapping[str, Any]) -> CheckConfig:
    unknown = sorted(set(table) - set(_FIELDS))
    if unknown:
        raise ConfigError(
            f"unknown fields in `tool.rung.check`: {names(unknown)} (known: {names(_FIELDS, 12)})",
            path=unknown[0],
        )
    lists = {name: _strings(table.get(name, []), name) for name in _LISTS}
    for name in ("select", "ignore"):
        for prefix in lists[name]:
            if not any(rule.startswith(prefix) for rule in RULES):
                raise ConfigError(f"`{prefix}` in `{name}` is no rule and no prefix of one", path=name)
    flag = table.get("report-unused-ignores", False)
    if not isinstance(flag, bool):
        raise ConfigError("`report-unused-ignores` is true or false", path="report-unused-ignores")
    sources = _entries(table, "sources", ("kind", "call", "attribute", "annotation", "decorator"))
    sinks = _entries(table, "sinks", ("call", "argument", "position", "channel"))
    return CheckConfig(
        **lists,
        sources=tuple(_source(entry, f"sources[{place}]") for place, entry in enumerate(sources)),
        sinks=tuple(_sink(entry, f"sinks[{place}]") for place, entry in enumerate(sinks)),
        report_unused_ignores=flag,
    )


def _strings(value: object, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in cast("list[object]", value)):
        raise ConfigError(f"`{path}` is a list of strings", path=path)
    return tuple(cast("list[str]", value))


def _entries(table: Mapping[str, Any], name: str, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    value = table.get(name, [])
    if not isinstance(value, list):
        raise ConfigError(f"`{name}` is a list of tables", path=name)
    for place, entry in enumerate(cast("list[object]", value)):
        if not isinstance(entry, dict):
            raise ConfigError(f"`{name}[{place}]` is a {kind(entry)}, a table is wanted", path=f"{name}[{place}]")
        for key, part in cast("dict[str, object]", entry).items():
            wanted = int if key == "position" else str
            if key not in fields or type(part) is not wanted:
                raise ConfigError(
                    f"`{name}[{place}].{key}` is unknown or no {wanted.__name__} (known: {names(fields)})",
                    path=f"{name}[{place}].{key}",
                )
    return cast("list[dict[str, Any]]", value)


def _source(entry: dict[str, Any], path: str) -> Source:
    source = Source(**{"kind": "custom", **entry})
    if source.kind not in KINDS:
        raise ConfigError(f"`{path}.kind` is `{source.kind}` (known: {names(KINDS, 12)})", path=f"{path}.kind")
    if sum(map(bool, (source.call, source.attribute, source.annotation, source.decorator))) != 1:
        raise ConfigError(f"`{path}` needs exactly one of `call`, `attribute`, `annotation`, `decorator`", path=path)
    return source


def _sink(entry: dict[str, Any], path: str) -> Sink:
    if not entry.get("call"):
        raise ConfigError(f"`{path}.call` is missing", path=f"{path}.call")
    if not entry.get("argument") and entry.get("position") is None:
        raise ConfigError(f"`{path}` needs `argument` or `position`", path=path)
    if entry.get("position", 0) < 0:
        raise ConfigError(f"`{path}.position` counts from 0", path=f"{path}.position")
    return Sink(**entry)
