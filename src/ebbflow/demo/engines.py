"""What the demo asks of an engine, and how each of the two answers.

    prepare(tables, epoch)   before what is timed: rows and columns where a user would have them
    step()                   what was prepared, as one epoch; gives the change of the outputs
    rows(change, view)       the rows of one view in such a change, with their weights
    size(change)             how many rows such a change has
    again()                  the views computed again without ebbflow
    outputs()                the views as they are kept
    state                    the folder of what is kept, or None
    warm_up                  how often to compute again first, for times that are fair to Java
    close()

Without an epoch, the tables are what is loaded first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ebbflow.demo.again import VIEWS, Result, counted, recompute_rows, recompute_sql, weighted
from ebbflow.demo.data import WEIGHT, Columns, ShopEpoch, arrow_of, rows_of
from ebbflow.demo.shop import program
from ebbflow.paths import file_name, make_folders

Tables = Mapping[str, Columns]


class Local:
    """In this process: rows, and a Python program with dicts to compare with."""

    against = "a Python program with dicts"
    warm_up = 0

    def __init__(self, path: str | None) -> None:
        self.state = None if path is None else os.path.join(path, "state")
        self.view = program.run() if path is None else program.run(path=self.state)
        self._given: dict[str, Any] = {}
        self._rows: dict[str, list[Any]] = {}

    def prepare(self, tables: Tables, epoch: ShopEpoch | None = None) -> None:
        changed = tables if epoch is None else epoch.changes
        self._rows.update({name: rows_of(name, tables[name]) for name in changed})
        self._given = dict(self._rows) if epoch is None else {
            name: dict(zip(rows_of(name, change), change[WEIGHT].tolist(), strict=True))
            for name, change in epoch.changes.items()
        }  # fmt: skip

    def step(self) -> Any:
        return self.view.step(self._given)

    def rows(self, change: Any, view: str) -> Result:
        return {tuple(row): weight for row, weight in change[view].items()}

    def size(self, change: Any) -> int:
        return sum(map(len, change.values()))

    def again(self) -> dict[str, Result]:
        return recompute_rows(self._rows)

    def outputs(self) -> dict[str, Result]:
        value = self.view.value
        return {name: self.rows(value, name) for name in value}

    def close(self) -> None:
        self.view.close()


class Spark:
    """On Spark: Parquet files, then Arrow tables; and Spark SQL to compare with."""

    against = "Spark SQL over cached tables"
    warm_up = 2

    def __init__(self, path: str, session: Any = None) -> None:
        from ebbflow.engine.spark.engine import spark
        from ebbflow.engine.spark.session import session as start

        self.session = start("ebbflow demo") if session is None else session
        self.state = os.path.join(path, "state")
        self._own = session is None
        self._files = os.path.join(path, "tables")
        self._frames: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        make_folders(Path(self._files))
        self.view = program.run(spark(self.session, path=self.state))

    def prepare(self, tables: Tables, epoch: ShopEpoch | None = None) -> None:
        changed = tables if epoch is None else epoch.changes
        files = {name: self._write(name, tables[name]) for name in changed}
        for name, file in files.items():
            self._cache(name, file)
        self._given = (
            {name: self.session.read.parquet(file) for name, file in files.items()}
            if epoch is None
            else {name: arrow_of(change) for name, change in epoch.changes.items()}
        )

    def _write(self, name: str, table: Columns) -> str:
        """A new Parquet file of the table as it is now. Spark may still read the one before."""
        from pyarrow import parquet

        file = os.path.join(self._files, f"{file_name(name)}-{self.view.epoch}.parquet")
        parquet.write_table(arrow_of(table), file)
        return file

    def _cache(self, name: str, file: str) -> None:
        old = self._frames.get(name)
        found: Any = self.session.conf.get("spark.sql.shuffle.partitions")
        tasks = int(found)
        frame = self.session.read.parquet(file).repartition(tasks).cache()
        frame.count()
        self._frames[name] = frame
        if old is not None:
            old.unpersist()

    def step(self) -> Any:
        return self.view.step(self._given)

    def rows(self, change: Any, view: str) -> Result:
        return weighted(change[view])

    def size(self, change: Any) -> int:
        return sum(int(frame.count()) for frame in change.values())

    def again(self) -> dict[str, Result]:
        """All views at once, so that no core waits."""
        frames = recompute_sql(self.session, self._frames)
        with ThreadPoolExecutor(len(frames)) as pool:
            return dict(zip(frames, pool.map(counted, frames.values()), strict=True))

    def outputs(self) -> dict[str, Result]:
        return {name: weighted(self.view[name].weighted) for name in VIEWS}

    def close(self) -> None:
        self.view.close()
        for frame in self._frames.values():
            frame.unpersist()
        if self._own:
            self.session.stop()
