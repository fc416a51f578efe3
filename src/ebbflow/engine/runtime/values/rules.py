"""The values that a field of an input holds, by the type of the field: the one table of rules.

A `Rule` belongs to one type. It says which values are *canonical*, the only form in which a row
holds a value, and converts others to it if nothing is lost. Equal values have one canonical form,
so no result depends on which of two equal values arrived first. `RULES` has the types with one
value; `ebbflow.engine.runtime.values.hints` composes rules for optional fields, lists and records.

| type | holds | converts | refuses |
|---|---|---|---|
| `int` | `int` | `bool`, enums and subclasses of `int`, NumPy integers | text, floats, missing values |
| `float` | `float`, one NaN, no `-0.0` | integers that are a float exactly, NumPy numbers | text, truth values, `Decimal` |
| `bool` | `bool` | NumPy truth values | text, 0 and 1 |
| `str` | `str` | enums and subclasses of `str`, NumPy texts | numbers, bytes |
| `bytes` | `bytes` | `bytearray`, subclasses of `bytes` | text |
| `date` | `date` | `datetime64` of days or longer | text, times of day |
| `datetime` | `datetime` without a zone | `Timestamp`, `datetime64` of whole microseconds | text, dates, times with a zone |
| `Annotated[datetime, UTC]` | `datetime` in UTC | times of any zone, `Timestamp` with a zone | text, dates, times without a zone |
| `time` | `time` without a zone | subclasses of `time` | text, times with a zone |
| `timedelta` | `timedelta` | `Timedelta`, `timedelta64` of whole microseconds | text, numbers |
| `decimal(p, s)` | `Decimal` with exactly `s` digits after the point | `Decimal` and `int` that fit | text, floats, other digits |
| `Decimal` | `Decimal` without trailing zeros | `Decimal` with at most 4,300 digits before the point and 18 after it, `int` | text, floats |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from math import copysign
from typing import Any

from ebbflow import decimals
from ebbflow.engine.runtime.values import parsing
from ebbflow.errors import AlgebraError, value_text
from ebbflow.frozen import Frozen
from ebbflow.nan import NAN, one_nan

Convert = Callable[[Any], Any]
Bind = Callable[[Any], str]
"""What gives a value a name in generated code."""


class WrongValue(Exception):
    """A value that a field refuses: `why`, the `remedy`, and the `path` to it inside the field.
    It is `unread` if it is a text that `parse=True` may read."""

    def __init__(
        self, value: Any, why: str, remedy: str, path: str = "", unread: bool = False
    ) -> None:
        super().__init__(why)
        self.value, self.why, self.remedy, self.path = value, why, remedy, path
        self.unread = unread

    def inside(self, path: str) -> WrongValue:
        """The same value, seen from around it."""
        return WrongValue(self.value, self.why, self.remedy, path + self.path, self.unread)


@dataclass(frozen=True)
class Rule:
    """The rule of one type.

    `convert` gives the canonical form of a value, the value itself if it is canonical, or raises
    `WrongValue`. `test` writes Python that is true of canonical values only. `parse` reads a text
    that stands for a value, as files do.
    """

    name: str
    test: Callable[[Bind, str], str]
    convert: Convert
    parse: Callable[[str], Any] | None = None
    cls: type | None = None
    """The class of canonical values, if every value of this class is one."""

    def is_canonical(self, value: Any) -> bool:
        """Whether a value is in its canonical form."""
        try:
            return self.convert(value) is value
        except WrongValue:
            return False

    def text(self, bind: Bind, x: str) -> str:
        """Python that is true of the variable `x` if its value is canonical."""
        return self.test(bind, x)


def refusal(value: Any, name: str, remedy: str = "") -> WrongValue:
    """The error for a value of another type."""
    if value is None:
        why = f"must be {with_article(name)}, and it is missing"
        return WrongValue(
            value, why, f"{name} | None as the type of the field, or leave the row out"
        )
    given = f"{type(value).__name__} {value_text(value)}"
    why = f"must be {with_article(name)}, not the {given}"
    return WrongValue(value, why, remedy or f"a value of type {name}")


PARSE = "parse=True reads texts, as in ebbflow.upsert(rows, parse=True), and so does ebbflow.read_csv(path, Row)"  # noqa: E501


def unread(value: Any, name: str, remedy: str) -> WrongValue:
    """The error for a value of another type, where `parse=True` reads texts."""
    found = refusal(value, name, remedy)
    found.unread = isinstance(value, str)
    return found


def with_article(name: str) -> str:
    """The name of a type with its article.

    >>> with_article("int"), with_article("decimal(12, 2)")
    ('an int', 'a decimal(12, 2)')
    """
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"


# ---- values of other libraries ----


def python_value(value: Any) -> Any:
    """The value of Python that a scalar of NumPy, pandas or Arrow stands for, or the value itself.
    `NaT` and `NA` stand for None.

    >>> import numpy as np
    >>> python_value(np.uint8(200)), python_value(np.datetime64("2026-05-01")), python_value("ebb")
    (200, datetime.date(2026, 5, 1), 'ebb')
    """
    cls = type(value)
    read = _LIBRARIES.get(cls.__module__.partition(".")[0])
    return value if read is None else read(cls, value)


def _of_numpy(cls: Any, value: Any) -> Any:
    if not hasattr(cls, "item") or value.shape:
        return value
    if value.dtype.kind in "Mm":
        return _numpy_time(value)
    found = value.item()
    if type(found) is cls:  # a longdouble
        return float(found) if float(found) == found or found != found else value
    return found


def _numpy_time(value: Any) -> Any:
    import numpy as np

    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if value.dtype.kind == "m" and unit in ("Y", "M"):
        why = f"counts months, which have no fixed length: {value_text(value)}"
        raise WrongValue(value, why, "a number of days")
    if value.dtype.kind == "M" and unit in ("Y", "M", "W", "D"):
        exact = value.astype("datetime64[D]")
    else:
        exact = value.astype(f"{value.dtype.kind}8[us]")
        if exact != value:
            raise _finer(value)
    found = exact.item()
    if isinstance(found, int):
        raise WrongValue(value, f"is outside the years 1 to 9999: {value_text(value)}", IN_RANGE)
    return found


def _of_pandas(cls: type, value: Any) -> Any:
    if cls.__name__ in ("NaTType", "NAType"):
        return None
    if cls.__name__ == "Timestamp":
        if value.nanosecond:
            raise _finer(value)
        return value.to_pydatetime()
    if cls.__name__ == "Timedelta":
        if value.nanoseconds:
            raise _finer(value)
        return value.to_pytimedelta()
    return value


def _of_arrow(cls: type, value: Any) -> Any:
    return value.as_py() if hasattr(cls, "as_py") else value


def _finer(value: Any) -> WrongValue:
    why = f"has parts of a microsecond: {value_text(value)}"
    return WrongValue(value, why, "times of whole microseconds, as value.floor('us') gives")


_LIBRARIES: dict[str, Callable[[Any, Any], Any]] = {
    "numpy": _of_numpy, "pandas": _of_pandas, "pyarrow": _of_arrow,
}  # fmt: skip
IN_RANGE = "a time in the years 1 to 9999, or None where there is none"


# ---- conversions ----


def to_int(value: Any) -> Any:
    """A value as an int.

    >>> to_int(True), to_int(7)
    (1, 7)
    """
    if type(value) is int:
        return value
    found = python_value(value)
    if isinstance(found, int):
        return int.__index__(found)
    if isinstance(found, float):
        remedy = "round the value, or float as the type of the field"
        raise refusal(value, "int", remedy)
    raise unread(value if found is not None else None, "int", "int(value)")


def to_float(value: Any) -> Any:
    """A value as a float: one NaN, and no negative zero.

    >>> to_float(3), to_float(-0.0)
    (3.0, 0.0)
    """
    found = python_value(value)
    if isinstance(found, float):
        if type(value) is float and is_one_float(value):
            return value
        plain = float.__pos__(found)
        return NAN if plain != plain else plain or 0.0
    if isinstance(found, int) and not isinstance(found, bool):
        with_loss = refusal(value, "float", "int or Decimal as the type of the field")
        try:
            made = float(found)
        except OverflowError:
            raise with_loss from None
        if made != found:
            raise with_loss
        return made
    raise unread(value if found is not None else None, "float", "float(value)")


def is_one_float(x: float) -> bool:
    """Whether a float is the only one of its value: `NAN` of all NaN, and 0.0 of both zeros.

    >>> is_one_float(NAN), is_one_float(float("nan")), is_one_float(-0.0), is_one_float(0.0)
    (True, False, False, True)
    """
    return x is NAN or (x == x and (x != 0.0 or copysign(1.0, x) > 0.0))


def to_bool(value: Any) -> Any:
    """A value as a bool."""
    found = value if type(value) is bool else python_value(value)
    if type(found) is bool:
        return found
    raise unread(value if found is not None else None, "bool", "bool(value)")


def to_str(value: Any) -> Any:
    """A value as a str.

    >>> from enum import StrEnum
    >>> to_str(StrEnum("State", ["OPEN"]).OPEN)
    'open'
    """
    if type(value) is str:
        return value
    found = python_value(value)
    if isinstance(found, str):
        return str.__str__(found)
    if found is not None and found != found:
        raise refusal(value, "str", "None for a value that is missing, and str | None as the type")
    raise refusal(value if found is not None else None, "str", "str(value)")


def to_bytes(value: Any) -> Any:
    """A value as bytes."""
    if type(value) is bytes:
        return value
    found = python_value(value)
    if isinstance(found, (bytes, bytearray, memoryview)):
        return bytes(found)
    if isinstance(value, str):
        raise WrongValue(value, f"must be bytes, not the str {value_text(value)}", "value.encode()")
    raise refusal(value if found is not None else None, "bytes")


def to_date(value: Any) -> Any:
    """A value as a date."""
    if type(value) is date:
        return value
    found = python_value(value)
    if isinstance(found, date) and not isinstance(found, datetime):
        return date(found.year, found.month, found.day)
    remedy = "value.date()" if isinstance(found, datetime) else "date.fromisoformat(value)"
    remedy = remedy if isinstance(found, (datetime, str)) else "a datetime.date"
    raise unread(value if found is not None else None, "date", remedy)


def to_naive(value: Any) -> Any:
    """A value as a datetime without a zone."""
    found = _datetime(value, "datetime")
    if found.tzinfo is None:
        return found
    raise WrongValue(
        value,
        f"must be a datetime without a zone, and {value_text(value)} has one",
        "Annotated[datetime, UTC] as the type of the field, or value.replace(tzinfo=None)",
    )


def to_instant(value: Any) -> Any:
    """A value as a datetime in UTC.

    >>> from zoneinfo import ZoneInfo
    >>> to_instant(datetime(2026, 5, 1, 12, tzinfo=ZoneInfo("Europe/Rome")))
    datetime.datetime(2026, 5, 1, 10, 0, tzinfo=datetime.timezone.utc)
    """
    if type(value) is datetime and value.tzinfo is UTC and not value.fold:
        return value
    found = _datetime(value, "datetime with a zone", keep_fold=True)
    if found.utcoffset() is None:
        raise WrongValue(
            value,
            f"must be a datetime with a zone, and {value_text(value)} has none",
            "value.replace(tzinfo=UTC), or datetime as the type of the field",
        )
    try:
        return found.astimezone(UTC).replace(fold=0)
    except OverflowError:
        why = f"is outside the years 1 to 9999 in UTC: {value_text(value)}"
        raise WrongValue(value, why, IN_RANGE) from None


def _datetime(value: Any, name: str, keep_fold: bool = False) -> datetime:
    found = value if type(value) is datetime else python_value(value)
    if not isinstance(found, datetime):
        remedy = "a datetime.datetime"
        if isinstance(found, date):
            combines = isinstance(value, date)
            remedy = "datetime.combine(value, time())" if combines else 'value.astype("M8[us]")'
        remedy = "datetime.fromisoformat(value)" if isinstance(found, str) else remedy
        raise unread(value if found is not None else None, name, remedy)
    if type(found) is datetime and (keep_fold or not found.fold):
        return found
    return datetime(
        found.year, found.month, found.day, found.hour, found.minute, found.second,
        found.microsecond, found.tzinfo, fold=found.fold if keep_fold else 0,
    )  # fmt: skip


def to_time(value: Any) -> Any:
    """A value as a time of day, without a zone."""
    if not isinstance(value, time):
        remedy = "time.fromisoformat(value)" if isinstance(value, str) else ""
        raise refusal(value if python_value(value) is not None else None, "time", remedy)
    if value.utcoffset() is not None:
        raise WrongValue(
            value,
            f"must be a time without a zone, and {value_text(value)} has one",
            "value.replace(tzinfo=None), and the zone in a field of its own",
        )
    if type(value) is time and value.tzinfo is None and not value.fold:
        return value
    return time(value.hour, value.minute, value.second, value.microsecond)


def _time_test(bind: Bind, x: str) -> str:
    return f"(type({x}) is {bind(time)} and {x}.tzinfo is None and not {x}.fold)"


def _one_datetime(value: Any) -> Any:
    """Of equal times, that in UTC; a time without a zone stays one."""
    return to_naive(value) if value.tzinfo is None else to_instant(value)


def to_timedelta(value: Any) -> Any:
    """A value as a timedelta."""
    if type(value) is timedelta:
        return value
    found = python_value(value)
    if isinstance(found, timedelta):
        return timedelta(found.days, found.seconds, found.microseconds)
    raise refusal(value if found is not None else None, "timedelta")


def to_complex(value: Any) -> Any:
    """A value as a complex number: one NaN, and no negative zero in it.

    >>> to_complex(-0.0), to_complex(complex(1, -0.0))
    (0j, (1+0j))
    """
    found = value if type(value) is complex else python_value(value)
    if isinstance(found, (complex, float)) or (
        isinstance(found, int) and not isinstance(found, bool)
    ):
        try:
            made = found if type(found) is complex else complex(found)
        except OverflowError:
            made = None
        if made is not None and (made == found or found != found):
            return _one_complex(made)
        raise refusal(value, "complex", "int as the type of the field")
    raise refusal(value if found is not None else None, "complex")


def _one_complex(x: complex) -> Any:
    if x != x:
        return one_nan(x)
    plain = complex(x.real + 0.0, x.imag + 0.0)  # without negative zeros
    return x if repr(x) == repr(plain) else plain


# ---- decimals ----


def decimal_rule(digits: decimals.Digits) -> Rule:
    """The rule of a Decimal of these digits.

    >>> decimal_rule((12, 2)).convert(Decimal("1.5")), decimal_rule(None).convert(Decimal("1.50"))
    (Decimal('1.50'), Decimal('1.5'))
    """
    if digits is None:
        return Rule("Decimal", _tested_by(_to_plain), _to_plain, parsing.decimal_of)
    precision, scale = digits
    quantum = Decimal((0, (1,), -scale))

    def test(bind: Bind, x: str) -> str:
        return (
            f"(type({x}) is {bind(Decimal)} and {x}.same_quantum({bind(quantum)})"
            f" and ({x} or not {x}.is_signed()) and {x}.adjusted() < {precision - scale})"
        )

    def fits(x: Any) -> bool:
        return bool(
            type(x) is Decimal and x.same_quantum(quantum) and (x or not x.is_signed())
            and x.adjusted() < precision - scale
        )  # fmt: skip

    name = f"decimal({precision}, {scale})"
    fit = decimals.fitting(digits, exact=True)

    def convert(value: Any) -> Any:
        if fits(value):
            return value
        found = _number(value, name)
        if found.is_finite():
            try:
                return fit(found)
            except AlgebraError:
                pass
        why = f"must be a {name}, and {value_text(value)} does not fit"
        remedy = f"round(value, {scale}), or decimal(p, s) with more digits"
        raise WrongValue(value, why, remedy)

    return Rule(name, test, convert, parsing.decimal_of)


def _to_plain(value: Any) -> Any:
    found = _number(value, "Decimal")
    if found.is_snan():
        raise WrongValue(value, "is a signaling NaN, which nothing can be computed with",
                         "Decimal('NaN'), or leave the row out")  # fmt: skip
    if not found.is_finite():
        return one_nan(found)
    if found.adjusted() >= decimals.LONGEST:
        why = f"must be a Decimal of at most {decimals.LONGEST:,} digits before the point"
        raise WrongValue(value, why, "a smaller number")
    made = decimals.plain(found)
    if made.same_quantum(found) and made.is_signed() == found.is_signed():
        return found
    if made != found:
        why = f"must be a Decimal, and {value_text(value)} has more than 18 digits after the point"
        raise WrongValue(value, why, "round(value, 18)")
    return made


def _one_decimal(value: Any) -> Any:
    """Of equal Decimals that in a field of Decimals, or the shortest where none is in one."""
    if value.is_nan():
        return _to_plain(value)
    made = decimals.without_zeros(value)
    if value.is_finite() and value.adjusted() < decimals.LONGEST:
        plain = decimals.plain(value)
        made = plain if plain == value else made
    return value if made.compare_total(value) == 0 else made


def _number(value: Any, name: str) -> Decimal:
    """A Decimal or an int as a Decimal."""
    if type(value) is Decimal:
        return value
    found = python_value(value)
    if isinstance(found, Decimal) or (isinstance(found, int) and not isinstance(found, bool)):
        return Decimal(found)
    remedy = "Decimal(str(value))" if isinstance(found, float) else "Decimal(value)"
    raise unread(value if found is not None else None, name, remedy)


# ---- anything ----

KNOWN = frozenset({int, str, bool, bytes, type(None), date, timedelta, type})
"""Classes whose values are canonical in a field without a type."""
_FORMS: dict[type, Convert] = {
    float: to_float, complex: to_complex, Decimal: _one_decimal, datetime: _one_datetime,
    time: to_time,
}  # fmt: skip
"""The one form of equal values of a class, in a field without a type."""


def to_any(value: Any) -> Any:
    """A value of a field without a type: Python's value for a scalar of another library, with one
    form of equal numbers and times of a class, also inside tuples, sets and mappings.

    >>> import numpy as np
    >>> to_any((np.int64(1), "a", Decimal("1.50")))
    (1, 'a', Decimal('1.5'))
    """
    return value if _is_plain(value) else _plain(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is canonical, however deep it is nested."""
    rest = [value]
    while rest:
        found = rest.pop()
        cls = type(found)
        if cls in KNOWN:
            continue
        if cls in _FORMS:
            if _FORMS[cls](found) is not found:
                return False
        elif isinstance(found, (tuple, frozenset)) and not isinstance(found, Enum):
            rest.extend(found)
        elif cls is Frozen:
            rest.extend(chain.from_iterable(found.items()))
        elif python_value(found) is not found or one_nan(found) is not found:
            return False
    return True


