"""What stages run: operators, with the containers that hold their state.

A *run* turns the changes that a stage reads into the change that it gives. `fetch` is called before
it where state may be elsewhere: it has the keys brought here that the change touches, all at once.
`whole` gives everything that the stage has given so far, added up, from its state and from the
whole of what it reads; so a stage that is new to a program that has run can be filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from ebbflow.chain import Chain
from ebbflow.flow.plan import Node
from ebbflow.state.cells import ABSENT, Cells, Journalled
from ebbflow.state.index import Index, not_there
from ebbflow.zset import ZSet

INDEX, BY_KEY = "index", "by key"
NOTHING: ZSet[Any] = ZSet()


class Run:
    """The work of one stage.

    `kept` says that `whole` needs nothing but the state; `certain`, that it surely gives what was
    given by and by: no function is on the way that might do something else the second time.
    `code` names the attribute with the function that does the work.
    """

    __slots__ = ()

    kept = False
    certain = True
    code = "__call__"

    def __call__(self, *changes: Any) -> Any:
        raise NotImplementedError

    def fetch(self, *changes: Any) -> None:
        """Have the state here that these changes touch."""

    def whole(self, *wholes: Any) -> Any:
        """All that this stage has given so far, added up."""
        return self(*wholes)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        """The functions that do the work of a step, for `explain("python")`; `stored` says that
        state has to be fetched."""
        return (attrgetter(self.code)(self),)


class Stage:
    """Something to run when one of the slots it reads holds a change."""

    __slots__ = ("containers", "key", "label", "node", "owner", "reads", "rows_in", "rows_out",
                 "run", "seconds", "slot", "sorts", "type")  # fmt: skip

    def __init__(
        self, node: Node, label: str, reads: Iterable[int], slot: int, run: Run,
        containers: Iterable[Journalled[Any]] = (),
    ) -> None:  # fmt: skip
        self.node = node
        self.label = label
        self.reads = tuple(reads)
        self.slot = slot
        self.run = run
        self.containers = tuple(containers)
        self.sorts = label in (INDEX, BY_KEY)
        self.key: Any = None
        self.type: Any = node.type
        self.owner = node
        self.rows_in = self.rows_out = 0
        self.seconds = 0.0

    def __repr__(self) -> str:
        return f"<stage {self.label}: {self.reads} → {self.slot}>"


class Gathered(Run):
    """A gathering loop, with nothing where a slot holds no change."""

    __slots__ = ("certain", "chains", "loop")
    code = "loop"

    def __init__(
        self, loop: Callable[..., Any], certain: bool, chains: Sequence[Chain] = ()
    ) -> None:
        self.loop = loop
        self.certain = certain
        self.chains = chains

    def __call__(self, *changes: Any) -> Any:
        return self.loop(*[change or {} for change in changes])


class Sorted(Run):
    """Rows by key, not kept."""

    __slots__ = ("by_key",)
    code = "by_key"

    certain = False

    def __init__(self, by_key: Callable[..., Any]) -> None:
        self.by_key = by_key

    def __call__(self, change: Any) -> Any:
        return self.by_key(change.items())


class Indexing(Run):
    """Rows by key, kept in an index, which fetches for itself."""

    __slots__ = ("index",)
    code = "index.grouping"

    kept = True

    def __init__(self, index: Index[Any, Any]) -> None:
        self.index = index

    def __call__(self, change: Any) -> Any:
        return self.index.apply(change)

    def whole(self, *_: Any) -> Any:
        return {key: list(rows.items()) for key, rows in self.index.everything().items()}


class Guard(Run):
    """Lets a change pass unless it leaves a row with a negative weight."""

    __slots__ = ("weights",)

    kept = True

    def __init__(self, weights: Cells[Any, int]) -> None:
        self.weights = weights

    def __call__(self, change: Any) -> Any:
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


class Meeting(Run):
    """A join of two indices."""

    __slots__ = ("after", "certain", "left", "met", "right")
    code = "met"

    def __init__(
        self, met: Callable[..., Any], left: Index[Any, Any], right: Any, certain: bool,
        after: Chain,
    ) -> None:  # fmt: skip
        self.met, self.left, self.right, self.certain = met, left, right, certain
        self.after = after

    def __call__(self, left: Any, right: Any) -> Any:
        return self.met(left or {}, right or {}, self.left.groups, self.right.groups)

    def fetch(self, left: Any, right: Any) -> None:
        if left:
            self.right.bring(left)
        if right:
            self.left.bring(right)

    def whole(self, left: Any, right: Any) -> Any:
        return self.met(left, {}, self.left.everything(), self.right.everything())


class Counting(Run):
    """A semijoin of an index with counts."""

    __slots__ = ("counts", "left", "met")
    code = "met"

    def __init__(self, met: Callable[..., Any], left: Index[Any, Any], counts: Any) -> None:
        self.met, self.left, self.counts = met, left, counts

    def __call__(self, left: Any, right: Any) -> Any:
        return self.met(left or {}, right or {}, self.left.reach(), self.counts)

    def fetch(self, left: Any, right: Any) -> None:
        fetched(self.counts, {**(left or {}), **(right or {})})

    def whole(self, left: Any, right: Any) -> Any:
        return self.met(left, {}, self.left.everything(), Cells(self.counts.everything()))


class Partial(list[tuple[Any, Any]]):
    """Pairs of a key and what a change adds to its cell, instead of the change."""


class Swapping(Run):
    """A reduce in one loop; where cells have to be fetched, in two (see `ebbflow.reducer.fused`):
    what `fetch` has found out about a change, `given`, is for the call that comes next."""

    __slots__ = ("cells", "given", "operator", "step")

    kept = True

    def __init__(self, operator: Any, cells: Cells[Any, Any]) -> None:
        self.operator, self.cells, self.step = operator, cells, operator.update_fused
        self.given: tuple[Any, Any] = None, None

    def __call__(self, change: Any) -> Any:
        (fetched_for, added), self.given = self.given, (None, None)
        if fetched_for is change:
            return self.operator.merge_partial(self.cells, added)
        return self.step(self.cells, change)

    def partial(self, change: Any) -> Partial:
        """What to give to this stage instead of a change."""
        return Partial(self.operator.partial(change).items())

    def fetch(self, change: Any) -> None:
        if isinstance(change, Partial) or self.operator.partial is not None:
            added = change if isinstance(change, Partial) else self.partial(change)
            fetched(self.cells, {key for key, _ in added})
            self.given = change, added
        else:
            fetched(self.cells, self.operator.keys(dict.fromkeys(change, 1)))  # so none cancel

    def whole(self, *_: Any) -> Any:
        return self.operator.read(self.cells)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        operator = self.operator
        if stored and operator.partial is not None:
            return operator.partial, operator.merge_loop
        return (operator.loop,)


class Regrouping(Run):
    """A reduce group by group; the rows are in an index, where they are kept."""

    __slots__ = ("cells", "index", "operator")
    code = "operator.update_groups"

    kept = True

    def __init__(self, operator: Any, index: Any, cells: Cells[Any, Any]) -> None:
        self.operator, self.index, self.cells = operator, index, cells

    def __call__(self, found: Any) -> Any:
        index = self.index
        groups = None if index is None else index.reach()
        return self.operator.update_groups(found, groups, self.cells)

    def fetch(self, found: Any) -> None:
        fetched(self.cells, found)

    def whole(self, *_: Any) -> Any:
        operator = self.operator
        return operator.read((None, self.cells) if operator.keeps_rows else self.cells)


class Moving(Run):
    """Any other operator with state."""

    __slots__ = ("certain", "kept", "operator", "state")
    code = "operator.update"

    def __init__(self, operator: Any, state: Any) -> None:
        self.operator, self.state = operator, state
        self.kept = self.certain = hasattr(operator, "read")

    def __call__(self, change: Any) -> Any:
        return self.operator.update(self.state, change)

    def fetch(self, change: Any) -> None:
        keys = self.operator.keys(change)
        for container in self.state if isinstance(self.state, tuple) else (self.state,):
            fetched(container, keys)

    def whole(self, *wholes: Any) -> Any:
        if self.kept:
            return self.operator.read(self.state)
        return self.operator.update(self.operator.init(NOTHING), *wholes)


class Reader:
    """The whole output of an operator, from its state: as it is now, or as it was."""

    __slots__ = ("cells", "operator", "state")

    def __init__(self, operator: Any, state: Any) -> None:
        self.operator, self.state = operator, state
        parts = state if isinstance(state, tuple) else (state,)
        self.cells: Cells[Any, Any] = next(part for part in parts if isinstance(part, Cells))

    def __call__(self) -> dict[Any, int]:
        out: dict[Any, int] = self.operator.read(self.state)
        return out

    def of(self, values: dict[Any, Any]) -> dict[Any, int]:
        """The output when these are the cells."""
        cells: Cells[Any, Any] = Cells(values)
        state = (None, cells) if isinstance(self.state, tuple) else cells
        out: dict[Any, int] = self.operator.read(state)
        return out


def fetched(container: Any, keys: Iterable[Any]) -> None:
    """Have these keys of a container here."""
    if container.backing is not None:
        container.backing.fetch(keys)
