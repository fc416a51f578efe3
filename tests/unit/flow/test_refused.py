"""Programs that are refused when they are built, and the error of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.change import NUMBER
from ebbflow.engine.batch import evaluate
from ebbflow.errors import CompositionError, UnknownField
from ebbflow.flow import Grouped
from ebbflow.flow.plan import Plan, Source
from ebbflow.operator import Operator, count, stateless, union
from ebbflow.stream import prefix_sum
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS = ef.Input("orders", Order)
WORDS = ef.Input("words", str)
THINGS = ef.Input("things")
BOUGHT = [Order(1, "Rome", 10), Order(2, "Rome", 30), Order(3, "Oslo", 5), Order(3, "Oslo", 5)]


def rows(made: ef.Collection, **inputs: Iterable[Any]) -> ZSet[Any]:
    given: dict[str, Any] = {"orders": BOUGHT, "words": ["to", "be"], "things": BOUGHT, **inputs}
    plan = Plan({"out": made.node})
    return evaluate(plan, {name: ZSet.of(each) for name, each in given.items()})["out"]


def size(word: str) -> int:
    return len(word)


def letters(word: str) -> list[str]:
    return list(word)


class Recorder:
    def run(self, plan: Plan, **options: Any) -> Any:
        return plan, options


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
        lambda: ORDERS.select("id").top_k(3, order="price"),
        "top_k(order=\"price\"): Row rows have no field 'price'\n"
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
        lambda: ORDERS.select("city", total=ef.sum("price")),
        "select(total=sum('price')): a reducer takes many rows, and here is one row\n"
        "    try        group_by(\"field\").agg(name=sum('price')), "
        "or over(...).with_fields(name=sum('price'))",
    ),
    (
        lambda: ORDERS.map(ef.count),
        "map(count): a reducer takes many rows, and here is one row\n"
        '    try        group_by("field").agg(name=ebbflow.sum("field")), '
        'or over(...).with_fields(name=ebbflow.sum("field"))',
    ),
    (
        lambda: ORDERS.with_fields(total=lambda order: ef.sum("price")),
        "with_fields(total=<lambda>): a reducer takes many rows, and here is one row\n"
        '    try        group_by("field").agg(name=ebbflow.sum("field")), '
        'or over(...).with_fields(name=ebbflow.sum("field"))',
    ),
    (
        lambda: ORDERS.agg(total=ef.sum(ef.max("price"))),
        "agg(total=sum(max('price'))): a reducer takes many rows, and here is one row\n"
        "    try        group_by(\"field\").agg(name=max('price')), "
        "or over(...).with_fields(name=max('price'))",
    ),
    (
        lambda: ORDERS.agg(ef.count),
        "agg(count): every result needs a name\n    try        agg(name=count)",
    ),
    (
        lambda: WORDS.map(yielding),
        "map(yielding): it yields, and here one value is wanted\n"
        "    try        flat_map(yielding), or return instead of yield",
    ),
    (
        lambda: WORDS.map(later),
        "map(later): it is async, and an epoch awaits nothing\n"
        "    try        a plain function; await its data before the step and join with it",
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
        lambda: ORDERS.group_by("city").top_k(3, order="price"),
        ".top_k is for collections, and group_by(...) alone is none\n"
        '    try        collection.top_k(..., per="field"), without group_by',
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
        lambda: ORDERS.top_k(0, order="price"),
        "top_k(0): it gives a positive number of rows\n    try        top_k(1, order=...)",
    ),
    (
        lambda: ORDERS.through(Counter),  # type: ignore[arg-type]
        "through(Counter): that is not an operator\n    try        through(Counter(...))",
    ),
    (
        lambda: ORDERS.through(len),  # type: ignore[arg-type]
        "through(len): that is not an operator\n"
        "    try        ebbflow.operator.of(len), which computes it again for each change",
    ),
    (
        lambda: ORDERS.through(3),  # type: ignore[arg-type]
        "through(3): that is not an operator\n    try        an ebbflow.operator.Operator",
    ),
    (
        lambda: ORDERS.through(prefix_sum()),
        "through(prefix_sum()): it reads LIST, and the changes of rows are ZSETS\n"
        "    try        an operator whose input is ebbflow.change.BAG, or a processor that reads "
        "ZSETS",
    ),
    (
        lambda: ORDERS.through(union()),
        "through(union()): its input is not a bag, and rows are one\n"
        "    input      pair(BAG, BAG)\n"
        "    try        an operator whose input is ebbflow.change.BAG, or a processor that reads "
        "ZSETS; for this one, through(operator, other)",
    ),
    (
        lambda: ORDERS.through(count(), ORDERS),
        "through(count()): its input is not a pair of bags, and the rows of two collections are "
        "one\n"
        "    input      BAG\n"
        "    try        an operator whose input is pair(BAG, BAG), or a processor that reads "
        "product(ZSETS, ZSETS)",
    ),
    (
        lambda: ORDERS.through(prefix_sum(), ORDERS),
        "through(prefix_sum()): it reads LIST, and the changes of two collections are "
        "product(ZSETS, ZSETS)\n"
        "    try        an operator whose input is pair(BAG, BAG), or a processor that reads "
        "product(ZSETS, ZSETS)",
    ),
    (
        lambda: ORDERS.through(union(), "city"),  # type: ignore[arg-type]
        "through(union(), 'city'): 'city' is no collection\n"
        "    try        through(..., per='city'), if that is the key",
    ),
    (
        lambda: ORDERS.through(union(), ORDERS, per="city", left_per="id"),
        "through(...): per= is the key of both sides\n"
        "    try        per=, or left_per= and right_per=",
    ),
    (
        lambda: ORDERS.through(union(), ORDERS, left_per="id"),
        "through(...): right_per= is not given\n    try        left_per= and right_per=, or per=",
    ),
    (
        lambda: ORDERS.through(union(), ORDERS, left_per="id", right_per="city"),
        "through(...): the keys of the two sides are of different types and are never equal\n"
        "    left       int\n"
        "    right      str\n"
        "    try        a key of the same type on both sides",
    ),
    (
        lambda: ORDERS.through(count(), right_per="id"),
        "through(left_per=..., right_per=...): there is one collection\n    try        per=",
    ),
    (
        lambda: ORDERS.through(HALVE),
        "through(halve): its input is not a bag, and rows are one\n"
        "    input      NUMBER\n"
        "    try        an operator whose input is ebbflow.change.BAG, or a processor that reads "
        "ZSETS",
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
        ORDERS.top_k(n, order="price")


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
