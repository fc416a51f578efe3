"""The example programs on Spark, under changes that their authors never saw.

Each goes through many epochs on the cluster that is not there, and through a few on a real one,
which imports the example as any module of a user's: its classes and functions must get there.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.docs.test_examples import EXAMPLES, MODULES, changes
from tests.spark.simulated import View
from tests.spark.test_oracle_session import by_output

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.flow.plan import Plan
from ebbflow.record import fields_of
from ebbflow.testing import follow
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSet

NAMES = [
    name
    for name, module in MODULES.items()
    if any(fields_of(source.type) for source in plan_of(module.program).sources.values())
]
REAL = ["billing", "budget", "flights", "points_to"]
each_example = pytest.mark.parametrize("name", NAMES)


def epochs_of(module: ModuleType, seed: int, most: int) -> list[dict[str, ZSet[Any]]]:
    """The rows it starts with, some random changes, and everything goes."""
    made = list(changes(module, seed))
    gone: dict[str, ZSet[Any]] = {}
    for epoch in made[:most]:
        for name, change in epoch.items():
            gone[name] = gone.get(name, ZSet()) - change
    return [*made[:most], gone]


@each_example
def test_an_example_is_right_in_waves_of_tasks(name: str, tmp_path: Path) -> None:
    module = MODULES[name]

    def run(plan: Plan) -> View:
        return View(plan, "staged", 3, path=str(tmp_path))

    view = follow(run, module.program, epochs_of(module, 0, 6))
    value = view.value if len(view.plan.outputs) > 1 else {"": view.value}
    assert not any(value.values()), "all input is gone, and something is left"
    view.close()


@pytest.mark.slow
@each_example
@pytest.mark.parametrize("mode", ["single_task", "staged"])
def test_an_example_is_right_through_many_epochs(name: str, mode: str, tmp_path: Path) -> None:
    module = MODULES[name]
    view = follow(
        lambda plan: View(plan, mode, 4, path=str(tmp_path)),
        module.program,
        epochs_of(module, 1, 15),
    )
    view.close()


def imported(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An example as a module that workers can import too."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def on_spark(spark: Any, module: ModuleType, path: Path, mode: str, epochs: int) -> None:
    plan = plan_of(module.program)
    inputs: dict[str, ZSet[Any]] = {}
    total = evaluate(plan, inputs)
    with module.program.run(ef.spark(spark, path=path, mode=mode, buckets=2)) as view:
        for epoch in epochs_of(module, 2, epochs):
            inputs |= {name: inputs.get(name, ZSet()) + epoch[name] for name in epoch}
            moved = by_output(plan, view.step(epoch))
            total = {name: rows + moved[name] for name, rows in total.items()}
            assert mismatch(evaluate(plan, inputs), total) is None
        assert not any(by_output(plan, view.weighted).values())


@pytest.mark.parametrize("name", REAL)
def test_an_example_runs_on_spark(
    spark: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = ("staged", "bulk", "single_task")[REAL.index(name) % 3]
    on_spark(spark, imported(name, monkeypatch), tmp_path / "state", mode, 1)


@pytest.mark.slow
@each_example
def test_every_example_runs_on_spark(
    spark: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one of the modes, by turns; those of the quick suite in another than there."""
    mode = ("bulk", "staged", "single_task")[NAMES.index(name) % 3]
    if name in REAL:
        mode = ("bulk", "single_task", "staged")[REAL.index(name) % 3]
    on_spark(spark, imported(name, monkeypatch), tmp_path / "state", mode, 1)
