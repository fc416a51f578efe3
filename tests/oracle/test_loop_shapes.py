"""Loops that someone thought of, against batch: lazy and by versions, on random changes."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.loop_shapes import SHAPES, Edge, Far, Road, built, roots
from tests.oracle.looped import loop_stages, run_exactly

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.lazy import LazyLoopStage
from ebbflow.testing import follow, random_epochs
from ebbflow.zset import ZSet

pytestmark = pytest.mark.filterwarnings("ignore::ebbflow.errors.MayNotEnd")
LAZY = [*SHAPES][: [*SHAPES].index("floats_that_may_be_infinite")]


def compared(name: str, way: Any, seeds: range) -> None:
    program = built(name)
    for seed in seeds:
        follow(way, program, random_epochs(program, Random(f"{name} {seed}"), 8, size=6))


@pytest.mark.parametrize("name", SHAPES)
def test_oracle_a_loop_of_this_shape_equals_batch(name: str) -> None:
    compared(name, run, range(2))
    compared(name, run_exactly, range(2, 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_oracle_a_loop_of_this_shape_equals_batch_often(name: str) -> None:
    compared(name, run, range(24))
    compared(name, run_exactly, range(24))


def test_a_limit_is_seen_also_where_a_fact_is_held_by_one_of_its_own_round() -> None:
    start = {(3, 1): 1, (3, 0): 1, (1, -1): 1, (0, -1): 1, (0, 2): 1, (-1, 2): 1, (0, 1): 1}
    longer = {(1, 1): 1, (3, 0): -1, (1, 0): 1, (0, -1): -1}
    epochs = [{(3, 1): 1, (3, 0): 1}, {(1, -1): 1}]
    epochs += [{edge: n for edge, n in start.items() if not any(edge in each for each in epochs)}]
    changes = [
        {"edges": ZSet({Edge(*edge): n for edge, n in each.items()})} for each in [*epochs, longer]
    ]
    follow(run, built("a_limit_that_is_just_reached"), changes)


@pytest.mark.parametrize("name", SHAPES)
def test_a_loop_of_this_shape_is_lazy_or_not(name: str) -> None:
    stages = loop_stages(run(built(name).plan))
    lazy = name in LAZY and name != "nothing_but_constants"
    assert {isinstance(stage, LazyLoopStage) for stage in stages} == {lazy}


# ---- values that are not as they seem ----


class Price(NamedTuple):
    a: int
    d: Decimal


class Cost(NamedTuple):
    a: int
    b: int
    d: Decimal


def test_a_decimal_that_is_rounded_down_does_not_go_round_for_ever() -> None:
    costs = ef.Input("costs", Cost).filter(lambda cost: cost.d >= 0)
    cheapest = ef.Input("prices", Price).iterate(
        lambda x: (
            x + x.join(costs, on="a", select=lambda a, b: Price(b.b, a.d + b.d))
        ).group_by("a").agg(d=ef.min("d"))
    )  # fmt: skip
    long = Decimal("1234567890123456789012345678901234567890.5")
    follow(run, cheapest, [
        {"prices": ZSet.of([Price(1, long)]), "costs": ZSet.of([Cost(1, 1, Decimal(0))])},
        {"costs": ZSet.of([Cost(1, 2, Decimal("0.5"))])},
        {"costs": ZSet({Cost(1, 1, Decimal(0)): -1})},
    ])  # fmt: skip


class Reading(NamedTuple):
    a: int
    x: float


class Wire(NamedTuple):
    a: int
    b: int
    x: float


@pytest.mark.parametrize("greatest", [False, True], ids=["least", "greatest"])
def test_infinities_and_nan_that_make_a_value_better_do_not_go_round_for_ever(
    greatest: bool,
) -> None:
    wires = ef.Input("wires", Wire).filter(lambda wire: wire.x >= 0.0)
    best, made = ef.min, lambda a, b: Reading(b.b, max(b.x, a.x))
    if greatest:
        best, made = ef.max, lambda a, b: Reading(b.b, a.x - b.x)
    program = ef.Input("readings", Reading).iterate(
        lambda x: (x + x.join(wires, on="a", select=made)).group_by("a").agg(x=best("x"))
    )
    inf, nan = float("inf"), float("nan")
    follow(run, program, [
        {"readings": ZSet.of([Reading(1, inf), Reading(2, nan)])},
        {"wires": ZSet.of([Wire(1, 1, inf), Wire(2, 2, 1.0), Wire(2, 1, 0.5)])},
        {"wires": ZSet({Wire(1, 1, inf): -1})},
        {"readings": ZSet({Reading(2, nan): -1})},
    ])  # fmt: skip


def test_a_bottleneck_is_known_in_the_round_in_which_it_is_found() -> None:
    """Node 3 has 7 in round 1 from a start that is not the best, and the best of the node before it
    comes only in round 2: three rounds are enough."""
    roads = ef.Input("roads", Road).filter(lambda road: road.d >= 0)
    for limit in range(1, 6):
        narrow = ef.Input("starts", Far).iterate(
            lambda x: (
                x + x.join(roads, on="a", select=lambda a, b: Far(b.b, max(a.d, b.d)))
            ).group_by("a").agg(d=ef.min("d")),
            limit=limit,
        )  # fmt: skip
        follow(run, narrow, [{
            "starts": ZSet.of([Far(2, 5), Far(0, 1)]),
            "roads": ZSet.of([Road(0, 1, 2), Road(1, 2, 3), Road(2, 3, 7)]),
        }])  # fmt: skip


def test_a_start_with_a_row_twice_needs_a_round_to_have_it_once() -> None:
    for limit in (1, 2):
        program = roots.iterate(lambda x: x.union(x.filter(lambda n: n > 9)), limit=limit)
        follow(run, program, [{"roots": ZSet.of([1])}, {"roots": ZSet({1: 1})}])


def test_002_D10_deleting_an_edge_of_a_cycle_that_nothing_else_reaches_removes_the_cycle() -> None:
    ring = [Edge(0, 1), Edge(1, 2), Edge(2, 3), Edge(3, 1)]
    for way in (run, run_exactly):
        view = way(SHAPES["reachability"]().plan)
        view.step(roots=[0], edges=ring)
        assert view.value == ZSet.of([0, 1, 2, 3])
        assert view.step(edges={Edge(0, 1): -1}) == ZSet({1: -1, 2: -1, 3: -1})
