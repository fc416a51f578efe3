"""A differential operator for each key: one function, many states.

Each key that has rows has a state of the inner operator, and how many rows it has. When its last
row leaves, the state goes with it.

An epoch can be undone only if states can. What an inner operator keeps in an `Index`, in `Cells`,
or in values that are never altered, can go back by itself. Any other state is copied before a step,
key by key: an operator that keeps a large dict of its own pays for that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.change import BAG, ZSET
from ebbflow.errors import ChangeError, CompositionError, place
from ebbflow.nan import one_nan
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.operator import Operator, journalled
from ebbflow.operator.relation import NOTHING, Bag
from ebbflow.state.cells import ABSENT, Cells, Journalled
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, without_zeros

FROZEN = (type(None), bool, int, float, str, bytes, frozenset, ZSet, Tree)


class States(Cells[Any, Any]):
    """Cells whose values hold containers: those that an epoch touches go back with it."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[Journalled[Any]] = []

    def touch(self, state: Any) -> Any:
        """The state, ready to be altered; a copy of it where it could not go back by itself."""
        if not _goes_back(state):
            return deepcopy(state)
        if self.journal is not None:
            for container in journalled(state):
                if container.journal is None:
                    self.opened.append(container)
                    container.begin()
        return state

    def apart(self, held: Any) -> Any:
        return deepcopy(held)

    def before(self) -> dict[Any, Any]:
        """Containers that the epoch has altered in place are undone, in a copy."""
        found = super().before()
        for key, cell in found.items():
            if any(each.journal for each in journalled(cell)):
                found[key] = copy = self.apart(cell)
                for now, then in zip(journalled(cell), journalled(copy), strict=True):
                    then.forget()
                    for entry in reversed(now.journal or ()):
                        then.undo(entry)
        return found

    def commit(self) -> list[dict[Any, Any]]:
        for container in self.opened:
            if container.journal is not None:
                container.commit()
        self.opened = []
        return super().commit()

    def rollback(self) -> None:
        for container in reversed(self.opened):
            if container.journal is not None:
                container.rollback()
        self.opened = []
        super().rollback()


def _goes_back(state: Any) -> bool:
    if isinstance(state, tuple):
        return all(map(_goes_back, state))
    return isinstance(state, (*FROZEN, Journalled))


