"""Rows that tie are drawn, wherever rows come from, and nothing right is refuted by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.laws import ADD_COMMUTES, REMOVE_INVERTS, judge
from ebbflow.laws.ties import deciding, likes, parts, rebuilt, tied
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


@dataclass(frozen=True)
class Event:
    key: str
    at: int
    value: int


ORDERS = [Order(i, f"city {i}", 10 * i) for i in range(1, 6)]
EVENTS = [Event(f"key {i}", 10 * i, i) for i in range(5)]
ANY_ORDER = st.builds(Order, st.integers(), st.text(), st.integers())


def ask(acc: Any, row: Any) -> Any:
    return RECOMPUTE


def dearest(best: Any, order: Any) -> Any:
    return order if best is None or order.price > best.price else best


def latest_of_each(last: dict[str, Any], event: Any) -> dict[str, Any]:
    if event.key in last and event.at <= last[event.key].at:
        return last
    return {**last, event.key: event}


best = Reducer(None, dearest, ask, name="best")


def test_a_tie_between_listed_rows_refutes_with_both_orders() -> None:
    broken = judge(best, elements=ORDERS[:2]).broken
    assert broken is not None
    assert str(broken).splitlines()[:7] == [
        "best breaks a law: the order of the rows matters",
        "    law        ADD_COMMUTES: add(add(acc, x), y) == add(add(acc, y), x), acc = fold(rows)",
        "    rows       ()",
        "    x          Order(id=1, city='city 1', price=10)",
        "    y          Order(id=2, city='city 2', price=10)",
        "    left side  Order(id=1, city='city 1', price=10)",
        "    right side Order(id=2, city='city 2', price=10)",
    ]
    assert broken.facts["mixed"] == (
        "these rows mix the fields of the elements; where only those rows occur, give a strategy: "
        "elements=hypothesis.strategies.sampled_from(rows)"
    )


def test_what_is_refuted_by_a_tie_makes_a_live_view_wrong() -> None:
    case = judge(best, elements=ORDERS).broken.case
    program = ef.Input("orders", Order).reduce(best)
    one, other = program.run(), program.run()
    for row in (case["x"], case["y"]):
        one.step(orders=[row])
    for row in (case["y"], case["x"]):
        other.step(orders=[row])
    assert one.value != other.value


@pytest.mark.parametrize(
    ("add", "init", "elements"),
    [
        (lambda best, x: x if best is None or x[1] > best[1] else best, None, [("a", 1), ("b", 2)]),
        (lambda last, x: x if last is None or x.at >= last.at else last, None, EVENTS),
        (latest_of_each, {}, EVENTS),
        (lambda last, x: {**last, x.key: x.value}, {}, EVENTS),
        (lambda first, x: {x.id: x.price, **first}, {}, ORDERS),
        (dearest, None, ANY_ORDER),
        (lambda first, x: {x.id: x.price, **first}, {}, ANY_ORDER),
        (dearest, None, lambda: ORDERS),
    ],
    ids=["tuples", "latest", "latest of each", "last wins", "first price", "strategy",
         "first price, strategy", "function"],
)  # fmt: skip
def test_order_that_only_ties_show_is_found(add: Any, init: Any, elements: Any) -> None:
    broken = judge(Reducer(init, add, ask), elements=elements).broken
    assert broken is not None
    assert broken.law is ADD_COMMUTES
    assert broken.case["rows"] == ()
    assert not ADD_COMMUTES.holds(broken.thing, **broken.case)


def test_a_remove_that_only_ties_break_is_found() -> None:
    def add(acc: dict[int, tuple[int, int]], x: Order) -> dict[int, tuple[int, int]]:
        count, most = acc.get(x.id, (0, x.price))
        return {**acc, x.id: (count + 1, max(most, x.price))}

    def remove(acc: dict[int, tuple[int, int]], x: Order) -> dict[int, tuple[int, int]]:
        count, most = acc[x.id]
        rest = {key: cell for key, cell in acc.items() if key != x.id}
        return {**rest, x.id: (count - 1, most)} if count > 1 else rest

    broken = judge(Reducer({}, add, remove), elements=ORDERS).broken
    assert broken is not None
    assert broken.law is REMOVE_INVERTS


@pytest.mark.parametrize(
    "right",
    [
        Reducer(None, lambda a, x: x if a is None else max(a, x, key=lambda o: (o.price, o)), ask),
        Reducer(0, lambda a, x: a + x.price, lambda a, x: a - x.price),
        Reducer(frozenset(), lambda a, x: a | {(x.id, x.city)}, ask),
        ef.arg_max("price", of="city") & ef.count(),
        ef.sum("price").by("city"),
    ],
    ids=["ranked", "sum", "set", "arg_max", "by city"],
)
@pytest.mark.parametrize("elements", [ORDERS, ANY_ORDER], ids=["list", "strategy"])
def test_what_does_not_depend_on_ties_is_accepted(right: Any, elements: Any) -> None:
    judged = judge(right, elements=elements, examples=60)
    assert judged.broken is None, judged
    assert not judged.doubt


def test_a_strategy_is_taken_at_its_word() -> None:
    judged = judge(best, elements=st.sampled_from(ORDERS))
    assert judged.verdict == "partial"
    assert judged.doubt.startswith("it breaks ADD_COMMUTES for rows that may not occur: {'rows': ")
    assert judged.doubt in str(judged)


def test_rows_that_a_class_refuses_and_rows_that_raise_do_not_count() -> None:
    @dataclass(frozen=True)
    class Span:
        start: int
        end: int

        def __post_init__(self) -> None:
            if self.start > self.end:
                raise ValueError("it ends before it starts")

    assert rebuilt(Span(1, 2), (3, 2)) is None
    prices = {"a": 1, "b": 2}
    table = Reducer(
        0,
        lambda a, x: a + (prices[x[0]] if x[1] == ord(x[0]) else 1 // 0),
        lambda a, x: a - prices[x[0]],
    )
    assert judge(table, elements=[("a", 97), ("b", 98)]).verdict == "invertible"


def test_which_fields_decide() -> None:
    assert deciding(best, ORDERS) == [2]
    assert deciding(Reducer(None, lambda a, x: x if a is None else max(a, x)), ORDERS) == [0, 1, 2]
    assert deciding(Reducer(0, lambda a, x: a + x.value), EVENTS) == [2]
    assert deciding(Reducer(0, lambda a, x: a + len(x)), [(1, 2)]) == [0, 1]
    assert deciding(Reducer(0, lambda a, x: a + x.nothing), ORDERS) == [0, 1, 2]
    group = tied(best, ORDERS)[0]
    assert group[0] == ORDERS[0]
    assert {row.price for row in group} == {10}
    assert tied(Reducer(0, max), [1, 2]) == []
    assert parts((1,)) is None


def test_rows_that_a_strategy_gives_share_all_fields_but_one() -> None:
    first, *others = likes(st.tuples(st.integers(), st.booleans()))
    assert first == (0, False)
    assert others == [(1, False), (-1, False), (0, True)]


def test_a_limit_that_only_long_orders_show_is_found() -> None:
    capped = Reducer(frozenset(), lambda a, x: a | {x} if len(a) < 20 else a)
    broken = judge(capped, elements=range(1000)).broken
    assert broken is not None
    assert len(broken.case["rows"]) == 19
    assert not ADD_COMMUTES.holds(capped, **broken.case)
    assert ZSet.of(broken.case["rows"]).is_bag
