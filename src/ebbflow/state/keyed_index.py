"""KeyedIndex: the rows of an input with a key, by another key, as they are.

An input that has a key keeps at most one row of each. An `Index` of such rows hashes them, and has
rows of its own where some fields are enough; here a row is the one that the input keeps, and it is
found by the key of the input, its *own* key:

    groups    {key: {own key: row}}
    groups    {key: row}                where the key is the own key, so that there is one row

The weight of every row is one. A row that takes the place of another has the same own key; so rows
that go are taken out first. What is done to it is a change, rows by key with their weights, as it
is for an `Index`. The way back says what is there for every own key of that change, whether or not
the change had come that far; so an epoch can be cut short anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ebbflow.chain import Chain, grouping, key_source
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.state.backing import ABSENT
from ebbflow.state.cells import Journalled
from ebbflow.state.index import Change, Grouped, not_there

_PUT = """
    for at, pairs in found.items():
        group = groups.get(at)
        if group is None:
            group = {}
            for row, weight in pairs:
                if weight < 0: return at, row
                group[$own] = row
            groups[at] = group
            continue
        for row, weight in pairs:
            if weight < 0 and group.pop($own, None) is None: return at, row
        for row, weight in pairs:
            if weight > 0: group[$own] = row
        if not group: del groups[at]
"""

_PUT_ONE = """
    for at, pairs in found.items():
        for row, weight in pairs:
            if weight < 0 and groups.pop(at, None) is None: return at, row
        for row, weight in pairs:
            if weight > 0: groups[at] = row
"""

_BACK = """
    for at, pairs in found.items():
        group = groups.setdefault(at, {})
        for row, weight in pairs:
            if weight > 0 and group.get($own) is row: del group[$own]
        for row, weight in pairs:
            if weight < 0: group[$own] = row
        if not group: del groups[at]
"""

_BACK_ONE = """
    for at, pairs in found.items():
        for row, weight in pairs:
            if weight > 0 and groups.get(at) is row: del groups[at]
        for row, weight in pairs:
            if weight < 0: groups[at] = row
"""

_BEFORE = """
    rest, old = {} if group is None else group.copy(), []
    for row, weight in changed:
        if weight > 0:
            rest.pop($own, None)
        else:
            old.append((row, 1))
    return rest.values(), old
"""

_BEFORE_ONE = """
    rest = () if changed or group is None else (group,)
    return rest, [(row, 1) for row, weight in changed if weight < 0]
"""


class KeyedIndex(Journalled[Grouped]):
    """Rows of an input with the key `own`, by `key(row)`; `before` are filters that they go
    through first.

    >>> words = KeyedIndex(Fn(len), Fn(str.lower))
    >>> words.apply({"Fig": 1, "pear": 1})
    {3: [('Fig', 1)], 4: [('pear', 1)]}
    >>> words.begin()
    >>> words.apply({"FIG": 1, "Fig": -1, "kiwi": 1})
    {3: [('FIG', 1), ('Fig', -1)], 4: [('kiwi', 1)]}
    >>> words.groups
    {3: {'fig': 'FIG'}, 4: {'pear': 'pear', 'kiwi': 'kiwi'}}
    >>> words.rollback()
    >>> words.groups
    {3: {'fig': 'Fig'}, 4: {'pear': 'pear'}}
    """

    __slots__ = ("_back", "_put", "grouping", "groups", "key", "one", "own", "rows_before")

    def __init__(self, key: Fn, own: Fn, before: Chain | None = None, owner: Any = None) -> None:
        self.key, self.own = key, own
        self.one = key == own
        self.groups: dict[Any, Any] = {}
        self.grouping = grouping(key, before, owner)
        self._put: Callable[..., Any] = self._loop("put", "found, groups", _PUT, _PUT_ONE)
        self._back: Callable[..., Any] = self._loop("back", "found, groups", _BACK, _BACK_ONE)
        self.rows_before = self._loop("rows_before", "group, changed", _BEFORE, _BEFORE_ONE)
        """The rows of a key before a change of them: those that it leaves alone, and those that go,
        each with its weight."""
        self.journal = None
        self.backing = None

    def _loop(self, title: str, parameters: str, several: str, one: str) -> Callable[..., Any]:
        loop = GeneratedLoop(title, parameters)
        loop.template(one if self.one else several, own=key_source(loop, self.own))
        return loop.function()

    def grouped(self, change: Change) -> Grouped:
        """The rows of a change by key, with their weights. All keys are computed here."""
        return self.grouping(change.items())

    def apply(self, change: Change) -> Grouped:
        """Add a change, and give its rows by key."""
        found = self.grouped(change)
        self.bring(found)
        if self.journal is not None:
            self.journal.append(found)
        missing = self._put(found, self.groups)
        if missing is not None:
            if self.journal is not None:
                self.journal[-1] = _until(found, *missing)
            raise not_there(missing[1])
        return found

    def bring(self, keys: Iterable[Any]) -> None:
        """Have the groups of these keys here."""
        if self.backing is not None:
            self.backing.fetch(keys)

    def reach(self) -> dict[Any, Any]:
        """The groups, for who has brought what is wanted of them."""
        return self.groups

    def rows(self, held: Any) -> Iterable[Any]:
        """The rows of one key, from what is held for it."""
        return (held,) if self.one else held.values()

    def undo(self, entry: Grouped) -> None:
        self._back(entry, self.groups)

    @property
    def contents(self) -> dict[Any, Any]:
        return self.groups

    def before(self) -> dict[Any, Any]:
        entries = self._open()
        keys = dict.fromkeys(at for entry in entries for at in entry)
        found = {at: self.apart(self.groups[at]) for at in keys if at in self.groups}
        for entry in reversed(entries):
            self._back(entry, found)
        return {at: found.get(at, ABSENT) for at in keys}

    def apart(self, held: Any) -> Any:
        return held if self.one else held.copy()

    def __len__(self) -> int:
        return len(self.groups) if self.one else sum(map(len, self.groups.values()))

    def __repr__(self) -> str:
        rows = [row for held in self.groups.values() for row in self.rows(held)]
        return f"<rows by {self.key.text}, each found by {self.own.text}: {rows!r}>"


def _until(found: Grouped, last: Any, row: Any) -> Grouped:
    """What of a change is done, when a row of the key `last` was found to be missing: rows are
    taken out before others come in."""
    done: Grouped = {}
    for at, pairs in found.items():
        if at is last:
            gone = [pair for pair in pairs if pair[1] < 0]
            done[at] = gone[: [each is row for each, _ in gone].index(True)]
            break
        done[at] = pairs
    return done
