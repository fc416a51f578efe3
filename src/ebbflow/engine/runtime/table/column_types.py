"""What the fields of a row are, as columns of a table.

A *column* is made of the hint of a field: a *form*, such as "int" or "list", the columns of its
parts, and whether it is optional. Arrow types and Spark types are both read off columns, so the two
always agree. By hint:

    int, float, bool, str, bytes, date   themselves; an int has 64 bits
    datetime                             a time without a zone
    Annotated[datetime, UTC]             an instant; comes back in UTC, whatever its zone was
    Decimal                              38 digits, 18 of them after the point
    Annotated[Decimal, (10, 2)]          so many digits, and so many of them after the point
    T | None                             the same, with nulls
    Text                                 a text; comes back as a `Text`
    List[T]                              a list; comes back as a `List`
    tuple[T, ...], list[T]               a list; comes back as a tuple, as rows must be hashable
    frozenset[T], set[T]                 a list; comes back as a frozenset
    dict[K, T]                           a map; comes back as a `Frozen` dict, for the same reason
    Map[K, T]                            a map; comes back as a `Map`
    a NamedTuple class, tuple[A, B]      a record
    Any, and everything else             *pickled*: bytes that only Python can read

A pickled column is marked, `{"ebbflow": "pickle"}` in the metadata of the field. Equal values may
have different pickles: such a column can be carried, and never compared.

In a record that may be null all fields are nullable in the schema, as Spark writes nulls into them;
the hints still hold, and are checked.

Rows that are no NamedTuples have one column, `value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    Union,
    get_args,
    get_origin,
)

from ebbflow.change import List, Text
from ebbflow.errors import CompositionError
from ebbflow.flow.types import DIGITS
from ebbflow.frozen import Frozen
from ebbflow.record import fields_of
from ebbflow.reducer import Map

VALUE = "value"
"""The only column of rows that are no NamedTuples."""
WEIGHT = "__weight"
"""The column of weights. No field of a NamedTuple can have this name."""
PICKLED = {"ebbflow": "pickle"}
"""The metadata of a column of pickles."""

PLAIN: dict[Any, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "text",
    bytes: "bytes",
    date: "date",
    datetime: "time",
    Decimal: "decimal",
}
KEYS = {"int", "bool", "text", "bytes", "date", "time"}
"""The forms that the keys of a map may have: those in which equal values are written alike."""
_TEXTS = {form: cls.__name__ for cls, form in PLAIN.items()}


@dataclass(frozen=True)
class Column:
    """How the values of one field are laid out.

    >>> column_of(tuple[int | None, ...])
    Column(form='list', parts=(('element', Column(form='int', optional=True)),))
    """

    form: str
    optional: bool = False
    parts: tuple[tuple[str, Column], ...] = ()
    make: Any = None
    digits: tuple[int, int] = DIGITS

    def inside(self, loose: bool = False) -> Iterator[tuple[str, Column, bool]]:
        """The fields of a record, and whether each may be null in a table. In one that may be null
        they all may, as nothing is written under a null; `loose` says that one around it may be.
        """
        for name, part in self.parts:
            yield name, part, loose or self.optional or part.optional

    def __repr__(self) -> str:
        plain = Column("any")
        shown = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if name == "form" or value != getattr(plain, name)
        ]
        return f"Column({', '.join(shown)})"

    def __str__(self) -> str:
        """The hint it was made of, more or less."""
        inside = [str(part) for _, part in self.parts]
        match self.form:
            case "instant":
                text = "Annotated[datetime, UTC]"
            case "decimal" if self.digits != DIGITS:
                text = f"Annotated[Decimal, {self.digits}]"
            case "list":
                text = f"List[{inside[0]}]" if self.make is List else f"tuple[{inside[0]}, ...]"
            case "set":
                text = f"frozenset[{inside[0]}]"
            case "map":
                text = f"{'Map' if self.make is Map else 'dict'}[{', '.join(inside)}]"
            case "record":
                text = f"tuple[{', '.join(inside)}]" if self.make is tuple else self.make.__name__
            case "any":
                return "Any"
            case form:
                text = "Text" if self.make is Text else _TEXTS[form]
        return f"{text} | None" if self.optional else text


ANY = Column("any", optional=True)
Columns = tuple[tuple[str, Column], ...]


def columns_of(row_type: Any) -> Columns:
    """The columns of a row type, with their names.

    >>> from ebbflow.record import record
    >>> for name, column in columns_of(record("City", name=str, size=int | None)):
    ...     print(f"{name}: {column}")
    name: str
    size: int | None
    >>> columns_of(int)
    (('value', Column(form='int')),)
    """
    return (
        _columns(row_type) if fields_of(row_type) is not None else ((VALUE, column_of(row_type)),)
    )


def column_of(hint: Any) -> Column:
    """The column for values of this hint.

    >>> print(column_of(Annotated[Decimal, (10, 2)] | None), column_of(set[int]))
    Annotated[Decimal, (10, 2)] | None frozenset[int]
    """
    return _column(hint, (), ())


@cache
def _columns(row_type: Any, around: tuple[Any, ...] = ()) -> Columns:
    fields = fields_of(row_type) or {}
    return tuple((name, _column(hint, (), (*around, row_type))) for name, hint in fields.items())


def _column(hint: Any, notes: tuple[Any, ...], around: tuple[Any, ...]) -> Column:
    """`notes` are what `Annotated` adds; `around` are the records that this one is in."""
    if hint in PLAIN:
        return _plain(hint, notes)
    if hint is Text:
        return Column("text", make=Text)
    if isinstance(hint, NewType):
        return _column(hint.__supertype__, notes, around)
    if fields_of(hint) is not None:
        if hint in around:
            return ANY
        return Column("record", parts=_columns(hint, around), make=hint)
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _column(inside[0], (*inside[1:], *notes), around)
    if origin in (Union, UnionType):
        return _either(inside, notes, around)
    if origin is Literal:
        return _either(tuple({type(value) for value in inside}), notes, around)
    if origin is list or (origin is tuple and inside[1:] == (...,)):
        return Column("list", parts=(("element", _column(inside[0], (), around)),))
    if origin is List:
        return Column("list", parts=(("element", _column(inside[0], (), around)),), make=List)
    if origin is tuple and inside:
        parts = tuple((f"_{i}", _column(part, (), around)) for i, part in enumerate(inside))
        return Column("record", parts=parts, make=tuple)
    if origin in (set, frozenset):
        return Column("set", parts=(("element", _column(inside[0], (), around)),))
    if origin in (dict, Frozen, Map):
        key, value = (_column(each, (), around) for each in inside)
        if key.form in KEYS and not key.optional:
            parts = (("key", key), ("value", value))
            return Column("map", parts=parts, make=Map if origin is Map else Frozen)
    return ANY


def _either(hints: tuple[Any, ...], notes: tuple[Any, ...], around: tuple[Any, ...]) -> Column:
    rest = [hint for hint in hints if hint is not NoneType]
    if len(rest) != 1:
        return ANY
    column = _column(rest[0], notes, around)
    return column if len(rest) == len(hints) else replace(column, optional=True)


def _plain(row_type: Any, notes: tuple[Any, ...]) -> Column:
    if row_type is datetime and any(isinstance(note, tzinfo) for note in notes):
        return Column("instant")
    if row_type is Decimal:
        for note in notes:
            if isinstance(note, tuple) and len(note) == 2:
                return Column("decimal", digits=_digits(*note))
    return Column(PLAIN[row_type])


def _digits(precision: Any, scale: Any) -> tuple[int, int]:
    if not (type(precision) is type(scale) is int and 0 <= scale <= precision <= 38 and precision):
        raise CompositionError(
            f"Annotated[Decimal, ({precision!r}, {scale!r})]: no such number of digits",
            remedy="Annotated[Decimal, (10, 2)]: 1 to 38 digits, and how many of them are decimals",
        )
    return precision, scale


def comparable(row_type: Any) -> bool:
    """Whether a table can tell equal rows of this type: none of its columns is pickled, a set or a
    map.

    >>> comparable(tuple[int, ...]), comparable(set[int])
    (True, False)
    """
    return all(_comparable(column) for _, column in columns_of(row_type))


def _comparable(column: Column) -> bool:
    return column.form not in ("any", "set", "map") and all(
        _comparable(part) for _, part in column.parts
    )
