"""A branch: a copy of a view to try something out on, that shares the state of the view until one
of them changes it.

A branch is a view like any other, and its epochs are its own. What its program touches is copied
key by key (`ebbflow.engine.runtime.share`), so making one costs nothing that grows with the data.
Afterwards it can be compared with its view, and dropped, or adopted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import finalize

from ebbflow.engine.local.view import View
from ebbflow.engine.runtime.batches import BatchName
from ebbflow.engine.runtime.columnar.program import FirstStep, use_rows
from ebbflow.engine.runtime.in_memory import use_memory
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.share import Sharing
from ebbflow.errors import CompositionError
from ebbflow.typevars import T, W
from ebbflow.zset import ZSet, add_into, trusted


class Branch(View[T, W]):
    """A copy of a view; made by `View.branch`."""

    __slots__ = ("_end", "_original", "_sharing")

    def __init__(self, original: View[T, W]) -> None:
        program = original._program
        machine = program.machine
        in_part = machine.backed and not isinstance(original, Branch)
        if in_part and not original._storage.load():
            raise CompositionError(
                "branch(): most of the state of a view with a memory limit is on disk",
                remedy="run(path=...) without memory=",
            )
        first: Any = getattr(original._storage, "advance", None)
        if isinstance(first, FirstStep):
            first.in_rows()
        use_rows(program)  # which two can share
        trusting: bool = machine.trusting
        copied = Machine(
            original.plan, trusting=trusting, stored=machine.stored, narrow=machine.narrow
        )
        super().__init__(original.plan, copied, check_input=not trusting)
        if machine.in_memory:
            use_memory(self._program)
        self._lock = original._lock
        self._epoch = original._epoch
        self._original = original
        self._sharing = Sharing(program, self._program)
        self._end = finalize(self, self._sharing.end)

    def _advance(self, given: Mapping[str, Any], batch: BatchName | None = None) -> W:
        if batch is not None:
            raise CompositionError(
                f"step(batch={batch!r}) of a branch: what is only tried out is no batch",
                remedy="step(...) the branch without it, and then the view with it",
            )
        return super()._advance(given)

    def compare(self) -> W:
        """How the outputs of the branch differ from those of its view, in the form that `step`
        gives: rows that only the branch has with positive weights, the others with negative ones.

        >>> import ebbflow as ef
        >>> view = ef.Input("numbers", int).filter(lambda n: n > 2).run()
        >>> branch = view.branch()
        >>> branch.step(numbers=[1, 3]), view.step(numbers=[4]), branch.compare()
        (ZSet({3: 1}), ZSet({4: 1}), ZSet({3: 1, 4: -1}))
        """
        with self._lock:
            self._require_open()
            found = self._sharing.ours.total()
            for name, delta in self._sharing.theirs.total().items():
                add_into(found.setdefault(name, {}), {row: -n for row, n in delta.items()})
        return self._shown(found)

    def adopt(self) -> W:
        """Do to the view, as one epoch, all that was done to the inputs of the branch, and close
        the branch. Gives what that changed in the view.

        Where the view has changed since, its changes stay. A row that is taken away and not there
        any more is an error, and changes nothing.

        >>> import ebbflow as ef
        >>> view = ef.Input("numbers", int).map(lambda n: n * n).run()
        >>> branch = view.branch()
        >>> branch.step(numbers=[2, 3]), branch.step(numbers={2: -1}), branch.adopt()
        (ZSet({4: 1, 9: 1}), ZSet({4: -1}), ZSet({9: 1}))
        >>> view.value
        ZSet({9: 1})
        """
        with self._lock:
            self._require_open()
            changes: dict[str, ZSet[Any]] = {
                name: trusted(delta) for name, delta in self._sharing.inputs.total().items()
            }
            found = self._original.step(changes)
            self.close()
        return found

    def close(self) -> None:
        """Stop, and let go of everything; the view goes on."""
        super().close()
        self._end()
