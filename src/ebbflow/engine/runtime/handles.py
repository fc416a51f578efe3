"""One input of a view, to change it alone; one output, to read it and to hear of it alone.

Everything here is written with what a view does anyway: an epoch of one input (`_advance`), a
subscription, a look-up. What needs rows of the engine is given by the handles of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from ebbflow.change.requests import (
    ERROR,
    LAST,
    Order,
    delete,
    feed,
    forget,
    replace_rows,
    upsert,
)
from ebbflow.engine.runtime.changes import addition, removal, rows_in
from ebbflow.engine.runtime.clock import is_time, no_time
from ebbflow.engine.runtime.edits import KeyedEdit
from ebbflow.engine.runtime.events import Edits
from ebbflow.engine.runtime.gate import LateRows, late_rows
from ebbflow.engine.runtime.lookup import asked
from ebbflow.engine.runtime.unknown import unknown_of
from ebbflow.errors import UnknownVerb
from ebbflow.flow.plan import Source
from ebbflow.names import INPUT, OUTPUT
from ebbflow.notebook import page
from ebbflow.public import Public, names_of
from ebbflow.typevars import C
from ebbflow.zset import trusted

if TYPE_CHECKING:
    from ebbflow.engine.runtime.view import BaseView


class OutputHandle(Public):
    """One output of a view, to read it and to hear of it alone."""

    __slots__ = ("name", "view")
    _spoken, _instead = "an output", OUTPUT

    view: Any

    def __init__(self, view: BaseView, name: str) -> None:
        self.view = view
        self.name = name

    def write_changes(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",
        permissions: int | None = None,
    ) -> Callable[[], None]:
        """Have the change of every epoch in a folder; see `write_changes` of a view."""
        end: Callable[[], None] = self.view.write_changes(
            path, format=format, output=self.name, permissions=permissions
        )
        return end

    def write_snapshot(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",
        mode: str = "overwrite",
        **options: Any,
    ) -> None:
        """Write this output as a table; see `write_snapshot` of a view, also for the `options`."""
        self.view.write_snapshot(path, format=format, mode=mode, output=self.name, **options)

    def on_change(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        """Call `callback` with every change of this output; see `on_change` of a view."""
        unsubscribe: Callable[[], None] = self.view._subscribe(callback, self.name)
        return unsubscribe

    def show(self, n: int = 20) -> None:
        """Print the first `n` rows as a table."""
        raise NotImplementedError

    def _html(self) -> str:
        """The first rows as HTML, or how to see them."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return page(self, {"": self._html})

    def get(self, key: Any, default: Any = None) -> Any:
        """The row that has this key, or `default`; for outputs with a key: the results of groups,
        rows of an input with a key, and what is left of them after a filter.

        >>> import ebbflow as ef
        >>> sizes = ef.Input("words", str).group_by(size=len).agg(n=ef.count())
        >>> view = sizes.run(); view.step(words=["ebb", "sea"])
        ZSet({Group(size=3, n=2): 1})
        >>> view["output"].get(3), view["output"].get(4), 3 in view["output"]
        (Group(size=3, n=2), None, True)
        """
        with self.view._lock:
            self.view._require_open()
            found = self.view._look_up(self.name, asked(self.view.plan.outputs[self.name], key))
        return default if found is None else found

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"<output {self.name} of {self.view!r}>"

    def _unknown(self, name: str) -> UnknownVerb:
        view = self.view
        return unknown_of(
            self._spoken, name, self._instead, names_of(type(self)), view.plan, output=self.name,
            zsets=view._zsets,
        )  # fmt: skip


