"""Bulk loads: the state they write is the one that epochs go on with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'ebbflow[spark]'")

import pyarrow as pa

import ebbflow as ef
from ebbflow.errors import AbsentRow
from ebbflow.zset import ZSet


class Row(NamedTuple):
    k: int
    v: int


class City(NamedTuple):
    k: int
    name: str


a, b = ef.Input("a", Row), ef.Input("b", City)
joined = a.join(b, on="k")
PROGRAMS = {
    "one sum": a.group_by("k").agg(s=ef.sum("v")),
    "groups": ef.program(
        sums=a.group_by("k").agg(s=ef.sum("v"), n=ef.count(), m=ef.mean("v")),
        alone=a.group_by("k").reduce(ef.sum("v")),
        by_a_pair=a.group_by(lambda r: (r.k, r.v % 2)).reduce(ef.count()),
        distinct=a.select("k").distinct(),
        sum_of_sums=a.group_by("k").agg(s=ef.sum("v")).group_by("s").agg(n=ef.count()),
    ),
    "join": joined,
    "joins": ef.program(
        sum_of_a_join=joined.group_by("name").agg(s=ef.sum("v")),
        anti=b.join(a, on="k", how="anti"),
        semi=b.join(a, on="k", how="semi"),
        left=a.join(b, on="k", how="left"),
    ),
}


def run(spark: Any, path: Path, program: Any) -> Any:
    return program.run(ef.spark(spark, path=path, mode="bulk", buckets=2))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_load_gives_and_what_follows_are_what_batch_computes(
    spark: Any, tmp_path: Path, name: str
) -> None:
    with run(spark, tmp_path, PROGRAMS[name]) as view:
        rows = [Row(i % 7, i % 3) for i in range(50)]
        view.step(
            {"a": rows, "b": [City(i, "xyz"[i % 3]) for i in range(10)]}
            if "b" in view.plan.sources
            else {"a": rows}
        )
        assert view.last.mode == "bulk"
        view.verify()
        view.step(a={Row(0, 0): -1, Row(9, 9): 1})
        view.verify()


def test_a_row_that_is_not_there_is_refused_where_an_index_keeps_the_rows(
    spark: Any, tmp_path: Path
) -> None:
    with run(spark, tmp_path, joined) as view:
        with pytest.raises(AbsentRow, match="input 'a'"):
            view.step(a={Row(1, 1): -1, Row(2, 2): 1}, b=[City(1, "x")])
        assert view.epoch == 0
        view.step(a=[Row(1, 1)], b=[City(1, "x")])
        assert len(view.zset()) == 1


def test_rows_that_come_and_go_in_one_load_are_not_there(spark: Any, tmp_path: Path) -> None:
    with run(spark, tmp_path, joined) as view:
        frame = spark.createDataFrame(
            [(1, 1, 1), (1, 1, -1), (2, 2, 1)], "k long, v long, weight long"
        )
        view.step(a=frame, b=[City(1, "x"), City(2, "y")])
        assert view.zset() == ZSet({joined.node.type(2, 2, "y"): 1})
        view.verify()


def test_sums_of_more_than_64_bits_on_the_way_are_exact(spark: Any, tmp_path: Path) -> None:
    program = a.group_by("k").agg(s=ef.sum("v"), m=ef.mean("v"), n=ef.count())
    most = 2**63 - 1
    with run(spark, tmp_path, program) as view:
        view.step(a={Row(1, most): 3, Row(1, -most): 2, Row(2, -most - 1): 1, Row(2, 5): 1})
        view.verify()
        view.step(a={Row(1, most): -3, Row(1, -most): -2, Row(1, 7): 1})
        view.verify()
        assert {row.k: row.s for row in view.zset()} == {1: 7, 2: 4 - most}


class Maybe(NamedTuple):
    k: int | None
    t: str | None
    v: int


class Other(NamedTuple):
    maybe: int | None
    w: int


@pytest.mark.parametrize("on", [("k", "k"), (("k", "t"), ("k", "name")), ("k", "maybe")])
def test_keys_that_may_be_none_on_one_side_or_on_both(
    spark: Any, tmp_path: Path, on: tuple[Any, Any]
) -> None:
    """`None` meets `None`, and nothing else."""
    right: Any = ef.Input("o", Other) if on[1] == "maybe" else b
    left = ef.Input("m", Maybe)
    program = ef.program(
        inner=left.join(right, left_on=on[0], right_on=on[1]),
        semi=left.join(right, left_on=on[0], right_on=on[1], how="semi"),
        anti=left.join(right, left_on=on[0], right_on=on[1], how="anti"),
    )
    rows = [Maybe(k, t, v) for k in (None, 0, 1) for t in (None, "x") for v in (1, 2)]
    others: Any = [City(0, "x")] if right is b else [Other(None, 1), Other(1, 2)]
    given = {"m": rows, right.node.name: others}
    with run(spark, tmp_path, program) as view:
        view.step(given)
        assert view.last.mode == "bulk"
        view.verify()
        view.step(m={rows[0]: -1, Maybe(None, None, 9): 1})
        view.verify()


class Hit(NamedTuple):
    at: datetime
    seen: Annotated[datetime, UTC]


HITS = [
    Hit(at, at.replace(tzinfo=UTC))
    for at in (datetime(2026, 1, 1, 0, 30), datetime(2026, 3, 8, 2, 30))  # a time New York skips
]


@pytest.mark.parametrize("form", ["rows", "pandas", "arrow"])
def test_a_time_without_a_zone_is_the_same_in_every_zone_of_the_session(
    spark: Any, tmp_path: Path, form: str
) -> None:
    table = pa.table({name: [getattr(hit, name) for hit in HITS] for name in Hit._fields})
    given: Any = {"rows": HITS, "pandas": table.to_pandas(), "arrow": table}[form]
    program = ef.Input("hits", Hit).select("at", "seen").distinct()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with run(spark, tmp_path, program) as view:
            view.step(hits=given)
            assert sorted(tuple(row) for row in view.zset()) == sorted(map(tuple, HITS))
            view.step(hits={HITS[1]: -1})
            assert [tuple(row) for row in view.zset()] == [tuple(HITS[0])]
            kinds = [field.dataType.simpleString() for field in view.value.schema]
            assert kinds == ["timestamp_ntz", "timestamp"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
