"""Words as the index holds them, and questions as it understands them.

Text and question go through the same steps: NFKC, case folding, marks of Latin, Greek and Cyrillic letters left out
(`café` is `cafe` in every form), apostrophes closed, numbers in one form (`12,500.00` is `12500`). Scripts that write
no blanks between words, and Hangul, are indexed by character and by pair of characters. What is left are
letters, digits and blanks: no question holds syntax. English stems are the index's own (Porter).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

TITLE_WEIGHT, SECTION_WEIGHT, BODY_WEIGHT = 3.0, 1.0, 1.0
MAX_WORDS = 64
MAX_COUNT = 3

_LONGEST_QUERY = 20_000
_LONGEST_WORD = 200
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WHOLE = re.compile(r"(?<=\d)\.0+(?!\d)")
_DECIMAL = re.compile(r"(?<=\d)\.(?=\d)")
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?:s\b)?(?=\w*)")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)

_STOP_WORDS_TEXT = """
a about after again all also am an and any are as at be because been before being between both but by
can cannot cant could did didnt do does doesnt doing done dont down during each either else even ever
every few for from further get gets getting give go going got had has have having he her here hers
herself hi hello him himself his how however i id if ill im in into is isnt it its itself ive just let
lets like made make many may maybe me might mine more most much must my myself need needs no nor not now
of off ok okay on once one only or other our ours out over own please quite really said same say see
seem seems shall she should since so some something such sure tell than thanks that thats the their
theirs them then there theres these they theyre thing things think this those though through to too
under until up upon us use very want wants was wasnt we well were what whats when where whether which
while who whom whose why will with within without wont would yes yet you your youre yours yourself youve
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def words(text: str) -> list[str]:
    """The words of a text in order, as the index holds them, before stemming."""
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
        folded = unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]+", "", folded))
    folded = _APOSTROPHE.sub("", folded)
    folded = _DECIMAL.sub("d", _WHOLE.sub("", _GROUPING.sub("", folded)))
    if folded.isascii():
        return [word[:_LONGEST_WORD] for word in _ASCII_WORD.findall(folded)]
    found: list[str] = []
    for word in "".join(map(_kept, folded)).split():
        if word.isascii() or _UNSPACED.search(word) is None:
            found.append(word[:_LONGEST_WORD])
            continue
        start = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > start:
                found.append(word[start : run.start()])
            found += run[0]
            found += (run[0][place : place + 2] for place in range(len(run[0]) - 1))
            start = run.end()
        if start < len(word):
            found.append(word[start:])
    return found


def query_words(text: str) -> dict[str, int]:
    """The words of a question that may tell documents apart, with how often each occurs.

    Function words are left out, unless nothing else is left. Of unspaced scripts the pairs are asked for, and
    single characters only where they stand alone. Only the first 20,000 characters of a question are read.
    """
    found = words(text[:_LONGEST_QUERY])
    pairs = {char for word in found if len(word) == 2 and _UNSPACED.fullmatch(word) for char in word}
    kept = [word for word in found if word not in STOP_WORDS and word not in pairs] or found
    counts: dict[str, int] = {}
    for word in kept:
        counts[word] = counts.get(word, 0) + 1
    return counts


@lru_cache(maxsize=65_536)
def _kept(char: str) -> str:
    return char if unicodedata.category(char)[0] in "LNM" else " "
