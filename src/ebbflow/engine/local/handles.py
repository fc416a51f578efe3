"""One input of a view, to change it alone; one output, to read it and to hear of it alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.inputs import InputState, KeyedInput
from ebbflow.engine.runtime.subscribe import Changes, OutputDeltas
from ebbflow.errors import ChangeError
from ebbflow.zset import ZSet, trusted

if TYPE_CHECKING:
    from ebbflow.engine.local.view import View


class OutputHandle:
    """One output of a view."""

    __slots__ = ("name", "view")

    def __init__(self, view: View, name: str) -> None:
        self.view = view
        self.name = name

    @property
    def value(self) -> ZSet[Any]:
        """The rows of this output, as they are now."""
        view = self.view
        with view._lock:
            if view._status:
                view._recover()
            return view._outputs[self.name].value()

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of this output; see `View.on_change`."""
        return self.view._subscribe(callback, self.name, self._shown)

    def changes(self, limit: int = 16) -> Changes:
        """Every change of this output from now on, for `async for`; see `View.changes`."""
        return self.view._stream(limit, self.name, self._shown)

    def _shown(self, deltas: OutputDeltas) -> ZSet[Any]:
        return trusted(deltas[self.name])

    def __repr__(self) -> str:
        return f"<output {self.name} of {self.view!r}>"


class InputHandle:
    """One input of a view. Every call is one epoch, and gives what it changed in the output."""

    __slots__ = ("_state", "view")

    def __init__(self, view: View, state: InputState) -> None:
        self.view = view
        self._state = state

    @property
    def name(self) -> str:
        """The name of the input."""
        return self._state.name

    def apply(self, change: Any) -> Any:
        """Apply a change: a ZSet, a mapping from row to weight, or rows to add."""
        return self.view._advance({self.name: change})

    def add(self, *rows: Any) -> Any:
        """Add these rows."""
        return self.view._advance({self.name: rows}, InputState.adds)

    def remove(self, *rows: Any) -> Any:
        """Remove these rows; each must be there."""
        return self.view._advance({self.name: rows}, InputState.removes)

    def upsert(self, *rows: Any) -> Any:
        """Put these rows in, each in place of the row that has its key; of several with the same
        key, the last."""
        self._require_key("upsert")
        return self.view._advance({self.name: rows}, KeyedInput.upserts)

    def delete(self, *keys: Any) -> Any:
        """Take away the rows that have these keys; each must be there."""
        self._require_key("delete")
        return self.view._advance({self.name: keys}, KeyedInput.deletes)

    def _require_key(self, verb: str) -> None:
        if not isinstance(self._state, KeyedInput):
            raise ChangeError(
                f"{verb}: input {self.name!r} has no key",
                created=self._state.source.place,
                remedy=f"Input({self.name!r}, ..., key=...), or add and remove rows",
            )

    def __repr__(self) -> str:
        return f"<input {self.name} of {self.view!r}>"