class InputHandle(Public, Generic[C]):
    """One input of a view, to change it alone. Every call is one epoch, and gives what it changed
    in the outputs."""

    __slots__ = ("name", "view")
    _spoken, _instead = "an input", INPUT

    view: BaseView[C]

    def __init__(self, view: BaseView[C], name: str) -> None:
        self.view = view
        self.name = name

    def _source(self) -> Source:
        return self.view.plan.sources[self.name]

    def get(self, key: Any, default: Any = None) -> Any:
        """The row that has this key, or `default`; for an input with a key.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str, key=len).run(); view.step(words=["ebb"])
        ZSet({'ebb': 1})
        >>> words = view.input("words")
        >>> words.get(3), words.get(4), 3 in words, len(words), words.value
        ('ebb', None, True, 1, ZSet({'ebb': 1}))
        """
        with self.view._lock, self.view._input_state(self.name) as state:
            found = state.get(key)
        return default if found is None else found

    def __contains__(self, key: Any) -> bool:
        """Whether there is a row of this key; for an input without a key, whether there is this
        row."""
        with self.view._lock, self.view._input_state(self.name) as state:
            return bool(state.has(key))

    @property
    def late(self) -> LateRows:
        """What came too late and was put aside, for an input with a lateness: how many changes of
        rows, and the last hundred.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> Hit = record("Hit", page=str, at=int)
        >>> hits = ef.Input("hits", Hit, time="at", lateness=10)
        >>> view = hits.tumbling("at", 60).group_by("window_end").agg(n=ef.count()).run()
        >>> view.step(hits=[Hit("a", 50), Hit("b", 130)]), view.step(hits=[Hit("a", 55)])
        (ZSet({Group(window_end=60, n=1): 1, Group(window_end=180, n=1): 1}), ZSet({}))
        >>> view.input("hits").late
        LateRows(count=1, last=((Hit(page='a', at=55), 1),), before=120)
        """
        with self.view._lock, self.view._input_state(self.name) as state:
            return late_rows(state)

    def apply(self, change: Any) -> C:
        """Apply a change: whatever `step` takes."""
        return self._apply(change)

    def _apply(self, change: Any) -> C:
        return self.view._advance({self.name: change})

    def add(self, *rows: Any, parse: bool = False) -> C:
        """Add these rows, or those of a list or a table; `parse=True` reads texts that stand for
        numbers, times and truth values.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str).run().input("words")
        >>> words.add("ebb", "flow"), words.add(["sea"])
        (ZSet({'ebb': 1, 'flow': 1}), ZSet({'sea': 1}))
        """
        given = rows_in(rows, self._source)
        if not parse and (given is rows or type(given) is list):
            return self._apply(list(given))
        return self._apply(trusted(addition(self._source(), given, parse=parse)))

    def remove(self, *rows: Any, parse: bool = False) -> C:
        """Remove these rows, or those of a list or a table; each must be there."""
        given = rows_in(rows, self._source)
        return self._apply(trusted(removal(self._source(), given, parse=parse)))

    def upsert(
        self, *rows: Any, delete: Any = (), missing: str = ERROR, duplicates: str | None = None,
        order: Order | None = None, parse: bool = False,
    ) -> C:  # fmt: skip
        """Put these rows in, or those of a list or a table, each in place of the row that has its
        key; see `ebbflow.upsert`. Of several rows of one key the last counts if they are arguments;
        in a list or a table there may be only one, unless `duplicates` or `order` says otherwise.
        """
        given = rows_in(rows, self._source)
        if duplicates is None:
            duplicates = LAST if given is rows else ERROR
        return self._apply(
            upsert(given, delete, missing=missing, duplicates=duplicates, order=order, parse=parse)
        )

    def feed(
        self, rows: Any, *, op: str | None = None, insert: Any = (), update: Any = (),
        delete: Any = (), order: Order | None = None, missing: str = ERROR, parse: bool = False,
    ) -> C:  # fmt: skip
        """Follow a feed of inserts, updates and deletes; see `ebbflow.feed`."""
        return self._apply(feed(
            rows, op=op, insert=insert, update=update, delete=delete, order=order,
            missing=missing, parse=parse,
        ))  # fmt: skip

    def replace(
        self, rows: Any, where: Mapping[str, Any] | Callable[[Any], bool] | None = None, *,
        parse: bool = False,
    ) -> C:  # fmt: skip
        """Have exactly these rows, or with `where` these of its rows; see `ebbflow.replace`."""
        return self._apply(replace_rows(rows, where, parse=parse))

    def set(self, time: Any) -> C:
        """Set a clock to a time; see `ebbflow.clock`."""
        if not is_time(self.view.plan.sources[self.name], time):
            raise no_time(self.view.plan.sources[self.name], time)
        return self.view._advance({self.name: time})

    def edit(self, key: Any, field: str, *changes: Any) -> C:
        """Change a field of the row that has this key from inside, by changes one after the other:
        `Insert` and `Delete` for a Text, `InsertItems`, `DeleteItems` and `ReplaceItem` for a list,
        a dict of `Put`, `Drop` and `Replace` for a dict; `Replace(value)` for any of them.

        Operators on the field follow the changes, so the cost is that of the edit.
        """
        return self.view._advance({self.name: Edits([KeyedEdit(key, field, changes)])})

    def delete(self, *keys: Any, at: Any = None, missing: str = ERROR, parse: bool = False) -> C:
        """Delete the rows of these keys, or of those in a list or a table; see `ebbflow.delete`.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str, key=len).run().input("words")
        >>> words.add("ebb"), words.delete(3), words.delete([3, 7], missing="ignore")
        (ZSet({'ebb': 1}), ZSet({'ebb': -1}), ZSet({}))
        """
        given = rows_in(keys, self._source)
        return self._apply(delete(given, at=at, missing=missing, parse=parse))

    def forget(self, before: Any) -> C:
        """Forget when rows were deleted before this time; see `ebbflow.forget`."""
        return self._apply(forget(before))

    def __repr__(self) -> str:
        return f"<input {self.name} of {self.view!r}>"

    def _unknown(self, name: str) -> UnknownVerb:
        plan, known = self.view.plan, names_of(type(self))
        return unknown_of(self._spoken, name, self._instead, known, plan, input=self.name)
