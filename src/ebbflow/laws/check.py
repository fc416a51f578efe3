"""Checking: which laws a thing owes, data to try them on, and the smallest case that breaks one.

`check` looks for a counter-example with Hypothesis and shrinks what it finds. It is deterministic:
the same thing, examples and seed give the same report. A check that passes is evidence, not a
proof.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial, singledispatch
from random import Random
from types import ModuleType
from typing import Any

from ebbflow.algebra import Homomorphism, Monoid
from ebbflow.algebra.order import Order
from ebbflow.change import ChangeStructure
from ebbflow.errors import CheckError, LawBroken, Text, canonical
from ebbflow.laws import operators, reducers, rows, streams, structures, verdicts
from ebbflow.laws.law import Equal, Law, Report
from ebbflow.laws.verdicts import Judgement
from ebbflow.operator import Operator
from ebbflow.reducer import Reducer
from ebbflow.stream import Processor, Representation, StreamFunction
from ebbflow.tensor import Tensor


@singledispatch
def owed(thing: Any) -> list[Law]:
    """The laws that `thing` owes by what it is and what it declares.

    >>> from ebbflow.algebra import MAX
    >>> [law.name for law in owed(MAX)]
    ['ZERO_LEFT', 'ZERO_RIGHT', 'ASSOCIATIVE', 'ARGUMENTS_KEPT', 'COMMUTATIVE', 'IDEMPOTENT']
    """
    raise CheckError(
        f"nothing is known about the laws of a {type(thing).__name__}",
        value=thing,
        remedy="check a Monoid, Homomorphism, Order, ChangeStructure, StreamFunction, Processor or "
        "Representation, or pass laws=[...]",
    )


owed.register(Monoid, structures.monoid_laws)
owed.register(Tensor, structures.tensor_laws)
owed.register(Homomorphism, structures.homomorphism_laws)
owed.register(Order, structures.order_laws)
owed.register(ChangeStructure, structures.change_laws)
owed.register(StreamFunction, streams.function_laws)
owed.register(Processor, streams.processor_laws)
owed.register(Representation, streams.representation_laws)
owed.register(Operator, operators.operator_laws)
owed.register(Reducer, reducers.reducer_laws)
owed.register(streams.Both, lambda _: [streams.EQUIVALENT])
owed.register(streams.Partitioned, lambda _: [streams.INDEPENDENT])


def lawful(module: ModuleType) -> list[tuple[str, Any]]:
    """Everything in a module that owes laws, by name, without what it only imports from ebbflow."""
    kinds = tuple(kind for kind in owed.registry if kind is not object)
    own = [m for name, m in sys.modules.items() if name.split(".")[0] == "ebbflow" and m != module]
    ours = {id(thing) for each in own for thing in vars(each).values()}
    return [
        (name, thing)
        for name, thing in vars(module).items()
        if not name.startswith("_") and isinstance(thing, kinds) and id(thing) not in ours
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
    - `laws`: these instead of `owed(thing)`.
    - `equal`: when two results count as the same, for example `ebbflow.laws.close()` for floats.

    >>> from ebbflow.algebra import Monoid
    >>> print(check(Monoid("", lambda a, b: a + b, name="text", elements=["", "a", "bc"])))
    text: 4 laws hold, each on up to 200 examples
        ZERO_LEFT       zero · a == a
        ZERO_RIGHT      a · zero == a
        ASSOCIATIVE     (a · b) · c == a · (b · c)
        ARGUMENTS_KEPT  a and b after a · b are a and b
    """
    from ebbflow.laws.strategies import kinds

    wanted = list(owed(thing) if laws is None else laws)
    sources = kinds(thing, inputs if elements is None else elements, changes)
    search = partial(_search, thing, sources=sources, equal=equal, examples=examples, seed=seed)
    for law in wanted:
        found = search(law)
        if found is not None:
            tries = 1 if isinstance(thing, Reducer) and rows.large(found) else 6
            again = (search(law, seed=seed + k) for k in range(1, tries))
            smallest = min((found, *filter(None, again)), key=_size)
            raise verdicts.telling(smallest, search) if isinstance(thing, Reducer) else smallest
    if isinstance(thing, Reducer) and laws is None:
        return verdicts.decided(thing, wanted, examples, search, sources["examples"])
    return Report(thing, tuple(wanted), examples)


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


def equivalent(
    first: Processor[Any, Any],
    second: Processor[Any, Any],
    *,
    elements: Any = None,
    equal: Equal | None = None,
    examples: int = 200,
    seed: int = 0,
) -> Report:
    """Check that two processors say the same for every input, in any pieces.

    >>> from ebbflow.stream import derivative, map_each, prefix_sum
    >>> print(equivalent(prefix_sum() >> derivative(), map_each(int)))
    prefix_sum() >> derivative() ~ map_each(int): 1 laws hold, each on up to 200 examples
        EQUIVALENT  ⟦first⟧(pieces) == ⟦second⟧(pieces)
    """
    both = streams.Both(first, second)
    return check(both, elements=elements, equal=equal, examples=examples, seed=seed)


def independent(
    processor: Processor[Any, Any],
    split: Any,
    *,
    elements: Any = None,
    equal: Equal | None = None,
    examples: int = 200,
    seed: int = 0,
) -> Report:
    """Check that `processor` may be partitioned: it treats the parts of `split` independently."""
    thing = streams.Partitioned(processor, split)
    return check(thing, elements=elements, equal=equal, examples=examples, seed=seed)


def _size(broken: LawBroken) -> tuple[int, str]:
    """Shrinking can get stuck, so a few searches are made and the shortest case is shown."""
    text = canonical(broken.case)
    return len(text), text


def _search(
    thing: Any,
    law: Law,
    sources: Mapping[str, Any],
    equal: Equal | None,
    examples: int,
    seed: int,
) -> LawBroken | None:
    """The smallest case found that breaks the law, as the error to raise; None when all hold."""
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

    from ebbflow.laws.strategies import cases

    broken: list[LawBroken] = []
    if isinstance(thing, Reducer):
        pool = sources["examples"]
        first = rows.first_failure(thing, law, pool, equal, examples, seed)
        if first is None:
            return None
        broken.append(first)

    def breaks(case: dict[str, Any]) -> bool:
        try:
            law.test(thing, equal=equal, **case)
        except LawBroken as error:
            broken[:] = [error]
            return True
        return False

    quiet = settings(
        max_examples=examples if law.variables else 1,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        smallest = find(cases(law, sources), breaks, settings=quiet, random=Random(seed))
    except NoSuchExample:
        return rows.smaller(broken[0], equal) if broken else None
    except Unsatisfiable as error:
        raise CheckError(
            f"no example could be made to try {law.name} on {thing!r}",
            remedy="pass elements= (and changes=) that give values more often",
        ) from error
    except Flaky:
        broken[0].facts["note"] = Text("only sometimes: the same case gave different results")
        return broken[0]
    breaks(smallest)
    return broken[0]


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
