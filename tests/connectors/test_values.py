"""The values of connectors pass the rules of their inputs: what a row refuses is refused, and what
enters is in its canonical form."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from tests.servers.postgres import Database

import ebbflow as ef
from ebbflow.connectors.kafka.messages import apply_message, json_decoder
from ebbflow.connectors.postgres import changes
from ebbflow.connectors.source import InputEvents, SourceRow
from ebbflow.errors import ChangeError
from ebbflow.nan import NAN
from ebbflow.record import record

Cents = Annotated[Decimal, (10, 2)]
Instant = Annotated[datetime, UTC]
DATE = {"type": "int32", "name": "io.debezium.time.Date"}
MICROS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
NANOS = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}


class Raw(str):
    """A value as text of JSON."""


def put(hint: Any, given: Any, schema: dict[str, Any] | None = None) -> Any:
    """The value that a message with this field has as a row."""
    rows = ef.Input("x", record("Row", id=int, f=hint), key="id")
    source = rows.plan.sources["x"]
    events = InputEvents(source)
    text = given if isinstance(given, Raw) else json.dumps(given)
    value = f'{{"id": 1, "f": {text}}}'
    if schema is not None:
        fields = [{"field": "id", "type": "int64"}, {"field": "f", **schema}]
        both = json.dumps({"type": "struct", "fields": fields})
        value = f'{{"schema": {both}, "payload": {value}}}'
    row = SourceRow(None, "x", events)
    apply_message(row, None, value.encode(), "auto", json_decoder(source.type))
    (made,) = events.change().rows
    view = rows.run()
    view.step(x=[made])
    assert [repr(each) for each in view.value] == [repr(made)]  # it is canonical already
    return made.f


@pytest.mark.parametrize(
    ("hint", "given", "wanted"),
    [
        (int, Raw("7.0"), 7),
        (int, "7", 7),
        (int, True, 1),
        (int, 2**70, 2**70),
        (float, 3, 3.0),
        (float, Raw("-0.0"), 0.0),
        (float, "-Infinity", -float("inf")),
        (float, 2**60, 2.0**60),
        (Cents, Raw("1.5"), Decimal("1.50")),
        (Cents, "1.500", Decimal("1.50")),
        (Cents, 7, Decimal("7.00")),
        (Decimal, "1.50", Decimal("1.5")),
        (tuple[float, ...], [1, Raw("2")], (1.0, 2.0)),
        (dict[str, Cents], {"a": "1"}, {"a": Decimal("1.00")}),
        (record("Part", x=float, y=Cents), {"x": 1, "y": "0.1"}, (1.0, Decimal("0.10"))),
        (Instant, "2026-05-01T12:00:00+02:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        (Literal["a", "b"], "a", "a"),
    ],
    ids=str,
)
def test_a_value_of_a_message_is_the_value_of_a_row(hint: Any, given: Any, wanted: Any) -> None:
    assert repr(put(hint, given)) == repr(wanted) or put(hint, given) == wanted
    assert repr(put(hint, given)).count("-0.0") == 0


def test_nan_of_a_message_is_the_one_nan() -> None:
    assert put(float, "NaN") is NAN
    assert put(float, Raw("NaN")) is NAN


@pytest.mark.parametrize(
    ("hint", "given", "schema", "why"),
    [
        (int, 7.5, None, "7.5 is no int"),
        (int, Raw("1e300"), None, "may have been another int"),
        (int, Raw("NaN"), None, "no int"),
        (int, "seven", None, "'seven' is no int"),
        (int, None, None, "missing or null"),
        (float, 2**53 + 1, None, "must be a float, not the int 9007199254740993"),
        (float, Raw("1e400"), None, "1e400 is no float"),
        (float, True, None, "True is no float"),
        (float, "fast", None, "'fast' is no float"),
        (bool, 1, None, "1 is no bool"),
        (str, 1, None, "1 is no str"),
        (Cents, "1.234", None, r"must be a decimal\(10, 2\)"),
        (Cents, 10**8, None, r"must be a decimal\(10, 2\)"),
        (Decimal, "0.0000000000000000001", None, "more than 18 digits"),
        (date, 2**31 - 1, None, "outside the years 1 to 9999"),
        (date, 2**31 - 1, DATE, "outside the years 1 to 9999"),
        (date, "2026-13-01", None, "no date"),
        (datetime, 253_402_300_800_000_000, MICROS, "outside the years 1 to 9999"),
        (datetime, 1_500, NANOS, "no whole microseconds"),
        (datetime, "2026-05-01T12:00:00Z", None, "no datetime without a zone"),
        (Instant, "2026-05-01T12:00:00", None, "no datetime with a zone"),
        (Instant, "9999-12-31T23:59:59-05:00", None, "outside the years 1 to 9999 in UTC"),
        (Instant, "0001-01-01T00:00:00+05:00", None, "outside the years 1 to 9999 in UTC"),
        (Literal["a", "b"], "c", None, "must be one of 'a', 'b', not 'c'"),
        (tuple[Cents, ...], ["1", "1.234"], None, r"field 'f\[1\]' must be a decimal"),
        (record("Part", x=float), {"x": 2**53 + 1}, None, r"field 'f.x' must be a float"),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_of_a_message_that_a_row_refuses_is_refused(
    hint: Any, given: Any, schema: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        put(hint, given, schema)


# ---- PostgreSQL ----


class Day(NamedTuple):
    id: int
    day: date | None
    at: datetime | None
    seen: Instant | None
    price: float | None
    cents: Cents | None


DAYS = ef.Input("days", Day, key="id")
WRONG = {
    "day": ["infinity", "-infinity", "10000-01-01", "0044-03-15 BC"],
    "at": ["infinity", "10000-01-01 00:00:00", "0044-03-15 00:00:00 BC"],
    "seen": ["infinity", "10000-01-01 00:00:00+00"],
    "price": ["0.1000000000000000000000000001"],
    "cents": ["1.234"],
}
TYPES = {"day": "date", "at": "timestamp", "seen": "timestamptz", "price": "numeric",
         "cents": "numeric"}  # fmt: skip


@pytest.mark.parametrize("column", WRONG)
def test_a_value_of_a_table_that_a_row_refuses_is_refused(database: Database, column: str) -> None:
    columns = ", ".join(f"{name} {sql}" for name, sql in TYPES.items())
    database.query(f"CREATE TABLE days (id int PRIMARY KEY, {columns})")
    for number, value in enumerate(WRONG[column]):
        database.query("DELETE FROM days")
        database.query(f"INSERT INTO days (id, {column}) VALUES (7, '{value}')")
        with DAYS.run() as view:
            source = changes(database.dsn, {"days": "days"}, slot=f"s{number}")
            with pytest.raises(ChangeError, match=rf"table 'public.days'.*'{column}'") as caught:
                source.run(view, follow=False)
            assert "7" in str(caught.value.facts["given"])
            assert not view.value
            source.drop()
        database.query("DELETE FROM days")
        with DAYS.run() as view:
            source = changes(database.dsn, {"days": "days"}, slot=f"log{number}")
            source.run(view, follow=False)
            database.query(f"INSERT INTO days (id, {column}) VALUES (7, '{value}')")
            with pytest.raises(ChangeError, match=rf"log position .*'{column}'"):
                source.run(view, follow=False)
            source.drop()


def test_values_of_a_table_are_the_values_of_rows(database: Database) -> None:
    columns = ", ".join(f"{name} {sql}" for name, sql in TYPES.items())
    database.query(f"CREATE TABLE days (id int PRIMARY KEY, {columns})")
    insert = (
        "INSERT INTO days VALUES ({}, '9999-12-31', '0001-01-01', '2026-05-01 12:00+02', {}, 1.5)"
    )
    database.query(insert.format(1, "'NaN'"))
    with DAYS.run() as view:
        source = changes(database.dsn, {"days": "days"}, slot="values")
        source.run(view, follow=False)
        database.query(insert.format(2, "'NaN'"))
        database.query(insert.format(3, "0.1"))
        source.run(view, follow=False)
        seen = datetime(2026, 5, 1, 10, tzinfo=UTC)
        wanted = [
            Day(number, date.max, datetime.min, seen, price, Decimal("1.50"))
            for number, price in ((1, NAN), (2, NAN), (3, 0.1))
        ]
        assert sorted(map(repr, view.value)) == sorted(map(repr, wanted))
        view.step(days=dict.fromkeys(wanted, -1))
        assert not view.value
        source.drop()
