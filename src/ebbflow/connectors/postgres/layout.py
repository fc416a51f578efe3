"""How the rows of an output are rows of a table of PostgreSQL.

    int, float, bool, str, bytes       bigint, double precision, boolean, text, bytea
    date, datetime                     date, timestamp
    Annotated[datetime, UTC]           timestamptz
    Decimal, Annotated[.., (10, 2)]    numeric, numeric(10, 2)
    UUID                               uuid
    lists, sets, dicts, records        jsonb
    T | None                           the same, and may be null

These are the types of a table that is made here. A table that is there may have others, as long as
PostgreSQL takes the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ebbflow.change.edited import Text as EditedText
from ebbflow.connectors.postgres.link import quoted
from ebbflow.connectors.rows import required_key
from ebbflow.engine.runtime.sinks.plain import plain
from ebbflow.engine.runtime.table.column_types import VALUE, Column, columns_of
from ebbflow.errors import CompositionError, Text
from ebbflow.flow.plan import Node
from ebbflow.flow.types import DIGITS, without_none
from ebbflow.record import fields_of, taken_apart, type_text

_TYPES = {
    "int": "bigint",
    "float": "double precision",
    "bool": "boolean",
    "text": "text",
    "bytes": "bytea",
    "date": "date",
    "time": "timestamp",
    "instant": "timestamptz",
    "list": "jsonb",
    "set": "jsonb",
    "map": "jsonb",
    "record": "jsonb",
}
WEIGHTS = '"__weight"'


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table, of which some are its key; a bag has all of them as key, and a column
    with how often each row is there."""

    table: str
    columns: tuple[tuple[str, str, bool], ...]
    """Their names, types, and whether they may be null."""
    key: tuple[str, ...]
    count: str | None
    values: Callable[[Any], tuple[Any, ...]]
    """What a row has in them, as psycopg takes it."""
    key_values: Callable[[Any], tuple[Any, ...]]
    """What a row has in those of the key, as it is."""

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]

    def _listed(self, names: Sequence[str], before: str = "") -> str:
        return ", ".join(before + quoted(name) for name in names)

    def _same(self, one: str, other: Callable[[str], str]) -> str:
        """That two rows have one key. Where it may be null, nulls are alike."""
        optional = {name for name, _, null in self.columns if null}
        return " AND ".join(
            f"{one}{quoted(name)} {'IS NOT DISTINCT FROM' if name in optional else '='} "
            f"{other(name)}"
            for name in self.key
        )

    # ---- statements ----

    @property
    def create(self) -> str:
        """Make the table, unless there is one."""
        return f"CREATE TABLE IF NOT EXISTS {quoted(self.table)} ({self.definition})"

    @property
    def definition(self) -> str:
        """The columns of the table, and its key."""
        lines = [
            f"{quoted(name)} {sql_type}{'' if null else ' NOT NULL'}"
            for name, sql_type, null in self.columns
        ]
        if self.count is not None:
            lines.append(f"{quoted(self.count)} bigint NOT NULL")
        nulls = any(null for name, _, null in self.columns if name in self.key)
        unique = "UNIQUE NULLS NOT DISTINCT" if nulls else "PRIMARY KEY"
        lines.append(f"{unique} ({self._listed(self.key)})")
        return ", ".join(lines)

    @property
    def insert(self) -> str:
        """Put a row in, in the place of the one of its key; of a bag, so many of it."""
        marks = ", ".join(["%s"] * (len(self.columns) + (self.count is not None)))
        return f"{self._into} VALUES ({marks}) {self._conflict}"

    @property
    def delete(self) -> str:
        """Take away the row of a key."""
        return f"DELETE FROM {quoted(self.table)} WHERE {self._same('', lambda name: '%s')}"

    @property
    def delete_none(self) -> str:
        """Take away a row of a bag that is there no more."""
        assert self.count is not None
        return f"{self.delete} AND {quoted(self.count)} = 0"

    @property
    def _into(self) -> str:
        count = [] if self.count is None else [self.count]
        return f"INSERT INTO {quoted(self.table)} AS t ({self._listed([*self.names, *count])})"

    @property
    def _conflict(self) -> str:
        if self.count is not None:
            count = quoted(self.count)
            sets = f"{count} = t.{count} + excluded.{count}"
        else:
            rest = [quoted(name) for name in self.names if name not in self.key]
            sets = ", ".join(f"{name} = excluded.{name}" for name in rest)
        action = f"UPDATE SET {sets}" if sets else "NOTHING"
        return f"ON CONFLICT ({self._listed(self.key)}) DO {action}"

    # ---- a large change: everything into a table of its own first ----

    @property
    def stage(self) -> list[str]:
        """Make a table for the rows of a change with their weights."""
        return [
            "DROP TABLE IF EXISTS pg_temp.ebbflow_change, pg_temp.ebbflow_net",
            f"CREATE TEMPORARY TABLE ebbflow_change ON COMMIT DROP AS SELECT "
            f"{self._listed(self.names)}, 0::bigint AS {WEIGHTS} FROM {quoted(self.table)} "
            f"WITH NO DATA",
        ]

    @property
    def copy(self) -> str:
        return f"COPY ebbflow_change ({self._listed(self.names)}, {WEIGHTS}) FROM STDIN"

    @property
    def add_up(self) -> list[str]:
        """Have every row of the change once."""
        names = self._listed(self.names)
        return [
            f"CREATE TEMPORARY TABLE ebbflow_net ON COMMIT DROP AS SELECT {names}, "
            f"sum({WEIGHTS})::bigint AS {WEIGHTS} FROM ebbflow_change GROUP BY {names} "
            f"HAVING sum({WEIGHTS}) <> 0",
            "ANALYZE ebbflow_net",
        ]

    @property
    def several(self) -> str:
        """A key that the change puts in more than once."""
        key = self._listed(self.key)
        return (
            f"SELECT {key} FROM ebbflow_net WHERE {WEIGHTS} > 0 GROUP BY {key} "
            f"HAVING sum({WEIGHTS}) > 1 LIMIT 1"
        )

    @property
    def merge(self) -> list[str]:
        """Do to the table what the change says."""
        into, table = self._into, quoted(self.table)
        same = self._same("t.", lambda name: f"n.{quoted(name)}")
        if self.count is not None:
            return [
                f"{into} SELECT {self._listed(self.names)}, {WEIGHTS} FROM ebbflow_net "
                f"{self._conflict}",
                f"DELETE FROM {table} AS t USING ebbflow_net AS n WHERE {same} "
                f"AND t.{quoted(self.count)} = 0",
            ]
        stays = self._same("p.", lambda name: f"n.{quoted(name)}")
        return [
            f"DELETE FROM {table} AS t USING ebbflow_net AS n WHERE n.{WEIGHTS} < 0 AND {same} "
            f"AND NOT EXISTS (SELECT FROM ebbflow_net AS p WHERE p.{WEIGHTS} > 0 AND {stays})",
            f"{into} SELECT {self._listed(self.names)} FROM ebbflow_net WHERE {WEIGHTS} > 0 "
            f"{self._conflict}",
        ]


