"""What the type checkers say about the store: what goes in decides what comes out.

That an instruction is a literal only pyright can tell: mypy reads `LiteralString` as `str`.
"""

from __future__ import annotations

from typing import assert_type

from rung.records.item import ContextItem
from rung.records.template import Template
from rung.records.types import Assistant, ContextType, Evidence, Instruction, Policy, ToolOutput, User
from rung.store import ContextStore


class Ticket(ContextType): ...


def steer(item: ContextItem[Instruction]) -> None: ...


def the_class_given_is_the_parameter_of_the_item(store: ContextStore, result: dict[str, object], text: str) -> None:
    order = store.add(ToolOutput, result, source="tool:orders")
    assert_type(order, ContextItem[ToolOutput])
    assert_type(store.add(Ticket, text, source="tool:desk"), ContextItem[Ticket])
    assert_type(store.add(Policy, "Never refund twice.", source="system"), ContextItem[Policy])
    assert_type(store.user(text), ContextItem[User])
    assert_type(store.assistant(text), ContextItem[Assistant])
    steer(order)  # expect-error: mypy, pyright
    steer(store.user(text))  # expect-error: mypy, pyright
    store.add("tool_output", text, source="tool:orders")  # expect-error: mypy, pyright
    store.add(str, text, source="tool:orders")  # expect-error: mypy, pyright
    store.add(ToolOutput, text)  # expect-error: mypy, pyright


def a_type_is_no_constructor() -> None:
    Instruction("text")  # expect-error: mypy, pyright


def a_promotion_gives_the_type_that_it_names(store: ContextStore, order: ContextItem[ToolOutput]) -> None:
    passage = store.promote(order, Evidence)
    assert_type(passage, ContextItem[Evidence])
    assert_type(store.promote(order, Ticket), ContextItem[Ticket])
    steer(passage)  # expect-error: mypy, pyright
    store.promote("text", Evidence)  # expect-error: mypy, pyright


def an_instruction_is_a_literal_or_a_template(store: ContextStore, order: ContextItem[ToolOutput], name: str) -> None:
    rules = store.instruct("Answer from the current order.")
    assert_type(rules, ContextItem[Instruction])
    steer(rules)
    steer(store.instruct(Template("Answer about {order}.").fill(order=order)))
    steer(store.load_instruction("rules.md"))
    store.instruct("Answer " + name)  # expect-error: pyright
    store.instruct(f"Answer {name}")  # expect-error: pyright
    store.instruct("Do: " + order.reveal("shown in a test"))  # expect-error: pyright
    store.instruct(order)  # expect-error: mypy, pyright
    store.instruct("Do: " + order.text)  # expect-error: mypy, pyright
