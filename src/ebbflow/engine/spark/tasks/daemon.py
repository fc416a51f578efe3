"""The process that Spark's Python workers are forked from, with all that tasks need imported.

Spark ends workers that had nothing to do for a minute. The next epoch starts one; it would import
NumPy, Arrow and this package then, which takes longer than a small epoch. And after every task a
worker looks for cycles of objects: what was imported need not be gone over each time. All workers
share which parts of the state they have checked.

Kernels are loaded as well, where they have been compiled on this machine before.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

from ebbflow.engine.spark.tasks.warm import warm
from ebbflow.state.spine.checked import Checked
from ebbflow.state.spine.segment import SHARED

if __name__ == "__main__":
    SHARED.append(Checked())
    warm()
    gc.collect()
    gc.freeze()
    manager()
