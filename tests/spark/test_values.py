"""The same input is the same values in every engine, mode and form, and refused in all of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.engine.spark.output.frames import arrow_of
from ebbflow.engine.spark.table.frame import frame_of
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.frozen import Frozen
from ebbflow.nan import NAN
from ebbflow.record import record

Instant = Annotated[datetime, UTC]
Cents = Annotated[Decimal, (10, 2)]
NOON = datetime(2026, 5, 1, 12)


class Place(NamedTuple):
    city: str
    x: float


class Wide(NamedTuple):
    id: int
    level: int
    deep: int
    flag: int
    f: float
    g: float
    h: float
    cents: Cents
    plain: Decimal
    day: date
    at: datetime
    seen: Instant
    raw: bytes
    kind: Literal["a", "b"]
    place: Place
    places: tuple[Place, ...]
    named: dict[str, Place]
    note: str | None


WIDE = ef.Input("wide", Wide)
PROGRAM = ef.program(
    rows=WIDE,
    doubled=WIDE.map(lambda row: (row.id, row.level * 2, row.deep * 2), type=tuple[int, int, int]),
    by_f=WIDE.group_by("f").agg(n=ef.count(), top=ef.max("g"), total=ef.sum("cents")),
    by_place=WIDE.group_by("place").agg(n=ef.count(), low=ef.min("f")),
    distinct=WIDE.map(lambda row: (row.f, row.cents), type=tuple[float, Cents]).distinct(),
)
DDL = """id int, level tinyint, deep int, flag boolean, f double, g float, h bigint,
cents decimal(38,18), plain decimal(6,3), day date, at timestamp_ntz, seen timestamp, raw binary,
kind string, place struct<x:double,city:string>, places array<struct<x:float,city:string>>,
named map<string,struct<x:double,city:string>>, note string"""
NANS = float("nan"), -float("nan")


def wide_row(number: int, f: float, g: float, h: int, cents: str, place: tuple[float, str]) -> Any:
    """A row for a frame: the fields of structs are in the order x, city."""
    x, city = place
    inner = {"x": x, "city": city}
    return {
        "id": number, "level": 127 - number, "deep": 2**31 - 1, "flag": number % 2 == 1, "f": f,
        "g": g, "h": h, "cents": Decimal(cents), "plain": Decimal("1.500"), "day": date.max,
        "at": datetime.max, "seen": NOON.replace(tzinfo=UTC), "raw": b"\0\xff",
        "kind": "ab"[number % 2], "place": inner, "places": [inner, inner],
        "named": {"k": inner}, "note": None,
    }  # fmt: skip


GIVEN = [
    wide_row(1, -0.0, 0.5, 2**60, "1.5", (-0.0, "Rome")),
    wide_row(2, 0.0, -0.0, -(2**53), "1.50", (0.0, "Rome")),
    wide_row(3, NANS[0], NANS[1], 0, "-0.00", (NANS[0], "Oslo")),
    wide_row(4, NANS[1], NANS[0], 7, "0", (NANS[1], "Oslo")),
]


def wanted_row(given: dict[str, Any]) -> Wide:
    """The row that this must be, with values in their only form."""

    def one(x: float) -> float:
        return NAN if x != x else x or 0.0

    place = Place(given["place"]["city"], one(given["place"]["x"]))
    return Wide(
        given["id"], given["level"], given["deep"], int(given["flag"]), one(given["f"]),
        one(given["g"]), float(given["h"]), abs(given["cents"]).quantize(Decimal("0.01")),
        Decimal("1.5"), date.max, datetime.max, given["seen"], given["raw"], given["kind"], place,
        (place, place), Frozen({"k": place}), None,
    )  # fmt: skip


def arrow_table() -> pa.Table:
    """The rows as an Arrow table, with narrow types and structs in another order."""
    inner = pa.struct([("x", pa.float64()), ("city", pa.string())])
    types = {
        "id": pa.int32(), "level": pa.uint8(), "deep": pa.int32(), "flag": pa.bool_(),
        "g": pa.float32(), "h": pa.int64(), "cents": pa.decimal128(38, 18),
        "plain": pa.decimal128(6, 3), "place": inner, "places": pa.large_list(inner),
        "named": pa.map_(pa.string(), inner), "note": pa.string(),
    }  # fmt: skip
    named = {name: [row[name] for row in GIVEN] for name in Wide._fields}
    named["named"] = [list(each.items()) for each in named["named"]]
    return pa.table({name: pa.array(each, types.get(name)) for name, each in named.items()})


def forms(spark: Any) -> dict[str, Any]:
    """The rows in each form."""
    rows = [
        {**row, "place": Place(**row["place"]), "places": [Place(**each) for each in row["places"]],
         "named": {"k": Place(**row["place"])}} for row in GIVEN
    ]  # fmt: skip
    flat = {name: [row[name] for row in GIVEN] for name in Wide._fields}
    found = {
        "rows": [Wide(**row) for row in rows],
        "dicts": rows,
        "arrow": arrow_table(),
        "pandas": arrow_table().to_pandas(types_mapper=pd.ArrowDtype),
        "columns": {**flat, **{name: arrow_table()[name] for name in ("places", "named")}},
    }
    if spark is not None:
        found["frame"] = spark.createDataFrame(
            [tuple(row[name] for name in Wide._fields) for row in GIVEN], DDL
        )
    return found


def shown(outputs: Any) -> dict[str, list[str]]:
    """Every row of every output as text, which tells 0.0 from -0.0, 1.5 from 1.50 and 1 from 1.0;
    NaN is one object."""

    def text(row: Any) -> str:
        floats = [x for x in row if type(x) is float and x != x] if isinstance(row, tuple) else []
        return f"{row!r} {all(x is NAN for x in floats)}"

    return {
        name: sorted(f"{text(row)} {n}" for row, n in rows.items())
        for name, rows in outputs.items()
    }


def plain_program() -> dict[str, list[str]]:
    """What the program gives, computed in plain Python from the rows as they must be."""
    local = PROGRAM.run(columns=False)
    local.step(wide=[wanted_row(row) for row in GIVEN])
    return shown({name: local[name].value for name in PROGRAM.plan.outputs})


@pytest.mark.parametrize("engine", ["rows", "columns", "disk"])
def test_every_form_gives_the_same_values_in_this_process(engine: str, tmp_path: Path) -> None:
    where = {"path": tmp_path} if engine == "disk" else {"columns": engine == "columns"}
    view = PROGRAM.run(**where)
    require_same(view, forms(None), lambda: {n: view[n].value for n in PROGRAM.plan.outputs})


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged", "bulk", "auto"])
def test_every_form_gives_the_same_values_on_spark(spark: Any, mode: Any, tmp_path: Path) -> None:
    found = forms(spark)
    names = ["frame", "arrow", "rows"] if mode != "auto" else ["frame", *found]
    given = {name: found[name] for name in names}
    with PROGRAM.run(ef.spark(spark, path=tmp_path, mode=mode, buckets=2)) as view:
        require_same(view, given, view.zset)
        assert view.stats().epochs[0].mode == (mode if mode != "auto" else "bulk")
        assert view.verify()


def require_same(view: Any, given: dict[str, Any], outputs: Any) -> None:
    """Insert the rows in each form and remove them in the next one."""
    wanted = plain_program()
    for (form, rows), (_, others) in pairwise([*given.items(), *list(given.items())[:1]]):
        view.input("wide").add(rows) if isinstance(rows, list) else view.step(wide=rows)
        assert shown(outputs()) == wanted, form
        view.input("wide").remove(others)
        assert not any(outputs().values()), form


# ---- refused values ----

DAYS = pa.int32()
LATE = "outside the years 1 to 9999"


def days(number: int) -> Any:
    """A date of Arrow's, by the days since 1970."""
    return pa.array([number], DAYS).cast(pa.date32())


