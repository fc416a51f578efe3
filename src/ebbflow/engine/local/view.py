"""A view: a program that is running, and its outputs as they are now.

The world of a view goes by *epochs*. An epoch takes a change of some inputs and brings all outputs
up to date, together, or it is refused and everything is as it was: `step`, and what is written with
it. Epochs come one after the other, whatever threads they come from, and nobody sees half of one.

How an epoch goes:

    the inputs prepare       each change is read and checked; nothing is changed yet
    the machine runs         it may be rolled back until
    the outputs prepare      a row that is taken back must be there
    the epoch is written     where there is a disk
    ---- from here on the epoch happens, whatever comes ----
    the machine commits, the inputs and outputs keep what they prepared
    those who listen are told

Everything below the line may be done twice, so an interrupt there finishes the epoch first. On
which side of the line an epoch is that was interrupted while it was written, the disk tells. When
the putting right is interrupted as well, whoever uses the view next does it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from threading import RLock
from time import perf_counter
from typing import Any

from ebbflow.engine.batch import evaluate
from ebbflow.engine.local.handles import InputHandle, OutputHandle
from ebbflow.engine.runtime.changes import merged
from ebbflow.engine.runtime.inputs import InputState, input_state_of
from ebbflow.engine.runtime.outputs import Executor, OutputState, may_be_negative
from ebbflow.engine.runtime.report import Verified, ViewStats, compare
from ebbflow.engine.runtime.rows import Rows, Weights
from ebbflow.engine.runtime.subscribe import Changes, Delivery, OutputDeltas, Subscribers
from ebbflow.errors import (
    CheckError,
    CompositionError,
    EbbflowError,
    Text,
    ViewClosed,
)
from ebbflow.flow.plan import Node, Plan
from ebbflow.flow.show import explain
from ebbflow.zset import ZSet, trusted

NOTHING: ZSet[Any] = ZSet()

OPEN, RUNNING, BROKEN, CLOSED = "", "running", "broken", "closed"


class View:
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
    """

    __slots__ = (
        "__weakref__",
        "_disk",
        "_end",
        "_epoch",
        "_inputs",
        "_lock",
        "_machine",
        "_only",
        "_outputs",
        "_pending",
        "_seconds",
        "_status",
        "_subscribers",
        "plan",
    )

    def __init__(
        self, plan: Plan, machine: Executor, *, check_input: bool = True, disk: Any = None
    ) -> None:
        self.plan = plan
        self._epoch = 0
        self._pending: tuple[int, list[InputState | Rows], Mapping[str, Weights]] | None = None
        self._machine = machine
        self._inputs = {
            name: input_state_of(source, check_input) for name, source in plan.sources.items()
        }
        kept = {name for name, state in self._inputs.items() if state.keeps}
        self._outputs = {
            name: OutputState(
                name, machine, negative=negative, trusting=len(kept) < len(self._inputs),
                whole=None if disk is not None else self._whole(name, kept),
            )
            for name, negative in may_be_negative(plan).items()
        }  # fmt: skip
        self._only = next(iter(plan.outputs)) if len(plan.outputs) == 1 else None
        self._subscribers = Subscribers()
        self._lock = RLock()
        self._status = OPEN
        self._seconds = 0.0
        self._disk = None if disk is None else disk(plan, machine, self._inputs, self._outputs)
        if self._disk is not None:
            self._epoch = self._disk.epoch
            self._end = self._disk.close_with(self, self._lock)

    def _whole(self, name: str, kept: set[str]) -> Callable[[], Weights] | None:
        """How the machine computes an output from what is kept; None where it cannot."""
        machine: Any = self._machine
        if not hasattr(machine, "derives") or not machine.derives(name, kept):
            return None
        rows = lambda each: dict(self._inputs[each].snapshot().items())
        return lambda: dict(machine.whole(machine.outputs[name], rows, {}))

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

    def step(self, changes: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Change some inputs, all at once, and give what that changed in the output.

        A change is a ZSet, a mapping from row to weight, or rows to add: `step(orders=[row])`, or
        `step({"orders": {row: -1}})`. With several outputs their changes come in a dict, by name.
        """
        if changes is not None:
            named = merged(changes, named) if named else changes  # type: ignore[assignment]
        return self._advance(named)

    def _advance(
        self, given: Mapping[str, Any], prepare: Callable[[Any, Any], Weights] | None = None
    ) -> Any:
        """One epoch, of what is given to each input."""
        with self._lock:
            if self._status:
                self._recover()
            started = perf_counter()
            machine, inputs, outputs = self._machine, self._inputs, self._outputs
            epoch = self._epoch + 1
            changes: dict[str, Weights] = {}
            keeping: list[InputState | Rows] = []
            try:
                self._status = RUNNING
                if self._disk is not None:
                    self._disk.require()
                for name, change in given.items():
                    state = inputs.get(name)
                    if state is None:
                        raise self._unknown("input", name, inputs)
                    delta = state.prepare(change) if prepare is None else prepare(state, change)
                    if delta:
                        changes[name] = delta
                        keeping.append(state)
                machine.begin()
                deltas = machine.run(changes)
                for name, delta in deltas.items():
                    rows = outputs[name].rows
                    if rows is not None:
                        rows.prepare(delta)
                        keeping.append(rows)
                self._pending = epoch, keeping, deltas
                if self._disk is not None:
                    self._disk.write(epoch, keeping)
                delivery = self._finish(*self._pending)
            except BaseException as error:
                self._settle(error)
                raise
            self._seconds += perf_counter() - started
        if delivery is not None:
            self._subscribers.deliver(delivery)
        only = self._only
        if only is None:
            return self._shown(deltas)
        return trusted(deltas[only]) if deltas else NOTHING

    def _finish(
        self, epoch: int, keeping: list[InputState | Rows], deltas: Mapping[str, Weights]
    ) -> Delivery | None:
        """Make an epoch so. Doing it twice is doing it once."""
        self._machine.commit()
        for each in keeping:
            each.keep()
        outputs = self._outputs
        for name in deltas:
            outputs[name].seen = None
        if self._disk is not None:
            self._disk.settle()
        subscribers = self._subscribers
        delivery = (
            subscribers.post(epoch, deltas)
            if deltas and (subscribers.callbacks or subscribers.streams)
            else None
        )
        self._epoch = epoch
        self._status = OPEN
        self._pending = None
        return delivery

    def _settle(self, error: BaseException | None = None) -> None:
        """Have an epoch that was cut short be done altogether, or not at all. Without an error, an
        earlier call of this was cut short, and how far it came is not known."""
        self._status = BROKEN
        turn, disk = self._pending, self._disk
        written = None if disk is None else disk.store.catch_up()
        if turn is not None and turn[0] > self._epoch and (written is None or written >= turn[0]):
            self._finish(*turn)
        elif disk is not None:
            disk.undo(surely=error is not None and (disk.limit is None or _is_orderly(error)))
        elif error is not None:
            self._machine.rollback()
        else:
            raise ViewClosed(
                "the view was interrupted while it put things back, and is of no use any more",
                epoch=self._epoch,
                remedy="run() a new one",
            )
        self._status = OPEN

    # ---- reading ----

    @property
    def value(self) -> Any:
        """The output as it is now, as a ZSet; with several outputs, a dict of ZSets by name, all
        of the same epoch."""
        with self._lock:
            if self._status:
                self._recover()
            if self._only is not None:
                return self._outputs[self._only].value()
            return {name: state.value() for name, state in self._outputs.items()}

    def at(self, epoch: int) -> Any:
        """The output at the end of an older epoch, as `value` gave it then.

        For views with a path, while the epoch is kept: see `keep_epochs` of `run`.
        """
        with self._lock:
            if self._status:
                self._recover()
            if self._disk is None:
                raise CompositionError(
                    "a view in memory knows its last epoch only",
                    remedy='run(path="state/", keep_epochs=10)',
                )
            if epoch == self.epoch:
                return self.value
            found = {name: trusted(rows) for name, rows in self._disk.at(epoch).items()}
        return found if self._only is None else found[self._only]

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """What was computed again when the view was opened, because the program has changed since
        its state was written. Empty where everything was found as it is."""
        return () if self._disk is None else self._disk.rebuilt

    @property
    def assumed(self) -> dict[str, tuple[str, ...]]:
        """What could change unseen between two openings of the state, for each function the
        reasons: it holds what cannot be looked into. `run(strict=True)` refuses it."""
        return {} if self._disk is None else dict(self._disk.assumed)

    def __getitem__(self, name: str) -> OutputHandle:
        if name not in self._outputs:
            raise self._unknown("output", name, self._outputs)
        return OutputHandle(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.outputs)

    def __len__(self) -> int:
        return len(self.plan.outputs)

    def input(self, name: str) -> InputHandle:
        """One input, to change it alone."""
        if name not in self._inputs:
            raise self._unknown("input", name, self._inputs)
        return InputHandle(self, self._inputs[name])

    # ---- listening ----

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of the output from now on; what comes back ends that.

        It is called after the epoch, by the thread that stepped, in the order of epochs, and only
        when something changed. What it raises is raised by `step` after all others were called; the
        epoch stays. A callback may step the view: everybody hears of that epoch after this one.
        """
        return self._subscribe(callback, None, self._shown)

    def changes(self, limit: int = 16) -> Changes:
        """Every change of the output from now on, for `async for`; it ends when the view is closed.

        At most `limit` changes wait for a slow reader. Later ones are added up into the last, so
        that none is lost, no writer is held up, and a reader who is far behind gets fewer and
        larger changes. A writer that would rather wait for room uses `astep`. A stream is a context
        manager: `with view.changes() as changes` ends it with its block.
        """
        return self._stream(limit, None, self._shown)

    async def astep(self, changes: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """`step`, after every reader of `changes()` has room for what it gives.

        It waits without holding up the event loop, and not for readers whose task has ended. Who
        reads a stream should not wait for it to have room: a reader that writes uses `step`.
        """
        await self._subscribers.room.wait(lambda: not self._subscribers.full())
        return self.step(changes, **named)

    def _subscribe(
        self,
        callback: Callable[[Any], object],
        name: str | None,
        show: Callable[[OutputDeltas], Any],
    ) -> Callable[[], None]:
        with self._lock:
            if self._status:
                self._recover()
            return self._subscribers.subscribe(callback, name, show)

    def _stream(self, limit: int, name: str | None, show: Callable[[OutputDeltas], Any]) -> Changes:
        with self._lock:
            if self._status:
                self._recover()
            return self._subscribers.stream(limit, name, show)

    # ---- about itself ----

    def verify(self) -> Verified:
        """Compute everything again from the input, and compare; an error where it differs."""
        with self._lock:
            if self._status:
                self._recover()
            trusting = [name for name, state in self._inputs.items() if not state.keeps]
            if trusting:
                raise CheckError(
                    "a view that keeps no input rows cannot be verified",
                    inputs=Text(", ".join(trusting)),
                    remedy="run() without check_input=False",
                )
            inputs = {name: state.snapshot() for name, state in self._inputs.items()}
            found = {name: state.value() for name, state in self._outputs.items()}
            epoch = self._epoch
        return compare(epoch, found, evaluate(self.plan, inputs))

    def stats(self) -> ViewStats:
        """What was done so far: for every node rows in and out, rows of state, and time."""
        with self._lock:
            if self._status:
                self._recover()
            return ViewStats(
                self.epoch,
                self._seconds,
                {name: len(each) if each.keeps else None for name, each in self._inputs.items()},
                {
                    name: None if state.rows is None else len(state.rows.rows)
                    for name, state in self._outputs.items()
                },
                tuple(self._machine.stats()),
            )

    def explain(self, format: str = "text") -> str:
        """What runs here and what it keeps, in the format text, mermaid, dot or json."""
        with self._lock:
            if self._status:
                self._recover()
            facts: dict[Node, object] = {
                state.source: f"{len(state):,} rows" if state.keeps else "trusted: not kept"
                for state in self._inputs.values()
            }
            return explain(getattr(self._machine, "plan", self.plan), format, facts=facts)

    def close(self) -> None:
        """Stop, and let go of everything. A closed view can only be closed again.

        Where epochs are still to be written and cannot be, the view stays open.
        """
        with self._lock:
            if self._status == RUNNING:
                self._recover()
            if self._disk is not None:
                self._disk.close()
                self._end.detach()
                self._disk = None
            self._status = CLOSED
            self._machine = None  # type: ignore[assignment]
            self._inputs, self._outputs = {}, {}
        self._subscribers.end()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f", {self._status}" if self._status else ""
        return f"<View of {', '.join(self.plan.outputs)}: epoch {self.epoch}{state}>"

    # ---- inside ----

    def _shown(self, deltas: OutputDeltas) -> Any:
        only = self._only
        if only is not None:
            return trusted(deltas[only]) if only in deltas else NOTHING
        return {
            name: trusted(deltas[name]) if name in deltas else NOTHING for name in self.plan.outputs
        }

    def _recover(self) -> None:
        """Refuse to be used, or put right what an interrupt has left."""
        if self._status == CLOSED:
            raise ViewClosed("the view is closed", epoch=self._epoch, remedy="run() a new one")
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
        frame = sys._getframe(2).f_back
        while frame is not None:
            if frame.f_code is View._advance.__code__ and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    def _unknown(self, what: str, name: object, known: Iterable[str]) -> EbbflowError:
        if self._status == CLOSED:
            self._recover()
        from difflib import get_close_matches

        near = get_close_matches(str(name), known, 1, 0.0) or ["a name that is there"]
        names = ", ".join(known) or "none"
        return CompositionError(
            f"the program has no {what} {name!r}",
            **{f"{what}s": Text(names)},
            remedy=near[0],
        )


def _is_orderly(error: BaseException | None) -> bool:
    """Whether an error was raised by a statement that may raise it, and not wherever it came."""
    while error is not None:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return False
        error = error.__cause__
    return True
