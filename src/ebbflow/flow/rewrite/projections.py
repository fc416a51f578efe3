"""Projections early: a field that nobody reads is dropped before it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ebbflow.expression import Record
from ebbflow.flow.plan import (
    Binary,
    Filter,
    FlatMap,
    Fused,
    Join,
    Keyed,
    Map,
    Node,
    Plan,
    Reduce,
    Semi,
    Sessions,
    Source,
    TopK,
    row_steps,
)
from ebbflow.flow.plan.compare import CompareJoin, CompareSemi, Comparison, ScalarFilter
from ebbflow.flow.plan.time import ClockSource, SessionReduce
from ebbflow.flow.rewrite.graph import consumers, with_parents
from ebbflow.flow.rewrite.reducers import NOTHING, Names, adds_up, reducer_reads, union
from ebbflow.flow.rewrite.share import indices
from ebbflow.flow.rewrite.total import computes
from ebbflow.flow.rewrite.traced import narrowing, over, written
from ebbflow.flow.types import row
from ebbflow.fn import Fn
from ebbflow.record import fields_of


def push_projections(plan: Plan, *, apart: bool = False) -> Plan:
    """Only the fields that are read reach the nodes that keep rows, or, where state is `apart` from
    the rows, are sent rows. Then rows of inputs reach joins as they are, for an index that is to
    keep them anyway, and so do rows that are added up for a reduce before anything is sent. An
    input with a key keeps its rows by that key, so a join need not keep all of them again: it is
    sent narrower rows where these have at most half of the fields.

    Law (002: joins are bilinear and maps are linear, so weights of rows that become equal add up):

        join(a, b)               ==  join(narrow(a), narrow(b))            merge reads no more
        semi(a, b)               ==  semi(a, narrow(b))                    the key reads no more
        reduce(R, by=k, x)       ==  reduce(R, by=k, narrow(x))            k and R read no more
        narrow(semi(a, b))       ==  semi(narrow(a), b)
        narrow(top_k(x))         ==  top_k(narrow(x))      narrow keeps the first fields, see below
        narrow(map(f, x))        ==  map(f then narrow, x)                 also a join's merge

    Valid when it is known which fields are read: every function traced, every reducer one of the
    library's that was given fields by name. Nodes that need whole rows are left alone: distinct,
    the parts of a concat, `through`, outputs. So are rows behind `-`, which may be negative:
    made equal to others they could vanish unseen. `top_k` decides between equals by the rows, from
    their first field on, so rows may lose last fields only. An index that several nodes share keeps
    what any of them reads. A field that nobody reads is no longer computed, where that cannot fail.
    Where a dropped field told 1 from 1.0, which are equal, one of the two stands for both.

    It pays where rows are written down: what Spark keeps and shuffles; and in columns, where every
    field is kept apart. It does not for rows in memory, where an index refers to the row that is
    there anyway, and a narrower one is a new tuple; there only joins make narrower rows
    (`narrow_joins`).

    >>> from ebbflow.flow.plan import Source
    >>> from ebbflow.reducer import sum
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str, price=int)
    >>> orders = Source(name="orders", type=Order)
    >>> totals = Reduce(parent=orders, key=Fn.of("city", Order), reducer=sum("price"),
    ...                 width=1, spread=False)
    >>> narrow = push_projections(Plan({"totals": totals})).outputs["totals"].parent
    >>> narrow.verb, narrow.type._fields
    ('map', ('city', 'price'))
    """
    return _Work(plan, apart).built()


def narrow_joins(plan: Plan) -> Plan:
    """Joins make rows of the fields that are read behind them, where these are at most half.

    These are the projections that pay in memory: a join makes a row anyway, and has to hash it, so
    a narrow one is cheaper; a row that is there already is left as it is. Where nearly all fields
    are read nothing is gained: rows that lose a field may become equal, and have to be added up.

    >>> from ebbflow import Input, max
    >>> from ebbflow.record import record
    >>> Bid = record("Bid", item=int, price=int, by=str, at=int)
    >>> Item = record("Item", id=int, kind=str, ends=int)
    >>> both = Input("bids", Bid).join(Input("items", Item), left_on="item", right_on="id")
    >>> best = both.filter(lambda row: row.at < row.ends).group_by("kind").agg(best=max("price"))
    >>> narrow_joins(Plan({"best": best.node})).outputs["best"].parent.type._fields
    ('price', 'kind')
    """
    return _Work(plan, made=True).built()


def narrow_inputs(plan: Plan) -> Plan:
    """Inputs keep only their keys and the fields that are read: rows lose the others as they come.

    So an input does not know fields that nobody reads. Rows that differ in these alone are equal to
    it, also when they are taken away: what it refuses is a row of which it has no such part. It is
    for those who ask for it, as another output may want to read more of rows that came before.

    >>> from ebbflow import Input, sum
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str, price=int, note=str)
    >>> totals = Input("orders", Order, key="id").group_by("city").agg(total=sum("price"))
    >>> orders = narrow_inputs(Plan({"totals": totals.node})).sources["orders"]
    >>> orders.type._fields, sorted(orders.unread)
    (('id', 'city', 'price'), ['note'])
    """
    return _Work(plan, inputs=True).built()


COMPARING = (CompareJoin, CompareSemi, ScalarFilter)


@dataclass
class _Work:
    """The fields that are read of every node, and on every edge to a node that keeps rows."""

    plan: Plan
    apart: bool = False
    made: bool = False
    """Whether only joins are to make narrower rows, see `narrow_joins`."""
    inputs: bool = False
    """Whether inputs are to keep narrower rows, see `narrow_inputs`."""
    need: dict[int, Names] = field(default_factory=dict)
    edge: dict[tuple[int, int], Names] = field(default_factory=dict)
    maps: dict[tuple[int, frozenset[str]], Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = self.plan.nodes()
        self.need = {id(node): None for node in self.plan.outputs.values()}
        self.count = consumers(self.plan)
        for node in reversed(self.nodes):
            self.ask(node)

    def ask(self, node: Node) -> None:
        """Adds what a node reads of its parents; all that reads the node has been asked."""
        self.need.setdefault(id(node), NOTHING)
        need = self._needed(node)
        for i, parent in enumerate(node.parents):
            reads = self._reads(node, i, need) if parent.bag else None
            self.edge[id(node), i] = reads
            self.need[id(parent)] = union(self.need.get(id(parent), NOTHING), reads)

    def _needed(self, node: Node) -> Names:
        """The fields that a node is to make; None where it makes all."""
        need, fields = self.need[id(node)], fields_of(node.type)
        if not self.made or not isinstance(node, (Map, Join, CompareJoin, Sessions)):
            return need
        joins = isinstance(node, (Join, CompareJoin)) and need is not None and fields
        return need if joins and 2 * len(_some(need, fields)) <= len(fields) else None  # type: ignore[arg-type]

    def _reads(self, node: Node, i: int, need: Names) -> Names:
        if isinstance(node, Join):
            keys = (node.left_key, node.right_key)
            return union(_fields(_narrowed(node.merge, node.type, need), i), _fields(keys[i]))
        if isinstance(node, Semi):
            return _fields(node.right_key) if i else union(need, _fields(node.left_key))
        if isinstance(node, COMPARING):
            return _compared(node, i, need)
        if isinstance(node, (Map, FlatMap, Filter, Fused)):
            return _of_steps(node, need)
        if isinstance(node, Sessions):
            merged = _fields(_narrowed(node.merge, node.type, need))
            return union(merged, _fields(node.key), _fields(node.time))
        if isinstance(node, SessionReduce):
            named = reducer_reads(node.reducer, node.parent.type)
            return union(_fields(node.key), _fields(node.time), named)
        if isinstance(node, Reduce):
            return union(_fields(node.key), reducer_reads(node.reducer, node.parent.type))
        if isinstance(node, TopK):
            return _first_fields(node.type, union(need, _fields(node.key), _fields(node.by)))
        return None

    def built(self) -> Plan:
        """The plan in which every node makes only the fields that are read of it."""
        for (of, key), readers in indices(self.plan).items():
            self._agree([edge for reader in readers for edge in _edges(reader, of, key)])
        become: dict[int, Node] = {}
        for node in self.nodes:
            parents = [
                self._narrow(node, i, become[id(parent)]) for i, parent in enumerate(node.parents)
            ]
            if self.inputs and isinstance(node, Source):
                become[id(node)] = self._source(node)
            else:
                become[id(node)] = _retyped(node, parents, self._needed(node))
        return Plan({name: become[id(node)] for name, node in self.plan.outputs.items()})

    def _source(self, source: Source) -> Source:
        """The input with rows of its keys and the fields that are read alone."""
        own = {"key": source.key, "sequence": source.sequence, "time": source.time}
        same = [each for each in self.nodes if isinstance(each, Source) and each == source]
        need = union(*(self.need[id(each)] for each in same), *map(_fields, own.values()))
        fields = fields_of(source.type)
        if need is None or not fields or isinstance(source, ClockSource) or source.narrow:
            return source
        kept = _some(need, fields)
        if len(kept) == len(fields):
            return source
        fn = narrowing(source.type, kept)
        narrow = getattr(fn.expression, "type", source.type)
        parts: dict[str, Any] = {
            name: _over(part, (narrow,)) for name, part in own.items() if part is not None
        }
        return replace(source, type=narrow, narrow=fn, **parts)

    def _agree(self, edges: list[tuple[int, int]]) -> None:
        """Nodes that share an index read the same fields of it."""
        reads = union(*(self.edge[edge] for edge in edges))
        self.edge.update(dict.fromkeys(edges, reads))

    def _narrow(self, node: Node, i: int, parent: Node) -> Node:
        """What a node that keeps rows reads instead of its parent."""
        if self.inputs:
            return parent
        reads, fields = self.edge[id(node), i], fields_of(parent.type)
        if (
            not isinstance(node, (Binary, Reduce, SessionReduce, TopK))
            or reads is None
            or not fields
        ):
            return parent
        if self.made and not self._makes(node.parents[i]):
            return parent
        if (
            (self.apart or self.made)
            and isinstance(node, Reduce)
            and adds_up(node.reducer, parent.type)
        ):
            return parent
        kept = _some(reads, fields)
        if self.made and 2 * len(kept) > len(fields_of(node.parents[i].type) or ()):
            return parent
        whole = isinstance(parent, Source) and (parent.key is None or 2 * len(kept) > len(fields))
        if self.apart and isinstance(node, Binary) and whole:
            return parent
        if len(kept) == len(fields):
            return parent
        if (id(parent), kept) not in self.maps:
            fn = narrowing(parent.type, kept)
            row_type = getattr(fn.expression, "type", parent.type)
            self.maps[id(parent), kept] = Map(parent=parent, fn=fn, type=row_type, place=node.place)
        return self.maps[id(parent), kept]

    def _makes(self, node: Node) -> bool:
        """Whether a node is a join with filters behind it that nothing else reads."""
        while isinstance(node, Filter) and self.count[id(node)] == 1:
            node = node.parent
        return isinstance(node, Join) and self.count[id(node)] == 1


def _edges(reader: Node, of: Node, key: Fn) -> list[tuple[int, int]]:
    keys = _keys(reader)
    found = [i for i, parent in enumerate(reader.parents) if parent is of and keys[i] == key]
    return [(id(reader), i) for i in found]


def _keys(node: Node) -> tuple[Fn | None, ...]:
    if isinstance(node, Binary):
        return (node.left_key, node.right_key)
    return (node.key,) if isinstance(node, Keyed) else ()


def _compared(node: CompareJoin | CompareSemi | ScalarFilter, i: int, need: Names) -> Names:
    """What a node that compares rows reads of a side."""
    key = _fields((node.left_key, node.right_key)[i])
    if isinstance(node, ScalarFilter):
        return union(_fields(node.fn, i), key, NOTHING if i else need)
    where = [_fields(each.right if i else each.left) for each in node.where]
    if isinstance(node, CompareJoin):
        return union(_fields(_narrowed(node.merge, node.type, need), i), key, *where)
    return union(key, *where, NOTHING if i else need)


# ---- sets of fields ----


def _fields(fn: Fn | None, arg: int = 0) -> Names:
    """The fields of an argument that a function reads, if it is traced."""
    if fn is None:
        return NOTHING
    return None if fn.expression is None else fn.reads[arg]


def _some(names: frozenset[str], fields: dict[str, Any]) -> frozenset[str]:
    """The named ones among the fields, or else the first field: a row has at least one."""
    return names.intersection(fields) or frozenset({next(iter(fields))})


def _first_fields(row_type: Any, names: Names) -> Names:
    """The first fields of a row type, as many as it takes to have these."""
    fields = list(fields_of(row_type) or ())
    if names is None or not names <= set(fields):
        return None
    return frozenset(fields[: max((fields.index(name) + 1 for name in names), default=0)])


def _of_steps(node: Map | FlatMap | Filter | Fused, need: Names) -> Names:
    if isinstance(node, Map):
        return _fields(_narrowed(node.fn, node.type, need))
    for step in reversed(row_steps(node)):
        need = union(need, _fields(step.fn)) if step.verb == "filter" else _fields(step.fn)
    return need


# ---- nodes of narrower rows ----


def _narrowed(fn: Fn, row_type: Any, need: Names) -> Fn:
    """A function that makes rows of this type, making only the fields that are read."""
    made, fields = fn.expression, fields_of(row_type)
    if need is None or not fields or not isinstance(made, Record) or made.type is not row_type:
        return fn
    kept = _some(need, fields)
    if len(kept) == len(fields):
        return fn
    items = dict(zip(fields, made.items, strict=True))
    if not all(computes(items[name], fn.types) for name in fields if name not in kept):
        return fn
    narrow = row(row_type.__name__, {name: fields[name] for name in fields if name in kept})
    return written(Record(narrow, tuple(items[name] for name in narrow._fields)), *fn.types)


def _retyped(node: Node, parents: list[Node], need: Names) -> Node:
    """The node of other parents, whose rows may have fewer fields, making the fields needed."""
    old = [parent.type for parent in node.parents]
    new = [parent.type for parent in parents]
    narrowed: dict[str, Any] = {}
    if isinstance(node, (Map, Join, CompareJoin, Sessions)):
        name = "fn" if isinstance(node, Map) else "merge"
        made = _narrowed(getattr(node, name), node.type, need)
        if made is not getattr(node, name):
            narrowed |= {name: made, "type": getattr(made.expression, "type", node.type)}
        if old != new:
            rest = made.types[len(new) :]
            narrowed[name] = _over(made, (*new, *rest))
    if old != new:
        narrowed |= {name: _over(fn, (new[at],)) for name, fn, at in _functions(node)}
        if isinstance(node, (Filter, Semi, TopK, CompareSemi, ScalarFilter)):
            narrowed["type"] = new[0]
        if isinstance(node, (CompareJoin, CompareSemi)):
            narrowed["where"] = tuple([_compared_over(each, *new) for each in node.where])
        if isinstance(node, ScalarFilter):
            narrowed["fn"] = _over(node.fn, (new[0], new[1]))
            if node.threshold is not None:
                narrowed["threshold"] = _compared_over(node.threshold, *new)
        if isinstance(node, Fused):
            narrowed |= _retyped_steps(node, new[0])
    node = with_parents(node, *parents)
    return replace(node, **narrowed) if narrowed else node


def _functions(node: Node) -> list[tuple[str, Fn, int]]:
    """The functions of one row that a node has: by name, and of which parent's rows."""
    names: dict[str, int] = {}
    if isinstance(node, Binary):
        names = {"left_key": 0, "right_key": 1}
    elif isinstance(node, Keyed):
        names = {"key": 0, "by": 0, "time": 0}
    elif isinstance(node, (Filter, FlatMap)):
        names = {"fn": 0}
    found = [(name, getattr(node, name, None), at) for name, at in names.items()]
    return [(name, fn, at) for name, fn, at in found if fn is not None]


def _retyped_steps(node: Fused, row_type: Any) -> dict[str, Any]:
    steps = list(node.steps)
    for i, step in enumerate(steps):
        steps[i] = replace(step, fn=_over(step.fn, (row_type,)))
        if step.verb != "filter":
            return {"steps": tuple(steps)}
    return {"steps": tuple(steps), "type": row_type}


def _compared_over(given: Comparison, left: Any, right: Any) -> Comparison:
    return Comparison(_over(given.left, (left,)), given.sign, _over(given.right, (right,)))


def _over(fn: Fn, types: tuple[Any, ...]) -> Fn:
    narrowed = over(fn, *types)
    assert narrowed is not None, "a row was narrowed although a function needs it whole"
    return narrowed
