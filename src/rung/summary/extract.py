"""The deterministic extract: decisions, facts and open questions of a conversation, in its own words.

No model takes part. Sentences are taken over as they were said, each at most 240 characters:

- *Open questions*: a question of the user in an exchange that has no reply, and a question of the model that the user
  answered with nothing but questions. One is closed when a later line holds at least half of its content words.
- *Decisions*: sentences of user and model with a word of deciding (decided, agreed, confirmed, will, cancelled …).
- *Facts*: sentences with a figure, a date, an id, an address or a path, or that say what somebody or something is
  (`my …`, `I am …`); of a tool's result its short fields, or its lines with figures.

The words of deciding are English; what a text in another language decides is kept where it names a figure, a date or
an id. Bullets of the extract before are taken over by section, a model's text sentence by sentence as facts; what it
calls superseded or an error is not. Within the budget, questions get a quarter, decisions half, facts the rest; the
latest first. The same lines give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from rung.knowledge.terms import query_words
from rung.ledger.content import content_key
from rung.summary.values import Line, SummaryRequest

Section = Literal["Decisions", "Facts", "Open questions"]

SECTIONS: tuple[Section, ...] = ("Decisions", "Facts", "Open questions")
_HEADINGS: Mapping[str, Section] = {name.casefold(): name for name in SECTIONS}
LONGEST = 240
FIELDS = 12
MOST_READ = 20_000
"""Characters of one text that are looked at."""
NOTHING = "(Nothing was decided or stated in figures, and no question is open.)"

_SENTENCE = re.compile(r"[^.!?。！？؟\n]+(?:[.](?=\S)[^.!?。！？؟\n]*)*[.!?。！？؟]*")
_QUESTION = re.compile(r"[?？؟][\s\"'”’)\]]*\Z")
_DECISION = re.compile(
    r"\b(?:decided?|decision|agreed?|approved?|confirm(?:ed)?|chose|chosen|choose|going with|go with|will|won't|won’t"
    r"|let's|let’s|shall|must|cancel(?:led|ed)?|refund(?:ed)?|schedul(?:e|ed)|booked|ordered|accepted|reject(?:ed)?"
    r"|refused?|declined|resolved|fixed|merged|released|switch(?:ed)? to|instead of|prefer|do not|don't|don’t|never"
    r"|always|instead)\b|^(?:please )?use\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"(?:i will|i'll|i’ll|let me|i am going to) (?:check|look|see|help|do that|get back|find)\b", re.I
)
_NAMED = re.compile(r"\S@\w|://\S|\w/\w|\b\w{1,64}\.(?:py|js|ts|md|toml|json)\b")
_STATEMENT = re.compile(r"\b(?:my|our) \w+|\bi(?:'m|’m| am| live| have| need| want)\b", re.IGNORECASE)
_OVER = re.compile(r"\W*(?:superseded|obsolete|error|cancelled|refused)\s*:", re.IGNORECASE)
_SHARES: Mapping[Section, float] = {"Open questions": 0.25, "Decisions": 0.5, "Facts": 1.0}


class _Unit(msgspec.Struct, frozen=True, kw_only=True):
    section: Section
    text: str
    order: int
    rank: int = 0
    """Within facts: what a person said before what a tool returned."""


def extract(request: SummaryRequest) -> str:
    """The extract of what is to be summarised, within its budget: a summariser that needs no model."""
    units = [*_carried_over(request.previous)]
    start = len(units)
    units += _said(request.lines, start)
    asked = [unit for unit in units[:start] if unit.section == "Open questions"]
    closed = _closed(asked, request.lines) if asked else frozenset[int]()
    units = [unit for unit in units if unit.order not in closed]
    unique: dict[bytes, _Unit] = {}
    for unit in units:
        unique[content_key(unit.text)] = unit
    kept = _within(list(unique.values()), request)
    return _written(kept)


def _carried_over(previous: str) -> Iterator[_Unit]:
    section: Section = "Facts"
    order = 0
    for raw in previous.splitlines():
        line = raw.strip()
        heading = _HEADINGS.get(line.rstrip(":").casefold())
        if heading is not None:
            section = heading
            continue
        if line == NOTHING:
            continue
        texts = [line[2:]] if line.startswith("- ") else list(_sentences(line))
        for text in texts:
            if text and not _OVER.match(text):
                yield _Unit(section=section, text=_short(text), order=order)
                order += 1


def _said(lines: Sequence[Line], start: int) -> Iterator[_Unit]:
    order = start
    for number, line in enumerate(lines):
        if line.role == "tool":
            for text in _result(line):
                yield _Unit(section="Facts", text=text, order=order, rank=1)
                order += 1
            continue
        for sentence in _sentences(line.text):
            section = _section(sentence, line, number, lines)
            if section is not None:
                yield _Unit(section=section, text=_short(sentence), order=order)
                order += 1


def _section(sentence: str, line: Line, number: int, lines: Sequence[Line]) -> Section | None:
    if _QUESTION.search(sentence):
        return "Open questions" if _open(line, number, lines) else None
    if _SMALL_TALK.match(sentence):
        return None
    if _DECISION.search(sentence):
        return "Decisions"
    if _has_literal(sentence) or (line.role == "user" and _STATEMENT.search(sentence)):
        return "Facts"
    return None


def _has_literal(sentence: str) -> bool:
    return any(char.isdigit() for char in sentence) or _NAMED.search(sentence) is not None


def _open(line: Line, number: int, lines: Sequence[Line]) -> bool:
    later = lines[number + 1 :]
    if line.role == "user":
        replies = (one for one in later if one.exchange == line.exchange and one.role == "assistant")
        return not any(_states(one.text) for one in replies)
    answer = next((one for one in later if one.role == "user"), None)
    return answer is not None and not _states(answer.text)


def _states(text: str) -> bool:
    return any(not _QUESTION.search(sentence) for sentence in _sentences(text))


def _closed(asked: Sequence[_Unit], lines: Sequence[Line]) -> frozenset[int]:
    """The questions that were open before and are answered by what was said since."""
    said = [
        set(query_words(sentence))
        for line in lines
        for sentence in _sentences(line.text)
        if not _QUESTION.search(sentence)
    ]
    wanted = {unit.order: set(query_words(unit.text)) for unit in asked}
    return frozenset(
        order for order, words in wanted.items() if any(2 * len(words & one) >= len(words) for one in said)
    )


def _result(line: Line) -> Iterator[str]:
    name = f"{line.name}: " if line.name else ""
    try:
        value = msgspec.json.decode(line.text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = None
    if isinstance(value, dict | list):
        fields = [field for field, _ in zip(_leaves(value, ""), range(FIELDS), strict=False)]
        if fields:
            yield _short(name + ", ".join(fields))
        return
    found = 0
    for sentence in _sentences(line.text):
        if _has_literal(sentence):
            yield _short(name + sentence)
            found += 1
            if found == 3:
                return


def _leaves(value: Any, path: str, depth: int = 0) -> Iterator[str]:
    if depth > 4:
        return
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)[:3]):
            yield from _leaves(inner, f"{path}[{number}]", depth + 1)
    elif isinstance(value, bool | int | float) or (isinstance(value, str) and 0 < len(value) <= 60):
        told = " ".join(value.split()) if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield f"{path} {told}".strip()


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text[:MOST_READ]):
        sentence = " ".join(found[0][: 4 * LONGEST].split()).lstrip("-*•# ")
        if any(char.isalnum() for char in sentence):
            yield sentence


def _short(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"


def _within(units: Sequence[_Unit], request: SummaryRequest) -> list[_Unit]:
    sizes = {id(unit): request.count(f"- {unit.text}\n") for unit in units}
    room = request.budget - sum(request.count(f"{name}:\n") for name in SECTIONS)
    kept: list[_Unit] = []
    left: list[_Unit] = []
    for section in _SHARES:
        share = min(room, int(request.budget * _SHARES[section]))
        for unit in sorted((one for one in units if one.section == section), key=lambda one: (one.rank, -one.order)):
            size = sizes[id(unit)]
            if size <= share:
                share -= size
                room -= size
                kept.append(unit)
            else:
                left.append(unit)
    for unit in left:
        if sizes[id(unit)] <= room:
            room -= sizes[id(unit)]
            kept.append(unit)
    while kept and request.count(_written(kept)) > request.budget:
        kept.pop()
    return kept


def _written(units: Sequence[_Unit]) -> str:
    parts: list[str] = []
    for section in SECTIONS:
        found = sorted((unit for unit in units if unit.section == section), key=lambda unit: unit.order)
        if found:
            parts.append("\n".join((f"{section}:", *(f"- {unit.text}" for unit in found))))
    return "\n".join(parts) or NOTHING