def table_layout(
    node: Node, table: str, key: str | Sequence[str] | None, count: str | None
) -> TableLayout:
    """How the rows of an output are in a table; an error where that cannot be."""
    columns = columns_of(node.type)
    names = [name for name, _ in columns]
    if count is not None and (key is not None or count in names):
        raise CompositionError(
            f"TableSink({table!r}): count={count!r} is for rows without a key, and a new column",
            fields=Text(", ".join(names)),
            created=node.place,
            remedy="key=... or count=..., and a name that no field has",
        )
    otherwise = 'count="n", a column with how often each row is there'
    call = f"TableSink({table!r})"
    found = required_key(call, node, names if count is not None else key, otherwise)
    hints = fields_of(node.type) or {VALUE: node.type}
    types = [(name, *_sql_type(node, name, hints[name], each)) for name, each in columns]
    adapt = _adapter([nested for *_, nested in types])
    apart = taken_apart(node.type) if fields_of(node.type) is not None else lambda row: (row,)
    shapes = tuple((name, sql_type, null) for name, sql_type, null, _ in types)
    places = [names.index(name) for name in found]
    return TableLayout(
        table, shapes, found, count, lambda row: adapt(apart(row)),
        lambda row: tuple([apart(row)[place] for place in places]),
    )  # fmt: skip


def _sql_type(node: Node, name: str, hint: Any, column: Column) -> tuple[str, bool, bool]:
    """The type of a column, whether it may be null, and whether it is JSON."""
    if column.form == "any":
        if without_none(hint) is not UUID:
            raise CompositionError(
                f"field {name!r} is {type_text(hint)}, for which PostgreSQL has no type",
                created=node.place,
                remedy="a hint that says what it is, or .map to what a table can hold",
            )
        return "uuid", without_none(hint) is not hint, False
    if column.form == "decimal":
        digits = "" if column.digits == DIGITS else "({}, {})".format(*column.digits)
        return f"numeric{digits}", column.optional, False
    found = _TYPES[column.form]
    return found, column.optional, found == "jsonb"


def _adapter(nested: list[bool]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What makes the values of a row into such that psycopg knows."""

    def adapt(values: Sequence[Any]) -> tuple[Any, ...]:
        from psycopg.types.json import Jsonb

        return tuple(
            Jsonb(plain(value)) if json and value is not None
            else str(value) if isinstance(value, EditedText) else value
            for json, value in zip(nested, values, strict=True)
        )  # fmt: skip

    return adapt if any(nested) else _plain_texts


def _plain_texts(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(str(each) if isinstance(each, EditedText) else each for each in values)
