"""How fast is state on disk beside SQLite doing the same work?

Two states of ten million rows: *value* (key to two numbers, as a group-by keeps it; in SQLite a
table with an integer primary key) and *bag* (rows of four fields by key, as a side of a join keeps
them; in SQLite a table with an index). An epoch looks up 1,000 random keys, changes what it finds
there (a bag takes the old row out and puts a new one in), and is safe on disk when it ends: SQLite
runs with a write-ahead log, `synchronous=FULL`, and its file mapped into memory. What is written is
counted in bytes given to the system, per byte of the rows that changed.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from harness import Row, main

from ebbflow.state.spine import Store

QUESTION = "How fast is state on disk beside SQLite doing the same work?"
BATCH = 1_000
LOAD = 500_000


def bag_row(key: int) -> tuple[int, str, int, float]:
    return key, f"city {key % 1_000}", 3 * key, 1.5 * key


class Ours:
    """A spine."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.path = folder / "spine"
        self.layout = layout
        self.store = Store(self.path)
        self.spine = self.store.spine("operator", layout=layout)

    def load(self, size: int) -> None:
        for start in range(0, size, LOAD):
            keys = range(start, min(start + LOAD, size))
            if self.layout == "bag":
                self.spine.append({key: [(bag_row(key), 1)] for key in keys})
            else:
                self.spine.append({key: (1, key) for key in keys})
            self.store.commit(self.store.epoch + 1)
        while self.store.work():
            pass

    def probe(self, keys: list[int]) -> dict[Any, Any]:
        return self.spine.probe(keys)

    def epoch(self, keys: list[int]) -> None:
        found = self.spine.probe(keys)
        if self.layout == "bag":
            change: dict[Any, Any] = {}
            for key, rows in found.items():
                ((old, _),) = rows.items()
                change[key] = [(old, -1), ((key, old[1], old[2] + 1, old[3]), 1)]
        else:
            change = {key: (count + 1, total + 5) for key, (count, total) in found.items()}
        self.spine.append(change)
        self.store.commit(self.store.epoch + 1)

    def close(self) -> None:
        self.store.close()


class SQLite:
    """A table."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.path = folder / "state.db"
        self.layout = layout
        self.db = sqlite3.connect(self.path, isolation_level=None)
        for setting in ("journal_mode=wal", "synchronous=full", "mmap_size=8000000000"):
            self.db.execute(f"pragma {setting}")

    def load(self, size: int) -> None:
        run = self.db.execute
        run("begin")
        if self.layout == "bag":
            run("create table s (key integer, city text, n integer, price real, weight integer)")
            rows = ((*bag_row(key), 1) for key in range(size))
            self.db.executemany("insert into s values (?, ?, ?, ?, ?)", rows)
            run("create index by_key on s (key)")
        else:
            run("create table s (key integer primary key, n integer, total integer)")
            pairs = ((key, 1, key) for key in range(size))
            self.db.executemany("insert into s values (?, ?, ?)", pairs)
        run("commit")
        run("pragma wal_checkpoint(truncate)")

    def probe(self, keys: list[int]) -> dict[Any, Any]:
        run = self.db.execute
        if self.layout == "bag":
            ask = "select key, city, n, price, weight from s where key = ?"
            return {key: {row[:4]: row[4] for row in run(ask, (key,))} for key in keys}
        ask = "select n, total from s where key = ?"
        return {key: run(ask, (key,)).fetchone() for key in keys}

    def epoch(self, keys: list[int]) -> None:
        found = self.probe(keys)
        self.db.execute("begin")
        if self.layout == "bag":
            old = [row for rows in found.values() for row in rows]
            new = [(key, city, n + 1, price) for key, city, n, price in old]
            where = "key = ? and city = ? and n = ? and price = ?"
            self.db.executemany(f"delete from s where {where}", old)
            self.db.executemany("insert into s values (?, ?, ?, ?, 1)", new)
        else:
            new_values = [(key, n + 1, total + 5) for key, (n, total) in found.items()]
            self.db.executemany("insert or replace into s values (?, ?, ?)", new_values)
        self.db.execute("commit")

    def close(self) -> None:
        self.db.close()


def timed(call: Callable[[], Any]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def written() -> int:
    """Bytes this process gave to the system to write; 0 where that is not known."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in lines)["wchar"])


