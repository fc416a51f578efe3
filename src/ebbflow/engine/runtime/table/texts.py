"""Columns of texts that stand for numbers, times and truth values.

Files such as CSV have nothing else. A table of a request has such columns if the request says
`parse=True`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from ebbflow.engine.runtime.table.arrow import arrow_type
from ebbflow.engine.runtime.table.column_types import Column, columns_of
from ebbflow.engine.runtime.table.fit import WrongColumn, first_bad, refused_columns
from ebbflow.engine.runtime.table.libraries import NESTED, Loose, arrow_of
from ebbflow.engine.runtime.table.mismatch import shown
from ebbflow.engine.runtime.tables import is_columns, library_of
from ebbflow.flow.plan import Source
from ebbflow.state.spine.arrow_decimals import decimals_of, may_overflow

_REMEDY = "another text, or leave the row out"


def parsed_table(source: Source, given: Any, *how: Any) -> tuple[Any, Loose]:
    """The Arrow table of what is given, as `arrow_of` makes it, with the values of texts that stand
    for them; an empty text is null.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int, price=float | None))
    >>> parsed_table(orders, {"id": ["1", "2"], "price": ["2.5", ""]})[0].to_pydict()
    {'id': [1, 2], 'price': [2.5, None]}
    """
    table, loose = arrow_of(source, _with_texts(given), *how)
    wrong = []
    for name, column in columns_of(source.type):
        if name not in table.column_names or not stands_for(table.column(name).type, column):
            continue
        try:
            array = table.column(name)
            if is_.is_string(array.type) or is_.is_large_string(array.type):
                blank = pc.equal(array, "")
                array = pc.if_else(pc.fill_null(blank, False), pa.scalar(None, array.type), array)
            made = read_texts(name, column, array)
            table = table.set_column(table.column_names.index(name), name, made)
        except WrongColumn as error:
            wrong.append(error)
    if wrong:
        raise refused_columns(source, table, wrong)
    return table, loose


def _with_texts(given: Any) -> Any:
    """A dict of columns, or a DataFrame of pandas, with Arrow's texts for lists of texts, which
    `arrow_of` refuses in a field of another type."""
    if isinstance(given, Mapping) and is_columns(given):
        return {name: _texts(values, values) for name, values in given.items()}
    if library_of(given) == "pandas" and {str} == set(map(type, given.columns)):
        objects = [name for name in given.columns if str(given[name].dtype) == "object"]
        texts = {name: _texts(given[name], given[name].tolist()) for name in objects}
        return {name: texts.get(name, given[name]) for name in given.columns} if texts else given
    return given


def _texts(column: Any, values: Any) -> Any:
    if type(values) is list and {str, type(None)}.issuperset(map(type, values)):
        return pa.array(values, pa.string())
    return column


def read_texts(name: str, column: Column, array: Any) -> Any:
    """Texts as what the hint of their field says; all else as it is."""
    if not stands_for(array.type, column):
        return array
    wanted = arrow_type(column)

    def made(some: Any) -> Any:
        return decimals_of(some, wanted) if may_overflow(some.type, wanted) else some.cast(wanted)

    try:
        return made(array)
    except pa.ArrowException as error:
        at = first_bad(array, made)
        if at is None:
            return array
        why = f"{shown(array[at])} is no {column}"
        raise WrongColumn(f"column {name!r}: {why}", _REMEDY, at, why) from error


def stands_for(found: Any, column: Column) -> bool:
    """Whether there are texts in a column of this type that stand for something else."""
    if is_.is_list(found) and column.form in ("list", "set"):
        return stands_for(found.value_type, column.parts[0][1])
    if is_.is_struct(found) and column.form == "record":
        parts = dict(column.parts)
        return any(stands_for(each.type, parts[each.name]) for each in found if each.name in parts)
    return bool(is_.is_string(found) or is_.is_large_string(found)) and column.form not in (
        "text",
        "bytes",
        *NESTED,
    )
