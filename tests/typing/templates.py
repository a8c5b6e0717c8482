"""What the type checkers say about templates: literal text, and items in the slots.

That the text is a literal only pyright can tell: mypy reads `LiteralString` as `str`.
"""

from __future__ import annotations

from typing import assert_type

from rung.records.item import ContextItem
from rung.records.template import FilledTemplate, Template
from rung.records.types import ToolOutput, User

ORDER = Template("Answer about {order}.")
DECLARED = Template('Reply as {"answer": "…"} to {question}', slots=("question",))
JOINED = Template("Answer briefly. " + "About {order}.")


def items_fill_slots(order: ContextItem[ToolOutput], question: ContextItem[User]) -> None:
    assert_type(ORDER.fill(order=order), FilledTemplate)
    DECLARED.fill(question=question)
    ORDER.fill(order="a string")  # expect-error: mypy, pyright
    ORDER.fill(order=order.text)  # expect-error: mypy, pyright
    ORDER.fill(order=7)  # expect-error: mypy, pyright
    ORDER.fill(order)  # expect-error: mypy, pyright


def the_text_of_a_template_is_a_literal(name: str, order: ContextItem[ToolOutput]) -> None:
    Template(f"Answer {name} about {{order}}.")  # expect-error: pyright
    Template(name)  # expect-error: pyright
    Template(order.reveal("shown in a test"))  # expect-error: pyright
    Template(order.text)  # expect-error: mypy, pyright
    Template(order)  # expect-error: mypy, pyright
    assert_type(Template.from_text(name), Template)


def a_template_is_no_string(template: Template) -> str:
    return template  # expect-error: mypy, pyright
