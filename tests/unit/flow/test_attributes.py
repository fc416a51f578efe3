"""Fields that do not exist, and sums of what is no number, are found when the program is built."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError, UnknownField


class Person(NamedTuple):
    name: str
    town: str


class Order(NamedTuple):
    id: int
    city: str
    price: int
    day: date
    buyer: Person | None = None

    @property
    def dear(self) -> bool:
        return self.price > 100


@dataclass(frozen=True)
class Hit:
    page: str


@dataclass(frozen=True)
class Event:
    kind: str


@dataclass(frozen=True)
class Sale(Event):
    amount: int = 0


@dataclass(frozen=True, init=False)
class Made:
    id: int

    def __init__(self, id: int) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "double", 2 * id)


@dataclass(frozen=True)
class Answers:
    id: int

    def __getattribute__(self, name: str) -> Any:
        return 1 if name == "one" else object.__getattribute__(self, name)


EVENTS = ef.Input("events", Event)
ORDERS = ef.Input("orders", Order)
PEOPLE = ef.Input("people", Person)
WORDS = ef.Input("words", str)
HITS = ef.Input("hits", Hit)


def loops(order: Order) -> int:
    total = 0
    for _ in range(3):
        total += order.prcie  # type: ignore[attr-defined]
    return total


MISSPELT: dict[str, Any] = {
    "filter": lambda: ORDERS.filter(lambda r: r.prcie > 3),
    "map": lambda: ORDERS.map(lambda r: (r.id, r.prcie)),
    "flat_map": lambda: ORDERS.flat_map(lambda r: [r.prcie] * 2),
    "select": lambda: ORDERS.select(price=lambda r: r.prcie),
    "group_by": lambda: ORDERS.group_by(price=lambda r: r.prcie // 10),
    "group_by, part of a tuple": lambda: ORDERS.group_by(lambda r: (r.city, r.prcie)),
    "join on": lambda: ORDERS.join(PEOPLE, left_on=lambda r: r.prcie, right_on="name"),
    "join select": lambda: ORDERS.join(
        PEOPLE, left_on="city", right_on="town", select=lambda o, p: (p.name, o.prcie)
    ),
    "top_k": lambda: ORDERS.top_k(3, order=lambda r: -r.prcie),
    "tumbling": lambda: ORDERS.tumbling(lambda r: r.prcie, 60),
    "key": lambda: ef.Input("orders", Order, key=lambda r: r.prcie),
    "reducer": lambda: ORDERS.agg(total=ef.sum(lambda r: r.prcie)),
    "reducer by": lambda: ORDERS.agg(one=ef.first("city", order=lambda r: r.prcie)),
    "reducer where": lambda: ORDERS.agg(n=ef.count().where(lambda r: r.prcie > 3)),
    "reducer of one's own": lambda: ORDERS.reduce(
        ef.Reducer(0, lambda acc, r: acc + r.prcie, lambda acc, r: acc - r.price)
    ),
    "remove of one's own": lambda: ORDERS.reduce(
        ef.Reducer(0, lambda acc, r: acc + r.price, lambda acc, r: acc - r.prcie)
    ),
    "a method of what is missing": lambda: ORDERS.filter(lambda r: r.prcie.is_integer()),
    "a function that is not traced": lambda: ORDERS.map(loops),
    "attrgetter": lambda: ORDERS.map(attrgetter("prcie")),
}


@pytest.mark.parametrize("verb", MISSPELT)
def test_a_misspelt_field_in_a_function_is_found_when_the_program_is_built(verb: str) -> None:
    with pytest.raises(UnknownField, match="have no field 'prcie'") as error:
        MISSPELT[verb]()
    assert error.value.remedy.endswith(".price")
    assert "test_attributes.py" in str(error.value.facts["created"])


@pytest.mark.parametrize(
    ("make", "what", "remedy"),
    [
        (lambda: ORDERS.filter(lambda o: o.buyer.nmae == "x"), "'nmae'", "o.buyer.name"),
        (lambda: WORDS.map(lambda word: word.uper()), "'uper'", "word.upper"),
        (lambda: HITS.filter(lambda hit: hit.paeg), "'paeg'", "hit.page"),
        (lambda: EVENTS.map(lambda e: e.amout if e.kind else 0), "'amout'", "one of its"),
        (lambda: ORDERS.select("city").filter(lambda r: r.price > 3), "'price'", "one of its"),
    ],
)
def test_what_else_has_no_such_field(make: Any, what: str, remedy: str) -> None:
    with pytest.raises(UnknownField, match=what) as error:
        make()
    assert error.value.remedy.startswith(remedy)


def looks_first(order: Any) -> Any:
    return order.prcie if hasattr(order, "prcie") else order.price


def tries(order: Any) -> Any:
    try:
        return order.prcie
    except AttributeError:
        return order.price


def matches(event: Any) -> Any:
    match event:
        case Sale():
            return event.amount
    return 0


def as_tuple(order: Order) -> tuple:  # type: ignore[type-arg]
    return order


def renames(order: Any) -> Any:
    order = dict(zip(order._fields, order, strict=True))
    return order.items()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ef.Input("anything").filter(lambda r: r.prcie > 3),
        lambda: ORDERS.map(looks_first, type=Any).filter(lambda r: r.prcie),
        lambda: ORDERS.filter(lambda r: r.dear),
        lambda: ORDERS.map(lambda r: r._replace(price=3)),
        lambda: ORDERS.map(looks_first),
        lambda: ORDERS.map(tries),
        lambda: ORDERS.map(lambda r: tuple(renames(r))),
        lambda: ORDERS.map(renames, type=Any),
        lambda: ORDERS.filter(lambda r: r.city.anything_a_subclass_may_have),
        lambda: EVENTS.map(lambda e: e.amount if e.kind == "sale" else 0),
        lambda: EVENTS.map(matches),
        lambda: ORDERS.map(as_tuple).map(lambda r: r.price),
        lambda: ef.Input("made", Made).map(lambda r: r.double),
        lambda: ef.Input("answers", Answers).map(lambda r: r.one),
    ],
)
def test_what_may_be_right_is_not_refused(make: Any) -> None:
    make()


# ---- sums ----

NO_NUMBERS: dict[str, Any] = {
    "sum of a field": lambda: ORDERS.agg(total=ef.sum("city")),
    "sum of a function": lambda: ORDERS.group_by("id").agg(total=ef.sum(lambda r: r.city)),
    "sum of rows": lambda: WORDS.reduce(ef.sum()),
    "sum of dates": lambda: ORDERS.agg(total=ef.sum("day")),
    "mean": lambda: ORDERS.agg(mean=ef.mean("city")),
    "median": lambda: ORDERS.agg(mean=ef.median("city")),
    "product": lambda: ORDERS.agg(mean=ef.product("city")),
    "variance": lambda: ORDERS.agg(n=ef.count(), v=ef.variance("city")),
    "covariance": lambda: ORDERS.agg(v=ef.covariance("price", "city")),
    "sum of some": lambda: ORDERS.agg(v=ef.sum("city").where(lambda r: r.price > 3)),
    "sum and more": lambda: ORDERS.reduce(ef.sum("city") & ef.count()),
    "sum of whole rows": lambda: ORDERS.reduce(ef.sum()),
}


@pytest.mark.parametrize("reducer", NO_NUMBERS)
def test_a_sum_of_what_is_no_number_is_found_when_the_program_is_built(reducer: str) -> None:
    with pytest.raises(CompositionError, match="and no numbers") as error:
        NO_NUMBERS[reducer]()
    assert "test_attributes.py" in str(error.value.facts["created"])


def test_the_error_of_a_sum_names_the_field_and_one_that_will_do() -> None:
    with pytest.raises(CompositionError) as error:
        ORDERS.agg(total=ef.sum("city"))
    assert error.value.what == "agg(total=sum('city')): 'city' is of type str, and no numbers"
    assert error.value.remedy == 'ebbflow.sum("price")'


def test_what_can_be_computed_is_not_refused() -> None:
    ORDERS.agg(a=ef.min("city"), b=ef.max("day"), c=ef.median("day"))
    ORDERS.agg(d=ef.sum(lambda r: len(r.city)), e=ef.quantile(0.5, "city", discrete=True))
    ef.Input("anything").agg(total=ef.sum("city"))


def test_the_repeat_of_a_reducer_is_looked_at_as_well() -> None:
    reducer = ef.Reducer(
        0, lambda n, r: n + r.price, repeat=lambda n, r, times: n + r.prcie * times
    )
    with pytest.raises(UnknownField, match="rows of \"orders\" have no field 'prcie'"):
        ORDERS.agg(total=reducer)
