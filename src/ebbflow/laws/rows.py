"""Rows to try the laws of reducers on: few and many, alike and cancelling, never others than asked.

Laws break where values collide, and some break only beyond a limit that a reducer has inside. So
most cases have a few rows, and some have many. What is found is made small in
`ebbflow.laws.smaller`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from ebbflow.errors import LawBroken, Text, canonical
from ebbflow.laws.law import Equal, Law
from ebbflow.laws.reducers import (
    ADD_COMMUTES,
    ALWAYS_ANSWERS,
    INCREMENTAL,
    MERGES,
    REMOVE_INVERTS,
    TWO,
    AnyReducer,
    Rows,
)
from ebbflow.zset import ZSet

# ---- rows to try ----


def contains(source: Any, row: Any) -> bool | None:
    """Whether a row is among the elements; None where that is not known.

    Whether a strategy can give a value is found out by looking for one that lies at least as far
    from zero: Hypothesis makes what it finds small, and so comes by the value itself.
    """
    from ebbflow.laws.search import NoSuchExample, SearchStrategy, Unsatisfiable, first_found

    if isinstance(source, Collection):
        return row in source
    if not isinstance(source, SearchStrategy):
        return contains(source(), row) if callable(source) else None
    seen: list[Any] = []

    def found(x: Any, near: Callable[[Any, Any], bool]) -> bool:
        seen.extend([x] if x == row else [])
        return bool(x == row) or near(x, row)

    for near in (_beyond, operator.eq):
        with suppress(NoSuchExample, Unsatisfiable):
            first_found(source, partial(found, near=near), examples=200)
        if seen:
            return True
    return None


def _beyond(x: Any, row: Any) -> bool:
    if isinstance(row, tuple) and isinstance(x, tuple):
        return len(x) == len(row) and all(map(_beyond, x, row))
    if isinstance(row, (int, float)) and isinstance(x, (int, float)) and row:
        return x >= row if row > 0 else x <= row
    return bool(x == row)


class Pool(list[Any]):
    """Rows to draw from. `near` are groups of numbers among them that cancel or are neighbours.

    `tied` are groups of rows that share fields, made of the fields of rows; see
    `ebbflow.laws.ties`. `doubts` is for what breaks on such rows where it is not known whether they
    can occur.
    """

    def __init__(self, rows: Sequence[Any], source: Any) -> None:
        super().__init__(rows)
        self.source = source
        self.tied: list[list[Any]] = []
        self.doubts: list[str] = []
        numbers = [x for x in dict.fromkeys(rows) if type(x) in (int, float) and math.isfinite(x)]
        numbers = sorted(numbers, key=abs)
        known = {x: x for x in numbers}  # 0 for 0.0: as it is among the rows
        few = [x for x in numbers if x][:2]
        for y in dict.fromkeys(y for x in few for y in _neighbours(x)):
            if y not in known and contains(source, y):
                self.append(known.setdefault(y, y))
        groups = ((x, *(known[y] for y in _neighbours(x) if y in known)) for x in numbers[:100])
        self.near = [group for each in groups if len(group := list(dict.fromkeys(each))) > 1]


def _neighbours(x: Any) -> tuple[Any, ...]:
    return -x, type(x)(0), x + 1, x - 1


# ---- a first look ----

MANY = 3000
_OF_MANY_ROWS = (ADD_COMMUTES, REMOVE_INVERTS, INCREMENTAL, MERGES, ALWAYS_ANSWERS)


def first_failure(
    r: AnyReducer, law: Law, pool: Pool, equal: Equal | None, examples: int, seed: int
) -> LawBroken | None:
    """A case that breaks the law, among many that are drawn from a pool of rows at random.

    Most cases have a few rows, some have tens or hundreds or one row many times, and where the
    accumulator does not grow with the rows, `remove` is tried once after thousands. This costs
    microseconds a case. Only where something is wrong is the smallest such case looked for, which
    is slow.
    """
    dice = Random(seed)
    few, heavy = law not in _OF_MANY_ROWS, False
    for turn in range(examples):
        if turn == 4 and (not few or "count" in law.variables):
            heavy = _text_length(r, pool) > 3000
        case: dict[str, Any] = {}
        for name, role in law.variables.items():
            now = turn + ((heavy and turn % 10 == 4) or ((few or heavy) and turn % 10 == 9))
            case[name] = _DRAWN[role](dice, pool, case.get("rows", ()), now)
        broken = broken_by(r, law, equal, case)
        if broken is not None:
            return broken
    if law is ADD_COMMUTES:
        return _unordered(r, law, pool, equal, dice)
    if law is not REMOVE_INVERTS or heavy or _text_length(r, pool) > 200:
        return None
    rows = tuple(dice.choices(pool, k=MANY))
    return broken_by(r, law, equal, {"rows": rows, "value": rows[0]})


def tied_failure(
    r: AnyReducer, law: Law, pool: Pool, equal: Equal | None, examples: int
) -> LawBroken | None:
    """A case that breaks the law among rows that tie. That some of them raise does not count."""
    dice = Random(0)
    pairs = [(group[0], other) for group in pool.tied for other in group[1:]]
    cases = [{"rows": (), "x": x, "y": y} for x, y in pairs] if law.variables == TWO else []
    for _ in range(examples // 2):
        group = dice.choice(pool.tied)
        near, case = Pool(group, None), dict[str, Any]()
        for name, role in law.variables.items():
            case[name] = _DRAWN[role](dice, near, case.get("rows", ()), 0)
        cases.append(case)
    found = (broken_by(r, law, equal, case) for case in cases)
    return next((each for each in found if each and not isinstance(each.left, Text)), None)


def _unordered(
    r: AnyReducer, law: Law, pool: Pool, equal: Equal | None, dice: Random
) -> LawBroken | None:
    """Two orders of some rows that give different accumulators, as the two neighbours that do.

    One order becomes the other by changing places of neighbours, and one such change matters. It
    is looked for by halving.
    """
    same = law.equality(r) if equal is None else equal
    for size in (8, 24, 24, 60):
        rows = tuple(dice.choices(pool, k=size))
        wanted = tuple(dice.sample(rows, size))
        first = r.fold(rows)
        if same(first, r.fold(wanted)):
            continue
        orders = _swaps(rows, wanted)
        low, high = 0, len(orders) - 1
        while high - low > 1:
            middle = (low + high) // 2
            apart = not same(first, r.fold(orders[middle]))
            low, high = (low, middle) if apart else (middle, high)
        one, other = orders[low], orders[high]
        at = next(i for i, (x, y) in enumerate(zip(one, other, strict=True)) if x is not y)
        case = {"rows": one[:at], "x": one[at], "y": one[at + 1]}
        if (broken := broken_by(r, law, equal, case)) is not None:
            return broken
    return None


def _swaps(rows: Rows, wanted: Rows) -> list[Rows]:
    """Orders from one to another, each with two neighbours of the one before in turned order."""
    now, orders = list(rows), [rows]
    for at, row in enumerate(wanted):
        place = next(i for i in range(at, len(now)) if now[i] is row)
        for i in range(place, at, -1):
            now[i - 1], now[i] = now[i], now[i - 1]
            if now[i - 1] is not now[i]:
                orders.append(tuple(now))
    return orders


def _text_length(r: AnyReducer, pool: Pool) -> int:
    """How long an accumulator of some rows is when printed: what grows is tried on fewer rows."""
    return len(canonical(r.fold(pool[:60])))


def broken_by(
    r: AnyReducer, law: Law, equal: Equal | None, case: Mapping[str, Any]
) -> LawBroken | None:
    """How a law is broken by a case; None where it holds."""
    try:
        law.test(r, equal=equal, **case)
    except LawBroken as broken:
        return broken
    return None


def _some_rows(dice: Random, pool: Pool, _: Rows, turn: int) -> Rows:
    if turn % 40 == 9:
        return (*[dice.choice(pool)] * 50, *dice.choices(pool, k=dice.randrange(3)))
    if turn % 20 == 19:
        return tuple(dice.choices(pool, k={19: 300, 99: 100}.get(turn, 30)))
    if turn % 5 == 2 and pool.near:
        return tuple(dice.choices(dice.choice(pool.near), k=dice.randrange(1, 5)))
    rows = dice.choices(pool, k=dice.choice((0, 1, 2, 3, 4, 9)))
    return (*rows, *(dice.choices(rows, k=dice.randrange(4)) if rows else ()))


def _a_row(dice: Random, pool: Pool, rows: Rows, turn: int) -> Any:
    if turn % 5 == 2 and pool.near and rows:
        group = [near for near in pool.near if rows[0] in near]
        return dice.choice([*rows, *dice.choice(group or pool.near)])
    return dice.choice(rows if rows and dice.random() < 0.5 else pool)


def _a_count(dice: Random, pool: Pool, rows: Rows, turn: int) -> int:
    if turn % 50 == 14:
        return dice.choice((100, 300, 1000))
    return dice.randrange(10, 100) if turn % 10 == 4 else dice.randrange(1, 4)


def _some_updates(dice: Random, pool: Pool, rows: Rows, turn: int) -> tuple[ZSet[Any], ...]:
    updates: list[ZSet[Any]] = []
    bag = ZSet.of(rows)
    for _ in range(dice.randrange(1, 4)):
        left = [row for row in bag.rows() if dice.random() < 0.5]
        few = turn if turn % 5 == 2 else 0
        updates.append(ZSet.of((*left, *_some_rows(dice, pool, (), few))) - bag)
        bag = bag + updates[-1]
    return tuple(updates)


_DRAWN: dict[str, Callable[[Random, Pool, Rows, int], Any]] = {
    "rows": _some_rows,
    "value": _a_row,
    "order": lambda dice, pool, rows, turn: tuple(dice.sample(rows, len(rows))),
    "count": _a_count,
    "updates": _some_updates,
}
