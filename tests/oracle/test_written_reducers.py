"""Reducers that somebody wrote, in columns against rows and batch, change by change."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.oracle.column_programs import Sale, epochs, sale
from tests.oracle.interrupts import instants, interrupted
from tests.oracle.written_reducers import written

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.errors import NotDeterministic
from ebbflow.flow.running import planned
from ebbflow.kernel import columns
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.testing import follow
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


def states(view: Any) -> Counter[str]:
    """How the stages of a view run, and why rows have taken over."""
    stages = view._program.machine.stages
    found = Counter(type(stage).__name__ for stage in stages)
    found.update(stage.given_up for stage in stages if stage.in_columns and stage.given_up)
    return found


def followed(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(f"written {seed}")
        plan = planned({"output": written(random).node})
        hard = random.choice([0, 0, 0, 0.02, 0.2])
        view = follow(
            lambda plan: run(plan, columns=True), plan, epochs(random, ["sales"], 12, hard)
        )
        seen += states(view)
        seen.update(line for line in view.explain().splitlines() if "in rows:" in line)
    return seen


def test_oracle_reducers_that_somebody_wrote_equal_batch_in_columns() -> None:
    seen = followed(range(40 * MORE))
    assert seen["ColumnGroupStage"] > 30, seen
    assert seen["a step that Python would refuse, or an int of more than 64 bits"] > 0, seen


@pytest.mark.slow
def test_oracle_many_reducers_that_somebody_wrote_equal_batch_in_columns() -> None:
    assert followed(range(1000, 1400))["ColumnGroupStage"] > 300


SQUARES = Reducer(
    (0, 0), lambda a, x: (a[0] + x * x, a[1] + 1), lambda a, x: (a[0] - x * x, a[1] - 1),
    result=lambda a: a[0] / a[1] if a[1] else None,
)  # fmt: skip


def some(count: int, seed: int = 0) -> ZSet[Any]:
    random = Random(seed)
    return ZSet.of(sale(random, 0) for _ in range(count))


def squares(**options: Any) -> Any:
    sales = ef.Input("sales", Sale)
    return sales.group_by("city").agg(x=SQUARES.on("price"), n=ef.max("id")).run(**options)


def test_weights_are_repeated_and_rows_that_come_and_go_at_once_are_no_steps() -> None:
    views = [squares(columns=how) for how in (True, False)]
    row, other = some(2)
    for change in ({row: 5, other: 2}, {row: -3}, [(row, 4), (row, -4), (other, -1)], {row: -2}):
        given = [view.step(sales=ZSet(change)) for view in views]
        assert given[0] == given[1]
        assert views[0].value == views[1].value
    assert states(views[0])["ColumnGroupStage"] == 1
    many = [view.step(sales={row: 5000}) for view in views]
    assert many[0] == many[1]
    assert "in rows, since a step" in views[0].explain()


def test_no_row_is_made_for_the_steps_of_a_reducer(monkeypatch: pytest.MonkeyPatch) -> None:
    view, expected = squares(columns=True), squares(columns=False)
    table = some(300).to_arrow(Sale)
    right = expected.step(sales=table).to_arrow()
    monkeypatch.setattr(columns, "decoded", None)
    change = view.step(sales=table).to_arrow()
    assert sorted(change.to_pylist(), key=str) == sorted(right.to_pylist(), key=str)


def test_a_reducer_of_the_row_as_a_whole_and_an_accumulator_that_starts_elsewhere() -> None:
    spent = Reducer(
        100, lambda left, sale: left - sale.price * 2, lambda left, sale: left + sale.price * 2
    )
    view = ef.Input("sales", Sale).group_by("city").agg(left=spent).run(columns=True)
    rome = some(1).map(lambda row: row._replace(city="Rome", price=7))
    assert view.step(sales=rome) == ZSet({("Rome", 86): 1})
    assert view.step(sales=-rome) == ZSet({("Rome", 86): -1})
    assert view.step(sales=rome) == ZSet({("Rome", 86): 1})
    assert "now      in columns" in view.explain()


def test_a_refused_epoch_leaves_accumulators_as_they_were() -> None:
    sales = ef.Input("sales", Sale)
    view = ef.program(
        sums=sales.group_by("city").agg(x=SQUARES.on("price")),
        odd=sales.map(lambda row: 1 // (row.price - 100)),
    ).run(columns=True)
    view.step(sales=some(60))
    before, gone = view.value, next(iter(some(60)))
    with pytest.raises(ef.errors.FunctionFailed):
        view.step(sales={gone._replace(price=100): 1, gone: -1})
    assert view.value == before
    view.step(sales={gone: -1})
    view.verify()
    assert states(view)["ColumnGroupStage"] == 1


def test_a_remove_that_does_not_undo_add_is_told_as_in_rows() -> None:
    wrong = Reducer(0, lambda a, x: a + x, lambda a, x: a - x + 1, partial=False)
    view = ef.Input("sales", Sale).group_by("city").agg(x=wrong.on("price")).run(columns=True)
    rows = some(3).map(lambda row: row._replace(city="Rome"))
    view.step(sales=rows)
    before = view.value
    with pytest.raises(NotDeterministic, match="its accumulator is not that of no rows"):
        view.step(sales=-rows)
    assert view.value == before


def untraced(a: Any, x: Any) -> Any:
    for _ in range(1):
        a += x
    return a


@pytest.mark.parametrize(
    ("reducer", "why"),
    [
        (Reducer(0.0, lambda a, x: a + x, lambda a, x: a - x), "its accumulator has a float"),
        (Reducer(0, lambda a, x: a + x / 2, lambda a, x: a - x / 2), "its accumulator has a"),
        (Reducer(0, untraced, lambda a, x: a - x), "the add of Reducer"),
        (Reducer(None, lambda a, x: x, lambda a, x: RECOMPUTE), "its accumulator is no int"),
        (Reducer(0, max, lambda a, x: a if a > x else RECOMPUTE), "the remove of Reducer"),
        (Reducer(0, lambda a, x: a + x), "Reducer(0, <lambda>) has no remove"),
        (Reducer((0, "a"), lambda a, x: a, lambda a, x: a), "its accumulator is no int"),
        (ef.median(), "there is no kernel for median()"),
    ],
)
def test_explain_says_why_a_reducer_is_in_rows(reducer: Any, why: str) -> None:
    sales = ef.Input("sales", Sale)
    shown = reducer.on("price").then(lambda x: float(x or 0))
    text = sales.group_by("city").agg(x=shown).run(columns=True).explain()
    assert f"in rows: {why}" in " ".join(text.split())


@pytest.mark.parametrize("apart", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_accumulators_done_or_not_done(apart: int) -> None:
    view = squares(columns=True)
    view.step(sales=some(6, 1))
    hit = {True: 0, False: 0}
    for moment in instants(1, 100_000, apart):
        change = some(3, moment) - ZSet.of(list(view.input("sales").value)[:3])
        before = view.epoch
        if not interrupted(lambda change=change: view.step(sales=change), moment, published=False):  # type: ignore[misc]
            break
        hit[view.epoch > before] += 1
        view.verify()
    assert hit[False] > 5
    assert states(view)["ColumnGroupStage"] == 1


@pytest.mark.parametrize("apart", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_while_rows_take_over_accumulators_loses_nothing(apart: int) -> None:
    first = next(iter(some(1)))._replace(city="Rome", price=2)
    large = [first._replace(price=2**40), first._replace(city="Oslo")]
    for moment in instants(1, 100_000, apart):
        view = squares(columns=True)
        view.step(sales=[first])
        cut = interrupted(lambda: view.step(sales=large), moment, published=False)  # noqa: B023
        if view.epoch == 1:
            view.step(sales=large)
        view.step(sales=[first._replace(city="Oslo", price=5)])
        view.verify()
        if not cut:
            break
    assert moment > 4 * apart
    assert "in rows, since" in view.explain()
