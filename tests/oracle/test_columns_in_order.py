"""Stages in columns that need an order, against batch, change by change: the first rows of each
key, and the reducers that show the first value or the last."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.oracle.column_programs import Sale, sale, shop
from tests.oracle.interrupts import instants, interrupted
from tests.oracle.ordered_programs import ends, top

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.columnar import forgetting
from ebbflow.flow.running import planned
from ebbflow.kernel import ranked
from ebbflow.testing import follow
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
KEPT, FEW_GONE = forgetting.MANY, ranked.FEW_GONE
TEXTS = ["Rome", "Oslo", "", "Łódź", "Rom", "Rome\0", "Rome-Fiumicino", "Rome-Ciampino", "\ud800"]


@pytest.fixture(autouse=True)
def settings_again() -> Iterator[None]:
    yield
    forgetting.MANY, ranked.FEW_GONE = KEPT, FEW_GONE


def odd_sale(random: Random, hard: float) -> Sale:
    made = sale(random, hard)._replace(city=random.choice(TEXTS))
    large = random.random() < hard / 20
    return made._replace(price=random.choice([2**70, -(2**63)])) if large else made


def epochs(
    random: Random, names: list[str], count: int, hard: float
) -> Iterator[dict[str, ZSet[Any]]]:
    """Changes in which rows come and go several at a time, also all of them."""
    there: dict[str, dict[Any, int]] = {name: {} for name in names}
    make: dict[str, Any] = {"sales": odd_sale, "shops": shop}
    for _ in range(count):
        epoch: dict[str, ZSet[Any]] = {}
        for name in random.sample(names, random.randrange(1, 1 + len(names))):
            change: Counter[Any] = Counter()
            for _ in range(random.choice([0, 1, 2, 9, 30])):
                change[make[name](random, hard)] += random.choice([1, 1, 1, 2, 5])
            every = random.random() < 0.1
            for row, weight in there[name].items():
                if every or random.random() < 0.2:
                    change[row] -= weight if every else random.randrange(1, 1 + weight)
            rows = ZSet(there[name]) + ZSet(change)
            there[name] = dict(rows.items())
            epoch[name] = ZSet(change)
        yield epoch


def followed(made: Any, seeds: range, stage: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        forgetting.MANY = KEPT if seed % 2 else -100  # texts are forgotten after every epoch
        ranked.FEW_GONE = random.choice([0, FEW_GONE])
        plan = planned({"output": made(random).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.02, 0.2])
        view = follow(
            lambda plan, check=check: run(plan, columns=True, check_input=check),  # type: ignore[misc]
            plan, epochs(random, list(plan.sources), 12, hard),
        )  # fmt: skip
        for each in view._program.machine.stages:
            seen[type(each).__name__] += 1
            if type(each).__name__ == stage:
                seen["to the end"] += not each.given_up
    return seen


def test_oracle_the_first_rows_in_columns_equal_batch() -> None:
    seen = followed(top, range(80 * MORE), "ColumnTopStage")
    assert seen["ColumnTopStage"] > 50 * MORE, seen
    assert seen["to the end"] > 40 * MORE, seen


def test_oracle_the_first_and_last_values_of_groups_in_columns_equal_batch() -> None:
    seen = followed(ends, range(80 * MORE), "ColumnGroupStage")
    assert seen["ColumnGroupStage"] > 50 * MORE, seen
    assert seen["to the end"] > 40 * MORE, seen


def some(count: int, seed: int) -> ZSet[Any]:
    random = Random(seed)
    return ZSet.of(odd_sale(random, 0) for _ in range(count))


def program(**more: Any) -> Any:
    """Tops and ends of all kinds, with what is behind them."""
    sales = ef.Input("sales", Sale)
    best = sales.top_k(2, order="price", per="city")
    return ef.program(
        best=best,
        page=sales.limit(3, order=("city", ef.desc("rate")), offset=2),
        sums=best.group_by("city").agg(n=ef.count(), sum=ef.sum("price")),
        ends=sales.group_by("paid").agg(
            low=ef.min("city"), last=ef.last("city", order="day"), best=ef.arg_max("rate", "id")
        ),
        **more,
    )


def test_a_refused_epoch_leaves_what_is_in_order_as_it_was() -> None:
    odd = ef.Input("sales", Sale).map(lambda r: 1 // (r.price - 100))
    view = program(odd=odd).run(columns=True)
    there: ZSet[Any] = ZSet()
    for seed in range(30):
        before = view.value
        wrong = odd_sale(Random(seed), 0)._replace(price=100)
        gone = ZSet.of(list(there)[: seed % 7])
        with pytest.raises(ef.errors.FunctionFailed):
            view.step(sales=some(9, 100 + seed) - gone + ZSet.of([wrong]))
        assert view.value == before
        change = some(5, seed) - gone
        view.step(sales=change)
        there += change
        view.verify()
    stages = [each for each in view._program.machine.stages if each.in_columns]
    assert not [each.given_up for each in stages if each.given_up]
    assert {"ColumnTopStage", "ColumnGroupStage"} <= {type(each).__name__ for each in stages}


@pytest.mark.parametrize("apart", [43, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_what_is_in_order_done_or_not_done(apart: int) -> None:
    view = program().run(columns=True)
    hit = {True: 0, False: 0}
    view.step(sales=some(12, 1))
    for moment in instants(1, 100_000, apart):
        forgetting.MANY = KEPT if moment % 2 else -100
        there = view.input("sales").value
        change = some(40 if moment % 3 else 4, moment) - ZSet.of(list(there)[:20])
        before = view.epoch
        if not interrupted(
            lambda change=change: view.step(sales=change), moment, published=False  # type: ignore[misc]
        ):  # fmt: skip
            break
        hit[view.epoch > before] += 1
        view.verify()
    assert hit[False] > 10
    assert hit[True] > 0 or apart > 1


@pytest.mark.parametrize("apart", [997, pytest.param(29, marks=pytest.mark.slow)])
def test_an_interrupt_while_rows_take_over_what_is_in_order_loses_nothing(apart: int) -> None:
    large = {"sales": [odd_sale(Random(1), 0)._replace(price=2**63), *some(2, 7)]}
    for moment in instants(1, 100_000, apart):
        view = program().run(columns=True)
        view.step(sales=some(20, 2))
        cut = interrupted(lambda: view.step(large), moment, published=False)  # noqa: B023
        if view.epoch == 1:
            view.step(large)
        view.step(sales=some(3, 9) - some(5, 2))
        view.verify()
        if not cut:
            break
    assert moment > 8 * apart
    assert "in rows, since" in view.explain()


def test_texts_that_nothing_in_order_has_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "MANY", 50)
    monkeypatch.setattr(ranked, "FEW_GONE", 20)
    view, old, known = program().run(columns=True), ZSet[Any](), []
    for epoch in range(40):
        new = ZSet.of(
            row._replace(city=f"{epoch}-{at}") for at, row in enumerate(some(20, epoch))
        )  # fmt: skip
        view.step(sales=(new - old).to_arrow(Sale))
        old = new
        (texts,) = {each.texts for each in view._program.machine.stages if each.in_columns}
        known.append(len(texts.known))
        view.verify()
    assert max(known) < 400, known


def title(row: Sale) -> str:
    return row.city.title()


def test_explain_says_which_tops_are_in_columns_and_why_not() -> None:
    sales = ef.Input("sales", Sale)

    def said(made: Any, **options: Any) -> str:
        return str(made.run(columns=True, **options).explain())

    assert "in rows" not in said(sales.top_k(2, order="city"))
    assert "in rows" not in said(sales.limit(2, order=("city", ef.desc("rate")), offset=1))
    titled = sales.top_k(2, order=title)
    assert "in rows: title is a function that could not be read" in said(titled)
    whole = sales.group_by("city").agg(row=ef.arg_max("price"))
    assert "in rows: of its results, field 'row' is no int" in said(whole)


@pytest.mark.parametrize(
    "made",
    [
        lambda sales: sales.top_k(2, order="city", per="paid"),
        lambda sales: sales.group_by("paid").agg(low=ef.min("city")),
    ],
)
def test_what_is_in_order_is_stored_in_columns(made: Any, tmp_path: Any) -> None:
    program = made(ef.Input("sales", Sale))
    expected = program.run()
    for seed in range(3):
        with program.run(path=str(tmp_path / "state"), columns=True) as view:
            change = some(9, seed) - ZSet.of(list(expected.input("sales").value)[:4])
            table = change.map(lambda r: r._replace(city=r.city.replace("\ud800", "?")))
            assert view.step(sales=table) == expected.step(sales=table)
            assert "now      in columns" in view.explain()
            assert view.value == expected.value
