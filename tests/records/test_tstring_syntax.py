"""The t-strings of Python 3.14, where the interpreter has them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from rung.records.item import ContextItem
from rung.records.labels import Labels
from rung.records.template import Template, is_tstring
from rung.records.types import ToolOutput

SOURCE = 't"Answer about {order} and {orders[1]}, {{literal}} {{order}}"'


def item(id: str) -> ContextItem[ToolOutput]:
    return ContextItem(
        type=ToolOutput,
        id=id,
        source="tool:t",
        _body=id,
        labels=Labels(),
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_t_string_is_a_filled_template_where_the_interpreter_has_t_strings() -> None:
    orders = [item("o1"), item("o2")]
    if sys.version_info < (3, 14):
        with pytest.raises(SyntaxError):
            compile(SOURCE, "t-string", "eval")
        return
    value = eval(SOURCE, {"order": orders[0], "orders": orders})
    assert is_tstring(value)
    # The text spells `{order}` itself, so that name cannot be a slot.
    filled = Template.from_tstring(value)
    assert filled.template.pieces == ("Answer about ", "slot1", " and ", "slot2", ", {literal} {order}")
    assert filled.bindings == (("slot1", orders[0]), ("slot2", orders[1]))
