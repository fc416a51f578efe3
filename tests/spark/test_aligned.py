"""As-of joins, interval joins and patterns on Spark: the same rows as in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.zset import ZSet


class Trade(NamedTuple):
    stock: str
    at: int
    size: int


class Quote(NamedTuple):
    stock: str
    at: int
    bid: int


@pytest.mark.parametrize("mode", ["staged", pytest.param("bulk", marks=pytest.mark.slow)])
def test_rows_meet_by_their_places_on_spark_as_they_do_here(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    trades, quotes = ef.Input("trades", Trade), ef.Input("quotes", Quote)
    made = ef.program(
        asof=trades.asof_join(quotes, on="stock", order="at", direction="nearest"),
        near=trades.interval_join(quotes, on="stock", order="at", low=-2, high=0, how="anti"),
        rises=quotes.match(
            low=lambda q: q.bid < 50, high=lambda q: q.bid > 50, per="stock", order="at", within=9
        ),
    )
    steps: list[dict[str, Any]] = [
        {
            "trades": ZSet.of([Trade("ab"[n % 2], 3 * n, n) for n in range(12)]),
            "quotes": ZSet.of([Quote("ab"[n % 2], 7 * n, 30 * n % 100) for n in range(6)]),
        },
        {
            "trades": ZSet({Trade("b", 9, 3): -1, Trade("b", 11, 0): 1}),
            "quotes": ZSet({Quote("a", 9, 60): 1, Quote("a", 14, 60): -1}),
        },
    ]
    with made.run(ef.spark(spark, path=str(tmp_path / "state"), mode=mode, buckets=2)) as view:
        so_far = {"trades": ZSet[Any](), "quotes": ZSet[Any]()}
        for step in steps:
            view.step(step)
            so_far = {name: so_far[name] + step.get(name, ZSet()) for name in so_far}
            expected = evaluate(made.plan, so_far)
            assert view.zset() == expected
