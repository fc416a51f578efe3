"""What a reducer of the library does with a row, as far as it tells.

A reducer remembers the call that made it: `sum("price")`. So it can be known which fields it reads,
and that it never fails on rows of a type. Of a reducer written by hand nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.flow.results import keys_given
from ebbflow.flow.rewrite.total import NUMBER, SORTED, Classes
from ebbflow.flow.types import classes
from ebbflow.record import fields_of
from ebbflow.reducer.strategy import strategies_of

Names = frozenset[str] | None  # None: the row as a whole

NOTHING: frozenset[str] = frozenset()
_FOR: dict[str, tuple[Classes, ...]] = {
    "sum": (NUMBER,),
    "mean": (NUMBER,),
    "min": SORTED,
    "max": SORTED,
}


def union(*names: Names) -> Names:
    """All fields of these sets; the whole row when one of them is the whole row.

    >>> sorted(union(frozenset("ab"), frozenset("bc"))), union(frozenset("a"), None)
    (['a', 'b', 'c'], None)
    """
    found: set[str] = set()
    for each in names:
        if each is None:
            return None
        found |= each
    return frozenset(found)


def adds_up(reducer: Any, row_type: Any) -> bool:
    """Whether what rows add to a reducer can be computed apart from it (`ebbflow.reducer.fused`).

    >>> from ebbflow.reducer import count, max, sum
    >>> adds_up(count() & sum("price"), object), adds_up(max("price"), object)
    (True, False)
    """
    inlines = [part.reducer.inline for part in strategies_of(reducer, row_type)]
    return all(inline is not None and inline.can_merge for inline in inlines)


def reducer_reads(
    reducer: Any, row_type: Any, reads: Callable[[Any, Any], Names] | None = None
) -> Names:
    """The fields that a reducer reads of rows of this type; None when that is not known.

    Known is what a reducer of the library was given by name, or what `reads(part, row_type)` knows.
    `string_agg` may tell values apart that are equal, and so would see that rows became equal.

    >>> from ebbflow.reducer import Reducer, count, sum
    >>> from ebbflow.record import record
    >>> Order = record("Order", city=str, price=int)
    >>> sorted(reducer_reads(count() & sum("price").where("city"), Order))
    ['city', 'price']
    >>> reducer_reads(Reducer(0, max), Order) is None
    True
    """
    made = getattr(reducer, "made", None)
    if made is None or not made[0].__module__.startswith("ebbflow.reducer."):
        return None
    make, given, _ = made
    reads = reads or _named
    if make.__name__ == "together":
        return union(*(reducer_reads(each, row_type, reads) for each in given))
    if make.__name__ == "then":
        return reducer_reads(given[0], row_type, reads)
    if make.__name__ == "string_agg":
        return None
    keys = [key for key in keys_given(reducer) if key is not None or make.__name__ != "count"]
    within = make.__name__ in ("where", "by")
    inner = [reducer_reads(given[0], row_type, reads)] if within else []
    return union(*inner, *(reads(key, row_type) for key in keys))


def _named(part: Any, row_type: Any) -> Names:
    known = isinstance(part, str) and part in (fields_of(row_type) or ())
    return frozenset({part}) if known else None


def reduces(reducer: Any, row_type: Any) -> bool:
    """Whether a reducer never fails on rows of this type, as far as it is known.

    >>> from ebbflow.record import record
    >>> from ebbflow.reducer import Reducer, count, sum
    >>> Order = record("Order", city=str, price=int | None)
    >>> reduces(count() & sum("price"), Order), reduces(sum("city"), Order)
    (True, False)
    >>> reduces(Reducer(0, max), Order)
    False
    """
    made = getattr(reducer, "made", None)
    if made is None or not made[0].__module__.startswith("ebbflow.reducer."):
        return False
    make, given, named = made
    if make.__name__ == "together":
        return all(reduces(each, row_type) for each in given)
    if make.__name__ == "count":
        return given in ((), (None,)) or _named(given[0], row_type) is not None
    if make.__name__ not in _FOR or named or len(given) != 1 or _named(given[0], row_type) is None:
        return False
    known = classes((fields_of(row_type) or {})[given[0]])
    values = None if known is None else frozenset(known) - {type(None)}
    return values is not None and any(values <= each for each in _FOR[make.__name__])
