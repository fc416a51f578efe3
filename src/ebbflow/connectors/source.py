"""Sources: the changes of a place elsewhere, as batches that each happen once.

A source gives *batches*: what happened to some inputs, and the name of the batch, which is that of
the source and a position that grows. The view keeps the position in the commit of the epoch, so
that a source which is killed and started again goes on after what has happened:

    for batch in source.batches(view):
        view.step(batch.changes, batch=batch.name)
        batch.done()

`run` does just that. A batch of which `done` was not called comes again, and changes nothing if it
had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from time import sleep
from typing import Any

from ebbflow.change.requests import Request, replace_rows, upsert
from ebbflow.engine.runtime.batches import Position
from ebbflow.engine.runtime.events import is_several, key_fields
from ebbflow.engine.runtime.program import unknown_name
from ebbflow.engine.runtime.sinks.plain import row_reader, values_reader
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of
from ebbflow.state.cells import ABSENT
from ebbflow.zset import ZSet

POLL = 0.1
"""How many seconds a source that follows waits where there is nothing new."""


@dataclass(frozen=True)
class SourceBatch:
    """What a source brings at once: for `view.step(batch.changes, batch=batch.name)`. After that
    `done` lets the source forget it."""

    changes: Mapping[str, Any]
    name: tuple[str, Position]
    done: Callable[[], None]


class ChangeSource:
    """A place elsewhere whose changes come as batches; see the module."""

    def batches(
        self, view: Any, *, follow: bool = True, stop: Event | None = None
    ) -> Iterator[SourceBatch]:
        """The batches that a view has not had. With `follow` there is no end, until `stop` is set;
        without, it ends with what is there now."""
        raise NotImplementedError

    def run(self, view: Any, *, follow: bool = True, stop: Event | None = None) -> int:
        """Step a view with every batch that it has not had; gives how many there were."""
        count = 0
        for batch in self.batches(view, follow=follow, stop=stop):
            view.step(batch.changes, batch=batch.name)
            batch.done()
            count += 1
        return count


def rest(stop: Event | None, seconds: float = POLL) -> bool:
    """Wait a little; whether to go on."""
    if stop is None:
        sleep(seconds)
        return True
    return not stop.wait(seconds)


def position_of(view: Any, source: str) -> Any:
    """How far a view is with a source; None where it has had nothing."""
    for batch in view.batches():
        if not isinstance(batch.name, str) and batch.name[0] == source:
            return batch.name[1]
    return None


def inputs_of(view: Any, names: Mapping[str, Any]) -> dict[str, Source]:
    """The inputs of these names; an error where a view has no such input."""
    known = view.plan.sources
    for name in names:
        if name not in known:
            raise unknown_name("input", name, known)
    return {name: known[name] for name in names}


class InputEvents:
    """What happens to the rows of one input in one batch, in order. What is given has the fields by
    name, as JSON or a database has them. With a key the newest event of each counts; without, all
    rows are added up, and a row that is taken away must be given as a whole.

    >>> from ebbflow.record import record
    >>> from ebbflow.fn import Fn
    >>> Order = record("Order", id=int, price=int)
    >>> events = InputEvents(Source(name="orders", type=Order, key=Fn.of("id", Order)))
    >>> events.put({"id": 1, "price": 10}); events.put({"id": 2, "price": 5})
    >>> events.take({"id": 1})
    >>> events.change()
    upsert([Order(id=2, price=5)], delete=[1], missing='ignore')
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.fields = key_fields(source)
        self._row = row_reader(source.type)
        self._values = values_reader(source.type)
        self.columns = self._values.keys()
        self._several = is_several(source.key)
        self._cleared = False
        self._rows: dict[Any, Any] = {}
        self._weights: dict[Any, int] = {}

    def row(self, given: Mapping[str, Any]) -> Any:
        """A row of the input; a ValueError where it is none."""
        return self._row(given)

    def key(self, given: Mapping[str, Any]) -> Any:
        """The key of what is given: by its fields, which may be all there is of it, or of the whole
        row."""
        assert self.source.key is not None
        if self.fields is None:
            return self.source.key(self._row(given))
        found = [self._values[name](given.get(name)) for name in self.fields]
        return tuple(found) if self._several else found[0]

    def put(self, given: Mapping[str, Any]) -> None:
        """A row is there from now on, in the place of the one of its key."""
        row = self._row(given)
        if self.source.key is None:
            self._weights[row] = self._weights.get(row, 0) + 1
        else:
            self._rows[self.source.key(row)] = row

    def take(self, given: Mapping[str, Any]) -> None:
        """The row of this key is gone; without a key, this row."""
        if self.source.key is None:
            row = self._row(given)
            self._weights[row] = self._weights.get(row, 0) - 1
        else:
            self._rows[self.key(given)] = ABSENT

    def clear(self) -> None:
        """All rows are gone."""
        self._cleared = True
        self._rows, self._weights = {}, {}

    def known(self, key: Any) -> Any:
        """The row that a key has after these events; ABSENT where they took it, None where they say
        nothing of it."""
        return self._rows.get(key, ABSENT if self._cleared else None)

    def change(self) -> Request | ZSet[Any] | None:
        """All of it as one change of the input; None where nothing happened."""
        rows = [row for row in self._rows.values() if row is not ABSENT]
        if self._cleared:
            return replace_rows(ZSet(self._weights) if self.source.key is None else rows)  # type: ignore[no-any-return]
        if self.source.key is None:
            return ZSet(self._weights) if self._weights else None
        gone = [key for key, row in self._rows.items() if row is ABSENT]
        return upsert(rows, delete=gone, missing="ignore") if self._rows else None


class SourceRow:
    """Rows of an input of a view that are updated elsewhere, where what did not change may be left
    out."""

    def __init__(self, view: Any, name: str, events: InputEvents) -> None:
        self.view, self.name, self.events = view, name, events

    def update(self, new: dict[str, Any], old: dict[str, Any] | None, unchanged: Any) -> None:
        """A row is there, in the place of the old one, of which at least the key is known where it
        changed. Values that are `unchanged` are those of the old one: as it is given, or as an
        earlier event of the batch left it, or as it is in the view."""
        left = [name for name, value in new.items() if value == unchanged]
        if left:
            new |= self._left(left, old or new, unchanged)
        if old is not None:
            self.events.take(old)
        elif self.events.source.key is None:
            raise ValueError("an update does not say the row before, and the input has no key")
        self.events.put(new)

    def _left(self, left: list[str], old: dict[str, Any], unchanged: Any) -> dict[str, Any]:
        if all(old.get(name) not in (None, unchanged) for name in left):
            return {name: old[name] for name in left}
        key = self.events.key(old)
        row = self.events.known(key)
        if row is None:
            row = self.view.input(self.name).get(key)
        if row is None or row is ABSENT:
            raise ValueError(f"an update leaves {', '.join(left)} as it was, and there is no row")
        one = fields_of(self.events.source.type) is None
        return {name: row if one else getattr(row, name) for name in left}


def refused_event(where: str, given: Any, error: Exception, source: Source) -> ChangeError:
    """The error for what came from elsewhere and is no row of its input."""
    return ChangeError(
        f"input {source.name!r}: {where}: {error}",
        given=given,
        created=source.place,
        remedy="the row type as the data is, or the data as the row type says; nothing was changed",
    )
