"""What the type checkers say about items: a type is a type parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from rung.records.item import ContextItem, sealed
from rung.records.text import LabelledText
from rung.records.types import ContextType, Evidence, Instruction, ToolOutput


class Ticket(ContextType): ...


class UrgentTicket(Ticket): ...


def steer(item: ContextItem[Instruction]) -> None: ...
def cite(items: Sequence[ContextItem[Evidence]]) -> None: ...
def triage(item: ContextItem[Ticket]) -> None: ...
def show(item: ContextItem[ContextType]) -> None: ...
def log(item: ContextItem[Any]) -> None: ...
def send(text: str) -> None: ...


def a_wrong_type_is_rejected(
    output: ContextItem[ToolOutput], rules: ContextItem[Instruction], passage: ContextItem[Evidence]
) -> None:
    steer(rules)
    steer(output)  # expect-error: mypy, pyright
    steer(passage)  # expect-error: mypy, pyright
    cite([passage])
    cite([passage, output])  # expect-error: mypy, pyright
    steer("text")  # expect-error: mypy, pyright


def a_type_of_the_application_is_a_type_like_any_other(
    ticket: ContextItem[Ticket], urgent: ContextItem[UrgentTicket], output: ContextItem[ToolOutput]
) -> None:
    triage(ticket)
    triage(urgent)  # an item is covariant in its type: it can only be read
    triage(output)  # expect-error: mypy, pyright
    narrow: ContextItem[UrgentTicket] = ticket  # expect-error: mypy, pyright
    show(ticket)
    show(output)
    log(urgent)
    log(narrow)


def the_class_of_the_type_gives_the_items_parameter(output: ContextItem[ToolOutput]) -> None:
    assert_type(output.type, type[ToolOutput])
    assert_type(sealed(output), ContextItem[ToolOutput])


def only_types_of_context_are_parameters(item: ContextItem[str]) -> None:  # expect-error: mypy, pyright
    log(item)


def an_item_and_its_text_are_no_strings(output: ContextItem[ToolOutput]) -> None:
    send(output)  # expect-error: mypy, pyright
    send(output.text)  # expect-error: mypy, pyright
    send(output.text.upper())  # expect-error: mypy, pyright
    send("Do: " + output.text)  # expect-error: mypy, pyright
    assert_type("Do: " + output.text, LabelledText)
    assert_type(output.text.split(), list[LabelledText])
    ", ".join(output.text.split())  # expect-error: mypy, pyright
    send(output.reveal("shown to the user"))


def an_item_is_frozen(output: ContextItem[ToolOutput]) -> None:
    output.source = "system"  # expect-error: mypy, pyright
