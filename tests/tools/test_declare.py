"""Tools from functions: the schema, the descriptions, and what is refused when they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

from rung.errors import ConfigError, InputError, ScopeError
from rung.records.item import ToolCall
from rung.records.labels import Sensitivity
from rung.tools import Principal, Tool, ToolContext, check_arguments, tool


class Address(msgspec.Struct):
    street: str
    city: str = "Graz"


@tool(scopes={"orders:read"}, key="order:{order_id}")
def order_lookup(
    order_id: Annotated[str, msgspec.Meta(min_length=1, max_length=12)],
    parts: Literal["all", "open"] = "open",
    limit: int = 5,
    to: Address | None = None,
    tags: list[str] = ["a"],  # noqa: B006
) -> dict[str, Any]:
    """Look up an order.

    Only current orders are found.

    Args:
        order_id: The order's number.
        parts: Which positions
            are wanted.
    """
    tags.append("b")
    return {"id": order_id, "tags": tags}


def test_signature_and_docstring_make_the_schema() -> None:
    schema = order_lookup.parameters
    assert order_lookup.description == "Look up an order.\n\nOnly current orders are found."
    assert schema["required"] == ["order_id"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["order_id"] == {
        "type": "string", "minLength": 1, "maxLength": 12, "description": "The order's number.",
    }  # fmt: skip
    assert schema["properties"]["parts"] == {
        "enum": ["all", "open"], "default": "open", "description": "Which positions are wanted.",
    }  # fmt: skip
    assert schema["$defs"]["Address"]["required"] == ["street"]


def test_the_schema_text_is_canonical() -> None:
    assert order_lookup.schema.parameters.startswith('{"$defs":{"Address"')
    assert order_lookup.schema == order_lookup.schema


NUMPY = """Look.

    Parameters
    ----------
    x : int
        A number.
    """
SPHINX = """Look.

    :param x: A number.
    """


@pytest.mark.parametrize("text", [NUMPY, SPHINX, "Look.\n\n    Args:\n        x (int): A number.\n    "])
def test_the_usual_styles_of_docstrings_are_read(text: str) -> None:
    def look(x: int) -> int:
        return x

    look.__doc__ = text
    made = tool(look)
    assert made.description == "Look."
    assert made.parameters["properties"]["x"]["description"] == "A number."


def test_a_tool_that_is_called_directly_is_the_function() -> None:
    assert order_lookup("7")["id"] == "7"


def test_defaults_are_fresh_for_each_call() -> None:
    first = check_arguments(order_lookup, '{"order_id":"1"}').arguments["tags"]
    first.append("changed")
    assert check_arguments(order_lookup, '{"order_id":"1"}').arguments["tags"] == ["a"]


def test_bound_parameters_and_the_context_are_hidden_from_the_model() -> None:
    @tool(bind={"customer": "subject"})
    def mine(customer: str, context: ToolContext, year: int = 2025) -> str:
        """Mine."""
        return customer

    assert set(mine.parameters["properties"]) == {"year"}
    refused = check_arguments(mine, '{"customer":"somebody else"}')
    assert refused.reasons == ("undeclared_argument",)


def star(*names: str) -> None: ...
def strange(x: Callable[[], int]) -> None: ...
def missing(x: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def plain(x: int) -> None: ...


DECLARATIONS: list[tuple[str, Callable[[], Any], str]] = [
    ("*args", lambda: tool(star), "cannot be given by name"),
    ("no JSON form", lambda: tool(strange), "no JSON form"),
    ("unknown annotation", lambda: tool(missing), "annotations cannot be read"),
    ("a wrong name", lambda: tool(name="look up")(plain), "cannot name a tool"),
    ("scopes as one string", lambda: tool(scopes="orders:read")(plain), "one string"),
    ("a key of another argument", lambda: tool(key="order:{id}")(plain), "no argument"),
    ("a broken key", lambda: tool(key="order:{")(plain), "no template"),
    ("a bound parameter that is not there", lambda: tool(bind={"y": "tenant"})(plain), "to bind"),
    ("too small a cap", lambda: tool(max_bytes=10)(plain), "give 256 or more"),
]


@pytest.mark.parametrize(("what", "make", "says"), DECLARATIONS, ids=[row[0] for row in DECLARATIONS])
def test_a_wrong_declaration_is_refused_with_the_place(what: str, make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


ARGUMENTS: list[tuple[str, str, str]] = [
    ("whole", '{"order_id":"1842","limit":3}', ""),
    ("white space and order", ' { "limit": 3, "order_id": "1" } ', ""),
    ("missing", "{}", "invalid_arguments"),
    ("empty text", "", "invalid_arguments"),
    ("a number as text", '{"order_id":"1","limit":"3"}', "invalid_arguments"),
    ("true as a number", '{"order_id":"1","limit":true}', "invalid_arguments"),
    ("too long", '{"order_id":"1234567890123"}', "invalid_arguments"),
    ("another value", '{"order_id":"1","parts":"none"}', "invalid_arguments"),
    ("undeclared", '{"order_id":"1","admin":true}', "undeclared_argument"),
    ("undeclared inside", '{"order_id":"1","to":{"street":"x","zip":1}}', ""),
    ("no JSON", "{order_id:1}", "malformed_arguments"),
    ("cut off", '{"order_id":"18', "malformed_arguments"),
    ("a list", "[]", "malformed_arguments"),
    ("too deep", "[" * 4000 + "]" * 4000, "malformed_arguments"),
]


@pytest.mark.parametrize(("what", "text", "reason"), ARGUMENTS, ids=[row[0] for row in ARGUMENTS])
def test_arguments_are_checked_strictly(what: str, text: str, reason: str) -> None:
    assert check_arguments(order_lookup, text).reason == reason


@pytest.mark.parametrize(("what", "text", "reason"), ARGUMENTS, ids=[row[0] for row in ARGUMENTS])
def test_a_tool_with_a_schema_alone_is_checked_likewise(what: str, text: str, reason: str) -> None:
    foreign = Tool(name="order_lookup", parameters=order_lookup.parameters, call=order_lookup.call)
    assert check_arguments(foreign, text).reason == reason


def test_a_message_about_arguments_holds_no_value() -> None:
    verdict = check_arguments(order_lookup, '{"order_id":"1","limit":"a secret"}')
    assert "secret" not in verdict.detail
    assert "limit" in verdict.detail


def test_the_key_of_a_result_is_made_of_its_arguments() -> None:
    assert order_lookup.fact({"order_id": "1842"}) == "order:1842"
    assert order_lookup.fact({"order_id": "x" * 400}) is None
    assert order_lookup.fact({"order_id": "a\nb"}) is None


def test_a_principal_only_narrows() -> None:
    one = Principal(tenant="acme", scopes={"a", "b"})  # type: ignore[arg-type]
    assert one.narrowed(scopes={"a"}).scopes == {"a"}
    with pytest.raises(ScopeError, match="only narrows"):
        one.narrowed(scopes={"c"})
    with pytest.raises(ScopeError, match="only narrows"):
        one.narrowed(clearance=Sensitivity.RESTRICTED)
    with pytest.raises(InputError, match="one string"):
        Principal(tenant="acme", scopes="orders:read")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="empty"):
        Principal(tenant="")


def test_calls_have_one_signature_whatever_the_order_of_their_arguments() -> None:
    from rung.tools import signature

    same = {
        signature(ToolCall(id=str(n), name="f", arguments=text))
        for n, text in enumerate(['{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }', '{"b":[2],"a":1}'])
    }
    assert len(same) == 1
    assert signature(ToolCall(id="1", name="g", arguments='{"a":1,"b":[2]}')) not in same
