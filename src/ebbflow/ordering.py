"""One total order of values, whatever their types.

    None < numbers < NaN < bytes < texts < tuples < sets < values of other classes, by class
         < what is reversed

Among values of one type the order is Python's own, where it has one. Numbers of all types are
compared with one another, tuples item by item, sets by their size and then by their elements in
order (so a part of a set is before it), dicts by their entries in order, dataclasses by the fields
that they compare, a `Text` as its str, a `List` as its tuple, times without a zone before those
with one, and values without an order by their repr. Equal values, such as 1, 1.0 and True, have
the same place.

`total_order_key(x)` is what stands for `x` in comparisons, and every value has one. It costs more
than the value itself; so where all values are `comparable`, their own `<` is asked, which then
answers as the keys would, or raises TypeError.

`Reversed(x)` has its place among its like where `x` has it from the other end: so any value can be
in a descending order, texts too, and a tuple can be ordered up by one part and down by another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from operator import eq
from types import NoneType
from typing import Any, TypeVar

from ebbflow.change.edited import List, Text
from ebbflow.errors import AlgebraError
from ebbflow.nan import is_nan, one_nan
from ebbflow.record import compared_fields

T = TypeVar("T")
Key = Callable[[Any], tuple[Any, ...]]


def total_order_key(x: Any) -> tuple[Any, ...]:
    """A key that puts values of any mixture of types in the total order, equal ones together.

    >>> sorted(["b", 2, None, (1, None), (1, 0), "a", 1.5, float("nan")], key=total_order_key)
    [None, 1.5, 2, nan, 'a', 'b', (1, None), (1, 0)]
    """
    return (_KEYS.get(type(x)) or _learned(x))(x)


def in_order(elements: Iterable[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """Elements in the total order of their keys, and of themselves where their keys are equal.

    >>> in_order([3, None, 1]), in_order(["pear", "fig", "nut"], key=len)
    ([None, 1, 3], ['fig', 'nut', 'pear'])
    """

    def place(x: T) -> Any:
        return total_order_key(x if key is None else (key(x), x))

    return sorted(elements, key=place)


_FLOAT = {float}
_NATIVE = frozenset(
    {int, bool, str, bytes, Fraction, date, datetime, time, timedelta, NoneType}
)  # fmt: skip


def comparable(x: Any) -> bool:
    """Whether `<` on this value, and on others for which this holds, is the total order, or raises
    TypeError where it has no answer.

    >>> comparable((3, "a", None)), comparable(float("nan")), comparable(frozenset())
    (True, False, False)
    """
    cls = type(x)
    if cls in _NATIVE:
        return True
    if isinstance(x, tuple):
        if cls.__lt__ is not tuple.__lt__:
            return False
        if _NATIVE.issuperset(map(type, x)):
            return True
        if {*map(type, x)} - _NATIVE == _FLOAT:
            return all(map(eq, x, x))
        return all(map(comparable, x))
    if cls is float:
        return bool(x == x)
    if cls is Decimal:
        return not is_nan(x)
    return cls is Reversed and comparable(x.value)


def all_comparable(values: Collection[Any]) -> bool:
    """Whether `comparable` holds for all of these; where all are of types that always are, no value
    is looked at, and tuples of one width are looked at item by item, each of all together.

    >>> all_comparable([1, 2, None]), all_comparable([1, float("nan")])
    (True, False)
    >>> all_comparable([(1, "a"), (2, None)]), all_comparable([(1, "a"), (1, [])])
    (True, False)
    """
    classes = {*map(type, values)}
    if classes <= _NATIVE:
        return True
    if len(classes) == 1:
        (cls,) = classes
        if cls is float:
            return all(map(eq, values, values))
        if issubclass(cls, tuple) and cls.__lt__ is tuple.__lt__ and len({*map(len, values)}) == 1:
            return all(map(all_comparable, zip(*values, strict=True)))
    return all(map(comparable, values))


PLAIN = frozenset({bool, bytes, date, float, int, str})
"""Types whose values, two of one type, are in the total order as `<` says where it says so."""


def plainly(a: Any, b: Any) -> int:
    """Whether `a` is before `b` (-1) or behind it (1) in the total order, where that is plain to
    see, from the first items of tuples; 0 where it is not, or they have the same place.

    >>> plainly(1, 2), plainly((3, None), (1, "x")), plainly(1, 1), plainly(1, "a")
    (-1, 1, 0, 0)
    """
    cls = type(a)
    if cls is not type(b):
        return 0
    if cls not in PLAIN:
        if not (issubclass(cls, tuple) and cls.__lt__ is tuple.__lt__ and a and b):
            return 0
        a, b = a[0], b[0]
        cls = type(a)
        if cls is not type(b) or cls not in PLAIN:
            return 0
    return -1 if a < b else 1 if a > b else 0


class Reversed:
    """A value in the reverse of the total order: `Reversed(a) < Reversed(b)` when `b < a`.

    >>> sorted(["b", "a", "c"], key=Reversed)
    ['c', 'b', 'a']
    >>> sorted([("x", 1), ("y", 2), ("x", 3)], key=lambda pair: (pair[0], Reversed(pair[1])))
    [('x', 3), ('x', 1), ('y', 2)]
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = one_nan(value)

    def __lt__(self, other: Any) -> Any:
        return other.value < self.value if type(other) is Reversed else NotImplemented

    def __le__(self, other: Any) -> Any:
        return other.value <= self.value if type(other) is Reversed else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return other.value > self.value if type(other) is Reversed else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return other.value >= self.value if type(other) is Reversed else NotImplemented

    def __eq__(self, other: object) -> bool:
        if type(other) is not Reversed:
            return NotImplemented
        return self.value is other.value or bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((Reversed, self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        return Reversed, (self.value,)

    def __repr__(self) -> str:
        return f"Reversed({self.value!r})"


# ---- a key for each class ----


def _none(x: Any) -> tuple[Any, ...]:
    return (0,)


def _whole(x: Any) -> tuple[Any, ...]:
    return 1, x


def _number(x: Any) -> tuple[Any, ...]:
    return (2,) if is_nan(x) else (1, x)


def _decimal(x: Any) -> tuple[Any, ...]:
    return (2, "Decimal") if is_nan(x) else (1, x)


def _bytes(x: Any) -> tuple[Any, ...]:
    return 3, "bytes", x


def _text(x: Any) -> tuple[Any, ...]:
    return 3, "str", x


def _edited_text(x: Any) -> tuple[Any, ...]:
    return _text(str(x))


def _items(x: Any) -> tuple[Any, ...]:
    return 4, *map(total_order_key, x)


def _elements(x: Any) -> tuple[Any, ...]:
    return 5, len(x), *sorted(map(total_order_key, x))


def _entries(x: Any) -> tuple[Any, ...]:
    return 6, "Mapping", *sorted(map(total_order_key, x.items()))


def _range(x: Any) -> tuple[Any, ...]:
    return 6, "range", len(x), *x[:2]


def _reversed(x: Any) -> tuple[Any, ...]:
    return 8, Reversed(total_order_key(x.value))


_BASES: tuple[tuple[Any, Key], ...] = (
    (NoneType, _none),
    (int, _whole),
    (Real, _number),
    (Decimal, _decimal),
    (bytes, _bytes),
    (str, _text),
    (Text, _edited_text),
    ((tuple, List), _items),
    (Set, _elements),
    (Mapping, _entries),
    (range, _range),
    (Reversed, _reversed),
)
_KEYS: dict[type, Key] = {}


def _learned(x: Any) -> Key:
    """How values of the class of `x` get their keys."""
    cls = type(x)
    key = next((key for base, key in _BASES if issubclass(cls, base)), None) or _of_class(x)
    return _KEYS.setdefault(cls, key)


def _of_class(x: Any) -> Key:
    cls = type(x)
    name = f"{cls.__name__} {cls.__module__}.{cls.__qualname__}"
    if isinstance(x, (datetime, time)):
        return lambda x: (6, name, x.tzinfo is not None, x)
    ordered = _has_order(x)
    names = compared_fields(cls, "__lt__" if ordered else "__eq__")
    if names is not None:
        return lambda x: (6, name, *[total_order_key(getattr(x, each)) for each in names])
    if not ordered:
        return lambda x: (7, name, printed(x))
    return lambda x: (6, name, 1) if is_nan(x) else (6, name, 0, x)


def _has_order(x: Any) -> bool:
    """Whether the class of `x` has a `<` that compares at all; that of complex, say, never does."""
    try:
        return type(x).__lt__(x, x) is not NotImplemented
    except TypeError:
        return True


def printed(x: Any) -> str:
    """The repr of a value that has no order, which must tell what the value is.

    >>> printed(3j)
    '3j'
    """
    cls: Any = type(x)
    if cls.__repr__ is object.__repr__ and cls.__eq__ is not object.__eq__:
        raise AlgebraError(
            f"a {cls.__name__} has no place in an order: equal ones print differently",
            value=x,
            remedy=f"give {cls.__name__} an __lt__ or a __repr__ (a dataclass has one), or reduce "
            "a part of it",
        )
    return repr(x)
