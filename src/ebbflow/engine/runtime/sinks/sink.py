"""Sinks: who gets the changes of a view, epoch by epoch, also after a crash.

A *sink* has a name, and has had the changes of all epochs up to one. Where the view has a path,
that number is in a small file beside its state. After every epoch each sink is given what it has
not had yet, in order. What a sink has not had is kept for it, also while the view is closed, until
it has, or is ended:

    a folder       each epoch is there as a whole, or not; so it has every epoch exactly once
    a `Sink`       is given an epoch again when a crash came after `publish` and before that was
                   noted; one that can ask its target for the last epoch, in `had`, is exactly once
    a function     is called again for an epoch that it did not finish: at least once, and with the
                   number of the epoch, by which the other side can tell

A sink is only given epochs that are safe: where a view writes every tenth epoch (`flush_every`), it
gets ten at a time. A sink that fails leaves the epoch as it is. The error comes out of `step`, all
the same; the next step tries again, and so does `deliver`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.callers import under_way
from ebbflow.engine.runtime.sinks.gaps import gap_facts, last_gap
from ebbflow.engine.runtime.subscribe import answered
from ebbflow.errors import CompositionError, SinkError, Text, value_text
from ebbflow.paths import file_name

if TYPE_CHECKING:
    from ebbflow.engine.runtime.sinks.view import ViewWithSinks
    from ebbflow.state.spine import Files

_log = logging.getLogger("ebbflow")
LATE = 100
"""So many epochs behind, a sink is warned of."""
Entry = Mapping[str, Any]
"""What an epoch changed, as an engine keeps it for sinks."""


class Sink:
    """Somebody who gets every epoch: to be subclassed, and given to `view.add_sink`.

    >>> import ebbflow as ef
    >>> class Printer(ef.Sink):
    ...     def publish(self, epoch, change):
    ...         print(epoch, change)
    >>> view = ef.Input("words", str).run()
    >>> end = view.add_sink(Printer())
    >>> _ = view.step(words=["ebb"]); _ = view.step(); end()
    1 ZSet({'ebb': 1})
    2 ZSet({})
    """

    name = ""
    """What the sink is called where its epochs are noted; that of the class, unless it has one."""
    outputs: Collection[str] | None = None
    """The outputs that it receives; None for all."""

    def publish(self, epoch: int, change: Any) -> None:
        """Take what an epoch changed: what `step` gave. When this returns, the sink has had it."""
        raise NotImplementedError

    def attach(self, view: ViewWithSinks) -> None:
        """Be shown the view when it is added to one: the place to refuse what does not fit."""

    def begin(self, epoch: int, value: Any) -> None:
        """Take all that there is at an epoch, with its weights, as if nothing had been before: when
        `had` gave None. When this returns, the sink has had all epochs up to this one."""
        self.publish(epoch, value)

    def restart(self, epoch: int, value: Any) -> None:
        """Replace all rows of the target by the rows at an epoch, with their weights. The view
        calls it after `view.restart_sink`, and again after a crash, perhaps for a later epoch.
        """
        name = self.name or type(self).__name__
        raise SinkError(
            f"the sink {name!r} cannot begin again: it has no `restart`",
            epoch=epoch,
            remedy="def restart(self, epoch, value), which replaces the rows of the target; or "
            "view.end_sink(name), and a target that is empty",
        )

    def had(self, known: int | None, first: int, last: int) -> int | None:
        """The last epoch this sink has had: `known`, where that was noted; a new one begins after
        the `last` epoch, and could begin with the `first` whose change is kept. None: it has had
        nothing, and is to begin with everything that is there (`begin`).

        Where the target itself can say, as from a table in which `publish` writes the number of the
        epoch in the same transaction, that is the better answer: then no epoch comes twice.
        """
        return last if known is None else known

    def close(self) -> None:
        """Let go of what is held: the view is closed, or the sink has ended."""

    def give(self, view: ViewWithSinks, epoch: int, entry: Entry) -> None:
        """What an epoch changed. To be given it twice must do no harm, or be what one can bear."""
        self.publish(epoch, view._changes(epoch, entry))

    def give_all(self, view: ViewWithSinks, epoch: int) -> None:
        """All that there is at an epoch, for `restart`. To be given it twice must do no harm."""
        self.restart(epoch, view._everything())


class FunctionSink(Sink):
    """A function of the user's. Begun again, it is called with everything, as one change."""

    def __init__(self, function: Callable[[Any, int], object], name: str) -> None:
        self.function, self.name = function, name

    def publish(self, epoch: int, change: Any) -> None:
        answered(f"each_epoch({self.name})", self.function(change, epoch))

    def restart(self, epoch: int, value: Any) -> None:
        self.publish(epoch, value)


