"""The laws of differential operators, over sequences of changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ebbflow.laws.law import Law, fresh
from ebbflow.laws.moves import Moves
from ebbflow.laws.streams import said
from ebbflow.operator import Operator

CASE = {"x": "input", "changes": "changes"}


def _at_the_last(
    look: Callable[[Any, Any, Any, Any], bool],
) -> Callable[[Any, Any, Sequence[Any]], tuple[Any, Any]]:
    """The sides of a law about the last change: what is found for the input and the state before
    it, and True."""

    def sides(operator: Any, x: Any, changes: Sequence[Any]) -> tuple[Any, Any]:
        state = operator.init(x)
        for change in changes[:-1]:
            state, _ = operator.step(state, change)
            x = operator.input.patch(x, change)
        return all(look(operator, x, state, last) for last in changes[-1:]), True

    return sides


def _keeps_invariant(operator: Any, x: Any, state: Any, change: Any) -> bool:
    state, _ = operator.step(state, change)
    return bool(operator.invariant(operator.input.patch(x, change), state))


def _output_valid(operator: Any, x: Any, state: Any, change: Any) -> bool:
    old = operator.f(x)
    return bool(operator.output.valid(operator.step(state, change)[1], old))


def _from_scratch(operator: Any, x: Any, changes: Sequence[Any]) -> tuple[Any, Any]:
    state, y = operator.init(x), operator.f(x)
    for change in changes:
        state, output = operator.step(state, change)
        y = operator.output.patch(y, output)
        x = operator.input.patch(x, change)
    return y, operator.f(x)


def _outputs(live: Any, changes: Sequence[Any]) -> list[Any]:
    return [live.send(fresh(change)) for change in changes]


def _alike(operator: Any, x: Any, changes: Sequence[Any]) -> tuple[Any, Any]:
    first = _outputs(operator.open(fresh(x)), changes)
    return first, _outputs(operator.open(fresh(x)), changes)


def _apart(operator: Any, x: Any, changes: Sequence[Any]) -> tuple[Any, Any]:
    alone = _outputs(operator.open(fresh(x)), changes)
    one = operator.open(fresh(x))
    other = operator.open(fresh(x))
    together = []
    for change in changes:
        together.append(one.send(fresh(change)))
        other.send(fresh(change))
    return together, alone


def _cut(operator: Any, x: Any, changes: Sequence[Any]) -> tuple[Any, Any]:
    """Where the output is after all but the last change and after that one: change by change, and
    with those before it as one change, and with changes in between that change nothing."""
    monoid = operator.source
    nothing, before, last = monoid.zero, list(changes[:-1]), list(changes[-1:])
    moves, values = Moves(operator, x), []
    for pieces in ([*before, *last], [nothing, monoid.fold(before), nothing, *last]):
        reached = moves.target.fold(said(moves, pieces))
        values.append(operator.f(x) if reached is None else reached[1])
    return values[0], values[1]


RUNS_ALIKE = Law(
    "RUNS_ALIKE", "the same run twice gives different changes",
    "step(s, dx) == step(s, dx), in a fresh run", CASE, _alike,
    "keep what is remembered in the state, not outside it; take out what is random",
)  # fmt: skip
RUNS_APART = Law(
    "RUNS_APART", "one run disturbs another", "runs of one operator share nothing", CASE, _apart,
    "make a new state in init, not one that all runs share",
)  # fmt: skip
INIT = Law(
    "INIT", "init does not establish the invariant", "invariant(x, init(x))", {"x": "input"},
    lambda operator, x: (operator.invariant(x, operator.init(x)), True),
    "make init and invariant agree on what the state holds",
)  # fmt: skip
ACCEPTS = Law(
    "ACCEPTS", "the state refuses a change that is valid for the input",
    "valid(dx, x) implies accepts(s, dx), after any changes", CASE,
    _at_the_last(lambda operator, x, state, change: operator.accepts(state, change)),
    "keep in the state whatever is needed to take every valid change",
)  # fmt: skip
OUTPUT_VALID = Law(
    "OUTPUT_VALID", "the output change is not valid for the old output",
    "valid(dy, f(x)), after any changes", CASE,
    _at_the_last(_output_valid),
    "give a change of the output as it was before the step",
)  # fmt: skip
FROM_SCRATCH = Law(
    "FROM_SCRATCH", "the output is not what recomputing would give",
    "f(x) patched by all output changes == f(x patched by all changes)", CASE, _from_scratch,
    "follow the shortest sequence above by hand: which case does step forget?",
)  # fmt: skip
STEP = Law(
    "STEP", "step does not keep the invariant",
    "invariant(x, s) implies invariant(patch(x, dx), s')", CASE,
    _at_the_last(_keeps_invariant),
    "update every part of the state that the change touches",
)  # fmt: skip


CUT_CHANGES = Law(
    "CUT_CHANGES", "the output depends on how the changes were cut",
    "step(s, dx · dx') moves f(x) as dx and then dx' do; the empty change moves nothing",
    CASE, _cut,
    "do for changes that were put together what is done for them one by one",
)  # fmt: skip

OPERATOR = [INIT, ACCEPTS, RUNS_ALIKE, RUNS_APART, FROM_SCRATCH, OUTPUT_VALID, STEP]


def operator_laws(operator: Operator[Any, Any, Any, Any]) -> list[Law]:
    """The laws of operators, and where its changes are a stream, that of processors.

    >>> from ebbflow.operator import count
    >>> from ebbflow.operator.text import length
    >>> [law.name for law in operator_laws(count()) if law not in operator_laws(length)]
    ['CUT_CHANGES']
    """
    return OPERATOR + [CUT_CHANGES] * operator.input.is_stream
