"""From a plan to stages.

Steps on one row at a time have no stage of their own where that can be avoided: a *port* says what
a stage reads as a list of slots, each with the steps that its rows go through on the way. A stage
that can, has those steps in its own loop; for any other one is put before it that gathers them.

    gather      several slots through their steps, added up
    arrange     the rows of one slot by key: an index where rows are needed, for all who want the
                same rows by the same key
    guard       the rows of a slot behind `-`, before a node that needs a bag
    the rest    one stage for each node with state
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from ebbflow.chain import DEEPEST, Chain, RowStep, gather, grouping
from ebbflow.engine.runtime.compare import COMPARING, CompareStage, comparing
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.engine.runtime.lazy_choice import LazyChoiceStage
from ebbflow.engine.runtime.loop import Body, LoopStage
from ebbflow.engine.runtime.operators import (
    aligning,
    all_traced,
    injective,
    operator_of,
    reducing,
    steps_of,
    straight,
)
from ebbflow.engine.runtime.panes import by_panes
from ebbflow.engine.runtime.rounds import LiftedByKey, LiftedJoin, evaluation
from ebbflow.engine.runtime.stage import WHOLE, Stage, by_row
from ebbflow.engine.runtime.stages import (
    AlignedStage,
    ArrangeStage,
    FusedReduceStage,
    GroupByKeyStage,
    GroupReduceStage,
    GuardStage,
    JoinStage,
    KeyedStage,
    LinearStage,
    SemiJoinStage,
)
from ebbflow.engine.runtime.versions import Schedule
from ebbflow.flow.plan import (
    Binary,
    Concat,
    Distinct,
    Filter,
    FlatMap,
    Fused,
    Iterate,
    Join,
    Keyed,
    LoopInput,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    Source,
    Unary,
)
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.flow.rewrite import (
    ALL,
    FIRST,
    LOCAL,
    Rewrite,
    fuse,
    optimise,
    push_projections,
    share,
)
from ebbflow.flow.rewrite.graph import consumers
from ebbflow.flow.rewrite.monotone import Monotone, monotone
from ebbflow.flow.rewrite.terms import NotMonotone
from ebbflow.fn import Fn
from ebbflow.operator import joins
from ebbflow.state.index import Index
from ebbflow.state.ordered import OrderedIndex
from ebbflow.state.tree import Tree

Port = list[tuple[int, Chain]]
APART: tuple[Rewrite, ...] = (*FIRST, partial(push_projections, apart=True), share)
STORED: tuple[Rewrite, ...] = (*FIRST, fuse)
"""Joins are not narrowed where state is stored: another output that reads more of a join would make
another state of all that reads it."""
LINEAR = (Map, Filter, FlatMap, Fused)


class Compiler:
    """Compiles one plan: `stages`, `inputs`, `outputs`, `width` and `readers` come out.

    With `apart`, steps on one row at a time are stages of their own, and no guard serves two nodes:
    whatever has state then finds the rows it reads by a key of those rows, and can run elsewhere.
    With `stored`, the state outlives the program. With `narrow`, only fields that are read reach
    what keeps rows, as columns do not have the row as a whole anyway.
    """

    def __init__(
        self, plan: Plan, *, apart: bool = False, stored: bool = False, narrow: bool = False
    ) -> None:
        rewrites = APART if apart else STORED if stored else ALL if narrow else LOCAL
        self.plan = optimise(plan, rewrites)
        self.apart, self.stored = apart, stored
        self.stages: list[Stage] = []
        self.width = 0
        self.inputs: dict[str, int] = {}
        self.readers: dict[str, Stage] = {}
        self.ports: dict[int, Port] = {}
        self.states: dict[int, Stage] = {}
        self.arranged: dict[tuple[int, Any, bool], tuple[int, Index[Any, Any] | None]] = {}
        self.ordered: dict[tuple[int, Fn, Fn], tuple[int, OrderedIndex]] = {}
        self.guarded: dict[tuple[int, Any], int] = {}
        self.absorbed: dict[int, int] = {}
        self.count = consumers(self.plan)
        self.after = self._after()
        self.rows_wanted = self._rows_wanted()
        for node in self.plan.nodes():
            self.ports[id(node)] = self._port(node)
        for source in plan.sources.values():  # also those that nothing reads, after the rewrites
            self._input(source)
        self.outputs = {name: self.slot(node) for name, node in self.plan.outputs.items()}
        for name, node in self.plan.outputs.items():
            if id(node) in self.states:
                self.readers[name] = self.states[id(node)]

    # ---- ports and slots ----

    def _port(self, node: Node) -> Port:
        """What a consumer of this node reads."""
        if id(node) in self.absorbed:
            return [(self.absorbed[id(node)], WHOLE)]
        if isinstance(node, Source):
            return [(self._input(node), WHOLE)]
        if not isinstance(node, (*LINEAR, Concat)):
            return [(self._stage(node), WHOLE)]
        port = self._through(node)
        return port if self.count[id(node)] == 1 else [(self._gather(node, port), WHOLE)]

    def _through(self, node: Node) -> Port:
        if isinstance(node, Concat):
            return [
                (slot, Chain(chain.steps, chain.sign * sign))
                for part, sign in zip(node.parts, node.signs, strict=True)
                for slot, chain in self.ports[id(part)]
            ]
        assert isinstance(node, LINEAR)
        parent = self.ports[id(node.parent)]
        steps = steps_of(node)
        return [self._shallow(node, slot, [*chain.steps, *steps], chain) for slot, chain in parent]

    def _shallow(
        self, node: Node, slot: int, steps: list[RowStep], chain: Chain
    ) -> tuple[int, Chain]:
        """Steps behind a slot. Python nests only so many loops, so there are stages in between."""
        deep = [i for i, step in enumerate(steps) if step.verb == "flat_map"]
        while len(deep) > DEEPEST:
            cut = deep[DEEPEST]
            first = Chain(steps[:cut])
            slot = self._add(LinearStage(node, [slot], gather([first]), [first], False))
            self.stages[-1].type = getattr(steps[cut - 1].owner, "type", Any)
            steps, deep = steps[cut:], [i - cut for i in deep[DEEPEST:]]
        return slot, Chain(steps, chain.sign)

    def slot(self, node: Node) -> int:
        """The slot that holds the change of a node."""
        return self._gather(node, self.ports[id(node)])

    def _gather(self, node: Node, port: Port) -> int:
        if not port:
            return self._add(LinearStage(node, [], gather([]), [], True))
        (slot, chain), *more = port
        if not more and not chain.steps and chain.sign == 1:
            return slot
        chains = [chain for _, chain in port]
        reads = [slot for slot, _ in port]
        return self._add(LinearStage(node, reads, gather(chains), chains, all_traced(*chains)))

    def _input(self, node: Source) -> int:
        slot = self.inputs.get(node.name)
        if slot is None:
            slot = self.inputs[node.name] = self._new()
        return slot

    def _new(self) -> int:
        self.width += 1
        return self.width - 1

    def _add(self, stage: Stage) -> int:
        stage.slot = self._new()
        self.stages.append(stage)
        return stage.slot

    # ---- rows by key ----

    def _arrange(self, node: Node, key: Fn | None, owner: Node) -> tuple[int, Any]:
        """The slot with the change of a node by key, and the index where one is kept."""
        guarded = not node.bag and isinstance(owner, Keyed)
        found = self.arranged.get((id(node), key, guarded))
        if found is None:
            found = self._arranged(node, key, owner, guarded)
            self.arranged[id(node), key, guarded] = found
        return found

    def _arranged(self, node: Node, key: Fn | None, owner: Node, guarded: bool) -> tuple[int, Any]:
        port = self.ports[id(node)]
        slot, chain = port[0]
        split = self.apart and chain.steps
        if split or guarded or len(port) > 1 or not chain.one_to_one or chain.sign < 0:
            slot, chain = self._bagged(node, self.slot(node), owner, key), WHOLE
        by_key = grouping(key, chain, owner)
        if (id(node), key) not in self.rows_wanted:
            return self._add(GroupByKeyStage(node, slot, key, by_key, chain)), None
        bag = guarded or node.bag
        index: Index[Any, Any] = Index(key, None, by_key, bag=bag)
        return self._add(ArrangeStage(node, slot, key, index, owner, chain)), index

    def _bagged(self, node: Node, slot: int, owner: Node, key: Fn | None) -> int:
        """Behind `-`, and before a node that needs a bag: a guard."""
        if node.bag or not isinstance(owner, (Keyed, Aligned)):
            return slot
        at = slot, (id(owner), key) if self.apart else None
        if at not in self.guarded:
            self.guarded[at] = self._add(GuardStage(owner, slot, key, node.type))
        return self.guarded[at]

    def _in_order(
        self, node: Node, key: Fn, order: Fn, empty: Tree[Any], owner: Node
    ) -> tuple[int, OrderedIndex]:
        """The slot with the change of a node by key, and the index of its rows in order."""
        at = id(node), key, order
        if at not in self.ordered:
            slot = self._bagged(node, self.slot(node), owner, key)
            index = OrderedIndex(empty, key, grouping(key, WHOLE, owner))
            self.ordered[at] = self._add(ArrangeStage(node, slot, key, index, owner)), index
        return self.ordered[at]

    def _rows_wanted(self) -> set[tuple[int, Any]]:
        wanted: set[tuple[int, Any]] = set()
        for node in self.plan.nodes():
            if isinstance(node, (Join, Semi)):
                wanted.add((id(node.left), node.left_key))
            if isinstance(node, Join):
                wanted.add((id(node.right), node.right_key))
            if isinstance(node, Reduce) and reducing(node, WHOLE).keeps_rows:
                wanted.add((id(node.parent), node.key))
        return wanted

    # ---- nodes with state ----

    def _stage(self, node: Node) -> int:
        match node:
            case Join():
                return self._join(node)
            case Semi():
                return self._semi(node)
            case Aligned():
                return self._aligned(node)
            case Reduce():
                return self._reduce(node)
            case Distinct():
                return self._keyed(node, operator_of(node), by_row=True, query="distinct")
            case Keyed():
                return self._keyed(node, operator_of(node))
            case Iterate():
                return self._loop(node, None, node.outside)
            case Binary() if isinstance(node, COMPARING):
                return self._add(CompareStage(node, self._both_sides(node)[0], comparing(node)))
        raise AssertionError(f"there is no stage for {node!r}")

    def _join(self, node: Join) -> int:
        operator = self._joining(node)
        certain = node.merge.expression is not None and all_traced(operator.after)
        slots, lefts, rights = self._both_sides(node)
        return self._add_join(JoinStage(node, slots, operator, lefts, rights, certain))

    def _both_sides(self, node: Binary) -> tuple[list[int], Any, Any]:
        """The slots with the changes of both sides by key, and the indexes where they are kept."""
        left, lefts = self._arrange(node.left, node.left_key, node)
        right, rights = self._arrange(node.right, node.right_key, node)
        return [left, right], lefts, rights

    def _joining(self, node: Join) -> joins.Join:
        """The operator of a join, with the steps behind it that run in its loop."""
        after = self.after.get(id(node))
        steps = [] if after is None else steps_of(after)
        return joins.Join(
            node.left_key, node.right_key, node.merge, after=Chain(steps),
            one_to_one=injective(node), owner=node, straight=straight(node.merge, node.type, steps),
        )  # fmt: skip

    def _add_join(self, stage: Stage) -> int:
        after = self.after.get(id(stage.node))
        slot = self._add(stage)
        if after is not None:
            self.absorbed[id(after)] = slot
            stage.type = after.type
        return slot

    def _loop(self, node: Iterate, around: Schedule | None, constant: Iterable[str]) -> int:
        """A loop; `constant` are the collections from outside that are the same in all rounds of
        the loops around."""
        constant = list(constant)
        slots = [self.slot(parent) for parent in node.parents]

        found = monotone(node) if around is None else NotMonotone("it is inside another loop")
        whole = self.stored or self.apart

        def made() -> Stage:
            if isinstance(found, Monotone) and found.choice is not None:
                return LazyChoiceStage(node, slots, found, made, whole)
            if isinstance(found, Monotone):
                return LazyLoopStage(node, slots, found, made, whole)
            schedule = Schedule(around)
            body = BodyCompiler(node.body, schedule, constant, self.stored).body(node)
            return LoopStage(node, slots, schedule, body, made, found.why)

        return self._add(made())

    def _semi(self, node: Semi) -> int:
        operator = joins.Semi(node.left_key, node.right_key, node.anti, node.right.bag)
        slots, lefts, _ = self._both_sides(node)
        return self._add(SemiJoinStage(node, slots, operator, lefts))

    def _aligned(self, node: Aligned) -> int:
        operator = aligning(node)
        left, lefts = self._in_order(
            node.left, node.left_key, node.left_order, operator.left_empty, node
        )
        right, rights = self._in_order(
            node.right, node.right_key, node.right_order, operator.right_empty, node
        )
        return self._add(AlignedStage(node, [left, right], operator, lefts, rights))

    def _reduce(self, node: Reduce) -> int:
        port = self.ports[id(node.parent)]
        slot, chain = port[0]
        fused = len(port) == 1 and chain.sign == 1 and node.parent.bag
        fused = fused and not (self.apart and chain.steps)
        panes = by_panes(node, chain) if fused else None
        operator = panes or reducing(node, chain if fused else WHOLE)
        if operator.loop is not None:
            if not fused:
                slot = self._bagged(node.parent, self.slot(node.parent), node, node.key)
            found = self._add(FusedReduceStage(node, slot, operator))
        else:
            slot, index = self._arrange(node.parent, node.key, node)
            found = self._add(GroupReduceStage(node, slot, operator, index))
        self.states[id(node)] = self.stages[-1]
        return found

    def _keyed(self, node: Unary, operator: Any, **known: Any) -> int:
        key = getattr(node, "key", None)
        slot = self._bagged(node.parent, self.slot(node.parent), node, key)
        stage = KeyedStage(node, slot, operator, **known)
        if stage.readable:
            self.states[id(node)] = stage
        return self._add(stage)

    def _after(self) -> dict[int, Node]:
        """Joins that have the steps behind them in their own loop, with those steps."""
        found: dict[int, Node] = {}
        readers: dict[int, Node] = {}
        for node in self.plan.nodes():
            for parent in node.parents:
                readers[id(parent)] = node
        for node in self.plan.nodes():
            if isinstance(node, LINEAR) and isinstance(node.parent, Join):
                reader = readers.get(id(node)) if self.count[id(node)] == 1 else None
                fused = isinstance(reader, Reduce) and not reducing(reader, WHOLE).keeps_rows
                if self.count[id(node.parent)] == 1 and not fused:
                    found[id(node.parent)] = node
        return found


class BodyCompiler(Compiler):
    """Compiles the body of a loop: what has state keeps it by version (`ebbflow.engine.runtime.
    rounds`). The rows of inputs that are `constant`, the same at all versions, need none."""

    def __init__(
        self, plan: Plan, schedule: Schedule, constant: Iterable[str], stored: bool = False
    ) -> None:
        self.schedule = schedule
        self.constant = set(constant)
        super().__init__(plan, stored=stored)

    def body(self, node: Iterate) -> Body:
        """What a stage runs. An input that the body does not read has a slot all the same."""
        outputs = [self.outputs[name] for name in node.variables]
        inputs = {name: self.inputs.get(name, -1) for name in (*node.variables, *node.outside)}
        unread = [name for name, slot in inputs.items() if slot < 0]
        inputs |= {name: self._new() for name in unread}
        return Body(
            self.plan, self.stages, self.width, [inputs[name] for name in node.variables], outputs,
            [inputs[name] for name in node.outside],
        )  # fmt: skip

    def _stage(self, node: Node) -> int:
        schedule = self.schedule
        if isinstance(node, Iterate):
            given = zip(node.outside, node.imports, strict=True)
            return self._loop(node, schedule, [name for name, each in given if self._fixed(each)])
        slots = [self.slot(parent) for parent in node.parents]
        fixed = [self._fixed(parent) for parent in node.parents]
        if isinstance(node, Join):
            return self._add_join(LiftedJoin(node, slots, schedule, self._joining(node), *fixed))
        keys: list[Fn | None]
        if isinstance(node, (Binary, Aligned)):
            keys = [node.left_key, node.right_key]
            operator = None
            if isinstance(node, Aligned):
                operator = aligning(node)
            elif not isinstance(node, Semi):
                operator = comparing(node)
        else:
            keys = [Fn(by_row) if isinstance(node, Distinct) else getattr(node, "key", None)]
            operator = operator_of(node)
        known = list(zip(keys, fixed, strict=True))
        return self._add(LiftedByKey(node, slots, schedule, known, evaluation(node, operator)))

    def _fixed(self, node: Node) -> bool:
        """Whether a node is the same at all versions."""
        return isinstance(node, LoopInput) and node.name in self.constant
