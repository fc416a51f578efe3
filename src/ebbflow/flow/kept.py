"""What is kept for a node, in words: what has to be remembered from one change to the next. What is
not said here is kept by no engine."""

from __future__ import annotations

from ebbflow.expression import Constant
from ebbflow.flow.describe import crosses, fn_text, verdict
from ebbflow.flow.plan import (
    Binary,
    Distinct,
    Iterate,
    Join,
    Keyed,
    Node,
    Reduce,
    Semi,
    Sessions,
    Source,
    Through,
    TopK,
)
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, ScalarFilter
from ebbflow.flow.plan.order import Fold, Ordered
from ebbflow.flow.plan.time import ClockSource, SessionReduce, Within
from ebbflow.flow.rewrite.share import keeps_rows
from ebbflow.fn import Fn


def kept(node: Node) -> list[str]:
    """What is kept for a node from one change to the next; nothing for a stateless one.

    >>> kept(Distinct(parent=Source(name="words")))
    ['a weight for each row']
    """
    match node:
        case ClockSource():
            return ["the time"]
        case Source():
            return _input(node)
        case Distinct():
            return ["a weight for each row"]
        case Join():
            return [_side("left", node.left_key), _side("right", node.right_key)]
        case Semi():
            return [f"left rows by {fn_text(node.left_key)}", "a weight for each key of the right"]
        case CompareJoin() | CompareSemi():
            first = min(node.where, key=lambda each: each.sign == "!=")
            return [
                f"{_side('left', node.left_key)} in the order of {fn_text(first.left)}",
                f"{_side('right', node.right_key)} in the order of {fn_text(first.right)}",
            ]
        case ScalarFilter(threshold=of):
            order = "" if of is None else f" in the order of {fn_text(of.left)}"
            all_again = "" if of else ": when it changes, all are looked at again"
            return [f"{_side('left', node.left_key)}{order}", f"the one row for them{all_again}"]
        case Aligned():
            sides = {"left": (node.left_key, node.left_order),
                     "right": (node.right_key, node.right_order)}  # fmt: skip
            return [
                f"the {side} rows{'' if crosses(node) else f' of each {fn_text(key)}'} in the "
                f"order of {fn_text(order)}"
                for side, (key, order) in sides.items()
            ]
        case Reduce():
            return _reduce(node)
        case TopK():
            return [f"{_rows_of(node)} in the order of {fn_text(node.by)}"]
        case Sessions():
            return [f"{_rows_of(node)} in the order of {fn_text(node.time)}"]
        case SessionReduce():
            tree = f"in a tree by {fn_text(node.time)}, with accumulators of its parts"
            return [f"{_rows_of(node)} {tree}"]
        case Within():
            return [f"rows that are not over yet, by {fn_text(node.time)}"]
        case Ordered():
            composes = node.transition.composes if isinstance(node, Fold) else ""
            states = f"their steps composed {composes}" if composes else "the states they led to"
            return [f"{_rows_of(node)} in the order of {fn_text(node.order)}", states]
        case Through():
            each = "" if node.key is None else f" for each {fn_text(node.key)}"
            return [f"a state of the operator{each}", "its rows"]
        case Iterate():
            return ["what its body needs from round to round; a running view says more"]
    return []


def _input(node: Source) -> list[str]:
    if node.lateness is not None:
        return ["its rows that are not closed, to check what is taken away", "the latest time"]
    rows = f"its rows without {', '.join(sorted(node.unread))}" if node.unread else "its rows"
    if node.key is None:
        return [f"{rows}, to check what is taken away"]
    found = [f"{rows} by {fn_text(node.key)}, to find the one that is replaced"]
    if node.sequence is not None:
        found.append(f"deleted keys with their {fn_text(node.sequence)}, to know what is older")
    return found


def _reduce(node: Reduce) -> list[str]:
    each = "" if node.key is None else f" for each {fn_text(node.key)}"
    if verdict(node.reducer) == "tree":
        return [f"a tree of accumulators{each}"]
    one = f"an accumulator{each}" if each else "one accumulator"
    if not keeps_rows(node.reducer):
        return [one]
    return [one, "the rows" if node.key is None else f"rows by {fn_text(node.key)}"]


def _side(which: str, key: Fn) -> str:
    whole = isinstance(key.expression, Constant)
    return f"the {which} rows" if whole else f"{which} rows by {fn_text(key)}"


def _rows_of(node: Keyed) -> str:
    return "the rows" if node.key is None else f"the rows of each {fn_text(node.key)}"


def kept_in_rounds(node: Node) -> list[str]:
    """What is kept for a node in the body of a loop whose state has versions.

    >>> kept_in_rounds(Distinct(parent=Source(name="words")))
    ['its rows, and what it gave, with their rounds']
    """
    match node:
        case Join():
            return [f"{' · '.join(kept(node))}, with their rounds"]
        case Binary() | Aligned():
            left, right = fn_text(node.left_key), fn_text(node.right_key)
            return [f"left rows by {left} and right rows by {right}, and what they gave, "
                    "with their rounds"]  # fmt: skip
        case Keyed(key=Fn() as key):
            return [f"rows by {fn_text(key)}, and what they gave, with their rounds"]
        case Keyed() | Distinct():
            return ["its rows, and what it gave, with their rounds"]
    return []
