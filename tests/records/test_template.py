"""Templates: a slot is `{name}`, a value is an item, and nothing is scanned twice."""

# ruff: noqa: UP031, UP032 — the older ways to format are what is tested

from __future__ import annotations

import copy
import pickle
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.errors import ContextTypeError, InputError, TemplateError
from rung.records.item import ContextItem, Slot
from rung.records.labels import Labels
from rung.records.template import FilledTemplate, Template, born, is_tstring
from rung.records.types import ToolOutput, User


def item(text: str, id: str = "a1", type: Any = ToolOutput) -> ContextItem[Any]:
    return ContextItem(
        type=type,
        id=id,
        source="tool:t",
        _body=text,
        labels=Labels(),
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )


LITERAL_BRACES = {
    "a JSON example": 'Reply as {"answer": "..."}.',
    "doubled braces around no name": "Table {{w14 w15}}",
    "lone braces": "a { b } c }{",
    "a name with blanks": "{ name }",
    "an ellipsis": "{...}",
    "a quantifier": r"\d{1,2}",
    "an unfinished field": "{a.b",
    "a loop of another engine": "{% for i in range(25000) %}x{% endfor %}",
}


@pytest.mark.parametrize("text", LITERAL_BRACES.values(), ids=LITERAL_BRACES)
def test_braces_that_hold_no_name_are_literal(text: str) -> None:
    assert Template.from_text(text).pieces == (text,)


