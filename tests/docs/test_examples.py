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
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
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
from ebbflow.testing import follow
from ebbflow.testing.epochs import plan_of

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = Path(__file__).parent / "golden"
SEEDS, EPOCHS = 3, 40
VERDICTS = {"auctions:second_price": "partial", "points_to:join": "tree"}

METHODS = {
    "map", "filter", "flat_map", "select", "join", "cross", "union", "intersect", "except_",
    "distinct", "group_by", "agg", "reduce", "top_k", "tumbling", "sliding", "session", "through",
    "iterate", "Input", "program", "run", "explain", "step", "value", "input", "add", "remove",
    "apply", "upsert", "delete", "edit", "on_change", "changes", "verify", "stats", "epoch",
    "close",
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


TELL = """
import contextlib, io, json, runpy, sys, traceback
told, paths = {}, sys.argv[1:]
for path in paths:
    sys.argv, text = [path], io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_path(path, run_name="__main__")
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code:
            text.write(traceback.format_exc())
    told[path] = text.getvalue()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the examples print, as scripts in one process, where sets have an order of their own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TELL, *map(str, sorted(EXAMPLES.glob("*.py")))],
        cwd=tmp_path_factory.mktemp("stories"),
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return {Path(path).stem: text for path, text in json.loads(done.stdout).items()}


@each_example
def test_an_example_tells_its_story(name: str, stories: dict[str, str]) -> None:
    assert "Traceback" not in stories[name], stories[name]
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("EBBFLOW_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(stories[name], encoding="utf-8")
    assert stories[name] == golden.read_text(encoding="utf-8")


def test_those_without_a_program_run_too(stories: dict[str, str]) -> None:
    others = stories.keys() - MODULES.keys()
    assert others == {"demo", "judged_reducers", "tcp"}
    assert not [name for name in others if not stories[name] or "Traceback" in stories[name]]


def test_there_are_many_and_each_has_its_story_and_its_line_in_the_index() -> None:
    assert len(MODULES) >= 15
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(MODULES)
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\[`(\w+\.py)`\]\(\1\)", index)
    assert sorted(linked) == sorted(path.name for path in EXAMPLES.glob("*.py"))


# ---- random changes ----


class Rows:
    """The rows of one input, and random changes of them that are valid."""

    def __init__(self, key: Any, known: list[Any], dice: Random) -> None:
        self.key = key
        self.known = known
        self.dice = dice
        self.there = Counter(known)

    def change(self) -> ef.ZSet[Any]:
        """A few rows put in, again or altered, taken away, or replaced."""
        before = ef.ZSet(self.there)
        for _ in range(self.dice.randint(1, 4)):
            what = self.dice.choice(["put", "put", "take", "replace", "replace"])
            row = self.dice.choice(self.known if what == "put" or not self.there else [*self.there])
            if what != "put":
                self.there -= Counter([row])
            if what != "take":
                self.put(self.like(row))
        return ef.ZSet(self.there) - before

    def put(self, row: Any) -> None:
        if self.key is not None:
            for other in [each for each in self.there if self.key(each) == self.key(row)]:
                del self.there[other]
        self.there[row] += 1

    def like(self, row: Any) -> Any:
        """The row, or one that differs from it in one field."""
        how = self.dice.choice(["same", "as another", "near"])
        if how == "same":
            return row
        if not hasattr(row, "_replace"):
            return self.dice.choice(self.known) if how == "as another" else altered(row, self.dice)
        field = self.dice.choice(row._fields)
        if how == "as another":
            return row._replace(**{field: getattr(self.dice.choice(self.known), field)})
        return row._replace(**{field: altered(getattr(row, field), self.dice)})


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
    """The rows it starts with, random changes, and at last everything goes."""
    dice = Random(f"{module.__name__} {seed}")
    sources = plan_of(module.program).sources
    rows = {name: Rows(sources[name].key, known, dice) for name, known in module.start.items()}
    yield {name: ef.ZSet.of(known) for name, known in module.start.items()}
    for _ in range(EPOCHS):
        some = dice.sample(sorted(rows), dice.randint(1, len(rows)))
        yield {name: rows[name].change() for name in some}
    yield {name: -ef.ZSet(each.there) for name, each in rows.items()}


@each_example
def test_an_example_is_right_under_random_changes(name: str) -> None:
    module, plan = MODULES[name], plan_of(MODULES[name].program)
    assert set(plan.sources) == set(module.start)
    moved: Counter[str] = Counter()

    def run(plan: Plan) -> Any:
        view = local.run(plan)
        for output in plan.outputs:
            view[output].on_change(lambda _, output=output: moved.update([output]))
        return view

    for seed in range(SEEDS):
        view = follow(run, plan, changes(module, seed))
        view.verify()
        left = [rows for output in plan.outputs if (rows := view[output].value)]
        assert not left, "all input is gone, and something is left"
    few = [output for output in plan.outputs if moved[output] < SEEDS * EPOCHS / 20]
    assert not few, "random changes hardly reach these outputs: is `start` too poor?"


# ---- laws ----


@pytest.mark.parametrize("name", LAWFUL)
def test_the_reducers_and_operators_of_the_examples_obey_their_laws(name: str) -> None:
    thing, known = LAWFUL[name], [*MODULES[name.partition(":")[0]].start.values()][-1]
    if isinstance(thing, ef.Reducer):
        verdict = judge(thing, elements=thing.elements or known, examples=60).verdict
        assert verdict == VERDICTS.get(name, "invertible")
    else:
        rows = st.sampled_from(known)
        bags = st.lists(rows, max_size=6).map(ef.ZSet.of)
        moves = st.dictionaries(rows, st.integers(-2, 2), max_size=4).map(ef.ZSet)
        assert check(thing, inputs=bags, changes=moves, examples=25).laws


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
    for module in MODULES.values():
        for step in plan_of(module.program).nodes():
            signs.update(step.signs if isinstance(step, Concat) else ())
    wanted = METHODS | {f"how={how}" for how in ("left", "right", "full", "semi", "anti")}
    assert not [name for name in sorted(wanted) if used[name] < 2]
    assert min(signs[1], signs[-1]) >= 2
    library = {name for name in ef.__all__ if isinstance(getattr(ef, name), FunctionType)}
    assert len({name for name in library if used[name]} - {"program", "linear"}) >= 12
