"""Rows of two collections together: joins of every kind, sums, differences, set operations.

Only four nodes are needed. An inner join is `Join`. The rows that an outer join adds are those that
meet nothing, padded with None: `Semi(anti)`, then `Map`. What belongs together is put together by
`Concat`. So each kind is right under deletion on either side because its parts are.

    left   =  inner + left rows that meet nothing, padded
    right  =  inner + right rows that meet nothing, padded
    full   =  inner + both

Behind `-` rows may have negative weights. A row is *present* when its weight is positive, and
whatever asks whether a row is there asks that; what each verb makes of weights is a table in
`docs/pitfalls.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow import types
from ebbflow.flow.compare import comparisons, mirrored, scalar_filtered
from ebbflow.flow.merging import Merging, merging
from ebbflow.flow.parts import part, part_type, plain, refuse
from ebbflow.flow.plan import Concat, Distinct, Join, Map, Node, Semi
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, Comparison
from ebbflow.fn import Fn
from ebbflow.record import name_of
from ebbflow.reducer.row import itself

HOWS = ("inner", "left", "right", "full", "semi", "anti")
CROSS = "cross(other) for every row with every row"


def joined(
    left: Node, right: Node, on: Any, left_on: Any, right_on: Any, how: str, select: Any,
    type: Any, suffixes: Any = None, where: Any = None,
) -> Node:  # fmt: skip
    """The node of `join`."""
    if how not in HOWS:
        near = ["full"] if how == "outer" else get_close_matches(str(how), HOWS, n=1)
        refuse(
            f"join(how={how!r}): there is no such join",
            f"how={near[0]!r}" if near else ", ".join(HOWS),
        )
    ours, theirs = _keys(left, right, on, left_on, right_on, optional=where is not None)
    compared = () if where is None else comparisons(left, right, where)
    if how in ("semi", "anti"):
        if select is not None:
            refuse(
                f"join(how={how!r}, select=...): the rows are those of the left; nothing is merged",
                f"join(..., how={how!r}).map(...)",
            )
        return _semi(left, right, ours.fn, theirs.fn, compared, anti=how == "anti")
    made = merging(
        "join", left, right, how, shared_fields(ours.given, theirs.given), select, type, suffixes
    )
    return _outer(left, right, ours.fn, theirs.fn, how, made, compared)


def crossed(left: Node, right: Node, select: Any, type: Any, suffixes: Any = None) -> Node:
    """The node of `cross`: a join in which all keys are equal."""
    made = merging("cross", left, right, "inner", set(), select, type, suffixes)
    nothing = Fn.constant(None, left.type), Fn.constant(None, right.type)
    return _outer(left, right, *nothing, "inner", made)


def _outer(
    left: Node, right: Node, ours: Fn, theirs: Fn, how: str, made: Merging,
    where: tuple[Comparison, ...] = (),
) -> Node:  # fmt: skip
    common = {"type": made.type, "place": place()}
    both = {
        "left": left, "right": right, "left_key": ours, "right_key": theirs, "merge": made.both,
        **common,
    }  # fmt: skip
    parts: list[Node] = [CompareJoin(where=where, **both) if where else Join(**both)]
    if how in ("left", "full"):
        lonely = _semi(left, right, ours, theirs, where, anti=True)
        parts.append(Map(parent=lonely, fn=made.left_alone, **common))
    if how in ("right", "full"):
        lonely = _semi(right, left, theirs, ours, mirrored(where), anti=True)
        parts.append(Map(parent=lonely, fn=made.right_alone, **common))
    if len(parts) == 1:
        return parts[0]
    return Concat(parts=tuple(parts), signs=(1,) * len(parts), **common)


def _semi(
    left: Node, right: Node, ours: Fn, theirs: Fn, where: tuple[Comparison, ...], *, anti: bool
) -> Node:
    """The rows of the left that meet a row of the right that is present, or with `anti` none."""
    both: dict[str, Any] = {
        "left": left, "right": present(right), "left_key": ours, "right_key": theirs,
        "anti": anti, "type": left.type, "place": place(),
    }  # fmt: skip
    return CompareSemi(where=where, **both) if where else Semi(**both)


def one_row_filtered(left: Node, right: Node, f: Any, on: Any, left_on: Any, right_on: Any) -> Node:
    """The node of `filter` with another collection."""
    ours, theirs = _keys(left, right, on, left_on, right_on, optional=True, call="filter")
    return scalar_filtered(left, present(right), f, ours.fn, theirs.fn)


# ---- keys ----


@dataclass(frozen=True)
class KeySide:
    """What the rows of one side are compared by, as it was given, and as a function."""

    given: Any
    fn: Fn


def _keys(
    left: Node, right: Node, on: Any, left_on: Any, right_on: Any, *, optional: bool = False,
    call: str = "join",
) -> tuple[KeySide, KeySide]:  # fmt: skip
    if on is None and left_on is None and right_on is None:
        if optional:
            return KeySide(None, Fn.constant(None, left.type)), KeySide(
                None, Fn.constant(None, right.type)
            )
        refuse("join(...): no key is given", f'on="field", left_on= and right_on=, or {CROSS}')
    return both_sides(call, left, right, on, left_on, right_on)


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
                left=Text(f"{Fn.of(our, left.type).text}: {name_of(one)}"),
                right=Text(f"{Fn.of(their, right.type).text}: {name_of(other)}"),
            )


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _converted(given: Any, hint: Any) -> str:
    inside = f"row.{given}" if isinstance(given, str) else "..."
    if types.classes(hint) == (datetime,):
        zone = "UTC" if types.notes(hint) else None
        return f"lambda row: {inside}.replace(tzinfo={zone})"
    return f"lambda row: {name_of(hint)}({inside})"


def shared_fields(ours: Any, theirs: Any) -> set[str]:
    """The key fields that have the same name on both sides, and the same place in the key."""
    pairs = zip(_several(ours), _several(theirs), strict=False)
    return {our for our, their in pairs if isinstance(our, str) and our == their}


# ---- sums and sets ----


def concatenated(left: Node, right: Node, sign: int, call: str) -> Concat:
    """The node of `+` and `-`. A sum of sums is one sum."""
    hint = _same_rows(left, right, call)
    terms = [*_terms(left, 1), *_terms(right, sign)]
    return _sum(terms, hint)


def negated(node: Node) -> Concat:
    """The node of `-a`."""
    return _sum(_terms(node, -1), node.type)


def nothing(row_type: Any) -> Concat:
    """The node of a collection without rows: a sum of no terms."""
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
    """The node of `union`: the rows of both, every one once."""
    both = concatenated(present(left), present(right), 1, "union")
    return Distinct(parent=both, type=both.type, place=place())


def compared(left: Node, right: Node, call: str, anti: bool) -> Node:
    """The node of `intersect` and `except_`: rows of the left that the right has, or has not."""
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
