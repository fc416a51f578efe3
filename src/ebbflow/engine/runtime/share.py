"""State that two programs share until one of them changes it.

A copy of a running program begins with empty containers. Each has a *backing* (`ebbflow.state`)
whose keys are still in the container that it is a copy of, and fetches the keys that a step of the
copy touches, as it would from disk. Before an epoch of the original is kept, the old values of the
keys that it changes are put aside for the copies which have not fetched them yet. So neither sees
what the other does, and both pay for the keys that they touch and for no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ebbflow.state.backing import ABSENT, Backing
from ebbflow.state.cells import Journalled
from ebbflow.state.index import Index
from ebbflow.zset import add_into

if TYPE_CHECKING:
    from ebbflow.engine.runtime.program import Pending, RunningProgram

Values = dict[Any, Any]
MANY = 64
"""Epochs that are added up when there are more of them."""


class Original:
    """The keys of a container, as they were when the copy was made; `saved` has what was there
    then, of keys that have changed since. One with a journal says what to copy (`apart`).

    >>> from ebbflow.state.cells import Cells
    >>> cells = Cells({"a": 1})
    >>> original = Original(cells, "value")
    >>> original.save({"b": ABSENT}); cells.values["b"] = 2
    >>> original.probe(["a", "b"])
    {'a': 1}
    """

    def __init__(self, container: Any, layout: str) -> None:
        self.container, self.layout = container, layout
        self.contents: Values = _contents(container)
        self.saved: Values = {}

    def save(self, old: Mapping[Any, Any]) -> None:
        """Put old values aside, of keys of which none is aside yet."""
        for key, value in old.items():
            self.saved.setdefault(key, value)

    def probe(self, keys: Iterable[Any]) -> Values:
        """What the copy gets for these keys."""
        apart = self.container.apart if isinstance(self.container, Journalled) else None
        found = self._there(keys)
        return found if apart is None else {key: apart(value) for key, value in found.items()}

    def weights(self, asked: Sequence[tuple[Any, Any]]) -> list[int]:
        """The weights of rows, each given with its key."""
        groups = self._there({key for key, _ in asked})
        return [groups.get(key, {}).get(row, 0) for key, row in asked]

    def append(self, change: Any) -> None:
        """Nothing is stored: the backing keeps what changes."""

    def everything(self) -> Values:
        """All keys, with what the container holds for them; to be read only."""
        backing = self.container.backing
        now = self.contents if backing is None else backing.everything()
        return {key: each for key, each in {**now, **self.saved}.items() if each is not ABSENT}

    def scan(self) -> Iterator[tuple[Any, Any, int]]:
        """All keys with their values, or with their rows and weights."""
        for key, value in self.everything().items():
            if self.layout == "value":
                yield key, value, 1
            else:
                for row, weight in value.items():
                    yield key, row, weight

    def _there(self, keys: Iterable[Any]) -> Values:
        saved, get, backing = self.saved, self.contents.get, self.container.backing
        if backing is not None:
            keys = list(keys)
            backing.fetch(keys)
        found = {key: saved[key] if key in saved else get(key, ABSENT) for key in keys}
        return {key: value for key, value in found.items() if value is not ABSENT}


class SharedBacking(Backing):
    """The backing of a container whose other keys are in that of an original."""

    keeps = True
    kept: Original

    def __init__(self, held: Values, original: Original) -> None:
        super().__init__(held, original, limited=True)

    def save(self, old: Mapping[Any, Any]) -> None:
        """Put aside what the original is about to change, unless it is here already."""
        resident = self.resident
        assert resident is not None
        self.kept.save({key: value for key, value in old.items() if key not in resident})

    def everything(self) -> Values:
        """All keys, as they are now: those that are here, and of the others the original's."""
        resident = self.resident
        assert resident is not None
        far = self.kept.everything()
        return {**{key: value for key, value in far.items() if key not in resident}, **self.held}


