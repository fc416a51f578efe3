"""The demo on Spark: what it is compared with, and the whole."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from ebbflow.demo.again import counted, recompute_rows, recompute_sql
from ebbflow.demo.data import Shop, arrow_of, rows_of
from ebbflow.demo.run import run
from ebbflow.demo.show import Printer


def engine_is_there() -> bool:
    """Whether views on Spark can do what the demo asks for."""
    if find_spec("ebbflow.engine.spark.view") is None:
        return False
    return hasattr(import_module("ebbflow.engine.spark.view").View, "explain")


needs_the_engine = pytest.mark.skipif(not engine_is_there(), reason="the engine is not whole yet")


def test_spark_sql_computes_what_the_python_program_computes(spark: Any) -> None:
    shop = Shop(2_000, seed=1)
    shop.epoch(4)
    frames = {name: spark.createDataFrame(arrow_of(each)) for name, each in shop.tables.items()}
    found = {name: counted(frame) for name, frame in recompute_sql(spark, frames).items()}
    rows = {name: rows_of(name, each) for name, each in shop.tables.items()}
    assert found == recompute_rows(rows)


@needs_the_engine
def test_every_epoch_is_verified(spark: Any) -> None:
    lines: list[str] = []
    found = run(Printer(lines.append), rows=2_000, epochs=4, session=spark)
    assert [each["wrong"] for each in [found["load"], *found["steps"]]] == [[]] * 5
    assert found["verified"]
    assert found["state"]["bytes"] > 0
    assert max(map(len, lines)) <= 100
