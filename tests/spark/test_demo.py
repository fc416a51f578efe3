"""The demo on Spark: what it is compared with, and the whole."""

from __future__ import annotations

from typing import Any

import pytest

from ebbflow.demo.again import counted, recompute_rows, recompute_sql
from ebbflow.demo.data import Shop, arrow_of, rows_of
from ebbflow.demo.run import run
from ebbflow.demo.show import Printer


def test_spark_sql_computes_what_the_python_program_computes(spark: Any) -> None:
    shop = Shop(2_000, seed=1)
    shop.epoch(4)
    frames = {name: spark.createDataFrame(arrow_of(each)) for name, each in shop.tables.items()}
    found = {name: counted(frame) for name, frame in recompute_sql(spark, frames).items()}
    rows = {name: rows_of(name, each) for name, each in shop.tables.items()}
    assert found == recompute_rows(rows)


@pytest.mark.slow
def test_the_load_the_correction_and_every_epoch_are_verified(spark: Any) -> None:
    lines: list[str] = []
    found = run(Printer(lines.append), rows=500, epochs=3, session=spark)
    assert (found["load"]["wrong"], found["correction"]["wrong"]) == ([], [])
    assert (found["killed"]["logged"], found["killed"]["verified"]) == ([*range(1, 7)], True)
    assert "each once" in "\n".join(lines)
    assert [each["wrong"] for each in found["steps"]] == [[]] * 3
    assert found["verified"]
    assert found["state"]["bytes"] > 0
    assert max(map(len, lines)) <= 100
