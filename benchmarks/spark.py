"""How much faster than recomputing is an epoch on Spark, and what does its state cost?

    join   lines, orders and customers in a three-way join and two group-bys: epochs of so many
           changes, against computing the same again with Spark SQL; at several sizes of the state
    six    an epoch of 100 changes on a plan with six stateful operators
    bulk   rows a second into a two-way join and into the program of `join`, from Parquet
    state  bytes on disk, beside those of the inputs as Parquet: after the load, after the epochs
    tws    sum and count by key, against Spark's `transformWithState`
    loops  what can be reached in a graph: epochs of so many edges, against computing it again with
           Spark, round after round; a graph of the smallest size (`spark_loops.py`)

Everything runs in one session on two cores, in turns: an epoch of each size, then the rivals with
the same change, so that what else the machine does disturbs all alike. Read the ratios, not the
times. An epoch begins with a change in Parquet files and ends when `step` returns, which is when
it is safe on disk; the time to read what it returned (a count) is told apart. A first epoch is not
timed. After each size of change, not timed, the view must equal what Spark SQL computes, exactly.

`spark_data.py` says what the data are, and what counts as a change; `spark_rivals.py`, what the
rivals do. The column `ratio` is the fastest recompute over the epoch, `alone` the query without its
change over the epoch, and `used` the ratio of processor time (`spark_clock.py`).

    python benchmarks/spark.py [--quick] [--json] [--work join,six] [--rows 1_000_000,10_000_000]
                               [--changes 100,1000] [--rounds 5] [--without recompute]
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import spark_data as data
import spark_rivals as rivals
from harness import Row, publish
from spark_clock import Taken, middle, timed
from spark_loops import loops
from spark_targets import targets

WORKS = ("join", "bulk", "six", "state", "tws", "loops")
SIZES, SMALL = "1_000_000,3_000_000,10_000_000", "100_000"
CHANGES, FEW = "100,1_000,10_000,100_000", "1_000"
WARM_UP = 100


# ---- the engine ----


class Engine:
    """A view of the Spark engine, with its state in a folder."""

    def __init__(self, spark: Any, program: Any, folder: Path) -> None:
        import ebbflow as ef

        self.spark = spark
        self.folder = folder
        self.view = program.run(ef.spark(spark, path=str(folder)))

    def load(self, place: Path, names: tuple[str, ...]) -> None:
        """The first epoch, which brings all rows."""
        self.view.step({name: self.spark.read.parquet(str(place / name)) for name in names})

    def step(self, files: dict[str, Path]) -> tuple[Taken, Taken]:
        """What one epoch takes, and what it takes to read what it returned."""
        given, step = timed(self.epoch, files)
        frames = given.values() if isinstance(given, Mapping) else [given]
        _, read = timed(lambda: [frame.count() for frame in frames])
        return step, read

    def epoch(self, files: dict[str, Path]) -> Any:
        return self.view.step({name: pq.read_table(file) for name, file in files.items()})

    def value(self, outputs: Any) -> dict[str, rivals.Bag]:
        """The rows of each output with their weights; an only one has no name."""
        return {name: bag_of(self.view[name] if name else self.view) for name in outputs}

    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def close(self) -> None:
        self.view.close()


def bag_of(output: Any) -> rivals.Bag:
    """A value whose type is not known is pickled in its column."""
    found: rivals.Bag = {}
    for row in output.weighted.collect():
        values = row.asDict()
        weight = values.pop(data.WEIGHT)
        plain = [
            pickle.loads(v) if isinstance(v, bytes | bytearray) else v for v in values.values()
        ]
        found[tuple(plain)] = found.get(tuple(plain), 0) + weight
    return found


def same(what: str, found: dict[str, rivals.Bag], wanted: dict[str, rivals.Bag]) -> None:
    """Contestants that do different work cannot be compared."""
    for name, bag in wanted.items():
        if found[name] != bag:
            raise AssertionError(f"{what} {name}: the view is not what Spark SQL computes")


class World:
    """The inputs at one size, a view of them, and a rival that recomputes it."""

    def __init__(
        self, bench: Bench, rows: int, name: str, program: Any, *names: str, cache: bool = True
    ) -> None:
        self.bench = bench
        self.rows = rows
        self.names = names or tuple(data.TYPES)
        self.folder = bench.folder / f"{name}-{rows}"
        self.tables = data.Tables(rows)
        self.tables.write(self.folder / "start")
        place = self.folder / "start"
        self.parquet = sum(f.stat().st_size for n in self.names for f in (place / n).iterdir())
        self.count = sum(self.tables.tables[name].size for name in self.names)
        self.engine = Engine(bench.spark, program, self.folder / "state") if bench.engine else None
        if self.engine:
            _, self.loading = timed(self.engine.load, place, self.names)
        self.loaded = self.engine.bytes() if self.engine else 0
        self.recompute = rivals.Recompute(bench.spark, self.tables, self.folder, cache=cache)
        self.epochs = 0

    def change(self, keys: int) -> dict[str, Path]:
        """The files of a new change, which the rival has taken note of."""
        self.recompute.settle()
        self.epochs += 1
        change = self.tables.change(keys)
        files = data.write_change(change, self.folder / "changes" / str(self.epochs))
        self.recompute.take(files, keys)
        return {name: files[name] for name in self.names}

    def warm_up(self) -> None:
        files = self.change(WARM_UP)
        if self.engine:
            self.engine.step(files)

    def verify(self, what: str, wanted: Callable[[], dict[str, rivals.Bag]]) -> None:
        if self.engine:
            answer = wanted()
            same(f"{what} at {self.rows:,} rows,", self.engine.value(answer), answer)

    def close(self) -> None:
        if self.engine:
            self.engine.close()
        self.recompute.close()


# ---- the questions ----


class Bench:
    """What was asked for, and the session to ask in."""

    def __init__(self, spark: Any, folder: Path, asked: Any) -> None:
        self.spark = spark
        self.folder = folder
        self.sizes: list[int] = asked.rows
        self.changes: list[int] = asked.changes
        self.rounds: int = asked.rounds or (2 if asked.quick else 5)
        self.engine = "engine" not in asked.without
        self.recompute = "recompute" not in asked.without
        self.remarks: list[str] = []

    def join(self, works: list[str]) -> list[Row]:
        """All sizes are there at once, so that they are compared in turns."""
        worlds = [self.world(rows) for rows in self.sizes]
        for world in worlds:
            world.warm_up()
        found = [row for keys in self.changes for row in self.epochs(worlds, keys)]
        state = [
            {"work": "state", "rows": w.rows, "Parquet MB": w.parquet / 1e6,
             "loaded MB": w.loaded / 1e6, "loaded / Parquet": w.loaded / w.parquet,
             "after MB": w.engine.bytes() / 1e6, "epochs": w.epochs,
             "after / Parquet": w.engine.bytes() / w.parquet}
            for w in worlds if w.engine
        ]  # fmt: skip
        for world in worlds:
            world.close()
        return (found if "join" in works else []) + (state if "state" in works else [])

    def world(self, rows: int) -> World:
        say(f"loading {rows:,} rows")
        return World(self, rows, "join", data.whole())

    def epochs(self, worlds: list[World], keys: int) -> list[Row]:
        """The same number of changes at every size of the state."""
        times: dict[int, dict[str, list[Taken]]] = {w.rows: {} for w in worlds}
        worlds = [world for world in worlds if keys <= world.rows // 2]
        for turn in range(self.rounds):
            say(f"changes of {keys:,} keys, round {turn + 1} of {self.rounds}")
            for world in worlds[turn % len(worlds) :] + worlds[: turn % len(worlds)]:
                files = world.change(keys)
                seen = times[world.rows]
                if world.engine:
                    for what, taken in zip(("step", "read"), world.engine.step(files), strict=True):
                        seen.setdefault(what, []).append(taken)
                if self.recompute and turn < 3:
                    for join in rivals.JOINS:
                        seen.setdefault(join, []).append(timed(world.recompute.run, join)[1])
                    seen.setdefault("alone", []).append(timed(world.recompute.alone)[1])
        for world in worlds:
            world.verify("join", world.recompute.whole)
        return [figures(world.rows, keys, times[world.rows]) for world in worlds]

    def six(self) -> list[Row]:
        world = World(self, self.sizes[0], "six", data.six())
        world.warm_up()
        if not world.engine:
            world.recompute.six()
            world.close()
            return []
        times = [world.engine.step(world.change(100)) for _ in range(2 * self.rounds)]
        world.verify("six", world.recompute.six)
        world.close()
        step, read = (middle(list(some)) for some in zip(*times, strict=True))
        return [{"work": "six", "rows": world.rows, "changes": 100, "step s": step.wall,
                 "most s": max(step.wall for step, _ in times), "used s": step.used,
                 "read s": read.wall}]  # fmt: skip

    def bulk(self) -> list[Row]:
        """At the largest size. Beside it, what Spark takes to compute it and keep nothing."""
        found = []
        for name, program, names in (
            ("two-way join", data.two_way, ("lineitem", "orders")),
            ("whole program", data.whole, ()),
        ):
            say(f"bulk load, {name}")
            size, folder = self.sizes[-1], name.replace(" ", "-")
            world = World(self, size, folder, program(), *names, cache=False)
            place = world.folder / "start"
            row: Row = {"work": "bulk", "into": name, "rows": world.count}
            if names:
                joined = rivals.two_way(self.spark, place)
                plain = joined.write.format("noop").mode("overwrite").save
            else:
                plain = partial(world.recompute.run, "merge")
            row["Spark alone s"] = [timed(plain)[1] for _ in range(2)][1].wall
            if world.engine:
                taken = world.loading
                row |= {"load s": taken.wall, "used s": taken.used}
                row["rows/s"] = world.count / taken.wall
                if not names:
                    world.verify("bulk", world.recompute.whole)
                elif wrong := rivals.differences(world.engine.view.weighted, joined):
                    raise AssertionError(f"bulk: {wrong:,} rows are not as often as in Spark SQL")
            found.append(row)
            world.close()
        return found

    def tws(self) -> list[Row]:
        """At the smallest size. One file is one micro-batch, or one epoch."""
        world = World(self, self.sizes[0], "tws", data.simplest(), "orders")
        rival = None
        if remark := rivals.tws_missing():
            self.remarks.append(remark)
        else:
            rival = rivals.TransformWithState(self.spark, world.folder / "tws")
            say("loading transformWithState")
            load = world.folder / "load.parquet"
            orders = world.tables.tables["orders"]
            pq.write_table(orders.arrow(orders.at(slice(0, orders.size)), 1), load)
            loading = timed(rival.step, load)[1].wall
        found = []
        turns = [(WARM_UP, 1), *((keys, self.rounds) for keys in self.changes)]
        for keys, rounds in turns:
            if keys > world.count // 2:
                continue
            steps, batches = [], []
            for _ in range(rounds):
                files = self.orders_only(world, keys)
                if world.engine:
                    steps.append(sum(taken.wall for taken in world.engine.step(files)))
                if rival:
                    batches.append(timed(rival.step, files["orders"])[1].wall)
            row: Row = {"work": "tws", "rows": world.count, "changes": keys}
            if steps:
                row |= {"step and read s": median(steps), "keys/s": keys / median(steps)}
            if batches:
                row |= {"tws s": median(batches), "tws keys/s": keys / median(batches)}
                row["tws load s"] = loading
            if steps and batches:
                row["ratio"] = median(batches) / median(steps)
            found.append(row)
        world.verify("tws", world.recompute.simplest)
        if rival:
            same("transformWithState", {"": rival.value()}, world.recompute.simplest())
            if rival.batches() != rival.count:
                raise AssertionError("a file was not one micro-batch")
            rival.close()
        world.close()
        return found[1:]

    def orders_only(self, world: World, keys: int) -> dict[str, Path]:
        """A change of so many orders."""
        world.recompute.settle()
        world.epochs += 1
        change = {"orders": world.tables.tables["orders"].change(world.tables.dice, keys)}
        files = data.write_change(change, world.folder / "changes" / str(world.epochs))
        world.recompute.take(files, keys)
        return files

    def loops(self) -> list[Row]:
        return loops(self, Engine)


def figures(rows: int, keys: int, times: dict[str, list[Taken]]) -> Row:
    row: Row = {"work": "join", "rows": rows, "changes": keys}
    step = middle(times["step"]) if "step" in times else None
    if step is not None:
        walls = [each.wall for each in times["step"]]
        row |= {"step s": step.wall, "least s": min(walls), "most s": max(walls),
                "used s": step.used, "read s": middle(times["read"]).wall,
                "keys/s": keys / step.wall}  # fmt: skip
    if "alone" in times:
        best = min(rivals.JOINS, key=lambda join: middle(times[join]).wall)
        again, alone = middle(times[best]), middle(times["alone"])
        row |= {"recompute s": again.wall, "by": best, "its used s": again.used,
                "query alone s": alone.wall}  # fmt: skip
        if step is not None:
            row |= {"ratio": again.wall / step.wall, "alone": alone.wall / step.wall,
                    "used": again.used / max(step.used, 0.01)}  # fmt: skip
    return row


# ---- the command ----


def say(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


def measure(works: list[str], bench: Bench) -> list[Row]:
    found: list[Row] = []
    if "join" in works or "state" in works:
        found += bench.join(works)
    for work in ("six", "bulk", "tws", "loops"):
        if work in works:
            say(work)
            found += getattr(bench, work)()
    return found


def numbers(text: str) -> list[int]:
    return sorted(int(part) for part in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--work", default=",".join(WORKS), help="which, e.g. join,six")
    parser.add_argument("--rows", type=numbers, help=f"sizes of the state: {SIZES}")
    parser.add_argument("--changes", type=numbers, help=f"changed keys of an epoch: {CHANGES}")
    parser.add_argument("--rounds", type=int, help="epochs of each size")
    parser.add_argument("--without", nargs="*", default=[], choices=["engine", "recompute"])
    asked = parser.parse_args()
    asked.rows = asked.rows or numbers(SMALL if asked.quick else SIZES)
    asked.changes = asked.changes or numbers(FEW if asked.quick else CHANGES)
    works = asked.work.split(",")
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    from ebbflow.engine.spark.session import session

    spark = session("ebbflow-benchmark", cores=2)
    with tempfile.TemporaryDirectory(prefix="bench-spark-", ignore_cleanup_errors=True) as folder:
        bench = Bench(spark, Path(folder), asked)
        rows = measure(works, bench)
        spark.stop()
    judged = targets(rows, asked.quick)
    question = (__doc__ or "").splitlines()[0]
    shown = rows if asked.json else [
        {name: value for name, value in row.items() if name != "tws load s"} for row in rows
    ]  # fmt: skip
    publish(asked, question, shown, judged, {"remarks": bench.remarks}, bench.remarks)


if __name__ == "__main__":
    main()
