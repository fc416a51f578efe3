"""The queries of Nexmark are right after every change: what DuckDB computes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ebbflow as ef
from examples.nexmark.data import Market
from examples.nexmark.queries import QUERIES
from examples.nexmark.witness import NexmarkWitness
from examples.witness import differences

SIZES = (3_000, 1, 7, 200, 1, 500)
"""How many events come at a time."""


def followed(view: Any, sizes: tuple[int, ...], value: Any) -> set[str]:
    """Let things happen in a view and in DuckDB alike, and compare every query each time; gives
    those that had an answer."""
    witness, market, answered = NexmarkWitness(), Market(seed=3), set()
    for step in range(len(sizes) + 1):
        change = market.events(sizes[step - 1], withdrawn=0.1) if step else market.opening()
        view.step(change.changes)
        witness.apply(change)
        for name, found in value().items():
            theirs = witness.ask(name, now=change.now)
            wrong = differences(found, theirs)
            assert not wrong, f"{name}, step {step}: {wrong}"
            answered |= {name} if theirs else set()
    return answered


def test_every_query_is_what_duckdb_computes_after_every_change() -> None:
    view = ef.program(**{name: made() for name, made in QUERIES.items()}).run()
    assert followed(view, SIZES, lambda: view.value) >= {*QUERIES}


def test_every_query_is_right_by_itself() -> None:
    """Alone, and trusting its inputs, a query is compiled otherwise than beside the others."""
    views = {name: made().run(check_input=False) for name, made in QUERIES.items()}

    class Together:
        def step(self, changes: dict[str, Any]) -> None:
            for view in views.values():
                mine = {name: changes[name] for name in view.plan.sources if name in changes}
                view.step(mine)

    found = followed(Together(), SIZES[:5], lambda: {n: v.value for n, v in views.items()})
    assert len(found) >= len(QUERIES) - 2


def test_events_are_the_same_from_the_same_seed_however_they_are_cut() -> None:
    whole = Market(seed=1).events(500, withdrawn=0)
    parts = [*Market(seed=1).batches(500, 7, withdrawn=0)]
    for name, rows in whole.added.items():
        assert rows == [row for part in parts for row in part.added[name]]


def test_an_auction_that_is_corrected_to_what_it_was_is_no_change() -> None:
    market = Market(seed=1)
    change = market.events(50, withdrawn=0)
    auction = change.added["auction"][0]
    again = change._replace(removed={"auction": [auction]}, added={"auction": [auction]})
    assert "auction" in change.changes
    assert again.changes == {"now": change.now}


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("mode", ["auto", "staged", "bulk"])
def test_every_query_is_right_on_spark(mode: str, tmp_path: Path) -> None:
    from ebbflow.engine.spark.session import session

    program = ef.program(**{name: made() for name, made in QUERIES.items()})
    with program.run(ef.spark(session(), path=tmp_path, mode=mode)) as view:
        followed(view, (1_000, 50), view.zset)
