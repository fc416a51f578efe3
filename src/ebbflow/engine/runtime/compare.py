"""The stage of nodes that compare rows of two collections, each side kept by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ebbflow.engine.runtime.stage import NOTHING, Stage
from ebbflow.flow.plan import Binary
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, ScalarFilter
from ebbflow.fn import Fn
from ebbflow.operator import scalar
from ebbflow.operator.range_join import RangeJoin

COMPARING = (CompareJoin, CompareSemi, ScalarFilter)


class CompareStage(Stage):
    """Rows of two sides that are compared with each other; it keeps both by key, in order."""

    __slots__ = ("certain", "left", "operator", "right", "state")

    kept = True
    code = "operator.update_groups"

    def __init__(self, node: Binary, reads: Iterable[int], operator: Any) -> None:
        self.operator, self.state = operator, operator.init((NOTHING, NOTHING))
        self.left, self.right = self.state
        super().__init__(node, reads, *self.state, label=_label(node))
        self.certain = all(fn.expression is not None for fn in self.functions)

    @property
    def multiplies(self) -> bool:  # type: ignore[override]
        return isinstance(self.node, CompareJoin)

    @property
    def functions(self) -> list[Fn]:
        return functions_of(self.node)

    def row_type(self, container: Any) -> Any:
        node: Any = self.node
        return node.left.type if container is self.left else node.right.type

    def run(self, left: Any, right: Any) -> Any:
        return self.operator.update_groups(self.state, left or {}, right or {})

    def fetch(self, left: Any, right: Any) -> None:
        self.left.bring(right or {})
        self.right.bring({**(left or {}), **(right or {})})

    def whole(self, *_: Any) -> Any:
        return self.operator.read(self.state)


def _label(node: Binary) -> str:
    return "anti" if isinstance(node, CompareSemi) and node.anti else node.verb


def functions_of(node: Any) -> list[Fn]:
    """The functions of the user's that a node calls."""
    keys = [node.left_key, node.right_key]
    if isinstance(node, ScalarFilter):
        return [*keys, node.fn]
    compared = [fn for each in node.where for fn in (each.left, each.right)]
    return [*keys, *compared, *([node.merge] if isinstance(node, CompareJoin) else [])]


def comparing(node: Any) -> Any:
    """The operator of such a node."""
    keys = node.left_key, node.right_key
    if isinstance(node, ScalarFilter):
        of = node.threshold
        threshold = None if of is None else scalar.Threshold(of.left, of.sign, of.right)
        return scalar.OneRowFilter(*keys, node.fn, threshold)
    where = [(each.left, each.sign, each.right) for each in node.where]
    if isinstance(node, CompareJoin):
        return RangeJoin(*keys, where, "inner", node.merge)
    return RangeJoin(*keys, where, "anti" if node.anti else "semi")
