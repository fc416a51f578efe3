"""Loops with less in them: what does not touch the feedback is computed once, outside.

A loop evaluates its body in every round, and what has state there keeps it for every round. So the
less is in a body, the better. (003, Propositions 3.73 and 3.74, for loops of programs.)

    on the left     what depends on no variable is computed before the loop and read by name
    on the right    a variable that no variable depends on is computed after the loop, from what the
                    others have come to

`closed` does the first when a loop is built. Later rewrites may uncover more: a filter behind a
join that looks at the other side only becomes a filter of that side. Before they are looked for,
filters are pushed inside the body.

A variable that is computed behind its loop is not waited for, so the loop may be done a round
earlier. Where somebody counts rounds, by `rounds=` or `limit=`, all variables stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ebbflow.flow.plan import FlatMap, Iterate, LoopInput, Node, Plan, Source
from ebbflow.flow.rewrite.filters import push_filters
from ebbflow.flow.rewrite.graph import rebuilt, with_parents
from ebbflow.fn import Fn


@dataclass(frozen=True)
class Leaving:
    """The rows of one variable, of pairs of the name of a variable and a row."""

    variable: str

    def __call__(self, pair: Any) -> list[Any]:
        return [pair[1]] if pair[0] == self.variable else []

    @property
    def __name__(self) -> str:
        return self.variable


def leaving(node: Iterate) -> dict[str, Node]:
    """A node for each variable of a loop, after the last round."""
    if len(node.starts) == 1:
        return {node.variables[0]: node}
    types = _types(node)
    return {
        name: FlatMap(parent=node, fn=Fn(Leaving(name)), place=node.place, type=types[name])
        for name in node.variables
    }


def closed(
    results: Mapping[str, Node], variables: Mapping[str, LoopInput]
) -> tuple[Plan, dict[str, Node]]:
    """The part of a program that depends on variables, as a plan of its own, and what it reads from
    outside, by name.

    >>> numbers, rest = LoopInput(name="n", type=int), Source(name="rest", type=int)
    >>> from ebbflow.flow.plan import Concat
    >>> both = Concat(parts=(numbers, rest), signs=(1, 1), type=int)
    >>> plan, outside = closed({"n": both}, {"n": numbers})
    >>> [node.name for node in plan.outputs["n"].parts], list(outside)
    (['n', 'rest'], ['rest'])
    """
    inside = {id(node) for node in variables.values()}
    nodes = Plan(results).nodes()
    for node in nodes:
        if any(id(parent) in inside for parent in node.parents):
            inside.add(id(node))
    become: dict[int, Node] = {id(node): node for node in variables.values()}
    outside: dict[str, Node] = {}

    def inner(node: Node) -> Node:
        if id(node) not in become:
            name = _new_name(node, {*variables, *outside})
            outside[name] = node
            become[id(node)] = node if _is_named(node, name) else LoopInput(
                name=name, type=node.type, never_negative=node.bag, place=node.place
            )  # fmt: skip
        return become[id(node)]

    for node in nodes:
        if id(node) in inside and id(node) not in become:
            become[id(node)] = with_parents(node, *map(inner, node.parents))
    return Plan({name: inner(node) for name, node in results.items()}), outside


def _is_named(node: Node, name: str) -> bool:
    return isinstance(node, LoopInput) and node.name == name


def _new_name(node: Node, taken: set[str]) -> str:
    name = node.name if isinstance(node, Source) else node.verb
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} {count}"
    return found


def tighten(plan: Plan) -> Plan:
    """The plan with less in its loops, and in the loops in these.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Road = record("Road", start=int, end=int, open=bool)
    >>> reached = ef.Input("homes", record("At", end=int)).iterate(lambda at: at.union(
    ...     at.join(ef.Input("roads", Road), left_on="end", right_on="start",
    ...             select=lambda at, road: road)
    ...       .filter(lambda road: road.open).select("end")))
    >>> loop = tighten(reached.plan).outputs["output"]
    >>> [node.verb for node in loop.imports]
    ['filter']
    """
    behind: dict[int, dict[str, Node]] = {}

    def change(new: Node, old: Node) -> Node:
        if isinstance(new, Iterate):
            kept, rest = _needed(new)
            loop = _with_smaller_body(_with_variables(new, kept) if rest else new)
            if rest:
                behind[id(loop)] = _behind(loop, new, rest)
            return loop
        if isinstance(new, FlatMap) and id(new.parent) in behind:
            leaves = new.fn.call
            assert isinstance(leaves, Leaving)
            return behind[id(new.parent)][leaves.variable]
        return new

    return rebuilt(plan, change)


def _with_smaller_body(node: Iterate) -> Iterate:
    """The loop without what depends on no variable."""
    body = tighten(push_filters(node.body))
    inputs = {each.name: each for each in body.nodes() if isinstance(each, LoopInput)}
    variables = {name: inputs[name] for name in node.variables if name in inputs}
    smaller, outside = closed(body.outputs, variables)
    if all(isinstance(each, LoopInput) for each in outside.values()) and _same(body, node.body):
        return node
    found = dict(zip(node.outside, node.imports, strict=True))
    imports = outside_of(outside, found)
    return replace(
        node, body=smaller, outside=tuple(imports), imports=tuple(imports.values())
    )  # fmt: skip


def _same(one: Plan, other: Plan) -> bool:
    return all(one.outputs[name] is node for name, node in other.outputs.items())


def outside_of(nodes: Mapping[str, Node], found: Mapping[str, Node]) -> dict[str, Node]:
    """Nodes of a body where its inputs are these nodes."""

    def change(new: Node, old: Node) -> Node:
        return found[old.name] if isinstance(old, LoopInput) else new

    return dict(rebuilt(Plan(nodes), change).outputs) if nodes else {}


def _with_variables(node: Iterate, kept: list[str]) -> Iterate:
    """The loop with these of its variables."""
    body = Plan({name: node.body.outputs[name] for name in kept})
    read = _names_read(body)
    outside = zip(node.outside, node.imports, strict=True)
    imports = {name: each for name, each in outside if name in read}
    at = [node.variables.index(name) for name in kept]
    return replace(
        node, body=body, outside=tuple(imports), imports=tuple(imports.values()),
        starts=tuple(node.starts[i] for i in at),
        priorities=tuple(node.priorities[i] for i in at),
        type=node.type if len(kept) > 1 else _types(node)[kept[0]],
    )  # fmt: skip


def _behind(loop: Iterate, whole: Iterate, rest: list[str]) -> dict[str, Node]:
    """A node for each variable of a loop, behind another that has all but the `rest`."""
    found = leaving(loop)
    outside = dict(zip(whole.outside, whole.imports, strict=True))
    for name in rest:
        found |= outside_of({name: whole.body.outputs[name]}, outside | found)
    return found


def _needed(node: Iterate) -> tuple[list[str], list[str]]:
    """The variables that some variable depends on, one at least; and the others, each behind those
    that it depends on. Where rounds are counted, all are needed."""
    kept, rest = list(node.variables), list[str]()
    while node.rounds is None and node.limit == Iterate.limit:
        read = _names_read(Plan({name: node.body.outputs[name] for name in kept}))
        fewer = [name for name in kept if name in read] or kept[:1]
        if len(fewer) == len(kept):
            break
        rest = [name for name in kept if name not in fewer] + rest
        kept = fewer
    return kept, rest


def _names_read(body: Plan) -> set[str]:
    return {each.name for each in body.nodes() if isinstance(each, LoopInput)}


def _types(node: Iterate) -> dict[str, Any]:
    """The type of each variable of a loop."""
    known = {name: result.type for name, result in node.body.outputs.items()}
    read = {each.name: each.type for each in node.body.nodes() if isinstance(each, LoopInput)}
    return {name: read.get(name, hint) for name, hint in known.items()}
