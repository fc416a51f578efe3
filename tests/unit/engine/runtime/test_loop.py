"""What a loop keeps: the differences that Möbius inversion gives, one for each version."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.algebra import NATURALS, Stream, delta, loop_differences, order_product
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.stage import nested
from ebbflow.zset import ZSETS, ZSet


class Stop(NamedTuple):
    node: int


class Line(NamedTuple):
    source: int
    target: int


ROUNDS = 3
HOME, LINES, BOATS = ef.Input("home", Stop), ef.Input("lines", Line), ef.Input("boats", Line)
START = ZSet.of([Stop(0)])


def onward(stops: ef.Collection, by: ef.Collection) -> ef.Collection:
    return stops.join(
        by, left_on="node", right_on="source", select=lambda stop, line: Stop(line.target)
    )


def one_line_more(stops: ef.Collection) -> ef.Collection:
    return stops.union(onward(stops, LINES))


def moved_on(stops: ZSet[Stop], lines: ZSet[Line]) -> ZSet[Stop]:
    """The same over bags that stand still."""
    further = [
        (Stop(line.target), n * m)
        for stop, n in stops.items()
        for line, m in lines.items()
        if line.source == stop.node
    ]
    return (stops + ZSet(further)).distinct()


def by_line(stops: ZSet[Stop], rounds: int, lines: ZSet[Line]) -> ZSet[Stop]:
    for _ in range(rounds):
        stops = moved_on(stops, lines)
    return stops


def epochs(seed: int) -> Iterator[ZSet[Line]]:
    """Changes of lines: some come, some of those that are there go."""
    choice = random.Random(seed)
    there: set[Line] = set()
    for _ in range(4):
        new = {Line(choice.randrange(5), choice.randrange(5)) for _ in range(3)} - there
        gone = set(choice.sample(sorted(there), min(len(there), 2)))
        there = (there | new) - gone
        yield ZSet.of(new) - ZSet.of(gone)


def kept(view: Any, depth: int) -> dict[tuple[Any, Stop], int]:
    """The differences of the variable that a join in a loop reads, as the engine holds them."""
    stages = [stage for stage, at in nested(view._program.machine.stages) if at == depth]
    (join,) = (stage for stage in stages if stage.label == "join")
    groups = join.left.index.groups  # type: ignore[attr-defined]
    return {at: n for rows in groups.values() for at, n in rows.items()}


def by_formula(differences: Stream[Any, Any], epoch: int, versions: Any) -> dict[Any, int]:
    """The differences up to an epoch, those of all epochs added up, by version and row."""
    found: dict[Any, int] = {}
    for version in versions:
        total = sum((differences[each, *version] for each in range(epoch + 1)), ZSet())
        found |= {(version, row): n for row, n in total.items()}
    return found


@pytest.mark.parametrize("seed", range(10))
def test_002_D6_a_loop_keeps_the_differences_that_mobius_inversion_gives(seed: int) -> None:
    view = HOME.iterate(one_line_more, rounds=ROUNDS).run()
    view.step(home=START)
    lines = [ZSet[Line]()]

    def value(version: tuple[int, ...]) -> ZSet[Stop]:
        epoch, number = version
        return by_line(START, number, lines[epoch])

    differences = delta(Stream(order_product(NATURALS, NATURALS), ZSETS, value))
    rounds = [(number,) for number in range(ROUNDS)]
    for epoch, change in enumerate(epochs(seed), 1):
        lines.append(lines[-1] + change)
        view.step(lines=change)
        assert kept(view, 1) == by_formula(differences, epoch, rounds)
        alone = loop_differences(partial(moved_on, lines=lines[-1]), START, ZSETS)
        assert kept(view, 1) == {((i,), row): n for (i,) in rounds for row, n in alone[i].items()}


@pytest.mark.parametrize("seed", range(5))
def test_002_D6_a_loop_in_a_loop_keeps_differences_by_both_rounds(seed: int) -> None:
    """A round of the outer loop goes by line, for some rounds, and then by boat."""
    view = HOME.iterate(
        lambda places: places.union(onward(places.iterate(one_line_more, rounds=ROUNDS), BOATS)),
        rounds=2,
    ).run()
    boats = ZSet.of([Line(1, 2), Line(3, 4), Line(4, 0)])
    view.step(home=START, boats=boats)
    lines = [ZSet[Line]()]

    def value(version: tuple[int, ...]) -> ZSet[Stop]:
        epoch, outer, inner = version
        found = START
        for _ in range(outer):
            gone = by_line(found, ROUNDS, lines[epoch])
            landed = [Stop(boat.target) for boat in boats if Stop(boat.source) in gone]
            found = (found + ZSet.of(landed)).distinct()
        return by_line(found, inner, lines[epoch])

    differences = delta(Stream(order_product(NATURALS, NATURALS, NATURALS), ZSETS, value))
    rounds = list(product(range(2), range(ROUNDS)))
    for epoch, change in enumerate(epochs(seed), 1):
        lines.append(lines[-1] + change)
        view.step(lines=change)
        assert kept(view, 2) == by_formula(differences, epoch, rounds)
        assert view.verify().epoch == epoch + 1


# ---- lazy rounds ----


class Way(NamedTuple):
    source: int
    target: int
    line: str


class Slope(NamedTuple):
    source: int
    target: float


WAYS, SLOPES = ef.Input("ways", Way), ef.Input("slopes", Slope)


def reached(by: ef.Collection, select: Any) -> ef.Collection:
    """The stops that are reached from home."""
    return HOME.iterate(
        lambda stops: stops.union(stops.join(by, left_on="node", right_on="source", select=select))
    )


def field_kept(loop: ef.Collection, stored: bool) -> str:
    """What the loop of a program keeps of the rows that it joins with; "" for all of it."""
    stages: list[Any] = Machine(loop.plan, stored=stored).stages
    (term,) = [term for each in stages if each.looping for term in each.terms]
    return "" if term.rest is None else term.rest.text


def test_of_rows_with_one_field_besides_their_key_a_lazy_loop_keeps_that_field() -> None:
    lines = reached(LINES, lambda stop, line: Stop(line.target))
    assert field_kept(lines, stored=False) == "target"
    assert field_kept(lines, stored=True) == ""
    view = lines.run()
    view.step(home=[Stop(0)], lines={Line(0, 1): 2, Line(1, 0): 1})
    (loop,) = [each for each in view._program.machine.stages if each.looping]
    assert loop.terms[0].theirs.groups == {0: {1: 2}, 1: {0: 1}}
    view.step(lines={Line(0, 1): -1})
    assert loop.terms[0].theirs.groups == {0: {1: 1}, 1: {0: 1}}


WHOLE = {
    "the key is read too": reached(LINES, lambda stop, line: Stop(line.source + line.target)),
    "another field": reached(WAYS, lambda stop, way: Stop(way.target)),
    "a float": reached(SLOPES, lambda stop, slope: Stop(int(slope.target))),
    "nothing is read": reached(LINES, lambda stop, line: Stop(stop.node)),
}


@pytest.mark.parametrize("why", WHOLE)
def test_other_rows_are_kept_whole(why: str) -> None:
    assert field_kept(WHOLE[why], stored=False) == ""
