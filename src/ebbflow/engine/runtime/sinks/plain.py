"""Values as JSON has them, and back: what leaves for a text, a topic or a `jsonb`, and what comes.

    int, float, bool, str, None      themselves; NaN and the infinities are texts
    Decimal, date, datetime, UUID    texts; a time has its zone where it has one
    bytes                            base64
    tuple, List, set                 a list
    dict, Map, a record              an object

On the way back the hint of a field says what is meant. A value that is one already stays, so that
a row of a database, which knows times and Decimals, is read the same way. Then the rules of the
input hold (`ebbflow.engine.runtime.values.rules`), as for any other row.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from uuid import UUID

from ebbflow.change.edited import List, Text
from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.engine.runtime.values.hints import field_rules, rule_of
from ebbflow.engine.runtime.values.parsing import decimal_of, int_of
from ebbflow.engine.runtime.values.rules import Rule, WrongValue
from ebbflow.errors import value_text
from ebbflow.flow.types import without_none
from ebbflow.frozen import Frozen, frozen
from ebbflow.record import defaults_of, fields_of, maker, taken_apart
from ebbflow.reducer import Map

_DAY = date(1970, 1, 1)
_EXACT = 1 << 53
_DIGITS = 17
_INF = math.inf


def plain(value: Any) -> Any:
    """A value as JSON has it.

    >>> plain(Decimal("1.50")), plain([date(2026, 1, 1), None]), plain(float("nan"))
    ('1.50', ['2026-01-01', None], 'NaN')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    fields = fields_of(type(value))
    if fields is not None:
        return dict(zip(fields, map(plain, taken_apart(type(value))(value)), strict=True))
    if isinstance(value, (set, frozenset)):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, (Decimal, UUID, Text)):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, (list, tuple, List)):
        return [plain(each) for each in value]
    raise TypeError(f"{value_text(value)} is a {type(value).__name__}, and JSON has none")


@lru_cache(maxsize=256)
def values_reader(row_type: Any) -> dict[str, Callable[[Any], Any]]:
    """For each field of a row type, or for `value`, what makes a value of it of what JSON or a
    database has. It raises a ValueError, which says what is wrong."""
    hints = fields_of(row_type) or {VALUE: row_type}
    rules = field_rules(row_type) if fields_of(row_type) is not None else [rule_of(row_type)]
    found = {}
    for (name, column), rule in zip(columns_of(row_type), rules, strict=True):
        if column.form == "any" and without_none(hints[name]) is UUID:
            read = _or_none(name, _uuid, without_none(hints[name]) is not hints[name])
        else:
            read = _or_none(name, _reader(column), column.optional)
        found[name] = _ruled(name, rule, read)
    return found


