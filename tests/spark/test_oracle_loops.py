"""The tasks of the Spark engine against batch, on random programs with loops; no Spark is needed.

A loop runs as a whole in one task here, whatever the rest of the program does.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.oracle.looped import looping
from tests.spark.test_oracle import each_mode, followed

import ebbflow as ef


@each_mode
def test_002_D8_tasks_give_what_batch_gives_for_loops(mode: str) -> None:
    for seed in range(3):
        dice = Random(f"{mode} {seed}")
        followed(mode, looping(dice), dice, epochs=3, size=4)


@pytest.mark.slow
@each_mode
@pytest.mark.parametrize("check_input", [True, False], ids=["checked", "trusted"])
def test_002_D8_tasks_give_what_batch_gives_for_many_loops(mode: str, check_input: bool) -> None:
    for seed in range(100, 130):
        dice = Random(f"{mode} {seed}")
        followed(mode, looping(dice), dice, size=4, check_input=check_input)


@each_mode
def test_a_collection_that_is_empty_is_no_obstacle(mode: str) -> None:
    words = ef.Input("words", str)
    followed(mode, ef.program(all=(words + ef.empty(str)), none=ef.empty(str)), Random(1))


@each_mode
def test_an_input_of_a_variable_that_nobody_reads_is_no_obstacle(mode: str) -> None:
    a, b = ef.Input("a", int), ef.Input("b", int)
    found = ef.fixpoint(lambda p, q: {"p": p.union(q), "q": q.distinct()}, p=a, q=b)
    followed(mode, ef.program(q=found["q"]), Random(1))
