"""The outermost elements of a multiset, and the index of a bag: random edits against Python."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import cloudpickle
import pytest

from ebbflow.errors import NotDeterministic
from ebbflow.fn import Fn
from ebbflow.nan import NAN
from ebbflow.operator import top_rows
from ebbflow.ordering import in_order, total_order_key
from ebbflow.reducer import max as greatest
from ebbflow.reducer.running import ReduceByKey
from ebbflow.state.index import Index
from ebbflow.state.top_buffer import Ranking
from ebbflow.zset import ZSet


def half(x: int) -> int:
    return x // 2


def third(x: int) -> int:
    return x % 3


def random_change(x: ZSet[Any], random: Random) -> ZSet[Any]:
    """A valid change of a small bag."""
    gone = random.sample(list(x), random.randint(0, min(len(x), 6)))
    change = ZSet({row: -random.randint(1, x.weight(row)) for row in gone})
    return change + ZSet.of(random.choices(range(15), k=random.randint(0, 6)))


def copied(state: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(state))


# ---- the outermost ----

VALUES: dict[str, Callable[[Random], Any]] = {
    "ints": lambda random: random.randint(0, 300),
    "pairs": lambda random: (random.randint(0, 20), random.choice("abcdefgh")),
    "numbers and words": lambda random: random.choice([*range(50), *"xyz"]),
    "sets": lambda random: frozenset(random.sample(range(7), 2)),
    "sets in pairs": lambda random: (
        random.randint(0, 99), random.choice([0, 0, 0, frozenset({random.randint(0, 5)})])
    ),
    "with NaN": lambda random: random.choice([NAN, *[random.randint(0, 300) for _ in range(20)]]),
    "None in pairs": lambda random: (random.randint(0, 99), random.choice([None, 1, 2])),
}  # fmt: skip


@pytest.mark.parametrize("up", [True, False], ids=["up", "down"])
@pytest.mark.parametrize("kind", VALUES)
def test_the_outermost_are_those_that_sorting_would_give(kind: str, up: bool) -> None:
    random = Random(12)
    for least_ in (1, 40, 100):
        ends, there = Ranking(up, least_), dict[Any, int]()
        outer = ends.empty
        for step in range(45):
            change: dict[Any, int] = {}
            growing = step % 30 < 12
            for _ in range(25 if growing else 2):
                change[VALUES[kind](random)] = random.randint(1, 2)
            best = in_order(there)[:: -1 if up else 1]
            for value in best[: 2 if growing else 14]:
                change[value] = -there[value]
            for value, weight in change.items():
                there[value] = there.get(value, 0) + weight
            there = {value: weight for value, weight in there.items() if weight}
            outer = ends.update(outer, change.items(), lambda now=there: now)  # type: ignore[misc]
            assert ends.agrees(outer, there)
            every = [value for value in in_order(there) for _ in range(there[value])]
            assert ends.best(outer) == every[:: -1 if up else 1][:least_]


def test_a_set_that_comes_late_is_put_in_order_as_sets_are() -> None:
    pairs: list[Any] = [(n, 0) for n in range(100)]
    live = ReduceByKey(greatest(), Fn(lambda row: 0)).open(ZSet.of(pairs))
    live.send(ZSet({(200, frozenset({1})): 1}))
    live.send(ZSet(dict.fromkeys(pairs[40:], -1)))
    assert live.send(ZSet({(200, frozenset({2})): 1})) == ZSet(
        {(0, (200, frozenset({1}))): -1, (0, (200, frozenset({2}))): 1}
    )


@pytest.mark.parametrize("smallest", [True, False])
def test_the_top_of_many_rows_is_followed_as_it_is_drained_and_filled(smallest: bool) -> None:
    of = top_rows(3, half, third, smallest=smallest)
    random = Random(13)
    x = ZSet.of(random.choices(range(900), k=600))
    live, y = of.open(x), of.f(x)
    for step in range(30):
        rows = sorted(x, key=total_order_key, reverse=not smallest)
        change = ZSet({row: -x.weight(row) for row in rows[: 4 if step % 10 > 7 else 45]})
        if step % 10 > 6:
            change = change + ZSet.of(random.choices(range(900), k=150))
        moved = live.send(change)
        x, y = x + change, y + moved
        assert y == of.f(x)
    assert of.invariant(x, live.state)


# ---- the index ----


def test_an_index_of_a_bag_refuses_a_row_that_is_negative_and_goes_back() -> None:
    for change in ({4: -1}, {1: -2}, {4: 1, 7: -1}, {1: -1, 5: -1}, {3: -1}, {3: 1, 6: -1}):
        index: Index[Any, Any] = Index(third, ZSet.of([1, 2]), bag=True)
        before = copied(index)
        assert before.bag
        index.begin()
        index.apply({1: 1})
        index.apply({1: -1})
        with pytest.raises(NotDeterministic) as caught:
            index.apply(change)
        assert caught.value.facts["row"] == list(change)[-1]
        index.rollback()
        assert index == before
        assert index.journal is None
    free: Index[Any, Any] = Index(third, ZSet.of([1, 2]))
    free.apply({4: -1})
    assert free.groups == {1: {1: 1, 4: -1}, 2: {2: 1}}
    free.apply({4: 1, 1: -1})
    assert free.groups == {2: {2: 1}}


def test_an_index_without_a_key_has_all_rows_under_one_and_copies_what_it_is_given() -> None:
    index: Index[Any, Any] = Index(bag=True)
    change = {1: 1, 2: 2}
    index.begin()
    index.apply(change)
    change[3] = 1
    assert index.groups == {(): {1: 1, 2: 2}}
    assert index.holds(ZSet({2: -2}))
    assert not index.holds(ZSet({2: -3}))


@pytest.mark.parametrize("key", [third, None])
def test_an_index_through_random_epochs_is_the_rows_by_key(key: Any) -> None:
    random = Random(14)
    index: Index[Any, Any] = Index(key, bag=True)
    x: Any = ZSet()
    for _ in range(60):
        index.begin()
        value = x
        for _ in range(2):
            change = random_change(value, random)
            index.apply(change)
            value = value + change
        if random.random() < 0.5:
            index.rollback()
        else:
            index.commit()
            x = value
        groups: dict[Any, Any] = {}
        for row, weight in x.items():
            groups.setdefault(third(row) if key else (), {})[row] = weight
        assert index.groups == groups
