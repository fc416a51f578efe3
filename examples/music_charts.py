"""Weekly music charts, and how each song moved since the week before.

A chart counts the plays of the last fourteen days and is published every seven: sliding windows.
To see how songs moved, the charts are joined with themselves one week later. The join is a full
one: a song that is only in the new chart has just entered, one that is only in the old chart has
dropped out. When a farm of fake listeners is found out and its plays are taken back, old charts
are corrected, and so are all the moves that were seen between them.

    python examples/music_charts.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Play(NamedTuple):
    song: str
    day: int
    listener: str


class Entry(NamedTuple):
    week: int
    song: str
    plays: int


class Move(NamedTuple):
    week: int
    song: str
    before: int
    now: int


def entry(row: Any) -> Entry:
    return Entry(row.window_end // 7, row.song, row.plays)


def a_week_later(entry: Entry) -> Entry:
    return entry._replace(week=entry.week + 1)


def move(now: Entry | None, before: Entry | None) -> Move:
    this = now or before
    assert this is not None
    return Move(this.week, this.song, before.plays if before else 0, now.plays if now else 0)


plays = ef.Input("plays", Play)

chart = (
    plays.sliding("day", 14, 7)
    .group_by("window_end", "song")
    .agg(plays=ef.count(), fans=ef.count_distinct("listener"))
    .filter(lambda row: row.fans > 1)
    .map(entry)
    .top_k(2, order=lambda entry: (entry.plays, entry.song), per="week")
)
moves = chart.join(chart.map(a_week_later), on=("week", "song"), how="full", select=move)
program = ef.program(
    chart=chart,
    moves=moves.join(chart, on="week", how="semi"),  # not beyond the last chart
    hits=chart.group_by("song").agg(weeks=ef.count(), peak=ef.max("plays")),
)

start = {
    "plays": [
        *[Play("Ebb", day, who) for day in (1, 3, 8) for who in ("ann", "bob")],
        *[Play("Flow", day, who) for day in (2, 9, 10) for who in ("ann", "cat")],
        *[Play("Tide", day, who) for day in (9, 11) for who in ("bob", "cat")],
        *[Play("Noise", 10, f"bot{n}") for n in range(9)],
    ]
}


def main() -> None:
    view = program.run()

    def show(week: int, what: str) -> None:
        print(what)
        for row in sorted(view["moves"].value, key=lambda row: (-row.now, row.song)):
            if row.week == week:
                how = "new" if not row.before else "out" if not row.now else f"was {row.before}"
                print(f"  {row.song:<6}{row.now or '–':>2}  {how}")

    view.step(start)
    show(1, "week 1")
    show(2, "week 2")
    bots = [play for play in start["plays"] if play.song == "Noise"]
    view.input("plays").remove(*bots)
    show(2, "week 2, without nine fake listeners")
    view.input("plays").add(*[Play("Tide", 13, who) for who in ("ann", "bob", "cat")])
    show(2, "week 2, with plays reported late")
    show(3, "week 3: nothing new was played, and the first week does not count any more")
    for row in sorted(view["hits"].value):
        print(f"{row.song}: in {row.weeks} of the charts, with {row.peak} plays at best")
    view.close()


if __name__ == "__main__":
    main()
