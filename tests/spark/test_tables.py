"""Tables of every library on Spark: the same rows, and the same words, as in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.errors import ChangeError


class Order(NamedTuple):
    id: int
    city: str
    price: float | None = None


ORDERS = ef.Input("orders", Order, key="id")


def given() -> dict[str, Any]:
    """Tables of two orders each, by the way in which they are given, in order."""
    old = np.array([(5, "Rome"), (6, "Oslo")], [("id", "i4"), ("city", "U9")])
    new = {"id": [7, 8], "city": ["Rome", "Bari"], "price": [1.5, None]}
    return {
        "step": pl.DataFrame({"id": [1, 2], "city": ["Rome", "Oslo"], "price": [None, 2.0]}),
        "apply": {"id": [3, 4], "city": ["Rome", "Oslo"], "price": np.array([1.0, 2.0])},
        "add": {**{name: old[name] for name in old.dtype.names}, "price": [None, 1.0]},
        "upsert": pd.DataFrame(new).assign(id=[1, 8]),
        "remove": pa.table({"id": [3], "city": ["Rome"], "price": [1.0]}),
    }


def file_of(folder: Path) -> Any:
    """A file with one order that fits, and one that does not."""
    (folder / "orders.csv").write_text("id,city,price,weight\n11,Rome,1.5,1\nx,Rome,,1\n")
    return ef.read_csv(folder / "orders.csv", Order, rejected=[])


def test_tables_of_every_library_are_the_same_rows_on_both_engines(
    spark: Any, tmp_path: Path
) -> None:
    local = ORDERS.run()
    with ORDERS.run(ef.spark(spark, path=tmp_path / "state")) as view:
        for way, table in given().items():
            for each in (local, view):
                each.step(orders=table) if way == "step" else getattr(each.input("orders"), way)(
                    table
                )
        for each in (local, view):
            each.step(orders=file_of(tmp_path))
        found = {Order(*row) for row in view.value.collect()}
        assert found == set(local.value)
        assert len(found) == len(local.value) == 7
        wrong = [
            pd.DataFrame({"id": [9, None], "city": ["a", "b"], "price": [1.0, 2.0]}),
            {"id": [9, 10], "city": ["a"], "price": [1.0, 2.0]},
            pl.DataFrame({"id": ["9"], "city": ["a"], "price": [1.0]}),
            {"id": 9, "city": "a"},
        ]
        for table in wrong:
            with pytest.raises(ChangeError) as here:
                local.step(orders=table)
            with pytest.raises(ChangeError) as there:
                view.step(orders=table)
            assert str(here.value) == str(there.value)


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged", "bulk"])
def test_rows_behind_an_empty_chunk_of_a_table_are_read(
    spark: Any, mode: Any, tmp_path: Path
) -> None:
    """Spark makes a DataFrame without them."""
    columns = {"id": [[], [1, 2], [], [3]], "city": [[], ["Rome", "Oslo"], [], ["Bari"]]}
    types = {"id": pa.int64(), "city": pa.string()}
    table = pa.table({name: pa.chunked_array(each, types[name]) for name, each in columns.items()})
    table = table.append_column("price", pa.nulls(3, pa.float64()))
    wanted = [Order(1, "Rome"), Order(2, "Oslo"), Order(3, "Bari")]
    with ORDERS.run(ef.spark(spark, path=tmp_path, mode=mode, buckets=2)) as view:
        for change in (table, ef.replace(table), ef.upsert(table)):
            view.step(orders=change)
            assert view.zset() == ef.ZSet.of(wanted)
        moved = spark.createDataFrame([(9, "Rome", 1.0)], "id long, city string, price double")
        view.step(orders=ef.upsert(moved, delete=table.select(["id"])))
        assert view.zset() == ef.ZSet.of([Order(9, "Rome", 1.0)])
        view.step(orders=ef.upsert(table, delete=moved.select("id")))
        assert view.zset() == ef.ZSet.of(wanted)
