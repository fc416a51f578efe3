"""Stages: operators with the containers that hold their state, ready to run.

A *stage* runs when one of the slots it reads holds a change: `run` turns the changes of these slots
into the change of its own. `fetch` is called before it where state may be elsewhere: it has the
keys brought here that the change touches, all at once. `whole` gives everything that the stage has
given so far, added up, from its state and from the whole of what it reads; so a stage that is new
to a program that has run can be filled.

A stage also says what an engine has to know to run it in many tasks, or as a query: whether it is
`linear`, whether it only `arranges` rows for others, by which key the rows it reads have to come
together (`partition_key`), what may be added up before rows are sent to it (`partial`), and which
`query` gives its rows. An engine asks these and no class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from ebbflow.chain import Chain, RowStep, copies_first
from ebbflow.flow.plan import Join, Node, Semi
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.fn import Fn
from ebbflow.state.cells import ABSENT, Cells, Journalled
from ebbflow.state.index import Index, not_there
from ebbflow.state.ordered import OrderedIndex
from ebbflow.zset import ZSet

GUARD, INDEX, BY_KEY = "guard", "index", "by key"
NOTHING: ZSet[Any] = ZSet()
WHOLE = Chain()
"""No steps at all."""


def by_row(row: Any) -> Any:
    """The key of rows that are found by themselves."""
    return row


def by_nothing(row: Any) -> Any:
    """The key of rows that are all looked at together."""
    return ()


class Counts:
    """What a stage has done so far."""

    __slots__ = ("rows_in", "rows_out", "seconds")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self.rows_in = self.rows_out = 0
        self.seconds = 0.0


class Stage:
    """One step of a compiled plan, with its state.

    `node` is what it is part of, `owner` the node that it runs for, `type` that of the rows it
    gives, and `label` what it is called, where state is stored as well.
    """

    __slots__ = ("containers", "counts", "label", "node", "owner", "reads", "slot", "type")

    kept = False
    """Whether `whole` needs nothing but the state."""
    certain = True
    """Whether `whole` surely gives what was given by and by: no function is on the way that might
    do something else the second time."""
    linear = False
    """Whether it is a function of one row at a time, added up: any part of the rows will do."""
    arranges = False
    """Whether it gives the rows that it reads, by key or checked, to the stages behind it: it is
    part of those, and runs wherever one of them does."""
    grouped = False
    """Whether it gives lists of rows by key, and no change."""
    multiplies = False
    """Whether weights of the slots it reads are multiplied."""
    index: Any = None
    """The index that it keeps rows in, for others to read as well."""
    key: Fn | None = None
    """The key that it arranges rows by."""
    partial: Any = None
    """What a change adds to the cells, by key, where the stage can be given that (`Partial`)
    instead: parts of the change can be added up wherever they are."""
    query = ""
    """Which of the queries that an engine may know gives its rows, or its cells."""
    operator: Any = None
    """The operator that made its cells, if one did; it may know how their values are stored."""
    cell_keys: Any = Any
    """The type of the keys of its cells, where these are rows."""
    steps: Sequence[RowStep] = ()
    """Steps on one row at a time in its loop."""
    cells: Any = None
    """The cells that tell all of its output, where it has such; see `output_of`."""
    paired = False
    """Whether the state of its operator is a pair: rows, and these cells."""
    code = "run"
    """The attribute with the function that does its work."""
    passes = False
    """Whether it goes through the rows of a change once, by `items()`, and asks nothing else."""
    adds_up = False
    """Whether it does so, and a row that comes twice is to it a row of weight two."""
    in_columns = False
    """Whether it takes columns, and gives columns (see `ebbflow.engine.runtime.columnar`)."""
    looping = False
    """Whether it is a loop, which has an attribute `elsewhere`: who may do a part of its work (see
    `ebbflow.engine.runtime.elsewhere`)."""

    def __init__(
        self, node: Node, reads: Iterable[int], *containers: Journalled[Any], label: str = ""
    ) -> None:
        self.node = self.owner = node
        self.label = label or node.verb
        self.reads = tuple(reads)
        self.slot = -1
        self.containers = containers
        self.type: Any = node.type
        self.counts = Counts()

    def run(self, *changes: Any) -> Any:
        """The change of its slot, from those of the slots that it reads."""
        raise NotImplementedError

    @property
    def at_work(self) -> Stage:
        """The stage that does the work just now: this one, or one inside it."""
        return self

    @property
    def inside(self) -> Sequence[Stage]:
        """The stages that it runs itself: those of the body of a loop."""
        return ()

    def row_type(self, container: Journalled[Any]) -> Any:
        """The type of what a container holds: of rows, or of the keys of cells."""
        return self.node.type if isinstance(container, Index) else self.cell_keys

    def fetch(self, *changes: Any) -> None:
        """Have the state here that these changes touch."""

    def whole(self, *wholes: Any) -> Any:
        """All that this stage has given so far, added up."""
        return self.run(*wholes)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        """The functions that do the work of a step, for `explain("python")`; `stored` says that
        state has to be fetched. Those of stages inside are not among them."""
        return (attrgetter(self.code)(self),)

    def code_of(self, stored: bool) -> Iterator[tuple[Node, Callable[..., Any]]]:
        """These functions, each with the node that it runs for."""
        for loop in self.loops(stored):
            yield self.node, loop

    def output_of(self, values: dict[Any, Any]) -> dict[Any, int]:
        """The whole output when its cells hold these values."""
        cells: Cells[Any, Any] = Cells(values)
        out: dict[Any, int] = self.operator.read((None, cells) if self.paired else cells)
        return out

    @property
    def partition_key(self) -> Callable[[Any], Any]:
        """By what the rows that it reads have to come together."""
        return (self.key if self.grouped else getattr(self.node, "key", None)) or by_nothing

    @property
    def functions(self) -> list[Fn]:
        """The functions of the user's that its `query` calls."""
        return [step.fn for step in self.steps]

    def compute_keys(self, change: Any) -> None:
        """Compute the keys of a change as `run` does, to raise what it would."""
        if self.operator is not None:
            self.operator.keys(change)

    def __repr__(self) -> str:
        return f"<stage {self.label}: {self.reads} → {self.slot}>"


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
        self.by, self.cell_keys = by, row_type

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


