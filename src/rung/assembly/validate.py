"""What a provider would refuse in a request, found before it is sent.

Works on anybody's request: the keyword arguments of the client call, however they were made.

    for problem in validate(request, "anthropic"):
        print(problem)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rung.assembly.problems import Fields, Problem, shape
from rung.assembly.rules import encodable
from rung.assembly.rules_anthropic import anthropic_problems
from rung.assembly.rules_openai import chat_problems, responses_problems
from rung.errors import ConfigError, RequestError, names

__all__ = ["Problem", "check", "validate"]


def _text_problems(request: Fields) -> Iterator[Problem]:
    if not isinstance(request.get("prompt"), str) or not request["prompt"]:
        yield shape("prompt", "there is no prompt", "send a text under `prompt`")


_RULES: dict[str, Callable[[Fields], Iterator[Problem]]] = {
    "openai-chat": chat_problems,
    "openai-responses": responses_problems,
    "anthropic": anthropic_problems,
    "text": _text_problems,
}


def validate(request: Mapping[str, Any], target: str) -> list[Problem]:
    """Every finding in a request, in the order of its parts; none means that the provider's rules are kept.

    Args:
        request: keyword arguments of the client call, as plain dictionaries and lists.
        target: `openai-chat`, `openai-responses`, `anthropic` or `text`.

    Raises:
        ConfigError: no such target.
    """
    rules = _RULES.get(target)
    if rules is None:
        raise ConfigError(f"no target `{target}` (use one of {names(_RULES)})", path="target")
    values = dict(request)
    return [*rules(values), *encodable("", values)]


def check(request: Mapping[str, Any], target: str) -> None:
    """Refuse a request that the provider would refuse.

    Raises:
        RequestError: there are findings; `problems` holds them.
        ConfigError: no such target.
    """
    problems = validate(request, target)
    if problems:
        shown = "; ".join(str(problem) for problem in problems[:3])
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise RequestError(f"`{target}` would refuse this request: {shown}{more}", problems=tuple(problems))
