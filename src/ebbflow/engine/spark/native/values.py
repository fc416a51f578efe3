"""Values of an expression, as columns of Spark's that mean the same.

A *value* is what an expression is for every row: a column of Spark's, with the hint that its values
have in Python. So the Python type of every part is known, and an operator of Spark's is used where
it gives what Python gives for these types, and nowhere else. What is refused raises `NotNative`,
which says why.

    None        never inside an operator: a value that may be None is *optional*, and refused there
    a record    its parts, side by side; a struct where one column is needed
    a constant  known here too, as more can be said of it than of a column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import PICKLED, PLAIN, Column
from ebbflow.engine.spark.table.schema import open_type

LONG = 2**63
LARGEST = 2000
"""How many operators a column may have. Some parts are written several times, and these nested."""
NOTHING = Column("none", optional=True)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotNative(Exception):
    """Why an expression is not translated, in a few words."""


class _Missing:
    """No constant."""


MISSING = _Missing()


@dataclass(frozen=True, eq=False)
class Value:
    """What an expression is, for every row. `sql` is the column, `column` says what is in it."""

    column: Column
    made: Expression | None
    parts: tuple[Value, ...] = ()
    constant: Any = MISSING
    size: int = 1

    def __post_init__(self) -> None:
        if self.size > LARGEST:
            raise NotNative("it is too long")

    @property
    def form(self) -> str:
        return self.column.form

    @property
    def optional(self) -> bool:
        return self.column.optional

    @property
    def is_constant(self) -> bool:
        return self.constant is not MISSING

    @property
    def sql(self) -> Expression:
        """One column for it, also where it is a record."""
        return struct(self) if self.made is None else self.made

    def there(self) -> Value:
        """The same, where it is known not to be None."""
        if not self.optional or self.made is None or self.column == NOTHING:
            return self
        return of_column(replace(self.column, optional=False), self.made)


def of_column(column: Column, sql: Expression) -> Value:
    """The value of a column."""
    if column.form != "record" or column.optional:
        return Value(column, sql)
    require_names([name for name, _ in column.parts])
    parts = tuple(of_column(part, sql.getField(name)) for name, part in column.parts)
    return Value(column, None if parts else sql, parts)


def require_names(names: Sequence[str]) -> None:
    """Refuse names that Spark takes for the same."""
    if len({name.lower() for name in names}) < len(names):
        raise NotNative("two fields have the same name but for capital letters")


def made(form: str, sql: Expression, *of: Value, times: int = 1) -> Value:
    """A value made of others, each written so many times."""
    return Value(Column(form), sql, size=1 + times * sum(each.size for each in of))


def together(make: Any, names: Sequence[str], parts: Sequence[Value]) -> Value:
    """A record of these parts."""
    inside = tuple((name, part.column) for name, part in zip(names, parts, strict=True))
    size = 1 + sum(part.size for part in parts)
    return Value(Column("record", parts=inside, make=make), None, tuple(parts), size=size)


def struct(record: Value) -> Expression:
    """The column of a record."""
    pairs = zip(record.column.parts, record.parts, strict=True)
    return f.struct(*[named(part, name) for (name, _), part in pairs])


def named(value: Value, name: str) -> Expression:
    """The column under a name; one of pickles is marked as such."""
    if value.form == "any":
        return value.sql.alias(name, metadata=dict(PICKLED))
    return value.sql.alias(name)


# ---- constants ----


def constant(value: Any) -> Value:
    """A constant of the program's."""
    cls = type(value)
    if cls is tuple:
        parts = [constant(each) for each in value]
        return replace(together(tuple, [f"_{i}" for i in range(len(parts))], parts), constant=value)
    if value is None:
        return Value(NOTHING, f.lit(None), constant=None)
    if cls not in PLAIN or (cls is datetime and value.tzinfo is not None and value.fold):
        raise NotNative(f"a constant of type {cls.__name__}")
    form, digits = PLAIN[cls], (38, 18)
    if cls is datetime and value.tzinfo is not None:
        form = "instant"
    if cls is Decimal:
        digits = _digits(value)
    return Value(Column(form, digits=digits), _literal(form, value, digits), constant=value)


def _digits(value: Decimal) -> tuple[int, int]:
    if not value.is_finite():
        raise NotNative(f"the constant {value}")
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise NotNative("a constant of more than 38 digits")
    return precision, scale


def _literal(form: str, value: Any, digits: tuple[int, int]) -> Expression:
    match form:
        case "int":
            if not -LONG <= value < LONG:
                raise NotNative("a constant of more than 64 bits")
            return f.lit(value).cast("long")
        case "text":
            try:
                value.encode()
            except UnicodeEncodeError:
                raise NotNative("a constant with half of a surrogate pair") from None
            return f.lit(value)
        case "date" | "time":
            text = value.isoformat() if type(value) is date else value.isoformat(sep=" ")
            return f.lit(text).cast("date" if form == "date" else "timestamp_ntz")
        case "instant":
            since = value - _EPOCH
            micros = (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
            return f.timestamp_micros(f.lit(micros).cast("long"))
        case "decimal":
            return f.lit(format(value, "f")).cast(t.DecimalType(*digits))
    return f.lit(value)


# ---- as a field of a row ----


def fitted(value: Value, column: Column) -> Value:
    """The value as one of this column, where each value of the one is a value of the other."""
    if value.column == NOTHING:
        if column.optional:
            return Value(column, f.lit(None).cast(open_type(column)))
    elif value.form == column.form and value.optional <= column.optional:
        if value.form == "decimal":
            return _rescaled(value, column)
        if value.form == "record" and value.column.make is column.make:
            found = _record(value, column)
            if found is not None:
                return found
        elif replace(value.column, optional=column.optional) == column:
            return replace(value, column=column)
    raise NotNative(f"it gives {shown(value.column)}, and the row has {shown(column)}")


def _record(value: Value, column: Column) -> Value | None:
    if len(value.column.parts) != len(column.parts):
        return None
    if value.optional:
        return _may_be_null(value, column) if value.column == column else None
    parts = [fitted(part, inside) for part, (_, inside) in zip(
        value.parts, column.parts, strict=True
    )]  # fmt: skip
    inside = together(column.make, [name for name, _ in column.parts], parts)
    return _may_be_null(inside, column) if column.optional else inside


def _may_be_null(value: Value, column: Column) -> Value:
    """A record that may be null: all its fields may be, in the schema."""
    return Value(column, value.sql.cast(open_type(column)), size=1 + value.size)


def _rescaled(value: Value, column: Column) -> Value:
    if value.column.digits == column.digits:
        return replace(value, column=column)
    (precision, scale), (wanted, after) = value.column.digits, column.digits
    if scale > after or precision - scale > wanted - after:
        raise NotNative(f"it gives {shown(value.column)}, and the row has {shown(column)}")
    return Value(column, value.sql.cast(t.DecimalType(wanted, after)), size=1 + value.size)


def shown(column: Column) -> str:
    """What a column is, for people.

    >>> shown(NOTHING), shown(Column("int", optional=True))
    ('None', 'int | None')
    """
    if column.form == "none":
        return "None"
    if column.form != "record":
        return str(column)
    inside = ", ".join([shown(part) for _, part in column.parts])
    text = f"tuple[{inside}]" if column.make is tuple else str(column.make.__name__)
    return f"{text} | None" if column.optional else text
