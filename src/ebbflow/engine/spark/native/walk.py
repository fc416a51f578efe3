"""From expressions to values: every part once, in the light of what was tested before it.

`row.paid if row.paid is not None else 0` is never None, and `a // b if b else 0` never divides by
zero. A *fact* is what a test has told about an expression: that it is `some` (not None), or
`nonzero`. Where a part of an expression is only evaluated after a test, the facts of that test hold
in it.

Spark may evaluate such a part nevertheless, and drop the result; so nothing made here raises but
for a number too large, and then Python decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import functions as f

from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.engine.spark.native import compare as compare
from ebbflow.engine.spark.native import operators as operators
from ebbflow.engine.spark.native.values import (
    NOTHING,
    NotNative,
    Value,
    constant,
    made,
    of_column,
    require_names,
    shown,
    together,
)
from ebbflow.expression.node import Constant, Get, Operation, Record, Row, Tuple
from ebbflow.expression.node import Expression as Node
from ebbflow.expression.value import plain_fields
from ebbflow.record import fields_of

Columns = Callable[[str], Expression]
Facts = frozenset[tuple[str, Node]]

NO_FACTS: Facts = frozenset()
_ORDERS = ("<", "<=", ">", ">=")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Walk:
    """The expressions over rows of these kinds; `columns` gives the columns of each by name."""

    def __init__(self, row_types: Sequence[Any], columns: Sequence[Columns]) -> None:
        for row_type in row_types:
            require_names([name for name, _ in columns_of(row_type)])
        self.row_types = row_types
        self.columns = columns

    def value(self, node: Node, facts: Facts = NO_FACTS) -> Value:
        """What an expression is."""
        found = self._value(node, facts)
        return found.there() if ("some", node) in facts else found

    def _value(self, node: Node, facts: Facts) -> Value:
        match node:
            case Row():
                return self._row(node.arg)
            case Get():
                return self._field(node)
            case Constant():
                return _constant(node.value)
            case Tuple():
                names = [f"_{i}" for i in range(len(node.items))]
                return together(tuple, names, [self.value(each, facts) for each in node.items])
            case Record():
                parts = [self.value(each, facts) for each in node.items]
                return together(node.type, node.type._fields, parts)
            case Operation():
                return self._operation(node, facts)
        raise NotNative(f"a {type(node).__name__}")

    def truth(self, node: Node, facts: Facts = NO_FACTS) -> Value:
        """Whether an expression is true, as a column of bools without nulls."""
        if isinstance(node, Operation):
            if node.op in ("and", "or"):
                left, right = node.args
                one = self.truth(left, facts)
                other = self.truth(right, facts | facts_after(left, node.op == "and"))
                return (compare.both if node.op == "and" else compare.any_of)(one, other)
            if node.op in ("not", "bool") and len(node.args) == 1:
                inside = self.truth(node.args[0], facts)
                return compare.negated(inside) if node.op == "not" else inside
        return compare.truth(self.value(node, facts))

    # ---- rows ----

    def _row(self, arg: int) -> Value:
        row_type, column = self.row_types[arg], self.columns[arg]
        if fields_of(row_type) is None:
            return of_column(columns_of(row_type)[0][1], column(VALUE))
        fields = columns_of(row_type)
        parts = [of_column(inside, column(name)) for name, inside in fields]
        return together(row_type, [name for name, _ in fields], parts)

    def _field(self, get: Get) -> Value:
        row_type = self.row_types[get.arg]
        fields = columns_of(row_type) if fields_of(row_type) is not None else ()
        if not (get.index < len(fields) and fields[get.index][0] == get.name):
            raise NotNative(f"the rows have no field {get.name!r}")
        return of_column(fields[get.index][1], self.columns[get.arg](get.name))

    # ---- operators ----

    def _operation(self, node: Operation, facts: Facts) -> Value:
        op, args = node.op, node.args
        if op == "if":
            test, then, other = args
            return either(
                self.truth(test, facts),
                lambda: self.value(then, facts | facts_after(test, True)),
                lambda: self.value(other, facts | facts_after(test, False)),
            )
        if op in ("and", "or"):
            return self._and_or(op, args[0], args[1], facts)
        if op in ("not", "bool") and len(args) == 1:
            return self.truth(node, facts)
        if op == ".":
            return self._attribute(args[0], _known(args[1]), facts)
        if op == "[:]":
            limits = [_known(each) for each in args[1:]]
            return operators.cut(self.value(args[0], facts), limits)
        if op == "[]":
            return _element(self.value(args[0], facts), _known(args[1]))
        if op in ("in", "not in") and isinstance(args[1], Constant):
            found = self._among(self.value(args[0], facts), args[1].value)
            return compare.negated(found) if op == "not in" else found
        values = [self.value(each, facts) for each in args]
        if op in ("startswith", "endswith"):
            return operators.begins(op, *values)
        if len(values) == 1:
            signs = ("-", "+", "~")
            return operators.signed(op, values[0]) if op in signs else operators.called(op, values)
        if op in ("max", "min"):
            return operators.greatest(op, values)
        if len(values) != 2:
            raise NotNative(f"{op} of {len(values)} values")
        not_zero = ("nonzero", args[1]) in facts
        return _two(op, values[0], values[1], not_zero)

    def _and_or(self, op: str, left: Node, right: Node, facts: Facts) -> Value:
        """Python gives one of the two, whatever they are."""
        test = self.truth(left, facts)

        def first() -> Value:
            return self.value(left, facts | facts_after(left, op == "or"))

        def second() -> Value:
            return self.value(right, facts | facts_after(left, op == "and"))

        return either(test, second, first) if op == "and" else either(test, first, second)

    def _attribute(self, of: Node, name: str, facts: Facts) -> Value:
        if name == "days" and isinstance(of, Operation) and of.op == "-" and len(of.args) == 2:
            one, other = (self.value(each, facts) for each in of.args)
            if one.column == other.column == Column("date"):
                return made("int", f.datediff(one.sql, other.sql).cast("long"), one, other)
        value = self.value(of, facts)
        compare.require(f".{name}", value)
        if value.form == "record":
            fields = plain_fields(value.column.make)
            if fields is not None and name in fields:
                return value.parts[fields[name]]
        if name in _DATES.get(value.form, ()):
            return made("int", getattr(f, name)(value.sql).cast("long"), value)
        raise NotNative(f".{name} of {shown(value.column)}")

    def _among(self, value: Value, among: Any) -> Value:
        """`value in among`, for one that is known."""
        if type(among) is str:
            return compare.contains(value, constant(among))
        if type(among) not in (tuple, frozenset):
            raise NotNative(f"in a {type(among).__name__}")
        row_type = {"int": int, "text": str}.get(value.form)
        if all(type(each) is row_type for each in among) and among and not value.optional:
            options = [constant(each).sql for each in among]
            return made("bool", value.sql.isin(options), value)
        parts = [constant(each) for each in among]
        return compare.contains(value, together(tuple, [str(i) for i in range(len(parts))], parts))


_DATES = {
    "date": ("year", "month", "day"),
    "time": ("year", "month", "day", "hour", "minute", "second"),
}


def _two(op: str, one: Value, other: Value, not_zero: bool) -> Value:
    if op == "==":
        return compare.equal(one, other)
    if op == "!=":
        return compare.negated(compare.equal(one, other))
    if op in _ORDERS:
        return compare.ordered(op, one, other)
    if op in ("in", "not in"):
        found = compare.contains(one, other)
        return compare.negated(found) if op == "not in" else found
    if op in ("is", "is not"):
        found = _identical(one, other)
        return compare.negated(found) if op == "is not" else found
    return operators.arithmetic(op, one, other, not_zero)


def _identical(one: Value, other: Value) -> Value:
    """`is`, with None or a bool on one side: there is only one of each."""
    if other.column != NOTHING and not (other.form == "bool" and other.is_constant):
        one, other = other, one
    if other.column == NOTHING:
        return compare.is_none(one)
    if one.form == "any":
        raise NotNative("is of Any")
    return compare.equal(one, other) if one.form == "bool" else constant(False)


def _known(node: Node) -> Any:
    if not isinstance(node, Constant):
        raise NotNative("an element at a place that is computed")
    return node.value


def _constant(value: Any) -> Value:
    if type(value) is frozenset:
        raise NotNative("a constant of type frozenset")
    return constant(value)


def _element(value: Value, index: Any) -> Value:
    make = value.column.make
    if value.form == "record" and (make is tuple or plain_fields(make) is not None):
        compare.require("[]", value)
        if type(index) is int and -len(value.parts) <= index < len(value.parts):
            return value.parts[index]
    raise NotNative(f"[{index!r}] of {shown(value.column)}")


# ---- one of two ----


def either(test: Value, then: Callable[[], Value], other: Callable[[], Value]) -> Value:
    """`then if test else other`."""
    if test.is_constant:
        return then() if test.constant else other()
    return _chosen(test, then(), other())


def _chosen(test: Value, one: Value, two: Value) -> Value:
    if one.column == NOTHING and two.column == NOTHING:
        return one
    size = 1 + test.size + one.size + two.size
    if one.column == NOTHING:
        column = replace(two.column, optional=True)
        return Value(column, f.when(~test.sql, two.sql), size=size)
    if two.column == NOTHING:
        column = replace(one.column, optional=True)
        return Value(column, f.when(test.sql, one.sql), size=size)
    if _alike(one, two):
        parts = [_chosen(test, *pair) for pair in zip(one.parts, two.parts, strict=True)]
        return together(one.column.make, [name for name, _ in one.column.parts], parts)
    optional = one.optional or two.optional
    column = replace(one.column, optional=optional)
    if column != replace(two.column, optional=optional):
        raise NotNative(f"either {shown(one.column)} or {shown(two.column)}")
    return Value(column, f.when(test.sql, one.sql).otherwise(two.sql), size=size)


def _alike(one: Value, two: Value) -> bool:
    """Whether both are records of the same type, and there."""
    there = all(each.form == "record" and not each.optional for each in (one, two))
    same = one.column.make is two.column.make and len(one.parts) == len(two.parts)
    return there and same


# ---- facts ----


def facts_after(test: Node, outcome: bool) -> Facts:
    """What is known where a test came out so."""
    if not isinstance(test, Operation):
        return frozenset({("some", test), ("nonzero", test)}) if outcome else NO_FACTS
    op, args = test.op, test.args
    if op in ("not", "bool") and len(args) == 1:
        return facts_after(args[0], outcome != (op == "not"))
    if op in ("and", "or"):
        if outcome == (op == "and"):
            return reduce(frozenset.union, [facts_after(each, outcome) for each in args], NO_FACTS)
        return NO_FACTS
    found = set(facts_of_comparison(op, args, outcome)) if len(args) == 2 else set()
    if outcome:
        found |= {("some", test), ("nonzero", test)}
    return frozenset(found)


def facts_of_comparison(op: str, args: tuple[Node, ...], outcome: bool) -> Facts:
    """What is known of one side, where the other is a constant."""
    for one, other, turned in ((args[0], args[1], op), (args[1], args[0], _TURNED.get(op, op))):
        if not isinstance(other, Constant):
            continue
        if turned in ("is", "is not"):
            there = other.value is None and outcome == (turned == "is not")
            return frozenset({("some", one)}) if there else NO_FACTS
        if type(other.value) in (int, float) and not _zero_passes(turned, other.value, outcome):
            return frozenset({("nonzero", one)})
    return NO_FACTS


def _zero_passes(op: str, limit: float, outcome: bool) -> bool:
    """Whether zero could have come to this."""
    match op:
        case "==":
            return (limit == 0) == outcome
        case "!=":
            return (limit != 0) == outcome
        case "<":
            return (limit > 0) == outcome
        case "<=":
            return (limit >= 0) == outcome
        case ">":
            return (limit < 0) == outcome
        case ">=":
            return (limit <= 0) == outcome
    return True
