"""Reducers made of reducers: of a part of each row, of some rows, side by side, per key.

What is made of well-formed reducers is well-formed: `remove` of the whole undoes `add` of the whole
because it does so in each part. Where one part cannot remove, the whole asks to recompute, or is
left to its `merge` when every part has one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ebbflow.algebra.monoid import Composed
from ebbflow.errors import ChangeError
from ebbflow.reducer.hashed import Map
from ebbflow.reducer.reducer import CLASSES, RECOMPUTE, Reducer, at_once
from ebbflow.reducer.row import Key, getter

Any_ = Reducer[Any, Any, Any]
ORDERS = ("O(1)", "O(log n)", "O(n)")


def _like(reducer: Any_, made: Any, **changed: Any) -> Any_:
    """A reducer with some things changed, and with its own way to be shown and pickled."""
    kept = ("init", "add", "remove", "merge", "result", "repeat", "partial", "aggregate", "size",
            "cost", "equal", "elements")  # fmt: skip
    return Reducer(**{**{name: getattr(reducer, name) for name in kept}, **changed}, made=made)


def _rows_of(reducer: Any_) -> Any:
    """The rows that were said to be its rows; those of the library are only a guess."""
    guess = reducer.made is not None and reducer.made[0].__module__ != __name__
    return None if guess else reducer.elements


# ---- before and after ----


class _On:
    """A step on a part of the row."""

    def __init__(self, step: Callable[..., Any], of: Callable[[Any], Any]) -> None:
        self.step = step
        self.of = of

    def __call__(self, acc: Any, row: Any, *count: int) -> Any:
        return self.step(acc, self.of(row), *count)


def _of_part(step: Any, part: Callable[[Any], Any]) -> Any:
    if isinstance(step, _Where):
        return _Where(_of_part(step.step, part), Composed(part, step.predicate))
    return _On(step, part)


def on(reducer: Any_, *of: Key) -> Any_:
    """See `Reducer.on`."""
    part = getter(*of)
    steps = {
        name: step and _of_part(step, part)
        for name, step in (
            ("add", reducer.add), ("remove", reducer.remove), ("repeat", reducer.repeat)
        )
    }  # fmt: skip
    inline = reducer.inline and reducer.inline.on(of[0] if len(of) == 1 else part)
    return _like(reducer, (on, (reducer, *of), {}), **steps, elements=None, inline=inline)


class _Where:
    """A step on some rows only: of several, the one of the first condition is outside, so that the
    second is asked of the rows that meet the first, as in generated loops."""

    def __init__(self, step: Callable[..., Any], predicate: Callable[[Any], object]) -> None:
        self.step = step
        self.predicate = predicate

    def __call__(self, acc: Any, row: Any, *count: int) -> Any:
        return self.step(acc, row, *count) if self.predicate(row) else acc


def _of_some(step: Any, holds: Callable[[Any], object]) -> Any:
    if isinstance(step, _Where):
        return _Where(_of_some(step.step, holds), step.predicate)
    return _Where(step, holds)


def _ask(acc: Any, row: Any) -> Any:
    return RECOMPUTE


def where(reducer: Any_, predicate: Key) -> Any_:
    """See `Reducer.where`. Rows that do not count never need a recomputation."""
    remove, holds = reducer.remove, getter(predicate)
    if remove is None and reducer.merge is None:
        remove = _ask
    return _like(
        reducer,
        (where, (reducer, predicate), {}),
        add=_of_some(reducer.add, holds),
        remove=remove and _of_some(remove, holds),
        repeat=reducer.repeat and _of_some(reducer.repeat, holds),
        elements=_rows_of(reducer),
        inline=reducer.inline and reducer.inline.where(predicate),
    )


def then(reducer: Any_, f: Callable[[Any], Any]) -> Any_:
    """See `Reducer.then`."""
    at_once(f)
    result = f if reducer.result is None else Composed(reducer.result, f)
    aggregate = "algebraic" if reducer.aggregate == "distributive" else reducer.aggregate
    return _like(
        reducer, (then, (reducer, f), {}), result=result, aggregate=aggregate,
        inline=reducer.inline and reducer.inline.then(f),
    )  # fmt: skip


# ---- side by side ----


class _Together:
    """The steps of several reducers on a tuple of their accumulators."""

    def __init__(self, parts: tuple[Any_, ...]) -> None:
        self.parts = parts

    def start(self) -> tuple[Any, ...]:
        return tuple([part.start() for part in self.parts])

    def add(self, acc: tuple[Any, ...], row: Any) -> tuple[Any, ...]:
        return tuple([part.add(a, row) for part, a in zip(self.parts, acc, strict=True)])

    def remove(self, acc: tuple[Any, ...], row: Any) -> Any:
        return self.repeat(acc, row, -1)

    def repeat(self, acc: tuple[Any, ...], row: Any, count: int) -> Any:
        parts = zip(self.parts, acc, strict=True)
        if count > 0:
            return tuple([part.added(a, row, count) for part, a in parts])
        accs = tuple([part.removed(a, row, -count) for part, a in parts])
        return RECOMPUTE if any(a is RECOMPUTE for a in accs) else accs

    def merge(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        both = zip(self.parts, first, second, strict=True)
        return tuple([part.merge(a, b) for part, a, b in both if part.merge is not None])

    def result(self, acc: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([part.finish(a) for part, a in zip(self.parts, acc, strict=True)])

    def equal(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
        both = zip(self.parts, first, second, strict=True)
        return all(part.equal(a, b) for part, a, b in both)


def together(*reducers: Any_) -> Any_:
    """See `Reducer.__and__`."""
    parts: tuple[Any_, ...] = ()
    for each in reducers:
        flat = each.made is not None and each.made[0] is together
        parts += each.made[1] if flat and each.made is not None else (each,)
    steps = _Together(parts)
    removes = all(part.remove is not None for part in parts)
    return Reducer(
        steps.start,
        steps.add,
        steps.remove if removes else None,
        steps.merge if all(part.merge is not None for part in parts) else None,
        steps.result,
        repeat=steps.repeat,
        partial=_partial(parts),
        aggregate=_worst([part.aggregate for part in parts], CLASSES),
        size=_worst([part.size for part in parts], ORDERS),
        cost=_worst([part.cost for part in parts], ORDERS),
        equal=operator.eq if all(part.equal is operator.eq for part in parts) else steps.equal,
        elements=_rows_of_all(parts),
        made=(together, parts, {}),
    )


def _rows_of_all(parts: tuple[Any_, ...]) -> Any:
    said = [rows for rows in map(_rows_of, parts) if rows is not None]
    guessed = [part.elements for part in sorted(parts, key=lambda part: part.partial is not False)]
    return said[0] if said else None if None in guessed else guessed[0]


def _partial(parts: tuple[Any_, ...]) -> bool | None:
    said = [part.partial for part in parts]
    return True if True in said else None if None in said else False


def _worst(words: list[str], order: tuple[str, ...]) -> str:
    return max(words, key=order.index) if all(word in order for word in words) else ""


# ---- per key ----


class _By:
    """The steps of one reducer on a mapping from each key to its row count and accumulator."""

    def __init__(self, inner: Any_, key: Callable[[Any], Any]) -> None:
        self.inner = inner
        self.key = key

    def add(self, groups: Map[Any, Any], row: Any) -> Map[Any, Any]:
        return self.repeat(groups, row, 1)  # type: ignore[no-any-return]

    def remove(self, groups: Map[Any, Any], row: Any) -> Any:
        return self.repeat(groups, row, -1)

    def repeat(self, groups: Map[Any, Any], row: Any, count: int) -> Any:
        key = self.key(row)
        size, acc = groups.get(key) or (0, self.inner.start())
        if size + count < 0:
            raise ChangeError(
                f"{self.inner!r}.by(...): a row is taken away that is not there", row=row, key=key
            )
        if size + count == 0:
            return groups.drop(key) if size else groups
        inner = self.inner.added(acc, row, count) if count > 0 else (
            self.inner.removed(acc, row, -count)
        )  # fmt: skip
        return RECOMPUTE if inner is RECOMPUTE else groups.put(key, (size + count, inner))

    def merge(self, first: Map[Any, Any], second: Map[Any, Any]) -> Map[Any, Any]:
        assert self.inner.merge is not None
        for key, (size, acc) in second.items():
            there = first.get(key)
            entry = (there[0] + size, self.inner.merge(there[1], acc)) if there else (size, acc)
            first = first.put(key, entry)
        return first

    def result(self, groups: Map[Any, Any]) -> Map[Any, Any]:
        finish = self.inner.finish
        return Map({key: finish(acc) for key, (_, acc) in groups.items()})

    def equal(self, first: Map[Any, Any], second: Map[Any, Any]) -> bool:
        return first.keys() == second.keys() and all(
            size == second[key][0] and self.inner.equal(acc, second[key][1])
            for key, (size, acc) in first.items()
        )


def by(reducer: Any_, *key: Key) -> Any_:
    """See `Reducer.by`. A key without rows is not there; the last of its rows needs no `remove`."""
    steps = _By(reducer, getter(*key))
    return Reducer(
        Map(),
        steps.add,
        steps.remove,
        steps.merge if reducer.merge is not None else None,
        steps.result,
        repeat=steps.repeat,
        partial=reducer.partial,
        aggregate="holistic",
        size="O(n)",
        cost=_worst(["O(log n)", reducer.cost], ORDERS),
        equal=operator.eq if reducer.equal is operator.eq else steps.equal,
        elements=_rows_of(reducer),
        made=(by, (reducer, *key), {}),
    )