def name_of(function: Any) -> str:
    """The name of a function, for a sink that was given none.

    >>> name_of(spans)
    'spans'
    """
    name = getattr(function, "__name__", "<")
    if name.startswith("<"):
        raise CompositionError(
            "each_epoch: a function without a name", remedy='each_epoch(function, name="...")'
        )
    return str(name)


class Sinks:
    """All sinks of a view, and those of earlier runs, which are noted among its `files`; a view in
    memory has none."""

    def __init__(self, view: ViewWithSinks, files: Files | None, done: dict[str, int]) -> None:
        self.view, self.files, self.done = view, files, done
        self.active: dict[str, Sink] = {}
        self.restarting: set[str] = set() if files is None else restarting(files)
        """The sinks that begin again with everything, before they are given anything else."""
        self._lock = RLock()

    def add(self, sink: Sink) -> Callable[[], None]:
        """Give everything to a sink from now on, and what it has missed at once."""
        view, name = self.view, sink.name or type(sink).__name__
        with self._lock:
            with view._lock:
                view._require_open()
                if name in self.active:
                    raise CompositionError(
                        f"there is a sink {name!r} already", remedy="another name="
                    )
                view._flush()  # what waits to be written was kept for nobody
                last = view._safe()
                try:
                    sink.attach(view)
                    gap = last_gap(view._notes(), sink.outputs)
                    kept = [epoch for epoch in view._logged() if epoch > gap]
                    first = kept[0] if kept else last + 1
                    if name in self.restarting:
                        self._note(name, last, restart=True)
                    else:
                        had = sink.had(self.done.get(name), first, last)
                        if had is None:
                            sink.begin(last, view._everything())
                            had = last
                        self._require_no_gap(name, sink.outputs, had, kept, last)
                        self._note(name, had)
                except BaseException:
                    sink.close()
                    raise
                self.active[name] = sink
            self.deliver()
        return lambda: self.end(name)

    def restart(self, name: str) -> None:
        """Begin a sink again with all rows: at once, or when it is added."""
        if not isinstance(name, str):
            known = ", ".join(map(repr, self.done)) or "a text"
            what = f"restart_sink({value_text(name)}): the name of a sink is a text"
            raise CompositionError(what, remedy=f"one of {known}")
        with self._lock:
            if under_way(Sinks.deliver, self):
                raise CompositionError(
                    f"restart_sink({name!r}): a sink called it, in the middle of a delivery",
                    remedy="restart_sink before or after step(...)",
                )
            with self.view._lock:
                self.view._require_open()
                self.restarting.add(name)
                if name in self.done:
                    self._note(name, self.view._safe(), restart=True)
        if name in self.active:
            self.deliver()

    def end(self, name: str) -> None:
        """Give nothing to a sink any more, and keep nothing for it."""
        with self._lock:
            forget_sink(self.files, self.done, name)
            self.restarting.discard(name)
            ended = self.active.pop(name, None)
            if ended is not None:
                ended.close()

    def close(self) -> None:
        """The view is closed; how far all sinks are stays noted."""
        with self._lock:
            for sink in self.active.values():
                sink.close()
            self.active = {}

    def deliver(self) -> None:
        """Give every sink what it has not had; raise what they raised."""
        errors: dict[str, Exception] = {}
        with self._lock:
            if under_way(Sinks.deliver, self):
                return  # a sink has stepped the view: it gets this epoch after the present one
            while waiting := self._waiting(errors):
                name = min(waiting, key=lambda each: self.done[each])
                again = name in self.restarting
                epoch = self.done[name] + (not again)
                try:
                    if again:
                        self._give_all(name)
                    else:
                        self._give(name, epoch)
                except Exception as error:
                    what = "beginning again with" if again else "for"
                    error.add_note(
                        f"raised by the sink {name!r} {what} epoch {epoch}, which is done and "
                        "stays; the next step tries again, and so does view.deliver()"
                    )
                    errors[name] = error
        if len(errors) == 1:
            raise next(iter(errors.values()))
        if errors:
            raise ExceptionGroup("several sinks failed", list(errors.values()))

    def _waiting(self, but: Mapping[str, object]) -> list[str]:
        last = self.view._safe()  # others may be in the middle of a later one
        due = [name for name in self.active if self.done[name] < last or name in self.restarting]
        return [name for name in due if name not in but]

    def _give(self, name: str, epoch: int) -> None:
        sink = self.active[name]
        with self.view._lock:
            entry = self.view._entry(epoch)
        if entry is None:
            raise self._gap(name, epoch - 1, [epoch])
        sink.give(self.view, epoch, entry)
        if name in self.done:  # it may have ended itself
            self._note(name, epoch)

    def _give_all(self, name: str) -> None:
        view = self.view
        with view._lock:
            view._flush()
            last = view._safe()
            self.active[name].give_all(view, last)
            if name in self.done:
                self._note(name, last)
                self.restarting.discard(name)

    def _note(self, name: str, epoch: int, *, restart: bool = False) -> None:
        if self.done.get(name) == epoch and name not in self.restarting:
            return
        if self.files is not None:
            note(self.files, name, epoch, restart=restart)
        self.done[name] = epoch

    # ---- what cannot go on ----

    def _require_no_gap(
        self, name: str, outputs: Collection[str] | None, had: int, kept: list[int], last: int
    ) -> None:
        if had > last:
            raise SinkError(
                f"the sink {name!r} has had epoch {had}, and the view is at epoch {last}: it is "
                "not a sink of this state",
                remedy=self._again(name),
            )
        notes = self.view._notes()
        if (gap := last_gap(notes, outputs)) > had:
            raise SinkError(
                f"the sink {name!r} has had the epochs up to {had}; then the program changed, and "
                "what that changed in the output is not known",
                **gap_facts(notes, gap, outputs),
                remedy=self._again(name),
            )
        missing = [epoch for epoch in range(had + 1, last + 1) if epoch not in kept]
        if missing:
            raise self._gap(name, had, missing)

    def _gap(self, name: str, had: int, missing: list[int]) -> SinkError:
        return SinkError(
            f"the sink {name!r} has had the epochs up to {had}, and the changes of some after "
            "that are not there any more",
            missing=Text(spans(missing)),
            remedy=f"{self._again(name)}; keep_epochs=... keeps more for sinks that are new",
        )

    def _again(self, name: str) -> str:
        """How a sink begins again."""
        shell = f", or `ebbflow state restart-sink DIR {name!r}`" if name in self.done else ""
        return (
            f"view.restart_sink({name!r}) before the sink is added{shell}: then it begins again, "
            "with everything"
        )


