"""The demo itself: check a reducer, load, correct, change, compare, and weigh what is kept.

What happens is told to a *teller* as it happens, one call for each part; see `show`. What comes
back is the same as one dict, for programs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from ebbflow.demo.again import VIEWS, Result
from ebbflow.demo.data import WEIGHT, Columns, Shop, length, rows_of
from ebbflow.demo.engines import Local, Spark
from ebbflow.demo.live import killed_and_started_again
from ebbflow.demo.shop import LATE, ROUNDED, TYPES, program
from ebbflow.errors import CheckError
from ebbflow.laws import judge
from ebbflow.paths import local_path
from ebbflow.state.spine import Snapshot

ENGINES: dict[str, Any] = {"spark": Spark, "local": Local}
ROWS = {"spark": 100_000, "local": 1_000_000}
"""How many order lines there are if nobody says: as many as a minute allows. With fewer, computing
everything again takes too little time to be worth avoiding.
"""
EPOCHS = 4
SHOWN = {"best": 10, "referred": 5}
"""Of which views rows are shown, and how many."""

Facts = dict[str, Any]


class Teller(Protocol):
    """What prints the demo: one method for each part, called as soon as its facts are known."""

    def start(self, facts: Facts) -> None: ...
    def laws(self, facts: Facts) -> None: ...
    def loaded(self, facts: Facts) -> None: ...
    def corrected(self, facts: Facts) -> None: ...
    def epoch(self, facts: Facts) -> None: ...
    def killed(self, facts: Facts) -> None: ...
    def end(self, facts: Facts) -> None: ...


def run(
    teller: Teller,
    *,
    engine: str = "spark",
    rows: int | None = None,
    epochs: int = EPOCHS,
    seed: int = 0,
    path: str | None = None,
    session: Any = None,
    kill: bool = True,
) -> Facts:
    """Run the demo and give everything it found.

    Without a path it leaves nothing behind: the state is in a temporary folder, or, in this
    process, in memory. `session` is a Spark session to use, which is left running. With `kill`, on
    Spark, a process that a stream feeds is killed, and started again; see `live`.
    """
    made = path is None and engine == "spark"
    folder = tempfile.mkdtemp(prefix="ebbflow-demo-") if made else path
    folder = None if folder is None else str(local_path(folder, "--path"))
    settings = {"engine": engine, "rows": rows or ROWS[engine], "epochs": epochs, "seed": seed}
    try:
        return _run(teller, settings, folder, session, kill and engine == "spark")
    finally:
        if made and folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(teller: Teller, settings: Facts, folder: str | None, session: Any, kill: bool) -> Facts:
    started = perf_counter()
    engine = ENGINES[settings["engine"]]
    if folder is not None:
        _require_empty(folder)
    teller.start({**settings, "against": engine.against})
    laws = check_laws()
    teller.laws(laws)
    shop = Shop(settings["rows"], settings["seed"])
    running = engine(folder) if session is None else engine(folder, session)
    try:
        running.prepare(shop.tables)
        inputs = {name: length(table) for name, table in shop.tables.items()}
        change, taken = _stepped(running)
        loaded = {"inputs": inputs, "rows": sum(inputs.values()), **taken}
        loaded["samples"] = sample(running)
        teller.loaded(loaded)
        for _ in range(engine.warm_up):
            running.again()
        epoch = shop.correction()
        running.prepare(shop.tables, epoch)
        change, taken = _stepped(running)
        corrected = {
            "what": epoch.name,
            "input": {name: _rows_in(name, rows) for name, rows in epoch.changes.items()},
            "output": {
                name: {"columns": columns(name), "rows": _weighted(running.rows(change, name))}
                for name in VIEWS
            },
            **taken,
        }
        teller.corrected(corrected)
        steps = []
        for number in range(1, settings["epochs"] + 1):
            epoch = shop.epoch(number)
            running.prepare(shop.tables, epoch)
            _, taken = _stepped(running)
            steps.append({"epoch": number, "what": epoch.name, "in": epoch.size, **taken})
            teller.epoch(steps[-1])
        end = {"explain": running.view.explain(), "state": weigh(running)}
    finally:
        running.close()
    scenes: dict[str, Facts] = {}
    if kill and folder is not None:
        scenes["killed"] = killed_and_started_again(Path(folder, "live"))
        teller.killed(scenes["killed"])
    end["seconds"] = perf_counter() - started
    end["verified"] = all(
        each["verified"] for each in (loaded, corrected, *steps, *scenes.values())
    )
    teller.end(end)
    found = {"laws": laws, "load": loaded, "correction": corrected, "steps": steps}
    return {**settings, "against": engine.against, **found, **scenes, **end}


def columns(view: str) -> list[str]:
    """The names of the columns of a view.

    >>> columns("best")
    ['category', 'product', 'name', 'revenue']
    """
    return list(program.plan.outputs[view].type._fields)


def sample(running: Any) -> dict[str, Facts]:
    """A few rows of some views, those with the most of their last column first."""
    outputs = running.outputs()
    found = {}
    for view, count in SHOWN.items():
        rows = sorted(outputs[view], key=itemgetter(-1), reverse=True)[:count]
        found[view] = {"columns": columns(view), "rows": [list(row) for row in rows]}
    return found


def _rows_in(name: str, change: Columns) -> Facts:
    """The change of an input, as it is shown."""
    rows = dict(zip(map(tuple, rows_of(name, change)), change[WEIGHT].tolist(), strict=True))
    return {"columns": list(TYPES[name]._fields), "rows": _weighted(rows)}


def _weighted(rows: Result) -> list[list[Any]]:
    """Rows with their weights as a last column: what left first, then what entered."""
    return [[*row, rows[row]] for row in sorted(rows, key=lambda row: (rows[row], row))]


def _require_empty(folder: str) -> None:
    """Refuse a folder that holds state: the demo starts from nothing and overwrites no state."""
    try:
        used = Snapshot(f"{folder}/state").epoch >= 0
    except OSError:
        used = False
    if used:
        raise CheckError(
            f"there is state in {folder!r} already", remedy="another --path, or none for a new one"
        )


def _stepped(running: Any) -> tuple[Any, Facts]:
    """Run the prepared epoch. Gives the change of the outputs, and the facts about it: how long
    the epoch and a recomputation took, and whether both give the same views.
    """
    started = perf_counter()
    change = running.step()
    stepped = perf_counter()
    out = running.size(change)
    starting = perf_counter()
    right = running.again()
    again = perf_counter() - starting
    wrong = differing(running.outputs(), right)
    return change, {"seconds": stepped - started, "out": out, "recompute": again,
                    "verified": not wrong, "wrong": wrong}  # fmt: skip


def differing(found: Mapping[str, Result], right: Mapping[str, Result]) -> list[str]:
    """The views that are not right, each with a row that shows it.

    >>> differing({"n": {(1, 2.0): 1}}, {"n": {(1, 2.0): 1}})
    []
    >>> differing({"n": {(1, 2): 1}}, {"n": {(1, 3): 1}})
    ['n: (1, 2) is there 1 times, not 0']
    """
    wrong = []
    for name in right:
        ours, theirs = found.get(name, {}), right[name]
        for row in dict.fromkeys([*ours, *theirs]):
            if ours.get(row, 0) != theirs.get(row, 0):
                times, not_ = ours.get(row, 0), theirs.get(row, 0)
                wrong.append(f"{name}: {row} is there {times} times, not {not_}")
                break
    return wrong


def check_laws() -> Facts:
    """What the checker says of the reducer that is used, and of its broken twin.

    >>> found = check_laws()
    >>> found["sound"]["verdict"], found["broken"]["verdict"]
    ('invertible', 'refuted')
    """
    sound = judge(LATE, prove=find_spec("z3") is not None)
    twin = judge(ROUNDED)
    proof = sound.proof if sound.proof is not None and sound.proof.answer == "proved" else None
    facts: Facts = {
        "sound": {
            "name": LATE.name,
            "verdict": sound.verdict,
            "why": sound.why,
            "evidence": str(proof) if proof else f"tested on {sound.examples} examples a law",
        },
        "broken": {"name": ROUNDED.name, "verdict": twin.verdict},
    }
    if twin.broken is not None:
        case = {name: repr(value) for name, value in twin.broken.case.items()}
        facts["broken"] |= {
            "what": twin.broken.what, "law": twin.broken.law.name, "case": case,
            "left": repr(twin.broken.left), "right": repr(twin.broken.right),
        }  # fmt: skip
    return facts


def weigh(running: Any) -> Facts:
    """The entries of each part of the state, the largest part first; on disk also its bytes."""
    if running.state is None:
        kept = running.view.stats()
        found = [(f"input {name}", rows or 0) for name, rows in kept.inputs.items()]
        found += [(str(node.label), node.state_rows) for node in kept.nodes if not node.depth]
        rows = _parts((label, {"entries": entries}) for label, entries in found)
        return {"parts": [part for part in rows if part["entries"]]}
    snapshot = Snapshot(running.state)
    info = snapshot.info()
    labels = dict(snapshot.notes.get("parts", {}))
    parts = _parts(
        (labels.get(spine["operator"], spine["operator"]),
         {"entries": spine["entries"], "bytes": spine["bytes"]})
        for spine in info["spines"]
    )  # fmt: skip
    return {"bytes": info["bytes"], "files": info["files"], "parts": parts}


def _parts(found: Iterable[tuple[str, dict[str, int]]]) -> list[Facts]:
    """Figures of the same label added up."""
    parts: dict[str, Facts] = {}
    for label, figures in found:
        part = parts.setdefault(label, {"part": label, "spines": 0})
        part["spines"] += 1
        for figure, count in figures.items():
            part[figure] = part.get(figure, 0) + count
    by = "bytes" if any("bytes" in part for part in parts.values()) else "entries"
    return sorted(parts.values(), key=lambda part: (-part[by], part["part"]))
