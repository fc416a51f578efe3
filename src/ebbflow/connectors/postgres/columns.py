"""The columns of a table of PostgreSQL become those of an output, when a sink begins again.

The table is empty then, so any column can have another type. It keeps its rights, its indexes and
what refers to it. Only another key takes a new table in its place. PostgreSQL refuses to drop a
column that a view reads, and then nothing has happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ebbflow.connectors.postgres.layout import TableLayout
from ebbflow.connectors.postgres.link import quoted
from ebbflow.errors import SinkError, Text

if TYPE_CHECKING:
    from psycopg import Cursor

Columns = dict[str, tuple[str, bool]]
"""For each column its type, as PostgreSQL calls it, and whether it must not be null."""
_WANTED = "ebbflow_wanted"
_WHOLE, _ROUNDED = ("smallint", "integer", "bigint"), ("double precision", "numeric")
"""Types of columns that round values of these types, and say nothing."""


def fit_columns(cursor: Cursor[Any], layout: TableLayout) -> None:
    """Give an empty table the columns and the key of a layout."""
    now, wanted = _columns(cursor, quoted(layout.table)), _wanted(cursor, layout)
    if now == wanted and _has_key(cursor, layout):
        return
    table = quoted(layout.table)
    if not _has_key(cursor, layout) or any(now[name] != wanted[name] for name in layout.key):
        cursor.execute(f"DROP TABLE {table}")
        cursor.execute(layout.create)
        return
    steps = [f"DROP COLUMN {quoted(name)}" for name in now if name not in wanted]
    for name, (sql_type, required) in wanted.items():
        column, was = quoted(name), now.get(name)
        if was is None:
            steps.append(f"ADD COLUMN {column} {sql_type}{' NOT NULL' if required else ''}")
            continue
        if was[0] != sql_type:
            steps.append(f"ALTER COLUMN {column} DROP DEFAULT")
            steps.append(f"ALTER COLUMN {column} TYPE {sql_type} USING NULL::{sql_type}")
        if was[1] != required:
            steps.append(f"ALTER COLUMN {column} {'SET' if required else 'DROP'} NOT NULL")
    cursor.execute(f"ALTER TABLE {table} {', '.join(steps)}")


def require_no_rounding(cursor: Cursor[Any], layout: TableLayout, sink: str) -> None:
    """Refuse a table whose columns would round the values of an output."""
    now, wanted = _columns(cursor, quoted(layout.table)), _wanted(cursor, layout)
    for name, (sql_type, _) in wanted.items():
        was = now.get(name, ("", False))[0]
        if was in _WHOLE and sql_type.startswith(_ROUNDED):
            raise SinkError(
                f"the sink {sink!r}: the column {name!r} would round the values of the output",
                column=Text(was),
                output=Text(sql_type),
                remedy=f"ALTER TABLE {quoted(layout.table)} ALTER COLUMN {quoted(name)} TYPE "
                f"{sql_type}; or create=True and view.restart_sink",
            )


def _wanted(cursor: Cursor[Any], layout: TableLayout) -> Columns:
    """The columns that the table of a layout has, as PostgreSQL calls their types."""
    cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{_WANTED}")
    cursor.execute(f"CREATE TEMPORARY TABLE {_WANTED} ({layout.definition}) ON COMMIT DROP")
    return _columns(cursor, f"pg_temp.{_WANTED}")


def _columns(cursor: Cursor[Any], table: str) -> Columns:
    query = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    return {name: (said, required) for name, said, required in cursor.execute(query, (table,))}


def _has_key(cursor: Cursor[Any], layout: TableLayout) -> bool:
    """Whether a table has a unique index on exactly the columns of the key."""
    query = (
        "SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute ON attrelid = indrelid "
        "AND attnum = ANY(indkey) WHERE indrelid = to_regclass(%s) AND indisunique "
        "AND indpred IS NULL GROUP BY indexrelid"
    )
    found = cursor.execute(query, (quoted(layout.table),)).fetchall()
    return any(set(names) == set(layout.key) for (names,) in found)
