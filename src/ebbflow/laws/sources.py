"""What the variables of a law are drawn from, for each class of things that owe laws."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from ebbflow import algebra as al
from ebbflow import change as ch
from ebbflow.algebra.order import Order
from ebbflow.errors import CheckError
from ebbflow.laws import streams
from ebbflow.laws.changes import changes_of, changes_towards, sequences_of, values_of
from ebbflow.laws.law import Law
from ebbflow.laws.rows import Pool
from ebbflow.laws.search import SearchStrategy, st
from ebbflow.laws.strategies import (
    Strategy,
    as_strategy,
    elements_of,
    examples,
    unmade,
    versions_of,
)
from ebbflow.laws.ties import tied
from ebbflow.operator import Operator
from ebbflow.reducer import Reducer
from ebbflow.stream import Processor, Representation, StreamFunction
from ebbflow.stream.transition import Transition
from ebbflow.tensor import Tensor
from ebbflow.zset import ZSet

Sources = Mapping[str, Any]


def sources_of(thing: Any, elements: Any, changes: Any) -> Sources:
    """For each role of a variable, a strategy, or a function from the case so far to one."""
    match thing:
        case al.Monoid():
            return _stream(thing, elements)
        case Tensor():
            return {"left": elements_of(thing.left), "right": elements_of(thing.right)}
        case Operator():
            own = _values(thing.input, elements, changes)
            whole = {
                "input": own["value"],
                "changes": lambda case: own["changes"]({"value": case["x"]}),
            }
            stream = _changes_from_empty(thing.input, own) if thing.input.is_stream else {}
            return {**whole, **stream}
        case al.Homomorphism() | StreamFunction() | Processor():
            return _stream(thing.source, elements)
        case Transition():
            if elements is None:
                raise unmade(thing)
            return _stream(None, elements)
        case streams.ProcessorPair():
            return sources_of(thing.first, elements, changes)
        case streams.Partitioned():
            return sources_of(thing.processor, elements, changes)
        case Representation():
            return _stream(thing.processor.source, elements)
        case Order():
            return {"version": versions_of(thing) if elements is None else as_strategy(elements)}
        case ch.ChangeStructure():
            return _values(thing, elements, changes)
        case Reducer():
            return _bag(thing, elements)
    return {} if elements is None else {"element": as_strategy(elements)}


def _stream(source: Any, elements: Any) -> Sources:
    own = elements_of(source) if elements is None else as_strategy(elements)
    return {"element": own, "pieces": st.lists(own, max_size=6)}


def _changes_from_empty(structure: ch.ChangeStructure[Any, Any], own: Sources) -> Sources:
    """Pieces of the stream of changes of a structure, each valid after the ones before it."""

    def piece(case: dict[str, Any]) -> Strategy:
        value = structure.patch_all(structure.empty, case.values())
        some: Strategy = own["changes"]({"value": value})
        return some.map(lambda changes: changes[0] if changes else structure.monoid.zero)

    return {"element": piece, "pieces": own["changes"]({"value": structure.empty}).map(list)}


def _values(thing: ch.ChangeStructure[Any, Any], elements: Any, changes: Any) -> Sources:
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
        "changes": lambda case: sequences_of(thing, case["value"], of),
    }


def _bag(thing: Reducer[Any, Any, Any], elements: Any) -> Sources:
    source = thing.elements if elements is None else elements
    if source is None:
        raise unmade(thing)
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


def _makes(source: Any) -> bool:
    """Whether a source is a function that returns one."""
    return callable(source) and not isinstance(source, (SearchStrategy, Collection))


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
    for role in law.variables.values():
        if role not in sources:
            raise CheckError(
                f"{law.name} speaks of {role!r}, which this thing cannot provide",
                remedy="pass elements=, or check a thing that this law is about",
            )

    @st.composite
    def drawn(draw: Any) -> dict[str, Any]:
        case: dict[str, Any] = {}
        for name, role in law.variables.items():
            source = sources[role]
            case[name] = draw(source if isinstance(source, SearchStrategy) else source(case))
        return case

    return drawn()
