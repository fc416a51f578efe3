"""A view beside batch, by random requests: after each epoch, what batch computes of what the inputs
must hold by then; after one that must be refused, what was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from ebbflow.engine.batch import evaluate
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Plan
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.source import Input
from ebbflow.testing import random_program
from ebbflow.testing.programs import Event, Measurement, Stock, Tag
from ebbflow.testing.requests import RandomRequests
from ebbflow.zset import ZSet


class Version(NamedTuple):
    """Rows that say which of two is the newer one."""

    k: int
    v: int
    s: str


def program_of(dice: Random, size: int = 5) -> Any:
    """A random program whose inputs have keys, most of them with a sequence."""
    inputs = [
        Input("a", Version, key="k", sequence="v"),
        Input("b", Stock, key=("k", "s")),
        Input("c", Event, key=lambda row: row.k % 3, sequence=lambda row: row.t),
        Input("d", Tag),
        Input("e", Measurement, key="x", sequence=("k", "n")),
    ]
    while True:
        made = random_program(dice, inputs=dice.sample(inputs, 2), size=size)
        sources = made.plan.sources.values()
        if not any(isinstance(source, ClockSource) for source in sources):
            return made


def follow_requests(
    view: Any,
    plan: Plan,
    asked: RandomRequests,
    epochs: int,
    formed: Callable[[Any], Any] = lambda change: change,
) -> Counter[str]:
    """Some epochs; how often what was asked."""
    done: Counter[str] = Counter()
    total = expected = evaluate(plan, {})
    seen = []
    for _ in range(epochs):
        before = {name: held.copy() for name, held in asked.held.items()}
        changes, verbs, refused = asked.epoch()
        seen.append(changes)
        try:
            expected = evaluate(plan, asked.contents()) if not refused else expected
        except EbbflowError:
            refused, asked.held = True, before
        given = {name: formed(change) for name, change in changes.items()}
        if refused:
            with pytest.raises(EbbflowError):
                view.step(given)
            done["refused"] += 1
        else:
            change = outputs(plan, view.step(given))
            total = {name: rows + change[name] for name, rows in total.items()}
            done.update(verbs)
        assert total == expected, (seen, plan)
        assert outputs(plan, view.value) == expected, (seen, plan)
    return done


def outputs(plan: Plan, found: Any) -> dict[str, ZSet[Any]]:
    return {next(iter(plan.outputs)): found} if isinstance(found, ZSet) else found
