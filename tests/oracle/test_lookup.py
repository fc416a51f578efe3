"""Rows found by key, in inputs and in outputs, after every epoch, against a search of the value."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.lookup import row_key
from ebbflow.errors import ChangeError, CheckError, CompositionError

NAN = float("nan")


class Order(NamedTuple):
    id: int
    city: str
    price: float


ORDERS = ef.Input("orders", Order, key="id")
TAGS = ef.Input("tags", tuple[int, str])
PROGRAM = ef.program(
    orders=ORDERS,
    dear=ORDERS.filter(lambda order: order.price > 5),
    totals=ORDERS.group_by("city").agg(n=ef.count(), total=ef.sum("price")),
    large=ORDERS.group_by("city").agg(n=ef.count()).filter(lambda group: group.n > 1),
    pairs=ORDERS.group_by("city", "price").agg(n=ef.count()),
    tagged=ORDERS.join(TAGS, left_on="id", right_on=lambda tag: tag[0], how="semi"),
    best=ORDERS.top_k(3, order="price"),
    tags=TAGS,
)
KEYED = ("orders", "dear", "totals", "large", "pairs", "tagged", "best")
ABSENT: dict[str, Any] = {
    "orders": -1, "dear": -1, "totals": "nowhere", "large": "nowhere", "pairs": ("a", -1.0),
    "tagged": -1, "best": -1,
}  # fmt: skip
"""By output, a key of the right type that no row has."""
OTHERS: list[Any] = [-1, "nowhere", ("a", -1.0), 1.5, None]


def check(view: Any) -> None:
    """Every key that is there, and some that are not, in every output that has a key."""
    for name in KEYED:
        key = row_key(PROGRAM.plan.outputs[name])
        assert key is not None
        rows = {key(row): row for row in view.value[name]}
        absent = ABSENT[name]
        asked = [*rows, absent]
        assert [view[name].get(at) for at in asked] == [rows.get(at) for at in asked]
        assert [at in view[name] for at in asked] == [at in rows for at in asked]
        assert len(view[name]) == len(rows)
        for other in (each for each in OTHERS if type(each) is not type(absent)):
            with pytest.raises(ChangeError, match="must be"):
                view[name].get(other)
    orders = view.input("orders")
    assert orders.value == view.value["orders"]
    assert len(orders) == len(view.value["orders"])
    assert all(orders.get(order.id) == order and order.id in orders for order in orders.value)
    assert (-1 in orders, orders.get(-1), orders.get(-1, "none")) == (False, None, "none")
    tags = view.input("tags")
    assert len(tags) == len(view["tags"]) == sum(weight for _, weight in tags.value.items())
    assert all(tag in tags for tag in tags.value)
    assert (9, "z") not in tags


@pytest.mark.parametrize("options", [{}, {"path": ""}, {"path": "", "memory": 1}], ids=str)
def test_oracle_rows_are_found_by_key_after_every_epoch(
    options: dict[str, Any], tmp_path: Path
) -> None:
    dice = Random(3)
    options = {**options, **({"path": tmp_path} if "path" in options else {})}
    view = PROGRAM.run(**options)
    for epoch in range(25):
        there = view.input("orders")
        gone = [order.id for order in there.value if dice.random() < 0.2]
        if gone:
            there.delete(*gone)
        rows = [Order(dice.randrange(12), dice.choice("abc"), dice.choice([1.0, 7.0, NAN]))
                for _ in range(3)]  # fmt: skip
        there.upsert(*rows)
        view.step(tags=[(dice.randrange(12), dice.choice("xy"))] * 2)
        check(view)
        if epoch == 12 and options:
            view.close()
            view = PROGRAM.run(**options)
    with pytest.raises(ChangeError):
        view.step(orders=[*view.input("orders").value])
    check(view)
    view.close()


def test_a_row_of_an_operator_is_found_in_its_state() -> None:
    view = PROGRAM.run()
    view.step(orders=[Order(i, "a", 1.0) for i in range(100)])
    view["totals"].get("a")
    assert "totals" not in view._by_key
    view["large"].get("a")
    kept = view._by_key["large"]
    view.input("orders").delete(*range(99))
    assert view._by_key["large"] is kept
    assert view["large"].get("a") is None


def test_what_has_no_key_or_keeps_no_rows_says_so() -> None:
    view = PROGRAM.run()
    with pytest.raises(ChangeError, match="output 'tags' has no key"):
        view["tags"].get(1)
    with pytest.raises(ChangeError, match="input 'tags' has no key"):
        view.input("tags").get(1)
    with pytest.raises(ChangeError, match="hashable"):
        view["totals"].get(["a"])
    with pytest.raises(ChangeError, match="hashable"):
        view.input("orders").get([1])
    with pytest.raises(CompositionError, match="several outputs"):
        view.get("a")
    trusting = TAGS.run(check_input=False)
    with pytest.raises(CheckError, match="not kept"):
        trusting.input("tags").value
    with pytest.raises(CheckError, match="not kept"):
        assert (1, "x") in trusting.input("tags")


def test_one_output_is_asked_by_its_view() -> None:
    view = ORDERS.group_by("city").agg(n=ef.count()).run()
    view.step(orders=[Order(1, "a", 1.0)])
    assert view.get("a").n == 1
    assert view.get("b", 0) == 0
