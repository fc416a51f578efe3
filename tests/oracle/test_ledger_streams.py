"""The rows of the ledger about streams and operators, through a running view.

Each is shown on its own level already: of processors and operators alone. Here the same is asked of
what a user runs: a change of the engine that breaks a theorem breaks its test.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from random import Random
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.change import BAG, NATURAL, Both
from ebbflow.engine.local import run
from ebbflow.operator import Operator, count, distinct, operator_of, select, stateless, union
from ebbflow.stream import (
    by_cancelling,
    datalog,
    decompose,
    derivative,
    elementwise,
    fuse,
    identity,
    integral,
    merge,
    parallel,
    partition,
    processor_of,
    pure,
    settle,
    split_by,
)
from ebbflow.testing import follow, random_epochs
from ebbflow.zset import ZSETS, ZSet

numbers = ef.Input("numbers", int)


def present(rows: ZSet[int]) -> ZSet[int]:
    return rows.distinct()


def small(rows: ZSet[int]) -> ZSet[int]:
    return rows.filter(lambda n: n < 3)


def neighbours(there: ZSet[int], n: int, weight: int) -> tuple[ZSet[int], ZSet[tuple[int, int]]]:
    """Pairs of a number and the next one: each row meets those that are there."""
    before, after = there.weight(n - 1), there.weight(n + 1)
    made = ZSet({(n - 1, n): weight * before, (n, n + 1): weight * after})
    return there + ZSet({n: weight}), made


once = processor_of(by_cancelling(present, source=ZSETS, target=ZSETS, name="once"))
beside = elementwise(neighbours, state=ZSet(), source=ZSETS, target=ZSETS, name="beside")
keep_small = pure(small, ZSETS, ZSETS, name="small")


def changes(seed: int, epochs: int = 8) -> list[ZSet[int]]:
    """Epochs in which numbers between 0 and 5 come and go."""
    dice, there, found = Random(seed), ZSet[int](), []
    for _ in range(epochs):
        change = ZSet({
            n: dice.randint(-there.weight(n), 2) for n in dice.sample(range(6), dice.randint(0, 3))
        })  # fmt: skip
        there, found = there + change, [*found, change]
    return found


def given_changes(program: Any, epochs: list[ZSet[int]]) -> list[ZSet[Any]]:
    view = program.run()
    return [view.step(numbers=epoch) for epoch in epochs]


def paired(rows: ZSet[int]) -> ZSet[tuple[int, int]]:
    """What `beside` says of all rows, by its definition."""
    return ZSet({(n, n + 1): weight * rows.weight(n + 1) for n, weight in rows.items()})


def meant(f: Any, epochs: list[ZSet[int]]) -> list[ZSet[Any]]:
    """How a function of all rows so far changes from epoch to epoch, without any engine."""
    values = [f(rows) for rows in accumulate(epochs, initial=ZSet[int]())]
    return [after - before for before, after in pairwise(values)]


# ---- 003 ----


@pytest.mark.parametrize("one", [once, beside, keep_small >> beside], ids=repr)
def test_003_H3_a_view_of_a_processor_is_what_it_says_about_all_rows_in_any_epochs(
    one: Any,
) -> None:
    for seed in range(6):
        epochs, whole = changes(seed), ZSet[int]()
        views = [numbers.through(each).run() for each in (one, one, decompose(one))]
        for number, epoch in enumerate(epochs):
            whole += epoch
            views[0].step(numbers=epoch)
            views[2].step(numbers=epoch)
            if number == len(epochs) // 2:
                views[1].step(numbers=whole)
                halfway = whole
        views[1].step(numbers=whole - halfway)
        for view in views:
            assert view.value == one(whole)


def test_003_H4_processors_one_after_the_other_are_views_one_after_the_other() -> None:
    apart = numbers.through(once, type=int).through(beside)
    together = numbers.through(once >> beside)
    neutral = numbers.through(identity(ZSETS) >> once >> identity(ZSETS) >> beside)
    for seed in range(6):
        expected = meant(lambda rows: paired(present(rows)), changes(seed))
        for program in (apart, together, neutral):
            assert given_changes(program, changes(seed)) == expected


def test_003_H5_stages_that_are_fused_or_exchanged_with_a_filter_give_the_same_changes() -> None:
    plain = keep_small >> keep_small >> beside
    assert fuse(plain) is not plain
    apart = numbers.filter(lambda n: n < 3).through(beside)
    for seed in range(6):
        expected = meant(lambda rows: paired(small(rows)), changes(seed))
        for program in (apart, numbers.through(plain), numbers.through(fuse(plain))):
            assert given_changes(program, changes(seed)) == expected


def test_003_H6_a_value_is_the_integral_of_the_changes_and_they_its_derivative() -> None:
    for seed in range(6):
        view = numbers.through(beside).run()
        given, values = [], []
        for epoch in changes(seed):
            given.append(view.step(numbers=epoch))
            values.append(view.value)
        assert any(given)
        assert integral(ZSETS)(given) == values
        assert derivative(ZSETS)(values) == given


def test_003_H7_a_processor_in_parts_is_one_for_each_key_of_a_program() -> None:
    split = split_by(lambda n: n, ZSETS, ways=3)
    whole = numbers.through(once, type=int)
    keyed = numbers.through(once, per=lambda n: n % 3, type=int).map(lambda row: row.value)
    cut = numbers.through(partition(once, split), type=int)
    for seed in range(6):
        expected = meant(present, changes(seed))
        for program in (whole, keyed, cut):
            assert given_changes(program, changes(seed)) == expected


def test_003_H7_parts_that_belong_together_are_not_cut_apart() -> None:
    split = split_by(lambda n: n, ZSETS, ways=2)
    cut = numbers.through(split >> parallel(beside, beside) >> merge(ZSETS)).run()
    assert numbers.through(beside).run().step(numbers=[1, 2]) == ZSet.of([(1, 2)])
    assert cut.step(numbers=[1, 2]) == ZSet(), "neighbours are of different parts"


def test_003_H10_a_loop_comes_to_what_the_feedback_of_a_processor_settles_at() -> None:
    edges = ef.Input("edges", tuple[int, int])

    def grow(paths: Any) -> Any:
        longer = paths.join(edges, left_on=lambda p: p[1], right_on=lambda e: e[0],
                            select=lambda p, e: (p[0], e[1]))  # fmt: skip
        return edges.union(longer)

    def rules(given: frozenset[Any], derived: frozenset[Any]) -> frozenset[Any]:
        return given | {(a, c) for a, b in derived for b2, c in given if b == b2}

    view, live = edges.iterate(grow).run(), datalog(rules).open()
    dice, known = Random(3), frozenset[Any]()
    for _ in range(6):
        new = frozenset((dice.randint(0, 4), dice.randint(0, 4)) for _ in range(2)) - known
        known |= new
        assert view.step(edges=list(new)) == ZSet.of(settle(live, new))


# ---- 004 ----


def doubled(rows: ZSet[int]) -> ZSet[int]:
    return rows.map(lambda n: 2 * n)


def test_004_O3_a_stateless_operator_follows_changes_and_keeps_nothing() -> None:
    program = numbers.through(stateless(doubled, doubled, input=BAG, output=BAG, name="doubled"))
    for seed in range(4):
        follow(run, program, random_epochs(program, seed, 6))
    view = program.run()
    parts = [ZSet.of([1, 2]), ZSet({1: -1}), ZSet.of([3])]
    one_by_one = [view.step(numbers=part) for part in parts]
    at_once = program.run().step(numbers=sum(parts, ZSet()))
    assert sum(one_by_one, ZSet()) == at_once == ZSet.of([4, 6])
    (stage,) = [each for each in view._program.machine.stages if each.label == "through"]
    (state,) = stage.containers[0].everything().values()
    assert state == (2, None), "how many rows there are, and no more"


class Seen(Operator[Any, Any, Any, Any]):
    """Hands on what it is given, and writes down each change that it is asked to take."""

    input = output = BAG

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def f(self, x: Any) -> Any:
        return x

    def init(self, x: Any) -> None:
        return None

    def step(self, state: None, change: Any) -> tuple[None, Any]:
        self.asked.append(change)
        return None, change

    def __deepcopy__(self, memo: Any) -> Seen:
        return self


def test_004_O9_a_network_in_a_program_computes_what_feeds_several_operators_once() -> None:
    watched = Seen()
    even = select(lambda n: n % 2 == 0)
    network = watched >> (distinct() & even) >> union() >> count()
    assert (distinct() & even).open(ZSet.of([1])).send(ZSet.of([2])) == Both(*[ZSet.of([2])] * 2)
    program = numbers.through(network, type=int)
    view = program.run()
    assert view.step(numbers=[1, 2, 2]) == ZSet.of([(4,)])
    watched.asked.clear()
    assert view.step(numbers={2: -1, 3: 1}) == ZSet()
    assert watched.asked == [ZSet({2: -1, 3: 1})]
    for seed in range(4):
        follow(run, program, [{"numbers": epoch} for epoch in changes(seed)])


def test_004_O9_operators_and_processors_in_one_network_give_what_both_compute() -> None:
    mixed = once >> (select(lambda n: n > 1) & keep_small) >> operator_of(merge(ZSETS)) >> count()
    program = numbers.through(mixed, type=int)
    assert mixed.output == NATURAL
    for seed in range(4):
        follow(run, program, [{"numbers": epoch} for epoch in changes(seed)])
