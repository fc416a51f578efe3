"""Tables of other libraries, as Arrow tables.

Only the columns that are asked for are converted: those of a row, and those that say what changes.
What Arrow cannot know by itself is said by the hints of the fields: a column of Python objects is
made of them value by value, and a value that does not fit is named with its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from ebbflow.engine.runtime.table.arrow import arrow_type
from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.engine.runtime.table.encode import encode
from ebbflow.engine.runtime.table.fit import PARSED
from ebbflow.engine.runtime.table.layout import AFTER, BEFORE, layout_of, refused
from ebbflow.engine.runtime.table.mismatch import ColumnMismatch
from ebbflow.engine.runtime.table.plain import plain_table
from ebbflow.engine.runtime.tables import library_of
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.engine.runtime.values.rules import PARSE, WrongValue, python_value
from ebbflow.errors import ChangeError, Text, cause_of, type_name, value_text
from ebbflow.flow.plan import Source
from ebbflow.nan import NAN
from ebbflow.record import fields_of

Loose = frozenset[str]
Wanted = Callable[[Sequence[str]], list[str]]
TIMES = ("time", "instant")
NESTED = ("list", "set", "map", "record")


def arrow_of(source: Source, given: Any, wanted: Wanted | None = None) -> tuple[Any, Loose]:
    """A table as one of Arrow's, and the columns in which pandas may have made floats of integers.
    `wanted` says which of its columns are read: those of a change, unless told otherwise.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int, city=str))
    >>> table, _ = arrow_of(orders, {"city": ["Rome", "Oslo"], "id": np.array([1, 2])})
    >>> table.to_pydict()
    {'city': ['Rome', 'Oslo'], 'id': [1, 2]}
    """
    wanted = partial(_wanted, source) if wanted is None else wanted
    if isinstance(given, Mapping):
        return _of_columns(source, given, wanted)
    library = library_of(given)
    if library == "numpy":
        return _of_structured(source, given, wanted), frozenset()
    if library == "pandas":
        return _of_pandas(source, given, wanted)
    if library == "ebbflow":
        given = given.table()  # of files; a stream would lose which error it ends with
    if library == "polars":
        columns = {name: given[name] for name in wanted(given.columns)}
        return _of_columns(source, columns, list)
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if not isinstance(given, pa.Table):
        given = _of_stream(source, given)
    return plain_table(given), frozenset()


def _of_stream(source: Source, given: Any) -> Any:
    """A table of anything with the Arrow C stream interface."""
    try:
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise refused(
            source,
            f"{type_name(given)} cannot be read as a table",
            cause=error,
            remedy="a stream of records: pyarrow.table(given) must work",
        ) from cause_of(error)


def _of_polars(given: Any) -> Any:
    """A table or column of Polars, in types that Arrow can compute with."""
    return given.to_arrow(compat_level=import_module("polars").CompatLevel.oldest())


def _wanted(source: Source, names: Sequence[str]) -> list[str]:
    """The columns that are read; an error where they do not make a row."""
    layout = layout_of(source, names)
    fields = {name for name, _ in columns_of(source.type)}
    marks = {layout.by, BEFORE, AFTER} if layout.how == "images" else {layout.by}
    read = marks if layout.how == "images" else fields | marks
    return [name for name in names if name in read]


# ---- pandas ----


def _of_pandas(source: Source, frame: Any, wanted: Wanted) -> tuple[Any, Loose]:
    names = list(frame.columns)
    _require_names(source, names)
    missing = [name for name, _ in columns_of(source.type) if name not in names]
    index = [name for name in missing if name in frame.index.names]
    if index:
        raise refused(
            source,
            f"{', '.join(map(repr, index))} is the index of the table, and no column",
            columns=Text(", ".join(names)),
            remedy=f"{source.name}=table.reset_index()",
        )
    return _of_columns(source, {name: frame[name] for name in wanted(names)}, list)


def _require_names(source: Source, names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise refused(
                source,
                f"the columns of a table have texts as names, and one has {value_text(name)}",
                columns=Text(", ".join(map(str, names))),
                remedy="table.columns = [...], the names of the fields of a row",
            )


# ---- columns by name ----


def _of_columns(source: Source, given: Mapping[str, Any], wanted: Wanted) -> tuple[Any, Loose]:
    _require_names(source, list(given))
    hints = dict(columns_of(source.type))
    arrays, loose = {}, set()
    for name in wanted(list(given)):
        arrays[name] = _column(source, name, hints.get(name), given[name])
        if library_of(given[name]) == "pandas":
            loose.add(name)
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise refused(
            source,
            "the columns have different lengths",
            lengths=Text(", ".join(f"{name} {size:,}" for name, size in sizes.items())),
            remedy="one value of every column for each row",
        )
    return plain_table(pa.table(arrays)), frozenset(loose)


def _column(source: Source, name: str, column: Column | None, given: Any) -> Any:
    """One column, of what any library has for it, or of values of Python."""
    library = library_of(given)
    try:
        if isinstance(given, (pa.Array, pa.ChunkedArray)):
            return given
        if library == "polars":
            return _of_polars(given)
        if library in ("pandas", "numpy") and hasattr(given, "dtype"):
            return _of_dtype(source, name, column, given)
        if hasattr(type(given), "__arrow_c_stream__"):
            return pa.chunked_array(given)
        if hasattr(type(given), "__arrow_c_array__"):
            return pa.array(given)
    except (pa.ArrowException, ValueError, TypeError) as error:
        found = getattr(given, "dtype", type(given).__name__)
        raise refused(
            source,
            f"column {name!r} is {found}, which has no form as a table",
            cause=error,
            remedy="a column of numbers, texts, times, lists or records",
        ) from cause_of(error)
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise refused(
            source,
            f"column {name!r} is {type_name(given)}, not a list of values",
            given=given,
            remedy="a list, or a column of NumPy, pandas, Polars or Arrow, for each field",
        )
    return _of_values(source, name, column, list(given))


def _of_dtype(source: Source, name: str, column: Column | None, given: Any) -> Any:
    """A column of pandas or NumPy, by its dtype."""
    pandas = library_of(given) == "pandas"
    if str(given.dtype) != "object":
        return pa.array(given, from_pandas=True) if pandas else _of_array(given)
    if pandas and column is not None and column.form not in TIMES:
        seen = _as_seen(given)
        if seen is not None and seen.type == arrow_type(column):
            return seen
    values = given.tolist()
    if pandas and hasattr(given, "isna"):
        floats = column is not None and column.form == "float" and not column.optional
        blank = NAN if floats else None
        gone = given.isna().tolist()
        values = [blank if none else each for each, none in zip(values, gone, strict=True)]
    return _of_values(source, name, column, values)


def _as_seen(given: Any) -> Any:
    """A column of Python objects as Arrow sees it; None where it sees different ones."""
    try:
        return pa.array(given, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return None


def _of_values(source: Source, name: str, column: Column | None, values: list[Any]) -> Any:
    """A column of values of Python: by the hint of its field; where that does not do, and lists and
    dicts may stand for others, or values of NumPy for Python's, as Arrow sees them."""
    if column is not None and column.form not in NESTED:
        values = _as_in_rows(source, name, values)
    foreign = any(cls.__module__.startswith(("numpy", "pandas")) for cls in set(map(type, values)))
    refusal: ChangeError | None = None
    if column is not None and not foreign:
        try:
            return encode(replace(column, optional=True), values, arrow_type(column))
        except ColumnMismatch as mismatch:
            refusal = _refusal(source, name, column, mismatch)
            if column.form not in NESTED:
                raise refusal from mismatch.__cause__
    try:
        wanted = arrow_type(column) if column is not None and column.form == "map" else None
        return pa.array(values, wanted, from_pandas=foreign)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        ours = _as_python(source, name, values) if foreign else values
        if any(new is not old for new, old in zip(ours, values, strict=True)):
            return _of_values(source, name, column, ours)
        raise refusal or _mixed(source, name, column, values, error) from cause_of(error)


