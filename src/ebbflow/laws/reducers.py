"""The laws of reducers.

A reducer is held to its laws on the accumulators that rows can lead to, and on no others: a case is
always a collection of `rows`, from which the accumulator is folded. The verdict that follows from
them is in `ebbflow.laws.verdicts`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from ebbflow.errors import LawBroken
from ebbflow.laws.law import Equal, Law
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet

Rows = tuple[Any, ...]
AnyReducer = Reducer[Any, Any, Any]


def _own(reducer: AnyReducer) -> Equal:
    return reducer.equal


def _look_alike(_: AnyReducer) -> Equal:
    """Results are equal, or look the same: NaN is not equal to itself."""
    return lambda a, b: bool(a == b) or repr(a) == repr(b)


def _kept(use: Callable[[AnyReducer, Any, Any, Any], Any]) -> Callable[..., tuple[Any, Any]]:
    """An accumulator after it was used, and as it was before."""

    def sides(r: AnyReducer, rows: Rows, value: Any) -> tuple[Any, Any]:
        acc = r.fold((*rows, value))
        before = copy.deepcopy(acc)
        use(r, acc, value, r.fold(rows) if r.merge is not None else None)
        return acc, before

    return sides


def _merged_both_ways(r: AnyReducer, acc: Any, other: Any) -> None:
    assert r.merge is not None
    r.merge(acc, other)
    r.merge(other, acc)


def _once(r: AnyReducer, acc: Any, value: Any) -> Any:
    return RECOMPUTE if r.remove is None else r.remove(acc, value)


def _inverts(r: AnyReducer, rows: Rows, value: Any) -> tuple[Any, Any]:
    acc = r.fold(rows)
    back = _once(r, r.add(acc, value), value)
    return acc if back is RECOMPUTE else back, acc


def _removes_commute(r: AnyReducer, rows: Rows, x: Any, y: Any) -> tuple[Any, Any]:
    orders = [_without(r, r.fold((*rows, x, y)), order) for order in ((x, y), (y, x))]
    asked = any(acc is RECOMPUTE for acc in orders)
    return (None, None) if asked else (orders[0], orders[1])


def _without(r: AnyReducer, acc: Any, values: Rows) -> Any:
    for value in values:
        acc = RECOMPUTE if acc is RECOMPUTE else _once(r, acc, value)
    return acc


def _remove_add(r: AnyReducer, rows: Rows, x: Any, y: Any) -> tuple[Any, Any]:
    acc = r.fold((*rows, x))
    first, second = _once(r, acc, x), _once(r, r.add(acc, y), x)
    if first is RECOMPUTE or second is RECOMPUTE:
        return None, None
    return r.add(first, y), second


def _incremental(r: AnyReducer, rows: Rows, updates: Sequence[ZSet[Any]]) -> tuple[Any, Any]:
    acc, bag = r.fold(rows), ZSet.of(rows)
    for delta in updates:
        acc = r.update(acc, delta, bag)
        bag = bag + delta
    return acc, r.fold(bag)


def _repeats_back(r: AnyReducer, rows: Rows, value: Any, count: int) -> tuple[Any, Any]:
    assert r.repeat is not None
    acc = r.fold(rows)
    back = r.repeat(r.fold((*rows, *[value] * count)), value, -count)
    return acc if back is RECOMPUTE else back, acc


ONE = {"rows": "rows", "value": "value"}
TWO = {"rows": "rows", "x": "value", "y": "value"}

_IN_PLACE = (
    "return a new accumulator (`acc + [value]`, not `acc.append(value)`): the old one may be "
    "shared by another group, and is what a rejected change goes back to"
)
ADD_KEEPS = Law(
    "ADD_KEEPS", "add changes the accumulator it is given in place",
    "acc after add(acc, value) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: r.add(acc, value)), _IN_PLACE, _own,
)  # fmt: skip
REMOVE_KEEPS = Law(
    "REMOVE_KEEPS", "remove changes the accumulator it is given in place",
    "acc after remove(acc, value) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: r.removed(acc, value)), _IN_PLACE, _own,
)  # fmt: skip
MERGE_KEEPS = Law(
    "MERGE_KEEPS", "merge changes an accumulator it is given in place",
    "acc after merge(acc, other) and merge(other, acc) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: _merged_both_ways(r, acc, other)), _IN_PLACE, _own,
)  # fmt: skip
RESULT_KEEPS = Law(
    "RESULT_KEEPS", "result changes the accumulator it is given in place",
    "acc after result(acc) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: r.finish(acc)), _IN_PLACE, _own,
)  # fmt: skip
FOLD_REPEATS = Law(
    "FOLD_REPEATS", "the same rows give different accumulators", "fold(rows) == fold(rows)",
    {"rows": "rows"}, lambda r, rows: (r.fold(rows), r.fold(rows)),
    "take out what is random or remembered between calls; accumulators of a class of your own need "
    "an __eq__, or pass equal=", _own,
)  # fmt: skip
RESULT_REPEATS = Law(
    "RESULT_REPEATS", "the same accumulator gives different results",
    "result(fold(rows)) == result(fold(rows))", {**ONE},
    lambda r, rows, value: (r((*rows, value)), r((*rows, value))),
    "take out what is random or remembered between calls", _look_alike,
)  # fmt: skip
ADD_COMMUTES = Law(
    "ADD_COMMUTES", "the order of the rows matters",
    "add(add(acc, x), y) == add(add(acc, y), x), acc = fold(rows)", TWO,
    lambda r, rows, x, y: (r.fold((*rows, x, y)), r.fold((*rows, y, x))),
    "rows come in any order: make the accumulator the same for all of them (keep values sorted, "
    "count them, or order by a key of the row)", _own,
)  # fmt: skip
FOLD_ANY_ORDER = Law(
    "FOLD_ANY_ORDER", "the order of the rows matters", "fold(rows) == fold(rows in another order)",
    {"rows": "rows", "order": "order"}, lambda r, rows, order: (r.fold(rows), r.fold(order)),
    ADD_COMMUTES.remedy, _own,
)  # fmt: skip
REMOVE_INVERTS = Law(
    "REMOVE_INVERTS", "remove does not undo add",
    "remove(add(acc, value), value) == acc or RECOMPUTE, acc = fold(rows)", ONE, _inverts,
    "keep in the accumulator what remove needs, return RECOMPUTE where it cannot know, or leave "
    "remove out", _own,
)  # fmt: skip
REMOVE_COMMUTES = Law(
    "REMOVE_COMMUTES", "the order in which rows are removed matters",
    "remove(remove(acc, x), y) == remove(remove(acc, y), x), acc = fold(rows + x + y)", TWO,
    _removes_commute, REMOVE_INVERTS.remedy, _own,
)  # fmt: skip
REMOVE_ADD_COMMUTE = Law(
    "REMOVE_ADD_COMMUTE", "it matters whether a row is removed before or after another is added",
    "add(remove(acc, x), y) == remove(add(acc, y), x), acc = fold(rows + x)", TWO, _remove_add,
    "", _own,
)  # fmt: skip
INCREMENTAL = Law(
    "INCREMENTAL", "updating gives another value than recomputing",
    "update(fold(rows), delta) == fold(rows + delta), for a sequence of valid deltas",
    {"rows": "rows", "updates": "updates"}, _incremental, REMOVE_INVERTS.remedy, _own,
)  # fmt: skip
MERGES = Law(
    "MERGES", "merge does not put two collections together",
    "merge(fold(rows), fold(more)) == fold(rows + more)", {"rows": "rows", "more": "rows"},
    lambda r, rows, more: (r.merge(r.fold(rows), r.fold(more)), r.fold(rows + more)),
    "merge must give what folding all rows of both gives, or be left out", _own,
)  # fmt: skip
REPEATS = Law(
    "REPEATS", "repeat is not the same as one by one",
    "repeat(fold(rows), value, count) == fold(rows + count times value)",
    {**ONE, "count": "count"},
    lambda r, rows, value, count: (
        r.repeat(r.fold(rows), value, count), r.fold((*rows, *[value] * count)),
    ),
    "mend repeat, or leave it out", _own,
)  # fmt: skip
REPEATS_BACK = Law(
    "REPEATS_BACK", "repeat does not take out what it put in",
    "repeat(fold(rows + count times value), value, -count) == fold(rows) or RECOMPUTE",
    {**ONE, "count": "count"}, _repeats_back, "mend repeat, or leave it out", _own,
)  # fmt: skip
ALWAYS_ANSWERS = Law(
    "ALWAYS_ANSWERS", "remove asks to recompute, but is declared partial=False",
    "remove(add(acc, value), value) is not RECOMPUTE", ONE,
    lambda r, rows, value: (_once(r, r.add(r.fold(rows), value), value) is RECOMPUTE, False),
    "leave partial=False out: then the rows are kept for it",
)  # fmt: skip


def reducer_laws(r: AnyReducer) -> list[Law]:
    """What a reducer owes, by what it has.

    >>> [law.name for law in reducer_laws(Reducer(0, max))]
    ['FOLD_REPEATS', 'ADD_KEEPS', 'ADD_COMMUTES']
    """
    laws = [FOLD_REPEATS, ADD_KEEPS]
    laws += [REMOVE_KEEPS] * (r.remove is not None) + [MERGE_KEEPS] * (r.merge is not None)
    laws += [RESULT_KEEPS, RESULT_REPEATS] * (r.result is not None)
    laws += [ADD_COMMUTES] + [REPEATS] * (r.repeat is not None)
    if r.remove is not None:
        laws += [REMOVE_INVERTS, REMOVE_COMMUTES]
        laws += [REPEATS_BACK] * (r.repeat is not None)
        laws += [INCREMENTAL] + [ALWAYS_ANSWERS] * (r.partial is False)
    return laws + [MERGES] * (r.merge is not None)


# ---- a first look ----


def first_failure(
    r: AnyReducer, law: Law, pool: Sequence[Any], equal: Equal | None, examples: int, seed: int
) -> LawBroken | None:
    """A case that breaks the law, among many that are drawn from a pool of rows at random.

    This costs microseconds a case. Only where something is wrong is the smallest such case looked
    for, which is slow.
    """
    dice = Random(seed)
    for _ in range(examples):
        case: dict[str, Any] = {}
        for name, kind in law.variables.items():
            case[name] = _DRAWN[kind](dice, pool, case.get("rows", ()))
        try:
            law.test(r, equal=equal, **case)
        except LawBroken as broken:
            return broken
    return None


def _some_rows(dice: Random, pool: Sequence[Any], _: Rows) -> Rows:
    rows = dice.choices(pool, k=dice.choice((0, 1, 2, 3, 4, 9)))
    return (*rows, *(dice.choices(rows, k=dice.randrange(4)) if rows else ()))


def _some_updates(dice: Random, pool: Sequence[Any], rows: Rows) -> tuple[ZSet[Any], ...]:
    updates: list[ZSet[Any]] = []
    bag = ZSet.of(rows)
    for _ in range(dice.randrange(1, 4)):
        left = [row for row in bag.rows() if dice.random() < 0.5]
        updates.append(ZSet.of((*left, *_some_rows(dice, pool, ()))) - bag)
        bag = bag + updates[-1]
    return tuple(updates)


_DRAWN: dict[str, Callable[[Random, Sequence[Any], Rows], Any]] = {
    "rows": _some_rows,
    "value": lambda dice, pool, rows: dice.choice(rows if rows and dice.random() < 0.5 else pool),
    "order": lambda dice, pool, rows: tuple(dice.sample(rows, len(rows))),
    "count": lambda dice, pool, rows: dice.randrange(1, 4),
    "updates": _some_updates,
}
