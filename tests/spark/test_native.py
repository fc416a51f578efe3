"""Native columns against Python, row by row: equal with the same type, or not translated."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import ebbflow as ef
from ebbflow.engine.spark.native.functions import (
    is_overflow,
    native,
    native_filter,
    native_key,
    native_map,
    native_merge,
    quoted,
    why_not,
)
from ebbflow.engine.spark.native.values import Value, open_type
from ebbflow.engine.spark.table.arrow import from_arrow, to_arrow
from ebbflow.engine.spark.table.column_types import WEIGHT, Column
from ebbflow.engine.spark.table.decode import decode
from ebbflow.engine.spark.table.schema import schema_of, spark_type
from ebbflow.expression.node import (
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.flow.plan import Join, Map, Node
from ebbflow.fn import Fn
from ebbflow.record import record

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
    """Equal, of the same type, to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (
            one != one and other != other
        )
    return bool(one == other)


# ---- one select for many ----


def frame_of(spark: Any, rows: list[Any], kind: Any) -> DataFrame:
    import pyarrow as pa

    table = pa.Table.from_batches([to_arrow(rows, [1] * len(rows), kind)])
    return spark.createDataFrame(table, schema=schema_of(kind, weight=True))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def nasty(spark: Any, tmp_path_factory: Any) -> tuple[list[Nasty], DataFrame, DataFrame]:
    """Rows, and frames of them: one that Spark compiles code for, and one that it interprets."""
    rows = rows_of(7, 150)
    here = frame_of(spark, rows, Nasty)
    path = str(tmp_path_factory.mktemp("nasty") / "rows")
    here.coalesce(1).write.parquet(path)
    return rows, spark.read.parquet(path), here


def compared(
    texts: list[str], rows: list[Nasty], frame: DataFrame
) -> tuple[dict[str, Any], set[str]]:
    """Every text that is native, with where it differs from Python (nothing is None); and those
    that are not native."""
    found: dict[str, Any] = {}
    refused = set()
    made = {}
    for text in dict.fromkeys(texts):
        fn = Fn.of(function(text), Nasty)
        value = None if fn.expression is None else native(fn.expression, (Nasty,), (quoted,))
        if fn.expression is None or value is None or "none" in _forms(value.column):
            refused.add(text)
            continue
        results = {}
        for row in rows:
            try:
                if fits(fn.expression, row):
                    results[row.at] = fn(row)
            except Exception as error:
                found[text] = (row, error)
        if text not in found:
            made[text] = (value, results)
    return found | differing(made, rows, frame), refused


def _forms(column: Column) -> set[str]:
    return {column.form}.union(*[_forms(part) for _, part in column.parts])


def differing(made: dict[str, Any], rows: list[Nasty], frame: DataFrame) -> dict[str, Any]:
    """All in one job. One that fails with an overflow is tried in two halves: Spark may add in
    another order than Python, and then Python has to."""
    columns = [guarded(value, results, rows) for value, results in made.values()]
    job = frame.select("at", *[each.alias(str(i)) for i, each in enumerate(columns)])
    try:
        table = job.toArrow().combine_chunks()
    except Exception as error:
        if not is_overflow(error):
            raise
        if len(made) == 1:
            return dict.fromkeys(made)
        parts = list(made.items())
        halves = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        return {k: v for half in halves for k, v in differing(dict(half), rows, frame).items()}
    places = table.column("at").to_pylist()
    found = {}
    for i, (text, (value, results)) in enumerate(made.items(), 1):
        column = replace(value.column, optional=True)
        assert job.schema[i].dataType.simpleString() == spark_type(column).simpleString(), text
        by_place = dict(zip(places, decode(column, table.column(i).combine_chunks()), strict=True))
        wrong = [(rows[at], want, by_place[at]) for at, want in results.items()
                 if not same(want, by_place[at])]  # fmt: skip
        found[text] = wrong[0] if wrong else None
    return found


