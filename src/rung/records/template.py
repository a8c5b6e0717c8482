"""`Template`: an unbound instruction with named slots, and `FilledTemplate`: its slots bound to items.

There is no formatting here: a slot is the one form `{name}`, a value is an item that keeps its type and
lineage, and no value is ever scanned for slots. Nothing reaches an attribute, an index or a conversion.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, LiteralString, NoReturn, Protocol, TypeGuard

from rung.errors import ContextTypeError, TemplateError, kind, names
from rung.records.canonical import canonical_text
from rung.records.item import ContextItem, Slot
from rung.records.text import LabelledText

_SLOT = re.compile(r"\{([^\W\d]\w*)\}")
# What `str.format` would read as a field that is more than a name, and the doubled braces of a name, which
# one reader takes for an escape and another for a slot.
_AMBIGUOUS = re.compile(r"\{\w*(?:\.[^\W\d]|\[|!|:)[^{}]*[{}]|\{\d*\}|\{\{[^\W\d]\w*\}\}")
_SHOWN = 40


class Interpolation(Protocol):
    """One `{…}` of a t-string (`string.templatelib.Interpolation`, Python 3.14)."""

    @property
    def value(self) -> Any: ...
    @property
    def expression(self) -> str: ...
    @property
    def conversion(self) -> str | None: ...
    @property
    def format_spec(self) -> str: ...


class TString(Protocol):
    """A t-string (`string.templatelib.Template`, Python 3.14), or anything of its shape."""

    @property
    def strings(self) -> tuple[str, ...]: ...
    @property
    def interpolations(self) -> tuple[Interpolation, ...]: ...


def is_tstring(value: object) -> TypeGuard[TString]:
    """Whether a value has the shape of a t-string; a `Template` of rung has not."""
    return isinstance(getattr(value, "strings", None), tuple) and isinstance(
        getattr(value, "interpolations", None), tuple
    )


class Template:
    """The text of an instruction with named slots that items fill.

    Without `slots`, every `{name}` whose name is a Python identifier is a slot, and what could be read as
    more than that (`{a.b}`, `{a[0]}`, `{0}`, `{}`, `{a!r}`, `{a:>5}`, `{{a}}`) is refused; all other braces
    are literal. With `slots`, the declared names are the slots and all other braces are literal.

    Args:
        text: a literal; for text that a configuration or a file gives, see `from_text`.
        slots: the names of the slots, each of which occurs in the text.

    Raises:
        TemplateError: a declared slot is absent, a name is no identifier, or a brace is ambiguous.
        ContextTypeError: the text is an item or labelled text.

    >>> Template('Answer about {order} as {"answer": "…"}').slots
    ('order',)
    """

    __slots__ = ("_born", "_pieces", "_slots")

    _born: int
    _pieces: tuple[str, ...]
    _slots: tuple[str, ...]

    # In `__new__`, so that calling `__init__` again alters nothing.
    def __new__(cls, text: LiteralString, slots: Iterable[str] | None = None) -> Template:
        self = object.__new__(cls)
        pieces = _parse(_plain_text(text), slots)
        object.__setattr__(self, "_pieces", pieces)
        object.__setattr__(self, "_slots", tuple(dict.fromkeys(pieces[1::2])))
        object.__setattr__(self, "_born", time.monotonic_ns())
        return self

    @classmethod
    def from_text(cls, text: str, slots: Iterable[str] | None = None) -> Template:
        """The same for text that is no literal: what a configuration, a file or a registry holds."""
        return cls(text, slots)  # type: ignore[arg-type,unused-ignore] # pyright: ignore[reportArgumentType]

    @classmethod
    def from_tstring(cls, value: TString) -> FilledTemplate:
        """The filled template that a t-string stands for: its strings are literal, its values are items.

        A slot is named by its expression where that is an identifier, else `slot1`, `slot2` and so on.

        Raises:
            TemplateError: no t-string, or an interpolation with a conversion or a format specification.
            ContextTypeError: an interpolated value is no item.
        """
        if not is_tstring(value):
            raise TemplateError(
                f'a value of kind {kind(value)} is no t-string (write t"…{{item}}…", or use a Template)',
                field="template",
            )
        strings, fields = value.strings, value.interpolations
        if len(strings) != len(fields) + 1:
            raise TemplateError(
                f"a t-string of {len(fields)} interpolations has {len(strings)} strings (it needs one more)",
                field="template",
            )
        literals = [_plain_text(part) for part in strings]
        bound: dict[str, ContextItem[Any]] = {}
        text = literals[0]
        for field, literal in zip(fields, literals[1:], strict=True):
            name = _slot_name(field, literals, bound)
            bound[name] = _item(name, field.value)
            text += f"{{{name}}}{literal}"
        return FilledTemplate(template=cls.from_text(text, tuple(bound)), bindings=tuple(bound.items()))

    @property
    def slots(self) -> tuple[str, ...]:
        """The distinct names of the slots, in the order of their first place."""
        return self._slots

    @property
    def pieces(self) -> tuple[str, ...]:
        """Literal text and slot names in turn: literals (perhaps empty) at even places, names at odd ones."""
        return self._pieces

    @property
    def literal(self) -> str:
        """The literal text alone, its pieces put together with nothing in the slots' places."""
        return "".join(self._pieces[0::2])

    @property
    def text(self) -> str:
        """The text with its slots as `{name}`: `Template.from_text(t.text, t.slots)` equals `t`."""
        return "".join(f"{{{piece}}}" if i % 2 else piece for i, piece in enumerate(self._pieces))

    def fill(self, /, **items: ContextItem[Any]) -> FilledTemplate:
        """The template with an item in each slot.

        Raises:
            TemplateError: a slot without an item, or a name that is no slot.
            ContextTypeError: a value that is not an item.
        """
        return FilledTemplate(template=self, bindings=tuple(items.items()))

    def __eq__(self, other: object) -> bool:
        return self._pieces == other._pieces if isinstance(other, Template) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pieces)

    def __repr__(self) -> str:
        return f"<Template {len(self.literal)} characters, slots: {', '.join(self._slots) or 'none'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Loading validates again, and a copy counts as built when it was copied.
        return Template.from_text, (self.text, self._slots)

    if not TYPE_CHECKING:  # a type checker is to see no attribute that can be set

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise AttributeError(f"a template is immutable: `{name}` cannot be set")

        def __delattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a template is immutable: `{name}` cannot be deleted")

    def _refuse(self) -> NoReturn:
        raise ContextTypeError(
            "a template does not become text (fill its slots and give it to store.instruct, or read its .literal)"
        )

    def __str__(self) -> str:
        self._refuse()

    def __format__(self, _: str) -> str:
        self._refuse()