class PerKey(ByKey):
    """One state of an operator for each key; see `per_key`.

    A cell is the number of rows, the state of the inner operator, and its value where that is not a
    bag.
    """

    def __init__(self, operator: Any, key: Any, width: int, row_type: Any, owner: Any) -> None:
        super().__init__(key, owner)
        self.operator, self.width, self.row_type = operator, width, row_type
        self.bags = operator.output in (BAG, ZSET)
        self.output = operator.output if self.bags else BAG

    def made(self, key: Any, value: Any) -> Any:
        """A row that goes out: the parts of the key, then a row or a value of that key."""
        if not self.width and self.bags:
            return value
        front = () if not self.width else (key,) if self.width == 1 else key
        row = (*front, value)
        return tuple.__new__(self.row_type, row) if hasattr(self.row_type, "_fields") else row

    def f(self, x: Bag) -> Bag:
        out: list[tuple[Any, int]] = []
        for key, pairs in self.by_key(x.items()).items():
            value = self.operator.f(ZSet(pairs))
            rows = value.items() if self.bags else [(value, 1)]
            out += [(self.made(key, row), weight) for row, weight in rows]
        return ZSet(out)

    def init(self, x: Bag) -> States:
        state = States()
        self.update(state, x)
        return state

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give what the operators of the touched keys make of it."""
        operator, bags, made = self.operator, self.bags, self.made
        recomputes = operator.recomputes
        new: dict[Any, Any] = {}
        out: dict[Any, int] = {}
        for key, pairs in self.by_key(change.items()).items():
            part = ZSet(pairs)
            cell = state.values.get(key)
            size = (0 if cell is None else cell[0]) + sum([weight for _, weight in part.items()])
            if recomputes and (cell is None or not size) and size >= 0:
                new[key], sign, values = self._computed(key, cell, part, size)
                for each, weight in values:
                    _count(out, made(key, one_nan(each)), sign * weight)
                continue
            inner = operator.init(NOTHING) if cell is None else state.touch(cell[1])
            if size < 0 or not operator.accepts(inner, part):
                raise self._refusal(key, part)
            inner, delta = operator.step(inner, part)
            if bags:
                for each, weight in delta.items():
                    _count(out, made(key, one_nan(each)), weight)
                new[key] = (size, inner) if size else ABSENT
                if sign := (cell is None) - (not size):
                    for each, weight in operator.f(NOTHING).items():
                        _count(out, made(key, each), sign * weight)
            else:
                was = operator.f(NOTHING) if cell is None else cell[2]
                now = one_nan(operator.output.patch(was, delta))
                if cell is not None:
                    _count(out, made(key, was), -1)
                if size:
                    _count(out, made(key, now), 1)
                new[key] = (size, inner, now) if size else ABSENT
        state.swap(new)
        return without_zeros(out)

    def accepts(self, state: Any, change: Bag) -> bool:
        if not self.input.is_change(change):
            return False
        for key, pairs in self.by_key(change.items()).items():
            cell = state.values.get(key)
            size = (0 if cell is None else cell[0]) + sum(weight for _, weight in pairs)
            if size < 0 or not self._takes(cell, ZSet(pairs)):
                return False
        return True

    def _takes(self, cell: Any, part: Bag) -> bool:
        """Whether the operator of a key can take a change."""
        operator = self.operator
        if cell is None and operator.recomputes:
            return bool(operator.input.valid(part, NOTHING))
        inner = operator.init(NOTHING) if cell is None else cell[1]
        return bool(operator.accepts(inner, part))

    def _refusal(self, key: Any, part: Bag) -> ChangeError:
        return ChangeError(
            f"{self.operator!r} cannot take this change",
            key=key,
            change=part,
            remedy="a change that is valid for the rows as they are now",
        )

    def _computed(
        self, key: Any, cell: Any, part: Bag, size: int
    ) -> tuple[Any, int, Iterable[Any]]:
        """The new cell of a key that comes or goes, and what comes or goes with it. A function that
        is computed again is not asked about no rows at all: that says nothing about any key."""
        operator = self.operator
        if not self._takes(cell, part):
            raise self._refusal(key, part)
        inner = operator.init(part) if cell is None else cell[1]
        whole = operator.recalled(inner) if cell is None or self.bags else cell[2]
        if whole is NotImplemented:
            whole = operator.f(part if cell is None else -part)
        values = whole.items() if self.bags else [(whole, 1)]
        if cell is not None:
            return ABSENT, -1, values
        return (size, inner) if self.bags else (size, inner, one_nan(whole)), 1, values

    def invariant(self, x: Bag, state: Any) -> bool:
        groups = {key: ZSet(pairs) for key, pairs in self.by_key(x.items()).items()}
        return state.values.keys() == groups.keys() and all(
            cell[0] == sum(weight for _, weight in groups[key].items())
            and self.operator.invariant(groups[key], cell[1])
            and (self.bags or cell[2] == self.operator.f(groups[key]))
            for key, cell in state.values.items()
        )

    def __repr__(self) -> str:
        key = "" if self.key is None else f", {function_name(self.key)}"
        return f"per_key({self.operator!r}{key})"


def _count(out: dict[Any, int], row: Any, weight: int) -> None:
    out[row] = out.get(row, 0) + weight


def per_key(
    operator: Operator[Bag, Bag, Any, Any],
    key: Callable[[Any], Hashable] | None = None,
    *,
    width: int = 1,
    row_type: Any = None,
    owner: Any = None,
) -> PerKey:
    """The operator on the rows of each key. Without a key, on all rows: give `width=0` then.

    When it gives bags, out come rows `(key, row)`; when it gives anything else, one row
    `(key, value)` for each key that has rows. A key of `width` parts is spread. `row_type` is the
    type of the new rows.

    >>> from ebbflow.operator import count
    >>> live = per_key(count(), len).open(ZSet.of(["fig", "nut", "pear"]))
    >>> live.send(ZSet({"fig": -1, "pear": -1}))
    ZSet({(3, 2): -1, (3, 1): 1, (4, 1): -1})
    """
    given = getattr(operator, "input", None)
    if given not in (BAG, ZSET):
        name = repr(operator) if isinstance(operator, Operator) else function_name(operator)
        what = f"takes {given!r}" if isinstance(operator, Operator) else "is no operator"
        raise CompositionError(
            f"per_key({name}): the rows of a key are a bag, and {name} {what}",
            created=place(),
            remedy="an operator on bags, such as count() or map_rows(f)",
        )
    return PerKey(operator, key, width, row_type, owner)
