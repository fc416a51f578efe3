"""The first rows of a key are those from scratch, whatever their places are."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from ebbflow.errors import NotDeterministic
from ebbflow.operator.top import Element, top_rows
from ebbflow.zset import ZSet

PLACES: dict[str, tuple[Any, ...]] = {
    "numbers": (0, 1, 2, 2.0, -1, 0.5),
    "hard": (None, math.nan, math.inf, 0, -0.0, "a", True),
    "texts": ("a", "b", "", "aa"),
    "tuples": ((1, None), (1, "a"), (2, 0), (2,), (), (math.nan, 1)),
}


def place_of(row: tuple[int, Any, int]) -> Any:
    return row[1]


def key_of(row: tuple[int, Any, int]) -> int:
    return row[0]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("kind", PLACES)
def test_the_first_rows_follow_every_change(kind: str, smallest: bool, n: int) -> None:
    for seed in range(8):
        random = Random(seed)
        of = top_rows(n, place_of, key_of, smallest=smallest)
        state, rows, out = of.init(ZSet()), ZSet[Any](), ZSet[Any]()
        for step in range(15):
            change: dict[Any, int] = {}
            for row, count in rows.items():
                if step == 14 or random.random() < 0.35:
                    change[row] = -count if step == 14 else -random.randint(1, count)
            for _ in range(random.randrange(5) if step < 14 else 0):
                row = (random.randrange(2), random.choice(PLACES[kind]), random.randrange(3))
                change[row] = change.get(row, 0) + 1
            delta = ZSet(change)
            _, moved = of.step(state, delta)
            rows, out = rows + delta, out + moved
            assert out == of.f(rows)
            assert of.invariant(rows, state)
            assert of.read(state) == dict(out.items())
        assert not out


def test_one_row_is_held_until_it_goes() -> None:
    of = top_rows(1, place_of, key_of)
    state = of.init(ZSet.of([(0, place, 0) for place in range(5)]))
    held = state[1].values
    assert held == {0: (4, (0, 4, 0))}
    assert type(held[0]) is Element
    of.step(state, ZSet({(0, 2, 0): -1, (0, 7, 0): 1}))
    assert type(held[0]) is Element
    of.step(state, ZSet({(0, 7, 0): -1}))
    assert type(held[0]) is not Element
    assert of.read(state) == {(0, 4, 0): 1}


def test_a_place_that_is_another_when_a_row_goes_is_an_error() -> None:
    places = iter([3, 1, 5])
    of = top_rows(1, lambda row: next(places))
    state = of.init(ZSet.of(["a", "b"]))
    with pytest.raises(NotDeterministic, match="its place in the order is another"):
        of.step(state, ZSet({"a": -1}))
