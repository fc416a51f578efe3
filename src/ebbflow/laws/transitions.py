"""The laws of transitions: what a scan may be sent through."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ebbflow.laws.law import Law
from ebbflow.stream.transition import Transition

PA = {"p": "pieces", "a": "element"}
PAB = {**PA, "b": "element"}


def reached(transition: Transition, rows: Any) -> Any:
    """The state behind some rows.

    >>> from ebbflow.stream.transition import transition
    >>> reached(transition(lambda n, row: (n + row, []), 0), [1, 2])
    3
    """
    state = transition.start
    for row in rows:
        state = transition.step(state, row)[0]
    return state


def _again(transition: Transition, p: Any, a: Any) -> tuple[Any, Any]:
    state = reached(transition, p)
    before = deepcopy(state)
    first = transition.step(state, a)
    return (transition.step(state, a), state), (first, before)


def _composed(transition: Any, p: Any, a: Any) -> tuple[Any, Any]:
    state = reached(transition, p)
    return transition.act(state, transition.of(a)), transition.step(state, a)[0]


def _merged(transition: Any, p: Any, a: Any, b: Any) -> tuple[Any, Any]:
    state, one, two = reached(transition, p), transition.of(a), transition.of(b)
    return (
        transition.act(state, transition.merge(one, two)),
        transition.act(transition.act(state, one), two),
    )


STEP_REPEATED = Law(
    "STEP_REPEATED", "a step alters the state that it is given, or says something else next time",
    "step(s, a) again == step(s, a), and s is what it was", PA, _again,
    "make a new state, and let it depend on nothing but the state and the row",
)  # fmt: skip
STEP_COMPOSED = Law(
    "STEP_COMPOSED", "what a row does to the state is not what its step does",
    "act(s, of(a)) == step(s, a)[0]", PA, _composed,
    "mend of or act, or leave them out: then states are remembered instead",
)  # fmt: skip
PARTS_COMPOSED = Law(
    "PARTS_COMPOSED", "what two rows do together is not what they do one after the other",
    "act(s, merge(of(a), of(b))) == act(act(s, of(a)), of(b))", PAB, _merged,
    "mend merge or act, or leave them out: then states are remembered instead",
)  # fmt: skip


def transition_laws(transition: Transition) -> list[Law]:
    """The laws that a transition owes."""
    if transition.merge is None:
        return [STEP_REPEATED]
    return [STEP_REPEATED, STEP_COMPOSED, PARTS_COMPOSED]
