"""The floors of `local.py`: what one would write by hand, with dicts, for one query alone.

Each takes a change (input -> row -> weight) and gives the change of its result (row -> weight): the
old row of a group goes, the new one comes. They come in two kinds that differ in what they trust:

    trusted     the input is believed; nothing is kept of it that the result does not need
    kept        every input row is kept, and a row may go only if it is there

and in two kinds that differ in what they give: plain tuples, or rows of a NamedTuple type as the
engine gives. The second costs more, and is the one the engine is held to. These loops are meant to
be hard to beat: one pass over the change, names bound outside the loop, the row of a group kept as
it was given so that it need not be made again, and a NamedTuple row made by `tuple.__new__`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from local_data import Bag, Change


class Total(NamedTuple):
    key: int
    total: int
    n: int


class Visit(NamedTuple):
    click: int
    user: int
    page: int
    sale: int
    price: int


class Floor:
    """A program by hand. `step` is what is timed."""

    def prepare(self, change: Change) -> Any:
        return change

    def step(self, change: Any) -> Bag:
        raise NotImplementedError

    def value(self) -> Bag:
        raise NotImplementedError

    def close(self) -> None:
        pass


# ---- sum and count of every group ----


class Groups(Floor):
    """Plain rows, input trusted. First what comes to every group, then each group once."""

    def __init__(self) -> None:
        self.groups: dict[int, tuple[int, int, int]] = {}

    def step(self, change: Change) -> Bag:
        moved: dict[int, tuple[int, int]] = {}
        get = moved.get
        for (_, key, price), weight in change["orders"].items():
            if had := get(key):
                moved[key] = had[0] + price * weight, had[1] + weight
            else:
                moved[key] = price * weight, weight
        out: Bag = {}
        groups = self.groups
        find = groups.get
        for key, (total, n) in moved.items():
            if before := find(key):
                if not (total or n):
                    continue
                out[before] = -1
                total += before[1]
                n += before[2]
                if not n:
                    del groups[key]
                    continue
            groups[key] = after = (key, total, n)
            out[after] = 1
        return out

    def value(self) -> Bag:
        return dict.fromkeys(self.groups.values(), 1)


class NamedGroups(Groups):
    """The same with NamedTuple rows."""

    def step(self, change: Change) -> Bag:
        moved: dict[int, tuple[int, int]] = {}
        get = moved.get
        for (_, key, price), weight in change["orders"].items():
            if had := get(key):
                moved[key] = had[0] + price * weight, had[1] + weight
            else:
                moved[key] = price * weight, weight
        out: Bag = {}
        groups = self.groups
        find = groups.get
        new = tuple.__new__
        for key, (total, n) in moved.items():
            if before := find(key):
                if not (total or n):
                    continue
                out[before] = -1
                total += before[1]
                n += before[2]
                if not n:
                    del groups[key]
                    continue
            groups[key] = after = new(Total, (key, total, n))
            out[after] = 1
        return out


# ---- join ----


class Pairs(Floor):
    """Two indices, key -> row -> weight. Plain rows, input trusted.

    The change of the left meets the old right, then the change of the right meets the new left; a
    pair that came and went on the way is not given.
    """

    def __init__(self) -> None:
        self.clicks: dict[int, Bag] = {}
        self.sales: dict[int, Bag] = {}

    def step(self, change: Change) -> Bag:
        out: Bag = {}
        clicks, sales = self.clicks, self.sales
        find = sales.get
        for row, weight in change["clicks"].items():
            click, key, page = row
            if others := find(key):
                for (sale, _, price), count in others.items():
                    out[click, key, page, sale, price] = weight * count
            file(clicks, key, row, weight)
        find, seen = clicks.get, out.pop
        for row, weight in change["sales"].items():
            sale, key, price = row
            if others := find(key):
                for (click, _, page), count in others.items():
                    pair = click, key, page, sale, price
                    if total := seen(pair, 0) + weight * count:
                        out[pair] = total
            file(sales, key, row, weight)
        return out

    def value(self) -> Bag:
        return {
            (click, key, page, sale, price): n * m
            for key, group in self.clicks.items()
            for (click, _, page), n in group.items()
            for (sale, _, price), m in self.sales.get(key, {}).items()
        }


class NamedPairs(Pairs):
    """The same with NamedTuple rows."""

    def step(self, change: Change) -> Bag:
        out: Bag = {}
        clicks, sales = self.clicks, self.sales
        new = tuple.__new__
        find = sales.get
        for row, weight in change["clicks"].items():
            click, key, page = row
            if others := find(key):
                for (sale, _, price), count in others.items():
                    out[new(Visit, (click, key, page, sale, price))] = weight * count
            file(clicks, key, row, weight)
        find, seen = clicks.get, out.pop
        for row, weight in change["sales"].items():
            sale, key, price = row
            if others := find(key):
                for (click, _, page), count in others.items():
                    pair = new(Visit, (click, key, page, sale, price))
                    if total := seen(pair, 0) + weight * count:
                        out[pair] = total
            file(sales, key, row, weight)
        return out


def file(index: dict[int, Bag], key: int, row: Any, weight: int) -> None:
    """Add a row to its group in an index; what is empty vanishes."""
    group = index.get(key)
    if group is None:
        index[key] = {row: weight}
    elif total := group.get(row, 0) + weight:
        group[row] = total
    else:
        del group[row]
        if not group:
            del index[key]


# ---- the queries of paper 004; their rows are plain pairs ----


class Q1(Floor):
    """Rows of the left that are tens, of the right that are fives, where x % 500 == y % 1000."""

    def __init__(self) -> None:
        self.left: dict[int, Bag] = {}
        self.right: dict[int, Bag] = {}

    def step(self, change: Change) -> Bag:
        out: Bag = {}
        left, right = self.left, self.right
        find = right.get
        for x, weight in change["left"].items():
            if x % 10 == 0:
                key = x % 500
                if others := find(key):
                    for y, count in others.items():
                        out[x, y] = weight * count
                file(left, key, x, weight)
        find, seen = left.get, out.pop
        for y, weight in change["right"].items():
            if y % 5 == 0:
                key = y % 1000
                if others := find(key):
                    for x, count in others.items():
                        pair = x, y
                        if total := seen(pair, 0) + weight * count:
                            out[pair] = total
                file(right, key, y, weight)
        return out

    def value(self) -> Bag:
        return {
            (x, y): n * m
            for key, group in self.left.items()
            for x, n in group.items()
            for y, m in self.right.get(key, {}).items()
        }


class Q2(Q1):
    """The greatest pair: all pairs, and a heap from which those that went are dropped when met."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: Bag = {}
        self.heap: list[tuple[int, int]] = []
        self.greatest: tuple[int, int] | None = None

    def step(self, change: Change) -> Bag:
        pairs, heap = self.pairs, self.heap
        find = pairs.get
        for pair, weight in super().step(change).items():
            had = find(pair, 0)
            if total := had + weight:
                pairs[pair] = total
                if not had:
                    heappush(heap, (-pair[0], -pair[1]))
            else:
                del pairs[pair]
        if len(heap) > 3 * len(pairs) + 100:
            self.heap = heap = [(-x, -y) for x, y in pairs]
            heapify(heap)
        while heap and (-heap[0][0], -heap[0][1]) not in pairs:
            heappop(heap)
        before, after = self.greatest, (-heap[0][0], -heap[0][1]) if heap else None
        self.greatest = after
        if before == after:
            return {}
        return {(pair,): sign for pair, sign in ((before, -1), (after, 1)) if pair is not None}

    def value(self) -> Bag:
        return {} if self.greatest is None else {(self.greatest,): 1}


