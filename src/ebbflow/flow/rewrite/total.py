"""Functions that never fail, whatever the row, as far as the types of its fields can tell.

A filter that is moved may see rows it would not have seen, and may keep rows from functions that
would have failed on them. Neither matters where a function is *total*: no part of it can raise on
any row of the type; of a condition also that it is certainly true or false. The types of fields are
taken at their word: a field that is said to be an int and holds None is a wrong row.

    x == y, x != y, x is y     always: what is in a row can be hashed, and so compared
    x < y, x <= y ...          two numbers (int, float, bool), two texts, or two bytes
    x + y, x - y, x * y        two ints, or two floats: an int too large for a float raises
    x + y                      two texts too
    x % n, x // n              an int by a constant that is not 0
    -x, abs(x), len(x)         of numbers, numbers, and what certainly has a length
    not x, x and y, a if x else b, bool(x)     where x has a type whose values are true or false
    x in (1, 2)                a constant tuple; a text in a text
    x.startswith(y), x.lower() of texts, as all methods that are operations

A field that may be None is no number: `price > 10` is not total when price is `int | None`, nor is
`price is not None and price > 10`, although it never fails. Elements, attributes, division by
what may be 0, `float(x)` and everything else count as able to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from re import Match
from types import NoneType
from typing import Any

from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple
from ebbflow.expression.node import METHODS, SEARCHES
from ebbflow.flow.types import classes
from ebbflow.record import fields_of

Classes = frozenset[type]

INT: Classes = frozenset({int, bool})
NUMBER: Classes = frozenset({int, bool, float})
SIZED: Classes = frozenset({str, bytes, tuple, frozenset})
TRUTHY: Classes = frozenset({int, bool, float, str, bytes, NoneType, tuple, frozenset, Match})
BOOL: Classes = frozenset({bool})
SORTED: tuple[Classes, ...] = (NUMBER, frozenset({str}), frozenset({bytes}))
FAILS: Classes = frozenset()


class MayRaise(Exception):
    """Some part may fail."""


def never_raises(expression: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression over rows of these types gives true or false for every row.

    >>> from ebbflow.record import record
    >>> row = record("Order", price=int, paid=int | None)
    >>> price, paid = Get(0, "price", 0), Get(0, "paid", 1)
    >>> def above(part): return Operation(">", (part, Constant(10)))
    >>> never_raises(above(price), [row]), never_raises(above(paid), [row])
    (True, False)
    """
    try:
        return _truth(_classes_given(expression, types)) is not None
    except MayRaise:
        return False


