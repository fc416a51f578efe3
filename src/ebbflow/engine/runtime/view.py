"""What the views of both engines have in common: names, subscribers, checks, and an end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, Generic, Self

from ebbflow.change.requests import LAST, DeleteKeys, Upsert
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.batches import Batch, BatchName
from ebbflow.engine.runtime.changes import addition, removal
from ebbflow.engine.runtime.clock import is_time, no_time, wall_time
from ebbflow.engine.runtime.dict_rows import is_row
from ebbflow.engine.runtime.edits import KeyedEdit
from ebbflow.engine.runtime.events import Edits
from ebbflow.engine.runtime.gate import LateRows, known_outputs, late_rows
from ebbflow.engine.runtime.lookup import asked
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
from ebbflow.engine.runtime.subscribe import Subscribers
from ebbflow.engine.runtime.tables import are_columns, holds_rows, only_table
from ebbflow.errors import CheckError, CompositionError, EbbflowError, Text
from ebbflow.flow.closing import Closings
from ebbflow.flow.plan import Plan, Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.notebook import page
from ebbflow.typevars import C
from ebbflow.zset import ZSet, trusted


class BaseView(ViewWithSinks, Generic[C]):
    """A running program: its outputs by name, who subscribes to their changes, and whether they are
    right. `only` is the output of a program that has one."""

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

    def on_change(self, callback: Callable[[C], object]) -> Callable[[], None]:
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


class OutputHandle:
    """One output of a view, to read it and to hear of it alone."""

    __slots__ = ("name", "view")

    view: Any

    def __init__(self, view: BaseView, name: str) -> None:
        self.view = view
        self.name = name

    def write_changes(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",
        permissions: int | None = None,
    ) -> Callable[[], None]:
        """Have the change of every epoch in a folder; see `write_changes` of a view."""
        end: Callable[[], None] = self.view.write_changes(
            path, self.name, format=format, permissions=permissions
        )
        return end

    def write_snapshot(
        self, path: str | os.PathLike[str], format: str = "parquet", mode: str = "overwrite"
    ) -> None:
        """Write this output as a table; see `write_snapshot` of a view."""
        self.view.write_snapshot(path, format, mode, self.name)

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of this output; see `on_change` of a view."""
        unsubscribe: Callable[[], None] = self.view._subscribe(callback, self.name)
        return unsubscribe

    def show(self, n: int = 20) -> None:
        """Print the first `n` rows as a table."""
        raise NotImplementedError

    def _html(self) -> str:
        """The first rows as HTML, or how to see them."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return page(self, {"": self._html})

    def get(self, key: Any, default: Any = None) -> Any:
        """The row that has this key, or `default`; for outputs with a key: the results of groups,
        rows of an input with a key, and what is left of them after a filter.

        >>> import ebbflow as ef
        >>> sizes = ef.Input("words", str).group_by(size=len).agg(n=ef.count())
        >>> view = sizes.run(); view.step(words=["ebb", "sea"])
        ZSet({Group(size=3, n=2): 1})
        >>> view["output"].get(3), view["output"].get(4), 3 in view["output"]
        (Group(size=3, n=2), None, True)
        """
        with self.view._lock:
            self.view._require_open()
            found = self.view._look_up(self.name, asked(key))
        return default if found is None else found

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"<output {self.name} of {self.view!r}>"


class InputHandle(Generic[C]):
    """One input of a view, to change it alone. Every call is one epoch, and gives what it changed
    in the outputs."""

    __slots__ = ("name", "view")

    view: BaseView[C]

    def __init__(self, view: BaseView[C], name: str) -> None:
        self.view = view
        self.name = name

    def get(self, key: Any, default: Any = None) -> Any:
        """The row that has this key, or `default`; for an input with a key.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str, key=len).run(); view.step(words=["ebb"])
        ZSet({'ebb': 1})
        >>> words = view.input("words")
        >>> words.get(3), words.get(4), 3 in words, len(words), words.value
        ('ebb', None, True, 1, ZSet({'ebb': 1}))
        """
        with self.view._lock, self.view._input_state(self.name) as state:
            found = state.get(key)
        return default if found is None else found

    def __contains__(self, key: Any) -> bool:
        """Whether there is a row of this key; for an input without a key, whether there is this
        row."""
        with self.view._lock, self.view._input_state(self.name) as state:
            return bool(state.has(key))

    @property
    def late(self) -> LateRows:
        """What came too late and was put aside, for an input with a lateness: how many changes of
        rows, and the last hundred.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Hit = record("Hit", page=str, at=int)
        >>> hits = ef.Input("hits", Hit, time="at", lateness=10)
        >>> view = hits.tumbling("at", 60).group_by("window_end").agg(n=ef.count()).run()
        >>> view.step(hits=[Hit("a", 50), Hit("b", 130)]), view.step(hits=[Hit("a", 55)])
        (ZSet({Group(window_end=60, n=1): 1, Group(window_end=180, n=1): 1}), ZSet({}))
        >>> view.input("hits").late
        LateRows(count=1, last=((Hit(page='a', at=55), 1),), before=120)
        """
        with self.view._lock, self.view._input_state(self.name) as state:
            return late_rows(state)

    def apply(self, change: Any) -> C:
        """Apply a change: whatever `step` takes."""
        return self.view._advance({self.name: change})

    def add(self, *rows: Any) -> C:
        """Add these rows, or those of a table."""
        if only_table(rows) is None:
            return self.view._advance({self.name: list(rows)})
        added = addition(self.view.plan.sources[self.name], rows)
        return self.view._advance({self.name: trusted(added)})

    def remove(self, *rows: Any) -> C:
        """Remove these rows, or those of a table; each must be there."""
        removed = removal(self.view.plan.sources[self.name], rows)
        return self.view._advance({self.name: trusted(removed)})

    def upsert(self, *rows: Any) -> C:
        """Put these rows in, each in place of the row that has its key; of several with the same
        key, the last. Or a table of rows, of which no two may have the same key."""
        if len(rows) == 1 and _holds_rows(self.view.plan.sources[self.name], rows[0]):
            return self.view._advance({self.name: Upsert(rows[0])})
        return self.view._advance({self.name: Upsert(rows, duplicates=LAST)})

    def set(self, time: Any) -> C:
        """Set a clock to a time; see `ebbflow.clock`."""
        if not is_time(self.view.plan.sources[self.name], time):
            raise no_time(self.view.plan.sources[self.name], time)
        return self.view._advance({self.name: time})

    def edit(self, key: Any, field: str, *changes: Any) -> C:
        """Change a field of the row that has this key from inside, by changes one after the other:
        `Insert` and `Delete` for a Text, `InsertItems`, `DeleteItems` and `ReplaceItem` for a list,
        a dict of `Put`, `Drop` and `Replace` for a dict; `Replace(value)` for any of them.

        Operators on the field follow the changes, so the cost is that of the edit.
        """
        return self.view._advance({self.name: Edits([KeyedEdit(key, field, changes)])})

    def delete(self, *keys: Any) -> C:
        """Take away the rows that have these keys; each must be there."""
        return self.view._advance({self.name: DeleteKeys(keys)})

    def __repr__(self) -> str:
        return f"<input {self.name} of {self.view!r}>"


def _holds_rows(source: Source, given: Any) -> bool:
    """Whether something holds rows, and is none itself."""
    if is_row(source, given):
        return are_columns(given)
    return isinstance(given, (list, Mapping, ZSet)) or holds_rows(given)
