"""Rows of two collections together: joins of every kind, sums, differences, set operations.

Only four nodes are needed. An inner join is `Join`. The rows that an outer join adds are those that
meet nothing, padded with None: `Semi(anti)`, then `Map`. What belongs together is put together by
`Concat`. So each kind is right under deletion on either side because its parts are.

    left   =  inner + left rows that meet nothing, padded
    right  =  inner + right rows that meet nothing, padded
    full   =  inner + both

A merged row has the fields of the left row, then those of the right one; a key field with the same
name on both sides is there once.

Behind `-` rows may have negative weights. A row is *present* when its weight is positive, and
whatever asks whether a row is there asks that; what each verb makes of weights is a table in
`docs/pitfalls.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import Text, place
from ebbflow.expression.node import Constant, Get, Record
from ebbflow.expression.value import plain_fields
from ebbflow.flow import attributes, types
from ebbflow.flow.inferred import inferred
from ebbflow.flow.parts import TWO_ROWS, function, part, part_type, plain, refuse, row_type, rows_of
from ebbflow.flow.plan import Concat, Distinct, Join, Map, Node, Semi
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.reducer.row import itself

HOWS = ("inner", "left", "right", "full", "semi", "anti")
CROSS = "cross(other) for every row with every row"


def joined(
    left: Node, right: Node, on: Any, left_on: Any, right_on: Any, how: str, select: Any, type: Any
) -> Node:
    """The node of `join`.

    >>> import ebbflow as ef
    >>> words = ef.Input("words", str).node
    >>> joined(words, words, len, None, None, "left", None, None).type
    tuple[str, str | None]
    """
    if how not in HOWS:
        near = ["full"] if how == "outer" else get_close_matches(str(how), HOWS, n=1)
        refuse(
            f"join(how={how!r}): there is no such join",
            f"how={near[0]!r}" if near else ", ".join(HOWS),
        )
    ours, theirs = _keys(left, right, on, left_on, right_on)
    if how in ("semi", "anti"):
        if select is not None:
            refuse(
                f"join(how={how!r}, select=...): the rows are those of the left; nothing is merged",
                f"join(..., how={how!r}).map(...)",
            )
        return _semi(left, right, ours.fn, theirs.fn, anti=how == "anti")
    shared = shared_fields(ours.given, theirs.given)
    merging = merging_of("join", left, right, how, shared, select, type)
    return _outer(left, right, ours.fn, theirs.fn, how, merging)


def crossed(left: Node, right: Node, select: Any, type: Any) -> Node:
    """The node of `cross`: a join in which all keys are equal.

    >>> import ebbflow as ef
    >>> crossed(ef.Input("words", str).node, ef.Input("numbers", int).node, None, None).type
    tuple[str, int]
    """
    merging = merging_of("cross", left, right, "inner", set(), select, type)
    nothing = Fn.constant(None, left.type), Fn.constant(None, right.type)
    return _outer(left, right, *nothing, "inner", merging)


def _outer(left: Node, right: Node, ours: Fn, theirs: Fn, how: str, merging: Merging) -> Node:
    common = {"type": merging.type, "place": place()}
    parts: list[Node] = [
        Join(left=left, right=right, left_key=ours, right_key=theirs, merge=merging.both, **common)
    ]
    if how in ("left", "full"):
        lonely = _semi(left, right, ours, theirs, anti=True)
        parts.append(Map(parent=lonely, fn=merging.left_alone, **common))
    if how in ("right", "full"):
        lonely = _semi(right, left, theirs, ours, anti=True)
        parts.append(Map(parent=lonely, fn=merging.right_alone, **common))
    if len(parts) == 1:
        return parts[0]
    return Concat(parts=tuple(parts), signs=(1,) * len(parts), **common)


def _semi(left: Node, right: Node, ours: Fn, theirs: Fn, *, anti: bool) -> Semi:
    """The rows of the left that meet a row of the right that is present, or with `anti` none."""
    return Semi(
        left=left, right=present(right), left_key=ours, right_key=theirs, anti=anti,
        type=left.type, place=place(),
    )  # fmt: skip


# ---- keys ----


@dataclass(frozen=True)
class KeySide:
    """What the rows of one side are compared by, as it was given, and as a function."""

    given: Any
    fn: Fn


def _keys(left: Node, right: Node, on: Any, left_on: Any, right_on: Any) -> tuple[KeySide, KeySide]:
    if on is None and left_on is None and right_on is None:
        refuse("join(...): no key is given", f'on="field", left_on= and right_on=, or {CROSS}')
    return both_sides("join", left, right, on, left_on, right_on)


def both_sides(
    call: str, left: Node, right: Node, on: Any, left_on: Any, right_on: Any, word: str = "on",
    what: str = "key",
) -> tuple[KeySide, KeySide]:  # fmt: skip
    """What rows of both sides are compared by: `on=`, or `left_on=` and `right_on=`."""
    first, second = f"left_{word}", f"right_{word}"
    if on is not None and (left_on is not None or right_on is not None):
        refuse(
            f"{call}(...): {word}= is the {what} of both sides",
            f"{word}= alone, or {first}= and {second}=",
        )
    if on is None and (left_on is None or right_on is None):
        there, lacking = (first, second) if right_on is None else (second, first)
        refuse(
            f"{call}({there}=...): the {what} of the other side is not given",
            f"{lacking}= beside {there}=, or {word}= where both sides have the same {what}",
        )
    ours, theirs = (on, on) if on is not None else (left_on, right_on)
    names = (word, word) if on is not None else (first, second)
    for name, each in zip(names, (ours, theirs), strict=True):
        plain(f"{call}({name}={{}})", each)
    sides = (
        KeySide(ours, part(f"{call}({names[0]}={{}})", left, ours)),
        KeySide(theirs, part(f"{call}({names[1]}={{}})", right, theirs)),
    )
    _same_types(call, left, right, ours, theirs, what, first)
    return sides


def _same_types(
    call: str, left: Node, right: Node, ours: Any, theirs: Any, what: str, first: str
) -> None:
    our_parts, their_parts = _several(ours), _several(theirs)
    if isinstance(ours, (tuple, list)) and isinstance(theirs, (tuple, list)):
        if len(our_parts) != len(their_parts):
            refuse(
                f"{call}(...): the left {what} has {len(our_parts)} parts, the right one "
                f"{len(their_parts)}",
                "as many parts on both sides",
                left=tuple(ours),
                right=tuple(theirs),
            )
    elif len(our_parts) != len(their_parts):
        return
    for our, their in zip(our_parts, their_parts, strict=True):
        one, other = part_type(left, our), part_type(right, their)
        if types.common(one, other) is None:
            refuse(
                f"{call}(...): the {what}s are of different types and are never equal",
                f"{'an' if what == 'order' else 'a'} {what} of the same type on both sides, "
                f"such as {first}={_converted(our, other)}",
                left=Text(f"{Fn.of(our, left.type).text}: {types.name_of(one)}"),
                right=Text(f"{Fn.of(their, right.type).text}: {types.name_of(other)}"),
            )


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _converted(given: Any, hint: Any) -> str:
    inside = f"row.{given}" if isinstance(given, str) else "..."
    if types.classes(hint) == (datetime,):
        zone = "UTC" if types.notes(hint) else None
        return f"lambda row: {inside}.replace(tzinfo={zone})"
    return f"lambda row: {types.name_of(hint)}({inside})"


def shared_fields(ours: Any, theirs: Any) -> set[str]:
    """The key fields that have the same name on both sides, and the same place in the key."""
    pairs = zip(_several(ours), _several(theirs), strict=False)
    return {our for our, their in pairs if isinstance(our, str) and our == their}


# ---- merged rows ----


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
        values = [None if at is None else rows[at[0]][at[1]] for at in self.places]
        return tuple.__new__(self.type, values)

    def fn(self, *row_types: Any) -> Fn:
        """This merge as a function of rows of these types, traced where their fields are plain."""
        fn = Fn.of(self, *row_types, arity=len(row_types))
        names = [list(plain_fields(hint) or ()) for hint in row_types]
        if all(names):
            fn.expression = Record(self.type, tuple(
                Constant(None) if at is None else Get(at[0], names[at[0]][at[1]], at[1])
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


def merging_of(
    call: str, left: Node, right: Node, how: str, shared: set[str], select: Any, hint: Any
) -> Merging:
    """How rows of two sides are merged: by `select`, by the fields of both, or as pairs."""
    if select is not None:
        return _selected(f"{call}(select={{}})", left, right, how, select, hint)
    if fields_of(left.type) is None or fields_of(right.type) is None:
        return _paired(left, right, how)
    return _merged(call, left, right, how, shared)


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


def _merged(call: str, left: Node, right: Node, how: str, shared: set[str]) -> Merging:
    ours, theirs = types.fields_held(left.type) or {}, types.fields_held(right.type) or {}
    if clash := [name for name in theirs if name in ours and name not in shared]:
        refuse(
            f"{call}(...): both sides have {'a field' if len(clash) == 1 else 'the fields'} "
            f"{' and '.join(map(repr, clash))}",
            "select=lambda left, right: ..., or select() other names on one side before",
            left=Text(types.text(left.type)),
            right=Text(types.text(right.type)),
        )
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


Place = tuple[int, int] | None


def _places(fields: Mapping[str, Any], among: Mapping[str, Any], side: int) -> tuple[Place, ...]:
    order = list(among)
    return tuple((side, order.index(name)) if name in among else None for name in fields)


def _first(one: Place, other: Place) -> Place:
    return other if one is None else one


# ---- sums and sets ----


def concatenated(left: Node, right: Node, sign: int, call: str) -> Concat:
    """The node of `+` and `-`. A sum of sums is one sum.

    >>> import ebbflow as ef
    >>> a, b, c = (ef.Input(name, int).node for name in "abc")
    >>> concatenated(concatenated(a, b, -1, "-"), c, 1, "+").signs
    (1, -1, 1)
    """
    hint = _same_rows(left, right, call)
    terms = [*_terms(left, 1), *_terms(right, sign)]
    return _sum(terms, hint)


def negated(node: Node) -> Concat:
    """The node of `-a`.

    >>> import ebbflow as ef
    >>> negated(ef.Input("a", int).node).signs
    (-1,)
    """
    return _sum(_terms(node, -1), node.type)


def nothing(row_type: Any) -> Concat:
    """The node of a collection without rows: a sum of no terms.

    >>> nothing(int).parts
    ()
    """
    return _sum([], row_type)


def _sum(terms: Sequence[tuple[Node, int]], row_type: Any) -> Concat:
    return Concat(
        parts=tuple(part for part, _ in terms), signs=tuple(sign for _, sign in terms),
        type=row_type, place=place(),
    )  # fmt: skip


def present(node: Node) -> Node:
    """A bag that has the rows of a node that are present."""
    return node if node.bag else Distinct(parent=node, type=node.type, place=place())


def _terms(node: Node, sign: int) -> list[tuple[Node, int]]:
    if not isinstance(node, Concat):
        return [(node, sign)]
    return [(part, sign * each) for part, each in zip(node.parts, node.signs, strict=True)]


def united(left: Node, right: Node) -> Node:
    """The node of `union`: the rows of both, every one once.

    >>> import ebbflow as ef
    >>> united(ef.Input("a", int).node, ef.Input("b", int).node).verb
    'distinct'
    """
    both = concatenated(present(left), present(right), 1, "union")
    return Distinct(parent=both, type=both.type, place=place())


def compared(left: Node, right: Node, call: str, anti: bool) -> Node:
    """The node of `intersect` and `except_`: rows of the left that the right has, or has not.

    >>> import ebbflow as ef
    >>> compared(ef.Input("a", int).node, ef.Input("b", int).node, "except_", anti=True).verb
    'semi'
    """
    _same_rows(left, right, call)
    return Semi(
        left=Distinct(parent=left, type=left.type, place=place()), right=right, anti=anti,
        left_key=Fn.of(itself, left.type), right_key=Fn.of(itself, right.type), type=left.type,
        place=place(),
    )  # fmt: skip


def _same_rows(left: Node, right: Node, call: str) -> Any:
    hint = types.common(left.type, right.type)
    if hint is None:
        refuse(
            f"{call}: the rows of the two collections are of different types",
            "select(...) or map(...) to the same fields on both sides",
            left=Text(types.text(left.type)),
            right=Text(types.text(right.type)),
        )
    return hint
