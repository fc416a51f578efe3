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
from ebbflow.engine.local.handles import Input, Output
from ebbflow.engine.runtime.inputs import Inlet, inlet_of, merged
from ebbflow.engine.runtime.outputs import Machine, Outlet, may_be_negative
from ebbflow.engine.runtime.python import code_of
from ebbflow.engine.runtime.report import Stats, Verified, compare
from ebbflow.engine.runtime.rows import Rows, Weights
from ebbflow.engine.runtime.subscribe import Changes, Hub, Letter, Moved
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
        "_barred",
        "_disk",
        "_end",
        "_epoch",
        "_hub",
        "_inlets",
        "_lock",
        "_machine",
        "_only",
        "_outlets",
        "_seconds",
        "_turn",
        "plan",
    )

    def __init__(
        self, plan: Plan, machine: Machine, *, check_input: bool = True, disk: Any = None
    ) -> None:
        self.plan = plan
        self._epoch = 0
        self._turn: tuple[int, list[Inlet | Rows], Mapping[str, Weights]] | None = None
        self._machine = machine
        self._inlets = {
            name: inlet_of(source, check_input) for name, source in plan.sources.items()
        }
        kept = {name for name, inlet in self._inlets.items() if inlet.keeps}
        self._outlets = {
            name: Outlet(
                name, machine, negative=negative, trusting=len(kept) < len(self._inlets),
                whole=None if disk is not None else self._whole(name, kept),
            )
            for name, negative in may_be_negative(plan).items()
        }  # fmt: skip
        self._only = next(iter(plan.outputs)) if len(plan.outputs) == 1 else None
        self._hub = Hub()
        self._lock = RLock()
        self._barred = OPEN
        self._seconds = 0.0
        self._disk = None if disk is None else disk(plan, machine, self._inlets, self._outlets)
        if self._disk is not None:
            self._epoch = self._disk.epoch
            self._end = self._disk.close_with(self, self._lock)

    def _whole(self, name: str, kept: set[str]) -> Callable[[], Weights] | None:
        """How the machine computes an output from what is kept; None where it cannot."""
        machine: Any = self._machine
        if not hasattr(machine, "derives") or not machine.derives(name, kept):
            return None
        rows = lambda each: dict(self._inlets[each].snapshot().items())
        return lambda: dict(machine.whole(machine.outputs[name], rows, {}))

    # ---- one epoch ----

    @property
    def epoch(self) -> int:
        """The number of epochs so far. After an interrupt it tells whether the epoch happened."""
        if self._barred in (RUNNING, BROKEN) and self._lock.acquire(blocking=False):
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
            if self._barred:
                self._refuse()
            started = perf_counter()
            machine, inlets, outlets = self._machine, self._inlets, self._outlets
            epoch = self._epoch + 1
            changes: dict[str, Weights] = {}
            keeping: list[Inlet | Rows] = []
            try:
                self._barred = RUNNING
                if self._disk is not None:
                    self._disk.require()
                for name, change in given.items():
                    inlet = inlets.get(name)
                    if inlet is None:
                        raise self._unknown("input", name, inlets)
                    delta = inlet.prepare(change) if prepare is None else prepare(inlet, change)
                    if delta:
                        changes[name] = delta
                        keeping.append(inlet)
                machine.begin()
                moved = machine.run(changes)
                for name, delta in moved.items():
                    rows = outlets[name].rows
                    if rows is not None:
                        rows.prepare(delta)
                        keeping.append(rows)
                self._turn = epoch, keeping, moved
                if self._disk is not None:
                    self._disk.write(epoch, keeping)
                letter = self._finish(*self._turn)
            except BaseException as error:
                self._settle(error)
                raise
            self._seconds += perf_counter() - started
        if letter is not None:
            self._hub.deliver(letter)
        only = self._only
        if only is None:
            return self._shown(moved)
        return trusted(moved[only]) if moved else NOTHING

    def _finish(
        self, epoch: int, keeping: list[Inlet | Rows], moved: Mapping[str, Weights]
    ) -> Letter | None:
        """Make an epoch so. Doing it twice is doing it once."""
        self._machine.commit()
        for each in keeping:
            each.keep()
        outlets = self._outlets
        for name in moved:
            outlets[name].seen = None
        if self._disk is not None:
            self._disk.settle()
        hub = self._hub
        letter = hub.post(epoch, moved) if moved and (hub.callbacks or hub.streams) else None
        self._epoch = epoch
        self._barred = OPEN
        self._turn = None
        return letter

    def _settle(self, error: BaseException | None = None) -> None:
        """Have an epoch that was cut short be done altogether, or not at all. Without an error, an
        earlier call of this was cut short, and how far it came is not known."""
        self._barred = BROKEN
        turn, disk = self._turn, self._disk
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
        self._barred = OPEN

    # ---- reading ----

    @property
    def value(self) -> Any:
        """The output as it is now, as a ZSet; with several outputs, a dict of ZSets by name, all
        of the same epoch."""
        with self._lock:
            if self._barred:
                self._refuse()
            if self._only is not None:
                return self._outlets[self._only].value()
            return {name: outlet.value() for name, outlet in self._outlets.items()}

    def at(self, epoch: int) -> Any:
        """The output at the end of an older epoch, as `value` gave it then.

        For views with a path, while the epoch is kept: see `keep_epochs` of `run`.
        """
        with self._lock:
            if self._barred:
                self._refuse()
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

    def __getitem__(self, name: str) -> Output:
        if name not in self._outlets:
            raise self._unknown("output", name, self._outlets)
        return Output(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.outputs)

    def __len__(self) -> int:
        return len(self.plan.outputs)

    def input(self, name: str) -> Input:
        """One input, to change it alone."""
        if name not in self._inlets:
            raise self._unknown("input", name, self._inlets)
        return Input(self, self._inlets[name])

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
        await self._hub.room.wait(lambda: not self._hub.full())
        return self.step(changes, **named)

    def _subscribe(
        self, callback: Callable[[Any], object], name: str | None, show: Callable[[Moved], Any]
    ) -> Callable[[], None]:
        with self._lock:
            if self._barred:
                self._refuse()
            return self._hub.subscribe(callback, name, show)

    def _stream(self, limit: int, name: str | None, show: Callable[[Moved], Any]) -> Changes:
        with self._lock:
            if self._barred:
                self._refuse()
            return self._hub.stream(limit, name, show)

    # ---- about itself ----

    def verify(self) -> Verified:
        """Compute everything again from the input, and compare; an error where it differs."""
        with self._lock:
            if self._barred:
                self._refuse()
            trusting = [name for name, inlet in self._inlets.items() if not inlet.keeps]
            if trusting:
                raise CheckError(
                    "a view that keeps no input rows cannot be verified",
                    inputs=Text(", ".join(trusting)),
                    remedy="run() without check_input=False",
                )
            inputs = {name: inlet.snapshot() for name, inlet in self._inlets.items()}
            found = {name: outlet.value() for name, outlet in self._outlets.items()}
            epoch = self._epoch
        return compare(epoch, found, evaluate(self.plan, inputs))

    def stats(self) -> Stats:
        """What was done so far: for every node rows in and out, rows of state, and time."""
        with self._lock:
            if self._barred:
                self._refuse()
            return Stats(
                self.epoch,
                self._seconds,
                {name: len(each) if each.keeps else None for name, each in self._inlets.items()},
                {
                    name: None if outlet.rows is None else len(outlet.rows.rows)
                    for name, outlet in self._outlets.items()
                },
                tuple(self._machine.stats()),
            )

    def explain(self, format: str = "text") -> str:
        """What runs here and what it keeps, in the format text, mermaid, dot, json or python."""
        with self._lock:
            if self._barred:
                self._refuse()
            facts: dict[Node, object] = {
                inlet.source: f"{len(inlet):,} rows" if inlet.keeps else "trusted: not kept"
                for inlet in self._inlets.values()
            }
            plan = getattr(self._machine, "plan", self.plan)
            stages = getattr(self._machine, "stages", ()) if format == "python" else ()
            code = code_of(stages, stored=self._disk is not None)
            return explain(plan, format, facts=facts, code=code)

    def close(self) -> None:
        """Stop, and let go of everything. A closed view can only be closed again.

        Where epochs are still to be written and cannot be, the view stays open.
        """
        with self._lock:
            if self._barred == RUNNING:
                self._refuse()
            if self._disk is not None:
                self._disk.close()
                self._end.detach()
                self._disk = None
            self._barred = CLOSED
            self._machine = None  # type: ignore[assignment]
            self._inlets, self._outlets = {}, {}
        self._hub.end()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f", {self._barred}" if self._barred else ""
        return f"<View of {', '.join(self.plan.outputs)}: epoch {self.epoch}{state}>"

    # ---- inside ----

    def _shown(self, moved: Moved) -> Any:
        only = self._only
        if only is not None:
            return trusted(moved[only]) if only in moved else NOTHING
        return {
            name: trusted(moved[name]) if name in moved else NOTHING for name in self.plan.outputs
        }

    def _refuse(self) -> None:
        """Refuse to be used, or put right what an interrupt has left."""
        if self._barred == CLOSED:
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
        if self._barred == CLOSED:
            self._refuse()
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
