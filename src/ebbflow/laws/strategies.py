"""Data to try laws on: Hypothesis strategies for ebbflow's own structures and those made of them.

What a structure brings itself (`elements=`, `changes=`) comes first; the rest is known here by how
the structure was built. Values are small on purpose: small values collide, and laws break where
they do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from functools import partial, singledispatch
from operator import itemgetter
from typing import Any

from ebbflow import algebra as al
from ebbflow import change as ch
from ebbflow.algebra.order import NATURALS, POWERSETS, Order, order_product
from ebbflow.errors import CheckError
from ebbflow.laws import streams
from ebbflow.laws.law import Law, simplest
from ebbflow.laws.rows import Pool
from ebbflow.laws.search import NoSuchExample, SearchStrategy, first_found, st
from ebbflow.laws.ties import tied
from ebbflow.operator import Operator
from ebbflow.reducer import Reducer
from ebbflow.stream import Processor, Representation, StreamFunction
from ebbflow.tensor import Tensor
from ebbflow.zset import BAGS, ZSETS, ZSet

Strategy = SearchStrategy[Any]
SMALL = st.integers(-9, 9)
LETTERS = st.text(alphabet="abcAB é", max_size=6)


def as_strategy(source: Any) -> Strategy:
    """A strategy from what a user gives: a strategy, a collection, or a function giving one."""
    if isinstance(source, SearchStrategy):
        return source
    if isinstance(source, Collection) and not isinstance(source, (str, bytes)):
        if not source:
            raise CheckError("there is nothing to draw from", elements=source)
        return st.sampled_from(sorted(source, key=simplest))
    if callable(source):
        return as_strategy(source())
    raise CheckError(
        f"cannot draw from a {type(source).__name__}",
        elements=source,
        remedy="give a Hypothesis strategy, a list of values, or a function that returns one",
    )


def _makes(source: Any) -> bool:
    """Whether a source is a function that returns one."""
    return callable(source) and not isinstance(source, (SearchStrategy, Collection))


def examples(source: Any, count: int = 40) -> list[Any]:
    """Some values of a source, always the same ones.

    >>> examples([3, 1])
    [1, 3]
    """
    if isinstance(source, Collection) and not isinstance(source, (str, bytes)):
        return sorted(source, key=simplest)
    drawn: list[Any] = []
    note = drawn.append
    with suppress(NoSuchExample):
        first_found(as_strategy(source), lambda x: bool(note(x)), examples=count, shrink=False)
    return drawn


def zsets(rows: Strategy = SMALL, weights: Strategy | None = None, *, size: int = 5) -> Strategy:
    """Z-sets of up to `size` rows."""
    counts = st.integers(-3, 3) if weights is None else weights
    return st.dictionaries(rows, counts, max_size=size).map(ZSet)


def bags(rows: Strategy = SMALL, *, size: int = 5) -> Strategy:
    """Z-sets with positive weights only."""
    return zsets(rows, st.integers(1, 3), size=size)


# ---- monoids ----

_ELEMENTS: dict[al.Monoid[Any], Strategy] = {
    al.ADD: SMALL,
    al.MULTIPLY: SMALL,
    al.MAX: SMALL,
    al.MIN: SMALL,
    al.OR: st.booleans(),
    al.AND: st.booleans(),
    al.LIST: st.lists(SMALL, max_size=5),
    al.TUPLE: st.lists(SMALL, max_size=5).map(tuple),
    al.STR: LETTERS,
    al.BYTES: st.binary(max_size=5),
    al.SET: st.frozensets(st.integers(0, 3), max_size=3),
    ZSETS: zsets(),
    BAGS: bags(),
}


def _dicts(values: al.Monoid[Any]) -> Strategy:
    own = elements_of(values).filter(lambda value: not values.is_zero(value))
    return st.dictionaries(st.sampled_from("abc"), own, max_size=3)


def _functions(values: al.Monoid[Any], at: tuple[Any, ...]) -> Strategy:
    return st.lists(elements_of(values), min_size=len(at), max_size=len(at)).map(
        lambda images: Lookup(dict(zip(at, images, strict=True)))
    )


def _words(left: al.Monoid[Any], right: al.Monoid[Any]) -> Strategy:
    words = al.free_product(left, right)
    letter = st.one_of(
        elements_of(left).map(lambda m: () if left.is_zero(m) else (al.Left(m),)),
        elements_of(right).map(lambda n: () if right.is_zero(n) else (al.Right(n),)),
    )
    return st.lists(letter, max_size=4).map(words.fold)


def _ticked(inner: al.Monoid[Any]) -> Strategy:
    time = al.ticked(inner)
    stratum = st.just(inner.zero) | elements_of(inner)
    return st.lists(stratum, max_size=3).map(lambda strata: time.of(*strata))


def _hypotheticals(output: al.Monoid[Any], states: tuple[Any, ...]) -> Strategy:
    if not states:
        raise _unknown(al.state_monoid(output))
    return _tables(states, output).map(lambda table: Lookup(dict(zip(states, table, strict=True))))


def _tables(states: tuple[Any, ...], output: al.Monoid[Any]) -> Strategy:
    entry = st.tuples(st.sampled_from(states), elements_of(output))
    return st.tuples(*[entry] * len(states))


_BUILT: dict[Callable[..., Any], Callable[..., Strategy]] = {
    al.product: lambda *factors: st.tuples(*map(elements_of, factors)),
    al.dict_of: _dicts,
    al.functions: _functions,
    al.free_product: _words,
    al.ticked: _ticked,
    al.terminated: lambda inner: st.tuples(elements_of(inner), st.booleans()),
    al.state_monoid: _hypotheticals,
    al.table_monoid: _tables,
}


class Lookup:
    """A function given by its graph, so that a counter-example shows what it does."""

    def __init__(self, graph: dict[Any, Any]) -> None:
        self.graph = graph

    def __call__(self, x: Any) -> Any:
        return self.graph[x]

    def __repr__(self) -> str:
        return f"Lookup({self.graph!r})"


def elements_of(monoid: al.Monoid[Any]) -> Strategy:
    """Elements of a monoid: its own `elements`, or what is known from how it was built.

    >>> from ebbflow.algebra import ADD, LIST, product
    >>> elements_of(product(ADD, LIST))  # doctest: +ELLIPSIS
    tuples(integers(...), lists(integers(...), max_size=5))
    """
    if monoid.elements is not None:
        return as_strategy(monoid.elements)
    if monoid.built is not None and monoid.built[0] in _BUILT:
        make, arguments = monoid.built
        return _BUILT[make](*arguments)
    if monoid in _ELEMENTS:
        return _ELEMENTS[monoid]
    raise _unknown(monoid)


def _unknown(thing: Any) -> CheckError:
    return CheckError(
        f"it is not known what {thing!r} is made of",
        **({"created": thing.created} if getattr(thing, "created", None) else {}),
        remedy="pass elements= (a list or a Hypothesis strategy), here or where it is made",
    )


# ---- versions ----


def versions_of(order: Order[Any]) -> Strategy:
    """Versions of a partial order, small enough that few lie below them."""
    if order.elements is not None:
        return as_strategy(order.elements)
    if order == NATURALS:
        return st.integers(0, 4)
    if order == POWERSETS:
        return st.frozensets(st.sampled_from("abc"), max_size=3)
    if order.built is not None and order.built[0] is order_product:
        return st.tuples(*map(versions_of, order.built[1]))
    raise _unknown(order)


# ---- values and their changes ----

_VALUES: dict[ch.ChangeStructure[Any, Any], Strategy] = {
    ch.BAG: bags(),
    ch.ZSET: zsets(),
    ch.NUMBER: SMALL,
    ch.NATURAL: st.integers(0, 9),
    ch.BOOL: st.booleans(),
    ch.TEXT: LETTERS,
    ch.REPLACE: SMALL,
}


def values_of(structure: ch.ChangeStructure[Any, Any]) -> Strategy:
    """Values of a change structure."""
    if structure.elements is not None:
        return as_strategy(structure.elements)
    if structure in _VALUES:
        return _VALUES[structure]
    make, inner = structure.built or (None, ())
    if make in _VALUES_BUILT:
        return _VALUES_BUILT[make](*inner)
    raise _unknown(structure)


_VALUES_BUILT: dict[Any, Callable[..., Strategy]] = {
    ch.pair: lambda first, second: st.tuples(values_of(first), values_of(second)),
    ch.sequence: values_of,
    ch.mapping: lambda of: st.dictionaries(st.sampled_from("abc"), values_of(of), max_size=3),
    ch.group: elements_of,
}


def changes_of(structure: ch.ChangeStructure[Any, Any], value: Any) -> Strategy:
    """Changes that are valid for `value`."""
    if structure.changes is not None:
        return as_strategy(structure.changes(value))
    make, inner = structure.built or (None, ())
    if structure == ch.BAG:
        out = {row: st.integers(-weight, 2) for row, weight in value.items()}
        taken = st.fixed_dictionaries({}, optional=out)
        return st.builds(lambda new, old: ZSet({**new._weights, **old}), bags(size=3), taken)
    if structure == ch.NATURAL:
        return st.integers(-value, 5)
    if structure == ch.TEXT:
        return _edits(len(value))
    if structure == ch.REPLACE:
        return st.one_of(st.just(ch.KEEP), SMALL.map(ch.Replace))
    if structure in _VALUES:
        return _VALUES[structure]
    if make is ch.pair:
        return _pair_changes(*map(changes_of, inner, value))
    if make is ch.sequence:
        return _sequences(inner[0], value, partial(changes_of, inner[0]))
    if make is ch.mapping:
        return st.fixed_dictionaries(
            {}, optional={key: _entry_changes(inner[0], value, key) for key in "abc"}
        )
    if make is ch.group:
        return elements_of(inner[0])
    if structure.has_diff:
        return values_of(structure).map(lambda new: structure.diff(new, value))
    raise CheckError(
        f"it is not known how {structure!r} changes",
        remedy="pass changes=: a function from a value to a list or strategy of valid changes",
    )


def changes_towards(
    structure: ch.ChangeStructure[Any, Any], value: Any, values: Strategy
) -> Strategy:
    """Changes of `value` that are made of other `values`, as a user gave them.

    Rows come from other bags; a pair changes in one or both of its sides; elsewhere a change leads
    from this value to another, where there is a difference.
    """
    make, inner = structure.built or (None, ())
    if structure in (ch.BAG, ch.ZSET):
        return _bag_changes(structure, value, values)
    if make is ch.pair:
        others = [values.map(itemgetter(i)) for i in (0, 1)]
        return _pair_changes(*map(changes_towards, inner, value, others))
    if make is ch.sequence:
        return _sequences(inner[0], value, lambda now: changes_towards(inner[0], now, values))
    if structure.changes is None and structure.has_diff:
        return values.map(lambda new: structure.diff(new, value))
    return changes_of(structure, value)


def _pair_changes(first: Strategy, second: Strategy) -> Strategy:
    both = st.builds(ch.Both, first, second)
    return st.one_of(first.map(ch.First), second.map(ch.Second), both)


@st.composite
def _bag_changes(
    draw: Any, structure: ch.ChangeStructure[Any, Any], value: Any, values: Strategy
) -> ZSet[Any]:
    """Some of the rows of another bag come, and as many go as there are."""
    rows = sorted({*value, *draw(values)}, key=simplest)
    change = {}
    for row in draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else ():
        most = value.weight(row) if structure == ch.BAG else 2
        change[row] = draw(st.integers(-most, 2))
    return ZSet(change)


def _edits(size: int) -> Strategy:
    inserts = st.builds(ch.Insert, st.integers(0, size), LETTERS)
    deletes = st.integers(0, size).flatmap(
        lambda at: st.builds(ch.Delete, st.just(at), st.integers(0, size - at))
    )
    return st.one_of(inserts, deletes)


def _entry_changes(inner: Any, value: dict[Any, Any], key: Any) -> Strategy:
    if key not in value:
        return values_of(inner).map(ch.Put)
    return st.one_of(
        st.just(ch.Drop()),
        changes_of(inner, value[key]).map(ch.Patch),
        values_of(inner).map(ch.Replace),
    )


def _sequences(
    structure: ch.ChangeStructure[Any, Any], value: Any, of: Callable[[Any], Strategy]
) -> Strategy:
    """Tuples of changes, each valid after the ones before it."""

    @st.composite
    def drawn(draw: Any) -> tuple[Any, ...]:
        changes: list[Any] = []
        now = value
        for _ in range(draw(st.integers(0, 4))):
            change = draw(of(now))
            if structure.valid(change, now):
                changes.append(change)
                now = structure.patch(now, change)
        return tuple(changes)

    return drawn()


# ---- what each kind of thing provides ----

Sources = Mapping[str, Any]


@singledispatch
def sources_of(thing: Any, elements: Any, changes: Any) -> Sources:
    """For each kind of variable, a strategy, or a function from the case so far to one."""
    return {} if elements is None else {"element": as_strategy(elements)}


def _stream(source: Any, elements: Any) -> Sources:
    own = elements_of(source) if elements is None else as_strategy(elements)
    return {"element": own, "pieces": st.lists(own, max_size=6)}


@sources_of.register
def _(thing: al.Monoid, elements: Any, changes: Any) -> Sources:  # type: ignore[type-arg]
    return _stream(thing, elements)


@sources_of.register
def _(thing: Tensor, elements: Any, changes: Any) -> Sources:
    return {"left": elements_of(thing.left), "right": elements_of(thing.right)}


@sources_of.register(al.Homomorphism)
@sources_of.register(StreamFunction)
@sources_of.register(Processor)
@sources_of.register(streams.ProcessorPair)
@sources_of.register(streams.Partitioned)
def _(thing: Any, elements: Any, changes: Any) -> Sources:
    return _stream(thing.source, elements)


@sources_of.register
def _(thing: Representation, elements: Any, changes: Any) -> Sources:
    return _stream(thing.processor.source, elements)


@sources_of.register
def _(thing: Order, elements: Any, changes: Any) -> Sources:  # type: ignore[type-arg]
    return {"version": versions_of(thing) if elements is None else as_strategy(elements)}


@sources_of.register
def _(thing: Operator, elements: Any, changes: Any) -> Sources:  # type: ignore[type-arg]
    own = sources_of(thing.input, elements, changes)
    return {"input": own["value"], "changes": lambda case: own["changes"]({"value": case["x"]})}


@sources_of.register
def _(thing: ch.ChangeStructure, elements: Any, changes: Any) -> Sources:  # type: ignore[type-arg]
    values = values_of(thing) if elements is None else as_strategy(elements)

    def of(value: Any) -> Strategy:
        if changes is None and elements is None:
            return changes_of(thing, value)
        if changes is None:
            return changes_towards(thing, value, values)
        by_value = callable(changes) and not isinstance(changes, SearchStrategy)
        return as_strategy(changes(value) if by_value else changes)

    return {
        "value": values,
        "any change": lambda case: of(case["value"]) | values.flatmap(of),
        "changes": lambda case: _sequences(thing, case["value"], of),
    }


@sources_of.register
def _(thing: Reducer, elements: Any, changes: Any) -> Sources:  # type: ignore[type-arg]
    source = thing.elements if elements is None else elements
    if source is None:
        raise _unknown(thing)
    own, pool = as_strategy(source), examples(source, 100)
    for row in pool:
        if not isinstance(row, Hashable):
            raise CheckError(
                "the rows of a reducer must be hashable", row=row, remedy="a tuple, a NamedTuple"
            )
    rows = _rows(own)
    drawn = Pool(pool, source() if _makes(source) else source)
    drawn.tied = tied(thing, pool)
    return {
        "rows": rows,
        "value": lambda case: own | st.sampled_from(case["rows"]) if case["rows"] else own,
        "order": lambda case: st.permutations(case["rows"]).map(tuple),
        "count": st.integers(1, 3),
        "updates": lambda case: _updates(case["rows"], rows),
        "examples": drawn,
    }


@st.composite
def _rows(draw: Any, own: Strategy) -> tuple[Any, ...]:
    """A few rows, some of them repeated: laws break where values collide."""
    rows = draw(st.lists(own, max_size=4))
    again = draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    return (*rows, *again)


@st.composite
def _updates(draw: Any, rows: tuple[Any, ...], more: Strategy) -> tuple[ZSet[Any], ...]:
    """Changes of a bag, each valid after the ones before it."""
    bag: ZSet[Any] = ZSet.of(rows)
    updates: list[ZSet[Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        left = [row for row in bag.rows() if not draw(st.booleans())]
        updates.append(ZSet.of((*left, *draw(more))) - bag)
        bag = bag + updates[-1]
    return tuple(updates)


def cases(law: Law, sources: Sources) -> Strategy:
    """Values for all variables of a law, in the order it names them."""
    for kind in law.variables.values():
        if kind not in sources:
            raise CheckError(
                f"{law.name} speaks of {kind!r}, which this thing cannot provide",
                remedy="pass elements=, or check a thing that this law is about",
            )

    @st.composite
    def drawn(draw: Any) -> dict[str, Any]:
        case: dict[str, Any] = {}
        for name, kind in law.variables.items():
            source = sources[kind]
            case[name] = draw(source if isinstance(source, SearchStrategy) else source(case))
        return case

    return drawn()
