"""Row types as Spark schemas, and rows through a real DataFrame."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow, to_arrow
from ebbflow.engine.spark.table.schema import row_type_of, schema_of
from ebbflow.errors import CompositionError
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, record
from ebbflow.reducer import Map

Place = record("Place", city=str, zip=int | None)
Everything = record(
    "Everything",
    id=int,
    price=float,
    paid=bool,
    name=str,
    raw=bytes,
    day=date,
    at=datetime,
    seen=Annotated[datetime, UTC],
    total=Decimal,
    cents=Annotated[Decimal, (10, 2)],
    note=str | None,
    tags=tuple[str, ...],
    sizes=tuple[int | None, ...],
    counts=dict[str, float],
    seats=Map[int, int],
    words=frozenset[str],
    home=Place,
    work=Place | None,
    past=tuple[Place, ...],
    pair=tuple[int, str | None],
    extra=Any,
)
NOON = datetime(2024, 3, 31, 2, 30, 0, 123456)  # a time that clocks in Rome skip
ROW = Everything(
    2**63 - 1, -0.0, False, "é\0", b"\0\xff", date(1500, 1, 1), NOON, NOON.replace(tzinfo=UTC),
    Decimal("1.000000000000000001"), Decimal("-12345678.90"), None, ("a", ""), (1, None),
    Frozen(a=0.5, b=float("inf")), Map({7: 1}), frozenset({"x", "y"}),
    Place("Rome", None), None, (Place("Oslo", 1),), (1, None),
    frozenset({1, "a"}),
)  # fmt: skip
ROWS = [
    ROW,
    ROW._replace(work=Place("Oslo", 2), note="n", tags=(), counts=Frozen(), extra=None),
    ROW._replace(at=datetime(1, 1, 1), seen=datetime(1600, 1, 1, tzinfo=UTC), past=()),
    ROW._replace(at=datetime.max, seen=datetime(9999, 12, 31, 23, tzinfo=UTC), day=date.max),
]

# ---- schemas ----


def test_a_row_type_has_this_schema() -> None:
    assert schema_of(Everything, weight=True).simpleString() == (
        "struct<id:bigint,price:double,paid:boolean,name:string,raw:binary,day:date,"
        "at:timestamp_ntz,seen:timestamp,total:decimal(38,18),cents:decimal(10,2),note:string,"
        "tags:array<string>,sizes:array<bigint>,counts:map<string,double>,seats:map<bigint,bigint>,"
        "words:array<string>,"
        "home:struct<city:string,zip:bigint>,work:struct<city:string,zip:bigint>,"
        "past:array<struct<city:string,zip:bigint>>,pair:struct<_0:bigint,_1:string>,"
        "extra:binary,__weight:bigint>"
    )
    nullable = {field.name for field in schema_of(Everything).fields if field.nullable}
    assert nullable == {"note", "work", "extra"}
    assert schema_of(Everything)["extra"].metadata == {"ebbflow": "pickle"}
    assert schema_of(int) == t.StructType([t.StructField("value", t.LongType(), False)])


def test_spark_and_arrow_agree_on_every_type() -> None:
    ours = arrow_schema(Everything)
    theirs = to_arrow_schema(schema_of(Everything, weight=True), timezone="UTC")
    assert [(f.name, f.type, f.nullable) for f in ours] == [
        (f.name, f.type, f.nullable) for f in theirs
    ]


def test_a_schema_makes_a_row_type_with_the_same_schema() -> None:
    schema = schema_of(Everything, weight=True)
    back = row_type_of(schema, "Everything")
    assert schema_of(back, weight=True) == schema
    assert list(fields_of(back) or ()) == list(fields_of(Everything) or ())


def test_narrow_numbers_become_the_ones_python_has() -> None:
    schema = t.StructType(
        [
            t.StructField("a", t.ByteType(), False),
            t.StructField("b", t.IntegerType()),
            t.StructField("c", t.FloatType(), False),
            t.StructField("d", t.VarcharType(3)),
        ]
    )
    kind = row_type_of(schema, "Narrow")
    assert schema_of(kind).simpleString() == "struct<a:bigint,b:bigint,c:double,d:string>"
    assert kind.__annotations__ == {"a": int, "b": int | None, "c": float, "d": str | None}


SIMPLE = [
    t.LongType(), t.DoubleType(), t.BooleanType(), t.StringType(), t.BinaryType(), t.DateType(),
    t.TimestampType(), t.TimestampNTZType(), t.DecimalType(38, 18), t.DecimalType(5, 0),
]  # fmt: skip


def deeper(types: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    field = st.tuples(types, st.booleans())
    structs = st.lists(field, min_size=1, max_size=3).map(
        lambda parts: t.StructType(
            [t.StructField(f"f{i}", kind, null) for i, (kind, null) in enumerate(parts)]
        )
    )
    return st.one_of(
        field.map(lambda f: t.ArrayType(*f)),
        field.map(lambda f: t.MapType(t.StringType(), *f)),
        structs,
    )


TYPES = st.recursive(st.sampled_from(SIMPLE), deeper, max_leaves=5)


def loosened(field: t.StructField, around: bool = False) -> t.StructField:
    """A field as it is in a schema of ours: nullable where the struct around it is."""
    null = field.nullable or around
    return t.StructField(field.name, loosened_type(field.dataType, null), null)


def loosened_type(kind: t.DataType, null: bool) -> t.DataType:
    if isinstance(kind, t.ArrayType):
        inside = loosened_type(kind.elementType, kind.containsNull)
        return t.ArrayType(inside, kind.containsNull)
    if isinstance(kind, t.MapType):
        inside = loosened_type(kind.valueType, kind.valueContainsNull)
        return t.MapType(kind.keyType, inside, kind.valueContainsNull)
    if isinstance(kind, t.StructType):
        return t.StructType([loosened(field, null) for field in kind.fields])
    return kind


@given(st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=3))
@settings(max_examples=100)
def test_any_schema_comes_back(parts: list[tuple[t.DataType, bool]]) -> None:
    fields = [t.StructField(f"f{i}", kind, null) for i, (kind, null) in enumerate(parts)]
    kind = row_type_of(t.StructType(fields), "Row")
    schema = t.StructType([loosened(field) for field in fields])
    assert schema_of(kind) == schema
    arrow = to_arrow_schema(schema, timezone="UTC")
    assert arrow_schema(kind, weight=False).remove_metadata() == arrow


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (t.DayTimeIntervalType(), "x"),
        (t.MapType(t.DoubleType(), t.IntegerType()), "x"),
        (t.ArrayType(t.NullType()), r"x\[\]"),
        (t.StructType([t.StructField("y", t.VariantType())]), "x.y"),
    ],
    ids=str,
)
def test_a_type_that_rows_cannot_have_is_refused_by_name(kind: t.DataType, path: str) -> None:
    with pytest.raises(CompositionError, match=f"a row of Row cannot have a field '{path}'"):
        row_type_of(t.StructType([t.StructField("x", kind)]), "Row")


def test_a_column_that_cannot_be_a_field_is_refused() -> None:
    with pytest.raises(CompositionError, match="'total price' cannot be the name of a field"):
        row_type_of(t.StructType([t.StructField("total price", t.LongType())]), "Row")


# ---- rows ----


@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome"])
def test_rows_go_through_a_worker_and_come_back(spark: Any, zone: str) -> None:
    kind = Everything
    seen = NOON.replace(tzinfo=timezone(timedelta(hours=5)))
    rows = [*ROWS, ROW._replace(seen=seen)]
    weights = [1, -1, 2, 3, 2**62]

    def through(batches: Any) -> Any:
        for batch in batches:
            found, counts = from_arrow(batch, kind)
            assert {type(row).__name__ for row in found} <= {"Everything"}
            yield to_arrow(found, [-count for count in counts], kind)

    schema = schema_of(kind, weight=True)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = pa.Table.from_batches([to_arrow(rows, weights, kind)])
        frame = spark.createDataFrame(table, schema=schema)
        assert frame.schema == schema
        back, counts = from_arrow(frame.mapInArrow(through, schema).toArrow(), kind)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = dict(zip(back, counts, strict=True))
    assert found == dict(zip(rows, [-weight for weight in weights], strict=True))
    one = next(row for row in back if found[row] == 1)
    assert [type(value) for value in one] == [type(value) for value in ROWS[1]]
    assert all(row.seen.tzinfo is UTC for row in back)


def test_rows_that_are_no_records_go_through_as_well(spark: Any) -> None:
    table = pa.Table.from_batches([to_arrow([(1, "a"), None, 2**70], [1, 2, 3], Any)])
    frame = spark.createDataFrame(table, schema=schema_of(Any, weight=True))
    assert from_arrow(frame.toArrow(), Any) == ([(1, "a"), None, 2**70], [1, 2, 3])
