"""A view: a program that is running, and its outputs as they are now.

The world of a view goes by *epochs*. An epoch takes a change of some inputs and brings all outputs
up to date, together, or it is refused and everything is as it was: `step`, and what is written with
it. Epochs come one after the other, whatever threads they come from, and nobody sees half of one.

How an epoch goes:

    the inputs prepare       each change is read and checked; nothing is changed yet
    the machine runs         it may be rolled back until
    the outputs prepare      a row that is taken back must be there
    the epoch is written     where the state is on disk
    ---- from here on the epoch happens, whatever comes ----
    the machine commits, the inputs and outputs keep what they prepared
    subscribers are told

Everything below the line may be done twice, so an interrupt there finishes the epoch first. On
which side of the line an epoch is that was interrupted while it was written, the disk tells. When
the putting right is interrupted as well, whoever uses the view next does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from logging import DEBUG, INFO
from time import perf_counter
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Never, overload

from ebbflow.engine.local.handles import LocalInput, LocalOutput
from ebbflow.engine.local.publishing import PublishingView
from ebbflow.engine.local.report import explained, sizes_of, stats_of
from ebbflow.engine.runtime.batches import BatchName
from ebbflow.engine.runtime.callers import under_way
from ebbflow.engine.runtime.changes import merged, one_mapping
from ebbflow.engine.runtime.gc_paused import Freezer
from ebbflow.engine.runtime.inputs import InputState, input_state_of
from ebbflow.engine.runtime.lookup import OutputByKey, in_state, required_key
from ebbflow.engine.runtime.loop_again import read_entering
from ebbflow.engine.runtime.program import Memory, Pending, RunningProgram, computed_outputs
from ebbflow.engine.runtime.report import LOG, EpochStats, NodeWork, StateSize, ViewStats
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.engine.runtime.subscribe import Delivery
from ebbflow.errors import CompositionError, EbbflowError, ViewClosed
from ebbflow.flow.plan import Plan
from ebbflow.notebook import Outputs
from ebbflow.typevars import T, U, W
from ebbflow.zset import ZSet, from_view

if TYPE_CHECKING:
    from ebbflow.engine.local.branch import Branch

OPEN, RUNNING, BROKEN, CLOSED = "", "running", "broken", "closed"


class View(PublishingView[T, W]):
    """A running program; see the module. Made by `run`.

    >>> from ebbflow.flow.plan import Plan, Source
    >>> from ebbflow.engine.local import run
    >>> view = run(Plan({"words": Source(name="said")}))
    >>> view.step(said=["ebb", "flow"])
    ZSet({'ebb': 1, 'flow': 1})
    >>> view.input("said").remove("ebb")
    ZSet({'ebb': -1})
    >>> view.value, view.epoch
    (ZSet({'flow': 1}), 2)

    For a type checker it is a `View[T]`, where `step`, `value` and the others give a `ZSet[T]`; the
    view of a program of several outputs, where they give dicts, is a `View[Any, dict[str, ZSet]]`.
    """

    __slots__ = ("_by_key", "_freezer", "_level", "_seconds", "_status", "_took")

    if TYPE_CHECKING:

        @overload
        def get(self, key: Any, default: None = None) -> T | None: ...
        @overload
        def get(self, key: Any, default: U) -> T | U: ...
        def get(self, key: Any, default: Any = None) -> Any: ...

    else:  # at run time a type variable has no default, and View[Order] is enough

        def __class_getitem__(cls, types: Any) -> GenericAlias:
            return GenericAlias(cls, types)

    def __init__(
        self,
        plan: Plan,
        machine: Any,
        *,
        check_input: bool = True,
        storage: Callable[[RunningProgram], Any] = Memory,
        freezer: Freezer | None = None,
    ) -> None:
        if not isinstance(plan, Plan):
            raise CompositionError(
                "View(...): run() makes views", given=plan, remedy="view = collection.run()"
            )
        super().__init__(plan)
        inputs = {
            name: input_state_of(source, check_input) for name, source in plan.sources.items()
        }
        computed = computed_outputs(plan, machine, inputs) if storage is Memory else {}
        program = RunningProgram(plan, machine, inputs, computed)
        read_entering(machine, inputs, lambda: program.changes)
        self._own(program, storage(program))
        self._freezer = freezer
        if freezer is not None:
            freezer.until(self)
        self._epoch = self._storage.epoch
        self._origins = {name: (node.type, True) for name, node in plan.outputs.items()}
        self._status = OPEN
        self._seconds = self._took = 0.0
        self._level = DEBUG if storage is Memory else INFO
        """At which level epochs are logged."""
        self._by_key: dict[str, OutputByKey] = {}

    # ---- one epoch ----

    @property
    def epoch(self) -> int:
        """The number of epochs so far. After an interrupt it tells whether the epoch happened."""
        if self._status in (RUNNING, BROKEN) and self._lock.acquire(blocking=False):
            try:
                if not self._in_epoch():
                    with suppress(ViewClosed):
                        self._settle()
            finally:
                self._lock.release()
        return self._epoch

    def step(
        self, changes: Mapping[str, Any] | None = None, /, *more: Never,
        batch: BatchName | None = None, **named: Any,
    ) -> W:  # fmt: skip
        """Change some inputs, all at once, and give what that changed in the output.

        A change is a ZSet, a mapping from row to weight, or rows to add: `step(orders=[row])`, or
        `step({"orders": {row: -1}})`; or a table of pandas, Polars, Arrow, NumPy or a dict of
        columns: `step(orders={"id": [1, 2], "city": ["Rome", "Oslo"]})`, perhaps with a column of
        weights; or a request, such as `step(orders=ebbflow.upsert(rows))`. With several outputs
        their changes come in a dict, by name.

        With the name of a `batch`, or a source and a number that grows, it happens once: the same
        batch again changes nothing, and warns. See `batches`.
        """
        if more:
            raise one_mapping(more)
        if changes is not None:
            plain = type(changes) is dict and not named
            named = changes if plain else merged(changes, named)  # type: ignore[assignment]
        return self._advance(named, batch=batch)

    async def astep(
        self, changes: Mapping[str, Any] | None = None, /, *, batch: BatchName | None = None,
        **named: Any,
    ) -> W:  # fmt: skip
        """`step`, after every reader of `changes()` has room for what it gives.

        It waits without holding up the event loop, and not for readers whose task has ended. Who
        reads a stream should not wait for it to have room: a reader that writes uses `step`.
        """
        await self._subscribers.room.wait(lambda: not self._subscribers.full())
        return self.step(changes, batch=batch, **named)

    def _advance(self, given: Mapping[str, Any], batch: BatchName | None = None) -> W:
        with self._lock:
            if self._status:
                self._recover()
            if batch is not None and self._program.batches.repeated(batch):
                return self._shown({})
            started = perf_counter()
            epoch = self._epoch + 1
            try:
                self._status = RUNNING
                deltas: OutputDeltas = self._storage.advance(epoch, given, batch)
                delivery = self._finish(self._program.pending)
            except BaseException as error:
                self._settle(error)
                raise
            self._took = took = perf_counter() - started
            self._seconds += took
            record = self._record(deltas) if LOG.isEnabledFor(self._level) else None
            self._program.changes = {}  # whoever gave them may let go of them
        if record is not None:
            record()
        if self._sinks is not None:
            self._deliver(delivery)
        elif delivery is not None:
            self._subscribers.deliver(delivery)
        only = self._only
        if only is None:
            return self._shown(deltas)
        found: W = from_view(deltas[only] if deltas else {}, self._origins[only])  # type: ignore[assignment]
        return found

    def _record(self, deltas: OutputDeltas) -> Callable[[], None]:
        """What tells the logger of the last epoch, when nobody is held up by that."""
        given = sum(map(len, self._program.changes.values()))
        changed = {name: len(deltas.get(name, ())) for name in self.plan.outputs}
        ended = EpochStats(self._epoch, "local", given, changed, self._took)
        return partial(ended.log, self._level, self._named, getattr(self._storage, "place", None))

    def _finish(self, pending: Pending | None) -> Delivery | None:
        """Make an epoch so. Doing it twice is doing it once."""
        assert pending is not None
        self._storage.keep(pending)
        epoch, _, deltas = pending
        subscribers = self._subscribers
        delivery = None
        if deltas and (subscribers.callbacks or subscribers.streams):
            delivery = subscribers.post(epoch, deltas)
        if self._sinks is not None:
            self._storage.remember(epoch, deltas)
        self._epoch = epoch
        self._status = OPEN
        self._program.pending = None
        return delivery

    def _settle(self, error: BaseException | None = None) -> None:
        """Have an epoch that was cut short be done altogether, or not at all. Without an error, an
        earlier call of this was cut short, and how far it came is not known."""
        self._status = BROKEN
        pending, storage = self._program.pending, self._storage
        if pending is not None and pending[0] > self._epoch and storage.happened(pending):
            self._finish(pending)
        else:
            storage.undo(error, self._epoch)
        self._status = OPEN

    # ---- reading ----

    @property
    def value(self) -> W:
        """The output as it is now, as a ZSet; with several outputs, a dict of ZSets by name, all
        of the same epoch."""
        with self._lock:
            if self._status:
                self._recover()
            outputs = self._program.outputs
            if self._only is not None:
                return outputs[self._only].value()  # type: ignore[return-value]
            return Outputs({name: each.value() for name, each in outputs.items()})  # type: ignore[return-value]

    def _everything(self) -> W:
        return self.value

    def at(self, epoch: int) -> W:
        """The output at the end of an older epoch, as `value` gave it then.

        For views with a path, while the epoch is kept: see `keep_epochs` of `run`.
        """
        with self._lock:
            self._require_open()
            found = self._storage.at(epoch)
        value: Any = Outputs(found) if self._only is None else found[self._only]
        return value  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> LocalOutput:
        self._require("output", name, self.plan.outputs)
        return LocalOutput(self, name)

    def input(self, name: str) -> LocalInput[W]:
        """One input, to read it and to change it alone."""
        self._require("input", name, self.plan.sources)
        return LocalInput(self, name)

    def _look_up(self, name: str, key: Any) -> Any:
        program = self._program
        required_key(program, name)
        read, row = in_state(program, name, key)
        if read:
            return row
        if name not in self._by_key:
            self._by_key[name] = OutputByKey(program, name)
        return self._by_key[name].rows.get(key)

    @contextmanager
    def _input_state(self, name: str) -> Iterator[InputState]:
        self._require_open()
        yield self._program.inputs[name]

    def branch(self) -> Branch[T, W]:
        """A copy of this view as it is now, to try something out on: see what a change would do,
        `compare()`, and `close()` it or `adopt()` it.

        It shares the state of this view until either changes it, key by key; so it costs what is
        changed, not what is there. It is in memory, also when this view is on disk.

        >>> import ebbflow as ef
        >>> total = ef.Input("prices", int).agg(total=ef.sum())
        >>> view = total.run(); view.step(prices=[10, 20])
        ZSet({Group(total=30): 1})
        >>> with view.branch() as what_if:
        ...     what_if.step(prices=[5])
        ZSet({Group(total=30): -1, Group(total=35): 1})
        >>> view.value
        ZSet({Group(total=30): 1})
        """
        from ebbflow.engine.local.branch import Branch

        with self._lock:
            self._require_open()
            return Branch(self)

    # ---- about itself ----

    def stats(self) -> ViewStats:
        """What was done so far: for every node rows in and out, rows of state, and time."""
        with self._lock:
            self._require_open()
            return stats_of(self._program, self._epoch, self._seconds)

    def _work(self) -> tuple[float, float, list[NodeWork]]:
        nodes = [
            NodeWork(each.label, str(each.place), each.rows_in, each.rows_out, each.seconds)
            for each in self._program.machine.stats()
        ]
        return self._seconds, self._took, nodes

    def _sizes(self) -> tuple[StateSize, ...]:
        return sizes_of(self.stats())

    def explain(self, format: str = "text") -> str:
        """What runs here and what it keeps, in the format text, mermaid, dot, json or python."""
        with self._lock:
            self._require_open()
            stored = type(self._storage) is not Memory
            return explained(self._program, format, self.converted, stored)

    def close(self) -> None:
        """Stop, and let go of everything. A closed view can only be closed again.

        Where epochs are still to be written and cannot be, the view stays open. Sinks get what they
        have not had for want of writing.
        """
        try:
            if self._sinks is not None and self._status != CLOSED and self._safe() < self._epoch:
                self.deliver()
        finally:
            self._stop()
            if self._sinks is not None:
                self._sinks.close()

    def _stop(self) -> None:
        with self._lock:
            if self._status == RUNNING:
                self._recover()
            if self._status != CLOSED:
                self._storage.close()
            self._status = CLOSED
            if self._freezer is not None:
                self._freezer.close()
            self._program = self._storage = None  # type: ignore[assignment]
        self._subscribers.end()

    def __repr__(self) -> str:
        state = f", {self._status}" if self._status else ""
        return f"<View of {', '.join(self.plan.outputs)}: epoch {self.epoch}{state}>"

    # ---- inside ----

    def _contents(self) -> tuple[dict[str, ZSet[Any]], dict[str, ZSet[Any]]]:
        inputs, outputs = self._program.inputs, self._program.outputs
        return (
            {name: state.snapshot() for name, state in inputs.items()},
            {name: output.value() for name, output in outputs.items()},
        )

    def _require_open(self) -> None:
        if self._status:
            self._recover()

    def _require_not_closed(self) -> None:
        if self._status == CLOSED:
            raise ViewClosed("the view is closed", epoch=self._epoch, remedy="run() a new one")

    def _recover(self) -> None:
        """Refuse to be used, or put right what an interrupt has left."""
        self._require_not_closed()
        if self._in_epoch():
            raise EbbflowError(
                "the view was used by a function of its own program, in the middle of an epoch",
                epoch=self._epoch,
                remedy="let functions depend on their row alone; join with what else they need",
            )
        self._settle()

    def _in_epoch(self) -> bool:
        """Whether an epoch of this view is under way in those who call, and not just left so by an
        interrupt. Asked by the one who has the lock, in a method of this view."""
        return under_way(View._advance, self, skip=2)
