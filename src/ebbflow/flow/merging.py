"""Merged rows: what becomes of two rows that meet, or of one that meets nothing.

A merged row has the fields of the left row, then those of the right one; a key field with the same
name on both sides is there once. Other names that both sides have need suffixes. Where fields are
not known, it is the pair; and `select` says it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import Text
from ebbflow.expression.node import Constant, Record, field_of
from ebbflow.expression.value import plain_fields
from ebbflow.flow import attributes, types
from ebbflow.flow.inferred import inferred
from ebbflow.flow.parts import TWO_ROWS, function, plain, refuse, row_type, rows_of
from ebbflow.flow.plan import Node
from ebbflow.fn import Fn
from ebbflow.record import fields_of, taken_apart


@dataclass(frozen=True)
class Merging:
    """How a row comes of two, or of one that met nothing."""

    type: Any
    both: Fn
    left_alone: Fn
    right_alone: Fn


@dataclass(frozen=True)
class Merge:
    """A row of `type` from places in other rows: (which row, which field); None gives None."""

    type: Any
    places: tuple[tuple[int, int] | None, ...]

    def __call__(self, *rows: Any) -> Any:
        rows = tuple(
            [row if isinstance(row, tuple) else taken_apart(type(row))(row) for row in rows]
        )
        values = [None if at is None else rows[at[0]][at[1]] for at in self.places]
        return tuple.__new__(self.type, values)

    def fn(self, *row_types: Any) -> Fn:
        """This merge as a function of rows of these types, traced where their fields are plain."""
        fn = Fn.of(self, *row_types, arity=len(row_types))
        names = [list(plain_fields(hint) or ()) for hint in row_types]
        if all(names):
            fn.expression = Record(self.type, tuple(
                Constant(None)
                if at is None
                else field_of(at[0], names[at[0]][at[1]], at[1], row_types[at[0]])
                for at in self.places
            ))  # fmt: skip
        fn.name = self.type.__name__
        return fn


@dataclass(frozen=True)
class Alone:
    """What `merge` gives for a row that met nothing: the other is None."""

    merge: Any
    left: bool

    def __call__(self, row: Any) -> Any:
        return self.merge(row, None) if self.left else self.merge(None, row)


def _pair(left: Any, right: Any) -> tuple[Any, Any]:
    return (left, right)


def _left_alone(left: Any) -> tuple[Any, Any]:
    return (left, None)


def _right_alone(right: Any) -> tuple[Any, Any]:
    return (None, right)


def merging(
    call: str, left: Node, right: Node, how: str, shared: set[str], select: Any, hint: Any,
    suffixes: Any,
) -> Merging:  # fmt: skip
    known = fields_of(left.type) is not None and fields_of(right.type) is not None
    ends = _suffixes(call, suffixes, merges=select is None and known)
    if select is not None:
        return _selected(f"{call}(select={{}})", left, right, how, select, hint)
    return _merged(call, left, right, how, shared, ends) if known else _paired(left, right, how)


def _suffixes(call: str, given: Any, *, merges: bool) -> tuple[str, str] | None:
    """What is put behind the names that both sides have."""
    if given is None:
        return None
    if not merges:
        refuse(f"{call}(suffixes=...): no fields of both sides are put together", "without it")
    two = isinstance(given, (tuple, list)) and len(given) == 2
    if not two or not all(isinstance(each, str) for each in given) or given[0] == given[1]:
        refuse(
            f"{call}(suffixes={given!r}): it is put behind names that both sides have, one for "
            "the left and another for the right",
            'suffixes=("", "_right")',
        )
    return tuple(given)


def _selected(shape: str, left: Node, right: Node, how: str, select: Any, hint: Any) -> Merging:
    function(shape, select, TWO_ROWS)
    attributes.check(shape, select, [(each.type, rows_of(each)) for each in (left, right)])
    plain(shape, select)
    name = function_name(select).rpartition(".")[2]
    both = Fn.of(select, left.type, right.type, arity=2)
    if hint is None:
        ours = types.optional(left.type) if how in ("right", "full") else left.type
        theirs = types.optional(right.type) if how in ("left", "full") else right.type
        hint = inferred(select, ours, theirs)
    return Merging(
        row_type(shape, hint),
        both,
        Fn(Alone(select, left=True), left.type, name=f"{name}(row, None)"),
        Fn(Alone(select, left=False), right.type, name=f"{name}(None, row)"),
    )


def _paired(left: Node, right: Node, how: str) -> Merging:
    ours = types.optional(left.type) if how in ("right", "full") else left.type
    theirs = types.optional(right.type) if how in ("left", "full") else right.type
    both: Any = tuple
    return Merging(
        both[ours, theirs],
        Fn.of(_pair, left.type, right.type, arity=2),
        Fn.of(_left_alone, left.type),
        Fn.of(_right_alone, right.type),
    )


def _merged(
    call: str, left: Node, right: Node, how: str, shared: set[str], ends: tuple[str, str] | None
) -> Merging:
    ours, theirs = types.fields_held(left.type) or {}, types.fields_held(right.type) or {}
    clash = [name for name in theirs if name in ours and name not in shared]
    if clash and ends is None:
        refuse(
            f"{call}(...): both sides have {'a field' if len(clash) == 1 else 'the fields'} "
            f"{' and '.join(map(repr, clash))}",
            'suffixes=("", "_right"), select=lambda l, r: ..., or rename() before',
            left=Text(types.text(left.type)),
            right=Text(types.text(right.type)),
        )
    if clash and ends is not None:
        ours, theirs = (
            {f"{name}{end}" if name in clash else name: each for name, each in fields.items()}
            for fields, end in zip((ours, theirs), ends, strict=True)
        )
        _told_apart(call, left, right, clash, ends, shared)
    fields: dict[str, Any] = {}
    for name, each in ours.items():
        both = types.common(each, theirs[name]) if name in shared else None
        fields[name] = both or (types.optional(each) if how in ("right", "full") else each)
    for name, each in theirs.items():
        if name not in shared:
            fields[name] = types.optional(each) if how in ("left", "full") else each
    made = types.row(f"{left.type.__name__}{right.type.__name__}", fields)
    in_left, in_right = _places(fields, ours, 0), _places(fields, theirs, 1)
    alone = tuple(at and (0, at[1]) for at in in_right)
    return Merging(
        made,
        Merge(made, tuple(map(_first, in_left, in_right))).fn(left.type, right.type),
        Merge(made, in_left).fn(left.type),
        Merge(made, alone).fn(right.type),
    )


def _told_apart(
    call: str, left: Node, right: Node, clash: list[str], ends: tuple[str, str], shared: set[str]
) -> None:
    """Refuse suffixes that make a name which is there already."""
    there = [name for side in (left, right) for name in fields_of(side.type) or ()]
    there = [name for name in there if name not in clash and name not in shared]
    made = [f"{name}{end}" for name in clash for end in ends]
    every = [*there, *shared, *made]
    if twice := [name for name in made if every.count(name) > 1]:
        refuse(
            f"{call}(suffixes={ends!r}): there is a field {twice[0]!r} already",
            "other suffixes",
            left=Text(types.text(left.type)),
            right=Text(types.text(right.type)),
        )


Place = tuple[int, int] | None


def _places(fields: Mapping[str, Any], among: Mapping[str, Any], side: int) -> tuple[Place, ...]:
    order = list(among)
    return tuple((side, order.index(name)) if name in among else None for name in fields)


def _first(one: Place, other: Place) -> Place:
    return other if one is None else one
