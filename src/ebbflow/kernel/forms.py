"""The forms of fields: how the values of each type are words.

A row type has columns when all its fields have a form (`forms_of`).
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from ebbflow.decimals import Digits, digits_of
from ebbflow.kernel.decimal_words import MOST_PLACES
from ebbflow.record import fields_of

LARGEST = (1 << 63) - 1
FORMS: dict[Any, str] = {
    int: "int",
    bool: "bool",
    float: "float",
    str: "text",
    date: "date",
    datetime: "time",
}
NAMES = frozenset([*FORMS.values(), "decimal"])
"""The names of forms."""


class WordForm(NamedTuple):
    """How the values of a field are words: as those of a type, or None. Decimals have `digits`."""

    name: str
    optional: bool = False
    digits: tuple[int, int] | None = None

    @property
    def scale(self) -> int:
        """How many digits of a Decimal come after the point."""
        return 0 if self.digits is None else self.digits[1]

    @property
    def encoding(self) -> tuple[str, int]:
        """Forms of one encoding have equal words for equal values."""
        return self.name, self.scale

    @property
    def largest(self) -> int:
        """The largest number that is a word of it; 0 where every word is one."""
        if self.name == "int":
            return LARGEST
        return 0 if self.digits is None else min(10 ** self.digits[0] - 1, LARGEST)

    @property
    def required(self) -> WordForm:
        """The same without None."""
        return self._replace(optional=False)

    @property
    def or_none(self) -> WordForm:
        """The same, or None."""
        return self._replace(optional=True)

    def __repr__(self) -> str:
        more = "" if self.digits is None else f", digits={self.digits}"
        return f"WordForm(name={self.name!r}, optional={self.optional}{more})"


@cache
def forms_of(row_type: Any) -> tuple[WordForm, ...] | None:
    """The forms of the fields of a row type; None where rows of it have no columns.

    >>> from ebbflow.record import record
    >>> forms_of(record("Order", id=int, city=str | None))
    (WordForm(name='int', optional=False), WordForm(name='text', optional=True))
    >>> forms_of(record("Basket", goods=frozenset[str])) is None
    True
    """
    fields = fields_of(row_type)
    if not fields or not issubclass(row_type, tuple):
        return None
    found = [form_of(hint) for hint in fields.values()]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def form_of(hint: Any) -> WordForm | None:
    """The form of values of this hint, or None.

    >>> from ebbflow.decimals import decimal
    >>> form_of(decimal(12, 2) | None)
    WordForm(name='decimal', optional=True, digits=(12, 2))
    """
    if hint in FORMS:
        return WordForm(FORMS[hint])
    if get_origin(hint) is Annotated and get_args(hint)[0] is Decimal:
        return decimal_form(digits_of(hint))
    if get_origin(hint) in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        found = form_of(rest[0]) if len(rest) == 1 else None
        return found if found is None else found.or_none
    return None


def decimal_form(digits: Digits) -> WordForm | None:
    """The form of Decimals of these digits, or None."""
    return None if digits is None or digits[1] > MOST_PLACES else WordForm("decimal", False, digits)


def no_columns(row_type: Any) -> str:
    """Why rows of a type have no columns.

    >>> from ebbflow.record import record
    >>> no_columns(record("Order", price=Decimal))
    "field 'price' is a Decimal of any scale: decimal(12, 2) would have a column"
    """
    for name, hint in (fields_of(row_type) or {}).items():
        if form_of(hint) is None:
            return f"field {name!r} {_why(hint)}"
    return "its rows are no tuples with typed fields"


def _why(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        hint = next((each for each in get_args(hint) if each is not NoneType), hint)
    if get_origin(hint) is Annotated and get_args(hint)[0] is Decimal and digits_of(hint):
        return f"has more than {MOST_PLACES} digits after the point"
    if hint is Decimal or (get_origin(hint) is Annotated and get_args(hint)[0] is Decimal):
        return "is a Decimal of any scale: decimal(12, 2) would have a column"
    return "is no int, float, bool, str, date, datetime or decimal"
