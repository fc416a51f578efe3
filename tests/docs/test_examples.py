"""Every example program tells its story, and is right under changes that its author never saw.

A file of `examples/` that has a `program` is picked up by itself. It is asked to

- print, run as a script, what is in `tests/docs/golden`; after a change that is meant, write that
  anew with `EBBFLOW_GOLDEN=write pytest tests/docs/test_examples.py`, and read the difference;
- give, under random changes and after every epoch, what `ebbflow.engine.batch` computes from
  scratch from all the rows there are;
- use reducers and operators that obey their laws.

The rows of the random changes are those of its `start`, as they are or altered in one field: the
new value is that of another row, or close to the old one.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from types import FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.engine import local
from ebbflow.flow.plan import Concat, Plan
from ebbflow.laws import check, judge
from ebbflow.laws.check import lawful
from ebbflow.testing import follow, random_epochs
from ebbflow.testing.epochs import plan_of

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = Path(__file__).parent / "golden"
EPOCHS = 40

METHODS = {
    "map", "filter", "flat_map", "select", "join", "cross", "union", "intersect", "except_",
    "distinct", "group_by", "agg", "reduce", "top_k", "tumbling", "sliding", "session", "through",
    "Input", "program", "run", "explain", "step", "value", "input", "add", "remove", "apply",
    "upsert", "delete", "on_change", "changes", "verify", "stats", "epoch", "close",
}  # fmt: skip


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def has_a_program(path: Path) -> bool:
    tops = ast.parse(path.read_text(encoding="utf-8")).body
    targets = [target for top in tops if isinstance(top, ast.Assign) for target in top.targets]
    return "program" in [getattr(target, "id", "") for target in targets]


PATHS = sorted(filter(has_a_program, EXAMPLES.glob("*.py")))
MODULES = {path.stem: load(path) for path in PATHS}
LAWFUL = {
    f"{name}:{thing}": value for name, module in MODULES.items() for thing, value in lawful(module)
}
each_example = pytest.mark.parametrize("name", MODULES)


# ---- stories ----


@each_example
def test_an_example_tells_its_story(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": str(len(name)), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("EBBFLOW_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == golden.read_text(encoding="utf-8")


def test_there_are_many_and_each_has_its_story_and_its_line_in_the_index() -> None:
    assert len(MODULES) >= 15
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(MODULES)
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\[`(\w+\.py)`\]\(\1\)", index)
    assert sorted(linked) == sorted(path.name for path in EXAMPLES.glob("*.py"))


# ---- random changes ----


def rows_like(known: list[Any]) -> Callable[[Random], Any]:
    """Rows out of the known ones, every other one altered in one field."""

    def row(dice: Random) -> Any:
        one = dice.choice(known)
        if dice.random() < 0.5:
            return one
        if not hasattr(one, "_replace"):
            return altered(one, dice)
        field = dice.choice(one._fields)
        if dice.random() < 0.5:
            return one._replace(**{field: getattr(dice.choice(known), field)})
        return one._replace(**{field: altered(getattr(one, field), dice)})

    return row


def altered(value: Any, dice: Random) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + dice.choice([-30, -1, 1, 10])
        case float():
            return value + dice.choice([-0.3, 0.1, 2.5])
        case Decimal():
            return value + dice.choice([Decimal("-0.01"), Decimal("2.50")])
        case date():
            return value + timedelta(days=dice.choice([-3, 1, 40]))
        case str():
            return value + dice.choice("ab")
    return value


def changes(module: ModuleType, seed: int) -> Iterator[dict[str, ef.ZSet[Any]]]:
    """Random epochs; in the last, whatever is there goes."""
    rows = {name: rows_like(known) for name, known in module.start.items()}
    there = {name: ef.ZSet() for name in rows}
    dice = Random(f"{module.__name__} {seed}")
    for epoch in random_epochs(module.program, dice, EPOCHS, size=6, rows=rows):
        for name, change in epoch.items():
            there[name] += change
        yield epoch
    yield {name: -every for name, every in there.items()}


@each_example
@pytest.mark.parametrize("seed", range(2))
def test_an_example_is_right_under_random_changes(name: str, seed: int) -> None:
    module = MODULES[name]
    seen = []

    def run(plan: Plan) -> Any:
        view = local.run(plan)
        view.on_change(seen.append)
        return view

    view = follow(run, module.program, changes(module, seed))
    assert set(view.plan.sources) == set(module.start)
    view.verify()
    values = view.value if isinstance(view.value, dict) else {"output": view.value}
    assert not any(values.values()), "all input is gone, and something is left"
    assert len(seen) > EPOCHS / 2, "most changes do not reach the outputs: is `start` too poor?"
    outputs = [change if isinstance(change, dict) else {"output": change} for change in seen]
    assert {each for moved in outputs for each in moved if moved[each]} == set(values)


# ---- laws ----


@pytest.mark.parametrize("name", LAWFUL)
def test_the_reducers_and_operators_of_the_examples_obey_their_laws(name: str) -> None:
    thing, (known, *_) = LAWFUL[name], MODULES[name.partition(":")[0]].start.values()
    if isinstance(thing, ef.Reducer):
        verdict = judge(thing, elements=thing.elements or known, examples=60).verdict
        assert verdict == ("partial" if name == "auctions:second_price" else "invertible")
    else:
        rows = st.sampled_from(known)
        bags = st.lists(rows, max_size=6).map(ef.ZSet.of)
        moves = st.dictionaries(rows, st.integers(-2, 2), max_size=4).map(ef.ZSet)
        assert check(thing, inputs=bags, changes=moves, examples=60).laws


# ---- together ----


def test_together_they_use_every_method_twice_and_many_reducers() -> None:
    used: Counter[str] = Counter()
    signs: Counter[int] = Counter()
    for path in PATHS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                used[node.attr] += 1
            elif isinstance(node, ast.keyword) and node.arg == "how":
                used[f"how={node.value.value}"] += 1  # type: ignore[attr-defined]
    outputs = [node for module in MODULES.values() for node in plan_of(module.program).nodes()]
    for node in outputs:
        if isinstance(node, Concat):
            signs.update(node.signs)
    wanted = METHODS | {f"how={how}" for how in ("left", "right", "full", "semi", "anti")}
    assert not [name for name in sorted(wanted) if used[name] < 2]
    assert min(signs[1], signs[-1]) >= 2
    library = {name for name in ef.__all__ if isinstance(getattr(ef, name), FunctionType)}
    assert len({name for name in library if used[name]} - {"program", "linear"}) >= 12
