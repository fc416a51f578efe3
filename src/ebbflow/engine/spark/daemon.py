"""The process that Spark's Python workers are forked from, with all that tasks need imported.

Spark ends workers that had nothing to do for a minute. The next epoch starts one; it would import
NumPy, Arrow and this package then, which takes longer than a small epoch. And after every task a
worker looks for cycles of objects: what was imported need not be gone over each time.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import ebbflow.engine.spark.bulk_tasks
import ebbflow.engine.spark.frames
import ebbflow.engine.spark.groups  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
