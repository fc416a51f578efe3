"""How long is the longest small step after a load, with what was loaded frozen and without?

Milliseconds of processor time: 300,000 rows into groups with a maximum and a count, then 300 steps
of 200 rows. See `ebbflow.engine.runtime.gc_paused`.

    python benchmarks/bench_freeze.py [--quick] [--json]
"""

from __future__ import annotations

import gc
from random import Random
from statistics import median
from time import process_time

from harness import Row, main

import ebbflow as ef
from ebbflow.record import record

Sale = record("Sale", shop=int, price=int, number=int)


def measure(quick: bool) -> list[Row]:
    random, size = Random(1), 260_000 if quick else 300_000
    rows = [
        Sale(random.randrange(100_000), random.randrange(1000), i) for i in range(size + 60_000)
    ]
    found: list[Row] = []
    for freeze in (True, False) * (1 if quick else 3):
        sales = ef.Input("sales", Sale).group_by("shop").agg(top=ef.max("price"), n=ef.count())
        view = sales.run(check_input=False, freeze=freeze)
        times = []
        for first in (0, *range(size, len(rows), 200)):
            given = rows[first : first + 200] if first else rows[:size]
            begin = process_time()
            view.step(sales=given)
            times.append(1000 * (process_time() - begin))
        load, *steps = times
        found.append({"freeze": freeze, "load": load, "median": median(steps), "worst": max(steps),
                      "worst / median": max(steps) / median(steps)})  # fmt: skip
        view.close()
        del view
        gc.collect()
    return found


if __name__ == "__main__":
    main((__doc__ or "").splitlines()[0], measure)
