"""Rows for which a condition holds with the one row that another bag has: a scalar sub-query.

The other bag has one row, or one for each key; where it has none, no row passes, as nothing
compares with NULL in SQL. When the one row changes, every row could turn. But where the condition
compares a value of the row with a value of the one row, as `row.price > average.price`, the rows
are kept in the order of theirs (`ebbflow.state.ordered`): then only those are looked at that are
between the old value and the new one.

The order is asked only where `<` on the values is Python's own and total; rows with any other
value, None and NaN among them, are aside and looked at one by one. So the condition means what it
means in Python, errors included.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import ChangeError
from ebbflow.nan import one_nan
from ebbflow.operator.joins import BothIndexed
from ebbflow.operator.relation import Bag
from ebbflow.ordering import comparable
from ebbflow.state.backing import ABSENT
from ebbflow.state.index import Grouped, Index
from ebbflow.state.spots import GroupOrder, Spot, SpotIndex, cut
from ebbflow.state.tree import Tree
from ebbflow.state.walk import Cut, between_cuts
from ebbflow.zset import ZSet, without_zeros

State = tuple[Index[Any, Any], Index[Any, Any]]
SIGNS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Threshold:
    """A condition that compares a value of a row with a value of the one row: `left sign right`."""

    left: Callable[[Any], Any]
    sign: str
    right: Callable[[Any], Any]

    def spot(self, row: Any) -> tuple[Any, ...] | None:
        """The place of a row; None where Python's `<` might not answer."""
        value = one_nan(self.left(row))
        plain = value is not None and not isinstance(value, tuple) and comparable(value)
        return (value,) if plain else None

    def crossing(self, order: GroupOrder, was: Any, now: Any) -> Iterator[Any] | None:
        """The spots for which the condition may have turned as the one row changed from `was` to
        `now`, either of which may be ABSENT; None where the order does not tell."""
        tree = order.spots
        if not isinstance(tree, Tree):
            return None
        cuts = [_cuts(self, tree, row) for row in (was, now) if row is not ABSENT]
        if None in cuts:
            return None
        known: list[Any] = cuts
        if self.sign in ("==", "!="):
            if len(known) == 1 and self.sign == "!=":
                return between_cuts(*tree.root, None, None)
            spots = [spot for each in known for spot in between_cuts(*tree.root, *each)]
            return iter(dict.fromkeys(spots))
        edges = [after or before for after, before in known]
        if len(edges) == 1:
            return between_cuts(*tree.root, *known[0])
        up = one_nan(self.right(was)) < one_nan(self.right(now))
        return between_cuts(*tree.root, *(edges if up else edges[::-1]))


def _cuts(of: Threshold, tree: Tree[Spot], row: Any) -> tuple[Cut | None, Cut | None] | None:
    """Between which cuts the condition holds with this one row; None where `<` does not answer."""
    value, sign = one_nan(of.right(row)), of.sign
    begin = cut(tree, value, behind=False, exact=True)
    end = cut(tree, value, behind=True, exact=True)
    if begin is None or end is None:
        return None
    if sign in ("<", "<="):
        return None, begin if sign == "<" else end
    if sign in (">", ">="):
        return (end if sign == ">" else begin), None
    return begin, end