def microseconds(number: int, zone: str | None = None) -> Any:
    """A time of Arrow's, by the microseconds since 1970."""
    return pa.array([number], pa.int64()).cast(pa.timestamp("us", zone))


END = 253_402_300_800_000_000
"""Microseconds from 1970 to the year 10000."""
START = -62_135_596_800_000_000
REFUSED: list[tuple[Any, str, Any, str]] = [
    (date, "DATE'+10000-01-01'", days(2_932_897), LATE),
    (date, "DATE'0000-12-31'", days(-719_163), LATE),
    (datetime, "TIMESTAMP_NTZ'+10000-01-01'", microseconds(END), LATE),
    (datetime, "TIMESTAMP_NTZ'0000-12-31 23:59:59.999999'", microseconds(START - 1), LATE),
    (Instant, "TIMESTAMP'9999-12-31 23:59:59-05:00'", microseconds(END, "UTC"), LATE),
    (Instant, "TIMESTAMP'0001-01-01 00:00:00+01:00'", microseconds(START - 1, "UTC"), LATE),
    (tuple[date, ...], "array(DATE'2026-01-01', DATE'+10000-01-01')",
     pa.array([[1, 2_932_897]], pa.list_(DAYS)).cast(pa.list_(pa.date32())), LATE),
    (record("At", at=datetime), "named_struct('at', TIMESTAMP_NTZ'+10000-01-01')",
     pa.StructArray.from_arrays([microseconds(END)], ["at"]), LATE),
    (dict[str, date], "map('k', DATE'+10000-01-01')",
     pa.array([[("k", 2_932_897)]], pa.map_(pa.string(), DAYS)).cast(
         pa.map_(pa.string(), pa.date32())), LATE),
    (float, "9007199254740993L", pa.array([2**53 + 1]), "float"),
    (float, "9223372036854775807L", pa.array([2**63 - 1]), "float"),
    (float, "true", pa.array([True]), "float"),
    (float, "'1.5'", pa.array(["1.5"]), "float"),
    (int, "'7'", pa.array(["7"]), "int"),
    (int, "CAST('NaN' AS DOUBLE)", pa.array([float("nan")]), "int"),
    (int, "1.0D", pa.array([1.0]), "int"),
    (int, "CAST(NULL AS INT)", pa.array([None], pa.int32()), "null"),
    (tuple[int, ...], "array(1, CAST(NULL AS INT))", pa.array([[1, None]]), "None|null"),
    (Cents, "1.234BD", pa.array([Decimal("1.234")]), "10, 2"),
    (Cents, "100000000BD", pa.array([Decimal(10**8)]), "10, 2"),
    (Cents, "CAST(1.5 AS DOUBLE)", pa.array([1.5]), "10, 2"),
    (bool, "1", pa.array([1]), "bool"),
    (str, "1", pa.array([1]), "str"),
    (str, "X'41'", pa.array([b"A"]), "str"),
    (bytes, "'A'", pa.array(["A"]), "bytes"),
    (datetime, "TIMESTAMP'2026-01-01 00:00:00Z'", microseconds(0, "UTC"), "datetime"),
    (Instant, "TIMESTAMP_NTZ'2026-01-01'", microseconds(0), "datetime"),
    (datetime, "DATE'2026-01-01'", days(0), "datetime"),
    (date, "TIMESTAMP_NTZ'2026-01-01'", microseconds(0), "date"),
    (Literal["a", "b"], "'c'", pa.array(["c"]), "'c'|one of"),
    (record("Pair", a=int, b=int), "named_struct('b', 1, 'A', 2)", pa.array([{"b": 1, "A": 2}]),
     "Pair"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "sql", "array", "text"), REFUSED)
