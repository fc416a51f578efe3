"""A view whose state is on disk: what it keeps there, and how it finds it again.

Everything a view keeps is kept in containers: rows of inputs and outputs, and those of the stages.
Each container has a *name* on disk that says what it holds (`engine.runtime.identity`). So a
program that is opened again finds the state of every node that means the same as before, wherever
it stands in the file; a node that was changed, and whatever depends on it, has another name and no
state. Those are filled again, from the state of what is before them, up to the rows of the inputs.

An epoch is written before it is done: the changes of all containers are staged, and one commit
makes them safe. When that fails, the epoch fails, and the view is as it was. Whether an epoch has
happened that was interrupted, the store knows (`epoch`). What is in memory can always be read
again: `undo` does so where an interrupt leaves it unknown what was done here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import RLock
from typing import Any
from weakref import finalize

from ebbflow.engine.runtime.failure import explained
from ebbflow.engine.runtime.identity import Names
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.parts import StatePart, state_parts, typed, written
from ebbflow.engine.runtime.stage import Stage
from ebbflow.errors import CompositionError, EbbflowError, Text, cause_of, shown
from ebbflow.expression.schema import schema
from ebbflow.flow.plan import Plan, Source
from ebbflow.state.backing import Backing
from ebbflow.state.cells import Journalled
from ebbflow.state.spine import Files, Folder, Lost, StateError, Store
from ebbflow.zset import trusted

Place = str | os.PathLike[str] | Files
FORMAT = 2
LIBRARIES = 64 << 20
"""About what libraries take of the memory for mapped files, in bytes."""
PATIENCE = 10.0
"""How many seconds to wait, at exit, for a thread that is in the middle of an epoch."""
_TOO_DEEP = StateError("a value is nested too deep, or holds itself", remedy="rows of a few levels")
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


class Disk:
    """The state of one view on disk. See `ebbflow.engine.local.run` for the options."""

    def __init__(
        self, path: Place, plan: Plan, machine: Machine,
        inputs: Mapping[str, Any], outputs: Mapping[str, Any], *,
        memory: int | str | None = None, keep_epochs: int = 1, flush_every: int = 1,
        strict: bool = False, permissions: int | None = None, unpickle: bool = True,
    ) -> None:  # fmt: skip
        self.limit = None if memory is None else in_bytes(memory)
        _require_count("keep_epochs", keep_epochs)
        _require_count("flush_every", flush_every)
        self.machine, self.inputs, self.outputs = machine, inputs, outputs
        names = Names()
        self.assumed = names.assumed(plan)
        self.input_names = {name: names.of_input(each.source) for name, each in inputs.items()}
        if strict and self.assumed:
            raise _unknown(self.assumed)
        mapped = None if self.limit is None else self.limit + LIBRARIES
        self.store = Store(
            path if isinstance(path, Files) else Folder(path, permissions),
            keep_epochs=keep_epochs, group=flush_every, memory=mapped, unpickle=unpickle,
        )  # fmt: skip
        self.rebuilt: tuple[str, ...] = ()
        self.strict = strict
        self._settling = False
        known = ("format", "parts", "inputs", "rows")
        self.extra = {key: said for key, said in self.store.notes.items() if key not in known}
        try:
            self.parts = state_parts(plan, machine, inputs, outputs, names)
            self._open(path)
        except BaseException:
            self.store.close()
            raise

    # ---- opening ----

    def _open(self, path: Place) -> None:
        store, notes = self.store, self.store.notes
        fresh = store.epoch < 0
        if not fresh:
            self._same_program(path, notes)
        known = set() if fresh else set(notes["parts"])
        mine = {part.name for part in self.parts}
        for part in self.parts:
            part.owner.backing = Backing(
                part.held, part.spine(store), limited=self.limit is not None, codec=part.codec
            )
        self.machine.backed = self.limit is not None
        if not fresh and not mine <= known and self.strict:
            raise self._would_rebuild(path, known)
        if not fresh and not mine <= known:
            self._rebuild(path, known)
        if fresh or known != mine:
            for name in known - mine:
                store.drop(name)
            store.commit(store.epoch + 1, self.notes())
            self.settle()
        self._noted = self.store.notes == self.notes()

    def _same_program(self, path: Place, notes: Mapping[str, Any]) -> None:
        if notes.get("format") != FORMAT:
            raise StateError(
                f"{_place(path)!r} does not hold the state of a view, or of another version",
                format=notes.get("format"),
                remedy="another path",
            )
        stored: Mapping[str, str] = notes["inputs"]
        mine = self.input_names
        gone = [name for name in stored if name not in mine]
        if gone:
            raise StateError(
                f"{_place(path)!r} holds the state of another program: it has "
                f"{'inputs' if len(gone) > 1 else 'an input'} that this one does not have",
                stored=Text(", ".join(stored)),
                this=Text(", ".join(mine)),
                remedy="another path for this program, or the inputs it had",
            )
        for name, was in stored.items():
            if mine[name] != was:
                raise StateError(
                    f"input {name!r} has another type or key than when its rows were stored",
                    now=Text(_described(self.inputs[name].source)),
                    created=self.inputs[name].source.place,
                    remedy="the type and key it had, or another path and loading the rows again",
                )
            kept = name in _kept_rows(notes)
            if self.inputs[name].keeps != kept:
                raise StateError(
                    f"the rows of input {name!r} are kept in {_place(path)!r}, and would be no "
                    "longer" if kept else
                    f"the rows of input {name!r} were not kept in {_place(path)!r}",
                    created=self.inputs[name].source.place,
                    remedy=f"run(check_input={kept}) as before, or another path",
                )  # fmt: skip

    def _would_rebuild(self, path: Place, known: set[str]) -> StateError:
        lost = [part.label for part in self.parts if part.name not in known]
        return StateError(
            f"the program has changed since {_place(path)!r} was written, and some of its state "
            "would be computed again",
            of=Text(", ".join(dict.fromkeys(lost))),
            remedy="strict=False to have it computed, the program as it was, or another path",
        )

    def notes(self) -> dict[str, Any]:
        """What is noted with an epoch, for whoever opens the state next."""
        return {
            "format": FORMAT,
            "parts": {part.name: part.label for part in self.parts},
            "inputs": self.input_names,
            "rows": self._rows(),
            **self.extra,
        }

    # ---- filling what has no state ----

    def _rebuild(self, path: Place, known: set[str]) -> None:
        """Fill the containers that have no state, from what is before them."""
        by_owner = {id(part.owner): part for part in self.parts}
        new = {part.name for part in self.parts} - known
        trusting = [name for name, state in self.inputs.items() if not state.keeps]
        if trusting:
            raise StateError(
                f"the program has changed since {_place(path)!r} was written, and what changed "
                "cannot be computed again: the rows of an input are not kept",
                inputs=Text(", ".join(trusting)),
                changed=Text(", ".join(part.label for part in self.parts if part.name in new)),
                remedy="the program as it was, or another path and loading the rows again",
            )
        machine, wholes = self.machine, dict[int, Any]()

        kept, here = _kept_rows(self.store.notes), self._rows()

        def rows(name: str) -> dict[Any, int]:
            state = self.inputs[name]
            if kept.get(name, here[name]) == here[name]:
                return dict(state.snapshot().items())
            return self._stored_rows(state, kept[name])

        def lacks(stage: Stage) -> bool:
            return any(by_owner[id(each)].name in new for each in stage.containers)

        def fill(stage: Stage) -> None:
            reads = [machine.whole(slot, rows, wholes) for slot in stage.reads]
            machine.open = list(stage.containers)
            for container in stage.containers:
                container.begin()
            wholes[stage.slot] = {}
            if any(reads):
                stage.run.fetch(*reads)
                wholes[stage.slot] = stage.run(*reads)
            self._append_open()  # at once: what comes after may read it from there
            machine.commit()

        for name, state in self.inputs.items():
            if state.store is not None and by_owner[id(state.store)].name in new and name in kept:
                state.prepare(trusted(rows(name)))
                self._append(state.store)
                state.keep()
        for stage in machine.stages:
            if lacks(stage):
                try:
                    fill(stage)
                except Exception as error:
                    raise explained(error, stage) from cause_of(error)
        for name, state in self.outputs.items():
            if state.rows is not None and by_owner[id(state.rows)].name in new:
                state.rows.prepare(machine.whole(machine.outputs[name], rows, wholes))
                self._append(state.rows)
                state.rows.keep()
        computed = [part.label for part in self.parts if part.name in new and not _is_input(part)]
        self.rebuilt = tuple(dict.fromkeys(computed))

    def _rows(self) -> dict[str, str]:
        """For each input whose rows are kept, the part that has them."""
        by_owner = {id(part.owner): part.name for part in self.parts}
        return {
            name: by_owner[id(state.holder)] for name, state in self.inputs.items() if state.keeps
        }

    def _stored_rows(self, state: Any, name: str) -> dict[Any, int]:
        """The rows of an input, from a part that the program does not have any more."""
        row_type, layout = typed(state.source.type), self.store.layout(name)
        own = layout == "value" and state.source.key is None
        types = (row_type, Any) if own else (Any, row_type)
        spine = self.store.spine(name, layout=layout, key_type=types[0], row_type=types[1])
        if own:
            return {row: weight for row, weight, _ in spine.scan()}
        return {row: weight for _, row, weight in spine.scan()}

    # ---- epochs ----

    def require(self) -> None:
        """Refuse an epoch that could not be written: in a forked process, or when the folder of the
        state was taken away."""
        self.store.files.require()

    def write(self, epoch: int, keeping: Iterable[Any]) -> None:
        """Make an epoch safe: what the stages did, and what the inputs and outputs will keep. When
        that is cut short, `epoch` tells whether it has happened, and if not, `undo` is due."""
        self._append_open()
        for rows in keeping:
            self._append(getattr(rows, "store", rows))
        self.store.commit(epoch, None if self._noted else self.notes())
        self._noted = True

    def undo(self, *, surely: bool) -> None:
        """Be as at the last epoch. `surely` says that what the epoch has done here is known, and
        can be rolled back; else everything is read again."""
        self.store.rollback()
        if surely:
            self.machine.rollback()
        else:
            self._reload()

    def _reload(self) -> None:
        self.machine.begin()
        for part in self.parts:
            if isinstance(part.owner, Journalled):
                part.owner.forget()
            part.owner.backing.reload()

    def _append_open(self) -> None:
        for container in self.machine.open:
            if container.backing is not None:
                for change in written(container):
                    self._stage(container, change)

    def _append(self, rows: Any) -> None:
        if rows is not None and rows.backing is not None:
            self._stage(rows, rows.changed())

    def _stage(self, container: Any, change: Any) -> None:
        try:
            container.backing.append(change)
        except (EbbflowError, RecursionError) as failed:
            error = _TOO_DEEP if isinstance(failed, RecursionError) else failed
            label = next(part.label for part in self.parts if part.owner is container)
            raise StateError(
                f"the state of {label} cannot be stored: {error.what}",
                **error.facts,
                remedy=error.remedy,
            ) from cause_of(failed)

    def settle(self) -> None:
        """Let go of keys when more is here than there is room for."""
        if self.limit is None:
            return
        if self._settling:  # it was interrupted: nobody knows which keys are here
            self._reload()
        self._settling = True
        if self.store.files.resident() > self.limit + LIBRARIES:
            self.store.let_go()
        backings = [part.owner.backing for part in self.parts]
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

    def at(self, epoch: int) -> dict[str, dict[Any, int]]:
        """The rows of every output at the end of an epoch that is retained."""
        by_owner = {id(part.owner): part for part in self.parts}
        found = {}
        with self.store.at(epoch) as snapshot:
            known = snapshot.notes["parts"]
            for name, state in self.outputs.items():
                reader = self.machine.readers.get(name)
                part = by_owner[id(state.rows if reader is None else reader.cells)]
                if part.name not in known:
                    raise StateError(
                        f"output {name!r} was another one at epoch {epoch}: the program has "
                        "changed since",
                        epoch=epoch,
                        remedy="the program as it was then, or a later epoch",
                    )
                spine = part.spine(snapshot)
                values = Backing({}, spine, limited=False, codec=part.codec).held
                found[name] = values if reader is None else reader.of(values)
        return found

    def close(self) -> None:
        """Write what is not written yet, and let others in; where writing fails, stay open."""
        with suppress(Lost):
            self.store.flush()
        self.store.close()

    def close_with(self, view: Any, lock: RLock) -> finalize[..., Any]:
        """Close when the view is dropped and when Python exits; no step is under way while `lock`
        is held."""
        return finalize(view, _close, self, lock)


def _close(disk: Disk, lock: RLock) -> None:
    if not disk.store.forked and lock.acquire(timeout=PATIENCE):
        disk.store.close()


# ---- what is where ----


def _kept_rows(notes: Mapping[str, Any]) -> dict[str, str]:
    """For each input whose rows were kept, the part that has them."""
    found: dict[str, str] = notes["rows"]
    return found


def _unknown(assumed: Mapping[str, tuple[str, ...]]) -> StateError:
    return StateError(
        "a change of the program could go unseen: it uses what cannot be looked into",
        **{what: Text("; ".join(why)) for what, why in assumed.items()},
        remedy="values that can be: constants, functions, classes; or strict=False",
    )


def _place(path: Place) -> str:
    return repr(path) if isinstance(path, Files) else os.fspath(path)


def _is_input(part: StatePart) -> bool:
    return part.label.startswith("input ")


def _described(source: Source) -> str:
    key = "" if source.key is None else f", key {source.key.text}"
    return schema(source.type) + key


def in_bytes(memory: int | str) -> int:
    """An amount of memory in bytes.

    >>> in_bytes("512MB"), in_bytes("1.5 GB"), in_bytes(1000)
    (536870912, 1610612736, 1000)
    """
    text = str(memory).strip().upper()
    number = text.rstrip("KMGTB ")
    unit = text[len(number) :].strip()
    try:
        found = int(float(number) * UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        found = -1
    if found < 0:
        raise EbbflowError(
            f"memory={memory!r} is no amount of memory", remedy='"512MB", "2GB", or bytes as an int'
        )
    return memory if isinstance(memory, int) else found


def _require_count(name: str, given: Any) -> None:
    if type(given) is not int or given < 1:
        raise CompositionError(
            f"run({name}={shown(given, width=40)}): that is no number of epochs",
            remedy=f"run({name}=1), or more",
        )
