"""The type of what a function gives, read off its code.

`lambda order: order.city` says nothing about what it returns, but where the fields of its rows are
known it is plain: it is what the field `city` is. So a short function needs no hint. It is read
without being run, see `ebbflow.expression.outline`; what cannot be told is `Any`.

None has no arithmetic and no methods: where an operand may be None, the function either raises or
gives what it gives for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from types import NoneType
from typing import Any, get_args, get_origin

from ebbflow import decimals
from ebbflow.expression.decimals import computes_decimals, with_decimals
from ebbflow.expression.node import (
    COMPARISONS,
    METHODS,
    Constant,
    DecimalOperation,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.expression.outline import TEXT, Outside, outline
from ebbflow.expression.trace import trace
from ebbflow.flow import methods, types
from ebbflow.fn import Fn
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, with_notes
from ebbflow.reducer import Map

_NUMBERS = {bool, int, float}
_KNOWN = _NUMBERS | {str, bytes, date, datetime, timedelta, Decimal, tuple, NoneType}
_ALWAYS_BOOL = {"not", "is", "is not", "in", "not in", "bool"}
_MAPPINGS = (dict, Frozen, Map)
_BITS = {"&", "|", "^", "<<", ">>"}


def inferred(f: Any, *rows: Any) -> Any:
    """The type of `f(*rows)` for rows of these types: what it says, or is seen, to return.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int, day=date | None)
    >>> inferred(lambda order: order.city, Order)
    <class 'str'>
    >>> inferred(lambda order: (order.price > 10, order.price / 2), Order)
    tuple[bool, float]
    >>> inferred(lambda order: order.day.strftime("%Y-%m"), Order), inferred(len, str)
    (<class 'str'>, <class 'int'>)
    >>> def tax(order): return order.price // 5
    >>> inferred(lambda order: order.price - tax(order), Order)
    <class 'int'>
    """
    call = f.call if isinstance(f, Fn) else f
    for each, hint_of in _FUNCTIONS:
        if each is call:
            return hint_of(*map(types.without_none, rows))
    traced = f.expression if isinstance(f, Fn) else _traced(call, rows)
    said = types.returned(call)
    if said is not Any and not (types.without_none(said) is Decimal and computes_decimals(traced)):
        return said
    if traced is not None and (isinstance(f, Fn) or computes_decimals(traced)):
        return _type(traced, rows)
    seen = outline(call, rows)
    known = Any if seen is None else _type(seen, rows)
    if known is not Any:
        return known
    if traced is not None:  # which goes into the functions that it calls
        return _type(traced, rows)
    return methods.builtin(call) if seen is None else Any


def _traced(call: Any, rows: Sequence[Any]) -> Expression | None:
    found = trace(call, rows)
    return None if found is None else with_decimals(found, rows)


def _type(of: Expression, rows: Sequence[Any]) -> Any:
    match of:
        case Row():
            return rows[of.arg] if of.arg < len(rows) else Any
        case Get():
            return _attribute(rows[of.arg], of.name) if of.arg < len(rows) else Any
        case Constant():
            return type_of(of.value)
        case Record():
            return of.type
        case Tuple():
            return tuple[tuple(_type(each, rows) for each in of.items)]  # type: ignore[misc]
        case DecimalOperation():
            whole = of.op == "round" and of.places is None
            return int if whole else decimals.hint_of(of.digits)
        case Operation(op="if"):
            return _choice(of.args, rows)
        case Operation(op="call"):
            return _call(of.args, rows)
        case Operation():
            return _operation(of, [_type(each, rows) for each in of.args])
    return Any


def type_of(value: Any) -> Any:
    """The type of one value.

    >>> type_of((1, "a"))
    tuple[int, str]
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return with_notes(datetime, (value.tzinfo,))
    if type(value) is tuple:
        return tuple[tuple(map(type_of, value))]  # type: ignore[misc]
    return type(value)


def _operation(of: Operation, hints: list[Any]) -> Any:
    op, first = of.op, types.without_none(hints[0])
    if op in _ALWAYS_BOOL:
        return bool
    if op == TEXT or op == "str":
        return str
    if op in METHODS:
        return METHODS[op]
    if op in ("and", "or"):
        return types.common_or_any(first if op == "or" else hints[0], hints[1])
    if op == ".":
        return _attribute(first, of.args[1].value)  # type: ignore[attr-defined]
    if op in ("[]", "[:]"):
        return _element(first, of.args) if op == "[]" else _slice(first)
    if op in _BY_NAME:
        return _BY_NAME[op](*map(types.without_none, hints))
    known = [types.classes(hint) for hint in hints]
    if any(each is None or not set(each) <= _KNOWN for each in known):
        return Any
    if op in COMPARISONS:
        return bool
    if op == "**":
        return _power(of, first)
    return _arithmetic(op, *map(types.without_none, hints))


def _choice(args: tuple[Expression, ...], rows: Sequence[Any]) -> Any:
    """`then if test else other`. What was tested not to be None is not None."""
    test, *ways = args
    hints = [_type(each, rows) for each in ways]
    if isinstance(test, Operation) and test.op in ("is", "is not"):
        tested, none = test.args
        if none == Constant(None):
            at = 0 if test.op == "is not" else 1
            hints[at] = types.without_none(hints[at]) if ways[at] == tested else hints[at]
    return types.common_or_any(*hints)


# ---- arithmetic ----


