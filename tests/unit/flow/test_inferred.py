"""What a function is seen to return is what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import attrgetter, itemgetter
from random import Random
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import pytest

import ebbflow as ef
from ebbflow.flow.inferred import inferred
from ebbflow.flow.types import classes
from ebbflow.record import fields_of

Instant = Annotated[datetime, UTC]
Money = Annotated[Decimal, (10, 2)]
LIMIT, EUROS = 7, "€ "


class Person(NamedTuple):
    name: str
    age: int


class Order(NamedTuple):
    id: int
    city: str
    price: float
    day: date
    at: datetime
    seen: Instant
    cost: Money
    note: str | None
    buyer: Person
    tags: tuple[str, ...]
    pair: tuple[int, str]
    span: timedelta
    paid: bool
    anything: Any


ROW = Order(
    3, "Rome", 2.5, date(2026, 1, 2), datetime(2026, 1, 2, 3), datetime(2026, 1, 2, tzinfo=UTC),
    Decimal("1.50"), "x", Person("Ann", 40), ("a", "b"), (1, "c"), timedelta(hours=1), True, 1,
)  # fmt: skip


def hinted(text: str) -> int:
    return len(text)


def unhinted(text):  # type: ignore[no-untyped-def]
    return len(text)


SEEN: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda r: unhinted(r.city), int),
    (lambda r: r.day.strftime("%Y-%m"), str),
    (lambda r: f"{r.day:%Y-%m}", str),
    (lambda r: f"{r.city}-{r.id!r}", str),
    (lambda r: r.city.upper().strip(), str),
    (lambda r: r.city.partition("-"), tuple[str, str, str]),
    (lambda r: r.city.split(",")[0], str),
    (lambda r: r.city.startswith("R"), bool),
    (lambda r: r.city.find("o"), int),
    (lambda r: r.city[:2], str),
    (lambda r: r.city[0], str),
    (lambda r: EUROS + r.city, str),
    (lambda r: "{}!".format(r.city), str),  # noqa: UP032
    (lambda r: r.city * 2, str),
    (lambda r: r.day.year, int),
    (lambda r: r.day.month * 100 + r.day.day, int),
    (lambda r: r.at.hour, int),
    (lambda r: r.at.date(), date),
    (lambda r: r.at.date().isoformat(), str),
    (lambda r: r.at.replace(minute=0, second=0), datetime),
    (lambda r: r.seen.replace(minute=0), Instant),
    (lambda r: r.seen.timestamp(), float),
    (lambda r: r.seen, Instant),
    (lambda r: r.at + timedelta(days=1), datetime),
    (lambda r: r.at - r.at, timedelta),
    (lambda r: (r.at - r.at).days, int),
    (lambda r: r.span.total_seconds(), float),
    (lambda r: r.span / r.span, float),
    (lambda r: len(r.city), int),
    (lambda r: int(r.price), int),
    (lambda r: float(r.id), float),
    (lambda r: str(r.id), str),
    (lambda r: round(r.price), int),
    (lambda r: round(r.price, 1), float),
    (lambda r: abs(r.price), float),
    (lambda r: abs(-r.id), int),
    (lambda r: max(r.id, LIMIT), int),
    (lambda r: min(r.id, 2.5), float),
    (lambda r: math.floor(r.price), int),
    (lambda r: math.sqrt(r.id), float),
    (lambda r: math.isnan(r.price), bool),
    (lambda r: r.id * 2 + 1, int),
    (lambda r: r.id / 2, float),
    (lambda r: r.id // 2 % LIMIT, int),
    (lambda r: -r.price, float),
    (lambda r: r.id & 1, int),
    (lambda r: r.cost + r.cost, Annotated[Decimal, (11, 2)]),
    (lambda r: r.cost * r.id, Annotated[Decimal, (31, 2)]),
    (lambda r: r.cost * r.cost, Annotated[Decimal, (21, 4)]),
    (lambda r: r.cost / 3, Annotated[Decimal, (14, 6)]),
    (lambda r: r.cost, Money),
    (lambda r: r.id > 2, bool),
    (lambda r: r.note == "x", bool),
    (lambda r: not r.note, bool),
    (lambda r: r.city in ("Rome", "Oslo"), bool),
    (lambda r: r.note, str | None),
    (lambda r: r.note or "none", str),
    (lambda r: r.note if r.note is not None else "", str),
    (lambda r: "" if r.note is None else r.note, str),
    (lambda r: "many" if r.id > 2 else "few", str),
    (lambda r: 1 if r.id > 2 else 0.5, float),
    (lambda r: r.id if r.paid else None, int | None),
    (lambda r: r.note.upper(), str),
    (lambda r: (r.city, r.id), tuple[str, int]),
    (lambda r: r.buyer.name.lower(), str),
    (lambda r: r.buyer, Person),
    (lambda r: Person(r.city, r.id), Person),
    (lambda r: r.tags[0], str),
    (lambda r: r.tags[1:], tuple[str, ...]),
    (lambda r: r.pair[1], str),
    (lambda r: tuple(sorted(r.tags)), tuple[str, ...]),
    (lambda r: hinted(r.city), int),
    (lambda r: date(r.day.year, 1, 1), date),
    (lambda r: datetime(r.day.year, 1, 1), datetime),
    (lambda r: date.fromisoformat("2026-01-01"), date),
    (lambda r: Decimal(r.id), Decimal),
    (lambda r, k=2: r.id * k, int),
    (lambda r: r.at.isoformat(), str),
    (lambda r: round(r.cost, 1), Annotated[Decimal, (10, 1)]),
    (lambda r: round(r.cost), int),
    (lambda r: r.id**2, int),
    (lambda r: r.price**2, float),
    (lambda r: sum((r.id, r.id)), int),
    (lambda r: max(r.tags), str),
    (lambda r: frozenset(r.tags), frozenset[str]),
    (lambda r: ",".join(sorted(r.tags)), str),
    (lambda r: 1 < r.id < LIMIT, bool),
    (lambda r: r.paid and r.id > 1, bool),
    (lambda r: None if r.note is None else len(r.note), int | None),
    (attrgetter("city"), str),
    (itemgetter(1), str),
]


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, looked at from outside."""
    if get_origin(kind) is tuple:
        inside = get_args(kind)
        parts = [inside[0]] * len(value) if inside[1:] == (...,) else inside
        return type(value) is tuple and all(map(fits, value, parts))
    if float in (classes(kind) or ()):
        return type(value) in (int, float)
    if get_origin(kind) is frozenset:
        return type(value) is frozenset and all(fits(each, get_args(kind)[0]) for each in value)
    return type(value) in (classes(kind) or ())


