"""What is a table, and what only looks like one: told without the library that it comes from.

A *table* is rows by columns: a DataFrame of pandas or Polars, an Arrow table, batch or reader, a
structured array of NumPy, anything else with the Arrow C stream interface, and a dict of columns. A
dict of rows has weights for values, which are ints, and one of columns has none: no dict can be
taken for the other. `read_table` makes rows of a table, with pyarrow, which is loaded when the
first one is met.

One column is no table, and neither is a query that has not run, or a DataFrame of Spark outside of
Spark: they are refused, with what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ebbflow.engine.runtime.rows import Weights
from ebbflow.errors import ChangeError, Text, install
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of
from ebbflow.zset import ZSet

_STREAM = "__arrow_c_stream__"
_VALUES = {"pandas": "tolist", "polars": "to_list", "pyarrow": "to_pylist"}
_LIBRARIES = {*_VALUES, "numpy", "pyspark"}
_SCALARS = ("Timestamp", "Timedelta", "Row", "Interval", "Period")


def library_of(given: Any) -> str:
    """The library that something comes from, or the class that it extends.

    >>> library_of(Source(name="orders")), library_of("Rome")
    ('ebbflow', 'builtins')
    """
    roots = [cls.__module__.partition(".")[0] for cls in type(given).__mro__]
    return next((root for root in roots if root in _LIBRARIES), roots[0])


def is_table(given: Any) -> bool:
    """Whether something is a table; a dict of columns is told by `is_columns`.

    >>> is_table([1]), is_table({"id": [1]})
    (False, False)
    """
    cls: Any = type(given)
    if hasattr(cls, _STREAM):
        return not (_is_column(given) or library_of(given) == "pyspark" or isinstance(given, ZSet))
    if library_of(given) == "numpy":
        return bool(getattr(given, "shape", ())) and given.dtype.names is not None
    return library_of(given) == "pandas" and hasattr(cls, "columns")


def is_columns(given: Any) -> bool:
    """Whether a change is a dict of columns: there are names, and under one of them many values.

    >>> is_columns({"id": [1, 2]}), is_columns({"id": 1, "city": "Rome"}), is_columns({})
    (True, False, False)
    """
    if not isinstance(given, Mapping) or type(next(iter(given), None)) is not str:
        return False
    return any(type(each) is not int and _is_many(each) for each in given.values())


def are_columns(given: Mapping[str, Any]) -> bool:
    """Whether all values of a dict are columns, and it is no row with some lists in it.

    >>> are_columns({"id": [1], "tags": [["a"]]}), are_columns({"id": 1, "tags": ["a"]})
    (True, False)
    """
    return all(map(_is_many, given.values()))


def _is_many(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, (str, bytes))


def holds_rows(given: Any) -> bool:
    """Whether something is a table, or a dict of columns.

    >>> holds_rows({"id": [1]}), holds_rows([1])
    (True, False)
    """
    return is_table(given) or is_columns(given)


def is_frame(given: Any) -> bool:
    """Whether something is a DataFrame of Spark, which only a view on Spark takes."""
    return library_of(given) == "pyspark" and hasattr(given, "columns")


def read_table(source: Source, given: Any, *, parse: bool = False) -> Weights:
    """The rows of a table, with their weights; none of them is zero."""
    require_arrow(f"input {source.name!r}: a table was given, and to read it takes")
    from ebbflow.engine.runtime.table.given import weights_of_table

    return weights_of_table(source, given, parse=parse)


def require_arrow(what: str) -> None:
    """Refuse to go on without pyarrow and NumPy."""
    missing = [name for name in ("pyarrow", "numpy") if find_spec(name) is None]
    if missing:
        text = f"{what} {' and '.join(missing)}"
        cause = ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])
        raise ChangeError(text, remedy=install("tables")) from cause


def refuse_table(source: Source, given: Any, *, as_row: bool = False) -> None:
    """An error where something of these libraries is given that is no table; or, `as_row`, where a
    table is."""
    library, cls = library_of(given), type(given)
    if cls.__name__ in _SCALARS:
        return
    name = source.name
    if as_row and (is_table(given) or is_frame(given)):
        what, remedy = "as a row", f"{name}=table, not in a list; several tables put into one"
    elif is_frame(given):
        what, remedy = "to a view that is not on Spark", f"{name}=table.toArrow()"
    elif library == "polars" and cls.__name__ == "LazyFrame":
        what, remedy = "where rows are asked", f"{name}=table.collect()"
    elif library in _VALUES and hasattr(given, _VALUES[library]) and not is_table(given):
        what, remedy = "where rows are asked", _of_column(source, library)
    else:
        return
    raise ChangeError(
        f"input {name!r}: a {cls.__name__} of {library} was given {what}",
        given=Text(f"{cls.__module__}.{cls.__qualname__}"),
        created=source.place,
        remedy=remedy,
    )


def _of_column(source: Source, library: str) -> str:
    fields = fields_of(source.type)
    if fields is None:
        return f"{source.name}=column.{_VALUES[library]}()"
    return f"{source.name}=table, with all columns of a row: {', '.join(fields)}"


def _is_column(given: Any) -> bool:
    """Whether it is one column of a table, though it can be read as a stream."""
    return library_of(given) in _VALUES and type(given).__name__ in ("Series", "ChunkedArray")
