"""The arithmetic of arrays: what Python computes for one row, for all rows at once.

The value of an expression for all rows is a *vector*: an array, and perhaps a mask of the rows for
which Python would raise, or an int would not fit. `a and b` forgets what is wrong with `b` where
`a` is false, as Python does not look there. If something is still wrong in the end, `DoesNotFit` is
raised: rows then tell what, and where.

Nothing here rounds or overflows where Python does not. `expressions` makes functions of columns of
these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.words import LARGEST, NULL, WordForm, one_float

EXACT = 1 << 53
"""Up to here every int is a float."""
ORDERED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
EQUALS = {"==": np.equal, "!=": np.not_equal}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
_PLUS: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_NUMBERS = ("int", "bool", "float")


class NotInColumns(Exception):
    """Why an expression is not computed on columns."""


class Vector(NamedTuple):
    """The values of an expression for all rows, or one for all of them; `wrong` is a mask of rows
    that have none, if there are such."""

    values: Any
    wrong: Any = None


Sides = Sequence[Any]
"""The arguments of an expression: each gives the words of a field by its number."""
Compute = Callable[[Sides], Vector]


class Computed(NamedTuple):
    """An expression that can be computed: of which form its values are, and how."""

    form: WordForm
    compute: Compute
    field: tuple[int, int] | None = None
    """Which field of which argument it is, where it is one as it is."""

    def words(self, sides: Sides, count: int, form: WordForm) -> Any:
        """The words of its values, as those of a field of this form."""
        if self.field is not None and self.form.name == form.name:
            return sides[self.field[0]](self.field[1])
        with np.errstate(all="ignore"):
            values = right(self.compute(sides))
        if form.name == "float" and not self.form.optional:
            if self.form.name != "float":
                values = right(_float(Vector(values)))
            values = one_float(np.asarray(values, np.float64))
        values = np.asarray(values).astype(np.int64, copy=False)
        return np.full(count, values) if values.ndim == 0 else values

    def mask(self, sides: Sides, count: int) -> Any:
        """Where it is true."""
        with np.errstate(all="ignore"):
            values = np.asarray(right(truth(self).compute(sides)))
        return np.full(count, values) if values.ndim == 0 else values


NONE = Computed(WordForm("none", True), lambda sides: Vector(np.int64(NULL)))
TRUE = Computed(WordForm("bool"), lambda sides: Vector(True))


def right(vector: Vector) -> Any:
    """The values of a vector in which nothing is wrong."""
    if vector.wrong is not None and np.any(vector.wrong):
        raise DoesNotFit("a row that Python would refuse, or an int of more than 64 bits")
    return vector.values


# ---- masks ----


def _either(*masks: Any) -> Any:
    there = [mask for mask in masks if mask is not None]
    found = there[0] if there else None
    for mask in there[1:]:
        found = found | mask
    return found


def required(of: Computed) -> Computed:
    """The same, wrong where it is None."""
    if not of.form.optional:
        return of
    compute, floats = of.compute, of.form.name == "float"
    bools = of.form.name == "bool"

    def present(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        absent = _either(wrong, values == NULL)
        plain = values.view(np.float64) if floats else values != 0 if bools else values
        return Vector(plain, absent)

    return Computed(WordForm(of.form.name), present)


def truth(of: Computed) -> Computed:
    """Whether it is true, for numbers."""
    if of.form.name not in _NUMBERS or of.form.optional:
        raise NotInColumns(f"whether a {of.form.name} is true")
    if of.form.name == "bool":
        return of
    compute = of.compute

    def of_numbers(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        return Vector(values != 0, wrong)

    return Computed(WordForm("bool"), of_numbers)


def negation(of: Computed) -> Computed:
    compute = truth(of).compute

    def negated(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        return Vector(np.logical_not(values), wrong)

    return Computed(WordForm("bool"), negated)


def both(op: str, one: Computed, other: Computed) -> Computed:
    if one.form != WordForm("bool") or other.form != WordForm("bool"):
        raise NotInColumns(f"{op} of what is no bool")
    first, second = one.compute, other.compute

    def both(sides: Sides) -> Vector:
        a, wrong = first(sides)
        b, also = second(sides)
        if also is not None and op in ("and", "or"):
            also = also & (a if op == "and" else np.logical_not(a))
        found = {"and": np.logical_and, "or": np.logical_or, "&": np.logical_and,
                 "|": np.logical_or, "^": np.logical_xor}[op](a, b)  # fmt: skip
        return Vector(found, _either(wrong, also))

    return Computed(WordForm("bool"), both)


def identity(op: str, one: Computed, other: Computed) -> Computed:
    if other.form.name != "none":
        raise NotInColumns("is, but for None")
    compute, known = one.compute, not one.form.optional

    def identity(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        absent = np.zeros(np.shape(values), np.bool_) if known else values == NULL
        return Vector(absent if op == "is" else ~absent, wrong)

    return Computed(WordForm("bool"), identity)


def choice(test: Computed, then: Computed, other: Computed) -> Computed:
    form = _either_form(then.form, other.form)
    asked = truth(test).compute
    first, second = _as_form(then, form).compute, _as_form(other, form).compute

    def choice(sides: Sides) -> Vector:
        a, wrong = asked(sides)
        x, x_wrong = first(sides)
        y, y_wrong = second(sides)
        either = None
        if x_wrong is not None:
            either = x_wrong & a
        if y_wrong is not None:
            either = _either(either, y_wrong & np.logical_not(a))
        return Vector(np.where(a, x, y), _either(wrong, either))

    return Computed(form, choice)


def _either_form(one: WordForm, other: WordForm) -> WordForm:
    """The form of values of which some have one form and some another."""
    names = {one.name, other.name} - {"none"} or {"none"}
    if len(names) > 1:
        if not names <= set(_NUMBERS):
            raise NotInColumns("if, of two types")
        names = {"float" if "float" in names else "int"}
    return WordForm(names.pop(), one.optional or other.optional)


def _as_form(of: Computed, form: WordForm) -> Computed:
    """The same values, where None is a word if there may be one, and all others are words then."""
    if of.form.name == "none" or of.form == form:
        return of
    if of.form.optional:
        if of.form.name == form.name:
            return of
        raise NotInColumns(f"a {of.form.name} that may be None, and a {form.name}")
    plain = _exactly(of) if form.name == "float" else of
    if not form.optional:
        return plain
    compute = plain.compute
    dtype: Any = np.float64 if form.name == "float" else np.int64

    def words(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        values = np.asarray(values, dtype)
        return Vector(one_float(values) if form.name == "float" else values, wrong)

    return Computed(form, words)


# ---- comparing ----


def compared(op: str, one: Computed, other: Computed) -> Computed:
    forms = {one.form.name, other.form.name}
    if op in EQUALS and "float" not in forms and len(forms - {"none"}) <= 1:
        if one.form.name == other.form.name == "bool" and one.form.optional != other.form.optional:
            raise NotInColumns("bools, of which one may be None, compared")
        found = EQUALS[op]
    elif forms <= set(_NUMBERS) or (op in ORDERED and forms in ({"date"}, {"time"})):
        found = EQUALS.get(op) or ORDERED[op]
        if op in EQUALS and (one.form.optional or other.form.optional):
            raise NotInColumns("numbers of two types, of which one may be None, compared")
        one, other = required(one), required(other)
        if "float" in forms and len(forms) > 1:
            one, other = _exactly(one), _exactly(other)
    else:
        raise NotInColumns(f"{op} of {' and '.join(sorted(forms))}")
    first, second = one.compute, other.compute

    def compared(sides: Sides) -> Vector:
        a, wrong = first(sides)
        b, also = second(sides)
        return Vector(found(a, b), _either(wrong, also))

    return Computed(WordForm("bool"), compared)


def _exactly(of: Computed) -> Computed:
    """Numbers as floats, wrong where no float equals them."""
    if of.form.name == "float":
        return of
    compute = of.compute
    return Computed(WordForm("float"), lambda sides: _float(compute(sides)))


def _float(of: Vector) -> Vector:
    values, wrong = of
    if largest(values) > EXACT:
        wrong = _either(wrong, (values > EXACT) | (values < -EXACT))
    return Vector(np.asarray(values, np.float64), wrong)


# ---- numbers ----


def largest(values: Any) -> int:
    """The largest magnitude in an array of ints."""
    values = np.asarray(values)
    if values.dtype == np.bool_ or not values.size:
        return 1
    return max(int(values.max()), -int(values.min()))


def arithmetic(op: str, one: Computed, other: Computed) -> Computed:
    forms = {one.form.name, other.form.name}
    if not forms <= set(_NUMBERS):
        raise NotInColumns(f"{op} of {' and '.join(sorted(forms))}")
    one, other = required(one), required(other)
    first, second = one.compute, other.compute
    if "float" in forms:
        if op in ("//", "%"):
            raise NotInColumns(f"{op} of floats")
        one, other = _exactly(one), _exactly(other)
        first, second = one.compute, other.compute
        return Computed(
            WordForm("float"), lambda sides: _on_floats(op, first(sides), second(sides))
        )
    form = WordForm("float" if op == "/" else "int")
    return Computed(form, lambda sides: _on_ints(op, first(sides), second(sides)))


def _on_floats(op: str, one: Vector, other: Vector) -> Vector:
    wrong = _either(one.wrong, other.wrong)
    a, b = np.asarray(one.values, np.float64), np.asarray(other.values, np.float64)
    if op == "/":
        return Vector(a / b, _either(wrong, b == 0))
    return Vector(_PLUS[op](a, b), wrong)


def _on_ints(op: str, one: Vector, other: Vector) -> Vector:
    wrong = _either(one.wrong, other.wrong)
    a, b = np.asarray(one.values, np.int64), np.asarray(other.values, np.int64)
    if op == "/":
        x, y = _float(Vector(a, wrong)), _float(Vector(b))
        return Vector(x.values / y.values, _either(x.wrong, y.wrong, b == 0))
    if op in ("//", "%"):
        found = np.floor_divide(a, b) if op == "//" else np.remainder(a, b)
        return Vector(found, _either(wrong, b == 0))
    values = _PLUS[op](a, b)
    most, more = largest(a), largest(b)
    if (most * more if op == "*" else most + more) > LARGEST:
        wrong = _either(wrong, _overflown(op, a, b))
    return Vector(values, wrong)


def _overflown(op: str, a: Any, b: Any) -> Any:
    """Where the result has more than 64 bits; computed with Python's own ints."""
    exactly = np.frompyfunc(_PLUS[op], 2, 1)(a.astype(object), b.astype(object))
    return np.asarray(np.frompyfunc(lambda x: abs(x) > LARGEST, 1, 1)(exactly), np.bool_)


def of_one(op: str, of: Computed) -> Computed:
    if of.form.name not in _NUMBERS:
        raise NotInColumns(f"{op} of {of.form.name}")
    if op == "bool":
        return truth(of)
    of = required(of)
    compute = of.compute
    if op == "float":
        return Computed(WordForm("float"), lambda sides: _rounded(compute(sides)))
    function: Any = {"-": operator.neg, "abs": abs, "+": operator.pos}[op]
    floats = of.form.name == "float"

    def one(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        return Vector(function(np.asarray(values, np.float64 if floats else np.int64)), wrong)

    return Computed(WordForm("float" if floats else "int"), one)


def _rounded(of: Vector) -> Vector:
    return Vector(np.asarray(of.values, np.float64), of.wrong)
