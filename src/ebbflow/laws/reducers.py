"""The laws of reducers.

A reducer is held to its laws on the accumulators that rows can lead to, and on no others: a case is
always a collection of `rows`, from which the accumulator is folded. The verdict that follows from
them is in `ebbflow.laws.verdicts`.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ebbflow.laws.law import Equal, Law, alike, own
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet

Rows = tuple[Any, ...]
AnyReducer = Reducer[Any, Any, Any]


def _look_alike(_: AnyReducer) -> Equal:
    """Results are equal, or look the same: NaN is not equal to itself."""
    return lambda a, b: alike(a, b) or repr(a) == repr(b)


def _and_shown(r: AnyReducer) -> Equal:
    """Accumulators are the same for the reducer, and so is what it shows of them.

    Its `equal=` is about accumulators, so it does not excuse a wrong result; with one, floats in
    results may differ in the last digits. An `equal=` that is given to `check` decides alone.
    Without a `result` the accumulator itself is shown, and `equal` has said what is to be said.
    """

    def shows(acc: Any) -> Any:
        try:
            return r.finish(acc)
        except Exception as error:  # such as the mean of no rows
            return type(error)

    equal = own(r)

    def same(a: Any, b: Any) -> bool:
        if r.result is None or not equal(a, b):
            return bool(equal(a, b))
        left, right = shows(a), shows(b)
        drifts = r.equal is not operator.eq and isinstance(left, float)
        return _look_alike(r)(left, right) or (drifts and math.isclose(left, right, abs_tol=1e-12))

    return same


def _kept(
    use: Callable[[AnyReducer, Any, Any, Any], Any], after: bool = True
) -> Callable[..., tuple[Any, Any]]:
    """An accumulator after it was used, and as it was before; it has the value if `after`.

    One that is not equal to its copy, such as a `missing = object()` to begin with, has been kept
    where nothing inside it has changed.
    """

    def sides(r: AnyReducer, rows: Rows, value: Any) -> tuple[Any, Any]:
        other = r.fold(rows) if r.merge is not None else None
        acc = r.fold((*rows, value) if after else rows)
        before = copy.deepcopy(acc)
        inside = None if own(r)(acc, before) else (_state(acc),)
        use(r, acc, value, other)
        if inside is not None and alike(inside, (_state(acc),)):
            return acc, acc
        mine = acc is vars(r).get("shelter", (None,))[0]
        return copy.deepcopy(acc) if mine else acc, before

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
    "acc after add(acc, value) is acc, acc = fold(rows)", ONE,
    _kept(lambda r, acc, value, other: r.add(acc, value), after=False), _IN_PLACE, own,
)  # fmt: skip
REMOVE_KEEPS = Law(
    "REMOVE_KEEPS", "remove changes the accumulator it is given in place",
    "acc after remove(acc, value) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: r.removed(acc, value)), _IN_PLACE, own,
)  # fmt: skip
MERGE_KEEPS = Law(
    "MERGE_KEEPS", "merge changes an accumulator it is given in place",
    "acc after merge(acc, other) and merge(other, acc) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: _merged_both_ways(r, acc, other)), _IN_PLACE, own,
)  # fmt: skip
RESULT_KEEPS = Law(
    "RESULT_KEEPS", "result changes the accumulator it is given in place",
    "acc after result(acc) is acc, acc = fold(rows + value)", ONE,
    _kept(lambda r, acc, value, other: r.finish(acc)), _IN_PLACE, own,
)  # fmt: skip
FOLD_REPEATS = Law(
    "FOLD_REPEATS", "the same rows give different accumulators", "fold(rows) == fold(rows)",
    {"rows": "rows"}, lambda r, rows: (r.fold(rows), r.fold(rows)),
    "take out what is random or remembered between calls; accumulators of a class of your own need "
    "an __eq__, or pass equal=", own,
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
    "count them, or order by a key of the row)", _and_shown,
)  # fmt: skip
FOLD_ANY_ORDER = Law(
    "FOLD_ANY_ORDER", "the order of the rows matters", "fold(rows) == fold(rows in another order)",
    {"rows": "rows", "order": "order"}, lambda r, rows, order: (r.fold(rows), r.fold(order)),
    ADD_COMMUTES.remedy, own,
)  # fmt: skip
REMOVE_INVERTS = Law(
    "REMOVE_INVERTS", "remove does not undo add",
    "remove(add(acc, value), value) == acc or RECOMPUTE, acc = fold(rows)", ONE, _inverts,
    "keep in the accumulator what remove needs, return RECOMPUTE where it cannot know, or leave "
    "remove out", own,
)  # fmt: skip
REMOVE_COMMUTES = Law(
    "REMOVE_COMMUTES", "the order in which rows are removed matters",
    "remove(remove(acc, x), y) == remove(remove(acc, y), x), acc = fold(rows + x + y)", TWO,
    _removes_commute, REMOVE_INVERTS.remedy, own,
)  # fmt: skip
REMOVE_ADD_COMMUTE = Law(
    "REMOVE_ADD_COMMUTE", "it matters whether a row is removed before or after another is added",
    "add(remove(acc, x), y) == remove(add(acc, y), x), acc = fold(rows + x)", TWO, _remove_add,
    "", own,
)  # fmt: skip
INCREMENTAL = Law(
    "INCREMENTAL", "updating gives another value than recomputing",
    "update(fold(rows), delta) == fold(rows + delta), for a sequence of valid deltas",
    {"rows": "rows", "updates": "updates"}, _incremental, REMOVE_INVERTS.remedy, _and_shown,
)  # fmt: skip
MERGES = Law(
    "MERGES", "merge does not put two collections together",
    "merge(fold(rows), fold(more)) == fold(rows + more)", {"rows": "rows", "more": "rows"},
    lambda r, rows, more: (r.merge(r.fold(rows), r.fold(more)), r.fold(rows + more)),
    "merge must give what folding all rows of both gives, or be left out", own,
)  # fmt: skip
REPEATS = Law(
    "REPEATS", "repeat is not the same as one by one",
    "repeat(fold(rows), value, count) == fold(rows + count times value)",
    {**ONE, "count": "count"},
    lambda r, rows, value, count: (
        r.repeat(r.fold(rows), value, count), r.fold((*rows, *[value] * count)),
    ),
    "mend repeat, or leave it out", own,
)  # fmt: skip
REPEATS_BACK = Law(
    "REPEATS_BACK", "repeat does not take out what it put in",
    "repeat(fold(rows + count times value), value, -count) == fold(rows) or RECOMPUTE",
    {**ONE, "count": "count"}, _repeats_back, "mend repeat, or leave it out", own,
)  # fmt: skip
ALWAYS_ANSWERS = Law(
    "ALWAYS_ANSWERS", "remove asks to recompute, but is declared partial=False",
    "remove(add(acc, value), value) is not RECOMPUTE", ONE,
    lambda r, rows, value: (_once(r, r.add(r.fold(rows), value), value) is RECOMPUTE, False),
    "leave partial=False out: then the rows are kept for it",
)  # fmt: skip


class Sheltered(Reducer[Any, Any, Any]):
    """A reducer whose first accumulator is as it was whenever it starts.

    An `add` that changes it in place would leave the user's own object changed, and every case
    would begin where the last one ended.
    """

    def start(self) -> Any:
        zero = super().start()
        if "shelter" not in vars(self):
            self.shelter = zero, _state(zero)
        self.restore()
        return zero

    def restore(self) -> None:
        """Put the first accumulator back as it was."""
        zero, state = vars(self).get("shelter", (None, None))
        if state is None:
            return
        if isinstance(zero, list):
            zero[:] = copy.deepcopy(state)
        elif isinstance(zero, (dict, set)):
            zero.clear()
            zero.update(copy.deepcopy(state))
        else:
            vars(zero).clear()
            vars(zero).update(copy.deepcopy(state))

    def __repr__(self) -> str:
        self.restore()
        return super().__repr__()


def _state(zero: Any) -> Any:
    """What could be changed in an accumulator, as it is now; None where that is nothing."""
    with suppress(Exception):
        if isinstance(zero, (list, dict, set)):
            return copy.deepcopy(zero)
        if isinstance(getattr(zero, "__dict__", None), dict) and not isinstance(zero, type):
            return copy.deepcopy(vars(zero))
    return None


def sheltered(r: AnyReducer) -> Sheltered:
    """A copy of the reducer that restores the user's first accumulator before every fold."""
    twin = object.__new__(Sheltered)
    vars(twin).update(vars(r))
    return twin


def reducer_laws(r: AnyReducer) -> list[Law]:
    """The laws that a reducer owes, by the functions it has.

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
