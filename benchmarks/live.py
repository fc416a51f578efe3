"""How long from the arrival of a change to the changed view, and how many changes a second?

    latency     a file with so many changes is put where a stream looks for files; how long until
                the change of the view was given to a sink (`view.stream`), beside a stream that
                only writes what comes (`foreachBatch` with a write, Spark's own floor)
    sustained   files of many changes, one after the other, as fast as they are taken: changes a
                second, beside `transformWithState` that keeps the same sums and counts with
                retractions, and beside a stream that appends what comes to a table, computes
                everything again and overwrites the result. `transformWithState` does not look
                whether a row that goes was there; nor does the view, in a column of its own
    merge       the same beside a job that merges what comes into a Delta table, computes again what
                it touches, and merges that; for small and for large batches. It needs Delta's jar
    correction  all orders in one epoch, a first load, then half of them changed in one more: what a
                row takes in each, the second in bulk and in waves

Sums and counts of orders by customer, in one session on two cores; contestants take turns with the
same files, so that what else the machine does disturbs all alike. Read the ratios, not the times.
Of the changed orders half are corrected (one row goes, one comes), a quarter are new, a quarter
go. A first batch, which brings all orders, and one more are not timed. In the end every contestant
must have what NumPy computes from all rows.

    python benchmarks/live.py [--quick] [--json] [--work latency,sustained,correction,merge]
                              [--customers 100_000] [--changes 1,100,10_000] [--rounds 100]
                              [--batches 5] [--batch 2_000,20_000,100_000]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_rivals as rivals
from harness import Row, publish
from live_contestants import (
    DELTA_SETTINGS,
    TOTALS,
    WEIGHT,
    Floor,
    KeptBySpark,
    Merge,
    Order,
    Recompute,
    Trusting,
    View,
    bag,
)

import ebbflow as ef

WORKS = ("latency", "sustained", "correction")
"""What is asked for unless told otherwise; `merge` needs a jar from elsewhere."""
PER_CUSTOMER = 4
BATCH, BATCHES = (2_000, 20_000, 100_000), 5


class Orders:
    """All orders as they are now, and what happens to them."""

    def __init__(self, customers: int) -> None:
        self.dice = np.random.default_rng(0)
        self.customers = customers
        self.orders = np.empty((0, 3), np.int64)
        self.next = 0

    def new(self, count: int) -> Any:
        keys = np.arange(self.next, self.next + count)
        self.next += count
        made = [keys, self.dice.integers(self.customers, size=count), self._totals(count)]
        return np.stack(made, axis=1)

    def _totals(self, count: int) -> Any:
        return self.dice.integers(1, 100_000, size=count)

    def load(self) -> Any:
        self.orders = self.new(self.customers * PER_CUSTOMER)
        return _table(self.orders, self.orders[:0])

    def change(self, count: int) -> Any:
        """So many changed orders, as a table with weights."""
        gone, corrected = count // 4, count // 2
        at = self.dice.choice(len(self.orders), gone + corrected, replace=False)
        old, fixed = self.orders[at], self.orders[at[gone:]].copy()
        fixed[:, 2] += 1 + self._totals(corrected)
        new = np.concatenate([fixed, self.new(count - gone - corrected)])
        kept = np.ones(len(self.orders), bool)
        kept[at] = False
        self.orders = np.concatenate([self.orders[kept], new])
        return _table(new, old)

    def totals(self) -> rivals.Bag:
        """What every contestant must have."""
        keys, where = np.unique(self.orders[:, 1], return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, where, self.orders[:, 2])
        rows = zip(keys.tolist(), total.tolist(), np.bincount(where).tolist(), strict=True)
        return dict.fromkeys(rows, 1)


def _table(new: Any, old: Any) -> Any:
    rows = np.concatenate([new, old])
    weights = np.concatenate([np.ones(len(new), np.int64), -np.ones(len(old), np.int64)])
    columns = [*rows.T.copy(), weights]
    return pa.table(dict(zip([*Order._fields, WEIGHT], columns, strict=True)))


# ---- the questions ----


class Bench:
    """What was asked for, and the session to ask in."""

    def __init__(self, spark: Any, folder: Path, asked: Any) -> None:
        self.spark, self.folder = spark, folder
        self.customers: int = asked.customers
        self.changes: list[int] = asked.changes
        self.rounds: int = asked.rounds or (3 if asked.quick else 100)
        sizes = asked.batch or (BATCH[:1] if asked.quick else BATCH)
        self.sizes = [min(each, 2 * self.customers) for each in sizes]
        self.batches = asked.batches or (2 if asked.quick else BATCHES)
        self.remarks: list[str] = []

    def started(self, work: str, *makers: Any) -> tuple[Orders, dict[str, Any]]:
        """Contestants that have all orders, and one batch more."""
        orders = Orders(self.customers)
        found = {each.__name__: each(self.spark, self.folder / work / each.__name__)
                 for each in makers}  # fmt: skip
        for table in (orders.load(), orders.change(100)):
            for name, each in list(found.items()):
                say(f"{work}: loading {table.num_rows:,} rows into {name}")
                try:
                    each.step(table)
                except Exception as error:
                    if not isinstance(each, KeptBySpark):
                        raise
                    why = str(error).partition(" SQLSTATE")[0].rpartition(": ")[2]
                    self.remarks.append(f"transformWithState is left out, as it failed: {why}")
                    del found[name]
        return orders, found

    def latency(self) -> list[Row]:
        orders, found = self.started("latency", View, Floor)
        rows = []
        for count in self.changes:
            times: dict[str, list[float]] = {name: [] for name in found}
            for turn in range(self.rounds):
                say(f"latency of {count:,} changes, round {turn + 1} of {self.rounds}")
                table = orders.change(count)
                for name in list(found)[:: 1 if turn % 2 else -1]:
                    times[name].append(found[name].step(table))
            row: Row = {"work": "latency", "changes": count, "rounds": self.rounds}
            for name, some in times.items():
                label = {"View": "", "Floor": "floor "}[name]
                row |= {f"{label}p50 s": float(np.percentile(some, 50)),
                        f"{label}p99 s": float(np.percentile(some, 99))}  # fmt: skip
            row["p50 / floor"] = row["p50 s"] / row["floor p50 s"]
            rows.append(row)
        self.verify("latency", orders, found, ["View"])
        return rows

    def sustained(self) -> list[Row]:
        makers: list[Callable[..., Any]] = [View, Trusting, Recompute]
        if remark := rivals.tws_missing():
            self.remarks.append(remark)
        else:
            makers.append(KeptBySpark)
        orders, found = self.started("sustained", *makers)
        rows = [self.paced(orders, found, size) for size in dict.fromkeys(self.sizes)]
        self.verify("sustained", orders, found, found)
        return rows

    def in_turns(
        self, work: str, orders: Orders, found: dict[str, Any], size: int
    ) -> dict[str, list[float]]:
        """The seconds that each took for batches of a size, in turns, every other time in the other
        order, as a stream has something to do behind its batch. One more before them does not
        count, as it has another size."""
        spent: dict[str, list[float]] = {name: [] for name in found}
        for turn in range(self.batches + 1):
            say(f"{work}: batch {turn} of {self.batches}, {size:,} changes each")
            table = orders.change(size)
            for name in list(found)[:: -1 if turn % 2 else 1]:
                spent[name].append(found[name].step(table))
        return {name: some[1:] for name, some in spent.items()}

    def paced(self, orders: Orders, found: dict[str, Any], size: int) -> Row:
        """How fast each is in batches of a size."""
        spent = self.in_turns("sustained", orders, found, size)
        row: Row = {"work": "sustained", "customers": self.customers, "changes": size}
        row["batches"] = self.batches
        speed = {name: size * self.batches / sum(some) for name, some in spent.items()}
        row |= {"changes/s": speed["View"], "unchecked changes/s": speed["Trusting"],
                "recompute changes/s": speed["Recompute"],
                "/ recompute": speed["View"] / speed["Recompute"]}  # fmt: skip
        if "KeptBySpark" in speed:
            row |= {"tws changes/s": speed["KeptBySpark"],
                    "/ tws": speed["View"] / speed["KeptBySpark"],
                    "unchecked / tws": speed["Trusting"] / speed["KeptBySpark"]}  # fmt: skip
        return row

    def merge(self) -> list[Row]:
        orders, found = self.started("merge", View, Merge)
        rows = []
        for count in dict.fromkeys(self.sizes):
            times = self.in_turns("merge", orders, found, count)
            row: Row = {"work": "merge", "orders": len(orders.orders), "changes": count}
            row["batches"] = self.batches
            for name, some in times.items():
                label = {"View": "", "Merge": "merge "}[name]
                row |= {f"{label}p50 s": float(np.percentile(some, 50)),
                        f"{label}p99 s": float(np.percentile(some, 99))}  # fmt: skip
            row["merge / view"] = sum(times["Merge"]) / sum(times["View"])
            rows.append(row)
        self.verify("merge", orders, found, found)
        return rows

    def correction(self) -> list[Row]:
        orders, rows = Orders(self.customers), {}
        for name, table in (("load", orders.load()), ("change", orders.change(2 * self.customers))):
            rows[name] = table.num_rows
            pq.write_table(table, self.folder / f"{name}.parquet")
        spent: dict[str, float] = {}
        for mode in ("bulk", "staged"):
            for name in rows:
                how = mode if name == "change" else "bulk"
                say(f"correction: {name} in mode {how}")
                path = self.folder / f"correction-{mode}"
                with TOTALS.run(ef.spark(self.spark, path=path, mode=how)) as view:
                    frame = self.spark.read.parquet(str(self.folder / f"{name}.parquet"))
                    begin = perf_counter()
                    view.step(orders=frame)
                    seconds = (perf_counter() - begin) / rows[name]
                    label = name if name == "load" else mode
                    spent[label] = min(seconds, spent.get(label, seconds))
                    if name == "change" and bag(view) != orders.totals():
                        raise AssertionError(f"correction: mode {mode} has something else")
        row: Row = {"work": "correction", "rows": rows["load"], "changes": rows["change"]}
        row |= {f"{name} µs/row": seconds * 1e6 for name, seconds in spent.items()}
        row |= {f"{name} / load": spent[name] / spent["load"] for name in ("bulk", "staged")}
        return [row]

    def verify(self, work: str, orders: Orders, found: dict[str, Any], names: Any) -> None:
        wanted = orders.totals()
        for name in names:
            if found[name].value() != wanted:
                raise AssertionError(f"{work}: {name} does not have what all rows give")
        for each in found.values():
            each.close()


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """Ten times as many changes a second as `transformWithState`."""
    return [
        {"target": f"sustained, {row['changes']:,} changes a batch: changes/s{how} / of "
         "transformWithState",
         "found": row[name], "": ">=", "wanted": 10.0,
         "met": "not asked" if quick else "met" if row[name] >= 10 else "NOT MET"}
        for row in rows if "/ tws" in row
        for how, name in (("", "/ tws"), (" without checks", "unchecked / tws"))
    ]  # fmt: skip


def say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> None:
    question = str(__doc__).partition("\n")[0]
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--work", default=",".join(WORKS))
    parser.add_argument("--customers", type=int)
    parser.add_argument("--changes", type=numbers, default=numbers("1,100,10_000"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--batches", type=int, help="of sustained and merge, of each size")
    parser.add_argument("--batch", type=numbers, help="changes of a batch there")
    asked = parser.parse_args()
    asked.customers = asked.customers or (10_000 if asked.quick else 100_000)
    from ebbflow.engine.spark.session import session

    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    settings = {"spark.driver.memory": "2g"}
    settings |= DELTA_SETTINGS if "merge" in asked.work.split(",") else {}
    spark = session("ebbflow-live", cores=2, **settings)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="ebbflow-live-") as folder:
        bench = Bench(spark, Path(folder), asked)
        rows = [row for work in asked.work.split(",") for row in getattr(bench, work)()]
        say("")
        judged = targets(rows, asked.quick)
        publish(asked, question, rows, judged, {"remarks": bench.remarks}, bench.remarks)
        spark.stop()


if __name__ == "__main__":
    main()
