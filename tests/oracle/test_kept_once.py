"""Joins that read rows of inputs as the inputs keep them, against joins with rows of their own, and
against recomputing."""

from __future__ import annotations

import os
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.interrupts import instants, interrupted

import ebbflow as ef
from ebbflow.engine import local
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.kept_once import KeyedArrangeStage
from ebbflow.errors import EbbflowError
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
HARD = (1, 0, -0.0, 1.5, None, float("nan"), 2**62, -(2**63))


class Line(NamedTuple):
    order: int
    number: int
    part: int
    price: float | None
    note: str


class Order(NamedTuple):
    id: int
    buyer: int
    day: int


class Part(NamedTuple):
    part: int
    name: str


lines = ef.Input("lines", Line, key=("order", "number"))
orders = ef.Input("orders", Order, key="id")
parts = ef.Input("parts", Part, key="part")
few = lines.select("order", "part", "price")
late = orders.filter(lambda row: row.day > 1).select("id", "buyer")
PROGRAMS = {
    "by the key of one": few.join(orders, left_on="order", right_on="id"),
    "both narrow": few.join(late, left_on="order", right_on="id"),
    "keys in the rows": lines.select("order", "number", "part").join(parts, on="part"),
    "right is wide": parts.join(lines.select("part", "price"), on="part"),
    "filters behind": few.join(parts, on="part").filter(lambda row: row.order != row.part),
    "itself": lines.select("order", "part").join(
        lines.select("order", "number"), on="order", suffixes=("", "_too")
    ),
    "the same rows on both sides": orders.join(orders, on="buyer", suffixes=("", "_too")),
    "semi": few.join(late, left_on="order", right_on="id", how="semi"),
    "anti": few.join(parts.filter(lambda row: row.name == "a"), on="part", how="anti"),
    "semi of whole rows": lines.join(late, left_on="order", right_on="id", how="semi"),
    "left": few.join(parts, on="part", how="left"),
    "full": orders.select("id", "day").join(
        lines.select("order", "price"), left_on="id", right_on="order", how="full"
    ),
    "cross": late.cross(parts.select("name")),
    "a chain": few.join(parts.select("part"), on="part", how="semi")
    .join(orders, left_on="order", right_on="id")
    .group_by("buyer")
    .agg(n=ef.count(), days=ef.sum("day")),
    "left, and a reduce": orders.select("id")
    .join(lines.group_by("order").agg(n=ef.count()), left_on="id", right_on="order", how="left")
    .select("id", n=lambda row: 0 if row.n is None else row.n)
    .group_by("n")
    .agg(m=ef.count()),
    "full, and a reduce": orders.select("id", "day")
    .join(few, left_on="id", right_on="order", how="full")
    .group_by("day")
    .agg(m=ef.count(), parts=ef.sum("part")),
    "a filter, and a reduce": few.join(parts, on="part")
    .filter(lambda row: row.order != row.part)
    .group_by("name")
    .agg(m=ef.count(), least=ef.sum("order")),
    "semi, and a reduce": few.join(late, left_on="order", right_on="id", how="semi")
    .group_by("part")
    .agg(m=ef.count()),
    "most of groups": parts.join(
        lines.group_by("part").agg(most=ef.max("order"), n=ef.count()), on="part"
    ),
    "groups by two fields": lines.group_by("part", "order")
    .agg(n=ef.count())
    .join(few, on=("part", "order")),
    "groups by another field": lines.group_by("order")
    .agg(part=ef.max("part"))
    .join(parts, on="part"),
    "several outputs": ef.program(
        one=few.join(parts, on="part"), two=few.join(orders, left_on="order", right_on="id"),
        three=few,
    ),
    "a key that is computed": lines.join(
        parts, left_on=lambda row: row.part + row.number, right_on="part", suffixes=("", "_too")
    ),
    "a function that nobody can look into": lines.filter(lambda row: len(row.note) > 0)
    .select("part", "note")
    .join(parts, on="part", select=lambda line, part: (hash(line.note) % 2, part.name)),
}  # fmt: skip


def row(dice: Random, name: str) -> Any:
    if name == "lines":
        return Line(
            dice.randrange(5), dice.randrange(3), dice.randrange(4), dice.choice(HARD),
            dice.choice(("x", "yy", "")),
        )  # fmt: skip
    if name == "orders":
        return Order(dice.randrange(5), dice.randrange(3), dice.randrange(4))
    return Part(dice.randrange(4), dice.choice("ab"))


KEYS = {"lines": lambda row: row[:2], "orders": lambda row: row.id, "parts": lambda row: row.part}


