"""Control tokens and turn markers of the common chat templates, as data.

A template's own tokens are recognised in plain text by most local servers, so text that spells one can end
a turn. Those that begin with an angle bracket are covered by the bracket rule of `rung.assembly.escape`;
the others are matched by name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rung.assembly.lookalikes import COMBINING, GAP, IGNORABLE


class Control(NamedTuple):
    """A control text, the template family that gives it a meaning, and where that is published."""

    family: str
    text: str
    source: str


# Family, where it is published, and the texts, with a comma and a space between them.
_PUBLISHED = (
    ("chatml", "OpenAI, `chatml.md`; Qwen model cards", "<|im_start|>, <|im_end|>, <|im_sep|>"),
    (
        "gpt",
        "OpenAI, `tiktoken` special tokens",
        "<|endoftext|>, <|endofprompt|>, <|fim_prefix|>, <|fim_middle|>, <|fim_suffix|>",
    ),
    ("llama-2", "Meta, Llama 2 prompt format", "[INST], [/INST], <<SYS>>, <</SYS>>, <s>, </s>"),
    (
        "llama-3",
        "Meta, Llama 3 prompt format",
        (
            "<|begin_of_text|>, <|end_of_text|>, <|start_header_id|>, <|end_header_id|>, <|eot_id|>, <|eom_id|>, "
            "<|python_tag|>"
        ),
    ),
    ("llama-4", "Meta, Llama 4 prompt format", "<|header_start|>, <|eot|>"),
    ("gemma", "Google, Gemma formatting and system instructions", "<start_of_turn>, <end_of_turn>, <bos>, <eos>"),
    (
        "mistral",
        "Mistral, `mistral-common` special tokens",
        (
            "[SYSTEM_PROMPT], [/SYSTEM_PROMPT], [AVAILABLE_TOOLS], [/AVAILABLE_TOOLS], [TOOL_CALLS], [TOOL_RESULTS], "
            "[/TOOL_RESULTS], [TOOL_CONTENT], [CALL_ID], [ARGS], [THINK], [/THINK], [IMG], [IMG_END], [PREFIX], "
            "[MIDDLE], [SUFFIX]"
        ),
    ),
    (
        "deepseek",
        "DeepSeek, tokenizer configuration",
        "<｜begin▁of▁sentence｜>, <｜end▁of▁sentence｜>, <｜User｜>, <｜Assistant｜>, <｜tool▁calls▁begin｜>",
    ),
    ("phi", "Microsoft, Phi-3 and Phi-4 model cards", "<|system|>, <|user|>, <|assistant|>, <|end|>"),
    ("qwen", "Qwen, function calling template", "<tool_call>, </tool_response>"),
    ("qwen", "Qwen, thinking template", "</think>"),
    (
        "command-r",
        "Cohere, Command R prompt format",
        "<|START_OF_TURN_TOKEN|>, <|END_OF_TURN_TOKEN|>, <|SYSTEM_TOKEN|>, <|CHATBOT_TOKEN|>, <BOS_TOKEN>",
    ),
    ("harmony", "OpenAI, Harmony response format", "<|start|>, <|channel|>, <|message|>, <|call|>, <|return|>"),
    ("glm", "Zhipu AI, GLM-4 tokenizer", "[gMASK], <sop>, <|observation|>"),
    ("text", "Anthropic, text completions format", "Human:, Assistant:"),
    ("text", "LangChain, buffer strings", "System:, AI:, Tool:, Function:"),
    ("text", "Vicuna and Zephyr style templates", "User:"),
    ("text", "common few-shot transcripts", "Bot:, Model:, Developer:"),
    ("text", "ReAct transcripts", "Observation:"),
    ("alpaca", "Stanford, Alpaca prompt template", "### Instruction:, ### Input:, ### Response:"),
    ("alpaca", "common fine-tuning templates", "### System:, ### User:"),
    ("alpaca", "Vicuna v0 template", "### Human:, ### Assistant:"),
)

CONTROLS: tuple[Control, ...] = tuple(
    Control(family, text, source) for family, source, texts in _PUBLISHED for text in texts.split(", ")
)


def _names(opening: str, strip: str) -> str:
    found = {c.text.strip(strip) for c in CONTROLS if c.text.startswith(opening)}
    return "|".join(re.escape(name) for name in sorted(found, key=lambda name: (-len(name), name)))


_BRACKETED = _names("[", "[]/")
_HEADINGS = _names("#", "# :")
_SPEAKERS = "|".join(sorted({c.text[:-1] for c in CONTROLS if c.family == "text"}))
_LINE_BREAKS = "\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029"
_INDENT = rf"(?:(?![{_LINE_BREAKS}])[\s>*_\-{IGNORABLE}{COMBINING}])*"

BRACKETS = "\\[\uff3b"
"""What may open a bracketed token, for a character class."""

BRACKET_TOKEN = rf"{GAP}(?i:{_BRACKETED}){GAP}[\]\uff3d]"
"""What follows the bracket of a token such as `[INST]`, in any case and with gaps."""

LINE = (
    rf"[{_LINE_BREAKS}](?P<indent>{_INDENT})(?:"
    rf"(?P<speaker>(?i:{_SPEAKERS}){_INDENT})(?P<colon>[:\uff1a\ufe55])"
    rf"|(?P<hash>[#\uff03])(?=[#\uff03]*{_INDENT}(?i:{_HEADINGS}){_INDENT}[:\uff1a]))"
)
"""A line break and a line that begins like a transcript's, up to its colon, or like a template's heading."""
