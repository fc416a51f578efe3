"""Operators on two bags whose rows meet by their places: the axioms, and long runs of changes."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import cloudpickle
import pytest

from ebbflow.change import Both, First, Second
from ebbflow.laws import check
from ebbflow.nan import NAN
from ebbflow.operator.asof import DIRECTIONS, asof_join
from ebbflow.operator.interval import interval_join, interval_semi
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet


def second(row: Any) -> Any:
    return row[1]


def first(row: Any) -> Any:
    return row[0]


def itself(x: Any) -> Any:
    return x


OPERATORS = {
    **{f"asof {way}": asof_join(itself, direction=way) for way in DIRECTIONS},
    "asof near": asof_join(itself, direction="nearest", tolerance=2, exact=False, alone=None),
    "interval": interval_join(itself, itself, -1, 2),
    "interval semi": interval_semi(itself, itself, -1, 2),
    "interval anti": interval_semi(itself, itself, 1, 1, anti=True),
}


@pytest.mark.parametrize("name", ["asof near", "interval"])
def test_operators_on_places_fulfil_every_axiom(name: str) -> None:
    check(OPERATORS[name], examples=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_on_places_fulfils_every_axiom(name: str) -> None:
    check(OPERATORS[name], examples=15)


def followed(of: Any, seed: object, span: int, nones: bool, epochs: int = 12) -> None:
    """Random rows of both sides come and go; after each change the output is that from scratch.
    Half-way the operator goes through a pickle."""
    dice = Random(f"{of!r} {seed}")

    def row() -> Any:
        place = None if nones and dice.random() < 0.1 else dice.randrange(span)
        return dice.randrange(2), place, dice.randrange(2)

    x = ZSet.of([row() for _ in range(30)]), ZSet.of([row() for _ in range(9)])
    live, y = of.open(x), of.f(x)
    for number in range(epochs):
        if number == epochs // 2:
            of = cloudpickle.loads(cloudpickle.dumps(of))
        change = tuple(_change(dice, side, row) for side in x)
        x = x[0] + change[0], x[1] + change[1]
        y = y + live.send(Both(*change))
        assert y == of.f(x)
        assert of.invariant(x, live.state)


def _change(dice: Random, side: Any, row: Any) -> Any:
    gone = dice.sample(sorted(side, key=repr), min(dice.randrange(3), len(list(side))))
    out = {each: -dice.randint(1, side.weight(each)) for each in gone}
    return ZSet(out) + ZSet.of([row() for _ in range(dice.randrange(3))])


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_as_of_joins_follow_late_and_withdrawn_rows_of_both_sides(direction: str) -> None:
    for tolerance, exact, keyed, span in product((None, 1, 3), (True, False), (0, 1), (6, 40)):
        of = asof_join(
            second, None, first if keyed else None, direction=direction, tolerance=tolerance,
            exact=exact, alone=None if keyed else itself,
        )  # fmt: skip
        followed(of, (tolerance, exact, keyed), span, nones=exact)


PLACES: dict[str, list[Any]] = {
    "few": list(range(5)),
    "many": list(range(60)),
    "none": [None, None, *range(8)],
    "none alone": [None],
    "floats": [0.0, -0.0, 1.5, float("inf"), float("-inf"), NAN, True, 2**63 - 1, -(2**63)],
    "texts": ["", "a", "b", "\x00", "é"],
    "mixed": [None, 1, "a", 2.5, (1, 2), (1, None), NAN, b"", frozenset()],
    "tuples": [(1, None), (1, 2), (1, "a"), (2,), ()],
}


def one_by_one(of: Any, places: list[Any], seed: object, width: int, epochs: int = 40) -> None:
    """One row of one side comes or goes at a time, once or several times at once; after each the
    output is that from scratch. The nodes of the trees hold `width` rows."""
    dice = Random(f"{of!r} {of.exact} {seed}")
    of.left_empty = Tree(key=of.left_place, width=width)
    of.right_empty = Tree(key=of.right_place, width=width)

    def row() -> Any:
        return dice.randrange(2), dice.choice(places), dice.randrange(3)

    sides = [ZSet.of([row() for _ in range(size)]) for size in (40, 25)]
    live, y = of.open(tuple(sides)), of.f(tuple(sides))
    for _ in range(epochs):
        at = dice.choice((0, 1, 1))
        there = sorted(sides[at], key=repr)
        if there and dice.random() < 0.5:
            gone = dice.choice(there)
            change = ZSet({gone: -dice.randint(1, sides[at].weight(gone))})
        else:
            change = ZSet({row(): dice.choice((1, 1, 2))})
        sides[at] = sides[at] + change
        found = live.send((First, Second)[at](change))
        assert all(weight for _, weight in found.items())
        y = y + found
        assert y == of.f(tuple(sides))
    assert of.invariant(tuple(sides), live.state)


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("direction", DIRECTIONS[:2])
def test_as_of_joins_follow_one_row_at_a_time(direction: str, places: str) -> None:
    for exact, keyed, width in product((True, False), (0, 1), (4, 64)):
        of = asof_join(
            second, None, first if keyed else None, direction=direction, exact=exact,
            alone=None if keyed else itself,
        )  # fmt: skip
        one_by_one(of, PLACES[places], (keyed, width), width)


@pytest.mark.parametrize("options", [{"direction": "nearest"}, {"tolerance": 3}], ids=str)
def test_as_of_joins_that_measure_distances_follow_one_row_at_a_time(options: Any) -> None:
    for exact, places in product((True, False), ("few", "many", "none")):
        of = asof_join(second, None, first, exact=exact, **options)
        one_by_one(of, PLACES[places], places, 4)


@pytest.mark.parametrize("ends", [(0, 2), (-3, 3), (2, 2), (-5, -1)], ids=str)
def test_interval_joins_follow_late_and_withdrawn_rows_of_both_sides(ends: Any) -> None:
    followed(interval_join(second, second, *ends, first), ends, 12, nones=True)
    for anti in (False, True):
        followed(interval_semi(second, second, *ends, first, anti=anti), ends, 12, nones=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_many_changes_at_once_go_through_all_rows_of_a_key(name: str) -> None:
    dice, of = Random(name), OPERATORS[name]
    x: Any = ZSet(), ZSet()
    live, y = of.open(x), of.f(x)
    for _ in range(8):
        change = []
        for side in x:
            gone = [each for each in side if dice.random() < 0.4]
            new = dice.choices(range(150), k=dice.choice([0, 40, 70]))
            change.append(ZSet.of(new) - ZSet.of(gone))
        x = x[0] + change[0], x[1] + change[1]
        y = y + live.send(Both(*change))
        assert y == of.f(x)


def test_places_of_any_types_are_in_one_order() -> None:
    rows = [(0, place, 0) for place in (1, "a", 2.5, None, (1, 2), "b")]
    of = asof_join(second, None, first)
    live, x = of.open((ZSet(), ZSet())), (ZSet[Any](), ZSet[Any]())
    y = of.f(x)
    for each in rows:
        change = ZSet.of([each]), ZSet.of([each])
        x = x[0] + change[0], x[1] + change[1]
        y = y + live.send(Both(*change))
        assert y == of.f(x)