class FilledTemplate:
    """A template with an item bound to each slot: what `store.instruct` takes.

    Attributes:
        template: the template.
        bindings: pairs of slot name and item, sorted by name.
    """

    __slots__ = ("bindings", "template")

    template: Template
    bindings: tuple[tuple[str, ContextItem[Any]], ...]

    def __new__(cls, *, template: Template, bindings: Iterable[tuple[str, ContextItem[Any]]]) -> FilledTemplate:
        self = object.__new__(cls)
        pairs = tuple(bindings)
        given = [name for name, _ in pairs]
        _check_names(template, given)
        checked = tuple(sorted(((name, _item(name, value)) for name, value in pairs), key=lambda pair: pair[0]))
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "bindings", checked)
        return self

    @property
    def parts(self) -> tuple[Slot, ...]:
        """The slots as an item's parts name them, sorted by name."""
        return tuple(Slot(name=name, item_id=item.id) for name, item in self.bindings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FilledTemplate):
            return NotImplemented
        return self.template == other.template and self.bindings == other.bindings

    def __hash__(self) -> int:
        return hash((self.template, self.bindings))

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={item.id}" for name, item in self.bindings)
        return f"<FilledTemplate {len(self.template.literal)} characters, {bound or 'no slots'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _refill, (self.template, self.bindings)

    if not TYPE_CHECKING:  # a type checker is to see no attribute that can be set

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise AttributeError(f"a filled template is immutable: `{name}` cannot be set")

        def __delattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a filled template is immutable: `{name}` cannot be deleted")

    def _refuse(self) -> NoReturn:
        raise ContextTypeError(
            "a filled template does not become text (give it to store.instruct; its items stay data)",
            item_ids=tuple(item.id for _, item in self.bindings),
        )

    def __str__(self) -> str:
        self._refuse()

    def __format__(self, _: str) -> str:
        self._refuse()


def born(template: Template) -> int:
    """When a template was built in this process, by `time.monotonic_ns()`; a seal compares its own moment."""
    return template._born  # pyright: ignore[reportPrivateUsage]


def _refill(template: Template, bindings: tuple[tuple[str, ContextItem[Any]], ...]) -> FilledTemplate:
    return FilledTemplate(template=template, bindings=bindings)


