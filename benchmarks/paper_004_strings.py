"""Paper 004, Figure 7: five kinds of edits to `last_index_of('A')(lower(s1) + upper(s2))`.

Compared are one step of the differential operator, and patching the edited text and computing
everything again with the methods of `str`. Three figures for the operator: *edit* is the median
time of a step, what a user waits for; *sustained* is the mean over a long run, with everything that
was put off carried out at its end (the median of ten runs, and of ten runs of recomputing too, in
processor time, which other programs disturb least). Each edit is undone by the opposite
edit before the next one, so that the texts stay as long as they are. A rope takes edits that touch
as one, so this is kind to it; *apart* is the same with each opposite edit at another random place:
nothing touches, and nearly every edit finds its part of the text out of the processor's caches.

The paper shows its speed-ups as bars and gives no numbers. It says how it expects each kind to
behave; beside that stands how our times grow, with the edit and with the text.

    python benchmarks/paper_004_strings.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from statistics import median
from typing import Any

from harness import table

from ebbflow.change import TEXT, Delete, First, Insert, Second
from ebbflow.operator import binary
from ebbflow.operator.text import concat, last_index_of, lower, upper

PIPELINE = binary(lower, upper, concat) >> last_index_of("A")
KINDS = {
    1: "delete in s1",
    2: "insert in s1",
    3: "delete in s2, before the last A",
    4: "insert in s2, before the last A",
    5: "delete the last A in s2",
}
EXPECTED = {
    1: "constant",
    2: "linear in the insertion",
    3: "constant",
    4: "linear in the insertion",
    5: "linear in the input",
}
PLAIN = "eeeetttaaooiinnsshhrrdlucmfwypvbgkTSAIEO        ,."
PAPER, LONG, LARGE, QUICK_LARGE = 2_000, 200_000, 10_000_000, 1_000_000
PERCENT = (1, 5, 10)
SMALL = (500, 1_000, 4_000, 8_000, 16_000, 32_000)
ACCENTED = PLAIN + "éàü—’"
COLUMNS = {
    "per edit": "speedup", "sustained": "sustained_speedup", "apart": "apart_speedup",
}  # fmt: skip


def texts(size: int, letters: str, rnd: random.Random) -> tuple[str, str]:
    """Two texts, as long in proportion as the paper's 1425 and 570 code points."""
    first = size * 1425 // 1995
    return words(first, letters, rnd), words(size - first, letters, rnd)


def words(size: int, letters: str, rnd: random.Random) -> str:
    return "".join(rnd.choices(letters, k=size))


def edits(
    kind: int, size: int, x: tuple[str, str], letters: str, rnd: random.Random, apart: bool
) -> Iterator[tuple[Any, Any]]:
    """Edits of one kind, each with the edit that takes it back or, `apart`, an opposite one
    elsewhere; of kind 5, which has one place only, always the first."""
    side, text = (First, x[0]) if kind < 3 else (Second, x[1])
    last = max(text.rfind("A"), text.rfind("a"))
    limit = len(text) if kind < 3 else last
    while True:
        if kind == 5:
            at = rnd.randint(max(last - size + 1, 0), min(last, len(text) - size))
        else:
            at = rnd.randint(0, max(limit - size, 0))
        back = rnd.randint(0, max(limit - size, 0)) if apart and kind < 5 else at
        if kind in (2, 4):
            yield side(Insert(at, words(size, letters, rnd))), side(Delete(back, size))
        else:
            yield side(Delete(at, size)), side(Insert(back, text[at : at + size]))


def recomputed(x: tuple[str, str], change: Any) -> int:
    """What a careful program without ebbflow does."""
    first, second = x
    if isinstance(change, First):
        first = TEXT.patch(first, change.change)
    else:
        second = TEXT.patch(second, change.change)
    return (first.lower() + second.upper()).rfind("A")


def recomputed_all(x: tuple[str, str], pairs: list[tuple[Any, Any]]) -> None:
    for change, _ in pairs:
        recomputed(x, change)


def timed(action: Callable[[], Any]) -> float:
    start = time.thread_time()
    action()
    return time.thread_time() - start