def _ruled(name: str, rule: Rule, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Read a value, and bring it to its canonical form."""

    def ruled(given: Any) -> Any:
        try:
            return rule.convert(read(given))
        except WrongValue as wrong:
            raise ValueError(f"field {name + wrong.path!r} {wrong.why}") from None

    return ruled


def row_reader(row_type: Any) -> Callable[[Mapping[str, Any]], Any]:
    """What makes a row of its fields by name, as JSON or a database has them. What is no field is
    left out; a field that is not there has its default, or is None where it may be.

    >>> from ebbflow.record import record
    >>> read = row_reader(record("Order", id=int, day=date, price=Decimal | None))
    >>> read({"id": 1, "day": "2026-01-31", "city": "Rome"})
    Order(id=1, day=datetime.date(2026, 1, 31), price=None)
    >>> read({"id": "one", "day": "2026-01-31"})
    Traceback (most recent call last):
    ValueError: field 'id': 'one' is no int
    """
    readers = values_reader(row_type)
    if fields_of(row_type) is None:
        only = readers[VALUE]
        return lambda given: only(given.get(VALUE))
    make, defaults = maker(row_type), defaults_of(row_type)

    def read(given: Mapping[str, Any]) -> Any:
        return make(
            defaults[name]() if name not in given and name in defaults else each(given.get(name))
            for name, each in readers.items()
        )

    return read


def _or_none(name: str, read: Callable[[Any], Any], optional: bool) -> Callable[[Any], Any]:
    def checked(given: Any) -> Any:
        if given is None:
            if optional:
                return None
            raise ValueError(f"field {name!r} is missing or null")
        try:
            return read(given)
        except ValueError as wrong:
            raise ValueError(f"field {name!r}: {wrong}") from None

    return checked


# ---- by form ----


def _reader(column: Column) -> Callable[[Any], Any]:
    """What reads values of a column, which are not null."""
    parts = [
        (name, _or_none(name, _reader(part), part.optional or part.form == "any"))
        for name, part in column.parts
    ]
    match column.form:
        case "list" | "set":
            ((_, element),) = parts
            make: Any = frozenset if column.form == "set" else column.make or tuple
            return lambda given: make([element(each) for each in _items(given, column)])
        case "map":
            (_, key), (_, value) = parts
            of: Any = Map if column.make is Map else Frozen
            return lambda given: of({key(k): value(v) for k, v in _object(given, column).items()})
        case "record":
            return _record(column, dict(parts))
        case "text" if column.make is Text:
            return lambda given: Text(_text(given))
        case "any":
            return frozen
        case form:
            return _READERS[form]


def _record(column: Column, parts: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    whole = tuple if column.make is tuple else maker(column.make)

    def read(given: Any) -> Any:
        if isinstance(given, (list, tuple)) and len(given) == len(parts):
            given = dict(zip(parts, given, strict=True))
        found = _object(given, column)
        return whole(each(found.get(name)) for name, each in parts.items())

    return read


def _no(given: Any, what: str) -> ValueError:
    return ValueError(f"{value_text(given)} is no {what}")


def _items(given: Any, column: Column) -> Iterable[Any]:
    if isinstance(given, (list, tuple, List, set, frozenset)):
        return given
    raise _no(given, str(column))


def _object(given: Any, column: Column) -> Mapping[Any, Any]:
    if isinstance(given, Mapping):
        return given
    raise _no(given, str(column))


def _int(given: Any) -> int:
    if isinstance(given, int):
        return given
    if isinstance(given, str):
        try:
            return int_of(given)
        except ValueError:
            raise _no(given, "int") from None
    if isinstance(given, float) and abs(given) >= _EXACT:
        raise ValueError(f"{value_text(given)} is a float, which may have been another int")
    if isinstance(given, (float, Decimal)) and math.isfinite(given) and given == given // 1:
        return int(given)
    raise _no(given, "int")


def _float(given: Any) -> Any:
    if isinstance(given, float):
        return given
    if isinstance(given, str) and given in ("NaN", "Infinity", "-Infinity"):
        return float(given)
    if isinstance(given, Decimal):
        return _nearest(given)
    if isinstance(given, int) and type(given) is not bool:
        return given  # the rule says whether it is a float
    if isinstance(given, str):
        try:
            return _nearest(decimal_of(given))
        except ValueError:
            pass
    raise _no(given, "float")


def _nearest(given: Decimal) -> float:
    """Return the float nearest to a decimal number.

    At most 17 digits tell a float from all others. A longer number that is no float is refused, as
    digits would be lost.
    """
    found = float(given)
    many = given.is_finite() and len(given.normalize().as_tuple().digits) > _DIGITS
    if (many and Decimal(found) != given) or (found in (_INF, -_INF) and given.is_finite()):
        raise ValueError(f"{value_text(given)} is no float: digits would be lost")
    return found


def _bool(given: Any) -> bool:
    if type(given) is bool:
        return given
    raise _no(given, "bool")


def _text(given: Any) -> str:
    if isinstance(given, (str, UUID)):
        return str(given)
    raise _no(given, "str")


def _bytes(given: Any) -> bytes:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    if isinstance(given, str):
        try:
            return b64decode(given, validate=True)
        except ValueError:
            pass
    raise _no(given, "bytes in base64")


def _decimal(given: Any) -> Decimal:
    if isinstance(given, Decimal):
        return given
    if isinstance(given, (int, float, str)) and type(given) is not bool:
        try:
            return Decimal(str(given))
        except InvalidOperation:
            pass
    raise _no(given, "Decimal")


def _date(given: Any) -> date:
    if type(given) is date:
        return given
    if type(given) is int:  # as Debezium has it: days since 1970
        try:
            return _DAY + timedelta(days=given)
        except OverflowError:
            raise ValueError(f"day {given} is outside the years 1 to 9999") from None
    if isinstance(given, str):
        try:
            return date.fromisoformat(given)
        except ValueError:
            pass
    raise _no(given, "date")


def _datetime(given: Any) -> datetime:
    if isinstance(given, datetime):
        return given
    if isinstance(given, str):
        try:
            return datetime.fromisoformat(given)
        except ValueError:
            pass
    raise _no(given, "datetime")


def _time(given: Any) -> datetime:
    found = _datetime(given)
    if found.tzinfo is not None:
        raise _no(given, "datetime without a zone, and the hint says no zone")
    return found


def _instant(given: Any) -> datetime:
    found = _datetime(given)
    if found.tzinfo is None:
        raise _no(given, "datetime with a zone, as the hint says")
    return found


def _uuid(given: Any) -> UUID:
    if isinstance(given, UUID):
        return given
    try:
        return UUID(given)
    except (ValueError, TypeError, AttributeError):
        raise _no(given, "UUID") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "text": _text,
    "bytes": _bytes,
    "date": _date,
    "time": _time,
    "instant": _instant,
    "decimal": _decimal,
}
