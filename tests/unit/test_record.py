"""Row types: made once, the same everywhere."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import cloudpickle
import pytest

from ebbflow.errors import CompositionError
from ebbflow.record import attributes_of, fields_of, record, type_text

if TYPE_CHECKING:
    from datetime import datetime as Time


class Order(NamedTuple):
    id: int
    city: str


class Partly(NamedTuple):
    at: Time | None
    n: int


@dataclass(frozen=True)
class PartlyData:
    at: Time | None
    n: int


def test_a_hint_that_cannot_be_found_leaves_the_others() -> None:
    """One import for type checkers took the types of all fields, and with them their checks."""
    assert fields_of(Partly) == fields_of(PartlyData) == {"at": Any, "n": int}
    assert attributes_of(PartlyData) == {"at": Any, "n": int}


def test_an_alias_is_the_type_that_it_names() -> None:
    alias: Any = pytest.importorskip("typing_extensions").TypeAliasType
    price = alias("Price", int)
    assert fields_of(record("Order", n=price, m=price | None)) == {"n": int, "m": int | None}


def test_equal_names_and_fields_are_one_type() -> None:
    assert record("City", city=str, n=int) is record("City", city=str, n=int)
    assert record("City", city=str, n=int) is not record("City", n=int, city=str)
    assert record("City", city=str) is not record("City", city=bytes)
    assert record("City", city=str) is not record("Town", city=str)


def test_a_row_is_a_named_tuple() -> None:
    City = record("City", city=str, n=int)
    row = City("Rome", n=3)
    assert (row, row.city, row._replace(n=4), hash(row)) == (
        ("Rome", 3),
        "Rome",
        ("Rome", 4),
        hash(("Rome", 3)),
    )
    assert repr(row) == "City(city='Rome', n=3)"
    assert not hasattr(row, "__dict__")


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_types_and_rows_come_back_as_themselves(pickler: Any, protocol: int) -> None:
    City = record("City", city=str, n=int | None)
    row = City("Rome", None)
    kind, back = pickle.loads(pickler.dumps((City, row), protocol=protocol))
    assert kind is City
    assert type(back) is City
    assert back == row


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_types_and_rows_reach_another_process(pickler: Any) -> None:
    City = record("City", city=str, n=int)
    sent = pickler.dumps((City, City("Rome", 3))).hex()
    code = (
        "import pickle; kind, row = pickle.loads(bytes.fromhex(input()));"
        "from ebbflow.record import record;"
        "print(kind is type(row) is record('City', city=str, n=int), row)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "True City(city='Rome', n=3)"


@pytest.mark.parametrize(
    ("field", "remedy"),
    [("_n", "'n'"), ("class", "'class_'"), ("a b", "'a_b'"), ("1st", "'n1st'"), ("", "'value'")],
)
def test_a_name_that_cannot_be_a_field_is_refused(field: str, remedy: str) -> None:
    with pytest.raises(CompositionError) as error:
        record("City", **{"city": str, field: int})
    assert error.value.what == f"{field!r} cannot be the name of a field"
    assert error.value.remedy.startswith(remedy)
    assert "test_record.py" in str(error.value)


def test_a_name_that_cannot_be_a_type_is_refused() -> None:
    with pytest.raises(CompositionError, match="'a b' cannot be the name of a row type"):
        record("a b", n=int)


def test_a_field_type_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(CompositionError, match="the type of a field of City cannot be used"):
        record("City", n=[int])


def test_two_types_that_are_written_alike_have_names_of_their_own() -> None:
    class Local:
        pass

    first = Local

    class Local:  # type: ignore[no-redef]
        pass

    one, two = record("City", x=first), record("City", x=Local)
    assert one is not two
    assert one.__qualname__ != two.__qualname__
    assert pickle.loads(cloudpickle.dumps(two)) is two


def test_fields_of_a_row_type() -> None:
    class Ahead(NamedTuple):
        x: Nowhere  # type: ignore[name-defined] # noqa: F821

    assert fields_of(Order) == {"id": int, "city": str}
    assert fields_of(namedtuple("P", "x y")) == {"x": Any, "y": Any}
    assert fields_of(Ahead) == {"x": Any}
    assert [fields_of(kind) for kind in (int, tuple, Any, None, tuple[int, ...])] == [None] * 5
    assert fields_of(Order(1, "Rome")) is None


def test_a_row_type_as_text() -> None:
    assert type_text(Order) == "Order(id, city)"
    assert type_text(record("City", city=str)) == "City(city)"
    assert (type_text(str), type_text(Any)) == ("str", "Any")
    assert type_text(list[int]) in ("list", "list[int]")


def test_a_type_is_printed_by_the_names_of_its_parts() -> None:
    from datetime import UTC, datetime
    from decimal import Decimal
    from typing import Annotated, Literal

    from ebbflow.record import name_of

    money, when = Annotated[Decimal, (38, 2)], Annotated[datetime, UTC]
    sales = record("Sales", revenue=money, at=when | None, tags=tuple[str, ...], kind=Literal["a"])
    assert sales.__qualname__ == (
        "Sales(revenue: decimal(38, 2), at: Annotated[datetime, UTC] | None, "
        "tags: tuple[str, ...], kind: Literal['a'])"
    )
    assert name_of(list[sales]) == "list[Sales]"  # type: ignore[valid-type]
    assert name_of(dict[str, money]) == "dict[str, decimal(38, 2)]"
    assert name_of(tuple[()]) == "tuple[()]"
    assert name_of(None) == name_of(type(None)) == "None"
