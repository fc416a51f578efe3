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
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.flow import types
from ebbflow.flow.endless import warn_of
from ebbflow.flow.parts import at_once, part, part_type, plain, refuse
from ebbflow.flow.plan import Iterate, LoopInput, Node
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
        none = value is None and name == "rounds"
        if not none and (isinstance(value, bool) or not isinstance(value, int)):
            refuse(f"{call}: {name}={value!r} is not a number of rounds", f"{name}=10")
    if rounds is not None and rounds < 0:
        refuse(f"{call}: rounds={rounds!r} is less than none", "rounds=0, or more")
    if limit < 1:
        refuse(f"{call}: limit={limit!r} leaves no round", "limit=1, or more")
    if not isinstance(priorities, Mapping):
        refuse(f"{call}: priority={priorities!r} does not say of which variable",
               f"priority={{{next(iter(starts))!r}: ...}}")  # fmt: skip
    for name in priorities:
        if name not in starts:
            refuse(f"{call}: priority of {name!r}, and there is no such variable",
                   f"priority={{{next(iter(starts))!r}: ...}}")  # fmt: skip
    at = place()
    found = {name: LoopInput(name=name, type=start.type, never_negative=start.bag, place=at)
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
        type=_rows(found), place=at,
    )  # fmt: skip
    if rounds is None and limit == LIMIT:
        warn_of(node, call)
    return node


def variable_name(body: Callable[..., Any]) -> str:
    """What a body calls its variable.

    >>> variable_name(lambda reached: reached)
    'reached'
    """
    try:
        return next(iter(inspect.signature(body).parameters))
    except (TypeError, ValueError, StopIteration):
        return "rows"


def checked_body(call: str, body: Any, names: Collection[str]) -> None:
    """Refuse a body that cannot be called with a collection for each of these variables."""
    takes = f"lambda {', '.join(names)}: ..."
    if not callable(body):
        refuse(f"{call}: the body is a function that says one round", takes, given=body)
    at_once(call, body)
    try:
        signature = inspect.signature(body)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*names)
    except TypeError:
        count = f"{len(names)} collection{'' if len(names) == 1 else 's'}"
        refuse(f"{call}: the body is called with {count}, and takes {signature}", takes)


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
    shape = f"{call.rstrip(')')}, priority={{}})"
    plain(shape, given)
    found = part(shape, start, given)
    said = types.classes(part_type(start, given))
    if said is not None and int not in said:
        wrong = types.text(part_type(start, given))
        name = found.name.rpartition(".")[2]
        refuse(f"{shape.format(name)}: a priority is a round, and no {wrong}",
               "a whole number, 0 or more")  # fmt: skip
    return found
