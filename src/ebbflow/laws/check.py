"""Checking: which laws a thing owes, data to try them on, and the smallest case that breaks one.

`check` looks for a counter-example with Hypothesis and shrinks what it finds. It is deterministic:
the same thing, examples and seed give the same report, unless shrinking takes more than a few
seconds and is ended. A check that passes is evidence, not a proof.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, singledispatch
from types import ModuleType
from typing import Any

from ebbflow.algebra import Homomorphism, Monoid
from ebbflow.algebra.order import Order
from ebbflow.change import ChangeStructure
from ebbflow.errors import CheckError, LawBroken, Text, shown
from ebbflow.laws import (
    generators,
    operators,
    reducers,
    streams,
    structures,
    ties,
    transitions,
    verdicts,
)
from ebbflow.laws.law import Equal, Law, Report, simplest
from ebbflow.laws.reducers import AnyReducer
from ebbflow.laws.rows import Pool, broken_by, first_failure, tied_failure
from ebbflow.laws.smaller import SECONDS, large, now, smaller
from ebbflow.laws.verdicts import Judgement
from ebbflow.operator import Operator
from ebbflow.reducer import Reducer
from ebbflow.stream import Processor, Representation, StreamFunction
from ebbflow.stream.generators import Elementwise
from ebbflow.stream.transition import Transition
from ebbflow.tensor import Tensor

MIXED = (
    "these rows mix the fields of the elements; where only those rows occur, give a strategy: "
    "elements=hypothesis.strategies.sampled_from(rows)"
)


@singledispatch
def laws_of(thing: Any) -> list[Law]:
    """The laws that `thing` owes by what it is and what it declares.

    >>> from ebbflow.algebra import MAX
    >>> [law.name for law in laws_of(MAX)]
    ['ZERO_LEFT', 'ZERO_RIGHT', 'ASSOCIATIVE', 'ARGUMENTS_KEPT', 'COMMUTATIVE', 'IDEMPOTENT']
    """
    if callable(getattr(thing, "explain", None)):
        raise CheckError(
            "a program owes no laws; it has to give what computing it from scratch gives",
            value=thing,
            remedy="compare the two: in a test with changes(program) and follow of "
            "ebbflow.testing, in a running view with view.verify(); check its reducers by name",
        )
    raise CheckError(
        f"nothing is known about the laws of a {type(thing).__name__}",
        value=thing,
        remedy="check a Monoid, Homomorphism, Order, ChangeStructure, StreamFunction, Processor or "
        "Representation, or pass laws=[...]",
    )


laws_of.register(Monoid, structures.monoid_laws)
laws_of.register(Tensor, lambda _: structures.TENSOR)
laws_of.register(Homomorphism, lambda _: structures.HOMOMORPHISM)
laws_of.register(Order, lambda _: structures.ORDER)
laws_of.register(ChangeStructure, structures.change_laws)
laws_of.register(StreamFunction, lambda _: streams.STREAM_FUNCTION)
laws_of.register(Processor, streams.processor_laws)
laws_of.register(Elementwise, generators.elementwise_laws)
laws_of.register(Representation, lambda _: streams.REPRESENTATION)
laws_of.register(Operator, operators.operator_laws)
laws_of.register(Reducer, reducers.reducer_laws)
laws_of.register(Transition, transitions.transition_laws)
laws_of.register(streams.ProcessorPair, lambda _: [streams.EQUIVALENT])
laws_of.register(streams.Partitioned, lambda _: [streams.INDEPENDENT])


def lawful(module: ModuleType) -> list[tuple[str, Any]]:
    """Everything in a module that owes laws, by name, without what it only imports from ebbflow."""
    classes = tuple(cls for cls in laws_of.registry if cls is not object)
    own = [m for name, m in sys.modules.items() if name.split(".")[0] == "ebbflow" and m != module]
    ours = {id(thing) for each in own for thing in vars(each).values()}
    return [
        (name, thing)
        for name, thing in vars(module).items()
        if not name.startswith("_") and isinstance(thing, classes) and id(thing) not in ours
    ]


def check(
    thing: Any,
    *,
    elements: Any = None,
    inputs: Any = None,
    changes: Any = None,
    laws: Sequence[Law] | None = None,
    equal: Equal | None = None,
    examples: int = 200,
    seed: int = 0,
) -> Report:
    """Try every law `thing` owes; raise `LawBroken` with the smallest counter-example found.

    - `elements`: what to draw from: a Hypothesis strategy, a collection of values, or a function
      without arguments that returns one. Not needed for what is made of ebbflow's own monoids.
    - `inputs`: another word for `elements`, for operators.
    - `changes`: for change structures and operators, a function from a value to such a source of
      its changes, or such a source of which the valid ones are taken.
    - `laws`: these instead of `laws_of(thing)`.
    - `equal`: when two results count as the same, for example `ebbflow.laws.close()` for floats.

    >>> from ebbflow.algebra import Monoid
    >>> print(check(Monoid("", lambda a, b: a + b, name="text", elements=["", "a", "bc"])))
    text: 4 laws hold, each on up to 200 examples
        ZERO_LEFT       zero · a == a
        ZERO_RIGHT      a · zero == a
        ASSOCIATIVE     (a · b) · c == a · (b · c)
        ARGUMENTS_KEPT  a and b after a · b are a and b
    """
    from ebbflow.laws.sources import sources_of

    wanted = list(laws_of(thing) if laws is None else laws)
    sources = sources_of(thing, inputs if elements is None else elements, changes)
    given: dict[str, Any] = {"sources": sources, "equal": equal, "examples": examples}
    if isinstance(thing, Reducer):
        return _reducer_checked(thing, wanted, given, seed, all_laws=laws is None)
    for law in wanted:
        broken = _smallest(partial(_search, thing, law, **given), seed)
        if broken is not None:
            raise broken
    return Report(thing, tuple(wanted), examples)


def _reducer_checked(
    thing: AnyReducer, laws: list[Law], given: dict[str, Any], seed: int, all_laws: bool
) -> Report:
    """`check` for reducers: they get a verdict, and what breaks is shown as an update."""
    twin = reducers.sheltered(thing)

    def search(law: Law) -> LawBroken | None:
        return _search(twin, law, seed=seed, clock=Deadline(), **given)

    try:
        for law in laws:
            broken = _smallest(partial(_search, twin, law, **given), seed)
            if broken is not None:
                explained = verdicts.telling(broken, search)
                explained.thing = thing
                raise explained
        if all_laws:
            pool = given["sources"]["examples"]
            found = verdicts.decided(twin, laws, given["examples"], search, pool)
            return replace(found, thing=thing)
        return Report(thing, tuple(laws), given["examples"])
    finally:
        twin.restore()


def _smallest(search: Callable[..., LawBroken | None], seed: int) -> LawBroken | None:
    """The smallest case of a few searches, since shrinking can get stuck."""
    clock = Deadline()
    found = search(seed=seed, clock=clock)
    if found is None:
        return None
    tries = 1 if isinstance(found.thing, Reducer) and large(found) else 6
    more = (search(seed=seed + k, clock=clock) for k in range(1, tries) if not clock.over())
    return min((found, *filter(None, more)), key=lambda broken: simplest(broken.case))


def judge(reducer: Reducer[Any, Any, Any], *, prove: bool = False, **options: Any) -> Judgement:
    """The verdict on a reducer, also when it is refuted: `check` that does not raise.

    With `prove=True` it is also proved where that is possible; see `ebbflow.laws.prove`. The other
    options are those of `check`.

    >>> worst = Reducer(0, max, lambda acc, x: acc, name="worst", elements=range(5))
    >>> print(judge(worst))
    worst breaks a law: remove does not undo add
        law        REMOVE_INVERTS: remove(add(acc, value), value) == acc or RECOMPUTE, \
