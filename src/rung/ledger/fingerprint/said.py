"""The literals of a text that is compared, and whether a protected text says one of a document's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .addresses import refanged
from .hashing import of_literal
from .layers import Layer
from .literals import LEAST_FORM, Literal, literals, moved, seen_through
from .numbers import NUMBER_DIGITS, digit_runs
from .views import Normalised

Span = tuple[int, int]


def layers_of(text: str, views: Sequence[Normalised]) -> list[Layer]:
    """The different texts that are read in a text: as written, without escapes and markup, decoded."""
    found = {text: Layer(text)}
    for view in views:
        found.setdefault(view.layer.text, view.layer)
    return list(found.values())


def literals_of(layers: Sequence[Layer], first_party: Sequence[str]) -> list[Literal]:
    """The literals of all layers, each once, at their places in the original text."""
    found: dict[tuple[str, str, bool], Literal] = {}
    for layer in layers:
        for one in literals(layer.text, first_party):
            key = (one.kind, one.value, one.is_spelled)
            if key not in found:
                found[key] = moved(one, layer)
    return list(found.values())


class Said:
    """What a protected text says that may be a literal: its own ones, and all digits that may be one number."""

    def __init__(self, layers: Sequence[Layer], views: Sequence[Normalised], own: Sequence[Literal]) -> None:
        self.views = [*views, *_refanged(layers)]
        """The views in which a literal may stand: those of the text, and those without signs in brackets or words."""
        self._values = {(one.kind, one.value): one.span for one in reversed(own)}
        self._hosts = {one.host: one.span for one in reversed(own) if one.host and one.kind == "url"}
        self._spelled = {one.host: one.span for one in reversed(own) if one.host and one.is_spelled}
        self._grams: dict[str, Span] = {}
        for layer in layers:
            for gram, span in _grams(layer):
                self._grams.setdefault(gram, span)

    def hashes(self) -> set[int]:
        """What to look up in the index, the parts of the text that may be a form of a literal apart."""
        found = {of_literal(kind, value) for kind, value in self._values}
        found |= {of_literal("digits", gram) for gram in self._grams}
        # The name of a host is everyday use, unless one side takes care that it is no link.
        found |= {of_literal("host", host) for host in self._spelled}
        return found | {of_literal("spelled", host) for host in self._hosts}

    def place(self, literal: Literal) -> Span | None:
        """Where the text says a document's literal, however it writes it; None if it does not."""
        found = self._values.get((literal.kind, literal.value))
        if found is None:
            found = next((self._grams[gram] for gram in literal.grams if gram in self._grams), None)
        return self._form(literal) if found is None else found

    def host(self, literal: Literal) -> Span | None:
        """Where the text names the host of a literal, if one of the two takes care that it is no link."""
        if literal.host is None:
            return None
        return self._spelled.get(literal.host) or (self._hosts.get(literal.host) if literal.is_spelled else None)

    def _form(self, literal: Literal) -> Span | None:
        form = literal.form() or ""
        for view in self.views if form else ():
            at = view.stands(form, LEAST_FORM)
            if at is not None:
                return view.span(at, at + len(form))
        return None


def _refanged(layers: Sequence[Layer]) -> Iterator[Normalised]:
    for layer in layers:
        text = seen_through(layer.text).text
        edits = refanged(text)
        if edits and len(text) == len(layer.text):
            yield Normalised(layer.edited(edits, "literals"), "look")


def _grams(layer: Layer) -> Iterator[tuple[str, Span]]:
    seen = seen_through(layer.text)
    for digits, places in digit_runs(seen.text):
        for at in range(len(digits) - NUMBER_DIGITS + 1):
            first, last = places[at], places[at + NUMBER_DIGITS - 1]
            yield digits[at : at + NUMBER_DIGITS], _original(layer, seen, first, last)


def _original(layer: Layer, seen: Layer, first: int, last: int) -> Span:
    starts, ends = seen.spans()
    outer_starts, outer_ends = layer.spans()
    return int(outer_starts[starts[first]]), int(outer_ends[ends[last] - 1])
