"""A mapping that is never changed: putting an entry in gives a new mapping and leaves the old one.

An accumulator must be a value, and a dict that is copied for every row would cost O(n). So the
entries sit in small dicts at the leaves of a tree that branches sixteen ways by the hash of the
key; a change copies one leaf and the path to it, O(log n) with a base of sixteen, and shares the
rest.

Two mappings are equal when their entries are, however each came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from ebbflow.errors import AbsentRow, AlgebraError, value_text
from ebbflow.ordering import total_order_key

K = TypeVar("K")
V = TypeVar("V")

_BITS, _WIDTH, _FULL, _DEEP = 4, 16, 16, 60
_Node = Any


class Map(Mapping[K, V], Generic[K, V]):
    """A dict that is not changed but replaced.

    >>> old = Map({"a": 1})
    >>> new = old.put("b", 2)
    >>> old, new, new.drop("a")
    (Map({'a': 1}), Map({'a': 1, 'b': 2}), Map({'b': 2}))
    >>> new == {"b": 2, "a": 1}
    True
    """

    __slots__ = ("_hash", "_root", "_size")

    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        found = dict(entries)
        self._root: _Node = _built(found, 0)
        self._size = len(found)
        self._hash: int | None = None

    def put(self, key: K, value: V) -> Map[K, V]:
        """With `value` at `key`."""
        return _made(_put(self._root, 0, key, value), self._size + (key not in self))

    def drop(self, key: K) -> Map[K, V]:
        """Without `key`, which must be there."""
        if key not in self:
            raise KeyError(key)
        return _made(_drop(self._root, 0, key), self._size - 1)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value at `key`, or the default."""
        node, code = self._root, None
        while type(node) is tuple:
            code = hash(key) if code is None else code >> _BITS
            node = node[code & _WIDTH - 1]
        return node.get(key, default)

    def __getitem__(self, key: K) -> V:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return cast("V", found)

    def __contains__(self, key: object) -> bool:
        return self.get(key, _MISSING) is not _MISSING

    def __iter__(self) -> Iterator[K]:
        return (key for leaf in _leaves(self._root) for key in leaf)

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self is other or (
            len(self) == len(other)
            and all((other.get(key, _MISSING),) == (value,) for key, value in self.items())
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.items()))
        return self._hash

    def __repr__(self) -> str:
        entries = self.items()
        with suppress(AlgebraError):  # keys that have no order
            return f"Map({dict(sorted(entries, key=lambda entry: total_order_key(entry[0])))!r})"
        return f"Map({dict(entries)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Map, (dict(self.items()),)


_MISSING = object()


def _made(root: _Node, size: int) -> Map[Any, Any]:
    new: Map[Any, Any] = Map.__new__(Map)
    new._root, new._size, new._hash = root, size, None
    return new


def _built(entries: dict[Any, Any], shift: int) -> _Node:
    if len(entries) <= _FULL or shift >= _DEEP:
        return entries
    parts: list[dict[Any, Any]] = [{} for _ in range(_WIDTH)]
    for key, value in entries.items():
        parts[hash(key) >> shift & _WIDTH - 1][key] = value
    return tuple([_built(part, shift + _BITS) for part in parts])


def _put(node: _Node, shift: int, key: Any, value: Any) -> _Node:
    if type(node) is dict:
        leaf = node.copy()
        leaf[key] = value
        return leaf if len(leaf) <= _FULL else _built(leaf, shift)
    at = hash(key) >> shift & _WIDTH - 1
    parts = list(node)
    parts[at] = _put(node[at], shift + _BITS, key, value)
    return tuple(parts)


def _drop(node: _Node, shift: int, key: Any) -> _Node:
    if type(node) is dict:
        rest = node.copy()
        del rest[key]
        return rest
    at = hash(key) >> shift & _WIDTH - 1
    child = _drop(node[at], shift + _BITS, key)
    parts = (*node[:at], child, *node[at + 1 :])
    if not child and all(type(part) is dict for part in parts) and sum(map(len, parts)) < _BITS:
        return {key: value for part in parts for key, value in part.items()}
    return parts


def _leaves(node: _Node) -> Iterator[dict[Any, Any]]:
    if type(node) is dict:
        yield node
    else:
        for part in node:
            yield from _leaves(part)


# ---- multisets ----


def tally(counts: Map[Any, int], row: Any, count: int) -> Map[Any, int]:
    """How often each row is there, after `count` more of one of them.

    >>> tally(tally(Map(), "a", 2), "a", -2)
    Map({})
    """
    root = counts._root
    there = root.get(row, 0) if type(root) is dict else counts.get(row, 0)
    total = there + count
    if total > 0:
        if type(root) is dict and (there or len(root) < _FULL):
            leaf = root.copy()
            leaf[row] = total
            return _made(leaf, counts._size + (not there))
        return _made(_put(counts._root, 0, row, total), counts._size + (not there))
    if total < 0:
        raise AbsentRow(
            f"{value_text(row)} cannot be taken away {-count} times: it is there {there} times",
            remedy="remove at most what was added",
        )
    return _made(_drop(counts._root, 0, row), counts._size - 1) if there else counts


def tally_all(counts: Map[Any, int], pairs: Sequence[tuple[Any, int]]) -> Map[Any, int]:
    """The same after many rows came or went; only the sum of each counts.

    >>> tally_all(Map({"a": 1}), [("b", 2), ("a", -1), ("b", -1)])
    Map({'b': 1})
    """
    if len(pairs) == 1:
        return tally(counts, *pairs[0])
    total: dict[Any, int] = {}
    get = total.get
    for row, count in pairs:
        total[row] = get(row, 0) + count
    for row, count in total.items():
        if count:
            counts = tally(counts, row, count)
    return counts
