"""The example programs with loops, beside networkx and plain Python, change by change.

What they must give is written without ebbflow, in `loop_references.py`. After every epoch of random
insertions and deletions a view must have exactly those rows, each once.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from tests.docs.test_examples import MODULES
from tests.oracle import loop_references
from tests.oracle.loop_inputs import INPUTS, History

import ebbflow as ef

each_program = pytest.mark.parametrize("name", INPUTS)
FIRST = 20
"""Up to so many rows come in the first epoch; then up to MOST in each."""
MOST = 4


def compare(name: str, view: Any, history: History) -> None:
    """A view has the rows that the reference has, and each once."""
    expected = getattr(loop_references, name)({n: set(r) for n, r in history.there.items()})
    for output, rows in expected.items():
        assert view[output].value == ef.ZSet.of(rows), output


def follow(name: str, view: Any, history: History, steps: int) -> None:
    for _ in range(steps):
        view.step(history.change(MOST))
        compare(name, view, history)


def through(name: str, seed: int, size: int, steps: int) -> None:
    """A program through random epochs; what is there at the end is the same if all of it comes at
    once; and when everything goes, nothing is left."""
    program, history = MODULES[name].program, History(name, MODULES[name], seed, size)
    view = program.run()
    view.step(history.change(FIRST))
    follow(name, view, history, steps)
    view.verify()
    everything = {each: ef.ZSet(rows) for each, rows in history.there.items()}
    at_once = program.run()
    at_once.step(everything)
    assert at_once.value == view.value
    view.step({each: -rows for each, rows in everything.items()})
    assert not any(view.value.values())


@each_program
@pytest.mark.parametrize("seed", range(3))
def test_oracle_a_program_equals_its_reference(name: str, seed: int) -> None:
    through(name, seed, size=6 + 2 * seed, steps=20)


@pytest.mark.slow
@each_program
def test_oracle_a_program_equals_its_reference_often(name: str) -> None:
    for seed in range(100, 125):
        through(name, seed, size=Random(seed).choice([4, 8, 12, 20]), steps=40)


@pytest.mark.slow
@each_program
def test_oracle_a_large_program_equals_its_reference(name: str) -> None:
    for seed in range(200, 203):
        through(name, seed, size=60, steps=100)


@each_program
def test_oracle_a_durable_program_equals_its_reference(name: str, tmp_path: Path) -> None:
    program, history = MODULES[name].program, History(name, MODULES[name], 1, 8)
    with program.run(path=tmp_path / "state") as view:
        view.step(history.change(FIRST))
        follow(name, view, history, 5)
    with program.run(path=tmp_path / "state") as view:
        compare(name, view, history)
        follow(name, view, history, 5)
        view.verify()


@pytest.mark.slow
@each_program
def test_oracle_a_program_with_little_memory_equals_its_reference(
    name: str, tmp_path: Path
) -> None:
    program, history = MODULES[name].program, History(name, MODULES[name], 2, 8)
    for _ in range(3):
        with program.run(path=tmp_path / "state", memory=2000) as view:
            compare(name, view, history)
            view.step(history.change(FIRST))
            follow(name, view, history, 5)


def test_page_rank_in_whole_numbers_is_close_to_page_rank() -> None:
    module, dice = MODULES["page_rank"], Random(5)
    pages = [f"page {at}" for at in range(12)]
    links = {module.Link(page, to) for page in pages for to in dice.sample(pages, 3) if page != to}
    view = module.ranked(60).run()
    view.step(links=links)
    steps = nx.google_matrix(nx.DiGraph(list(links)), nodelist=pages, alpha=0.85)
    exact = dict(zip(pages, np.linalg.matrix_power(steps, 500)[0], strict=True))
    for page, rank in view.value:
        assert rank / module.ONE == pytest.approx(exact[page] * len(pages), abs=1e-4)


def test_a_cycle_that_is_cut_off_is_gone_as_a_whole() -> None:
    module = MODULES["power_grid"]
    ring = [module.Line(f"t{at}", f"t{(at + 1) % 50}") for at in range(50)]
    cable = module.Line("dam", "t0")
    view = module.program.run()
    view.step(plants=[module.Town("dam")], lines=[cable, *ring])
    assert len(view["powered"].value) == 51
    gone = view.input("lines").remove(cable)["powered"]
    assert gone == -ef.ZSet.of(module.Town(line.source) for line in ring)
