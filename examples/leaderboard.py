"""Leaderboards of a game, one per season: each player's best run, and everybody's place.

The best score of a player is a maximum; when that run is struck off for cheating, the second best
counts again, because a maximum here remembers what it beats. Places are made by two steps that fit
together: `reduce(collect)` gathers a season's players in order into one row, and `flat_map` deals
them out again with their places. Players with equal scores share a place.

    python examples/leaderboard.py
    python examples/leaderboard.py --stats
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import ebbflow as ef


class Run(NamedTuple):
    season: str
    player: str
    score: int


class Place(NamedTuple):
    season: str
    place: int
    player: str
    score: int


def places(season: Any) -> Iterator[Place]:
    """1, 2, 2, 4: as many are ahead of a player as have a higher score."""
    scores = [-minus for minus, _ in season.value]
    for minus, player in season.value:
        yield Place(season.season, scores.index(-minus) + 1, player, -minus)


runs = ef.Input("runs", Run)

best = runs.group_by("season", "player").agg(score=ef.max("score"), runs=ef.count())
ranking = (
    best.group_by("season")
    .reduce(ef.collect(lambda row: (-row.score, row.player)))
    .flat_map(places)
)
champions = ranking.filter(lambda row: row.place == 1)
program = ef.program(
    ranking=ranking,
    podium=best.top_k(3, order="score", per="season"),
    titles=champions.group_by("player").agg(
        titles=ef.count(), first=ef.first("season", order="season"), seasons=ef.set_of("season")
    ),
)

start = {
    "runs": [
        Run("spring", "ann", 310),
        Run("spring", "ann", 280),
        Run("spring", "bob", 305),
        Run("spring", "cat", 250),
        Run("summer", "bob", 400),
        Run("summer", "cat", 400),
        Run("summer", "ann", 390),
        Run("summer", "dan", 120),
    ]
}


def main() -> None:
    with program.run() as view:

        def show(season: str, what: str) -> None:
            print(what)
            for row in sorted(view["ranking"].value):
                if row.season == season:
                    print(f"  {row.place}. {row.player} {row.score}")

        view.step(start)
        show("spring", "spring")
        show("summer", "summer: two winners")
        view.input("runs").remove(Run("spring", "ann", 310))
        show("spring", "ann cheated in her best spring run: the other one counts")
        view.step(runs=ef.ZSet({Run("summer", "dan", 120): -1, Run("summer", "dan", 395): 1}))
        show("summer", "dan's score was read wrong: 395, not 120")
        podium = sorted(row.player for row in view["podium"].value if row.season == "summer")
        print("summer's podium:", ", ".join(podium))
        for row in sorted(view["titles"].value):
            print(f"{row.player}'s titles: {row.titles} ({', '.join(sorted(row.seasons))})")
        if "--stats" in sys.argv:
            print(view.stats())


if __name__ == "__main__":
    main()
