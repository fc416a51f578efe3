"""What a message of a topic says of a row.

A message has a key and a value, both JSON. The value is a row; or none, a *tombstone*: the row of
that key is gone; or an envelope of Debezium, `{"op": "u", "before": {...}, "after": {...}}`. Any of
them may be in a `{"schema": ..., "payload": ...}`; what the schema says of times and Decimals, for
which JSON has no types, is heeded.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isinf
from typing import Any, NamedTuple

from ebbflow.connectors.source import InputEvents, SourceRow
from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.errors import value_text

ROWS, DEBEZIUM, AUTO = "rows", "debezium", "auto"
_UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes for a large value that an update left as it was."""
_START = datetime(1970, 1, 1)


class BadMessage(NamedTuple):
    """A message that is no row: where it was, what was in it, and what is wrong with it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    why: str


Decode = Callable[[bytes], Any]


def json_decoder(row_type: Any) -> Decode:
    """What reads JSON: numbers with a point are Decimals where the row has such, so that none of
    their digits is lost."""
    exact = any(_has_decimal(column) for _, column in columns_of(row_type))
    parse = Decimal if exact else _float
    return lambda data: json.loads(data, parse_float=parse)


def _float(text: str) -> float:
    found = float(text)
    if isinf(found):
        raise ValueError(f"{text} is no float: it is too large")
    return found


def _has_decimal(column: Column) -> bool:
    return column.form == "decimal" or any(_has_decimal(part) for _, part in column.parts)


def apply_message(
    row: SourceRow, key: bytes | None, value: bytes | None, form: str, decode: Decode
) -> None:
    """Have happen to an input what a message says; a ValueError where it says nothing of a row."""
    events = row.events
    found = None if value is None else payload(decode(value))
    if found is None:
        events.take(_key_fields(events, key, decode))
        return
    if form == AUTO and is_envelope(found):
        form = DEBEZIUM
    if form != DEBEZIUM:
        events.put(found if isinstance(found, Mapping) else {VALUE: found})
        return
    if not is_envelope(found):
        raise ValueError("it is no envelope: there is no 'op' with 'before' and 'after'")
    before, after = found.get("before"), found.get("after")
    match found["op"]:
        case "c" | "r":
            events.put(_image(after, "after"))
        case "u":
            row.update(_image(after, "after"), before, _UNAVAILABLE)
        case "d":
            events.take(_key_fields(events, key, decode) if before is None else before)
        case "t":
            events.clear()
        case "m":
            pass
        case op:
            raise ValueError(f"op {op!r} is none of c, r, u, d, t and m")


def is_envelope(value: Any) -> bool:
    """Whether a value is an envelope of Debezium.

    >>> is_envelope({"op": "c", "before": None, "after": {"id": 1}}), is_envelope({"id": 1})
    (True, False)
    """
    return isinstance(value, Mapping) and "op" in value and ("after" in value or "before" in value)


def _image(given: Any, name: str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    raise ValueError(f"{name!r} is no row")


def _key_fields(events: InputEvents, key: bytes | None, decode: Decode) -> dict[str, Any]:
    """The fields of the key of a message: an object of them, or the only one."""
    found = None if key is None else payload(decode(key))
    if isinstance(found, Mapping):
        return dict(found)
    if found is None or events.fields is None or len(events.fields) != 1:
        raise ValueError("a tombstone, and its key does not say the key of a row")
    return {events.fields[0]: found}


# ---- with a schema ----


def payload(value: Any) -> Any:
    """What is in a message, without its schema, which says how to read it.

    >>> payload({"schema": {"type": "int32", "name": "io.debezium.time.Date"}, "payload": 1})
    datetime.date(1970, 1, 2)
    """
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        return _read(value["schema"] or {}, value["payload"])
    return value


def _read(schema: Mapping[str, Any], value: Any) -> Any:
    if value is None:
        return None
    read = _NAMED.get(schema.get("name", ""))
    if read is not None:
        try:
            return read(value, schema.get("parameters") or {})
        except OverflowError:
            what = f"{value_text(value)}, a {schema['name']}, is outside the years 1 to 9999"
            raise ValueError(what) from None
    match schema.get("type"):
        case "struct":
            fields = {each["field"]: each for each in schema.get("fields", ())}
            return {name: _read(fields.get(name, {}), each) for name, each in value.items()}
        case "array":
            return [_read(schema.get("items") or {}, each) for each in value]
        case "bytes":
            return b64decode(value)
        case _:
            return value


def _at(unit: int) -> Callable[[Any, Any], datetime]:
    """A time that is a number of so many parts of a second since 1970."""

    def read(value: Any, _: Any) -> datetime:
        microseconds, rest = divmod(value * 1_000_000, unit)
        if rest:
            raise ValueError(f"{value_text(value)} nanoseconds are no whole microseconds")
        return _START + timedelta(microseconds=microseconds)

    return read


def _decimal(value: str, parameters: Mapping[str, str]) -> Decimal:
    number = int.from_bytes(b64decode(value), "big", signed=True)
    return Decimal(number).scaleb(-int(parameters.get("scale", 0)))


def _scaled(value: Mapping[str, Any], _: Any) -> Decimal:
    return _decimal(value["value"], {"scale": value["scale"]})


_NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "io.debezium.time.Date": lambda value, _: date(1970, 1, 1) + timedelta(days=value),
    "org.apache.kafka.connect.data.Date": lambda value, _: date(1970, 1, 1) + timedelta(days=value),
    "io.debezium.time.Timestamp": _at(1000),
    "io.debezium.time.MicroTimestamp": _at(1_000_000),
    "io.debezium.time.NanoTimestamp": _at(1_000_000_000),
    "io.debezium.time.ZonedTimestamp": lambda value, _: datetime.fromisoformat(value),
    "org.apache.kafka.connect.data.Timestamp": lambda value, _: _at(1000)(value, _).replace(
        tzinfo=UTC
    ),
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _scaled,
    "io.debezium.data.Json": lambda value, _: json.loads(value),
}
"""What reads a value, by the name that its schema has."""
