"""Numbers, naturals, truth values, Z-sets and bags: changes that are added onto the value.

Here a change is of the same kind as the value (to an account of 10 comes 3; to a bag comes a Z-set)
and two changes merge into their sum. What differs is which sums are allowed: any number, but no
natural below zero; any Z-set, but no bag with a row that is missing.

**Floats.** Float and Decimal arithmetic rounds, so regrouping a sum can change it: `(v + a) + b` is
not always `v + (a + b)`, and `old + (new - old)` is not always `new`. NUMBER does not pretend:

- float and Decimal changes are never merged; int and Fraction changes are, exactly. A *value* that
  is a float rounds at every addition all the same, so merged changes may move its last digits;
- `diff` looks whether adding the difference gives the new value, and raises when it does not;
- NaN is neither a value nor a change, and a sum that is NaN or overflows is not valid.

**Cost.** Validity looks at the rows of the change only, never at the whole bag. Patching a bag or a
Z-set copies the larger of the two, because the old value must stay what it was.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from ebbflow.algebra import ADD, XOR, Monoid
from ebbflow.change.structure import ChangeStructure, ConstantStructure, Why
from ebbflow.errors import ChangeError, Text, type_name, value_text
from ebbflow.zset import ZSETS, ZSet


class _Added(ConstantStructure[Any, Any]):
    """Changes that are added onto the value; `is_value` may look closer than `valid` needs to."""

    zero: Any
    added_as: Monoid[Any]
    acting_on_itself = True

    @abstractmethod
    def is_value(self, x: object) -> bool: ...

    def is_change(self, x: object) -> bool:
        return self.is_value(x)

    def valid(self, change: object, value: Any) -> bool:
        return self.is_change(change) and self.is_value(value)

    def apply(self, value: Any, change: Any) -> Any:
        return value + change

    def diff(self, new: Any, old: Any) -> Any:
        for value in (new, old):
            if not self.is_value(value):
                raise ChangeError(
                    f"{self!r}.diff: {value_text(value, width=200)} is not a {self.noun}",
                    new=new,
                    old=old,
                    remedy=f"two values that are a {self.noun} each",
                )
        return self.difference(new, old)

    def difference(self, new: Any, old: Any) -> Any:
        return new - old

    @property
    def nothing(self) -> Any:
        return self.zero

    def is_nothing(self, change: object) -> bool:
        return self.is_change(change) and not change

    @property
    def monoid(self) -> Monoid[Any]:
        return self.added_as

    @property
    def empty(self) -> Any:
        return self.zero

    def merge(self, first: Any, second: Any) -> Any:
        self.require(first, second)
        return self.total(first, second)

    def total(self, first: Any, second: Any) -> Any:
        return first + second

    def why(self, change: object, value: Any) -> Why:
        if not self.is_value(value):
            return Why(f"the value is not a {self.noun}", f"a {self.noun}", {"value": value})
        if not self.is_change(change):
            reason = f"{type_name(change)} is no change of a {self.noun}"
            return Why(reason, self.takes, {"value": value})
        return self.why_not_added(change, value)

    def why_not_added(self, change: Any, value: Any) -> Why:
        return super().why(change, value)


class _Number(_Added):
    """Any int, float, Fraction or Decimal; the change is added.

    >>> NUMBER.patch(10, -3)
    7
    >>> NUMBER.compress([5, 2, -1])
    (6,)
    >>> NUMBER.compose(0.1, 0.2)
    (0.1, 0.2)
    """

    noun, takes, zero = "number", "an int, float, Fraction or Decimal that is not NaN", 0
    added_as = ADD

    def is_value(self, x: object) -> bool:
        if isinstance(x, Decimal):
            return not x.is_nan()
        return isinstance(x, (int, float, Fraction)) and not isinstance(x, bool) and bool(x == x)

    def valid(self, change: object, value: Any) -> bool:
        return super().valid(change, value) and self.is_value(_sum(value, change))

    def apply(self, value: Any, change: Any) -> Any:
        return _sum(value, change)

    def difference(self, new: Any, old: Any) -> Any:
        if new == old:
            return self.zero
        change = _sum(new, -old)
        if self.valid(change, old) and self.apply(old, change) == new:
            return change
        raise ChangeError(
            "no difference of these two numbers gives the new one back when it is added to the old",
            new=new,
            old=old,
            remedy="numbers that do not round (int, Fraction), or REPLACE instead of NUMBER",
        )

    def total(self, first: Any, second: Any) -> Any:
        exact = isinstance(first, (int, Fraction)) and isinstance(second, (int, Fraction))
        return first + second if exact else None

    def why_not_added(self, change: Any, value: Any) -> Why:
        reason = (
            f"{type_name(value)} plus {type_name(change)} is no number: they overflow or do not mix"
        )
        return Why(reason, "value and change of the same numeric type", {"value": value})


def _sum(value: Any, change: Any) -> Any:
    """Their sum, or None where there is none: types that do not mix, or a result out of range.

    Zero is not added: even that would round a Decimal that is longer than its context.
    """
    if not change:
        return value
    try:
        total = value + change
    except (TypeError, ArithmeticError):
        return None
    overflowed = _is_infinite(total) and not (_is_infinite(value) or _is_infinite(change))
    return None if overflowed else total


def _is_infinite(x: object) -> bool:
    return x.is_infinite() if isinstance(x, Decimal) else isinstance(x, float) and math.isinf(x)


class _Natural(_Added):
    """Ints that are never negative; the change is an int, and so must the result be.

    >>> NATURAL.patch(5, -5)
    0
    >>> NATURAL.valid(-6, 5)
    False
    """

    noun, takes, zero = "natural", "an int that does not take the value below zero", 0
    added_as = ADD

    def is_value(self, x: object) -> bool:
        return self.is_change(x) and isinstance(x, int) and x >= 0

    def is_change(self, x: object) -> bool:
        return isinstance(x, int) and not isinstance(x, bool)

    def valid(self, change: object, value: Any) -> bool:
        return super().valid(change, value) and self.is_value(value + change)

    def why_not_added(self, change: Any, value: Any) -> Why:
        total = value_text(value + change, width=40)
        here, more = value_text(value, width=40), value_text(change, width=40)
        reason = f"{here} + {more} is {total}, and a natural is never negative"
        least = value_text(-value, width=40)
        return Why(reason, f"an int of at least {least}", {"value": value})


class _Bool(_Added):
    """True or False; the change True flips it.

    >>> BOOL.patch(False, True), BOOL.patch(False, False)
    (True, False)
    >>> BOOL.compose(True, True)
    ()
    """

    noun, takes, zero = "bool", "True to flip it, False to keep it", False
    added_as = XOR

    def is_value(self, x: object) -> bool:
        return isinstance(x, bool)

    def apply(self, value: Any, change: Any) -> Any:
        return value is not change

    def difference(self, new: Any, old: Any) -> Any:
        return new is not old

    def total(self, first: Any, second: Any) -> Any:
        return first is not second


class _ZSets(_Added):
    """Any Z-set; the change is added, and always valid.

    >>> ZSET.patch(ZSet({"a": 1}), ZSet({"a": -3}))
    ZSet({'a': -2})
    """

    noun, takes, zero = "Z-set", "a ZSet", ZSet[Any]()
    added_as = ZSETS

    def is_value(self, x: object) -> bool:
        return isinstance(x, ZSet)


class _Bag(_ZSets):
    """Z-sets of positive weights; the change may take away only what is there.

    >>> BAG.patch(ZSet.of(["a", "a", "b"]), ZSet({"a": -1, "c": 1}))
    ZSet({'a': 1, 'b': 1, 'c': 1})
    >>> BAG.patch(ZSet.of(["a", "b"]), ZSet({"a": -2}))
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: ZSet({'a': -2}) is not a valid change of this bag
        because    it takes away what is not there
        missing    ZSet({'a': 1})
        value      ZSet({'a': 1, 'b': 1})
        try        taking away at most what is there, or ZSET, where a weight may be negative
    """

    noun, takes = "bag", "a ZSet that takes away at most what is there"

    def is_value(self, x: object) -> bool:
        return isinstance(x, ZSet) and x.is_bag

    def is_change(self, x: object) -> bool:
        return isinstance(x, ZSet)

    def valid(self, change: object, value: Any) -> bool:
        if not (isinstance(change, ZSet) and isinstance(value, ZSet)):
            return False
        there = value.weight
        return all(there(row) + weight >= 0 for row, weight in change.items())

    def why_not_added(self, change: Any, value: Any) -> Why:
        lacking = ((row, -weight - value.weight(row)) for row, weight in change.items())
        missing = ZSet(islice(((row, count) for row, count in lacking if count > 0), _FEW))
        large = Text(f"a bag of {len(value)} different rows")
        return Why(
            "it takes away what is not there",
            "taking away at most what is there, or ZSET, where a weight may be negative",
            {"missing": missing, "value": large if len(value) > _FEW else value},
        )


_FEW = 5

NUMBER: ChangeStructure[Any, Any] = _Number(name="NUMBER")
NATURAL: ChangeStructure[int, int] = _Natural(name="NATURAL")
BOOL: ChangeStructure[bool, bool] = _Bool(name="BOOL")
ZSET: ChangeStructure[ZSet[Any], ZSet[Any]] = _ZSets(name="ZSET")
BAG: ChangeStructure[ZSet[Any], ZSet[Any]] = _Bag(name="BAG")
