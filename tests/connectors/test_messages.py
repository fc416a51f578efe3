"""What messages of topics say of rows, without a broker."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import pytest

import ebbflow as ef
from ebbflow.connectors import kafka, postgres
from ebbflow.connectors.kafka.messages import apply_message, json_decoder, payload
from ebbflow.connectors.source import InputEvents, SourceRow
from ebbflow.engine.runtime.sinks.plain import plain, row_reader
from ebbflow.errors import CheckError


class Part(NamedTuple):
    name: str
    size: float


class Thing(NamedTuple):
    id: UUID
    at: Annotated[datetime, UTC]
    day: date
    price: Decimal | None
    data: bytes
    parts: tuple[Part, ...]
    sizes: dict[str, int]
    one: tuple[int, str] | None = None


def view_with(*messages: tuple[Any, Any], program: Any = None, form: str = "auto") -> Any:
    """A view after these messages, keys and values, in one batch."""
    view = (ef.Input("things", Part, key="name") if program is None else program).run()
    events = InputEvents(view.plan.sources["things"])
    row = SourceRow(view, "things", events)
    for key, value in messages:
        data = [None if each is None else json.dumps(each).encode() for each in (key, value)]
        apply_message(row, data[0], data[1], form, json_decoder(events.source.type))
    change = events.change()
    view.step({} if change is None else {"things": change})
    return view.value


def part(name: str, size: float) -> dict[str, Any]:
    return {"name": name, "size": size}


@pytest.mark.parametrize(
    ("library", "make"),
    [
        ("psycopg", lambda: postgres.TableSink("", "totals")),
        ("psycopg", lambda: postgres.changes("", {"things": "things"}, slot="x")),
        ("confluent_kafka", lambda: kafka.TopicSink("", "totals")),
        ("confluent_kafka", lambda: kafka.changes("", {"things": "things"})),
    ],
)
def test_a_library_that_is_missing_is_named(
    library: str, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(CheckError, match="pip install"):
        make()


def test_the_last_message_of_a_key_counts_and_tombstones_delete() -> None:
    rows = view_with(
        ("a", part("a", 1)), ("b", part("b", 2)), ("a", part("a", 3)), ({"name": "b"}, None),
        ("c", None),
    )  # fmt: skip
    assert rows == ef.ZSet.of([Part("a", 3.0)])


def test_rows_without_a_key_are_all_added_and_envelopes_say_what_goes() -> None:
    bag = ef.Input("things", Part)
    assert view_with((None, part("a", 1)), (None, part("a", 1)), program=bag) == ef.ZSet(
        {Part("a", 1.0): 2}
    )
    updated = {"op": "u", "before": part("a", 1), "after": part("a", 2)}
    rows = view_with((None, {"op": "c", "after": part("a", 1)}), (None, updated), program=bag)
    assert rows == ef.ZSet.of([Part("a", 2.0)])
    words = ef.Input("things", str)
    assert view_with((None, "ebb"), (None, "flow"), program=words) == ef.ZSet.of(["ebb", "flow"])


@pytest.mark.parametrize(
    ("key", "value", "form", "why"),
    [
        ("a", part("a", 1), "debezium", "no envelope"),
        ("a", {"op": "x", "after": part("a", 1)}, "auto", "op 'x'"),
        ("a", {"op": "c", "after": None}, "auto", "'after' is no row"),
        (None, None, "auto", "does not say the key"),
        ("a", {"name": "a"}, "auto", "field 'size' is missing"),
        ("a", part("a", True), "auto", "True is no float"),
        ("a", [1], "auto", "field 'name' is missing"),
    ],
)
def test_what_says_nothing_of_a_row_is_refused(key: Any, value: Any, form: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        view_with((key, value), form=form)


def test_values_go_to_json_and_come_back() -> None:
    thing = Thing(
        UUID(int=7), datetime(2026, 1, 2, 3, tzinfo=UTC), date(2026, 1, 2), Decimal("0.10"),
        b"\0\xff", (Part("a", float("inf")), Part("b", 0.5)), {"x": 1}, (1, "y"),
    )  # fmt: skip
    text = json.dumps(plain(thing))
    read = row_reader(Thing)(json_decoder(Thing)(text.encode()))
    assert read == thing
    assert hash(read)
    short = {**json.loads(text), "price": None, "day": 0}
    del short["one"]
    assert row_reader(Thing)(short) == thing._replace(price=None, one=None, day=date(1970, 1, 1))
    for field, value in [("id", "x"), ("at", "2026-01-02"), ("day", 0.5), ("price", "1,5"),
                         ("data", "?"), ("parts", "a"), ("sizes", [1]), ("at", 17)]:  # fmt: skip
        with pytest.raises(ValueError, match=f"field '{field}': .* is no "):
            row_reader(Thing)({**short, field: value})


def test_schemas_say_what_values_are() -> None:
    field = {"type": "struct", "fields": [
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "ms", "type": "int64", "name": "io.debezium.time.Timestamp"},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "2"}},
        {"field": "data", "type": "bytes"},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
    ]}  # fmt: skip
    number = b64encode((-250).to_bytes(2, "big", signed=True)).decode()
    value = {"day": 20000, "at": 1_000_001, "ms": 1500, "price": number, "data": "/w==",
             "tags": ["a"], "other": None}  # fmt: skip
    assert payload({"schema": field, "payload": value}) == {
        "day": date(2024, 10, 4), "at": datetime(1970, 1, 1, 0, 0, 1, 1),
        "ms": datetime(1970, 1, 1, 0, 0, 1, 500_000), "price": Decimal("-2.50"), "data": b"\xff",
        "tags": ["a"], "other": None,
    }  # fmt: skip
    assert payload({"id": 1}) == {"id": 1}
