"""Sinks: who gets the changes of a view, epoch by epoch, also after a crash.

A *sink* has a name, and has had the changes of all epochs up to one; that number is in a small file
in the folder of the state. After every epoch each sink is given what it has not had yet, in order.
What a sink has not had is kept for it, also while the view is closed, until it has, or is ended:

    a folder       each epoch is there as a whole, or not; so it has every epoch exactly once
    a function     is called again for an epoch that it did not finish: at least once, and with the
                   number of the epoch, by which the other side can tell

A sink that fails leaves the epoch as it is. The error comes out of `step`, all the same; the next
step tries again, and so does `deliver`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.callers import under_way
from ebbflow.errors import CompositionError, Text
from ebbflow.paths import file_name, make_folder, open_file
from ebbflow.state.spine import Folder, StateError

if TYPE_CHECKING:
    from ebbflow.engine.spark.output.log import Entry
    from ebbflow.engine.spark.view import SparkView

FOLDER = "sinks"


class ChangeSink:
    """Somebody who gets every epoch."""

    name: str
    remedy = "view.end_sink(name), then begin again, from view.value"

    def had(self, known: int | None, first: int, last: int) -> int:
        """The last epoch it has had: `known`, where that was noted. A new one begins after the last
        epoch, or at the first that is there."""
        return last if known is None else known

    def give(self, epoch: int, entry: Entry) -> None:
        """What an epoch changed. To be given it twice must do no harm, or be what one can bear."""
        raise NotImplementedError


class FunctionSink(ChangeSink):
    """A function of the user's."""

    def __init__(self, view: SparkView, function: Callable[[Any, int], object], name: str) -> None:
        self.view, self.function, self.name = view, function, name

    def give(self, epoch: int, entry: Entry) -> None:
        self.function(self.view._changes(epoch, entry), epoch)


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
    """All sinks of a view, those of earlier runs as well."""

    def __init__(self, view: SparkView) -> None:
        self.view = view
        self.folder = Path(view.path, FOLDER)
        self.active: dict[str, ChangeSink] = {}
        self.done: dict[str, int] = _noted(self.folder)
        self._lock = RLock()

    @property
    def needed(self) -> int | None:
        """The first epoch that some sink has not had."""
        done = list(self.done.values())
        return min(done) + 1 if done else None

    def add(self, sink: ChangeSink) -> Callable[[], None]:
        """Give everything to a sink from now on, and what it has missed at once."""
        view = self.view
        with self._lock:
            with view._lock:
                view._require_open()
                if sink.name in self.active:
                    raise CompositionError(
                        f"there is a sink {sink.name!r} already", remedy="another name="
                    )
                kept, last = view._log.epochs, view.epoch
                first = kept[0] if kept else last + 1
                had = sink.had(self.done.get(sink.name), first, last)
                _require_no_gap(sink, had, kept, last)
                self._note(sink.name, had)
                self.active[sink.name] = sink
            self.deliver()
        return lambda: self.end(sink.name)

    def end(self, name: str) -> None:
        """Give nothing to a sink any more, and keep nothing for it."""
        with self._lock:
            if name not in self.done:
                raise CompositionError(
                    f"there is no sink {name!r}",
                    sinks=Text(", ".join(self.done) or "none"),
                    remedy="one of these" if self.done else "each_epoch or write_changes",
                )
            self.active.pop(name, None)
            del self.done[name]
            self._file(name).unlink(missing_ok=True)

    def deliver(self) -> None:
        """Give every sink what it has not had; raise what they raised."""
        errors: dict[str, Exception] = {}
        with self._lock:
            if under_way(Sinks.deliver, self):
                return  # a sink has stepped the view: it gets this epoch after the present one
            while waiting := self._waiting(errors):
                name = min(waiting, key=lambda each: self.done[each])
                epoch = self.done[name] + 1
                try:
                    self._give(self.active[name], epoch)
                except Exception as error:
                    error.add_note(
                        f"raised by the sink {name!r} for epoch {epoch}, which is done and "
                        "stays; the next step tries again, and so does view.deliver()"
                    )
                    errors[name] = error
        if len(errors) == 1:
            raise next(iter(errors.values()))
        if errors:
            raise ExceptionGroup("several sinks failed", list(errors.values()))

    def _waiting(self, but: Mapping[str, object]) -> list[str]:
        last = self.view._posted  # others may be in the middle of a later one
        return [name for name in self.active if self.done[name] < last and name not in but]

    def _give(self, sink: ChangeSink, epoch: int) -> None:
        entry = self.view._log.of(epoch)
        if entry is None:
            raise _gap(sink, epoch - 1, [epoch])
        sink.give(epoch, entry)
        if sink.name in self.done:  # it may have ended itself
            self._note(sink.name, epoch)

    # ---- what is noted ----

    def _note(self, name: str, epoch: int) -> None:
        if self.done.get(name) == epoch:
            return
        permissions = Folder(self.view.path).permissions
        make_folder(self.folder, permissions)
        file = self._file(name)
        temporary = file.with_suffix(".tmp")
        opened = open_file(temporary, os.O_WRONLY | os.O_TRUNC, permissions)
        with open(opened, "w", encoding="utf-8") as out:
            json.dump({"sink": name, "epoch": epoch}, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
        self.done[name] = epoch

    def _file(self, name: str) -> Path:
        return self.folder / f"{file_name(name)}.json"


def _noted(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(file.read_text("utf-8"))
            found[said["sink"]] = int(said["epoch"])
    return found


def _require_no_gap(sink: ChangeSink, had: int, kept: list[int], last: int) -> None:
    if had > last:
        raise StateError(
            f"the sink {sink.name!r} has had epoch {had}, and the view is at epoch {last}: it is "
            "not a sink of this state",
            remedy=sink.remedy,
        )
    missing = [epoch for epoch in range(had + 1, last + 1) if epoch not in kept]
    if missing:
        raise _gap(sink, had, missing)


def _gap(sink: ChangeSink, had: int, missing: list[int]) -> StateError:
    return StateError(
        f"the sink {sink.name!r} has had the epochs up to {had}, and the changes of some after "
        "that are not there any more",
        missing=Text(spans(missing)),
        remedy=f"{sink.remedy}; spark(keep_epochs=...) keeps more for sinks that are new",
    )


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
