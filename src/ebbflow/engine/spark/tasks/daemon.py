"""The process that Spark's Python workers are forked from, with all that tasks need imported.

Spark ends workers that had nothing to do for a minute. The next epoch starts one; it would import
NumPy, Arrow and this package then, which takes longer than a small epoch. And after every task a
worker looks for cycles of objects: what was imported need not be gone over each time. All workers
share which parts of the state they have checked.

Kernels are loaded as well, where they have been compiled on this machine before.

A worker whose task was ended by Spark, as every task is whose job has failed or was interrupted,
finds its socket closed when it writes. That is no error of the worker, so it ends without a word.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

from pyspark import daemon

from ebbflow.engine.spark.tasks.warm import warm
from ebbflow.state.spine.checked import Checked
from ebbflow.state.spine.segment import SHARED


def silent_at_end(work: Callable[..., int]) -> Callable[..., int]:
    """A worker's work that ends the process if nobody reads what it writes."""

    def run(*given: Any) -> int:
        try:
            return work(*given)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)

    return run


if __name__ == "__main__":
    SHARED.append(Checked())
    warm()
    gc.collect()
    gc.freeze()
    daemon.worker = silent_at_end(daemon.worker)
    daemon.manager()