def _as_in_rows(source: Source, name: str, values: list[Any]) -> list[Any]:
    """Values of Python and of other libraries as the rows of an input hold them. Floats are left to
    what knows whether pandas made them of integers, and what a column can not tell apart, such as a
    text among numbers, to what makes the column."""
    rule = rule_of((fields_of(source.type) or {VALUE: source.type})[name])
    if {*map(type, values)} <= {rule.cls, NoneType}:
        return values
    made = []
    for at, value in enumerate(values):
        found = value
        if value is not None:
            try:
                found = rule.convert(value)
            except WrongValue as wrong:
                if not isinstance(value, float) and _is_foreign(value):
                    raise refused(
                        source, f"column {name!r}, row {at}: {wrong}", value=wrong.value,
                        remedy=wrong.remedy,
                    ) from wrong.__cause__  # fmt: skip
        made.append(found)
    return made


def _is_foreign(value: Any) -> bool:
    """Whether a value is one of NumPy or pandas, and not their sign for one that is missing."""
    name = type(value).__name__
    known = type(value).__module__.partition(".")[0] in ("numpy", "pandas")
    return known and name not in ("NaTType", "NAType") and value == value


def _as_python(source: Source, name: str, values: list[Any]) -> list[Any]:
    """Values of Python for those of NumPy and pandas."""
    found: list[Any] = []
    for value in values:
        try:
            found.append(python_value(value))
        except WrongValue as error:
            what = f"column {name!r} {error.why} in row {len(found)}"
            raise refused(source, what, remedy=error.remedy) from cause_of(error)
    return found


