"""A changed program on Spark: what is new is computed in tasks, from the rows that are there, and
is what batch computes; what did not change is kept, and a kill while it runs spoils nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.sales import Customer, Order, orders, sales
from tests.oracle.test_durable_changed import edited, random_recipe

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.spark.bulk import rebuild
from ebbflow.errors import EbbflowError, StateError
from ebbflow.state.spine import Snapshot
from ebbflow.testing import random_epochs
from ebbflow.testing.programs import grow
from ebbflow.zset import ZSet

cities = sales.group_by("city").agg(n=ef.count(), total=ef.sum("price"))
first = ef.program(cities=cities)
second = ef.program(
    cities=cities,
    rich=sales.filter(lambda row: row.price > 40).group_by("customer").agg(most=ef.max("price")),
    last=orders.top_k(3, order="price"),
)
Rows = dict[str, ZSet[Any]]


def some_rows(count: int) -> dict[str, Any]:
    dice = Random(count)
    return {
        "orders": [Order(i, dice.randrange(20), dice.randrange(99)) for i in range(count)],
        "customers": [Customer(i % 20, f"city {i % 3}") for i in range(25)],
    }


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Every rebuild runs in tasks; gives which parts each was of."""
    done: list[set[str]] = []
    real = rebuild.compute_again

    def noting(epochs: Any, given: Any, tasks: int, new: set[str]) -> None:
        done.append(set(new))
        real(epochs, given, tasks, new)

    monkeypatch.setattr(rebuild, "LARGE", 0)
    monkeypatch.setattr(rebuild, "compute_again", noting)
    return done


def test_what_is_new_is_computed_in_tasks_and_the_rest_is_kept(
    spark: Any, tmp_path: Path, in_tasks: list[set[str]]
) -> None:
    rows = some_rows(300)
    engine = ef.spark(spark, path=tmp_path / "state")
    with first.run(engine) as view:
        view.step(rows)
    before = Snapshot(tmp_path / "state").notes["parts"]
    with second.run(engine) as view:
        now = Snapshot(tmp_path / "state").notes["parts"]
        (new,) = in_tasks
        assert new == now.keys() - before.keys()
        assert {label.split()[0] for name, label in now.items() if name not in new} >= {
            "input", "index",
        }  # fmt: skip
        assert set(view.rebuilt) == {now[name] for name in new}
        inputs = {name: ZSet.of(each) for name, each in rows.items()}
        assert view.zset() == evaluate(second.plan, inputs)
        assert not list((tmp_path / "state" / "changes").glob(f"{view.epoch:012d}-*"))
        view.step(orders=ef.upsert([Order(3, 4, 98)], delete=[1, 2]))
        after = inputs["orders"] - ZSet.of(rows["orders"][1:4]) + ZSet.of([Order(3, 4, 98)])
        assert view.zset() == evaluate(second.plan, inputs | {"orders": after})
    with pytest.raises(StateError, match="strict=False to have it computed"):
        ef.program(rich=cities.filter(lambda row: row.n > 1).distinct()).run(
            ef.spark(spark, path=tmp_path / "state", strict=True)
        )


def versions(spark: Any, path: Path, seed: int, count: int = 3) -> int:
    """One version of a random program after the other; gives how many were opened."""
    dice = Random(seed)
    recipe, opened = random_recipe(dice), 0
    inputs: Rows = {}
    for _ in range(count):
        program = grow(recipe)
        plan = program.plan
        recipe = edited(recipe, dice)
        engine = ef.spark(spark, path=path, in_driver=True)
        try:
            expected = evaluate(plan, inputs)
            view = program.run(engine)
        except EbbflowError:
            continue
        opened += 1
        with view:
            assert as_dict(view) == expected, seed
            inputs |= {name: inputs.get(name, ZSet()) for name in plan.sources}
            for epoch in random_epochs(plan, dice, 2):
                try:
                    after = {n: z + epoch.get(n, ZSet()) for n, z in inputs.items()}
                    expected = evaluate(plan, after)
                    view.step(epoch)
                    inputs = after
                except EbbflowError:
                    continue
            assert as_dict(view) == evaluate(plan, inputs), seed
    return opened


def as_dict(view: Any) -> Any:
    found = view.zset()
    return found if isinstance(found, dict) else {next(iter(view.plan.outputs)): found}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_oracle_changed_programs_in_tasks_equal_batch(
    spark: Any, tmp_path: Path, seed: int, in_tasks: list[set[str]]
) -> None:
    versions(spark, tmp_path, seed, 4)


@pytest.mark.slow
def test_a_large_correction_of_a_live_view_is_one_epoch_in_tasks(
    spark: Any, tmp_path: Path
) -> None:
    """A backfill: upserts and deletions of most of the rows, in a frame, beside batch."""
    rows = some_rows(3000)
    inputs = {name: ZSet.of(each) for name, each in rows.items()}
    with second.run(ef.spark(spark, path=tmp_path, small=200)) as view:
        view.step(rows)
        assert view.last.mode == "bulk"
        new = [row._replace(price=row.price + 7) for row in rows["orders"][:1500]]
        gone = [row.id for row in rows["orders"][2000:2500]]
        frame = spark.createDataFrame(new, "id long, customer long, price long")
        view.step(orders=ef.upsert(frame, delete=gone), batch="correction")
        assert (view.last.mode, view.epoch) == ("staged", 2)
        kept = [*new, *rows["orders"][1500:2000], *rows["orders"][2500:]]
        assert view.zset() == evaluate(second.plan, inputs | {"orders": ZSet.of(kept)})
        away = spark.createDataFrame([(*row, -1) for row in kept[:1000]],
                                     "id long, customer long, price long, weight long")  # fmt: skip
        view.step(orders=away)
        left = {"orders": ZSet.of(kept[1000:])}
        assert view.zset() == evaluate(second.plan, inputs | left)


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
import ebbflow as ef
from ebbflow.engine.spark.bulk import rebuild
from ebbflow.state.spine import Store
from tests.spark import test_rebuild as t
rebuild.LARGE = 0
where = {where!r}
if where == "staged":
    real = rebuild.compute_again
    rebuild.compute_again = lambda *given: (real(*given), os.kill(os.getpid(), signal.SIGKILL))
else:
    Store.commit = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
t.second.run(ef.spark(path={path!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["staged", "commit"])
def test_a_kill_while_it_is_computed_spoils_nothing(
    spark: Any, tmp_path: Path, where: str, in_tasks: list[set[str]]
) -> None:
    rows = some_rows(200)
    engine = ef.spark(spark, path=tmp_path)
    with first.run(engine) as view:
        view.step(rows)
    code = KILLED.format(root=str(Path(__file__).parents[2]), where=where, path=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    inputs = {name: ZSet.of(each) for name, each in rows.items()}
    with first.run(engine) as view:
        assert view.epoch == 1
        assert view.zset() == evaluate(first.plan, inputs)["cities"]
    with second.run(engine) as view:
        assert view.zset() == evaluate(second.plan, inputs)
