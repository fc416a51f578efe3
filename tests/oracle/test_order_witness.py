"""Window functions against those of DuckDB, after every change: late rows, and rows withdrawn."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, NamedTuple

import duckdb
import pytest

import ebbflow as ef
from ebbflow import window as w


class Event(NamedTuple):
    k: int
    t: int
    v: int | None
    s: str


ROWS = "PARTITION BY k ORDER BY t, v NULLS FIRST, s"
PLACE = "PARTITION BY k ORDER BY t"
ALL = "PARTITION BY k"

# what is asked: the frame, the function, and how DuckDB writes it
WINDOWS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "row_number": ({}, w.row_number(), f"row_number() OVER ({ROWS})"),
    "rank": ({}, w.rank(), f"rank() OVER ({PLACE})"),
    "dense_rank": ({}, w.dense_rank(), f"dense_rank() OVER ({PLACE})"),
    "percent_rank": ({}, w.percent_rank(), f"percent_rank() OVER ({PLACE})"),
    "ntile": ({}, w.ntile(3), f"ntile(3) OVER ({ROWS})"),
    "lag": ({}, w.lag("v"), f"lag(v) OVER ({ROWS})"),
    "lag 2": ({}, w.lag("s", 2, "-"), f"lag(s, 2, '-') OVER ({ROWS})"),
    "lead": ({}, w.lead("v"), f"lead(v) OVER ({ROWS})"),
    "lead 3": ({}, w.lead("s", 3, "-"), f"lead(s, 3, '-') OVER ({ROWS})"),
    "first_value": ({}, w.first_value("s"), f"first_value(s) OVER ({ROWS})"),
    "last_value": (
        {},
        w.last_value("s"),
        f"last_value(s) OVER ({ROWS} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    "nth_value": (
        {},
        w.nth_value("s", 2),
        f"nth_value(s, 2) OVER ({ROWS} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    "fill_forward": ({}, w.fill_forward("v"), f"last_value(v IGNORE NULLS) OVER ({ROWS} ROWS "
                     "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    "running sum": ({}, ef.sum("v"), f"sum(v) OVER ({ROWS} ROWS UNBOUNDED PRECEDING)"),
    "running max": ({}, ef.max("s"), f"max(s) OVER ({ROWS} ROWS UNBOUNDED PRECEDING)"),
    "moving sum": ({"rows": 3}, ef.sum("v"), f"sum(v) OVER ({ROWS} ROWS 2 PRECEDING)"),
    "moving min": (
        {"rows": (-1, 2)},
        ef.min("s"),
        f"min(s) OVER ({ROWS} ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    ),
    "moving mean": (
        {"rows": (-2, 1)},
        ef.mean("v"),
        f"avg(v) OVER ({ROWS} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    ),
    "count in range": (
        {"range": 3},
        ef.count(),
        f"count(*) OVER ({PLACE} RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)",
    ),
    "max in range": (
        {"range": (-2, 1)},
        ef.max("v"),
        f"max(v) OVER ({PLACE} RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    ),
    "whole sum": ({"rows": None}, ef.sum("v"), f"sum(v) OVER ({ALL})"),
}  # fmt: skip


def changes(dice: Random, there: Counter[Event]) -> dict[Event, int]:
    """A few rows that come, late or not, and a few that go."""
    change: dict[Event, int] = {}
    for _ in range(dice.choice((1, 1, 3, 8))):
        if there and dice.random() < 0.45:
            row = dice.choice(sorted(there, key=repr))
            change[row] = -dice.randint(1, there[row])
        else:
            value = dice.choice((None, dice.randint(-3, 9)))
            row = Event(dice.randint(0, 1), dice.randint(0, 12), value, dice.choice("abc"))
            change.setdefault(row, dice.choice((1, 1, 1, 2)))
    return change


def asked(connection: Any, there: Counter[Event], text: str) -> Counter[Any]:
    connection.execute("DELETE FROM events")
    rows = [tuple(row) for row in there.elements()]
    if rows:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    found = connection.execute(f"SELECT k, t, v, s, {text} FROM events").fetchall()
    return Counter(map(rounded, found))


def rounded(row: Any) -> Any:
    return tuple(round(float(x), 9) if type(x) in (float, int) else x for x in row)


@pytest.mark.parametrize("name", WINDOWS)
def test_window_functions_are_those_of_duckdb(name: str) -> None:
    frame, function, text = WINDOWS[name]
    events = ef.Input("events", Event)
    view = events.over(per="k", order="t", **frame).with_fields(x=function).run()
    connection = duckdb.connect()
    connection.execute("CREATE TABLE events (k INTEGER, t INTEGER, v INTEGER, s VARCHAR)")
    dice, there, added = Random(name), Counter[Event](), Counter[Any]()
    for _ in range(12):
        change = changes(dice, there)
        for row, weight in view.step(events=change).items():
            added[rounded(row)] += weight
        there.update(change)
        there += Counter()
        added = +added
        assert added == asked(connection, there, text)
    view.verify()
