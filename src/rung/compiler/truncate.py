"""Cutting a text to a number of tokens by its structure, so that what is left is still whole of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rung.compiler.truncation_json import cut_json
from rung.compiler.truncation_rows import cut_rows
from rung.compiler.truncation_sections import cut_sections
from rung.compiler.truncation_text import Cutter, cut_head, cut_log, cut_middle, cut_tail, line_count, unwrap
from rung.errors import InputError, names
from rung.tokens import Tokenizer, take_tokens
from rung.tokens.blocks import joints
from rung.tokens.protocol import well_formed

RULES: tuple[str, ...] = ("none", "head", "tail", "middle", "section", "rows", "json", "log")
"""The rules by name, as a source declares them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A text within its limit.

    Attributes:
        text: the result; empty where `fits` is false.
        rule: the rule that was applied: `middle` where a text asked for as `json` was none, `none` where
            nothing was cut.
        kept: how much was kept, in the unit of `left_out`.
        left_out: how much was left out, and in which unit: `lines`, `characters`, `rows`, `sections`,
            `blocks` or `elements` (of JSON: array elements and object members).
        tokens: the exact count of `text`.
        changed: whether `text` differs from what was given.
        fits: false where not even the header and the marker fit; then `text` is empty.
    """

    text: str
    rule: str
    kept: int
    left_out: tuple[int, str]
    tokens: int
    changed: bool
    fits: bool = True


def truncate(text: str, rule: str, limit: int, tokenizer: Tokenizer, *, media_type: str = "text/plain") -> Cut:
    """Cut a text to at most `limit` tokens by a structural rule; below the limit it stays as it is.

    A wrapping element, a fence around the whole, front matter and header lines (`Source: …`) stay. What is
    left out is said in the text and in the result. Cuts lie between graphemes; lone surrogates of a text
    that is cut become U+FFFD. The same arguments give the same result.

    Args:
        text: the text.
        rule: one of `RULES`.
        limit: tokens, markers included.
        tokenizer: what counts.
        media_type: a hint for `rows` (`text/csv`, `text/tab-separated-values`) and `section` (`text/html`).

    Raises:
        InputError: an unknown rule or a negative limit.
    """
    if rule not in RULES:
        raise InputError(f"no truncation rule `{rule}` (use {names(RULES)})", field="rule")
    if limit < 0:
        raise InputError(f"`limit` is {limit} tokens (give 0 or more)", field="limit")
    whole = _count_within(tokenizer, text, limit)
    if whole is not None:
        lines = line_count(text)
        return Cut(text=text, rule="none", kept=lines, left_out=(0, "lines"), tokens=whole, changed=False)
    if rule == "none":
        return _nothing(rule, text)
    clean = _clean(text)
    opening, body, closing = unwrap(clean)
    result = _fitted(_cutter(body, rule, tokenizer, media_type), opening, closing, limit, tokenizer)
    return result or _nothing(rule, text)


def _cutter(body: str, rule: str, tokenizer: Tokenizer, media_type: str) -> Cutter:
    kind = media_type.partition(";")[0].strip().lower()
    if rule == "section":
        return cut_sections(body, tokenizer, html=kind in ("text/html", "application/xhtml+xml"))
    if rule == "rows":
        made = cut_rows(body, tokenizer, kind)
        return made or cut_sections(body, tokenizer, html=False)
    if rule == "json":
        return cut_json(body, tokenizer) or cut_middle(body, tokenizer)
    plain: dict[str, Callable[[str, Tokenizer], Cutter]] = {
        "head": cut_head,
        "tail": cut_tail,
        "middle": cut_middle,
        "log": cut_log,
    }
    return plain[rule](body, tokenizer)


def _fitted(cut: Cutter, opening: str, closing: str, limit: int, tokenizer: Tokenizer) -> Cut | None:
    """The one place that keeps the limit: counts the whole result, and asks for less while it is over.

    The room asked for shrinks by what the last result was over, and by more each time, so that a tokenizer
    whose counts do not add up costs a few rounds, not one for each token.
    """
    room = limit - tokenizer.count(opening) - tokenizer.count(closing)
    rounds = 0
    while room > 0:
        piece = cut(room)
        if piece is None:
            return None
        result = f"{opening}{piece.text}{closing}"
        tokens = tokenizer.count(result)
        if tokens <= limit:
            return Cut(
                text=result,
                rule=piece.rule,
                kept=piece.kept,
                left_out=(piece.left, piece.unit),
                tokens=tokens,
                changed=True,
            )
        room -= max(tokens - limit, (1 << rounds) // 4, 1)
        rounds += 1
    return None


def _nothing(rule: str, text: str) -> Cut:
    left = (line_count(text), "lines")
    return Cut(text="", rule=rule, kept=0, left_out=left, tokens=0, changed=True, fits=False)


def _count_within(tokenizer: Tokenizer, text: str, limit: int) -> int | None:
    """The count of the text, or None where it is above the limit; where counts add up, no more than the
    limit is read."""
    bounded = joints(tokenizer) is not None and len(text) > 4 * limit + 1_024
    if bounded and len(take_tokens(tokenizer, text, limit)) < len(text):
        return None
    tokens = tokenizer.count(text)
    return tokens if tokens <= limit else None


def _clean(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return well_formed(text)
    return text
