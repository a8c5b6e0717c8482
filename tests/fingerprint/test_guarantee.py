"""Every shared run of at least n normalised characters is found, and nothing else is."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rung.ledger.fingerprint import FingerprintIndex, Held, normalise

LETTERS = st.characters(codec="utf-8", categories=("L", "N"))
ANY = st.text(st.one_of(LETTERS, st.sampled_from(" .,-\n<>&%\\\u200b\u0301éИⅣ"), st.characters(codec="utf-8")))
SPARSE = settings(max_examples=120, deadline=None)


@SPARSE
@given(
    n=st.sampled_from((16, 24, 33, 40)),
    before=ANY,
    after=ANY,
    left=ANY,
    right=ANY,
    seed=st.integers(0, 2**32),
    extra=st.integers(0, 60),
)
def test_every_shared_run_of_n_is_found_whatever_stands_around_it(
    n: int, before: str, after: str, left: str, right: str, seed: int, extra: int
) -> None:
    chance = random.Random(seed)
    # Letters and digits with a fold of one character each: the run has exactly n + extra of them.
    run = "".join(chance.choice("abcdefghjknpqrstuvwxyz23456789") for _ in range(n + extra))
    # What opens an escape or a tag would swallow the beginning of the run in some views, but never in all.
    document, text = f"{before} {run} {after}", f"{left} {run} {right}"
    index = FingerprintIndex(n)
    index.add(3, document)
    runs = index.find(text, {3: document}.get)
    assert any(run in text[slice(*r.span)].lower() for r in runs)
    for r in runs:
        if r.kind == "run" and r.view == r.doc_view == "plain":
            mine, theirs = normalise(text[slice(*r.span)]).text, normalise(document[slice(*r.doc_span)]).text
            # A run may begin inside a character that is spelled with several (`æ`): its span has all of it.
            assert any(mine[i : i + r.length] in theirs for i in range(len(mine) - r.length + 1))
            assert len(mine) <= r.length + 4


@SPARSE
@given(n=st.integers(16, 64), before=ANY, after=ANY, seed=st.integers(0, 2**32), share=st.floats(0, 1))
def test_every_text_below_n_that_a_document_holds_is_found_whatever_stands_around_it(
    n: int, before: str, after: str, seed: int, share: float
) -> None:
    chance = random.Random(seed)
    index = FingerprintIndex(n)
    size = index.shortest + round(share * (n - 1 - index.shortest))
    letters = chance.choice(("ab", "abcdefghjknpqrstuvwxyz23456789"))
    text = "".join(chance.choice(letters) for _ in range(size))
    document = f"{before} {text} {after}"
    index.add(3, document)
    runs = index.find(text, {3: document}.get)
    assert any(r.span == (0, size) and text in document[slice(*r.doc_span)] for r in runs)
    assert not index.find(text, {3: document}.get, held=[f"{after}{text}"])


@SPARSE
@given(n=st.integers(16, 64), period=st.integers(1, 20), times=st.integers(2, 400), seed=st.integers(0, 2**32))
def test_a_run_that_repeats_itself_is_found_too(n: int, period: int, times: int, seed: int) -> None:
    # A gram that is kept many times is one print, and one that the protected text says often tells no place.
    chance = random.Random(seed)
    unit = "".join(chance.choice("abcdefgh") for _ in range(period))
    text = (unit * times)[: max(n, 200)]
    document = "z" * chance.randrange(30) + unit * max(times, n) + "z"
    index = FingerprintIndex(n)
    index.add(3, document)
    if len(text) >= index.shortest:
        assert index.find(text, {3: document}.get)


@SPARSE
@given(text=ANY, document=ANY)
def test_a_run_is_a_hit_only_if_both_texts_hold_it(text: str, document: str) -> None:
    index = FingerprintIndex(16)
    index.add(3, document)
    for r in index.find(text, {3: document}.get):
        if r.kind == "run" and r.view == r.doc_view == "plain":
            assert normalise(text[slice(*r.span)]).text in normalise(document).text


@SPARSE
@given(texts=st.lists(ANY, max_size=6), n=st.sampled_from((16, 40)))
def test_prints_give_the_same_index_as_the_text_in_a_batch_or_alone(texts: list[str], n: int) -> None:
    whole, alone, stored = FingerprintIndex(n), FingerprintIndex(n), FingerprintIndex(n)
    docs = list(range(len(texts)))
    whole.add_many(docs, texts)
    for doc, text in zip(docs, texts, strict=True):
        alone.add(doc, text)
    stored.add_prints_many(docs, whole.prints_many(texts))
    assert [alone.prints(text) for text in texts] == whole.prints_many(texts)
    for text in texts:
        expected = whole.find(text, texts.__getitem__)
        assert alone.find(text, texts.__getitem__) == expected
        assert stored.find(text, texts.__getitem__) == expected


@SPARSE
@given(text=ANY, document=ANY)
def test_what_an_earlier_text_held_is_no_hit(text: str, document: str) -> None:
    index = FingerprintIndex(16)
    index.add(3, document)
    assert not index.find(text, {3: document}.get, held=[text])
    assert not index.find(text, {3: document}.get, held=[Held(text=text, since=3)])
    assert index.find(text, {3: document}.get, held=[Held(text=text, since=4)]) == index.find(text, {3: document}.get)


def test_different_texts_of_one_language_give_no_hit() -> None:
    chance = random.Random(5)
    words = ["".join(chance.choice("abcdefghijklmnopqrst") for _ in range(chance.randrange(2, 9))) for _ in range(900)]

    def prose(count: int) -> str:
        return " ".join(chance.choice(words) for _ in range(count))

    documents = {doc: prose(300) for doc in range(200)}
    index = FingerprintIndex(24)
    index.add_many(list(documents), list(documents.values()))
    assert not any(index.find(prose(300), documents.get) for _ in range(20))
