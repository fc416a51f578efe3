"""The first rows of each key with ties and with numbers, and the last rows, beside DuckDB."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError
from ebbflow.zset import ZSet


class Score(NamedTuple):
    """What somebody scored."""

    team: str
    name: str
    points: int


SCORES = ef.Input("scores", Score)
WHICH = {
    "ties": (
        SCORES.top_k(2, order="points", per="team", ties=True),
        "SELECT * FROM scores QUALIFY rank() OVER (PARTITION BY team ORDER BY points DESC) <= 2",
    ),
    "ties of all, smallest": (
        SCORES.top_k(3, order="points", smallest=True, ties=True),
        "SELECT * FROM scores QUALIFY rank() OVER (ORDER BY points) <= 3",
    ),
    "numbers": (
        SCORES.top_k(3, order="points", per="team", number="place"),
        """SELECT *, row_number() OVER (PARTITION BY team
                     ORDER BY points DESC, name DESC) AS n FROM scores QUALIFY n <= 3""",
    ),
    "ties and numbers": (
        SCORES.top_k(2, order="points", smallest=True, ties=True, number="place"),
        """SELECT *, row_number() OVER (ORDER BY points, team, name)
           FROM scores QUALIFY rank() OVER (ORDER BY points) <= 2""",
    ),
    "the last": (
        SCORES.last(2, order=("points", "name"), per="team"),
        """SELECT * FROM scores QUALIFY
           row_number() OVER (PARTITION BY team ORDER BY points DESC, name DESC) <= 2""",
    ),
}


@pytest.mark.parametrize("name", WHICH)
def test_the_first_rows_agree_with_duckdb_change_by_change(name: str, tmp_path: Path) -> None:
    made, query = WHICH[name]
    dice, there = Random(name), list[Score]()
    with duckdb.connect() as db, made.run(path=tmp_path) as stored:
        db.execute("CREATE TABLE scores (team TEXT, name TEXT, points INT)")
        view = made.run()
        for _ in range(12):
            change = ZSet[Any]()
            for _ in range(dice.randint(1, 4)):
                if there and dice.random() < 0.4:
                    change -= ZSet.of([there.pop(dice.randrange(len(there)))])
                else:
                    there.append(Score(dice.choice("ab"), dice.choice("vwxyz"), dice.randrange(4)))
                    change += ZSet.of(there[-1:])
            view.step(scores=change)
            stored.step(scores=change)
            db.execute("DELETE FROM scores")
            if there:
                db.executemany("INSERT INTO scores VALUES (?, ?, ?)", there)
            expected = sorted(db.execute(query).fetchall())
            assert sorted(tuple(row) for row, n in view.value.items() for _ in range(n)) == expected
            assert stored.value == view.value
        assert view.verify()


def test_a_new_best_row_moves_the_numbers_of_the_others() -> None:
    view = SCORES.top_k(2, order="points", number="place").run()
    view.step(scores=[Score("a", "x", 5), Score("a", "y", 3)])
    row = view.plan.outputs["output"].type
    assert view.step(scores=[Score("b", "z", 9)]) == ZSet(
        {
            row("b", "z", 9, 1): 1,
            row("a", "x", 5, 1): -1,
            row("a", "x", 5, 2): 1,
            row("a", "y", 3, 2): -1,
        }
    )


def test_what_is_refused() -> None:
    for wrong, why in {
        lambda: SCORES.top_k(2, order="points", number="team"): "have already a field 'team'",
        lambda: SCORES.top_k(2, order="points", number="class"): "cannot be the name of a field",
        lambda: SCORES.last(0, order="points"): "a positive number of rows",
        lambda: SCORES.last(1, order="pints"): "no field 'pints'",
        lambda: SCORES.top_k(1, order="points", number=1): "it is the name of a field",
    }.items():
        with pytest.raises(CompositionError, match=why):
            wrong()
