"""Sliding windows by panes: where they are found, and that they give what they gave."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pytest

import ebbflow as ef
from ebbflow.flow.windows import Sliding
from ebbflow.laws import check
from ebbflow.reducer.panes import ReduceByPane
from ebbflow.zset import ZSet


class Hit(NamedTuple):
    """A visit, with every kind of time."""

    page: str
    at: int
    day: date
    when: datetime
    zoned: Annotated[datetime, UTC]
    x: float


HITS = ef.Input("hits", Hit)
HOUR, MINUTES = timedelta(hours=1), timedelta(minutes=1)
ROME = datetime(1970, 1, 1, tzinfo=ZoneInfo("Europe/Rome"))
ENDS = ("window_start", "window_end")


def hit(dice: Random) -> Hit:
    at = dice.randrange(0, 7_200)
    when = datetime(2026, 3, 29, 0, 0) + timedelta(seconds=at)
    day = date(2026, 3, 29) + timedelta(days=at // 500)
    return Hit(dice.choice("ab"), at - 3_600, day, when, when.replace(tzinfo=UTC), at / 2)


BY_PANES = {
    "ints": HITS.sliding("at", 60, 25).group_by("page", *ENDS).agg(n=ef.count(), at=ef.sum("at")),
    "from an origin": HITS.sliding("at", 60, 30, origin=7).group_by("window_end").agg(n=ef.count()),
    "days": HITS.sliding("day", timedelta(days=3), timedelta(days=1))
    .group_by("window_start", "page").agg(mean=ef.mean("at")),
    "datetimes": HITS.sliding("when", HOUR, 5 * MINUTES).group_by(*ENDS).agg(n=ef.count()),
    "zoned": HITS.sliding("zoned", HOUR, 25 * MINUTES, origin=ROME).group_by(*ENDS)
    .agg(n=ef.count(), x=ef.sum(lambda hit: hit.at)),
    "steps before": HITS.filter(lambda hit: hit.at > 9).select("at", p="page").sliding("at", 60, 20)
    .group_by("window_start", p=lambda row: row.p + "!").agg(n=ef.count()),
}  # fmt: skip
PLAIN = {
    "floats": HITS.sliding("x", 60.0, 30.0).group_by(*ENDS).agg(n=ef.count()),
    "side by side": HITS.sliding("at", 60, 60).group_by(*ENDS).agg(n=ef.count()),
    "no window": HITS.sliding("at", 60, 30).group_by("page").agg(n=ef.count()),
    "largest": HITS.sliding("at", 60, 30).group_by(*ENDS).agg(n=ef.max("at")),
    "reads the window": HITS.sliding("at", 60, 30).group_by(*ENDS).agg(n=ef.sum("window_end")),
    "key of the window": HITS.sliding("at", 60, 30)
    .group_by("page", s=lambda row: row.window_start + 1).agg(n=ef.count()),
}  # fmt: skip


def operators(view: Any) -> list[Any]:
    return [stage.operator for stage in view._program.machine.stages]


@pytest.mark.parametrize("name", [*BY_PANES, *PLAIN])
def test_windows_by_panes_are_those_computed_from_scratch(name: str) -> None:
    made, dice, there = (BY_PANES | PLAIN)[name], Random(name), list[Hit]()
    view = made.run()
    assert any(isinstance(each, ReduceByPane) for each in operators(view)) == (name in BY_PANES)
    for _ in range(6):
        change = ZSet[Any]()
        for _ in range(dice.randint(1, 8)):
            if there and dice.random() < 0.4:
                change -= ZSet.of([there.pop(dice.randrange(len(there)))])
            else:
                there.append(hit(dice))
                change += ZSet.of(there[-1:])
        view.step(hits=change)
        assert view.verify()


def test_a_reduce_by_panes_fulfils_the_laws_of_operators() -> None:
    dice = Random(2)
    (operator,) = [op for op in operators(BY_PANES["ints"].run()) if op is not None]
    rows = [hit(dice) for _ in range(4)]
    changes = [ZSet.of(rows[:2]), ZSet({rows[0]: -1}), ZSet({rows[3]: 2, rows[1]: -1})]
    check(operator, inputs=[ZSet(), ZSet.of(rows)], changes=changes, examples=4)


def test_no_row_is_made_for_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(Sliding, "__call__", lambda self, row: called.append(row) or [])
    view = BY_PANES["datetimes"].run()
    dice = Random(1)
    assert view.step(hits=[hit(dice) for _ in range(50)])
    assert not called


def test_sliding_counts_agree_with_duckdb() -> None:
    view, dice, there = BY_PANES["ints"].run(), Random(5), list[Hit]()
    query = """SELECT page, start, start + 60, count(*), sum(t) FROM (
                 SELECT page, t, (floor(t / 25) - i) * 25 AS start FROM hits, range(3) AS _(i))
               WHERE t < start + 60 GROUP BY page, start"""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE hits (page TEXT, t INT)")
        for _ in range(5):
            new = [hit(dice) for _ in range(20)]
            there += new
            gone = [there.pop(dice.randrange(len(there))) for _ in range(6)]
            view.step(hits=ZSet.of(new) - ZSet.of(gone))
            db.execute("DELETE FROM hits")
            db.executemany("INSERT INTO hits VALUES (?, ?)", [row[:2] for row in there])
            assert sorted(map(tuple, view.value)) == sorted(db.execute(query).fetchall())