class JoinStage(Stage):
    """A join of two indices, with the steps behind it."""

    __slots__ = ("after", "certain", "join", "left", "one_to_one", "right", "steps")

    multiplies = True
    query = "join"
    code = "join"

    def __init__(
        self, node: Join, reads: Iterable[int], operator: Any, left: Index[Any, Any],
        right: Index[Any, Any], certain: bool,
    ) -> None:  # fmt: skip
        super().__init__(node, reads)
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


class AlignedStage(Stage):
    """An operator on two indices whose rows are in order."""

    __slots__ = ("left", "operator", "right")

    code = "operator.join_delta"
    certain = False

    def __init__(
        self, node: Aligned, reads: Iterable[int], operator: Any, left: OrderedIndex,
        right: OrderedIndex,
    ) -> None:  # fmt: skip
        super().__init__(node, reads)
        self.operator, self.left, self.right = operator, left, right

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
        return self.operator.join_delta(left, {}, self.left.everything(), self.right.everything())

    def compute_keys(self, change: Any) -> None:
        """The stages that arrange the rows do it."""


class SemiJoinStage(Stage):
    """A semijoin of an index with how many rows each key of the right has."""

    __slots__ = ("join", "left", "totals")

    query = "semijoin"
    code = "join"

    def __init__(
        self, node: Semi, reads: Iterable[int], operator: Any, left: Index[Any, Any]
    ) -> None:
        self.totals: Cells[Any, int] = Cells()
        super().__init__(node, reads, self.totals, label="anti" if node.anti else node.verb)
        self.join, self.left = operator.join_delta, left

    @property
    def functions(self) -> list[Fn]:
        node: Any = self.node
        return [node.left_key, node.right_key]

    def run(self, left: Any, right: Any) -> Any:
        return self.join(left or {}, right or {}, self.left.reach(), self.totals)

    def fetch(self, left: Any, right: Any) -> None:
        fetched(self.totals, {**(left or {}), **(right or {})})

    def whole(self, left: Any, right: Any) -> Any:
        return self.join(left, {}, self.left.everything(), Cells(self.totals.everything()))


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

    __slots__ = (
        "by_row", "cells", "certain", "kept", "operator", "paired", "query", "readable", "state",
    )  # fmt: skip

    code = "operator.update"

    def __init__(
        self, node: Node, slot: int, operator: Any, *, by_row: bool = False, query: str = ""
    ) -> None:
        self.operator, self.state = operator, operator.init(NOTHING)
        self.paired = isinstance(self.state, tuple)
        super().__init__(node, [slot], *(self.state if self.paired else (self.state,)))
        self.by_row, self.query = by_row, query
        self.readable = hasattr(operator, "read")
        self.kept = self.certain = self.readable or getattr(operator, "certain", False)
        self.cells = next((each for each in self.containers if isinstance(each, Cells)), None)

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


def nested(stages: Iterable[Stage], depth: int = 0) -> Iterator[tuple[Stage, int]]:
    """Stages in the order in which they run, each with those inside it behind it, and how deep
    inside others it is."""
    for stage in stages:
        yield stage, depth
        yield from nested(stage.inside, depth + 1)


def fetched(container: Any, keys: Iterable[Any]) -> None:
    """Have these keys of a container here."""
    if container.backing is not None:
        container.backing.fetch(keys)
