"""Log: what the last epochs changed in the outputs, for sinks that have not had it.

A view on disk keeps the change of each epoch beside its state, as a spine of its own for every
output, which is staged and committed with the epoch: so an epoch and its change become so together,
and a crash leaves both or neither. The number of the spine is that of the epoch. Spines of epochs
that nobody needs any more are dropped as a whole; nothing in them is ever merged.

The changes of the last `keep_epochs` epochs are kept where that is more than one, and for as long
as somebody still needs them, those before. A view in memory keeps what its sinks need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ebbflow.engine.runtime.parts import typed
from ebbflow.engine.runtime.program import RunningProgram
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.state.spine import Snapshot, Store

PREFIX = "change of output "


def operator_of(output: str) -> str:
    """The name of the spines that have the changes of an output."""
    return PREFIX + output


def logged(snapshot: Snapshot, types: Mapping[str, Any]) -> list[int]:
    """The epochs whose changes a state has for all outputs of these types."""
    found: set[int] | None = None
    for name, row_type in types.items():
        there = snapshot.numbers(operator_of(name), "value", typed(row_type))
        found = set(there) if found is None else found & set(there)
    return sorted(found or ())


def logged_change(snapshot: Snapshot, epoch: int, name: str, row_type: Any) -> dict[Any, int]:
    """What an epoch that is logged changed in an output."""
    spine = snapshot.spine(operator_of(name), epoch, layout="value", key_type=typed(row_type))
    return {row: weight for row, weight, _ in spine.scan()}


class ChangeLog:
    """The changes of the last epochs of a view on disk."""

    def __init__(self, store: Store, program: RunningProgram, keep: int) -> None:
        self.store = store
        self.types = {name: node.type for name, node in program.plan.outputs.items()}
        self.keep = keep if keep > 1 else 0
        self._used = any(operator.startswith(PREFIX) for operator, _ in store.names())

    @property
    def epochs(self) -> list[int]:
        """The epochs whose changes are there, in order."""
        return logged(self.store, self.types)

    def keeps(self, epoch: int, needed: int | None) -> bool:
        """Whether what an epoch changes is to be written; see `stage`."""
        return self._first(epoch, needed) <= epoch

    def _first(self, epoch: int, needed: int | None) -> int:
        kept = epoch + 1 - self.keep
        return kept if needed is None else min(kept, needed)

    def begin(self, output: str, among: Iterable[str]) -> None:
        """Enter an output that is new in the log: it did not change in the epochs that are logged
        for the outputs `among` it."""
        row_type = {output: self.types[output]}
        known = logged(self.store, row_type)
        for epoch in logged(self.store, {name: self.types[name] for name in among}):
            if epoch not in known:
                self._spine(output, epoch).append({})

    def _spine(self, output: str, epoch: int) -> Any:
        key_type = typed(self.types[output])
        return self.store.spine(operator_of(output), epoch, layout="value", key_type=key_type)

    def of(self, epoch: int) -> OutputDeltas | None:
        """What an epoch changed in each output; None when that is not known any more."""
        if epoch not in self.epochs:
            return None
        return {
            name: logged_change(self.store, epoch, name, row_type)
            for name, row_type in self.types.items()
        }

    def stage(self, epoch: int, deltas: OutputDeltas, needed: int | None) -> None:
        """Have what an epoch changes written with it, if somebody will ask: those that keep epochs,
        or a sink that needs the epochs from `needed` on."""
        first = self._first(epoch, needed)
        if self._used:
            self._drop(first if self.store.writes_next else 0, epoch)
        if first > epoch:
            return
        self._used = True
        for name in self.types:
            self._spine(name, epoch).append(deltas.get(name, {}))

    def _drop(self, first: int, epoch: int) -> None:
        """Drop the changes of epochs before `first`, what an epoch that failed has left, and those
        of outputs that the program has no more, or has with other rows."""
        mine = {
            (operator_of(name), number)
            for name, row_type in self.types.items()
            for number in self.store.numbers(operator_of(name), "value", typed(row_type))
        }
        for operator, number in self.store.names():
            if operator.startswith(PREFIX):
                if not ((operator, number) in mine and first <= number < epoch):
                    self.store.drop(operator, number)
                else:
                    self.store.release(operator, number)
