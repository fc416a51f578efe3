"""The Spark engine with its state on an object store: no jar, and the same answers."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.object_server import SECRET, Crash, ObjectServer, Stopped, on, place, server
from tests.oracle.kept_shop import Order, Place
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import Lost
from ebbflow.zset import ZSet

__all__ = ["place", "server"]


ORDERS = ef.Input("orders", Order)
PROGRAM = ef.program(
    lands=ORDERS.join(ef.Input("places", Place), on="city")
    .group_by("land")
    .agg(total=ef.sum("price")),
    cities=ORDERS.select("city").distinct(),
)


def random_changes(seed: int, epochs: int) -> Any:
    """What each epoch does to the inputs, and what they are then; rows come and go."""
    dice, there = Random(seed), {"orders": ZSet[Any](), "places": ZSet[Any]()}
    for epoch in range(epochs):
        gone = dice.sample(sorted(there["orders"]), min(2, len(there["orders"])))
        came = [Order(epoch * 9 + n, dice.choice("abc"), dice.randrange(9)) for n in range(4)]
        land = ZSet.of([Place(dice.choice("abc"), dice.choice("xy"))])
        change = {"orders": ZSet.of(came) - ZSet.of(gone), "places": land}
        there = {name: rows + change[name] for name, rows in there.items()}
        yield change, there


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_oracle_tasks_on_an_object_store_equal_batch(
    server: ObjectServer, place: Any, mode: str
) -> None:
    """On the cluster that is not there: the code of the tasks, without Spark."""
    view = View(PROGRAM.plan, mode, path=place)
    total = {name: ZSet[Any]() for name in PROGRAM.plan.outputs}
    for number, (change, there) in enumerate(random_changes(4, 5)):
        moved = view.step(change)
        total = {name: rows + moved[name] for name, rows in total.items()}
        assert total == evaluate(PROGRAM.plan, there)
        if number == 2:
            view.reopen()
    view.close()
    assert not [name for name in server.names(place) if name.endswith(".tmp")]


def test_oracle_a_session_with_state_on_an_object_store_equals_batch(
    server: ObjectServer, place: Any, spark: Any, tmp_path: Path
) -> None:
    options = {"buckets": 2, "readable": True}
    changes = list(random_changes(5, 3))
    with PROGRAM.run(ef.spark(spark, path=place, mode="staged", **options)) as view:
        end = view.write_changes(tmp_path / "out")
        with server.faulty(on("PUT", "lost", name="epoch-")):
            view.step(changes[0][0])
        assert view.zset() == evaluate(PROGRAM.plan, changes[0][1])
        end()
    with PROGRAM.run(ef.spark(spark, path=place, in_driver=True, **options)) as view:
        change, there = changes[1]
        moved = view.step(change)
        before = evaluate(PROGRAM.plan, changes[0][1])
        found = {(*row[:-1],): row[-1] for row in moved["lands"].collect()}
        assert found == {
            tuple(row): weight
            for row, weight in (evaluate(PROGRAM.plan, there)["lands"] - before["lands"]).items()
        }
        reader = ef.open(place)
        assert reader.value == evaluate(PROGRAM.plan, there)
        assert [epoch for epoch, _ in reader.changes(since=1, wait=0)] == [2]
        other = PROGRAM.run(ef.spark(spark, path=server.again(place, take_over=True), **options))
        with pytest.raises(Lost, match="taken over"):
            view.step(changes[2][0])
        other.step(changes[2][0])
        assert other.zset() == evaluate(PROGRAM.plan, changes[2][1])
        other.close()
    assert SECRET not in str(reader.snapshot().notes)
    assert len(list((tmp_path / "out").rglob("*.parquet"))) >= 1


def stepped(view: View, changes: Any, known: list[int]) -> None:
    for change, _ in changes[view.epoch :]:
        view.step(change)
        known.append(view.epoch)
    view.close()


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_a_driver_stopped_at_any_request_leaves_the_last_acknowledged_epoch(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, after: bool
) -> None:
    """On the cluster that is not there; what tasks have written for an epoch that never came to be
    is in nobody's way."""
    stopped, changes, came, at = Stopped(monkeypatch), list(random_changes(6, 4)), True, 0
    while came:
        place, known = server.place(cache=tmp_path, lease=1e6), [0]
        stopped.within(at, after)
        try:
            stepped(View(PROGRAM.plan, mode, path=place), changes, known)
            came = False
        except Crash:
            at += 1
        stopped.over()
        again = server.again(place, cache=tmp_path, take_over=True)
        view = View(PROGRAM.plan, mode, path=again)
        assert known[-1] <= view.epoch <= known[-1] + 1
        stepped(view, changes, known)
        assert ef.open(again, PROGRAM).value == evaluate(PROGRAM.plan, changes[-1][1])
    assert at > 15