def _arithmetic(op: str, first: Any, second: Any = None) -> Any:
    if second is None:
        return _arithmetic("+", first, int) if op in ("+", "-", "~") else Any
    ours, theirs = types.classes(first) or (), types.classes(second) or ()
    if len(ours) != 1 or len(theirs) != 1:
        return Any
    one, other = ours[0], theirs[0]
    if {one, other} <= _NUMBERS:
        return _number(op, one, other)
    if one is str or one is bytes:
        return one if (op, other) in (("+", one), ("*", int)) or op == "%" else Any
    if Decimal in (one, other) and {one, other} <= {Decimal, int, bool}:
        return _decimal(op, first, second)
    return _time(op, first, second, one, other)


def _number(op: str, one: type, other: type) -> Any:
    if op in _BITS:
        return Any if float in (one, other) else bool if one is other is bool else int
    if op not in ("+", "-", "*", "//", "%", "/"):
        return Any
    return float if op == "/" or float in (one, other) else int


def _decimal(op: str, first: Any, second: Any) -> Any:
    """The type of Decimal arithmetic that is not traced: Python's, of any digits."""
    return Decimal if op in decimals.RESULTS else Any


def _time(op: str, first: Any, second: Any, one: type, other: type) -> Any:
    if op in ("+", "-") and issubclass(one, date) and other is timedelta:
        return first
    if op == "+" and one is timedelta and issubclass(other, date):
        return second
    if op == "-" and issubclass(one, date) and issubclass(other, date):
        return timedelta
    if one is timedelta is other:
        return {"+": timedelta, "-": timedelta, "/": float, "//": int}.get(op, Any)
    return timedelta if op == "*" and {one, other} <= {timedelta, int, float} else Any


def _size(hint: Any) -> Any:
    if hint is bool:
        return int
    return hint if types.classes(hint) in ((int,), (float,), (Decimal,), (timedelta,)) else Any


def _rounded(value: Any, places: Any = None) -> Any:
    if types.classes(value) == (Decimal,):
        return int if places is None else value
    if value not in _NUMBERS:
        return Any
    return int if places is None or value is not float else float


def _extreme(*hints: Any) -> Any:
    if len(hints) == 1:
        return types.iterated(hints[0]) or Any
    return reduce(types.common_or_any, hints)


def _sum(hint: Any, *start: Any) -> Any:
    """What `sum` gives: where there is nothing to add, 0."""
    inside = types.iterated(hint)
    if start or inside not in _NUMBERS:
        return Any
    return int if inside is bool else inside


def _power(of: Operation, first: Any) -> Any:
    """A number to a whole power; any other may be complex, or a fraction."""
    power = of.args[1]
    whole = isinstance(power, Constant) and type(power.value) is int and power.value >= 0
    return (int if first is bool else first) if whole and first in _NUMBERS else Any


# ---- parts of values ----


def _attribute(hint: Any, name: str) -> Any:
    fields = fields_of(hint)
    if fields is not None:
        return types.held(fields.get(name, Any))
    known = types.classes(hint) or ()
    return methods.attribute(known[0], name) if len(known) == 1 else Any


def _element(hint: Any, args: tuple[Expression, ...]) -> Any:
    inside, at = get_args(hint), args[1]
    if hint is str:
        return str
    if get_origin(hint) in _MAPPINGS:
        return inside[1]
    if get_origin(hint) is tuple and inside[1:] != (...,):
        place: Any = at.value if isinstance(at, Constant) else None
        fits = type(place) is int and -len(inside) <= place < len(inside)
        return inside[place] if fits else Any
    return inside[0] if get_origin(hint) in (tuple, list) else Any


def _slice(hint: Any) -> Any:
    whole = hint in (str, bytes) or (get_origin(hint), get_args(hint)[1:]) == (tuple, (...,))
    return hint if whole else Any


# ---- calls ----


def _call(args: tuple[Expression, ...], rows: Sequence[Any]) -> Any:
    target, *given, keywords = args
    names = keywords.value  # type: ignore[attr-defined]
    hints = [_type(each, rows) for each in given]
    if isinstance(target, Operation) and target.op == ".":
        of, name = target.args
        return _method(types.without_none(_type(of, rows)), name.value, names, hints)  # type: ignore[attr-defined]
    if not isinstance(target, Outside):
        return Any
    f = target.value
    if f is datetime:
        return datetime if "tzinfo" not in names and len(given) < 8 else Any
    for each, hint_of in _FUNCTIONS:
        if each is f and given and not names:
            return hint_of(*map(types.without_none, hints))
    said = types.returned(f)
    return methods.builtin(f) if said is Any else said


def _method(hint: Any, name: str, keywords: tuple[str, ...], given: list[Any]) -> Any:
    if get_origin(hint) in _MAPPINGS and name == "get":
        value = get_args(hint)[1]
        return types.common_or_any(value, given[1] if len(given) > 1 else NoneType)
    known = types.classes(hint) or ()
    if len(known) != 1:
        return Any
    if known[0] is datetime and name == "replace":
        return hint if "tzinfo" not in keywords else Any
    return methods.method(known[0], name)


def _sorted(hint: Any, *_: Any) -> Any:
    return list.__class_getitem__(types.iterated(hint) or Any)


_FUNCTIONS: list[tuple[Any, Callable[..., Any]]] = [
    (abs, _size), (max, _extreme), (min, _extreme), (round, _rounded), (sorted, _sorted),
    (tuple, lambda hint: tuple.__class_getitem__((types.iterated(hint) or Any, ...))),
    (frozenset, lambda hint: frozenset.__class_getitem__(types.iterated(hint) or Any)),
    (sum, _sum),
]  # fmt: skip
_BY_NAME = {each.__name__: hint_of for each, hint_of in _FUNCTIONS} | {
    "float": lambda *_: float, "int": lambda *_: int, "len": lambda *_: int,
}  # fmt: skip
