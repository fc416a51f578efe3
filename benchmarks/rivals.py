"""The rivals of `local.py`: Pathway, and recomputing with DuckDB or Polars, when installed.

    pip install '.[bench]'     in an environment of its own: Pathway wants pyarrow below 26

They are treated kindly. Where a choice was to be made, it was made in their favour:

    DuckDB, Polars   a change is given to them as columns, made before the clock runs; the table is
                     kept up to date, the query is asked again, and its answer stays in columns. It
                     is the whole answer: what changed in it they are not asked.
    Pathway          rows go in by `next` and `delete` of a Python connector and changes come out by
                     `subscribe`, its ways from and to Python. A batch is ended by `commit` and no
                     timer commits (by default one does, every 1.5 s); the clock stops when Pathway
                     calls the end of that batch. Both sides of a join come through one connector
                     and are told apart by a filter, so that a batch is one commit.
"""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import Any, ClassVar

from local_data import Bag, Change

COLUMNS = {
    "orders": ("id", "key", "price"),
    "clicks": ("click", "user", "page"),
    "sales": ("sale", "user", "price"),
    "left": ("x",),
    "right": ("x",),
}
INPUTS = {
    "group": ("orders",),
    "join": ("clicks", "sales"),
    "q1": ("left", "right"),
    "q2": ("left", "right"),
}


def bag_of(rows: list[Any], query: str) -> Bag:
    """Rows as they come from a table, as the engine would give them."""
    if query == "q2":
        return {((x, y),): 1 for x, y in rows}
    return dict.fromkeys(rows, 1)


