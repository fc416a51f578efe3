"""The errors of failed Spark jobs.

A query over a user's frame calls `raise_error` if it refuses a row
(`ebbflow.engine.spark.table.canonical`). Spark's message then contains the error as data: `SECRET`,
the error as JSON, as a task reports it (`ebbflow.engine.spark.tasks.report`), and the texts that
only the row could tell, each of them before another `SECRET`. The driver draws it, and no row can
know it. Every other failure becomes one sentence.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ebbflow.engine.spark.session import failed, said_by
from ebbflow.engine.spark.tasks.report import error_of
from ebbflow.errors import EbbflowError

SECRET = secrets.token_hex(16)
"""Stands before each error that a query of this process raises, and after each of its texts."""


def raise_failure(error: Exception, what: str, after: str = "") -> NoReturn:
    """Raise the error of the row that made a job fail; otherwise say `what` failed in Spark, why,
    and what to do `after` it."""
    found = _refusal_in(str(error))
    if found is not None:
        raise found from None
    raise failed(error, what, after) from said_by(error)


def refusal_text(
    what: Sequence[str], remedy: str, facts: Mapping[str, str], texts: Sequence[str]
) -> str:
    """The beginning of the message of a refusal. After it come the texts between the parts of
    `what`, and those of the facts that `texts` names, each with `SECRET` behind it.

    >>> said = refusal_text(["field ", " is null"], "", {}, ["row"])
    >>> _refusal_in(f"Job aborted: {said}id{SECRET}(None,){SECRET} SQLSTATE: P0001").facts
    {'row': '(None,)'}
    """
    parts = {"kind": "ChangeError", "what": what, "remedy": remedy, "facts": facts, "texts": texts}
    return f"{SECRET}{json.dumps(parts, ensure_ascii=False)}{SECRET}"


def _refusal_in(text: str) -> EbbflowError | None:
    """The error of a row in a message of Spark's."""
    _, found, rest = text.partition(SECRET)
    if not found:
        return None
    said, *texts = rest.split(SECRET)
    try:
        parts = json.loads(said)
        first, *others = parts["what"]
        count = len(others)
        parts["what"] = first + "".join(map(str.__add__, texts[:count], others))
        of_row = dict(zip(parts.pop("texts"), texts[count:], strict=False))
        parts["facts"] = {**of_row, **parts["facts"]}
        return error_of(parts)
    except (ValueError, KeyError, TypeError):
        return None
