"""Changes that are here already, as one Arrow table: the columns of a row, and `__weight`.

Rows, Z-sets and dicts are read into weights first. Tables, of whatever library, may have any
`layout`; `libraries` makes Arrow tables of them, and `fit` their columns those of a row. A field
that is Any has no column in a table from elsewhere: ours hold pickles, and what comes from
elsewhere is never unpickled. Rows of weight 0 are left out; equal rows are not added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from ebbflow.engine.runtime.changes import read as read_rows
from ebbflow.engine.runtime.rows import Weights
from ebbflow.engine.runtime.table.arrow import arrow_schema, from_arrow, to_arrow
from ebbflow.engine.runtime.table.column_types import WEIGHT, Column
from ebbflow.engine.runtime.table.fit import fitted
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
from ebbflow.engine.runtime.table.libraries import Loose, arrow_of
from ebbflow.engine.runtime.table.mismatch import row_at
from ebbflow.engine.runtime.tables import is_columns, is_table
from ebbflow.errors import ChangeError, SchemaMismatch, cause_of, value_text
from ebbflow.flow.plan import Source
from ebbflow.kernel.pausing import pausing_gc
from ebbflow.zset import without_zeros

BATCH = 1 << 16


def table_of(source: Source, given: Any, *, parse: bool = False) -> Any:
    """A change as one Arrow table; with `parse`, texts that stand for values are read.

    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int)
    >>> orders = Source(name="orders", type=Order)
    >>> table_of(orders, {Order(1): 2, Order(2): -1}).to_pydict()
    {'id': [1, 2], '__weight': [2, -1]}
    >>> table_of(orders, pa.table({"id": [1, 2], "op": ["c", "d"]})).to_pydict()
    {'id': [1, 2], '__weight': [1, -1]}
    """
    if is_table(given) or is_columns(given):
        if parse:
            from ebbflow.engine.runtime.table.texts import parsed_table

            return _fitted(source, *parsed_table(source, given))
        return _fitted(source, *arrow_of(source, given))
    weights = read_rows(source, given, parse=parse)
    rows, counts = list(weights), list(weights.values())
    try:
        batches = [
            to_arrow(rows[i : i + BATCH], counts[i : i + BATCH], source.type)
            for i in range(0, len(rows), BATCH)
        ]
    except SchemaMismatch as error:
        raise of_input(source, error) from cause_of(error)
    return pa.Table.from_batches(batches, arrow_schema(source.type))


def rows_of(source: Source, batch: Any) -> tuple[list[Any], list[int]]:
    """The rows of a batch or table that `table_of` made, and their weights."""
    try:
        return from_arrow(batch, source.type)
    except SchemaMismatch as error:
        raise of_input(source, error) from cause_of(error)


@pausing_gc
def weights_of_table(source: Source, given: Any, *, parse: bool = False) -> Weights:
    """The rows of a table of whatever library with their weights, those of equal rows added up.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int))
    >>> weights_of_table(orders, {"id": [1, 2, 1]})
    {Order(id=1): 2, Order(id=2): 1}
    """
    return total(*rows_of(source, table_of(source, given, parse=parse)))


def total(rows: list[Any], weights: list[int]) -> Weights:
    """Rows with weights, those of equal rows added up; none is zero, if none of these is.

    >>> total(["ebb", "flow", "ebb", "flow"], [1, 1, 1, -1])
    {'ebb': 2}
    """
    found = dict(zip(rows, weights, strict=True))
    if len(found) == len(rows):
        return found
    found.clear()
    get = found.get
    for row, weight in zip(rows, weights, strict=True):
        found[row] = get(row, 0) + weight
    return without_zeros(found)


def of_input(source: Source, error: SchemaMismatch) -> ChangeError:
    """The error for a row that does not fit the type of its input."""
    return refused(source, error.what, **error.facts, remedy=error.remedy)


def _fitted(source: Source, table: Any, loose: Loose) -> Any:
    """A table as one of rows with weights. In `loose` columns integers may have become floats."""
    layout = layout_of(source, table.column_names)
    if layout.how == "images":
        return _images(source, table, layout, loose)
    weights = _weights(source, table, layout)
    made = pa.Table.from_arrays(
        [*fitted(source, table, loose, from_user=True), weights], schema=arrow_schema(source.type)
    )
    return made if not pc.any(pc.equal(weights, 0)).as_py() else made.filter(pc.field(WEIGHT) != 0)


def _weights(source: Source, table: Any, layout: Layout) -> Any:
    if layout.how == "rows":
        return pa.array(np.ones(len(table), np.int64))
    given = table.column(layout.by)
    if is_.is_dictionary(given.type):
        given = given.cast(given.type.value_type)
    if layout.how == "weight":
        if given.null_count:
            at = given.is_null().index(True).as_py()
            what = f"a weight is null, in row {at}"
            raise refused(
                source, what, row=row_at(table, at), remedy="1 to add a row, -1 to remove it"
            )
        if len(given) and not is_.is_integer(given.type):
            raise wrong_type(source, layout.by, str(given.type), Column("int"))
        return given.cast(pa.int64())
    signs = {**dict.fromkeys(ADDED[layout.how], 1), **dict.fromkeys(REMOVED[layout.how], -1)}
    for op in given.unique().to_pylist():
        if op not in signs:
            at = given.to_pylist().index(op)
            raise unknown(source, layout, op, row_at(table, at))
    return pc.if_else(pc.is_in(given.cast(pa.string()), pa.array(ADDED[layout.how])), 1, -1)


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


def _images(source: Source, table: Any, layout: Layout, loose: Loose) -> Any:
    """The rows before and after, of those changes that have them."""
    ops = table.column(layout.by).to_pylist()
    empty = pc.and_(table.column(BEFORE).is_null(), table.column(AFTER).is_null()).to_pylist()
    known = (*ADDED["op"], *REMOVED["op"], CHANGED)
    for i, op in enumerate(ops):
        if op not in known and not (op is None and empty[i]):
            raise unknown(source, layout, op, row_at(table, i))
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
                [*fitted(source, rows, loose, from_user=True), weights],
                schema=arrow_schema(source.type),
            )
        )
    return pa.concat_tables(parts) if parts else arrow_schema(source.type).empty_table()