AMBIGUOUS = {
    "an attribute": "Hi {user.password}",
    "a chain of attributes": "{user.__class__.__init__.__globals__}",
    "an index": "{a[0]}",
    "an index and an attribute": "{a[0].b}",
    "a position": "{0}",
    "an attribute of a position": "{0.name}",
    "the next position": "{}",
    "a conversion": "{x!r}",
    "a specification": "{x:>5}",
    "a specification with a field": "{x:{width}}",
    "the doubled braces of a name": "{{x}}",
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_is_more_than_a_name_is_refused_when_the_template_is_made(text: str) -> None:
    with pytest.raises(TemplateError, match="declare the slots"):
        Template.from_text(text)


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_declared_slots_keep_every_other_brace(text: str) -> None:
    template = Template.from_text(f"{text} Q: {{question}}", slots=("question",))
    assert template.pieces == (f"{text} Q: ", "question", "")


def test_with_declared_slots_other_names_are_literal() -> None:
    template = Template("{a} {b} {{a}}", slots=["a"])
    assert template.pieces == ("", "a", " {b} {", "a", "}")
    assert Template("{a}", slots=()).pieces == ("{a}",)


BAD_SLOTS: dict[str, tuple[Any, str]] = {
    "declared but absent": (("x", "gone", "lost"), "no place for `gone`, `lost`"),
    "declared twice": (("x", "x"), "declared twice"),
    "no identifier": (("x", "a-b"), "`a-b` cannot name a slot"),
    "one string": ("x", "one `str`"),
    "no string": ((1,), "kind int"),
}


@pytest.mark.parametrize(("slots", "message"), BAD_SLOTS.values(), ids=BAD_SLOTS)
def test_slots_are_checked_when_the_template_is_made(slots: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        Template("{x}", slots=slots)


def test_a_name_that_python_would_spell_otherwise_is_refused() -> None:
    with pytest.raises(TemplateError, match="NFKC"):
        Template("{ﬁeld}")


def test_a_template_tells_its_parts() -> None:
    template = Template("To {user}: {order}. Bye {user}")
    assert template.slots == ("user", "order")
    assert template.pieces == ("To ", "user", ": ", "order", ". Bye ", "user", "")
    assert template.literal == "To : . Bye "
    assert template.text == "To {user}: {order}. Bye {user}"
    assert repr(template) == "<Template 11 characters, slots: user, order>"


@given(st.text('ab{}.[]:!0 "', max_size=30))
def test_a_template_is_read_again_from_its_text_and_slots(text: str) -> None:
    try:
        template = Template.from_text(text)
    except TemplateError:
        template = Template.from_text(text, slots=())
    assert template.text == text
    again = Template.from_text(template.text, template.slots)
    assert again == template
    assert hash(again) == hash(template)


@given(st.text(), st.text(), st.text())
def test_no_value_and_no_literal_is_scanned(before: str, after: str, value: str) -> None:
    before, after = (
        before.replace("{x}", "").replace("\x00", ""),
        after.replace("{x}", "").replace("\x00", ""),
    )
    try:
        template = Template.from_text(before + "{x}" + after, slots=("x",))
    except InputError:
        return  # a lone surrogate
    filled = template.fill(x=item(value))
    assert filled.template.pieces[1::2] == ("x",)
    assert filled.bindings == (("x", item(value)),)


def test_fill_binds_items_sorted_by_name() -> None:
    order, user = item("1", "o1"), item("2", "u1", User)
    filled = Template("{user} {order}").fill(user=user, order=order)
    assert filled.bindings == (("order", order), ("user", user))
    assert filled.parts == (Slot(name="order", item_id="o1"), Slot(name="user", item_id="u1"))
    assert repr(filled) == "<FilledTemplate 1 characters, order=o1, user=u1>"
    assert filled == Template("{user} {order}").fill(order=order, user=user)
    assert Template("no slots").fill().bindings == ()


def test_a_slot_may_be_called_self() -> None:
    assert Template("{self} {class}").fill(**{"self": item("1"), "class": item("2")}).parts[0].name == "class"


def test_names_that_do_not_fit_are_named() -> None:
    template = Template("{a} {b}")
    with pytest.raises(TemplateError, match=r"no item is given for slot `b`"):
        template.fill(a=item("1"))
    with pytest.raises(TemplateError, match=r"no slot `c` \(its slots: `a`, `b`\)"):
        template.fill(a=item("1"), b=item("2"), c=item("3"))
    with pytest.raises(TemplateError, match="bound twice"):
        FilledTemplate(template=Template("{a}"), bindings=[("a", item("1")), ("a", item("2"))])


WRONG_VALUES: dict[str, tuple[Any, str]] = {
    "a string": ("SECRET", r"kind str, not with an item \(add it to a store first: store.add"),
    "a number": (7, "kind int"),
    "None": (None, "kind NoneType"),
    "a list of items": ([item("SECRET")], "kind list"),
    "labelled text": (item("SECRET").text, "the item itself, not with its text"),
    "a template": (Template("SECRET"), "store.instruct first"),
    "a filled template": (Template("SECRET").fill(), "store.instruct first"),
}


@pytest.mark.parametrize(("value", "message"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_only_an_item_fills_a_slot(value: Any, message: str) -> None:
    with pytest.raises(ContextTypeError, match=message) as caught:
        Template("{a}").fill(a=value)
    assert "`a`" in str(caught.value)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ContextTypeError, match=message):
        FilledTemplate(template=Template("{a}"), bindings=[("a", value)])


WRONG_TEXTS: dict[str, tuple[Any, type[Exception], str]] = {
    "labelled text": (item("SECRET").text, ContextTypeError, "labelled text of `a1`"),
    "labelled text of no item": (
        "" + item("SECRET").text[:0] + "{x}",
        ContextTypeError,
        "labelled text of an item",
    ),
    "an item": (item("SECRET"), ContextTypeError, "item `a1`"),
    "a template": (Template("{x}"), ContextTypeError, "a template is no template text"),
    "bytes": (b"{x}", TemplateError, "kind bytes"),
    "text with NUL": ("a\x00", InputError, "NUL"),
    "text with a lone surrogate": ("a\ud800", InputError, "surrogate"),
}


@pytest.mark.parametrize(("text", "error", "message"), WRONG_TEXTS.values(), ids=WRONG_TEXTS)
def test_text_that_came_in_at_run_time_is_no_template(text: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Template(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("value", [Template("{a}"), Template("{a}").fill(a=item("x"))], ids=["unbound", "filled"])
def test_a_template_never_becomes_text(value: Any) -> None:
    for way in (str, lambda it: f"{it}", lambda it: "%s" % it, lambda it: "{}".format(it), print):
        with pytest.raises(ContextTypeError, match="does not become text"):
            way(value)


def test_templates_are_immutable() -> None:
    template = Template("{a}")
    filled = template.fill(a=item("x"))
    for value, name in ((template, "_born"), (template, "text"), (filled, "bindings")):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, name, 0)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(value, name)
    Template.__init__(template, "{other}")  # type: ignore[call-arg]
    assert template.text == "{a}"


def test_a_template_knows_when_it_was_built_and_a_copy_was_built_when_it_was_copied() -> None:
    before = time.monotonic_ns()
    template = Template("Answer about {order}")
    sealed = time.monotonic_ns()
    assert before <= born(template) <= sealed
    time.sleep(0.001)
    filled = template.fill(order=item("late"))
    assert born(filled.template) == born(template)
    for again in (copy.copy(template), copy.deepcopy(template), pickle.loads(pickle.dumps(template))):
        assert again == template
        assert born(again) > sealed
    again = pickle.loads(pickle.dumps(filled))
    assert again == filled
    assert born(again.template) > sealed


@dataclass(frozen=True)
class Interpolation:
    value: Any
    expression: str
    conversion: str | None = None
    format_spec: str = ""


@dataclass(frozen=True)
class TString:
    strings: tuple[str, ...]
    interpolations: tuple[Interpolation, ...]


def test_a_t_string_becomes_a_filled_template() -> None:
    order = item("o", "o1")
    filled = Template.from_tstring(TString(("Answer about ", " now"), (Interpolation(order, "order"),)))
    assert filled == Template("Answer about {order} now").fill(order=order)


def test_expressions_that_are_no_names_get_numbers() -> None:
    a, b, c = item("a", "a"), item("b", "b"), item("c", "c")
    filled = Template.from_tstring(
        TString(
            ("", " ", " ", " ", " {x} ", ""),
            (
                Interpolation(a, "orders[0]"),
                Interpolation(b, " name "),
                Interpolation(b, "name"),
                Interpolation(c, "name"),
                Interpolation(a, "x"),
            ),
        )
    )
    assert filled.template.pieces == (
        "",
        "slot1",
        " ",
        "name",
        " ",
        "name",
        " ",
        "slot2",
        " {x} ",
        "slot3",
        "",
    )
    assert filled.bindings == (("name", b), ("slot1", a), ("slot2", c), ("slot3", a))
    assert Template.from_text(filled.template.text, filled.template.slots) == filled.template


def test_a_number_is_not_taken_twice() -> None:
    a, b = item("a", "a"), item("b", "b")
    fields = (Interpolation(a, "f()"), Interpolation(b, "slot1"))
    assert Template.from_tstring(TString(("", "", "{slot2}"), fields)).template.slots == ("slot1", "slot3")


WRONG_FIELDS: dict[str, tuple[Interpolation, type[Exception], str]] = {
    "a conversion": (Interpolation(item("SECRET"), "x", conversion="r"), TemplateError, "conversion"),
    "a specification": (Interpolation(item("SECRET"), "x", format_spec=">5"), TemplateError, "specification"),
    "a string": (
        Interpolation("SECRET", "x"),
        ContextTypeError,
        "slot `x` is filled with a value of kind str",
    ),
    "labelled text": (Interpolation(item("SECRET").text, "x.text"), ContextTypeError, "the item itself"),
}


@pytest.mark.parametrize(("field", "error", "message"), WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_a_t_string_interpolates_items_alone(field: Interpolation, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Template.from_tstring(TString(("Do: ", ""), (field,)))
    assert "SECRET" not in str(caught.value)


def test_the_strings_of_a_t_string_are_checked_like_template_text() -> None:
    with pytest.raises(ContextTypeError, match="labelled text of `a1`"):
        Template.from_tstring(TString((item("SECRET").text,), ()))  # type: ignore[arg-type]
    with pytest.raises(TemplateError, match="1 interpolations has 1 strings"):
        Template.from_tstring(TString(("",), (Interpolation(item("x"), "x"),)))
    with pytest.raises(TemplateError, match="kind str is no t-string"):
        Template.from_tstring("text")  # type: ignore[arg-type]


def test_only_t_strings_have_their_shape() -> None:
    assert is_tstring(TString(("a",), ()))
    assert not any(
        is_tstring(value) for value in ("a", Template("{a}"), Template("a").fill(), item("x"), None, object())
    )
