"""What does a task of the Spark engine cost for a changed key, in rows and in columns?

The program of `spark.py`, a three-way join and two group-bys, on a state of so many rows; epochs of
so many changed keys, each in one task that is called in this process: what Spark does beside it is
not in the figures, and what the driver does to commit an epoch is. Rows and columns take turns with
the same changes. Processor time, so that what else the machine does disturbs little. In the end
both views must be equal.
"""

from __future__ import annotations

import shutil
import tempfile
from statistics import median
from time import process_time
from typing import Any

import spark_data as data
from harness import Row, main

from ebbflow.engine.runtime.durable import Disk
from ebbflow.engine.spark.tasks import sending, single
from ebbflow.engine.spark.tasks.asked import input_change
from ebbflow.engine.spark.tasks.epochs import Epochs
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import TaskReport
from ebbflow.engine.spark.tasks.task import in_stream, lines_of
from ebbflow.engine.spark.tasks.transport import pack_program

QUESTION = "What does a task of the Spark engine cost for a changed key, in rows and in columns?"
FROM = sending.COLUMNS_FROM
ROUNDS = 3


class OneTask:
    """A view whose epochs are one task each, in rows or in columns."""

    def __init__(self, program: Any, folder: str, columns_from: int) -> None:
        self.columns_from = columns_from
        self.replica = Replica(program.plan)
        self.disk = Disk(folder, self.replica, memory="64MB")
        self.replica.detach()
        packed = pack_program(self.replica, True)
        self.epochs = Epochs(None, packed, self.replica, self.disk.store)  # type: ignore[arg-type]

    def step(self, tables: dict[str, Any]) -> float:
        """The processor time of an epoch."""
        sending.COLUMNS_FROM = self.columns_from
        inputs = self.replica.inputs
        begin = process_time()
        given = {name: input_change(inputs[name], table, 0) for name, table in tables.items()}
        here = tuple((name, in_stream(each.table)) for name, each in given.items())
        requests = tuple((name, None) for name in given)
        task = single.SingleTask(self.epochs.job(1), requests, 10**9, here)
        reports = [TaskReport.read(blob) for _, _, blob in lines_of(task(iter(())))]
        self.epochs.stage_reports("single_task", reports)
        self.disk.store.commit(self.disk.store.epoch + 1)
        return process_time() - begin

    def cells(self) -> dict[str, Any]:
        """All that the stages keep."""
        self.replica.open(self.disk.store)
        found = {
            p.label: p.owner.everything() for p in self.replica.parts if p.label[:6] == "reduce"
        }
        self.replica.detach()
        return found


def measure(quick: bool) -> list[Row]:
    rows, sizes = (5_000, [1_000]) if quick else (1_000_000, [1_000, 10_000, 100_000])
    tables = data.Tables(rows)
    folders = [tempfile.mkdtemp(prefix="bench-tasks-") for _ in range(2)]
    try:
        views = {
            how: OneTask(data.whole(), folder, limit)
            for how, folder, limit in zip(("rows", "columns"), folders, (10**12, FROM), strict=True)
        }
        names = list(data.TYPES)
        start = {n: tables.tables[n].arrow(tables.tables[n].at(slice(0, tables.tables[n].size)), 1)
                 for n in names}  # fmt: skip
        loads = {how: view.step(start) for how, view in views.items()}
        found: list[Row] = [_row(rows, rows, loads)]
        for keys in sizes:
            times: dict[str, list[float]] = {how: [] for how in views}
            for _ in range(ROUNDS):
                change = tables.change(keys)
                for how, view in views.items():
                    times[how].append(view.step({n: change[n] for n in names}))
            found.append(_row(rows, keys, {how: median(some) for how, some in times.items()}))
        if views["rows"].cells() != views["columns"].cells():
            raise AssertionError("rows and columns do not keep the same")
        for view in views.values():
            view.disk.close()
    finally:
        for folder in folders:
            shutil.rmtree(folder)
    return found


def _row(rows: int, keys: int, seconds: dict[str, float]) -> Row:
    row: Row = {"rows": rows, "changed keys": keys}
    row |= {f"{how} µs/key": each / keys * 1e6 for how, each in seconds.items()}
    row["rows / columns"] = seconds["rows"] / seconds["columns"]
    return row


if __name__ == "__main__":
    main(QUESTION, measure)
