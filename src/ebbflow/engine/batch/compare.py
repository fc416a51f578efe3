"""What joins on inequalities and scalar sub-queries mean: every pair of rows is looked at."""

from __future__ import annotations

from collections.abc import Callable
from operator import ge, gt, le, lt, ne
from typing import Any

from ebbflow.engine.batch import Weights, _call, _groups, _total, rows_of
from ebbflow.errors import ChangeError
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, ScalarFilter
from ebbflow.ordering import total_order_key
from ebbflow.zset import ZSet

SIGNS: dict[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne}


@rows_of.register
def _compare_join(node: CompareJoin, left: Weights, right: Weights) -> Weights:
    meet = _meeting(node, left, right)
    return _total(
        node,
        (
            (_call(node, node.merge, row, other), weight * count)
            for row, weight in left.items()
            for other, count in right.items()
            if meet(row, other)
        ),
    )


@rows_of.register
def _compare_semi(node: CompareSemi, left: Weights, right: Weights) -> Weights:
    meet = _meeting(node, left, right)
    return {
        row: weight
        for row, weight in left.items()
        if any(meet(row, other) for other in right) != node.anti
    }


def _meeting(
    node: CompareJoin | CompareSemi, left: Weights, right: Weights
) -> Callable[[Any, Any], bool]:
    """Whether two rows meet. What is compared is computed for every row, met or not."""
    ours = {
        row: (_call(node, node.left_key, row), [_call(node, each.left, row) for each in node.where])
        for row in left
    }
    theirs = {
        row: (
            _call(node, node.right_key, row),
            [_call(node, each.right, row) for each in node.where],
        )
        for row in right
    }
    signs = [SIGNS[each.sign] for each in node.where]

    def meet(row: Any, other: Any) -> bool:
        (key, mine), (their_key, yours) = ours[row], theirs[other]
        return (key,) == (their_key,) and all(  # as NaN is NaN
            a is not None and b is not None and sign(total_order_key(a), total_order_key(b))
            for sign, a, b in zip(signs, mine, yours, strict=True)
        )

    return meet


@rows_of.register
def _scalar_filter(node: ScalarFilter, left: Weights, right: Weights) -> Weights:
    found: Weights = {}
    ones = _groups(node, node.right_key, right)
    for key, rows in ones.items():
        if sum(rows.values()) > 1:
            raise ChangeError(
                f"{node.verb}: a row is compared with the one row of another collection, and "
                "there are more",
                key=key,
                rows=ZSet(rows),
                created=node.place,
                remedy="one row: agg(...), limit(1, order=...), or a key for each with on=",
            )
    for key, rows in _groups(node, node.left_key, left).items():
        for one in ones.get(key, ()):
            for row, weight in rows.items():
                if _call(node, lambda row, one: bool(node.fn(row, one)), row, one):
                    found[row] = weight
    return found
