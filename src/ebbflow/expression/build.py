"""The parts of expressions, put together as Python would evaluate them.

What cannot be put together without a difference raises `NotTraced`: then there is no expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from re import Pattern
from typing import Any, NamedTuple

from ebbflow.expression.node import (
    METHODS,
    SEARCHES,
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    field_of,
)
from ebbflow.expression.value import is_simple, plain_fields
from ebbflow.record import fields_of


class NotTraced(Exception):
    """A function does something that is not followed."""


class Slice(NamedTuple):
    """The limits of a slice."""

    start: Expression
    stop: Expression


def either(test: Expression, then: Expression, other: Expression) -> Expression:
    """`then if test else other`, as `and` or `or` where it is one of them.

    >>> a, b = Get(0, "a", 0), Get(0, "b", 1)
    >>> either(a, b, a).text(), either(a, a, b).text()
    ('a and b', 'a or b')
    """
    if other == test:
        return Operation("and", (test, then))
    if then == test:
        return Operation("or", (test, other))
    if isinstance(then, Operation) and then.op == "if" and then.args[2] == other:
        return Operation("if", (Operation("and", (test, then.args[0])), then.args[1], other))
    if isinstance(other, Operation) and other.op == "if" and other.args[1] == then:
        return Operation("if", (Operation("or", (test, other.args[0])), then, other.args[2]))
    return Operation("if", (test, then, other))


def attribute(of: Expression, name: str, types: Sequence[Any]) -> Expression:
    """The attribute `name` of a value: for a row, its field."""
    if not isinstance(of, Row):
        return Operation(".", (of, Constant(name)))
    fields = plain_fields(types[of.arg])
    if fields is None or name not in fields:
        raise NotTraced
    return field_of(of.arg, name, fields[name], types[of.arg])


def element(of: Expression, index: Any, types: Sequence[Any]) -> Expression:
    """The element or slice of a value: for a row, the field at that place."""
    if isinstance(index, Slice):
        return Operation("[:]", (of, index.start, index.stop))
    index = value_of(index)
    tuples = isinstance(of, Row) and not is_dataclass(types[of.arg])
    if tuples and isinstance(index, Constant) and type(index.value) is int:
        assert isinstance(of, Row)
        fields = list(plain_fields(types[of.arg]) or ())
        if -len(fields) <= index.value < len(fields):
            place = index.value % len(fields)
            return Get(of.arg, fields[place], place)
    return Operation("[]", (of, index))


def method(of: Expression, name: str, given: Sequence[Expression], types: Sequence[Any]) -> Any:
    """A method of a text, called with texts; `startswith` and `endswith` also with several."""
    asked = METHODS.get(name) is bool
    least, most = (1, 1) if asked else (0, 1 if name == "strip" else 0)
    if name not in METHODS or not least <= len(given) <= most:
        raise NotTraced
    texts = [each for each in given if not (asked and _are_texts(each))]
    if not all(is_text(each, types) for each in (of, *texts)):
        raise NotTraced
    return Operation(name, (of, *given))


def searched(
    pattern: Pattern[str], name: str, given: Sequence[Expression], types: Sequence[Any]
) -> Expression:
    """What a regular expression finds in a text."""
    if name not in SEARCHES or len(given) != 1 or not is_text(given[0], types):
        raise NotTraced
    return Operation(name, (Constant(pattern), given[0]))


def is_text(of: Expression, types: Sequence[Any]) -> bool:
    """Whether the value of an expression is a text, as far as the types of the rows tell."""
    match of:
        case Row():
            return types[of.arg] is str
        case Get():
            return (fields_of(types[of.arg]) or {}).get(of.name) is str
        case Constant():
            return type(of.value) is str
        case Operation(op="[:]" | "+"):
            return all(is_text(each, types) for each in (of.args[:1] if of.op != "+" else of.args))
        case Operation():
            return of.op == "str" or METHODS.get(of.op) is str
    return False


def _are_texts(of: Expression) -> bool:
    if not isinstance(of, Constant) or type(of.value) is not tuple:
        return False
    return all(type(each) is str for each in of.value)


def made(cls: Any, values: Sequence[Expression], keywords: Sequence[str] = ()) -> Expression:
    """A row of a plain type from the arguments it is called with; the last have these names."""
    names, count = cls._fields, len(values) - len(keywords)
    order = [*names[:count], *keywords]
    given = dict(zip(order, values, strict=False))
    if count > len(names) or len(given) < len(values) or not given.keys() <= set(names):
        raise NotTraced
    defaults = cls.__new__.__defaults__ or ()
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        if name not in given:
            given[name] = constant(value)
    if len(given) < len(names):
        raise NotTraced
    reordered = [name for name in names if name in order] != order
    if reordered and sum(not each.total for each in values) > 1:
        raise NotTraced
    return Record(cls, tuple([given[name] for name in names]))


def identical(op: str, left: Expression, right: Expression) -> Expression:
    for each in (left, right):
        if isinstance(each, Constant) and (each.value is None or type(each.value) is bool):
            return Operation(op, (left, right))
    raise NotTraced


def constant(value: Any) -> Any:
    if type(value) is slice and value.step is None:
        return Slice(constant(value.start), constant(value.stop))
    if not is_simple(value):
        raise NotTraced
    return Constant(value)


def value_of(each: Any) -> Expression:
    if not isinstance(each, Expression):
        raise NotTraced
    return each
