"""What does a keystroke cost in a document of 10 MB with an outline, word counts and a search?

The document is one row with a field declared as `Text`. A program keeps its outline (the lines that
begin with #), how often each word occurs, the lines that hold a search term, its length and where a
word is first found. Three figures for a keystroke somewhere in the document:

    kept       the edit goes to the view, and everything is up to date
    scratch    the text is edited, and all five are computed again by plain Python: `splitlines`,
               `Counter(text.split())`, `in` and `find`
    batch      the same program from scratch, by the engine that says what programs mean

and the same for a paste of 1,000 characters, and for a view whose state is on disk, which writes
the document, whole, in every epoch.

    python benchmarks/text.py [--quick] [--json]
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from harness import Row, main

import ebbflow as ef
from ebbflow.change import Delete, Insert
from ebbflow.engine.batch import evaluate
from ebbflow.operator import lists, text

TERM = "needle"
WORDS = [
    "tide", "moon", "sea", "harbour", "ship", "wave", "salt", "wind", "keel", "rope", "sail",
    "anchor", "buoy", "current", "eddy", "shoal", "ebb", "flow", "drift", "swell",
]  # fmt: skip


class Document(NamedTuple):
    id: int
    body: ef.Text


def is_heading(line: str) -> bool:
    return line.startswith("#")


documents = ef.Input("documents", Document, key="id")
outline = documents.select(
    "id", headings=(text.lines >> lists.keep(is_heading))("body"), size=text.length("body"),
    at=text.index_of(TERM)("body"),
)  # fmt: skip
counts = documents.through(text.words("body"), per="id").group_by("value").agg(n=ef.count())
found = documents.through((text.lines >> lists.items)("body"), per="id").filter(
    lambda row: TERM in row.value
)
PROGRAM = ef.program(outline=outline, counts=counts, found=found)


def written(size: int, rnd: random.Random) -> str:
    """A text of about so many characters: paragraphs of a few lines below headings."""
    parts: list[str] = []
    length = 0
    while length < size:
        line = " ".join(rnd.choices(WORDS, k=rnd.randint(5, 15)))
        if rnd.random() < 0.02:
            line = f"# {line}"
        if rnd.random() < 0.001:
            line = f"{line} {TERM}"
        if rnd.random() < 0.2:
            line = f"{line} {rnd.randrange(20_000)}"
        parts.append(line)
        length += len(line) + 1
    return "\n".join(parts)


def from_scratch(body: str) -> tuple[Any, ...]:
    lines = body.splitlines()
    return (
        [line for line in lines if is_heading(line)],
        Counter(body.split()),
        [line for line in lines if TERM in line],
        len(body),
        body.find(TERM),
    )


def timed(call: Any, times: int) -> float:
    """The median time of a call, in seconds."""
    found = []
    for _ in range(times):
        begin = perf_counter()
        call()
        found.append(perf_counter() - begin)
    return median(found)


def typist(view: Any, size: int, piece: int, rnd: random.Random) -> Any:
    """Types and takes back, at places of its own, so that the document stays as long as it is."""
    state = {"at": 0, "out": True}

    def press() -> None:
        if state["out"]:
            state["at"] = rnd.randrange(size)
            edit: Any = Insert(state["at"], "x" * piece if piece == 1 else "x tide " * (piece // 7))
            state["length"] = len(edit.text)
        else:
            edit = Delete(state["at"], state["length"])
        state["out"] = not state["out"]
        view.input("documents").edit(1, "body", edit)

    return press


def measure(quick: bool) -> list[Row]:
    rows: list[Row] = []
    for size in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        rnd = random.Random(size)
        body = written(size, rnd)
        view = PROGRAM.run()
        begin = perf_counter()
        view.step(documents=[Document(1, ef.Text(body))])
        load = perf_counter() - begin
        times = 50 if quick else 400
        key, paste = typist(view, size, 1, rnd), typist(view, size, 1000, rnd)
        timed(key, 20)
        kept, pasted = timed(key, times), timed(paste, times)
        assert view.verify()
        plain = timed(lambda body=body: from_scratch(body[:500] + "x" + body[500:]), 3)
        given = {"documents": ef.ZSet.of([Document(1, ef.Text(body))])}
        batch = timed(lambda given=given: evaluate(PROGRAM.plan, given), 1 if quick else 3)
        with tempfile.TemporaryDirectory() as folder, PROGRAM.run(path=folder) as durable:
            durable.step(documents=[Document(1, ef.Text(body))])
            stored = typist(durable, size, 1, rnd)
            stored()
            before = durable._storage.store.written
            on_disk = timed(stored, 20)
            written_by = (durable._storage.store.written - before) / 20
        rows.append({
            "characters": size, "load ms": load * 1e3, "keystroke ms": kept * 1e3,
            "paste ms": pasted * 1e3, "on disk ms": on_disk * 1e3,
            "on disk KB": written_by / 1e3, "scratch ms": plain * 1e3,
            "batch ms": batch * 1e3, "scratch / keystroke": plain / kept,
            "batch / keystroke": batch / kept,
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    main(str(__doc__), measure)
