"""Windows of dates and of naive times in columns: those of rows, and the same refusals."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError
from ebbflow.zset import ZSet


class Visit(NamedTuple):
    """A visit, on the clock of its place."""

    who: str
    at: datetime
    day: date
    left: datetime | None
    n: int


VISITS = ef.Input("visits", Visit)
DAY = timedelta(days=1)
WINDOWS: dict[str, dict[str, Any]] = {
    "days": {"days": 1},
    "three days": {"days": 3, "origin": date(2024, 2, 28)},
    "weeks": {"weeks": 1},
    "months": {"months": 1},
    "five months": {"months": 5, "origin": date(2031, 7, 28)},
    "quarters": {"quarters": 1},
    "years": {"years": 1, "origin": date(1950, 4, 6)},
    "four years": {"years": 4, "origin": date(2000, 3, 1)},
    "a fixed size": {"size": 2 * DAY},
}


def program(name: str, **options: Any) -> Any:
    more = {"origin": datetime(2020, 1, 1, 7)} if name == "a fixed size" else {}
    return ef.program(
        at=VISITS.tumbling("at", **WINDOWS[name], **more)
        .group_by("who", "window_start", "window_end").agg(n=ef.count(), total=ef.sum("n")),
        day=VISITS.filter(lambda visit: visit.n > 0).tumbling("day", **WINDOWS[name])
        .group_by("window_end").agg(n=ef.count(), most=ef.max("n")),
        left=VISITS.filter(lambda visit: visit.left is not None)
        .tumbling("left", **WINDOWS[name]).group_by("window_start").agg(n=ef.count()),
    ).run(**options)  # fmt: skip


def visit(dice: Random) -> Visit:
    year = dice.choice([5, 1582, 1899, 1969, 1970, 2000, 2023, 2024, 2025, 9800])
    at = datetime(year, dice.randint(1, 12), dice.randint(1, 28), dice.choice([0, 0, 23]))
    at += dice.choice([0, 1, -1, 10**6]) * timedelta(microseconds=1)
    at += dice.choice([0, 0, 1, 2, 3]) * DAY
    return Visit(dice.choice("ab"), at, at.date(), dice.choice([None, at]), dice.randrange(5))


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_in_columns_are_those_of_rows(name: str) -> None:
    dice, there = Random(name), list[Visit]()
    views = [program(name, columns=columns) for columns in (True, False)]
    stages = views[0]._program.machine.stages
    assert all(stage.in_columns for stage in stages)
    for most in (5, 300, 3, 200):
        change = ZSet[Any]()
        for _ in range(most):
            if there and dice.random() < 0.3:
                change -= ZSet.of([there.pop(dice.randrange(len(there)))])
            else:
                there.append(visit(dice))
                change += ZSet.of(there[-1:])
        assert views[0].step(visits=change) == views[1].step(visits=change)
        assert views[0].value == views[1].value
    new = [visit(dice) for _ in range(500)]
    table = pa.table({name: [getattr(row, name) for row in new] for name in Visit._fields})
    for view in views:
        view.step(visits=table)
    assert views[0].value == views[1].value
    assert not any(stage.given_up for stage in stages)
    assert views[0].verify()


@pytest.mark.parametrize("end", [datetime.max, datetime.min])
@pytest.mark.parametrize("count", [1, 200])
def test_a_window_that_cannot_be_is_refused_as_in_rows(end: datetime, count: int) -> None:
    windows = VISITS.tumbling("at", years=3).group_by("window_end").agg(n=ef.count())
    view = windows.run(columns=True)
    assert all(stage.in_columns for stage in view._program.machine.stages)
    dice = Random(count)
    good = [visit(dice) for _ in range(count)]
    view.step(visits=good)
    before = view.value
    wrong = Visit("a", end, end.date(), None, 1)
    with pytest.raises(CompositionError, match="does not lie within the years 1 to 9999") as caught:
        view.step(visits=[*good, wrong])
    assert caught.value.facts["row"] == wrong
    assert view.value == before
    view.step(visits=good)
    assert sum(row.n for row in view.value) == 2 * count


@pytest.mark.parametrize("count", [1, 200])
def test_none_as_a_time_is_refused_as_in_rows(count: int) -> None:
    windows = VISITS.tumbling("left", months=1).group_by("window_end").agg(n=ef.count())
    view = windows.run(columns=True)
    assert all(stage.in_columns for stage in view._program.machine.stages)
    at = datetime(2026, 1, 1)
    rows = [Visit("a", at, at.date(), at, each) for each in range(count)]
    view.step(visits=rows)
    with pytest.raises(CompositionError, match="it is None"):
        view.step(visits=[*rows, Visit("a", at, at.date(), None, 1)])
    assert [row.n for row in view.value] == [count]


def test_explain_says_why_windows_of_a_zone_stay_with_rows() -> None:
    from tests.oracle.calendars import program as zoned

    view = zoned("Europe/Rome").run(columns=True)
    assert not any(stage.in_columns for stage in view._program.machine.stages)
    assert "is no int, float, bool, str, date, datetime or decimal" in view.explain()
