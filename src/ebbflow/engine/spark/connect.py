"""Sessions of Spark Connect, and what they do in another way.

A *classic* session has Spark's driver in a process of this machine, and a query is analysed when it
is made. A *Connect* session is a client: queries go to a server, which analyses, plans and runs
them, with the settings that the session has then. So what asks Java about a query asks for the text
of its plan here, and what borrows a setting for a moment leaves it as it is.
"""

from __future__ import annotations

import os
import re
from typing import Any

_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}
_CHEAP = {"Project", "Filter", "Relation", "LocalRelation", "InMemoryRelation", "LogicalRDD"}
_SAME = {
    "abs", "array", "cast", "ceil", "coalesce", "concat", "floor", "greatest", "if", "in",
    "isnan", "isnotnull", "isnull", "keys", "lambdafunction", "least", "left", "length", "lower",
    "map", "named_struct", "nanvl", "not", "raise_error", "round", "struct", "substring",
    "transform", "transform_keys", "transform_values", "trim", "try_cast", "upper", "values",
    "invoke", "evaluate", "structstojsonevaluator", "some",  # to_json
    "arraytype", "decimal", "decimaltype", "maptype", "structfield", "structtype",
}  # fmt: skip
"""Functions that give the same every time; others may, too, and what a text leaves out may not."""


def is_connect(session: Any) -> bool:
    """Whether a session, or a frame of one, is of Spark Connect.

    >>> is_connect(object())
    False
    """
    return any(cls.__module__.startswith("pyspark.sql.connect.") for cls in type(session).__mro__)


def functions_are_connect() -> bool:
    """Whether the functions of `pyspark.sql` make columns for Connect: it is so, or not, for all
    sessions of a process."""
    from pyspark.sql.utils import is_remote

    return is_remote() and "PYSPARK_NO_NAMESPACE_SHARE" not in os.environ


def cores_of(session: Any) -> int | None:
    """How many tasks of a session run at a time, where that is known."""
    return None if is_connect(session) else int(session.sparkContext.defaultParallelism)


# ---- what Spark knows of a query ----


def steady(frame: Any) -> bool:
    """Whether a frame is cheap to read, and gives the same rows every time it is."""
    if is_connect(frame):
        text = _plan(frame)
        text = re.sub(r", Statistics\(.*?\)", "", text)
        called = {name.lower() for name in re.findall(r"(\w+)\(", text)}
        return called <= _SAME and "..." not in text and _is_cheap(text)
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.deterministic()) and _is_cheap(plan.toString())


def estimated_bytes(frame: Any) -> int:
    """About how many bytes the rows of a frame take, as Spark has it; where it does not know, more
    than there are."""
    if is_connect(frame):
        return _bytes_in(_plan(frame))
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _plan(frame: Any) -> str:
    """The optimized plan of a query as text, with statistics."""
    text: str = frame._explain_string(mode="cost")
    return text.partition("== Optimized Logical Plan ==")[2].partition("\n== ")[0]


def _is_cheap(text: str) -> bool:
    """Whether a plan only reads rows, and takes columns and rows of them.

    >>> _is_cheap("Project [a]\\n+- Relation [a] parquet"), _is_cheap("Join Inner")
    (True, False)
    """
    heads = [line.lstrip(" +-:").split("[")[0].split(" ")[0] for line in text.splitlines()]
    return all(head in _CHEAP for head in heads if head)


def _bytes_in(text: str) -> int:
    """The size that a plan with statistics begins with.

    >>> _bytes_in("Relation [id] parquet, Statistics(sizeInBytes=4.9 KiB)")
    5017
    >>> _bytes_in("Relation [id], Statistics(sizeInBytes=8.0 EiB)") == _bytes_in("?") == 1 << 63
    True
    """
    found = re.search(r"Statistics\(sizeInBytes=([\d.E+]+) (\w+)", text)
    if found is None or found.group(2) not in _UNITS:
        return 1 << 63
    return int(float(found.group(1)) * (1 << _UNITS[found.group(2)]))
