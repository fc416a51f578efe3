"""Late rows are put aside, what is closed is forgotten, and the view is what recomputing gives of
all that was ever let in: in memory, on disk, and in the tasks of Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from tests.oracle.late_rows import FREE, HITS, Feed, Hit, program

import ebbflow as ef
from ebbflow.engine.runtime import gate
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    CheckError,
    CompositionError,
    LawBroken,
    StateError,
)
from ebbflow.zset import ZSet


@pytest.fixture(autouse=True, params=[0, 5])
def least(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is closed forgotten at once, or now and then."""
    monkeypatch.setattr(gate, "LEAST", request.param)


def kept(view: Any) -> int:
    """How many keys are in containers that can forget."""
    forgetting = view._program.forgetting
    inputs = sum(len(state) for state in forgetting.gates.values())
    return inputs + sum(len(each.container.contents) for each in forgetting.closable)


@pytest.mark.parametrize("seed", range(3))
def test_a_view_is_what_recomputing_gives_of_all_that_was_let_in(seed: int) -> None:
    feed, view = Feed(seed), program(HITS).run()
    added: dict[str, ZSet[Any]] = {name: ZSet() for name in view}
    for _ in range(40):
        moved = view.step(hits=feed.change())
        added = {name: added[name] + moved[name] for name in view}
        right = feed.right()
        assert view.value == right
        assert added == right
        late = view.input("hits").late
        assert late.count == feed.count
    assert feed.count > 10
    assert late.before == (feed.latest or 0) - 7
    assert kept(view) < 200


@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 3}, {"keep_epochs": 3}])
def test_on_disk_it_is_the_same_and_survives_being_opened_again(
    options: dict[str, Any], tmp_path: Path
) -> None:
    feed = Feed(str(options))
    view = program(HITS).run(path=tmp_path, **options)
    for epoch in range(25):
        view.step(hits=feed.change())
        if epoch % 9 == 8:
            view.close()
            view = program(HITS).run(path=tmp_path, **options)
        assert view.value == feed.right()
        assert view.input("hits").late.count == feed.count
    assert view.rebuilt == ()
    view.close()


def test_what_can_be_verified_is_and_the_rest_says_so() -> None:
    per_ten = HITS.tumbling("at", 10).group_by("page", "window_start").agg(n=ef.count())
    visits = HITS.session("at", 3).group_by("window_start", "window_end").agg(n=ef.count())
    view, feed = ef.program(per_ten=per_ten, visits=visits).run(), Feed(7)
    for _ in range(50):
        view.step(hits=feed.change())
        assert view.verify()
    total = HITS.agg(n=ef.count()).run()
    total.step(hits=[Hit("a", at, 1) for at in range(100)])
    total.step(hits=[Hit("a", at, 1) for at in range(200, 300)])
    with pytest.raises(CheckError, match="cannot be verified"):
        total.verify()


def test_a_wrong_open_window_is_found() -> None:
    view, feed = HITS.tumbling("at", 10).group_by("window_start").agg(n=ef.count()).run(), Feed(3)
    for _ in range(50):
        view.step(hits=feed.change())
    rows = view._program.outputs["output"].rows.rows
    newest = max(rows, key=lambda row: row.window_start)
    del rows[newest]
    view._program.outputs["output"].seen = None
    with pytest.raises(LawBroken, match="not what recomputing"):
        view.verify()


def test_an_epoch_that_is_refused_puts_nothing_aside() -> None:
    view = HITS.tumbling("at", 10).group_by("window_end").agg(n=ef.count()).run()
    view.step(hits=[Hit("a", 100, 1)])
    with pytest.raises(AbsentRow):
        view.step(hits={Hit("a", 50, 1): 1, Hit("b", 99, 1): -1, Hit("c", 500, 1): 1})
    assert view.input("hits").late == gate.LateRows(0, (), 93)
    view.step(hits={Hit("a", 50, 1): 1, Hit("b", 99, 1): 1, Hit("a", 60, 1): -2})
    assert view.input("hits").late == gate.LateRows(
        3, ((Hit("a", 50, 1), 1), (Hit("a", 60, 1), -2)), 93
    )
    assert "closed before 93, 3 came late" in view.explain()
    assert "what is closed is forgotten" in view.explain()


def test_a_branch_closes_for_itself() -> None:
    feed, view = Feed(1), program(HITS).run()
    for _ in range(20):
        view.step(hits=feed.change())
    branch, ahead = view.branch(), feed.latest or 0
    branch.step(hits=[Hit("a", ahead + 500, 1)])
    assert branch.input("hits").late.before == ahead + 493
    for _ in range(20):
        view.step(hits=feed.change())
        assert view.value == feed.right()
    branch.close()
    for _ in range(20):
        view.step(hits=feed.change())
        assert view.value == feed.right()


def test_state_with_and_without_a_lateness_is_not_mixed_up(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    with FREE.run(path=plain) as view:
        view.step(hits=[Hit("a", 1, 1)])
    with pytest.raises(StateError, match="would be no longer"):
        HITS.run(path=plain)
    gated = tmp_path / "gated"
    with HITS.run(path=gated) as view:
        view.step(hits=[Hit("a", 1, 1)])
    with pytest.raises(StateError, match="were not kept"):
        FREE.run(path=gated)


def test_what_cannot_have_a_lateness_is_refused() -> None:
    for wrong, why in {
        "time": "both are needed",
        "lateness": "both are needed",
    }.items():
        with pytest.raises(CompositionError, match=why):
            ef.Input("hits", Hit, **{wrong: {"time": "at", "lateness": 5}[wrong]})  # type: ignore[call-overload]
    with pytest.raises(CompositionError, match="replaces rows"):
        ef.Input("hits", Hit, key="page", time="at", lateness=5)
    with pytest.raises(CompositionError, match="timedelta"):
        ef.Input("hits", Hit, time="at", lateness=timedelta(hours=1))
    view = HITS.run()
    with pytest.raises(ChangeError, match="forgets rows"):
        view.step(hits=ef.replace([Hit("a", 1, 1)]))
    with pytest.raises(ChangeError, match="no lateness"):
        _ = FREE.run().input("hits").late


class Moment(NamedTuple):
    """A time, or none."""

    at: Annotated[datetime, UTC] | None


def test_times_with_zones_are_compared_as_they_come() -> None:
    hour, rome = timedelta(hours=1), ZoneInfo("Europe/Rome")
    moments = ef.Input("moments", Moment, time="at", lateness=hour)
    view = moments.tumbling("at", hour).group_by("window_end").agg(n=ef.count()).run()
    before, after = (datetime(2026, 10, 25, 2, 30, tzinfo=rome, fold=fold) for fold in (0, 1))
    view.step(moments=[Moment(before)])
    view.step(moments=[Moment(after + hour / 2)])
    assert view.input("moments").late.before == datetime(2026, 10, 25, 1, tzinfo=UTC)
    view.step(moments=[Moment(before), Moment(after)])
    assert [row for row, _ in view.input("moments").late.last] == [Moment(before.astimezone(UTC))]
    with pytest.raises(ChangeError, match="cannot be compared"):
        view.step(moments=[Moment(None)])
    with pytest.raises(ChangeError, match="must be a datetime with a zone"):
        view.step(moments=[Moment(datetime(2026, 10, 26))])
