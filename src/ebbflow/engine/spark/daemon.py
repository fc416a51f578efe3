"""The process that Spark's Python workers are forked from, with all that tasks need imported.

Spark ends workers that had nothing to do for a minute. The next epoch starts one; it would import
NumPy, Arrow and this package then, which takes longer than a small epoch.
"""

from __future__ import annotations

from pyspark.daemon import manager

import ebbflow.engine.spark.task  # noqa: F401

if __name__ == "__main__":
    manager()
