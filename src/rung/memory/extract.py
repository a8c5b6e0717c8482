"""What a person says outright that should be kept: found by its form, without a model.

It looks at USER items only, sentence by sentence, for English forms: `remember that …`, `my name is …`, `I prefer …`,
`I live in …`, `do not … until …`, `from now on …`. What it finds is kept word for word. Other languages and everything
that is only implied are the business of an `extract` of the application's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rung.memory.values import Category, Remembered
from rung.records.item import ContextItem, body

LONGEST = 400
"""Characters: a longer sentence states no single thing outright."""

MOST = 8
"""At most so many from one message."""

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.](?=\S)[^.!?\n]*)*[.!?]*")
_NOTED = re.compile(r"(?:please[ ,]+)?(?:remember|note|keep in mind)(?: for (?:me|later))?(?: that|:|,) *(\S.*)", re.I)
_STANDING = re.compile(
    r"(?:from now on|in (?:the )?future)\b"
    r"|(?:please +)?(?:do not|don't|never|always)\b"
    r".*\b(?:until|unless|without (?:asking|my)|before asking|ever again)\b"
    r"|(?:please +)?(?:never|always) (?!mind\b)\w+",
    re.I,
)
_FORMS: tuple[tuple[re.Pattern[str], Category, str | None], ...] = (
    (re.compile(r"my (?:full |first |last )?name is +\S", re.I), "fact", "user:name"),
    (re.compile(r"(?:please +)?call me +\S", re.I), "preference", "user:address"),
    (re.compile(r"i (?:now +)?live in +\S|i (?:just |have |have just )?moved to +\S", re.I), "fact", "user:home"),
    (re.compile(r"my (?:e-?mail(?: address)?) is +\S", re.I), "fact", "user:email"),
    (re.compile(r"my (?:phone|mobile|telephone)(?: number)? is +\S", re.I), "fact", "user:phone"),
    (re.compile(r"i(?:'m|’m| am) (?:allergic|intolerant) to +\S", re.I), "fact", None),
    (re.compile(r"i (?:really +|much +)?(?:prefer|like|love|dislike|hate|don't like|don’t like|do not like)\b", re.I),
     "preference", None),
)  # fmt: skip


def explicit(items: Sequence[ContextItem[Any]]) -> list[Remembered]:
    """What the USER items say outright; a question states nothing."""
    return [found for item in items if item.type.name == "user" for found in _of(item)]


def _of(item: ContextItem[Any]) -> list[Remembered]:
    found: list[Remembered] = []
    for sentence in _sentences(body(item)):
        made = _read(item, sentence)
        if made is not None:
            found.append(made)
            if len(found) == MOST:
                break
    return found


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text[:20_000]):
        sentence = found[0].strip()
        if sentence and len(sentence) <= LONGEST and not sentence.endswith("?"):
            yield sentence


def _read(item: ContextItem[Any], sentence: str) -> Remembered | None:
    noted = _NOTED.match(sentence)
    if noted is not None:
        inner = _read(item, noted[1])
        return inner or Remembered(items=(item,), text=noted[1])
    if _STANDING.match(sentence):
        return Remembered(items=(item,), text=sentence, category="standing")
    for pattern, category, key in _FORMS:
        if pattern.match(sentence):
            return Remembered(items=(item,), text=sentence, category=category, key=key)
    return None
