"""Index: rows by key, with their weights, and a journal that can undo an epoch.

A join has one index per side. What is done to an index is a change, rows by key with their weights;
so the change itself is the journal, and the way back is to apply it with its weights negated.
(`begin`, `commit` and `rollback` are those of `Cells`.)

Weights may be negative: an index is as good for differences as it is for rows, unless it is said to
be of a `bag`. A row of weight zero is not there, and a key without rows is not there either.

`groups` is a plain dict of plain dicts, for loops that cannot afford a call per row. An engine that
keeps its state elsewhere has a `Backing` put the groups of the touched keys into it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from ebbflow.algebra.value import function_name
from ebbflow.chain import grouping
from ebbflow.errors import NotDeterministic, ViewClosed
from ebbflow.state.backing import ABSENT, Codec
from ebbflow.state.cells import Journalled
from ebbflow.zset import ZSet, add_into

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Hashable)

Change = ZSet[Any] | dict[Any, int]
Grouped = dict[Any, Iterable[tuple[Any, int]]]
NOT_YET: Any = object()
CUT_SHORT: Any = None
"""In a journal, in the place of a change that is being made."""


class Index(Journalled[Grouped], Generic[K, R]):
    """Rows by `key(row)`; without a key, all rows are under `()`.

    >>> index = Index(len, ZSet.of(["fig", "pear", "kiwi"]))
    >>> index.groups
    {3: {'fig': 1}, 4: {'pear': 1, 'kiwi': 1}}
    >>> index.begin()
    >>> index.apply(ZSet({"fig": -1, "nut": 2}))
    {3: [('fig', -1), ('nut', 2)]}
    >>> index.groups[3]
    {'nut': 2}
    >>> index.rollback()
    >>> index.groups[3]
    {'fig': 1}
    """

    __slots__ = ("bag", "cut", "grouping", "groups", "key", "pending")

    codec: Codec | None = None
    """How the rows of a key are held here, where that is not a dict of weights."""

    def __init__(
        self,
        key: Callable[[R], K] | None = None,
        rows: ZSet[R] | None = None,
        by_key: Callable[[Any], Grouped] | None = None,
        *,
        bag: bool = False,
    ) -> None:
        self.key = key
        self.bag = bag
        self.groups: dict[Any, dict[R, int]] = {}
        self.pending: Grouped = {}
        self.cut: Any = None
        """Where `put` was cut short, until the epoch is taken back."""
        self.grouping = grouping(key) if by_key is None else by_key
        self.journal = None
        self.backing = None
        if rows is not None:
            self.apply(rows)

    def grouped(self, change: Change) -> Grouped:
        """The rows of a change by key, with their weights. All keys are computed here."""
        return self.grouping(change.items())

    def apply(self, change: Change) -> Grouped:
        """Add a change, and give its rows by key, which a step nearly always wants next."""
        return self.apply_groups(self.grouping(change.items()))

    def apply_groups(self, found: Grouped) -> Grouped:
        """Add a change that is by key already."""
        backing = self.backing
        if backing is not None and backing.keeps:
            backing.fetch(found)
        if backing is None or backing.keeps or backing.resident is None:
            negative = self.put(found)
        else:
            resident = backing.resident
            if self.pending:  # what waits already would have to be added up: have it here
                self.bring([at for at in found if at in self.pending])
            negative = self.put({at: pairs for at, pairs in found.items() if at in resident})
            negative += self._put_away({at: p for at, p in found.items() if at not in resident})
        if negative and self.bag:
            raise self._astray(negative[0])
        return found

    def _put_away(self, far: Grouped) -> list[R]:
        """Add rows of groups that are not here, which stay where they are; where rows go, only the
        weights of these are looked up. Gives those whose weight is negative now."""
        if not far:
            return []
        if self.journal is not None:
            self.journal.append(far)
        self.pending.update(far)
        gone = [(at, pair) for at, pairs in far.items() for pair in pairs if pair[1] < 0]
        if not gone or not self.bag:
            return []
        assert self.backing is not None
        there = self.backing.kept.weights([(at, row) for at, (row, _) in gone])
        return [row for (_, (row, w)), count in zip(gone, there, strict=True) if count + w < 0]

    def bring(self, keys: Iterable[K]) -> None:
        """Have the groups of these keys here, as they are now."""
        backing = self.backing
        if backing is None or backing.resident is None:
            return
        keys = list(keys)
        backing.fetch(keys)
        if self.pending:
            journal, self.journal = self.journal, None  # it has these rows already
            for at in keys:
                pairs = self.pending.pop(at, None)
                if pairs is not None:
                    self.put({at: pairs})
            self.journal = journal

    def reach(self) -> Any:
        """The groups, for who wants few of them: each is brought here when it is looked at."""
        backing = self.backing
        here = backing is None or backing.resident is None
        return self.groups if here else Reach(self)

    def commit(self) -> list[Grouped]:
        if self.pending:
            self.pending = {}
        return Journalled.commit(self)

    def forget(self) -> None:
        self.pending = {}
        super().forget()

    def put(self, found: Grouped) -> list[R]:
        """Add rows that are by key already, and give those whose weight is negative now."""
        groups, negative, journal = self.groups, [], self.journal
        at = row = NOT_YET
        known = new = total = None
        try:
            if journal is not None:
                journal.append(CUT_SHORT)
            for at, pairs in found.items():
                group = groups.get(at)
                if group is None:
                    new = groups[at] = dict(pairs)
                    if min(new.values()) < 0:
                        negative += [row for row, weight in pairs if weight < 0]
                    continue
                for row, weight in pairs:
                    total = group.get(row, 0) + weight
                    known = row
                    if total > 0:
                        group[row] = total
                    elif total:
                        group[row] = total
                        negative.append(row)
                    else:
                        del group[row]
                if not group:
                    del groups[at]
            if journal is not None:
                journal[-1] = found
        except BaseException:
            self.cut = found, at, new, row, total if known is row else None  # calls nothing
            raise
        return negative

    def _done(self, entry: Grouped) -> Grouped:
        """What of an entry of the journal is done. An interrupt that came before it could be noted
        where the last one came leaves nobody who knows."""
        cut, journal = self.cut, self.journal
        if entry is CUT_SHORT:
            if cut is None or journal is None:
                raise ViewClosed(
                    "two interrupts came at once, and it is not known what is done of the epoch",
                    remedy="run() a new one",
                )
            entry = journal[-1] = self._so_far(*cut)
        self.cut = None
        return entry

    def _so_far(self, found: Grouped, last: Any, new: Any, row: Any, total: Any) -> Grouped:
        """What of a change is done, when `put` was cut short at the key `last`.

        A group that is `new` is there altogether or not at all. In any other the rows before `row`
        are done, and that one too if `total`, where that is known already, is its weight.
        """
        done: Grouped = {}
        for at, pairs in found.items() if last is not NOT_YET else ():
            if at is not last:
                done[at] = pairs
                continue
            group = self.groups.get(at, {})
            rows = [pair[0] is row for pair in pairs]
            if group is new:
                done[at] = pairs
            elif True in rows:
                stop = rows.index(True) + (total is not None and group.get(row, 0) == total)
                done[at] = list(pairs)[:stop]
            break
        return done

    def _astray(self, row: R) -> NotDeterministic:
        """The error for a row of negative weight; when it is there under another key, that one."""
        for at, group in self.groups.items():
            if group.get(row, 0) > 0:
                return NotDeterministic(
                    "a row is taken back, and its key is another than when it came",
                    row=row,
                    was=at,
                    remedy="a key that is the same for the same row every time",
                )
        return not_there(row)

    def undo(self, entry: Grouped) -> None:
        """Take a change out again, which is a change like any other."""
        entry = self._done(entry)
        if self.pending:
            away = {at for at in entry if self.pending.pop(at, None) is not None}
            entry = {at: pairs for at, pairs in entry.items() if at not in away}
        self.put({at: [(row, -weight) for row, weight in pairs] for at, pairs in entry.items()})

    @property
    def contents(self) -> dict[Any, dict[R, int]]:
        return self.groups

    def before(self) -> dict[Any, dict[R, int]]:
        found: dict[Any, dict[R, int]] = {}
        for entry in self._open():
            for at, pairs in entry.items():
                if at not in found:
                    found[at] = self.groups.get(at, {}).copy()
                add_into(found[at], {row: -weight for row, weight in pairs})
        return {at: group or ABSENT for at, group in found.items()}

    def apart(self, held: dict[R, int]) -> dict[R, int]:
        return held.copy()

    def weight(self, row: R) -> int:
        """How often `row` is there; 0 when it is not."""
        at = () if self.key is None else self.key(row)
        return self.groups.get(at, {}).get(row, 0)

    def holds(self, change: ZSet[R]) -> bool:
        """Whether every row that `change` takes away is there so often."""
        return all(weight > 0 or self.weight(row) + weight >= 0 for row, weight in change.items())

    def __eq__(self, other: object) -> bool:
        return self.groups == other.groups if isinstance(other, Index) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.key, self.groups, self.bag)

    def __repr__(self) -> str:
        key = "None" if self.key is None else function_name(self.key)
        rows = {row: weight for group in self.groups.values() for row, weight in group.items()}
        return f"Index({key}, {ZSet(rows)!r})"


class Reach:
    """The groups of an index of which few are here; see `Index.reach`."""

    __slots__ = ("index",)

    def __init__(self, index: Index[Any, Any]) -> None:
        self.index = index

    def get(self, key: Any, default: Any = None) -> Any:
        """The rows of a key; they are fetched when somebody wants to see them."""
        here = self.index.groups.get(key)
        return Far(self.index, key) if here is None else here

    def __contains__(self, key: Any) -> bool:
        """Whether a key has rows; they are here then."""
        if key not in self.index.groups:
            self.index.bring([key])
        return key in self.index.groups

    def __getitem__(self, key: Any) -> dict[Any, int]:
        """The rows of a key that has some."""
        if key not in self:
            raise KeyError(key)
        return self.index.groups[key]


class Far:
    """The rows of one key, not fetched yet."""

    __slots__ = ("_rows", "index", "key")

    def __init__(self, index: Index[Any, Any], key: Any) -> None:
        self.index, self.key = index, key
        self._rows: dict[Any, int] | None = None

    @property
    def rows(self) -> dict[Any, int]:
        """The rows, here now."""
        if self._rows is None:
            self.index.bring([self.key])
            self._rows = self.index.groups.get(self.key, {})
        return self._rows

    def items(self) -> Any:
        return self.rows.items()

    def keys(self) -> Any:
        return self.rows.keys()

    def copy(self) -> dict[Any, int]:
        return self.rows.copy()

    def __getitem__(self, row: Any) -> int:
        return self.rows[row]


def _rebuilt(key: Any, groups: dict[Any, dict[Any, int]], bag: bool) -> Index[Any, Any]:
    index: Index[Any, Any] = Index(key, bag=bag)
    index.groups = groups
    return index


def not_there(row: Any) -> NotDeterministic:
    """The error for a row that is taken back and not there."""
    return NotDeterministic(
        "a row is taken back that is not there",
        row=row,
        remedy="functions that give the same answer for the same row every time",
    )
