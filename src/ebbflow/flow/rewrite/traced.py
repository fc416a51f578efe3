"""Traced functions put together and taken apart: what rewrites need to move them.

A traced function is an expression over the fields of its rows, so it can be said in terms of other
rows: of what a map or a join makes them from, of a key, of a narrower row. Each function here gives
None where that cannot be done, or where the result would be large.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from ebbflow.expression import Constant, Expression, Get, Operation, Record, Row, Tuple
from ebbflow.expression.computed import ExpressionFunction
from ebbflow.flow.rewrite.total import computes, is_bool, never_raises, sorts
from ebbflow.flow.types import row
from ebbflow.fn import Fn
from ebbflow.record import fields_of

LARGE = 120


def written(expression: Expression, *types: Any) -> Fn:
    """An expression over rows of these types as an Fn.

    >>> written(Operation("+", (Row(0), Row(1))), int, int).text
    'l + r'
    """
    name = expression.text()
    call = ExpressionFunction(expression, len(types))
    return Fn._make(call, types, name, expression, f"Fn({name})")


def _small(expression: Expression) -> bool:
    return sum(1 for _ in islice(expression.walk(), LARGE + 1)) <= LARGE


# ---- one after the other ----


def composed(first: Fn, second: Fn) -> Fn | None:
    """`second(first(row))` as one traced function, which evaluates what both would.

    >>> double = written(Operation("+", (Row(0), Row(0))), int)
    >>> composed(double, written(Operation("-", (Row(0),)), int)).text
    '-(row + row)'
    """
    if first.expression is None or second.expression is None:
        return None
    both = first.then(second)
    return both if both.expression is not None and _small(both.expression) else None


def condition(first: Fn, second: Fn, *, plain: bool = False) -> Fn | None:
    """`second(first(rows))` in terms of the rows, for a condition that is looked at before.

    What `first` does besides is done afterwards, so nothing is lost when it is left out here.

    >>> from ebbflow.record import record
    >>> Twice = record("Twice", n=int, double=int)
    >>> row = Row(0)
    >>> f = written(Record(Twice, (row, Operation("+", (row, row)))), int)
    >>> condition(f, written(Operation("==", (Get(0, "n", 0), Constant(3))), Twice)).text
    'row == 3'

    With `plain`, only where that takes no computation: nothing is then computed twice.

    >>> double = written(Operation("==", (Get(0, "double", 1), Constant(6))), Twice)
    >>> condition(f, double).text, condition(f, double, plain=True)
    ('row + row == 6', None)
    """
    made, asked = first.expression, second.expression
    if made is None or asked is None:
        return None
    if plain and not all(_is_plain(made, part) for part in asked.walk()):
        return None
    types = first.types or (Any,) * first.arity
    return _said_of(asked, lambda part: _part_of(made, part), *types)


def of_made(fn: Fn, *makers: Fn | None) -> Fn | None:
    """A function of several rows in terms of the rows that these were made of, each by its maker;
    None for a row that is as it was.

    >>> from ebbflow.record import record
    >>> Twice = record("Twice", n=int, double=int)
    >>> row = Row(0)
    >>> twice = written(Record(Twice, (row, Operation("+", (row, row)))), int)
    >>> less = written(Operation("<", (Row(0), Get(1, "double", 1))), int, Twice)
    >>> of_made(less, None, twice).text
    'l < r + r'
    """
    if fn.expression is None or any(each and each.expression is None for each in makers):
        return None

    def part_of(part: Row | Get) -> Expression:
        maker = makers[part.arg]
        if maker is None or maker.expression is None:
            return part
        made = maker.expression.substitute(lambda inner: _of_argument(inner, part.arg))
        return _part_of(made, part)

    pairs = zip(makers, fn.types or (Any,) * fn.arity, strict=True)
    types = [mine if each is None else (each.types or (Any,))[0] for each, mine in pairs]
    return _said_of(fn.expression, part_of, *types)


def _of_argument(part: Row | Get, number: int) -> Row | Get:
    if isinstance(part, Row):
        return Row(number)
    return type(part)(number, part.name, part.index)


def _said_of(
    expression: Expression, by: Callable[[Row | Get], Expression], *types: Any
) -> Fn | None:
    """The expression with its rows and fields replaced, as a function of rows of these types; None
    where one cannot be replaced, or the result would be large."""
    try:
        found = expression.substitute(by)
    except LookupError:
        return None
    return written(found, *types) if _small(found) else None


def _is_plain(made: Expression, part: Expression) -> bool:
    if not isinstance(part, (Row, Get)):
        return True
    try:
        return isinstance(_part_of(made, part), (Row, Get, Constant))
    except LookupError:
        return False


def _part_of(made: Expression, part: Row | Get) -> Expression:
    """A row that was made by an expression, or a field of it."""
    if isinstance(part, Row):
        return made
    if isinstance(made, Row):
        return type(part)(made.arg, part.name, part.index)
    if isinstance(made, (Record, Tuple)):
        return made.items[part.index]
    raise LookupError(part.name)


# ---- conditions ----


def total(fn: Fn) -> bool:
    """Whether a condition is true or false for every row of its type; see `rewrite.total`.

    >>> total(written(Operation("==", (Row(0), Row(0))), int)), total(Fn(len, str))
    (True, False)
    """
    return fn.expression is not None and never_raises(fn.expression, fn.types)


def certain(fn: Fn | None) -> bool:
    """Whether a function has a value for every row of its type; a missing one has.

    >>> certain(written(Operation("-", (Row(0),)), int)), certain(Fn(len, str))
    (True, False)
    """
    return fn is None or (fn.expression is not None and computes(fn.expression, fn.types))


def sortable(fn: Fn) -> bool:
    """Whether a function has a value for every row, and these can be put in order.

    >>> sortable(written(Row(0), str)), sortable(written(Row(0), Any))
    (True, False)
    """
    return fn.expression is not None and sorts(fn.expression, fn.types)


def conjuncts(fn: Fn) -> list[Fn]:
    """The conditions that hold exactly when this one does, in order; itself when it is only one.

    `p and q` is looked at from left to right, as two filters are. `p & q` looks at both, and is cut
    where both are True or False for every row.

    >>> both = Operation("and", (Row(0), Operation("-", (Row(0),))))
    >>> [each.text for each in conjuncts(written(both, int))]
    ['row', '-row']
    """
    if fn.expression is None:
        return [fn]
    found: list[Expression] = []
    stack = [fn.expression]
    while stack:
        each = stack.pop()
        if isinstance(each, Operation) and _cuts(each, fn.types):
            stack += reversed(each.args)
        else:
            found.append(each)
    return [fn] if len(found) == 1 else [written(each, *fn.types) for each in found]


def _cuts(each: Operation, types: tuple[Any, ...]) -> bool:
    return each.op == "and" or (each.op == "&" and all(is_bool(part, types) for part in each.args))


def of_side(fn: Fn, side: int) -> Fn | None:
    """A function of several rows as one of the row at `side`, if it reads no other.

    >>> of_side(written(Operation("-", (Row(1),)), int, int), 1).text
    '-row'
    >>> of_side(written(Operation("+", (Row(0), Row(1))), int, int), 1) is None
    True
    """
    if fn.expression is None:
        return None
    used = {part.arg for part in fn.expression.walk() if isinstance(part, (Row, Get))}
    if used != {side}:
        return None
    alone = fn.expression.substitute(lambda part: _of_argument(part, 0))
    return written(alone, fn.types[side])


def of_parts(fn: Fn, key: Fn | None, width: int) -> Fn | None:
    """A condition on `(key…, value)` as one on the row the key was taken from.

    >>> from ebbflow.record import record
    >>> parity = written(Operation("&", (Row(0), Row(0))), int)
    >>> Row2 = record("Row2", key=int, n=int)
    >>> of_parts(written(Get(0, "key", 0), Row2), parity, 1).text
    'row & row'
    >>> of_parts(written(Get(0, "n", 1), Row2), parity, 1) is None
    True
    """
    if fn.expression is None or key is None or key.expression is None:
        return None
    if width == 1:
        parts: tuple[Expression, ...] = (key.expression,)
    elif isinstance(key.expression, Tuple) and len(key.expression.items) == width:
        parts = key.expression.items
    else:
        return None

    def part_of_key(part: Row | Get) -> Expression:
        if isinstance(part, Row):
            raise LookupError
        return parts[part.index]

    found = _said_of(fn.expression, part_of_key, *key.types)
    made = [] if found is None or found.expression is None else found.expression.walk()
    return found if any(isinstance(part, (Row, Get)) for part in made) else None


def of_key(fn: Fn, key: Fn | None) -> Fn | None:
    """The condition itself, if it reads nothing but fields that the key consists of.

    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> city = Fn.of("city", Order)
    >>> of_key(Fn.of(lambda o: o.city == "Rome", Order), city).text
    "city == 'Rome'"
    >>> of_key(Fn.of(lambda o: o.price == 3, Order), city) is None
    True
    """
    if fn.expression is None or key is None or key.expression is None:
        return None
    inside = key.expression.items if isinstance(key.expression, Tuple) else (key.expression,)
    used = {part for part in fn.expression.walk() if isinstance(part, (Row, Get))}
    return fn if used and used <= set(inside) else None


# ---- other rows ----


def of_rows(fn: Fn, row_type: Any) -> Fn:
    """The same function of the same rows, when it is known that they are of this type.

    >>> of_rows(written(Operation("-", (Row(0),)), int | None), int).types
    (<class 'int'>,)
    """
    if fn.expression is None or fn.types == (row_type,):
        return fn
    return written(fn.expression, row_type)


def over(fn: Fn, *types: Any) -> Fn | None:
    """The same function of rows of other types that have the fields it reads.

    >>> from ebbflow.record import record
    >>> price = Fn.of("price", record("Order", city=str, price=int))
    >>> over(price, record("Price", price=int)).expression
    Get(arg=0, name='price', index=0)
    >>> over(price, record("City", city=str)) is None
    True
    """
    if fn.types == types:
        return fn
    if fn.expression is None:
        return None
    places = [list(fields_of(row_type) or ()) for row_type in types]

    def shifted(part: Row | Get) -> Expression:
        if fn.types[part.arg] == types[part.arg]:
            return part
        if isinstance(part, Row) or part.name not in places[part.arg]:
            raise LookupError
        return Get(part.arg, part.name, places[part.arg].index(part.name))

    try:
        return written(fn.expression.substitute(shifted), *types)
    except LookupError:
        return None


def narrowing(row_type: Any, names: frozenset[str]) -> Fn:
    """The function that keeps only these fields of a row, in the order they have.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str, price=int)
    >>> narrowing(Order, frozenset({"price", "city"}))(Order(1, "Rome", 10))
    Order(city='Rome', price=10)
    """
    fields = fields_of(row_type) or {}
    kept = {name: fields[name] for name in fields if name in names}
    return Fn.record(row(row_type.__name__, kept), [Fn.of(name, row_type) for name in kept])
