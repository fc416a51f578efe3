"""Monotone loops against DuckDB's `WITH RECURSIVE`, which shares no code with the engine or batch.

A loop is written twice: as a body of `iterate`, and as SQL. Rows are pairs of small numbers; the
ways to derive rows are drawn: over edges in either direction, two edges at once, with filters and
sums on the way. Distances are counted along roads, and the least is taken in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from tests.oracle.duckdb_witness import base
from tests.oracle.loop_shapes import Edge, Far, Road, edges, roads
from tests.oracle.looped import run_exactly

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.zset import ZSet

starts = ef.Input("starts", Edge)
NODES, LONGEST = 5, 3
WAYS = (run, run_exactly)


@dataclass(frozen=True)
class Term:
    """One way to derive rows: the fields that meet, what is made of two rows, and which of these
    are kept. Python and SQL are the same text but for `==`."""

    mine: str
    theirs: str
    made: tuple[str, str]
    kept: str
    both_ends: bool

    def rows(self, x: Any) -> Any:
        first, second = self.made
        made = eval(f"lambda t, e: Edge(({first}) % {NODES}, ({second}) % {NODES})", {"Edge": Edge})
        if self.both_ends:  # the same generation: an edge to each of the two
            x = edges.join(x, left_on="b", right_on="a", select=lambda e, t: Edge(e.a, t.b))
        joined = x.join(edges, left_on=self.mine, right_on=self.theirs, select=made)
        return joined.filter(eval(f"lambda r: {self.kept.replace('=', '==')}"))

    @property
    def sql(self) -> str:
        first, second = self.made
        t = "t"
        if self.both_ends:
            t = "(SELECT e.a AS a, t.b AS b FROM edges e JOIN t ON e.b = t.a) t"
        return (
            f"SELECT a, b FROM (SELECT ({first}) % {NODES} AS a, ({second}) % {NODES} AS b "
            f"FROM {t} JOIN edges e ON t.{self.mine} = e.{self.theirs}) r WHERE {self.kept}"
        )


def drawn(dice: Random) -> Term:
    def part() -> str:
        one, other = dice.choice(["t.a", "t.b"]), dice.choice(["e.a", "e.b"])
        return dice.choice([one, other, other, f"{one} + {other}", f"{other} + 1", f"{one} * 2"])

    return Term(
        dice.choice("ab"), dice.choice("ab"), (part(), part()),
        dice.choice(["r.a < 9", "r.a < 9", "r.a = r.b", "r.a + r.b > 1", "r.b > 0"]),
        dice.random() < 0.2,
    )  # fmt: skip


def loop(terms: list[Term]) -> Any:
    def body(x: Any) -> Any:
        found = x
        for term in terms:
            found += term.rows(x)
        return found.distinct()

    return starts.iterate(body)


def changes(dice: Random, there: dict[str, list[Any]], make: Any) -> dict[str, ZSet[Any]]:
    """Rows that come and go, some of them more than once."""
    change: dict[str, dict[Any, int]] = {name: {} for name in there}
    for _ in range(dice.randint(1, 6)):
        name = dice.choice([*there, *[each for each in there if each != "starts"]])
        rows = there[name]
        if rows and dice.random() < 0.4:
            row, weight = rows.pop(dice.randrange(len(rows))), -1
        else:
            row, weight = make(name), 1
            rows.append(row)
        change[name][row] = change[name].get(row, 0) + weight
    return {name: ZSet(rows) for name, rows in change.items()}


def asked(query: str, there: dict[str, list[Any]]) -> ZSet[Any]:
    """What DuckDB answers, given these rows."""
    duck = base()
    for name, rows in there.items():
        width = 3 if name == "roads" else 2
        columns = ", ".join(f"{each} BIGINT" for each in ("a", "b", "d")[:width])
        duck.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        if rows:
            lines = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
            duck.execute(f"INSERT INTO {name} VALUES {lines}")
    return ZSet.of(duck.execute(query).fetchall())


def witnessed(seed: Any, epochs: int = 4) -> None:
    dice = Random(seed)
    terms = [drawn(dice) for _ in range(dice.choice([1, 1, 2, 3]))]
    views = [way(loop(terms).plan) for way in WAYS]
    query = "WITH RECURSIVE t AS (SELECT a, b FROM starts UNION (" + " UNION ALL ".join(
        term.sql for term in terms
    ) + ")) SELECT DISTINCT a, b FROM t"  # fmt: skip

    def row(name: str) -> Any:
        return Edge(dice.randrange(NODES), dice.randrange(NODES))

    followed(views, query, dice, {"starts": [], "edges": []}, row, epochs)


def followed(
    views: list[Any], query: str, dice: Random, there: dict[str, list[Any]], row: Any, epochs: int
) -> None:
    """Some epochs of views of one program, and after each the rows that DuckDB answers."""
    for _ in range(epochs):
        change = changes(dice, there, row)
        for view in views:
            view.step(change)
        expected = asked(query, there)
        for view in views:
            assert ZSet.of(map(tuple, view.value)) == expected, (query, there)


def witnessed_distances(seed: Any, epochs: int = 4) -> None:
    dice = Random(seed)
    far = starts.map(lambda s: Far(s.a, s.b), type=Far).iterate(
        lambda x: (
            x + x.join(roads, on="a", select=lambda t, e: Far(e.b, t.d + e.d))
        ).group_by("a").agg(d=ef.min("d"))
    )  # fmt: skip
    views = [way(far.plan) for way in WAYS]
    most = NODES * (LONGEST + 1)
    query = f"""
        WITH RECURSIVE t AS (
            SELECT a, b AS d FROM starts
            UNION SELECT e.b AS a, t.d + e.d AS d FROM t JOIN roads e ON t.a = e.a
                  WHERE t.d + e.d <= {most})
        SELECT a, min(d) FROM t GROUP BY a"""

    def row(name: str) -> Any:
        a, b = dice.randrange(NODES), dice.randrange(NODES)
        return Edge(a, b % 3) if name == "starts" else Road(a, b, dice.randrange(LONGEST + 1))

    followed(views, query, dice, {"starts": [], "roads": []}, row, epochs)


def test_002_D10_monotone_loops_agree_with_recursive_sql() -> None:
    for seed in range(6):
        witnessed(f"loop {seed}")


def test_002_D10_least_distances_agree_with_recursive_sql() -> None:
    for seed in range(5):
        witnessed_distances(f"far {seed}")


@pytest.mark.slow
def test_002_D10_many_monotone_loops_agree_with_recursive_sql() -> None:
    for seed in range(25, 225):
        witnessed(f"loop {seed}", 8)
        witnessed_distances(f"far {seed}", 8)
