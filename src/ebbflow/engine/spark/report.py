"""What a view on Spark says about itself: how it runs, what it keeps, and what its epochs did.

`explain` shows the plan with what holds for each node, and no job is run for it:

    bulk: native                        a first load computes it in Spark's own columns
    bulk: Arrow function (why not ...)  rows become Python's, batch by batch, for the reason given
    bulk: operator in task              it runs in tasks, as in every later epoch
    bulk: rounds led by the driver      a loop; rounds with much to do are jobs of their own
    wave 2                              when it runs in an epoch of many tasks; see `waves`
    in columns                          where one task runs a change of 1,000 rows or more
    in rows: why                        there its rows are Python's, for the reason given
    state 1,000 entries, 24 KB          what is on disk for it, with entries not yet merged

Of a loop in a loop the rounds of the last epoch are known where it ran in the driver.

`SparkStats` has the last epochs and the work of the stages, those of the local engine.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.inputs import SharedInput
from ebbflow.engine.runtime.loop_report import loops_of
from ebbflow.engine.runtime.python import code_of
from ebbflow.engine.runtime.report import EpochStats
from ebbflow.engine.runtime.stage import Stage, by_nothing
from ebbflow.engine.spark.native.lowering import NATIVE, Lowering
from ebbflow.engine.spark.tasks.epochs import EpochResult
from ebbflow.expression import Constant
from ebbflow.flow.describe import details, verb
from ebbflow.flow.plan import Binary, Node, Source
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.flow.show import explain
from ebbflow.notebook import Explained, Preformatted, amount, table
from ebbflow.state.spine import Store

if TYPE_CHECKING:
    from ebbflow.engine.spark.tasks.replica import Replica

LED = "rounds led by the driver"
REMEMBERED = 100
"""So many epochs are remembered."""


# ---- what epochs did ----


@dataclass(frozen=True)
class Work:
    """What one stage did: rows in and out, the entries of state it wrote, its time in all tasks.

    An accumulator that changed is one entry, so for a reduce these are the keys it touched; for an
    index they are the rows that came and went.
    """

    rows_in: int = 0
    rows_out: int = 0
    written: int = 0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.written + other.written,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class StageStats:
    """A stage: what it is, where it was written, and what it did, in the last epoch and in all
    since the view was opened."""

    label: str
    place: str
    last: Work
    total: Work


@dataclass(frozen=True, repr=False)
class SparkStats(Preformatted):
    """What a view did since it was opened: the last epochs, and the work of every stage.

    `epochs` are at most 100, the last one last; `epoch` is the number of the last, `seconds` the
    time of all. ::

        view.stats().epochs[-1].seconds
        {node.label: node.last.rows_out for node in view.stats().nodes}
    """

    epoch: int
    seconds: float
    epochs: tuple[EpochStats, ...]
    nodes: tuple[StageStats, ...]
    why: str = ""
    """Why the last epoch had its mode, where nobody asked for it."""

    def __repr__(self) -> str:
        head = ("epoch", "mode", "rows in", "rows out", "ms", "job ms", "commit ms")
        ran = [
            (
                f"{each.epoch:,}", each.mode, f"{each.rows_in:,}", _out(each.rows_out),
                _ms(each.seconds), _ms(each.job_seconds), _ms(each.commit_seconds),
            )
            for each in self.epochs[-10:]
        ]  # fmt: skip
        work = ("", "rows in", "rows out", "written", "ms", "ms in all", "place")
        nodes = [
            (
                each.label, f"{each.last.rows_in:,}", f"{each.last.rows_out:,}",
                f"{each.last.written:,}", _ms(each.last.seconds), _ms(each.total.seconds),
                each.place,
            )
            for each in self.nodes
        ]  # fmt: skip
        first = f"epoch {self.epoch:,}, {self.seconds:,.3f} s since it was opened"
        why = [f"{self.epochs[-1].mode}: {self.why}"] if self.epochs and self.why else []
        return "\n".join([first, *why, *table(head, ran, (1,)), "", *table(work, nodes, (0, 6))])


def _out(rows: Mapping[str, int | None]) -> str:
    if None in rows.values():
        return "all"
    return f"{sum(each or 0 for each in rows.values()):,}"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f}"


@dataclass
class History:
    """What the epochs of a view did, as far as it is remembered."""

    stages: Sequence[Stage]
    seconds: float = 0.0
    epochs: deque[EpochStats] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    last: dict[int, Work] = field(default_factory=dict)
    total: dict[int, Work] = field(default_factory=dict)
    jobs: Mapping[int, int] = field(default_factory=dict)
    """How many jobs the rounds of loops had in the last epoch, by the number of the stage."""
    rounds: dict[int, str] = field(default_factory=dict)
    """What the rounds of loops did in the last epoch that reached them."""

    why: str = ""
    """Why the last epoch had its mode."""

    def add(self, epoch: EpochStats, done: EpochResult, written: Mapping[int, int]) -> None:
        """One more epoch; `written` are the entries of state by the number of their stage."""
        self.last = {number: Work(written=count) for number, count in written.items() if count}
        for number, rows_in, rows_out, seconds in done.stats:
            now = Work(rows_in, rows_out, seconds=seconds)
            self.last[number] = self.last.get(number, Work()) + now
        for number, work in self.last.items():
            self.total[number] = self.total.get(number, Work()) + work
        self.seconds += epoch.seconds
        self.epochs.append(epoch)
        self.jobs, self.why = done.jobs, done.why
        self.rounds |= done.rounds

    def stats(self, epoch: int) -> SparkStats:
        nodes = [
            StageStats(
                stage.label, str(stage.node.place),
                self.last.get(i, Work()), self.total.get(i, Work()),
            )
            for i, stage in enumerate(self.stages)
        ]  # fmt: skip
        return SparkStats(epoch, self.seconds, tuple(self.epochs), tuple(nodes), self.why)


def staged_entries(replica: Replica, store: Store) -> dict[int, int]:
    """How many entries of state are staged, by the number of the stage they belong to."""
    found: dict[int, int] = {}
    numbers = {
        id(container): number
        for number, stage in enumerate(replica.machine.stages)
        for container in stage.containers
    }
    for part in replica.parts:
        number = numbers.get(id(part.owner))
        if number is not None:
            found[number] = sum(map(len, part.spine(store).staged))
    return found


# ---- explain ----


class Facts:
    """What holds for each node of a plan that runs on Spark."""

    def __init__(
        self, replica: Replica, store: Store, lowering: Lowering, history: History
    ) -> None:
        self.replica, self.lowered, self.history = replica, lowering.nodes(), history
        self.machine = replica.machine
        spines = {spine["operator"]: spine for spine in store.info()["spines"]}
        self.sizes = {
            id(part.owner): (spines[part.name]["entries"], spines[part.name]["bytes"])
            for part in replica.parts
            if part.name in spines
        }
        self.waves = _waves(replica)

    def all(self) -> dict[Node, str]:
        """The facts, by node."""
        nodes = self.machine.plan.nodes()
        found = {node: " · ".join(self._of(node)) for node in nodes}
        return {node: text for node, text in found.items() if text}

    def _of(self, node: Node) -> list[str]:
        state = self._state(node)
        if state is not None:
            return [self._rows(state), *self._outputs(node)]
        stages = self._stages(node)
        led = any(stage.looping for stage in stages)
        said = [f"bulk: {LED if led else self.lowered.get(id(node), NATIVE)}"]
        waves = sorted({wave for each in stages for wave in self.waves.get(id(each), ())})
        if waves:
            some = "waves" if len(waves) > 1 else "wave"
            alone = ", all rows in one task" if any(map(in_one_task, stages)) else ""
            said.append(f"{some} {', '.join(map(str, waves))}{alone}")
        said += self._columns(stages)
        containers = [each for stage in stages for each in stage.containers]
        if containers:
            said.append(f"state {self._size(containers)}")
        return [*said, *self._last(node), *self._outputs(node)]

    def _columns(self, stages: Sequence[Stage]) -> list[str]:
        """Whether a task runs stages in columns, or why not."""
        columns = self.replica.columns
        if columns is None or not stages:
            return []
        why = [columns.why[stage.slot] for stage in stages if stage.slot in columns.why]
        return [f"in rows: {why[0]}" if why else "in columns"]

    def _stages(self, node: Node) -> list[Stage]:
        """The stages that run for a node: its own, and the indices that it had made."""
        return [
            stage
            for stage in self.machine.stages
            if (stage.containers or not stage.arranges)
            and (stage.owner is node or any(step.owner is node for step in stage.steps))
        ]

    def _state(self, node: Node) -> Any:
        return self.replica.inputs.get(node.name) if isinstance(node, Source) else None

    def _rows(self, state: Any) -> str:
        if isinstance(state, SharedInput):
            owner = self._owner(state.index)
            return f"kept in the index of {_named(owner)}: {self._size([state.index])}"
        if state.store is None:
            return "trusted: not kept"
        return self._size([state.store])

    def _owner(self, container: Any) -> Node:
        return next(stage.owner for stage in self.machine.stages if container in stage.containers)

    def _size(self, containers: Iterable[Any]) -> str:
        sizes = [self.sizes.get(id(each), (0, 0)) for each in containers]
        entries, size = (sum(each[i] for each in sizes) for i in (0, 1))
        return f"{entries:,} entries, {amount(size)}"

    def _last(self, node: Node) -> list[str]:
        """What its own stage did in the last epoch."""
        for number, stage in enumerate(self.machine.stages):
            work = self.history.last.get(number)
            if stage.node is node and not stage.arranges and work:
                time = f"{work.seconds * 1e3:,.1f} ms"
                jobs = self.history.jobs.get(number, 0)
                more = f", {jobs:,} job{'s' if jobs > 1 else ''} for its rounds" if jobs else ""
                return [f"last epoch {work.rows_in:,} rows in, {work.rows_out:,} out, {time}{more}"]
        return []

    def _outputs(self, node: Node) -> list[str]:
        found = []
        for name, made in self.machine.plan.outputs.items():
            if made is node:
                found.append(f"output {name} {self._output(name)}")
        return found

    def _output(self, name: str) -> str:
        if name in self.replica.derived:
            return "derived by a native query"
        rows = self.replica.outputs[name].rows
        if rows is None:
            return "read from its state"
        return f"kept: {self._size([rows])}"


def _named(node: Node) -> str:
    return f"{verb(node)} {details(node)}".rstrip()


def _waves(replica: Replica) -> dict[int, list[int]]:
    """For each stage, by id, the waves it runs in."""
    waves = replica.waves()
    found: dict[int, list[int]] = {}
    for number, wave in enumerate(waves.waves):
        for act in (*wave.acts, *wave.loops):
            found.setdefault(id(act.stage), []).append(number)
    for stage in replica.machine.stages:
        if stage.linear:
            found[id(stage)] = [waves._made[stage.slot]]
    return found


def in_one_task(stage: Stage) -> bool:
    """Whether all rows that a stage reads have one key, and nothing is added up before they are
    sent: however many tasks there are, one has the work."""
    node = stage.node
    if isinstance(node, (Binary, Aligned)):
        return isinstance(node.left_key.expression, Constant)
    return not stage.linear and stage.partition_key is by_nothing and stage.partial is None


def explained(facts: Facts, format: str, about: Mapping[str, Any]) -> str:
    """The plan with its facts; what holds for all of it in the first line, or under `engine`."""
    stages = facts.machine.stages
    code = code_of(stages, stored=True) if format == "python" else ()
    here = about["last"] == "driver"
    loops = loops_of(stages, ran=here, known=facts.history.rounds)
    text = explain(facts.machine.plan, format, facts=facts.all(), code=code, loops=loops)
    if format == "json":
        made = {"engine": about, **json.loads(text)}
        return Explained(json.dumps(made, indent=2, ensure_ascii=False))
    said = {**about, "bytes": amount(about["bytes"])}
    why = f" ({said['why']})" if said["why"] else ""
    first = (
        f"{said['engine']} · epoch {said['epoch']:,} · last epoch {said['last'] or 'none yet'}{why}"
        " · "
        f"{said['tasks']} tasks · {said['bytes']} on disk in {said['path']}"
    )
    mark = {"mermaid": "%% ", "dot": "// ", "python": "# "}.get(format, "")
    return Explained(f"{mark}{first}\n{text}")