class Recompute:
    """A table for each input, and the query asked again after every change."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.answer: Any = None

    def prepare(self, change: Change) -> Any:
        """For every input: the numbers of the rows that go, and the rows that come, as columns."""
        import polars

        ready = {}
        for name, bag in change.items():
            fields = COLUMNS[name]
            plain = len(fields) == 1
            gone = [row if plain else row[0] for row, weight in bag.items() if weight < 0]
            new = [(row,) if plain else row for row, weight in bag.items() if weight > 0]
            schema = dict.fromkeys(fields, polars.Int64)
            ready[name] = (
                polars.DataFrame({fields[0]: gone}, schema={fields[0]: polars.Int64}),
                polars.DataFrame(new, schema=schema, orient="row"),
            )
        return ready

    def value(self) -> Bag:
        return bag_of(self.answer.rows(), self.query)

    def close(self) -> None:
        pass


class Polars(Recompute):
    """Columns in memory. What goes is filtered out, what comes is put behind."""

    def __init__(self, query: str) -> None:
        import polars

        super().__init__(query)
        self.polars = polars
        self.tables = {
            name: polars.DataFrame(schema=dict.fromkeys(COLUMNS[name], polars.Int64))
            for name in INPUTS[query]
        }

    def step(self, ready: Any) -> Any:
        for name, (gone, new) in ready.items():
            table, key = self.tables[name], COLUMNS[name][0]
            if len(gone):
                table = table.join(gone, on=key, how="anti")
            self.tables[name] = self.polars.concat([table, new])
        lazy = [table.lazy() for table in self.tables.values()]
        self.answer = getattr(self, self.query)(*lazy).collect()
        return self.answer

    def group(self, orders: Any) -> Any:
        pl = self.polars
        return orders.group_by("key").agg(total=pl.col("price").sum(), n=pl.len().cast(pl.Int64))

    def join(self, clicks: Any, sales: Any) -> Any:
        return clicks.join(sales, on="user")

    def q1(self, left: Any, right: Any) -> Any:
        pl = self.polars
        tens = left.filter(pl.col("x") % 10 == 0).with_columns(key=pl.col("x") % 500)
        fives = right.filter(pl.col("x") % 5 == 0).select(y="x", key=pl.col("x") % 1000)
        return tens.join(fives, on="key").select("x", "y")

    def q2(self, left: Any, right: Any) -> Any:
        pl = self.polars
        pairs = self.q1(left, right).with_columns(m=pl.col("x").max())
        return pairs.filter(pl.col("x") == pl.col("m")).group_by("x").agg(pl.col("y").max())


PAIRS = """SELECT l.x, r.x AS y FROM left_ l JOIN right_ r ON l.x % 500 = r.x % 1000
           WHERE l.x % 10 = 0 AND r.x % 5 = 0"""
SQL = {
    "group": "SELECT key, sum(price)::BIGINT, count(*) FROM orders GROUP BY key",
    "join": """SELECT click, c.user, page, sale, price
               FROM clicks c JOIN sales s ON c.user = s.user""",
    "q1": PAIRS,
    "q2": f"{PAIRS} ORDER BY l.x DESC, r.x DESC LIMIT 1",
}


class DuckDB(Recompute):
    """A database in memory: delete, insert, ask."""

    def __init__(self, query: str) -> None:
        import duckdb

        super().__init__(query)
        self.base = duckdb.connect()
        for name in INPUTS[query]:
            columns = ", ".join(f'"{field}" BIGINT' for field in COLUMNS[name])
            self.base.execute(f"CREATE TABLE {self.table(name)} ({columns})")

    def table(self, name: str) -> str:
        return f"{name}_" if name in ("left", "right") else name

    def step(self, ready: Any) -> Any:
        base = self.base
        for name, (gone, new) in ready.items():
            table, key = self.table(name), COLUMNS[name][0]
            if len(gone):
                base.register("gone", gone)
                base.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM gone)")
            if len(new):
                base.register("new", new)
                base.execute(f"INSERT INTO {table} SELECT * FROM new")
        self.answer = base.sql(SQL[self.query]).pl()
        return self.answer

    def close(self) -> None:
        self.base.close()


class Pathway:
    """A running Pathway program, fed and watched from here."""

    inputs: ClassVar = INPUTS
    patience = 120

    def __init__(self, query: str) -> None:
        import pathway as pw

        logging.getLogger().setLevel(logging.ERROR)
        pw.internals.parse_graph.G.clear()
        self.query = query
        self.sides = {name: side for side, name in enumerate(self.inputs[query])}
        self.rows: Bag = {}
        self.ended = threading.Event()
        self.stopped = stopped = threading.Event()

        class Rows(pw.io.python.ConnectorSubject):
            _deletions_enabled = True

            def run(self) -> None:
                stopped.wait()

        class Schema(pw.Schema):
            side: int = pw.column_definition(primary_key=True)
            number: int = pw.column_definition(primary_key=True)
            key: int
            data: int

        self.subject = Rows()
        table = pw.io.python.read(self.subject, schema=Schema, autocommit_duration_ms=None)
        answer = getattr(self, query)(pw, table)
        pw.io.subscribe(answer, self.changed, on_time_end=self.end)
        self.thread = threading.Thread(target=self.run, args=(pw,), daemon=True)
        self.thread.start()

    def run(self, pw: Any) -> None:
        pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)

    def changed(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        answer = tuple(row.values())
        if total := self.rows.pop(answer, 0) + (1 if is_addition else -1):
            self.rows[answer] = total

    def end(self, time: int) -> None:
        self.ended.set()

    def group(self, pw: Any, table: Any) -> Any:
        groups = table.groupby(table.key)
        return groups.reduce(table.key, total=pw.reducers.sum(table.data), n=pw.reducers.count())

    def join(self, pw: Any, table: Any) -> Any:
        clicks, sales = table.filter(table.side == 0), table.filter(table.side == 1)
        pairs = clicks.join(sales, clicks.key == sales.key)
        return pairs.select(click=clicks.number, user=clicks.key, page=clicks.data,
                            sale=sales.number, price=sales.data)  # fmt: skip

    def q1(self, pw: Any, table: Any) -> Any:
        left = table.filter((table.side == 0) & (table.number % 10 == 0))
        right = table.filter((table.side == 1) & (table.number % 5 == 0))
        tens = left.select(x=left.number, k=left.number % 500)
        fives = right.select(y=right.number, k=right.number % 1000)
        return tens.join(fives, tens.k == fives.k).select(tens.x, fives.y)

    def prepare(self, change: Change) -> Any:
        """One call after the other: whether the row comes, and its fields."""
        return [
            (weight > 0, {"side": self.sides[name], "number": fields[0], "key": fields[1],
                          "data": fields[2]})
            for name, bag in change.items()
            for row, weight in bag.items()
            for fields in [self.fields(row)]
        ]  # fmt: skip

    def fields(self, row: Any) -> tuple[int, int, int]:
        """The number, the key and the data of a row."""
        return row if isinstance(row, tuple) else (row, 0, 0)

    def step(self, ready: Any) -> None:
        self.ended.clear()
        come, go = self.subject.next, self.subject.delete
        for comes, row in ready:
            (come if comes else go)(**row)
        self.subject.commit()
        if not self.ended.wait(self.patience):
            raise TimeoutError(f"Pathway has not answered for {self.patience} seconds")

    def value(self) -> Bag:
        return self.rows

    def close(self) -> None:
        self.stopped.set()
        self.thread.join(20)


RIVALS = {"Pathway": Pathway, "DuckDB": DuckDB, "Polars": Polars}
NEEDS = {"Pathway": ("pathway",), "DuckDB": ("duckdb", "polars"), "Polars": ("polars",)}


def installed() -> dict[str, Any]:
    """The rivals that can run here."""
    return {name: made for name, made in RIVALS.items() if all(map(find_spec, NEEDS[name]))}


def missing() -> list[str]:
    return [name for name in RIVALS if name not in installed()]
