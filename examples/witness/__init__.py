"""A witness that shares no code with programs: DuckDB, which computes their queries again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Protocol


class Change(Protocol):
    """Rows that are added to tables and taken away."""

    @property
    def added(self) -> Mapping[str, list[Any]]: ...
    @property
    def removed(self) -> Mapping[str, list[Any]]: ...


class Witness:
    """Tables in DuckDB, changed as those of a view, and queries of them."""

    sql: Mapping[str, str]
    rows: Mapping[str, Any]
    keys: Mapping[str, str | tuple[str, ...]]

    def __init__(self, tables: Mapping[str, Any], threads: int = 1) -> None:
        import duckdb

        self.base = duckdb.connect(config={"threads": threads})
        for name, table in tables.items():
            self.base.register("given", table)
            self.base.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self.base.unregister("given")

    def apply(self, change: Change) -> None:
        """Take away and add the rows of a change."""
        for name, rows in change.removed.items():
            keys = self.keys[name]
            keys = (keys,) if isinstance(keys, str) else keys
            wanted = " AND ".join(f"{name}.{key} = given.{key}" for key in keys)
            self._with(name, rows, f"DELETE FROM {name} USING given WHERE {wanted}")
        for name, rows in change.added.items():
            self._with(name, rows, f"INSERT INTO {name} SELECT * FROM given")

    def _with(self, name: str, rows: list[Any], statement: str) -> None:
        import pyarrow as pa

        if rows:
            columns = dict(zip(self.rows[name]._fields, zip(*rows, strict=True), strict=True))
            self.base.register("given", pa.table({n: list(c) for n, c in columns.items()}))
            self.base.execute(statement)
            self.base.unregister("given")

    def ask(self, query: str, **given: Any) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        sql = self.sql[query]
        wanted = {name: value for name, value in given.items() if f"${name}" in sql}
        found: list[tuple[Any, ...]] = self.base.execute(sql, wanted or None).fetchall()
        return found


def differences(ours: Any, theirs: Iterable[tuple[Any, ...]]) -> str:
    """In what the rows of a view differ from those of the witness; nothing where they agree.
    Numbers that were divided may differ by what rounding does."""
    mine = sorted((tuple(row) for row, n in ours.items() for _ in range(n)), key=_place)
    others = sorted(theirs, key=_place)
    if len(mine) != len(others):
        return f"{len(mine)} rows, and DuckDB has {len(others)}"
    for a, b in zip(mine, others, strict=True):
        if len(a) != len(b) or not all(map(_alike, a, b)):
            return f"{a}, and DuckDB has {b}"
    return ""


def _alike(a: Any, b: Any) -> bool:
    if a == b:
        return True
    if isinstance(a, Decimal) and isinstance(b, float):
        return abs(float(a) - b) <= 10.0 ** a.as_tuple().exponent + 1e-9 * abs(b)
    return isinstance(a, float) and abs(a - float(b)) <= 1e-9 * max(1.0, abs(float(b)))


def _place(row: tuple[Any, ...]) -> list[str]:
    return [f"{x:.6g}" if isinstance(x, (float, Decimal)) else str(x) for x in row]
