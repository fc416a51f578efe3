"""What do columns cost, beside rows, programs by hand, and other systems?

    group   sum and count of 1M rows in 10k groups, 1,000 and 100,000 changes at a time
    one     the same, one change at a time
    join    200k rows joined with 200k, 1 to 10 of a key, 1,000 changes at a time
    load    the rows of these at once, into contestants that have none: the shorter of two times
            for each, as the first may have to wait for memory that the system has to find; also
            told of the works above
    most    nine tenths of the rows of group go in one change; beside it, what loading the tenth
            that is left takes: whether it would pay to compute such a stage again

A contestant is named by where the state is, and by what comes in and goes out:

    kernels            loops by hand over arrays, compiled by Numba (`columns_floors.py`)
    dict, dict kept    loops by hand over rows (`floors.py`); the second keeps its input
    rows               the engine in rows (`columns=False`), given rows, or Arrow tables
    columns            the engine in columns (`columns=True`), given rows, Arrow tables, or arrays:
                       a dict of one NumPy array for each field and one of weights
    Pathway, DuckDB, Polars     as in `rivals.py`
    differential       differential dataflow in Rust (`differential/`), with one worker

The engine checks its input, unless it says *trusting*. Who is given tables gives Arrow tables, and
who is given arrays gives arrays; who is given rows must have made all the rows of the change.

All take the same changes in turns, in one run, as in `local.py`, where it is said what a time is.
What comes in is made before the clock runs. The last change of each round must be the same for
all, and at the end all results are compared with the result computed anew, with NumPy. Before
the load everyone runs a few thousand rows, so that everything is compiled, also what is called when
a table grows.

    python benchmarks/columns.py [--quick] [--json] [--work group,one] [--rounds 3] [--without dict]
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import floors
import local_data as data
import numpy as np
import pyarrow as pa
import rivals
from columns_floors import KERNELS
from harness import Row, publish
from local import Engine, clock, figures, program, send
from local_targets import Figures
from rust import RustProgram, is_built

from ebbflow.zset import ZSet

Array = Any
Made = dict[str, Callable[[], Any]]
Steps = list[tuple[str, int, int]]
WORKS = ("group", "one", "join", "load", "most")
RIVALS = ("Pathway", "DuckDB", "Polars", "differential")
FULL = data.Sizes(batches=10, singles=300)
LARGE, SMALL_LARGE = 100_000, 2_000
WEIGHT = "__weight"
KNOWN: dict[int, tuple[data.Change, dict[str, dict[str, Array]]]] = {}
"""The changes of this round, each with itself as arrays."""


# ---- what goes in and comes out ----


def arrays(change: data.Change) -> dict[str, dict[str, Array]]:
    """A change as arrays: the same ones for all who ask."""
    if id(change) not in KNOWN:
        found: dict[str, dict[str, Array]] = {}
        KNOWN[id(change)] = change, found
        for name, bag in change.items():
            fields = matrix(bag, len(rivals.COLUMNS[name])).T.copy()
            found[name] = dict(zip(rivals.COLUMNS[name], fields, strict=True))
            found[name][WEIGHT] = np.fromiter(bag.values(), np.int64, len(bag))
    return KNOWN[id(change)][1]


def matrix(rows: Iterable[Any], width: int) -> Array:
    """Rows of ints as one array."""
    return np.array(list(rows), np.int64).reshape(-1, width)


def total(columns: Iterable[list[int]]) -> data.Bag:
    """Columns, of which the last are weights, as rows with weights that are not zero."""
    found: data.Bag = {}
    for *row, weight in zip(*columns, strict=True):
        weight += found.pop(tuple(row), 0)
        if weight:
            found[tuple(row)] = weight
    return found


# ---- contestants ----


class InRows(Engine):
    """The engine, given rows; the rows of its change are made."""

    def __init__(self, query: str, **options: Any) -> None:
        super().__init__(program(query), **options)
        self.step = self.given  # type: ignore[method-assign]

    def given(self, change: Any) -> ZSet[Any]:
        out: ZSet[Any] = self.view.step(change)
        out.items()
        return out

    def bag(self, given: Any) -> data.Bag:
        return {tuple(row): weight for row, weight in given.items()}

    def value(self) -> Array:  # type: ignore[override]
        table = self.view.value.to_arrow()
        return np.stack([column.to_numpy() for column in table.columns], axis=1)


class InArrow(InRows):
    """The engine, given Arrow tables, and asked for them."""

    def prepare(self, change: data.Change) -> Any:
        return {name: pa.table(columns) for name, columns in arrays(change).items()}

    def given(self, change: Any) -> Any:
        return self.view.step(change).to_arrow()

    def bag(self, given: Any) -> data.Bag:
        return total(column.to_pylist() for column in given.columns)


class InArrays(InRows):
    """The engine, given dicts of arrays, and asked for them."""

    def prepare(self, change: data.Change) -> Any:
        return arrays(change)

    def given(self, change: Any) -> Any:
        return self.view.step(change).to_numpy()

    def bag(self, given: Any) -> data.Bag:
        return total(array.tolist() for array in given.values())


class Kernels:
    """Compiled loops by hand."""

    def __init__(self, query: str) -> None:
        self.kernel = KERNELS[query]()
        self.step, self.value = self.kernel.step, self.kernel.value
        self.prepare = arrays

    def bag(self, given: Any) -> data.Bag:
        return total(array.tolist() for array in given.values())

    def close(self) -> None:
        pass


class ByHand:
    """A dict program."""

    def __init__(self, floor: floors.Floor) -> None:
        self.floor = floor
        self.step, self.prepare, self.close = floor.step, floor.prepare, floor.close

    def bag(self, given: Any) -> data.Bag:
        return {tuple(row): weight for row, weight in given.items()}

    def value(self) -> Array:
        rows = self.floor.value()
        return matrix(rows, len(next(iter(rows))))


class Rival:
    """A rival of `local.py`, whose result is asked for and not its changes."""

    def __init__(self, rival: Any) -> None:
        self.rival = rival
        self.step, self.prepare, self.close = rival.step, rival.prepare, rival.close

    def value(self) -> Array:
        answer = getattr(self.rival, "answer", None)
        if answer is not None:
            return answer.to_numpy()
        rows = self.rival.value()
        return matrix(rows, len(next(iter(rows))))


class Differential(RustProgram):
    """The program in Rust."""

    def prepare(self, change: data.Change) -> str:
        return "".join(
            f"{side} {row[0]} {row[1]} {row[2]} {weight}\n"
            for side, bag in enumerate(change.values())
            for row, weight in bag.items()
        )

    def value(self) -> Array:
        rows = self.rows()
        return matrix(rows, len(rows[0]))[:, :-1]


ENGINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "rows": (InRows, {"columns": False}),
    "rows, Arrow": (InArrow, {"columns": False}),
    "columns, rows": (InRows, {"columns": True}),
    "columns, Arrow": (InArrow, {"columns": True}),
    "columns, arrays": (InArrays, {"columns": True}),
}


def contestants(query: str, build: bool, without: Sequence[str]) -> Made:
    """How each is made, by name."""
    made: Made = {
        "kernels": lambda: Kernels(query),
        "dict": lambda: ByHand(floors.NAMED[query]()),
        "dict kept": lambda: ByHand(floors.Kept(floors.NAMED[query]())),
    }
    for name, (engine, options) in ENGINES.items():
        made[name.replace(",", " trusting,") if "," in name else f"{name} trusting"] = (
            lambda engine=engine, options=options: engine(query, check_input=False, **options)
        )
        made[name] = lambda engine=engine, options=options: engine(query, **options)
    for name, rival in rivals.installed().items():
        made[name] = lambda rival=rival: Rival(rival(query))
    if "differential" not in without and is_built(build):
        made["differential"] = lambda: Differential(query)
    return {name: make for name, make in made.items() if name not in without}


# ---- the result computed anew ----


def recomputed(query: str, tables: dict[str, data.Table]) -> Array:
    """The result of a query, in one go."""
    found = [matrix(table.rows, 3) for table in tables.values()]
    if query == "group":
        ((_, keys, prices),) = (rows.T for rows in found)
        sums, counts = np.bincount(keys, prices).astype(np.int64), np.bincount(keys)
        there = np.flatnonzero(counts)
        return np.stack([there, sums[there], counts[there]], axis=1)
    clicks, sales = found
    sales = sales[np.argsort(sales[:, 1], kind="stable")]
    first = np.searchsorted(sales[:, 1], clicks[:, 1])
    matches = np.searchsorted(sales[:, 1], clicks[:, 1], side="right") - first
    left = np.repeat(np.arange(len(clicks)), matches)
    right = np.arange(len(left)) - np.repeat(np.cumsum(matches) - matches - first, matches)
    return np.concatenate([clicks[left], sales[right][:, [0, 2]]], axis=1)


def fingerprint(rows: Array) -> tuple[int, int]:
    """How many rows there are, and a sum of hashes of them: the same in whatever order they are."""
    mixed = np.zeros(len(rows), np.uint64)
    for field in rows.T:
        mixed = (mixed ^ field.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return len(rows), int(mixed.sum())


def same(what: str, name: str, found: Any, wanted: Any) -> None:
    """A contestant that does other work cannot be compared."""
    if found != wanted:
        raise AssertionError(f"{what} of {name} is not what it should be")


# ---- loading, and changes ----


def warm_up(make: Callable[[], Any], change: data.Change) -> None:
    """Have everything compiled: some rows come, and go."""
    live, few = make(), {name: list(bag)[:3_000] for name, bag in change.items()}
    for weight in (1, -1):
        live.step(live.prepare({name: dict.fromkeys(rows, weight) for name, rows in few.items()}))
    live.close()


def taken(query: str, made: Made, source: Any, steps: Steps, rounds: int) -> list[Row]:
    """Load everyone, then let everyone take the same changes in turns. `steps` say for each work
    how many rows a change has, and how many changes make a round."""
    rows = sum(map(len, source.load.values()))
    lives, found = {}, []
    for name, make in made.items():
        warm_up(make, source.load)
        load: list[tuple[float, float]] = []
        for _ in range(2):
            if name in lives:
                lives.pop(name).close()
            lives[name] = make()
            send(lives[name], [source.load], 1, load, clock(name))
        seconds = min(map(min, load))
        found.append({"work": f"load {query}", "contestant": name, "rows/s": rows / seconds,
                      "s": seconds})  # fmt: skip
    source.load = {}
    order = list(lives)
    for work, size, count in steps:
        times: dict[str, Any] = {name: [] for name in lives}
        for _ in range(rounds):
            changes = [source.change(size) for _ in range(count)]
            KNOWN.clear()
            given: data.Bag | None = None
            for name in order:
                live = lives[name]
                timed = min(10, count) if name in rivals.RIVALS else count
                out = send(live, changes, timed, times[name], clock(name))
                if name not in RIVALS:
                    bag = live.bag(out)
                    given = bag if given is None else given
                    same("the last change", name, bag, given)
            order = order[1:] + order[:1]
        found += [figures(work, name, times[name]) for name in made]
    wanted = fingerprint(recomputed(query, source.tables))
    for name, live in lives.items():
        same("the result", name, fingerprint(live.value()), wanted)
        live.close()
    gc.unfreeze()
    return found


def most_gone(made: Made, source: Any) -> list[Row]:
    """Nine tenths of the rows go at once, from the engine in rows and in columns."""
    (name, bag), found = next(iter(source.load.items())), []
    rows = list(bag)
    left = {name: dict.fromkeys(rows[: len(rows) // 10], 1)}
    gone = {name: dict.fromkeys(rows[len(rows) // 10 :], -1)}
    for contestant in ("rows", "columns, Arrow", "columns, arrays", HELD):
        if contestant in made:
            warm_up(made[contestant], left)
            one, other, times, again = made[contestant](), made[contestant](), [], []
            send(one, [source.load], 1, [], clock(contestant))
            out = send(one, [gone], 1, times, clock(contestant))
            send(other, [left], 1, again, clock(contestant))
            found.append({"work": "most", "contestant": contestant, "µs": min(times[0]) * 1e6,
                          "µs, loading the rest": min(again[0]) * 1e6})  # fmt: skip
            same("the result", contestant, fingerprint(one.value()), fingerprint(other.value()))
            del out
            KNOWN.clear()
            one.close()
            other.close()
    gc.unfreeze()
    return found


# ---- targets ----

HELD = "columns trusting, arrays"
CHECKED = "columns, Arrow"


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """What columns are to show: tables in and tables out beside other systems, and rows in and rows
    out beside the engine in rows. At small sizes shown, not judged."""
    found = Figures(rows, quick)
    check, ratio = found.check, found.ratio
    batch = (data.SMALL if quick else FULL).batch
    group, join = f"group {batch}", f"join {batch}"
    for work, least in ((group, 5.0), (join, 2.0), ("one", 2.5)):
        check(
            f"{work}: differential / {HELD}", ratio(work, "differential", HELD, "µs"), ">=", least
        )
        check(f"{work}: {HELD} / kernels", ratio(work, HELD, "kernels", "µs"), "<=", 2.0)
    for work, least in ((group, 50.0), (join, 20.0)):
        for name in ("Pathway", "DuckDB", "Polars"):
            check(f"{work}: {name} / {CHECKED}", ratio(work, name, CHECKED, "µs"), ">=", least)
        check(
            f"{work}: rows / columns, rows", ratio(work, "rows", "columns, rows", "µs"), ">=", 2.0
        )
    check("one: columns, rows / rows", ratio("one", "columns, rows", "rows", "µs"), "<=", 1.05)
    for work, rate in (("load group", 20e6), ("load join", 3e6)):
        check(f"{work}: rows/s of {HELD}", found.figure(work, HELD, "rows/s"), ">=", rate)
    return found.judged


# ---- the command ----


def measure(works: list[str], asked: Any, rounds: int) -> list[Row]:
    sizes = data.SMALL if asked.quick else FULL
    large = SMALL_LARGE if asked.quick else LARGE
    steps = {
        "group": [
            (f"group {sizes.batch}", sizes.batch, sizes.batches),
            (f"group {large}", large, 2),
        ],
        "one": [("one", 1, sizes.singles)],
        "join": [(f"join {sizes.batch}", sizes.batch, sizes.batches)],
    }
    found: list[Row] = []
    for query, its in (("group", ("group", "one")), ("join", ("join",))):
        wanted = [step for work in its if work in works for step in steps[work]]
        if wanted or "load" in works:
            made = contestants(query, not asked.quick, asked.without)
            group = query == "group"
            source = data.orders(sizes.rows, sizes.keys) if group else data.sides(sizes.side)
            found += taken(query, made, source, wanted, rounds)
    if "most" in works:
        found += most_gone(contestants("group", False, RIVALS), data.orders(sizes.rows, sizes.keys))
    return ratios(found)


def ratios(rows: list[Row]) -> list[Row]:
    """Beside each time, how it stands to columns with arrays, and to the engine in rows."""
    times = {(row["work"], row["contestant"]): row.get("µs") or row["s"] for row in rows}
    for row in rows:
        for base in (HELD, "rows"):
            if (row["work"], base) in times:
                mine = times[row["work"], row["contestant"]]
                row[f"/ {base}"] = mine / times[row["work"], base]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--work", default=",".join(WORKS), help="which, e.g. group,one")
    parser.add_argument("--rounds", type=int, help="turns for each contestant")
    parser.add_argument("--without", nargs="*", default=[], help="contestants to leave out")
    asked = parser.parse_args()
    works = asked.work.split(",")
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    rows = measure(works, asked, asked.rounds or (1 if asked.quick else 3))
    missing = rivals.missing() + ([] if is_built(False) else ["differential"])
    remarks = [f"left out, not installed: {', '.join(missing)}"] if missing else []
    question = (__doc__ or "").splitlines()[0]
    judged = targets(rows, asked.quick)
    publish(asked, question, rows, judged, {"not installed": missing}, remarks)


if __name__ == "__main__":
    main()
