"""NaN is one value everywhere: every verb and reducer on rows with NaN, against batch.

NaN comes in fields, and is computed by functions, which give another object each time; rows with it
come and go. So they do in memory, on disk, with every epoch in a view that was opened anew, and in
the tasks of the Spark engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.spark.simulated import View as Simulated

import ebbflow as ef
from ebbflow import window as w
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.engine.local import run
from ebbflow.flow.plan import Plan
from ebbflow.nan import NAN, one_nan
from ebbflow.zset import ZSet


class Reading(NamedTuple):
    id: int
    place: int
    x: float
    y: float | None


READINGS = ef.Input("readings", Reading)
UNTYPED = ef.Input("untyped")
KEYED = ef.Input("keyed", Reading, key="x")


def fresh() -> float:
    """A NaN that is no other one."""
    return float("nan")


def opaque(x: Any) -> Any:
    """The number itself; nothing is known of it, and a NaN is a new one."""
    return float(str(x)) if isinstance(x, float) else x


def joined(a: Any, b: Any) -> Any:
    return a.id, b.id, opaque(a.x)


class Best(NamedTuple):
    """What a reducer of a user's own gives."""

    n: int
    last: float


OWN: Any = ef.Reducer(
    (0, 0.0),
    lambda acc, row: (acc[0] + 1, acc[1]),
    lambda acc, row: (acc[0] - 1, acc[1]),
    result=lambda acc: Best(acc[0], math.inf - math.inf),
)

TREE: Any = ef.Reducer(-1, lambda most, row: max(most, row.id), merge=max)

REDUCERS: dict[str, Any] = {
    "count": ef.count("x"),
    "sum": ef.sum("x"),
    "mean": ef.mean("y"),
    "product": ef.product("x"),
    "variance": ef.variance("x"),
    "stddev": ef.stddev("y"),
    "covariance": ef.covariance("x", "y"),
    "weighted_mean": ef.weighted_mean("x", "y"),
    "min": ef.min("x"),
    "max": ef.max("y"),
    "pair": ef.max(lambda r: (r.place, r.x)),
    "top_k": ef.top_k(2, "x"),
    "least": ef.top_k(2, "x", smallest=True),
    "median": ef.median("x"),
    "quantile": ef.quantile(0.3, "x", discrete=True),
    "rank": ef.rank(NAN, "x"),
    "arg_max": ef.arg_max("x"),
    "arg_min": ef.arg_min("x", "id"),
    "first": ef.first("x", order="y"),
    "last": ef.last("x", order="id"),
    "collect": ef.collect("x"),
    "rows": ef.collect(),
    "mode": ef.mode("x"),
    "string_agg": ef.string_agg("x"),
    "count_distinct": ef.count_distinct("x"),
    "set_of": ef.set_of("x"),
    "histogram": ef.histogram("x"),
    "approx": ef.approx_count_distinct("x"),
    "approx_quantile": ef.approx_quantile(0.5, "x"),
    "computed set": ef.set_of(lambda r: r.x - r.x),
    "called set": ef.set_of(lambda r: (r.place, opaque(r.x))),
    "computed sum": ef.sum(lambda r: r.x * 0),
    "computed list": ef.collect(lambda r: opaque(r.x)),
    "then": ef.sum("x").then(lambda total: (opaque(total), 1)),
    "own": OWN,
    "tree": TREE,
}