def _refusal(source: Source, name: str, column: Column, mismatch: ColumnMismatch) -> ChangeError:
    why, hint = mismatch.why, mismatch.column if mismatch.path else column
    if not hint.optional:
        why = why.removesuffix(" | None")
    of_class = why.endswith(f", not {hint}")
    cast = f"cast the column to {hint}, or another hint for the field {name!r}"
    if of_class and " is a str, not" in why and hint.form in PARSED:
        cast = f"{cast}; {PARSE}"
    return refused(
        source,
        f"column {name + mismatch.path!r}, row {mismatch.at}: {why}",
        type=Text(str(hint)),
        remedy=cast if of_class else mismatch.error(name, None).remedy or cast,
    )


def _mixed(
    source: Source, name: str, column: Column | None, values: list[Any], error: Exception
) -> ChangeError:
    first = next((value for value in values if value is not None), None)
    at = next((i for i, v in enumerate(values) if v is not None and type(v) is not type(first)), 0)
    also = value_text(values[at])
    what = f"column {name!r} has {value_text(first)} and, in row {at}, {also}: values of two types"
    if type(values[at]) is type(first):
        what = f"column {name!r} cannot be read as a table"
    remedy = "values of one type" + ("" if column is None else f": {column}")
    return refused(source, what, cause=error, remedy=remedy)


# ---- NumPy ----


def _of_structured(source: Source, array: Any, wanted: Wanted) -> Any:
    """A structured array, or a record array: a column for each of its fields."""
    if array.ndim != 1:
        raise refused(
            source,
            f"a structured array has {array.ndim} dimensions, and a table one",
            shape=Text(str(array.shape)),
            remedy=f"{source.name}=array.ravel()",
        )
    names = wanted(list(array.dtype.names))
    hints = dict(columns_of(source.type))
    return pa.table({name: _column(source, name, hints.get(name), array[name]) for name in names})


def _of_array(array: Any) -> Any:
    """An array of NumPy; its fields, if it has any, and its further dimensions, as lists."""
    if array.dtype.names is not None:
        return pa.StructArray.from_arrays(
            [_of_array(array[name]) for name in array.dtype.names], list(array.dtype.names)
        )
    if array.ndim > 1:
        inside = _of_array(array.reshape((-1, *array.shape[2:])))
        return pa.FixedSizeListArray.from_arrays(inside, array.shape[1])
    if array.dtype.kind in "mM":
        array = _in_known_units(array)
    native = array.dtype.newbyteorder("=")
    return pa.array(np.asanyarray(array.astype(native, copy=False)))


def _in_known_units(times: Any) -> Any:
    """An array of times in a unit that Arrow has: it has no weeks, nor steps such as 25 seconds."""
    unit, step = np.datetime_data(times.dtype)
    coarse = "D" if times.dtype.kind == "M" else "s"
    known = coarse if unit in ("Y", "M", "W", "D") else "s" if unit in ("h", "m") else unit
    return times if (known, 1) == (unit, step) else times.astype(f"{times.dtype.kind}8[{known}]")
