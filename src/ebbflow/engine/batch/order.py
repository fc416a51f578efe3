"""What nodes mean that look at the rows of a key in an order: the rows as a sorted list."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from ebbflow.engine.batch import (
    Weights,
    _bags,
    _call,
    _failed,
    _key_parts,
    _record,
    _sorted,
    _total,
    rows_of,
)
from ebbflow.errors import cause_of
from ebbflow.flow.plan.order import Fold, Match, Ordered, Over, Scan
from ebbflow.nan import one_nan
from ebbflow.operator import window
from ebbflow.ordering import total_order_key


def listed(node: Ordered, key: Any, group: Weights) -> list[Any]:
    """The rows of one key in order, each as often as it is there."""

    def place(row: Any) -> Any:
        return total_order_key(_call(node, node.order, row)), total_order_key(row)

    return [row for row in _sorted(node, list(group), place, key) for _ in range(group[row])]


@rows_of.register
def _scan(node: Scan, rows: Weights) -> Weights:
    said = []
    for key, group in _bags(node, rows):
        state = node.transition.start
        said += node.transition.first
        for row in listed(node, key, group):
            state, more = _stepped(node, node.transition.step, state, row)
            said += more
    return _total(node, [(one_nan(row), 1) for row in said])


@rows_of.register
def _fold(node: Fold, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        state = node.transition.start
        for row in listed(node, key, group):
            state = _stepped(node, node.transition.step, state, row)[0]
        out.append((_record(node, (*_key_parts(key, node.width), one_nan(state))), 1))
    return _total(node, out)


def _stepped(node: Ordered, step: Callable[..., Any], state: Any, row: Any) -> Any:
    try:
        return step(state, row)
    except Exception as error:
        raise _failed(node, error, {"state": state, "row": row}) from cause_of(error)


@rows_of.register
def _over(node: Over, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        there = listed(node, key, group)
        places = [_call(node, node.order, row) for row in there]
        columns = [column(node, each, there, places) for each in node.functions]
        out += [(node.merge(row, tuple(values)), 1) for row, *values in zip(there, *columns)]  # noqa: B905
    return _total(node, out)


def column(node: Over, function: Any, rows: list[Any], places: list[Any]) -> list[Any]:
    """The values of a window function for rows in order."""
    n, numbers = len(rows), range(len(rows))
    values = []
    if hasattr(function, "of"):
        values = [_call(node, function.of, row) for row in rows]
    match function:
        case window.RowNumber():
            return [i + 1 for i in numbers]
        case window.PercentRank():
            return [i / (n - 1) if n > 1 else 0.0 for i in _firsts(places)]
        case window.DenseRank():
            firsts = _firsts(places)
            numbered = {first: i + 1 for i, first in enumerate(dict.fromkeys(firsts))}
            return [numbered[first] for first in firsts]
        case window.Rank():
            return [i + 1 for i in _firsts(places)]
        case window.Ntile(n=parts):
            sizes = [n // parts + (i < n % parts) for i in range(parts)]
            return [i + 1 for i, size in enumerate(sizes) for _ in range(size)]
        case window.Lag(k=k, default=default):
            return [values[i - k] if i >= k else default for i in numbers]
        case window.Lead(k=k, default=default):
            return [values[i + k] if i + k < n else default for i in numbers]
        case window.NthValue(n=k):
            there = 1 <= abs(k) <= n
            return [values[k - 1 if k > 0 else k] if there else None] * n
        case window.FillForward():
            return list(accumulate(values, lambda known, new: known if new is None else new))
        case window.Island(gap=gap):
            return [places[i] for i in _starts(places, gap)]
        case window.IslandNumber(gap=gap):
            starts = _starts(places, gap)
            numbered = {start: i + 1 for i, start in enumerate(dict.fromkeys(starts))}
            return [numbered[start] for start in starts]
        case window.Decay(half_life=half):
            return _decayed(values, places, half)
        case window.RunningReducer(reducer=reducer, whole=True):
            return [one_nan(reducer(rows))] * n
        case window.RunningReducer(reducer=reducer):
            return _running(reducer, rows)
        case window.FrameReducer(low=low, high=high, by_range=True):
            frames = [
                (bisect_left(places, place + low), bisect_right(places, place + high))
                for place in places
            ]
        case window.FrameReducer(low=low, high=high):
            frames = [(max(i + low, 0), i + high + 1) for i in numbers]
    return [one_nan(function.reducer(rows[start:stop])) for start, stop in frames]


def _running(reducer: Any, rows: list[Any]) -> list[Any]:
    found, acc = [], reducer.start()
    for row in rows:
        acc = reducer.add(acc, row)
        found.append(one_nan(reducer.finish(acc)))
    return found


def _firsts(places: list[Any]) -> list[int]:
    """For each row, where the first is that has the same place."""
    found: list[int] = []
    for i, place in enumerate(places):
        found.append(found[-1] if i and (place,) == (places[i - 1],) else i)  # as NaN is NaN
    return found


def _starts(places: list[Any], gap: Any) -> list[int]:
    """For each row, where the run of rows starts that it is in."""
    found: list[int] = []
    for i, place in enumerate(places):
        found.append(found[-1] if i and place - places[i - 1] <= gap else i)
    return found


def _decayed(values: list[Any], places: list[Any], half: Any) -> list[Any]:
    found: list[Any] = []
    for i, value in enumerate(values):
        kept = found[-1] * 0.5 ** ((places[i] - places[i - 1]) / half) if found else 0.0
        found.append(kept + (0.0 if value is None else value))
    return found


@rows_of.register
def _match(node: Match, rows: Weights) -> Weights:
    out = []
    for key, group in _bags(node, rows):
        there, at = listed(node, key, group), 0
        while at < len(there):
            taken = _tried(node, there, at)
            if taken is None:
                at += 1
                continue
            values = [
                one_nan(step.reducer([there[i] for i in some])) if step.many else there[some[0]]
                for step, some in zip(node.steps, taken, strict=True)
            ]
            out.append((_record(node, (*_key_parts(key, node.width), *values)), 1))
            at = taken[-1][-1] + 1
    return _total(node, out)


def _tried(node: Match, rows: list[Any], first: int) -> list[list[int]] | None:
    """Which rows each step of a match takes that begins with a row; None where there is none."""
    taken: list[list[int]] = []
    start = _call(node, node.order, rows[first])
    for at in range(first, len(rows)):
        row, begun = rows[at], len(taken)
        waiting = [node.steps[begun - 1]] if begun and node.steps[begun - 1].many else []
        waiting += node.steps[begun : begun + 1]
        if node.within is not None and _call(node, node.order, row) - start > node.within:
            break
        if any(step.unless is not None and _call(node, step.unless, row) for step in waiting):
            break
        fitting = [step for step in waiting if _call(node, step.fits, row)]
        if not fitting and (node.adjacent or not taken):
            break
        if fitting:
            if fitting[0] is not (node.steps[begun - 1] if begun else None):
                taken.append([])
            taken[-1].append(at)
            if len(taken) == len(node.steps) and not node.steps[-1].many:
                break
    return taken if len(taken) == len(node.steps) else None
