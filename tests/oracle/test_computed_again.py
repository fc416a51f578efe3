"""A program that is computed again gives what it gives by following the change, and goes on from
the same state: in random programs, after an epoch that is refused, and after an interrupt."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.interrupts import instants, interrupted

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime import again, program
from ebbflow.errors import AbsentRow, EbbflowError
from ebbflow.testing import VERB_NAMES, follow, random_epochs, random_program


class Order(NamedTuple):
    id: int
    customer: int
    price: int


class Customer(NamedTuple):
    number: int
    city: str


ORDERS = [Order(n, n % 300, n % 17) for n in range(20_000)]
CUSTOMERS = [Customer(n, f"city {n % 7}") for n in range(300)]
EVERY = 499
"""Of so many instructions, one is interrupted."""
GONE = dict.fromkeys(ORDERS[:19_000], -1)


def by_city() -> Any:
    orders = ef.Input("orders", Order)
    customers = ef.Input("customers", Customer, key="number")
    joined = orders.join(customers, left_on="customer", right_on="number")
    return joined.group_by("city").agg(total=ef.sum("price"), most=ef.max("price"))


def loaded(program: Any, **options: Any) -> Any:
    view = program.run(columns=False, **options)
    view.step(orders=ORDERS, customers=CUSTOMERS)
    return view


def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, programs are computed again whenever they can be."""
    monkeypatch.setattr(program, "FEW", 0)
    monkeypatch.setattr(again, "FEW", 0)
    monkeypatch.setattr(again, "SHARE", float("inf"))


@pytest.mark.parametrize("kind", [None, *VERB_NAMES])
def test_oracle_a_program_that_is_computed_again_equals_batch(
    kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    always(monkeypatch)
    recomputed = 0
    for seed in range(3 if kind else 30):
        dice = Random(f"{kind} {seed}")
        some = {} if kind is None else {"verbs": [kind], "size": 2}
        drawn = random_program(dice, **some)
        view = follow(run, drawn, random_epochs(drawn, dice, 6, size=6))
        recomputed += view._program.recomputed
    assert recomputed > 0 or kind in LOOPS


LOOPS = {name for name in VERB_NAMES if "iterate" in name or "loop" in name}


def test_most_rows_that_go_are_not_followed() -> None:
    view = loaded(by_city())
    read = [node.rows_in for node in view.stats().nodes]
    change = view.step(orders=GONE)
    assert view.stats().recomputed == 1
    assert "2 epochs, 1 of them computed again, " in repr(view.stats())
    for node, had in zip(view.stats().nodes, read, strict=True):
        assert node.rows_in - had <= 2_300
    assert change == view.value - by_city_of(ORDERS)
    view.verify()
    view.step(orders=[Order(-1, 5, 100)])
    assert view.stats().recomputed == 1
    view.verify()


def by_city_of(orders: list[Order]) -> Any:
    view = by_city().run(columns=False)
    view.step(orders=orders, customers=CUSTOMERS)
    return view.value


def test_what_is_followed() -> None:
    replaced = {**dict.fromkeys(ORDERS, -1), **{row._replace(price=3): 1 for row in ORDERS}}
    for options, change in [
        ({"check_input": False}, GONE),  # whose rows are not kept
        ({}, dict.fromkeys(ORDERS[:12_000], -1)),  # of which many rows are left
        ({}, replaced),
    ]:
        view = loaded(by_city(), **options)
        view.step(orders=change)
        assert view.stats().recomputed == 0
    orders = ef.Input("orders", Order, key="id")
    keyed = orders.group_by("customer").agg(n=ef.count()).run(columns=False, check_input=False)
    for rows in (ORDERS, [row._replace(id=-1 - row.id) for row in ORDERS]):  # all of them new
        keyed.step(orders=rows)
    assert (keyed.stats().recomputed, keyed.stats().inputs) == (0, {"orders": 40_000})
    view = loaded(by_city())
    with view.branch() as branch:  # which shares the state
        view.step(orders=GONE)
        assert view.stats().recomputed == 0
        assert branch.value == by_city_of(ORDERS)


def test_an_epoch_that_is_refused_changes_nothing() -> None:
    orders = ef.Input("orders", Order)
    kept = orders.map(lambda row: 60 // row.price if row.customer else row.price, type=int)
    view = ef.program(shares=kept.distinct(), n=orders.agg(n=ef.count())).run(columns=False)
    good = [row for row in ORDERS if row.price]
    view.step(orders=good)
    before = view.value
    bad = {**dict.fromkeys(good[:18_000], -1), Order(-1, 1, 0): 1}
    with pytest.raises(EbbflowError, match="ZeroDivisionError"):
        view.step(orders=bad)
    with pytest.raises(AbsentRow):
        view.step(orders={**dict.fromkeys(good[:18_000], -1), Order(-1, 1, 1): -1})
    assert (view.value, view.stats().recomputed) == (before, 0)
    view.step(orders=dict.fromkeys(good[:10], -1))
    view.verify()
    view.step(orders=dict.fromkeys(good[10:18_000], -1))
    assert view.stats().recomputed == 1
    view.verify()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_leaves_the_state_before_or_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    always(monkeypatch)
    few = ORDERS[:40]
    view = by_city().run(columns=False)
    view.step(orders=few, customers=CUSTOMERS[:40])
    gone = dict.fromkeys(few[:30], -1)
    happened = {True: 0, False: 0}
    for point in instants(1, 10**6, EVERY):
        epoch = view.epoch
        raised = interrupted(lambda: view.step(orders=gone), point, published=False)
        happened[view.epoch > epoch] += 1
        view.verify()
        if view.epoch > epoch:
            view.step(orders=few[:30])
        if not raised:
            break
    assert min(happened.values()) > 0
