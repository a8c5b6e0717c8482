"""Which tools a turn offers: pinned ones first, then by what the request is about, within tokens and limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rung.assembly.messages import Prompt, ToolSchema
from rung.assembly.targets import target as target_of
from rung.compiler.counting import costs_for
from rung.compiler.manifest import Entry
from rung.errors import BudgetError, ConfigError, names
from rung.tokens.models import tokenizer_for
from rung.tokens.protocol import Tokenizer
from rung.tools.declare import NAME, Tool
from rung.tools.sets import Finding, Offered

PROVIDER_LIMITS: Mapping[str, int] = {"openai-chat": 128, "openai-responses": 128}
"""The most tools of a request. OpenAI, API reference, `tools`: at most 128."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn offers.

    Attributes:
        tools: by the name that the model sees.
        schemas: in canonical order.
        rows: manifest rows of the tools left out.
        findings: what is odd about tools that third parties describe.
        tokens: what the schemas take of the request.
    """

    tools: Mapping[str, Tool] = {}
    schemas: tuple[ToolSchema, ...] = ()
    rows: tuple[Entry, ...] = ()
    findings: tuple[Finding, ...] = ()
    tokens: int = 0


def resolve(
    offers: Iterable[Offered],
    request: str,
    *,
    target: str = "openai-chat",
    max_tokens: int | None = None,
    limit: int | None = None,
    tokenizer: Tokenizer | str = "o200k_base",
) -> Resolution:
    """Choose tools for a request: the same inputs, the same tools, in the same order.

    Args:
        offers: tools of all sets, from `rung.tools.sets.offered`.
        request: what the turn is asked; its words decide among tools that are not pinned.
        target: the request format, for the provider's limit and for counting.
        max_tokens: the most that all schemas may take; None: no limit.
        limit: the most tools; None: the provider's limit.
        tokenizer: who counts.

    Raises:
        ConfigError: two tools of one name that cannot be told apart, or more pinned tools than the limit.
        BudgetError: the pinned tools alone take more than `max_tokens`.
    """
    everything = list(offers)
    findings = tuple(finding for one in everything for finding in one.findings)
    rows = [_row(one.tool.name, "invalidated", why="changed") for one in everything if one.changed]
    named = _named([one for one in everything if not one.changed])
    most = PROVIDER_LIMITS.get(target) if limit is None else limit
    pinned = sorted(name for name, tool in named.items() if tool.pinned)
    if most is not None and len(pinned) > most:
        raise ConfigError(
            f"{len(pinned)} tools are pinned and `{target}` takes {most} (pin fewer)", path="tools.pinned"
        )
    weigh = _Weights(target, tokenizer)
    sizes = {name: weigh((tool.schema,)) for name, tool in named.items()}
    if max_tokens is not None and sum(sizes[name] for name in pinned) > max_tokens:
        largest = sorted(((name, sizes[name]) for name in pinned), key=lambda pair: (-pair[1], pair[0]))
        total = sum(size for _, size in largest)
        raise BudgetError(
            f"pinned tools need {total} tokens, tools may take {max_tokens}: "
            f"{names(f'{name} {size}' for name, size in largest)} (pin fewer, or raise budget.tools)",
            required=tuple(largest),
            budget=max_tokens,
            shortfall=total - max_tokens,
        )
    chosen = list(pinned)
    used = sum(sizes[name] for name in pinned)
    for name, score in _ranked({name: tool for name, tool in named.items() if not tool.pinned}, request):
        if most is not None and len(chosen) >= most:
            rows.append(_row(name, "over_limit", size=sizes[name], limit=most, score=score))
        elif max_tokens is not None and used + sizes[name] > max_tokens:
            rows.append(_row(name, "over_budget", size=sizes[name], left=max_tokens - used, score=score))
        else:
            chosen.append(name)
            used += sizes[name]
    chosen.sort()
    return Resolution(
        tools={name: named[name] for name in chosen},
        schemas=tuple(named[name].schema for name in chosen),
        rows=tuple(sorted(rows, key=lambda row: str(row.item))),
        findings=findings,
        tokens=used,
    )


class _Weights:
    """Tokens that tool schemas add to a request, what the framing adds for each included."""

    def __init__(self, target: str, tokenizer: Tokenizer | str) -> None:
        counter = tokenizer_for(tokenizer, fallback="estimate") if isinstance(tokenizer, str) else tokenizer
        self._costs = costs_for(target_of(target), counter)
        self._empty = self._costs.weigh(Prompt(messages=())).total

    def __call__(self, schemas: tuple[ToolSchema, ...]) -> int:
        return self._costs.weigh(Prompt(messages=(), tools=schemas)).total - self._empty


def _row(name: str, reason: str, *, size: int = 0, **params: object) -> Entry:
    return Entry(source="tools", item=name, type="tool", size=size, state="excluded", reason=reason, params=params)


def _named(offers: Sequence[Offered]) -> dict[str, Tool]:
    """Tools by the name that the model sees. Where two sets use one name, each is qualified by its set's."""
    owners: dict[str, list[Offered]] = {}
    for one in offers:
        owners.setdefault(one.tool.name, []).append(one)
    out: dict[str, Tool] = {}
    for name, group in owners.items():
        for one in group:
            shown = name if len(group) == 1 else f"{one.owner}__{name}"
            if shown in out or (len(group) > 1 and (not one.owner or shown in owners)):
                raise ConfigError(
                    f"two tools are named `{name}` and cannot be told apart (put them into sets of different names)",
                    path=f"tools.{name}",
                )
            if not NAME.match(shown):
                raise ConfigError(
                    f"`{shown[:80]}` is no name that providers take (shorten the set's name or the tool's)",
                    path=f"tools.{name}",
                )
            out[shown] = one.tool if shown == one.tool.name else msgspec.structs.replace(one.tool, name=shown)
    return dict(sorted(out.items()))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text))]


def _stem(word: str) -> str:
    """Enough for English plurals and forms; other languages match whole words."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def _ranked(tools: Mapping[str, Tool], request: str) -> list[tuple[str, float]]:
    """Names with their scores, best first: rare words that a tool shares with the request count most."""
    asked = {_stem(word) for word in _words(request)}
    said: dict[str, dict[str, float]] = {}
    for name, tool in tools.items():
        weights: dict[str, float] = {}
        for text, weight in ((tool.name, 3.0), (tool.description, 1.0), (" ".join(_arguments(tool)), 1.0)):
            for word in _words(text):
                weights[_stem(word)] = max(weight, weights.get(_stem(word), 0.0))
        said[name] = weights
    holders: dict[str, int] = {}
    for weights in said.values():
        for word in weights:
            holders[word] = holders.get(word, 0) + 1
    scores = {
        name: round(
            sum(
                weight * math.log(1 + len(tools) / holders[word])
                for word, weight in sorted(weights.items())
                if word in asked
            ),
            6,
        )
        for name, weights in said.items()
    }
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _arguments(tool: Tool) -> list[str]:
    properties: object = tool.parameters.get("properties")
    return sorted(properties) if isinstance(properties, dict) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
