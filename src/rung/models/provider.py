"""What the adapters of official clients share: the key, a client for each event loop, errors, and the two ways.

Retries, time limits and waits after a 429 are the official client's own; `timeout` and `max_retries` are its options.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, Protocol, final
from urllib.parse import urlsplit

import msgspec

from rung.assembly.reply import OnEvent, Reply, ReplyDone, StreamEvent
from rung.errors import ConfigError, ModelAuthError
from rung.models.failures import raised
from rung.models.prices import Prices
from rung.models.replies import Stopped, broken, tell

NO_KEY = "none"
"""Sent where a server of one's own needs no key: the official clients insist on one."""


@final
class Secret:
    """A key that neither prints nor pickles."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> Any:
        raise ConfigError("a key does not pickle (let the other process read its environment)", path="api_key")


class Assembler(Protocol):
    """Puts a streamed reply together."""

    def feed(self, raw: Mapping[str, Any]) -> list[StreamEvent]: ...

    def reply(self) -> Reply: ...


class ProviderModel:
    """A model behind an official client; `OpenAIChat`, `OpenAIResponses` and `AnthropicMessages` derive from it.

    Args:
        model: the model's name, as the provider knows it.
        base_url: the address of the API; None takes the environment's, or the provider's own.
        api_key: the key; None reads `api_key_env` from the environment at the first call.
        api_key_env: the environment variable that holds the key; None is the provider's usual one.
        client: an official asynchronous client of yours, used as it is; the four above and below do not apply.
        timeout: seconds without an answer, or between two pieces of one, for each attempt.
        max_retries: how often the client tries again after a lost connection, 408, 409, 429 or 5xx.
        max_tokens: the most tokens of a reply where a call does not say; None leaves it to the provider.
        options: further arguments of each call, such as `temperature` or `tool_choice`; a request's own win.
        prices: what tokens cost, for `usage.cost`.

    Raises:
        ConfigError: an empty model name, a limit of zero or less, or a client that is not asynchronous.
    """

    provider: ClassVar[str]
    target: ClassVar[str]
    key_env: ClassVar[str]
    base_url_env: ClassVar[str]
    default_max_tokens: ClassVar[int | None] = None

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        client: Any = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        max_tokens: int | None = None,
        options: Mapping[str, Any] | None = None,
        prices: Prices | None = None,
    ) -> None:
        if not model:
            raise ConfigError("a model has no name (set `model`)", path="model")
        if not timeout > 0:
            raise ConfigError(f"`timeout` is {timeout} (give seconds above zero)", path="timeout")
        if max_retries < 0:
            raise ConfigError(f"`max_retries` is {max_retries} (give zero or more)", path="max_retries")
        if max_tokens is not None and max_tokens < 1:
            raise ConfigError(f"`max_tokens` is {max_tokens} (give one or more)", path="max_tokens")
        if client is not None and not type(client).__name__.startswith("Async"):
            kind = type(client).__name__
            raise ConfigError(
                f"`{kind}` is no asynchronous client (give `Async{kind}`; `run_sync` works with it)", path="client"
            )
        self._model = model
        self._base_url = base_url
        self._key = Secret(api_key) if api_key else None
        self._key_env = api_key_env or self.key_env
        self._given = client
        self._timeout = timeout
        self._max_retries = max_retries
        self._max_tokens = max_tokens if max_tokens is not None else self.default_max_tokens
        self._options = dict(options or {})
        self._prices = prices
        # A client's connections live in one event loop; run_sync opens a new loop each time.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = weakref.WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def address(self) -> str:
        """Where requests go, without user, key or query; empty where the provider's own address is used."""
        url = self._given.base_url if self._given is not None else self._url()
        return _bare(str(url)) if url else ""

    def check(self) -> None:
        """Whether this model could be called: the package is there, and a key or an address is set.

        Raises:
            MissingExtraError: the provider's package is not installed.
            ModelAuthError: no key, and no address of a server that needs none.
        """
        if self._given is None:
            self._package()
            self._secret()

    async def complete(
        self,
        request: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
        stream: OnEvent | None = None,
    ) -> Reply:
        """As `rung.assembly.reply.Model.complete`. A stream that breaks is not tried again."""
        arguments = self._arguments(request, max_tokens or self._max_tokens)
        client = self._client()
        secret = self._in_use(client)
        try:
            if stream is None:
                reply = await self._whole(client, arguments)
            else:
                reply = await self._streamed(client, arguments, stream)
        except Stopped as stopped:
            failure: Exception = stopped.error
        except Exception as error:
            failure = raised(self.provider, error, secret=secret, address=self.address)
            if failure is error:
                raise
        else:
            return reply
        raise failure  # outside of `except`, so that an error which spells the key leaves no trace of it

    async def aclose(self) -> None:
        """Close the connections of this event loop. A client of yours stays open."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def __aenter__(self) -> ProviderModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        at = f" at {self.address}" if self.address else ""
        return f"<{type(self).__name__} {self._model}{at}>"

    async def _whole(self, client: Any, arguments: dict[str, Any]) -> Reply:
        raw = await self._endpoint(client).with_raw_response.create(**arguments)
        return self._priced(self._parse(await raw.http_response.aread()))

    async def _streamed(self, client: Any, arguments: dict[str, Any], stream: OnEvent) -> Reply:
        assembler = self._assembler()
        pieces = await self._endpoint(client).create(**arguments, **self._stream_arguments(arguments))
        async with pieces:
            async for raw in _events(self.provider, pieces):
                for event in assembler.feed(raw):
                    tell(stream, event)
        reply = self._priced(assembler.reply())
        tell(stream, ReplyDone(reply=reply))
        return reply

    def _priced(self, reply: Reply) -> Reply:
        if self._prices is None:
            return reply
        return msgspec.structs.replace(reply, usage=self._prices.apply(reply.usage))

    def _url(self) -> str | None:
        return self._base_url or os.environ.get(self.base_url_env) or None

    def _secret(self) -> str:
        key = self._key.reveal() if self._key is not None else os.environ.get(self._key_env)
        if key:
            return key
        if self._url():
            return NO_KEY
        raise ModelAuthError(
            f"no key for `{self.provider}` (set `{self._key_env}` in the environment, or `base_url` or "
            f"`{self.base_url_env}` to a server that needs none)",
            provider=self.provider,
        )

    def _in_use(self, client: Any) -> str | None:
        key = getattr(client, "api_key", None)
        return key if isinstance(key, str) and key and key != NO_KEY else None

    def _client(self) -> Any:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            options: dict[str, Any] = {"timeout": self._timeout, "max_retries": self._max_retries}
            url = self._url()
            if url:
                options["base_url"] = url
            client = self._clients[loop] = self._make(api_key=self._secret(), **options)
        return client

    # What differs between providers: abstract here, each provider gives its own.

    def _package(self) -> Any:
        raise NotImplementedError

    def _make(self, **options: Any) -> Any:
        raise NotImplementedError

    def _endpoint(self, client: Any) -> Any:
        raise NotImplementedError

    def _arguments(self, request: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        raise NotImplementedError

    def _stream_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"stream": True}

    def _parse(self, raw: bytes) -> Reply:
        raise NotImplementedError

    def _assembler(self) -> Assembler:
        raise NotImplementedError


async def _events(provider: str, pieces: Any) -> AsyncIterator[dict[str, Any]]:
    """The client's events as plain values: what it read, without what it knows beside."""
    async for piece in pieces:
        to_dict = getattr(piece, "to_dict", None)
        if to_dict is None:
            raise broken(provider, "an event of the stream is no object")
        yield to_dict(mode="json", warnings=False)


def _bare(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
