"""What the views of both engines have in common: names, subscribers, checks, and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import Any, Self

from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.clock import is_time, no_time, wall_time
from ebbflow.engine.runtime.edits import KeyedEdit
from ebbflow.engine.runtime.inputs import ADD, DELETE, EDIT, REMOVE, UPSERT
from ebbflow.engine.runtime.program import NO_VERBS, RunningProgram, unknown_name
from ebbflow.engine.runtime.report import Verified, compare
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.engine.runtime.subscribe import Subscribers
from ebbflow.errors import CheckError, Text
from ebbflow.flow.plan import Plan
from ebbflow.flow.plan.time import ClockSource
from ebbflow.zset import ZSet


class BaseView:
    """A running program: its outputs by name, who subscribes to their changes, and whether they are
    right. `only` is the output of a program that has one."""

    __slots__ = ("__weakref__", "_assumed", "_lock", "_only", "_program", "_rebuilt", "_storage",
                 "_subscribers", "plan")  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = RLock()
        self._subscribers = Subscribers()
        self._only = next(iter(plan.outputs)) if len(plan.outputs) == 1 else None

    def _own(self, program: RunningProgram, storage: Any) -> None:
        """Own a program whose state is in a `Memory` or on a `Disk`."""
        self._program, self._storage = program, storage
        self._rebuilt: tuple[str, ...] = storage.rebuilt
        self._assumed: Mapping[str, tuple[str, ...]] = storage.assumed
        storage.close_with(self, self._lock)

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

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.outputs)

    def __len__(self) -> int:
        return len(self.plan.outputs)

    def _require(self, what: str, name: str, known: Mapping[str, Any]) -> None:
        """Refuse the name of an input or of an output that the program does not have."""
        self._require_not_closed()
        if name not in known:
            raise unknown_name(what, name, known)

    # ---- listening ----

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change from now on, as `step` gives it; what comes back ends
        that.

        It is called after the epoch, by the thread that stepped, in the order of epochs, and only
        when something changed. What it raises is raised by `step` after all others were called; the
        epoch stays. A callback may step the view: everybody hears of that epoch after this one.
        """
        return self._subscribe(callback, None)

    def _subscribe(self, callback: Callable[[Any], object], name: str | None) -> Callable[[], None]:
        with self._lock:
            self._require_open()
            return self._subscribers.subscribe(callback, name, self._show(name))

    # ---- clocks ----

    def tick(self, now: Any = None) -> Any:
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

    def _advance(self, given: Mapping[str, Any], verbs: Mapping[str, str] = NO_VERBS) -> Any:
        """Run an epoch: what is done to inputs by name."""
        raise NotImplementedError

    # ---- about itself ----

    @property
    def rebuilt(self) -> tuple[str, ...]:
        """What was computed again when the view was opened, because the program has changed since
        its state was written. Empty where everything was found as it is."""
        return self._rebuilt

    @property
    def assumed(self) -> dict[str, tuple[str, ...]]:
        """What could change unseen between two openings of the state, for each function the
        reasons: it holds what cannot be looked into. The option `strict` refuses it."""
        return dict(self._assumed)

    def verify(self) -> Verified:
        """Compute everything again from the rows of the inputs, in this process, and compare; an
        error where it differs."""
        with self._lock:
            self._require_open()
            trusting = [name for name, state in self._program.inputs.items() if not state.keeps]
            if trusting:
                raise CheckError(
                    "a view that keeps no input rows cannot be verified",
                    inputs=Text(", ".join(trusting)),
                    remedy="run() without check_input=False",
                )
            inputs, outputs = self._contents()
            epoch = self.epoch
        return compare(epoch, outputs, evaluate(self.plan, inputs))

    # ---- the end ----

    def close(self) -> None:
        """Stop, and let others open the state. A closed view can only be closed again."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class OutputHandle:
    """One output of a view, to read it and to hear of it alone."""

    __slots__ = ("name", "view")

    view: Any

    def __init__(self, view: BaseView, name: str) -> None:
        self.view = view
        self.name = name

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of this output; see `on_change` of a view."""
        unsubscribe: Callable[[], None] = self.view._subscribe(callback, self.name)
        return unsubscribe

    def __repr__(self) -> str:
        return f"<output {self.name} of {self.view!r}>"


class InputHandle:
    """One input of a view, to change it alone. Every call is one epoch, and gives what it changed
    in the outputs."""

    __slots__ = ("name", "view")

    view: Any

    def __init__(self, view: BaseView, name: str) -> None:
        self.view = view
        self.name = name

    def apply(self, change: Any) -> Any:
        """Apply a change: a ZSet, a mapping from row to weight, rows to add, or a table."""
        return self.view._advance({self.name: change})

    def add(self, *rows: Any) -> Any:
        """Add these rows, or those of a table."""
        return self.view._advance({self.name: rows}, {self.name: ADD})

    def remove(self, *rows: Any) -> Any:
        """Remove these rows, or those of a table; each must be there."""
        return self.view._advance({self.name: rows}, {self.name: REMOVE})

    def upsert(self, *rows: Any) -> Any:
        """Put these rows in, each in place of the row that has its key; of several with the same
        key, the last. Or the rows of a table, in which there is one of each key."""
        return self.view._advance({self.name: rows}, {self.name: UPSERT})

    def set(self, time: Any) -> Any:
        """Set a clock to a time; see `ebbflow.clock`."""
        if not is_time(self.view.plan.sources[self.name], time):
            raise no_time(self.view.plan.sources[self.name], time)
        return self.view._advance({self.name: time})

    def edit(self, key: Any, field: str, *changes: Any) -> Any:
        """Change a field of the row that has this key from inside, by changes one after the other:
        `Insert` and `Delete` for a Text, `InsertItems`, `DeleteItems` and `ReplaceItem` for a list,
        a dict of `Put`, `Drop` and `Replace` for a dict; `Replace(value)` for any of them.

        Operators on the field follow the changes, so the cost is that of the edit.
        """
        edit = KeyedEdit(key, field, changes)
        return self.view._advance({self.name: {edit: 1}}, {self.name: EDIT})

    def delete(self, *keys: Any) -> Any:
        """Take away the rows that have these keys; each must be there."""
        return self.view._advance({self.name: keys}, {self.name: DELETE})

    def __repr__(self) -> str:
        return f"<input {self.name} of {self.view!r}>"