# ---- what is noted ----

_BEGIN, _END = "sink-", ".json"


def _file(name: str) -> str:
    return f"{_BEGIN}{file_name(name)}{_END}"


def note(files: Files, name: str, epoch: int, *, restart: bool = False) -> None:
    """Note down the last epoch that a sink has had; or that it is to `restart`, with everything, of
    this epoch or a later one."""
    said = {"sink": name, "epoch": epoch} | ({"restart": True} if restart else {})
    try:
        files.replace(_file(name), json.dumps(said))
        if restart:
            files.settle()  # before the target is changed
    except OSError as error:
        what = "is to restart in" if restart else "has had"
        raise SinkError(
            f"the sink {name!r} {what} epoch {epoch}, and that could not be noted",
            path=Text(files.address),
            cause=error,
            remedy="free space there; the next step continues from the noted epoch",
        ) from error


def forget_sink(files: Files | None, done: dict[str, int], name: str) -> None:
    """Keep nothing for a sink any more, of those whose epochs are in `done`."""
    require_noted(done, name)
    del done[name]
    if files is not None:
        files.remove(_file(name))


def require_noted(done: Mapping[str, int], name: str) -> None:
    """Refuse the name of a sink that is not among those whose epochs are in `done`."""
    if name not in done:
        raise CompositionError(
            f"there is no sink {name!r}",
            sinks=Text(", ".join(done) or "none"),
            remedy="one of these" if done else "each_epoch or write_changes",
        )


def needed(done: Mapping[str, int]) -> int | None:
    """The first epoch that some sink has not had.

    >>> needed({"a": 7, "b": 5}), needed({})
    (6, None)
    """
    had = list(done.values())
    return min(had) + 1 if had else None


def warn_of_late(done: Mapping[str, int], epoch: int, place: str) -> None:
    """Log a warning for each sink that is 100, 1,000, 10,000, ... epochs behind."""
    for name, had in done.items():
        behind = epoch - had
        if behind >= LATE and str(behind).strip("0") == "1":
            _log.warning(
                "the sink %r of %s has had epoch %d, and this is epoch %d: what it has not had is "
                "kept for it. If it is gone for good, view.end_sink(%r) lets go of that, and so "
                "does `ebbflow state end-sink`",
                name, place, had, epoch, name,
            )  # fmt: skip


def noted(files: Files) -> dict[str, int]:
    """The last epoch that each sink of a state has had, by name."""
    return {name: epoch for name, epoch, _ in _notes(files)}


def restarting(files: Files) -> set[str]:
    """The sinks of a state that are to begin again with everything."""
    return {name for name, _, restart in _notes(files) if restart}


def _notes(files: Files) -> Iterator[tuple[str, int, bool]]:
    for file in files.names():
        if file.startswith(_BEGIN) and file.endswith(_END):
            with suppress(ValueError, KeyError, TypeError):
                said = json.loads(files.read(file) or "")
                yield said["sink"], int(said["epoch"]), bool(said.get("restart"))


def spans(numbers: list[int]) -> str:
    """Numbers in order, as people say them.

    >>> spans([1, 2, 3, 7, 9, 10])
    '1 to 3, 7, 9 to 10'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join(" to ".join(map(str, each)) for each in found)
