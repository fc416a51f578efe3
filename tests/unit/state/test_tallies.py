"""Counts that are changed in place go back to what they were, wherever a step is cut short."""

from __future__ import annotations

from copy import deepcopy
from itertools import count
from random import Random

import pytest
from tests.oracle.interrupts import interrupted

from ebbflow.errors import NotDeterministic
from ebbflow.state.cells import ABSENT
from ebbflow.state.tallies import Tallies

KEYS, THINGS = "abcd", range(4)


def filled(dice: Random) -> Tallies[str, int]:
    there = {key: {at: dice.randint(1, 3) for at in THINGS if dice.random() < 0.6} for key in KEYS}
    return Tallies({key: table for key, table in there.items() if table})


def changed(tallies: Tallies[str, int], dice: Random) -> list[tuple[str, int, int]]:
    """Counts that come or go, none of them too often."""
    now, found = deepcopy(tallies.values), []
    for _ in range(dice.randrange(8)):
        key, at = dice.choice(KEYS), dice.choice(THINGS)
        there = now.setdefault(key, {}).get(at, 0)
        more = dice.choice([each for each in range(-there, 3) if each])
        now[key][at] = there + more
        found.append((key, at, more))
    return found


def step(tallies: Tallies[str, int], dice: Random) -> None:
    """Anything that may be done in a step."""
    match dice.randrange(4):
        case 0:
            tallies.keep(lambda at: at % 2 == 0)
        case 1:
            off = [(k, at, n) for k, t in tallies.values.items() for at, n in t.items()]
            tallies.discount(dice.sample(off, len(off) // 2))
        case _:
            tallies.count(changed(tallies, dice))
    if dice.random() < 0.5:
        tallies.drop_empty()


@pytest.mark.parametrize("seed", range(100))
def test_the_counts_of_an_epoch_are_taken_back(seed: int) -> None:
    dice = Random(seed)
    tallies: Tallies[str, int] = filled(dice) if seed % 4 else Tallies()
    before = deepcopy(tallies.values)
    tallies.begin()
    for _ in range(dice.randrange(5)):
        step(tallies, dice)
    tallies.drop_empty()
    old, written = tallies.before(), tallies.written()
    for key in KEYS:
        assert old.get(key, before.get(key, ABSENT)) == before.get(key, ABSENT)
        assert written.get(key, before.get(key, ABSENT)) == tallies.values.get(key, ABSENT)
    apart = {key: tallies.apart(table) for key, table in tallies.values.items()}
    tallies.rollback()
    assert tallies.values == before
    for table in apart.values():
        table.clear()
    assert tallies.values == before


def test_a_step_that_is_interrupted_anywhere_is_taken_back() -> None:
    there = {"a": {1: 2, 2: 1}, "b": {1: 1}}
    some = [("a", 1, -2), ("b", 1, 1), ("c", 1, 1), ("c", 1, -1)]

    def step() -> None:
        tallies.count(some)
        tallies.discount([("b", 1, 2), ("a", 2, 1)])
        tallies.count([("a", 4, 1), ("d", 3, 1)])
        tallies.keep(lambda at: at > 3)
        tallies.count([("d", 3, 2), ("e", 3, 1)])
        tallies.drop_empty()

    for held in (there, {}):
        tallies: Tallies[str, int] = Tallies(deepcopy(held))
        if not held:
            some[:] = [("a", 2, 1), ("b", 1, 2)]
        for point in count(1):
            tallies.begin()
            hit = interrupted(step, point, published=False)
            tallies.rollback()
            assert tallies.values == held, point
            if not hit:
                break
        assert point > 100


def test_what_is_lost_is_said_and_what_is_not_there_is_refused() -> None:
    tallies: Tallies[str, int] = Tallies({"a": {1: 2}, "b": {1: 1}})
    tallies.begin()
    assert tallies.discount([("a", 1, 1), ("b", 1, 1)]) == [("b", 1)]
    assert tallies.count([("a", 1, -1), ("b", 2, 1)]) == [("a", 1)]
    for more in ([("b", 3, 1), ("b", 2, -2)], [("c", 1, -1)]):
        with pytest.raises(NotDeterministic):
            tallies.count(more)
    for less in (("c", 1, 1), ("b", 2, 2), ("b", 4, 1)):
        with pytest.raises(NotDeterministic):
            tallies.discount([less])
    tallies.drop_empty()
    assert "a" not in tallies.values
    tallies.rollback()
    assert tallies.values == {"a": {1: 2}, "b": {1: 1}}
    tallies.begin()
    tallies.count([("a", 1, 1)])
    tallies.commit()
    assert tallies.values["a"] == {1: 3}
