"""Kernels that are loaded before a task needs them.

A kernel is compiled when it is first called, which takes seconds, and is then kept beside its
source. Loading all of them takes about as long as a small epoch: a process that workers are forked
from does it once for all of them.
"""

from __future__ import annotations

from pathlib import Path

from ebbflow import kernel


def warm() -> bool:
    """Load the kernels, if they have been compiled before; says whether they are."""
    kept = Path(kernel.__file__).parent / "__pycache__"
    if kernel.missing() or not any(kept.glob("chained.*.nbi")):
        return False
    import numpy as np

    from ebbflow.engine.spark.tasks import columns
    from ebbflow.kernel.chained import NOW, ChainedRows
    from ebbflow.kernel.groups import ADD, TOTAL, Addend, Groups, Result
    from ebbflow.kernel.rows import RowTotals

    assert columns.TEXTS
    numbers = np.arange(2).reshape(-1, 1)
    weights = np.ones(2, np.int64)
    groups = Groups(1, [Addend(ADD, 0)], [Result(TOTAL, 1)])
    groups.step(numbers, numbers, weights)
    groups.step(numbers, numbers, -weights)
    index = ChainedRows(1, 1, bag=False)
    index.apply(numbers, numbers, weights)
    index.meet(numbers, weights, NOW)
    RowTotals(numbers, weights)
    return True
