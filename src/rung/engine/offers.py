"""What a set of tools offers for a turn, asked within a time limit; a set that fails is left out and reported."""

from __future__ import annotations

import asyncio
import inspect

from rung.compiler.manifest import Entry
from rung.errors import kind
from rung.tools.principal import Principal
from rung.tools.sets import Offered, ToolSet, ToolSource, offered


async def offers_of(
    source: ToolSource, principal: Principal, seconds: float
) -> tuple[list[Offered], tuple[Entry, ...]]:
    """The tools of a set, or the manifest row that says why there are none."""
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(source.tools) or isinstance(source, ToolSet):
                found = source.tools(principal)
            else:
                found = await asyncio.to_thread(source.tools, principal)
            tools = await found if inspect.isawaitable(found) else found
        trusted, pins = getattr(source, "trusted", False), getattr(source, "pins", {})
        offers = offered(source.name, tools, trusted=trusted, pins=pins)
    except TimeoutError:
        return [], (_row(source, "timeout", seconds=seconds),)
    except Exception as problem:
        return [], (_row(source, "fetch_failed", error=kind(problem)),)
    return offers, ()


def _row(source: ToolSource, reason: str, **params: object) -> Entry:
    return Entry(source="tools", item=source.name, type="tool", state="failed", reason=reason, params=params)
