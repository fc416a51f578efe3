"""Semijoins by an inequality and filters by one row, in columns, against batch and against rows."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.column_programs import Sale, Shop, comparing, epochs, sale, shop
from tests.oracle.interrupts import instants, interrupted
from tests.oracle.test_columns import gave_up, in_columns, some

import ebbflow as ef
from ebbflow.engine.runtime.columnar import few, forgetting
from ebbflow.errors import AbsentRow, ChangeError, FunctionFailed
from ebbflow.flow.running import planned
from ebbflow.testing import follow
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
pytestmark = pytest.mark.xdist_group("columns")  # kernels are compiled once


def inputs() -> tuple[Any, Any]:
    return ef.Input("sales", Sale), ef.Input("shops", Shop)


def test_oracle_compared_rows_in_columns_equal_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    for seed in range(120 * MORE):
        random = Random(seed)
        monkeypatch.setattr(few, "FEW", random.choice([0, 8]))
        monkeypatch.setattr(forgetting, "MANY", random.choice([10_000, -100]))
        plan = planned({"output": comparing(random, *inputs()).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.02, 0.2])
        view = follow(
            lambda plan, check=check: in_columns(plan, seen, check_input=check),  # type: ignore[misc]
            plan, epochs(random, list(plan.sources), 10, hard),
        )  # fmt: skip
        seen.update(gave_up(view))
    assert seen["ColumnUnequalStage"] > 40, seen
    assert seen["ColumnOneRowStage"] > 10, seen
    assert seen["CompareStage"] == 0, seen
    assert seen["a row that Python would refuse, or an int of more than 64 bits"] > 0, seen


def alone(sales: Any) -> Any:
    """Sales of a number that another city has too, but no other paid one."""
    paid = sales.filter(lambda row: row.paid)
    return paid.join(sales.select("id", "city"), on="id", where=ef.ne("city"), how="semi").join(
        paid, on="id", where=ef.ne("city"), how="anti"
    )


def test_what_turns_when_a_value_becomes_the_only_one_and_when_it_is_no_longer() -> None:
    sales, shops = inputs()
    others = sales.select("id", "city", "tax").join(
        shops.select("city", "size"), on="city", where=ef.ne("tax", "size"), how="semi"
    )
    views = [others.run(columns=each) for each in (True, False)]
    one, two, none = (
        sale(Random(1), 0)._replace(city="Rome", id=i, tax=t)
        for i, t in ((1, 1), (2, 2), (3, None))
    )
    first, second = (shop(Random(1), 0)._replace(city="Rome", size=each) for each in (1, 2))
    again = first._replace(owner="another")

    def ids(**change: Any) -> dict[int, int]:
        found = [view.step(change) for view in views]
        assert found[0] == found[1]
        assert gave_up(views[0]) == []
        return {row.id: weight for row, weight in found[0].items()}

    assert ids(sales=[one, two, none]) == {}
    assert ids(shops=[first]) == {2: 1}  # 1 is the only size
    assert ids(shops=[again]) == {}
    assert ids(shops=[second]) == {1: 1}
    assert ids(shops={first: -1}) == {}  # there is another of that size
    assert ids(shops={again: -1}) == {2: -1}
    assert ids(shops={second: -1, first: 1}) == {1: -1, 2: 1}
    assert ids(sales={two: -1, one: 1}, shops={first: -1}) == {2: -1}
    assert ids(sales={one: -2, none: -1}) == {}


def test_a_condition_with_one_row_gives_those_that_turn_and_refuses_a_second_row() -> None:
    sales, shops = inputs()
    above = sales.filter(lambda row, one: row.price + one.size > 5, shops, on="city")
    views = [above.run(columns=each) for each in (True, False)]
    rows = [sale(Random(1), 0)._replace(city="Rome", price=price) for price in (1, 2, 3)]
    one = shop(Random(1), 0)._replace(city="Rome", size=4, owner=None, opened=None, score=None)
    for change, given in (
        ({"sales": rows}, {}),
        ({"shops": [one]}, {2: 1, 3: 1}),
        ({"shops": {one: -1, one._replace(size=3): 1}}, {2: -1}),
        ({"shops": {one: 1, one._replace(size=3): -1}, "sales": {rows[2]: -1}}, {2: 1, 3: -1}),
        ({"shops": {one: -1}}, {2: -1}),
    ):
        found = [view.step(change) for view in views]
        assert found[0] == found[1] == ZSet({rows[price - 1]: n for price, n in given.items()})
    assert gave_up(views[0]) == []
    for view in views:
        view.step(shops=[one])
        with pytest.raises(ChangeError, match="there are more"):
            view.step(shops=[one._replace(size=9)])
        view.verify()
        assert view.step(shops={one: -1, one._replace(size=9): 1}) == ZSet.of([rows[0]])


def test_a_refused_epoch_leaves_compared_rows_as_they_were() -> None:
    sales, shops = inputs()
    ones = shops.group_by("city").agg(n=ef.count(), size=ef.sum("size"))
    view = ef.program(
        alone=alone(sales),
        more=sales.filter(lambda row, one: row.price * one.n > one.size, ones, on="city"),
        odd=sales.map(lambda row: 1 // (row.price - 100)),
    ).run(columns=True)  # fmt: skip
    random = Random(3)
    view.step(sales=some(60), shops=[shop(random, 0) for _ in range(9)])
    before = view.value
    wrong = sale(random, 0)._replace(price=100, city="Bergen", id=3, paid=True)
    gone = next(iter(view.input("sales").value))
    for change, error in (({wrong: 1, gone: -1}, FunctionFailed), ({wrong: -1}, AbsentRow)):
        with pytest.raises(error):
            view.step(sales=change, shops=[shop(random, 0)])
        assert view.value == before
        view.verify()
    view.step(sales={gone: -1, **dict.fromkeys(some(9, 5), 1)}, shops=[shop(random, 0)])
    view.verify()
    assert gave_up(view) == []


@pytest.mark.parametrize("apart", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_compared_rows_done_or_not_done(apart: int) -> None:
    sales = ef.Input("sales", Sale)
    ones = sales.group_by("city").agg(n=ef.count(), size=ef.sum("id"))
    view = ef.program(
        alone=alone(sales),
        more=sales.filter(lambda row, one: row.price * one.n > one.size, ones, on="city"),
    ).run(columns=True)
    view.step(sales=some(20, 1))
    hit = {True: 0, False: 0}
    for moment in instants(1, 100_000, apart):
        there = view.input("sales").value
        change = some(9, moment) - ZSet.of(list(there)[:9])
        before = view.epoch
        if not interrupted(lambda change=change: view.step(sales=change), moment, published=False):  # type: ignore[misc]
            break
        hit[view.epoch > before] += 1
        view.verify()
    assert hit[False] > 10


def test_an_interrupt_while_rows_take_over_loses_no_row_that_is_compared() -> None:
    sales, shops = inputs()
    ones = shops.group_by("city").agg(n=ef.count(), size=ef.sum("size"))
    program = ef.program(
        alone=alone(sales),
        other=sales.join(shops, on="city", where=ef.ne("tax", "size"), how="anti"),
        more=sales.filter(lambda row, one: row.price * one.n > one.size, ones, on="city"),
    )  # fmt: skip
    places = [shop(Random(each), 0) for each in range(4)]
    large = [sale(Random(1), 0)._replace(city="Rome", price=2**63, id=each) for each in range(4)]
    for moment in instants(1, 100_000, 401):
        view = program.run(columns=True)
        view.step(sales=some(20, 1), shops=places)
        cut = interrupted(lambda: view.step(sales=large), moment, published=False)  # noqa: B023
        if view.epoch == 1:
            view.step(sales=large)
        view.step(sales=some(9, 2), shops={places[0]: -1})
        view.verify()
        if not cut:
            break
    assert moment > 9 * 401
    assert "in rows, since" in view.explain()


def test_explain_says_why_rows_are_compared_in_rows(tmp_path: Path) -> None:
    sales, shops = inputs()
    order = sales.join(shops, on="city", where=ef.lt("price", "size"), how="semi")
    assert "now in rows: there is no kernel for price < size" in said(order.run(columns=True))
    types = sales.join(shops, on="city", where=ef.ne("price", "score"), how="semi")
    assert "the values that it compares are of different types" in said(types.run(columns=True))
    one = shops.agg(size=ef.sum("size"))
    least = sales.filter(lambda row, one: row.price > one.size, one).run(columns=True)
    assert "now in rows: its rows are in the order of price" in said(least)
    with alone(sales).run(columns=True, path=tmp_path) as stored:
        stored.step(sales=some(40))
        assert "now in rows: its state is not stored in columns" in said(stored)
        stored.verify()


def said(view: Any) -> str:
    return " ".join(view.explain().split())
