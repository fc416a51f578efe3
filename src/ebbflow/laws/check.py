"""Checking: which laws a thing owes, data to try them on, and the smallest case that breaks one.

`check` looks for a counter-example with Hypothesis and shrinks what it finds. It is deterministic:
the same thing, examples and seed give the same report. A check that passes is evidence, not a
proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from random import Random
from typing import Any

from ebbflow.algebra import Homomorphism, Monoid
from ebbflow.algebra.order import Order
from ebbflow.change import ChangeStructure
from ebbflow.errors import CheckError, LawBroken, Text, place
from ebbflow.laws import operators, streams, structures
from ebbflow.laws.law import Equal, Law, Report
from ebbflow.operator import Operator
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
        created=place(),
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
owed.register(streams.Both, lambda _: [streams.EQUIVALENT])
owed.register(streams.Partitioned, lambda _: [streams.INDEPENDENT])


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
    for law in wanted:
        found = _search(thing, law, sources, equal, examples, seed)
        if found is not None:
            again = (_search(thing, law, sources, equal, examples, seed + k) for k in range(1, 6))
            raise min((found, *filter(None, again)), key=_size)
    return Report(thing, tuple(wanted), examples)


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
    examples: int = 200,
    seed: int = 0,
) -> Report:
    """Check that `processor` may be partitioned: it treats the parts of `split` independently."""
    thing = streams.Partitioned(processor, split)
    return check(thing, elements=elements, examples=examples, seed=seed)


def _size(broken: LawBroken) -> tuple[int, str]:
    """Shrinking can get stuck, so a few searches are made and the shortest case is shown."""
    text = repr(broken.case)
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
        return None
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


