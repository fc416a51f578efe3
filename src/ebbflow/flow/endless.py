"""Loops that may not come to an end: a warning when they are built, an error when they run.

Rounds come to an end when more rows in one round never make fewer in a later one, and there is an
end to what can be made. Whether there is cannot be seen. But it can be seen where a body may take
rows away again because of rows that it made itself, so that rounds may go to and fro:

    a - b, join(how="anti"), except_     where what is taken away depends on a variable
    agg(...), reduce(...)                of what depends on a variable: a new row replaces a value
    top_k, session                       of what depends on a variable: a new row may push one out

These are fine where what they look at does not depend on the variable: it is the same in every
round. A least or greatest value or row and a set are fine too, because they only move one way; and
so is a count that is only compared with a number it has to reach. A reducer of your own is taken to
be one of that sort. Rows that are added to a variable as it is, with no `distinct` behind, become
more and more in every round.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ebbflow import reducer
from ebbflow.errors import MayNotEnd, NoFixedPoint
from ebbflow.expression import Constant, Get, Operation
from ebbflow.flow.plan import (
    Concat,
    Filter,
    FlatMap,
    Iterate,
    Join,
    LoopInput,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    Sessions,
    TopK,
)
from ebbflow.flow.plan.aligned import AsOf, IntervalSemi
from ebbflow.flow.plan.compare import CompareSemi, ScalarFilter
from ebbflow.flow.plan.order import Ordered
from ebbflow.flow.rewrite.better import may_read
from ebbflow.places import file_and_line
from ebbflow.record import fields_of
from ebbflow.reducer.combine import together
from ebbflow.zset import trusted

ONE_WAY = {
    reducer.approx_count_distinct, reducer.arg_max, reducer.arg_min, reducer.bool_and,
    reducer.bool_or, reducer.count_distinct, reducer.max, reducer.min, reducer.set_of,
}  # fmt: skip
"""Reducers whose value only moves one way when rows are added."""
SAMPLE = 5


def no_fixed_point(
    node: Iterate, number: int, changing: Mapping[str, Mapping[Any, int]]
) -> NoFixedPoint:
    """The error of a loop whose variables still change in its last round, by name the changes.

    >>> node = Iterate(starts=(), imports=(), body=Plan({"n": LoopInput(name="n")}), outside=(),
    ...                priorities=())
    >>> error = no_fixed_point(node, 3, {"n": {7: 1}})
    >>> error.what, error.facts["changing"]
    ("iterate: after 3 rounds rows of 'n' still change", ZSet({7: 1}))
    """
    name, rows = next((name, rows) for name, rows in changing.items() if rows)
    return NoFixedPoint(
        f"iterate: after {number:,} rounds rows of {name!r} still change",
        changing=trusted(dict(list(rows.items())[:SAMPLE])),
        created=node.place,
        remedy="rounds=, a higher limit=, or a body that comes to an end; "
        "the step changed nothing",
    )  # fmt: skip


def warn_of(node: Iterate, call: str) -> None:
    """Warn where a body shows that its rounds may go on for ever."""
    file, line = file_and_line(str(node.place))
    for reason in dict.fromkeys(reasons(node)):
        warnings.warn_explicit(
            f"{call}: this loop may never come to an end: {reason}; "
            "try rounds=, or a limit= by which it surely ends",
            MayNotEnd, file, line,
        )  # fmt: skip


def reasons(node: Iterate) -> Iterator[str]:
    """Why the rounds of a loop may go on for ever, as far as its body shows it."""
    yield from _taking_away(node.body, set(node.variables))
    for name, result in node.body.outputs.items():
        if _grows(result, node.variables):
            yield f"each round adds to {name!r}, with no distinct() after it"


def _taking_away(plan: Plan, names: set[str]) -> Iterator[str]:
    """Where a body takes rows away because of rows that depend on these inputs of it."""
    depends = _dependent(plan, names)
    readers: dict[int, list[Node]] = defaultdict(list)
    for node in plan.nodes():
        for parent in node.parents:
            readers[id(parent)].append(node)
    for node in plan.nodes():
        touched = [id(parent) in depends for parent in node.parents]
        if not any(touched):
            continue
        match node:
            case Concat() if -1 in _those(node.signs, touched):
                yield f"its body takes rows away that depend on it, at {node.place}"
            case Semi(anti=True) | CompareSemi(anti=True) | IntervalSemi(anti=True) if touched[1]:
                yield f"its body leaves out rows that meet what depends on it, at {node.place}"
            case Reduce() if not (_one_way(node.reducer) or _threshold(node, readers)):
                made = repr(node.reducer)
                yield f"its body takes {made} of rows that depend on it, at {node.place}"
            case ScalarFilter() if touched[1]:
                yield f"its body leaves out rows by what depends on it, at {node.place}"
            case TopK(n=1, offset=0):
                pass
            case TopK() | Sessions() | Ordered() | AsOf():
                yield f"its body takes {node.verb} of rows that depend on it, at {node.place}"
            case Iterate():
                inner = _those((*node.variables, *node.outside), touched)
                yield from _taking_away(node.body, set(inner))


def _dependent(plan: Plan, names: set[str]) -> set[int]:
    """The nodes of a body that depend on these inputs, also by what a variable becomes."""
    found: set[int] = set()
    while True:
        before = len(found)
        for node in plan.nodes():
            own = isinstance(node, LoopInput) and node.name in names
            if own or any(id(parent) in found for parent in node.parents):
                found.add(id(node))
        names = names | {name for name, result in plan.outputs.items() if id(result) in found}
        if len(found) == before:
            return found


def _those(items: Iterable[Any], wanted: Iterable[bool]) -> list[Any]:
    return [item for item, each in zip(items, wanted, strict=True) if each]


def _grows(result: Node, variables: tuple[str, ...]) -> bool:
    """Whether a result is a variable as it is, and more."""
    if not isinstance(result, Concat) or min(result.signs, default=1) < 0:
        return False
    as_it_is = [isinstance(each, LoopInput) and each.name in variables for each in result.parts]
    return any(as_it_is) and len(result.parts) > 1


def _one_way(reduce: Any) -> bool:
    """Whether the value of a reducer only moves one way when rows are added, or nothing is known
    about it."""
    made = getattr(reduce, "made", None)
    if made is None:
        return True
    if made[0] is together:
        return all(map(_one_way, made[1]))
    if made[0].__module__ == together.__module__:
        return any(isinstance(each, reducer.Reducer) and _one_way(each) for each in made[1])
    return made[0] in ONE_WAY


def _threshold(node: Reduce, readers: Mapping[int, list[Node]]) -> bool:
    """Whether all that is read of counts is that they are at least so many."""
    made: Any = getattr(node.reducer, "made", None)
    names = list(fields_of(node.type) or ())[node.width :]
    if made is None or made[0] is not reducer.count or len(names) != 1:
        return False
    return all(
        isinstance(reader, Filter)
        and _at_least(reader, names[0])
        and not any(_hands_on(after, reader, names[0]) for after in readers[id(reader)])
        for reader in readers[id(node)]
    )


def _at_least(node: Filter, name: str) -> bool:
    match node.fn.expression:
        case Operation(op=">" | ">=", args=(Get(name=read), Constant())):
            return bool(read == name)
    return False


def _hands_on(node: Node, parent: Node, name: str) -> bool:
    """Whether a node looks at a field of a parent, or gives rows that have it."""
    match node:
        case Map() | FlatMap():
            return may_read(node.fn, 0, name)
        case Semi() if node.left is not parent:
            return may_read(node.right_key, 0, name)
        case Join():
            sides = [(node.left, node.left_key), (node.right, node.right_key)]
            return any(
                side is parent and (may_read(key, 0, name) or may_read(node.merge, i, name))
                for i, (side, key) in enumerate(sides)
            )
    return True
