"""The fluent API: what each verb builds, the type of its rows, and what it refuses."""

from __future__ import annotations

import math
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
from ebbflow.change import NUMBER
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError, UnknownField
from ebbflow.flow import Grouped, Program
from ebbflow.flow.plan import Plan, Reduce, Source, Through, TopK
from ebbflow.flow.result_types import result_type
from ebbflow.flow.types import classes
from ebbflow.operator import Operator, count, distinct, stateless
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
    made = ORDERS.top_k(1, by="price", per="city")
    assert rows(made) == ZSet.of([Order(2, "Rome", 30), Order(3, "Oslo", 5)])
    assert rows(ORDERS.top_k(2, by="price", smallest=True)) == ZSet({Order(3, "Oslo", 5): 2})
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
        (WORDS.top_k(1, by=size), str),
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
    ORDERS.union(ef.Input("more", Order)).top_k(2, by="price"),
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
        (ef.first("k", by="n"), int), (ef.arg_max("n", "k"), int), (ef.top_k(2, "n"), tuple),
        (ef.collect("n"), tuple), (ef.set_of("n"), frozenset), (ef.count("n"), int),
        (ef.count_distinct("n"), int), (ef.quantile(0.5, "n", discrete=True), int),
        (ef.bool_or(lambda row: row.n), bool), (ef.string_agg("n", by="k"), str),
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


# ---- what is refused ----


def yielding(row: Any) -> Iterator[Any]:
    yield row


async def later(row: Any) -> Any:
    return row


class Tagged(NamedTuple):
    tags: list[str]


class Counter(Operator[Any, Any, Any, Any]):
    pass


HALVE = stateless(lambda n: n / 2, lambda n: n / 2, input=NUMBER, output=NUMBER, name="halve")
NEXT = "group_by(...).reduce(reducer), or group_by(...).agg(n=ebbflow.count())"

