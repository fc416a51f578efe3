"""The state of a program on disk: what is kept there, and how it is found again.

Everything a view keeps is kept in containers: rows of inputs and outputs, and those of the stages.
Each container has a *name* on disk that says what it holds (`engine.runtime.identity`). So a
program that is opened again finds the state of every node that means the same as before, wherever
it stands in the file; a node that was changed, and whatever depends on it, has another name and no
state. Those are filled again (`engine.runtime.rebuild`).

An epoch is written before it is done: the changes of all containers are staged, and one commit
makes them safe. When that fails, the epoch fails, and the view is as it was. Whether an epoch has
happened that was interrupted, the store knows (`happened`). What is in memory can always be read
again: `undo` does so where an interrupt leaves it unknown what was done here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from threading import RLock
from typing import Any
from weakref import finalize

from ebbflow.engine.runtime.ages import TIMES, Ages, require_age
from ebbflow.engine.runtime.batches import KEEP, Batches, BatchName
from ebbflow.engine.runtime.convert.rows import ConvertedRows, schema_of
from ebbflow.engine.runtime.convert.values import conversions_of_values
from ebbflow.engine.runtime.options import in_bytes, require_count
from ebbflow.engine.runtime.parts import StatePart
from ebbflow.engine.runtime.program import Pending, RunningProgram
from ebbflow.engine.runtime.reader.stored import MEANT, noted_outputs
from ebbflow.engine.runtime.rebuild import computed_labels, rebuild, rows_of_inputs
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.engine.runtime.same_program import FORMAT, conversions_to, require_rebuildable
from ebbflow.engine.runtime.sinks.changed import PROGRAM, program_lines, staged_differences
from ebbflow.engine.runtime.sinks.gaps import GAPS, with_gap
from ebbflow.engine.runtime.sinks.log import ChangeLog
from ebbflow.engine.runtime.sinks.sink import needed, noted, warn_of_late
from ebbflow.errors import EbbflowError, Lost, StateError, Text, cause_of
from ebbflow.state.backing import Backing
from ebbflow.state.spine import Place, Store, files_at
from ebbflow.zset import ZSet, from_view

_log = logging.getLogger("ebbflow")

Elsewhere = Callable[[Store, set[str]], bool]
"""Stages the state of some parts, by name, in a store, or gives False when it does not."""
LIBRARIES = 64 << 20
"""About what libraries take of the memory for mapped files, in bytes."""
EAGER = 100_000
"""State of so many entries is read when it is opened; of more, keys are when they are needed."""
PATIENCE = 10.0
"""How many seconds to wait, at exit, for a thread that is in the middle of an epoch."""
_TOO_DEEP = StateError("a value is nested too deep, or holds itself", remedy="rows of a few levels")


class Disk:
    """The state of one view on disk. See `ebbflow.engine.local.run` for the options; `log` says
    that what epochs change is kept here for sinks and readers, and not by the engine; `elsewhere`
    may compute state that a changed program has none of."""

    def __init__(
        self, path: Place, program: RunningProgram, log: bool = True,
        elsewhere: Elsewhere | None = None, *,
        memory: int | str | None = None, keep_epochs: int = 1,
        keep_for: timedelta = timedelta(0), flush_every: int = 1, strict: bool = False,
        permissions: int | None = None, unpickle: bool = True,
        keep_batches: int = KEEP,
    ) -> None:  # fmt: skip
        self._elsewhere = elsewhere
        self.limit = None if memory is None else in_bytes(memory)
        require_count("keep_epochs", keep_epochs)
        require_count("flush_every", flush_every)
        require_count("keep_batches", keep_batches, "batches")
        require_age("run", keep_for)
        files = files_at(path, permissions)
        self.place = os.fspath(path) if isinstance(path, (str, os.PathLike)) else files.address
        self.program, names = program, program.identities
        self.assumed = names.assumed(program.plan)
        self.input_names = {n: names.of_input(each.source) for n, each in program.inputs.items()}
        self.schemas = {n: schema_of(each.source, names) for n, each in program.inputs.items()}
        if strict and self.assumed:
            raise _unseen(self.assumed)
        mapped = None if self.limit is None else self.limit + LIBRARIES
        self.store = Store(
            files, keep_epochs=keep_epochs, group=flush_every, memory=mapped, unpickle=unpickle,
        )  # fmt: skip
        self.store.in_pieces = True
        self.files = self.store.files
        self.rebuilt: tuple[str, ...] = ()
        self.converted: tuple[str, ...] = ()
        self._conversions: dict[str, ConvertedRows] = {}
        self.strict = strict
        self._settling = False
        self._end: finalize[..., Any] | None = None
        self.ages = Ages(keep_for, self.store.notes)
        known = ("format", "parts", "inputs", "rows", "schemas", "outputs", PROGRAM, TIMES)
        self.extra = {key: said for key, said in self.store.notes.items() if key not in known}
        program.batches = Batches(keep_batches)
        try:
            program.batches.attach(self.store)
            self.done = noted(self.files)
            """The last epoch that each sink has had."""
            self.log = ChangeLog(self.store, program, keep_epochs) if log else None
            self._open()
        except BaseException:
            self.store.close()
            raise

    # ---- opening ----

    def _open(self) -> None:
        store, program = self.store, self.program
        fresh = store.epoch < 0
        known = set(store.notes.get("parts", ()))
        mine = set(program.names)
        changed = [] if fresh else self.changed_outputs(store.notes)
        if not fresh:
            self._conversions = dict(conversions_to(self, store.notes))
            of_values = conversions_of_values(self, store.notes, self._conversions)
            if of_values:
                self._conversions.update(of_values)
                known, changed = self._forget_computed(known), list(program.outputs)
        program.attach(store, limited=self._in_part())
        if not fresh and not mine <= known:
            require_rebuildable(self, mine - known)
            self.rebuilt = self._rebuild(mine - known)
        if fresh or known != mine or changed:
            for name in known - mine:
                store.drop(name)
            epoch = store.epoch + 1
            young = self._keep_young(epoch)
            if not fresh:
                self._stage_change_of_program(epoch, changed, young)
            store.commit(epoch, self.notes())
            self.settle()
        self.converted = tuple(each.said for each in self._conversions.values())
        for said in self.converted:
            _log.warning("%s is converted: %s", self.place, said)
        notes = self.notes()
        self._unnoted = None if self.store.notes == notes else notes

    def _forget_computed(self, known: set[str]) -> set[str]:
        """Drop all state but what inputs keep beside their rows, and give the names of that."""
        beside = {id(each.beside) for each in self.program.inputs.values() if each.beside}
        kept = {part.name for part in self.program.parts if id(part.owner) in beside}
        for name in known - kept:
            self.store.drop(name)
        return known & kept

    def _in_part(self) -> bool:
        """Whether keys are read when they are needed: where memory is limited, and where there is
        so much that reading all of it would take long. A loop may want all of its state."""
        program = self.program
        if self.limit is None and any(each.looping for each in program.machine.stages):
            return False
        entries = sum(len(part.spine(self.store)) for part in program.parts)
        return self.limit is not None or entries > EAGER

    def load(self) -> bool:
        """Have all of the state in memory, between two epochs; False where that is limited."""
        if self.limit is None and self.program.machine.backed:
            self.program.load()
        return self.limit is None

    def _rebuild(self, new: set[str]) -> tuple[str, ...]:
        """Stage the state of these parts: elsewhere, if it is all computed from rows that are there
        as they were, and somebody takes it on; or here."""
        program, store = self.program, self.store
        same = (
            not self._conversions and store.notes["rows"].items() <= rows_of_inputs(program).items()
        )
        if same and self._elsewhere is not None and self._elsewhere(store, new):
            return computed_labels(program, new)
        return rebuild(program, store, new, self._append, self._conversions)

    def notes(self) -> dict[str, Any]:
        """What the manifest of an epoch says of the program: its parts, inputs and their rows."""
        return {**self._noted, **self.ages.noted(), **self.extra}

    @cached_property
    def _noted(self) -> dict[str, Any]:
        """What is the same for every epoch; looked at when opened, while all state is in rows."""
        return {
            "format": FORMAT,
            "parts": {part.name: part.label for part in self.program.parts},
            "inputs": self.input_names,
            "rows": rows_of_inputs(self.program),
            "schemas": self.schemas,
            "outputs": noted_outputs(self.program),
            PROGRAM: program_lines(self.program.plan),
        }

    # ---- epochs ----

    def require(self) -> None:
        """Refuse an epoch that could not be written: in a forked process, or when the folder of the
        state was taken away."""
        self.store.files.require()

    def advance(
        self, epoch: int, given: Mapping[str, Any], batch: BatchName | None = None
    ) -> OutputDeltas:
        """Run an epoch of the program and make it safe. When that is cut short, `happened` tells
        whether it did, and if not, `undo` is due."""
        self.require()
        deltas = self._run(epoch, given, batch)
        self._stage()
        self._stage_log(epoch, deltas, self._keep_young(epoch))
        ages = bool(self.ages.seconds) and self.store.writes_next
        self.store.commit(epoch, self.notes() if ages else self._unnoted)
        self._unnoted = None
        return deltas

    def _run(self, epoch: int, given: Mapping[str, Any], batch: BatchName | None) -> OutputDeltas:
        return self.program.run(epoch, given, batch)

    def _stage(self) -> None:
        """Stage what the epoch did to the state."""
        for owner, change in self.program.staged():
            self._append(owner, change)

    def _keep_young(self, epoch: int) -> range:
        """Have the epochs kept that are too young to go when this one is committed."""
        young = self.ages.young(epoch)
        self.store.keep_also = frozenset(young)
        return young

    # ---- what epochs changed, for sinks ----

    def _stage_log(self, epoch: int, deltas: OutputDeltas, young: range) -> None:
        if self.log is not None:
            self.log.stage(epoch, deltas, self._first_needed(epoch, young))
            warn_of_late(self.done, epoch, self.place)

    def _first_needed(self, epoch: int, young: range) -> int | None:
        """The first epoch whose change is needed: by a sink, or because it is too young to go."""
        first = needed(self.done)
        return first if not young else min(young[0], epoch if first is None else first)

    def changed_outputs(self, notes: Mapping[str, Any]) -> list[str]:
        """The outputs that differ in meaning from those of the epoch with these notes."""
        parts, noted = notes.get("parts", {}), notes.get("outputs", {})

        def same(name: str) -> bool:
            part = self._part_of(name)
            if part is not None:
                return part.name in parts
            now = self._noted["outputs"][name]
            return bool({MEANT: now[MEANT], **noted.get(name, {})} == now)

        return [name for name in self.program.outputs if not same(name)]

    def _stage_change_of_program(self, epoch: int, changed: list[str], young: range) -> None:
        """Stage what the changed program changes in these outputs as the change of the epoch that
        opens it, or note that this is not known (`sinks.changed`)."""
        log = self.log
        deltas: OutputDeltas = {}
        if log is None:
            return
        if changed and log.keeps(epoch, self._first_needed(epoch, young)):
            deltas, unknown = staged_differences(self.store, self.program, log, changed)
            self._note_gap(epoch, unknown)
        self._stage_log(epoch, deltas, young)

    def _note_gap(self, epoch: int, unknown: dict[str, str]) -> None:
        """Note the outputs whose change in this epoch is not known, and forget the notes of epochs
        before those of all sinks and of the log."""
        first = min([epoch, *self.logged(), *(each + 1 for each in self.done.values())])
        was, now = self.store.notes.get(PROGRAM), self._noted[PROGRAM]
        self.extra |= with_gap(self.extra.pop(GAPS, {}), first, epoch, unknown, was, now)

    def _part_of(self, name: str) -> StatePart | None:
        """The part that an output is read from; None where it is computed from inputs."""
        reader = self._reader(name)
        owner = self._rows(name) if reader is None else reader.cells
        return None if owner is None else self.program.part(owner)

    def _reader(self, name: str) -> Any:
        """The stage that has an output as its state, where one has; that of the row path."""
        reader: Any = self.program.machine.readers.get(name)
        return getattr(reader, "by_rows", reader)

    def _rows(self, name: str) -> Any:
        """The rows of an output, where they are kept; those of the row path."""
        return self.program.outputs[name].rows

    def remember(self, epoch: int, deltas: OutputDeltas) -> None:
        """What an epoch changed is written with it."""

    def logged(self) -> list[int]:
        """The epochs whose changes are kept, in order."""
        return [] if self.log is None else self.log.epochs

    def change_of(self, epoch: int) -> OutputDeltas | None:
        """What an epoch changed; None where that is not kept."""
        return None if self.log is None else self.log.of(epoch)

    def flush(self) -> None:
        """Write the epochs that are not written yet."""
        self.store.flush()

    # ---- what has happened ----

    def keep(self, pending: Pending) -> None:
        """Keep what an epoch did that is safe. Doing it twice is doing it once."""
        self.program.keep(pending)
        self.settle()

    def happened(self, pending: Pending) -> bool:
        """Whether an epoch that was interrupted is on disk."""
        return self.store.catch_up() >= pending[0]

    def undo(self, error: BaseException | None, epoch: int) -> None:
        """Be as at the last epoch. Where it is known what this epoch has done here, that is rolled
        back; else everything is read again."""
        self.store.rollback()
        if error is not None and (not self.program.machine.backed or is_orderly(error)):
            self.program.rollback()
        else:
            self.program.reload()
        self.program.pending = None

    def _append(self, owner: Any, change: Any) -> None:
        """Stage what is done to a container."""
        try:
            owner.backing.append(change)
        except (EbbflowError, RecursionError) as failed:
            error = _TOO_DEEP if isinstance(failed, RecursionError) else failed
            raise StateError(
                f"the state of {self.program.part(owner).label} cannot be stored: {error.what}",
                **error.facts,
                remedy=error.remedy,
            ) from cause_of(failed)

    def settle(self) -> None:
        """Let go of keys when the containers take more memory than the limit."""
        if self.limit is None:
            return
        if self._settling:  # it was interrupted: nobody knows which keys are here
            self.program.reload()
        self._settling = True
        if self.store.files.resident() > self.limit + LIBRARIES:
            self.store.let_go()
        backings = [part.owner.backing for part in self.program.parts]
        sizes = [backing.bytes() for backing in backings]
        total = sum(sizes)
        if total > self.limit:
            share = 1 - 0.75 * self.limit / total
            for backing in backings:
                backing.release(int(len(backing.resident) * share) + 1)
        self._settling = False

    @property
    def epoch(self) -> int:
        """The last epoch that is written."""
        return self.store.epoch

    def at(self, epoch: int) -> dict[str, ZSet[Any]]:
        """The rows of every output at the end of an epoch that is retained."""
        outputs, found = self.program.outputs, {}
        if epoch == self.epoch:
            return {name: output.value() for name, output in outputs.items()}
        with self.store.at(epoch) as snapshot:
            known = snapshot.notes["parts"]
            for name, output in outputs.items():
                reader = self._reader(name)
                part = self._part_of(name)
                assert part is not None
                if part.name not in known:
                    raise StateError(
                        f"output {name!r} was another one at epoch {epoch}: the program has "
                        "changed since",
                        epoch=epoch,
                        remedy="the program as it was then, or a later epoch",
                    )
                spine = part.spine(snapshot)
                values = Backing({}, spine, limited=False, codec=part.codec).held
                rows = values if reader is None else reader.output_of(values)
                found[name] = from_view(rows, output.origin)
        return found

    def close(self) -> None:
        """Write what is not written yet, and let others in; where writing fails, stay open."""
        with suppress(Lost):
            self.store.flush()
        self.store.close()
        if self._end is not None:
            self._end.detach()

    def close_with(self, view: Any, lock: RLock) -> None:
        """Close when the view is dropped and when Python exits; no step is under way while `lock`
        is held."""
        self._end = finalize(view, _close, self, lock)


def _close(disk: Disk, lock: RLock) -> None:
    if not disk.store.forked and lock.acquire(timeout=PATIENCE):
        disk.store.close()


def is_orderly(error: BaseException | None) -> bool:
    """Whether an error was raised by a statement that may raise it, and not by an interrupt or
    for want of memory, which may come anywhere."""
    while error is not None:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return False
        error = error.__cause__
    return True


def _unseen(assumed: Mapping[str, tuple[str, ...]]) -> StateError:
    return StateError(
        "a change of the program could go unseen: it uses what cannot be looked into",
        **{what: Text("; ".join(why)) for what, why in assumed.items()},
        remedy="values that can be: constants, functions, classes; or strict=False",
    )
