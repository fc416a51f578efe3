"""Changes that are here already, as one Arrow table: the columns of a row, and `__weight`.

Rows, Z-sets and dicts are read as the local engine reads them. Arrow tables, and what can become
one, such as a DataFrame of pandas, may have any `layout`. Columns are widened where nothing is
lost, `int32` to `int64`; what would lose something is refused. A field that is Any has no column in
a table from elsewhere: ours hold pickles, and what comes from elsewhere is never unpickled. Rows of
weight 0 are left out; equal rows are not added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from ebbflow.engine.runtime.changes import read as read_rows
from ebbflow.engine.runtime.table.arrow import (
    SchemaMismatch,
    arrow_schema,
    arrow_type,
    from_arrow,
    to_arrow,
)
from ebbflow.engine.runtime.table.column_types import WEIGHT, Column, columns_of
from ebbflow.engine.runtime.table.layout import (
    ADDED,
    AFTER,
    BEFORE,
    CHANGED,
    REMOVED,
    Layout,
    image_remedy,
    image_text,
    layout_of,
    refused,
    require_columns,
    wrong_type,
)
from ebbflow.errors import ChangeError, cause_of, value_text
from ebbflow.flow.plan import Source
from ebbflow.nan import NAN

BATCH = 1 << 16


def table_of(source: Source, given: Any) -> Any:
    """A change as one Arrow table.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int)
    >>> orders = Source(name="orders", type=Order)
    >>> table_of(orders, {Order(1): 2, Order(2): -1}).to_pydict()
    {'id': [1, 2], '__weight': [2, -1]}
    >>> table_of(orders, pa.table({"id": [1, 2], "op": ["c", "d"]})).to_pydict()
    {'id': [1, 2], '__weight': [1, -1]}
    """
    table, loose = arrow_table(given)
    if table is not None:
        return _fitted(source, table, loose=loose)
    weights = read_rows(source, given)
    rows, counts = list(weights), list(weights.values())
    try:
        batches = [
            to_arrow(rows[i : i + BATCH], counts[i : i + BATCH], source.type)
            for i in range(0, len(rows), BATCH)
        ]
    except SchemaMismatch as error:
        raise of_input(source, error) from cause_of(error)
    return pa.Table.from_batches(batches, arrow_schema(source.type))


def arrow_table(given: Any) -> tuple[Any, bool]:
    """What can be a table of Arrow as one, else None; and whether its integers may have become
    floats, for nulls, as those of pandas do."""
    if type(given).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(given, preserve_index=False), True
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given]), False
    if not isinstance(given, pa.Table) and hasattr(given, "__arrow_c_stream__"):
        return pa.table(given), False
    return (given if isinstance(given, pa.Table) else None), False


def rows_of(source: Source, batch: Any) -> tuple[list[Any], list[int]]:
    """The rows of a batch or table that `table_of` made, and their weights."""
    try:
        return from_arrow(batch, source.type)
    except SchemaMismatch as error:
        raise of_input(source, error) from cause_of(error)


def of_input(source: Source, error: SchemaMismatch) -> ChangeError:
    """The error for a row that does not fit the type of its input."""
    what = f"input {source.name!r}: {error.what}"
    return ChangeError(what, **error.facts, remedy=error.remedy)


def _fitted(source: Source, table: Any, *, loose: bool) -> Any:
    """A table as one of rows with weights. `loose`: integers may have become floats, for nulls."""
    layout = layout_of(source, table.column_names)
    if layout.how == "images":
        return _images(source, table, layout, loose)
    weights = _weights(source, table, layout)
    made = pa.Table.from_arrays(
        [*row_columns(source, table, loose), weights], schema=arrow_schema(source.type)
    )
    return made if not pc.any(pc.equal(weights, 0)).as_py() else made.filter(pc.field(WEIGHT) != 0)


def _weights(source: Source, table: Any, layout: Layout) -> Any:
    if layout.how == "rows":
        return pa.array(np.ones(len(table), np.int64))
    given = table.column(layout.by)
    if layout.how == "weight":
        if not is_.is_integer(given.type):
            raise wrong_type(source, layout.by, str(given.type), Column("int"))
        if given.null_count:
            raise refused(source, "a weight is null", remedy="1 to add a row, -1 to remove it")
        return given.cast(pa.int64())
    ops = given.to_pylist()
    signs = {**dict.fromkeys(ADDED[layout.how], 1), **dict.fromkeys(REMOVED[layout.how], -1)}
    for i, op in enumerate(ops):
        if op not in signs:
            raise unknown(source, layout, op, table.slice(i, 1).to_pylist()[0])
    return pa.array([signs[op] for op in ops], pa.int64())


def unknown(source: Source, layout: Layout, op: Any, row: Any) -> ChangeError:
    """The error for a kind of change that says nothing."""
    return refused(source, unknown_text(layout, op), row=row, remedy=unknown_remedy(layout, op))


def unknown_text(layout: Layout, op: Any) -> str:
    """What is wrong with a kind of change."""
    if layout.how == "op" and op == CHANGED:
        return "an update is given by its new row alone, so nobody knows the old one"
    return f"{layout.by} {value_text(op)} is no change of a row"


def unknown_remedy(layout: Layout, op: Any) -> str:
    """What to do about it."""
    how = "op" if layout.how == "images" else layout.how
    if layout.how == "op" and op == CHANGED:
        return "ebbflow.feed(...) for an input with a key, or the columns before and after as well"
    both = layout.how == "images"
    return "one of " + ", ".join((*ADDED[how], *REMOVED[how], *([CHANGED] if both else [])))


def _images(source: Source, table: Any, layout: Layout, loose: bool) -> Any:
    """The rows before and after, of those changes that have them."""
    ops = table.column(layout.by).to_pylist()
    empty = pc.and_(table.column(BEFORE).is_null(), table.column(AFTER).is_null()).to_pylist()
    known = (*ADDED["op"], *REMOVED["op"], CHANGED)
    for i, op in enumerate(ops):
        if op not in known and not (op is None and empty[i]):
            raise unknown(source, layout, op, table.slice(i, 1).to_pylist()[0])
    parts = []
    for name, signs, weight in (
        (BEFORE, (*REMOVED["op"], CHANGED), -1),
        (AFTER, (*ADDED["op"], CHANGED), 1),
    ):
        some = table.column(name).filter(pa.array([op in signs for op in ops], pa.bool_()))
        if some.null_count:
            raise refused(source, image_text(name), remedy=image_remedy(name))
        if not len(some):
            continue
        if not is_.is_struct(some.type):
            raise refused(source, f"column {name!r} is {some.type}, not a row", remedy="a struct")
        rows = pa.Table.from_batches(
            [pa.RecordBatch.from_struct_array(chunk) for chunk in some.chunks]
        )
        require_columns(source, rows.column_names, f" in {name!r}")
        weights = pa.array(np.full(len(rows), weight, np.int64))
        parts.append(
            pa.Table.from_arrays(
                [*row_columns(source, rows, loose), weights], schema=arrow_schema(source.type)
            )
        )
    return pa.concat_tables(parts) if parts else arrow_schema(source.type).empty_table()


# ---- columns ----


def row_columns(source: Source, table: Any, loose: bool) -> list[Any]:
    """The columns of rows, as their type has them."""
    return [
        column_of(source, table, name, column, loose) for name, column in columns_of(source.type)
    ]


def column_of(source: Source, table: Any, name: str, column: Column, loose: bool) -> Any:
    """A column, as the hint of its field has it."""
    array = table.column(name)
    if loose and column.form == "float" and not column.optional and is_.is_floating(array.type):
        array = array.fill_null(NAN)  # pandas does not tell NaN from what is missing
    if array.null_count and not column.optional:
        at = array.is_null().index(True).as_py()
        raise refused(
            source,
            f"field {name!r} is null, and its hint is {column}",
            row=table.slice(at, 1).to_pylist()[0],
            remedy=f"{column} | None as the hint, where None may be",
        )
    if not _fits(array.type, column, loose):
        raise wrong_type(source, name, str(array.type), column)
    try:
        return array.cast(arrow_type(column))
    except pa.ArrowInvalid as error:
        raise refused(
            source,
            f"a value of column {name!r}, which is {array.type}, is no {column}",
            cause=error,
            remedy=f"another hint for the field {name!r}, or other values",
        ) from cause_of(error)


def _fits(found: Any, column: Column, loose: bool) -> bool:
    """Whether a column of this type can be cast, as long as every value fits."""
    return bool(_castable(found, column, loose))


def _castable(found: Any, column: Column, loose: bool) -> Any:
    if is_.is_dictionary(found):
        found = found.value_type
    if is_.is_null(found):
        return column.form == "any" or column.optional
    match column.form:
        case "int":
            return is_.is_integer(found) or (loose and is_.is_floating(found))
        case "float":
            return is_.is_floating(found) or is_.is_integer(found)
        case "bool":
            return is_.is_boolean(found)
        case "text":
            return is_.is_string(found) or is_.is_large_string(found) or is_.is_string_view(found)
        case "bytes":
            return (
                is_.is_binary(found)
                or is_.is_large_binary(found)
                or is_.is_fixed_size_binary(found)
            )
        case "date":
            return is_.is_date(found)
        case "time":
            return is_.is_timestamp(found) and found.tz is None
        case "instant":
            return is_.is_timestamp(found) and found.tz is not None
        case "decimal":
            return is_.is_decimal(found) or is_.is_integer(found)
        case "list" | "set":
            listed = is_.is_list(found) or is_.is_large_list(found) or is_.is_fixed_size_list(found)
            return listed and _fits(found.value_type, column.parts[0][1], loose)
        case "map":
            (_, key), (_, value) = column.parts
            return (
                is_.is_map(found)
                and _fits(found.key_type, key, loose)
                and _fits(found.item_type, value, loose)
            )
        case "record":
            fields = list(found) if is_.is_struct(found) else []
            return [field.name for field in fields] == [name for name, _ in column.parts] and all(
                _fits(field.type, part, loose)
                for field, (_, part) in zip(fields, column.parts, strict=True)
            )
    return False
