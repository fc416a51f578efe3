"""What to raise when a job of Spark's fails.

A query over a frame of the user's fails by `raise_error` where a row is refused
(`ebbflow.engine.spark.table.canonical`). The message of Spark's then has the error as data, as a
task's exception has it (`ebbflow.engine.spark.tasks.report`), behind `SECRET`, which the driver
draws and no row can know. Every other failure becomes one sentence.
"""

from __future__ import annotations

import secrets
from typing import NoReturn

from ebbflow.engine.spark.session import failed, said_by
from ebbflow.engine.spark.tasks.report import error_in

SECRET = secrets.token_hex(16)
"""Stands before each error that a query of this process raises."""


def raise_failure(error: Exception, what: str, after: str = "") -> NoReturn:
    """Raise the error of the row with which a job has failed, or else `what` failed in Spark;
    `after` is what to do then."""
    found = error_in(str(error), SECRET)
    if found is not None:
        raise found from None
    raise failed(error, what, after) from said_by(error)
