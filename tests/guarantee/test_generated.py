"""Ten thousand generated ways around the ledger on random carriers: none that shares a run of N passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from tests.fingerprint.evasions import CHARACTER_EVASIONS, ENCODINGS, Evasion

from rung import ContextStore, ToolOutput
from rung.ledger.fingerprint import DEFAULT_N, normalise
from rung.ledger.reach import DIRECT
from rung.policy.decision import Hit
from rung.records.draft import Draft
from rung.records.types import Instruction
from rung.store import core

SYLLABLES = tuple(f"{a}{b}" for a in "bdfghklnprstvz" for b in ("a", "e", "in", "or", "u"))
ATTEMPTS = 10_000
AT_ONCE = 20

# What would be cut apart by another rewriting is written in escapes or tags of its own: it comes last, and alone.
ALONE = ("HTML", "entit", "percent", "backslash", "numbered", "quotes")
FREE: dict[str, Evasion] = {
    name: evasion for name, evasion in CHARACTER_EVASIONS.items() if not any(word in name for word in ALONE)
}
LAST: dict[str, Evasion] = {name: evasion for name, evasion in CHARACTER_EVASIONS.items() if name not in FREE}
ASCII_ONLY = ("base64 of UTF-16", "hidden in tag characters")


def prose(chance: random.Random, words: int) -> str:
    """Random words that no other text says by accident."""
    return " ".join(
        "".join(chance.choice(SYLLABLES) for _ in range(chance.randrange(1, 4))) + chance.choice(("", "", "", ",", "."))
        for _ in range(words)
    )


def cut(text: str, chance: random.Random) -> str:
    """A piece of the text with at least N normalised characters left."""
    while True:
        start = chance.randrange(len(text) // 2)
        piece = text[start : start + chance.randrange(DEFAULT_N, len(text))]
        if len(normalise(piece).text) >= DEFAULT_N:
            return piece


def rewritten(text: str, chance: random.Random) -> tuple[str, str]:
    """Two or three transformations one after the other, and what they were."""
    names = ["cut"]
    text = cut(text, chance)
    for name in chance.sample(sorted(FREE), chance.choice((1, 1, 2))):
        names.append(name)
        text = FREE[name](text, chance)
    kind = chance.random()
    if kind < 0.3:
        able = [name for name in sorted(ENCODINGS) if text.isascii() or name not in ASCII_ONLY]
        names.append(name := chance.choice(able))
        text = ENCODINGS[name](text, chance)
    elif kind < 0.5 and text.isascii():
        names.append(name := chance.choice(sorted(LAST)))
        text = LAST[name](text, chance)
    return text, " + ".join(names)


@contextmanager
def judging(store: ContextStore) -> Any:
    """The ledger's own judgement of a protected text, inside the write in which it would enter."""
    ledger, reach = core(store)
    with ledger.backend.write(None, exclusive=True) as tx:

        def judge(text: str) -> set[str]:
            made, _ = ledger._preparer.prepare(Draft(type=Instruction, content=text, source="system"), DIRECT, reach)  # pyright: ignore
            hits: list[Hit] = [
                hit
                for reason in ledger._judge._judge_protected(made, (), tx, (None,), False, ())  # pyright: ignore
                for hit in reason.hits
            ]
            return {hit.item_id for hit in hits}

        yield judge


def test_ten_thousand_combinations_none_passes() -> None:
    chance = random.Random(20_261_130)
    store = ContextStore()
    said = [prose(chance, 40) for _ in range(400)]
    drafts = [Draft(type=ToolOutput, content=text, source=f"tool:t{i % 7}") for i, text in enumerate(said)]
    items = store.add_many(drafts)
    missed: list[tuple[str, str]] = []
    judge: Callable[[str], set[str]]
    with judging(store) as judge:
        assert judge(prose(chance, 60)) == set()
        for _ in range(ATTEMPTS // AT_ONCE):
            hidden = {number: rewritten(said[number], chance) for number in chance.sample(range(len(said)), AT_ONCE)}
            text = "".join(
                f"{prose(chance, chance.randrange(5))}; {rewriting}; {prose(chance, 3)}\n"
                for rewriting, _ in hidden.values()
            )
            found = judge(text)
            missed += [(how, said[number]) for number, (_, how) in hidden.items() if items[number].id not in found]
    assert missed == []


def test_each_alone_is_refused_by_the_store() -> None:
    chance = random.Random(7)
    store = ContextStore()
    said = [prose(chance, 40) for _ in range(50)]
    store.add_many([Draft(type=ToolOutput, content=text, source="tool:t") for text in said])
    before = list(store.items())
    judge: Callable[[str], set[str]]
    with judging(store) as judge:
        passed = [
            how
            for text in said * 4
            for rewriting, how in [rewritten(text, chance)]
            if not judge(f"{prose(chance, 4)} {rewriting} {prose(chance, 4)}")
        ]
    assert passed == []
    assert list(store.items()) == before