class OneRowFilter(BothIndexed):
    """The rows for which a condition holds with the one row of their key; see `scalar_filter`."""

    def __init__(
        self, left_key: Any, right_key: Any, holds: Any, threshold: Threshold | None = None
    ) -> None:
        super().__init__(left_key, right_key)
        self.holds, self.threshold = holds, threshold

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        left, right = x
        ones = {key: only(dict(pairs)) for key, pairs in self.by_right(right.items()).items()}
        out: dict[Any, int] = {}
        for key, pairs in self.by_left(left.items()).items():
            for row, weight in pairs:
                if key in ones and self.holds(row, ones[key]):
                    out[row] = weight
        return ZSet(out)

    def evaluate(self, left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
        """What the rows of one key give, from scratch."""
        one = only(right)
        if one is ABSENT:
            return {}
        return {row: weight for row, weight in left.items() if self.holds(row, one)}

    def init(self, x: tuple[Bag, Bag]) -> State:
        left, right = x
        lefts: Index[Any, Any]
        if self.threshold is None:
            lefts = Index(self.left_key, left, self.by_left)
        else:
            lefts = SpotIndex(self.left_key, self.threshold.spot, left, self.by_left)
        return lefts, Index(self.right_key, right, self.by_right, bag=True)

    def update_groups(self, state: State, left: Grouped, right: Grouped) -> dict[Any, int]:
        lefts, rights = state
        out: dict[Any, int] = {}
        get = out.get
        old = {key: only(rights.groups.get(key, {})) for key in right}
        rights.apply_groups(right)
        for key in right:
            was, now = old[key], only(rights.groups.get(key, {}))
            if was is not now and was != now:
                for row, weight in self._turned(lefts, key, was, now):
                    out[row] = get(row, 0) + weight
        holds = self.holds
        for key, pairs in left.items():
            one = only(rights.groups.get(key, {}))
            for row, weight in pairs if one is not ABSENT else ():
                if holds(row, one):
                    out[row] = get(row, 0) + weight
        lefts.apply_groups(left)
        return without_zeros(out)

    def _turned(
        self, lefts: Index[Any, Any], key: Any, was: Any, now: Any
    ) -> Iterator[tuple[Any, int]]:
        """The rows of a key that pass now and did not, and with a minus those that did."""
        for row, weight in self._candidates(lefts, key, was, now):
            before, after = (one is not ABSENT and bool(self.holds(row, one)) for one in (was, now))
            if before is not after:
                yield row, weight if after else -weight

    def _candidates(
        self, lefts: Index[Any, Any], key: Any, was: Any, now: Any
    ) -> Iterable[tuple[Any, int]]:
        if isinstance(lefts, SpotIndex) and self.threshold is not None:
            order = lefts.order(key)
            spots = self.threshold.crossing(order, was, now)
            if spots is not None:
                found = [pair for spot in spots for pair in order.rows[spot].items()]
                return [*found, *order.aside.items()]
        return lefts.groups.get(key, {}).items()

    def read(self, state: State) -> dict[Any, int]:
        """The whole output, from the state."""
        left, right = state[0].everything(), state[1].everything()
        out: dict[Any, int] = {}
        for key, rows in left.items():
            out.update(self.evaluate(rows, right.get(key, {})))
        return out

    def invariant(self, x: tuple[Bag, Bag], state: Any) -> bool:
        ordered = not isinstance(state[0], SpotIndex) or state[0].in_order()
        return ordered and bool(state == self.init(x))

    def __repr__(self) -> str:
        keys = ", ".join(
            "None" if each is None else function_name(each)
            for each in (self.left_key, self.right_key)
        )
        return f"scalar_filter({function_name(self.holds)}, {keys})"


def only(rows: dict[Any, int]) -> Any:
    """The one row that there is, or ABSENT.

    >>> only({"a": 1}), only({})
    ('a', ABSENT)
    """
    if not rows:
        return ABSENT
    if len(rows) > 1 or next(iter(rows.values())) != 1:
        raise ChangeError(
            "a row is compared with the one row of another collection, and there are more",
            rows=ZSet(dict(list(rows.items())[:4])),
            remedy="one row: agg(...), limit(1, order=...), or a key for each with on=",
        )
    return next(iter(rows))


def scalar_filter(
    holds: Callable[[Any, Any], object],
    left_key: Callable[[Any], Hashable] | None = None,
    right_key: Callable[[Any], Hashable] | None = None,
    *,
    threshold: Threshold | None = None,
) -> OneRowFilter:
    """The rows of the first for which `holds(row, one)`, where `one` is the one row of the second
    that has the same key; without keys, its only row. None pass where there is no such row. With a
    `threshold`, which must say the same as `holds`, a changed row costs what it turns.

    >>> from ebbflow.change import Second
    >>> above = scalar_filter(lambda n, least: n > least)
    >>> live = above.open((ZSet.of([3, 5, 7]), ZSet.of([4])))
    >>> live.send(Second(ZSet({4: -1, 6: 1}))), live.send(Second(ZSet({6: -1})))
    (ZSet({5: -1}), ZSet({7: -1}))
    """
    return OneRowFilter(left_key, right_key, holds, threshold)
