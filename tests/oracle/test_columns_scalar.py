"""A filter by the one row of another collection, in columns: against batch, change by change."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.oracle.column_programs import Sale, Shop, epochs, sale
from tests.oracle.interrupts import instants, interrupted

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.columnar import forgetting
from ebbflow.flow.running import planned
from ebbflow.testing import follow
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
pytestmark = pytest.mark.xdist_group("columns")  # kernels are compiled once
KEPT = forgetting.MANY
CONDITIONS: list[Any] = [
    lambda row, one: row.price * one.n > one.sum,
    lambda row, one: row.price * 3 >= one.sum - one.n,
    lambda row, one: row.price + one.n != row.id,
    lambda row, one: row.city == "Rome" or row.rate * one.n > 2,
    lambda row, one: row.price // (row.id + one.n) > 0,
    lambda row, one: row.tax is not None and row.tax + one.n > row.id,
    lambda row, one: row.rate > one.n + row.id,
]


@pytest.fixture(autouse=True)
def settings_again() -> Iterator[None]:
    yield
    forgetting.MANY = KEPT


def scalar(random: Random) -> Any:
    """Sales that are compared with what all of some collection, or those of a city, add up to."""
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    rows = sales if random.random() < 0.6 else sales.filter(lambda row: row.price > 0)
    if random.random() < 0.2:
        rows = rows - sales.filter(lambda row: row.paid)
    others, size = random.choice([(sales, "price"), (shops, "size")])
    given, grouped = {}, others
    if random.random() < 0.5:
        given, grouped = {"on": "city"}, others.group_by("city")
    found = rows.filter(
        random.choice(CONDITIONS), grouped.agg(n=ef.count(), sum=ef.sum(size)), **given
    )
    if random.random() < 0.3 and rows.node.bag:
        return found.group_by("city").agg(n=ef.count())
    return found


def test_oracle_a_filter_by_one_row_in_columns_equals_batch() -> None:
    seen: Counter[str] = Counter()
    for seed in range(80 * MORE):
        random = Random(seed)
        forgetting.MANY = KEPT if seed % 2 else -100  # texts are forgotten after every epoch
        plan = planned({"output": scalar(random).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.02, 0.2])
        changes = epochs(random, list(plan.sources), 12, hard)
        view = follow(
            lambda plan, check=check: run(plan, columns=True, check_input=check),  # type: ignore[misc]
            plan, changes,
        )  # fmt: skip
        for each in view._program.machine.stages:
            if type(each).__name__ == "ColumnOneRowStage":
                seen["ColumnOneRowStage"] += 1
                seen["to the end"] += not each.given_up
    assert seen["ColumnOneRowStage"] > 40 * MORE, seen
    assert seen["to the end"] > 30 * MORE, seen


def some(count: int, seed: int) -> ZSet[Any]:
    random = Random(seed)
    return ZSet.of(sale(random, 0) for _ in range(count))


def program() -> Any:
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Sale)
    whole = shops.select("city", n="id", sum="price")
    sums = sales.group_by("city").agg(n=ef.count(), sum=ef.sum("price"))
    return ef.program(
        all=sales.filter(CONDITIONS[0], whole), by_city=sales.filter(CONDITIONS[0], sums, on="city")
    )


def one_sale(seed: int) -> ZSet[Any]:
    return ZSet.of([sale(Random(seed), 0)])


def test_a_refused_epoch_leaves_a_filter_by_one_row_as_it_was() -> None:
    view = program().run(columns=True)
    there, one = ZSet[Any](), ZSet[Any]()
    for seed in range(30):
        before = view.value
        gone = ZSet.of(list(there)[: seed % 7])
        with pytest.raises(ef.errors.ChangeError, match="there are more"):
            view.step(
                sales=some(9, 100 + seed) - gone,
                shops=ZSet.of([each._replace(id=at) for at, each in enumerate(some(2, seed))]) * 3,
            )
        assert view.value == before
        change = some(5, seed) - gone
        new = one_sale(seed) if seed % 4 else ZSet[Any]()
        view.step(sales=change, shops=new - one)
        there, one = there + change, new
        view.verify()
    assert "in rows, since more than one row, where there is to be one" in view.explain()


@pytest.mark.parametrize("apart", [43, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_a_filter_by_one_row_done_or_not_done(apart: int) -> None:
    view = program().run(columns=True)
    hit = {True: 0, False: 0}
    one = one_sale(1)
    view.step(sales=some(12, 1), shops=one)
    for moment in instants(1, 100_000, apart):
        forgetting.MANY = KEPT if moment % 2 else -100
        there, one = view.input("sales").value, view.input("shops").value
        change = {"sales": some(20, moment) - ZSet.of(list(there)[:15])}
        if moment % 3:
            change["shops"] = one_sale(moment) - one
        before = view.epoch
        if not interrupted(
            lambda change=change: view.step(change), moment, published=False  # type: ignore[misc]
        ):  # fmt: skip
            break
        hit[view.epoch > before] += 1
        view.verify()
    assert hit[False] > 10
    assert hit[True] > 0 or apart > 1
    assert "in rows" not in view.explain()


def test_rows_take_over_a_filter_by_one_row() -> None:
    view = program().run(columns=True)
    view.step(sales=some(20, 2), shops=one_sale(3))
    view.step(sales=[sale(Random(1), 0)._replace(price=2**62)])
    view.verify()
    view.step(sales=some(3, 9) - some(5, 2), shops=one_sale(4) - one_sale(3))
    view.verify()
    assert "in rows, since" in view.explain()


def test_a_comparison_with_one_value_stays_with_rows_that_are_in_order() -> None:
    sales = ef.Input("sales", Sale)
    dear = sales.filter(lambda row, one: row.price > one.mean, sales.agg(mean=ef.mean("price")))
    assert "in rows: its rows are in the order of" in dear.run(columns=True).explain()


def test_a_filter_by_one_row_is_stored_in_rows(tmp_path: Any) -> None:
    expected = program().run()
    for seed in range(3):
        with program().run(path=str(tmp_path / "state"), columns=True) as view:
            one = expected.input("shops").value
            change = {"sales": some(9, seed), "shops": one_sale(seed) - one}
            assert view.step(change) == expected.step(change)
            assert view.value == expected.value