def test_a_value_that_is_refused_is_refused_in_every_form(
    spark: Any, hint: Any, sql: str, array: Any, text: str
) -> None:
    rows = ef.Input("x", record("Row", id=int, f=hint))
    source: Source = rows.plan.sources["x"]
    frame = spark.sql(f"SELECT 7 AS id, {sql} AS f UNION ALL SELECT 8, {sql}")
    local = rows.run()
    table = pa.table({"id": [7], "f": array})
    for attempt in (
        lambda: arrow_of(frame_of(source, frame)),
        lambda: local.step(x=table),
    ):
        with pytest.raises(ChangeError, match=text) as caught:
            attempt()
        assert caught.value.what.startswith("input 'x': ")
        assert "f" in caught.value.what
        assert caught.value.remedy
        assert "created" in caught.value.facts
    assert not local.value


LATEST = "TIMESTAMP'9999-12-31 23:59:59'"


class Event(NamedTuple):
    id: int
    at: Instant


EVENTS = ef.Input("events", Event, key="id")


@pytest.fixture
def new_york(spark: Any) -> Any:
    """The session in a zone whose last day is in the year 10000 in UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def events(spark: Any, count: int) -> Any:
    """Events, the last one at the end of time."""
    at = f"CASE WHEN id = {count - 1} THEN {LATEST} ELSE TIMESTAMP'2026-01-01' END AS at"
    return spark.range(count).selectExpr("id", at)


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged", "bulk", "auto"])
def test_a_time_out_of_range_is_refused_in_every_mode_and_names_its_row(
    new_york: Any, mode: Any, tmp_path: Path
) -> None:
    """Also in a first load that is large, in requests, and in files that Spark reads."""
    count = 300_000 if mode == "auto" else 5
    given = events(new_york, count)
    given.write.parquet(str(tmp_path / "events"))
    read = new_york.read.parquet(str(tmp_path / "events"))
    feed = given.selectExpr("*", "'insert' AS _change_type")
    with EVENTS.run(ef.spark(new_york, path=tmp_path / "state", mode=mode, buckets=2)) as view:
        for change in (given, read, feed, ef.upsert(given), ef.feed(feed), ef.replace(read)):
            with pytest.raises(ChangeError, match="field 'at' is outside the years") as caught:
                view.step(events=change)
            assert str(caught.value.facts["value"]) == "9999-12-31 23:59:59"
            assert f'"id":{count - 1}' in str(caught.value.facts["row"])
            assert caught.value.__cause__ is None
            assert view.epoch == 0
        view.step(events=given.filter(f"id < {count - 1}"))
        assert view.verify()
        with pytest.raises(ChangeError, match=r"input 'events'.* is outside the years"):
            view.step(events=ef.upsert(given.filter(f"id = {count - 1}")))
        assert view.epoch == 1


def test_a_stream_refuses_a_time_out_of_range_and_names_its_row(
    new_york: Any, tmp_path: Path
) -> None:
    events(new_york, 3).write.parquet(str(tmp_path / "files"))
    stream = new_york.readStream.schema("id long, at timestamp").parquet(str(tmp_path / "files"))
    with (
        EVENTS.run(ef.spark(new_york, path=tmp_path / "state", buckets=2)) as view,
        view.stream(events=stream) as running,
    ):
        with pytest.raises(ChangeError, match="field 'at' is outside the years") as caught:
            running.process_all()
        assert '"id":2' in str(caught.value.facts["row"])
        assert view.epoch == 0


def test_values_are_left_out_of_errors_that_are_redacted(spark: Any) -> None:
    source: Source = EVENTS.plan.sources["events"]
    ef.redact(True)
    try:
        with pytest.raises(ChangeError, match="outside the years") as caught:
            arrow_of(frame_of(source, spark.sql(f"SELECT 7 AS id, {LATEST}+INTERVAL 1 DAY AS at")))
    finally:
        ef.redact(False)
    assert "10000" not in str(caught.value)
    assert "7" not in str(caught.value.facts["row"])


def test_a_column_may_have_the_name_of_an_option(spark: Any, tmp_path: Path) -> None:
    """A DataFrame has its columns as attributes; on Connect it has every name."""
    row_type = record("Options", parse=int, rows=int, missing=int)
    program = ef.Input("options", row_type)
    with program.run(ef.spark(spark, path=tmp_path)) as view:
        view.step(options=spark.createDataFrame([(1, 2, 3)], ["parse", "rows", "missing"]))
        assert view.zset() == ef.ZSet.of([row_type(1, 2, 3)])
