"""Rows given to a trusted input as a list: nobody hashes them, and all is as with a dict."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest
from tests.oracle.interrupts import instants, interrupted

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime import listed
from ebbflow.errors import ChangeError
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were taken as they were given, each time; also of few."""
    found: list[int] = []

    class Counted(listed.AddedRows):
        __slots__ = ()

        def __init__(self, rows: list[Any]) -> None:
            super().__init__(rows)
            found.append(len(rows))

    monkeypatch.setattr(listed, "AddedRows", Counted)
    monkeypatch.setattr(listed, "FEW", 0)
    return found


class GivenLists:
    """A view that gives what is only added as lists of rows."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def step(self, changes: dict[str, ZSet[Any]]) -> Any:
        return self.view.step({name: as_list(change) for name, change in changes.items()})

    @property
    def value(self) -> Any:
        return self.view.value


def as_list(change: ZSet[Any]) -> Any:
    rows = [row for row, weight in change.items() for _ in range(weight)]
    return rows if change.is_bag else change


def test_oracle_programs_given_lists_equal_batch(taken: list[int]) -> None:
    for seed in range(400 * MORE):
        program = random_program(seed)
        trusting = lambda plan: GivenLists(run(plan, check_input=False))
        follow(trusting, program, random_epochs(program, seed, 5))
    assert len(taken) > 20, "some are taken"


class Sale(NamedTuple):
    id: int
    shop: int
    price: int


class Shop(NamedTuple):
    shop: int
    city: str


sales = ef.Input("sales", Sale, key="id")
shops = ef.Input("shops", Shop, key="shop")
PROGRAMS = {
    "sum": lambda: sales.group_by("shop").agg(total=ef.sum("price"), n=ef.count()),
    "filter": lambda: sales.filter(lambda sale: sale.price > 3).filter(lambda sale: sale.id > 1),
    "select": lambda: sales.select("shop", "price"),
    "join": lambda: sales.join(shops, on="shop").select("city", "price"),
    "left": lambda: sales.join(shops, on="shop", how="left"),
    "semi": lambda: sales.join(shops.filter(lambda row: row.city != "Rome"), on="shop", how="semi"),
    "anti": lambda: sales.join(shops, on="shop", how="anti"),
    "cross": lambda: sales.select("price").cross(shops),
    "max": lambda: sales.group_by("shop").agg(most=ef.max("price")),
    "top": lambda: sales.top_k(2, order="price"),
    "as it is": lambda: sales,
    "twice": lambda: sales.join(sales, on="shop", suffixes=("", "_too")),
}


def batches() -> list[dict[str, Any]]:
    shops_there = [Shop(n, ["Rome", "Oslo", "Bern"][n % 3]) for n in range(4)]
    sold = [Sale(n, n % 5, n * 7 % 11) for n in range(40)]
    return [
        {"sales": sold[:15]},
        {"shops": shops_there, "sales": sold[15:30]},
        {"sales": {sold[3]: -1, sold[4]: -1, sold[4]._replace(price=0): 1}},
        {"sales": sold[30:], "shops": {shops_there[1]: -1}},
        {"sales": dict.fromkeys(sold[10:20], -1)},
        {"sales": sold[10:20]},
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_oracle_inputs_with_keys_given_lists_equal_inputs_given_dicts(
    name: str, taken: list[int]
) -> None:
    trusting, checked = PROGRAMS[name]().run(check_input=False), PROGRAMS[name]().run()
    sources = trusting.plan.sources
    for batch in batches():
        mine = {each: change for each, change in batch.items() if each in sources}
        plain = {
            each: dict.fromkeys(change, 1) if isinstance(change, list) else change
            for each, change in mine.items()
        }
        assert trusting.step(mine) == checked.step(plain)
        assert trusting.value == checked.value
    assert bool(taken) is (name not in ("top", "as it is"))


def test_a_key_that_is_there_is_refused_and_nothing_is_changed(taken: list[int]) -> None:
    view = PROGRAMS["sum"]().run(check_input=False)
    view.step(sales=[Sale(n, 1, 1) for n in range(20)])
    for wrong in ([Sale(19, 1, 1), Sale(20, 1, 1)], [Sale(20, 1, 1), Sale(20, 1, 2)]):
        with pytest.raises(ChangeError, match="more than one row of a key"):
            view.step(sales=wrong)
    assert view.value == ZSet({(1, 20, 20): 1})
    view.step(sales=[Sale(20, 1, 5)])
    assert view.value == ZSet({(1, 25, 21): 1})


def test_a_list_that_is_altered_after_the_step_alters_nothing(taken: list[int]) -> None:
    view = PROGRAMS["sum"]().run(check_input=False)
    rows = [Sale(n, 1, 1) for n in range(20)]
    branch = view.branch()
    branch.step(sales=rows)
    rows.clear()
    branch.adopt()
    assert view.value == ZSet({(1, 20, 20): 1})
    assert taken


def test_a_key_that_the_original_of_a_branch_has_is_refused(taken: list[int]) -> None:
    view = PROGRAMS["sum"]().run(check_input=False)
    view.step(sales=[Sale(n, 1, 1) for n in range(20)])
    branch = view.branch()
    with pytest.raises(ChangeError, match="more than one row of a key"):
        branch.step(sales=[Sale(19, 1, 7), Sale(20, 1, 1)])
    assert branch.value == view.value


class Mark:
    """A value that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        Mark.hashed += 1
        return 7


class Marked(NamedTuple):
    id: int
    price: int
    mark: Mark


@pytest.mark.parametrize("key", ["id", None])
def test_rows_of_a_trusted_list_are_not_hashed(key: str | None) -> None:
    marks = ef.Input("marks", Marked, key=key)
    rows = [Marked(n, n, Mark()) for n in range(100)]
    Mark.hashed = 0
    view = marks.group_by("id").agg(total=ef.sum("price")).run(check_input=False)
    view.step(marks=rows)
    assert Mark.hashed == 0
    assert len(view.value) == 100


def test_rows_that_are_not_as_declared_are_read_as_ever(taken: list[int]) -> None:
    class Point(NamedTuple):
        x: float
        tags: list[int]

    points = ef.Input("points", Point)
    view = points.group_by("x").agg(n=ef.count()).run(check_input=False)
    view.step(points=[Point(1.0, [1]), Point(float("nan"), [2]), Point(float("nan"), [2])])
    assert len(view.value) == 2
    sold = PROGRAMS["sum"]().run(check_input=False)
    sold.step(sales=[{"id": n, "shop": 1, "price": 1} for n in range(9)])
    assert sold.value == ZSet({(1, 9, 9): 1})
    assert not taken


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_leaves_a_list_taken_or_not_taken(
    error: type[BaseException], taken: list[int]
) -> None:
    first, more = [Sale(n, n % 3, n) for n in range(12)], [Sale(n, n % 3, n) for n in range(12, 24)]
    for point in instants(1, 100_000, 17):
        view = PROGRAMS["join"]().run(check_input=False)
        view.step(sales=first, shops=[Shop(n, "Rome") for n in range(3)])
        whole = ZSet.of([("Rome", n) for n in range(12)])
        raised = interrupted(lambda: view.step(sales=more), point, error=error, published=False)  # noqa: B023
        if view.epoch == 1:
            assert view.value == whole
            view.step(sales=more)
        assert view.value == whole + ZSet.of([("Rome", n) for n in range(12, 24)])
        view.close()
        if not raised:
            break
    assert point > 17
    assert taken
