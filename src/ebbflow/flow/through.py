"""Operators of the user's own in a program.

Such an operator is given the rows as a bag, and their changes as Z-sets; with a key, it is there
once for each key, with a state of its own. A stream processor of Z-sets is such an operator, and so
is one on two bags: their rows become one collection, in which each row says which side it is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import isclass
from typing import Any

from ebbflow.algebra import product
from ebbflow.algebra.value import function_name
from ebbflow.change import BAG, ZSET, pair
from ebbflow.errors import Text, place
from ebbflow.flow import types
from ebbflow.flow.edited import of_field
from ebbflow.flow.grouped import ONE_GROUP
from ebbflow.flow.parts import GroupKey, key, refuse, row_type
from ebbflow.flow.plan import Concat, Map, Node, Through
from ebbflow.fn import Fn
from ebbflow.operator import Operator, operator_of
from ebbflow.operator.applied import Applied
from ebbflow.operator.sides import TWO, of_sides
from ebbflow.record import name_of
from ebbflow.stream import Processor, fuse
from ebbflow.zset import ZSETS

HOME = "ebbflow.operator"
ON_ONE = "an operator whose input is ebbflow.change.BAG, or a processor that reads ZSETS"
ON_TWO = f"an operator whose input is {TWO[0]!r}, or a processor that reads product(ZSETS, ZSETS)"

Keys = tuple[Any, Any, Any]


def passed(node: Node, operator: Any, other: Any, keys: Keys, type: Any) -> Through:
    """The node of `through`; `keys` are that of both sides, of the left and of the right."""
    if isinstance(operator, Applied):
        operator, type = of_field(node, operator, type)
    found = _operator(operator, two=other is not None)
    if other is None:
        by, parent = _key_of_one(node, keys), node
    else:
        right = getattr(other, "node", None)
        if not isinstance(right, Node):
            name = function_name(other) if callable(other) else repr(other)
            refuse(
                f"through({found!r}, {name}): {name} is no collection",
                f"through(..., per={name}), if that is the key",
            )
        by, parent = _key_of_two(node, right, keys), _both(node, right)
        found = of_sides(found)
    checked = Any if type is None else type
    if by.fn is not None or found.output not in (BAG, ZSET):
        checked = types.row("Group", {**by.fields, "value": checked})
    return Through(
        parent=parent,
        key=by.fn,
        operator=fuse(found),
        width=by.width,
        type=row_type("through({})", checked),
        place=place(),
    )


def _operator(operator: Any, *, two: bool) -> Operator[Any, Any, Any, Any]:
    if not isinstance(operator, Processor):
        name = getattr(operator, "__name__", repr(operator))
        makes_one = isclass(operator) and issubclass(operator, Processor)
        makes_one = makes_one or str(getattr(operator, "__module__", "")).startswith(HOME)
        refuse(
            f"through({name}): that is not an operator",
            f"through({name}(...))"
            if makes_one
            else f"ebbflow.operator.of({name}), which computes it again for each change"
            if callable(operator)
            else "an ebbflow.operator.Operator",
        )
    if not isinstance(operator, Operator):
        wanted = product(ZSETS, ZSETS) if two else ZSETS
        if operator.source != wanted:
            refuse(
                f"through({operator!r}): it reads {operator.source!r}, and the changes of "
                f"{'two collections' if two else 'rows'} are {wanted!r}",
                ON_TWO if two else f"{ON_ONE}{_for_two(operator.source)}",
            )
        return operator_of(operator, input=pair(BAG, BAG) if two else BAG)
    given = getattr(operator, "input", None)
    if given not in (TWO if two else (BAG, ZSET)):
        refuse(
            f"through({operator!r}): its input is not a pair of bags, and the rows of two "
            "collections are one"
            if two
            else f"through({operator!r}): its input is not a bag, and rows are one",
            ON_TWO if two else f"{ON_ONE}{_for_two(given)}",
            input=given,
        )
    return operator


def _for_two(given: Any) -> str:
    """What to add to a remedy when the operator is one for two collections."""
    fits = given in TWO or given == product(ZSETS, ZSETS)
    return "; for this one, through(operator, other)" if fits else ""


# ---- keys ----


def _key_of_one(node: Node, keys: Keys) -> GroupKey:
    per, *sides = keys
    if sides != [None, None]:
        refuse("through(left_per=..., right_per=...): there is one collection", "per=")
    return ONE_GROUP if per is None else key("through(per={})", node, (per,), {})


@dataclass(frozen=True)
class KeyOfSide:
    """The key of a row that says its side, which has a key of its own."""

    left: Fn
    right: Fn

    def __call__(self, row: tuple[int, Any]) -> Any:
        side, own = row
        return self.right(own) if side else self.left(own)


def _key_of_two(left: Node, right: Node, keys: Keys) -> GroupKey:
    per, left_per, right_per = keys
    if per is None and left_per is None and right_per is None:
        return ONE_GROUP
    if per is not None and (left_per is not None or right_per is not None):
        refuse("through(...): per= is the key of both sides", "per=, or left_per= and right_per=")
    if per is None and (left_per is None or right_per is None):
        lacking = "left_per" if left_per is None else "right_per"
        refuse(f"through(...): {lacking}= is not given", "left_per= and right_per=, or per=")
    names = ("left_per", "right_per") if per is None else ("per", "per")
    ours = key(f"through({names[0]}={{}})", left, (per if left_per is None else left_per,), {})
    theirs = key(f"through({names[1]}={{}})", right, (per if right_per is None else right_per,), {})
    one, other = list(ours.fields.values()), list(theirs.fields.values())
    common = list(map(types.common, one, other)) if len(one) == len(other) else [None]
    if None in common:
        refuse(
            "through(...): the keys of the two sides are of different types and are never equal",
            "a key of the same type on both sides",
            left=Text(", ".join(map(name_of, one))),
            right=Text(", ".join(map(name_of, other))),
        )
    assert ours.fn is not None
    assert theirs.fn is not None
    both = Fn(KeyOfSide(ours.fn, theirs.fn), tuple[int, Any], name=_shown(ours.fn, theirs.fn))
    return GroupKey(both, dict(zip(ours.fields, common, strict=True)))


def _shown(left: Fn, right: Fn) -> str:
    return left.text if left.text == right.text else f"{left.text} = {right.text}"


# ---- rows that say their side ----


def _of_left(row: Any) -> tuple[int, Any]:
    return (0, row)


def _of_right(row: Any) -> tuple[int, Any]:
    return (1, row)


def _both(left: Node, right: Node) -> Concat:
    common: dict[str, Any] = {"type": tuple[int, Any], "place": place()}
    parts = (
        Map(parent=left, fn=Fn.of(_of_left, left.type), **common),
        Map(parent=right, fn=Fn.of(_of_right, right.type), **common),
    )
    return Concat(parts=parts, signs=(1, 1), **common)
