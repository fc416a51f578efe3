"""Plans: the program as data.

A plan is a graph of frozen nodes. A node knows its parents, the type of its rows, and the place in
the user's file where it was made; what it means is said by `ebbflow.engine.batch`, one short
function per node. Nodes are equal when they mean the same, wherever they were made, so equal parts
of a program can be found and computed once.

    Source                          rows from outside
    Map  Filter  FlatMap            one row at a time
    Fused                           several of those, one after the other (made by a rewrite)
    Concat                          rows of several, each with a sign: + and -
    Distinct                        every row once
    Join  Semi                      rows that meet; rows that meet something, or nothing
    CompareJoin  CompareSemi        the same where values compare, in `plan.compare`
    ScalarFilter                    rows for which a condition holds with the one row of another
    Reduce  TopK  Sessions          rows of one key together
    Through                         a user's differential operator
    Iterate                         a body, round after round; its inputs inside are LoopInputs

A node is a *bag* when none of its rows can have a negative weight, whatever the inputs. Only `-`
makes such rows; nodes that keep them out, or refuse them, are bags again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ebbflow.change import ZSET
from ebbflow.errors import Text
from ebbflow.fn import Fn
from ebbflow.record import fields_of

NOWHERE = Text("")
ADDED_LATER = {"added later": True}
"""Of a field that nodes of earlier versions did not have: where it has its default, the node means
what it meant, and its stored state is found under the same name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One step of a plan. `type` is the type of its rows."""

    place: Text = field(default=NOWHERE, repr=False)
    type: Any = Any

    verb: ClassVar[str]

    @property
    def parents(self) -> tuple[Node, ...]:
        """The nodes whose rows this one reads."""
        return ()

    def _is_bag(self) -> bool:
        return all(parent.bag for parent in self.parents)

    # ---- everything below is written with these ----

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, *map(_hash, self._essence()))))
        object.__setattr__(self, "_bag", self._is_bag())

    @property
    def bag(self) -> bool:
        """Whether none of its rows can have a negative weight, whatever the inputs.

        >>> words = Source(name="words")
        >>> less = Concat(parts=(words, words), signs=(1, -1))
        >>> words.bag, less.bag, Distinct(parent=less).bag
        (True, False, True)
        """
        return self._bag  # type: ignore[attr-defined, no-any-return]

    def _essence(self) -> tuple[Any, ...]:
        """What the node means: every field but the place."""
        return tuple(getattr(self, each.name) for each in fields(self) if each.name != "place")

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Hashes differ from process to process, so they do not travel."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
        Node.__post_init__(self)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        return hash(self) == hash(other) and self._essence() == other._essence()


def _hash(part: Any) -> int:
    try:
        return hash(part)
    except TypeError:
        return 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(Node):
    """Rows from outside, by name. With a `key` there is at most one row of each key; with a
    `sequence` too, it says of two rows of one key which is the newer one."""

    verb = "input"
    name: str
    key: Fn | None = None
    sequence: Fn | None = None
    renamed: tuple[tuple[str, str], ...] = field(default=(), metadata=ADDED_LATER)
    """Fields that had another name when rows were stored: the old name and the new."""
    time: Fn | None = field(default=None, metadata=ADDED_LATER)
    """The field with the time of a row, where one that comes late is put aside."""
    lateness: Any = field(default=None, metadata=ADDED_LATER)
    """How long after the latest time a row may come."""
    narrow: Fn | None = field(default=None, metadata=ADDED_LATER)
    """What makes rows of this type of those that are given, which have fields that nobody reads."""

    @property
    def given(self) -> Any:
        """The type of the rows that are given; its own, where it keeps all of their fields."""
        return self.type if self.narrow is None else self.narrow.types[0]

    @property
    def unread(self) -> frozenset[str]:
        """The fields of rows that are given and are not kept."""
        if self.narrow is None:
            return frozenset()
        return frozenset(fields_of(self.given) or ()) - frozenset(fields_of(self.type) or ())


@dataclass(frozen=True, eq=False, kw_only=True)
class Unary(Node):
    """A node with one parent."""

    parent: Node

    @property
    def parents(self) -> tuple[Node, ...]:
        return (self.parent,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Unary):
    """`fn(row)` instead of every row."""

    verb = "map"
    fn: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Unary):
    """The rows for which `fn(row)` is true."""

    verb = "filter"
    fn: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(Unary):
    """All of `fn(row)` instead of every row."""

    verb = "flat_map"
    fn: Fn


@dataclass(frozen=True, kw_only=True)
class FusedStep:
    """One step of a `Fused` node: `verb` is map, filter or flat_map."""

    verb: str
    fn: Fn
    place: Text = field(default=NOWHERE, repr=False, compare=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fused(Unary):
    """Steps on one row at a time, the first first."""

    verb = "fused"
    steps: tuple[FusedStep, ...]


def row_steps(node: Node) -> tuple[FusedStep, ...]:
    """The steps on one row at a time that a node is: those of a `Fused` one, one of a map, filter
    or flat_map, and none of any other.

    >>> [step.verb for step in row_steps(Filter(parent=Source(name="words"), fn=Fn(str.isupper)))]
    ['filter']
    """
    if isinstance(node, (Map, Filter, FlatMap)):
        return (FusedStep(verb=node.verb, fn=node.fn, place=node.place),)
    return node.steps if isinstance(node, Fused) else ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Node):
    """The rows of all parts, if any, each weight times the sign of its part (1 or -1)."""

    verb = "concat"
    parts: tuple[Node, ...]
    signs: tuple[int, ...]

    @property
    def parents(self) -> tuple[Node, ...]:
        return self.parts

    def _is_bag(self) -> bool:
        return min(self.signs, default=1) > 0 and super()._is_bag()


@dataclass(frozen=True, eq=False, kw_only=True)
class Distinct(Unary):
    """Every row of positive weight, once."""

    verb = "distinct"

    def _is_bag(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Binary(Node):
    """A node with two parents that meet where their keys are equal."""

    left: Node
    right: Node
    left_key: Fn
    right_key: Fn

    @property
    def parents(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(Binary):
    """`merge(l, r)` for every two rows with equal keys; weights multiply."""

    verb = "join"
    merge: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Semi(Binary):
    """The rows of the left whose key some right row has; with `anti`, those whose key none has.

    The right has a key when its rows of that key have together a positive weight. So a right that
    is no bag needs a `Distinct` before it, unless its rows are the keys.
    """

    verb = "semi"
    anti: bool = False

    def _is_bag(self) -> bool:
        return self.left.bag


@dataclass(frozen=True, eq=False, kw_only=True)
class Keyed(Unary):
    """A node that looks at the rows of one key together; without a key, at all rows. It refuses
    rows of negative weight."""

    key: Fn | None = None

    def _is_bag(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Keyed):
    """One row for each key that has rows: the key's parts, then the reducer's result.

    A key made of several parts (`width` > 1) is a tuple and is spread over as many fields; without
    a key `width` is 0. With `spread` the result is a tuple and is spread too.
    """

    verb = "reduce"
    reducer: Any
    width: int
    spread: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class TopK(Keyed):
    """For each key the n rows with the greatest `by(row)`, or smallest, behind the first `offset`
    of them; repeated rows count.

    The order is `ebbflow.ordering.total_order_key`: Python's own among values of one type,
    with None before all and NaN behind all numbers. Equal `by` are decided by the rows, in the same
    direction.
    """

    verb = "top_k"
    n: int
    by: Fn
    smallest: bool = False
    offset: int = field(default=0, metadata=ADDED_LATER)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sessions(Keyed):
    """Every row with the start and the end of its session.

    A session is a longest run of rows of one key in which no two neighbours in time are further
    apart than `gap`; it starts at its first row and ends `gap` after its last. The new row is
    `merge(row, start, end)`.
    """

    verb = "session"
    time: Fn
    gap: Any
    merge: Fn


@dataclass(frozen=True, eq=False, kw_only=True)
class Through(Keyed):
    """A user's operator on the rows of each key, each key with a state of its own.

    What comes out: when the operator gives bags, its rows, after the key's parts where there is a
    key; when it gives anything else, one row `(key…, value)`, as long as the key has rows.
    """

    verb = "through"
    operator: Any
    width: int

    def _is_bag(self) -> bool:
        return bool(self.operator.output != ZSET)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopInput(Source):
    """What the body of a loop reads, by name: a variable of the loop, or a collection from outside.

    Unless it is `never_negative`, its rows may have a negative weight.
    """

    verb = "loop input"
    never_negative: bool = True

    def _is_bag(self) -> bool:
        return self.never_negative


@dataclass(frozen=True, eq=False, kw_only=True)
class Iterate(Node):
    """Variables that a body computes anew from themselves, round after round.

    In round 0 a variable holds the rows of its start; in every later round what `body` gives for it
    when it reads the round before. (002: `d = in(start) + fb(body(d))`.) What comes out are the
    variables after `rounds` rounds; where that is None, in the first round that nothing changes any
    more. With several variables, their rows are pairs of a name and a row.

    The outputs of `body` are the variables. Its inputs are `LoopInput`s: the variables, in the
    order of `starts`, and under `outside` the collections from outside the loop. A row of a start
    enters in the round that its `priority` says, and 0 without one. (002, section 5.)
    """

    verb = "iterate"
    starts: tuple[Node, ...]
    imports: tuple[Node, ...]
    body: Plan
    outside: tuple[str, ...]
    rounds: int | None = None
    limit: int = 10_000
    priorities: tuple[Fn | None, ...]

    @property
    def parents(self) -> tuple[Node, ...]:
        return (*self.starts, *self.imports)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(self.body.outputs)

    def _is_bag(self) -> bool:
        parts = (*self.starts, *self.body.outputs.values())
        return all(part.bag for part in parts)


@dataclass(frozen=True)
class Plan:
    """Nodes to keep up to date, by name."""

    outputs: Mapping[str, Node]

    def nodes(self) -> list[Node]:
        """Every node once, parents before children."""
        seen: dict[int, Node] = {}

        stack: list[tuple[Node, bool]] = [
            (node, False) for node in reversed(list(self.outputs.values()))
        ]
        while stack:
            node, ready = stack.pop()
            if id(node) in seen:
                continue
            if ready:
                seen[id(node)] = node
                continue
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(node.parents))
        return list(seen.values())

    @property
    def sources(self) -> dict[str, Source]:
        """The inputs, by name."""
        return {node.name: node for node in self.nodes() if isinstance(node, Source)}
