"""A change in every form that the engines take: Z-set, pandas, Arrow, DataFrame; and a table in
every layout of Arrow, and in every library.

The tables are made here from the hints of the rows, not by the code that reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from types import NoneType
from typing import Annotated, Any, NewType, get_args, get_origin, get_type_hints

import pandas as pd
import pyarrow as pa
import pytest

from ebbflow.zset import ZSet

DRIVER = ("rows", "pandas", "arrow", "batch", "pandas ops", "arrow ops")
FORMS = (*DRIVER, "frame", "frame ops")
ARROW: dict[Any, Any] = {
    int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_(),
    datetime: pa.timestamp("us"), Annotated[datetime, UTC]: pa.timestamp("us", "UTC"),
    Annotated[Decimal, (10, 2)]: pa.decimal128(10, 2),
}  # fmt: skip
SPARK: dict[Any, str] = {
    int: "long", float: "double", str: "string", bool: "boolean", datetime: "timestamp_ntz",
    Annotated[datetime, UTC]: "timestamp", Annotated[Decimal, (10, 2)]: "decimal(10,2)",
}  # fmt: skip


def fields(kind: Any) -> dict[str, Any] | None:
    """The columns of a row with their types, None and names of types left out; None where rows have
    no columns."""
    named = hasattr(kind, "_fields")
    found = get_type_hints(kind, include_extras=True) if named else {"value": kind}
    plain = {name: _plain(hint) for name, hint in found.items()}
    return plain if all(hint in ARROW for hint in plain.values()) else None


def _plain(hint: Any) -> Any:
    if isinstance(hint, NewType):
        return _plain(hint.__supertype__)
    rest = [each for each in get_args(hint) if each is not NoneType]
    optional = len(rest) == 1 and get_origin(hint) is not Annotated
    return rest[0] if optional else hint


def formed(change: ZSet[Any], kind: Any, form: str, session: Any = None) -> Any:
    """A change in a form; as it is where rows of this type have no such form."""
    columns = fields(kind)
    if form == "rows" or columns is None or not change:
        return change
    how, _, ops = form.partition(" ")
    mark = "op" if ops else "__weight"
    if mark in columns:
        return change
    lines = [(row if hasattr(kind, "_fields") else (row,), n) for row, n in change.items()]
    if ops:
        lines = [(row, "c" if n > 0 else "d") for row, n in lines for _ in range(abs(n))]
    if how == "frame":
        kinds = [f"{name} {SPARK[hint]}" for name, hint in columns.items()]
        kinds.append(f"{mark} {'string' if ops else 'long'}")
        return session.createDataFrame([(*row, last) for row, last in lines], ", ".join(kinds))
    values: dict[str, list[Any]] = {
        name: [row[i] for row, _ in lines] for i, name in enumerate(columns)
    }
    if how == "pandas":
        return pd.DataFrame({**values, mark: [last for _, last in lines]})
    arrays = {name: pa.array(each, ARROW[columns[name]]) for name, each in values.items()}
    table = pa.table({**arrays, mark: [last for _, last in lines]})
    return table.to_batches()[0] if how == "batch" else table


def some_form(
    change: Any, kind: Any, dice: Random, forms: Sequence[str] = DRIVER, session: Any = None
) -> Any:
    """A Z-set in any of these forms, by dice; anything else as it is."""
    form = dice.choice(forms)
    return formed(change, kind, form, session) if isinstance(change, ZSet) else change


# ---- one table in every layout and library ----


def laid_out(table: pa.Table, dice: Random) -> Any:
    """A table in another layout of Arrow, or of another library, by dice: the same rows."""
    there = {**LAYOUTS, **LIBRARIES} if _flat(table) else LAYOUTS
    return there[dice.choice([*there])](table)


def _flat(table: pa.Table) -> bool:
    """Whether every library has the same values: nothing is missing, and nothing is nested."""
    return not any(column.null_count or pa.types.is_nested(column.type) for column in table.columns)


def _chunked(table: pa.Table) -> pa.Table:
    at = len(table) // 3
    return pa.concat_tables([table.slice(0, at), table.slice(at, 0), table.slice(at)])


def _sliced(table: pa.Table) -> pa.Table:
    """Behind some rows, and in front of some, that are not its own."""
    return pa.concat_tables([table, table, table]).combine_chunks().slice(len(table), len(table))


def _texts_as(kind: Any) -> Callable[[pa.Table], pa.Table]:
    def made(table: pa.Table) -> pa.Table:
        for at, column in enumerate(table.columns):
            if pa.types.is_string(column.type):
                table = table.set_column(at, table.field(at).name, column.cast(kind))
        return table

    return made


def _dictionary(table: pa.Table) -> pa.Table:
    for at, column in enumerate(table.columns):
        if pa.types.is_string(column.type) or pa.types.is_int64(column.type):
            table = table.set_column(at, table.field(at).name, column.dictionary_encode())
    return table


def _batch(table: pa.Table) -> Any:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else table


def _numpy(table: pa.Table) -> dict[str, Any]:
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def _polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


LAYOUTS: dict[str, Callable[[pa.Table], Any]] = {
    "as it is": lambda table: table, "chunked": _chunked, "sliced": _sliced, "batch": _batch,
    "reader": lambda table: table.to_reader(), "dictionary": _dictionary,
    "large": _texts_as(pa.large_string()), "view": _texts_as(pa.string_view()),
    "other order": lambda table: table.select(table.column_names[::-1]),
    "columns of python": lambda table: table.to_pydict(), "polars": _polars,
}  # fmt: skip
LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(), "numpy": _numpy,
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}  # fmt: skip
