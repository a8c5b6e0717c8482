"""What a call cost, from prices that the application gives. There are no built-in prices: they change."""

from __future__ import annotations

import msgspec

from rung.assembly.reply import Usage
from rung.errors import ConfigError

_MILLION = 1_000_000


class Prices(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Prices for a million tokens, in one currency of the application's choice.

    Attributes:
        input, output: for a million tokens of the request and of the reply.
        cached_input: for those read from a cache; None takes `input`.
        cache_write: for those written to a cache; None takes `input`.

    Raises:
        ConfigError: a price below zero.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            price = getattr(self, name)
            if price is not None and not price >= 0:
                raise ConfigError(f"price `{name}` is {price} (give zero or more)", path=f"prices.{name}")

    def cost(self, usage: Usage) -> float | None:
        """What this usage costs, or None where the provider reported none."""
        if not usage.reported:
            return None
        plain = max(0, usage.input - usage.cached_input - usage.cache_write)
        cached = self.input if self.cached_input is None else self.cached_input
        written = self.input if self.cache_write is None else self.cache_write
        return (
            plain * self.input + usage.cached_input * cached + usage.cache_write * written + usage.output * self.output
        ) / _MILLION

    def apply(self, usage: Usage) -> Usage:
        """The same usage with its cost."""
        return msgspec.structs.replace(usage, cost=self.cost(usage))