def _plain(value: Any) -> Any:
    form = _FORMS.get(type(value))
    if form is not None:
        return form(value)
    if isinstance(value, (tuple, frozenset)) and not isinstance(value, Enum):
        make: Any = tuple.__new__ if isinstance(value, tuple) else frozenset.__new__
        return make(type(value), map(to_any, value))
    if type(value) is Frozen:
        return Frozen([(to_any(key), to_any(item)) for key, item in value.items()])
    found = python_value(value)
    return one_nan(value) if found is value else to_any(found)


def _any_test(bind: Bind, x: str) -> str:
    return f"(type({x}) in {bind(KNOWN)} or {bind(ANY.is_canonical)}({x}))"


def _tested_by(convert: Convert) -> Callable[[Bind, str], str]:
    """A test that converts a value and looks whether it stays the same."""
    found = Rule("", _no_test, convert).is_canonical
    return lambda bind, x: f"{bind(found)}({x})"


def tested(name: str, convert: Convert) -> Rule:
    """A rule whose test converts the value."""
    return Rule(name, _tested_by(convert), convert)


def _no_test(bind: Bind, x: str) -> str:
    return "True"


ANY = Rule("Any", _any_test, to_any)


def _none(value: Any) -> Any:
    if value is None or python_value(value) is None:
        return None
    raise refusal(value, "None")


