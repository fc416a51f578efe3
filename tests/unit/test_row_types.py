"""Frozen dataclasses, TypedDicts and dicts as rows: what is taken, and what is said of the rest."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pytest

import ebbflow as ef
from ebbflow.errors import ChangeError, CompositionError
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of, maker, no_row_type, taken_apart
from ebbflow.zset import ZSet


@dataclass(frozen=True, slots=True)
class Item:
    sku: str
    n: int = 1


@dataclass(frozen=True)
class Base:
    id: int


@dataclass(frozen=True, kw_only=True)
class Order(Base):
    items: list[Item]
    first: Item | None = None
    more: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(item.n for item in self.items)


def test_slots_inheritance_defaults_and_nested_rows() -> None:
    assert fields_of(Order) == {
        "id": int, "items": list[Item], "first": Item | None, "more": dict[str, int]
    }  # fmt: skip
    orders = ef.Input("orders", Order, key="id")
    view = ef.program(
        orders=orders,
        total=orders.map(lambda order: order.total),
        parts=orders.select("id", sku=lambda order: order.items[0].sku),
        more=orders.with_fields(n=lambda order: len(order.items)),
        each=orders.explode("items", into="item").select("id", "item"),
    ).run()
    view.step(
        orders=[Order(id=1, items=[Item("a"), Item("b", 2)]), {"id": 2, "items": [Item("c")]}]
    )
    held = Order(id=1, items=(Item("a"), Item("b", 2)), more=Frozen())  # type: ignore[arg-type]
    assert held in view["orders"].value
    assert all(type(row) is Order for row in view["orders"].value)
    assert view["total"].value == ZSet.of([3, 1])
    assert {tuple(row) for row in view["parts"].value} == {(1, "a"), (2, "c")}
    assert {(row.id, row.n) for row in view["more"].value} == {(1, 2), (2, 1)}
    assert {(row.id, row.item.sku) for row in view["each"].value} == {(1, "a"), (1, "b"), (2, "c")}
    view.input("orders").delete(1)
    view.verify()


@dataclass(frozen=True)
class Counted:
    text: str
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.text))
        object.__setattr__(self, "seen", True)


def test_a_row_that_was_taken_apart_comes_out_as_it_was() -> None:
    for row in (Item("a", 2), Counted("abc"), Base(3)):
        again = maker(type(row))(taken_apart(type(row))(row))
        assert again == row
        assert hash(again) == hash(row)
    assert maker(Counted)(("abc", 3)).seen


@dataclass
class Loose:
    id: int


@dataclass(frozen=True, eq=False)
class Alone:
    id: int


@dataclass(frozen=True)
class Silent:
    id: int
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Made:
    id: int
    seed: InitVar[int] = 0


@dataclass(frozen=True)
class Own:
    id: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.id % 2 == other.id % 2

    def __hash__(self) -> int:
        return self.id % 2


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (Loose, "it is not frozen"),
        (Alone, "its rows are not equal where their fields are"),
        (Silent, "its field 'note' is not compared"),
    ],
)
def test_a_dataclass_that_is_no_row_is_refused(of: Any, why: str) -> None:
    with pytest.raises(CompositionError, match=why) as raised:
        ef.Input("rows", of)
    assert "frozen=True" in str(raised.value)
    assert fields_of(of) is None


def test_a_dataclass_that_compares_itself_is_a_value_without_fields() -> None:
    for of in (Made, Own):
        assert no_row_type(of)
        assert fields_of(of) is None
    view = ef.Input("rows", Own).distinct().run()
    view.step(rows=[Own(1), Own(3), Own(2)])
    assert len(view.value) == 2


class Place(TypedDict):
    city: str
    land: NotRequired[str]


def test_a_typed_dict_makes_a_record(tmp_path: Path) -> None:
    places = ef.Input("places", Place, key="city")
    assert fields_of(places.type) == {"city": str, "land": str | None}
    with places.run(path=tmp_path) as view:
        view.step(places=[{"city": "Rome"}, {"land": "Norway", "city": "Oslo"}])
        view.input("places").upsert({"city": "Rome", "land": "Italy"})
        view.input("places").add({"city": "Bonn"})
        view.input("places").remove({"city": "Bonn"})
        assert {tuple(row) for row in view.value} == {("Rome", "Italy"), ("Oslo", "Norway")}


@pytest.mark.parametrize(
    ("given", "what", "remedy"),
    [
        ([{"citty": "Rome"}], "a dict has the key 'citty', which is no field", "'city'"),
        ([{"land": "Italy"}], "a dict lacks the field 'city'", "a value for 'city'"),
        ({"city": "Rome"}, "one row was given where a change is asked", "give a list"),
        ([{"city": "Rome", "zip": 1}], "a dict has the key 'zip'", "the fields"),
    ],
)
def test_a_dict_that_is_no_row_is_refused_by_name(given: Any, what: str, remedy: str) -> None:
    view = ef.Input("places", Place).run()
    with pytest.raises(ChangeError) as raised:
        view.step(places=given)
    assert what in str(raised.value)
    assert raised.value.remedy.startswith(remedy)
    assert view.epoch == 0
