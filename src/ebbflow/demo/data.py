"""The rows of the demo's shop, and what happens to them, all from one seed.

A *table* is a dict of columns (NumPy arrays) in the order of the row's fields, so that a million
rows are made in a moment; `rows_of` makes rows of them, and `arrow_of` an Arrow table. The shop
knows its tables as they are now. An *epoch* changes some of them: what is taken away has weight -1,
what is added 1, and a correction is one of each. No row is in an epoch twice.

The shop opens with two mistakes in it: its dearest line has a quantity of a million, and a customer
who brought many others was referred by nobody, but a referral says so. `correction` is the epoch
that puts both right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ebbflow.demo.shop import TYPES

Columns = dict[str, Any]
WEIGHT = "__weight"

COUNTRIES = np.array(
    ["Austria", "Belgium", "Chile", "Denmark", "Estonia", "Finland", "Ghana", "Hungary", "Italy",
     "Japan", "Kenya", "Latvia"], dtype=object,
)  # fmt: skip
CATEGORIES = np.array(
    ["books", "food", "garden", "music", "shoes", "sports", "tools", "toys"], dtype=object
)
START, ORDER_DAYS, DUE = date(2024, 1, 1), 366, 30
MISTYPED = 1_000_000
REFERRED = 0.3
"""The share of customers who were referred by another, most of them by one of the first."""
DAYS = np.array([str(START + timedelta(n)) for n in range(3 * ORDER_DAYS)], dtype=object)


class EpochRecipe(NamedTuple):
    """What an epoch is about: how many rows change, and the share of each thing that happens."""

    name: str
    size: int
    shares: dict[str, float]


ALL = {
    "delete": 0.1, "correct": 0.2, "move": 0.05, "relabel": 0.01, "reinstate": 0.02,
    "refund": 0.12, "cancel": 0.08, "pay": 0.1, "welcome": 0.02, "withdraw": 0.01, "order": 0.29,
}  # fmt: skip
RECIPES = (
    EpochRecipe("new orders", 10, {"order": 1}),
    EpochRecipe("refunds", 100, {"refund": 1}),
    EpochRecipe("corrected prices", 1_000, {"correct": 1}),
    EpochRecipe("everything at once", 5_000, ALL),
    EpochRecipe("customers move", 10, {"move": 1}),
    EpochRecipe("cancelled orders", 100, {"cancel": 1}),
    EpochRecipe("deleted orders", 1_000, {"delete": 1}),
    EpochRecipe("everything at once", 2_500, ALL),
)


@dataclass(frozen=True)
class ShopEpoch:
    """What changes, by the name of the input: columns and weights."""

    name: str
    changes: dict[str, Columns]

    @property
    def size(self) -> int:
        return sum(map(length, self.changes.values()))


class Shop:
    """A shop with about so many order lines, made from a seed.

    >>> shop = Shop(1_000, seed=7)
    >>> length(shop.tables["lines"])
    1000
    >>> epoch = shop.epoch(2)
    >>> epoch.name, epoch.size, sorted(epoch.changes)
    ('refunds', 100, ['refunds'])
    """

    def __init__(self, rows: int, seed: int = 0) -> None:
        self.rows = rows
        self.dice = np.random.default_rng(seed)
        self.referring = np.random.default_rng([seed, 1])
        self.tables: dict[str, Columns] = {}
        self._next = dict.fromkeys(("customers", "orders", "payments", "refunds"), 0)
        self._changed: dict[str, list[Columns]] = {}
        people, goods = max(20, rows // 15), min(2_000, max(24, rows // 300))
        self._start(people, goods)
        self._mistake = self._mistyped()
        self._changed.clear()

    def _start(self, people: int, goods: int) -> None:
        for name, row_type in TYPES.items():
            self.tables[name] = {field: np.array([], np.int64) for field in row_type._fields}
        number = np.arange(goods)
        category = CATEGORIES[number % len(CATEGORIES)]
        names = np.array([f"{each} {n}" for n, each in enumerate(category)], dtype=object)
        self._add("products", {"id": number, "name": names, "category": category})
        self._welcome(people)
        self._place(self._sizes(self.rows), people * 9 // 10)
        self._refund(max(1, self.rows // 100))
        self._cancel(max(1, self.rows // 150))

    def _mistyped(self) -> tuple[Any, Any]:
        """Type a quantity wrong in the dearest line that is not cancelled; gives the line and the
        right quantity.
        """
        lines = self.tables["lines"]
        stands = ~np.isin(lines["order"], self.tables["cancellations"]["order"])
        at = np.array([np.argmax(lines["price"] * stands)])
        right = lines["quantity"][at]
        self._replace("lines", at, quantity=MISTYPED)
        return at, right

    # ---- an epoch ----

    def correction(self) -> ShopEpoch:
        """The mistyped quantity is put right, and the wrong referral goes. Before any other epoch.

        >>> shop = Shop(100)
        >>> epoch = shop.correction()
        >>> change = epoch.changes["lines"]
        >>> change["quantity"].tolist(), change[WEIGHT].tolist()
        ([1000000, 3], [-1, 1])
        >>> epoch.changes["referrals"][WEIGHT].tolist()
        [-1]
        """
        self._changed = {}
        at, right = self._mistake
        self._replace("lines", at, quantity=right)
        self._take("referrals", self._wrong_referral())
        return self._epoch("a quantity corrected, a referral withdrawn")

    def _wrong_referral(self) -> Any:
        """Where the referral is whose customer brought the most others, of those whose referrer was
        referred too; or of all, if there is none such."""
        table = self.tables["referrals"]
        by = dict(zip(table["customer"].tolist(), table["by"].tolist(), strict=True))
        brought = dict.fromkeys(by, 0)
        for customer in sorted(by, reverse=True):  # who refers has come before
            brought[by[customer]] = brought.get(by[customer], 0) + brought[customer] + 1
        deep = [customer for customer in by if by[customer] in by] or list(by)
        most = max(deep, key=lambda customer: brought[customer], default=-1)
        return np.flatnonzero(table["customer"] == most)

    def epoch(self, number: int) -> ShopEpoch:
        """What happens next. Epochs count from 1; every eighth is of the same kind."""
        recipe = RECIPES[(number - 1) % len(RECIPES)]
        size = min(recipe.size, max(10, self.rows // 10))
        self._changed = {}
        for name, share in recipe.shares.items():
            act, each = self._acts[name]
            act(self, max(1, round(size * share / each)))
        return self._epoch(recipe.name)

    def _epoch(self, name: str) -> ShopEpoch:
        """What has changed since the epoch began, under a name."""
        changes = {name: _joined(parts) for name, parts in self._changed.items()}
        return ShopEpoch(name, {name: changes[name] for name in TYPES if name in changes})

    def _sizes(self, rows: int) -> Any:
        """How many lines each order has: 1 to 5, together `rows`."""
        sizes = self.dice.integers(1, 6, rows)
        ends = np.cumsum(sizes)
        last = int(np.searchsorted(ends, rows))
        sizes = sizes[: last + 1]
        sizes[-1] -= ends[last] - rows
        return sizes

    def _order(self, count: int) -> None:
        self._place(np.full(count, 3), length(self.tables["customers"]))

    def _place(self, sizes: Any, people: int) -> None:
        """Orders of so many lines each, most of them paid, by the first so many customers."""
        dice, count, total = self.dice, len(sizes), int(sizes.sum())
        ids = self._ids("orders", count)
        day = dice.integers(0, ORDER_DAYS, count)
        who = self.tables["customers"]["id"][_skewed(dice, people, count)]
        placed = {"id": ids, "customer": who, "day": DAYS[day], "due": DAYS[day + DUE]}
        self._add("orders", placed)
        first = np.cumsum(sizes) - sizes
        made = {
            "order": np.repeat(ids, sizes),
            "number": np.arange(total) - np.repeat(first, sizes) + 1,
            "product": _skewed(dice, length(self.tables["products"]), total),
            "quantity": dice.integers(1, 5, total),
            "price": dice.integers(99, 20_000, total),
        }
        self._add("lines", made)
        due = np.add.reduceat(made["quantity"] * made["price"], first)
        some = np.sort(dice.permutation(count)[: -(-count * 19 // 20)])
        after = day[some] + dice.integers(0, DUE + 15, len(some))
        self._receive(ids[some], after, due[some])

    def _receive(self, order: Any, day: Any, amount: Any) -> None:
        ids = self._ids("payments", len(order))
        self._add("payments", {"id": ids, "order": order, "day": DAYS[day], "amount": amount})

    def _pay(self, count: int) -> None:
        """Orders that are not paid yet."""
        unpaid = np.setdiff1d(self.tables["orders"]["id"], self.tables["payments"]["order"])
        order = self._some(unpaid, count)
        amount = self.dice.integers(99, 50_000, len(order))
        self._receive(order, self._some_days(len(order)), amount)

    def _refund(self, count: int) -> None:
        """A line is paid back, whole or in part."""
        lines = self.tables["lines"]
        at = self._some(np.arange(length(lines)), count)
        line = {field: column[at] for field, column in lines.items()}
        amount = line["quantity"] * line["price"] // self.dice.integers(1, 4, len(at))
        made = {"order": line["order"], "product": line["product"]}
        day = DAYS[self._some_days(len(at))]
        self._add("refunds", {"id": self._ids("refunds", len(at)), **made, "day": day,
                              "amount": amount})  # fmt: skip

    def _cancel(self, count: int) -> None:
        known = np.setdiff1d(self.tables["orders"]["id"], self.tables["cancellations"]["order"])
        order = self._some(known, count)
        self._add("cancellations", {"order": order, "day": DAYS[self._some_days(len(order))]})

    def _reinstate(self, count: int) -> None:
        """A cancellation is taken back."""
        self._take("cancellations", self._at("cancellations", count))

    def _correct(self, count: int) -> None:
        """The price of a line was wrong."""
        at = self._at("lines", count)
        price = self.tables["lines"]["price"][at]
        self._replace("lines", at, price=price + self.dice.integers(1, 500, len(at)))

    def _move(self, count: int) -> None:
        """Customers move to another country."""
        at = self._at("customers", count)
        here = np.searchsorted(COUNTRIES, self.tables["customers"]["country"][at])
        there = (here + self.dice.integers(1, len(COUNTRIES), len(at))) % len(COUNTRIES)
        self._replace("customers", at, country=COUNTRIES[there])

    def _relabel(self, count: int) -> None:
        """Products go to the next category."""
        at = self._at("products", min(count, 3))
        here = np.searchsorted(CATEGORIES, self.tables["products"]["category"][at])
        self._replace("products", at, category=CATEGORIES[(here + 1) % len(CATEGORIES)])

    def _welcome(self, count: int) -> None:
        """New customers."""
        ids = self._ids("customers", count)
        names = np.array([f"customer {n}" for n in ids], dtype=object)
        country = COUNTRIES[self.dice.integers(0, len(COUNTRIES), count)]
        self._add("customers", {"id": ids, "name": names, "country": country})
        referred = ids[(self.referring.random(count) < REFERRED) & (ids > 0)]
        by = (self.referring.random(len(referred)) ** 3 * referred).astype(np.int64)
        self._add("referrals", {"customer": referred, "by": by})

    def _withdraw(self, count: int) -> None:
        """Customers were not referred, as it turns out."""
        there = length(self.tables["referrals"])
        self._take("referrals", self.referring.choice(there, min(count, there), replace=False))

    def _delete(self, count: int) -> None:
        """Orders go, with everything that belongs to them, as if they had never been."""
        gone = self._some(self.tables["orders"]["id"], count)
        self._take("orders", np.flatnonzero(np.isin(self.tables["orders"]["id"], gone)))
        for name in ("lines", "payments", "refunds", "cancellations"):
            self._take(name, np.flatnonzero(np.isin(self.tables[name]["order"], gone)))

    # What happens, and about how many rows each time changes.
    _acts: ClassVar[dict[str, tuple[Callable[[Shop, int], None], int]]] = {
        "delete": (_delete, 5), "correct": (_correct, 2), "move": (_move, 2),
        "relabel": (_relabel, 2), "reinstate": (_reinstate, 1), "refund": (_refund, 1),
        "cancel": (_cancel, 1), "pay": (_pay, 1), "welcome": (_welcome, 1),
        "withdraw": (_withdraw, 1), "order": (_order, 5),
    }  # fmt: skip

    # ---- tables ----

    def _add(self, name: str, added: Columns) -> None:
        table = self.tables[name]
        new = length(table) == 0
        for field, column in added.items():
            table[field] = column if new else np.concatenate([table[field], column])
        self._note(name, added, 1)

    def _take(self, name: str, at: Any) -> None:
        table = self.tables[name]
        self._note(name, {field: column[at] for field, column in table.items()}, -1)
        for field, column in table.items():
            table[field] = np.delete(column, at)

    def _replace(self, name: str, at: Any, **new: Any) -> None:
        table = self.tables[name]
        self._note(name, {field: column[at] for field, column in table.items()}, -1)
        for field, column in new.items():
            table[field] = table[field].copy()
            table[field][at] = column
        self._note(name, {field: column[at] for field, column in table.items()}, 1)

    def _note(self, name: str, rows: Columns, weight: int) -> None:
        if length(rows):
            self._changed.setdefault(name, []).append(
                {**rows, WEIGHT: np.full(length(rows), weight)}
            )

    # ---- dice ----

    def _ids(self, name: str, count: int) -> Any:
        first = self._next[name]
        self._next[name] += count
        return np.arange(first, first + count)

    def _at(self, name: str, count: int) -> Any:
        return self._some(np.arange(length(self.tables[name])), count)

    def _some(self, values: Any, count: int) -> Any:
        return self.dice.choice(values, min(count, len(values)), replace=False)

    def _some_days(self, count: int) -> Any:
        return self.dice.integers(0, ORDER_DAYS, count)


def _skewed(dice: Any, below: int, count: int) -> Any:
    """Numbers below `below`, the small ones more often."""
    return (dice.random(count) ** 1.5 * below).astype(np.int64)


def _joined(parts: list[Columns]) -> Columns:
    return {field: np.concatenate([part[field] for part in parts]) for field in parts[0]}


def length(table: Columns) -> int:
    """How many rows a table has."""
    return len(next(iter(table.values())))


def rows_of(name: str, table: Columns) -> list[Any]:
    """The rows of a table, as the type of its input; weights are left out.

    >>> rows_of("cancellations", {"order": np.array([7]), "day": np.array(["2024-01-02"])})
    [Cancellation(order=7, day='2024-01-02')]
    """
    row_type = TYPES[name]
    columns = [table[each].tolist() for each in row_type._fields]
    return list(map(row_type._make, zip(*columns, strict=True)))


def arrow_of(table: Columns) -> Any:
    """The columns of a table as an Arrow table, with the weights if there are any."""
    import pyarrow

    def column(values: Any) -> Any:
        return pyarrow.array(values, pyarrow.string() if values.dtype == object else None)

    return pyarrow.table({field: column(values) for field, values in table.items()})
