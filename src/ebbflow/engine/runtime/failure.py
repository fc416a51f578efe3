"""The failure of an epoch in the user's terms: the node, where it was made, and the row.

A loop that was generated for a plan knows whose each of its lines is (`ebbflow.codegen.blame`). For
any other, the row is the one that the innermost function of this package was looking at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import ebbflow
from ebbflow.codegen import blame
from ebbflow.engine.runtime.stage import GUARD
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    EbbflowError,
    FunctionFailed,
    NoFixedPoint,
    NotDeterministic,
    Text,
    cause_of,
    error_text,
    shown,
)
from ebbflow.flow.plan import Reduce, Sessions, Source
from ebbflow.flow.plan.time import SessionReduce

TIMED = (Sessions, SessionReduce)
_PACKAGE = os.path.dirname(os.path.abspath(ebbflow.__file__)) + os.sep


@contextmanager
def explaining(stage: Any, trusting: bool = False) -> Iterator[None]:
    """Have what goes wrong in here explained as the failure of a stage."""
    try:
        yield
    except Exception as error:
        raise explained(error, stage, trusting) from cause_of(error)


def explained(error: Exception, stage: Any, trusting: bool = False) -> Exception:
    """The error to raise instead, with the node, its place and the row.

    `trusting` says that rows come in which nobody has checked.
    """
    if isinstance(error, NoFixedPoint):  # it names its loop, which need not be the stage that ran
        return NoFixedPoint(error.what, remedy=error.remedy, **error.facts)
    found = blame(error)
    owner = stage.node if isinstance(error, NotDeterministic) else stage.owner
    if found is not None and hasattr(found.owner, "place"):
        owner = found.owner
    facts: dict[str, Any] = {}
    if found is None or not found.rows:
        facts = _looked_at(error.__traceback__)
    elif len(found.rows) == 2:
        facts["left"], facts["right"] = found.rows
    else:
        facts["row"] = found.rows[0]
    if isinstance(error, EbbflowError):
        return _placed(_changed_its_mind(error, stage), owner, stage, facts, trusting)
    if isinstance(error, TypeError) and "unhashable" in str(error):
        what = f"{_named(owner)} made a row or a key that is not hashable: {error_text(error)}"
        remedy = "tuples for lists, frozensets for sets, a NamedTuple for a dict"
    else:
        what = f"{_named(owner)} raised {error_text(error)}"
        remedy = "a function that takes every row that can come; the step changed nothing"
    return FunctionFailed(what, **facts, created=owner.place or Text("?"), remedy=remedy)


def _changed_its_mind(error: EbbflowError, stage: Any) -> EbbflowError:
    """What is before a reduce or a session is a bag; so where a row is missing in it all the same,
    a function has given it another key or time."""
    if not isinstance(error, ChangeError) or not isinstance(stage.node, (Reduce, *TIMED)):
        return error
    if not _frames(error.__traceback__)[-1].f_code.co_filename.startswith((_PACKAGE, "<ebbflow")):
        return error
    time = "key or time" if isinstance(stage.node, TIMED) else "key"
    return NotDeterministic(
        f"a row is taken back, and its {time} is another than when it came",
        **{name: value for name, value in error.facts.items() if name in ("row", "key")},
        remedy="functions that give the same answer for the same row every time",
    )


def _placed(
    error: EbbflowError, owner: Any, stage: Any, facts: dict[str, Any], trusting: bool
) -> EbbflowError:
    """An error of this package, with the node and the place where it happened."""
    if isinstance(error, NotDeterministic) and stage.label == GUARD:
        return negative_before(owner, **error.facts)
    remedy = error.remedy
    if isinstance(error, NotDeterministic) and isinstance(stage.node, Source):
        if trusting and stage.node.key is None and "was" not in error.facts:
            return AbsentRow(
                f"input {stage.node.name!r}: a row is taken away that is not there",
                **error.facts,
                created=stage.node.place,
                remedy="remove only rows that were added, as often as they were; "
                "nothing was changed",
            )
        owner = stage.owner
    elif isinstance(error, NotDeterministic) and trusting:
        remedy += "; inputs are trusted here (check_input=False), and may be at fault"
    if "was" in error.facts:
        owner = stage.owner
    known = {**facts, **error.facts, "node": Text(_named(owner)), "created": owner.place}
    return type(error)(error.what, remedy=remedy, **known)


def negative_before(owner: Any, **facts: Any) -> ChangeError:
    """The error for a row of negative weight before a node that needs a bag."""
    return ChangeError(
        f"{_named(owner)} needs a collection, and a row before it is negative: "
        "`-` took away more than there was",
        **facts,
        created=owner.place or Text("?"),
        remedy="except_() for sets, or distinct() before it; the step changed nothing",
    )


def _named(owner: Any) -> str:
    """A node or a step as it is spoken of: `filter(price > 10)`."""
    fn = getattr(owner, "fn", None) or getattr(owner, "by", None) or getattr(owner, "time", None)
    if fn is not None:
        return f"{owner.verb}({fn.text})"
    reducer = getattr(owner, "reducer", None)
    return f"{owner.verb}({shown(reducer, width=80)})" if reducer is not None else owner.verb


def _looked_at(trace: TracebackType | None) -> dict[str, Any]:
    """The row that the innermost function of this package has; or the key, and its change."""
    for frame in reversed(_frames(trace)):
        there = frame.f_locals
        if frame.f_code.co_filename.startswith(_PACKAGE):
            if "row" in there:
                return {"row": there["row"]}
            if "key" in there and "part" in there:
                return {"key": there["key"], "change": there["part"]}
    return {}


def _frames(trace: TracebackType | None) -> list[FrameType]:
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames
