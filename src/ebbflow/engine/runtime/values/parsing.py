"""Texts that stand for values, read as `read_csv` reads them: for requests with `parse=True`.

Each function gives the value of a text, or raises ValueError.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

_INT = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.I
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?))?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


def int_of(text: str) -> int:
    """An int.

    >>> int_of("-12")
    -12
    """
    return int(_whole(_INT, text))


def float_of(text: str) -> float:
    """A float.

    >>> float_of("1e3"), float_of("nan")
    (1000.0, nan)
    """
    return float(_whole(_NUMBER, text))


def bool_of(text: str) -> bool:
    """A truth value.

    >>> bool_of("True"), bool_of("0")
    (True, False)
    """
    found = _TRUTH.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


def decimal_of(text: str) -> Decimal:
    """A Decimal.

    >>> decimal_of("12.50")
    Decimal('12.50')
    """
    try:
        return Decimal(_whole(_NUMBER, text))
    except InvalidOperation:
        raise ValueError(text) from None


def date_of(text: str) -> date:
    """A date.

    >>> date_of("2026-05-01")
    datetime.date(2026, 5, 1)
    """
    return date.fromisoformat(_whole(_DAY, text))


def naive_of(text: str) -> datetime:
    """A time without a zone.

    >>> naive_of("2026-05-01 12:30")
    datetime.datetime(2026, 5, 1, 12, 30)
    """
    found = datetime.fromisoformat(_whole(_TIME, text))
    if found.tzinfo is not None:
        raise ValueError(text)
    return found


def instant_of(text: str) -> datetime:
    """A time with a zone, in UTC.

    >>> instant_of("2026-05-01T12:30:00+02:00")
    datetime.datetime(2026, 5, 1, 10, 30, tzinfo=datetime.timezone.utc)
    """
    found = datetime.fromisoformat(_whole(_TIME, text))
    if found.tzinfo is None:
        raise ValueError(text)
    return found.astimezone(UTC)


def _whole(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(text)
    return text
