"""State with versions, by itself."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ebbflow.algebra.order import NATURALS, order_product
from ebbflow.engine.runtime.versions import (
    VersionedIndex,
    comparing,
    joining,
    splitting,
)
from ebbflow.flow.plan import Source


def test_differences_that_cancel_where_they_meet_are_not_met() -> None:
    index = VersionedIndex(None, 1, False, Source(name="rows"))
    index.add((0,), {"key": [("row", 1), ("other", 1)]})
    index.add((1,), {"key": [("row", -1)]})
    assert dict(index.meeting(["key"], (0,))) == {
        (0,): {"key": {"row": 1, "other": 1}},
        (1,): {"key": {"row": -1}},
    }
    assert dict(index.meeting(["key"], (2,))) == {(2,): {"key": {"other": 1}}}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_versions_are_ordered_as_the_product_of_rounds_is(depth: int) -> None:
    order, dice = order_product(*[NATURALS] * depth), Random(depth)
    for _ in range(200):
        a, b = (tuple(dice.randrange(4) for _ in range(depth)) for _ in "ab")
        assert comparing(depth)(a, b) == order.leq(a, b)
        assert joining(depth)(a, b) == order.join(a, b)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_sums_that_are_kept_are_those_that_adding_up_gives(depth: int) -> None:
    """Versions are visited in the order of a loop; differences come where it is, before a key is
    looked at or behind, and some are there from epochs before."""
    dice = Random(depth)
    for _ in range(100):
        index = VersionedIndex(None, depth, False, Source(name="rows"))

        def pairs() -> list[Any]:
            return [(row, dice.choice([-1, 1])) for row in dice.sample("abcdef", 4)]

        versions = sorted({tuple(dice.randrange(4) for _ in range(depth)) for _ in range(9)})
        for version in dice.sample(versions, len(versions) // 2):
            index.add(version, {"key": pairs()})
        for version in versions:
            if dice.random() < 0.6:
                index.add(version, {"key": pairs()})
            expected = splitting(depth)(index.index.groups.get("key", {}), version)
            rows, later = index.at("key", version)
            assert (rows, {at: each for at, each in later.items() if each}) == expected
            if dice.random() < 0.4:
                index.add(version, {"key": pairs()})
