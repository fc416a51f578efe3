"""How much work windows and clocks do: merges, rows looked at, and what stays in the state."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime import gate
from ebbflow.engine.runtime.loop_report import rows_in
from ebbflow.operator import sessions
from ebbflow.operator.session import SessionMonoid
from ebbflow.operator.within import NOW, ROW, within_rows
from ebbflow.reducer import count, max, sum
from ebbflow.reducer.sessions import SessionResults
from ebbflow.zset import ZSet


class Hit(NamedTuple):
    """A visit to a page."""

    page: str
    at: int


HITS = ef.Input("hits", Hit)


def itself(at: Any) -> Any:
    return at


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many merges there were, one by one."""
    seen: list[int] = []
    merge = SessionMonoid.merge

    def counted(self: SessionMonoid, a: Any, b: Any) -> Any:
        seen.append(1)
        return merge(self, a, b)

    monkeypatch.setattr(SessionMonoid, "merge", counted)
    return seen


def test_a_row_in_a_session_of_16_000_rows_costs_log_n_merges(merges: list[int]) -> None:
    n = 16_000
    of = SessionResults(itself, 10, None, count() & sum() & max())
    state = of.init(ZSet.of(range(0, 5 * n, 5)))
    for change in ({7: 1}, {5 * n: 1}, {n: -1}, {n - 5: -1}, {n - 2: 1}, {3: 1, 2 * n + 1: 1}):
        merges.clear()
        _, out = of.step(state, ZSet(change))
        assert 2 <= len(out) <= 3
        assert len(merges) <= len(change) * 12 * math.log2(n)


def test_a_late_row_of_a_plain_session_leaves_the_other_rows_alone(merges: list[int]) -> None:
    of = sessions(itself, 10)
    state = of.init(ZSet.of(range(0, 5_000, 5)))
    merges.clear()
    _, out = of.step(state, ZSet({7: 1}))
    assert out == ZSet({(7, 0, 5_005): 1})
    assert len(merges) <= 12 * math.log2(1_000)


def test_the_rewrite_is_found_whatever_the_order_of_the_key(merges: list[int]) -> None:
    made = HITS.session("at", 10, per="page").group_by("window_end", "page").agg(n=ef.count())
    view = made.run()
    assert "session reduce" in view.explain()
    view.step(hits=[Hit("a", 5 * i) for i in range(1_000)])
    merges.clear()
    assert len(view.step(hits=[Hit("a", 2)])) == 2
    assert len(merges) < 200


def test_a_clock_looks_at_the_rows_that_leave_and_come_and_their_neighbours() -> None:
    looked: list[Any] = []

    def time(at: Any) -> Any:
        looked.append(at)
        return at

    of = within_rows(time, 10_000)
    rows = [(ROW, at) for at in range(0, 30_000, 2)]
    state = of.init(ZSet.of([*rows, (NOW, 15_000)]))
    looked.clear()
    _, out = of.step(state, ZSet({(NOW, 15_000): -1, (NOW, 15_040): 1}))
    assert len(out) == 40
    assert len(looked) <= 4 * 10
    _, out = of.step(state, ZSet({(NOW, 15_040): -1, (NOW, 29_000): 1}))
    assert len(out) == 10_000
    assert sorted(state[0].groups) == [*range(1_900, 3_000)]


def rows_kept(view: Any) -> int:
    """How many rows and cells are in all containers of a view."""
    held = [each for stage in view._program.machine.stages for each in stage.containers]
    return builtins.sum(rows_in(each) for each in held)


@pytest.mark.parametrize(
    ("place", "epochs"),
    [
        ("memory", 1_500),
        ("disk", 120),
        pytest.param("memory", 10_000, marks=pytest.mark.slow),
        pytest.param("disk", 2_000, marks=pytest.mark.slow),
    ],
)
def test_what_is_over_is_forgotten_however_many_epochs_there_are(
    place: str, epochs: int, tmp_path: Path
) -> None:
    hits, now = ef.Input("hits", Hit), ef.clock("now")
    counts = hits.within("at", now, 50).group_by("page").agg(n=ef.count())
    options: dict[str, Any] = {} if place == "memory" else {"path": tmp_path, "flush_every": 50}
    with counts.run(check_input=False, **options) as view:
        most = 0
        for at in range(epochs):
            view.step(hits=[Hit("ab"[at % 2], at)], now=at)
            most = builtins.max(most, rows_kept(view))
        assert most <= 50 + 60
        assert {row.n for row in view.value} == {25}


@pytest.mark.parametrize(
    ("place", "epochs"),
    [
        ("memory", 4_000),
        ("disk", 150),
        pytest.param("memory", 20_000, marks=pytest.mark.slow),
        pytest.param("disk", 4_000, marks=pytest.mark.slow),
    ],
)
def test_what_is_closed_is_forgotten_however_many_epochs_there_are(
    place: str, epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 100)
    hits = ef.Input("hits", Hit, time="at", lateness=20)
    windows = hits.tumbling("at", 10).group_by("page", "window_end")
    program = ef.program(
        counts=windows.agg(n=ef.count(), last=max("at"), times=ef.count_distinct("at")),
        sliding=hits.sliding("at", 20, 5).group_by("window_end").agg(n=ef.count()),
        visits=hits.session("at", 1, per="page").group_by("page", "window_end").agg(n=ef.count()),
        total=windows.agg(n=ef.count()).agg(n=ef.sum("n")),
    )
    options: dict[str, Any] = {} if place == "memory" else {"path": tmp_path, "flush_every": 50}
    with program.run(**options) as view:
        most = 0
        for epoch in range(epochs):
            at = epoch + epoch // 7 * 3
            view.step(hits=[Hit("ab"[epoch % 2], at), Hit("late", at - 50)])
            inputs = builtins.sum(map(len, view._program.inputs.values()))
            most = builtins.max(most, rows_kept(view) + inputs)
        assert most < 1_000
        assert len(view["counts"].value) > epochs // 10
        late = view.input("hits").late
        assert late.count == epochs - 1
        assert len(late.last) == 100
        assert view.value["total"] == ZSet.of([(epochs + 1,)])
