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


_CHATML = "OpenAI, `chatml.md`; Qwen model cards"
_LLAMA2 = "Meta, Llama 2 prompt format"
_LLAMA3 = "Meta, Llama 3 prompt format"
_GEMMA = "Google, Gemma formatting and system instructions"
_MISTRAL = "Mistral, `mistral-common` special tokens"
_DEEPSEEK = "DeepSeek, tokenizer configuration"
_PHI = "Microsoft, Phi-3 and Phi-4 model cards"
_COMMAND = "Cohere, Command R prompt format"
_HARMONY = "OpenAI, Harmony response format"
_CLAUDE = "Anthropic, text completions format"
_ALPACA = "Stanford, Alpaca prompt template"

CONTROLS: tuple[Control, ...] = (
    Control("chatml", "<|im_start|>", _CHATML),
    Control("chatml", "<|im_end|>", _CHATML),
    Control("chatml", "<|im_sep|>", _CHATML),
    Control("gpt", "<|endoftext|>", "OpenAI, `tiktoken` special tokens"),
    Control("gpt", "<|endofprompt|>", "OpenAI, `tiktoken` special tokens"),
    Control("gpt", "<|fim_prefix|>", "OpenAI, `tiktoken` special tokens"),
    Control("gpt", "<|fim_middle|>", "OpenAI, `tiktoken` special tokens"),
    Control("gpt", "<|fim_suffix|>", "OpenAI, `tiktoken` special tokens"),
    Control("llama-2", "[INST]", _LLAMA2),
    Control("llama-2", "[/INST]", _LLAMA2),
    Control("llama-2", "<<SYS>>", _LLAMA2),
    Control("llama-2", "<</SYS>>", _LLAMA2),
    Control("llama-2", "<s>", _LLAMA2),
    Control("llama-2", "</s>", _LLAMA2),
    Control("llama-3", "<|begin_of_text|>", _LLAMA3),
    Control("llama-3", "<|end_of_text|>", _LLAMA3),
    Control("llama-3", "<|start_header_id|>", _LLAMA3),
    Control("llama-3", "<|end_header_id|>", _LLAMA3),
    Control("llama-3", "<|eot_id|>", _LLAMA3),
    Control("llama-3", "<|eom_id|>", _LLAMA3),
    Control("llama-3", "<|python_tag|>", _LLAMA3),
    Control("llama-4", "<|header_start|>", "Meta, Llama 4 prompt format"),
    Control("llama-4", "<|eot|>", "Meta, Llama 4 prompt format"),
    Control("gemma", "<start_of_turn>", _GEMMA),
    Control("gemma", "<end_of_turn>", _GEMMA),
    Control("gemma", "<bos>", _GEMMA),
    Control("gemma", "<eos>", _GEMMA),
    Control("mistral", "[SYSTEM_PROMPT]", _MISTRAL),
    Control("mistral", "[/SYSTEM_PROMPT]", _MISTRAL),
    Control("mistral", "[AVAILABLE_TOOLS]", _MISTRAL),
    Control("mistral", "[/AVAILABLE_TOOLS]", _MISTRAL),
    Control("mistral", "[TOOL_CALLS]", _MISTRAL),
    Control("mistral", "[TOOL_RESULTS]", _MISTRAL),
    Control("mistral", "[/TOOL_RESULTS]", _MISTRAL),
    Control("mistral", "[TOOL_CONTENT]", _MISTRAL),
    Control("mistral", "[CALL_ID]", _MISTRAL),
    Control("mistral", "[ARGS]", _MISTRAL),
    Control("mistral", "[THINK]", _MISTRAL),
    Control("mistral", "[/THINK]", _MISTRAL),
    Control("mistral", "[IMG]", _MISTRAL),
    Control("mistral", "[IMG_END]", _MISTRAL),
    Control("mistral", "[PREFIX]", _MISTRAL),
    Control("mistral", "[MIDDLE]", _MISTRAL),
    Control("mistral", "[SUFFIX]", _MISTRAL),
    Control("deepseek", "<｜begin▁of▁sentence｜>", _DEEPSEEK),
    Control("deepseek", "<｜end▁of▁sentence｜>", _DEEPSEEK),
    Control("deepseek", "<｜User｜>", _DEEPSEEK),
    Control("deepseek", "<｜Assistant｜>", _DEEPSEEK),
    Control("deepseek", "<｜tool▁calls▁begin｜>", _DEEPSEEK),
    Control("phi", "<|system|>", _PHI),
    Control("phi", "<|user|>", _PHI),
    Control("phi", "<|assistant|>", _PHI),
    Control("phi", "<|end|>", _PHI),
    Control("qwen", "<tool_call>", "Qwen, function calling template"),
    Control("qwen", "</tool_response>", "Qwen, function calling template"),
    Control("qwen", "</think>", "Qwen, thinking template"),
    Control("command-r", "<|START_OF_TURN_TOKEN|>", _COMMAND),
    Control("command-r", "<|END_OF_TURN_TOKEN|>", _COMMAND),
    Control("command-r", "<|SYSTEM_TOKEN|>", _COMMAND),
    Control("command-r", "<|CHATBOT_TOKEN|>", _COMMAND),
    Control("command-r", "<BOS_TOKEN>", _COMMAND),
    Control("harmony", "<|start|>", _HARMONY),
    Control("harmony", "<|channel|>", _HARMONY),
    Control("harmony", "<|message|>", _HARMONY),
    Control("harmony", "<|call|>", _HARMONY),
    Control("harmony", "<|return|>", _HARMONY),
    Control("glm", "[gMASK]", "Zhipu AI, GLM-4 tokenizer"),
    Control("glm", "<sop>", "Zhipu AI, GLM-4 tokenizer"),
    Control("glm", "<|observation|>", "Zhipu AI, GLM-4 tokenizer"),
    Control("text", "Human:", _CLAUDE),
    Control("text", "Assistant:", _CLAUDE),
    Control("text", "System:", "LangChain, buffer strings"),
    Control("text", "User:", "Vicuna and Zephyr style templates"),
    Control("text", "AI:", "LangChain, buffer strings"),
    Control("text", "Bot:", "common few-shot transcripts"),
    Control("text", "Model:", "common few-shot transcripts"),
    Control("text", "Developer:", "common few-shot transcripts"),
    Control("text", "Tool:", "LangChain, buffer strings"),
    Control("text", "Function:", "LangChain, buffer strings"),
    Control("text", "Observation:", "ReAct transcripts"),
    Control("alpaca", "### Instruction:", _ALPACA),
    Control("alpaca", "### Input:", _ALPACA),
    Control("alpaca", "### Response:", _ALPACA),
    Control("alpaca", "### System:", "common fine-tuning templates"),
    Control("alpaca", "### User:", "common fine-tuning templates"),
    Control("alpaca", "### Human:", "Vicuna v0 template"),
    Control("alpaca", "### Assistant:", "Vicuna v0 template"),
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
