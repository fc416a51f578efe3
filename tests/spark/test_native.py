"""Native columns against Python, row by row: equal with the same type, or not translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from tests.spark.expressions import (
    LEAST,
    MOST,
    NAN,
    SCOPE,
    Nasty,
    Writer,
    fits,
    frame_of,
    function,
    same,
)
from tests.spark.refused import native, native_map, why_not

from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.engine.runtime.table.decode import decode
from ebbflow.engine.spark.native.functions import is_overflow, quoted
from ebbflow.engine.spark.native.values import Value
from ebbflow.engine.spark.table.schema import open_type, spark_type
from ebbflow.fn import Fn


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
r.s.startswith(r.t)
r.s.endswith(r.t)
r.s.startswith("a")
r.t.endswith("\U0001f600")
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
r.s.lower()
r.s.strip()
r.s.lower() == "a"
r.u.startswith("a")
r.s.startswith(("a", "b"))
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