def epoch(dice: Random, there: dict[str, ZSet[Any]], much: bool) -> dict[str, ZSet[Any]]:
    """Rows that come, go, and take the places of others; sometimes nearly all go."""
    change = {}
    for name, rows in there.items():
        gone = [old for old in rows if dice.random() < (0.95 if much else 0.25)]
        left = {KEYS[name](old) for old in rows if old not in gone}
        new = {KEYS[name](each): each for each in (row(dice, name) for _ in range(5))}
        fresh = [each for key, each in new.items() if key not in left]
        if dice.random() < 0.9:
            change[name] = ZSet.of(fresh) - ZSet.of(gone)
    return change


def unshared(monkeypatch: pytest.MonkeyPatch, program: Any, **options: Any) -> Any:
    """A view whose joins have rows of their own."""
    with monkeypatch.context() as patched:
        patched.setattr(local, "use_memory", lambda program: None)
        return program.run(columns=False, **options)


def reads_inputs(view: Any) -> bool:
    stages = view._program.machine.stages
    return any(isinstance(stage, KeyedArrangeStage) for stage in stages)


@pytest.mark.parametrize("check_input", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_oracle_rows_kept_once_equal_rows_of_their_own_and_batch(
    name: str, check_input: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3 * MORE):
        dice = Random(f"{name} {seed}")
        view = PROGRAMS[name].run(columns=False, check_input=check_input)
        other = unshared(monkeypatch, PROGRAMS[name], check_input=check_input)
        assert reads_inputs(view)
        assert not reads_inputs(other)
        there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources}
        for number in range(40):
            change = epoch(dice, there, number % 13 == 12)
            there = {each: rows + change.get(each, ZSet()) for each, rows in there.items()}
            assert view.step(change) == other.step(change)
            expected = evaluate(view.plan, there)
            value = view.value
            assert (value if isinstance(value, dict) else {"": value}) == (
                expected if isinstance(value, dict) else {"": next(iter(expected.values()))}
            )


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "several outputs"])
def test_a_refused_epoch_leaves_everything_as_it_was(name: str) -> None:
    fails = ef.Input("fails", int).map(lambda n: 1 // n)
    dice, view = Random(name), ef.program(one=PROGRAMS[name], fails=fails).run(columns=False)
    there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources if each != "fails"}
    for number in range(30):
        change = epoch(dice, there, number % 13 == 12)
        before = [repr(sorted(map(repr, each.contents.items()))) for each in containers(view)]
        with pytest.raises(EbbflowError):
            view.step({**change, "fails": [0]})
        after = [repr(sorted(map(repr, each.contents.items()))) for each in containers(view)]
        assert after == before or unordered(after) == unordered(before)
        there = {each: rows + change.get(each, ZSet()) for each, rows in there.items()}
        view.step(change)
        assert view.value["one"] == evaluate(view.plan, {**there, "fails": ZSet()})["one"]


def unordered(texts: list[str]) -> list[list[str]]:
    """Texts whose parts may have changed places: a row that comes back comes last."""
    return [sorted(text) for text in texts]


def containers(view: Any) -> list[Any]:
    return [each for stage in view._program.machine.stages for each in stage.containers]


INTERRUPTED = ["both narrow", "semi", "full", "right is wide", "left, and a reduce"]


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_anywhere_leaves_an_epoch_done_or_not_done(name: str) -> None:
    raised = 0
    for point in instants(3, 4_000, 353 // MORE or 1):
        dice = Random(f"{name} {point}")
        view = PROGRAMS[name].run(columns=False)
        there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources}
        for number in range(3):
            change = epoch(dice, there, much=False)
            points = [point] if number == 1 else []
            before = view.epoch
            raised += interrupted(lambda: view.step(change), *points, published=False)  # noqa: B023
            if view.epoch > before:
                there = {each: rows + change.get(each, ZSet()) for each, rows in there.items()}
            assert [view.value] == list(evaluate(view.plan, there).values())
        view.verify()
    assert raised > 4


@pytest.mark.parametrize("name", PROGRAMS)
def test_oracle_branches_are_what_they_would_be_alone(name: str) -> None:
    dice = Random(f"branches {name}")
    view = PROGRAMS[name].run()
    there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources}
    for number in range(8):
        branch = view.branch()
        for own in (branch, view):
            mine = there
            for _ in range(2):
                change = epoch(dice, mine, number == 5)
                mine = {each: rows + change.get(each, ZSet()) for each, rows in mine.items()}
                own.step(change)
            value = own.value
            expected = evaluate(view.plan, mine)
            assert list(value.values() if isinstance(value, dict) else [value]) == list(
                expected.values()
            )
            own.verify()
        there = mine