def measure(
    total: int, kind: int, size: int, runs: int, again: int, letters: str = PLAIN
) -> dict[str, Any]:
    """One line of the table; times in microseconds."""
    rnd = random.Random(kind)
    x = texts(total, letters, rnd)
    found = {}
    for apart in (False, True):
        source = edits(kind, size, x, letters, rnd, apart)
        found[apart] = followed(x, [next(source) for _ in range(runs)], again)
    scratch, edit, sustained = found[False]
    apart_us = found[True][2]
    return {
        "size": total,
        "text": "plain" if letters == PLAIN else "accented",
        "kind": kind,
        "edit": size,
        "recompute_us": round(1e6 * scratch, 2),
        "edit_us": round(1e6 * edit, 2),
        "sustained_us": round(1e6 * sustained, 2),
        "apart_us": round(1e6 * apart_us, 2),
        "speedup": round(scratch / edit, 2),
        "sustained_speedup": round(scratch / sustained, 2),
        "apart_speedup": round(scratch / apart_us, 2),
    }


def followed(
    x: tuple[str, str], pairs: list[tuple[Any, Any]], again: int
) -> tuple[float, float, float]:
    """The time of recomputing, of a step, and of a step in the long run."""
    few = max(again // 10, 1)
    scratch = median(
        timed(partial(recomputed_all, x, pairs[at : at + few])) / few for at in range(0, again, few)
    )
    step, state = PIPELINE.step, PIPELINE.init(x)
    gc.collect()
    gc.freeze()
    taken: list[float] = []
    moves: list[Any] = []
    tenth = len(pairs) // 10
    for change, back in pairs[:tenth]:
        start = time.perf_counter()
        state, moved = step(state, change)
        taken.append(time.perf_counter() - start)
        state, moved_back = step(state, back)
        moves += moved, moved_back
    blocks = []
    for block in range(0, len(pairs), tenth):
        begin = time.thread_time()
        for change, back in pairs[block : block + tenth]:
            state, moved = step(state, change)
            state, moved_back = step(state, back)
            moves += moved, moved_back
        state[0][0].rope.slice(0, 1), state[-1].rope.slice(0, 1)
        blocks.append((time.thread_time() - begin) / (tenth * 2))
    answers = list(accumulate(map(sum, moves), initial=PIPELINE.f(x)))
    for (change, _), answer in zip(pairs[:5], answers[1::2], strict=False):
        assert answer == recomputed(x, change)
    assert answers[-1] == answers[0]
    return scratch, median(taken), median(blocks)


def rows(quick: bool) -> list[dict[str, Any]]:
    """The whole table; `quick` measures each line less often and uses 1 MB for 10 MB."""
    runs = 100 if quick else 1500
    found = [
        measure(total, kind, total * percent // 100, runs, runs // 2)
        for total in (PAPER, LONG)
        for percent in PERCENT
        for kind in KINDS
    ]
    large = QUICK_LARGE if quick else LARGE
    for letters in (PLAIN, ACCENTED):
        found += [measure(large, kind, 20, 10 * runs, 9, letters) for kind in KINDS]
    return found + [measure(total, 2, 20, runs, runs // 2) for total in SMALL]


def checks(rows: list[dict[str, Any]]) -> list[tuple[str, float, str, float, bool]]:
    """The targets for strings: name, the worst found, how it is compared, what is wanted, and
    whether it was asked: not of the smaller text of `quick`, and not of edits apart."""
    large = max(row["size"] for row in rows)
    one = [r for r in rows if (r["size"], r["edit"]) == (LONG, LONG // 100) and r["kind"] < 5]
    found = [("1 % of 200,000, kinds 1-4", one, 10.0, True)]
    for text in ("plain", "accented"):
        short = [r for r in rows if (r["size"], r["text"]) == (large, text)]
        name = f"20 code points in {large:,}, {text}, kind"
        for kinds, few in (("s 1-4", short[:4]), (" 5", short[4:])):
            found.append((name + kinds, few, 1000.0, large == LARGE))
    return [
        (f"{name}, {how}", min(row[key] for row in group), ">=", wanted, asked and how != "apart")
        for name, group, wanted, asked in found
        for how, key in COLUMNS.items()
    ]


def expectations(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the paper expects of each kind, and by how much the time of ours grew."""
    time = {(row["size"], row["text"], row["edit"], row["kind"]): row["edit_us"] for row in rows}
    large = max(row["size"] for row in rows)
    edit, text = f"edit x10 in {LONG:,}", f"text x{large // PAPER:,}, edit 20"
    return [
        {
            "kind": f"({kind}) {KINDS[kind]}",
            "the paper expects": EXPECTED[kind],
            f"ours: {edit}": time[LONG, "plain", LONG // 10, kind]
            / time[LONG, "plain", LONG // 100, kind],
            f"ours: {text}": time[large, "plain", 20, kind] / time[PAPER, "plain", 20, kind],
        }
        for kind in KINDS
    ]


def draw(pyplot: Any, rows: list[dict[str, Any]], path: str) -> None:
    """Figure 7 as a picture: the speed-up of each kind of edit, for each size of text and edit."""
    groups: dict[int, dict[int, dict[int, dict[str, Any]]]] = {}
    for row in rows:
        if row["text"] == "plain" and row["size"] not in SMALL:
            edits = groups.setdefault(row["size"], {})
            edits.setdefault(row["edit"], {})[row["kind"]] = row
    chart, panels = pyplot.subplots(1, len(groups), figsize=(5 * len(groups), 4.5))
    for axes, (size, edits) in zip(panels, groups.items(), strict=True):
        width = 0.8 / len(edits)
        for i, (edit, kinds) in enumerate(edits.items()):
            places = [kind + (i - (len(edits) - 1) / 2) * width for kind in kinds]
            bars = [row["speedup"] for row in kinds.values()]
            axes.bar(places, bars, width, label=f"{edit:,} ({100 * edit / size:.2g} %)")
            lasting = [row["sustained_speedup"] for row in kinds.values()]
            axes.plot(places, lasting, "k_", label="sustained" if i == len(edits) - 1 else None)
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set(yscale="log", xlabel="kind of change", ylabel="times faster than recomputing")
        axes.set_title(f"Figure 7: {size:,} code points")
        axes.legend(title="edit", fontsize="small")
    chart.tight_layout()
    chart.savefig(path, dpi=150)
    pyplot.close(chart)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table, and from which size on an edit is faster than computing again."""
    print("f(s1, s2) = last_index_of('A')(lower(s1) + upper(s2)); microseconds per edit\n")
    head = f"{'text':>19}  {'size':>6}  {'kind':<35}"
    print(f"{head}{'recompute':>10}{'edit':>8}{'':>10}{'sustained':>10}{'':>10}{'apart':>8}")
    for row in rows:
        name = f"{row['size']:,} {row['text']}"
        kind = f"({row['kind']}) {KINDS[row['kind']]}"
        print(
            f"{name:>19}  {row['edit']:>6,}  {kind:<35}{row['recompute_us']:>10,.1f}"
            f"{row['edit_us']:>8.1f}{row['speedup']:>9,.1f}×"
            f"{row['sustained_us']:>10.1f}{row['sustained_speedup']:>9,.1f}×"
            f"{row['apart_us']:>8.1f}{row['apart_speedup']:>9,.1f}×"
        )
    small = sorted((row for row in rows if (row["kind"], row["edit"]) == (2, 20)), key=_by_size)
    for name, what in (("speedup", "an edit"), ("sustained_speedup", "a long run of edits")):
        won = next((row["size"] for row in small if row[name] >= 1), None)
        print(f"\nInserting 20 code points: {what} is faster than recomputing from {won:,} on.")
    print("\nWhat the paper expects (it gives no numbers), and by how much the time of ours grew")
    table(expectations(rows))


def _by_size(row: dict[str, Any]) -> int:
    return int(row["size"])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer repetitions, a smaller text")
    options.add_argument("--json", action="store_true", help="print the rows as JSON")
    chosen = options.parse_args()
    found = rows(chosen.quick)
    print(json.dumps(found, indent=1)) if chosen.json else show(found)
