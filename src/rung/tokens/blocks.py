"""Count a stretch of text once: blocks cut where tokenisation is additive, and a bounded cache of them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence

from rung.errors import InputError
from rung.tokens.protocol import Tokenizer

# A piece of o200k_base or cl100k_base reaches past a newline only to take further white space or a `/`,
# so behind a newline and before any other character two pieces meet, whatever else surrounds them. `\s` of
# `re` contains all of Unicode White_Space (and U+001C to U+001F, where we just do not cut).
NEWLINE_JOINT = re.compile(r"(?<=\n)(?=[^\s/])")

BLOCK_CHARS = 1_024
STREAM_CHARS = 65_536


def safe_joint(left: str, right: str) -> bool:
    """Whether counts add up where `left` meets `right`, for a tokenizer with `additive_newline`.

    An empty side is always safe.
    """
    if not left or not right:
        return True
    return left[-1] == "\n" and right[0] != "/" and not right[0].isspace()


def joints(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """The places where this tokenizer's texts may be cut (matches are empty), or None for none."""
    own = getattr(tokenizer, "joints", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    return NEWLINE_JOINT if tokenizer.additive_newline else None


class BlockCounter:
    """A tokenizer that remembers the blocks it has counted; itself a `Tokenizer`.

    A text is cut into blocks of at least `block_chars` characters, each ending at the first safe joint from
    there, and each block is tokenised once while it stays in the cache. The cache is keyed by the block's
    text, keeps at most `max_chars` characters, and drops what was not used for longest. For a tokenizer that
    is not additive at newlines a text is one block.

    `tokenized_chars` counts the characters that reached the tokenizer: only new text adds to it.
    """

    __slots__ = (
        "_block_chars",
        "_held",
        "_joints",
        "_limit",
        "_lock",
        "_new",
        "_old",
        "_tokenizer",
        "tokenized_chars",
    )

    def __init__(self, tokenizer: Tokenizer, *, block_chars: int = BLOCK_CHARS, max_chars: int = 32_000_000) -> None:
        if block_chars < 1 or max_chars < 1:
            raise InputError("`block_chars` and `max_chars` must be at least 1", field="block_chars")
        self._tokenizer = tokenizer
        self._joints = joints(tokenizer)
        self._block_chars = block_chars
        # Two generations: a block used again moves to the new one; when that holds half of the limit the old
        # one is dropped. Recency as good as needed, one dictionary look-up a hit, and no lock to read.
        self._limit = max(1, max_chars // 2)
        self._new: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._held = 0
        self._lock = threading.Lock()
        self.tokenized_chars = 0

    def __repr__(self) -> str:
        return f"BlockCounter({self._tokenizer!r})"

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that counts the blocks."""
        return self._tokenizer

    @property
    def name(self) -> str:
        return self._tokenizer.name

    @property
    def exact(self) -> bool:
        return self._tokenizer.exact

    @property
    def additive_newline(self) -> bool:
        return self._tokenizer.additive_newline

    @property
    def joints(self) -> re.Pattern[str] | None:
        return self._joints

    def count(self, text: str) -> int:
        """The tokens of `text`, equal to the tokenizer's own count."""
        known = self._new.get(text)
        if known is not None:
            return known
        if len(text) <= self._block_chars or self._joints is None:
            return self._block(text)
        return sum([self._block(block) for block in self._cut(text, self._block_chars)])

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """The tokens of each text."""
        count = self.count
        return [count(text) for text in texts]

    def count_joined(self, parts: Sequence[str]) -> int:
        """The tokens of `"".join(parts)`: parts that meet at a safe joint keep their own cached counts."""
        if not self.additive_newline:
            return self.count("".join(parts))
        total = 0
        run: list[str] = []
        for part in parts:
            if not part:
                continue
            if run and safe_joint(run[-1], part):
                total += self.count("".join(run) if len(run) > 1 else run[0])
                run = []
            run.append(part)
        return total + self.count("".join(run))

    def count_stream(self, chunks: Iterable[str]) -> int:
        """The tokens of the concatenated chunks, in time linear in their length.

        Holds one chunk, one block and the stretch since the last safe joint. Blocks of a stream are
        not cached: it would push everything else out.
        """
        if self._joints is None:
            return self._fresh("".join(chunks))
        block = STREAM_CHARS
        total = size = 0
        wanted = block
        held: list[str] = []
        for chunk in chunks:
            held.append(chunk)
            size += len(chunk)
            if size < wanted:
                continue
            *whole, rest = self._cut("".join(held), block)
            total += sum(map(self._fresh, whole))
            held, size = [rest], len(rest)
            wanted = max(block, 2 * size)  # a stretch without a joint is joined again only when it doubled
        return total + self._fresh("".join(held))

    def _cut(self, text: str, size: int) -> Iterator[str]:
        assert self._joints is not None
        start = 0
        while match := self._joints.search(text, start + size):
            yield text[start : match.start()]
            start = match.start()
        yield text[start:]

    def _block(self, block: str) -> int:
        known = self._new.get(block)
        if known is not None:
            return known
        fresh = 0
        known = self._old.get(block)
        if known is None:
            known, fresh = self._tokenizer.count(block) if block else 0, len(block)
        with self._lock:
            self.tokenized_chars += fresh
            self._new[block] = known
            self._held += len(block) + 64  # 64: about what an entry itself takes
            if self._held > self._limit:
                self._old, self._new, self._held = self._new, {}, 0
        return known

    def _fresh(self, text: str) -> int:
        if not text:
            return 0
        tokens = self._tokenizer.count(text)
        with self._lock:
            self.tokenized_chars += len(text)
        return tokens
