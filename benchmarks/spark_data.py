"""The data of `spark.py`: three tables like those of TPC-H, their changes, and the programs.

A state of N rows is N / 51 customers, ten times as many orders, and about four times as many order
lines as orders. Prices are whole cents. All is drawn by NumPy from a seed, so that every run and
every machine has the same rows, and it is written to Parquet as Spark would write it (snappy).

A *change* has so many changed keys: half of them are rows that come, a quarter are corrections (the
old row goes, the new one comes) and a quarter are rows that go. They are drawn over the three
tables in proportion, and no key is drawn twice in one change. In a table of changes the column
`__weight` says 1 or -1. Lines may lose their order and orders their customer: then they are in no
join until it comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ebbflow as ef

WEIGHT = "__weight"
PART = 1_000_000
FIRST_DAY = int(np.datetime64("1992-01-01").astype(int))
DAYS = 2_400
NATIONS = ["ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "CHINA", "EGYPT", "ETHIOPIA", "FRANCE",
           "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO",
           "MOZAMBIQUE", "PERU", "ROMANIA", "RUSSIA", "SAUDI ARABIA", "UNITED KINGDOM",
           "UNITED STATES", "VIETNAM"]  # fmt: skip
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT", "5-LOW"]
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG", "SHIP", "TRUCK"]
MONTHS = [f"{1992 + n // 12}-{n % 12 + 1:02}" for n in range(80)]
WORDS = {"nation": NATIONS, "segment": SEGMENTS, "priority": PRIORITIES, "mode": MODES,
         "month": MONTHS}  # fmt: skip


class Customer(NamedTuple):
    custkey: int
    nation: str
    segment: str
    balance: int


class Order(NamedTuple):
    orderkey: int
    custkey: int
    month: str
    priority: str
    total: int


class Line(NamedTuple):
    orderkey: int
    line: int
    part: int
    supplier: int
    quantity: int
    price: int
    discount: int
    shipped: date
    mode: str


TYPES: dict[str, Any] = {"customer": Customer, "orders": Order, "lineitem": Line}
KEYS = {"customer": ["custkey"], "orders": ["orderkey"], "lineitem": ["orderkey", "line"]}
Columns = dict[str, Any]


# ---- programs ----


def inputs() -> tuple[Any, Any, Any]:
    return (
        ef.Input("customer", Customer),
        ef.Input("orders", Order),
        ef.Input("lineitem", Line),
    )


def sales() -> Any:
    """Every line with its order and its customer."""
    customer, orders, lineitem = inputs()
    return lineitem.join(orders.join(customer, on="custkey"), on="orderkey")


def whole() -> Any:
    """A three-way join and two group-bys."""
    joined = sales()
    return ef.program(
        revenue=joined.group_by("nation", "month").agg(revenue=ef.sum("price")),
        modes=joined.group_by("mode").agg(
            n=ef.count(), total=ef.sum("price"), average=ef.mean("price")
        ),
    )


def six() -> Any:
    """Two joins and four group-bys, one of them over another."""
    joined = sales()
    spent = joined.group_by("nation", "custkey").agg(spent=ef.sum("price"))
    return ef.program(
        revenue=joined.group_by("nation", "month").agg(revenue=ef.sum("price")),
        modes=joined.group_by("mode").agg(
            n=ef.count(), total=ef.sum("price"), average=ef.mean("price")
        ),
        best=spent.group_by("nation").agg(best=ef.max("spent"), customers=ef.count()),
    )


def two_way() -> Any:
    """Every line with its order."""
    _, orders, lineitem = inputs()
    return lineitem.join(orders, on="orderkey")


def simplest() -> Any:
    """Orders by customer: how many, and how much."""
    _, orders, _ = inputs()
    return orders.group_by("custkey").agg(total=ef.sum("total"), n=ef.count())


# ---- tables ----


class Table:
    """The rows of one input that are there now, as columns with room for more.

    Words are kept as their numbers. Which place a row has means nothing: a row that goes leaves its
    place to the last one.
    """

    def __init__(self, name: str, columns: Columns, fresh: Callable[[int], Columns]) -> None:
        self.name = name
        self.columns = columns
        self.size = len(next(iter(columns.values())))
        self.fresh = fresh

    def change(self, dice: np.random.Generator, count: int) -> pa.Table:
        """So many keys change; the change as a table with weights."""
        gone = count // 4
        corrected = count // 4
        coming = self.fresh(count - gone - corrected)
        places = dice.choice(self.size, gone + corrected, replace=False, shuffle=True)
        old = self.at(places)
        new = {n: c[:corrected].copy() for n, c in old.items()}
        self.correct(dice, new)
        for name, column in new.items():
            self.columns[name][places[:corrected]] = column
        self.drop(np.sort(places[corrected:]))
        self.append(coming)
        parts = [self.arrow(old, -1), self.arrow(new, 1), self.arrow(coming, 1)]
        return pa.concat_tables(parts)

    def at(self, places: Any) -> Columns:
        return {name: column[places] for name, column in self.columns.items()}

    def correct(self, dice: np.random.Generator, rows: Columns) -> None:
        """Other values under the same keys, so that each row is another than before."""
        for name, column in rows.items():
            if name in ("price", "total", "balance"):
                column += dice.integers(1, 10_000, len(column))
            elif name in ("nation", "month", "mode") and len(column):
                moved = dice.random(len(column)) < 0.5
                column[moved] = (column[moved] + 1) % len(WORDS[name])

    def drop(self, places: Any) -> None:
        left = self.size - len(places)
        holes = places[places < left]
        tail = np.setdiff1d(np.arange(left, self.size), places, assume_unique=True)
        for column in self.columns.values():
            column[holes] = column[tail]
        self.size = left

    def append(self, rows: Columns) -> None:
        wanted = self.size + len(next(iter(rows.values())))
        for name, column in self.columns.items():
            if wanted > len(column):
                column = np.resize(column, wanted + wanted // 8)
                self.columns[name] = column
            column[self.size : wanted] = rows[name]
        self.size = wanted

    def arrow(self, rows: Columns, weight: int | None = None) -> pa.Table:
        arrays = {name: _array(name, column) for name, column in rows.items()}
        count = len(next(iter(rows.values())))
        if weight is not None:
            arrays[WEIGHT] = pa.array(np.full(count, weight, np.int64))
        return pa.table(arrays)

    def write(self, folder: Path) -> int:
        """All rows as Parquet, in parts; the bytes that takes."""
        place = folder / self.name
        place.mkdir(parents=True)
        for number, start in enumerate(range(0, self.size, PART)):
            rows = self.at(slice(start, min(start + PART, self.size)))
            pq.write_table(self.arrow(rows), place / f"part-{number:03}.parquet")
        return sum(file.stat().st_size for file in place.iterdir())


def _array(name: str, column: Any) -> pa.Array:
    if name in WORDS:
        words = pa.array(WORDS[name], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(column), words).cast(pa.string())
    if name == "shipped":
        return pa.array(column.astype(np.int32), pa.int32()).cast(pa.date32())
    return pa.array(column.astype(np.int64))


class Tables:
    """The three inputs at one size, drawn from one seed."""

    def __init__(self, rows: int, seed: int = 7) -> None:
        self.rows = rows
        self.dice = dice = np.random.default_rng(seed)
        self.customers = max(1, rows // 51)
        self.orders = 10 * self.customers
        lines = rows - self.customers - self.orders
        each = dice.multinomial(lines, np.full(self.orders, 1 / self.orders))
        owners = np.repeat(np.arange(self.orders), each)
        numbers = np.arange(lines) - np.repeat(np.cumsum(each) - each, each)
        self.next = {"customer": self.customers, "orders": self.orders}
        self.tables = {
            "customer": Table("customer", self.customer(np.arange(self.customers)), self.customer),
            "orders": Table("orders", self.order(np.arange(self.orders)), self.order),
            "lineitem": Table("lineitem", self.line(owners, numbers), self.more_lines),
        }

    def change(self, count: int) -> dict[str, pa.Table]:
        """One change of so many keys, shared among the tables by their size, each at least one."""
        total = sum(table.size for table in self.tables.values())
        share = {n: max(1, count * t.size // total) for n, t in self.tables.items()}
        share["lineitem"] += count - sum(share.values())
        return {name: self.tables[name].change(self.dice, keys) for name, keys in share.items()}

    def write(self, folder: Path) -> int:
        return sum(table.write(folder) for table in self.tables.values())

    # ---- rows, drawn; given a number, so many new ones ----

    def customer(self, keys: Any) -> Columns:
        keys = self.keys("customer", keys)
        draw, count = self.dice.integers, len(keys)
        return {"custkey": keys, "nation": draw(0, len(NATIONS), count, np.int8),
                "segment": draw(0, len(SEGMENTS), count, np.int8),
                "balance": draw(-99_999, 999_999, count)}  # fmt: skip

    def order(self, keys: Any) -> Columns:
        keys = self.keys("orders", keys)
        draw, count = self.dice.integers, len(keys)
        return {"orderkey": keys, "custkey": draw(0, self.customers, count),
                "month": draw(0, len(MONTHS), count, np.int8),
                "priority": draw(0, len(PRIORITIES), count, np.int8),
                "total": draw(100_000, 50_000_000, count)}  # fmt: skip

    def line(self, owners: Any, numbers: Any) -> Columns:
        draw, count = self.dice.integers, len(owners)
        quantity = draw(1, 51, count, np.int32)
        return {"orderkey": owners, "line": numbers, "part": draw(0, 200_000, count, np.int32),
                "supplier": draw(0, 10_000, count, np.int32), "quantity": quantity,
                "price": quantity * draw(90_000, 200_000, count), "discount":
                draw(0, 11, count, np.int8), "shipped": FIRST_DAY + draw(0, DAYS, count, np.int32),
                "mode": draw(0, len(MODES), count, np.int8)}  # fmt: skip

    def more_lines(self, count: int) -> Columns:
        """New lines of old orders; their numbers go on where no line has been."""
        first = self.next.setdefault("lineitem", 1_000)
        self.next["lineitem"] += count
        owners = self.dice.integers(0, self.orders, count)
        return self.line(owners, np.arange(first, first + count))

    def keys(self, name: str, keys: Any) -> Any:
        if isinstance(keys, int):
            first = self.next[name]
            self.next[name] += keys
            return np.arange(first, first + keys)
        return keys


def write_change(change: dict[str, pa.Table], folder: Path) -> dict[str, Path]:
    """A change as one Parquet file for each table."""
    folder.mkdir(parents=True)
    files = {name: folder / f"{name}.parquet" for name in change}
    for name, file in files.items():
        pq.write_table(change[name], file)
    return files
