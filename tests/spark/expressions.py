"""Rows with a field of every type, random expressions of them, and what Python computes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from pyspark.sql import DataFrame

from ebbflow.engine.runtime.table.arrow import to_arrow
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.expression.node import (
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)

NAN, INF = math.nan, math.inf
MOST, LEAST = 2**63 - 1, -(2**63)


class Inner(NamedTuple):
    g: int
    h: str | None


class Nasty(NamedTuple):
    """A row with a field of every kind that columns know."""

    at: int
    a: int
    b: int
    m: int | None
    x: float
    y: float
    z: float | None
    s: str
    t: str
    u: str | None
    p: bool
    q: bool
    v: bool | None
    d: date
    e: date
    w: datetime
    i: Annotated[datetime, UTC]
    c: Annotated[Decimal, (10, 2)]
    k: bytes
    n: Inner
    o: Inner | None
    l: tuple[int, ...]  # noqa: E741
    any: Any


class Made(NamedTuple):
    one: int
    two: str


INTS = [0, 1, -1, 2, 3, -3, 7, -7, 10, 2**31, 2**53, 2**53 + 1, 2**62, MOST, LEAST]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, NAN, INF, -INF, 1e308, 5e-324, 2.0**53, 2.0**63,
          -(2.0**63), -(2.0**64), 2.0**63 - 1024, -0.5, 2.0**53 + 2, 2.0**62]  # fmt: skip
TEXTS = ["", "a", "ab", "abc", "ß", "é", "z", "\U0001f600", "a\U0001f600b", "￿", "A\x00", "2024-05"]
BYTES = [b"", b"a", b"\xff", b"a\x00", b"\x7f\x80"]
DATES = [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]
TIMES = [
    datetime(1, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 13, 7),
]
DECIMALS = [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("99999999.99")]


def rows_of(seed: int, count: int) -> list[Nasty]:
    pick = random.Random(seed).choice

    def maybe(values: list[Any]) -> Any:
        return pick([None, *values])

    def inner() -> Inner:
        return Inner(pick(INTS), maybe(TEXTS))

    return [
        Nasty(
            at, pick(INTS), pick(INTS), maybe(INTS), pick(FLOATS), pick(FLOATS), maybe(FLOATS),
            pick(TEXTS), pick(TEXTS), maybe(TEXTS), pick([True, False]), pick([True, False]),
            maybe([True, False]), pick(DATES), pick(DATES), pick(TIMES),
            pick(TIMES[1:]).replace(tzinfo=UTC), pick(DECIMALS), pick(BYTES), inner(),
            pick([None, inner()]), pick([(), (1, 2)]), pick([None, 1, "x"]),
        )
        for at in range(count)
    ]  # fmt: skip


# ---- expressions ----


class Writer:
    """Random texts of expressions over a row `r`, most of them without errors of type."""

    CONSTANTS = {
        "int": ["0", "1", "-1", "2", "-3", "7", str(2**53 + 1), str(MOST), str(2**63)],
        "float": ["0.0", "-0.0", "0.5", "2.0", "-1.5", "1e300", "9007199254740993.0", "1e30"],
        "str": ["''", "'a'", "'ß'", "'\U0001f600'", "'2024'"],
        "bool": ["True", "False"],
        "date": [],
        "time": [],
        "maybe": ["None"],
    }
    FIELDS = {
        "int": ["r.a", "r.b", "r.n.g", "r[1]"],
        "float": ["r.x", "r.y"],
        "str": ["r.s", "r.t"],
        "bool": ["r.p", "r.q"],
        "date": ["r.d", "r.e"],
        "time": ["r.w"],
        "maybe": ["r.m", "r.z", "r.u", "r.v", "r.o", "r.n.h", "r.any"],
    }

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, options: list[Any]) -> Any:
        return self.random.choice(options)

    def kind(self) -> str:
        return self.pick(["int", "int", "float", "str", "bool", "bool", "maybe", "date", "time"])

    def write(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.15:
            constants = self.CONSTANTS[kind]
            fields = self.FIELDS[kind]
            return self.pick(constants if constants and self.random.random() < 0.3 else fields)
        if self.random.random() < 0.03:
            kind = self.kind()
        return (
            f"({self.pick(getattr(self, f'ways_{kind}')(partial(self.write, depth=depth - 1)))()})"
        )

    def either(self, of: Callable[[str], str], kind: str) -> list[Callable[[], str]]:
        return [
            lambda: f"{of(kind)} if {of('bool')} else {of(kind)}",
            lambda: f"{of(kind)} {self.pick(['and', 'or'])} {of(kind)}",
        ]

    def ways_int(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        def divided() -> str:
            by = of("int")
            way = self.pick([f"if {by} else 5", f"if {by} != 0 else 6", f"if {by} > 0 else 7"])
            return f"{of('int')} {self.pick(['//', '%'])} {by} {way}"

        return [
            lambda: f"{of('int')} {self.pick(['+', '-', '*'])} {of('int')}",
            lambda: (
                f"{of('int')} {self.pick(['//', '%'])} {self.pick([2, -2, 7, -7, 1, -1, 2**40])}"
            ),
            divided,
            lambda: f"{of('int')} {self.pick(['&', '|', '^'])} {of('int')}",
            lambda: f"{of('int')} {self.pick(['>> 1', '>> 63', '** 2', '** 3', '<< 1'])}",
            lambda: f"{self.pick(['-', '+', '~', 'abs', 'int', 'round'])}({of('int')})",
            lambda: f"{self.pick(['max', 'min'])}({of('int')}, {of('int')})",
            lambda: f"{of('bool')} + {of('int')}",
            lambda: f"len({of('str')})",
            lambda: f"{of(self.pick(['date', 'time']))}.{self.pick(['year', 'month', 'day'])}",
            lambda: f"{of('time')}.{self.pick(['hour', 'minute', 'second'])}",
            lambda: f"({of('date')} - {of('date')}).days",
            lambda: "r.m if r.m is not None else 0",
            lambda: f"0 if r.m is None else r.m + {of('int')}",
            lambda: f"r.m or {of('int')}",
            *self.either(of, "int"),
        ]

    def ways_float(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        def number() -> str:
            return of(self.pick(["int", "float"]))

        def divided() -> str:
            by = number()
            return f"{number()} / {by} if {by} else 1.5"

        return [
            lambda: f"{number()} {self.pick(['+', '-', '*'])} {of('float')}",
            lambda: f"{of('float')} {self.pick(['+', '-', '*'])} {number()}",
            lambda: f"{number()} / {self.pick(['2', '-3', '0.5', '-1e300', str(2**53)])}",
            divided,
            lambda: f"{self.pick(['-', '+', 'abs', 'float'])}({of('float')})",
            lambda: f"float({of('int')})",
            lambda: f"{self.pick(['max', 'min'])}({of('float')}, {of('float')})",
            lambda: f"r.z if r.z is not None else {of('float')}",
            *self.either(of, "float"),
        ]

    def ways_str(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        return [
            lambda: f"{of('str')} + {of('str')}",
            lambda: f"{of('str')}[{self.pick(['', 0, 1, 2])}:{self.pick(['', 0, 1, 3, 2**40])}]",
            lambda: f"str({of(self.pick(['int', 'bool', 'date', 'str']))})",
            lambda: f"{self.pick(['max', 'min'])}({of('str')}, {of('str')})",
            lambda: "r.u or r.s",
            lambda: f"{of('str')}.{self.pick(['lower()', 'upper()', 'strip()'])}",
            *self.either(of, "str"),
        ]

    def ways_bool(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        def comparing() -> str:
            one, other = self.pick([
                ("int", "int"), ("int", "float"), ("float", "int"), ("float", "float"),
                ("str", "str"), ("date", "date"), ("time", "time"), ("bool", "int"),
            ])  # fmt: skip
            sign = self.pick(["==", "!=", "<", "<=", ">", ">="])
            return f"{of(one)} {sign} {of(other)}"

        return [
            comparing,
            comparing,
            comparing,
            lambda: f"{of('bool')} and {of('bool')}",
            lambda: f"{of('bool')} or {of('bool')}",
            lambda: f"not {of(self.kind())}",
            lambda: f"bool({of(self.kind())})",
            lambda: f"{of('maybe')} {self.pick(['is', 'is not', '==', '!='])} None",
            lambda: f"{of('maybe')} {self.pick(['==', '!='])} {of('maybe')}",
            lambda: f"r.m == {of('int')}",
            lambda: f"r.z != {of('float')}",
            lambda: f"r.u == {of('str')}",
            lambda: f"r.v is {self.pick(['True', 'False'])}",
            lambda: f"r.m is not None and r.m > {of('int')}",
            lambda: f"r.m is None or r.m > {of('int')}",
            lambda: f"r.o is not None and r.o.g < {of('int')}",
            lambda: f"{of('str')} {self.pick(['in', 'not in'])} {of('str')}",
            lambda: f"{of('str')}.{self.pick(['startswith', 'endswith'])}({of('str')})",
            lambda: f"{of('int')} in (1, 2, 3, {of('int')})",
            lambda: f"{of('int')} in (0, 7, -7)",
            lambda: f"{of('str')} in ('a', 'ß', '')",
            lambda: f"{of('float')} in (1.0, 0)",
            lambda: f"{of('float')} in ({of('float')}, 1)",
            lambda: "r.m in (None, 1)",
            lambda: f"{of('bool')} {self.pick(['&', '|', '^'])} {of('bool')}",
            lambda: f"({of('int')}, {of('str')}) == ({of('int')}, {of('str')})",
            lambda: "r.n == (1, None)",
            lambda: (
                f"r.c {self.pick(['==', '<', '>='])} {self.pick(['1', of('int'), 'r.c', '1.5'])}"
            ),
            lambda: (
                f"r.k {self.pick(['==', '<', '>='])} {self.pick(['r.k + r.k', BYTES[2], 'r.k'])}"
            ),
            lambda: f"r.i {self.pick(['==', '<', '>='])} r.i",
            *self.either(of, "bool"),
        ]

    def ways_maybe(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        return [
            lambda: f"{of(self.kind())} if {of('bool')} else None",
            lambda: f"None if {of('bool')} else {of(self.kind())}",
            lambda: f"r.n if {of('bool')} else Inner({of('int')}, r.u)",
            lambda: f"r.o if {of('bool')} else None",
            lambda: f"{of('maybe')} or {of(self.kind())}",
            lambda: f"({of(self.kind())}, {of(self.kind())})",
            lambda: f"Made({of('int')}, {of('str')})",
            lambda: f"({of('int')}, ({of('str')}, r.o))[{self.pick([0, 1, -1, 2])}]",
            lambda: f"Made({of('int')}, {of('str')}).two",
        ]

    def ways_date(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        return [lambda: f"{self.pick(['max', 'min'])}({of('date')}, {of('date')})",
                *self.either(of, "date")]  # fmt: skip

    def ways_time(self, of: Callable[[str], str]) -> list[Callable[[], str]]:
        return self.either(of, "time")


SCOPE: dict[str, Any] = {"Inner": Inner, "Made": Made, "timedelta": timedelta}


def function(text: str) -> Any:
    return eval(f"lambda r: {text}", dict(SCOPE))


# ---- what Python gives, and where columns end ----


class Beyond(Exception):
    """A number that a column does not hold."""


def minded(node: Expression, row: Any) -> Any:
    """What an expression gives, unless a number on the way is one that columns do not hold."""
    match node:
        case Row():
            return row
        case Get():
            return row[node.index]
        case Constant():
            return node.value
        case Operation(op, (test, then, other)) if op == "if":
            return minded(then if minded(test, row) else other, row)
        case Operation(op, (left, right)) if op in ("and", "or"):
            first = minded(left, row)
            return minded(right, row) if bool(first) == (op == "and") else first
    values = [minded(part, row) for part in node.parts]
    if isinstance(node, (Tuple, Record)):
        return tuple(values) if isinstance(node, Tuple) else node.type(*values)
    assert isinstance(node, Operation)
    if node.op == "/" and any(type(each) is int and abs(each) > 2**53 for each in values):
        raise Beyond
    result = _applied(node)(*values)
    if type(result) is int and not LEAST <= result <= MOST:
        raise Beyond
    return result


def _applied(node: Operation) -> Any:
    names = [f"v{i}" for i in range(len(node.args))]
    last = node.args[-1] if node.op == "." else Row(len(names) - 1)
    inside = Operation(node.op, (*(Row(i) for i in range(len(names) - 1)), last))
    return _compiled(inside.source(lambda value: value.__name__, names), tuple(names))


@cache
def _compiled(text: str, names: tuple[str, ...]) -> Any:
    return eval(f"lambda {', '.join(names)}: {text}")


def fits(node: Expression, row: Any) -> bool:
    try:
        minded(node, row)
    except Beyond:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equal, of the same type, to the last bit; rows that are read have one zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    return bool(one == other)


def frame_of(spark: Any, rows: list[Any], kind: Any) -> DataFrame:
    import pyarrow as pa

    table = pa.Table.from_batches([to_arrow(rows, [1] * len(rows), kind)])
    return spark.createDataFrame(table, schema=schema_of(kind, weight=True))  # type: ignore[no-any-return]
