"""Any callable as a model: a client of another package, a gateway, a function of a test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import msgspec

from rung.assembly.reply import OnEvent, Reply, ReplyDone, TextDelta
from rung.errors import ConfigError, ModelReplyError, RungError, kind, names
from rung.models.chat_wire import chat_reply
from rung.models.failures import raised
from rung.models.messages_wire import messages_reply
from rung.models.prices import Prices
from rung.models.replies import Stopped, tell
from rung.models.responses_wire import responses_reply

_PARSERS: dict[str, Callable[[str, Mapping[str, Any]], Reply]] = {
    "openai-chat": chat_reply,
    "openai-responses": responses_reply,
    "anthropic": messages_reply,
}
_ASYNC = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
_TARGETS = ("text", *_PARSERS)


class CallableModel:
    """A function as a model.

    Args:
        function: takes a request (a mapping; its `prompt` for target `text`) and returns a text, a `Reply`, what
            the provider of the target sends (as a mapping, or an object with `model_dump`), an awaitable of one of
            these, or an asynchronous iterator of texts. One that is not asynchronous runs in a thread.
        target: the request format that it takes.
        name: its name in manifests.
        limit: the argument of a request that carries the most tokens of the reply, or None: then a limit does not
            reach the function.
        prices: what tokens cost, for `usage.cost`.

    Raises:
        ConfigError: no such target, or `function` cannot be called.
    """

    def __init__(
        self,
        function: Callable[[Mapping[str, Any]], Any],
        *,
        target: str = "text",
        name: str | None = None,
        limit: str | None = None,
        prices: Prices | None = None,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"a model's function is a `{kind(function)}` (give a callable)", path="function")
        if target not in _TARGETS:
            raise ConfigError(f"no target `{target}` (use one of {names(_TARGETS)})", path="target")
        self._function = function
        self._target = target
        self._name = name or getattr(function, "__name__", None) or kind(function)
        self._limit = limit
        self._prices = prices

    @property
    def name(self) -> str:
        """The name given, or the function's."""
        return self._name

    @property
    def target(self) -> str:
        """The request format that the function takes."""
        return self._target

    async def complete(
        self,
        request: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
        stream: OnEvent | None = None,
    ) -> Reply:
        """As `rung.assembly.reply.Model.complete`. What returns a whole reply streams it in one piece.

        Raises:
            ModelError: the function raised; errors of `openai`, `anthropic`, `httpx` and `litellm` keep their kind.
            ModelReplyError: it returned what is no reply.
        """
        if self._limit is not None and max_tokens is not None:
            request = {**request, self._limit: max_tokens}
        streamed: list[str] = []
        try:
            found = await self._call(request)
            if isinstance(found, AsyncIterator):
                async for text in cast("AsyncIterator[object]", found):
                    streamed.append(self._text(text))
                    if stream is not None:
                        tell(stream, TextDelta(text=streamed[-1]))
                found = "".join(streamed)
            reply = self._reply(found)
        except Stopped as stopped:
            raise stopped.error from None
        except Exception as error:
            raise raised(self._name, error) from error.__cause__ if isinstance(error, RungError) else error
        if self._prices is not None:
            reply = msgspec.structs.replace(reply, usage=self._prices.apply(reply.usage))
        if stream is not None:
            if reply.text and not streamed:
                stream(TextDelta(text=reply.text))
            stream(ReplyDone(reply=reply))
        return reply

    async def _call(self, request: Mapping[str, Any]) -> Any:
        function = self._function
        if any(is_async(one) for one in (function, type(function).__call__) for is_async in _ASYNC):
            found = function(request)
        else:
            found = await asyncio.to_thread(function, request)
        return await found if inspect.isawaitable(found) else found

    def _text(self, piece: object) -> str:
        if not isinstance(piece, str):
            raise ModelReplyError(f"`{self._name}` streams a `{kind(piece)}`, not texts", provider=self._name)
        return piece

    def _reply(self, found: Any) -> Reply:
        if isinstance(found, Reply):
            return found
        if isinstance(found, str):
            return Reply(text=found, model=self._name)
        if hasattr(found, "model_dump"):
            found = found.model_dump(mode="json", warnings=False)
        parser = _PARSERS.get(self._target)
        if parser is None or not isinstance(found, Mapping):
            wanted = "a text, a `Reply`" + (f" or what `{self._target}` sends" if parser else "")
            raise ModelReplyError(f"`{self._name}` returned a `{kind(found)}` (return {wanted})", provider=self._name)
        return parser(self._name, cast("Mapping[str, Any]", found))

    def __repr__(self) -> str:
        return f"<CallableModel {self._name} {self._target}>"
