"""Does the Spark engine pick the mode that is fastest, for an epoch of many events?

The same epochs of a Nexmark program (`examples/nexmark`), each in a view of its own, in every mode
and in the one that the engine picks. The first epoch brings so many events into an empty state, the
second one as many more to what is there, of which some are taken back; a bulk load of a state that
is there is for half a million rows and more.

    s            seconds of the epoch; `used s`, of processor time in all processes
    / one task   beside the same in one task, and `/ best` beside the fastest mode
    picked       the mode that the engine took, and `why` what it thought the others would take

Modes take turns in one session on two cores, after epochs that are not timed; all views must be
equal in the end. What is asked: the mode that is picked takes at most 1.5 times as long as one
task.

    python benchmarks/modes.py [--events 47_000,300_000] [--queries q4] [--rounds 1] [--quick]
                               [--json]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import Row, publish
from spark_clock import Taken, middle, timed

sys.path.insert(0, str(Path(__file__).parents[1]))

from tpch_spark import say, spark_session, weighted

from examples.nexmark.data import Change, Market
from examples.nexmark.queries import QUERIES
from examples.nexmark.tables import ROWS

QUESTION = (__doc__ or "").splitlines()[0]
MODES = ("single_task", "staged", "bulk", "auto")
WHEN = ("empty", "there")
WARM_UP = 3_000
LIMIT = 1.5


def given(change: Change, sources: Any) -> dict[str, Any]:
    """A change as tables, of the inputs that a program has."""
    return {
        name: weighted(ROWS[name], rows) if name in ROWS else rows
        for name, rows in change.changes.items() if name in sources
    }  # fmt: skip


def epochs(events: int, sources: Any) -> list[dict[str, Any]]:
    """What is there before the first event, and two epochs of so many."""
    market = Market(seed=1)
    changes = [market.opening(), *market.batches(2 * events, events)]
    return [given(each, sources) for each in changes]


class Views:
    """One view in each mode, each with its state in a folder."""

    def __init__(self, spark: Any, query: str, folder: Path) -> None:
        import ebbflow as ef

        self.views = {
            mode: QUERIES[query]().run(ef.spark(spark, path=str(folder / mode), mode=mode))
            for mode in MODES
        }

    def step(self, change: dict[str, Any], turn: int) -> Iterator[tuple[str, Taken]]:
        """One epoch in all modes, each in its turn; what it took."""
        order = MODES[turn % len(MODES) :] + MODES[: turn % len(MODES)]
        for mode in order:
            yield mode, timed(self.views[mode].step, change)[1]

    def close(self) -> None:
        for view in self.views.values():
            view.close()

    def require_equal(self) -> None:
        """Stop where modes do not agree."""
        wanted = self.views["single_task"].zset()
        for mode, view in self.views.items():
            if view.zset() != wanted:
                raise SystemExit(f"the view in mode {mode} is not that of one task")


def measured(spark: Any, query: str, events: int, rounds: int) -> list[Row]:
    """The figures of one query and size: a row for each mode, and for each state before it."""
    times: dict[tuple[str, str], list[Taken]] = {}
    picked: dict[str, tuple[str, str]] = {}
    sources = QUERIES[query]().plan.sources
    opening, *both = epochs(events, sources)
    for turn in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-modes-", ignore_cleanup_errors=True) as at:
            views = Views(spark, query, Path(at))
            for when, change in zip(WHEN, both, strict=True):
                say(f"{query}: {events:,} events, state {when}, round {turn + 1} of {rounds}")
                whole = {**opening, **change} if when == "empty" else change
                for mode, taken in views.step(whole, turn):
                    times.setdefault((when, mode), []).append(taken)
                stats = views.views["auto"].stats()
                picked[when] = stats.epochs[-1].mode, stats.why
            views.require_equal()
            views.close()
    found = []
    for when in WHEN:
        taken = {mode: middle(times[when, mode]) for mode in MODES}
        best = min(each.wall for mode, each in taken.items() if mode != "auto")
        for mode, each in taken.items():
            row: Row = {
                "work": "modes", "query": query, "events": events, "state": when, "mode": mode,
                "s": each.wall, "used s": each.used, "/ best": each.wall / best,
                "/ one task": each.wall / taken["single_task"].wall,
                "used / one task": each.used / max(taken["single_task"].used, 0.01),
            }  # fmt: skip
            if mode == "auto":
                row |= {"picked": picked[when][0], "why": picked[when][1]}
            found.append(row)
    return found


def warm_up(spark: Any, query: str) -> None:
    """Epochs that are not timed: Java compiles what it runs often, workers import."""
    with tempfile.TemporaryDirectory(prefix="bench-modes-", ignore_cleanup_errors=True) as folder:
        views = Views(spark, query, Path(folder))
        opening, *both = epochs(WARM_UP, QUERIES[query]().plan.sources)
        for change in ({**opening, **both[0]}, both[1]):
            for _ in views.step(change, 0):
                pass
        views.require_equal()
        views.close()


def judged(rows: list[Row], quick: bool) -> list[Row]:
    """The mode that is picked is not much slower than one task."""
    return [
        {
            "target": f"{row['query']}, {row['events']:,} events, state {row['state']}: {name}",
            "found": row[name], "": "<=", "wanted": LIMIT,
            "met": "not asked" if quick else "yes" if row[name] <= LIMIT else "NO",
        }
        for row in rows if row["mode"] == "auto" for name in ("/ one task",)
    ]  # fmt: skip


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--events", type=numbers, help="sizes of an epoch: 47_000,300_000")
    parser.add_argument("--queries", default="q4", help="which of Nexmark's, as q4,q5")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few events, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    asked = parser.parse_args()
    sizes = asked.events or ([25_000] if asked.quick else [47_000, 300_000])
    queries = asked.queries.lower().split(",")
    if unknown := set(queries) - set(QUERIES):
        parser.error(f"no such query: {', '.join(sorted(unknown))}")
    with spark_session() as spark:
        found = []
        for query in queries:
            warm_up(spark, query)
            for events in sizes:
                found += measured(spark, query, events, asked.rounds)
    publish(asked, QUESTION, found, judged(found, asked.quick), {}, [])


if __name__ == "__main__":
    main()
