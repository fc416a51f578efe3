"""Shapes: what rows and accumulators look like, without their numbers.

A proof speaks of every row and every accumulator. It can do so because these come in a few shapes,
such as a pair of an int and a bool, or None; what differs within a shape is numbers, and numbers
can be unknown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ebbflow.errors import CheckError
from ebbflow.laws.purity import MARKED, no_record
from ebbflow.laws.reducers import AnyReducer
from ebbflow.laws.symbolic import OWN, REALS, NotTraceable, Symbol, TracePath, aligned, number, z3


class Leaf(NamedTuple):
    """An unknown number or truth value; mixed where its Python type is open."""

    value_type: type
    mixed: bool = False


class Known(NamedTuple):
    """A value that is known."""

    value: Any


class TupleShape(NamedTuple):
    """A tuple or a NamedTuple of shapes."""

    make: Callable[[list[Any]], Any]
    parts: tuple[Any, ...]


class Carried:
    """A value that is carried along and must not be looked at."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: TracePath) -> None:
        self.name = name
        self.run = run

    def __getattribute__(self, name: str) -> Any:
        if sys._getframe(1).f_code.co_filename in OWN and name != "__class__":
            return object.__getattribute__(self, name)
        raise self.run.fail(f"it looks at a {self.name}")

    def _refuse(self, *_: Any) -> Any:
        raise self.run.fail(f"it looks at a {self.name}")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __str__ = __repr__ = __format__ = __int__ = __float__ = _refuse


MARKED.add(Carried)


def made_by(value: Any) -> Callable[[list[Any]], Any]:
    """What makes a tuple of this class from its parts.

    >>> made_by((1, 2))([3, 4])
    (3, 4)
    """
    cls: Any = type(value)
    if cls is tuple:
        return tuple
    if why := no_record(cls):
        raise NotTraceable(why)
    make: Callable[[list[Any]], Any] = cls._make
    return make


def shape(value: Any) -> Any:
    """The shape of a value.

    >>> shape((0, None)).parts
    (Leaf(value_type=<class 'int'>, mixed=False), Known(value=None))
    """
    if type(value) is Symbol:
        return Leaf(value.value_type, value.mixed)
    if type(value) in (bool, int):
        return Leaf(type(value))
    if type(value) in (float, Fraction):
        if type(value) is float and math.isnan(value):
            raise NotTraceable("a NaN in the accumulator is not equal to itself")
        infinite = type(value) is float and math.isinf(value)
        return Known(value) if infinite else Leaf(float, type(value) is Fraction)
    if issubclass(type(value), tuple):
        return TupleShape(made_by(value), tuple(map(shape, value)))
    if value is None or type(value) in (str, bytes):
        return Known(value)
    raise NotTraceable(f"a {type(value).__name__} in the accumulator cannot be followed")


def joined(a: Any, b: Any) -> Any:
    """One shape for both, where numbers are all that differs; None where there is none.

    >>> joined(Leaf(int), Leaf(float)), joined(Leaf(int), Known(None))
    (Leaf(value_type=<class 'float'>, mixed=True), None)
    """
    if a == b:
        return a
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        return Leaf(float, True) if float in (a.value_type, b.value_type) else Leaf(int, True)
    if isinstance(a, TupleShape) and isinstance(b, TupleShape) and a.make == b.make:
        if len(a.parts) != len(b.parts):
            return None
        parts = [joined(x, y) for x, y in zip(a.parts, b.parts, strict=True)]
        return None if None in parts else TupleShape(a.make, tuple(parts))
    return None


def unknown(of: Any, name: str, run: TracePath, fixed: dict[str, Any] | None = None) -> Any:
    """A value of a shape, its numbers unknown but for those that are fixed."""
    if isinstance(of, Known):
        return of.value
    if isinstance(of, TupleShape):
        parts = [unknown(part, f"{name}.{i}", run, fixed) for i, part in enumerate(of.parts)]
        return of.make(parts)
    if isinstance(of, str):
        return Carried(of, run)
    if of.value_type is float:
        run.seen.add(REALS)
    if fixed and name in fixed:
        value = fixed[name]  # its number is known, its type only where there is one
        return Symbol(number(value, run), run, of.value_type, True) if of.mixed else value
    make = {bool: z3().Bool, int: z3().Int, float: z3().Real}[of.value_type]
    return Symbol(make(name), run, of.value_type, of.mixed)


def equal(a: Any, b: Any, run: TracePath) -> Any:
    """When two values are equal, as a term."""
    if issubclass(type(a), tuple) and issubclass(type(b), tuple):
        made_by(a), made_by(b)
        if len(a) != len(b):
            return z3().BoolVal(False)
        return z3().And([equal(x, y, run) for x, y in zip(a, b, strict=True)])
    if type(a) is Symbol or type(b) is Symbol:
        infinite = [x for x in (a, b) if type(x) is float and not math.isfinite(x)]
        left, right = (None, None) if infinite else (number(a, run), number(b, run))
        if left is None or right is None:
            return z3().BoolVal(False)
        x, y = aligned(left, right)
        return x == y
    shape(a), shape(b)  # known values, whose == is Python's own
    return z3().BoolVal(bool(a == b))


