"""Tokenizers of other people: Hugging Face files and any callable."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Sized
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from rung.errors import ConfigError, InputError, kind, missing_extra
from rung.tokens.protocol import well_formed


class HuggingFaceTokenizer:
    """Counts with a `tokenizers.Tokenizer`, a fast tokenizer of `transformers`, or a `tokenizer.json` file.

    Works on a copy without truncation and padding, adds no special tokens, and reads text that spells a
    special token as ordinary text. Texts are counted whole: nothing is known about where such a tokenizer
    is additive.

    Raises `MissingExtraError` without the package `tokenizers`, `ConfigError` for a file that cannot be read.
    """

    __slots__ = ("_encode", "additive_newline", "exact", "name")

    def __init__(self, tokenizer: Any, *, name: str | None = None) -> None:
        try:
            from tokenizers import Tokenizer as Fast
        except ImportError:
            raise missing_extra("tokenizers", "hf") from None
        if isinstance(tokenizer, str | os.PathLike):
            path = Path(os.fspath(tokenizer))
            try:
                own = Fast.from_str(path.read_text(encoding="utf-8"))
            except Exception as error:  # the package raises bare Exception
                raise ConfigError(
                    f"`{path.name}` is not a readable tokenizer file: {kind(error)} (give the path of a "
                    "`tokenizer.json`)",
                    path="tokenizer",
                ) from error
            default = path.parent.name or path.stem if path.name == "tokenizer.json" else path.stem
        else:
            default = str(getattr(tokenizer, "name_or_path", "") or "tokenizer")
            source = getattr(tokenizer, "backend_tokenizer", tokenizer)
            if not isinstance(source, Fast):
                raise ConfigError(
                    f"`{kind(tokenizer)}` is not a tokenizer of the `tokenizers` package (use "
                    "`CallableTokenizer` for others)",
                    path="tokenizer",
                )
            own = Fast.from_str(source.to_str())
        own.no_truncation()
        own.no_padding()
        own.encode_special_tokens = True
        self._encode: Callable[..., Any] = own.encode
        self.name = name or f"hf:{default}"
        self.exact = True
        self.additive_newline = False

    def __repr__(self) -> str:
        return f"HuggingFaceTokenizer({self.name!r})"

    def count(self, text: str) -> int:
        """The tokens of `text`; see `Tokenizer.count`."""
        try:
            return len(self._encode(text, add_special_tokens=False).ids)
        except (UnicodeEncodeError, TypeError):  # lone surrogates
            return len(self._encode(well_formed(text), add_special_tokens=False).ids)


class CallableTokenizer:
    """Counts with any function from a text to its number of tokens, or to the sequence of its tokens.

    `exact` is your promise, printed in the manifest. `additive_newline` may be set where counts add up
    at newlines (see `Tokenizer`). A text with lone surrogates reaches `fn` with U+FFFD in their place.

    Raises `InputError` at a count where `fn` returns neither a sequence nor a number of 0 or more.
    """

    __slots__ = ("_fn", "additive_newline", "exact", "name")

    def __init__(
        self,
        fn: Callable[[str], int | Sequence[Any]],
        *,
        name: str,
        exact: bool = False,
        additive_newline: bool = False,
    ) -> None:
        self._fn = fn
        self.name = name
        self.exact = exact
        self.additive_newline = additive_newline

    def __repr__(self) -> str:
        return f"CallableTokenizer({self.name!r})"

    def count(self, text: str) -> int:
        """The tokens of `text`; see `Tokenizer.count`."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                text = well_formed(text)
        answer: object = self._fn(text)
        if type(answer) is int:
            tokens = answer
        elif isinstance(answer, SupportsIndex) and not isinstance(answer, bool):
            tokens = index(answer)
        elif isinstance(answer, Sized):  # a sequence or an array
            tokens = len(answer)
        else:
            tokens = -1
        if tokens < 0:
            raise InputError(
                f"the function of tokenizer `{self.name}` returned `{kind(answer)}` (return a number of "
                "tokens, 0 or more, or their sequence)",
                field="fn",
            )
        return tokens
