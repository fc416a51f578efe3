"""The stages that there are.

Those that read one slot, or several that are added up:

    linear          steps on one row at a time
    group by key    the rows of a change by key
    arrange         the same, and all rows are kept in an index
    guard           refuses rows of negative weight
    reduce          a reducer of groups: in one loop, or group by group
    keyed           any other operator with state

And those that read two: a join, a semijoin, and operators on rows in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ebbflow.chain import Chain, copies_first
from ebbflow.engine.runtime.stage import (
    BY_KEY,
    GUARD,
    INDEX,
    NOTHING,
    WHOLE,
    Stage,
    by_nothing,
    by_row,
    fetched,
)
from ebbflow.flow.plan import Join, Node, Semi
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.fn import Fn
from ebbflow.operator import joins
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Index, not_there
from ebbflow.state.keyed_index import KeyedIndex
from ebbflow.state.ordered import OrderedIndex


class LinearStage(Stage):
    """Steps on one row at a time on each slot it reads, added up, in one loop; nothing where a slot
    holds no change."""

    __slots__ = ("certain", "chains", "loop", "steps")

    linear = True
    query = "linear"
    code = "loop"

    def __init__(
        self, node: Node, reads: Iterable[int], loop: Callable[..., Any], chains: Sequence[Chain],
        certain: bool,
    ) -> None:  # fmt: skip
        super().__init__(node, reads)
        self.loop, self.chains, self.certain = loop, chains, certain
        self.steps = [step for chain in chains for step in chain.steps]

    @property
    def passes(self) -> bool:  # type: ignore[override]
        return not copies_first(self.chains)

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        return self.passes and (len(self.chains) > 1 or not self.chains[0].one_to_one)

    def run(self, *changes: Any) -> Any:
        return self.loop(*[change or {} for change in changes])


class GroupByKeyStage(Stage):
    """Rows by key, not kept; `before` are the filters that they go through first."""

    __slots__ = ("before", "by_key", "key")

    code = "by_key"
    certain = False
    arranges = grouped = passes = True

    def __init__(
        self, node: Node, slot: int, key: Fn | None, by_key: Callable[..., Any],
        before: Chain = WHOLE,
    ) -> None:  # fmt: skip
        super().__init__(node, [slot], label=BY_KEY)
        self.key, self.by_key, self.before = key, by_key, before

    def run(self, change: Any) -> Any:
        return self.by_key(change.items())

    def compute_keys(self, change: Any) -> None:
        self.run(change)


class ArrangeStage(Stage):
    """Rows by key, kept in an index, which fetches for itself; `before` are the filters that they
    go through first."""

    __slots__ = ("before", "index", "key")

    code = "index.grouping"
    kept = True
    arranges = grouped = passes = True

    def __init__(
        self, node: Node, slot: int, key: Fn | None, index: Index[Any, Any], owner: Node,
        before: Chain = WHOLE,
    ) -> None:  # fmt: skip
        super().__init__(node, [slot], index, label=INDEX)
        self.key, self.index, self.owner, self.before = key, index, owner, before

    def run(self, change: Any) -> Any:
        return self.index.apply(change)

    def whole(self, *_: Any) -> Any:
        return {key: list(rows.items()) for key, rows in self.index.everything().items()}

    def compute_keys(self, change: Any) -> None:
        self.index.grouped(change)


class GuardStage(Stage):
    """Lets a change pass unless it leaves a row with a negative weight."""

    __slots__ = ("by", "cell_keys", "weights")

    kept = True
    arranges = True

    def __init__(self, node: Node, slot: int, by: Fn | None, row_type: Any) -> None:
        self.weights: Cells[Any, int] = Cells()
        super().__init__(node, [slot], self.weights, label=GUARD)
        self.by, self.cell_keys, self.type = by, row_type, row_type

    @property
    def partition_key(self) -> Callable[[Any], Any]:
        return self.by or by_nothing

    def run(self, change: Any) -> Any:
        get = self.weights.values.get
        new: dict[Any, Any] = {}
        for row, weight in change.items():
            weight += get(row, 0)
            if weight < 0:
                raise not_there(row)
            new[row] = weight or ABSENT
        self.weights.swap(new)
        return change

    def fetch(self, change: Any) -> None:
        fetched(self.weights, change)

    def whole(self, *_: Any) -> Any:
        return self.weights.everything()


class Partial(list[tuple[Any, Any]]):
    """Pairs of a key and what a change adds to its cell, instead of the change."""


class FusedReduceStage(Stage):
    """A reduce in one loop; where cells have to be fetched, in two (see `ebbflow.reducer.fused`):
    what `fetch` has found out about a change, `given`, is for the `run` that comes next."""

    __slots__ = ("cells", "given", "operator", "partial", "step")

    kept = passes = adds_up = True
    query = "group"

    def __init__(self, node: Node, slot: int, operator: Any) -> None:
        self.cells: Cells[Any, Any] = Cells()
        super().__init__(node, [slot], self.cells)
        self.operator, self.step, self.partial = operator, operator.update_fused, operator.partial
        self.given: tuple[Any, Any] = None, None

    def run(self, change: Any) -> Any:
        (fetched_for, added), self.given = self.given, (None, None)
        if fetched_for is change:
            return self.operator.merge_partial(self.cells, added)
        return self.step(self.cells, change)

    def fetch(self, change: Any) -> None:
        if isinstance(change, Partial) or self.partial is not None:
            added = change if isinstance(change, Partial) else self.partial(change).items()
            fetched(self.cells, {key for key, _ in added})
            self.given = change, added
        else:
            fetched(self.cells, self.operator.keys(dict.fromkeys(change, 1)))  # so none cancel

    def whole(self, *_: Any) -> Any:
        return self.operator.read(self.cells)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        if stored and self.partial is not None:
            return self.partial, self.operator.merge_loop
        return (self.operator.loop,)


class WeightedPairs:
    """Lists of pairs of a row and a weight, one behind the other, as a change is gone through."""

    __slots__ = ("lists",)

    def __init__(self, lists: Iterable[list[tuple[Any, int]]]) -> None:
        self.lists = lists

    def items(self) -> Iterator[tuple[Any, int]]:
        """The rows, each with its weight."""
        return chain.from_iterable(self.lists)


class AddedUpStage(FusedReduceStage):
    """A reduce in one loop that reads pairs of rows and weights from several slots; see
    `ebbflow.engine.runtime.into_reduce`."""

    __slots__ = ()

    def __init__(self, of: FusedReduceStage, reads: Iterable[int], operator: Any) -> None:
        super().__init__(of.node, -1, operator)
        self.reads, self.slot, self.type = tuple(reads), of.slot, of.type

    def run(self, *changes: Any) -> Any:
        return self.step(self.cells, WeightedPairs([each for each in changes if each]))

    def fetch(self, *changes: Any) -> None:
        super().fetch(WeightedPairs([each for each in changes if each]))
        self.given = None, None


class GroupReduceStage(Stage):
    """A reduce group by group; the rows are in an index, where they are kept."""

    __slots__ = ("cells", "operator", "paired", "rows")

    kept = True
    code = "operator.group_loop"

    def __init__(self, node: Node, slot: int, operator: Any, rows: Any) -> None:
        self.operator, self.rows, self.paired = operator, rows, operator.keeps_rows
        self.cells: Cells[Any, Any] = Cells()
        super().__init__(node, [slot], self.cells)
        assert operator.group_loop, "it is made before the first step"

    def run(self, found: Any) -> Any:
        rows = self.rows
        groups = None if rows is None else rows.reach()
        return self.operator.update_groups(found, groups, self.cells)

    def fetch(self, found: Any) -> None:
        fetched(self.cells, found)

    def whole(self, *_: Any) -> Any:
        return self.operator.read((None, self.cells) if self.paired else self.cells)


class KeyedStage(Stage):
    """Any other operator with state: it looks at the rows of one key together, and says with `keys`
    which entries of its state a change touches. The key is that of the node; `by_row` where rows
    are found by themselves. Its output is in its state where it is `readable`, or can be computed
    from it where it is `certain`."""

    __slots__ = ("by_row", "cells", "certain", "operator", "paired", "query", "state")

    code = "operator.update"

    def __init__(
        self, node: Node, slot: int, operator: Any, *, by_row: bool = False, query: str = ""
    ) -> None:
        self.operator, self.state = operator, operator.init(NOTHING)
        self.paired = isinstance(self.state, tuple)
        super().__init__(node, [slot], *(self.state if self.paired else (self.state,)))
        self.by_row, self.query = by_row, query
        self.certain = self.readable or getattr(operator, "certain", False)
        self.cells = next((each for each in self.containers if isinstance(each, Cells)), None)

    @property
    def readable(self) -> bool:
        """Whether its output is in its state."""
        return hasattr(self.operator, "read")

    @property
    def kept(self) -> bool:  # type: ignore[override]
        return self.certain

    @property
    def row_by_row(self) -> bool:  # type: ignore[override]
        return self.certain and not self.readable

    @property
    def partition_key(self) -> Callable[[Any], Any]:
        return by_row if self.by_row else super().partition_key

    @property
    def cell_keys(self) -> Any:
        return self.node.type if self.by_row else Any

    def run(self, change: Any) -> Any:
        return self.operator.update(self.state, change)

    def fetch(self, change: Any) -> None:
        keys = self.operator.keys(change)
        for container in self.containers:
            fetched(container, keys)

    def whole(self, *wholes: Any) -> Any:
        if self.readable:
            return self.operator.read(self.state)
        if self.kept:
            return self.operator.whole(self.state)
        return self.operator.update(self.operator.init(NOTHING), *wholes)


class JoinStage(Stage):
    """A join of two indices, with the steps behind it."""

    __slots__ = ("after", "certain", "join", "joining", "left", "one_to_one", "right", "steps")

    multiplies = True
    query = "join"
    code = "join"

    def __init__(
        self, node: Join, reads: Iterable[int], operator: Any, left: Index[Any, Any],
        right: Index[Any, Any], certain: bool,
    ) -> None:  # fmt: skip
        super().__init__(node, reads)
        self.joining: joins.Join = operator
        self.join, self.left, self.right, self.certain = operator.join_delta, left, right, certain
        self.after, self.one_to_one = operator.after, operator.one_to_one
        self.steps = operator.after.steps

    @property
    def functions(self) -> list[Fn]:
        node: Any = self.node
        return [node.left_key, node.right_key, node.merge, *super().functions]

    def run(self, left: Any, right: Any) -> Any:
        return self.join(left or {}, right or {}, self.left.groups, self.right.groups)

    def fetch(self, left: Any, right: Any) -> None:
        if left:
            self.right.bring(left)
        if right:
            self.left.bring(right)

    def whole(self, left: Any, right: Any) -> Any:
        return self.join(left, {}, self.left.everything(), self.right.everything())


class SemiJoinStage(Stage):
    """A semijoin of an index with how many rows each key of the right has."""

    __slots__ = ("join", "joining", "left", "totals")

    query = "semijoin"
    code = "join"

    def __init__(
        self, node: Semi, reads: Iterable[int], operator: Any, left: Index[Any, Any]
    ) -> None:
        self.totals: Cells[Any, int] = Cells()
        super().__init__(node, reads, self.totals, label="anti" if node.anti else node.verb)
        self.joining: joins.Semi = operator
        self.join, self.left = operator.join_delta, left

    @property
    def functions(self) -> list[Fn]:
        node: Any = self.node
        return [node.left_key, node.right_key]

    def run(self, left: Any, right: Any) -> Any:
        return self.join(left or {}, right or {}, self.left.reach(), self.totals)

    def fetch(self, left: Any, right: Any) -> None:
        fetched(self.totals, {**(left or {}), **(right or {})})
        if isinstance(self.left, KeyedIndex):
            self.left.bring(right or {})

    def whole(self, left: Any, right: Any) -> Any:
        return self.join(left, {}, self.left.everything(), Cells(self.totals.everything()))


class AlignedStage(Stage):
    """An operator on two indices whose rows are in order."""

    __slots__ = ("certain", "left", "operator", "right")

    code = "operator.join_delta"

    def __init__(
        self, node: Aligned, reads: Iterable[int], operator: Any, left: OrderedIndex,
        right: OrderedIndex,
    ) -> None:  # fmt: skip
        super().__init__(node, reads)
        self.operator, self.left, self.right = operator, left, right
        made = getattr(node, "merge", None), getattr(node, "alone", None)
        calls = [fn for fn in (node.left_order, node.right_order, *made) if fn is not None]
        self.certain = all(fn.expression is not None for fn in calls)

    def run(self, left: Any, right: Any) -> Any:
        lefts, rights = self.left, self.right
        return self.operator.join_delta(
            left or {}, right or {}, lefts.groups, rights.groups,
            lefts.trees_before(left), rights.trees_before(right),
        )  # fmt: skip

    def fetch(self, left: Any, right: Any) -> None:
        keys = {**(left or {}), **(right or {})}
        self.left.bring(keys)
        self.right.bring(keys)

    def whole(self, left: Any, right: Any) -> Any:
        operator, lefts, rights = self.operator, self.left.everything(), self.right.everything()
        none = dict.fromkeys(left, (operator.left_empty, ()))
        return operator.join_delta(left, {}, lefts, rights, none)

    def compute_keys(self, change: Any) -> None:
        """The stages that arrange the rows do it."""
