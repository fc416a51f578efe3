"""Loops: from a function that says one round to a node.

The function is called with collections that stand for the variables of the loop, and gives what
they are in the next round. What it makes becomes the *body*, a plan of its own: the nodes that
depend on a variable. Everything else that it uses stays outside and is read by the body under a
name, so that work which does not touch the loop is never done inside it.

A variable has the type that its start and the body's result have in common. It is a bag when both
are. Neither is known before the body is, so the function is called again where the first guess was
wrong; it must say the same every time.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ebbflow.errors import MayNotEnd, Text, place
from ebbflow.flow import types
from ebbflow.flow.parts import part, plain, refuse
from ebbflow.flow.plan import Concat, Iterate, LoopInput, Node, Plan, Semi
from ebbflow.flow.rewrite.tighten import closed
from ebbflow.fn import Fn

Body = Callable[..., Mapping[str, Node]]
LIMIT = 10_000


def looped(
    call: str, starts: Mapping[str, Node], body: Body, rounds: int | None, limit: int,
    priorities: Mapping[str, Any],
) -> Iterate:  # fmt: skip
    """The node of a loop: `body` is called with a node for each variable, and gives one for each.

    `call` is how the user wrote it.
    """
    for name, value in (("rounds", rounds), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            refuse(f"{call}: {name}={value!r} is not a number of rounds", f"{name}=10")
    if rounds is not None and rounds < 0:
        refuse(f"{call}: rounds={rounds!r} is less than none", "rounds=0, or more")
    if limit < 1:
        refuse(f"{call}: limit={limit!r} leaves no round", "limit=1, or more")
    for name in priorities:
        if name not in starts:
            refuse(f"{call}: priority of {name!r}, and there is no such variable",
                   f"priority={{{next(iter(starts))!r}: ...}}")  # fmt: skip
    found = {name: LoopInput(name=name, type=start.type, never_negative=start.bag)
             for name, start in starts.items()}  # fmt: skip
    while True:
        results = body(*found.values())
        wanted = {name: _fitting(call, name, starts[name], found[name], results[name])
                  for name in starts}  # fmt: skip
        if wanted == found:
            break
        found = wanted
    plan, outside = closed(results, found)
    node = Iterate(
        starts=tuple(starts.values()), imports=tuple(outside.values()), body=plan,
        outside=tuple(outside), rounds=rounds, limit=limit,
        priorities=tuple(_priority(call, starts[name], priorities.get(name)) for name in starts),
        type=_rows(found), place=place(),
    )  # fmt: skip
    if rounds is None:
        _warn_of(node, call)
    return node


def variable_name(body: Callable[..., Any]) -> str:
    """What a body calls its variable."""
    try:
        return next(iter(inspect.signature(body).parameters))
    except (TypeError, ValueError, StopIteration):
        return "rows"


def _fitting(call: str, name: str, start: Node, variable: LoopInput, result: Node) -> LoopInput:
    """The variable, of a type that has room for its start and for the result of the body."""
    hint = types.common(variable.type, result.type)
    if hint is None:
        refuse(
            f"{call}: the body gives rows of another type than {name!r} has",
            "select(...) or map(...) to the same fields at the end of the body",
            rows=Text(types.text(variable.type)),
            given=Text(types.text(result.type)),
        )
    bag = variable.never_negative and start.bag and result.bag
    return LoopInput(name=name, type=hint, never_negative=bag, place=variable.place)


def _rows(variables: Mapping[str, LoopInput]) -> Any:
    if len(variables) > 1:
        return tuple[str, Any]
    (variable,) = variables.values()
    return variable.type


def _priority(call: str, start: Node, given: Any) -> Fn | None:
    if given is None:
        return None
    plain(f"{call.rstrip(')')}, priority={{}})", given)
    return part(f"{call.rstrip(')')}, priority={{}})", start, given)


# ---- loops that may not come to an end ----


def _warn_of(node: Iterate, call: str) -> None:
    """Warn where the body shows that its rounds may go on for ever."""
    reasons = list(_taking_away(node.body, set(node.variables)))
    grows = [name for name, result in node.body.outputs.items() if _grows(result, node.variables)]
    reasons += [f"each round adds to {name!r}, with no distinct() after it" for name in grows]
    file, _, line = str(node.place).rpartition(":")
    for reason in reasons:
        warnings.warn_explicit(
            f"{call}: this loop may never come to an end: {reason}; try rounds=",
            MayNotEnd, file, int(line) if line.isdigit() else 0,
        )  # fmt: skip


def _taking_away(plan: Plan, names: set[str]) -> Iterator[str]:
    """Where a body takes rows away that depend on these inputs of it: then more of them is not more
    of the result, and rounds may go to and fro."""
    depends: set[int] = set()
    for node in plan.nodes():
        touched = [id(parent) in depends for parent in node.parents]
        if any(touched) or (isinstance(node, LoopInput) and node.name in names):
            depends.add(id(node))
        if isinstance(node, Concat) and -1 in _those(node.signs, touched):
            yield f"its body takes rows away that depend on it, at {node.place}"
        elif isinstance(node, Semi) and node.anti and touched[1]:
            yield f"its body leaves out rows that meet what depends on it, at {node.place}"
        elif isinstance(node, Iterate):
            inner = _those((*node.variables, *node.outside), touched)
            yield from _taking_away(node.body, set(inner))


def _those(items: Iterable[Any], wanted: Iterable[bool]) -> list[Any]:
    return [item for item, each in zip(items, wanted, strict=True) if each]


def _grows(result: Node, variables: tuple[str, ...]) -> bool:
    """Whether a result is a variable as it is, and more that depends on variables."""
    if not isinstance(result, Concat) or min(result.signs, default=1) < 0:
        return False
    as_it_is = [
        isinstance(part, LoopInput) and part.name in variables for part in result.parts
    ]  # fmt: skip
    return any(as_it_is) and len(result.parts) > 1