# ---- input rows kept ----


class Kept(Floor):
    """A floor that first looks whether what goes is there, and keeps what comes."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.rows: dict[str, Bag] = {}
        self.value = floor.value  # type: ignore[method-assign]

    def step(self, change: Change) -> Bag:
        for name, bag in change.items():
            rows = self.rows.setdefault(name, {})
            find = rows.get
            for row, weight in bag.items():
                total = find(row, 0) + weight
                if total > 0:
                    rows[row] = total
                elif total == 0:
                    del rows[row]
                else:
                    self.undo(change, name, row)
                    raise ValueError(f"{row} of {name} is not there")
        return self.floor.step(change)

    def undo(self, change: Change, last: str, bad: Any) -> None:
        """Take back what was done before a row was found absent."""
        for name, bag in change.items():
            rows = self.rows[name]
            for row, weight in bag.items():
                if name == last and row == bad:
                    return
                rows[row] = rows.get(row, 0) - weight
                if not rows[row]:
                    del rows[row]


class Whole(Floor):
    """A floor that also keeps its result, row by row, where it could only be computed again."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.result: Bag = {}

    def step(self, change: Change) -> Bag:
        out = self.floor.step(change)
        result = self.result
        find = result.get
        for row, weight in out.items():
            if total := find(row, 0) + weight:
                result[row] = total
            else:
                del result[row]
        return out

    def value(self) -> Bag:
        return self.result


PLAIN = {"group": Groups, "join": Pairs, "q1": Q1, "q2": Q2}
NAMED = {"group": NamedGroups, "join": NamedPairs, "q1": Q1, "q2": Q2}
