"""What the methods and functions that come with Python return.

They have no hints that could be asked for at run time, so what they return is written down here,
for those that are used on the values of rows.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

_TEXTS = """capitalize casefold center expandtabs format format_map join ljust lower lstrip
removeprefix removesuffix replace rjust rstrip strip swapcase title translate upper zfill"""
_TESTS = """endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric
isprintable isspace istitle isupper startswith"""
_PLACES = "count find index rfind rindex"

_RETURNS: dict[type, dict[Any, str]] = {
    str: {
        str: _TEXTS,
        bool: _TESTS,
        int: _PLACES,
        bytes: "encode",
        tuple[str, str, str]: "partition rpartition",
        list[str]: "split rsplit splitlines",
    },
    bytes: {
        str: "decode hex",
        bytes: "lower lstrip removeprefix removesuffix replace rstrip strip upper",
        bool: "endswith startswith",
        int: _PLACES,
    },
    datetime: {date: "date", float: "timestamp", str: "ctime isoformat"},
    date: {
        date: "replace",
        str: "ctime isoformat strftime",
        int: "isoweekday toordinal weekday",
    },
    float: {bool: "is_integer", str: "hex", tuple[int, int]: "as_integer_ratio"},
    int: {int: "bit_count bit_length", tuple[int, int]: "as_integer_ratio"},
    Decimal: {
        bool: "is_finite is_infinite is_nan is_signed is_zero",
        int: "adjusted",
        tuple[int, int]: "as_integer_ratio",
    },
    timedelta: {float: "total_seconds"},
}
_ATTRIBUTES: dict[type, dict[Any, str]] = {
    datetime: {int: "fold hour microsecond minute second"},
    date: {int: "day month year"},
    int: {int: "denominator imag numerator real"},
    float: {float: "imag real"},
    timedelta: {int: "days microseconds seconds"},
}
_CLASS_METHODS: dict[Any, Any] = {
    date.fromisoformat: date, date.fromordinal: date, date.fromtimestamp: date,
    date.fromisocalendar: date, str.maketrans: Any, int.from_bytes: int, float.fromhex: float,
}  # fmt: skip
_FUNCTIONS: dict[Any, Any] = {
    len: int, hash: int, ord: int, id: int, chr: str, repr: str, ascii: str, hex: str, oct: str,
    bin: str, format: str, bool: bool, callable: bool, isinstance: bool, hasattr: bool, any: bool,
    all: bool,
}  # fmt: skip
_MATH: dict[Any, str] = {
    int: "ceil comb factorial floor gcd isqrt lcm perm trunc",
    bool: "isclose isfinite isinf isnan",
}


def _flat(table: dict[Any, str]) -> dict[str, Any]:
    return {name: hint for hint, names in table.items() for name in names.split()}


_METHOD_NAMES = {owner: _flat(table) for owner, table in _RETURNS.items()}
_ATTRIBUTE_NAMES = {owner: _flat(table) for owner, table in _ATTRIBUTES.items()}
_MATH_NAMES = _flat(_MATH)


def method(hint: Any, name: str) -> Any:
    """What a method of values of this class returns, as far as it is known.

    >>> method(str, "upper"), method(datetime, "strftime"), method(str, "no_such")
    (<class 'str'>, <class 'str'>, typing.Any)
    """
    return _found(_METHOD_NAMES, hint, name)


def attribute(hint: Any, name: str) -> Any:
    """What an attribute of values of this class is, as far as it is known.

    >>> attribute(datetime, "year"), attribute(datetime, "tzinfo")
    (<class 'int'>, typing.Any)
    """
    return _found(_ATTRIBUTE_NAMES, hint, name)


def _found(table: dict[type, dict[str, Any]], hint: Any, name: str) -> Any:
    for each in getattr(hint, "__mro__", ()):
        if name in table.get(each, ()) and getattr(hint, name) is getattr(each, name):
            return table[each][name]
    return Any


def builtin(f: Any) -> Any:
    """What a function or a method of Python's own returns, as far as it is known.

    >>> import math
    >>> builtin(len), builtin(str.upper), builtin(math.floor), builtin(math.sqrt), builtin(print)
    (<class 'int'>, <class 'str'>, <class 'int'>, <class 'float'>, typing.Any)
    """
    owner = getattr(f, "__objclass__", None)
    if owner is not None:
        return method(owner, f.__name__)
    if getattr(f, "__self__", None) is math:
        known = _MATH_NAMES.get(f.__name__, float)
        return Any if f.__name__ in ("frexp", "modf", "prod", "sumprod") else known
    try:
        return _FUNCTIONS.get(f) or _CLASS_METHODS.get(f, Any)
    except TypeError:  # it cannot be hashed
        return Any
