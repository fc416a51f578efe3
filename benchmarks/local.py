"""How close is the local engine to a dict program by hand, and how far ahead of its rivals?

    a   sum and count of 1M rows in 10k groups, a thousand changes at a time
    e   the same, one change at a time
    b   200k rows joined with 200k, 1 to 10 of a key, a thousand changes at a time
    q1  the first query of paper 004 at 64k numbers, 1 % of them changed at a time
    q2  the second
    l   1M rows loaded at once, into the groups (l-a) and into the join (l-b)
    m   memory after a load, each contestant in a process of its own (m-a, m-b)

All contestants take the same changes in one run, some at a time and in turns, beginning with
another one each round, so that what else the machine does disturbs them equally; the ratio of
medians is the result. Before each turn everything is collected and frozen, so that nobody cleans up
after another. A time (µs, s) is processor time or time on the clock, whichever median is smaller:
the first is the right one on a busy machine, the second for a rival that uses several cores. The
least, p95 and max are on the clock, and so is all of e. Half of the rows of a change go and half
come. At the end of every round the changes given must be equal, and at the end of all rounds the
results: those of the floors (`floors.py`), the engine and the rivals (`rivals.py`).

The engine is held to the floor that does what it does: `dict` believes its input, `dict kept` keeps
every input row and looks whether what goes is there, as the engine does unless it is told
`check_input=False`; both give NamedTuple rows, as the engine does. `dict plain` gives tuples, and
`dict whole` keeps also the rows of a join's result, which `dict kept` would compute again.
Memory is what Python allocated (MB), and how much larger the process grew (RSS MB), which is all
that can be said of the rivals.

    python benchmarks/local.py [--quick] [--json] [--work a,e,b] [--rounds 5] [--without Pathway]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any

import floors
import local_data as data
import rivals
from harness import Row, publish
from local_targets import targets

from ebbflow.zset import ZSet

Made = dict[str, Callable[[], Any]]
Clock = Callable[[], float]
Times = list[tuple[float, float]]
WORKS = ("a", "e", "b", "q1", "q2", "l", "m")
QUERY = {"a": "group", "e": "group", "b": "join", "q1": "q1", "q2": "q2"}


# ---- contestants ----


class Engine:
    """A view of the local engine."""

    def __init__(self, made: Any, **options: Any) -> None:
        self.view = made.run(**options)
        self.step = self.view.step

    def prepare(self, change: data.Change) -> Any:
        return {name: ZSet(bag) for name, bag in change.items()}

    def value(self) -> data.Bag:
        return dict(self.view.value.items())

    def close(self) -> None:
        self.view.close()


def program(query: str) -> Any:
    import ebbflow as ef

    if query == "group":
        orders = ef.Input("orders", data.Order)
        return orders.group_by("key").agg(total=ef.sum("price"), n=ef.count())
    if query == "join":
        return ef.Input("clicks", data.Click).join(ef.Input("sales", data.Sale), on="user")
    tens = ef.Input("left", int).filter(lambda x: x % 10 == 0)
    fives = ef.Input("right", int).filter(lambda y: y % 5 == 0)
    pairs = tens.join(fives, left_on=lambda x: x % 500, right_on=lambda y: y % 1000)
    return pairs if query == "q1" else pairs.agg(greatest=ef.max())


def contestants(query: str, without: list[str]) -> Made:
    """How each is made, by name. `dict` is the floor for an engine that trusts its input."""
    named = floors.NAMED[query]
    made: Made = {
        "dict plain": floors.PLAIN[query],
        "dict": named,
        "dict kept": lambda: floors.Kept(named()),
        "dict whole": lambda: floors.Whole(floors.Kept(named())),
        "engine trusting": lambda: Engine(program(query), check_input=False),
        "engine": lambda: Engine(program(query)),
    }
    if floors.PLAIN[query] is named:
        del made["dict plain"]
    if query in ("group", "q2"):
        del made["dict whole"]
    for name, rival in rivals.installed().items():
        if hasattr(rival, query) or name == "DuckDB":
            made[name] = lambda rival=rival: rival(query)
    return {name: make for name, make in made.items() if not name.startswith(tuple(without))}


# ---- changes ----


def updates(work: str, made: Made, sizes: data.Sizes, rounds: int) -> list[Row]:
    """Load everyone, then let everyone take the same changes in turns."""
    source, change_size, count = inputs(work, sizes)
    lives = {name: make() for name, make in made.items()}
    for live in lives.values():
        live.step(live.prepare(source.load))
    source.load = {}
    settle()
    times: dict[str, Times] = {name: [] for name in lives}
    order = list(lives)
    for _ in range(rounds):
        changes = [source.change(change_size) for _ in range(count)]
        given = {}
        for name in order:
            few = 20 if change_size == 1 and name in rivals.RIVALS else count
            given[name] = send(lives[name], changes, few, times[name], clock(name))
        same("the last change", {n: got for n, got in given.items() if n not in rivals.RIVALS})
        order = order[1:] + order[:1]
    same("the result", {name: live.value() for name, live in lives.items()})
    for live in lives.values():
        live.close()
    return [figures(work, name, times[name]) for name in made]


def inputs(work: str, sizes: data.Sizes) -> tuple[Any, int, int]:
    """The inputs, the rows of one change, and how many changes make a round."""
    if work == "a":
        return data.orders(sizes.rows, sizes.keys), sizes.batch, sizes.batches
    if work == "e":
        return data.orders(sizes.rows, sizes.keys), 1, sizes.singles
    if work == "b":
        return data.sides(sizes.side), sizes.batch, sizes.batches
    return data.Numbers(sizes.numbers), sizes.numbers // 100, sizes.batches


def clock(name: str) -> Clock:
    """What tells how long a contestant was at work; rivals have threads of their own."""
    return process_time if name in rivals.RIVALS else thread_time


def send(live: Any, changes: list[data.Change], few: int, times: Times, busy: Clock) -> Any:
    """Time a few changes one by one; the rest, if any, goes in at once and is not timed. A
    contestant in a process of its own measures itself, and says what it has `taken`."""
    ready = [live.prepare(change) for change in changes[:few]]
    settle()
    if len(changes[0]) == sum(map(len, changes[0].values())) == 1:
        busy = perf_counter  # the other clocks are too slow to be asked about single rows
    step, given = live.step, None
    for change in ready:
        used, begin = busy(), perf_counter()
        new = step(change)
        end = perf_counter()
        taken = end - begin, busy() - used
        times.append(getattr(live, "taken", taken))
        given = new  # here, and not while timed, the one before is freed
    if rest := changes[few:]:
        step(live.prepare(data.merged(rest)))
    return given


def figures(work: str, name: str, times: Times) -> Row:
    slow = sorted(wall for wall, _ in times)
    wall, used = median(slow), median(used for _, used in times)
    return {"work": work, "contestant": name, "µs": min(wall, used) * 1e6, "wall µs": wall * 1e6,
           "least µs": slow[0] * 1e6, "p95 µs": slow[int(len(slow) * 0.95)] * 1e6,
           "max µs": slow[-1] * 1e6, "steps": len(slow)}  # fmt: skip


def settle() -> None:
    """What is there now is not looked at by the garbage collector again."""
    gc.collect()
    gc.freeze()


def same(what: str, found: dict[str, Any]) -> None:
    """Contestants that do different work cannot be compared."""
    (first, wanted), *others = found.items()
    wanted = dict(wanted.items())
    for name, got in others:
        if dict(got.items()) != wanted:
            raise AssertionError(f"{what} of {name} is not that of {first}")


# ---- loads ----


def loads(work: str, made: Made, sizes: data.Sizes, rounds: int) -> list[Row]:
    """One change that brings everything, into new contestants, again and again."""
    group = work == "l-a"
    source = data.orders(sizes.load_rows, sizes.keys) if group else data.sides(sizes.load_side)
    rows = sum(map(len, source.load.values()))
    settle()
    times: dict[str, list[float]] = {name: [] for name in made}
    order = list(made)
    for _ in range(rounds):
        first: data.Bag | None = None
        for name in order:
            live = made[name]()
            ready = live.prepare(source.load)
            gc.collect()
            busy = clock(name)
            used, begin = busy(), perf_counter()
            given = live.step(ready)
            times[name].append(min(perf_counter() - begin, busy() - used))
            got = dict((live.value() if name in rivals.RIVALS else given).items())
            first = got if first is None else first
            same("what is loaded", {order[0]: first, name: got})
            live.close()
            del live, ready, given, got
        order = order[1:] + order[:1]
    return [
        {"work": work, "contestant": name, "rows/s": rows / median(taken), "s": median(taken)}
        for name, taken in times.items()
    ]


# ---- memory ----


def memory(work: str, made: Made, quick: bool) -> list[Row]:
    """Each contestant in a process of its own, two at a time: nothing is timed here."""
    names = [name for name in made if not (quick and name in ("dict plain", "dict whole"))]
    asked = [(name, unit) for name in names for unit in units(name, quick)]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(asked, pool.map(lambda ask: sent_away(work, *ask, quick), asked),
                         strict=True))  # fmt: skip
    return [
        {
            "work": work,
            "contestant": name,
            **{unit: found[name, unit] for unit in units(name, quick)},
        }
        for name in names
    ]


def units(name: str, quick: bool) -> list[str]:
    """Of a rival, which is not written in Python, only the growth of its process can be told."""
    return ["RSS MB"] if name in rivals.RIVALS else ["MB"] if quick else ["MB", "RSS MB"]


def sent_away(work: str, name: str, unit: str, quick: bool) -> float:
    """What `alone` says in a new process."""
    here = Path(__file__).resolve()
    command = [sys.executable, str(here), "--alone", work, name, unit] + ["--quick"] * quick
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here.parent)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def alone(work: str, name: str, unit: str, sizes: data.Sizes) -> float:
    """Load one contestant in small parts, and say what it takes."""
    query = "group" if work == "m-a" else "join"
    make = contestants(query, [])[name]
    first = make()
    first.step(first.prepare(next(parts(query, data.SMALL))))
    first.close()
    gc.collect()
    before = taken(unit)
    live = make()
    for change in parts(query, sizes):
        live.step(live.prepare(change))
    del change
    gc.collect()
    return (taken(unit) - before) / 1e6


def parts(query: str, sizes: data.Sizes) -> Iterator[data.Change]:
    dice = Random(5)
    if query == "group":
        for bag in data.in_parts(data.order_rows(sizes.rows, sizes.keys, dice)):
            yield {"orders": bag}
        return
    clicks = data.in_parts(data.side_rows(data.Click, sizes.side, dice))
    sales = data.in_parts(data.side_rows(data.Sale, sizes.side, Random(7)))
    for one, other in zip(clicks, sales, strict=True):
        yield {"clicks": one, "sales": other}


def taken(unit: str) -> int:
    """Bytes in use: those Python allocated, or those of the process."""
    if unit == "MB":
        if not tracemalloc.is_tracing():
            tracemalloc.start()
        return tracemalloc.get_traced_memory()[0]
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


# ---- the command ----


def ratios(rows: list[Row]) -> list[Row]:
    """Beside each figure, how it stands to `dict` and `dict kept` of the same work."""
    for row in rows:
        for floor in ("dict", "dict kept"):
            for unit in ("µs", "s", "MB", "RSS MB"):
                base = next((r.get(unit) for r in rows if (r["work"], r["contestant"])
                             == (row["work"], floor)), None)  # fmt: skip
                if base and unit in row:
                    row[f"/ {floor}"] = row[unit] / base
                    break
    return rows


def measure(works: list[str], sizes: data.Sizes, rounds: int, asked: Any) -> list[Row]:
    found: list[Row] = []
    for work in works:
        if work in QUERY:
            made = contestants(QUERY[work], asked.without)
            found += updates(work, made, sizes, rounds)
            gc.unfreeze()
            continue
        for query, kind in (("group", "a"), ("join", "b")):
            made = contestants(query, asked.without)
            if work == "m":
                found += memory(f"m-{kind}", made, asked.quick)
            else:
                incremental = {n: m for n, m in made.items() if n not in ("DuckDB", "Polars")}
                found += loads(f"l-{kind}", incremental, sizes, min(rounds, 3))
            gc.unfreeze()
    return ratios(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument("--work", default=",".join(WORKS), help="which, e.g. a,e,b")
    parser.add_argument("--rounds", type=int, help="turns for each contestant")
    parser.add_argument("--without", nargs="*", default=[], help="contestants to leave out")
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = data.SMALL if asked.quick else data.Sizes()
    if asked.alone:
        print(json.dumps(alone(*asked.alone, sizes)), flush=True)
        return
    works = asked.work.split(",")
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    rows = measure(works, sizes, asked.rounds or (2 if asked.quick else 5), asked)
    judged = targets(rows, asked.quick)
    missing = rivals.missing()
    remark = f"not installed: {', '.join(missing)}; pip install '.[bench]'"
    question = (__doc__ or "").splitlines()[0]
    publish(asked, question, rows, judged, {"not installed": missing}, [remark] if missing else [])


if __name__ == "__main__":
    main()