def guarded(value: Value, results: dict[int, Any], rows: list[Nasty]) -> Any:
    """The column, evaluated only where no number is too large for one."""
    marks = "".join(["01"[row.at in results] for row in rows])
    made = f.when(f.substring(f.lit(marks), f.col("at") + 1, f.lit(1)) == "1", value.sql)
    return made.cast(open_type(value.column)) if value.form == "record" else made


def texts_of(seed: int, count: int, depth: int) -> Iterator[str]:
    writer = Writer(seed)
    for _ in range(count):
        yield writer.write(writer.kind(), depth)


@pytest.mark.parametrize("seed", [1, 2])
def test_an_expression_is_native_with_the_value_and_type_of_python_or_not_at_all(
    nasty: Any, seed: int
) -> None:
    rows, compiled, interpreted = nasty
    found, _ = compared(list(texts_of(seed, 70, 3)), rows, compiled if seed % 2 else interpreted)
    assert {text: wrong for text, wrong in found.items() if wrong is not None} == {}
    assert len(found) > 35


# Each of these is easy to get wrong; all are native.
SURE = """
r.a
r.a < r.x
r.a <= r.x
r.a > r.x
r.a >= r.x
r.a == r.x
r.a != r.x
r.x < r.a
r.x >= r.a
r.x == r.a
r.b == r.z
r.z != r.a
r.x < 9007199254740993
r.x == 9007199254740993
r.p < r.x
r.a in (r.x, 1)
(r.a, r.s, r.o, r.l, r.any, r.c, r.k, r.i)
r.n.h
r[-3]
(r, 1)
r.s[:7]
r.s[1:2]
r.s[3:1]
len(r.s)
len(r.k)
len(r.l)
len(r.n)
r.s + 'ß' + r.t
r.k + r.k
r.s < r.t
r.s <= '\U0001f600'
'ß' in r.s
'b' in r.s
r.s not in 'xabc'
r.t in r.s
r.k < r.k + b'\\x00'
r.d.year * 10000 + r.d.month * 100 + r.d.day
r.w.hour * 3600 + r.w.minute * 60 + r.w.second
(r.d - r.e).days
str(r.d)
str(r.a) + str(r.p)
r.a // 7
r.a // -7
r.a % 7
r.a % -7
r.a // r.b if r.b else None
r.a % r.b if r.b != 0 else None
r.a % r.b if r.b < 0 else 0
r.a / 8
r.a / r.b if r.b else 0.0
0 / -5 + r.x * 0
r.x / r.y if r.y else 0.0
-r.x
abs(r.x)
r.x + 0
r.x * 1
r.x - 0.0
0.0 - r.x
r.x == r.y
r.x != r.x
r.x < r.y
r.x <= r.y
r.x > r.y
r.x >= r.y
not r.x < r.y
r.x < 1
r.x == 9007199254740992
r.a < r.x
r.a == r.x
r.a == 2.5
r.a < 2.5
r.a <= -0.5
r.a > -1e30
r.a >= 9.223372036854775807e18
r.a < 9.223372036854775807e18
max(r.x, r.y)
min(r.x, r.y)
max(r.a, r.b, 3)
min(r.s, r.t)
r.m == r.a
r.m != r.a
r.m == r.m
r.m is None
r.z == r.x
r.z != r.z
r.u == r.s
r.v is True
r.v is not False
r.o == None
r.o is not None and r.o.g > 0 and r.o.h == 'a'
r.m or 0
r.m and r.a
r.s or 'none'
r.u or None
r.x or 1.0
not r.m
not r.o
bool(r.z)
bool(r.u)
r.m if r.m is not None else 0
-1 if r.m is None else r.m
r.m > 0 if r.m is not None else False
r.m is not None and (r.m > 5 or r.m < -5)
not (r.m is None or r.m < 0)
r.p + r.q
r.p * r.a
r.p == r.a
r.p < r.q
r.p & r.q
r.p ^ r.q
r.a & 255 | 1
~r.a
r.a >> 3
r.a ** 2 if -10 < r.a < 10 else 0
r.a in (1, 2, None)
r.m in (1, None)
r.a in {1, 2, 3}
r.s in ('a', 'b')
r.x in (1, 2.5)
r.c > 1
r.c == PRICE
r.c < BETWEEN
r.c == r.a
r.c
bool(r.c)
r.i < INSTANT
(INSTANT, TIME, DAY, PRICE, MANY, b'\\xff', -0.0, NAN, '\\x00\U0001f600\\n\\'', True, (1, ''))
r.w < TIME
r.d <= DAY
Made(r.a, r.s)
Made(r.a, r.s).two
Made(r.a, two=r.t) if r.p else Made(0, '')
r.n if r.p else Inner(1, None)
r.n if r.p else None
None if r.p else r.a
None if r.p else r.n
(r.a, (r.b, r.s)) == (r.b, (r.a, r.t))
r.n == (1, None)
float(r.a)
0 < r.a <= 10
"""
# For each of these there is a row for which Python raises, or gives what columns cannot give.
NEVER = """
r.a // r.b
r.a % r.b
r.a / r.b
r.x / r.y
r.x // 2.0
r.x % 2.0
r.a // r.b if r.a else 0
r.m + 1
r.m < 1
r.m + 1 if r.a is not None else 0
r.m + 1 if r.m is None else 0
r.m + 1 if r.m != 0 else 0
r.m + 1 if r.p or r.m is not None else 0
0 if r.p and r.m is None else r.m + 1
r.m is None and r.m > 0
r.m is not None or r.m > 0
r.a // r.b if r.b >= 0 else 0
r.a // r.b if r.b > -1 else 0
r.a // r.b if r.b <= 1 else 0
r.a // r.b if not r.b else 0
r.a // r.b if r.b == 0 else 0
0 if r.b != 0 else r.a // r.b
r.a // r.b if r.p or r.b else 0
r.a // r.b if r.b < 1 else 0
r.a // r.b if bool(not r.b) else 0
r.m + 1 if r.m is not True else 0
r.o.g
-r.m
r.u + 'a'
r.u[:2]
len(r.u)
'a' in r.u
r.s[0]
r.s[-2:]
r.s[:-1]
r.l[0]
r.s < r.a
r.s == r.a
r.d < r.w
r.w == r.i
r.a << 1
r.a ** r.b
r.x ** 2
r.a + 2**63
r.a if r.p else r.x
r.p or r.a
r.p if r.q else 1
str(r.x)
str(r.w)
int(r.x)
int(r.s)
float(r.s)
round(r.x)
round(r.x, 2)
r.c + 1
r.c * r.c
r.c < r.x
r.i.year
r.any == 1
r.any and r.p
bool(r.any)
(r.x, 1) == (r.y, 1)
r.x in (r.y, 2.0)
r.n < r.n
r.l == r.l
r.d + timedelta(1)
r.s * 2
r.s.upper()
max(r.x, r.a)
max(r.m, 1)
~r.p
"""
SCOPE |= {
    "PRICE": Decimal("1.5"),
    "BETWEEN": Decimal("1.505"),
    "MANY": Decimal("-12E+3"),
    "DAY": date(1969, 12, 31),
    "TIME": datetime(1969, 12, 31, 23, 59, 59, 999999),
    "INSTANT": datetime(1955, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    "NAN": NAN,
}


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_what_is_easy_to_get_wrong_is_native_and_right(nasty: Any) -> None:
    rows, compiled, interpreted = nasty
    for frame in (compiled, interpreted):
        found, refused = compared(lines(SURE), rows, frame)
        assert {text: wrong for text, wrong in found.items() if wrong is not None} == {}
        assert refused == set()


@pytest.mark.parametrize("text", lines(NEVER))
def test_what_cannot_be_promised_is_refused_with_a_reason(spark: Any, text: str) -> None:
    fn = Fn.of(function(text), Nasty)
    assert fn.expression is None or native(fn.expression, (Nasty,), (quoted,)) is None
    assert why_not(fn, Nasty, use="key") != ""


def test_a_long_chain_is_refused_rather_than_written_out(spark: Any) -> None:
    text = "r.a"
    for divisor in range(2, 20):
        text = f"({text} // {divisor})"
    assert why_not(Fn.of(function(text), Nasty), Nasty, use="key") == "it is too long"


# ---- numbers too large ----


@pytest.mark.parametrize(
    "text",
    [
        "r.a + r.a",
        "r.a * r.b",
        "-r.b - r.a",
        "-r.b",
        "abs(r.b)",
        "r.b // -1",
        "r.a ** 2",
        "r.a / 2",
        "r.a / r.b if r.b else 0.0",
    ],
)
def test_a_number_too_large_fails_the_job_and_is_known(nasty: Any, text: str) -> None:
    rows, compiled, _interpreted = nasty
    row = Nasty(*rows[0])._replace(a=MOST, b=LEAST, x=2.0**63)
    spark = compiled.sparkSession
    for frame in (frame_of(spark, [row], Nasty), frame_of(spark, [row], Nasty).repartition(1)):
        fn = Fn.of(function(text), Nasty)
        kind = float if "/ " in text else int
        kind = int if "//" in text else kind
        made = native_map(fn, frame, Nasty, kind)
        assert made is not None
        with pytest.raises(Exception) as failed:
            made.toArrow()
        assert is_overflow(failed.value)
    assert not is_overflow(ValueError("another"))


# ---- maps, filters, keys, merges ----


class Order(NamedTuple):
    id: int
    city: str
    price: float
    quantity: int
    day: str
    note: str | None


class Person(NamedTuple):
    city: str
    name: str
    age: int | None


ORDERS = [
    Order(1, "Rome", 2.5, 3, "2024-05-17", None),
    Order(2, "Oslo", NAN, -1, "2024", "ß"),
    Order(3, "", 0.1, 0, "", ""),
    Order(4, "Rome", -0.0, 7, "2025-01-01", "x"),
]
PEOPLE = [Person("Rome", "Ada", 3), Person("Oslo", "Bo", None)]


@pytest.fixture(scope="module")
def orders(spark: Any) -> DataFrame:
    return frame_of(spark, ORDERS, Order).withColumn(WEIGHT, f.col("id") * 10)


def outcome(frame: DataFrame, kind: Any) -> list[tuple[Any, int]]:
    wanted = schema_of(kind, weight=True)
    assert frame.schema.simpleString() == wanted.simpleString()
    marks = [field.metadata for field in wanted.fields]
    assert [field.metadata for field in frame.schema.fields] == marks
    return list(zip(*from_arrow(frame.toArrow(), kind), strict=True))


def test_maps_of_the_fluent_api_are_native(orders: DataFrame) -> None:
    source = ef.Input("orders", Order)
    mapped = [
        source.map(lambda o: o.city),
        source.map(lambda o: (o.city, o.price * o.quantity)),
        source.map(lambda o: o.price * o.quantity > 3 and o.note is not None),
        source.map(lambda o: Person(o.city, o.day[:7], None)),
        source.map(lambda o: o),
        source.select("city", "note"),
        source.select("city", month=lambda o: o.day[:7], total=lambda o: o.price * o.quantity),
        source.select("id", twice=lambda o: o.quantity * 2, much=lambda o: o.quantity > 1),
        source.map(lambda o: (o, o.note), type=tuple[Order, str | None]),
    ]
    for each in mapped:
        node: Any = each.node
        made = native_map(node.fn, orders, Order, node.type)
        assert made is not None, why_not(node.fn, Order, result=node.type)
        assert why_not(node.fn, Order, result=node.type) == ""
        want = [(node.fn(row), row.id * 10) for row in ORDERS]
        assert same(outcome(made, node.type), want), each


def test_filters_are_native_by_what_is_true(orders: DataFrame) -> None:
    tests: list[Any] = [
        lambda o: o.price > 1 and o.quantity < 5,
        lambda o: o.note or o.quantity,
        lambda o: not o.note,
        lambda o: o.price,
        lambda o: o.city == "Rome" or o.day[:4] == "2024",
        lambda o: o.note is not None and o.note > "a",
        lambda o: True,
        lambda o: None,
        lambda o: o,
    ]
    for test in tests:
        made = native_filter(Fn.of(test, Order), orders, Order)
        assert made is not None
        want = [row.id for row in ORDERS if test(row)]
        assert [row.id for row, _ in outcome(made, Order)] == want
    assert native_filter(Fn.of(lambda o: print(o), Order), orders, Order) is None


def test_rows_that_are_no_records_have_one_column(spark: Any) -> None:
    frame = frame_of(spark, [3, -3], int)
    half = native_map(Fn.of(lambda n: n // 2, int), frame, int, int)
    assert half is not None
    assert outcome(half, int) == [(1, 1), (-2, 1)]
    pair = native_map(Fn.of(lambda n: (n, str(n)), int), frame, int, tuple[int, str])
    assert pair is not None
    assert outcome(pair, tuple[int, str]) == [((3, "3"), 1), ((-3, "-3"), 1)]
    pairs = frame_of(spark, [(1, "a")], tuple[int, str])
    second = native_map(Fn.of(lambda p: p[1], tuple[int, str]), pairs, tuple[int, str], str)
    assert second is not None
    assert outcome(second, str) == [("a", 1)]


@pytest.mark.parametrize(
    ("given", "kind", "why"),
    [
        (lambda o: o.quantity > 1, int, "it gives bool, and the row has int"),
        (lambda o: o.quantity, float, "it gives int, and the row has float"),
        (lambda o: o.note, str, "it gives str | None, and the row has str"),
        (lambda o: o.city, Any, "it gives str, and the row has Any"),
        (lambda o: (o.city, 1), Made, "it gives tuple[str, int], and the row has Made"),
        (lambda o: Made(o.id, o.city), Person, "it gives Made, and the row has Person"),
        (lambda o: Made(o.city, o.city), Made, "it gives str, and the row has int"),
        (lambda o: None, int, "it gives None, and the row has int"),
        (lambda o: o.city.upper(), str, "it is not traced"),
        (lambda o: o.id / o.quantity, float, "/ by what may be zero"),
        (lambda o: o.note + "!", str, "+ of str | None"),
    ],
)
def test_a_result_of_another_type_is_refused(
    orders: DataFrame, given: Any, kind: Any, why: str
) -> None:
    fn = Fn.of(given, Order)
    assert native_map(fn, orders, Order, kind) is None
    assert why_not(fn, Order, result=kind) == why


def test_decimals_widen_to_the_digits_of_the_result(nasty: Any) -> None:
    rows, frame, _ = nasty
    fn = Fn.of(lambda r: r.c, Nasty)
    made = native_map(fn, frame, Nasty, Decimal)
    assert made is not None
    assert [row for row, _ in outcome(made, Decimal)] == [r.c for r in rows]
    assert native_map(fn, frame, Nasty, Annotated[Decimal, (9, 2)]) is None


def test_a_row_of_every_kind_is_carried_as_it_is(nasty: Any) -> None:
    rows, frame, _ = nasty
    made = native_map(Fn.of(lambda r: r, Nasty), frame, Nasty, Nasty)
    assert made is not None
    assert same([row for row, _ in outcome(made, Nasty)], rows)


def test_names_that_spark_takes_for_the_same_are_refused(spark: Any) -> None:
    kind = record("Twins", id=int, ID=int)
    fn = Fn.of(lambda row: row.id, kind)
    assert native_filter(fn, frame_of(spark, [kind(1, 2)], kind), kind) is None
    assert why_not(fn, kind, use="filter").startswith("two fields have the same name")


def test_keys_become_columns_with_a_shape(spark: Any, orders: DataFrame) -> None:
    def key(given: Any) -> Any:
        made = native_key(Fn.of(given, Order), orders, Order, "k")
        if made is None:
            return None
        assert made.frame.columns == [*orders.columns, *made.names]
        return [tuple(row[name] for name in made.names) for row in made.frame.collect()], made.shape

    assert key("city") == ([("Rome",), ("Oslo",), ("",), ("Rome",)], "string")
    assert key(("city",)) == ([("Rome",), ("Oslo",), ("",), ("Rome",)], ("string",))
    flat = [("Rome", 1, None), ("Oslo", 0, "ß"), ("", 0, ""), ("Rome", 1, "x")]
    assert key(lambda o: (o.city, (o.quantity > 0, o.note))) == (
        flat, ("string", ("bigint", "string"))
    )  # fmt: skip
    assert key(lambda o: None) == ([()] * 4, "none")
    assert key("price") is None
    assert key(lambda o: (o.city, o.price)) is None
    assert key(lambda o: o.city.upper()) is None
    made = native_key(Fn.of(lambda r: (r.d, r.w, r.i, r.c, r.k), Nasty), _one(spark), Nasty, "k")
    assert made is not None
    assert made.shape == ("date", "timestamp_ntz", "timestamp", "decimal(10,2)", "binary")
    for refused in ("o", "l", "any", "x"):
        assert native_key(Fn.of(refused, Nasty), _one(spark), Nasty, "k") is None


def _one(spark: Any) -> DataFrame:
    return frame_of(spark, rows_of(1, 1), Nasty)


def joins_in(node: Node) -> Iterator[Any]:
    for parent in node.parents:
        yield from joins_in(parent)
    if isinstance(node, (Join, Map)):
        yield node


def test_merges_of_the_fluent_api_are_native(spark: Any, orders: DataFrame) -> None:
    left, right = ef.Input("orders", Order), ef.Input("people", Person)
    words = ef.Input("words", str)
    people = frame_of(spark, PEOPLE, Person)
    both = orders.alias("l").join(people.alias("r"), f.col("l.city") == f.col("r.city"))
    sides = (lambda name: f.col(f"l.{name}"), lambda name: f.col(f"r.{name}"))
    weight = f.col(f"l.{WEIGHT}") * f.col(f"r.{WEIGHT}")
    pairs = [(o, p) for o in ORDERS for p in PEOPLE if o.city == p.city]
    programs = [
        left.join(right, on="city"),
        left.join(right, on="city", how="full"),
        left.join(right, on="city", select=lambda o, p: (o.id, p.name, o.quantity * 2)),
        left.join(right, on="city", select=lambda o, p: (o, p)),
    ]
    for program in programs:
        merges = [node for node in joins_in(program.node) if isinstance(node, Join)]
        assert len(merges) == 1
        (node,) = merges
        made = native_merge(node.merge, both, (Order, Person), sides, node.type, weight)
        assert made is not None, why_not(node.merge, Order, Person, result=node.type)
        want = [(node.merge(o, p), o.id * 10) for o, p in pairs]
        found = sorted(outcome(made, node.type), key=lambda each: each[1])
        assert same(found, sorted(want, key=lambda each: each[1]))
    alone = [node for node in joins_in(programs[1].node) if isinstance(node, Map)]
    assert len(alone) == 2
    frames: dict[Any, Any] = {Order: (orders, ORDERS), Person: (people, PEOPLE)}
    for node in alone:
        kind = node.parent.type
        frame, rows = frames[kind]
        made = native_map(node.fn, frame, kind, node.type)
        assert made is not None
        assert same([row for row, _ in outcome(made, node.type)], [node.fn(row) for row in rows])
    pair: Any = left.map(lambda o: o.city).join(words, on=lambda word: word, how="left").node
    for node in joins_in(pair):
        fn = node.merge if isinstance(node, Join) else node.fn
        assert why_not(fn, *(p.type for p in node.parents), result=node.type) == ""
