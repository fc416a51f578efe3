"""Joins, sums and set operations: the rows they give, their types, what they refuse."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError, UnknownField
from ebbflow.flow.plan import Concat, Join, Plan, Semi
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    customer: str
    price: int


class Person(NamedTuple):
    customer: str
    city: str


class Shop(NamedTuple):
    id: str
    town: str


ORDERS = ef.Input("orders", Order)
PEOPLE = ef.Input("people", Person)
SHOPS = ef.Input("shops", Shop)

BOUGHT = [
    Order(1, "ann", 10),
    Order(2, "bob", 20),
    Order(2, "bob", 20),
    Order(3, "zed", 5),
]
KNOWN = [Person("ann", "Rome"), Person("bob", "Oslo"), Person("bob", "Bari"), Person("cid", "Bonn")]


def rows(made: ef.Collection, **inputs: Iterable[Any]) -> ZSet[Any]:
    given: dict[str, Any] = {"orders": BOUGHT, "people": KNOWN, **inputs}
    plan = Plan({"out": made.node})
    return evaluate(plan, {name: ZSet.of(each) for name, each in given.items()})["out"]


MET = {(1, "ann", 10, "Rome"): 1, (2, "bob", 20, "Oslo"): 2, (2, "bob", 20, "Bari"): 2}
LEFT = {(3, "zed", 5, None): 1}
RIGHT = {(None, "cid", None, "Bonn"): 1}


# ---- every kind of join ----


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("inner", MET),
        ("left", MET | LEFT),
        ("right", MET | RIGHT),
        ("full", MET | LEFT | RIGHT),
        ("semi", {(1, "ann", 10): 1, (2, "bob", 20): 2}),
        ("anti", {(3, "zed", 5): 1}),
    ],
)
def test_every_kind_of_join(how: str, found: dict[Any, int]) -> None:
    assert rows(ORDERS.join(PEOPLE, on="customer", how=how)) == ZSet(found)


@pytest.mark.parametrize(
    ("how", "types"),
    [
        ("inner", {"id": int, "customer": str, "price": int, "city": str}),
        ("left", {"id": int, "customer": str, "price": int, "city": str | None}),
        ("right", {"id": int | None, "customer": str, "price": int | None, "city": str}),
        ("full", {"id": int | None, "customer": str, "price": int | None, "city": str | None}),
    ],
)
def test_002_D7_a_field_of_a_side_that_may_be_missing_may_be_None(
    how: str, types: dict[str, Any]
) -> None:
    made = ORDERS.join(PEOPLE, on="customer", how=how)
    assert made.type.__name__ == "OrderPerson"
    assert made.type.__annotations__ == types
    assert {type(row) for row in rows(made)} == {made.type}


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_002_D7_rows_that_are_only_chosen_keep_their_type(how: str) -> None:
    assert ORDERS.join(PEOPLE, on="customer", how=how).type is Order


def test_outer_joins_are_made_of_joins_and_anti_joins() -> None:
    made = ORDERS.join(PEOPLE, on="customer", how="full").node
    assert isinstance(made, Concat)
    join, left, right = made.parts
    assert made.signs == (1, 1, 1)
    assert isinstance(join, Join)
    assert left.verb == right.verb == "map"
    assert [(each.parent.left.name, each.parent.anti) for each in (left, right)] == [
        ("orders", True),
        ("people", True),
    ]


def test_merging_is_traced_so_that_it_can_be_inlined() -> None:
    made = ORDERS.join(PEOPLE, on="customer", how="full").node
    join, left, right = made.parts
    assert join.merge.text == "OrderPerson(l.id, l.customer, l.price, r.city)"
    assert left.fn.text == "OrderPerson(id, customer, price, None)"
    assert right.fn.text == "OrderPerson(None, customer, None, city)"
    assert join.merge.expression.source(repr, ["l", "r"]).count("[") == 4


def test_the_key_may_have_another_name_on_each_side() -> None:
    named = PEOPLE.select("city", who="customer")
    made = ORDERS.join(named, left_on="customer", right_on="who")
    assert made.type._fields == ("id", "customer", "price", "city", "who")
    assert rows(made).weight((2, "bob", 20, "Oslo", "bob")) == 2


def test_the_key_may_be_several_fields() -> None:
    prices = ef.Input("prices", Order).select("id", "customer", tax="price")
    taxed = ORDERS.join(prices, on=("id", "customer"))
    assert taxed.type._fields == ("id", "customer", "price", "tax")
    assert rows(taxed, prices=[Order(1, "ann", 7), Order(2, "ann", 8)]) == ZSet(
        {(1, "ann", 10, 7): 1}
    )


def test_only_key_fields_that_are_equal_to_each_other_become_one() -> None:
    one = ORDERS.select("id", "price")
    other = ef.Input("others", Order).select("id", cost="price")
    assert one.join(other, left_on=("id", "price"), right_on=("id", "cost")).type._fields == (
        "id",
        "price",
        "cost",
    )
    with pytest.raises(CompositionError, match="both sides have the fields 'id' and 'price'"):
        one.join(one, left_on=("id", "price"), right_on=("price", "id"))


def test_the_key_may_be_a_function_of_either_side() -> None:
    words, names = ef.Input("words", str), ef.Input("names", str)
    assert rows(words.join(names, on=len), words=["to", "be"], names=["al", "bob"]) == ZSet(
        {("to", "al"): 1, ("be", "al"): 1}
    )
    mixed = ORDERS.join(words, left_on="customer", right_on=str.lower, how="left")
    assert rows(mixed, words=["ANN"]).weight((Order(1, "ann", 10), "ANN")) == 1
    assert rows(mixed, words=["ANN"]).weight((Order(3, "zed", 5), None)) == 1


def test_rows_without_known_fields_are_paired() -> None:
    words = ef.Input("words", str)
    for how, kind, found in [
        ("inner", tuple[str, str], {}),
        ("left", tuple[str, str | None], {("to", None): 1}),
        ("right", tuple[str | None, str], {(None, "bob"): 1}),
        ("full", tuple[str | None, str | None], {("to", None): 1, (None, "bob"): 1}),
    ]:
        made = words.join(ef.Input("names", str), on=len, how=how)
        assert made.type == kind
        assert rows(made, words=["to"], names=["bob"]) == ZSet(found)


def test_select_says_what_a_merged_row_is_and_gets_None_for_a_missing_row() -> None:
    def both(left: Order | None, right: Person | None) -> str:
        return f"{left.id if left else '-'} {right.city if right else '-'}"

    made = ORDERS.join(PEOPLE, on="customer", how="full", select=both)
    assert rows(made) == ZSet({"1 Rome": 1, "2 Oslo": 2, "2 Bari": 2, "3 -": 1, "- Bonn": 1})
    typed = ORDERS.join(PEOPLE, on="customer", select=lambda left, right: left.id, type=int)
    assert typed.type is int


def test_None_meets_None() -> None:
    nothing = Order(9, None, 1)  # type: ignore[arg-type]
    found = rows(
        ORDERS.join(PEOPLE, on="customer"),
        orders=[nothing],
        people=[Person(None, "Rome")],  # type: ignore[arg-type]
    )
    assert found == ZSet({(9, None, 1, "Rome"): 1})


def test_cross_is_every_row_with_every_row() -> None:
    made = ORDERS.cross(PEOPLE.select("city"))
    assert made.type.__name__ == "OrderRow"
    assert rows(made).weight((2, "bob", 20, "Bonn")) == 2
    assert len(rows(made)) == 12
    assert rows(ORDERS.cross(PEOPLE, select=lambda o, p: (o.id, p.city))).weight((2, "Bonn")) == 2


def test_equal_joins_are_equal_values_that_can_be_sent() -> None:
    for how in ("inner", "left", "full", "anti"):
        first = ORDERS.join(PEOPLE, on="customer", how=how)
        again = ef.Input("orders", Order).join(ef.Input("people", Person), on="customer", how=how)
        assert first == again
        assert hash(first) == hash(again)
        sent = pickle.loads(pickle.dumps(first))
        assert sent == first
        assert rows(sent) == rows(first)
    assert ORDERS.join(PEOPLE, on="customer") != PEOPLE.join(ORDERS, on="customer")


# ---- + and - and sets ----


def numbers(*names: str) -> list[ef.Collection]:
    return [ef.Input(name, int) for name in names]


def test_plus_and_minus_are_those_of_z_sets() -> None:
    a, b = numbers("a", "b")
    assert rows(a + b, a=[1, 1], b=[1, 2]) == ZSet({1: 3, 2: 1})
    assert rows(a - b, a=[1, 1], b=[1, 2]) == ZSet({1: 1, 2: -1})


def test_a_sum_of_sums_is_one_sum() -> None:
    a, b, c, d = numbers("a", "b", "c", "d")
    made = (a - b) - (c - d)
    assert isinstance(made.node, Concat)
    assert made.node.parts == (a.node, b.node, c.node, d.node)
    assert made.node.signs == (1, -1, -1, 1)
    assert rows(made, a=[1], b=[2], c=[3], d=[4]) == ZSet({1: 1, 2: -1, 3: -1, 4: 1})


def test_set_operations_give_every_row_once() -> None:
    a, b = numbers("a", "b")
    given = {"a": [1, 1, 2], "b": [2, 2, 3]}
    assert rows(a.union(b), **given) == ZSet.of([1, 2, 3])
    assert rows(a.intersect(b), **given) == ZSet.of([2])
    assert rows(a.except_(b), **given) == ZSet.of([1])
    assert isinstance(a.except_(b).node, Semi)


def test_002_D7_a_sum_has_the_type_that_both_sides_have_in_common() -> None:
    whole, real, maybe, anything = (
        ef.Input("n", int), ef.Input("x", float), ef.Input("m", int | None), ef.Input("any")
    )  # fmt: skip
    assert (whole + whole).type is int
    assert (whole + real).type is float
    assert (whole - maybe).type == int | None
    assert (whole + anything).type is Any
    assert (whole + ef.Input("nothing", type(None))).type == int | None
    same = ef.Input("same", Person).map(lambda row: row, type=tuple)
    assert (ef.Input("people", Person) + same).type is tuple


def test_002_D7_row_types_with_the_same_fields_fit() -> None:
    class Visitor(NamedTuple):
        customer: str
        city: str | None

    made = PEOPLE + ef.Input("visitors", Visitor)
    assert made.type.__name__ == "Person"
    assert made.type.__annotations__ == {"customer": str, "city": str | None}
    assert (PEOPLE + ef.Input("others", Person)).type is Person


# ---- what is refused ----


def text(build: Any) -> str:
    with pytest.raises(CompositionError) as caught:
        build()
    lines = str(caught.value).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    created"))


GOLDEN: list[tuple[Any, str]] = [
    (
        lambda: ORDERS.join(PEOPLE, on="custmer"),
        'join(on="custmer"): rows of "orders" have no field \'custmer\'\n'
        "    fields     id, customer, price\n"
        '    try        join(on="customer")',
    ),
    (
        lambda: ORDERS.join(PEOPLE, left_on="customer", right_on="custmer"),
        'join(right_on="custmer"): rows of "people" have no field \'custmer\'\n'
        "    fields     customer, city\n"
        '    try        join(right_on="customer")',
    ),
    (
        lambda: ORDERS.join(SHOPS, on="id"),
        "join(...): the keys are of different types and are never equal\n"
        "    left       id: int\n"
        "    right      id: str\n"
        "    try        a key of the same type on both sides, such as "
        "left_on=lambda row: str(row.id)",
    ),
    (
        lambda: ORDERS.join(SHOPS, left_on=lambda order: order.id * 2, right_on="id"),
        "join(...): the keys are of different types and are never equal\n"
        "    left       id * 2: int\n"
        "    right      id: str\n"
        "    try        a key of the same type on both sides, such as "
        "left_on=lambda row: str(...)",
    ),
    (
        lambda: ORDERS.join(SHOPS, left_on="customer", right_on="town"),
        "join(...): both sides have a field 'id'\n"
        "    left       Order(id: int, customer: str, price: int)\n"
        "    right      Shop(id: str, town: str)\n"
        '    try        suffixes=("", "_right"), select=lambda l, r: ..., or rename() before',
    ),
    (
        lambda: ORDERS.join(ORDERS, on="id"),
        "join(...): both sides have the fields 'customer' and 'price'\n"
        "    left       Order(id: int, customer: str, price: int)\n"
        "    right      Order(id: int, customer: str, price: int)\n"
        '    try        suffixes=("", "_right"), select=lambda l, r: ..., or rename() before',
    ),
    (
        lambda: ORDERS.join(PEOPLE, left_on=("id", "customer"), right_on=("customer",)),
        "join(...): the left key has 2 parts, the right one 1\n"
        "    left       ('id', 'customer')\n"
        "    right      ('customer',)\n"
        "    try        as many parts on both sides",
    ),
    (
        lambda: ORDERS.join(PEOPLE),
        "join(...): no key is given\n"
        '    try        on="field", left_on= and right_on=, or cross(other) for every row with '
        "every row",
    ),
    (
        lambda: ORDERS.join(PEOPLE, on="customer", right_on="customer"),
        "join(...): on= is the key of both sides\n"
        "    try        on= alone, or left_on= and right_on=",
    ),
    (
        lambda: ORDERS.join(PEOPLE, right_on="customer"),
        "join(right_on=...): the key of the other side is not given\n"
        "    try        left_on= beside right_on=, or on= where both sides have the same key",
    ),
    (
        lambda: ORDERS.join(PEOPLE, on="customer", how="outer"),
        "join(how='outer'): there is no such join\n    try        how='full'",
    ),
    (
        lambda: ORDERS.join(PEOPLE, on="customer", how="natural"),
        "join(how='natural'): there is no such join\n"
        "    try        inner, left, right, full, semi, anti",
    ),
    (
        lambda: ORDERS.join(PEOPLE, on="customer", how="semi", select=max),
        "join(how='semi', select=...): the rows are those of the left; nothing is merged\n"
        "    try        join(..., how='semi').map(...)",
    ),
    (
        lambda: ORDERS.join(PEOPLE, on="customer", select=lambda left: left),
        "join(select=<lambda>): it is called with two arguments, the left row and the right row\n"
        "    function   <lambda>(left)\n"
        "    try        a function that takes two arguments",
    ),
    (
        lambda: ORDERS.join(BOUGHT, on="customer"),  # type: ignore[arg-type]
        "join: the other side must be a collection, and is of type list\n"
        f"    given      {BOUGHT!r}\n"
        "    try        an Input or what is made of one; rows themselves come in by "
        "view.step(...)",
    ),
    (
        lambda: ORDERS.cross(ORDERS.select("id")),
        "cross(...): both sides have a field 'id'\n"
        "    left       Order(id: int, customer: str, price: int)\n"
        "    right      Row(id: int)\n"
        '    try        suffixes=("", "_right"), select=lambda l, r: ..., or rename() before',
    ),
    (
        lambda: ORDERS + PEOPLE,
        "a + b: the rows of the two collections are of different types\n"
        "    left       Order(id: int, customer: str, price: int)\n"
        "    right      Person(customer: str, city: str)\n"
        "    try        select(...) or map(...) to the same fields on both sides",
    ),
    (
        lambda: sum([ORDERS, ORDERS]),  # type: ignore[list-item]
        "+: the other side must be a collection, and is of type int\n"
        "    given      0\n"
        "    try        functools.reduce(operator.add, collections), which starts with no 0",
    ),
    (
        lambda: ORDERS - PEOPLE.group_by("city"),  # type: ignore[operator]
        "-: group_by(...) alone is not a collection yet\n"
        "    try        group_by(...).reduce(reducer), or group_by(...).agg(n=ebbflow.count())",
    ),
]


@pytest.mark.parametrize(("build", "said"), GOLDEN, ids=[said.split(":")[0] for _, said in GOLDEN])
def test_002_D7_what_does_not_fit_is_refused_when_it_is_built(build: Any, said: str) -> None:
    assert text(build) == said


@pytest.mark.parametrize("verb", ["union", "intersect", "except_"])
def test_002_D7_set_operations_want_rows_of_one_type(verb: str) -> None:
    assert text(lambda: getattr(ORDERS, verb)(PEOPLE)).startswith(f"{verb}: the rows of the two")
    assert text(lambda: getattr(ORDERS, verb)(3)).startswith(f"{verb}: the other side must be a")


def test_002_D7_fields_of_different_types_do_not_fit_though_the_names_do() -> None:
    class Numbered(NamedTuple):
        customer: int
        city: str

    assert "customer: int" in text(lambda: PEOPLE + ef.Input("numbered", Numbered))


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_002_D7_keys_that_are_never_equal_are_refused_in_every_join(how: str) -> None:
    with pytest.raises(CompositionError, match="never equal"):
        ORDERS.join(SHOPS, left_on="price", right_on="town", how=how)
    with pytest.raises(CompositionError, match="never equal"):
        ORDERS.join(SHOPS, left_on=("customer", "price"), right_on=("town", "id"), how=how)


def test_002_D7_keys_that_may_be_equal_are_accepted() -> None:
    class Rate(NamedTuple):
        amount: float | None
        rate: float

    ORDERS.join(ef.Input("rates", Rate), left_on="price", right_on="amount")
    ORDERS.join(SHOPS.select(key="id"), left_on=lambda row: str(row.id), right_on="key")
    ORDERS.join(SHOPS.select(key="id"), left_on=lambda row: {}.get(row.id), right_on="key")


def test_an_unknown_field_in_several_is_named() -> None:
    with pytest.raises(UnknownField, match="have no field 'prize'"):
        ORDERS.join(PEOPLE, on=("customer", "prize"))
