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
    join, cross                 both names together: OrderPerson; without known fields, pairs
    + - union                   what both sides have in common
    reduce, agg                 Group: the key's fields, then the results'
    tumbling, sliding, session  the same name with window_start and window_end
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ebbflow.errors import CompositionError, Text, place
from ebbflow.flow import joins, loops, types, windows
from ebbflow.flow.grouped import NEXT, ONE_GROUP, Grouped, aggregated, reduced
from ebbflow.flow.parts import Part, key, named_parts, part, part_type, plain, refuse, row_type
from ebbflow.flow.plan import Distinct, Filter, FlatMap, Map, Node, Plan, TopK
from ebbflow.flow.results import AnyReducer, likely
from ebbflow.flow.running import explain, node_text, planned, run
from ebbflow.flow.through import passed
from ebbflow.flow.verbs import unknown
from ebbflow.fn import Fn
from ebbflow.operator import Operator
from ebbflow.record import fields_of
from ebbflow.reducer.row import itself


@dataclass(frozen=True, repr=False, eq=False)
class Collection:
    """A collection of rows that change: an input, or one derived from others. Start with `Input`.

    >>> import ebbflow as ef
    >>> ef.Input("words", str).filter(str.isalpha).map(len, type=int)
    <int: words → filter → map>
    """

    node: Node

    @property
    def type(self) -> Any:
        """The type of the rows."""
        return self.node.type

    @property
    def plan(self) -> Plan:
        """The program as data, with this collection as its one output.

        >>> import ebbflow as ef
        >>> [node.verb for node in ef.Input("words", str).distinct().plan.nodes()]
        ['input', 'distinct']
        """
        return planned({"output": self.node})

    def with_node(self, node: Node) -> Collection:
        """A collection of what a node gives."""
        return Collection(node)

    # ---- one row at a time ----

    def map(self, f: Part, type: Any = None) -> Collection:
        """`f(row)` instead of every row, of the type that `f` says, or is seen, to return.

        >>> import ebbflow as ef
        >>> def size(word: str) -> int: return len(word)
        >>> ef.Input("words", str).map(size).type
        <class 'int'>
        """
        plain("map({})", f)
        fn = part("map({})", self.node, f)
        checked = row_type("map({})", part_type(self.node, f) if type is None else type)
        return Collection(Map(parent=self.node, fn=fn, type=checked, place=place()))

    def filter(self, f: Part) -> Collection:
        """The rows for which `f(row)` is true.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).filter(lambda word: len(word) > 3).type
        <class 'str'>
        """
        plain("filter({})", f)
        fn = part("filter({})", self.node, f)
        return Collection(Filter(parent=self.node, fn=fn, type=self.type, place=place()))

    def flat_map(self, f: Part, type: Any = None) -> Collection:
        """All of `f(row)` instead of every row.

        >>> import ebbflow as ef
        >>> def letters(word: str) -> list[str]: return list(word)
        >>> ef.Input("words", str).flat_map(letters).type
        <class 'str'>
        """
        fn = part("flat_map({})", self.node, f)
        said = part_type(self.node, f)
        inside = types.iterated(said)
        if inside is None:
            refuse(
                f"flat_map(...): it gives {types.name_of(said)}, which holds no rows",
                "map(...), or a function that returns a list of rows",
            )
        checked = row_type("flat_map({})", inside if type is None else type)
        return Collection(FlatMap(parent=self.node, fn=fn, type=checked, place=place()))

    def select(self, /, *fields: str, **named: Part) -> Collection:
        """Rows of these fields: fields of the row, and new ones made by a function or renamed.

        >>> import ebbflow as ef
        >>> words = ef.Input("words", str).select(word=lambda word: word, size=len)
        >>> words.type.__name__, words.type._fields
        ('Row', ('word', 'size'))
        """
        parts = named_parts("select({})", self.node, fields, named)
        if not parts:
            refuse("select(): no field is given", 'select("field", other=lambda row: ...)')
        chosen = {name: part_type(self.node, each) for name, each in parts.items()}
        checked = row_type("select({})", types.row("Row", chosen))
        made = Fn.record(checked, [part("select({})", self.node, each) for each in parts.values()])
        return Collection(Map(parent=self.node, fn=made, type=checked, place=place()))

    # ---- two collections ----

    def _with(self, call: str, other: Any, make: Callable[..., Node], *given: Any) -> Collection:
        """What `make` gives for both nodes, and what else was given."""
        if not isinstance(other, Collection):
            _no_collection(call, other)
        return Collection(make(self.node, other.node, *given))

    def join(
        self, other: Collection, on: Part | None = None, *, left_on: Part | None = None,
        right_on: Part | None = None, how: str = "inner",
        select: Callable[[Any, Any], Any] | None = None, type: Any = None,
    ) -> Collection:  # fmt: skip
        """Every row with every row of `other` that has the same key.

        `on` is a field of both, several in a tuple, or a function of a row of either; or give the
        sides different keys, `left_on` and `right_on`. A merged row has the fields of the left,
        then those of the right; a key field that has the same name on both sides is there once.
        Where fields are not known, it is the pair. Or say how: `select=lambda left, right: ...`.

        `how` is "inner", "left", "right" or "full" (the rows that meet nothing are kept, with None
        for the fields of the other side, or for the other row of `select`); "semi" and "anti" give
        the rows of the left that meet something, or nothing.

        Keys are equal as Python says, so a key that is None meets None, other than in SQL.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> orders = ef.Input("orders", record("Order", id=int, customer=str))
        >>> people = ef.Input("people", record("Person", customer=str, city=str))
        >>> orders.join(people, on="customer", how="left")
        <OrderPerson(id, customer, city): (orders, people) → concat>
        """
        given = (on, left_on, right_on, how, select, type)
        return self._with("join", other, joins.joined, *given)

    def cross(
        self, other: Collection, *, select: Callable[[Any, Any], Any] | None = None,
        type: Any = None,
    ) -> Collection:  # fmt: skip
        """Every row with every row of `other`.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).cross(ef.Input("numbers", int)).type
        tuple[str, int]
        """
        return self._with("cross", other, joins.crossed, select, type)

    def __add__(self, other: Collection) -> Collection:
        """The rows of both, each as often as in both together. (UNION ALL.)"""
        return self._with("+", other, joins.concatenated, 1, "a + b")

    def __sub__(self, other: Collection) -> Collection:
        """The rows with those of `other` taken away, each as often as it is there.

        This is the difference of Z-sets: what `other` has more often then has a negative weight.
        `except_` has the meaning of sets.
        """
        return self._with("-", other, joins.concatenated, -1, "a - b")

    def __neg__(self) -> Collection:
        """The rows with their weights negated: `a + -b` is `a - b`."""
        return Collection(joins.negated(self.node))

    def __radd__(self, other: object) -> NoReturn:
        _no_collection("+", other)

    def __rsub__(self, other: object) -> NoReturn:
        _no_collection("-", other)

    def union(self, other: Collection) -> Collection:
        """The rows that are in either, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).union(ef.Input("b", int))
        <int: (a, b) → concat → distinct>
        """
        return self._with("union", other, joins.united)

    def intersect(self, other: Collection) -> Collection:
        """The rows that are in both, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).intersect(ef.Input("b", int))
        <int: (a, b) → semi>
        """
        return self._with("intersect", other, joins.compared, "intersect", False)

    def except_(self, other: Collection) -> Collection:
        """The rows that are not in `other`, every one once.

        >>> import ebbflow as ef
        >>> ef.Input("a", int).except_(ef.Input("b", int))
        <int: (a, b) → anti>
        """
        return self._with("except_", other, joins.compared, "except_", True)

    # ---- rows together ----

    def distinct(self) -> Collection:
        """Every row once, however often it is there.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).distinct()
        <str: words → distinct>
        """
        return Collection(Distinct(parent=self.node, type=self.type, place=place()))

    def group_by(self, /, *fields: Part, **named: Part) -> Grouped:
        """The rows of each key together, to be reduced.

        The key's parts become fields: those named here, or `key` for one function without a name.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).group_by(len).reduce(ef.count()).type._fields
        ('key', 'value')
        """
        if not fields and not named:
            refuse(
                "group_by(): no key is given",
                "a field or a function; for one group of all rows: .agg(n=ebbflow.count())",
            )
        return Grouped(self, key("group_by({})", self.node, fields, named))

    def reduce(self, reducer: AnyReducer) -> Collection:
        """Keep `reducer(rows)` of all rows up to date: one row `(value,)`, none when there are no
        rows.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).reduce(ef.max())
        <Group(value): words → reduce>
        """
        return Collection(reduced(self.node, ONE_GROUP, reducer))

    def agg(self, /, *unnamed: Any, **reducers: AnyReducer) -> Collection:
        """Keep several reducers of all rows up to date: one row, none when there are no rows.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).agg(n=ef.count(), last=ef.max())
        <Group(n, last): words → reduce>
        """
        return Collection(aggregated(self.node, ONE_GROUP, unnamed, reducers))

    def top_k(
        self, n: int, *, by: Part | None = None, per: Part | None = None, smallest: bool = False
    ) -> Collection:
        """The `n` rows with the greatest `by`, of all or of each `per`; repeated rows count. Rows
        without fields are compared themselves where no `by` is given.

        >>> import ebbflow as ef
        >>> ef.Input("words", str).top_k(3, by=len)
        <str: words → top_k>
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            refuse(f"top_k({n!r}): it gives a positive number of rows", "top_k(1, by=...)")
        if by is None and fields_of(self.type) is not None:
            refuse(
                f"top_k({n}): nothing says by what rows are compared",
                f"top_k({n}, by={likely(self.node)})",
                fields=Text(", ".join(fields_of(self.type) or ())),
            )
        by = itself if by is None else by
        for each in (by, per):
            plain("top_k(by={})", each)
        return Collection(TopK(
            parent=self.node, n=n, by=part("top_k(by={})", self.node, by), smallest=smallest,
            key=None if per is None else part("top_k(per={})", self.node, per),
            type=self.type, place=place(),
        ))  # fmt: skip

    # ---- time ----

    def tumbling(self, time: Part, size: Any, *, origin: Any = None) -> Collection:
        """Every row with the window of this size that its time is in: `window_start`, `window_end`.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> ef.Input("hits", record("Hit", page=str, at=int)).tumbling("at", 60).type._fields
        ('page', 'at', 'window_start', 'window_end')
        """
        return Collection(windows.tumbled(self.node, time, size, origin))

    def sliding(self, time: Part, size: Any, every: Any, *, origin: Any = None) -> Collection:
        """Every row once for each window that its time is in; a new window starts every `every`.

        >>> import ebbflow as ef
        >>> ef.Input("hits", int).sliding(lambda hit: hit, 60, 30)
        <tuple[int, Any, Any]: hits → flat_map>
        """
        return Collection(windows.slid(self.node, time, size, every, origin))

    def session(self, time: Part, gap: Any, *, per: Part | None = None) -> Collection:
        """Every row with its session: rows of one `per` that follow each other within `gap`.

        The session starts with its first row and ends `gap` after its last.

        >>> import ebbflow as ef
        >>> from ebbflow.record import record
        >>> hits = ef.Input("hits", record("Hit", user=str, at=int))
        >>> hits.session("at", 600, per="user")
        <Hit(user, at, window_start, window_end): hits → session>
        """
        return Collection(windows.in_sessions(self.node, time, gap, per))

    # ---- your own ----

    def through(
        self, operator: Operator[Any, Any, Any, Any], per: Part | None = None, type: Any = None
    ) -> Collection:
        """The rows through a differential operator of your own; with `per`, one for each key.

        Its input is a bag. When it gives bags, their rows follow; with a key, `(key…, row)`. When
        it gives anything else, that is one row `(key…, value)` as long as there are rows. `type` is
        the type of its rows or values.

        >>> import ebbflow as ef
        >>> from ebbflow.operator import count
        >>> ef.Input("words", str).through(count(), per=len, type=int)
        <Group(key, value): words → through>
        """
        return Collection(passed(self.node, operator, per, type))

    # ---- rounds ----

    def iterate(
        self, body: Callable[[Collection], Collection], *, rounds: int | None = None,
        limit: int = loops.LIMIT, priority: Part | None = None,
    ) -> Collection:  # fmt: skip
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
                _no_collection("iterate(...)", result, "what the body gives")
            return {name: result.node}

        priorities = {} if priority is None else {name: priority}
        return Collection(
            loops.looped("iterate(...)", {name: self.node}, one, rounds, limit, priorities)
        )

    # ---- running ----

    def run(self, engine: Any = None, **options: Any) -> Any:
        """Start to keep it up to date: in this process, or by the `engine` given. Gives a view.

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

    if not TYPE_CHECKING:  # for a type checker, a wrong name is simply one

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise unknown(name, self.type, VERBS)

    def __getitem__(self, part: Any) -> NoReturn:
        refuse(
            f"c[{part!r}]: a collection has no elements",
            'select("field") for a field, filter(lambda row: ...) for some of the rows',
        )

    # ---- as a value ----

    def __repr__(self) -> str:
        return f"<{node_text(self.node)}>"

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


VERBS = [name for name in vars(Collection) if name[0] != "_" and name != "node"]


def _no_collection(call: str, other: object, what: str = "the other side") -> NoReturn:
    """Refuse an argument that is no collection."""
    if isinstance(other, Grouped):
        refuse(f"{call}: group_by(...) alone is not a collection yet", NEXT)
    remedy = "an Input or what is made of one; rows themselves come in by view.step(...)"
    if other == 0:
        remedy = "functools.reduce(operator.add, collections), which starts with no 0"
    of_type = f"is of type {type(other).__name__}"
    refuse(f"{call}: {what} must be a collection, and {of_type}", remedy, given=other)


def _not_rows(what: str, remedy: str) -> CompositionError:
    what = f"a collection is a program, not its rows: it {what}"
    return CompositionError(what, created=place(), remedy=f"view = c.run(), then {remedy}")
