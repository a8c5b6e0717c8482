"""What providers add around the texts of a request, as data.

Where a provider publishes the rule, `source` names it. Where it does not, the value is a convention of this
package, chosen not to be low, and `conventions` says which fields are such.
"""

from __future__ import annotations

import msgspec

from rung.errors import ConfigError, names


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    """The constant costs of one request format, in tokens.

    `per_request` is paid once, `per_message` for each message or input item, `per_name` for a `name` on a
    message, `per_tool_call` and `per_tool_result` for each of those, `per_tool` for each tool schema and
    `tools` once where there are any, `response_schema` once where there is one. `media` maps a kind (`image`,
    `image:low`, `document`, `audio`, `video`, `file`) to its cost; a kind that is not there is an error,
    and the length of base64 data never counts. `opaque_chars` is how many characters of an encrypted
    reasoning block are taken as one token.
    """

    name: str
    version: str
    source: str
    conventions: tuple[str, ...] = ()
    per_request: int = 0
    per_message: int = 0
    per_name: int = 0
    per_tool_call: int = 0
    per_tool_result: int = 0
    per_tool: int = 0
    tools: int = 0
    response_schema: int = 0
    media: tuple[tuple[str, int], ...] = ()
    opaque_chars: int = 4

    def with_media(self, **tokens: int) -> Framing:
        """The same rules with other costs for media, in tokens each: `framing.with_media(image=800)`."""
        return msgspec.structs.replace(self, media=tuple(sorted({**dict(self.media), **tokens}.items())))

    def media_tokens(self, kind: str, detail: str = "auto") -> int | None:
        """The cost of one medium of this kind, by its detail where that has one; None if none is set."""
        costs = dict(self.media)
        return costs.get(f"{kind}:{detail}", costs.get(kind))

    def replace(self, **fields: object) -> Framing:
        """The same rules with some constants changed."""
        return msgspec.structs.replace(self, **fields)


_COOKBOOK = "OpenAI Cookbook, How to count tokens with tiktoken, sections 6 and 7"

# gpt-4o's table (OpenAI, Images and vision): 85 tokens at low detail; at high detail 85 and 170 for each
# 512-pixel tile of an image scaled to at most 2048 by 768 pixels, so 8 tiles at most.
_OPENAI_MEDIA = (("image", 85 + 8 * 170), ("image:low", 85))

_OPENAI = Framing(
    name="openai-chat",
    version="1",
    source=_COOKBOOK,
    conventions=("per_tool_call", "per_tool_result", "tools", "response_schema", "opaque_chars"),
    per_request=3,  # the reply is primed with <|start|>assistant<|message|>
    per_message=3,
    per_name=1,
    per_tool_call=8,
    per_tool_result=4,
    per_tool=10,  # the Cookbook's `func_init`: 7 for gpt-4o, 10 for gpt-4
    tools=16,  # the Cookbook's `func_end` is 12; the namespace around them is not published
    response_schema=16,
    media=_OPENAI_MEDIA,
)

FRAMINGS: dict[str, Framing] = {
    framing.name: framing
    for framing in (
        _OPENAI,
        msgspec.structs.replace(
            _OPENAI,
            name="openai-responses",
            source=f"{_COOKBOOK} (for chat; for Responses nothing is published)",
            conventions=(*_OPENAI.conventions, "per_message", "per_request", "per_name"),
        ),
        Framing(
            name="anthropic",
            version="1",
            source=(
                "Anthropic, Tool use, pricing: the tool use system prompt is 290 to 804 tokens by model and "
                "choice; Vision: at most 1568 tokens an image, 4784 in the high-resolution tier"
            ),
            conventions=(
                "per_request",
                "per_message",
                "per_name",
                "per_tool_call",
                "per_tool_result",
                "per_tool",
                "response_schema",
                "opaque_chars",
            ),
            per_request=8,
            per_message=4,
            per_name=1,
            per_tool_call=16,
            per_tool_result=16,
            per_tool=16,
            tools=804,
            response_schema=64,
            media=(("image", 4784),),
        ),
        Framing(name="text", version="1", source="no framing: the text is the whole prompt"),
    )
}


def framing_for(target: str | Framing) -> Framing:
    """The framing of a target (`openai-chat`, `openai-responses`, `anthropic`, `text`), or the one given.

    Raises `ConfigError` for an unknown target.
    """
    if isinstance(target, Framing):
        return target
    try:
        return FRAMINGS[target]
    except KeyError:
        raise ConfigError(f"no framing for target `{target}` (use one of {names(FRAMINGS)})", path="target") from None
