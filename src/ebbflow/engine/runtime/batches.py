"""Batches: changes that have a name, and so happen once.

Whoever brings changes may not know whether they have arrived: a job is started twice, a consumer is
killed between a step and the note of its offset. `step(..., batch="orders-2026-11-16.csv")` gives
the change a name. The name becomes part of the state in the same commit as the epoch, so there are
both or neither; when the same batch comes again, nothing happens.

A batch may also be a source and a number that grows, as `("orders", 17)` for a stream and the
number of its batch, or a partition and an offset. Then one number for each source is all there is
to remember: every batch up to it is over. A source that has several parts, each with a number of
its own, gives them all: `("orders", {"orders/0": 17, "orders/1": 4})`, of which none gets less; a
part that is not named stays where it is. Of names, the last `keep_batches` are remembered.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ebbflow.errors import ChangeError, RepeatedBatch, Text, place, value_text
from ebbflow.places import file_and_line
from ebbflow.state.backing import ABSENT

KEEP = 10_000
SPINE = "batches"
"""The name of the batches among the parts of a state."""

Position = int | Mapping[str, int]
"""How far a source is: a number, or one for each of its parts."""
BatchName = str | tuple[str, Position]


class Batch(NamedTuple):
    """A batch that happened: its name, and in which epoch. Of a source it is the last."""

    name: BatchName
    epoch: int


class Batches:
    """The batches of one state that happened: a container of it, which keeps what was `prepared`.

    >>> batches = Batches(most=2)
    >>> for epoch, name in enumerate(["a", "b", ("s", 7), "c"], 1):
    ...     batches.prepare(name, epoch)
    ...     batches.keep()
    >>> batches.epoch_of("c"), batches.epoch_of("a"), batches.epoch_of(("s", 6))
    (4, None, 3)
    >>> batches.listed()
    [Batch(name='b', epoch=2), Batch(name=('s', 7), epoch=3), Batch(name='c', epoch=4)]
    """

    def __init__(self, most: int = KEEP) -> None:
        self.most = most
        self.store = self
        self._place: Any = None
        self._named: dict[str, int] = {}
        self._sources: dict[str, tuple[Position, int]] = {}
        self._next: dict[Any, Any] = {}

    def attach(self, place: Any) -> None:
        """Have what a store has of them, and write to it."""
        self._place = place
        if any(each.operator == SPINE for each in place.manifest.spines):
            found = [(key, value) for key, value, _ in self.backing.scan()]
            self._change(sorted(found, key=_epoch))

    @property
    def backing(self) -> Any:
        """The spine that has them, where they are stored; the first batch makes it."""
        return None if self._place is None else self._place.spine(SPINE, layout="value")

    def epoch_of(self, batch: BatchName) -> int | None:
        """The epoch in which a batch happened; None where it is not known. Of an older batch of a
        source, that of the last is given."""
        if isinstance(batch, str):
            return self._named.get(batch)
        source, position = batch
        if source not in self._sources:
            return None
        last, epoch = self._sources[source]
        return None if _further(source, last, position) else epoch

    def prepare(self, batch: BatchName | None, epoch: int) -> None:
        """Be ready for a batch, or for none, to happen in an epoch."""
        if batch is None:
            self._next = {}
        elif isinstance(batch, str):
            forgotten = max(0, len(self._named) + 1 - self.most)
            self._next = dict.fromkeys(list(self._named)[:forgotten], ABSENT) | {batch: epoch}
        else:
            source, position = batch
            if isinstance(position, Mapping):
                position = {**self._sources.get(source, ({}, 0))[0], **position}  # type: ignore[dict-item]
            self._next = {(source,): (position, epoch)}

    def changed(self) -> dict[Any, Any]:
        """What `keep` will change of what is stored."""
        return self._next

    def keep(self) -> None:
        """Have what was prepared be so. Doing it twice is doing it once."""
        self._change(self._next.items())

    def _change(self, stored: Iterable[tuple[Any, Any]]) -> None:
        for key, value in stored:
            if not isinstance(key, str):
                self._sources[key[0]] = value
            elif value is ABSENT:
                self._named.pop(key, None)
            else:
                self._named[key] = value

    def listed(self) -> list[Batch]:
        """All that is known, in the order of epochs."""
        found = [Batch(name, epoch) for name, epoch in self._named.items()]
        found += [Batch((each, number), epoch) for each, (number, epoch) in self._sources.items()]
        return sorted(found, key=lambda batch: batch.epoch)

    def repeated(self, batch: BatchName | None) -> bool:
        """Whether a batch has happened already; if so, a warning says when."""
        if batch is None:
            return False
        require_batch(batch)
        epoch = self.epoch_of(batch)
        if epoch is None:
            return False
        file, line = file_and_line(place())
        warnings.warn_explicit(
            f"batch {value_text(batch)} happened before, in epoch {epoch}; nothing was changed",
            RepeatedBatch, file, line,
        )  # fmt: skip
        return True


def _further(source: str, last: Position, position: Position) -> bool:
    """Whether a position is further than the last, in some parts; in no part may it be less then.

    >>> _further("s", 7, 8), _further("s", {"a": 7, "b": 1}, {"a": 8}), _further("s", {"a": 7}, {})
    (True, True, False)
    """
    if isinstance(last, int) and isinstance(position, int):
        return position > last
    if isinstance(last, Mapping) and isinstance(position, Mapping):
        more = {each for each, number in position.items() if number > last.get(each, -1)}
        less = {each for each, number in position.items() if number < last.get(each, -1)}
        if not (more and less):
            return bool(more)
    raise ChangeError(
        f"a batch of {source!r} is further than the last in some parts, and less far in others"
        if isinstance(last, Mapping) and isinstance(position, Mapping)
        else f"the batches of {source!r} have one number at one time, and several at another",
        last=last,
        given=position,
        created=Text(place()),
        remedy="what comes after the last: view.batches() says how far each source is",
    )


def _epoch(stored: tuple[Any, Any]) -> int:
    value: Any = stored[1]
    return int(value if isinstance(value, int) else value[1])


def require_batch(batch: object) -> None:
    """Refuse what cannot be the name of a batch."""
    if isinstance(batch, str) and batch:
        return
    if isinstance(batch, tuple) and len(batch) == 2:
        source, number = batch
        numbers = number.values() if isinstance(number, Mapping) else (number,)
        if isinstance(source, str) and source and all(type(each) is int for each in numbers):
            return
    raise ChangeError(
        "batch= is the name of a batch, which then happens once, and this is none",
        given=batch,
        created=Text(place()),
        remedy='batch="orders-2026-11-16.csv", or batch=("orders", 17) with a number that grows; '
        'for an input that is called batch: step({"batch": rows})',
    )
