"""Tests of Python's on values, as columns of bools that are never null.

Spark has a third answer, null, and its own idea of NaN: equal to itself, and greater than all. So
None is looked for before anything else, and NaN on the side where Spark would find it the greater.
An int and a float are compared exactly, as in Python: the int with the next one below or above the
float, as Spark would round it to a float.
"""

from __future__ import annotations

import math
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.engine.spark.native.values import NOTHING, NotNative, Value, constant, made, shown

BEYOND = "ebbflow: a number beyond what columns compute exactly"
"""What a column raises where it would not be exact."""
EXACT = 2**53
"""Up to here every int is a float."""
SAME = ("text", "bytes", "date", "time", "instant")
"""What both compare alike."""
NUMBERS = ("int", "float")


def truth(value: Value) -> Value:
    """Whether Python takes it for true: a column without nulls."""
    if value.is_constant:
        return constant(bool(value.constant))
    if value.optional and value.form != "any":
        there = truth(value.there())
        return made("bool", value.sql.isNotNull() & there.sql, value, there)
    match value.form:
        case "bool":
            return value
        case "int" | "float" | "decimal":
            return made("bool", value.sql != f.lit(0), value)
        case "text" | "bytes":
            return made("bool", f.length(value.sql) > 0, value)
        case "list" | "map":
            return made("bool", f.size(value.sql) > 0, value)
        case "date" | "time" | "instant":
            return constant(True)
        case "record" if not hasattr(value.column.make, "__bool__") and (
            value.column.make.__len__ is tuple.__len__
        ):
            return constant(bool(value.column.parts))
    raise NotNative(f"whether {shown(value.column)} is true")


def negated(value: Value) -> Value:
    """`not value`, of a truth."""
    if value.is_constant:
        return constant(not value.constant)
    return made("bool", ~value.sql, value)


def both(one: Value, other: Value) -> Value:
    """`one and other`, of truths."""
    if one.is_constant:
        return other if one.constant else one
    return made("bool", one.sql & other.sql, one, other)


def any_of(one: Value, other: Value) -> Value:
    """`one or other`, of truths."""
    if one.is_constant:
        return one if one.constant else other
    return made("bool", one.sql | other.sql, one, other)


def is_none(value: Value) -> Value:
    if value.column == NOTHING:
        return constant(True)
    return made("bool", value.sql.isNull(), value) if value.optional else constant(False)


def require(op: str, *values: Value) -> None:
    """Refuse what may be None."""
    for value in values:
        if value.optional:
            raise NotNative(f"{op} of {shown(value.column)}")


# ---- comparing ----


def equal(one: Value, other: Value) -> Value:
    """`one == other`."""
    for each, against in ((one, other), (other, one)):
        if each.column == NOTHING:
            if against.form == "any":
                break
            return is_none(against)
    if one.form == "record" and other.form == "record":
        return _equal_records(one, other)
    if not (one.optional or other.optional):
        return _equal(one, other)
    nulls = [each.sql.isNull() for each in (one, other) if each.optional]
    same = nulls[0] & nulls[1] if len(nulls) == 2 else f.lit(False)
    there = _equal(one.there(), other.there())
    found = f.when(reduce(Expression.__or__, nulls), same).otherwise(there.sql)
    return made("bool", found, one, other, there, times=2)


def _equal(one: Value, other: Value) -> Value:
    if one.form == other.form and one.form in SAME:
        return made("bool", one.sql == other.sql, one, other)
    return _numbers("==", one, other)


def _equal_records(one: Value, other: Value) -> Value:
    """Python looks at parts from the left, and at a NaN whether it is the same object."""
    for each in (one, other):
        require("==", each)
        if each.column.make.__eq__ is not tuple.__eq__ or _has_float(each.column):
            raise NotNative(f"== of {shown(each.column)}")
    if len(one.parts) != len(other.parts):
        return constant(False)
    return reduce(both, map(equal, one.parts, other.parts), constant(True))


def _has_float(column: Column) -> bool:
    return column.form == "float" or any(_has_float(part) for _, part in column.parts)


def ordered(op: str, one: Value, other: Value) -> Value:
    """`one < other`, and so on."""
    require(op, one, other)
    if one.form == other.form and one.form in SAME:
        return made("bool", _compare(op, one.sql, other.sql), one, other)
    return _numbers(op, one, other)


def _compare(op: str, one: Expression, other: Expression) -> Expression:
    match op:
        case "==":
            return one == other
        case "<":
            return one < other
        case "<=":
            return one <= other
        case ">":
            return one > other
    return one >= other


