"""Batches on Spark: the name and the epoch are in one manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.batches import Batch
from ebbflow.errors import ChangeError, RepeatedBatch


class Sale(NamedTuple):
    shop: str
    price: int


TOTALS = ef.Input("sales", Sale).group_by("shop").agg(total=ef.sum("price"))


def run(spark: Any, path: Path, **options: Any) -> Any:
    return TOTALS.run(ef.spark(spark, path=path, **options))


@pytest.mark.parametrize("mode", ["driver", "single_task"])
def test_a_batch_happens_once_also_when_the_view_is_opened_again(
    spark: Any, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run(spark, tmp_path, mode=mode) as view:
        with pytest.raises(ChangeError):
            view.step(sales=[Sale("a", "x")], batch="monday")  # type: ignore[arg-type]
        with monkeypatch.context() as broken:
            broken.setattr(view._store, "commit", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                view.step(sales=[Sale("a", 1)], batch="monday")
        assert view.batches() == []
        view.step(sales=[Sale("a", 1)])
        view.each_epoch(lambda change, epoch: 1 // (2 - epoch), name="fails")
        with pytest.raises(ZeroDivisionError):
            view.step(sales=[Sale("a", 2)], batch="monday")  # the epoch is done, and stays
        with pytest.warns(RepeatedBatch, match="in epoch 2"):
            assert view.step(sales=[Sale("a", 2)], batch="monday").count() == 0
        view.end_sink("fails")
    with run(spark, tmp_path, mode=mode) as view:
        with pytest.warns(RepeatedBatch, match="in epoch 2"):
            view.step(sales=[Sale("a", 2)], batch="monday")
        view.step(sales=[Sale("a", 4)], batch=("stream", 0))
        assert view.batches() == [Batch("monday", 2), Batch(("stream", 0), 3)]
        assert view.zset() == ef.ZSet({TOTALS.type("a", 7): 1})
        view.step(batch=("topic", {"t/0": 1, "t/1": 1}))
        view.step(batch=("topic", {"t/1": 2}))
        assert view.batches()[-1] == Batch(("topic", {"t/0": 1, "t/1": 2}), 5)
    with run(spark, tmp_path, mode=mode) as view:
        assert view.batches()[-1] == Batch(("topic", {"t/0": 1, "t/1": 2}), 5)


def test_a_first_batch_of_no_rows_leaves_the_load_to_the_next(spark: Any, tmp_path: Path) -> None:
    with run(spark, tmp_path) as view:
        view.step(sales=[], batch="empty")
        assert view._route._empty
