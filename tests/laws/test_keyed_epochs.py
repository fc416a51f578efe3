"""Keyed operators in epochs that fail at any call: the state is what it was."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import cloudpickle
import pytest
from tests.laws.keyed_operators import (
    EVERY,
    TWO,
    both,
    itself,
    listed,
    random_change,
    third,
)

from ebbflow.change import First
from ebbflow.errors import AbsentRow, ChangeError, NotDeterministic
from ebbflow.fn import Fn
from ebbflow.operator import (
    distinct,
    per_key,
)
from ebbflow.operator.operator import journalled
from ebbflow.reducer import Reducer, median
from ebbflow.reducer import count as how_many
from ebbflow.reducer import sum as total
from ebbflow.reducer.running import ReduceByKey
from ebbflow.state.cells import Cells
from ebbflow.zset import ZSet


class Boom(Exception):
    """What a user's function raises."""


class Fuse:
    """Wraps functions; together they raise at one call that is chosen before."""

    def __init__(self) -> None:
        self.left = -1
        self.calls = 0

    def __call__(self, f: Callable[..., Any]) -> Any:
        return Fused(self, f)

    def light(self, left: int) -> None:
        self.left, self.calls = left, 0

    def burn(self) -> None:
        self.calls += 1
        if self.calls - 1 == self.left:
            raise Boom


class Fused:
    def __init__(self, fuse: Fuse, f: Callable[..., Any]) -> None:
        self.fuse, self.f = fuse, f

    def __call__(self, *arguments: Any) -> Any:
        self.fuse.burn()
        return self.f(*arguments)


def copied(state: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(state))


def held(state: Any) -> Iterator[Any]:
    """All containers, also those in the cells of others."""
    for container in journalled(state):
        yield container
        for value in container.values.values() if isinstance(container, Cells) else ():
            yield from held(value)


def test_the_operators_here_call_what_they_are_given() -> None:
    quiet = set()
    for name, make in EVERY.items():
        fuse = Fuse()
        of = make(fuse)
        x = ZSet.of(range(12))
        of.open((x, x) if both(of) else x)
        if not fuse.calls:
            quiet.add(name)
    assert quiet <= {"distinct", "no steps", "steps", *[name for name in TWO if "join" not in name]}


@pytest.mark.parametrize("name", EVERY)
def test_whichever_call_raises_the_state_is_what_it_was(name: str) -> None:
    fuse = Fuse()
    of = EVERY[name](fuse)
    random = Random(10)
    rows = list(range(24))
    start = ZSet.of(random.choices(rows, k=14))
    x: Any = (start, start) if both(of) else start
    live, y = of.open(x), of.f(x)
    for _ in range(4):
        change = random_change(x, rows, random)
        before = copied(live.state)
        fuse.light(-1)
        of.step(copied(live.state), change)
        calls = fuse.calls
        for k in sorted(random.sample(range(calls), min(calls, 12))):
            fuse.light(k)
            with pytest.raises(Boom):
                live.send(change)
            assert live.state == before
            assert all(container.journal is None for container in held(live.state))
        fuse.light(-1)
        moved = live.send(change)
        x, y = of.input.patch(x, change), of.output.patch(y, moved)
        assert y == of.f(x)
        assert of.invariant(x, live.state)
        assert all(container.journal is None for container in held(live.state))


@pytest.mark.parametrize("name", EVERY)
def test_an_epoch_of_several_steps_is_undone_as_a_whole(name: str) -> None:
    of = EVERY[name](itself)
    random = Random(11)
    rows = list(range(30))
    start = ZSet.of(random.choices(rows, k=20))
    x: Any = (start, start) if both(of) else start
    state = of.init(x)
    for keep in (False, True, False, False, True, False):
        before, value = copied(state), x
        containers = list(journalled(state))
        for container in containers:
            container.begin()
        for _ in range(5):
            change = random_change(value, rows, random)
            state, _ = of.step(state, change)
            value = of.input.patch(value, change)
        assert of.invariant(value, state)
        for container in containers:
            container.commit() if keep else container.rollback()
        x = value if keep else x
        assert keep or state == before
        assert of.invariant(x, state)
        assert all(container.journal is None for container in held(state))


def test_a_group_that_comes_and_changes_in_one_epoch_is_undone() -> None:
    of = per_key(distinct(), third)
    state = of.init(ZSet.of([0]))
    state.begin()
    for change in (ZSet({1: 1}), ZSet({4: 1, 1: -1}), ZSet({0: -1}), ZSet({0: 3})):
        state, _ = of.step(state, change)
    state.rollback()
    assert of.invariant(ZSet.of([0]), state)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("no steps", "steps")])
def test_what_is_not_there_cannot_be_taken_away(name: str) -> None:
    of = EVERY[name](itself)
    x = ZSet.of([1, 3])
    live = of.open((x, x) if both(of) else x)
    before = copied(live.state)
    change: Any = ZSet({3: -2, 9: -1})
    if name == "inline behind steps" or name == "tree and median":
        change = ZSet({8: -3})
    with pytest.raises(ChangeError):
        live.send(First(change) if both(of) else change)
    assert live.state == before


def test_a_tree_notices_that_the_last_row_to_leave_was_another() -> None:
    live = ReduceByKey(listed(), Fn(third)).open(ZSet.of([3]))
    with pytest.raises(AbsentRow):
        live.send(ZSet({6: -1}))
    assert live.send(ZSet({3: -1})) == ZSet({(0, (3,)): -1})


def test_an_accumulator_notices_that_the_last_row_to_leave_was_another() -> None:
    for reducer in (total(), median(), total() & how_many()):
        live = ReduceByKey(reducer, Fn(third)).open(ZSet.of([3]))
        before = copied(live.state)
        with pytest.raises((NotDeterministic, AbsentRow)):
            live.send(ZSet({6: -1}))
        assert live.state == before


def test_a_processor_that_failed_goes_on_from_where_it_was() -> None:
    fuse = Fuse()
    adding = Reducer(0, fuse(operator.add), fuse(operator.sub))
    live = adding.processor(third).open()
    fuse.light(-1)
    live.send(ZSet.of([1, 2, 3]))
    fuse.light(1)
    with pytest.raises(Boom):
        live.send(ZSet({4: 1, 5: 1}))
    fuse.light(-1)
    assert live.send(ZSet({7: 1})) == ZSet({(1, 1): -1, (1, 8): 1})
