"""Data to try laws on: values of change structures, and changes that are valid for a value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

from ebbflow import change as ch
from ebbflow.errors import CheckError
from ebbflow.laws.law import simplest
from ebbflow.laws.search import st
from ebbflow.laws.strategies import (
    LETTERS,
    SMALL,
    Strategy,
    as_strategy,
    bags,
    elements_of,
    unmade,
    zsets,
)
from ebbflow.zset import ZSet

_VALUES: dict[ch.ChangeStructure[Any, Any], Strategy] = {
    ch.BAG: bags(),
    ch.ZSET: zsets(),
    ch.NUMBER: SMALL,
    ch.NATURAL: st.integers(0, 9),
    ch.BOOL: st.booleans(),
    ch.TEXT: LETTERS,
    ch.LIST: st.lists(SMALL, max_size=5),
    ch.REPLACE: SMALL,
}


def values_of(structure: ch.ChangeStructure[Any, Any]) -> Strategy:
    """Values of a change structure."""
    if structure.elements is not None:
        return as_strategy(structure.elements)
    if structure in _VALUES:
        return _VALUES[structure]
    make, inner = structure.built or (None, ())
    if make in _VALUES_BUILT:
        return _VALUES_BUILT[make](*inner)
    raise unmade(structure)


_VALUES_BUILT: dict[Any, Callable[..., Strategy]] = {
    ch.pair: lambda first, second: st.tuples(values_of(first), values_of(second)),
    ch.sequence: values_of,
    ch.mapping: lambda of: st.dictionaries(st.sampled_from("abc"), values_of(of), max_size=3),
    ch.group: elements_of,
}


def changes_of(structure: ch.ChangeStructure[Any, Any], value: Any) -> Strategy:
    """Changes that are valid for `value`."""
    if structure.changes is not None:
        return as_strategy(structure.changes(value))
    make, inner = structure.built or (None, ())
    if structure == ch.BAG:
        out = {row: st.integers(-weight, 2) for row, weight in value.items()}
        taken = st.fixed_dictionaries({}, optional=out)
        return st.builds(lambda new, old: ZSet({**new._weights, **old}), bags(size=3), taken)
    if structure == ch.NATURAL:
        return st.integers(-value, 5)
    if structure == ch.TEXT:
        return _edits(len(value))
    if structure == ch.LIST:
        return _item_changes(len(value))
    if structure == ch.REPLACE:
        return st.one_of(st.just(ch.KEEP), SMALL.map(ch.Replace))
    if structure in _VALUES:
        return _VALUES[structure]
    if make is ch.pair:
        return _pair_changes(*map(changes_of, inner, value))
    if make is ch.sequence:
        return sequences_of(inner[0], value, partial(changes_of, inner[0]))
    if make is ch.mapping:
        return st.fixed_dictionaries(
            {}, optional={key: _entry_changes(inner[0], value, key) for key in "abc"}
        )
    if make is ch.group:
        return elements_of(inner[0])
    if structure.has_diff:
        return values_of(structure).map(lambda new: structure.diff(new, value))
    raise CheckError(
        f"it is not known how {structure!r} changes",
        remedy="pass changes=: a function from a value to a list or strategy of valid changes",
    )


def changes_towards(
    structure: ch.ChangeStructure[Any, Any], value: Any, values: Strategy
) -> Strategy:
    """Changes of `value` that are made of other `values`, as a user gave them.

    Rows come from other bags; a pair changes in one or both of its sides; elsewhere a change leads
    from this value to another, where there is a difference.
    """
    make, inner = structure.built or (None, ())
    if structure in (ch.BAG, ch.ZSET):
        return _bag_changes(structure, value, values)
    if make is ch.pair:
        others = [values.map(itemgetter(i)) for i in (0, 1)]
        return _pair_changes(*map(changes_towards, inner, value, others))
    if make is ch.sequence:
        return sequences_of(inner[0], value, lambda now: changes_towards(inner[0], now, values))
    if structure.changes is None and structure.has_diff:
        return values.map(lambda new: structure.diff(new, value))
    return changes_of(structure, value)


def _pair_changes(first: Strategy, second: Strategy) -> Strategy:
    both = st.builds(ch.Both, first, second)
    return st.one_of(first.map(ch.First), second.map(ch.Second), both)


@st.composite
def _bag_changes(
    draw: Any, structure: ch.ChangeStructure[Any, Any], value: Any, values: Strategy
) -> ZSet[Any]:
    """Some of the rows of another bag come, and as many go as there are."""
    rows = sorted({*value, *draw(values)}, key=simplest)
    change = {}
    for row in draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else ():
        most = value.weight(row) if structure == ch.BAG else 2
        change[row] = draw(st.integers(-most, 2))
    return ZSet(change)


def _edits(size: int) -> Strategy:
    inserts = st.builds(ch.Insert, st.integers(0, size), LETTERS)
    deletes = _stretches(size).map(lambda some: ch.Delete(*some))
    return st.one_of(inserts, deletes)


def _item_changes(size: int) -> Strategy:
    items = st.lists(SMALL, max_size=3).map(tuple)
    inserts = st.builds(ch.InsertItems, st.integers(0, size), items)
    deletes = _stretches(size).map(lambda some: ch.DeleteItems(*some))
    if not size:
        return st.one_of(inserts, deletes)
    return st.one_of(inserts, deletes, st.builds(ch.ReplaceItem, st.integers(0, size - 1), SMALL))


def _stretches(size: int) -> Strategy:
    """A position, and a count from there on."""
    return st.integers(0, size).flatmap(
        lambda at: st.tuples(st.just(at), st.integers(0, size - at))
    )


def _entry_changes(inner: Any, value: dict[Any, Any], key: Any) -> Strategy:
    if key not in value:
        return values_of(inner).map(ch.Put)
    return st.one_of(
        st.just(ch.Drop()),
        changes_of(inner, value[key]).map(ch.Patch),
        values_of(inner).map(ch.Replace),
    )


def sequences_of(
    structure: ch.ChangeStructure[Any, Any], value: Any, of: Callable[[Any], Strategy]
) -> Strategy:
    """Tuples of changes, each valid after the ones before it."""

    @st.composite
    def drawn(draw: Any) -> tuple[Any, ...]:
        changes: list[Any] = []
        now = value
        for _ in range(draw(st.integers(0, 4))):
            change = draw(of(now))
            if structure.valid(change, now):
                changes.append(change)
                now = structure.patch(now, change)
        return tuple(changes)

    return drawn()
