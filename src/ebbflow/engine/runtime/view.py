"""What the views of both engines have in common: names, subscribers, checks, and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, ClassVar, Generic, Self

from ebbflow.algebra.value import function_name, is_async
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.batches import Batch, BatchName
from ebbflow.engine.runtime.clock import wall_time
from ebbflow.engine.runtime.gate import known_outputs
from ebbflow.engine.runtime.handles import OutputHandle
from ebbflow.engine.runtime.program import RunningProgram, unknown_name
from ebbflow.engine.runtime.report import (
    NodeWork,
    StateSize,
    Verified,
    ViewMetrics,
    compare,
    stored_sizes,
)
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.engine.runtime.sinks.sink import Sinks
from ebbflow.engine.runtime.sinks.view import ViewWithSinks
from ebbflow.engine.runtime.subscribe import Subscribers, not_awaited
from ebbflow.engine.runtime.unknown import unknown_of
from ebbflow.errors import CheckError, CompositionError, EbbflowError, Text, UnknownVerb
from ebbflow.flow.closing import Closings
from ebbflow.flow.plan import Plan
from ebbflow.flow.plan.time import ClockSource
from ebbflow.names import VIEW
from ebbflow.notebook import page
from ebbflow.public import names_of
from ebbflow.typevars import C
from ebbflow.zset import ZSet


class BaseView(ViewWithSinks, Generic[C]):
    """A running program: its outputs by name, who subscribes to their changes, and whether they are
    right. `only` is the output of a program that has one."""

    _spoken, _instead = "a view", VIEW
    _zsets: ClassVar[str] = "value"
    """How the view gives its outputs as Z-sets, for errors."""

    __slots__ = ("__weakref__", "_assumed", "_converted", "_lock", "_only", "_program", "_rebuilt",
                 "_sinks", "_storage", "_subscribers", "plan")  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = RLock()
        self._subscribers = Subscribers()
        self._only = next(iter(plan.outputs)) if len(plan.outputs) == 1 else None

    def _own(self, program: RunningProgram, storage: Any) -> None:
        """Own a program whose state is in a `Memory` or on a `Disk`."""
        self._program, self._storage = program, storage
        self._rebuilt: tuple[str, ...] = storage.rebuilt
        self._converted: tuple[str, ...] = storage.converted
        self._assumed: Mapping[str, tuple[str, ...]] = storage.assumed
        self._sinks = Sinks(self, storage.files, storage.done) if storage.done else None
        storage.close_with(self, self._lock)

    def _all_sinks(self) -> Sinks:
        with self._lock:
            self._require_open()
            if self._sinks is None:
                self._sinks = Sinks(self, self._storage.files, self._storage.done)
            return self._sinks

    def _notes(self) -> Mapping[str, Any]:
        notes: Mapping[str, Any] = self._storage.extra
        return notes

    # ---- by the engine ----

    @property
    def epoch(self) -> int:
        """The number of epochs so far."""
        raise NotImplementedError

    def _require_open(self) -> None:
        """Refuse to be used when the view cannot be."""
        raise NotImplementedError

    def _require_not_closed(self) -> None:
        raise NotImplementedError

    def _show(self, name: str | None) -> Callable[[OutputDeltas], Any]:
        """What turns the changes of an epoch into what a subscriber gets: the change of an output,
        or without a name, what `step` gives."""
        raise NotImplementedError

    def _contents(self) -> tuple[dict[str, ZSet[Any]], dict[str, ZSet[Any]]]:
        """The rows of all inputs, and those of all outputs."""
        raise NotImplementedError

    # ---- names ----

    def _unknown(self, name: str) -> UnknownVerb:
        known = names_of(type(self))
        return unknown_of(self._spoken, name, self._instead, known, self.plan, zsets=self._zsets)

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.outputs)

    def __len__(self) -> int:
        return len(self.plan.outputs)

    def _require(self, what: str, name: str, known: Mapping[str, Any]) -> None:
        """Refuse the name of an input or of an output that the program does not have."""
        self._require_not_closed()
        if not isinstance(name, str) or name not in known:
            raise unknown_name(what, name, known)

    # ---- listening ----

    def on_change(self, callback: Callable[[C], object]) -> Callable[[], None]:
        """Call `callback` with every change from now on, as `step` gives it; what comes back ends
        that.

        It is called after the epoch, by the thread that stepped, in the order of epochs, and only
        when something changed. What it raises is raised by `step` after all others were called; the
        epoch stays. A callback may step the view: everybody hears of that epoch after this one.
        """
        return self._subscribe(callback, None)

    def _subscribe(self, callback: Callable[[Any], object], name: str | None) -> Callable[[], None]:
        if not callable(callback):
            raise CompositionError(
                "on_change: a callback is a function of a change, which this is not",
                given=callback,
                remedy="view.on_change(print)",
            )
        if is_async(callback):
            raise not_awaited(f"on_change({function_name(callback)})")
        with self._lock:
            self._require_open()
            return self._subscribers.subscribe(callback, name, self._show(name))

    # ---- looking up ----

    def get(self, key: Any, default: Any = None) -> Any:
        """The row of the output that has this key, for a program with one output; see `get` of an
        output."""
        if self._only is None:
            raise CompositionError(
                "get: the program has several outputs",
                outputs=Text(", ".join(self.plan.outputs)),
                remedy="view[name].get(key)",
            )
        return self[self._only].get(key, default)

    def __getitem__(self, name: str) -> OutputHandle:
        """One output, to read it and to hear of it alone."""
        raise NotImplementedError

    def _look_up(self, name: str, key: Any) -> Any:
        """The row of an output that has a key, or None."""
        raise NotImplementedError

    def _input_state(self, name: str) -> AbstractContextManager[Any]:
        """The state of an input, for the time of a question."""
        raise NotImplementedError

    # ---- clocks ----

    def tick(self, now: Any = None) -> C:
        """Set every clock of the program to a time, in one epoch; without one, to the time of this
        machine: a datetime (with a time zone where the type of the clock says so), or seconds since
        1970.

        >>> import ebbflow as ef
        >>> view = ef.Input("due", int).within(lambda due: due, ef.clock("now"), 60).run()
        >>> view.step(due=[10, 20]); view.tick(15)
        ZSet({})
        ZSet({10: 1})
        """
        clocks = [each for each in self.plan.sources.values() if isinstance(each, ClockSource)]
        if not clocks:
            raise CheckError("tick: the program has no clock", remedy="ebbflow.clock(name)")
        return self._advance(
            {each.name: wall_time(each) if now is None else now for each in clocks}
        )

    def _advance(self, given: Mapping[str, Any], batch: BatchName | None = None) -> C:
        """Run an epoch: the changes of inputs by name."""
        raise NotImplementedError

    # ---- about itself ----

    def batches(self) -> list[Batch]:
        """The batches that happened, in the order of their epochs: of those with a name the last
        `keep_batches`, and of each source the last.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).run()
        >>> view.step(words=["ebb"], batch="monday.txt")
        ZSet({'ebb': 1})
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as said:
        ...     warnings.simplefilter("always")
        ...     view.step(words=["ebb"], batch="monday.txt")
        ZSet({})
        >>> print(said[0].message)
        batch 'monday.txt' happened before, in epoch 1; nothing was changed
        >>> view.batches()
        [Batch(name='monday.txt', epoch=1)]
        """
        with self._lock:
            self._require_open()
            return self._program.batches.listed()

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """What was computed again when the view was opened, because the program has changed since
        its state was written. Empty where everything was found as it is."""
        return self._rebuilt

    @property
    def converted(self) -> tuple[str, ...]:
        """What was done to rows of inputs when the view was opened, because their types have
        changed since they were stored: one line for each such input, which is logged as well."""
        return self._converted

    @property
    def assumed(self) -> dict[str, tuple[str, ...]]:
        """What could change unseen between two openings of the state, for each function the
        reasons: it holds what cannot be looked into. The option `strict` refuses it."""
        return dict(self._assumed)

    def metrics(self) -> ViewMetrics:
        """How the view is doing: its epoch, time, the work of nodes, what it keeps, and how far its
        sinks are; for those who watch it. See `ebbflow.metrics`.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).group_by(size=len).agg(n=ef.count()).run()
        >>> _ = view.step(words=["ebb", "flow", "sea"])
        >>> now = view.metrics()
        >>> now.epoch, [(node.label, node.rows_in, node.rows_out) for node in now.nodes]
        (1, [('reduce', 3, 2)])
        >>> [(each.label, each.entries) for each in now.state]
        [('input words', 3), ('reduce', 2)]
        """
        with self._lock:
            self._require_open()
            storage, (seconds, last, nodes) = self._storage, self._work()
            store = getattr(storage, "store", None)
            info = {"files": None, "bytes": None} if store is None else store.info()
            sizes = self._sizes() if store is None else stored_sizes(info, store.notes["parts"])
            path = None if store is None else storage.place
            return ViewMetrics(
                self._named, path, self.epoch, seconds, last, tuple(nodes), sizes,
                info["files"], info["bytes"], dict(storage.done),
            )  # fmt: skip

    @property
    def _named(self) -> str:
        """What a view is called where there may be others: by its outputs."""
        return ", ".join(self.plan.outputs)

    def _work(self) -> tuple[float, float, list[NodeWork]]:
        """The seconds of all epochs, those of the last, and the work of the nodes."""
        raise NotImplementedError

    def _sizes(self) -> tuple[StateSize, ...]:
        """What is kept, where that is in memory."""
        raise NotImplementedError

    def verify(self) -> Verified:
        """Compute everything again from the rows of the inputs, in this process, and compare; an
        error where it differs. Where an input has forgotten rows that are closed, this is done of
        windows none of whose rows are; the results of the others are believed."""
        with self._lock:
            self._require_open()
            states, gates = self._program.inputs, self._program.forgetting.gates
            trusting = [n for n, state in states.items() if not state.keeps and n not in gates]
            trusting += [name for name, state in gates.items() if state.store is None]
            if trusting:
                raise CheckError(
                    "a view that keeps no input rows cannot be verified",
                    inputs=Text(", ".join(trusting)),
                    remedy="run() without check_input=False",
                )
            inputs, outputs = self._contents()
            epoch, known = self.epoch, self._known()
        computed = evaluate(self.plan, inputs)
        if known is not None:
            outputs, computed = known_outputs(self.plan, known, outputs, computed)
        return compare(epoch, outputs, computed)

    def _known(self) -> Closings | None:
        """From which time on the rows of inputs are all known that have forgotten some; None where
        none have."""
        gates = self._program.forgetting.gates
        found = {}
        for name in gates:
            with self._input_state(name) as state:
                found[name] = state.beside.forgotten
        return found if any(each is not None for each in found.values()) else None

    def show(self, n: int = 20) -> None:
        """Print the first `n` rows of the output, or of each output, as a table.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).group_by(size=len).agg(n=ef.count()).run()
        >>> _ = view.step(words=["ebb", "flow", "sea"]); view.show()
        size  n
           3  2
           4  1
        2 rows
        """
        for name in self.plan.outputs:
            if self._only is None:
                print(f"{name}:")
            self[name].show(n)

    def _repr_html_(self) -> str:
        """The view in a notebook: what `repr` says, and the first rows of its outputs."""
        try:
            self._require_open()
        except EbbflowError:
            return page(self, {})
        return page(self, {
            "" if name == self._only else name: self[name]._html for name in self.plan.outputs
        })  # fmt: skip

    # ---- the end ----

    def close(self) -> None:
        """Stop, and let others open the state. A closed view can only be closed again."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