def computes(expression: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression over rows of these types has some value for every row.

    >>> computes(Operation("*", (Row(0), Constant(2))), [int])
    True
    >>> computes(Operation("/", (Constant(2), Row(0))), [int])
    False
    """
    return _classes_or_fails(expression, types) is not FAILS


def sorts(expression: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression has a value for every row, and any two values can be compared by `<`.

    >>> sorts(Row(0), [int]), sorts(Row(0), [int | None])
    (True, False)
    """
    found = _classes_or_fails(expression, types)
    return found is not FAILS and _within(found, *SORTED)


def is_bool(expression: Expression, types: Sequence[Any]) -> bool:
    """Whether an expression gives True or False for every row, and nothing like them.

    >>> is_bool(Operation("==", (Row(0), Constant(0))), [int]), is_bool(Row(0), [int])
    (True, False)
    """
    if _classes_or_fails(expression, types) != BOOL:
        return False
    compared = [part for part in expression.walk() if isinstance(part, Operation)]
    parts = [part for each in compared if each.op in ("==", "!=") for part in each.args]
    return all(_within(_classes_given(part, types), TRUTHY) for part in parts)


def _classes_or_fails(expression: Expression, types: Sequence[Any]) -> Classes | None:
    try:
        return _classes_given(expression, types)
    except MayRaise:
        return FAILS


def _classes_given(expression: Expression, types: Sequence[Any]) -> Classes | None:
    """The classes that values of an expression may have; None when nothing is known."""
    if isinstance(expression, Row):
        return _classes_of(types[expression.arg])
    if isinstance(expression, Get):
        return _classes_of((fields_of(types[expression.arg]) or {}).get(expression.name, Any))
    if isinstance(expression, Constant):
        return frozenset({type(expression.value)})
    parts = [_classes_given(part, types) for part in expression.parts]
    if isinstance(expression, (Tuple, Record)):
        return frozenset({tuple})
    assert isinstance(expression, Operation)
    rule = _RULES.get(expression.op)
    if rule is None:
        raise MayRaise
    return rule(expression, parts)


def _classes_of(hint: Any) -> Classes | None:
    known = classes(hint)
    if known is None:
        return None
    return frozenset(tuple if issubclass(each, tuple) else each for each in known)


# ---- what each operation needs, and what it gives ----

Rule = Callable[[Operation, list[Classes | None]], Classes | None]


def _need(condition: bool) -> None:
    if not condition:
        raise MayRaise


def _truth(found: Classes | None) -> Classes:
    _need(found is not None and found <= TRUTHY)
    return BOOL


def _within(found: Classes | None, *allowed: Classes) -> bool:
    return found is not None and any(found <= each for each in allowed)


def _order(_: Operation, parts: list[Classes | None]) -> Classes:
    _need(any(_all(parts, each) for each in SORTED))
    return BOOL


def _all(parts: list[Classes | None], allowed: Classes) -> bool:
    return all(_within(part, allowed) for part in parts)


def _arithmetic(operation: Operation, parts: list[Classes | None]) -> Classes:
    if len(parts) == 1:
        _need(_within(parts[0], NUMBER))
        return frozenset({int}) if _within(parts[0], INT) else NUMBER
    if _all(parts, INT):
        return frozenset({int})
    if operation.op == "+" and _all(parts, frozenset({str})):
        return frozenset({str})
    _need(_all(parts, frozenset({float})))
    return frozenset({float})


def _remainder(operation: Operation, parts: list[Classes | None]) -> Classes:
    by = operation.args[1]
    _need(_all(parts, INT) and isinstance(by, Constant) and bool(by.value))
    return frozenset({int})


def _bits(_: Operation, parts: list[Classes | None]) -> Classes:
    _need(_all(parts, INT))
    return BOOL if _all(parts, BOOL) else frozenset({int})


def _either(_: Operation, parts: list[Classes | None]) -> Classes | None:
    """`x and y`, `x or y`: one of the two."""
    _truth(parts[0])
    return None if parts[0] is None or parts[1] is None else parts[0] | parts[1]


def _if(_: Operation, parts: list[Classes | None]) -> Classes | None:
    _truth(parts[0])
    return None if parts[1] is None or parts[2] is None else parts[1] | parts[2]


def _in(operation: Operation, parts: list[Classes | None]) -> Classes:
    among = operation.args[1]
    listed = isinstance(among, Constant) and type(among.value) is tuple
    _need(listed or _all(parts, frozenset({str})))
    return BOOL


def _len(_: Operation, parts: list[Classes | None]) -> Classes:
    _need(len(parts) == 1 and _within(parts[0], SIZED))
    return frozenset({int})


def _method(operation: Operation, parts: list[Classes | None]) -> Classes:
    several = isinstance(operation.args[-1], Constant) and type(operation.args[-1].value) is tuple
    _need(_all(parts[:-1] if several else parts, frozenset({str})))
    return frozenset({METHODS[operation.op]})


def _search(_: Operation, parts: list[Classes | None]) -> Classes:
    _need(_within(parts[1], frozenset({str})))
    return frozenset({Match, NoneType})


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("==", "!=", "is", "is not"), lambda *_: BOOL),
    **dict.fromkeys(("<", "<=", ">", ">="), _order),
    **dict.fromkeys(("+", "-", "*", "abs"), _arithmetic),
    **dict.fromkeys(("%", "//"), _remainder),
    **dict.fromkeys(("&", "|", "^"), _bits),
    **dict.fromkeys(("not", "bool"), lambda _, parts: _truth(parts[0])),
    **dict.fromkeys(("and", "or"), _either),
    **dict.fromkeys(("in", "not in"), _in),
    **dict.fromkeys(METHODS, _method),
    **dict.fromkeys(SEARCHES, _search),
    "if": _if,
    "len": _len,
}