def _plain_text(text: object) -> str:
    if isinstance(text, LabelledText):
        where = text.origins
        raise ContextTypeError(
            f"labelled text of {names(origin.item_id for origin in where) or 'an item'} is no template text "
            "(write the literal and fill a slot with the item)",
            item_id=where[0].item_id if where else None,
        )
    if _is_item(text):
        raise ContextTypeError(
            f"item `{text.id}` ({text.type.name}) is no template text "
            "(write the literal and fill a slot with the item)",
            item_id=text.id,
        )
    if isinstance(text, Template | FilledTemplate):
        raise ContextTypeError("a template is no template text (write one literal with all its slots)")
    if not isinstance(text, str):
        raise TemplateError(
            f"template text is of kind {kind(text)}, not `str` (write a literal)",
            field="template",
        )
    return canonical_text(text, "template")[0]


def _parse(text: str, slots: Iterable[str] | None) -> tuple[str, ...]:
    declared = None if slots is None else _declared(slots)
    if declared is None and (found := _AMBIGUOUS.search(text)):
        shown = found[0] if len(found[0]) <= _SHOWN else found[0][:_SHOWN] + "…"
        raise TemplateError(
            f"`{shown}` at character {found.start()} is more than a slot's name (a slot is `{{name}}`; "
            "to keep other braces as they are, declare the slots: Template(text, slots=(…,)))",
            field="template",
        )
    pieces: list[str] = []
    start = 0
    for found in _SLOT.finditer(text):
        name = found[1]
        if (name not in declared) if declared is not None else not name.isidentifier():
            continue
        _check_identifier(name)
        pieces += (text[start : found.start()], name)
        start = found.end()
    pieces.append(text[start:])
    if declared is not None and (absent := [name for name in declared if name not in pieces[1::2]]):
        raise TemplateError(
            f"the text has no place for {names(absent)} (write `{{{absent[0]}}}`, or do not declare it)",
            field="slots",
        )
    return tuple(pieces)


def _declared(slots: Iterable[str]) -> dict[str, None]:
    if isinstance(slots, str):
        raise TemplateError("`slots` is one `str` (give a tuple of names)", field="slots")
    found: dict[str, None] = {}
    for name in slots:
        _check_identifier(name)
        if name in found:
            raise TemplateError(f"slot `{name}` is declared twice (declare each name once)", field="slots")
        found[name] = None
    return found


def _check_identifier(name: object) -> None:
    if not isinstance(name, str):
        raise TemplateError(f"a slot's name is of kind {kind(name)}, not `str`", field="slots")
    if not name.isidentifier():
        raise TemplateError(f"`{name[:_SHOWN]}` cannot name a slot (use a Python identifier)", field="slots")
    # A keyword argument is read in its NFKC form, so another form could never be filled.
    if unicodedata.normalize("NFKC", name) != name:
        raise TemplateError(f"`{name[:_SHOWN]}` cannot name a slot (write it in NFKC form)", field="slots")


def _check_names(template: Template, given: list[str]) -> None:
    if unknown := [name for name in given if name not in template.slots]:
        raise TemplateError(
            f"the template has no slot {names(unknown)} (its slots: {names(template.slots) or 'none'})",
            field="slots",
        )
    if missing := [name for name in template.slots if name not in given]:
        raise TemplateError(f"no item is given for slot {names(missing)} (fill every slot)", field="slots")
    if len(set(given)) != len(given):
        raise TemplateError(f"a slot is bound twice: {names(given)} (bind each slot once)", field="slots")


def _is_item(value: object) -> TypeGuard[ContextItem[Any]]:
    return isinstance(value, ContextItem)


def _item(name: str, value: object) -> ContextItem[Any]:
    if _is_item(value):
        return value
    if isinstance(value, LabelledText):
        what, mend = "labelled text", "fill it with the item itself, not with its text"
    elif isinstance(value, Template | FilledTemplate):
        what, mend = "a template", "give it to store.instruct first and fill the slot with the item"
    else:
        what, mend = f"a value of kind {kind(value)}", "add it to a store first: store.add(…)"
    raise ContextTypeError(f"slot `{name}` is filled with {what}, not with an item ({mend})", slot=name)


def _slot_name(field: Interpolation, literals: list[str], bound: dict[str, ContextItem[Any]]) -> str:
    expression = field.expression.strip()
    if field.conversion is not None or field.format_spec:
        raise TemplateError(
            f"`{expression[:_SHOWN]}` has a conversion or a format specification, which no item "
            "takes (interpolate the item alone)",
            field="template",
        )

    def free(name: str) -> bool:
        # A literal that spells the slot would make the text ambiguous.
        return not any(f"{{{name}}}" in literal for literal in literals)

    name = unicodedata.normalize("NFKC", expression)
    if name.isidentifier() and free(name) and bound.get(name, field.value) is field.value:
        return name
    number = 1
    while f"slot{number}" in bound or not free(f"slot{number}"):
        number += 1
    return f"slot{number}"
