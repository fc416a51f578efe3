"""Maps, filters, keys and merges of rows as native columns, against Python."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from tests.spark.expressions import (
    NAN,
    Made,
    Nasty,
    frame_of,
    rows_of,
    same,
)
from tests.spark.refused import (
    native_filter,
    native_key,
    native_map,
    native_merge,
    why_not,
)

import ebbflow as ef
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.flow.plan import Join, Map, Node
from ebbflow.fn import Fn
from ebbflow.record import record


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
        (lambda o: o.city.title(), str, "it is not traced"),
        (lambda o: o.city.upper(), str, "upper of str"),
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
