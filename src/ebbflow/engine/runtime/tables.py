"""Tables of other libraries, given where rows are asked: refused, with the line that makes rows."""

from __future__ import annotations

from typing import Any

from ebbflow.errors import ChangeError, Text
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of

_ROWS = {
    "pandas": "{table}.itertuples(index=False, name=None)",
    "polars": "{table}.iter_rows()",
    "pyarrow": "zip(*{table}.to_pydict().values())",
    "pyspark": "{table}.collect()",
}
_CHOSEN = {"pandas": "table[[{}]]", "polars": "table.select({})", "pyarrow": "table.select([{}])",
           "pyspark": "table.select({})"}  # fmt: skip
_VALUES = {"pandas": "tolist", "polars": "to_list", "pyarrow": "to_pylist"}


def refuse_table(source: Source, given: Any) -> None:
    """An error where a table or a column of pandas, polars, pyarrow or Spark is given as rows."""
    cls = type(given)
    library = cls.__module__.partition(".")[0]
    if library not in _ROWS or cls.__name__ in ("Timestamp", "Timedelta", "Row", "Interval"):
        return
    if hasattr(given, "columns"):
        remedy = _rows_text(library, source.type)
    elif library in _VALUES and hasattr(given, _VALUES[library]):
        remedy = f"{source.name}=column.{_VALUES[library]}()"
    else:
        return
    raise ChangeError(
        f"input {source.name!r}: a {cls.__name__} of {library} was given where rows are asked",
        given=Text(f"{cls.__module__}.{cls.__qualname__}"),
        created=source.place,
        remedy=remedy,
    )


def _rows_text(library: str, row_type: Any) -> str:
    fields = fields_of(row_type)
    if fields is None:
        return f"rows, as in: list({_ROWS[library].format(table='table')})"
    chosen = _CHOSEN[library].format(", ".join(f'"{name}"' for name in fields))
    return f"[{row_type.__name__}(*row) for row in {_ROWS[library].format(table=chosen)}]"


def is_table(given: Any) -> bool:
    """Whether something is a table of another library, or can become one of Arrow's."""
    if isinstance(given, (list, tuple, dict)):
        return False
    library = type(given).__module__.partition(".")[0]
    return hasattr(given, "__arrow_c_stream__") or (library in _ROWS and hasattr(given, "columns"))
