"""A feed of files for streams, and what a view of it must be; and a process that runs one.

File number n of `orders` brings five orders, and takes back some of those that earlier files
brought, so the data stay as many as they are. File n of `customers` says where some customers live
now. All is drawn from n, so whoever knows how many files there are knows what the view must be.

    python -m tests.spark.live_feed FOLDER    feeds a view from FOLDER, until it is killed
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq

import ebbflow as ef
from ebbflow.engine.batch import evaluate


class Customer(NamedTuple):
    id: int
    country: str
    version: int


class Order(NamedTuple):
    id: int
    customer: int
    cents: int


class Sale(NamedTuple):
    country: str
    cents: int


customers = ef.Input("customers", Customer, key="id", sequence="version")
orders = ef.Input("orders", Order)
REVENUE = (
    orders.join(
        customers, left_on="customer", right_on="id",
        select=lambda order, customer: Sale(customer.country, order.cents), type=Sale,
    )
    .group_by("country")
    .agg(n=ef.count(), cents=ef.sum("cents"), dearest=ef.max("cents"))
)  # fmt: skip
SCHEMAS = {
    "orders": "id long, customer long, cents long, weight long",
    "customers": "id long, country string, version long",
}


# ---- files ----


def added(n: int) -> list[Order]:
    dice = Random(n)
    return [Order(n * 5 + i, dice.randrange(12), dice.randrange(1_000)) for i in range(5)]


def order_changes(n: int) -> list[tuple[Order, int]]:
    gone = [each for back, part in ((3, slice(0, 2)), (7, slice(2, 5))) if n >= back
            for each in added(n - back)[part]]  # fmt: skip
    return [*((row, 1) for row in added(n)), *((row, -1) for row in gone)]


def moves(n: int) -> list[Customer]:
    dice = Random(-1 - n)
    return [Customer(id, dice.choice(["Chile", "Italy", "Japan"]), n)
            for id in dice.sample(range(12), 3)]  # fmt: skip


def drop(folder: Path, n: int) -> None:
    """Put file n of both inputs where the streams look for files, as a whole."""
    rows = {
        "orders": [{**row._asdict(), "weight": weight} for row, weight in order_changes(n)],
        "customers": [row._asdict() for row in moves(n)],
    }
    for name, some in rows.items():
        put(folder / name, n, some)


def put(folder: Path, n: int, rows: list[dict[str, Any]]) -> None:
    """One file of JSON lines; files count in the order of their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{n}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(hidden, (1_700_000_000 + n, 1_700_000_000 + n))
    os.rename(hidden, folder / f"{n:06d}.json")


def contents(files: int) -> dict[str, ef.ZSet[Any]]:
    """The rows of the inputs after so many files of each."""
    rows: dict[Any, int] = {}
    people: dict[int, Customer] = {}
    for n in range(files):
        for row, weight in order_changes(n):
            rows[row] = rows.get(row, 0) + weight
        people |= {each.id: each for each in moves(n)}
    return {"orders": ef.ZSet(rows), "customers": ef.ZSet.of(people.values())}


def expected(files: int) -> ef.ZSet[Any]:
    return evaluate(REVENUE.plan, contents(files))["output"]


# ---- a view of them ----


def opened(spark: Any, folder: Path, **options: Any) -> Any:
    """The view of a feed, with its log of changes."""
    view = REVENUE.run(ef.spark(spark, path=folder / "state", **options))
    view.write_changes(folder / "log")
    return view


def source(spark: Any, folder: Path, name: str, files: int = 1) -> Any:
    (folder / name).mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", files)
    return reader.json(str(folder / name))


def follow(view: Any, folder: Path, files: int = 1, **options: Any) -> Any:
    """Both inputs, one epoch for each batch."""
    spark = view.session
    people = ef.upsert(source(spark, folder, "customers", files))
    sold = source(spark, folder, "orders", files)
    return view.stream(customers=people, orders=sold, **options)


def log_of(folder: Path) -> dict[int, dict[tuple[Any, ...], int]]:
    """What the log of changes has, by epoch, read without Spark."""
    found = {}
    for epoch in folder.glob("epoch=*"):
        changes: dict[tuple[Any, ...], int] = {}
        for file in epoch.glob("*.parquet"):
            for row in pq.ParquetFile(file).read().to_pylist():
                weight = row.pop("__weight")
                key = tuple(row.values())
                changes[key] = changes.get(key, 0) + weight
        found[int(epoch.name.partition("=")[2])] = changes
    return dict(sorted(found.items()))


def require_right(view: Any, folder: Path, files: int) -> None:
    """The view is what computing everything gives, and so is the sum of the log, which has every
    epoch once."""
    value = view.zset()
    assert value == expected(files)
    log = log_of(folder / "log")
    assert sorted(log) == list(range(1, view.epoch + 1))
    total: dict[tuple[Any, ...], int] = {}
    for changes in log.values():
        for row, weight in changes.items():
            total[row] = total.get(row, 0) + weight
        assert all(weight >= 0 for weight in total.values())
    assert {row: n for row, n in total.items() if n} == {tuple(r): n for r, n in value.items()}


def main(folder: Path) -> None:
    """Feed a view until this is killed; each epoch is told on a line of its own."""
    from ebbflow.engine.spark.session import session

    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    quick = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": java}
    spark = session("ebbflow-feed", cores=1, **quick)
    view = opened(spark, folder, **json.loads(os.environ.get("EBBFLOW_FEED", "{}")))
    view.each_epoch(lambda change, epoch: print("epoch", epoch, flush=True), name="said")
    follow(view, folder).wait()


class Process:
    """A process that feeds a view, to be killed."""

    def __init__(self, folder: Path, **options: Any) -> None:
        environment = {**os.environ, "EBBFLOW_FEED": json.dumps(options)}
        self.running = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.live_feed", str(folder)],
            cwd=Path(__file__).parents[2], env=environment, start_new_session=True,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said = 0
        """The last epoch that a sink was given."""

    def until(self, epoch: int) -> None:
        """Wait until an epoch was said to be done."""
        out: Any = self.running.stdout
        while self.said < epoch:
            line = out.readline()
            assert line, "the process has ended"
            if line.startswith("epoch "):
                self.said = int(line.split()[1])

    def kill(self, *, alone: bool = False) -> int:
        """Kill it, with its Java unless `alone`; gives the last epoch that it said."""
        if alone:
            self.running.kill()
        else:
            os.killpg(self.running.pid, signal.SIGKILL)
        rest, _ = self.running.communicate()
        said = [int(line.split()[1]) for line in rest.splitlines() if line.startswith("epoch ")]
        return max([self.said, *said])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