acc = fold(rows)
        rows       ()
        value      1
        left side  1
        right side 0
        created    <doctest ebbflow.laws.check.judge[0]>:1
        update     1 leaves [1]: the view says 1
        recomputed the rows [] give 0
        again      REMOVE_INVERTS.test(thing, rows=(), value=1)
        try        keep in the accumulator what remove needs, return RECOMPUTE where it cannot \
know, or leave remove out
    """
    examples = options.get("examples", 200)
    try:
        found = check(reducer, **options)
        assert isinstance(found, Judgement)
    except LawBroken as broken:
        return verdicts.refuted(broken, examples)
    if not prove:
        return found
    from ebbflow.laws.prove import prove as proved

    elements = options.get("elements")
    source = reducer.elements if elements is None else elements
    return verdicts.weighed(found, proved(reducer, elements=source), source)


def equivalent(first: Processor[Any, Any], second: Processor[Any, Any], **options: Any) -> Report:
    """Check that two processors say the same for every input, in any pieces. The options are those
    of `check`.

    >>> from ebbflow.stream import derivative, map_each, prefix_sum
    >>> print(equivalent(prefix_sum() >> derivative(), map_each(int)))
    prefix_sum() >> derivative() ~ map_each(int): 1 laws hold, each on up to 200 examples
        EQUIVALENT  ⟦first⟧(pieces) == ⟦second⟧(pieces)
    """
    return check(streams.ProcessorPair(first, second), **options)


def independent(processor: Processor[Any, Any], split: Any, **options: Any) -> Report:
    """Check that `processor` may be partitioned: it treats the parts of `split` independently. The
    options are those of `check`."""
    return check(streams.Partitioned(processor, split), **options)


class Deadline:
    """How long a failure is made smaller: a few seconds, from when there is one."""

    end: float | None = None

    def start(self) -> float:
        self.end = self.end or now() + SECONDS
        return self.end

    def stop(self) -> None:
        """End the search for smaller cases."""
        self.end = 0.0

    def over(self) -> bool:
        return self.end is not None and now() > self.end


class _Enough(BaseException):
    """Raised to end a search of Hypothesis, which catches every `Exception`."""


def _search(
    thing: Any,
    law: Law,
    sources: Mapping[str, Any],
    equal: Equal | None,
    examples: int,
    seed: int,
    clock: Deadline,
) -> LawBroken | None:
    """The smallest case found that breaks the law, as the error to raise; None when all hold."""
    from ebbflow.laws.search import Flaky, NoSuchExample, Unsatisfiable, first_found
    from ebbflow.laws.sources import cases

    broken: list[LawBroken] = []
    pool: Any = sources.get("examples")
    if isinstance(thing, Reducer):
        first = first_failure(thing, law, pool, equal, examples, seed)
        if first is None:
            return _tied_failure(thing, law, pool, equal, examples, clock) if pool.tied else None
        broken.append(first)
        clock.start()

    def breaks(case: dict[str, Any]) -> bool:
        if clock.over():
            raise _Enough
        found = broken_by(thing, law, equal, case)
        if found is not None:
            broken[:] = [found]
            clock.start()
        return found is not None

    most = examples if law.variables else 1
    try:
        smallest = first_found(cases(law, sources), breaks, examples=most, seed=seed)
    except (NoSuchExample, _Enough):
        if not broken or pool is None:
            return broken[0] if broken else None
        return smaller(broken[0], equal, pool, clock.start() + 1)
    except Unsatisfiable as error:
        raise CheckError(
            f"no example could be made to try {law.name} on {thing!r}",
            remedy="pass elements= (and changes=) that give values more often",
        ) from error
    except Flaky:
        broken[0].facts["note"] = Text("only sometimes: the same case gave different results")
        return broken[0]
    return broken_by(thing, law, equal, smallest) or broken[0]


def _tied_failure(
    r: AnyReducer, law: Law, pool: Pool, equal: Equal | None, examples: int, clock: Deadline
) -> LawBroken | None:
    """The smallest case found that breaks the law with rows that share fields.

    Rows given as a collection are samples, so their fields may be mixed. A strategy gives the rows
    it gives: it is asked for rows that tie, and what breaks on mixed ones only is a doubt.
    """
    mixed = tied_failure(r, law, pool, equal, examples)
    if mixed is None:
        return None
    sample = isinstance(pool.source, Collection)
    near = pool
    if not sample:
        near = Pool(ties.likes(pool.source), pool.source)
        near.tied = [[row, *near] for row in near]
    found = mixed if sample else tied_failure(r, law, near, equal, examples)
    if found is None:
        if not pool.doubts:
            doubt = f"it breaks {law.name} for rows that may not occur: {shown(mixed.case)}"
            pool.doubts.append(doubt)
        return None
    found = smaller(found, equal, near, clock.start())
    clock.stop()
    if sample:
        found.facts["mixed"] = Text(MIXED)
    return found


def close(relative: float = 1e-9, absolute: float = 1e-12) -> Equal:
    """An equality for numbers that are only nearly the same, also inside lists, tuples and dicts.

    >>> close()([0.1 + 0.2, {"a": 1.0}], [0.3, {"a": 1.0}])
    True
    >>> close()(0.1, 0.11)
    False
    """
    import math

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return math.isclose(a, b, rel_tol=relative, abs_tol=absolute) or a == b
        if type(a) is type(b) and isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
        return bool(a == b)

    return same
