"""Batch against SQLite: another road to the same rows, written by other people."""

from __future__ import annotations

import sqlite3
from random import Random
from typing import Any

import pytest

from ebbflow import count, max, min, sum
from ebbflow.engine.batch import evaluate
from ebbflow.flow.plan import Plan
from ebbflow.flow.source import Input
from ebbflow.testing import random_epochs
from ebbflow.testing.programs import Event, Stock, Tag
from ebbflow.zset import ZSet

A = Input("a", Stock)
B = Input("b", Tag)
C = Input("c", Stock)
E = Input("e", Event)

QUESTIONS: dict[str, tuple[Any, str]] = {
    "filter": (A.filter(lambda r: r.v > 1), "select * from a where v > 1"),
    "select": (A.select("s", x=lambda r: r.k + r.v), "select s, k + v from a"),
    "inner": (A.join(B, on="k"), "select a.k, v, s, w from a join b on a.k = b.k"),
    "left": (
        A.join(B, on="k", how="left"),
        "select a.k, v, s, w from a left join b on a.k = b.k",
    ),
    "right": (
        A.join(B, on="k", how="right"),
        "select b.k, v, s, w from b left join a on a.k = b.k",
    ),
    "full": (
        A.join(B, on="k", how="full"),
        "select a.k, v, s, w from a left join b on a.k = b.k union all "
        "select b.k, null, null, w from b where not exists (select 1 from a where a.k = b.k)",
    ),
    "semi": (
        A.join(B, on="k", how="semi"),
        "select * from a where exists (select 1 from b where a.k = b.k)",
    ),
    "anti": (
        A.join(B, on="k", how="anti"),
        "select * from a where not exists (select 1 from b where a.k = b.k)",
    ),
    "other names": (
        A.join(B, left_on="v", right_on="k", select=lambda x, y: (x.k, y.w)),
        "select a.k, b.w from a join b on a.v = b.k",
    ),
    "two fields": (
        A.join(C, on=("k", "s"), select=lambda x, y: (x.k, x.s, x.v, y.v)),
        "select a.k, a.s, a.v, c.v from a join c on a.k = c.k and a.s = c.s",
    ),
    "self-join": (
        A.join(A, on="k", select=lambda x, y: (x.v, y.v)),
        "select x.v, y.v from a x join a y on x.k = y.k",
    ),
    "cross": (
        A.cross(B, select=lambda x, y: (x.v, y.w)),
        "select a.v, b.w from a cross join b",
    ),
    "union all": (A + C, "select * from a union all select * from c"),
    "union": (A.union(C), "select * from a union select * from c"),
    "intersect": (A.intersect(C), "select * from a intersect select * from c"),
    "except": (A.except_(C), "select * from a except select * from c"),
    "distinct": (A.distinct(), "select distinct * from a"),
    "group": (
        A.group_by("k").agg(n=count(), total=sum("v"), low=min("s"), high=max("v")),
        "select k, count(*), sum(v), min(s), max(v) from a group by k",
    ),
    "group by two": (
        A.group_by("k", "s").reduce(sum("v")),
        "select k, s, sum(v) from a group by k, s",
    ),
    "missing values": (
        B.group_by("k").agg(n=count(), known=count("w"), total=sum("w")),
        "select k, count(*), count(w), sum(w) from b group by k",
    ),
    "no key": (
        A.agg(n=count(), high=max("v")),
        "select count(*), max(v) from a having count(*) > 0",
    ),
    "top 2": (
        A.top_k(2, order="v", per="k"),
        "select k, v, s from (select *, row_number() over "
        "(partition by k order by v desc, s desc) as place from a) where place <= 2",
    ),
    "bottom 3": (
        A.top_k(3, order="v", smallest=True),
        "select * from a order by v, k, s limit 3",
    ),
    "tumbling": (
        E.tumbling("t", 2).group_by("window_start").agg(n=count()),
        "select t - ((t % 2) + 2) % 2 as start, count(*) from e group by start",
    ),
    "session": (
        E.session("t", 1, per="k").select("k", "t", "window_start"),
        "select k, t, max(start) over (partition by k order by t) from (select k, t, case when "
        "t - lag(t) over (partition by k order by t) <= 1 then null else t end as start from e)",
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_batch_gives_what_sqlite_gives(name: str) -> None:
    rows, question = QUESTIONS[name]
    plan = Plan({"out": rows.node})
    some = 0
    for seed in range(12):
        inputs = _inputs(Random(f"{name} {seed}"))
        found = evaluate(plan, inputs)["out"]
        assert found == _asked(inputs, question)
        some += bool(found)
    assert some >= 3


def _inputs(dice: Random) -> dict[str, ZSet[Any]]:
    every = Plan({each.node.name: each.node for each in (A, B, C, E)})
    inputs: dict[str, ZSet[Any]] = {name: ZSet() for name in every.sources}
    for epoch in random_epochs(every, dice, dice.randint(0, 12), size=8):
        for name, change in epoch.items():
            inputs[name] += change
    return inputs


def _asked(inputs: dict[str, ZSet[Any]], question: str) -> ZSet[Any]:
    base = sqlite3.connect(":memory:")
    try:
        for name, kind in (("a", Stock), ("b", Tag), ("c", Stock), ("e", Event)):
            base.execute(f"create table {name} ({', '.join(kind._fields)})")
            holes = ", ".join("?" for _ in kind._fields)
            base.executemany(f"insert into {name} values ({holes})", inputs[name].rows())
        return ZSet.of(base.execute(question).fetchall())
    finally:
        base.close()