def random_row(dice: Random) -> Order:
    """A row with values of the types of its fields, odd ones among them."""
    day = date(dice.choice([1, 1970, 9999]), dice.randrange(1, 13), dice.randrange(1, 29))
    at = datetime(day.year, day.month, day.day, dice.randrange(24))
    text = dice.choice(["", "a", "Rome, Oslo", "ß"])
    return Order(
        dice.choice([0, 1, -7, 2**40]), text, dice.choice([0.0, -2.5, 1e300, 3.0]), day, at,
        at.replace(tzinfo=UTC), Decimal(dice.randrange(-999, 999)).scaleb(-2),
        dice.choice([None, text]), Person(text, dice.randrange(9)),
        tuple(dice.choices("abc", k=dice.randrange(3))), (dice.randrange(3), text),
        timedelta(seconds=dice.randrange(9)), dice.random() < 0.5, dice.choice([1, "x", None]),
    )  # fmt: skip


def test_functions_give_what_they_are_seen_to_give_on_random_rows() -> None:
    looked = 0
    for seed in range(60):
        row = random_row(Random(seed))
        for f, kind in SEEN:
            try:
                value = f(row)
            except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
                continue
            assert fits(value, kind), (row, kind, value)
            looked += 1
    assert looked > 40 * len(SEEN)


@pytest.mark.parametrize("at", range(len(SEEN)))
def test_a_function_gives_what_it_is_seen_to_give(at: int) -> None:
    f, kind = SEEN[at]
    assert inferred(f, Order) == kind
    assert fits(f(ROW), kind)


@pytest.mark.parametrize(
    "f",
    [
        lambda r: r.anything,
        lambda r: r.anything.upper(),
        lambda r: r.anything + 1,
        lambda r: r.seen.replace(tzinfo=None),
        lambda r: r.at.astimezone(),
        lambda r: r.id**-r.id,
        lambda r: "a" if r.paid else 1,
        lambda r: [each.upper() for each in r.tags],
        lambda r: datetime(r.id, 1, 1, tzinfo=UTC),
        lambda r: eval("1"),
    ],
)
def test_what_cannot_be_told_is_anything(f: Any) -> None:
    assert inferred(f, Order) is Any


def test_functions_of_python_are_known() -> None:
    words = ef.Input("words", str)
    assert words.map(len).type is int
    assert words.map(str.upper).type is str
    assert words.group_by(len).agg(n=ef.count()).type.__annotations__ == {"key": int, "n": int}
    assert words.flat_map(lambda word: word.split()).type is str


def test_reducers_written_by_hand_have_the_type_of_what_they_add_up() -> None:
    orders = ef.Input("orders", Order)

    def found(reducer: Any) -> Any:
        return (fields_of(orders.reduce(reducer).type) or {})["value"]

    assert found(ef.Reducer(0, lambda a, r: a + r.id, lambda a, r: a - r.id)) is int
    assert found(ef.Reducer(0, lambda a, r: a + r.price, lambda a, r: a - r.price)) is float
    assert found(ef.Reducer("", lambda a, r: max(a, r.city), lambda a, r: ef.RECOMPUTE)) is str
    pair = ef.Reducer((0, 0), lambda a, r: (a[0] + r.id, a[1] + 1))
    assert found(pair) == tuple[int, int]
    pair = ef.Reducer((0, 0), lambda a, r: (a[0] + r.id, a[1] + 1), result=lambda a: a[0] / a[1])
    assert found(pair) is float
    assert found(ef.Reducer(None, lambda a, r: r.city if a is None else min(a, r.city))) is str
    assert found(ef.Reducer(list, lambda a, r: [*a, r])) is Any
    assert found(ef.Reducer([], lambda a, r: [*a, r], result=len)) is int
    assert found(ef.count().then(lambda n: n > 3)) is bool
    assert found(ef.sum("id").then(str)) is str


def test_the_rows_of_an_outer_join_may_be_missing() -> None:
    orders, people = ef.Input("orders", Order), ef.Input("people", Person)
    joined = orders.join(
        people, left_on="city", right_on="name", how="left",
        select=lambda o, p: (o.id, p.age if p is not None else None),
    )  # fmt: skip
    assert joined.type == tuple[int, int | None]