def programs() -> dict[str, Any]:
    """Programs by name: each reducer, and each verb with fields, expressions and functions."""
    found = {
        f"agg {name}": READINGS.group_by("place").agg(value=reducer)
        for name, reducer in REDUCERS.items()
    }
    pairs = READINGS.map(lambda r: (r.place, opaque(r.x)))
    half = READINGS.select("id", half=lambda r: r.x * 0.5, less=lambda r: r.x - math.inf)
    found |= {
        "rows": READINGS,
        "map": READINGS.map(lambda r: r.x * 0, type=float),
        "map to tuples": pairs,
        "select": half,
        "select a call": READINGS.select("place", x=lambda r: opaque(r.x)),
        "flat_map": READINGS.flat_map(lambda r: [opaque(r.x), r.x]),
        "several maps": READINGS.map(lambda r: (r.x * 0,)).filter(lambda t: t[0] != t[0]),
        "distinct": pairs.distinct(),
        "by a field": READINGS.group_by("x").agg(n=ef.count()),
        "by an expression": READINGS.group_by(z=lambda r: r.x - r.x).agg(n=ef.count()),
        "by a call": READINGS.group_by(z=lambda r: opaque(r.x)).agg(s=ef.set_of("id")),
        "by computed rows": half.group_by("half", "less").agg(n=ef.count()),
        "max by key": READINGS.group_by("x").agg(most=ef.max("id")),
        "top_k": READINGS.top_k(2, order="x"),
        "top_k of each": READINGS.top_k(1, order=lambda r: opaque(r.x), per="place"),
        "least by y": READINGS.top_k(2, order="y", smallest=True),
        "join": READINGS.join(READINGS, on="x", select=lambda a, b: (a.id, b.id, a.x)),
        "join by calls": READINGS.join(
            pairs,
            left_on=lambda r: r.x * 1.0,
            right_on=lambda p: opaque(p[1]),
            select=lambda a, b: (a, b),
        ),
        "join to new rows": READINGS.join(READINGS, on="place", select=joined),
        "semi": READINGS.join(pairs, left_on="x", right_on=lambda p: p[1], how="semi"),
        "anti": READINGS.join(UNTYPED, left_on="x", right_on=lambda p: p[1], how="anti"),
        "minus": pairs - READINGS.map(lambda r: (r.place, r.x)),
        "left": READINGS.join(
            UNTYPED, left_on="x", right_on=lambda p: p[1], how="left", select=lambda a, b: (a, b)
        ),
        "union": pairs.union(UNTYPED),
        "except": pairs.except_(UNTYPED),
        "untyped": UNTYPED,
        "untyped by": UNTYPED.group_by(lambda row: row[1]).agg(n=ef.count()),
        "keyed": KEYED,
        "keyed sum": KEYED.group_by("place").agg(s=ef.sum("x")),
    }  # fmt: skip
    inside: Any = READINGS.over(per="place", order="x")
    found |= {
        f"over {name}": inside.with_fields(found=each)
        for name, each in {
            "rank": w.rank(), "dense_rank": w.dense_rank(), "percent_rank": w.percent_rank(),
            "ntile": w.ntile(2), "lag": w.lag("x"), "fill_forward": w.fill_forward("y"),
            "sum": ef.sum("x"), "max": ef.max("y"), "row_number": w.row_number(),
        }.items()
    }  # fmt: skip
    found |= {
        f"{how} on and where": READINGS.join(
            READINGS.map(lambda r: r), on="x", where=ef.lt("id"), how=how,
            **({} if how in ("semi", "anti") else {"select": lambda a, b: (a, b)}),
        )
        for how in ("inner", "semi", "anti", "left", "right", "full")
    }  # fmt: skip
    found |= {
        "where alone": READINGS.join(
            READINGS, where=ef.ne("y", "x"), select=lambda a, b: (a.id, b.id)
        ),
        "filter by one": READINGS.filter(
            lambda r, one: r.id <= one.n, READINGS.group_by("x").agg(n=ef.count()), on="x"
        ),
        "scan": READINGS.scan(
            lambda last, r: (r.x, [(last, opaque(r.x))]), None, per="place", order="x"
        ),
        "fold": READINGS.fold(lambda n, r: (opaque(r.x), []), 0.0, per="x", order="y"),
    }  # fmt: skip
    return found


PLAN = Plan({name: each.node for name, each in programs().items()})
NUMBERS: list[Callable[[], float]] = [fresh, fresh, lambda: 1.0, lambda: math.inf, lambda: -0.5]


class Inputs:
    """Changes, drawn by `dice`, of rows that are there as often as is remembered."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.there = {name: ZSet[Any]() for name in ("readings", "untyped", "keyed")}

    def number(self) -> float:
        return self.dice.choice(NUMBERS)()

    def again(self, row: Any) -> Any:
        """The same row with another NaN."""
        parts = [fresh() if x is NAN else x for x in row]
        return type(row)(*parts) if hasattr(row, "_fields") else tuple(parts)

    def change(self, name: str) -> ZSet[Any]:
        dice, there = self.dice, self.there[name]
        gone = [self.again(row) for row in there if dice.random() < 0.3]
        come = []
        for _ in range(dice.randrange(4)):
            place, y = dice.randrange(2), dice.choice([None, self.number()])
            row = Reading(dice.randrange(3), place, self.number(), y)
            come.append((place, row.x) if name == "untyped" else row)
        if name == "keyed":
            owned = {row.x: row for row in (there - ZSet.of(gone))}
            come = [row for row in come if one_nan(row.x) not in owned][:1]
        change = ZSet.of(come) - ZSet.of(gone)
        self.there[name] = there + change
        return change

    def epoch(self) -> dict[str, Any]:
        found: dict[str, Any] = {name: self.change(name) for name in self.there}
        if self.dice.random() < 0.5:  # a dict instead of a Z-set, with NaN that differ
            found = {
                name: {self.again(row): n for row, n in z.items()} for name, z in found.items()
            }
        return found


class Reopened:
    """A view on disk that is opened anew for every epoch."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.options = path, options
        self.value: Any = None

    def step(self, changes: Any) -> None:
        with run(PLAN, path=str(self.path), **self.options) as view:
            view.step(changes)
            view.verify()
            self.value = view.value

    def close(self) -> None:
        pass


WAYS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda path: run(PLAN),
    "trusting": lambda path: run(PLAN, check_input=False),
    "disk": Reopened,
    "disk and little memory": lambda path: Reopened(path, memory=1),
    "tasks: whole": lambda path: Simulated(PLAN, "single_task", path=str(path)),
    "tasks: staged": lambda path: Simulated(PLAN, "staged", path=str(path)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_agrees_with_batch_on_nan(way: str, tmp_path: Path) -> None:
    dice = Random(13)
    inputs, view = Inputs(dice), WAYS[way](tmp_path)
    for _ in range(3):
        view.step(inputs.epoch())
        expected = evaluate(PLAN, inputs.there)
        assert mismatch(expected, view.value) is None
    everything = {name: ZSet.of(map(inputs.again, z.rows())) for name, z in inputs.there.items()}
    view.step({name: -z for name, z in everything.items()})
    assert not any(view.value.values())
    view.close()