GOLDEN: list[tuple[Any, str]] = [
    (
        lambda: ORDERS.group_by("ctiy"),
        'group_by("ctiy"): rows of "orders" have no field \'ctiy\'\n'
        "    fields     id, city, price\n"
        '    try        group_by("city")',
    ),
    (
        lambda: ORDERS.filter("price").select("colour"),
        'select("colour"): rows of "orders" have no field \'colour\'\n'
        "    fields     id, city, price\n"
        "    try        one of its fields, or a function of the row",
    ),
    (
        lambda: ORDERS.select("id", cost="prise"),
        'select(cost="prise"): rows of "orders" have no field \'prise\'\n'
        "    fields     id, city, price\n"
        '    try        select(cost="price")',
    ),
    (
        lambda: ORDERS.select("id").top_k(3, by="price"),
        "top_k(by=\"price\"): Row rows have no field 'price'\n"
        "    fields     id\n"
        "    try        one of its fields, or a function of the row",
    ),
    (
        lambda: WORDS.filter("size"),
        'filter("size"): rows of "words" are of type str, which has no field \'size\'\n'
        "    try        a function of the row, or a NamedTuple as the type of the rows",
    ),
    (
        lambda: ORDERS.group_by("city").agg(total=ef.sum("pirce")),
        'agg(total=sum("pirce")): rows of "orders" have no field \'pirce\'\n'
        "    fields     id, city, price\n"
        '    try        agg(total=sum("price"))',
    ),
    (
        lambda: WORDS.map(lambda a, b: a),
        "map(<lambda>): it is called with one argument, the row\n"
        "    function   <lambda>(a, b)\n"
        "    try        a function that takes one argument",
    ),
    (
        lambda: WORDS.filter(7),  # type: ignore[arg-type]
        "filter(7): 7 is no part of a row\n"
        "    try        a field name, several in a tuple, or a function",
    ),
    (
        lambda: WORDS.map(yielding),
        "map(yielding): it yields, and here one value is wanted\n"
        "    try        flat_map(yielding), or return instead of yield",
    ),
    (
        lambda: WORDS.map(later),
        "map(later): it is async, and a program's functions answer at once\n"
        "    try        a plain function",
    ),
    (
        lambda: WORDS.map(letters),
        "map(...): rows must be hashable, and here is a list\n"
        "    type       list[str]\n"
        "    try        tuples for lists, frozensets for sets, a NamedTuple or a frozen dataclass",
    ),
    (
        lambda: WORDS.flat_map(size),
        "flat_map(...): it gives int, which holds no rows\n"
        "    try        map(...), or a function that returns a list of rows",
    ),
    (
        lambda: ORDERS.select(),
        'select(): no field is given\n    try        select("field", other=lambda row: ...)',
    ),
    (
        lambda: ORDERS.select("id", id="price"),
        "select(id=...): the field 'id' is given twice\n"
        "    try        another name for one of them",
    ),
    (
        lambda: ORDERS.select(_id="id"),
        "select(_id=...): '_id' cannot be the name of a field\n"
        "    try        a name without a leading underscore that is no keyword of Python",
    ),
    (
        lambda: ORDERS.group_by("city", "city"),
        "group_by(\"city\"): the field 'city' is given twice\n    try        each field once",
    ),
    (
        lambda: ORDERS.group_by("city", size),
        "group_by(size): a function here needs a name, to be a field\n"
        "    try        group_by(..., name=size)",
    ),
    (
        lambda: ORDERS.group_by(),
        "group_by(): no key is given\n"
        "    try        a field or a function; for one group of all rows: "
        ".agg(n=ebbflow.count())",
    ),
    (
        lambda: ORDERS.group_by("city").map(size),
        f".map is for collections, and group_by(...) alone is none\n    try        {NEXT}",
    ),
    (
        lambda: list(ORDERS.group_by("city")),  # type: ignore[call-overload]
        f"group_by(...) alone cannot be iterated\n    try        {NEXT}",
    ),
    (
        lambda: ORDERS.agg(),
        "agg(): no reducer is given\n    try        agg(n=ebbflow.count())",
    ),
    (
        lambda: ORDERS.agg(ef.count()),
        "agg(count()): every result needs a name\n    try        agg(name=count())",
    ),
    (
        lambda: ORDERS.group_by("city").agg(total=sum),  # type: ignore[arg-type]
        'agg(total=...): sum is not a reducer\n    try        ebbflow.sum("price")',
    ),
    (
        lambda: ORDERS.group_by("city").agg(total=ef.mean),  # type: ignore[arg-type]
        'agg(total=...): mean is not a reducer\n    try        ebbflow.mean("price")',
    ),
    (
        lambda: ORDERS.reduce(size),  # type: ignore[arg-type]
        "reduce(...): size is not a reducer\n"
        "    try        ebbflow.Reducer(init, add, remove), or one of the library, such as "
        "ebbflow.count()",
    ),
    (
        lambda: ORDERS.reduce("price"),  # type: ignore[arg-type]
        "reduce(...): 'price' is not a reducer\n    try        a Reducer, such as ebbflow.count()",
    ),
    (
        lambda: ORDERS.group_by("city").agg(city=ef.count()),
        "agg(city=...): 'city' is already a field of the key\n"
        "    key        ('city',)\n"
        "    try        another name for the result, or for the key: group_by(name=...)",
    ),
    (
        lambda: ORDERS.group_by(value="id").reduce(ef.count()),
        "reduce(...): the key has a field 'value', which is the name of the result's field\n"
        "    try        agg(total=count()), where the result has a name of your choice",
    ),
    (
        lambda: ORDERS.agg(cities=ef.set_of("city").then(list)),
        "reduce(...): rows must be hashable, and here is a list in the field 'cities'\n"
        "    type       Group\n"
        "    try        tuples for lists, frozensets for sets, a NamedTuple or a frozen dataclass",
    ),
    (
        lambda: ORDERS.top_k(0, by="price"),
        "top_k(0): it gives a positive number of rows\n    try        top_k(1, by=...)",
    ),
    (
        lambda: ORDERS.through(Counter),  # type: ignore[arg-type]
        "through(Counter): that is not an operator\n    try        through(Counter(...))",
    ),
    (
        lambda: ORDERS.through(len),  # type: ignore[arg-type]
        "through(len): that is not an operator\n    try        an ebbflow.operator.Operator",
    ),
    (
        lambda: ORDERS.through(HALVE),
        "through(halve): its input is not a bag, and rows are one\n"
        "    input      NUMBER\n"
        "    try        an operator whose input is ebbflow.change.BAG",
    ),
    (
        lambda: bool(ORDERS),
        "a collection is a program, not its rows: it is neither true nor false\n"
        "    try        view = c.run(), then if view.value:",
    ),
    (
        lambda: list(ORDERS),  # type: ignore[call-overload]
        "a collection is a program, not its rows: it cannot be iterated\n"
        "    try        view = c.run(), then for row in view.value:",
    ),
    (
        lambda: len(ORDERS),
        "a collection is a program, not its rows: it has no length\n"
        "    try        view = c.run(), then len(view.value)",
    ),
    (
        lambda: BOUGHT[0] in ORDERS,
        "a collection is a program, not its rows: it cannot be searched\n"
        "    try        view = c.run(), then row in view.value",
    ),
    (
        lambda: ef.Input(Order),  # type: ignore[arg-type]
        f"Input({Order!r}): an input has a name, by which rows are given to it\n"
        '    try        Input("orders", Order)',
    ),
    (
        lambda: ef.Input("orders", BOUGHT[0]),
        "Input('orders', ...): the type of the rows is asked for, not a row\n"
        "    given      Order(id=1, city='Rome', price=10)\n"
        "    try        Input('orders', Order)",
    ),
    (
        lambda: WORDS.map(lambda word: word, type=Tagged),
        "map(...): rows must be hashable, and here is a list in the field 'tags'\n"
        "    type       Tagged\n"
        "    try        tuples for lists, frozensets for sets, a NamedTuple or a frozen dataclass",
    ),
    (
        lambda: ef.Input("orders", Order, key="idd"),
        "Input('orders', key=\"idd\"): rows of \"orders\" have no field 'idd'\n"
        "    fields     id, city, price\n"
        "    try        Input('orders', key=\"id\")",
    ),
    (
        lambda: ef.program(),
        "program(): no output is given\n    try        program(name=collection, ...)",
    ),
    (
        lambda: ef.program(top=BOUGHT),  # type: ignore[arg-type]
        "program(top=...): an output is a collection\n"
        f"    given      {BOUGHT!r}\n"
        "    try        an Input or what is made of one",
    ),
    (
        lambda: ef.program(top=ORDERS.group_by("city")),  # type: ignore[arg-type]
        f"program(top=...): group_by(...) alone is not a collection yet\n    try        {NEXT}",
    ),
    (
        lambda: ORDERS.run("spark"),
        "run('spark'): that is not an engine\n    try        run(ef.spark(path=\"state/\"))",
    ),
    (
        lambda: ORDERS.run(7),
        "run(7): that is not an engine\n"
        "    try        run() for this process, or an engine, which has run(plan)",
    ),
]


