"""What `Annotated` says of a field goes wherever the field goes, and is compared where two meet."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError
from ebbflow.flow.types import common
from ebbflow.record import fields_of, record

Instant = Annotated[datetime, UTC]
Money = Annotated[Decimal, (10, 2)]


class Sale(NamedTuple):
    id: int
    at: Instant
    price: Money
    paid: Money | None = None


class Shop(NamedTuple):
    id: int
    opened: Instant


class Odd(NamedTuple):
    n: Annotated[int, {"unhashable": True}]


SALES = ef.Input("sales", Sale)
SHOPS = ef.Input("shops", Shop)


def fields(collection: ef.Collection) -> dict[str, Any]:
    return fields_of(collection.type) or {}


def price_of(sale: Sale) -> Money:
    return sale.price


CARRIED = {
    "filter": (SALES.filter(lambda s: s.id > 1), ["at", "price"]),
    "select": (SALES.select("at", "price"), ["at", "price"]),
    "select under another name": (SALES.select(at="at", price=lambda s: s.price), ["at", "price"]),
    "select by a hinted function": (SALES.select(price=price_of), ["price"]),
    "map": (SALES.map(lambda s: Sale(s.id, s.at, s.price, s.paid)), ["at", "price"]),
    "join": (SALES.join(SHOPS, on="id"), ["at", "price"]),
    "join right": (SHOPS.join(SALES, on="id"), ["at", "price"]),
    "group_by": (SALES.group_by("at", "price").agg(n=ef.count()), ["at", "price"]),
    "group_by a function": (SALES.group_by(at=lambda s: s.at).agg(n=ef.count()), ["at"]),
    "agg": (SALES.agg(at=ef.max("at"), price=ef.min(lambda s: s.price)), ["at", "price"]),
    "first": (SALES.agg(at=ef.first("at", order="price"), price=ef.mode("price")), ["at", "price"]),
    "tumbling": (SALES.tumbling("at", timedelta(days=1)), ["at", "price"]),
    "sliding": (SALES.sliding("at", timedelta(days=2), timedelta(days=1)), ["at", "price"]),
    "session": (SALES.session("at", timedelta(hours=1)), ["at", "price"]),
    "union": (SALES.union(SALES), ["at", "price"]),
    "concat": (SALES + ef.Input("more", record("Sale", **(fields_of(Sale) or {}))), ["at"]),
    "top_k": (SALES.top_k(3, order="price"), ["at", "price"]),
}


@pytest.mark.parametrize("verb", CARRIED)
def test_a_field_keeps_its_notes_through_every_verb(verb: str) -> None:
    made, names = CARRIED[verb]
    assert {name: fields(made)[name] for name in names} == {
        name: {"at": Instant, "price": Money}[name] for name in names
    }


def test_windows_start_and_end_in_the_zone_of_their_times() -> None:
    windows = fields(SALES.tumbling("at", timedelta(days=1)))
    assert (windows["window_start"], windows["window_end"]) == (Instant, Instant)


def test_an_outer_join_keeps_the_notes_of_what_may_be_missing() -> None:
    joined = fields(SHOPS.join(SALES, on="id", how="left"))
    assert joined["at"] == Instant | None
    assert joined["price"] == joined["paid"] == Money | None


def test_a_sum_of_decimals_has_room() -> None:
    total = fields(SALES.agg(total=ef.sum("price"), paid=ef.sum("paid")))
    wide = Annotated[Decimal, (20, 2)]
    assert total == {"total": wide, "paid": wide | None}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (Instant, Instant | None, Instant | None),
        (Instant, Annotated[datetime, ZoneInfo("Europe/Rome")], Instant),
        (Instant, datetime, None),
        (Instant | None, datetime | None, None),
        (Money, Decimal, Decimal),
        (Money, Annotated[Decimal, (38, 0)], Decimal),
        (Annotated[Decimal, (6, 4)], Money | None, Annotated[Decimal, (12, 4)] | None),
        (tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None),
        (Money, type(None), Money | None),
    ],
)
def test_what_two_types_have_in_common(first: Any, second: Any, both: Any) -> None:
    assert common(first, second) == both
    assert common(second, first) in (both, second)


def test_times_with_and_without_a_zone_are_not_put_together() -> None:
    plain = ef.Input("plain", record("Shop", id=int, opened=datetime))
    with pytest.raises(CompositionError, match="different types") as error:
        SHOPS + plain
    assert "opened: Annotated[datetime, UTC]" in str(error.value)
    with pytest.raises(CompositionError, match="never equal") as error:
        SHOPS.join(plain, on="opened")
    assert "left_on=lambda row: row.opened.replace(tzinfo=None)" in error.value.remedy


def test_notes_of_others_are_no_part_of_a_type() -> None:
    assert fields_of(Odd) == {"n": int}
    assert fields(ef.Input("odd", Odd).select("n")) == {"n": int}
    bare = ef.Input("bare", Annotated[int, {"unhashable": True}])
    assert bare.type is int
    assert bare.run().step(bare=[1]) == ef.ZSet({1: 1})


def test_notes_change_nothing_in_process() -> None:
    view = SALES.group_by("price").agg(last=ef.max("at")).run()
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    view.step(sales=[Sale(1, noon, Decimal("1.50")), Sale(2, noon, Decimal("1.50"))])
    assert [tuple(row) for row in view.value] == [(Decimal("1.50"), noon)]
