"""Operators of Python's on values, as operators of Spark's.

Spark's own differ from Python's more often than they agree. Here is what is done about it:

    + - * of ints     the same within 64 bits; beyond, Spark raises (ANSI), see `native.is_overflow`
    // and %          Python rounds down, Spark towards zero: put right
    / of ints         the same up to 2**53; beyond, the column raises as for an overflow
    dividing          only by what cannot be zero
    floats            in Spark NaN equals itself and is greater than all: looked for first
    int and float     compared exactly, as in Python
    text              both count code points, and order by them; lower, upper and strip differ
    optional          only == and != and tests; Python raises for anything else
    bool              an int in arithmetic, as in Python

A part that raises in Python for some value of its type is refused, even where Spark raises too:
Spark leaves out what nobody reads, and then nothing would be said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import functions as f

from ebbflow.engine.spark.native.compare import (
    EXACT,
    NUMBERS,
    SAME,
    number,
    ordered,
    require,
    truth,
    within,
)
from ebbflow.engine.spark.native.values import NotNative, Value, constant, made, shown

_BITS = ("&", "|", "^")
_SAME: dict[str, Callable[[Any, Any], Expression]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
"""Operators that Spark has as Python has them."""
_SAME_OF_INTS: dict[str, Callable[[Any, Any], Expression]] = {
    **_SAME, "&": Expression.bitwiseAND, "|": Expression.bitwiseOR, "^": Expression.bitwiseXOR,
}  # fmt: skip
_FAR = 2**31 - 2


def arithmetic(op: str, one: Value, other: Value, not_zero: bool) -> Value:
    """`one op other`; `not_zero` says that the other is known not to be zero."""
    require(op, one, other)
    forms = one.form, other.form
    if op == "+" and forms in (("text", "text"), ("bytes", "bytes")):
        return made(one.form, f.concat(one.sql, other.sql), one, other)
    if op in _BITS and forms == ("bool", "bool"):
        return _bits_of_bools(op, one, other)
    one, other = number(one), number(other)
    if one.form not in NUMBERS or other.form not in NUMBERS:
        raise NotNative(f"{op} of {shown(one.column)} and {shown(other.column)}")
    if op in ("/", "//", "%") and not not_zero and not (other.is_constant and other.constant):
        raise NotNative(f"{op} by what may be zero")
    if one.form == other.form == "int":
        return _of_ints(op, one, other)
    left, right = _float(one), _float(other)
    if op in _SAME:
        return made("float", _SAME[op](left, right), one, other)
    if op == "/":
        by = right if other.is_constant else f.when(right != f.lit(0.0), right)
        return made("float", left / by, one, other, other)
    raise NotNative(f"{op} of floats")


def _float(value: Value) -> Expression:
    """A number as a float, rounded as Python does."""
    if value.is_constant:
        return f.lit(float(value.constant))
    return value.sql if value.form == "float" else value.sql.cast("double")


def _bits_of_bools(op: str, one: Value, other: Value) -> Value:
    if op == "&":
        return made("bool", one.sql & other.sql, one, other)
    if op == "|":
        return made("bool", one.sql | other.sql, one, other)
    return made("bool", one.sql != other.sql, one, other)


def _of_ints(op: str, one: Value, other: Value) -> Value:
    left, right = one.sql, other.sql
    if op in _SAME_OF_INTS:
        return made("int", _SAME_OF_INTS[op](left, right), one, other)
    match op:
        case ">>" if other.is_constant and 0 <= other.constant < 64:
            return made("int", f.shiftright(left, other.constant), one)
        case "**" if other.is_constant and other.constant in (2, 3):
            return made("int", reduce(Expression.__mul__, [left] * other.constant), one, times=3)
        case "/" | "//" | "%":
            return _divided(op, one, other)
    raise NotNative(f"{op} of ints")


def _divided(op: str, one: Value, other: Value) -> Value:
    left, right = one.sql, other.sql
    by = right if other.is_constant else f.when(right != f.lit(0), right)
    if op == "/":
        return _quotient(one, other, by)
    rest = left % by
    if not other.is_constant:
        turned = (rest != 0) & ((rest < 0) != (right < 0))
    else:
        turned = rest < 0 if other.constant > 0 else rest > 0
    if op == "%":
        found = f.when(turned, rest + by).otherwise(rest)
    else:
        down = f.call_function("div", left, by)
        found = f.when(turned, down - f.lit(1).cast("long")).otherwise(down)
    return made("int", found, one, other, times=3)


def _quotient(one: Value, other: Value, by: Expression) -> Value:
    exact = one.sql.cast("double") / by.cast("double")
    if other.is_constant:
        if abs(other.constant) > EXACT:
            raise NotNative(f"/ by {other.constant}")
    else:
        exact = within(other.sql, exact)
    return made("float", within(one.sql, exact), one, other, times=2)


def signed(op: str, value: Value) -> Value:
    """`-value`, `+value`, `~value`."""
    require(op, value)
    if value.form == "bool" and op == "~":
        raise NotNative("~ of bool")
    value = number(value)
    if op == "~" and value.form == "int":
        return made("int", f.bitwise_not(value.sql), value)
    if op in ("-", "+") and value.form in NUMBERS:
        return value if op == "+" else made(value.form, -value.sql, value)
    raise NotNative(f"{op} of {shown(value.column)}")


def greatest(op: str, values: list[Value]) -> Value:
    """`max` and `min` of several values: the first of equal ones."""
    require(op, *values)
    forms = {value.form for value in values}
    if len(values) < 2 or len(forms) > 1 or not forms <= {"int", "float", *SAME}:
        raise NotNative(f"{op} of {', '.join(shown(value.column) for value in values)}")
    (form,) = forms
    if form != "float":
        chosen = f.greatest if op == "max" else f.least
        return made(form, chosen(*[value.sql for value in values]), *values)
    best = values[0]
    for value in values[1:]:
        better = ordered(">" if op == "max" else "<", value, best)
        found = f.when(better.sql, value.sql).otherwise(best.sql)
        best = made(form, found, better, value, best)
    return best


def called(op: str, values: list[Value]) -> Value:
    """A built-in function of one value."""
    (value,) = values
    require(op, value)
    form, sql = value.form, value.sql if value.form != "record" else None
    if op == "bool":
        return truth(value)
    if op == "len" and form == "record" and value.column.make.__len__ is tuple.__len__:
        return constant(len(value.column.parts))
    if sql is None:
        raise NotNative(f"{op} of {shown(value.column)}")
    if op == "len" and form in ("text", "bytes"):
        return made("int", f.length(sql).cast("long"), value)
    if op == "len" and form in ("list", "map"):
        return made("int", f.size(sql).cast("long"), value)
    plain = number(value)
    if op == "abs" and plain.form in NUMBERS:
        return made(plain.form, f.abs(plain.sql), plain)
    if op in ("int", "round") and plain.form == "int":
        return plain
    if op == "float" and plain.form in NUMBERS:
        return plain if form == "float" else made("float", _float(plain), plain)
    if op == "str":
        return _text(value)
    raise NotNative(f"{op} of {shown(value.column)}")


def _text(value: Value) -> Value:
    match value.form:
        case "text":
            return value
        case "int" | "date":
            return made("text", value.sql.cast("string"), value)
        case "bool":
            return made("text", f.when(value.sql, f.lit("True")).otherwise(f.lit("False")), value)
    raise NotNative(f"str of {shown(value.column)}")


def begins(op: str, value: Value, other: Value) -> Value:
    """`text.startswith(other)`, `text.endswith(other)`."""
    require(op, value, other)
    if value.form != "text" or other.form != "text":
        raise NotNative(f"{op} of {shown(value.column)} and {shown(other.column)}")
    found = value.sql.startswith if op == "startswith" else value.sql.endswith
    return made("bool", found(other.sql), value, other)


def cut(value: Value, limits: list[Any]) -> Value:
    """`text[i:j]`, with limits that are known."""
    require("[:]", value)
    start, stop = limits
    start = 0 if start is None else start
    known = all(type(each) is int and each >= 0 for each in (start, 0 if stop is None else stop))
    if value.form != "text" or not known:
        raise NotNative(f"[{limits[0]}:{limits[1]}] of {shown(value.column)}")
    end = _FAR if stop is None else min(stop, _FAR)
    start = min(start, _FAR)
    count = f.lit(max(0, end - start))
    return made("text", f.substring(value.sql, f.lit(start + 1), count), value)
