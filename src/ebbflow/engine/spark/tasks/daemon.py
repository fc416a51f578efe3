"""The process that Spark's Python workers are forked from, with all that tasks need imported.

Spark ends workers that had nothing to do for a minute. The next epoch starts one; it would import
NumPy, Arrow and this package then, which takes longer than a small epoch. And after every task a
worker looks for cycles of objects: what was imported need not be gone over each time. All workers
share which parts of the state they have checked.

Kernels are loaded as well, where they have been compiled on this machine before.

Spark ends all tasks of a job that fails or is interrupted. Their workers find their sockets closed
when they write. That is no error of a worker, so the worker ends without a traceback.
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
    """End the process without a traceback if the socket of the worker is closed."""

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