NOTHING = Rule("None", lambda bind, x: f"{x} is None", _none)


# ---- the table ----


def _exactly(cls: type) -> Callable[[Bind, str], str]:
    return lambda bind, x: f"type({x}) is {bind(cls)}"


def _float_test(bind: Bind, x: str) -> str:
    return f"(type({x}) is float and ({x} > 0.0 or {x} < 0.0 or {bind(is_one_float)}({x})))"


def _naive_test(bind: Bind, x: str) -> str:
    return f"(type({x}) is {bind(datetime)} and {x}.tzinfo is None and not {x}.fold)"


def _instant_test(bind: Bind, x: str) -> str:
    return f"(type({x}) is {bind(datetime)} and {x}.tzinfo is {bind(UTC)} and not {x}.fold)"


INSTANT = Rule("datetime with a zone", _instant_test, to_instant, parsing.instant_of)
RULES: dict[Any, Rule] = {
    int: Rule("int", _exactly(int), to_int, parsing.int_of, int),
    float: Rule("float", _float_test, to_float, parsing.float_of),
    bool: Rule("bool", _exactly(bool), to_bool, parsing.bool_of, bool),
    str: Rule("str", _exactly(str), to_str, None, str),
    bytes: Rule("bytes", _exactly(bytes), to_bytes, None, bytes),
    date: Rule("date", _exactly(date), to_date, parsing.date_of, date),
    datetime: Rule("datetime", _naive_test, to_naive, parsing.naive_of),
    time: Rule("time", _time_test, to_time),
    timedelta: Rule("timedelta", _exactly(timedelta), to_timedelta, None, timedelta),
    complex: tested("complex", to_complex),
    Decimal: decimal_rule(None),
    type(None): NOTHING,
}
WIDEST = (Decimal, float, int, bool)
"""In a union of number types a number has the first of these that holds it without loss."""
