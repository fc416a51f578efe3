"""Traced expressions on columns: what Python computes for one row, for all rows at once.

An expression becomes a function of columns. Its value for all rows is a *vector*: an array, and
perhaps a mask of the rows for which Python would raise, or an int would not fit. `a and b` forgets
what is wrong with `b` where `a` is false, as Python does not look there. If something is still
wrong in the end, the function raises `DoesNotFit`: rows then tell what, and where.

Nothing here rounds or overflows where Python does not. What has no exact form on arrays (strings
but for equality, powers, ints beside floats beyond 2**53) is `NotInColumns` when it is compiled, or
wrong in the vector.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ebbflow.errors import value_text
from ebbflow.expression.node import Constant, Expression, Get, Operation, Record, Row
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.words import NULL, Texts, WordForm, encoded, forms_of, one_float

EXACT = 1 << 53
"""Up to here every int is a float."""
LARGEST = (1 << 63) - 1
_ORDERED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_EQUALS = {"==": np.equal, "!=": np.not_equal}
_BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
_PLUS: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_NUMBERS = ("int", "bool", "float")
_TEXT_OPERATIONS = {"in": "bool", "[:]": "text", "len": "int"}
"""What is computed once for each text, and what it gives."""
_OF_DAYS: dict[str, Callable[[Any], Any]] = {
    "year": lambda days: days.astype("datetime64[Y]").astype(np.int64) + 1970,
    "month": lambda days: days.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "day": lambda days: (days - days.astype("datetime64[M]")).astype(np.int64) + 1,
}


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
            values = np.asarray(right(_truth(self).compute(sides)))
        return np.full(count, values) if values.ndim == 0 else values


def right(vector: Vector) -> Any:
    """The values of a vector in which nothing is wrong."""
    if vector.wrong is not None and np.any(vector.wrong):
        raise DoesNotFit("a row that Python would refuse, or an int of more than 64 bits")
    return vector.values


def on_columns(expression: Expression, types: Sequence[Any], texts: Texts) -> Computed:
    """An expression of rows of these types, to be computed on columns.

    >>> from ebbflow.record import record
    >>> Order = record("Order", price=int)
    >>> twice = Operation("*", (Get(0, "price", 0), Constant(2)))
    >>> computed = on_columns(twice, [Order], Texts())
    >>> computed.words([lambda at: np.array([3, 4])], 2, WordForm("int")).tolist()
    [6, 8]
    """
    return _Compiler(types, texts)(expression)


def fits(computed: WordForm, declared: WordForm) -> bool:
    """Whether values of one form are values of another; where they may be None, their words are.

    >>> fits(WordForm("int"), WordForm("float", True))
    True
    """
    same = computed.name == declared.name or (
        computed.name in ("int", "bool") and declared.name in ("int", "float")
        and not computed.optional
    )  # fmt: skip
    return same and (declared.optional or not computed.optional)


class _Compiler:
    def __init__(self, types: Sequence[Any], texts: Texts) -> None:
        self.types, self.texts = types, texts

    def __call__(self, of: Expression) -> Computed:
        match of:
            case Get():
                return self._field(of)
            case Constant():
                return self._constant(of.value)
            case Operation():
                return self._operation(of)
        raise NotInColumns(f"{type(of).__name__.lower()} {of.text()}")

    def _field(self, of: Get) -> Computed:
        forms = forms_of(self.types[of.arg])
        if forms is None:
            raise NotInColumns(f"a field of {self.types[of.arg]}")
        form, arg, index = forms[of.index], of.arg, of.index
        at = arg, index
        if form.name == "float" and not form.optional:
            return Computed(form, lambda sides: Vector(sides[arg](index).view(np.float64)), at)
        if form.name == "bool" and not form.optional:
            return Computed(form, lambda sides: Vector(sides[arg](index) != 0), at)
        return Computed(form, lambda sides: Vector(sides[arg](index)), at)

    def _constant(self, value: Any) -> Computed:
        if value is None:
            return Computed(WordForm("none", True), lambda sides: Vector(np.int64(NULL)))
        form = {int: "int", bool: "bool", float: "float", str: "text", date: "date",
                datetime: "time"}.get(type(value))  # fmt: skip
        if form is None:
            raise NotInColumns(f"the constant {value_text(value)}")
        if form in ("bool", "float"):
            return Computed(WordForm(form), lambda sides: Vector(value))
        try:
            word = encoded(WordForm(form), [value], self.texts)[0]
        except DoesNotFit as error:
            raise NotInColumns(str(error)) from error
        return Computed(WordForm(form), lambda sides: Vector(word))

    def _operation(self, of: Operation) -> Computed:
        op = of.op
        if _of_one_text(of, self.types):
            return self._by_text(of)
        if op in ("in", "not in"):
            return self._among(of)
        if op == ".":
            return self._part(of)
        parts = [self(each) for each in of.args]
        if op in ("is", "is not"):
            return _identity(op, *parts)
        if op in ("and", "or") or (op in _BITS and all(p.form == WordForm("bool") for p in parts)):
            return _both(op, *parts)
        if op == "not":
            return _not(parts[0])
        if op == "if":
            return _choice(*parts)
        if op in _EQUALS or op in _ORDERED:
            return _compared(op, *parts)
        if op in ("+", "-", "*", "/", "//", "%") and len(parts) == 2:
            return _arithmetic(op, *parts)
        if op in ("-", "abs", "+", "float", "bool") and len(parts) == 1:
            return _of_one(op, parts[0])
        raise NotInColumns(f"{op} in {of.text()}")

    def _by_text(self, of: Operation) -> Computed:
        """What Python computes of a text, once for each text."""
        get = next(each for each in of.walk() if isinstance(each, Get))
        texts, arg, index = self.texts, get.arg, get.index
        bound: dict[str, Any] = {}

        def bind(value: Any) -> str:
            name = f"v{len(bound)}"
            bound[name] = value
            return name

        code = of.substitute({get: Row(0)}).source(bind, ["text"])
        function = eval(f"lambda text: {code}", bound)
        form = WordForm(_TEXT_OPERATIONS[of.op])
        known = np.empty(0, np.int64)

        def computed(sides: Sides) -> Vector:
            nonlocal known
            if len(known) < len(texts.known):
                new = [function(text) for text in texts.known[len(known) :]]
                known = np.concatenate([known, encoded(form, new, texts)])
            words = known[sides[arg](index)]
            return Vector(words != 0 if form.name == "bool" else words)

        return Computed(form, computed)

    def _among(self, of: Operation) -> Computed:
        inside = of.args[1]
        known = isinstance(inside, Constant) and isinstance(inside.value, (tuple, list, frozenset))
        if not known:
            raise NotInColumns(f"{of.op} in {of.text()}")
        one = self(of.args[0])
        found = Computed(WordForm("bool"), lambda sides: Vector(False))
        for value in inside.value:  # type: ignore[attr-defined]
            found = _both("or", found, _compared("==", one, self._constant(value)))
        return found if of.op == "in" else _not(found)

    def _part(self, of: Operation) -> Computed:
        whole, name = self(of.args[0]), of.args[1].value  # type: ignore[attr-defined]
        part = _OF_DAYS.get(name)
        if whole.form != WordForm("date") or part is None:
            raise NotInColumns(f".{name} in {of.text()}")
        compute = whole.compute

        def parts(sides: Sides) -> Vector:
            values, wrong = compute(sides)
            return Vector(part(np.asarray(values).astype("datetime64[D]")), wrong)

        return Computed(WordForm("int"), parts)


def _of_one_text(of: Operation, types: Sequence[Any]) -> bool:
    """Whether it is a function of one field, a text, that cannot fail."""
    fields = {each for each in of.walk() if isinstance(each, (Get, Row))}
    if len(fields) != 1 or of.op not in _TEXT_OPERATIONS:
        return False
    (get,) = fields
    parts = [each for each in of.args if not isinstance(each, Constant)]
    forms = forms_of(types[get.arg])
    return (
        parts == [get] and isinstance(get, Get) and forms is not None
        and forms[get.index] == WordForm("text")
        and (of.op != "in" or (of.args[1] == get and isinstance(of.args[0].value, str)))  # type: ignore[attr-defined]
    )  # fmt: skip


# ---- masks ----


def _either(*masks: Any) -> Any:
    there = [mask for mask in masks if mask is not None]
    found = there[0] if there else None
    for mask in there[1:]:
        found = found | mask
    return found


def _required(of: Computed) -> Computed:
    """The same, wrong where it is None."""
    if not of.form.optional:
        return of
    compute, floats = of.compute, of.form.name == "float"
    bools = of.form.name == "bool"

    def required(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        absent = _either(wrong, values == NULL)
        plain = values.view(np.float64) if floats else values != 0 if bools else values
        return Vector(plain, absent)

    return Computed(WordForm(of.form.name), required)


def _truth(of: Computed) -> Computed:
    """Whether it is true, for numbers."""
    if of.form.name not in _NUMBERS or of.form.optional:
        raise NotInColumns(f"whether a {of.form.name} is true")
    if of.form.name == "bool":
        return of
    compute = of.compute

    def truth(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        return Vector(values != 0, wrong)

    return Computed(WordForm("bool"), truth)


def _not(of: Computed) -> Computed:
    compute = _truth(of).compute

    def negated(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        return Vector(np.logical_not(values), wrong)

    return Computed(WordForm("bool"), negated)


def _both(op: str, one: Computed, other: Computed) -> Computed:
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


def _identity(op: str, one: Computed, other: Computed) -> Computed:
    if other.form.name != "none":
        raise NotInColumns("is, but for None")
    compute, known = one.compute, not one.form.optional

    def identity(sides: Sides) -> Vector:
        values, wrong = compute(sides)
        absent = np.zeros(np.shape(values), np.bool_) if known else values == NULL
        return Vector(absent if op == "is" else ~absent, wrong)

    return Computed(WordForm("bool"), identity)


def _choice(test: Computed, then: Computed, other: Computed) -> Computed:
    if then.form != other.form:
        raise NotInColumns("if, of two types")
    asked, first, second = _truth(test).compute, then.compute, other.compute

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

    return Computed(then.form, choice)


# ---- comparing ----


def _compared(op: str, one: Computed, other: Computed) -> Computed:
    forms = {one.form.name, other.form.name}
    if op in _EQUALS and "float" not in forms and len(forms - {"none"}) <= 1:
        if one.form.name == other.form.name == "bool" and one.form.optional != other.form.optional:
            raise NotInColumns("bools, of which one may be None, compared")
        found = _EQUALS[op]
    elif forms <= set(_NUMBERS) or (op in _ORDERED and forms in ({"date"}, {"time"})):
        found = _EQUALS.get(op) or _ORDERED[op]
        if op in _EQUALS and (one.form.optional or other.form.optional):
            raise NotInColumns("numbers of two types, of which one may be None, compared")
        one, other = _required(one), _required(other)
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


def _arithmetic(op: str, one: Computed, other: Computed) -> Computed:
    forms = {one.form.name, other.form.name}
    if not forms <= set(_NUMBERS):
        raise NotInColumns(f"{op} of {' and '.join(sorted(forms))}")
    one, other = _required(one), _required(other)
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


def _of_one(op: str, of: Computed) -> Computed:
    if of.form.name not in _NUMBERS:
        raise NotInColumns(f"{op} of {of.form.name}")
    if op == "bool":
        return _truth(of)
    of = _required(of)
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


# ---- rows ----


class RowOnColumns(NamedTuple):
    """A function that makes a row of rows, field by field."""

    fields: tuple[Computed, ...]
    forms: tuple[WordForm, ...]

    def words(self, sides: Sides, count: int) -> list[Any]:
        """The words of each field; of those that are only passed on, when they are asked for."""
        return [
            partial(field.words, sides, count, form)
            if field.field is not None and field.form.name == form.name
            else field.words(sides, count, form)
            for field, form in zip(self.fields, self.forms, strict=True)
        ]


def row_on_columns(
    expression: Expression, types: Sequence[Any], made: Any, texts: Texts
) -> RowOnColumns:
    """A function from rows to a row of the type `made`, on columns."""
    forms = forms_of(made)
    if forms is None:
        raise NotInColumns("rows that have no columns")
    if isinstance(expression, Row):
        items: tuple[Expression, ...] = tuple(
            Get(expression.arg, "", at) for at in range(len(forms))
        )
        if forms_of(types[expression.arg]) != forms:
            raise NotInColumns("rows of another type")
    elif isinstance(expression, Record) and len(expression.items) == len(forms):
        items = expression.items
    else:
        raise NotInColumns(f"rows made by {expression.text()}")
    fields = tuple(on_columns(item, types, texts) for item in items)
    for field, form in zip(fields, forms, strict=True):
        if field.form.name == "none" and form.optional:
            continue
        if not fits(field.form, form):
            raise NotInColumns(f"a {field.form.name} where a {form.name} is declared")
    return RowOnColumns(fields, forms)
