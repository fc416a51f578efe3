"""What does durability cost per epoch, and does memory stay bounded?

Orders are joined with their customers and summed up by customer: three million orders, ten for each
customer. They are loaded in large epochs; then each epoch replaces 500 random orders by others,
which is 1,000 changes. The same program runs in memory, with its state on disk, with its state on
disk and in columns, with its state on disk and a cap on memory far below it, and the last with
every tenth epoch flushed; beside them a program of dicts, written by hand, in memory. Each is in a
process of its own. Reopening in columns reads nothing, and the step behind it everything. *Own*
memory is what the process cannot give back; *mapped* are pages of files,
which the system takes back when it needs them. Python with its libraries is counted in both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from harness import Row, main

import ebbflow as ef

QUESTION = "What does durability cost per epoch, and does memory stay bounded?"
BATCH = 500
EACH = 10
LOAD = 20_000
KINDS: dict[str, dict[str, Any]] = {
    "in memory": {},
    "by hand": {},
    "on disk": {"path": True},
    "in columns": {"path": True, "columns": True},
    "capped": {"path": True, "memory": True},
    "capped, grouped": {"path": True, "memory": True, "flush_every": 10},
}


class Order(NamedTuple):
    id: int
    customer: int
    price: int


class Customer(NamedTuple):
    customer: int
    city: str


def by_customer() -> Any:
    orders = ef.Input("orders", Order)
    customers = ef.Input("customers", Customer, key="customer")
    joined = orders.join(customers, on="customer")
    return joined.group_by("city", "customer").agg(n=ef.count(), total=ef.sum("price"))


def order(number: int, version: int) -> Order:
    """An order, which need not be kept to be known."""
    return Order(number, number // EACH, (number + 31 * version) % 1_000)


class ByHand:
    """The same with dicts: all orders by customer, the cities, and a count and a sum for each."""

    def __init__(self) -> None:
        self.orders: dict[int, dict[Order, int]] = {}
        self.cities: dict[int, str] = {}
        self.cells: dict[tuple[str, int], tuple[int, int]] = {}

    def step(self, *, customers: Any = (), orders: Any = ()) -> dict[Any, int]:
        """What changes in the sums; customers come before their orders, and stay."""
        self.cities.update(customers)
        given = orders if isinstance(orders, dict) else dict.fromkeys(orders, 1)
        old: dict[tuple[str, int], tuple[int, int]] = {}
        for row, weight in given.items():
            there = self.orders.setdefault(row.customer, {})
            total = there.get(row, 0) + weight
            if total < 0:
                raise ValueError(f"{row} is not there")
            if total:
                there[row] = total
            else:
                del there[row]
            key = self.cities[row.customer], row.customer
            count, price = self.cells.get(key, (0, 0))
            old.setdefault(key, (count, price))
            self.cells[key] = count + weight, price + weight * row.price
        made: dict[Any, int] = {}
        for key, was in old.items():
            if was[0]:
                made[*key, *was] = -1
            made[*key, *self.cells[key]] = 1
        return made

    def close(self) -> None:
        """There is nothing to close."""


def memory() -> tuple[float, float]:
    """Megabytes of its own, and of files mapped into it; 0 where that is not known."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    found = dict(line.split(":") for line in lines if line.startswith("Rss"))
    return int(found["RssAnon"].split()[0]) / 1_024, int(found["RssFile"].split()[0]) / 1_024


def load(view: Any, size: int) -> None:
    cities = [f"city {i}" for i in range(1_000)]
    for start in range(0, size // EACH, LOAD):
        numbers = range(start, min(start + LOAD, size // EACH))
        view.step(customers=[Customer(i, cities[i % 1_000]) for i in numbers])
    for start in range(0, size, LOAD):
        view.step(orders=[order(i, 0) for i in range(start, min(start + LOAD, size))])


def one(kind: str, folder: str, size: int, epochs: int, cap: int) -> Row:
    """One contestant, from an empty folder to a reopened view."""
    options = dict(KINDS[kind])
    if "path" in options:
        options["path"] = folder
    if "memory" in options:
        options["memory"] = cap << 20
    view: Any = ByHand() if kind == "by hand" else by_customer().run(**options)
    begin = perf_counter()
    load(view, size)
    loading = perf_counter() - begin
    dice, versions = Random(1), dict[int, int]()
    times, own, mapped = [], *map(list, zip(memory(), strict=True))
    for _ in range(epochs):
        change: dict[Order, int] = {}
        for number in dice.sample(range(size), BATCH):
            version = versions.get(number, 0)
            versions[number] = version + 1
            change[order(number, version)] = -1
            change[order(number, version + 1)] = 1
        begin = perf_counter()
        view.step(orders=change)
        times.append(perf_counter() - begin)
        now = memory()
        own.append(now[0])
        mapped.append(now[1])
    row: Row = {
        "orders": size,
        "state": kind,
        "cap MB": cap if "memory" in options else "",
        "load s": loading,
        "epochs/s": epochs / sum(times),
        "median ms": median(times) * 1e3,
        "95 % ms": sorted(times)[len(times) * 95 // 100] * 1e3,
        "own MB": max(own),
        "mapped MB": max(mapped),
    }
    view.close()
    del view
    if "path" in options:
        row["disk MB"] = sum(f.stat().st_size for f in Path(folder).iterdir()) / (1 << 20)
        begin = perf_counter()
        view = by_customer().run(**options)
        row["reopen ms"] = (perf_counter() - begin) * 1e3
        assert view.rebuilt == ()
        number = next(iter(versions))
        view.step(orders={order(number, versions[number]): -1})
        row["and a step ms"] = (perf_counter() - begin) * 1e3
        view.close()
    return row


def measure(quick: bool) -> list[Row]:
    size, epochs, cap = (5_000, 6, 1) if quick else (3_000_000, 200, 128)
    rows = []
    for kind in list(KINDS)[: 5 if quick else None]:
        folder = tempfile.mkdtemp(prefix="bench-durable-")
        try:
            asked = [kind, folder, str(size), str(epochs), str(cap)]
            command = [sys.executable, __file__, "one", *asked]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout))
        finally:
            shutil.rmtree(folder)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name, "") for name in columns} for row in rows]
    by_name = {row["state"]: row for row in rows}
    for row in rows:
        row["times the ms in memory"] = row["median ms"] / rows[0]["median ms"]
        row["epochs/s / on disk"] = row["epochs/s"] / by_name["on disk"]["epochs/s"]
        row["own MB / by hand"] = row["own MB"] / by_name["by hand"]["own MB"]
    found = by_name["in columns"]
    judged = [
        ("epochs/s of columns / on disk", found["epochs/s / on disk"], ">=", 4.0),
        ("s to reopen in columns, and a step", found["and a step ms"] / 1e3, "<=", 2.0),
        ("own MB of columns / by hand", found["own MB / by hand"], "<=", 0.5),
    ]
    for what, value, sign, wanted in judged:
        holds = value <= wanted if sign == "<=" else value >= wanted
        met = "not judged" if quick else "met" if holds else "NOT MET"
        print(f"{what}: {value:.3g} ({sign} {wanted} wanted: {met})", file=sys.stderr)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        kind, folder, *numbers = sys.argv[2:]
        print(json.dumps(one(kind, folder, *map(int, numbers))))
    else:
        main(QUESTION, measure)
