"""What `loops.py` is to show, and whether it does."""

from __future__ import annotations

from harness import Row
from local_targets import Figures
from loops_rivals import RECOMPUTING

ENGINE = "engine"


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """Every target that the figures speak about; at small sizes they are shown, not judged."""
    figures = Figures(rows, quick)
    check, ratio = figures.check, figures.ratio
    differential = ratio("reachability 100", "differential", ENGINE, "µs")
    check(f"reachability 100: differential / {ENGINE}", differential, ">=", 2.0)
    single = figures.figure("reachability 1", ENGINE, "µs")
    check(f"reachability 1: µs of {ENGINE}", single, "<=", 100.0)
    for size in (1, 10, 100):
        work = f"components {size}"
        again = [figures.figure(work, name, "µs") for name in RECOMPUTING]
        fastest, mine = min(filter(None, again), default=None), figures.figure(work, ENGINE, "µs")
        faster = None if fastest is None or mine is None else fastest / mine
        check(f"{work}: fastest recomputing / {ENGINE}", faster, ">=", 10.0)
    for query in ("reachability", "components"):
        load = ratio(f"{query} load", ENGINE, "Pathway", "s")
        check(f"{query} load: {ENGINE} / Pathway", load, "<=", 2.0)
    return figures.judged
