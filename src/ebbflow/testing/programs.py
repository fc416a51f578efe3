"""Random programs, built as a user builds them.

A program is grown from a *recipe*: which inputs there are, a list of verbs, each with a number that
decides its details, and whether it is an output besides the last; a loop has also the steps of its
body. Every recipe means a program. So
a shorter recipe with smaller numbers is a simpler program, which is all that Hypothesis needs to
shrink a failing program to the few steps that matter; and a recipe of plain random numbers will do
where Hypothesis is not wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Annotated, Any, NamedTuple

from ebbflow.errors import CheckError, install
from ebbflow.flow.collection import Collection
from ebbflow.flow.program import Program, program
from ebbflow.flow.source import Input
from ebbflow.testing.aligned_verbs import ALIGNED_VERBS
from ebbflow.testing.functions import Choices, RowShape, Serial
from ebbflow.testing.grown import Grown, Pool
from ebbflow.testing.loops import LOOP_NAMES, LOOPS
from ebbflow.testing.order_verbs import ORDER_VERBS
from ebbflow.testing.text_verbs import TEXT_VERBS
from ebbflow.testing.time_verbs import TIME_VERBS
from ebbflow.testing.verbs import SIMPLE

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:  # pragma: no cover
    raise CheckError("random programs need Hypothesis", remedy=install("laws")) from error


class Stock(NamedTuple):
    """Rows of generated inputs."""

    k: int
    v: int
    s: str


class Tag(NamedTuple):
    """Rows of generated inputs that lack something now and then."""

    k: int
    w: int | None


class Event(NamedTuple):
    """Rows of generated inputs that happen at some time."""

    k: int
    t: int


class Measurement(NamedTuple):
    """Rows of generated inputs with floats, beside ints that floats cannot hold."""

    k: int
    x: float
    n: Serial


class Moment(NamedTuple):
    """Rows of generated inputs that happen at a time without a zone."""

    k: int
    at: datetime


class Bill(NamedTuple):
    """Rows of generated inputs whose hints say more than a class: a zone, and digits."""

    k: int
    due: Annotated[datetime, UTC]
    m: Annotated[Decimal, (10, 2)]


VERBS = {**SIMPLE, **ORDER_VERBS, **TIME_VERBS, **ALIGNED_VERBS, **TEXT_VERBS}
VERB_NAMES = tuple(VERBS)
TYPES = (Stock, Tag, Event, int, Any, Measurement, Moment, Bill)
NUMBERS = 1 << 24  # numbers below this Hypothesis draws evenly, and greater ones mostly small
OUTPUTS = 3
ALL_NAMES = VERB_NAMES + LOOP_NAMES
DEPTH = 3  # of loops in loops
INNER = 4  # steps of a body
Step = tuple[Any, ...]


@dataclass(frozen=True)
class Recipe:
    """What a program is grown from: `inputs` are (which type, whether it has a key), `steps` are
    (verb, number), and (verb, number, steps) where the verb is a loop."""

    inputs: tuple[tuple[int, bool], ...]
    steps: tuple[Step, ...]


def grow(
    recipe: Recipe, inputs: Sequence[Collection] = (), types: Sequence[Any] = TYPES
) -> Program:
    """The program that a recipe means, over its own inputs or over those given.

    >>> recipe = Recipe(((0, False),), (("filter", 1), ("distinct", 0)))
    >>> grow(recipe)
    <program of out: Stock(k, v, s): a → filter → distinct>
    """
    pool = [Grown(each, RowShape.of_type(each.type)) for each in inputs]
    if not inputs:
        pool = [
            _input(name, types[which % len(types)], keyed)
            for name, (which, keyed) in zip("abcdefgh", recipe.inputs, strict=False)
        ]
    outputs: dict[str, Collection] = {}
    for step in recipe.steps:
        is_output, grown = _grown(step, pool)
        if grown is not None and is_output and len(outputs) < OUTPUTS - 1:
            outputs[f"out{len(outputs) + 1}"] = grown.rows
    return program(**{**outputs, "out": pool[-1].rows})


def _grown(step: Step, pool: Pool) -> tuple[bool, Grown | None]:
    """What a step adds to a pool, if anything, and whether that may be an output."""
    verb, number, *inner = step
    choices = Choices(number)
    is_output = choices.pick((False,) * 7 + (True,))

    def body(pool: Pool) -> None:
        for each in inner[0]:
            _grown(each, pool)

    grown = LOOPS[verb](pool, choices, body) if inner else VERBS[verb](pool, choices)
    if grown is not None:
        pool.append(grown)
    return is_output, grown


def _input(name: str, row_type: Any, keyed: bool) -> Grown:
    shape = RowShape(("int", "str")) if row_type is Any else RowShape.of_type(row_type)
    if not keyed or shape.whole:
        return Grown(Input(name, row_type), shape)
    key = shape.key(Choices(0)).given
    return Grown(Input(name, row_type, key=key), shape)


def plans(
    inputs: Sequence[Collection] | int | None = None,
    *,
    size: int = 8,
    verbs: Iterable[str] = VERB_NAMES,
    types: Sequence[Any] = TYPES,
) -> SearchStrategy[Program]:
    """A Hypothesis strategy of programs of at most `size` steps, each of one of `verbs`.

    `inputs` are collections of yours, or how many to make at most (3). Made ones have rows of one
    of `types`: NamedTuples, `int`, `str`, or `Any`, which stands for plain tuples of an int and a
    str; some of them have a key. Fields that are `int`, `str`, `int | None` or `float` are computed
    with, others are compared only. With `verbs=ALL_NAMES` there are loops, in loops as well.

    Programs fail on no row, and give equal results for equal inputs; but a loop may come to no end,
    and raise `NoFixedPoint`. Where a collection may owe rows, behind `-`, nothing follows that
    needs a bag.

    >>> from hypothesis import find, settings
    >>> from ebbflow.flow.plan import TopK
    >>> def ranks(made): return isinstance(made.plan.outputs["out"], TopK)
    >>> searched = settings(database=None, derandomize=True, max_examples=500)
    >>> find(plans(verbs=["filter", "top_k", "distinct"]), ranks, settings=searched)
    <program of out: Stock(k, v, s): a → top_k>
    """
    verbs = tuple(verbs)
    given = () if inputs is None or isinstance(inputs, int) else tuple(inputs)
    most = inputs if isinstance(inputs, int) else 3
    for verb in verbs:
        if verb not in ALL_NAMES:
            raise CheckError(f"{verb!r} is no kind of step", remedy=", ".join(ALL_NAMES))
    one_input = st.tuples(st.integers(0, len(types) - 1), st.sampled_from((False, False, True)))
    recipes = st.builds(
        Recipe,
        st.just(()) if given else st.lists(one_input, min_size=1, max_size=most).map(tuple),
        _steps(verbs, size, DEPTH),
    )
    return recipes.map(lambda recipe: grow(recipe, given, types))


def _steps(verbs: tuple[str, ...], size: int, depth: int) -> SearchStrategy[tuple[Step, ...]]:
    number = st.integers(0, NUMBERS - 1)
    plain = [verb for verb in verbs if verb in VERBS]
    loops = [verb for verb in verbs if verb in LOOPS] if depth else []
    step: SearchStrategy[Step] = st.nothing()
    if plain:
        step = st.tuples(st.sampled_from(plain), number)
    if loops:
        body = _steps(verbs, INNER, depth - 1)
        wide = st.integers(0, NUMBERS**3 - 1)  # so much is to be decided
        step |= st.tuples(st.sampled_from(loops), wide, body)
    return st.lists(step, max_size=size).map(tuple)


def random_program(
    seed: int | Random,
    *,
    inputs: Sequence[Collection] = (),
    size: int = 8,
    verbs: Sequence[str] = VERB_NAMES,
    types: Sequence[Any] = TYPES,
) -> Program:
    """A program of `size` steps from a seed, without Hypothesis: for soak tests and benchmarks.

    >>> random_program(7, size=3).plan == random_program(7, size=3).plan
    True
    """
    dice = seed if isinstance(seed, Random) else Random(seed)
    recipe = Recipe(
        tuple((dice.randrange(len(types)), dice.random() < 0.3) for _ in range(dice.randint(1, 3))),
        _random_steps(dice, size, verbs, DEPTH),
    )
    return grow(recipe, inputs, types)


def _random_steps(dice: Random, size: int, verbs: Sequence[str], depth: int) -> tuple[Step, ...]:
    there = [verb for verb in verbs if depth or verb in VERBS]
    found: list[Step] = []
    for _ in range(size if there else 0):
        verb = dice.choice(there)
        if verb in VERBS:
            found.append((verb, dice.randrange(NUMBERS)))
        else:
            body = _random_steps(dice, dice.randint(1, INNER), verbs, depth - 1)
            found.append((verb, dice.randrange(NUMBERS**3), body))
    return tuple(found)
