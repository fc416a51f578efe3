"""The state on disk of a program that runs in columns.

Opening reads nothing: the kernels get the state before the first epoch. An epoch that columns
cannot take runs in rows. When it is refused there, columns go on, as their state is that of the
last epoch; when it happens, the program stays in rows, which read from disk what they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbflow.engine.runtime.batches import BatchName
from ebbflow.engine.runtime.columnar.stored_program import StoredColumns, given_again
from ebbflow.engine.runtime.columnar.stored_stages import RowsNeeded
from ebbflow.engine.runtime.durable import Disk, is_orderly
from ebbflow.engine.runtime.program import Pending, RunningProgram
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.kernel import DoesNotFit
from ebbflow.state.spine import Place


class ColumnDisk(Disk):
    """The state of one view on disk, and in columns."""

    def __init__(self, path: Place, program: RunningProgram, **options: Any) -> None:
        self.columns: StoredColumns | None = None
        self._due = True
        """Whether the next epoch begins with columns, which have no state yet."""
        self._left: StoredColumns | None = None
        """The columns that the epoch which is open could not run in."""
        super().__init__(path, program, **options)

    def _in_part(self) -> bool:
        return True

    def load(self) -> bool:
        self._leave("the program runs in rows")
        return super().load()

    def _run(self, epoch: int, given: Mapping[str, Any], batch: BatchName | None) -> OutputDeltas:
        if self._due:
            self._enter()
        columns, run = self.columns, self.program.run
        if columns is None:
            return run(epoch, given, batch)
        given = {name: given_again(change) for name, change in given.items()}
        try:
            return run(epoch, given, batch)
        except RowsNeeded as error:
            why = error.what
        self.program.rollback()
        self._left = columns
        self._leave(f"{why} came")
        return run(epoch, given, batch)

    def _enter(self) -> None:
        """Have the program run in columns, if any stage can, and what is stored fits."""
        program, machine = self.program, self.program.machine
        columns = StoredColumns(program)
        why = ""
        if program.forgetting.gates or any(stage.looping for stage in machine.stages):
            why = "a program that loops, or forgets what is closed, is in rows"
        elif columns.some:
            try:
                columns.load()
            except DoesNotFit as error:
                why = f"{error} is stored"
        if columns.some and not why:
            self.columns = columns  # first: whoever is interrupted leaves them
            columns.enter()
        else:
            reasons = {stage.slot: why for stage in machine.stages} if why else columns.why
            machine.use(machine.stages, reasons)
        self._due = False

    def _leave(self, why: str) -> None:
        """Have the program run in rows, and read from the store what it needs."""
        self._due = False
        if self.columns is not None:
            self.columns.leave(why)
            self.columns = None

    def _stage(self) -> None:
        super()._stage()
        if self.columns is not None:
            self.columns.stage()

    def _rows(self, name: str) -> Any:
        return super()._rows(name) if self.columns is None else self.columns.outputs[0][name]

    def keep(self, pending: Pending) -> None:
        super().keep(pending)
        self._left = None

    def undo(self, error: BaseException | None, epoch: int) -> None:
        if error is not None and is_orderly(error):
            super().undo(error, epoch)
            if self._left is not None:
                self.columns = self._left
                self.columns.enter()
                self._left = None
            return
        again = self._due or self.columns is not None or self._left is not None
        self._leave("an epoch was interrupted")
        self._left, self._due = None, again
        super().undo(None, epoch)
