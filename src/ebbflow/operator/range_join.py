"""Rows of two bags that meet where their keys are equal and some comparisons hold.

The rows of each key are kept in order on both sides (`ebbflow.state.ordered`), so that the rows
that a changed row meets are found without a look at the others. With `L` and `R` the rows before a
change, and `l` and `r` the changes,

    change of L ⋈ R            ==  L ⋈ r + l ⋈ (R + r)
    change of L where R meets  ==  L where that turned, with its sign, + l where R + r meets

so the left is changed last. What turned is told by the smallest and the greatest value of the
right, where there is one comparison: a row of the right that is neither changes nothing. With
several, the rows of the left are looked at that meet a row of the right which came or went.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.nan import one_nan
from ebbflow.operator.comparison import MIRRORED, Finder, Place, holds
from ebbflow.operator.joins import BothIndexed
from ebbflow.operator.relation import Bag
from ebbflow.state.index import Grouped
from ebbflow.state.spots import GroupOrder, Spot, SpotIndex, Spots
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, without_zeros

Comparison = tuple[Callable[[Any], Any], str, Callable[[Any], Any]]
State = tuple[SpotIndex, SpotIndex]
MANY = 8
"""When so many times the values of the right that changed are more than those of the left, all of
the left are looked at."""


class RangeJoin(BothIndexed):
    """Rows of both sides with equal keys for which comparisons hold; see `range_join`.

    `how` is "inner", "semi" or "anti"; `merge` makes the row of an inner one.
    """

    def __init__(
        self,
        left_key: Any,
        right_key: Any,
        where: Iterable[Comparison],
        how: str = "inner",
        merge: Any = None,
        *,
        bag: bool = True,
    ) -> None:
        super().__init__(left_key, right_key)
        where = sorted(where, key=lambda each: each[1] == "!=")
        self.how, self.merge, self.bag = how, merge, bag
        self.left_place = Place(tuple([left for left, _, _ in where]))
        self.right_place = Place(tuple([right for _, _, right in where]))
        self.in_left = Finder(tuple([sign for _, sign, _ in where]))
        self.in_right = Finder(tuple([MIRRORED[sign] for _, sign, _ in where]))

    # ---- from scratch ----

    def f(self, x: tuple[Bag, Bag]) -> Bag:
        left, right = x
        out: dict[Any, int] = {}
        for row, weight in left.items():
            meeting = {each: count for each, count in right.items() if self._meet(row, each)}
            if self.how != "inner":
                out[row] = weight * (bool(meeting) is (self.how == "semi"))
            for each, count in meeting.items() if self.how == "inner" else ():
                new = (row, each) if self.merge is None else self.merge(row, each)
                out[new] = out.get(new, 0) + weight * count
        return ZSet(out)

    def _meet(self, left: Any, right: Any) -> bool:
        keys = [
            () if key is None else key(row)
            for key, row in ((self.left_key, left), (self.right_key, right))
        ]
        values = zip(self.left_place.values, self.right_place.values, strict=True)
        return keys[0] == keys[1] and all(
            holds(sign, one_nan(a(left)), one_nan(b(right)))
            for sign, (a, b) in zip(self.in_left.signs, values, strict=True)
        )

    def evaluate(self, left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
        """What the rows of one key give, from scratch."""
        out: dict[Any, int] = {}
        order = self._order(right)
        self._given(out, left.items(), order)
        return without_zeros(out)

    def _order(self, right: dict[Any, int]) -> GroupOrder:
        return GroupOrder(right, self.right_place, self.in_right.totals)

    # ---- by and by ----

    def init(self, x: tuple[Bag, Bag]) -> State:
        left, right = x
        return (
            SpotIndex(
                self.left_key, self.left_place, left, self.by_left, totals=self.in_left.totals
            ),
            SpotIndex(
                self.right_key, self.right_place, right, self.by_right,
                totals=self.in_right.totals, bag=self.bag and self.how != "inner",
            ),
        )  # fmt: skip

    def update_groups(self, state: State, left: Grouped, right: Grouped) -> dict[Any, int]:
        lefts, rights = state
        out: dict[Any, int] = {}
        now: dict[Any, GroupOrder] = {}
        if self.how == "inner":
            for key, pairs in right.items():
                self._paired(out, pairs, lefts.order(key))
            rights.apply_groups(right)
        else:
            old = {key: rights.order(key).spots for key in right if key in lefts.groups}
            rights.apply_groups(right)
            for key, was in old.items():
                now[key] = rights.order(key)
                self._turned(out, right[key], was, now[key].spots, lefts.order(key))
        for key, pairs in left.items():
            self._given(out, pairs, now[key] if key in now else rights.order(key))
        lefts.apply_groups(left)
        return without_zeros(out)

    def _paired(self, out: dict[Any, int], pairs: Any, lefts: GroupOrder) -> None:
        """Count in what changed rows of the right make with the rows of the left."""
        get, merge, place = out.get, self.merge, self.right_place
        for row, weight in pairs:
            at = place(row)
            if at is not None:
                for spot in self.in_left.find(lefts.spots, at):
                    for left, count in lefts.rows[spot].items():
                        new = (left, row) if merge is None else merge(left, row)
                        out[new] = get(new, 0) + weight * count

    def _given(self, out: dict[Any, int], pairs: Any, rights: GroupOrder) -> None:
        """Count in what changed rows of the left make with the rows of the right."""
        get, merge, place, finder = out.get, self.merge, self.left_place, self.in_right
        inner, anti = self.how == "inner", self.how == "anti"
        for row, weight in pairs:
            at = place(row)
            if not inner:
                if finder.meets(rights.spots, at) is not anti:
                    out[row] = get(row, 0) + weight
            elif at is not None:
                for spot in finder.find(rights.spots, at):
                    for right, count in rights.rows[spot].items():
                        new = (row, right) if merge is None else merge(row, right)
                        out[new] = get(new, 0) + weight * count

    def _turned(
        self, out: dict[Any, int], pairs: Any, old: Spots, now: Spots, lefts: GroupOrder
    ) -> None:
        """Count in the rows of the left, and out, that meet something now and did not, or did."""
        if not lefts.rows:
            return
        spots = self.in_left.turned(lefts.spots, old, now)
        if spots is None:
            spots = self._candidates(pairs, old, now, lefts.spots)
        get, anti = out.get, self.how == "anti"
        for spot in spots:
            was, meets = (self.in_right.meets(each, spot) for each in (old, now))
            if was is not meets:
                sign = 1 if meets is not anti else -1
                for row, count in lefts.rows[spot].items():
                    out[row] = get(row, 0) + sign * count

    def _candidates(self, pairs: Any, old: Spots, now: Spots, lefts: Spots) -> Iterator[Spot]:
        """The values of the left that meet a value of the right which came or went."""
        places = dict.fromkeys([self.right_place(row) for row, _ in pairs])
        changed = [at for at in places if at is not None and (at in old) is not (at in now)]
        if not isinstance(lefts, Tree):
            return iter(lefts if changed else ())
        if MANY * len(changed) > len(lefts):
            return (spot for spot, _ in lefts)
        found = [spot for at in changed for spot in self.in_left.find(lefts, at)]
        return iter(dict.fromkeys(found))

    def read(self, state: State) -> dict[Any, int]:
        """The whole output, from the state."""
        left, right = state[0].everything(), state[1].everything()
        out: dict[Any, int] = {}
        for key, rows in left.items():
            self._given(out, rows.items(), self._order(right.get(key, {})))
        return without_zeros(out)

    def invariant(self, x: tuple[Bag, Bag], state: Any) -> bool:
        return bool(state == self.init(x)) and all(each.in_order() for each in state)

    def __repr__(self) -> str:
        values = zip(
            self.left_place.values, self.in_left.signs, self.right_place.values, strict=True
        )
        where = ", ".join(f"({function_name(a)}, {sign!r}, {function_name(b)})"
                          for a, sign, b in values)  # fmt: skip
        keys = ", ".join("None" if each is None else function_name(each)
                         for each in (self.left_key, self.right_key))  # fmt: skip
        return f"range_join({keys}, where=[{where}], how={self.how!r})"


def range_join(
    left_key: Callable[[Any], Hashable] | None,
    right_key: Callable[[Any], Hashable] | None,
    *,
    where: Iterable[Comparison],
    how: str = "inner",
    merge: Callable[[Any, Any], Hashable] | None = None,
) -> RangeJoin:
    """Every row of the first with every row of the second that has the same key, and for which the
    comparisons hold: each is a function of the left row, a sign (`<`, `<=`, `>`, `>=`, `!=`), and a
    function of the right row. With `how="semi"`, the rows of the first for which there is one; with
    "anti", those for which there is none. A value that is None compares with nothing.

    >>> from ebbflow.change import Second
    >>> shop = lambda sale: sale[0]
    >>> price = lambda sale: sale[1]
    >>> cheaper = range_join(shop, shop, where=[(price, ">", price)], how="semi")
    >>> live = cheaper.open((ZSet.of([("a", 5), ("a", 7)]), ZSet.of([("a", 6)])))
    >>> live.send(Second(ZSet({("a", 3): 1}))), live.send(Second(ZSet({("a", 4): 1})))
    (ZSet({('a', 5): 1}), ZSet({}))
    """
    return RangeJoin(left_key, right_key, where, how, merge)