@pytest.mark.parametrize(("build", "said"), GOLDEN, ids=[said.split("\n")[0] for _, said in GOLDEN])
def test_002_D7_a_wrong_program_is_refused_when_it_is_built(build: Any, said: str) -> None:
    with pytest.raises(CompositionError) as caught:
        build()
    lines = str(caught.value).splitlines()
    created = [line for line in lines if line.startswith("    created")]
    assert len(created) == 1
    assert Path(__file__).name in created[0]
    assert "\n".join(line for line in lines if line not in created) == said


@pytest.mark.parametrize("other", [ef.Input("orders", str), ef.Input("orders", Order, key="id")])
def test_002_D7_two_inputs_of_one_name_must_be_one_input(other: ef.Collection) -> None:
    for build in (
        lambda: ef.program(a=ORDERS, b=other),
        lambda: ORDERS.map(str).join(other.map(str), on=len).run(Recorder()),
        lambda: ORDERS.map(str).join(other.map(str), on=len).explain(),
    ):
        with pytest.raises(CompositionError, match='two inputs are called "orders"') as caught:
            build()
        assert "rows of type Order(id: int, city: str, price: int), created" in str(caught.value)


@pytest.mark.parametrize(
    "reducer",
    [
        ef.sum("colour"),
        ef.count() & ef.sum("colour"),
        ef.sum("colour").then(str),
        ef.sum("price").where("colour"),
        ef.sum("colour").where("price"),
        ef.sum("price").by("colour"),
        ef.sum().on("colour"),
        ef.arg_max("price", "colour"),
        ef.arg_max("colour"),
        ef.weighted_mean("price", "colour"),
        ef.quantile(0.5, "colour"),
        ef.top_k(2, "colour"),
        ef.string_agg("colour"),
        ef.approx_quantile(0.5, "colour"),
    ],
    ids=repr,
)
def test_002_D7_a_field_that_a_reducer_does_not_find_is_refused(reducer: Any) -> None:
    for build in (
        lambda: ORDERS.reduce(reducer),
        lambda: ORDERS.agg(x=reducer),
        lambda: ORDERS.group_by("city").agg(n=ef.count(), x=reducer),
    ):
        with pytest.raises(UnknownField, match="have no field 'colour'"):
            build()
    THINGS.reduce(reducer)


def test_002_D7_what_is_no_field_of_a_reducer_is_not_taken_for_one() -> None:
    ORDERS.agg(
        x=ef.string_agg("city", separator=" and "),
        y=ef.rank("x", "city"),
        z=ef.sum().on(lambda o: o.id),
    )
    assert rows(ORDERS.agg(x=ef.max("city").on(lambda order: order))) == ZSet.of([("Rome",)])


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3", None, math.inf])
def test_top_k_wants_a_positive_number_of_rows(n: Any) -> None:
    with pytest.raises(CompositionError, match="a positive number of rows"):
        ORDERS.top_k(n, by="price")


@pytest.mark.parametrize("name", ["", None, 3, b"orders"])
def test_an_input_wants_a_name(name: Any) -> None:
    with pytest.raises(CompositionError, match="an input has a name"):
        ef.Input(name)


def test_groups_are_not_a_collection() -> None:
    groups = ORDERS.group_by("city")
    assert isinstance(groups, Grouped)
    assert not isinstance(groups, ef.Collection)
    assert not hasattr(groups, "_repr_html_")
    with pytest.raises(AttributeError):
        groups.nonsense
    with pytest.raises(CompositionError, match="neither true nor false"):
        bool(groups)
    with pytest.raises(CompositionError, match="alone is not a collection yet"):
        ORDERS.join(groups, on="city")  # type: ignore[arg-type]


def test_an_input_is_a_source_with_its_key() -> None:
    made = ef.Input("orders", Order, key=("id", "city"))
    assert isinstance(made, ef.Collection)
    assert isinstance(made.node, Source)
    assert made.node.key(Order(1, "Rome", 10)) == (1, "Rome")
    assert ORDERS.node.key is None
