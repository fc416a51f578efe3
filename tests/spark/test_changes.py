"""Whatever a user gives as a change, in one form; what is in Spark stays there."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.spark.output.frames import arrow_of
from ebbflow.engine.spark.table.frame import frame_of, read
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.record import record
from ebbflow.zset import ZSet

Order = record("Order", id=int, city=str, price=float | None)
ORDERS = Source(name="orders", type=Order)
ROME, OSLO = Order(1, "Rome", 2.5), Order(2, "Oslo", None)
ROW = "id int, city string, price float"


def outcome(frame: DataFrame, source: Source = ORDERS) -> dict[Any, int]:
    """What a change comes to, with the columns it must have."""
    made = read(source, frame)
    assert isinstance(made, DataFrame)
    assert made.schema.simpleString() == schema_of(source.type, weight=True).simpleString()
    rows, weights = from_arrow(made.toArrow(), source.type)
    return dict(ZSet(zip(rows, weights, strict=True)).items())


@pytest.fixture
def orders(spark: Any) -> DataFrame:
    return spark.createDataFrame([tuple(ROME), tuple(OSLO)], ROW)  # type: ignore[no-any-return]


# ---- what is read ----


def test_what_is_here_becomes_an_arrow_table(spark: Any) -> None:
    table = pa.table({"id": [1], "city": ["Rome"], "price": [2.5]})
    for given in ([ROME], {ROME: 1}, ZSet({ROME: 1}), table):
        assert from_arrow(read(ORDERS, given), Order) == ([ROME], [1])


def test_rows_alone_count_once(orders: DataFrame) -> None:
    assert outcome(orders) == {ROME: 1, OSLO: 1}
    assert outcome(orders.union(orders).select("price", "city", "id")) == {ROME: 2, OSLO: 2}


def test_rows_with_weights(orders: DataFrame) -> None:
    weight = f.when(f.col("id") == 1, 2).otherwise(-1)
    assert outcome(orders.withColumn("weight", weight)) == {ROME: 2, OSLO: -1}
    zero = f.when(f.col("id") == 1, f.lit(0).cast("byte")).otherwise(f.lit(3).cast("byte"))
    made = frame_of(ORDERS, orders.withColumn("__weight", zero))
    assert [(row.id, row["__weight"]) for row in made.collect()] == [(2, 3)]


def test_the_change_feed_of_a_delta_table(spark: Any) -> None:
    kinds = ["insert", "update_preimage", "update_postimage", "delete"]
    rows = [(i, "a", None, kind, 7, datetime(2024, 1, 1)) for i, kind in enumerate(kinds)]
    schema = f"{ROW}, _change_type string, _commit_version long, _commit_timestamp timestamp"
    found = outcome(spark.createDataFrame(rows, schema))
    assert {row.id: weight for row, weight in found.items()} == {0: 1, 1: -1, 2: 1, 3: -1}


def test_unwrapped_changes_of_debezium(orders: DataFrame) -> None:
    op = f.when(f.col("id") == 1, "r").otherwise("d")
    given = orders.withColumn("__op", op).withColumn("__deleted", f.lit("x"))
    assert outcome(given) == {ROME: 1, OSLO: -1}


def images(spark: Any, *changes: tuple[Any, Any, Any]) -> DataFrame:
    schema = f"op string, before struct<{ROW}>, after struct<{ROW}>, source string, ts_ms long"
    return spark.createDataFrame([(*change, "shop", 1) for change in changes], schema)  # type: ignore[no-any-return]


def test_changes_of_debezium_with_rows_before_and_after(spark: Any) -> None:
    moved = ROME._replace(city="Bari")
    given = images(
        spark,
        ("c", None, OSLO),
        ("u", ROME, moved),
        ("d", OSLO, None),
        ("r", None, OSLO),
        (None, None, None),
    )
    assert outcome(given) == {OSLO: 1, ROME: -1, moved: 1}


def test_a_field_named_like_a_mark_is_a_field(spark: Any) -> None:
    kind = record("Parcel", op=str, weight=int, before=int)
    given = spark.createDataFrame([("x", 3, 1)], "op string, weight int, before int")
    assert outcome(given, Source(name="parcels", type=kind)) == {("x", 3, 1): 1}


def test_columns_are_widened_where_nothing_is_lost(spark: Any) -> None:
    Place = record("Place", city=str, zip=int)
    kind = record(
        "Wide", a=float, b=Decimal, c=Decimal, d=tuple[int, ...], e=dict[str, float], f=Place,
        g=int | None,
    )  # fmt: skip
    schema = (
        "a int, b decimal(10,2), c long, d array<short>, e map<string,float>, "
        "f struct<city:string,zip:int>, g void"
    )
    row = (7, Decimal("1.50"), 3, [1, 2], {"x": 0.5}, ("Rome", 1), None)
    found = outcome(spark.createDataFrame([row], schema), Source(name="wide", type=kind))
    wanted = kind(7.0, Decimal("1.5"), Decimal(3), (1, 2), {"x": 0.5}, Place("Rome", 1), None)
    assert list(found) == [wanted]
    assert [type(v) for v in next(iter(found))[:3]] == [float, Decimal, Decimal]


def test_what_is_pickled_is_not_taken_back_from_a_table(spark: Any) -> None:
    things = Source(name="things")
    table = read(things, [(1, "a"), 2**70])
    assert table.schema.field("value").metadata == {b"ebbflow": b"pickle"}
    frame = spark.createDataFrame(table, schema=schema_of(Any, weight=True))
    for given in (table, frame):
        with pytest.raises(ChangeError, match="which only rows of Python's can fill"):
            read(things, given)


# ---- what is refused at once ----


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda df: df.drop("city"), "there is no column 'city'"),
        (lambda df: df.withColumn("tax", f.lit(1)), "has no field for column 'tax'"),
        (lambda df: df.withColumn("id", f.lit("1")), "column 'id' is string, not int"),
        (lambda df: df.withColumn("id", f.lit(1.5)), "column 'id' is double, not int"),
        (lambda df: df.withColumn("price", f.lit(True)), "'price' is boolean, not float"),
        (lambda df: df.withColumn("weight", f.lit("1")), "column 'weight' is string, not int"),
        (lambda df: df.withColumn("op", f.lit(1)), "column 'op' is int, not str"),
        (lambda df: df.select("id", "city", "price", "id"), "there are several columns 'id'"),
        (lambda df: df.select(f.lit("c").alias("op"), f.col("id").alias("before"),
                              f.col("id").alias("after")), "column 'before' is int, not a row"),
        (lambda df: df.select(f.lit("c").alias("op"), f.struct("id").alias("before"),
                              f.struct("id").alias("after")),
         "there are no columns 'city', 'price' in 'before'"),
    ],
)  # fmt: skip
def test_wrong_columns_are_refused_before_anything_runs(
    orders: DataFrame, change: Any, text: str
) -> None:
    with pytest.raises(ChangeError, match=text) as caught:
        read(ORDERS, change(orders))
    assert caught.value.what.startswith("input 'orders': ")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("hint", "column", "text"),
    [
        (datetime, "timestamp", "Annotated[datetime, UTC]"),
        (Annotated[datetime, UTC], "timestamp_ntz", "the hint datetime"),
        (Annotated[Decimal, (4, 2)], "double", "cast the column"),
        (int, "decimal(4,0)", "cast the column"),
        (tuple[int, ...], "array<string>", "cast the column"),
        (record("Place", city=str, zip=int), "struct<zip:int,town:string>", "cast the column"),
        (record("Place", city=str, zip=int), "struct<zip:int,City:string>", "cast the column"),
        (record("Pair", a=int, b=int), "struct<a:int>", "cast the column"),
        (tuple[record("Pair", a=int, b=int), ...], "array<struct<b:int,c:int>>", "cast the column"),
        (Any, "int", "a hint for the field"),
        (int, "void", "cast the column"),
    ],
    ids=str,
)
def test_a_column_that_could_lose_something_is_refused(
    spark: Any, hint: Any, column: str, text: str
) -> None:
    source = Source(name="x", type=record("Row", f=hint))
    with pytest.raises(ChangeError, match="column 'f' is ") as caught:
        read(source, spark.createDataFrame([], f"f {column}"))
    assert text in caught.value.remedy


def test_a_frame_for_an_input_without_a_type_is_refused(orders: DataFrame) -> None:
    with pytest.raises(ChangeError, match="the rows of this input are of type Any"):
        read(Source(name="things"), orders)


# ---- what only the rows can show ----


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda s: s.createDataFrame([(None, "a", 1.0)], ROW), "field 'id' is null, and its hint"),
        (lambda s: s.createDataFrame([(1, "a", 1.0, None)], f"{ROW}, weight long"),
         "a weight is null"),
        (lambda s: s.createDataFrame([(1, "a", 1.0, "upsert")], f"{ROW}, _change_type string"),
         "_change_type upsert is no change of a row"),
        (lambda s: s.createDataFrame([(1, "a", 1.0, None)], f"{ROW}, op string"),
         "op null is no change of a row"),
        (lambda s: s.createDataFrame([(1, "a", 1.0, "u")], f"{ROW}, op string"),
         "an update is given by its new row alone"),
        (lambda s: images(s, ("t", None, None)), "op t is no change of a row"),
        (lambda s: images(s, (None, None, ROME)), "op null is no change of a row"),
        (lambda s: images(s, ("u", None, ROME)), "a row is updated or deleted, and 'before' is"),
        (lambda s: images(s, ("c", None, (None, "a", 1.0))), "field 'id' is null"),
    ],
)  # fmt: skip
def test_a_wrong_row_fails_the_job_that_reads_it(
    spark: Any, capfd: Any, make: Any, text: str
) -> None:
    lazy = read(ORDERS, make(spark))
    with pytest.raises(ChangeError, match=f"input 'orders': {text}") as caught:
        arrow_of(lazy)
    assert caught.value.remedy
    assert "row" in caught.value.facts or "'before' is null" in caught.value.what
    assert capfd.readouterr().err == ""  # said once, in Python
