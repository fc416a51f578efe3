"""Inputs that put late rows aside, on Spark: what they give in this process, in every mode, and
state that stays small."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.oracle.late_rows import HITS, Feed, Hit, program
from tests.spark.simulated import Driver

import ebbflow as ef
from ebbflow.engine.runtime import gate
from ebbflow.zset import ZSet


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_tasks_give_what_recomputing_gives_of_all_that_was_let_in(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 5)
    feed, view = Feed(mode), Driver(program(HITS).plan, mode, str(tmp_path))
    for epoch in range(14):
        view._run({"hits": feed.change()}, None)
        if epoch % 5 == 4:
            view.close()
            view = Driver(program(HITS).plan, mode, str(tmp_path))
        if epoch % 3 == 1:
            assert view.zset() == feed.right()
            assert view.input("hits").late.count == feed.count
    assert feed.count > 3
    view.close()


def entries(view: Any, *but: str) -> int:
    """How many entries the state has, but those of the results."""
    with view._opened() as replica:
        return sum(
            len(list(part.owner.backing.kept.scan()))
            for part in replica.parts
            if not part.label.startswith(("output", *but))
        )


@pytest.mark.parametrize(
    ("mode", "epochs"),
    [("driver", 150), ("staged", 15), pytest.param("driver", 600, marks=pytest.mark.slow)],
)
def test_the_state_behind_a_gate_is_bounded_in_tasks(
    mode: str, epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 40)
    per_ten = HITS.tumbling("at", 10).group_by("page", "window_end")
    counts = per_ten.agg(best=ef.max("size"), pages=ef.count_distinct("size"))
    plan = ef.program(counts=counts, visits=HITS.session("at", 3).group_by("window_end").agg(
        n=ef.count())).plan  # fmt: skip
    view, most = Driver(plan, mode, str(tmp_path)), 0
    for epoch in range(epochs):
        view._run({"hits": [Hit("ab"[n % 2], 20 * epoch + n, n) for n in range(8)]}, None)
        most = max(most, entries(view)) if epoch % 10 == 9 else most
    assert most < 260
    assert len(view.zset()["counts"]) > epochs // 2
    view.close()


@pytest.mark.parametrize("mode", ["driver", "staged"])
def test_the_state_of_within_is_bounded_in_tasks(mode: str, tmp_path: Path) -> None:
    hits, now = ef.Input("hits", Hit), ef.clock("now")
    recent = hits.within("at", now, 50).group_by("page").agg(n=ef.count())
    plan = ef.program(recent=recent, all=recent.agg(n=ef.count())).plan
    view, most = Driver(plan, mode, str(tmp_path)), 0
    for at in range(60 if mode == "driver" else 12):
        rows = [Hit("ab"[n % 2], 10 * at + n, n) for n in range(10)]
        view._run({"hits": rows, "now": 10 * at + 9}, None)
        most = max(most, entries(view, "input hits"))
    assert view.zset()["recent"] == ZSet.of([("a", 25), ("b", 25)])
    assert most < 130
    view.close()


class Call(NamedTuple):
    """Somebody called."""

    who: str
    at: datetime


def test_dataframes_are_let_in_by_a_query(spark: Any, tmp_path: Path) -> None:
    noon, minute = datetime(2026, 3, 29, 12), timedelta(minutes=1)
    calls = ef.Input("calls", Call, time="at", lateness=5 * minute)
    per_hour = calls.tumbling("at", timedelta(hours=1)).group_by("window_end").agg(n=ef.count())
    local = per_hour.run()
    with per_hour.run(ef.spark(spark, path=tmp_path)) as view:
        for minutes in [(0, 10, 20), (14, 15, 16, 70), (64, 65, 66), ()]:
            rows = [Call("ann", noon + at * minute) for at in minutes]
            local.step(calls=rows)
            view.step(calls=spark.createDataFrame(rows, "who string, at timestamp_ntz"))
            assert view.zset() == local.value
            assert view.input("calls").late == local.input("calls").late
        assert view.input("calls").late.count == 2
        assert view.verify()
