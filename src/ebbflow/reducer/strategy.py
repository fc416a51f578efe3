"""How one reducer follows the rows of one group, in each of the ways there are.

`sum("price") & max("price")` has two parts. Each has a strategy and an accumulator of its own, so
when one has to look at the rows again the other need not.

    FoldStrategy       `add` and `remove` for each row; when `remove` declines, the rows again
    TreeStrategy       no `remove`, but a `merge`: an aggregate tree of the rows
    ExtremeStrategy    max and min: the values nearest to that end; when they are gone, the rows

An accumulator is never altered, so the old one is all it takes to go back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.codegen import GeneratedLoop
from ebbflow.errors import ChangeError, NotDeterministic
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.ordering import PLAIN
from ebbflow.reducer import ordered
from ebbflow.reducer.combine import together
from ebbflow.reducer.inline import Inline
from ebbflow.reducer.reducer import Recompute, Reducer
from ebbflow.reducer.row import getter
from ebbflow.state.top_buffer import ROOM, Ranking, TopBuffer
from ebbflow.state.tree import Tree
from ebbflow.zset import without_zeros

Rows = dict[Any, int]
Pairs = Any


class GroupStrategy:
    """A reducer, and how it follows one group.

    `update(acc, pairs, rows)` is the accumulator after a change of the group by `pairs`, rows with
    their weights, each row once; `rows` is the whole group after it, where rows are kept.
    """

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer
        self.keeps_rows = reducer.remove is None or reducer.partial is not False
        self.inline: Inline | None = reducer.inline

    @property
    def slots(self) -> tuple[Any, ...]:
        """What a cell of no rows holds of this part: the slots of the generated loop, or one
        accumulator."""
        return (self.start(),) if self.inline is None else self.inline.slots

    def start(self) -> Any:
        """The accumulator of no rows."""
        return self.reducer.start()

    def update(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        raise NotImplementedError

    def result(self, acc: Any) -> Any:
        """What is shown of an accumulator, with one NaN."""
        return one_nan(self.reducer.finish(acc))

    def from_scratch(self, rows: Rows) -> Any:
        """What is shown of a group with these rows."""
        return self.result(self.update(self.start(), rows.items(), rows))

    def is_empty(self, acc: Any) -> bool:
        """Whether an accumulator is that of no rows; floats may have drifted on the way."""
        return self.agrees(acc, {}) or _floats(acc)

    def dump(self, acc: Any) -> Any:
        """An accumulator to be written down: values, no functions."""
        return acc

    def load(self, stored: Any) -> Any:
        """The accumulator that was written down."""
        return stored

    def store(self, slots: tuple[Any, ...]) -> tuple[Any, ...]:
        """The slots of a cell to be written down."""
        if self.inline is None:
            return (self.dump(slots[0]),)
        return slots if self.inline.stored is None else self.inline.stored(slots)

    def restore(self, stored: tuple[Any, ...]) -> tuple[Any, ...]:
        """The slots that were written down."""
        if self.inline is None:
            return (self.load(stored[0]),)
        return stored if self.inline.restored is None else self.inline.restored(stored)

    def agrees(self, acc: Any, rows: Rows) -> bool:
        """Whether an accumulator is right for the rows of its group."""
        return bool(self.reducer.equal(acc, self.update(self.start(), rows.items(), rows)))


def _floats(acc: Any) -> bool:
    return isinstance(acc, float) or (isinstance(acc, tuple) and any(map(_floats, acc)))


class FoldStrategy(GroupStrategy):
    """One call for each row: removals first, then additions."""

    def update(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        removed, added = self.reducer.removed, self.reducer.added
        for row, weight in pairs:
            if weight < 0:
                acc = removed(acc, row, -weight)
                if isinstance(acc, Recompute):
                    return self.again(rows)
        for row, weight in pairs:
            if weight > 0:
                acc = added(acc, row, weight)
        return acc

    def again(self, rows: Rows | None) -> Any:
        """The accumulator from all rows of the group."""
        if not self.keeps_rows:
            raise ChangeError(
                f"{self.reducer!r} asks to recompute, but is declared partial=False",
                remedy="leave partial= out: then the rows are kept for it",
            )
        return self.reducer.add_all(self.reducer.start(), rows or {})


class TreeStrategy(GroupStrategy):
    """The rows in an aggregate tree, whose total is the reducer's accumulator."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        super().__init__(reducer)
        self.keeps_rows = False
        self.empty: Tree[Any] = Tree(value=SingleRow(reducer), merge=reducer.merge)

    def start(self) -> Tree[Any]:
        return self.empty

    def update(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        return acc.update(pairs)

    def result(self, acc: Any) -> Any:
        return super().result(acc.total if acc.distinct else self.reducer.start())

    def dump(self, acc: Any) -> Any:
        return tuple(acc)

    def load(self, stored: Any) -> Any:
        return self.update(self.empty, stored, None)

    def agrees(self, acc: Any, rows: Rows) -> bool:
        return bool(acc.invariant()) and dict(self.dump(acc)) == rows


class SingleRow:
    """The accumulator of one row, as a value that can be pickled."""

    def __init__(self, reducer: Reducer[Any, Any, Any]) -> None:
        self.reducer = reducer

    def __call__(self, row: Any) -> Any:
        return self.reducer.add(self.reducer.start(), row)


NO_END = (None, 0, None)
"""No value: the best, how often it is there, and the top buffer, where there is one."""


class ExtremeStrategy(GroupStrategy):
    """For max and min: the best value and how often it is there. From when the last one of these
    goes, a top buffer of the values (see `ebbflow.state.top_buffer`), and the best."""

    def __init__(self, reducer: Reducer[Any, Any, Any], up: bool, of: Any, row_type: Any) -> None:
        super().__init__(reducer)
        self.keeps_rows = True
        self.values = _values(of, row_type)
        self.ranking = Ranking(up)
        behind = "{x} < {0}" if up else "{x} > {0}"
        self.inline = Inline(
            of, NO_END, (
                "if {x} is None or ({2} is None and type({x}) is type({0}) "
                f"and type({{x}}) in {{PLAIN}} and {behind}): pass",
                "else: {seen}.append(({x}, {n}))",
            ), "{0}", (("PLAIN", PLAIN), ("follow", self.follow)),
            lambda size, slots: slots, tuple,
            close=("if {seen}: {0}, {1}, {2} = {follow}({0}, {1}, {2}, {seen}, {rows})",),
        )  # fmt: skip

    def start(self) -> Any:
        return NO_END

    def follow(self, best: Any, times: int, buffer: Any, pairs: Pairs, rows: Rows | None) -> Any:
        """The accumulator after values came or went. Those behind the best need not be told as
        long as there is no buffer."""
        delta: Rows = {}
        for x, n in pairs:
            delta[x] = delta.get(x, 0) + n
        there = rows or {}
        if buffer is not None:
            buffer = self.ranking.update(
                buffer, without_zeros(delta).items(), lambda: self.values(there.items())
            )
            return self._shown(buffer)
        lost = False
        if times:
            times += delta.pop(best, 0)
            lost = times <= 0
        new = [x for x, n in delta.items() if n > 0]
        if new and (not times or lost or len(new) > 1 or new[0] != best):
            first = self.ranking.first(1, [*new, best] if times or lost else new)[0]
            if first in delta:
                return first, delta[first], None
        if not lost:
            return (best, times, None) if times else NO_END
        return self._shown(self.ranking.picked(self.values(there.items()), ROOM))

    def _shown(self, buffer: TopBuffer) -> Any:
        tree = buffer.tree
        if not tree.distinct:
            return NO_END
        best = tree.last if self.ranking.up else tree.first
        return best, 0, buffer

    def update(self, acc: Any, pairs: Pairs, rows: Rows | None) -> Any:
        best, times, buffer = acc
        delta = self.values(pairs)
        return self.follow(best, times, buffer, delta.items(), rows) if delta else acc

    def result(self, acc: Any) -> Any:
        return acc[0]

    def load(self, stored: Any) -> Any:
        return self._shown(stored) if isinstance(stored, TopBuffer) else stored

    def from_scratch(self, rows: Rows) -> Any:
        values = self.values(rows.items())
        return self.ranking.first(1, values)[0] if values else None

    def agrees(self, acc: Any, rows: Rows) -> bool:
        best, times, buffer = acc
        values = self.values(rows.items())
        if buffer is not None:
            return self.ranking.agrees(buffer, values) and acc == self._shown(buffer)
        if not values:
            return bool(acc == NO_END)
        return self.ranking.first(1, values) == [best] and bool(values[best] == times)


_VALUES = """
    total = {}
    get = total.get
    for row, weight in pairs:
        x = $value
        if x is not None:
            if type(x) is not int: x = $one_nan(x)
            total[x] = get(x, 0) + weight
    return $without_zeros(total)
"""


def _values(of: Any, row_type: Any) -> Callable[[Pairs], Rows]:
    """A loop that counts how often each value comes or goes; None is no value."""
    loop = GeneratedLoop("values", "pairs")
    value = "row" if of is None else part_of_row(of, row_type).source(loop.bind, "row")
    loop.template(_VALUES, of, "row", value=value, one_nan=one_nan, without_zeros=without_zeros)
    return loop.function()


def part_of_row(of: Any, row_type: Any) -> Fn:
    """The part of a row of type `row_type` that a reducer looks at."""
    return Fn.of(of, row_type) if hasattr(row_type, "_fields") else Fn(getter(of))


def strategies_of(
    reducer: Reducer[Any, Any, Any], row_type: Any = Any
) -> tuple[GroupStrategy, ...]:
    """A strategy for each part of a reducer of rows of type `row_type`: for those side by side in
    it, or for the reducer itself.

    >>> from ebbflow.reducer import count, max, median
    >>> [type(part).__name__ for part in strategies_of(count() & max() & median())]
    ['FoldStrategy', 'ExtremeStrategy', 'FoldStrategy']
    """
    made = reducer.made
    if made is not None and made[0] is together and len(made[1]) > 1:
        return tuple(_strategy_of(each, row_type) for each in made[1])
    return (_strategy_of(reducer, row_type),)


def _strategy_of(reducer: Reducer[Any, Any, Any], row_type: Any) -> GroupStrategy:
    made = reducer.made
    if made is not None and made[0] in ENDS:
        return ExtremeStrategy(reducer, ENDS[made[0]], made[1][0] if made[1] else None, row_type)
    if reducer.remove is None and reducer.merge is not None:
        return TreeStrategy(reducer)
    return FoldStrategy(reducer)


ENDS: dict[Callable[..., Any], bool] = {ordered.max: True, ordered.min: False}


def refuse_negative_size(key: Any, size: int) -> None:
    """Raise: more rows of a group were taken away than there were."""
    raise ChangeError(
        "more rows are taken away than there are",
        key=key,
        missing=-size,
        remedy="a change that takes away rows that are there",
    )


def refuse_leftover(key: Any, left: Any) -> None:
    """Raise: the last row of a group has left something in the accumulators."""
    raise NotDeterministic(
        "the last row of a group was taken back, and its accumulator is not that of no rows",
        key=key,
        accumulator=left,
        remedy="functions that give the same answer for the same row every time; "
        "ebbflow.laws.check(reducer) tells whether its remove undoes its add",
    )
