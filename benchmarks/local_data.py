"""The data of `local.py`: rows, and changes that every contestant takes alike.

A *change* gives for every input the rows that come (weight 1) and go (weight -1). Rows that go are
there before the change, so every change is valid; rows that come are new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

Bag = dict[Any, int]
Change = dict[str, Bag]


class Order(NamedTuple):
    id: int
    key: int
    price: int


class Click(NamedTuple):
    click: int
    user: int
    page: int


class Sale(NamedTuple):
    sale: int
    user: int
    price: int


@dataclass
class Sizes:
    """How much of everything: the sizes asked for, or small ones for a first look."""

    rows: int = 1_000_000
    keys: int = 10_000
    side: int = 200_000
    batch: int = 1_000
    numbers: int = 64_000
    load_rows: int = 1_000_000
    load_side: int = 500_000
    batches: int = 20
    singles: int = 1_000


SMALL = Sizes(rows=10_000, keys=1_000, side=4_000, batch=100, numbers=4_000, load_rows=20_000,
              load_side=10_000, batches=5, singles=200)  # fmt: skip


class Table:
    """The rows of one input: some may go, others come."""

    def __init__(self, rows: list[Any], row_type: Any, keys: int, dice: Random) -> None:
        self.rows = rows
        self.row_type = row_type
        self.keys = keys
        self.dice = dice
        self.next_id = len(rows)

    def change(self, size: int) -> Bag:
        """Half of it goes and half comes, in turns; a single row comes or goes as it falls."""
        gone = size // 2 if size > 1 else self.dice.randrange(2)
        places = self.dice.sample(range(len(self.rows)), gone)
        coming = iter([self.new() for _ in range(size - gone)])
        change: Bag = {}
        kept = []
        for place in places:
            change[self.rows[place]] = -1
            for row in coming:
                change[row] = 1
                self.rows[place] = row
                break
            else:
                kept.append(place)
        for place in sorted(kept, reverse=True):
            self.rows[place] = self.rows[-1]
            self.rows.pop()
        for row in coming:
            change[row] = 1
            self.rows.append(row)
        return change

    def new(self) -> Any:
        row = self.row_type(self.next_id, self.dice.randrange(self.keys), self.dice.randrange(1000))
        self.next_id += 1
        return row


class Tables:
    """Inputs by name, the change that loads them, and changes of them."""

    def __init__(self, tables: dict[str, Table]) -> None:
        self.tables = tables
        self.load: Change = {name: dict.fromkeys(t.rows, 1) for name, t in tables.items()}

    def change(self, size: int) -> Change:
        """One change, its rows shared among the inputs."""
        share = max(1, size // len(self.tables))
        return {name: table.change(share) for name, table in self.tables.items()}


def order_rows(rows: int, keys: int, dice: Random) -> Iterator[Order]:
    return (Order(n, dice.randrange(keys), dice.randrange(1000)) for n in range(rows))


def side_rows(row_type: Any, rows: int, dice: Random) -> Iterator[Any]:
    """Every key has 1 to 10 rows."""
    key = left = 0
    for n in range(rows):
        if not left:
            key, left = key + 1, dice.randint(1, 10)
        yield row_type(n, key, dice.randrange(1000))
        left -= 1


def orders(rows: int, keys: int) -> Tables:
    dice = Random(5)
    return Tables({"orders": Table(list(order_rows(rows, keys, dice)), Order, keys, dice)})


def sides(rows: int) -> Tables:
    dice = Random(7)
    keys = rows * 2 // 11
    return Tables({
        "clicks": Table(list(side_rows(Click, rows, dice)), Click, keys, dice),
        "sales": Table(list(side_rows(Sale, rows, dice)), Sale, keys, dice),
    })  # fmt: skip


class Numbers:
    """The two bags of numbers of paper 004."""

    def __init__(self, size: int) -> None:
        from paper_004 import Data

        self.data = Data(size)
        self.load: Change = {"left": dict(self.data.left), "right": dict(self.data.right)}

    def change(self, size: int) -> Change:
        left, right = self.data.change(size)
        return {"left": left, "right": right}


def merged(changes: list[Change]) -> Change:
    """Several changes, one after the other, as one."""
    total: Change = {}
    for change in changes:
        for name, bag in change.items():
            into = total.setdefault(name, {})
            for row, weight in bag.items():
                weight += into.pop(row, 0)
                if weight:
                    into[row] = weight
    return total


def in_parts(rows: Iterator[Any], size: int = 10_000) -> Iterator[Bag]:
    """Rows as bags of some at a time, each forgotten when the next is made."""
    part: Bag = {}
    for row in rows:
        part[row] = 1
        if len(part) == size:
            yield part
            part = {}
    if part:
        yield part