# ---- what a row is ----


def alternatives(of: Any) -> list[Any]:
    """The shapes a row may have, from what a user says.

    >>> alternatives(int | None)
    [Leaf(value_type=<class 'int'>, mixed=False), Known(value=None)]
    """
    if of is bool or of is int or of is float:
        return [Leaf(of)]
    if of is Fraction:
        return [Leaf(float, True)]
    if of is None or of is type(None):
        return [Known(None)]
    if isinstance(of, type) and issubclass(of, tuple) and get_origin(of) is None:
        if why := no_record(of):
            raise NotTraceable(why)
        record: Any = of
        hints = get_type_hints(record)
        return _records(record._make, [hints[field] for field in record._fields])
    if isinstance(of, tuple):
        return _records(tuple, list(of))
    if get_origin(of) is tuple and Ellipsis not in get_args(of):
        return _records(tuple, list(get_args(of)))
    if get_origin(of) in (Union, UnionType):
        return [shape for part in get_args(of) for shape in alternatives(part)]
    if not isinstance(of, type) or get_origin(of) is not None:
        raise NotTraceable(f"rows of {of} have no shape that can be followed")
    return [of.__name__, Known(None)] if _may_be_none(of) else [of.__name__]


def _may_be_none(of: Any) -> bool:
    try:
        return isinstance(None, of)
    except TypeError:  # typing.Any, a protocol
        return True


def _field(of: Any) -> list[Any]:
    """The shapes of a field: where they are not known, it may be carried along."""
    try:
        return alternatives(of)
    except NotTraceable:
        return [str(of), Known(None)]


def _records(make: Callable[[list[Any]], Any], fields: list[Any]) -> list[Any]:
    return [TupleShape(make, parts) for parts in product(*map(_field, fields))]


def drawn(reducer: AnyReducer, elements: Any) -> list[Any]:
    """The shapes of some rows of those that `check` would draw."""
    source = reducer.elements if elements is None else elements
    if source is None:
        raise CheckError(
            f"it is not known what the rows of {reducer!r} are",
            created=reducer.created,
            remedy="prove(reducer, int), or elements=",
        )
    from ebbflow.laws.strategies import examples

    found: list[Any] = []
    for row in examples(source):
        include(found, _row_shape(row))
    return found


def _row_shape(row: Any) -> Any:
    if type(row) in (bool, int, float, Fraction):
        return Leaf(float, True) if type(row) is Fraction else Leaf(type(row))
    if isinstance(row, tuple):
        return TupleShape(made_by(row), tuple(map(_row_shape, row)))
    return Known(None) if row is None else type(row).__name__


def domain(shapes: list[Any], exact: bool) -> str:
    """What a proof is for, in words.

    >>> domain([Leaf(int), Known(None)], True)
    'every int or None'
    """
    names = " or ".join(dict.fromkeys(map(_named, shapes)))
    whole = f"every {names}".replace("every None", "None").replace("or every", "or")
    if "real number" in whole:
        return f"{whole}, not for floats, which round"
    return whole if exact else f"{whole} in exact arithmetic, not for floats, which round"


def _named(of: Any) -> str:
    if isinstance(of, Leaf):
        return {bool: "bool", int: "int", float: "real number"}[of.value_type]
    if isinstance(of, TupleShape):
        owner = getattr(of.make, "__self__", None)
        inner = ", ".join(map(_named, of.parts))
        return f"{owner.__name__}({inner})" if owner else f"({inner})"
    return "None" if of == Known(None) else str(of)


# ---- using them ----


def plain(value: Any, model: Any) -> Any:
    """A symbolic row as the Python value it has in a model."""
    if issubclass(type(value), tuple):
        return made_by(value)([plain(part, model) for part in value])
    if type(value) is Carried:
        return value.name
    if type(value) is not Symbol:
        return value
    found = model.eval(value.term, model_completion=True)
    if value.value_type is bool:
        return bool(z3().is_true(found))
    if value.value_type is int:
        return found.as_long()
    if z3().is_algebraic_value(found):
        found = found.approx(20)
    return float(Fraction(found.numerator_as_long(), found.denominator_as_long()))


def include(found: list[Any], new: Any) -> bool:
    """Take a shape in; True where that makes a difference.

    >>> found = [Leaf(int)]
    >>> include(found, Leaf(int)), include(found, Known(None)), len(found)
    (False, True, 2)
    """
    for i, old in enumerate(found):
        both = joined(old, new)
        if both is not None:
            found[i] = both
            return bool(both != old)
    found.append(new)
    return True


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The numbers of a value, with their places.

    >>> list(leaves((1, (2, None)), "acc"))
    [('acc.0', 1), ('acc.1.0', 2)]
    """
    if issubclass(type(value), tuple):
        for i, part in enumerate(value):
            yield from leaves(part, f"{name}.{i}")
    elif isinstance(shape(value), Leaf):
        yield name, value