def memory() -> dict[str, float]:
    """Megabytes of its own, and of files mapped into it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return {"RssAnon": 0.0, "RssFile": 0.0}
    found = dict(line.split(":") for line in lines if line.startswith("Rss"))
    return {name: int(text.split()[0]) / 1_000 for name, text in found.items()}


def again(kind: str, folder: str, layout: str, size: str) -> None:
    """In a fresh process: open what is there, look up keys, and say what that took."""
    contestant = {"Ours": Ours, "SQLite": SQLite}[kind]
    keys = Random(3).sample(range(int(size)), BATCH)
    opened: list[Any] = []
    open_it = timed(lambda: opened.append(contestant(Path(folder), layout)))
    before = memory()
    first = timed(lambda: opened[0].probe(keys))
    after = memory()
    own, mapped = after["RssAnon"] - before["RssAnon"], after["RssFile"] - before["RssFile"]
    print(json.dumps([open_it * 1e3, first * 1e3, max(0.0, own), max(0.0, mapped)]))


def compare(layout: str, size: int, epochs: int, folder: Path) -> list[Row]:
    dice = Random(1)
    both: dict[str, Any] = {"ours": Ours(folder, layout), "sqlite": SQLite(folder, layout)}
    rows: list[Row] = []

    def add(what: str, found: dict[str, float], more: bool = False) -> None:
        ours, sqlite = found["ours"], found["sqlite"]
        ratio = (ours / sqlite if more else sqlite / ours) if ours and sqlite else 0.0
        row = {"state": layout, "rows": size, "what": what, "ours": ours, "sqlite": sqlite}
        rows.append({**row, "times better": ratio})

    add("load, s", {name: timed(lambda one=one: one.load(size)) for name, one in both.items()})
    for count in (1_000, 10_000):
        times: dict[str, list[float]] = {name: [] for name in both}
        for _ in range(7):
            keys = dice.sample(range(size), count)
            for name, one in both.items():
                times[name].append(timed(lambda one=one, keys=keys: one.probe(keys)) * 1e3)
        add(f"look up {count:,} keys, ms", {name: median(found) for name, found in times.items()})
    seconds: dict[str, list[float]] = {name: [] for name in both}
    bytes_: dict[str, int] = dict.fromkeys(both, 0)
    for _ in range(epochs):
        keys = dice.sample(range(size), BATCH)
        for name, one in both.items():
            before = written()
            seconds[name].append(timed(lambda one=one, keys=keys: one.epoch(keys)))
            bytes_[name] += written() - before
    probe = dice.sample(range(size), BATCH)
    assert both["ours"].probe(probe) == both["sqlite"].probe(probe)
    changed = epochs * BATCH * (2 * (8 + 8 + 8 + 8) if layout == "bag" else 3 * 8)
    mean = {name: sum(found) / len(found) for name, found in seconds.items()}
    add("epochs of 1,000 per second", {name: 1 / mean[name] for name in both}, more=True)
    add("epoch, median ms", {name: median(found) * 1e3 for name, found in seconds.items()})
    late = {name: sorted(found)[len(found) * 95 // 100] for name, found in seconds.items()}
    add("epoch, 95 % ms", {name: late[name] * 1e3 for name in both})
    add("epoch, worst ms", {name: max(found) * 1e3 for name, found in seconds.items()})
    add("bytes written per changed byte", {name: bytes_[name] / changed for name in both})
    for one in both.values():
        one.close()
    sizes = {"ours": _size(both["ours"].path), "sqlite": float(both["sqlite"].path.stat().st_size)}
    add("bytes on disk per row", {name: sizes[name] / size for name in both})
    fresh = {}
    for name, kind in (("ours", "Ours"), ("sqlite", "SQLite")):
        command = [sys.executable, __file__, "again", kind, str(folder), layout, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        fresh[name] = json.loads(done.stdout)
    for i, what in enumerate(["open again, ms", "first look up, ms", "own MB", "mapped MB"]):
        add(what, {name: fresh[name][i] for name in both})
    return rows


def _size(path: Path) -> float:
    return float(sum(file.stat().st_size for file in path.iterdir()))


def measure(quick: bool) -> list[Row]:
    size, epochs = (20_000, 20) if quick else (10_000_000, 400)
    rows: list[Row] = []
    for layout in ("value", "bag"):
        folder = Path(tempfile.mkdtemp(prefix="bench-spine-"))
        try:
            rows += compare(layout, size, epochs, folder)
        finally:
            shutil.rmtree(folder)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["again"]:
        again(*sys.argv[2:])
    else:
        main(QUESTION, measure)