class EpochTotals:
    """What epochs have changed, by name, added up. An epoch that is noted twice counts once."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, Mapping[str, dict[Any, int]]]] = []

    def note(self, epoch: int, deltas: Mapping[str, dict[Any, int]]) -> None:
        """Note what an epoch has changed."""
        if self.noted and self.noted[-1][0] >= epoch:
            return
        noted = [*self.noted, (epoch, deltas)] if len(self.noted) < MANY else None
        self.noted = noted or [(epoch - 1, self.total()), (epoch, deltas)]

    def total(self) -> dict[str, dict[Any, int]]:
        """All that has changed.

        >>> totals = EpochTotals()
        >>> totals.note(1, {"a": {"x": 1}}); totals.note(2, {"a": {"x": 1, "y": -1}})
        >>> totals.note(2, {"a": {"x": 1, "y": -1}}); totals.total()
        {'a': {'x': 2, 'y': -1}}
        """
        found: dict[str, dict[Any, int]] = {}
        for _, deltas in self.noted:
            for name, delta in deltas.items():
                add_into(found.setdefault(name, {}), delta)
        return found


class Sharing:
    """That a program, `copy`, shares the state of another, `original`.

    `ours` is what has changed since in the outputs of the copy, and `inputs` in its inputs;
    `theirs` is what has changed in the outputs of the original.
    """

    def __init__(self, original: RunningProgram, copy: RunningProgram) -> None:
        self.original, self.copy = original, copy
        self.backings: dict[int, SharedBacking] = {}
        self.inputs, self.ours, self.theirs = EpochTotals(), EpochTotals(), EpochTotals()
        for theirs, mine in _pairs(original, copy):
            layout = "bag" if isinstance(mine, Index) else "value"
            backing = SharedBacking(_contents(mine), Original(theirs, layout))
            mine.backing = self.backings[id(theirs)] = backing
        copy.machine.backed = True
        copy.forgetting.paused += 1
        original.forgetting.paused += 1
        copy.observers.append(self.keeping_copy)
        original.observers.append(self.keeping_original)

    def keeping_original(self, pending: Pending) -> None:
        """Before an epoch of the original is kept: put aside what it changes. Doing it twice is
        doing it once."""
        epoch, keeping, deltas = pending
        for container in self.original.machine.open:
            if id(container) in self.backings and container.journal is not None:
                self.backings[id(container)].save(container.before())
        stores: list[Any] = [each.store for each in keeping]
        for store in stores:
            if id(store) in self.backings:
                there = store.rows.get
                self.backings[id(store)].save({key: there(key, ABSENT) for key in store.changed()})
        self.theirs.note(epoch, deltas)

    def keeping_copy(self, pending: Pending) -> None:
        """Before an epoch of the copy is kept: note what it changes."""
        epoch, _, deltas = pending
        self.ours.note(epoch, deltas)
        self.inputs.note(epoch, self.copy.changes)

    def end(self) -> None:
        """The copy is of no use any more: nothing is put aside for it."""
        self.original.forgetting.paused -= 1
        observers, mine = self.original.observers, self.keeping_original
        self.original.observers = [each for each in observers if each != mine]


def _pairs(original: RunningProgram, copy: RunningProgram) -> Iterator[tuple[Any, Any]]:
    """Every container of a copy, behind the one that it is a copy of. An output that the copy can
    compute has none."""
    for name, state in copy.inputs.items():
        if state.store is not None:
            yield original.inputs[name].store, state.store
        if state.beside is not None:
            yield original.inputs[name].beside, state.beside
    for stage, own in zip(original.machine.stages, copy.machine.stages, strict=True):
        yield from zip(stage.containers, own.containers, strict=True)
    for name, output in copy.outputs.items():
        if output.rows is not None:
            yield original.outputs[name].rows, output.rows


def _contents(container: Any) -> Values:
    found: Values = container.contents if isinstance(container, Journalled) else container.rows
    return found