def _numbers(op: str, one: Value, other: Value) -> Value:
    one, other = number(one), number(other)
    forms = {one.form, other.form}
    if "decimal" in forms and forms <= {"decimal", "int"}:
        one, other = _decimals(op, one, other)
        return made("bool", _compare(op, one.sql, other.sql), one, other)
    if not forms <= set(NUMBERS):
        raise NotNative(f"{op} of {shown(one.column)} and {shown(other.column)}")
    if forms == {"int"}:
        return made("bool", _compare(op, one.sql, other.sql), one, other)
    if one.form == "int" and other.is_constant:
        return _against(op, one, other.constant)
    if other.form == "int" and one.is_constant:
        return _against(_TURNED[op], other, one.constant)
    if forms == {"float"}:
        return _floats(op, one, other)
    if one.form == "int":
        return _with_float(op, one, other)
    return _with_float(_TURNED[op], other, one)


_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _floats(op: str, one: Value, other: Value) -> Value:
    """A NaN is beside everything: on the side where Spark finds it the greater, look for it."""
    found = _compare(op, one.sql, other.sql)
    side = other if op in ("<", "<=") else one
    if side.is_constant and not math.isnan(side.constant):
        return made("bool", found, one, other)
    return made("bool", found & ~f.isnan(side.sql), one, other, side)


def _against(op: str, value: Value, limit: float) -> Value:
    """An int against a float that is known: against the next int instead."""
    if not math.isfinite(limit):
        return constant(limit > 0 if op in ("<", "<=") else limit < 0 and op != "==")
    if op == "==":
        return _numbers(op, value, constant(int(limit))) if limit.is_integer() else constant(False)
    next_int = math.ceil(limit) if op in ("<", ">=") else math.floor(limit)
    if not -(2**63) <= next_int < 2**63:
        return constant((op in ("<", "<=")) == (limit > 0))
    return _numbers(op, value, constant(next_int))


def _with_float(op: str, one: Value, other: Value) -> Value:
    """An int against a float: never rounded, and nothing here can fail."""
    value, limit = one.sql, other.sql
    below, above = f.floor(limit), f.ceil(limit)
    small, large = limit < f.lit(-(2.0**63)), limit >= f.lit(2.0**63)
    match op:
        case "<":
            found = large | (~small & (value < above))
        case "<=":
            found = large | (~small & (value <= below))
        case ">":
            found = small | (~large & (value > below))
        case ">=":
            found = small | (~large & (value >= above))
        case _:
            found = ~small & ~large & (value == below) & (value == above)
    return made("bool", ~f.isnan(limit) & found, one, other, times=5)


def within(number: Expression, then: Expression) -> Expression:
    """`then`, where an int is a float exactly; else the job fails."""
    fail = f.raise_error(f.lit(BEYOND)).cast("double")
    return f.when(number.between(-EXACT, EXACT), then).otherwise(fail)


def _decimals(op: str, one: Value, other: Value) -> tuple[Value, Value]:
    """Two numbers as decimals of the same digits."""
    digits = [_digits(each) for each in (one, other)]
    scale = max(after for _, after in digits)
    precision = max(all_ - after for all_, after in digits) + scale
    if precision > 38:
        raise NotNative(f"{op} of {shown(one.column)} and {shown(other.column)}")
    data_type = t.DecimalType(precision, scale)
    column = Column("decimal", digits=(precision, scale))
    found = [Value(column, each.sql.cast(data_type), size=1 + each.size) for each in (one, other)]
    return found[0], found[1]


def _digits(value: Value) -> tuple[int, int]:
    if value.form == "decimal":
        return value.column.digits
    return (len(str(abs(value.constant))), 0) if value.is_constant else (19, 0)


def contains(value: Value, among: Value) -> Value:
    """`value in among`."""
    if value.form == among.form == "text":
        require("in", value, among)
        return made("bool", among.sql.contains(value.sql), value, among)
    if among.form == "record" and among.column.make is tuple and not among.optional:
        if _may_be_nan(value) and any(map(_may_be_nan, among.parts)):
            raise NotNative("in of floats that may be NaN")
        return reduce(any_of, [equal(value, part) for part in among.parts], constant(False))
    raise NotNative(f"in of {shown(value.column)} and {shown(among.column)}")


def _may_be_nan(value: Value) -> bool:
    known = value.is_constant and value.constant == value.constant
    return value.form == "float" and not known


# ---- numbers ----


def number(value: Value) -> Value:
    """A bool as the int it is."""
    if value.form != "bool" or value.optional:
        return value
    if value.is_constant:
        return constant(int(value.constant))
    return made("int", value.sql.cast("long"), value)
