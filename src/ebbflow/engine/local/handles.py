"""One input of a local view, to read it and to change it alone; one output, to read it and to hear
of it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.handles import InputHandle, OutputHandle
from ebbflow.engine.runtime.subscribe import Changes
from ebbflow.notebook import html_of, text_of
from ebbflow.typevars import C
from ebbflow.zset import ZSet

if TYPE_CHECKING:
    from ebbflow.engine.local.view import View


def rows_in(value: ZSet[Any]) -> int:
    """How many rows there are, each as often as it is there."""
    return sum([weight for _, weight in value.items()])


class LocalOutput(OutputHandle):
    """One output of a local view."""

    __slots__ = ()

    view: View[Any, Any]

    @property
    def value(self) -> ZSet[Any]:
        """The rows of this output, as they are now."""
        with self.view._lock:
            self.view._require_open()
            return self.view._program.outputs[self.name].value()

    def show(self, n: int = 20) -> None:
        """Print the first `n` rows as a table; see `View.show`."""
        print(text_of(self.value, n))

    def _html(self) -> str:
        return html_of(self.value)

    def __len__(self) -> int:
        return rows_in(self.value)

    def changes(self, *, limit: int = 16) -> Changes[ZSet[Any]]:
        """Every change of this output from now on, for `async for`; see `View.changes`."""
        return self.view._stream(limit, self.name)


class LocalInput(InputHandle[C]):
    """One input of a local view."""

    __slots__ = ()

    view: View[Any, C]

    @property
    def value(self) -> ZSet[Any]:
        """The rows of this input, as they are now."""
        with self.view._lock, self.view._input_state(self.name) as state:
            rows: ZSet[Any] = state.contents()
            return rows

    def __len__(self) -> int:
        return rows_in(self.value)
