"""The tasks of the Spark engine, and a real session, against DuckDB."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.oracle.witnessed import Beside, asked
from tests.spark.forms import FORMS, some_form
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.spark.output.frames import zset_of

MODES = ["driver", "single_task", "staged"]


def in_tasks(mode: str, seed: Any, epochs: int = 4) -> None:
    case, dice = Beside(seed), Random(seed)
    with TemporaryDirectory(prefix="witness-") as path:
        view = View(case.program.plan, mode, path=path)

        def act(done: Any) -> None:
            if dice.random() < 0.3:
                view.reopen()
            view.tasks = dice.randint(1, 4)
            kinds = {name: source.type for name, source in case.program.plan.sources.items()}
            view.advance({
                name: asked(verb, some_form(given, kinds[name], dice)) for name, verb, given in done
            })  # fmt: skip

        case.follow(act, lambda: view.value, epochs)
        view.close()


@pytest.mark.parametrize("mode", MODES)
def test_oracle_tasks_agree_with_duckdb(mode: str) -> None:
    for seed in range(5):
        in_tasks(mode, f"{mode} {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", range(4))
def test_oracle_tasks_of_many_programs_agree_with_duckdb(mode: str, part: int) -> None:
    for seed in range(100 + part, 160, 4):
        in_tasks(mode, f"{mode} {seed}", 6)


def in_a_session(spark: Any, path: Path, mode: str, seed: Any, epochs: int) -> None:
    """A load, by native queries where the mode is bulk, and some changes of it."""
    case = Beside(seed)
    nodes = case.program.plan.outputs
    engine = ef.spark(spark, path=path, mode=mode, buckets=2)
    with case.program.run(engine) as view:

        def rows(name: str) -> Any:
            frame = view.weighted if len(nodes) == 1 else view.weighted[name]
            return zset_of(frame, nodes[name].type)

        def act(done: Any) -> None:
            kinds = {name: source.type for name, source in case.program.plan.sources.items()}
            view.step({
                name: some_form(change, kinds[name], case.dice, FORMS, spark)
                for name, _, change in done
            })  # fmt: skip

        case.follow(
            act,
            lambda: {name: rows(name) for name in nodes},
            epochs,
            by_key=False,
        )


@pytest.mark.parametrize("seed", range(2))
def test_oracle_a_session_agrees_with_duckdb(spark: Any, tmp_path: Path, seed: int) -> None:
    in_a_session(spark, tmp_path / "state", "bulk", f"bulk {seed}", 2)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["bulk", "single_task", "staged"])
@pytest.mark.parametrize("seed", range(10, 13))
def test_oracle_a_session_often_agrees_with_duckdb(
    spark: Any, tmp_path: Path, seed: int, mode: str
) -> None:
    in_a_session(spark, tmp_path / "state", mode, f"{mode} {seed}", 3)
