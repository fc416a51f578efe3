"""The compiled plan: a list of stages, each with its operator and its state.

A stage reads the changes of some *slots* and writes the change of its own; slots begin with the
inputs. An epoch runs the stages in order and leaves out those whose slots hold no change. Until
`commit` the containers of the stages that ran remember how to go back; `rollback` does so.

What runs are the operators of `ebbflow.operator` and `ebbflow.reducer`, with the steps before and
after them written into the same loop where that is possible. Inputs of joins and of reduces that
keep rows are *arranged*: kept by key, once for all readers of the same rows by the same key.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from decimal import getcontext, setcontext
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from ebbflow.decimals import USUAL
from ebbflow.engine.runtime.again import FormerStages
from ebbflow.engine.runtime.closable import closable
from ebbflow.engine.runtime.compile import Compiler
from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.gc_paused import Freezer
from ebbflow.engine.runtime.loop_report import rows_in
from ebbflow.engine.runtime.stage import Counts, Stage, nested
from ebbflow.errors import cause_of
from ebbflow.flow.plan import Plan, Source

Delta = dict[Any, int]
Act = tuple[Stage, Sequence[int], int, tuple[Any, ...], Callable[..., Any], bool, Counts]
"""A stage to run, where among the values it finds what it reads, and what running it takes, at
hand: stages are of several classes, and Python finds attributes much faster where all objects are
of one."""
Reached = tuple[list[Act], list[tuple[str, int]]]
REMEMBERED = 1000

LARGE = 100
"""From so many rows on, garbage is not looked for while an epoch runs: what it makes is kept, or
freed at once, and would be looked through every few hundred objects."""


class NodeStats(NamedTuple):
    """The work of one stage so far: rows read and given, rows of state, and time. `depth` is how
    many loops it is inside of; a loop comes before what is inside it, and includes it."""

    label: str
    place: str
    rows_in: int
    rows_out: int
    state_rows: int
    seconds: float
    depth: int = 0


class Machine:
    """A plan, compiled, with all its state; see `ebbflow.engine.runtime.program`."""

    def __init__(
        self, plan: Plan, *, trusting: bool = False, apart: bool = False, stored: bool = False,
        narrow: bool = False,
    ) -> None:  # fmt: skip
        compiled = Compiler(plan, apart=apart, stored=stored, narrow=narrow)
        self.trusting, self.apart, self.stored, self.narrow = trusting, apart, stored, narrow
        self.plan = compiled.plan
        self.stages = compiled.stages
        self.inputs = compiled.inputs
        self.outputs = compiled.outputs
        self.width = compiled.width
        self.closable = closable(compiled.plan, compiled.stages)
        """The containers that forget what is closed, behind inputs that put late rows aside."""
        forgetting = {id(each.stage) for each in self.closable}
        self.readers = {
            n: each for n, each in compiled.readers.items() if id(each) not in forgetting
        }
        self.by_slot = {stage.slot: stage for stage in self.stages}
        self.decimals = USUAL.copy()
        """Functions of the user compute in this context, and not in that of the thread."""
        self.open: list[Any] = []
        """The containers that can still be rolled back, and stages that others have replaced."""
        self.backed = self.in_memory = False
        self.unchecked: frozenset[str] = frozenset()
        """Inputs whose rows come in unchecked: an index tells where one is not there."""
        self.reached: dict[tuple[str, ...], Reached] = {}
        self.freezer: Freezer | None = None
        self.by_columns: dict[int, str] | None = None
        """In a program that runs in columns: why a stage does not, by slot."""
        self.listed = self._choose_listed()
        """Inputs that may be given rows as a list; see `ebbflow.engine.runtime.listed`."""

    def run(
        self, changes: Mapping[str, Delta], former: FormerStages | None = None
    ) -> dict[str, Delta]:
        """Run all stages that these changes of inputs reach, and give the changes of the outputs
        that changed. Until `commit`, `rollback` undoes it, and has the `former` stages again."""
        values: list[Any] = [None] * self.width
        sizes = [0] * self.width
        inputs = self.inputs
        for name, change in changes.items():
            slot = inputs.get(name)
            if slot is not None:
                values[slot] = change
                sizes[slot] = len(change)
        self.open = [] if former is None else [former]
        names = tuple(changes)
        reached = self.reached.get(names)
        if reached is None:
            reached = self._reach(names)
        acts, outputs = reached
        self.execute(acts, values, sizes)
        found: dict[str, Delta] = {}
        for name, slot in outputs:
            out = values[slot]
            if type(out) is not dict and not getattr(out, "canonical", True):
                out = out.consolidated()
            if out:
                found[name] = out
        return found

    def renew(self, plan: Plan) -> FormerStages:
        """Have stages of the same plan that have no state yet. Until `commit`, `rollback` has those
        again that there were."""
        former = FormerStages(self)
        self.open = [former]
        again = Compiler(plan, apart=self.apart, stored=self.stored, narrow=self.narrow)
        self.use(again.stages, None)
        return former

    def use(self, stages: Sequence[Stage], by_columns: dict[int, str] | None) -> None:
        """Have these stages in the place of those that do the same."""
        self.stages, self.by_columns = list(stages), by_columns
        self.by_slot = {stage.slot: stage for stage in self.stages}
        self.readers = {name: self.by_slot[self.outputs[name]] for name in self.readers}
        self.reached.clear()
        self.listed = self._choose_listed()

    def _choose_listed(self) -> frozenset[str]:
        """The inputs whose readers all go through a change once, and where a row may come twice,
        add rows up."""
        if self.by_columns is not None or self.apart or self.stored or not self.trusting:
            return frozenset()
        found = set()
        for name, slot in self.inputs.items():
            readers = [stage for stage in self.stages if slot in stage.reads]
            source = self.plan.sources.get(name)
            keyed = source is not None and source.key is not None
            if slot not in self.outputs.values() and all(
                stage.passes if keyed else stage.adds_up for stage in readers
            ):
                found.add(name)
        return frozenset(found)

    def execute(self, acts: Iterable[Act], values: list[Any], sizes: list[int]) -> None:
        """Run stages, one after the other: the only place where a stage runs on a change.

        `values` are the changes that the stages read, `sizes` how many rows each has; a stage puts
        its own at its slot. One that finds no change does not run.
        """
        stage, paused, was = None, False, getcontext()
        try:
            setcontext(self.decimals)
            opened, backed = self.open, self.backed
            value_at, size_at = values.__getitem__, sizes.__getitem__
            given = sum(sizes)
            paused = given > LARGE and gc.isenabled()
            freezer = self.freezer if paused and self._keeps_rows() else None
            if freezer is not None:
                freezer.begin(given)
            if paused:
                gc.disable()
            for stage, places, slot, containers, run, grouped, counts in acts:
                if len(places) == 1:
                    (at,) = places
                    reads: Sequence[Any] = (values[at],)
                    rows = sizes[at]
                    if not values[at]:
                        continue
                else:
                    reads = [*map(value_at, places)]
                    if not any(reads):
                        continue
                    rows = sum(map(size_at, places))
                for container in containers:
                    opened.append(container)
                    container.begin()
                started = perf_counter()
                if backed:
                    stage.fetch(*reads)
                out = values[slot] = run(*reads)
                counts.seconds += perf_counter() - started
                sizes[slot] = size = rows if grouped else len(out)
                counts.rows_in += rows
                counts.rows_out += size
            if freezer is not None:
                freezer.end()
        except Exception as error:
            if stage is None:  # no stage has run yet
                raise
            stage = stage.at_work
            raise explained(error, stage, self.trusts(stage)) from cause_of(error)
        finally:
            setcontext(was)
            if paused:
                gc.enable()

    def _keeps_rows(self) -> bool:
        """Whether some stage has its state in rows, which are objects, and not in columns."""
        return self.by_columns is None or not all(
            stage.in_columns and not stage.given_up for stage in self.stages
        )

    def count_anew(self) -> None:
        """Forget what the stages have counted so far."""
        for stage, _ in nested(self.stages):
            stage.counts.reset()

    def trusts(self, stage: Stage | None) -> bool:
        """Whether rows come into a stage that nobody has checked."""
        node = None if stage is None else stage.node
        return self.trusting or (isinstance(node, Source) and node.name in self.unchecked)

    def _reach(self, names: tuple[str, ...]) -> Reached:
        """The stages and the outputs that a change of these inputs may reach."""
        slots = {self.inputs[name] for name in names if name in self.inputs}
        acts: list[Act] = []
        for stage in self.stages:
            if not slots.isdisjoint(stage.reads):
                slots.add(stage.slot)
                acts.append(self.act(stage, stage.reads))
        outputs = [(name, slot) for name, slot in self.outputs.items() if slot in slots]
        if len(self.reached) >= REMEMBERED:
            self.reached.clear()
        found = self.reached[names] = acts, outputs
        return found

    def act(self, stage: Stage, places: Sequence[int]) -> Act:
        """A stage to run, that finds what it reads at these places; one that wants rows gets
        rows."""
        run = stage.run
        if self.by_columns is not None and not stage.in_columns:
            run = partial(_on_rows, run)
        return (stage, places, stage.slot, stage.containers, run, stage.grouped, stage.counts)

    def commit(self) -> None:
        """Keep what the last `run` did to the state."""
        for container in self.open:
            if container.journal is not None:
                container.commit()
        self.open = []

    def rollback(self) -> None:
        """Undo what the last `run` did to the state. If it is cut short, call it again: a container
        has a journal until it is as it was."""
        for container in reversed(self.open):
            if container.journal is not None:
                container.rollback()
        self.open = []

    def read(self, name: str) -> Delta | None:
        """All rows of an output, read from the state of its operator; None where that has not got
        them."""
        reader = self.readers.get(name)
        return None if reader is None else reader.whole()

    def derives(self, name: str, kept: Set[str]) -> bool:
        """Whether `whole` gives an output, and surely the same that was given by and by.

        The functions on the way from what is kept to the output must be known to do the same every
        time; `kept` are the inputs whose rows are kept.
        """
        return self._reaches([self.outputs[name]], kept, lambda stage: stage.certain)

    def tells(self, slots: Sequence[int], kept: Set[str]) -> bool:
        """Whether `whole` gives some slots, and runs no loop for that."""
        return self._reaches(slots, kept, lambda stage: not stage.looping)

    def _reaches(
        self, asked: Sequence[int], kept: Set[str], through: Callable[[Stage], bool]
    ) -> bool:
        """Whether every way back from some slots ends where rows are kept, through such stages."""
        sources = {self.inputs[each] for each in kept if each in self.inputs}
        slots = list(asked)
        while slots:
            slot = slots.pop()
            if slot in sources:
                continue
            stage = self.by_slot.get(slot)
            forgets = any(each.stage is stage for each in self.closable)
            if stage is None or forgets or not through(stage):
                return False
            if not stage.kept:
                slots += stage.reads
        return True

    def whole(self, slot: int, rows: Callable[[str], Delta], wholes: dict[int, Any]) -> Any:
        """All that a slot has held so far, added up. `rows` gives the rows of an input, `wholes`
        are the slots for which it is known already."""
        names = {slot: name for name, slot in self.inputs.items()}
        waiting = [slot]
        while waiting:
            at = waiting.pop()
            if at in wholes:
                continue
            if at in names:
                wholes[at] = rows(names[at])
                continue
            stage = self.by_slot[at]
            reads = () if stage.kept else stage.reads
            missing = [each for each in reads if each not in wholes]
            if missing:
                waiting += [at, *missing]
            elif stage.in_columns:
                wholes[at] = stage.whole(*[wholes[each] for each in reads])
            else:
                wholes[at] = _on_rows(stage.whole, *[wholes[each] for each in reads])
        return wholes[slot]

    def stats(self) -> list[NodeStats]:
        """The work of each stage so far."""
        return [
            NodeStats(
                stage.label, stage.node.place, stage.counts.rows_in, stage.counts.rows_out,
                sum(map(rows_in, stage.containers)), stage.counts.seconds, depth,
            )
            for stage, depth in nested(self.stages)
        ]  # fmt: skip


def _on_rows(run: Callable[..., Any], *changes: Any) -> Any:
    """Call with rows, where columns are given."""
    return run(*[getattr(change, "rows", change) for change in changes])


def consolidated(change: Any) -> Any:
    """A change as an output gives it: of columns, every row once."""
    made = getattr(change, "consolidated", None)
    return change if made is None else made()
