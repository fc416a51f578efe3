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

from ebbflow.chain import Chain, RowStep
from ebbflow.flow.plan import Node
from ebbflow.fn import Fn
from ebbflow.state.cells import Cells, Journalled
from ebbflow.state.index import Index
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
    row_by_row = False
    """Whether `whole` has one row for each row of the state, made in one loop."""
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
    given_up = ""
    """Why a stage in columns runs in rows after all."""
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
