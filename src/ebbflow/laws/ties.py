"""Rows that tie: alike in some fields, different in the others.

A reducer that compares rows goes wrong where they compare equal: two orders of one price, two
events at one time, two prices for one id. Rows drawn at random seldom tie, so ties are made: the
fields that `add` reads are found by watching it, and rows are put together that share some of them
with another row and take the rest from a third.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from random import Random
from typing import Any

from ebbflow.laws.reducers import AnyReducer

BASES = 6
WATCHED = 12
_WHOLE = ("__iter__", "__hash__", "__repr__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__")


def parts(row: Any) -> tuple[Any, ...] | None:
    """The fields of a row that has several: a NamedTuple, a tuple or a dataclass.

    >>> parts(("Rome", 3)), parts(3)
    (('Rome', 3), None)
    """
    if isinstance(row, tuple):
        return tuple(row) if len(row) > 1 else None
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        found = tuple(getattr(row, each.name) for each in dataclasses.fields(row))
        return found if len(found) > 1 else None
    return None


def rebuilt(row: Any, values: Sequence[Any]) -> Any:
    """A row like this one with other fields; None where its class refuses them."""
    with suppress(Exception):
        if not isinstance(row, tuple):
            names = [each.name for each in dataclasses.fields(row)]
            return dataclasses.replace(row, **dict(zip(names, values, strict=True)))
        make = getattr(type(row), "_make", None)
        return type(row)(values) if make is None else make(values)
    return None


def tied(r: AnyReducer, rows: Sequence[Any]) -> list[list[Any]]:
    """Groups of rows: the first is one of `rows`, the others tie with it in some fields.

    >>> from ebbflow.reducer import Reducer
    >>> best = Reducer(("", 0), lambda a, x: x if x[1] > a[1] else a)
    >>> tied(best, [("Rome", 3), ("Oslo", 5)])
    [[('Rome', 3), ('Oslo', 3)], [('Oslo', 5), ('Rome', 5)]]
    """
    dice = Random(0)
    types: dict[Any, list[Any]] = {}
    for row in rows:
        if (found := parts(row)) is not None:
            types.setdefault((type(row), len(found)), []).append(row)
    groups = []
    for alike in types.values():
        fields, before = deciding(r, alike), list[int]()
        while fields != before:  # what is read may depend on what ties
            bases = alike[:: -(-len(alike) // BASES)]
            made = [_group(base, alike, _subsets(fields), dice) for base in bases]
            before = fields
            for group in made:
                fields = sorted({*fields, *deciding(r, group)})
        groups += [group for group in made if len(group) > 1]
    return groups


def _group(
    base: Any, rows: Sequence[Any], shared: list[tuple[int, ...]], dice: Random
) -> list[Any]:
    """A row, and for each choice of fields one that has exactly these in common with it."""
    group = [base]
    for fields in shared:
        other = max(dice.choices(rows, k=8), key=_difference(base, fields))
        values = enumerate(zip(_parts(base), _parts(other), strict=True))
        made = rebuilt(base, [a if i in fields else b for i, (a, b) in values])
        if made is not None and made not in group:
            group.append(made)
    return group


def _parts(row: Any) -> tuple[Any, ...]:
    found = parts(row)
    assert found is not None
    return found


def _difference(base: Any, fields: Sequence[int]) -> Callable[[Any], int]:
    """In how many fields but these a row differs from the base."""
    own = _parts(base)

    def count(row: Any) -> int:
        theirs = enumerate(_parts(row))
        return sum(i not in fields and bool(b != own[i]) for i, b in theirs)

    return count


def _subsets(fields: Sequence[int]) -> list[tuple[int, ...]]:
    """Which fields two rows are to share: any of them, or one and all but one where many decide."""
    sizes = range(1, len(fields) + 1) if len(fields) <= 4 else (1, len(fields) - 1, len(fields))
    return [each for size in sizes for each in combinations(fields, size)]


# ---- which fields decide ----


def deciding(r: AnyReducer, rows: Sequence[Any]) -> list[int]:
    """The positions of the fields that `add` looks at; all of them where that cannot be seen.

    >>> from ebbflow.reducer import Reducer
    >>> deciding(Reducer(0, lambda a, x: a + x[1]), [("Rome", 3, True)])
    [1]
    """
    seen: set[int] = set()
    try:
        watched = list(map(_watching(rows[0], seen), rows[:WATCHED]))
        r.fold(watched)
        r.fold(watched[::-1])
    except Exception:
        seen.clear()
    return sorted(seen) or list(range(len(_parts(rows[0]))))


def _watching(row: Any, seen: set[int]) -> Callable[[Any], Any]:
    """A function that makes rows like this one note which of their fields are asked for."""
    cls: Any = type(row)
    everything = range(len(_parts(row)))
    plain = isinstance(row, tuple)
    names = getattr(cls, "_fields", ()) if plain else [f.name for f in dataclasses.fields(row)]
    position = {name: i for i, name in enumerate(names)}

    def attribute(self: Any, name: str) -> Any:
        if name in position:
            seen.add(position[name])
        return object.__getattribute__(self, name)

    def item(self: Any, at: Any) -> Any:
        seen.update([everything[at]] if isinstance(at, int) else everything)
        return tuple.__getitem__(self, at)

    def whole(name: str) -> Callable[..., Any]:
        def asked(self: Any, *others: Any) -> Any:
            seen.update(everything)
            return getattr(cls, name)(self, *others)

        return asked

    space: dict[str, Any] = {"__slots__": (), "__getattribute__": attribute}
    if plain:
        space |= {"__getitem__": item, **{name: whole(name) for name in _WHOLE}}
    watched: Any = type(cls)(cls.__name__, (cls,), space)
    if plain:
        return lambda each: tuple.__new__(watched, each)

    def twin(each: Any) -> Any:
        made = object.__new__(watched)
        for name, value in zip(names, _parts(each), strict=True):
            object.__setattr__(made, name, value)
        return made

    return twin


# ---- rows of a strategy ----


FIELDS = 12


def likes(source: Any) -> list[Any]:
    """The simplest row of a strategy, and for each field the simplest rows that differ there.

    These are rows that the strategy gives, whatever it promises about their fields.
    """
    from ebbflow.laws.search import NoSuchExample, Unsatisfiable, first_found

    simplest = partial(first_found, source, examples=100)
    first = simplest(lambda row: parts(row) is not None)
    own = _parts(first)
    found = [first]
    for i in range(min(len(own), FIELDS)):
        seen = [own[i]]
        for _ in range(2):
            with suppress(NoSuchExample, Unsatisfiable):
                near = simplest(
                    lambda row, i=i, seen=seen: type(row) is type(first)  # type: ignore[misc]
                    and len(_parts(row)) == len(own) and _parts(row)[i] not in seen
                )  # fmt: skip
                found.append(near)
                seen.append(_parts(near)[i])
    return found
