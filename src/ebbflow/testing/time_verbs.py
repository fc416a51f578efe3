"""Verbs of generated programs on rows with a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from ebbflow.flow.clock import clock
from ebbflow.testing.functions import Choices
from ebbflow.testing.grown import Grown, Pool, Verb, one
from ebbflow.testing.reducers import SORTS, reducer

CLOCKS = ("int", "time", "zoned")
WINDOW = ("window_start", "window_end")
HOURS = timedelta(hours=5)
TIMES = {"int": int, "time": datetime, "zoned": Annotated[datetime, UTC]}


def _timed(pool: Pool, choices: Choices) -> tuple[Grown, str, str, Any] | None:
    """A bag of rows with a field that is a time: that field, its dtype, and a unit of time."""

    def fits(each: Grown) -> bool:
        timed = {*CLOCKS} & {*each.shape.dtypes}
        return each.bag and bool(each.shape.names and timed) and not {*WINDOW} & {*each.shape.names}

    of = one(pool, choices, fits)
    if of is None:
        return None
    fields = zip(of.shape.names, of.shape.dtypes, strict=True)
    name, dtype = choices.pick([each for each in fields if each[1] in CLOCKS][::-1])
    return of, name, dtype, 1 if dtype == "int" else HOURS


def _windows_reduced(verb: str) -> Verb:
    """Windows, and right behind them what is computed of each: one node, or panes."""

    def apply(pool: Pool, choices: Choices) -> Grown | None:
        timed = _timed(pool, choices)
        if timed is None:
            return None
        of, time, time_dtype, unit = timed
        per = choices.pick((None, *of.shape.names))
        dtypes = dict(zip(of.shape.names, of.shape.dtypes, strict=True)) | dict.fromkeys(
            WINDOW, time_dtype
        )
        size = choices.pick((2, 1, 3)) * unit
        if verb == "session":
            rows = of.rows.session(time, size, per=per)
        else:
            rows = of.rows.sliding(time, size * choices.pick((2, 3, 1)), size)
        front = [*WINDOW] if choices.pick((0, 1)) else [choices.pick(WINDOW)]
        if per is not None and choices.pick((1, 1, 1, 0)):
            front.insert(choices.pick((0, 1)), per)
        results, results_of = {}, []
        for name in choices.pick((("n",), ("n", "total"))):
            result = reducer(of.shape, choices, choices.pick((("library",), SORTS)))
            results[name if name not in front else f"{name}2"], dtype = result
            results_of.append(dtype)
        made = rows.group_by(*front).agg(**results)
        return of.then(made, [*(dtypes[name] for name in front), *results_of], degree=1)

    return apply


def _within(pool: Pool, choices: Choices) -> Grown | None:
    timed = _timed(pool, choices)
    if timed is None:
        return None
    of, time, dtype, unit = timed
    now = clock(f"now_{dtype}", TIMES[dtype])
    return of.then(of.rows.within(time, now, choices.pick((2, 1, 3)) * unit))


def _top(pool: Pool, choices: Choices) -> Grown | None:
    """The first rows of each key, with those that tie, or numbered, or both."""
    of = one(pool, choices, lambda each: each.bag and "place" not in each.shape.names)
    if of is None:
        return None
    by = of.shape.key(choices).given
    per = of.shape.key(choices).given if choices.pick((1, 0)) else None
    ties, number = choices.pick(((True, None), (True, "place"), (False, "place")))
    n, smallest = choices.pick((1, 2, 3)), choices.pick((False, True))
    rows = of.rows.top_k(n, order=by, per=per, smallest=smallest, ties=ties, number=number)
    dtypes = of.shape.dtypes if of.shape.names else ("any",)
    return of.then(rows, None if number is None else [*dtypes, "int"], degree=1)


TIME_VERBS: dict[str, Verb] = {
    "top_with": _top,
    "within": _within,
    "session_reduce": _windows_reduced("session"),
    "sliding_reduce": _windows_reduced("sliding"),
}
