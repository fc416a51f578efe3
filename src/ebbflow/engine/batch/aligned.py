"""What nodes mean whose rows meet by their places in an order: every row beside every other."""

from __future__ import annotations

from typing import Any

from ebbflow.engine.batch import Weights, _call, _groups, _never_negative, _total, rows_of
from ebbflow.flow.plan.aligned import Aligned, AsOf, Interval, IntervalSemi
from ebbflow.ordering import total_order_key

Placed = tuple[Any, Any]
"""A place and a row at it."""


@rows_of.register
def _as_of(node: AsOf, left: Weights, right: Weights) -> Weights:
    out = []
    for weight, place, row, there in _beside(node, left, right):
        found = None if place is None else _found(node, place, there)
        if found is not None:
            out.append((_call(node, node.merge, row, found[1]), weight))
        elif node.alone is not None:
            out.append((_call(node, node.alone, row), weight))
    return _total(node, out)


def _found(node: AsOf, place: Any, there: list[Placed]) -> Placed | None:
    """The place and the row that a place on the left finds."""
    here = total_order_key(place)
    before = [each for each in there if total_order_key(each[0]) < here]
    after = [each for each in there if total_order_key(each[0]) > here]
    if node.exact:
        same = [each for each in there if total_order_key(each[0]) == here]
        before, after = before + same, same + after
    found = {"backward": before[-1:], "forward": after[:1], "nearest": before[-1:] + after[:1]}
    near = found[node.direction]
    if node.tolerance is not None:
        near = [each for each in near if abs(place - each[0]) <= node.tolerance]
    if len(near) == 2:
        return near[0] if place - near[0][0] <= near[1][0] - place else near[1]
    return near[0] if near else None


@rows_of.register
def _interval(node: Interval, left: Weights, right: Weights) -> Weights:
    return _total(node, [
        (_call(node, node.merge, row, other), weight * right[other])
        for weight, place, row, there in _beside(node, left, right)
        for at, other in there
        if place is not None and node.low <= at - place <= node.high
    ])  # fmt: skip


@rows_of.register
def _interval_semi(node: IntervalSemi, left: Weights, right: Weights) -> Weights:
    out = {}
    for weight, place, row, there in _beside(node, left, right):
        near = place is not None and any(node.low <= at - place <= node.high for at, _ in there)
        if near is not node.anti:
            out[row] = weight
    return out


def _beside(
    node: Aligned, left: Weights, right: Weights
) -> list[tuple[int, Any, Any, list[Placed]]]:
    """Each row of the left, its weight and its place before it, with all rows of the right that
    have its key and a place, in order."""
    _never_negative(node, left)
    _never_negative(node, right)
    rights = {}
    for key, rows in _groups(node, node.right_key, right).items():
        placed = [(_call(node, node.right_order, row), row) for row in rows]
        rights[key] = sorted([each for each in placed if each[0] is not None], key=total_order_key)
    return [
        (weight, _call(node, node.left_order, row), row, rights.get(key, []))
        for key, rows in _groups(node, node.left_key, left).items()
        for row, weight in rows.items()
    ]
