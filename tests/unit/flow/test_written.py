"""Texts that stand where a field name or a function is wanted: the remedy is the call to write."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError


class Order(NamedTuple):
    id: int
    city: str
    price: int
    customer: int


class Person(NamedTuple):
    id: int
    name: str


c: Any = ef.Input("orders", Order, key="id")
people: Any = ef.Input("people", Person)
ROWS = [Order(1, "Rome", 5, 7), Order(2, "Oslo", 2, 8), Order(3, "Rome", 1, 8)]

CASES = [
    ('filter("price > 3")', "filter(lambda row: row.price > 3)"),
    ('filter("prcie > 3")', "filter(lambda row: row.price > 3)"),
    ('filter("orders.price > 3")', "filter(lambda row: row.price > 3)"),
    (
        "filter(\"price = 3 AND city <> 'Rome'\")",
        "filter(lambda row: row.price == 3 and row.city != 'Rome')",
    ),
    ("filter(\"city = 'It''s'\")", 'filter(lambda row: row.city == "It\'s")'),
    ('filter("price IS NOT NULL")', "filter(lambda row: row.price is not None)"),
    ('filter("price in (1, 2)")', "filter(lambda row: row.price in (1, 2))"),
    ('filter("not price == 3")', "filter(lambda row: not row.price == 3)"),
    ("filter(\"city.startswith('R')\")", "filter(lambda row: row.city.startswith('R'))"),
    ('filter("prcie")', 'filter("price")'),
    ('map("price * 2")', "map(lambda row: row.price * 2)"),
    ('map("abs(price)")', "map(lambda row: abs(row.price))"),
    ('map("orders.price")', 'map("price")'),
    ('group_by("price + id").agg(n=ef.count())', "group_by(name=lambda row: row.price + row.id)"),
    ('group_by("city, price").agg(n=ef.count())', 'group_by("city", "price")'),
    ('group_by(x="price + 1").agg(n=ef.count())', "group_by(x=lambda row: row.price + 1)"),
    ('select("price * 2")', "select(name=lambda row: row.price * 2)"),
    ('select("price as p")', 'select(p="price")'),
    ('select("price * 2 AS p")', "select(p=lambda row: row.price * 2)"),
    ('select("city, price")', 'select("city", "price")'),
    ('with_fields(tax="price / 5")', "with_fields(tax=lambda row: row.price / 5)"),
    ('join(people, on="customer = id")', 'join(left_on="customer", right_on="id")'),
    ('join(people, on="orders.customer == people.id")', 'join(left_on="customer", right_on="id")'),
    ('join(people, on="orders.id = people.id")', 'join(on="id")'),
    ('top_k(2, order="-price")', 'top_k(order=ebbflow.desc("price"))'),
    ('top_k(2, order="price desc")', 'top_k(order=ebbflow.desc("price"))'),
    ('limit(2, order="price DESC NULLS LAST")', 'limit(order=ebbflow.desc("price"))'),
    ('limit(2, order="price ascending")', 'limit(order="price")'),
    ('limit(2, order="city, price desc")', 'limit(order=("city", ebbflow.desc("price")))'),
    ('limit(2, order="price % 10")', "limit(order=lambda row: row.price % 10)"),
    ('tumbling("price / 2", 60)', "tumbling(lambda row: row.price / 2)"),
    ('agg(t=ef.sum("price * 2"))', "agg(t=sum(lambda row: row.price * 2))"),
    ('agg(t=ef.count("*"))', "agg(t=count())"),
    ('agg(t="sum(price)")', 'agg(t=ebbflow.sum("price"))'),
    ('agg(t="AVG(price)")', 'agg(t=ebbflow.mean("price"))'),
    ('agg(price="max")', 'agg(price=ebbflow.max("price"))'),
    ('agg(n="count(*)")', "agg(n=ebbflow.count())"),
    ('agg(t="sum(price * 2)")', "agg(t=ebbflow.sum(lambda row: row.price * 2))"),
    ('agg({"price": "sum"})', 'agg(price=ebbflow.sum("price"))'),
    ('agg("sum(price)")', 'agg(name=ebbflow.sum("price"))'),
]

MORE = {
    "join": "people, select=lambda order, person: order, ", "limit": "2, ", "top_k": "2, ",
    "tumbling": "size=60, time=",
}  # fmt: skip
"""Arguments that remedies leave out."""


@pytest.mark.parametrize(("call", "remedy"), CASES, ids=[call for call, _ in CASES])
def test_remedy_for_an_expression_in_a_text_is_a_call_that_runs(call: str, remedy: str) -> None:
    with pytest.raises(CompositionError) as error:
        eval(f"c.{call}", globals())
    assert error.value.remedy == remedy
    verb, _, arguments = remedy.partition("(")
    names = {**globals(), "ebbflow": ef, "sum": ef.sum, "count": ef.count}
    made = eval(f"c.{verb}({MORE.get(verb, '')}{arguments}", names)
    made = made.agg(n=ef.count()) if remedy.startswith("group_by") else made
    view = made.run()
    view.step(orders=ROWS)
    view.verify()


def test_text_that_is_no_expression_of_fields_gets_an_open_function() -> None:
    for text in ("price between 3 and 5", "upper(city) = 'ROME'", "a +", "(((", "'", "nothing > 3"):
        with pytest.raises(ef.EbbflowError) as error:
            c.filter(text)
        assert error.value.remedy == "filter(lambda row: ...)"


def test_only_fields_are_offered_where_a_function_is_not_allowed() -> None:
    with pytest.raises(ef.EbbflowError) as error:
        c.explode("price * 2")
    assert error.value.remedy == 'explode("price")'
