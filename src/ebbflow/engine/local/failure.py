"""What went wrong in an epoch, in the user's terms: the node, where it was made, and the row.

A loop that was written for a plan knows who wrote each of its lines (`ebbflow.loop.blame`). For any
other, the row is the one that the innermost function of this package was looking at.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import ebbflow
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    EbbflowError,
    FunctionFailed,
    NotDeterministic,
    Text,
    shown,
)
from ebbflow.flow.plan import Source
from ebbflow.loop import blame

_PACKAGE = os.path.dirname(os.path.abspath(ebbflow.__file__)) + os.sep


def explained(error: Exception, stage: Any) -> Exception:
    """The error to raise instead, with the node, its place and the row."""
    found = blame(error)
    owner = stage.node if found is None or not hasattr(found.owner, "place") else found.owner
    rows = found.rows if found is not None and found.rows else _row(error.__traceback__)
    facts: dict[str, Any] = {}
    if len(rows) == 2:
        facts["left"], facts["right"] = rows
    elif rows:
        facts["row"] = rows[0]
    if isinstance(error, EbbflowError):
        return _placed(error, owner, stage, facts)
    if isinstance(error, TypeError) and "unhashable" in str(error):
        what = f"{_named(owner)} made a row or a key that is not hashable: {error}"
        remedy = "tuples for lists, frozensets for sets, a NamedTuple for a dict"
    else:
        what = f"{_named(owner)} raised {type(error).__name__}: {error}"
        remedy = "a function that takes every row that can come; the step changed nothing"
    return FunctionFailed(what, **facts, created=owner.place or Text("?"), remedy=remedy)


def _placed(error: EbbflowError, owner: Any, stage: Any, facts: dict[str, Any]) -> EbbflowError:
    """An error of ours, and where it happened."""
    if isinstance(error, NotDeterministic) and stage.label == "guard":
        return ChangeError(
            f"{_named(owner)} needs a collection, and a row before it is owed: "
            "`-` took away more than there was",
            **error.facts,
            created=owner.place or Text("?"),
            remedy="except_() for sets, or distinct() before it; the step changed nothing",
        )
    if isinstance(error, NotDeterministic) and isinstance(stage.node, Source):
        return AbsentRow(
            f"input {stage.node.name!r}: a row is taken away that is not there",
            **error.facts,
            created=stage.node.place,
            remedy="remove only rows that were added, as often as they were; nothing was changed",
        )
    told = {**facts, **error.facts, "node": Text(_named(owner)), "created": owner.place}
    return type(error)(error.what, remedy=error.remedy, **told)


def _named(owner: Any) -> str:
    """A node or a step as it is spoken of: `filter(price > 10)`."""
    fn = getattr(owner, "fn", None) or getattr(owner, "by", None) or getattr(owner, "time", None)
    if fn is not None:
        return f"{owner.verb}({fn.text})"
    reducer = getattr(owner, "reducer", None)
    return f"{owner.verb}({shown(reducer, width=80)})" if reducer is not None else owner.verb


def _row(trace: TracebackType | None) -> tuple[Any, ...]:
    found: tuple[Any, ...] = ()
    while trace is not None:
        code, there = trace.tb_frame.f_code, trace.tb_frame.f_locals
        if code.co_filename.startswith(_PACKAGE) and "row" in there:
            found = (there["row"],)
        trace = trace.tb_next
    return found
