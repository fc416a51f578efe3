"""What `explain` shows of a plan, whatever the format: its nodes with their numbers and words.

Numbers go in the order in which nodes are met from the outputs down. The body of a loop comes right
behind its loop, before what the loop reads; a body has inputs of its own, a *variable* for each
variable of the loop and one for each collection from *outside*, and these say which node they read.

An engine says how it runs a loop with a `LoopRun`. Without one, the body is that of the program,
and nothing is said about what is kept for its nodes, because that depends on the way it is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ebbflow.flow.describe import details, fn_text, follows, steps, verb
from ebbflow.flow.kept import kept, kept_in_rounds
from ebbflow.flow.plan import Iterate, LoopInput, Node, Plan, Reduce
from ebbflow.flow.rewrite.graph import consumers
from ebbflow.flow.rewrite.share import indices
from ebbflow.record import fields_of, name_of, type_text

Judge = Callable[[Any], str]
Facts = Mapping[Node, object]


class LoopRun(NamedTuple):
    """How an engine runs a loop: `words` by name, and the plan of its body as it is run.

    `keeps` is what is kept for the loop as a whole; None where its nodes keep their rows in rounds.
    """

    body: Plan
    words: Mapping[str, str]
    keeps: Sequence[str] | None
    loops: Mapping[Node, LoopRun]


@dataclass(frozen=True)
class LoopItem:
    """What is shown of a loop beside its node: for each variable the ids of its start and of what a
    round makes of it, and its priority; the ids of what is read from outside; when it ends."""

    variables: dict[str, dict[str, Any]]
    outside: dict[str, int]
    rounds: int | None
    limit: int
    words: dict[str, str]


@dataclass(frozen=True)
class PlanItem:
    """One node, as it is shown. `inside` is the id of the loop in whose body it is, and `reads` the
    id of the node outside that an input of a body reads."""

    id: int
    node: Node
    verb: str
    details: str
    steps: list[str]
    parents: list[int]
    type: str
    place: str
    state: list[str]
    verdict: str | None
    aggregate: str | None
    cost: str | None
    readers: list[int]
    shared: bool
    facts: str | None
    inside: int | None
    reads: int | None
    loop: LoopItem | None

    @property
    def label(self) -> str:
        label = f"{self.verb} {self.details}".rstrip()
        return label if self.reads is None else f"{label} ← {self.reads}"


@dataclass(frozen=True)
class Arranged:
    """An index, as it is shown: whose rows, by which key, for whom."""

    of: int
    key: str
    readers: list[int]


@dataclass(frozen=True)
class Described:
    """A plan, as it is shown."""

    outputs: dict[str, int]
    items: list[PlanItem]
    indices: list[Arranged]

    def __getitem__(self, id: int) -> PlanItem:
        return self.items[id - 1]


@dataclass
class _Scope:
    """A plan or the body of a loop: the ids of its nodes, and how often each is read."""

    plan: Plan
    runs: Mapping[Node, LoopRun]
    loop: Iterate | None = None
    run: LoopRun | None = None
    around: _Scope | None = None
    ids: dict[int, int] = field(default_factory=dict)
    bodies: dict[int, _Scope] = field(default_factory=dict)
    readers: dict[int, list[int]] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Counter[int]:
        return consumers(self.plan)

    def id_of(self, node: Node) -> int:
        return self.ids[id(node)]


def described(plan: Plan, facts: Facts, judge: Judge, loops: Mapping[Node, LoopRun]) -> Described:
    """The nodes of a plan and of all bodies in it, as they are shown."""
    top = _Scope(plan, loops)
    nodes: list[tuple[Node, _Scope]] = []
    _number(top, nodes)
    for node, scope in nodes:
        for parent in node.parents:
            scope.readers.setdefault(id(parent), []).append(scope.id_of(node))
    items = []
    for node, scope in nodes:
        reducer = node.reducer if isinstance(node, Reduce) and scope is top else None
        item = PlanItem(
            id=scope.id_of(node),
            node=node,
            verb=_verb(node, scope),
            details=details(node),
            steps=steps(node),
            parents=[scope.id_of(parent) for parent in node.parents],
            type=_type(node.type),
            place=str(node.place),
            state=_kept(node, scope),
            verdict=follows(node, judge) if scope is top else None,
            aggregate=getattr(reducer, "aggregate", None) or None,
            cost=getattr(reducer, "cost", None) or None,
            readers=sorted(set(scope.readers.get(id(node), []))),
            shared=scope.counts[id(node)] > 1,
            facts=str(facts[node]) if scope is top and node in facts else None,
            inside=_inside(scope),
            reads=_reads(node, scope),
            loop=_loop(node, scope) if isinstance(node, Iterate) else None,
        )
        items.append(item)
    arranged = [
        Arranged(top.id_of(of), fn_text(key), sorted(map(top.id_of, by)))
        for (of, key), by in indices(plan).items()
    ]
    outputs = {name: top.id_of(node) for name, node in plan.outputs.items()}
    return Described(outputs, items, sorted(arranged, key=lambda index: (index.of, index.key)))


def _number(scope: _Scope, nodes: list[tuple[Node, _Scope]]) -> None:
    """Give every node of a plan its number, and those of bodies theirs."""
    stack = list(scope.plan.outputs.values())[::-1]
    while stack:
        node = stack.pop()
        if id(node) in scope.ids:
            continue
        nodes.append((node, scope))
        scope.ids[id(node)] = len(nodes)
        if isinstance(node, Iterate):
            run = scope.runs.get(node)
            body, runs = (node.body, {}) if run is None else (run.body, run.loops)
            inner = scope.bodies[id(node)] = _Scope(body, runs, node, run, scope)
            _number(inner, nodes)
        stack.extend(reversed(node.parents))


def _verb(node: Node, scope: _Scope) -> str:
    if isinstance(node, LoopInput) and scope.loop is not None:
        return "variable" if node.name in scope.loop.variables else "outside"
    return verb(node)


def _kept(node: Node, scope: _Scope) -> list[str]:
    """What is kept for a node, where it is known how it runs."""
    if isinstance(node, Iterate):
        run = scope.runs.get(node)
        return kept(node) if run is None else list(run.keeps or ())
    if scope.loop is None:
        return kept(node)
    lifted = scope.run is not None and scope.run.keeps is None
    return kept_in_rounds(node) if lifted else []


def _inside(scope: _Scope) -> int | None:
    if scope.loop is None or scope.around is None:
        return None
    return scope.around.id_of(scope.loop)


def _reads(node: Node, scope: _Scope) -> int | None:
    """The node outside that an input of a body reads."""
    loop, around = scope.loop, scope.around
    if not isinstance(node, LoopInput) or loop is None or around is None:
        return None
    names = (*loop.variables, *loop.outside)
    return around.id_of(loop.parents[names.index(node.name)])


def _loop(node: Iterate, scope: _Scope) -> LoopItem:
    body, run = scope.bodies[id(node)], scope.runs.get(node)
    variables = {
        name: {
            "start": scope.id_of(start),
            "result": body.id_of(body.plan.outputs[name]),
            "priority": None if priority is None else fn_text(priority),
        }
        for name, start, priority in zip(node.variables, node.starts, node.priorities, strict=True)
    }
    outside = {
        name: scope.id_of(each) for name, each in zip(node.outside, node.imports, strict=True)
    }
    words = {} if run is None else dict(run.words)
    return LoopItem(variables, outside, node.rounds, node.limit, words)


def _type(hint: Any) -> str:
    return name_of(hint) if fields_of(hint) is None else type_text(hint)
