"""What a view of any engine does for its sinks: `write_changes`, `each_epoch`, `add_sink`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from ebbflow.algebra.value import function_name, is_async
from ebbflow.engine.runtime.subscribe import not_awaited
from ebbflow.errors import CompositionError
from ebbflow.flow.plan import Plan
from ebbflow.public import Public

if TYPE_CHECKING:
    from ebbflow.engine.runtime.sinks.folder import PathLike
    from ebbflow.engine.runtime.sinks.sink import Entry, Sink, Sinks
    from ebbflow.engine.runtime.subscribe import Delivery, Subscribers


class ViewWithSinks(Public):
    """The part of a view that has to do with sinks."""

    __slots__ = ()

    plan: Plan
    _lock: RLock
    _sinks: Sinks | None
    _subscribers: Subscribers

    # ---- by the engine ----

    def _require_open(self) -> None:
        raise NotImplementedError

    def _require(self, what: str, name: str, known: Any) -> None:
        raise NotImplementedError

    def _all_sinks(self) -> Sinks:
        """The sinks of this view; made when the first one is asked for."""
        raise NotImplementedError

    def _safe(self) -> int:
        """The last epoch that sinks may be told of: whatever comes, it has happened."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Have all epochs safe."""

    def _logged(self) -> list[int]:
        """The epochs whose changes are kept, in order."""
        raise NotImplementedError

    def _entry(self, epoch: int) -> Entry | None:
        """What an epoch changed; None where that is not kept."""
        raise NotImplementedError

    def _changes(self, epoch: int, entry: Entry) -> Any:
        """What an epoch changed, as `step` gave it."""
        raise NotImplementedError

    def _everything(self) -> Any:
        """The outputs as they are, as a change that made them of nothing."""
        raise NotImplementedError

    def _whole_entry(self) -> Entry:
        """All rows of the outputs, as the entry of an epoch that inserts them."""
        raise NotImplementedError

    def _notes(self) -> Mapping[str, Any]:
        """What the state notes for sinks: the changes of the program that cannot be given."""
        raise NotImplementedError

    def _write_change(self, name: str, epoch: int, entry: Entry, folder: Path, format: str) -> None:
        """Write what an epoch changed in an output into files in a folder."""
        raise NotImplementedError

    def _permissions(self) -> int:
        """The permissions of the folder of the state; of a view in memory, those for one owner."""
        raise NotImplementedError

    def _catch_up(self) -> Delivery | None:
        """Have all epochs safe, and give what callbacks have not been told of."""
        raise NotImplementedError

    # ---- for the user ----

    def write_changes(
        self,
        path: PathLike,
        *,
        format: str = "parquet",
        output: str | None = None,
        permissions: int | None = None,
    ) -> Callable[[], None]:
        """Have the change of every epoch in `path/epoch=<n>`, from now on, exactly once: files with
        the columns of a row and `__weight`, as "parquet", "csv" or "jsonl". What comes back ends
        it.

        The whole folder is one table with a column `epoch`, to all that read partitioned folders.
        Several outputs have a folder each, `path/<output>/epoch=<n>`. A folder that has epochs
        already goes on after them, and gets those it has missed. Who may read it is as with the
        state, unless there are `permissions`, such as 0o750 for a group.
        """
        from ebbflow.engine.runtime.sinks.folder import allowed, folder_sink

        self._require_open()
        names = self._outputs(output)
        apart = output is None and len(names) > 1
        mode = allowed(permissions, self._permissions())
        return self._all_sinks().add(folder_sink(self.plan, path, names, apart, format, mode))

    def each_epoch(
        self, function: Callable[[Any, int], object], name: str | None = None
    ) -> Callable[[], None]:
        """Call `function(change, epoch)` after every epoch from now on, with what `step` gives.
        What comes back ends it.

        Which epochs it has finished is remembered in the state under `name`, its own when there is
        none: opened again, it goes on after them, so none is left out and the last may come twice.
        A view in memory remembers for as long as it lives.
        """
        from ebbflow.engine.runtime.sinks.sink import FunctionSink, name_of

        if not callable(function) or not isinstance(name, str | None):
            raise CompositionError(
                "each_epoch: a function of a change and an epoch is wanted, and a text as its name",
                given=name if callable(function) else function,
                remedy='each_epoch(lambda change, epoch: print(epoch, change), name="printer")',
            )
        if is_async(function):
            raise not_awaited(f"each_epoch({function_name(function)})")
        return self._all_sinks().add(FunctionSink(function, name or name_of(function)))

    def add_sink(self, sink: Sink) -> Callable[[], None]:
        """Give every epoch to a sink from now on, by `sink.publish(epoch, change)`, and what it has
        missed at once; see `ebbflow.Sink`. What comes back ends it."""
        from ebbflow.engine.runtime.sinks.sink import Sink

        if not isinstance(sink, Sink):
            raise CompositionError(
                f"add_sink({sink!r}): that is not a sink",
                remedy="a subclass of ebbflow.Sink, or each_epoch(function)",
            )
        for method in ("publish", "begin", "restart", "had", "close"):
            if is_async(getattr(sink, method)):
                raise not_awaited(f"add_sink({sink!r}): {method}")
        return self._all_sinks().add(sink)

    def deliver(self) -> None:
        """Give to all sinks what they have not had, as after a failure; else every step does."""
        with self._lock:
            self._require_open()
            delivery = self._catch_up()
        self._deliver(delivery)

    def _deliver(self, delivery: Delivery | None) -> None:
        try:
            if self._sinks is not None:
                self._sinks.deliver()
        finally:
            if delivery is not None:
                self._subscribers.deliver(delivery)

    @property
    def sinks(self) -> dict[str, int]:
        """The last epoch that each sink has had, by name; also those of earlier runs."""
        return {} if self._sinks is None else dict(self._sinks.done)

    def restart_sink(self, name: str) -> None:
        """Begin a sink again: replace the rows of its target by the rows of the output. The view
        does so at once if the sink was added in this run, else when it is added.

        Use it for a sink that cannot go on after a change of the program, and after an edit of the
        target. `docs/howto/sinks.md` has its effect for each kind of sink.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).run()
        >>> end = view.each_epoch(lambda change, epoch: print(epoch, change), name="print")
        >>> _ = view.step(words=["ebb"]); _ = view.step(words=["flow"])
        1 ZSet({'ebb': 1})
        2 ZSet({'flow': 1})
        >>> view.restart_sink("print")
        2 ZSet({'ebb': 1, 'flow': 1})
        """
        self._all_sinks().restart(name)

    def end_sink(self, name: str) -> None:
        """Keep nothing for a sink any more. For one of this run, what made it gave this too."""
        self._all_sinks().end(name)

    def _outputs(self, output: str | None) -> list[str]:
        if output is not None:
            self._require("output", output, self.plan.outputs)
        return list(self.plan.outputs) if output is None else [output]
