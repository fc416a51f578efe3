"""Collections: programs over rows that change.

A program is written as if over a collection that stands still. Each method gives a new collection;
nothing runs until `run()`, and from then on the result follows every change of the inputs. It
always equals what the same program would give if it were computed from scratch.

Every collection has exactly one row type, found when it is built from the hints of the inputs and
functions, so a wrong program is an error at the line where it is written:

    Input("orders", Order)      Order, a NamedTuple; or int, str, ...; or nothing: Any
    map, flat_map               what the function says, or is seen, to return; or `type=`
    filter, distinct, top_k     the same rows
    select                      Row, with the fields that were chosen
    with_fields, rename, ...    the same name with other fields
    join, cross, asof_join      both names together: OrderPerson; without known fields, pairs
    + - union                   what both sides have in common
    reduce, agg                 Group: the key's fields, then the results'
    over                        the same name with the fields that were added
    scan                        what the step says it gives, or `type=`
    match                       Match: the key's fields, then a field for each step
    fold                        Group: the key's fields, then the state
    tumbling, sliding, session  the same name with window_start and window_end
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, overload

from ebbflow.errors import CompositionError, UnknownVerb, place
from ebbflow.flow import loops
from ebbflow.flow.parts import Part, refuse
from ebbflow.flow.plan import Node, Plan
from ebbflow.flow.running import explain, named_options, node_text, plan_html, planned, run
from ebbflow.flow.through import passed
from ebbflow.flow.verbs.aligned import AlignedVerbs
from ebbflow.flow.verbs.base import no_collection
from ebbflow.flow.verbs.groups import GroupVerbs
from ebbflow.flow.verbs.order import OrderVerbs
from ebbflow.flow.verbs.pairs import PairVerbs
from ebbflow.flow.verbs.reshape import ReshapeVerbs
from ebbflow.flow.verbs.rows import RowVerbs
from ebbflow.flow.verbs.time import TimeVerbs
from ebbflow.flow.verbs.unknown import unknown_verb
from ebbflow.stream import Processor
from ebbflow.typevars import T_co, U

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ebbflow.engine.local import View
    from ebbflow.engine.spark.engine import Engine
    from ebbflow.engine.spark.view import SparkView
    from ebbflow.state.spine import Place


@dataclass(frozen=True, repr=False, eq=False)
class Collection(
    RowVerbs[T_co], ReshapeVerbs[T_co], PairVerbs[T_co], AlignedVerbs[T_co], GroupVerbs[T_co],
    OrderVerbs[T_co], TimeVerbs[T_co],
):  # fmt: skip
    """A collection of rows that change: an input, or one derived from others. Start with `Input`.

    >>> import ebbflow as ef
    >>> ef.Input("words", str).filter(str.isalpha).map(len, type=int)
    <int: words → filter → map>

    For a type checker a collection has the type of its rows, `Collection[Order]`; where that is
    only found when the program is built, as after `agg`, `select` and `join`, it is `Any`.
    """

    node: Node

    @property
    def plan(self) -> Plan:
        """The program as data, with this collection as its one output.

        >>> import ebbflow as ef
        >>> [node.verb for node in ef.Input("words", str).distinct().plan.nodes()]
        ['input', 'distinct']
        """
        return planned({"output": self.node})

    def with_node(self, node: Node) -> Collection[Any]:
        """A collection of what a node gives."""
        return Collection(node)

    # ---- your own ----

    def through(
        self, operator: Processor[Any, Any], other: Collection[U] | None = None,
        per: Part[T_co | U] | None = None, type: Any = None, *,
        left_per: Part[T_co] | None = None, right_per: Part[U] | None = None,
    ) -> Collection[Any]:  # fmt: skip
        """The rows through a differential operator of your own; with `per`, one for each key.

        Its input is a bag; with an `other` collection, a pair of bags, and `left_per` and
        `right_per` are their keys where they differ. When it gives bags, their rows follow; with a
        key, `(key…, row)`. When it gives anything else, that is one row `(key…, value)` as long as
        there are rows. `type` is the type of its rows or values.

        A stream processor from Z-sets to Z-sets will do as well: what comes out is what it says
        about all rows, however they came. `ebbflow.operator.of` makes an operator of any function.

        >>> import ebbflow as ef
        >>> from ebbflow.operator import count
        >>> ef.Input("words", str).through(count(), per=len, type=int)
        <Group(key, value): words → through>
        """
        keys = per, left_per, right_per
        return Collection(passed(self.node, operator, other, keys, type))

    # ---- rounds ----

    def iterate(
        self, body: Callable[[Collection[T_co]], Collection[U]], *, rounds: int | None = None,
        limit: int = loops.LIMIT, priority: Part[T_co] | None = None,
    ) -> Collection[T_co | U]:  # fmt: skip
        """What `body` makes of these rows, of that, and so on, until a round changes nothing; or
        after `rounds` rounds. Other collections are simply used in the body, and loops may nest.

        When `limit` rounds still change something, the step raises `NoFixedPoint` and changes
        nothing. Where a body shows that its rounds may go on for ever, and neither `rounds` nor a
        `limit` of your own is given, building the loop warns: `MayNotEnd`. With a `priority`, a
        part of the row that is a whole number, a row comes in only in that round. For several
        collections that need each other: `ebbflow.fixpoint`.

        >>> import ebbflow as ef
        >>> edges = ef.Input("edges", tuple[int, int])
        >>> reached = ef.Input("roots", int).iterate(lambda reached: reached.union(
        ...     reached.join(edges, left_on=lambda n: n, right_on=lambda e: e[0],
        ...                  select=lambda n, e: e[1])))
        >>> view = reached.run()
        >>> view.step(roots=[1], edges=[(1, 2), (2, 3), (3, 2)])
        ZSet({1: 1, 2: 1, 3: 1})
        >>> view.step(edges={(1, 2): -1})
        ZSet({2: -1, 3: -1})
        """
        name = loops.variable_name(body)
        loops.checked_body("iterate(...)", body, [name])

        def one(node: Node) -> dict[str, Node]:
            result = body(Collection(node))
            if not isinstance(result, Collection):
                no_collection("iterate(...)", result, "what the body gives")
            return {name: result.node}

        priorities = {} if priority is None else {name: priority}
        return Collection(
            loops.looped("iterate(...)", {name: self.node}, one, rounds, limit, priorities)
        )

    # ---- running ----

    @overload
    def run(
        self, engine: None = None, *, path: Place | None = None, check_input: bool = True,
        narrow: bool = False, columns: bool | None = None, freeze: bool = True,
        readable: bool = False, memory: int | str | None = None, keep_epochs: int = 1,
        keep_for: timedelta = timedelta(0), flush_every: int = 1, strict: bool = False,
        permissions: int | None = None, unpickle: bool = True, keep_batches: int = 10_000,
    ) -> View[T_co]: ...  # fmt: skip
    @overload
    def run(self, engine: Engine, *, check_input: bool = True) -> SparkView[DataFrame]: ...
    @overload
    def run(self, engine: Any, **options: Any) -> Any: ...
    @named_options
    def run(self, engine: Any = None, **options: Any) -> Any:
        """Keep it up to date and return a view of it: in this process, or on an `engine`, such as
        `run(ef.spark(path="state/"))`. The options are those of this process. An engine has its
        own, and `run` takes `check_input` beside it. `docs/options.md` has both in tables.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).map(str.upper).run()
        >>> view.step(words=["to", "be"])
        ZSet({'TO': 1, 'BE': 1})
        """
        return run(self.plan, engine, **options)

    def explain(self, format: str = "text") -> str:
        """The plan, with what every node keeps as state: "text", "mermaid", "dot" or "json"; or
        the loops that would run in this process: "python"."""
        return explain(self.plan, format)

    def _unknown(self, name: str) -> UnknownVerb:
        return unknown_verb(name, self.type, VERBS)

    def __getitem__(self, part: Any) -> NoReturn:
        refuse(
            f"c[{part!r}]: a collection has no elements",
            'select("field") for a field, filter(lambda row: ...) for some of the rows',
        )

    # ---- as a value ----

    def __repr__(self) -> str:
        return f"<{node_text(self.node)}>"

    def _repr_html_(self) -> str:
        return plan_html(self)

    def __eq__(self, other: object) -> bool:
        return self.node == other.node if isinstance(other, Collection) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.node)

    def __bool__(self) -> bool:
        raise _not_rows("is neither true nor false", "if view.value:")

    def __iter__(self) -> NoReturn:
        raise _not_rows("cannot be iterated", "for row in view.value:")

    def __len__(self) -> int:
        raise _not_rows("has no length", "len(view.value)")

    def __contains__(self, row: object) -> bool:
        raise _not_rows("cannot be searched", "row in view.value")


VERBS = [name for name in dir(Collection) if name[0] != "_" and name not in ("node", "with_node")]


def _not_rows(what: str, remedy: str) -> CompositionError:
    what = f"a collection is a program, not its rows: it {what}"
    return CompositionError(what, created=place(), remedy=f"view = c.run(), then {remedy}")
