"""Parts of rows: the fields and functions that a program asks for, checked where they are given.

Wherever a program asks for a part of a row, a field name, several, or a function will do. A field
must be one that the rows have, a function must take what it will be given. What is wrong is said
in terms of the call the user wrote, which is passed along as its *shape*: `"group_by({})"`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any, NoReturn

from ebbflow.algebra.value import function_name, is_async
from ebbflow.errors import CompositionError, Text, UnknownField, place
from ebbflow.expression.callables import arity_of, takes
from ebbflow.expression.node import Operation
from ebbflow.expression.outline import CALL, Outside, outline
from ebbflow.flow import attributes, edited, types, written
from ebbflow.flow.descending import Descending
from ebbflow.flow.inferred import inferred
from ebbflow.flow.plan import Node, Source, Unary
from ebbflow.flow.types import held, unhashable
from ebbflow.fn import Fn
from ebbflow.names import REDUCERS
from ebbflow.operator import Operator
from ebbflow.operator.applied import Applied
from ebbflow.record import as_stored, fields_of, hints_of, name_of
from ebbflow.reducer import Reducer
from ebbflow.typevars import V

Part = str | Callable[[V], Any] | tuple[Any, ...]
"""A part of a row of type V: a field, a function, or several in a tuple."""

Instead = Callable[[str, str, Collection[str]], str]
"""Finds the remedy for a text that is no field, given the shape of the call and the fields."""

ROW = ("the row",)
TWO_ROWS = ("the left row", "the right row")


def part(shape: str, node: Node, given: Any) -> Fn:
    """A part of the rows of a node: a field name, several in a tuple, or a function.

    >>> part("filter({})", Source(name="words", type=str), len)("flow")
    4
    """
    if isinstance(given, Fn):
        return given
    if isinstance(given, Applied):
        return edited.part(shape, node, given)
    if isinstance(given, str):
        field(shape, node, given, instead=written.instead)
    elif isinstance(given, (tuple, list)) and given:
        given = tuple([part(shape, node, each) for each in given])
    elif isinstance(given, Descending):
        return given.of(part(shape, node, given.part))
    else:
        function(shape, given, ROW)
        attributes.check(shape, given, [(node.type, rows_of(node))])
    return Fn.of(given, node.type)


def part_type(node: Node, given: Any) -> Any:
    """The type of a part: that of the field, or what the function says it returns, or is seen to.

    >>> part_type(Source(name="words", type=str), len)
    <class 'int'>
    >>> part_type(Source(name="words", type=str), lambda word: word[:3])
    <class 'str'>
    """
    if isinstance(given, str):
        fields = fields_of(node.type)
        return held((hints_of(node.type) if fields is None else fields).get(given, Any))
    if isinstance(given, Applied):
        return edited.value_type(node, given)
    if isinstance(given, (tuple, list)):
        return tuple[tuple(part_type(node, each) for each in given)]  # type: ignore[misc]
    return inferred(given, node.type)


def field(shape: str, node: Node, name: str, *, instead: Instead | None = None) -> None:
    """Refuse a field that the rows of a node do not have. Where a function of the row is allowed
    as well, `instead` finds the call that a text such as "price > 3" stands for.

    >>> from ebbflow.record import record
    >>> field("group_by({})", Source(name="orders", type=record("Order", city=str)), "ctiy")
    Traceback (most recent call last):
    ebbflow.errors.UnknownField: group_by("ctiy"): rows of "orders" have no field 'ctiy'
        fields     city
        created    <doctest ebbflow.flow.parts.field[1]>:1
        try        group_by("city")
    """
    if not isinstance(name, str):
        refuse(f"{shape.format(repr(name))}: {name!r} is no field name", shape.format('"field"'))
    fields = fields_of(node.type)
    if fields is None:
        if node.type in attributes.PLAIN and not hasattr(node.type, name):
            raise UnknownField(
                f"{_call(shape, name)}: {rows_of(node)} are of type {name_of(node.type)}, which "
                f"has no field {name!r}",
                created=place(),
                remedy="a function of the row, or a NamedTuple as the type of the rows",
            )
        return
    if name not in fields:
        meant = "" if instead is None else instead(shape, name, fields)
        near = get_close_matches(name, fields, n=1, cutoff=0.5)
        raise UnknownField(
            f"{_call(shape, name)}: {rows_of(node)} have no field {name!r}",
            fields=Text(", ".join(fields) or "none"),
            created=place(),
            remedy=meant
            or (_call(shape, near[0]) if near else "one of its fields, or a function of the row"),
        )


def _call(shape: str, name: str) -> str:
    return shape.format(f'"{name}"')


def rows_of(node: Node) -> str:
    """How an error speaks of the rows of a node: by the name of the input they are rows of, or by
    their type.

    >>> rows_of(Source(name="orders"))
    'rows of "orders"'
    """
    while isinstance(node, Unary) and node.type is node.parent.type:
        node = node.parent
    return f'rows of "{node.name}"' if isinstance(node, Source) else f"{name_of(node.type)} rows"


def function(shape: str, given: Any, roles: tuple[str, ...]) -> None:
    """Refuse what is no function, or one that cannot take what it will be given.

    >>> function("filter({})", lambda a, b: a, ROW)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: filter(<lambda>): it is called with one argument, the row
        function   <lambda>(a, b)
        created    <doctest ebbflow.flow.parts.function[0]>:1
        try        a function that takes one argument
    """
    if not callable(given):
        refuse(
            f"{shape.format(repr(given))}: {given!r} is no part of a row",
            "a field name, several in a tuple, or a function" if len(roles) == 1 else "a function",
        )
    if isinstance(given, Reducer) or _makes_reducer(given) or _makes_reducer(_called(given)):
        one = isinstance(given, Reducer)
        said = repr(given) if one else function_name(given).rpartition(".")[2]
        agg = f"name={given!r}" if one else 'name=ebbflow.sum("field")'
        refuse(
            f"{shape.format(said)}: a reducer takes many rows, and here is one row",
            f'group_by("field").agg({agg}), or over(...).with_fields({agg})',
        )
    if isinstance(given, Operator):
        refuse(
            f"{shape.format(repr(given))}: that is an operator, and it is not said of which field",
            shape.format(f'{given!r}("field")'),
        )
    name = function_name(given)
    call = shape.format(name.rpartition(".")[2])
    if not takes(given, len(roles)):
        number = ("one argument", "two arguments")[len(roles) - 1]
        refuse(
            f"{call}: it is called with {number}, {' and '.join(roles)}",
            f"a function that takes {number}",
            function=Text(f"{name.rpartition('.')[2]}{inspect.signature(given)}"),
        )
    at_once(call, given)


def at_once(call: str, given: Any) -> None:
    """Refuse an async function, and a function that only calls one: its coroutine would never run.

    >>> async def fetch(row): ...
    >>> at_once("filter(<lambda>)", lambda row: fetch(row))
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: filter(<lambda>): it is async, and an epoch awaits nothing
        created    <doctest ebbflow.flow.parts.at_once[1]>:1
        try        a plain function; await its data before the step and join with it
    """
    if is_async(given) or is_async(_called(given)):
        refuse(
            f"{call}: it is async, and an epoch awaits nothing",
            "a plain function; await its data before the step and join with it",
        )


def _called(given: Any) -> Any:
    """The function that a function only calls, or None: `fetch` of `lambda row: fetch(row)`."""
    found = outline(given, [Any] * arity_of(given))
    called = found.args[0] if isinstance(found, Operation) and found.op == CALL else None
    return called.value if isinstance(called, Outside) else None


def _makes_reducer(given: Any) -> bool:
    """Whether it is a function of the library that returns a reducer, such as `ebbflow.sum`."""
    module, name = getattr(given, "__module__", None), getattr(given, "__name__", None)
    return str(module).startswith("ebbflow.reducer") and name in REDUCERS.values()


def refuse(what: str, remedy: str, **facts: object) -> NoReturn:
    """Raise a `CompositionError` that names the line of the program that is being run."""
    raise CompositionError(what, **facts, created=place(), remedy=remedy)


def plain(shape: str, given: Any) -> None:
    """Refuse a generator function where one value is wanted.

    >>> def both(row):
    ...     yield row
    >>> plain("map({})", both)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: map(both): it yields, and here one value is wanted
        created    <doctest ebbflow.flow.parts.plain[1]>:1
        try        flat_map(both), or return instead of yield
    """
    if inspect.isgeneratorfunction(given):
        name = function_name(given).rpartition(".")[2]
        refuse(
            f"{shape.format(name)}: it yields, and here one value is wanted",
            f"flat_map({name}), or return instead of yield",
        )


def row_type(shape: str, hint: Any, fields: Any = fields_of) -> Any:
    """The type, refused when its values cannot be rows; `fields` says what they hold.

    >>> row_type("map({})", list)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: map(...): rows must be hashable, and here is a list
        type       list
        created    <doctest ebbflow.flow.parts.row_type[0]>:1
        try        tuples for lists, frozensets for sets, a NamedTuple or a frozen dataclass
    """
    hint = type(None) if hint is None else as_stored(hint)
    if what := unhashable(hint, fields):
        refuse(
            f"{shape.format('...')}: rows must be hashable, and here is {what}",
            "tuples for lists, frozensets for sets, a NamedTuple or a frozen dataclass",
            type=Text(name_of(hint)),
        )
    return hint


def field_names(shape: str, names: Mapping[str, Any]) -> None:
    """Refuse names that a field of a NamedTuple cannot have.

    >>> field_names("select({}=...)", {"class": int})
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: select(class=...): 'class' cannot be the name of a field
        created    <doctest ebbflow.flow.parts.field_names[0]>:1
        try        a name without a leading underscore that is no keyword of Python
    """
    for name in names:
        if not name.isidentifier() or iskeyword(name) or name.startswith("_"):
            refuse(
                f"{shape.format(name)}: {name!r} cannot be the name of a field",
                "a name without a leading underscore that is no keyword of Python",
            )


def row_with(call: str, node: Node, new: Mapping[str, Any], remedy: str = "another name") -> Any:
    """The row type of a node with more fields; None where its fields are not known. A name that is
    taken is refused: it is put in where `call` and `remedy` have braces.

    >>> row_with("f({})", Source(name="words", type=str), {"size": int}) is None
    True
    """
    fields = types.fields_held(node.type)
    if fields is None:
        return None
    for name in new:
        if name in fields:
            what = f"{call.format(name)}: {rows_of(node)} have already a field {name!r}"
            refuse(what, remedy.format(name), fields=Text(", ".join(fields)))
    return types.row(node.type.__name__, {**fields, **new})


# ---- keys that become fields ----


@dataclass(frozen=True)
class GroupKey:
    """What rows are brought together by: a function, and the fields its parts become."""

    fn: Fn | None
    fields: dict[str, Any]

    @property
    def width(self) -> int:
        """How many fields it becomes."""
        return len(self.fields)


def key(shape: str, node: Node, given: tuple[Any, ...], named: Mapping[str, Any]) -> GroupKey:
    """A key of fields and named functions, or of one function, which becomes the field `key`.

    >>> key("group_by({})", Source(name="words", type=str), (len,), {}).fields
    {'key': <class 'int'>}
    """
    flat = _flat(given)
    if len(flat) == 1 and not named and not isinstance(flat[0], str):
        plain(shape, flat[0])
        return GroupKey(part(shape, node, flat[0]), {"key": part_type(node, flat[0])})
    parts = named_parts(shape, node, given, named)
    if not parts:
        refuse(f"{shape.format('')}: no key is given", "a field, or a function of the row")
    whole = tuple(parts.values()) if len(parts) > 1 else next(iter(parts.values()))
    return GroupKey(
        part(shape, node, whole), {name: part_type(node, each) for name, each in parts.items()}
    )


def named_parts(
    shape: str, node: Node, given: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Parts of a row by the names of the fields they become: fields, and functions with a name.

    >>> named_parts("select({})", Source(name="words", type=str), (), {"size": len})
    {'size': <built-in function len>}
    """
    parts: dict[str, Any] = {}
    for each in _flat(given):
        if not isinstance(each, str):
            function(shape, each, ROW)
            name = function_name(each).rpartition(".")[2]
            refuse(
                f"{shape.format(name)}: a function here needs a name, to be a field",
                f"{shape.partition('(')[0]}(..., name={name})",
            )
        if not each.isidentifier():
            field(shape, node, each, instead=written.unnamed)
        if each in parts:
            refuse(f"{_call(shape, each)}: the field {each!r} is given twice", "each field once")
        parts[each] = each
    for name, each in named.items():
        if name in parts:
            refuse(
                f"{shape.format(name + '=...')}: the field {name!r} is given twice",
                "another name for one of them",
            )
        parts[name] = each
    field_names(shape.format("{}=..."), parts)
    for name, each in parts.items():
        whole = shape if name == each else shape.format(f"{name}={{}}")
        plain(whole, each)
        part(whole, node, each)
    return parts


def _flat(given: tuple[Any, ...]) -> list[Any]:
    return [one for each in given for one in (each if isinstance(each, (tuple, list)) else (each,))]
