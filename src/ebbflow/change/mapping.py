"""Dicts, changed key by key.

A change of a dict is itself a dict, from key to what happens there: `Put` a value where there was
none, `Drop` the one that is there, `Patch` it with a change of its own, or `Replace` it. A key may
be absent, and each of the four fits only one of the two cases; nothing is put over a value by
accident or dropped twice.

What happens at one key has nothing to do with the others. So all there is to know is how one
*entry*, a value or its absence, changes; the dict is many entries side by side. Two changes of one
entry nearly always merge: only two patches may not, and then it is for the inner structure to say.
Two changes that can never follow each other, such as Drop after Drop, raise a ChangeError.

Patching copies the dict once, and not its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ebbflow.change.replace import Replace
from ebbflow.change.structure import ByParts, ChangeStructure, Why
from ebbflow.errors import ChangeError, Text, type_name, value_text

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Put(Generic[T]):
    """A value for a key that has none.

    >>> from ebbflow.change import NUMBER
    >>> mapping(NUMBER).patch({}, {"Rome": Put(3)})
    {'Rome': 3}
    """

    value: T


@dataclass(frozen=True, slots=True)
class Drop:
    """The key goes, and its value with it.

    >>> from ebbflow.change import NUMBER
    >>> mapping(NUMBER).patch({"Rome": 3, "Oslo": 1}, {"Rome": Drop()})
    {'Oslo': 1}
    """


@dataclass(frozen=True, slots=True)
class Patch(Generic[D]):
    """A change of the value at a key.

    >>> from ebbflow.change import NUMBER
    >>> mapping(NUMBER).patch({"Rome": 3}, {"Rome": Patch(-1)})
    {'Rome': 2}
    """

    change: D


EntryChange = Put[T] | Drop | Patch[D] | Replace[T]


def mapping(
    inner: ChangeStructure[T, D],
    *,
    elements: Any = None,
    changes: Callable[[dict[Any, T]], Any] | None = None,
) -> ChangeStructure[dict[Any, T], dict[Any, EntryChange[T, D]]]:
    """Dicts, whose change is a dict from key to `Put`, `Drop`, `Patch` or `Replace`.

    >>> from ebbflow.change import NUMBER
    >>> stock = mapping(NUMBER)
    >>> stock.diff({"figs": 5, "nuts": 2}, {"figs": 3, "tea": 1})
    {'tea': Drop(), 'figs': Patch(change=2), 'nuts': Put(value=2)}
    >>> stock.compress([{"figs": Put(3)}, {"figs": Patch(2), "tea": Drop()}])
    ({'figs': Put(value=5), 'tea': Drop()},)
    >>> stock.patch({"figs": 3}, {"tea": Drop()})
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: {'tea': Drop()} is not a valid change of this dict
        because    at 'tea': there is no value to drop
        value      absent
        try        at 'tea': Put(value)
    """
    return _Mapping(inner, built=(mapping, (inner,)), elements=elements, changes=changes)


class _Mapping(ByParts[dict[Any, T], dict[Any, EntryChange[T, D]]]):
    noun, takes = "dict", "a dict from key to Put(value), Drop(), Patch(change) or Replace(value)"

    def __init__(self, inner: ChangeStructure[T, D], **rest: Any) -> None:
        super().__init__(**rest)
        self.inner = inner
        self.entry = _Entry(inner)

    def valid(self, change: object, value: dict[Any, T]) -> bool:
        if not (isinstance(change, dict) and isinstance(value, dict)):
            return False
        fits, get = self.entry.valid, value.get
        return all(fits(entry, get(key, _ABSENT)) for key, entry in change.items())

    def is_change(self, change: object) -> bool:
        entries = (Put, Drop, Patch, Replace)
        return isinstance(change, dict) and all(isinstance(e, entries) for e in change.values())

    def apply(self, value: dict[Any, T], change: dict[Any, EntryChange[T, D]]) -> dict[Any, T]:
        new = dict(value)
        for key, entry in change.items():
            after = self.entry.apply(new.get(key, _ABSENT), entry)
            if after is _ABSENT:
                del new[key]
            else:
                new[key] = after
        return new

    def diff(self, new: dict[Any, T], old: dict[Any, T]) -> dict[Any, EntryChange[T, D]]:
        """Keys whose values are equal do not appear."""
        gone: dict[Any, EntryChange[T, D]] = {key: Drop() for key in old if key not in new}
        both = ((key, new[key], old[key]) for key in old if key in new)
        changed = {key: self._changed(a, b) for key, a, b in both if a is not b and a != b}
        fresh = {key: Put(value) for key, value in new.items() if key not in old}
        return gone | changed | fresh

    def _changed(self, new: T, old: T) -> EntryChange[T, D]:
        """A Patch where there is a difference, else a Replace: of texts, or floats that round."""
        try:
            return Patch(self.inner.diff(new, old))
        except ChangeError:
            return Replace(new)

    @property
    def nothing(self) -> dict[Any, EntryChange[T, D]]:
        return {}

    @property
    def empty(self) -> dict[Any, T]:
        return {}

    def is_nothing(self, change: object) -> bool:
        return isinstance(change, dict) and all(map(self.entry.is_nothing, change.values()))

    def compress(
        self, changes: Iterable[dict[Any, EntryChange[T, D]]]
    ) -> tuple[dict[Any, EntryChange[T, D]], ...]:
        by_key: dict[Any, list[EntryChange[T, D]]] = {}
        for change in changes:
            if not isinstance(change, dict):
                raise self.stranger(change)
            for key, entry in change.items():
                by_key.setdefault(key, []).append(entry)
        steps: list[dict[Any, EntryChange[T, D]]] = []
        for key, entries in by_key.items():
            for step, entry in enumerate(self._compressed_at(key, entries)):
                if step == len(steps):
                    steps.append({})
                steps[step][key] = entry
        return tuple(steps)

    def _compressed_at(
        self, key: object, entries: list[EntryChange[T, D]]
    ) -> tuple[EntryChange[T, D], ...]:
        try:
            return self.entry.compress(entries)
        except ChangeError as trouble:
            what, facts = f"at {value_text(key)}: {trouble.what}", trouble.facts
            raise ChangeError(what, remedy=trouble.remedy, **facts) from trouble

    def why(self, change: object, value: dict[Any, T]) -> Why:
        if not isinstance(value, dict):
            return Why("the value is not a dict", "a dict", {"value": value})
        if not isinstance(change, dict):
            reason = f"{type_name(change)} does not say at which key something happens"
            return Why(reason, self.takes, {"value": value})
        for key, entry in change.items():
            there = value.get(key, _ABSENT)
            if not self.entry.valid(entry, there):
                reason, remedy, facts = self.entry.why(entry, there)
                at = value_text(key)
                return Why(f"at {at}: {reason}", f"at {at}: {remedy}", facts)
        return super().why(change, value)


_ABSENT: Any = Text("absent")


class _Entry(ChangeStructure[Any, EntryChange[Any, Any]]):
    """What is at one key: a value of the inner structure, or `_ABSENT`."""

    noun, takes = "entry", "Put(value), Drop(), Patch(change) or Replace(value)"

    def __init__(self, inner: ChangeStructure[Any, Any]) -> None:
        super().__init__(built=(_Entry, (inner,)))
        self.inner = inner

    def valid(self, change: object, value: Any) -> bool:
        match change:
            case Put():
                return value is _ABSENT
            case Drop() | Replace():
                return value is not _ABSENT
            case Patch(inner):
                return value is not _ABSENT and self.inner.valid(inner, value)
        return False

    def apply(self, value: Any, change: EntryChange[Any, Any]) -> Any:
        match change:
            case Put(new) | Replace(new):
                return new
            case Patch(inner):
                return self.inner.apply(value, inner)
            case Drop():
                return _ABSENT

    def is_nothing(self, change: object) -> bool:
        return isinstance(change, Patch) and self.inner.is_nothing(change.change)

    def compose(
        self, first: EntryChange[Any, Any], second: EntryChange[Any, Any]
    ) -> tuple[EntryChange[Any, Any], ...]:
        match first, second:
            case Put(), Drop():
                return ()
            case Put(), Replace(new):
                return (Put(new),)
            case Put(new), Patch(change):
                return (Put(self.inner.patch(new, change)),)
            case Drop(), Put(new):
                return (Replace(new),)
            case Replace(new), Patch(change):
                return (Replace(self.inner.patch(new, change)),)
            case Patch(c), Patch(d):
                return tuple(map(Patch, self.inner.compose(c, d)))
            case ((Patch() | Replace()), (Drop() | Replace())):
                return (second,)
        raise ChangeError(
            f"{value_text(second)} can never follow {value_text(first)}",
            remedy="Put where the key is absent; Drop, Patch or Replace where it is present",
        )

    def why(self, change: object, value: Any) -> Why:
        if not isinstance(change, (Put, Drop, Patch, Replace)):
            reason = f"{type_name(change)} does not say what happens there"
            return Why(reason, self.takes, {"value": value})
        if value is _ABSENT:
            verb = type(change).__name__.lower()
            return Why(f"there is no value to {verb}", "Put(value)", {"value": value})
        if isinstance(change, Patch):
            return self.inner.why(change.change, value)
        return Why("there is a value already", "Replace(value)", {"value": value})
