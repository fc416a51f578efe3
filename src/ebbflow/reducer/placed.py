"""Reducers that show rows: the first and the last, the best, lists, and the most frequent.

They keep the rows sorted, as `ebbflow.reducer.ordered` does. What is shown may be of any type, and
ties are decided by the total order of `ebbflow.ordering`, which has a place for everything.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from itertools import repeat as repeated
from typing import Any

from ebbflow.keywords import checked
from ebbflow.nan import one_nan
from ebbflow.reducer.hashed import Map, tally
from ebbflow.reducer.inline import PlacedPart, gathered
from ebbflow.reducer.library import AnyReducer, arguments, ready
from ebbflow.reducer.ordered import ORDERED, keep, tree_merge
from ebbflow.reducer.reducer import Reducer, counted
from ebbflow.reducer.row import Key, getter
from ebbflow.state.tree import Tree
from ebbflow.typevars import V


def _value_at_end(last: bool, tree: Tree[Any]) -> Any:
    return (tree.last if last else tree.first)[1] if tree.size else None


def _placed(made: Any, of: Key | None, order: Key, last: bool) -> AnyReducer:
    place_of, part = getter(order), getter(of)

    def repeat(tree: Tree[Any], row: Any, count: int) -> Tree[Any]:
        place = place_of(row)
        return tree if place is None else keep(tree, (place, part(row)), count)

    return counted(
        Tree(), repeat, partial(_value_at_end, last), merge=tree_merge, made=made,
        aggregate="distributive", size="O(n)", cost="O(log n)", partial=False,
        inline=gathered(
            PlacedPart(order, of), Tree(), Tree.update, partial(_value_at_end, last), Tree().update
        ),
    )  # fmt: skip


@checked
def first(of: Key[V] | None, order: Key[V]) -> Reducer[V]:
    """The value of the row that comes first in an order.

    Rows whose place is None are skipped; a value may be None. Of rows at the same place, the
    smallest value.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> first(lambda r: r[1], order=lambda r: r[0])([(2, "b"), (1, "a")])
    'a'
    """
    return _placed((first, (of, order), {}), of, order, last=False)


@checked
def last(of: Key[V] | None, order: Key[V]) -> Reducer[V]:
    """The value of the row that comes last in an order; of several, the greatest.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> last(lambda r: r[1], order=lambda r: r[0])([(2, "b"), (1, "a")])
    'b'
    """
    return _placed((last, (of, order), {}), of, order, last=True)


@checked
def arg_min(order: Key[V], of: Key[V] | None = None) -> Reducer[V]:
    """The row (or a part of it) for which `order` is smallest; of several, the smallest.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> arg_min(len)(["known", "be", "to"])
    'be'
    """
    return _placed((arg_min, arguments(order, of), {}), of, order, last=False)


@checked
def arg_max(order: Key[V], of: Key[V] | None = None) -> Reducer[V]:
    """The row (or a part of it) for which `order` is greatest; of several, the greatest.

    distributive · invertible, as all values are kept · state O(n) · O(log n) a row

    >>> arg_max(len)(["known", "be", "to"])
    'known'
    """
    return _placed((arg_max, arguments(order, of), {}), of, order, last=True)


# ---- lists ----


def _listed(tree: Tree[Any]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(repeated(x, n) for x, n in tree))


@checked
def collect(of: Key[V] | None = None) -> Reducer[V]:
    """All values, sorted, as a tuple. Values of any types: what Python cannot compare is ordered by
    type (see `ebbflow.ordering`).

    holistic · invertible · state O(n) · O(log n) a row, O(n) to show

    >>> collect()([3, 1, None, 3])
    (1, 3, 3)
    """
    return ready(
        (collect, arguments(of)), Tree(), keep, of, _listed, merge=tree_merge,
        aggregate="holistic", **ORDERED, inline=gathered(of, Tree(), Tree.update, _listed),
    )  # fmt: skip


def _joined(separator: str, tree: Tree[Any]) -> str | None:
    if not tree.size:
        return None
    texts = chain.from_iterable(repeated(text, n) for (_, _, text), n in tree)
    return separator.join(texts)


@checked
def string_agg(
    of: Key[V] | None = None, separator: str = ", ", *, order: Key[V] | None = None
) -> Reducer[V]:
    """The values as texts in one string: in an order, then in that of the values; equal values
    that print differently, such as 1 and 1.0, in the order of their texts.

    holistic · invertible · state O(n) · O(log n) a row, O(n) to show

    >>> string_agg()(["b", "a", None, "c"]), string_agg(order=len, separator="")(["ccc", "b", "aa"])
    ('a, b, c', 'baaccc')
    """
    named: dict[str, Any] = {} if separator == ", " else {"separator": separator}
    if order is not None:
        named["order"] = order
    part, place_of = getter(of), getter(of if order is None else order)

    def repeat(tree: Tree[Any], row: Any, count: int) -> Tree[Any]:
        x = part(row)
        if x is None:
            return tree
        return keep(tree, (place_of(row), x, str(x)), count)

    return counted(
        Tree(), repeat, partial(_joined, separator), merge=tree_merge,
        made=(string_agg, arguments(of), named), aggregate="holistic", size="O(n)",
        cost="O(log n)", partial=False,
        elements=None if of or order else ("", "a", "b", "ab", None),
    )  # fmt: skip


# ---- the most frequent ----

Modes = tuple[Map[Any, int], Tree[Any]]


def _frequent(acc: Modes, x: Any, count: int) -> Modes:
    counts, ranking = acc
    x = one_nan(x)
    old = counts.get(x, 0)
    changes = [((-old, x), -1)] * (old > 0) + [((-old - count, x), 1)] * (old + count > 0)
    return tally(counts, x, count), ranking.update(changes)


def _modes_merge(a: Modes, b: Modes) -> Modes:
    for (fewer, x), _ in b[1]:
        a = _frequent(a, x, -fewer)
    return a


def _mode(acc: Modes) -> Any:
    return acc[1].first[1] if acc[1].size else None


@checked
def mode(of: Key[V] | None = None) -> Reducer[V]:
    """The most frequent value; of several, the smallest.

    holistic · invertible · state O(different values) · O(log n) a row

    >>> mode()("banana"), mode()([3, 1])
    ('a', 1)
    """
    return ready(
        (mode, arguments(of)), (Map(), Tree()), _frequent, of, _mode, merge=_modes_merge,
        aggregate="holistic", **ORDERED,
    )  # fmt: skip
