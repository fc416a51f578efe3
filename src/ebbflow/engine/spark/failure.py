"""The errors of failed Spark jobs.

A query over a user's frame calls `raise_error` if it refuses a row
(`ebbflow.engine.spark.table.canonical`). Spark's message then contains the error as data, like the
exception of a task (`ebbflow.engine.spark.tasks.report`). `SECRET` stands before the data: the
driver draws it, and no row can know it. Every other failure becomes one sentence.
"""

from __future__ import annotations

import secrets
from typing import NoReturn

from ebbflow.engine.spark.session import failed, said_by
from ebbflow.engine.spark.tasks.report import error_in

SECRET = secrets.token_hex(16)
"""Stands before each error that a query of this process raises."""


def raise_failure(error: Exception, what: str, after: str = "") -> NoReturn:
    """Raise the error of the row that made a job fail; otherwise say `what` failed in Spark, why,
    and what to do `after` it."""
    found = error_in(str(error), SECRET)
    if found is not None:
        raise found from None
    raise failed(error, what, after) from said_by(error)
