"""The fluent API: what each verb builds, the type of its rows, and what it refuses."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError
from ebbflow.flow import Program
from ebbflow.flow.plan import Plan, Reduce, Through, TopK
from ebbflow.flow.result_types import result_type
from ebbflow.flow.types import classes
from ebbflow.operator import count, distinct
from ebbflow.record import fields_of, record
from ebbflow.reducer import Map
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS = ef.Input("orders", Order)
WORDS = ef.Input("words", str)
THINGS = ef.Input("things")
BOUGHT = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 5), Order(3, "Oslo", 5)]
SAID = ["to", "be", "be", "known"]


def rows(made: ef.Collection, **inputs: Iterable[Any]) -> ZSet[Any]:
    given: dict[str, Any] = {"orders": BOUGHT, "words": SAID, "things": BOUGHT, **inputs}
    plan = Plan({"out": made.node})
    return evaluate(plan, {name: ZSet.of(each) for name, each in given.items()})["out"]


def size(word: str) -> int:
    return len(word)


def letters(word: str) -> list[str]:
    return list(word)


def each_letter(word: str) -> Iterator[str]:
    yield from word


# ---- one row at a time ----


def test_map_filter_and_flat_map() -> None:
    assert rows(WORDS.map(size)) == ZSet({2: 3, 5: 1})
    assert rows(WORDS.filter(lambda word: word > "c")) == ZSet.of(["to", "known"])
    assert rows(WORDS.flat_map(each_letter)).weight("e") == 2
    assert rows(ORDERS.map("city")) == ZSet({"Rome": 2, "Oslo": 2})
    assert rows(ORDERS.map(("city", "id"))).weight(("Oslo", 3)) == 2


def test_select_takes_fields_and_makes_new_ones() -> None:
    made = ORDERS.select("city", town="city", double=lambda order: order.price * 2)
    assert made.type.__name__ == "Row"
    assert made.type._fields == ("city", "town", "double")
    assert rows(made).weight(("Oslo", "Oslo", 10)) == 2
    assert {type(row) for row in rows(made)} == {made.type}
    assert made.node.fn.text == "Row(city, city, price * 2)"


def test_a_field_may_have_any_name() -> None:
    made = ORDERS.select(name="city", type="id", self="price", count="id")
    assert made.type._fields == ("name", "type", "self", "count")
    again = made.group_by("name", "count").agg(kind=ef.max("type"))
    assert rows(again).weight(("Oslo", 3, 3)) == 1


# ---- groups ----


def test_groups_by_fields_and_functions() -> None:
    made = ORDERS.group_by("city", big=lambda order: order.price > 5).reduce(ef.sum("price"))
    assert made.type._fields == ("city", "big", "value")
    assert rows(made) == ZSet.of([("Rome", True, 40), ("Oslo", False, 10)])
    assert isinstance(made.node, Reduce)
    assert (made.node.width, made.node.spread) == (2, False)


def test_one_function_without_a_name_is_the_key() -> None:
    made = WORDS.group_by(size).reduce(ef.count())
    assert made.type._fields == ("key", "value")
    assert rows(made) == ZSet.of([(2, 3), (5, 1)])
    pairs = ORDERS.group_by(lambda order: (order.city, order.id)).reduce(ef.count())
    assert rows(pairs).weight((("Oslo", 3), 2)) == 1


def test_agg_has_a_field_for_each_reducer() -> None:
    made = ORDERS.group_by("city").agg(total=ef.sum("price"), n=ef.count(), top=ef.max("price"))
    assert rows(made) == ZSet.of([("Rome", 40, 2, 30), ("Oslo", 10, 2, 5)])
    assert made.node.reducer == ef.sum("price") & ef.count() & ef.max("price")
    assert made.node.spread


def test_a_lone_reducer_in_agg_is_used_as_it_is() -> None:
    made = ORDERS.group_by("city").agg(n=ef.count())
    assert made.node.reducer == ef.count()
    assert not made.node.spread
    both = ORDERS.group_by("city").agg(both=ef.count() & ef.max("price"))
    assert rows(both) == ZSet.of([("Rome", (2, 30)), ("Oslo", (2, 5))])


def test_reducers_side_by_side_stay_one_field_in_agg() -> None:
    made = ORDERS.agg(both=ef.count() & ef.max("price"), n=ef.count())
    assert rows(made) == ZSet.of([((4, 30), 4)])


def test_without_a_key_there_is_one_group() -> None:
    assert rows(ORDERS.agg(n=ef.count(), top=ef.max("price"))) == ZSet.of([(4, 30)])
    assert rows(ORDERS.reduce(ef.count())) == ZSet.of([(4,)])
    assert rows(ORDERS.reduce(ef.count()), orders=[]) == ZSet()
    assert ORDERS.reduce(ef.count()).node.width == 0


def test_top_k_gives_rows_of_each_key() -> None:
    made = ORDERS.top_k(1, order="price", per="city")
    assert rows(made) == ZSet.of([Order(2, "Rome", 30), Order(3, "Oslo", 5)])
    assert rows(ORDERS.top_k(2, order="price", smallest=True)) == ZSet({Order(3, "Oslo", 5): 2})
    assert isinstance(made.node, TopK)


def test_distinct_has_every_row_once() -> None:
    assert rows(WORDS.distinct()) == ZSet.of(["to", "be", "known"])


# ---- operators of one's own ----


def test_through_gives_values_or_rows() -> None:
    counted = ORDERS.through(count(), per="city", type=int)
    assert counted.type is record("Group", city=str, value=int)
    assert rows(counted) == ZSet.of([("Rome", 2), ("Oslo", 2)])
    assert rows(ORDERS.through(count())) == ZSet.of([(4,)])
    assert ORDERS.through(count()).type is record("Group", value=Any)
    once = ORDERS.through(distinct(), type=Order)
    assert once.type is Order
    assert rows(once).weight(Order(3, "Oslo", 5)) == 1
    keyed = ORDERS.through(distinct(), per=lambda order: order.city)
    assert keyed.type._fields == ("key", "value")
    assert isinstance(keyed.node, Through)


# ---- types ----


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (ORDERS, Order),
        (THINGS, Any),
        (WORDS.map(size), int),
        (WORDS.map(len), int),
        (WORDS.map(partial(size)), int),
        (WORDS.map(len, type=int), int),
        (WORDS.map(str), str),
        (WORDS.map(lambda word: word), str),
        (WORDS.map(lambda word: word.upper()), str),
        (THINGS.map(lambda thing: thing.city), Any),
        (ORDERS.map(lambda order: order.city), str),
        (ORDERS.map(lambda order: (order.city, order.price * 2, None)),
         tuple[str, int, type(None)]),
        (ORDERS.map(lambda order: Order(order.id, order.city, 0)), Order),
        (ORDERS.map(lambda order: order.price > 3), bool),
        (ORDERS.map(lambda order: order.price / 2), float),
        (ORDERS.map(lambda order: order.price + order.city), Any),
        (ORDERS.map(lambda order: order.price ** order.id), Any),
        (ORDERS.map(lambda order: order.city if order.id else None), str | None),
        (ORDERS.map(lambda order: order.city if order.id else order.price), Any),
        (ORDERS.map(lambda order: not order.id), bool),
        (ORDERS.map(lambda order: len(order.city)), int),
        (ORDERS.select("id", start=lambda order: order.city[:2]), record("Row", id=int, start=str)),
        (ORDERS.join(WORDS, left_on="city", right_on=str, select=lambda o, w: (o.id, w)),
         tuple[int, str]),
        (ORDERS.map("city"), str),
        (ORDERS.map(("city", "id")), tuple[str, int]),
        (THINGS.map("city"), Any),
        (ef.Input("points", Point).map("x"), int),
        (WORDS.flat_map(letters), str),
        (WORDS.flat_map(each_letter), str),
        (WORDS.flat_map(str), str),
        (WORDS.flat_map(lambda word: word, type=str), str),
        (WORDS.filter(size), str),
        (WORDS.distinct(), str),
        (WORDS.top_k(1, order=size), str),
        (ORDERS.select("id", when=size), record("Row", id=int, when=int)),
        (WORDS.group_by(size).reduce(ef.max()), record("Group", key=int, value=str)),
        (ORDERS.group_by("city").agg(n=ef.count(), top=ef.max("price"), low=ef.min()),
         record("Group", city=str, n=int, top=int, low=Order)),
        (ORDERS.agg(both=ef.count() & ef.sum("price")), record("Group", both=tuple[int, int])),
        (WORDS.agg(size=ef.max().then(size)), record("Group", size=int)),
        (ORDERS.agg(low=ef.min("price").where(lambda order: order.id > 1)),
         record("Group", low=int | None)),
        (ORDERS.agg(low=ef.min().on("city")), record("Group", low=str)),
        (WORDS.agg(x=ef.Reducer(0, lambda total, word: total + 1)), record("Group", x=int)),
    ],
    ids=repr,
)  # fmt: skip
def test_002_D7_every_collection_has_one_type(made: ef.Collection, kind: Any) -> None:
    assert made.type == kind
    assert made.node.type == kind


PROGRAMS = [
    ORDERS.select("city", cheap="price"),
    ORDERS.group_by("city", "id").agg(n=ef.count(), most=ef.max("price"), last=ef.arg_max("id")),
    ORDERS.group_by(lambda order: order.city).reduce(ef.set_of("id")),
    ORDERS.join(ef.Input("more", Order).select("id", tax="price"), on="id", how="full"),
    ORDERS.tumbling("price", 10).group_by("window_start").agg(n=ef.count()),
    ORDERS.sliding("price", 10, 2.5),
    ORDERS.session("price", 10, per="city"),
    ORDERS + ef.Input("more", Order),
    ORDERS.union(ef.Input("more", Order)).top_k(2, order="price"),
    ORDERS.through(count(), per="city", type=int),
    WORDS.map(size) + ef.Input("numbers", float),
    WORDS.flat_map(letters).distinct(),
]


def fits(value: Any, kind: Any) -> bool:
    fields = fields_of(kind)
    if fields is not None:
        return isinstance(value, tuple) and all(map(fits, value, fields.values()))
    known = classes(kind)
    return known is None or isinstance(value, known) or (float in known and type(value) is int)


@pytest.mark.parametrize("made", PROGRAMS, ids=repr)
def test_002_D7_rows_are_of_the_type_that_was_found_when_building(made: ef.Collection) -> None:
    found = rows(made, more=BOUGHT[:2], numbers=[0.5])
    assert len(found) > 0
    assert all(fits(row, made.type) for row in found)
    if fields_of(made.type) is not None:
        assert all(row._fields == made.type._fields for row in found)


@pytest.mark.parametrize(
    ("reducer", "kind"),
    [
        (ef.count(), int), (ef.count_distinct(), int), (ef.approx_count_distinct(), int),
        (ef.rank(3), int), (ef.bool_and(), bool), (ef.bool_or(), bool),
        (ef.histogram(), Map[int, int]), (ef.set_of(), frozenset[int]),
        (ef.collect(), tuple[int, ...]), (ef.top_k(2), tuple[int, ...]), (ef.sum(), int),
        (ef.naive_sum(), int), (ef.min(), int), (ef.max(), int), (ef.mode(), int),
        (ef.first(None, abs), int), (ef.last(None, abs), int), (ef.arg_max(abs), int),
        (ef.arg_min(abs), int), (ef.string_agg(str), str), (ef.mean(), float),
        (ef.count().by(abs), Map[int, int]), (ef.product(), int), (ef.bit_xor(), int),
        (ef.median(), float), (ef.quantile(0.5, discrete=True), int),
        (ef.approx_quantile(0.5), float),
        (ef.covariance(abs, abs), float | None), (ef.weighted_mean(abs, abs), float | None),
    ],
    ids=repr,
)  # fmt: skip
def test_002_D7_what_a_reducer_gives_is_of_the_type_that_was_found(reducer: Any, kind: Any) -> None:
    found = result_type(reducer, int)
    assert found == kind
    assert fits(reducer([3, 1, 3]), found)


@pytest.mark.parametrize(
    ("reducer", "kind"),
    [
        (ef.bool_and("n"), bool), (ef.bool_or("n"), bool), (ef.string_agg("n"), str),
        (ef.sum("n"), int), (ef.min("n"), int), (ef.mean("n"), float), (ef.median("n"), float),
        (ef.mode("n"), int), (ef.product("n"), int), (ef.bit_xor("n"), int),
        (ef.first("k", order="n"), int), (ef.arg_max("n", "k"), int), (ef.top_k(2, "n"), tuple),
        (ef.collect("n"), tuple), (ef.set_of("n"), frozenset), (ef.count("n"), int),
        (ef.count_distinct("n"), int), (ef.quantile(0.5, "n", discrete=True), int),
        (ef.bool_or(lambda row: row.n), bool), (ef.string_agg("n", order="k"), str),
        (ef.covariance("n", "k"), float), (ef.weighted_mean("n", "k"), float),
        (ef.approx_quantile(0.5, "n"), float), (ef.variance("n"), float),
    ],
    ids=repr,
)  # fmt: skip
def test_a_group_of_none_alone_gives_what_the_type_says(reducer: Any, kind: Any) -> None:
    Row = record("Row", k=int, n=int | None)
    found = result_type(reducer, Row)
    for rows in ([Row(1, None)], [Row(1, 2), Row(2, None)]):
        assert fits(reducer(rows), found)
    given = set(classes(found) or ()) - {type(None)}
    assert given == {kind}
    assert (reducer([Row(1, None)]) is None) == (type(None) in (classes(found) or ()))


def test_where_it_is_not_known_whether_a_value_is_none_it_may_be() -> None:
    assert result_type(ef.bool_and(lambda row: row["x"]), Any) == bool | None
    assert result_type(ef.string_agg("name"), Any) == str | None


def test_002_D7_the_sum_of_truth_values_is_a_number() -> None:
    assert result_type(ef.sum(), bool) is int


# ---- as values ----


def test_equal_programs_are_equal() -> None:
    def build() -> ef.Collection:
        orders = ef.Input("orders", Order, key="id")
        return orders.filter(lambda order: order.price > 3).group_by("city").agg(n=ef.count())

    assert build() == build()
    assert hash(build()) == hash(build())
    assert build() != ORDERS
    assert ORDERS != 3


@pytest.mark.parametrize(
    "made",
    [each for each in PROGRAMS if "lambda" not in repr(each.node) and each.node.verb != "through"],
    ids=repr,
)
def test_programs_can_be_sent(made: ef.Collection) -> None:
    sent = pickle.loads(pickle.dumps(made))
    assert sent == made
    assert hash(sent) == hash(made)


def test_a_program_that_was_sent_to_another_process_equals_the_same_one_there() -> None:
    code = (
        "import pickle, sys, ebbflow as ef\n"
        "sent = pickle.loads(sys.stdin.buffer.read())\n"
        "made = ef.Input('words', str).group_by('upper').agg(n=ef.count())\n"
        "assert sent == made and hash(sent) == hash(made) and {sent: 1}[made] == 1\n"
    )
    made = WORDS.group_by("upper").agg(n=ef.count())
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(made), check=True)


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (ORDERS, "Input('orders', Order)"),
        (THINGS, "Input('things')"),
        (ef.Input("o", Order, key=("id", "city")), "Input('o', Order, key=('id', 'city'))"),
        (ORDERS.filter("price").group_by("city").agg(n=ef.count()),
         "<Group(city, n): orders → filter → reduce>"),
        (ORDERS.union(ORDERS), "<Order(id, city, price): (orders) → concat → distinct>"),
        (WORDS.join(THINGS, on=str, how="anti"), "<str: (words, things) → anti>"),
    ],
)  # fmt: skip
def test_a_collection_is_shown_in_one_line(made: ef.Collection, shown: str) -> None:
    assert repr(made) == shown


def test_a_node_remembers_the_line_of_the_user() -> None:
    made, first = ORDERS.filter(size), line()
    assert made.node.place.endswith(f"{Path(__file__).name}:{first}")
    with pytest.raises(CompositionError) as caught:
        ORDERS.filter("colour")
    assert str(caught.value.facts["created"]).endswith(f":{first + 3}")
    joined, here = ORDERS.join(ORDERS, on="id", how="left", select=max), line()
    nodes = [node for node in Plan({"out": joined.node}).nodes() if node is not ORDERS.node]
    assert {node.place.rpartition(":")[2] for node in nodes} == {str(here)}


def line() -> int:
    """The line this is called from."""
    return sys._getframe(1).f_lineno


# ---- programs ----


def test_a_program_has_named_outputs() -> None:
    made = ef.program(sizes=WORDS.map(size), last=WORDS.reduce(ef.max()))
    assert isinstance(made, Program)
    assert list(made.plan.outputs) == ["sizes", "last"]
    assert list(made.plan.sources) == ["words"]


class Recorder:
    def run(self, plan: Plan, **options: Any) -> Any:
        return plan, options


def test_an_engine_is_given_the_plan_and_the_options() -> None:
    plan, options = WORDS.run(Recorder(), check_input=False)
    assert plan.outputs == {"output": WORDS.node}
    assert options == {"check_input": False}
    assert ef.program(out=WORDS).run(Recorder()) == (Plan({"out": WORDS.node}), {})


def test_the_same_input_may_be_written_twice() -> None:
    both = WORDS + ef.Input("words", str)
    plan, _ = both.run(Recorder())
    assert list(plan.sources) == ["words"]
