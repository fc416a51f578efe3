"""Spark against batch: a few programs with every kind of node, on a real session, in every mode."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyarrow.parquet import read_table
from tests.spark.forms import FORMS, some_form

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.tasks.transport import add
from ebbflow.engine.spark.view import SparkView
from ebbflow.errors import AbsentRow, EbbflowError
from ebbflow.flow import plan
from ebbflow.flow.plan import Concat, Node, Plan, Reduce, Semi, Source
from ebbflow.flow.program import Program
from ebbflow.record import type_text
from ebbflow.testing import random_epochs, random_program
from ebbflow.testing.programs import Tag
from ebbflow.zset import ZSet, trusted, without_zeros

MODES = ["single_task", "staged", "bulk"]
each_mode = pytest.mark.parametrize("mode", MODES)
Outputs = dict[str, ZSet[Any]]


def kind(node: Node) -> str:
    """What a node is, as far as engines treat it in another way."""
    match node:
        case Source():
            return "input by key" if node.key else f"input of {type_text(node.type)}"
        case Semi():
            return "anti" if node.anti else "semi"
        case Concat():
            return "minus" if -1 in node.signs else "plus"
        case Reduce():
            reducer = node.reducer
            return f"{type(reducer).__name__} {'in groups' if node.key else 'of all'}"
    return type(node).__name__


def kinds(program: Program) -> set[str]:
    return {kind(node) for node in program.plan.nodes()}


def covering(seeds: Iterable[int], count: int) -> list[int]:
    """Seeds of programs that have every kind of node between them, then those with most kinds."""
    found = {seed: kinds(random_program(seed)) for seed in seeds}
    missing, chosen = set[str]().union(*found.values()), list[int]()
    while len(chosen) < count:
        best = max(found, key=lambda seed: (len(found[seed] & missing), len(found[seed]), -seed))
        missing -= found.pop(best)
        chosen.append(best)
    assert not missing
    return chosen


CHOSEN = [105, 26, 73, 84, 100, 32]
"""Those that cover 200 programs; to look for them takes a second in each process."""


def epochs_of(program: Program, dice: Random, first: int, then: int) -> list[Any]:
    """Much at first, then a little of everything that can be done."""
    made = random_epochs(program, dice, first + then)
    load: Outputs = {}
    for epoch in made[:first]:
        load = {
            name: load.get(name, ZSet()) + epoch.get(name, ZSet()) for name in {**load, **epoch}
        }
    return [load, *made[first:]]


def by_output(plan: Plan, found: Any) -> Outputs:
    """DataFrames with weights as ZSets, by output."""
    if len(plan.outputs) == 1:
        found = dict.fromkeys(plan.outputs, found)
    return {name: zset_of(found[name], node.type) for name, node in plan.outputs.items()}


def changed(view: Any, frames: Any, by_spark: bool) -> Outputs:
    """What an epoch changed, by output: as Spark reads it, or from the files, which is faster."""
    if by_spark or view.last.derived:
        return by_output(view.plan, frames)
    found: Outputs = {}
    for name, node in view.plan.outputs.items():
        total: dict[Any, int] = {}
        for file, _ in view.last.changes.get(name, ()):
            add(total, *from_arrow(read_table(f"{view.path}/changes/{file}"), node.type))
        found[name] = trusted(without_zeros(total))
    return found


def followed(
    spark: Any, program: Program, path: Path, mode: str, epochs: list[Any], check: bool = True
) -> list[str]:
    """Run a program on Spark and by batch, and compare what changes after every epoch and what is
    there in the end. Changes are given in all forms. The modes that the epochs ran in. (Random
    programs have outputs of no type, which `run` refuses; the view itself follows them.)"""
    plan, modes, dice = program.plan, list[str](), Random(mode)
    inputs: Outputs = {}
    with SparkView(plan, spark, Options(path, mode=mode, buckets=2), check) as view:
        total: Outputs = {name: ZSet() for name in plan.outputs}
        for epoch in epochs:
            after = {name: inputs.get(name, ZSet()) + change for name, change in epoch.items()}
            try:
                expected = evaluate(plan, {**inputs, **after})
            except EbbflowError:
                with pytest.raises(EbbflowError):
                    view.step(epoch)
                continue
            given = {
                name: some_form(change, plan.sources[name].type, dice, FORMS, spark)
                for name, change in epoch.items()
            }
            inputs.update(after)
            moved = changed(view, view.step(given), by_spark=epoch is epochs[-1])
            modes.append(view.last.mode)
            total = {name: rows + moved[name] for name, rows in total.items()}
            wrong = mismatch(expected, total)
            assert wrong is None, f"epoch {view.epoch} in mode {modes[-1]}\n{wrong}\n{program}"
        wrong = mismatch(expected, by_output(plan, view.weighted))
        assert wrong is None, f"the value\n{wrong}\n{program}"
    return modes


RUNS = [(seed, mode) for i, seed in enumerate(CHOSEN) for mode in MODES[(0, 1, 1, 2, 2, 2)[i] :]]
"""All in bulk, which nothing but a session can do; the other modes have `test_oracle` as well."""


@pytest.mark.parametrize(("seed", "mode"), RUNS)
def test_oracle_spark_equals_batch(spark: Any, tmp_path: Path, seed: int, mode: str) -> None:
    program = random_program(seed)
    epochs = epochs_of(program, Random(seed), 12, 2)
    modes = followed(spark, program, tmp_path / "state", mode, epochs, check=seed % 4 > 0)
    assert modes[0] == mode


def test_the_programs_have_every_kind_of_node() -> None:
    assert covering(range(200), 6) == CHOSEN
    seen = {type(node) for seed in CHOSEN for node in random_program(seed).plan.nodes()}
    made = [each for each in vars(plan).values() if isinstance(each, type)]
    wanted = {each for each in made if issubclass(each, Node) and "verb" in vars(each)}
    elsewhere = {plan.Fused, plan.Iterate, plan.LoopInput}  # by rewriting; test_loops_session
    assert wanted - elsewhere <= seen


# ---- what Spark's SQL computes in a load ----


class Order(NamedTuple):
    id: int
    who: int
    city: str
    price: int
    tax: float
    note: str | None


class Person(NamedTuple):
    id: int
    home: str | None


def orders_of(dice: Random, count: int) -> list[Order]:
    cities = ["Rome", "Oslo", "", "São Paulo"]
    return [
        Order(
            dice.randrange(count // 2),
            dice.randrange(20),
            dice.choice(cities),
            dice.randrange(-50, 50),
            dice.choice([0.0, -0.0, 0.25, 1e9]),
            dice.choice([None, "a", "b "]),
        )
        for _ in range(count)
    ]


def shop() -> Program:
    """Everything that can be a native query, and what comes behind it."""
    orders, people = ef.Input("orders", Order), ef.Input("people", Person, key="id")
    dear = orders.filter(lambda order: order.price > 10)
    met = dear.join(people, left_on="who", right_on="id", select=lambda o, p: (o.city, p.home))
    joined = orders.select("who", "price").join(
        people, left_on="who", right_on="id", select=lambda o, p: Person(o.price, p.home)
    )
    by_city = orders.group_by("city")
    return ef.program(
        dear=dear,
        sums=by_city.agg(total=ef.sum("price")),
        counts=by_city.agg(n=ef.count()),
        noted=by_city.agg(n=ef.count("note")),
        figures=by_city.agg(n=ef.count(), total=ef.sum("price"), mean=ef.mean("price")),
        pairs=orders.group_by("city", "note").agg(total=ef.sum("price")),
        taxes=orders.group_by("tax").agg(n=ef.count(), total=ef.sum("tax")),
        parity=orders.group_by(lambda order: order.price % 2).agg(total=ef.sum("price")),
        all=orders.agg(total=ef.sum("price"), most=ef.max("price")),
        most=by_city.agg(most=ef.max("price")),
        met=met,
        homes=joined.group_by("home").agg(total=ef.sum("id")),
        lost=orders.join(people, left_on="who", right_on="id", how="anti"),
        notes=orders.map(lambda order: order.note, type=str | None).distinct(),
        top=orders.top_k(3, order="price", per="city"),
        both=orders.map(lambda o: Person(o.who, o.note), type=Person) + people,
    )


@pytest.mark.parametrize(
    "check", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["checked", "trusted"]
)
def test_oracle_a_load_by_sql_is_right_and_goes_on_by_changes(
    spark: Any, tmp_path: Path, check: bool
) -> None:
    dice = Random(5)
    rows = orders_of(dice, 400)
    people = [Person(i, dice.choice(["Rome", None, "Oslo"])) for i in range(15)]
    gone = dice.sample(sorted(set(rows), key=repr), 60)
    epochs = [
        {"orders": ZSet.of(rows), "people": ZSet.of(people)},
        {
            "orders": ZSet.of(orders_of(dice, 20)) - ZSet.of(gone),
            "people": ZSet(
                {people[0]: -1, people[1]: -1, Person(1, "Lima"): 1, Person(17, None): 1}
            ),
        },
    ]
    modes = followed(spark, shop(), tmp_path / "state", "bulk", epochs, check)
    assert modes == ["bulk", "bulk"]


@pytest.mark.parametrize(
    "change",
    [{"a": ZSet({Tag(1, 1): -1, Tag(2, 2): 1}), "b": ZSet.of([Tag(1, 5)])}],
    ids=["join"],
)
def test_a_load_that_takes_away_what_is_not_there_is_refused(
    spark: Any, tmp_path: Path, change: Any
) -> None:
    joined = ef.Input("a", Tag).join(
        ef.Input("b", Tag), on="k", select=lambda left, right: (left.w, right.w)
    )
    with joined.run(ef.spark(spark, path=tmp_path, mode="bulk", buckets=2)) as view:
        with pytest.raises(AbsentRow):
            view.step(change)
        assert view.epoch == 0


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("seed", range(300, 304))
def test_oracle_more_programs_on_spark(spark: Any, tmp_path: Path, seed: int, mode: str) -> None:
    program = random_program(seed)
    epochs = epochs_of(program, Random(seed), 30, 4)
    followed(spark, program, tmp_path / "state", mode, epochs, check=seed % 4 > 0)
