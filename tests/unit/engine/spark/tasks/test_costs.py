"""Costs: the mode that should be fastest, corrected by what epochs took."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'ebbflow[spark]'")

from ebbflow.engine.spark.tasks.costs import LEARNED, LOAD, ONE_TASK, WAVES, Costs

ALL = [ONE_TASK, WAVES, LOAD]


def in_python(cores: int = 2) -> Costs:
    return Costs(stages=9, waves=4, queries=1, cores=cores)


def native() -> Costs:
    return Costs(stages=3, waves=1, queries=3, cores=2)


@pytest.mark.parametrize("rows", [21_000, 47_000, 300_000])
def test_what_python_does_anyway_is_done_in_one_task_on_few_cores(rows: int) -> None:
    assert in_python().best(rows, ALL)[0] == ONE_TASK


def test_with_many_cores_many_rows_go_to_many_tasks() -> None:
    assert in_python(cores=16).best(300_000, ALL)[0] != ONE_TASK
    assert in_python(cores=16).best(21_000, ALL)[0] == ONE_TASK


def test_columns_do_not_spare_rows_the_way_into_a_task() -> None:
    """As Nexmark's query 4 was measured: 7 stages, 6 of them in columns."""
    rows, columns = (Costs(stages=7, waves=4, queries=5, cores=2, columns=n) for n in (0, 6))
    for each in (47_000, 300_000):
        faster = rows.seconds(ONE_TASK, each) / columns.seconds(ONE_TASK, each)
        assert 1 < faster < 1.5
        assert columns.best(each, ALL)[0] == ONE_TASK


def test_queries_pay_from_some_rows_on() -> None:
    assert native().best(30_000, ALL)[0] == ONE_TASK
    assert native().best(1_000_000, ALL)[0] == LOAD


def test_a_large_state_that_joins_would_read_is_a_reason_against_the_bulk_path() -> None:
    modes = [WAVES, LOAD]
    assert native().best(1_000_000, modes, read=0)[0] == LOAD
    assert native().best(1_000_000, modes, read=500_000_000)[0] == WAVES


def test_what_an_epoch_took_decides_the_next() -> None:
    costs = in_python()
    costs.learn(WAVES, 300_000, 4.0)
    costs.learn(ONE_TASK, 300_000, 11.0)
    assert costs.best(300_000, [ONE_TASK, WAVES])[0] == WAVES
    for _ in range(8):
        costs.learn(WAVES, 300_000, 60.0)
    assert costs.best(300_000, [ONE_TASK, WAVES])[0] == ONE_TASK


def test_a_slow_machine_is_slow_in_every_mode() -> None:
    costs, slow = in_python(), in_python()
    slow.learn(ONE_TASK, 300_000, 10 * costs.seconds(ONE_TASK, 300_000))
    assert slow.seconds(WAVES, 300_000) > 8 * costs.seconds(WAVES, 300_000)
    assert slow.best(300_000, ALL)[0] == ONE_TASK


def test_few_rows_say_nothing_about_rows() -> None:
    costs = in_python()
    costs.learn(ONE_TASK, LEARNED - 1, 100.0)
    costs.learn("driver", 300_000, 100.0)
    assert costs.ratios == {}


def test_one_task_takes_as_many_rows_as_pay_and_no_more_than_the_limit() -> None:
    assert in_python().most_in_one_task(20_000, 500_000) == 500_000
    assert 20_000 <= in_python(cores=16).most_in_one_task(20_000, 500_000) < 500_000
