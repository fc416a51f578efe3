"""The columns of a DataFrame as fields of a row, in Spark's SQL.

The rules are those of `ebbflow.engine.runtime.values.rules`: a value is converted if nothing is
lost; otherwise the job that reads it fails, with an error that names the field, the value and the
row. The fields of structs are matched by name, at every depth. A field is text for `selectExpr`,
which is one call to Java for all columns.

| field | converts | fails the job |
|---|---|---|
| `int` | narrower integers, booleans | |
| `float` | every NaN to one, `-0.0` to `0.0`, integers that are a float exactly | other integers |
| `date`, `datetime` | | years before 1 and after 9999; of an instant, in UTC |
| a decimal | integers and other decimals that fit exactly | other decimals |
| `Literal` | | other values |
| any that is not optional | | null |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as t

from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.engine.runtime.table.fit import choices_of, fields_of_key
from ebbflow.engine.runtime.table.layout import wrong_type
from ebbflow.engine.runtime.values.rules import IN_RANGE
from ebbflow.engine.spark.failure import SECRET, refusal_text
from ebbflow.engine.spark.table.schema import open_type
from ebbflow.errors import is_redacted, value_text
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of

VALUE_HERE = "{}"
"""Stands for the value in a text about it."""
SHOWN = 8
"""The number of columns that an error shows of a row without a key."""
BESIDE_KEY = 2
"""The number of columns that an error shows of a row beside its key."""
_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_FLOATS = (t.FloatType, t.DoubleType)
_SAME: dict[str, tuple[type[t.DataType], ...]] = {
    "int": (*_INTEGERS, t.BooleanType),
    "float": (*_FLOATS, *_INTEGERS),
    "decimal": (t.DecimalType, *_INTEGERS),
    "bool": (t.BooleanType,),
    "text": (t.StringType, t.CharType, t.VarcharType),
    "bytes": (t.BinaryType,),
    "date": (t.DateType,),
    "time": (t.TimestampNTZType,),
    "instant": (t.TimestampType,),
}
_RANGES = {
    "date": ("DATE'0001-01-01'", "DATE'9999-12-31'"),
    "time": (
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ),
    "instant": (
        "TIMESTAMP_LTZ'0001-01-01 00:00:00Z'",
        "TIMESTAMP_LTZ'9999-12-31 23:59:59.999999Z'",
    ),
}
_NAN = "CAST('NaN' AS DOUBLE)"


def fits(found: t.DataType, column: Column) -> bool:
    """Whether a column of this type can be a field, as long as every value fits."""
    if isinstance(found, t.NullType):
        return column.optional
    parts = [part for _, part in column.parts]
    match column.form:
        case "any":
            return False  # such a column holds pickles, and those of a frame are not trusted
        case "list" | "set":
            return isinstance(found, t.ArrayType) and fits(found.elementType, parts[0])
        case "map":
            return (
                isinstance(found, t.MapType)
                and fits(found.keyType, parts[0])
                and fits(found.valueType, parts[1])
            )
        case "record":
            if not isinstance(found, t.StructType):
                return False
            types = {field.name: field.dataType for field in found}
            return (
                types.keys() == dict(column.parts).keys()
                and len(types) == len(found)
                and all(fits(types[name], part) for name, part in column.parts)
            )
        case form:
            return isinstance(found, _SAME[form])


@dataclass(frozen=True)
class FrameFields:
    """The fields of the rows in a frame, or in a column of structs of it.

    `within` is the column of the structs, and "" without one. With `nulls`, null is allowed in
    every field, as in events that have the key alone.
    """

    source: Source
    schema: t.StructType
    within: str = ""
    nulls: bool = False

    def field(self, name: str) -> str:
        """The field of this name; an error if the column is of another type."""
        column = dict(columns_of(self.source.type))[name]
        found = self.schema[name]
        if not fits(found.dataType, column):
            raise wrong_type(self.source, name, found.dataType.simpleString(), column)
        x = f"{self.within}{quoted(name)}"
        path = [name]
        made = self._value(x, found.dataType, column, path, 0)
        if column.form == "float" and name in fields_of_key(self.source):
            why, remedy = " is part of the key, and NaN", "leave those rows out, or give them a key"
            made = self._unless(f"isnan({x})", why, remedy, x, path, made)
        choices = choices_of((fields_of(self.source.type) or {VALUE: self.source.type})[name])
        if choices:
            made = self._chosen(x, choices, path, made)
        return made if self.nulls else self._present(made, found.nullable, column, path)

    def fields(self) -> Iterator[tuple[str, str]]:
        """All fields of the row type, with their names."""
        for name, _ in columns_of(self.source.type):
            yield name, self.field(name)

    def row(self) -> str:
        """The row as text."""
        if is_redacted():
            return sql_text("<row>")
        if self.within:
            return f"to_json({self.within.rstrip('.')}, map('ignoreNullFields', 'false'))"
        names = [field.name for field in self.schema if field.name.isidentifier()]
        key = [name for name in names if name in fields_of_key(self.source)]
        names = [*key, *(name for name in names if name not in key)]
        count = len(key) + BESIDE_KEY if key else SHOWN
        some = ", ".join(map(quoted, names[:count]))
        return f"to_json(struct({some}), map('ignoreNullFields', 'false'))"

    # ---- one value ----

    def _value(self, x: str, found: t.DataType, column: Column, path: list[str], depth: int) -> str:
        """The canonical form of the value `x`; `x` itself if every value is canonical."""
        wanted = open_type(column).simpleString()
        if isinstance(found, t.NullType):
            return f"CAST({x} AS {wanted})"
        nested = _NESTED.get(column.form)
        if nested is not None:
            return nested(self, x, found, column, path, depth)
        cast = x if found.simpleString() == wanted else f"CAST({x} AS {wanted})"
        if column.form in _RANGES:
            low, high = _RANGES[column.form]
            utc = " in UTC" if column.form == "instant" else ""
            why = f" is outside the years 1 to 9999{utc}: {VALUE_HERE}"
            return self._unless(f"{x} NOT BETWEEN {low} AND {high}", why, IN_RANGE, x, path, x)
        if column.form == "float" and isinstance(found, _FLOATS):
            return f"nanvl({cast} + 0D, {_NAN})"
        also = ""
        if column.form == "float" and isinstance(found, t.LongType):
            back, remedy = "BIGINT", "int or Decimal as the type of the field"
            also = f" OR {cast} >= 9223372036854775808D"  # a cast to bigint takes it
            why = f" must be a float, not the int {VALUE_HERE}"
        elif column.form == "decimal" and not _is_wider(column.digits, found):
            back, (precision, scale) = found.simpleString(), column.digits
            remedy = f"round the values to {scale} digits, or decimal(p, s) with more digits"
            why = f" must be a decimal({precision}, {scale}), and {VALUE_HERE} does not fit"
        else:
            return cast
        inexact = f"NOT (try_cast(try_cast({x} AS {wanted}) AS {back}) <=> {x}){also}"
        return self._unless(inexact, why, remedy, x, path, f"try_cast({x} AS {wanted})")

    def _list(self, x: str, found: Any, column: Column, path: list[str], depth: int) -> str:
        item, at = f"x{depth}", f"i{depth}"
        ((_, part),) = column.parts
        inside = [*path, "[", SqlText(f"CAST({at} AS STRING)"), "]"]
        made = self._value(item, found.elementType, part, inside, depth + 1)
        made = self._present(made, found.containsNull, part, inside)
        return x if made == item else f"transform({x}, ({item}, {at}) -> {made})"

    def _map(self, x: str, found: Any, column: Column, path: list[str], depth: int) -> str:
        key, item = f"k{depth}", f"x{depth}"
        (_, key_part), (_, part) = column.parts
        inside = [*path, "[", SqlText(f"CAST({key} AS STRING)"), "]"]
        keys = self._value(key, found.keyType, key_part, inside, depth + 1)
        made = self._value(item, found.valueType, part, inside, depth + 1)
        made = self._present(made, found.valueContainsNull, part, inside)
        if made != item:
            x = f"transform_values({x}, ({key}, {item}) -> {made})"
        return x if keys == key else f"transform_keys({x}, ({key}, {item}) -> {keys})"

    def _record(self, x: str, found: Any, column: Column, path: list[str], depth: int) -> str:
        fields, same = [], found.fieldNames() == [name for name, _ in column.parts]
        for name, part in column.parts:
            item, inside = f"{x}.{quoted(name)}", [*path, f".{name}"]
            field = found[name]
            made = self._value(item, field.dataType, part, inside, depth)
            made = self._present(made, field.nullable, part, inside)
            same = same and made == item
            fields.append(f"{made} AS {quoted(name)}")
        return x if same else f"IF({x} IS NULL, NULL, struct({', '.join(fields)}))"

    # ---- values that are refused ----

    def _present(self, made: str, nullable: bool, column: Column, path: list[str]) -> str:
        """The value, unless it is null and its field is not optional."""
        if not nullable or column.optional:
            return made
        remedy = f"{column} | None as the hint, where None may be; or leave those rows out"
        why = f" is null, and its hint is {column}"
        return f"coalesce({made}, {self._refused(why, remedy, None, path)})"

    def _chosen(self, x: str, choices: tuple[Any, ...], path: list[str], made: str) -> str:
        known = [each for each in choices if each is not None]
        texts = ", ".join(map(value_text, known))
        listed = ", ".join(map(constant, known))
        why = f" must be one of {texts}, not {VALUE_HERE}"
        return self._unless(f"{x} NOT IN ({listed})", why, texts, x, path, made)

    def _unless(self, wrong: str, why: str, remedy: str, x: str, path: list[str], made: str) -> str:
        return f"CASE WHEN {wrong} THEN {self._refused(why, remedy, x, path)} ELSE {made} END"

    def _refused(self, why: str, remedy: str, x: str | None, path: list[str]) -> str:
        before, with_value, after = why.partition(VALUE_HERE)
        what = [f"input {self.source.name!r}: field '", *path, f"'{before}"]
        what += [_shown(x), after] if x is not None and with_value else []
        facts = {"row": self.row()} if x is None else {"value": _shown(x), "row": self.row()}
        return refusing(self.source, what, remedy, **facts)


_Nested = Callable[[FrameFields, str, Any, Column, list[str], int], str]
_NESTED: dict[str, _Nested] = {
    "list": FrameFields._list, "set": FrameFields._list, "map": FrameFields._map,
    "record": FrameFields._record,
}  # fmt: skip


def _is_wider(digits: tuple[int, int], found: t.DataType) -> bool:
    """Whether a decimal with these digits holds all values of a type."""
    precision, scale = digits
    if isinstance(found, t.DecimalType):
        return bool(found.scale <= scale and found.precision - found.scale <= precision - scale)
    return _DIGITS[type(found)] <= precision - scale


_DIGITS: dict[type[t.DataType], int] = {
    t.ByteType: 3,
    t.ShortType: 5,
    t.IntegerType: 10,
    t.LongType: 19,
}


def _shown(x: str) -> SqlText:
    return SqlText(sql_text("<value>") if is_redacted() else f"left(CAST({x} AS STRING), 400)")


# ---- text of SQL ----


class SqlText(str):
    """An expression among texts."""


def refusing(source: Source, what: Sequence[str], remedy: str, **facts: str) -> str:
    """SQL that fails the job if it is evaluated. `what` consists of texts, and of `SqlText` for
    those of the row. The facts are SQL."""
    parts, shown = [""], []
    for each in what:
        if isinstance(each, SqlText):
            shown.append(each)
            parts.append("")
        else:
            parts[-1] += each
    known = {"created": source.place} if source.place else {}
    begin = sql_text(refusal_text(parts, remedy, known, list(facts)))
    texts = [f"coalesce({each}, 'null'), '{SECRET}'" for each in (*shown, *facts.values())]
    return f"raise_error(concat({', '.join([begin, *texts])}))"


def quoted(name: str) -> str:
    """The name of a column in SQL.

    >>> quoted("id")
    '`id`'
    """
    return "`" + name.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    """A text as a literal of SQL.

    >>> print(sql_text("input 'orders'"), sql_text("C:\\\\"))
    'input ''orders''' CAST(X'433A5C' AS STRING)
    """
    if re.search(r"[\\\n\r]", text):  # settings of the session say how a backslash is read
        return f"CAST(X'{text.encode().hex().upper()}' AS STRING)"
    return "'" + text.replace("'", "''") + "'"


def constant(value: Any) -> str:
    """A text, a number, bytes or a truth value as a literal of SQL."""
    if isinstance(value, str):
        return sql_text(value)
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
