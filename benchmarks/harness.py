"""What every benchmark shares: options, fair timing, and one way to print.

These machines are noisy, so what is compared is measured in turns in one run, and the figure to
read is the ratio, not the time. Each benchmark asks one question and takes `--quick` and `--json`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter
from typing import Any

Row = dict[str, Any]


def in_turns(
    contestants: dict[str, Callable[[], Any]], *, rounds: int = 7, least: float = 0.02
) -> dict[str, float]:
    """The median seconds of one call of each, measured in turns; short calls are repeated."""
    repeats = {}
    for name, call in contestants.items():
        begin = perf_counter()
        call()
        repeats[name] = max(1, int(least / max(perf_counter() - begin, 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in contestants.items():
                begin = perf_counter()
                for _ in range(repeats[name]):
                    call()
                times[name].append((perf_counter() - begin) / repeats[name])
    finally:
        gc.enable()
    return {name: median(found) for name, found in times.items()}


def main(question: str, measure: Callable[[bool], list[Row]]) -> None:
    """Run a benchmark from the command line."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    asked = parser.parse_args()
    rows = measure(asked.quick)
    if asked.json:
        print(json.dumps({"question": question, "rows": rows}, indent=2))
        return
    print(question)
    table(rows)


def publish(
    asked: argparse.Namespace, question: str, rows: list[Row], judged: list[Row],
    also: dict[str, Any], remarks: Iterable[str],
) -> None:  # fmt: skip
    """Print the rows of several works and how they meet their targets: as JSON, which has `also`
    some facts by name, or as tables, with remarks behind them."""
    load = os.getloadavg()
    if asked.json:
        found = {"question": question, "rows": rows, "targets": judged, "load average": load}
        print(json.dumps(found | also, indent=2))
        return
    print(question)
    for work in dict.fromkeys(row["work"] for row in rows):
        print()
        table([row for row in rows if row["work"] == work])
    if judged:
        print("\nTargets" + " (judged at full size only)" * asked.quick)
        table(judged)
    print("\nload average of the machine: {:.1f}, {:.1f}, {:.1f}".format(*load))
    for remark in remarks:
        print(remark)


def table(rows: list[Row]) -> None:
    """Rows of equal shape as a table."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
