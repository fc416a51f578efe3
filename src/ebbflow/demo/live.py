"""A scene of the demo: a view that a stream feeds is killed in the middle of an epoch, and goes on.

Another process has the view. Files with order lines come, one epoch each; lines that were sold are
taken back by later files. When Spark has noted what is in a batch and not yet that it is over, the
process is killed (SIGKILL), and another one is started. In the end the view must be what counting
all lines gives, and the log of changes must have every epoch once.

    python -m ebbflow.demo.live FOLDER    feeds the view from FOLDER, and ends when all is taken
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import ebbflow as ef
from ebbflow.demo.again import Result
from ebbflow.demo.shop import lines

FILES, LINES, PRODUCTS = 6, 400, 50
KILLED_IN = 2
"""The batch in the middle of which the process is killed; they count from 0."""
PATIENCE = 300.0

sold = lines.group_by("product").agg(lines=ef.count(), quantity=ef.sum("quantity"))
Line = tuple[int, int, int, int, int, int]
"""The fields of an order line, and its weight."""


# ---- the files ----


def file_lines(number: int) -> list[Line]:
    """The lines of a file: new ones, and from the second file on, some of the last that go.

    >>> len(file_lines(0)), sum(line[-1] for line in file_lines(1)) == LINES - LINES // 4
    (400, True)
    """
    dice = Random(number)
    new = [
        (number, i, dice.randrange(PRODUCTS), dice.randrange(1, 9), dice.randrange(900), 1)
        for i in range(LINES)
    ]
    before = file_lines(number - 1)[: LINES // 4] if number else []
    return [*new, *((*line[:5], -1) for line in before)]


def write_files(folder: Path) -> None:
    """All files, in the order in which they come."""
    names = [*lines.type._fields, "weight"]
    for number in range(FILES):
        rows = [dict(zip(names, line, strict=True)) for line in file_lines(number)]
        file = folder / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (number, number))


def counted_again() -> Result:
    """What the view must be, from all lines."""
    count: Counter[int] = Counter()
    quantity: Counter[int] = Counter()
    for number in range(FILES):
        for _, _, product, many, _, weight in file_lines(number):
            count[product] += weight
            quantity[product] += weight * many
    return {(product, n, quantity[product]): 1 for product, n in count.items() if n}


# ---- the process with the view ----


def feed(folder: Path) -> None:
    """Feed the view until all files are taken."""
    from ebbflow.engine.spark.engine import spark
    from ebbflow.engine.spark.session import session

    settings: dict[str, Any] = {"spark.driver.memory": "1g"}
    running = session("ebbflow demo, fed by a stream", cores=1, **settings)
    view = sold.run(spark(running, path=folder / "state"))
    view.write_changes(folder / "log")
    fields = ", ".join(f"`{name}` long" for name in [*lines.type._fields, "weight"])
    reader = running.readStream.schema(fields).option("maxFilesPerTrigger", 1)
    files = reader.json(str(folder / "files"))
    with view, view.stream(lines=files, trigger={"availableNow": True}, name="files") as stream:
        stream.wait()
    running.stop()


class Child:
    """A process that feeds the view."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "ebbflow.demo.live", str(folder)]
        self.running = subprocess.Popen(
            command, start_new_session=True, stderr=subprocess.PIPE, text=True
        )

    def kill(self) -> None:
        """Kill it, and the Java that it has started."""
        os.killpg(self.running.pid, signal.SIGKILL)
        self.running.communicate()

    def wait(self) -> None:
        _, said = self.running.communicate(timeout=PATIENCE)
        if self.running.returncode:
            raise RuntimeError(f"the process with the view failed:\n{said}")


# ---- the scene ----


def killed_and_started_again(folder: Path) -> dict[str, Any]:
    """Play it; gives what happened."""
    (folder / "files").mkdir(parents=True)
    write_files(folder / "files")
    started = monotonic()
    checkpoint = folder / "state" / "streams" / "files"
    child = Child(folder)
    try:
        while not (checkpoint / "offsets" / str(KILLED_IN)).exists():
            if child.running.poll() is not None or monotonic() - started > PATIENCE:
                child.wait()
                raise RuntimeError("the process with the view ended before it was killed")
            sleep(0.005)
        sleep(0.1)
    finally:
        child.kill()
    over = (checkpoint / "commits" / str(KILLED_IN)).exists()
    reader = ef.open(folder / "state", sold)
    epoch = reader.epoch
    Child(folder).wait()
    last, found = reader.epoch, {tuple(row): n for row, n in reader.value.items()}
    log = _log(folder / "log")
    added: Counter[tuple[Any, ...]] = Counter()
    for changes in log.values():
        added.update(changes)
    return {
        "files": FILES, "batch": KILLED_IN, "over": over, "epoch": epoch, "last": last,
        "logged": sorted(log), "seconds": monotonic() - started,
        "verified": found == counted_again() == {row: n for row, n in added.items() if n}
        and sorted(log) == list(range(1, last + 1)),
    }  # fmt: skip


def _log(folder: Path) -> dict[int, Result]:
    """The log of changes, by epoch."""
    from pyarrow import parquet

    found: dict[int, Result] = {}
    for part in folder.glob("epoch=*"):
        rows = (row for file in part.glob("*.parquet")
                for row in parquet.ParquetFile(file).read().to_pylist())  # fmt: skip
        found[int(part.name.partition("=")[2])] = {
            tuple(values): weight for *values, weight in (row.values() for row in rows)
        }
    return found


if __name__ == "__main__":
    feed(Path(sys.argv[1]))
