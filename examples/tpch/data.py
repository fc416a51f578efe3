"""The data of TPC-H: made by `tpchgen-cli`, read as Arrow tables, and changed as it prescribes.

A refresh adds new orders (RF1), takes old ones away (RF2), or corrects prices (RF3), each with the
lines. New orders are made of old ones under keys that are free, as TPC-H leaves them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from shutil import which
from typing import Any, NamedTuple

from examples.tpch.tables import ROWS, LineItem, Order


def made(folder: Path, scale: float) -> dict[str, Any]:
    """The tables of a scale, as Arrow tables; made in a folder, unless they are there. Below 0.01
    there are too few suppliers for four different ones of each part."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if not (folder / "lineitem.parquet").exists():
        beside = Path(sys.executable).with_name("tpchgen-cli")
        tool = str(beside) if beside.exists() else which("tpchgen-cli")
        if tool is None:
            raise SystemExit("this needs tpchgen-cli: pip install tpchgen-cli")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [tool, "parquet", "-s", str(scale), f"--output-dir={folder}"],
            check=True, capture_output=True,
        )  # fmt: skip
    found = {}
    for name, row in ROWS.items():
        table = pq.read_table(folder / f"{name}.parquet", columns=list(row._fields))
        columns = [
            pc.cast(column, pa.string()) if pa.types.is_string_view(column.type) else column
            for column in table.columns
        ]
        found[name] = pa.table(dict(zip(row._fields, columns, strict=True)))
    return found


def rows_of(name: str, table: Any) -> list[Any]:
    """The rows of an Arrow table."""
    return list(map(ROWS[name]._make, zip(*(c.to_pylist() for c in table.columns), strict=True)))


def cents(count: int) -> Decimal:
    """So many hundredths.

    >>> cents(150)
    Decimal('1.50')
    """
    return Decimal(count).scaleb(-2)


class Refresh(NamedTuple):
    """What a refresh adds and takes away."""

    kind: str
    added: Mapping[str, list[Any]]
    removed: Mapping[str, list[Any]]

    @property
    def changes(self) -> dict[str, dict[Any, int]]:
        """The change of each table."""
        return {
            name: dict.fromkeys(self.removed.get(name, ()), -1)
            | dict.fromkeys(self.added.get(name, ()), 1)
            for name in ("orders", "lineitem")
        }


class Business:
    """The orders and lines as they are, and refreshes of them that are drawn from a seed."""

    def __init__(self, orders: list[Order], lines: list[LineItem], seed: int = 0) -> None:
        self.random = Random(seed)
        self.orders = {order.o_orderkey: order for order in orders}
        self.lines: dict[int, list[LineItem]] = {key: [] for key in self.orders}
        for line in lines:
            self.lines[line.l_orderkey].append(line)
        self.highest = max(self.orders, default=0)

    def insert(self, count: int) -> Refresh:
        """RF1: as many new orders."""
        orders, lines, known = [], [], list(self.orders)
        for _ in range(count):
            like, other = self.random.choice(known), self.random.choice(known)
            self.highest += 1
            order = self.orders[like]._replace(
                o_orderkey=self.highest, o_custkey=self.orders[other].o_custkey
            )
            its = [line._replace(l_orderkey=self.highest) for line in self.lines[like]]
            self.orders[self.highest], self.lines[self.highest] = order, its
            orders.append(order)
            lines += its
        return Refresh("insert", {"orders": orders, "lineitem": lines}, {})

    def delete(self, count: int) -> Refresh:
        """RF2: as many orders fewer."""
        gone = self.random.sample(list(self.orders), min(count, len(self.orders)))
        orders = [self.orders.pop(key) for key in gone]
        lines = [line for key in gone for line in self.lines.pop(key)]
        return Refresh("delete", {}, {"orders": orders, "lineitem": lines})

    def correct(self, count: int) -> Refresh:
        """RF3: other prices and discounts of the lines of as many orders."""
        was, now = [], []
        for key in self.random.sample(list(self.orders), min(count, len(self.orders))):
            for number, line in enumerate(self.lines[key]):
                other = line._replace(
                    l_extendedprice=line.l_extendedprice + cents(self.random.randrange(1, 1000)),
                    l_discount=cents(self.random.randrange(11)),
                )
                was.append(line)
                now.append(other)
                self.lines[key][number] = other
        return Refresh("correct", {"lineitem": now}, {"lineitem": was})

    def refresh(self, count: int) -> Refresh:
        """One of the three."""
        return self.random.choice([self.insert, self.delete, self.correct])(count)
