"""One NaN: the same object wherever rows are written down or sent.

NaN is not equal to itself, so Python tells two of them apart, in a row or as a key; on disk and in
columns they are one value. State that is in both places must not see it both ways. So every NaN
that goes there is the one that comes back, `NAN`; and since it is the same object, Python finds the
rows and keys that hold it.
"""

from __future__ import annotations

from datetime import date, datetime
from operator import is_
from typing import Any

from ebbflow.record import fields_of
from ebbflow.state.spine.hashing import NAN

_NEVER = {int, str, bool, bytes, date, datetime, type(None)}


def one_nan(value: Any) -> Any:
    """The value with `NAN` instead of any other, inside tuples too.

    >>> one_nan((1, float("nan"))) == one_nan((1, float("nan")))
    True
    """
    if isinstance(value, tuple):
        items = [one_nan(item) for item in value]
        same = all(map(is_, items, value))
        return value if same else tuple.__new__(type(value), items)
    return NAN if type(value) is float and value != value else value


def rows_with_one_nan(rows: list[Any], kind: Any = None) -> list[Any]:
    """The same of rows; `kind` is their type, where they have one.

    >>> rows_with_one_nan(["a", "b"]), rows_with_one_nan([float("nan")])[0] is NAN
    (['a', 'b'], True)
    """
    hints = fields_of(kind)
    kinds = set(map(type, rows)) if hints is None else set(hints.values())
    return rows if kinds <= _NEVER else list(map(one_nan, rows))


def with_one_nan(weights: dict[Any, int], kind: Any = None) -> dict[Any, int]:
    """The same of rows with weights; those of rows that become equal are added up.

    >>> with_one_nan({float("nan"): 1, float("nan"): 2, 3.0: 1})
    {nan: 3, 3.0: 1}
    """
    rows = list(weights)
    same = rows_with_one_nan(rows, kind)
    if same is rows or all(map(is_, same, rows)):
        return weights
    total: dict[Any, int] = {}
    for row, weight in zip(same, weights.values(), strict=True):
        total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}
