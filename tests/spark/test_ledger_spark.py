"""The rows of the ledger that the Spark engine rests on, with its tasks called by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.runtime.stage import by_row
from ebbflow.engine.spark.tasks import sending
from ebbflow.engine.spark.tasks.transport import ranges, routed
from ebbflow.state.spine.hashing import hashes
from ebbflow.testing import random_epochs
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSet

TASKS = 4


class Purchase(NamedTuple):
    user: str
    price: int


class Gift(NamedTuple):
    user: str
    name: str


purchases = ef.Input("purchases", Purchase)
gifts = ef.Input("gifts", Gift)
by_user = purchases.join(gifts, on="user").group_by("user").agg(n=ef.count(), total=ef.sum("price"))


def in_range(rows: ZSet[Any], part: int) -> ZSet[Any]:
    """The rows whose user has a hash in one of the ranges."""
    return rows.filter(lambda row: ranges(hashes([row.user]), TASKS)[0] == part)


def test_003_H8_an_epoch_in_ranges_of_keys_is_the_sum_of_views_that_know_one_range_3_62(
    tmp_path: Path,
) -> None:
    used = set()
    for seed in range(6):
        whole = View(plan_of(by_user), "staged", TASKS, path=str(tmp_path / str(seed)))
        parts = [by_user.run() for _ in range(TASKS)]
        for epoch in random_epochs(by_user, seed, 5):
            total: ZSet[Any] = ZSet()
            for number, part in enumerate(parts):
                mine = {name: in_range(rows, number) for name, rows in epoch.items()}
                used |= {number for rows in mine.values() if rows}
                total += part.step(mine)
            assert whole.step(epoch) == total
        assert whole.value == sum((part.value for part in parts), ZSet())
        whole.close()
    assert len(used) > 1


def test_003_H8_an_epoch_in_ranges_of_anything_else_is_not_3_62(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    joined = purchases.join(gifts, on="user")
    users = "abcdefgh"
    epoch = {
        "purchases": ZSet.of([Purchase(user, 1) for user in users]),
        "gifts": ZSet.of([Gift(user, "pen") for user in users]),
    }
    monkeypatch.setattr(sending, "routed", lambda delta, key, *rest: routed(delta, by_row, *rest))
    view = View(plan_of(joined), "staged", TASKS, path=str(tmp_path))
    found = view.step(epoch)
    assert len(found) < len(joined.run().step(epoch)) == len(users)
    view.close()


def _difference(pair: tuple[int, int]) -> int:
    return pair[0] - pair[1]


def test_000_R12_one_reducer_value_serves_both_engines(tmp_path: Path) -> None:
    spread = (ef.max("price") & ef.min("price")).then(_difference)
    program = purchases.group_by("user").agg(spread=spread, all=ef.collect("price"))
    here = program.run()
    modes = "driver", "single_task", "staged"
    there = [View(plan_of(program), mode, path=str(tmp_path / mode)) for mode in modes]
    for epoch in random_epochs(program, 3, 8):
        change = here.step(epoch)
        assert [each.step(epoch) for each in there] == [change] * 3
    for each in there:
        each.close()
