"""What is asked of inputs in a session: in tables of Spark, which stay there, and in one epoch."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from pyspark.sql import DataFrame
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.random_requests import RandomRequests

import ebbflow as ef
from ebbflow.change.requests import DeleteKeys, Feed, Request, Upsert
from ebbflow.engine.runtime.table.libraries import arrow_of
from ebbflow.engine.runtime.table.untyped import require_types
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.errors import AbsentRow, ChangeError, CompositionError


class Order(NamedTuple):
    id: int
    city: str
    version: int


ROW = "id int, city string, version int"
PROGRAM = ef.program(
    orders=ef.Input("orders", Order, key="id", sequence="version"),
    by_city=ef.Input("sales", Order).group_by("city").agg(n=ef.count()),
)


@pytest.mark.parametrize("mode", ["auto", pytest.param("staged", marks=pytest.mark.slow)])
def test_requests_in_tables_of_spark(spark: Any, tmp_path: Path, mode: str) -> None:
    def frame(*rows: Any, schema: str = ROW) -> DataFrame:
        return spark.createDataFrame(list(rows), schema)  # type: ignore[no-any-return]

    def now() -> Any:
        found = view.zset()
        return {row.id: row.city for row in found["orders"]}, dict(found["by_city"])

    engine = ef.spark(spark, path=tmp_path, mode=mode, buckets=2)
    with PROGRAM.run(engine) as view:
        three = frame((1, "Rome", 1), (2, "Oslo", 1), (3, "Bari", 1))
        view.step(orders=ef.upsert(three), sales=three)
        gone = frame((1, 5), schema="id int, version int")
        view.step(
            orders=ef.delete(gone),
            sales=ef.replace(frame((9, "Oslo", 9), (8, "Oslo", 9)), where={"city": "Oslo"}),
        )
        assert now() == ({2: "Oslo", 3: "Bari"}, {"Rome": 1, "Bari": 1, "Oslo": 2})
        feed = frame(
            (1, "late", 4, "u"), (2, None, 3, "d"), (2, "Bonn", 2, "u"), (4, "Kiel", 1, "c"),
            schema=f"{ROW}, __op string",
        )  # fmt: skip
        view.step(orders=ef.feed(feed), sales=ef.replace(frame(), where=lambda row: row.id > 8))
        assert now() == ({3: "Bari", 4: "Kiel"}, {"Rome": 1, "Bari": 1, "Oslo": 1})
        before = now()
        for error, wrong in (
            (ChangeError, ef.replace(frame((9, "Oslo", 9)), where={"city": "Rome"})),
            (ChangeError, ef.upsert(three)),
            (AbsentRow, {Order(1, "Rome", 0): -1}),
        ):
            with pytest.raises(error):
                view.step(orders=ef.feed(feed), sales=wrong)
        assert now() == before
        view.verify()
    with PROGRAM.run(engine) as view:
        view.step(orders=ef.upsert(frame((1, "later still", 4), (2, "Bonn", 3))))
        assert now()[0] == {2: "Bonn", 3: "Bari", 4: "Kiel"}


def typed(dice: Random) -> Any:
    """A random program whose outputs can be tables."""
    while True:
        program = program_of(dice, size=3)
        with suppress(CompositionError):
            require_types(program.plan)
            return program


class InSession:
    """A view whose changes are collected."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def step(self, changes: Any) -> Any:
        types = {name: node.type for name, node in self.view.plan.outputs.items()}
        found = self.view.step(changes)
        if len(types) == 1:
            return zset_of(found, *types.values())
        return {name: zset_of(found[name], types[name]) for name in types}

    @property
    def value(self) -> Any:
        return self.view.zset()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["staged", "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_oracle_requests_in_a_session(spark: Any, tmp_path: Path, mode: str, seed: int) -> None:
    dice = Random(f"{mode} {seed}")
    program = typed(dice)
    asked = RandomRequests(program, dice)
    in_arrow = tables(asked, dice)

    def formed(name: str, change: Any) -> Any:
        made = in_arrow(name, change)
        if not isinstance(made, Request) or made is change:
            return made
        source: Any = asked.sources[name]
        keys = Counter(map(source.key, rows_of(change, source.type))) if source.key else {1: 1}
        if max(keys.values(), default=1) > 1:
            return made  # a table of Spark has no order
        if isinstance(change, Upsert) and change.order is None:
            made = ef.upsert(made.rows, made.delete, missing=made.missing)
        rows = arrow_of(source, made.rows, list)[0].combine_chunks()
        if isinstance(change, (Feed, DeleteKeys)):
            return made.taking(spark.createDataFrame(rows))
        rows = rows.drop_columns(["__weight"])
        return made.taking(spark.createDataFrame(rows, schema_of(source.type)))

    with program.run(ef.spark(spark, path=tmp_path, mode=mode, buckets=2)) as view:
        follow_requests(InSession(view), program.plan, asked, 10, formed)
        view.verify()


def rows_of(change: Any, row_type: Any) -> list[Any]:
    """The rows that a request has."""
    if isinstance(change, Feed):
        images = [each.get("after") or each.get("before") or each for each in change.rows]
        return [row_type(*(image[name] for name in row_type._fields)) for image in images]
    return list(change.rows) if isinstance(change, Upsert) else []


def test_the_methods_of_an_input_take_frames(spark: Any, tmp_path: Path) -> None:
    first = spark.createDataFrame([(1, "Rome", 1), (2, "Oslo", 1)], ROW)
    with ef.Input("o", Order, key="id").run(ef.spark(spark, path=tmp_path, buckets=2)) as view:
        handle = view.input("o")
        handle.add(first)
        handle.upsert(spark.createDataFrame([(1, "Bonn", 1)], ROW))
        assert {(row.id, row.city) for row in view.zset()} == {(1, "Bonn"), (2, "Oslo")}
        handle.remove(spark.createDataFrame([(1, "Bonn", 1)], ROW))
        handle.delete(spark.createDataFrame([(2,), (7,)], "id int"), missing="ignore")
        assert len(view.zset()) == 0
    local = ef.Input("o", Order, key="id").run().input("o")
    for verb in ("add", "upsert", "remove"):
        with pytest.raises(ChangeError, match="to a view that is not on Spark"):
            getattr(local, verb)(first)
