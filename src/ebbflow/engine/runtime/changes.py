"""A change of an input, read: rows with weights.

A change may be given as a ZSet, as a mapping from row to weight, as rows, each of which counts
once, or as a table (see `tables`). However it is given, it is read into one form: a dict of rows
with weights, none of them zero, with one NaN (see `ebbflow.nan`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ebbflow.change import Text as EditedText
from ebbflow.change.fields import as_declared, unchanged
from ebbflow.change.requests import require_bool
from ebbflow.engine.runtime.dict_rows import is_row, kept_rows, row_of
from ebbflow.engine.runtime.rows import Weights
from ebbflow.engine.runtime.tables import (
    are_columns,
    is_columns,
    is_frame,
    is_table,
    read_table,
    refuse_table,
)
from ebbflow.engine.runtime.values.check import canonical_rows, tester
from ebbflow.engine.runtime.values.hints import rule_of
from ebbflow.engine.runtime.values.rules import WrongValue
from ebbflow.errors import ChangeError, Text, cause_of, place
from ebbflow.flow.plan import Source
from ebbflow.flow.types import fields_held
from ebbflow.frozen import frozen
from ebbflow.nan import mapped, with_one_nan
from ebbflow.record import fields_of
from ebbflow.zset import ZSet, weights_of


def read(source: Source, change: Any, *, check: bool = True, parse: bool = False) -> Weights:
    """A change as a dict of rows with weights, none of them zero. The values of rows are brought to
    their types, or refused; without `check` they are believed. With `parse`, texts are read.

    >>> numbers = Source(name="numbers")
    >>> read(numbers, [1, 2, 1]), read(numbers, {1: -1, 2: 0})
    ({1: 2, 2: 1}, {1: -1})
    """
    if isinstance(change, ZSet):
        weights = weights_of(change)
        if not check:
            return _declared(source, _kept(source, weights))
        if source.narrow is None and tester(source.type)(weights):
            return weights
        return canonical_rows(source, _kept(source, weights), parse=parse)
    if isinstance(change, (dict, Mapping)):
        weights = change.copy() if type(change) is dict else dict(change)
        if not {int}.issuperset(map(type, weights.values())) or not all(weights.values()):
            if is_columns(change):
                return read_table(source, change, parse=parse)
            if is_row(source, change):
                raise _one_row(source, change)
            weights = _without_zeros(source, weights)
        if source.narrow is not None:
            weights = kept_rows(source, weights)
        return _typed(source, weights, check, parse)
    if type(change) is not list:
        if is_table(change):
            return read_table(source, change, parse=parse)
        refuse_table(source, change)
    if _is_one_row(source, change):
        raise _one_row(source, change)
    if not isinstance(change, Iterable):
        raise ChangeError(
            f"input {source.name!r}: a value of type {type(change).__name__} is not a change",
            given=change,
            created=source.place,
            remedy="give a ZSet, a dict from row to weight, a list of rows, or a table",
        )
    rows = change if isinstance(change, (list, tuple)) else list(change)
    try:
        weights = _kept(source, _counts(rows))
    except TypeError:
        weights = _counts([hashable(source, row_of(source, row)) for row in rows])
    return _typed(source, weights, check, parse)


def _kept(source: Source, weights: Weights) -> Weights:
    return weights if source.narrow is None else kept_rows(source, weights)


def _typed(source: Source, weights: Weights, check: bool, parse: bool) -> Weights:
    """Rows with the values that their type states; if they are believed, with one NaN."""
    if check:
        return canonical_rows(source, weights, parse=parse)
    return _declared(source, with_one_nan(weights, source.type))


def _declared(source: Source, weights: Weights) -> Weights:
    """Rows as their type declares them: with a Text for a `str` in a field that is edited."""
    declared = as_declared(source.type)
    return weights if declared is unchanged else mapped(declared, weights)


def rows_in(given: tuple[Any, ...], source: Callable[[], Source]) -> Any:
    """The rows that a method was called with: its arguments, or those of its only argument where
    that is a list of rows, a table or a Z-set, and no row itself. `source` is asked about a dict.

    >>> numbers = Source(name="numbers")
    >>> [rows_in(each, lambda: numbers) for each in [(1, 2), ([1, 2],), ("ebb",)]]
    [(1, 2), [1, 2], ('ebb',)]
    """
    if len(given) != 1:
        return given
    (only,) = given
    if isinstance(only, (tuple, str, int)):
        return given
    if isinstance(only, (list, ZSet)) or is_table(only) or is_frame(only):
        return only
    if isinstance(only, Mapping):
        return only if not is_row(source(), only) or are_columns(only) else given
    return list(only) if isinstance(only, (set, Iterator)) else given


def addition(source: Source, rows: Any, *, parse: bool = False) -> Weights:
    """Rows to add, or the rows of a table, as a change; `apply` checks their values."""
    require_bool("add or remove", "parse", parse)
    weights = read(source, list(rows) if type(rows) is tuple else rows, check=parse, parse=parse)
    for row, weight in weights.items():
        if weight < 0:
            raise ChangeError(
                f"input {source.name!r}: a change was given that takes a row away, and rows were "
                "asked",
                row=row,
                weight=weight,
                created=source.place,
                remedy=f"step({source.name}=change) adds and removes",
            )
    return weights


def removal(source: Source, rows: Any, *, parse: bool = False) -> Weights:
    """Rows to remove, or the rows of a table, as a change."""
    return {row: -weight for row, weight in addition(source, rows, parse=parse).items()}


def _counts(rows: list[Any] | tuple[Any, ...]) -> Weights:
    weights = dict.fromkeys(rows, 1)
    if len(weights) < len(rows):
        weights = {}
        for row in rows:
            weights[row] = weights.get(row, 0) + 1
    return weights


def _is_one_row(source: Source, change: Any) -> bool:
    """Whether it is a row, though it could be taken for an iterable of rows."""
    one = isinstance(change, (str, bytes, EditedText))
    return one or fields_of(type(change)) is not None


def _one_row(source: Source, row: Any) -> ChangeError:
    return ChangeError(
        f"input {source.name!r}: one row was given where a change is asked",
        row=row,
        created=source.place,
        remedy=f"give a list, {source.name}=[row], or view.input({source.name!r}).add(row)",
    )


def _without_zeros(source: Source, weights: Mapping[Any, Any]) -> Weights:
    for row, weight in weights.items():
        if type(weight) is not int:
            raise ChangeError(
                f"input {source.name!r}: a weight must be an int, not {type(weight).__name__}",
                row=row,
                weight=weight,
                created=source.place,
                remedy="give {row: 1} to add a row, {row: -1} to remove it, or a list of rows",
            )
    return {row: weight for row, weight in weights.items() if weight}


@lru_cache(maxsize=256)
def is_loose(row_type: Any) -> bool:
    """Whether rows of a type may be given with lists, dicts or sets in them."""
    return fields_of(row_type) != fields_held(row_type)


def hashable(source: Source, row: Any) -> Any:
    """The row, with tuples for lists, and so on, where the hints of its fields say so."""
    try:
        row = row_of(source, row)
        row = frozen(row) if is_loose(source.type) else row
        return _as_hashable(source.type, row)
    except TypeError as error:
        refuse_table(source, row, as_row=True)
        raise ChangeError(
            f"input {source.name!r}: a row must be hashable, and a {type(row).__name__} "
            + ("with this in it is not" if isinstance(row, tuple) else "is not"),
            row=row,
            created=source.place,
            remedy="use tuples for lists, frozensets for sets, a NamedTuple for a dict",
        ) from cause_of(error)


def _as_hashable(row_type: Any, row: Any) -> Any:
    """A row; what its type converts to is hashable, as a tuple is that stands for a list."""
    try:
        hash(row)
        return row
    except TypeError:
        with suppress(WrongValue):
            row = rule_of(row_type).convert(row)
        hash(row)
        return row


def one_mapping(more: tuple[object, ...]) -> ChangeError:
    """Return the error for a step that was given several changes without names."""
    return ChangeError(
        "step: name the input of each change",
        given=more[0], created=place(), remedy="step(orders=[row], people=[row])",
    )  # fmt: skip


def merged(changes: Mapping[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """The changes of one step, given as a mapping and by name."""
    if not isinstance(changes, Mapping):
        raise ChangeError(
            "step: which input is this a change of?",
            given=changes,
            remedy="by the name of the input: step(orders=[row]), or step({'orders': [row]})",
        )
    twice = changes.keys() & named.keys()
    if twice:
        raise ChangeError(
            "step: an input was given two changes",
            inputs=Text(", ".join(sorted(twice))),
            remedy="add the two up: ZSet + ZSet",
        )
    return {**changes, **named}
