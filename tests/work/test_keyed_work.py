"""How much work a step of a keyed operator does: calls counted, and what other keys do not cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ebbflow.chain import Chain, RowStep
from ebbflow.change import BAG, Both, First, Second
from ebbflow.fn import Fn
from ebbflow.operator import (
    Operator,
    aggregate,
    count,
    distinct,
    keyed,
    per_key,
    semi,
    sessions,
    top_rows,
)
from ebbflow.operator.joins import Join
from ebbflow.operator.relation import RowChain
from ebbflow.reducer import RECOMPUTE, Reducer, mean
from ebbflow.reducer import count as how_many
from ebbflow.reducer import max as greatest
from ebbflow.reducer import min as least
from ebbflow.reducer import sum as total
from ebbflow.reducer.running import ReduceByKey
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

KEYS, EACH = 100, 30
ROWS = ZSet.of([(key, n) for key in range(KEYS) for n in range(EACH)])


class Counted:
    """A function that counts its calls, and remembers what it was called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seen: list[Any] = []

    def __call__(self, *arguments: Any) -> Any:
        self.seen.append(arguments)
        return self.function(*arguments)

    @property
    def calls(self) -> int:
        return len(self.seen)

    def keys(self) -> set[Any]:
        """The keys of the rows it was called with."""
        return {row[0] for arguments in self.seen for row in arguments if isinstance(row, tuple)}


def key_of() -> Counted:
    return Counted(lambda row: row[0])


def number_of() -> Counted:
    return Counted(lambda row: row[1])


def stepped(of: Any, state: Any, change: Any, *counted: Counted) -> Any:
    """One step, with calls counted from zero."""
    for each in counted:
        each.seen.clear()
    return of.step(state, change)[1]


# ---- top rows ----


def test_a_change_of_one_key_does_not_look_at_the_rows_of_others() -> None:
    key, by = key_of(), number_of()
    of = top_rows(2, by, key)
    state = of.init(ROWS)
    moved = stepped(of, state, ZSet({(7, EACH): 1, (7, 3): -1}), key, by)
    assert moved == ZSet({(7, EACH): 1, (7, EACH - 2): -1})
    assert (key.calls, by.calls) == (2, 2)
    assert key.keys() | by.keys() == {7}


@pytest.mark.parametrize("smallest", [False, True])
def test_rows_far_from_the_top_cost_one_call_and_no_tree(smallest: bool) -> None:
    by = Counted(lambda row: -row if smallest else row)
    of = top_rows(3, by, smallest=smallest)
    state = of.init(ZSet.of(range(5_000)))
    outer = state[1].values[()]
    for step in range(100):
        moved = stepped(of, state, ZSet({step: -1, step + 0.5: 1}), by)
        assert moved == ZSet()
        assert by.calls == 2
    assert state[1].values[()] is outer


def test_a_top_that_is_drained_looks_through_all_rows_a_few_times() -> None:
    n, by = 4_000, Counted(lambda row: row)
    of = top_rows(3, by)
    state = of.init(ZSet.of(range(n)))
    by.seen.clear()
    for row in range(n - 1, 10, -1):
        of.step(state, ZSet({row: -1}))
    assert by.calls <= n + n * math.log2(n) / 2


# ---- sessions ----


def test_only_neighbouring_sessions_are_looked_at() -> None:
    key, time, merge = key_of(), number_of(), Counted(lambda row, start, end: (row, start, end))
    of = sessions(time, 1, key, merge=merge)
    rows = ZSet.of([(k, 10 * n + i) for k in range(5) for n in range(100) for i in range(3)])
    state = of.init(rows)
    assert (key.calls, merge.calls) == (1_500, 1_500)
    assert time.calls <= 3 * 1_500
    stepped(of, state, ZSet({(2, 503): 1}), key, time, merge)
    assert (key.calls, merge.calls) == (1, 3 + 4)
    assert time.calls <= 3
    stepped(of, state, ZSet({(2, 503): -1, (2, 506): 1}), key, time, merge)
    assert (key.calls, merge.calls) == (2, 4 + 3 + 1)
    assert time.calls <= 3 * 2 + 1
    assert {row for row, _, _ in merge.seen} == {(2, 500), (2, 501), (2, 502), (2, 503), (2, 506)}


def test_a_long_session_is_walked_through_once_however_many_rows_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Counted(Tree.at)
    monkeypatch.setattr(Tree, "at", lambda tree, i: looks(tree, i))
    for n in (200, 800):
        of = sessions(lambda time: time, 1)
        looks.seen.clear()
        state = of.init(ZSet.of(range(n)))
        assert looks.calls <= 6 * n
        looks.seen.clear()
        of.step(state, ZSet.of(range(0, n, 2)))
        assert looks.calls <= 16 * n


# ---- an operator per key ----


def test_operators_of_this_package_are_not_copied_per_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies = Counted(keyed.deepcopy)
    monkeypatch.setattr(keyed, "deepcopy", copies)
    inner: list[Operator[Any, Any, Any, Any]] = [
        count(), distinct(), aggregate(max), top_rows(1, lambda row: row[1]),
        sessions(lambda row: row[1], 1), total(lambda row: row[1]).operator(lambda row: 0),
        greatest(lambda row: row[1]).operator(), distinct() >> count(),
        per_key(distinct(), lambda row: row[1]), distinct() & count(),
    ]  # fmt: skip
    for one in inner:
        key = key_of()
        of = per_key(one, key)
        live = of.open(ROWS)
        live.send(ZSet({(3, 1): 1, (4, 2): -1}))
        key.seen.clear()
        of.step(live.state, ZSet({(3, 1): 1, (4, 2): 1}))
        assert key.calls == 2
    assert copies.calls == 0


class Hoarder(Operator[Any, Any, Any, Any]):
    """How many rows there are, in a dict."""

    input = BAG
    output = count().output

    def f(self, x: Any) -> Any:
        return sum(weight for _, weight in x.items())

    def init(self, x: Any) -> Any:
        return dict(x.items())

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        for row, weight in change.items():
            state[row] = state.get(row, 0) + weight
        return state, sum(weight for _, weight in change.items())


def test_a_state_that_cannot_go_back_is_copied_for_the_touched_keys_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies = Counted(keyed.deepcopy)
    monkeypatch.setattr(keyed, "deepcopy", copies)
    of = per_key(Hoarder(), key_of())
    state = of.init(ROWS)
    assert copies.calls == 0
    stepped(of, state, ZSet({(3, 0): 1, (4, 0): 1, (3, 1): 1}), copies)
    assert copies.calls == 2


# ---- reduce ----


def test_what_is_reduced_inline_is_asked_of_changed_rows_only() -> None:
    key, price = key_of(), number_of()
    of = ReduceByKey(total(price) & mean(price) & how_many(), Fn(key))
    assert of.loop is not None
    state = of.init(ROWS)
    stepped(of, state, ZSet({(5, 0): -1, (5, 100): 1, (6, 1): 1}), key, price)
    assert key.calls == 3
    assert price.calls == 3


def test_steps_before_a_reduce_are_taken_once_per_changed_row() -> None:
    kept, made, key = Counted(lambda row: row[1] % 2), Counted(lambda row: (row[0], 1)), key_of()
    chain = Chain([RowStep("filter", Fn(kept)), RowStep("map", Fn(made))])
    of = ReduceByKey(total(lambda row: row[1]), Fn(key), before=chain)
    state = of.init(ROWS)
    stepped(of, state, ZSet({(5, 1): -1, (5, 2): 1, (6, 3): 1}), kept, made, key)
    assert (kept.calls, made.calls, key.calls) == (3, 2, 2)
    rows = RowChain(chain)
    stepped(rows, None, ZSet({(5, 1): -1, (5, 2): 1, (6, 3): 1}), kept, made)
    assert (kept.calls, made.calls) == (3, 2)


@pytest.mark.parametrize("up", [True, False], ids=["max", "min"])
def test_a_group_is_folded_again_log_n_times_while_its_greatest_go_one_by_one(up: bool) -> None:
    n = 6_000
    of_row = number_of()
    of = ReduceByKey(greatest(of_row) if up else least(of_row), Fn(lambda row: row[0]))
    rows = [(0, i) for i in range(n)]
    state = of.init(ZSet.of([*rows, *[(1, i) for i in range(n)]]))
    refolds = 0
    for row in reversed(rows) if up else rows:
        stepped(of, state, ZSet({row: -1}), of_row)
        assert of_row.keys() == {0} or row == rows[0 if up else -1]
        refolds += of_row.calls > 1
    assert 1 <= refolds <= math.log2(n)


def test_a_greatest_that_comes_and_goes_has_the_group_looked_through_once() -> None:
    of_row = number_of()
    of = ReduceByKey(greatest(of_row), Fn(lambda row: row[0]))
    state = of.init(ZSet.of([(0, i) for i in range(3_000)]))
    of_row.seen.clear()
    for i in range(3_000, 3_400):
        of.step(state, ZSet({(0, i): 1}))
        of.step(state, ZSet({(0, i): -1}))
    assert of_row.calls == 3_000 + 800


def test_only_the_part_that_asks_sees_the_rows_again() -> None:
    adds, removes = Counted(lambda acc, row: acc + row[1]), Counted(lambda acc, row: acc - row[1])
    lows = Counted(lambda acc, row: row[1] if acc is None else min(acc, row[1]))
    asks = Counted(lambda acc, row: RECOMPUTE if row[1] == acc else acc)
    single = Counted(lambda acc, row: acc + row[1])
    merges = Counted(lambda a, b: a + b)
    reducer = (
        Reducer(0, adds, removes, partial=False)
        & Reducer(None, lows, asks)
        & Reducer(0, single, None, merges)
    )
    of = ReduceByKey(reducer, Fn(lambda row: row[0]))
    state = of.init(ROWS)
    every = (adds, removes, lows, asks, single, merges)
    stepped(of, state, ZSet({(5, 0): -1}), *every)
    assert (adds.calls, removes.calls, asks.calls) == (0, 1, 1)
    assert lows.calls == EACH - 1
    assert lows.keys() == {5}
    assert single.calls <= 1
    assert merges.calls <= 3 * EACH
    stepped(of, state, ZSet({(5, 9): -1, (5, 40): 1}), *every)
    assert (adds.calls, removes.calls, asks.calls, lows.calls) == (1, 1, 1, 1)


# ---- joins ----


def test_a_join_makes_a_row_for_each_match_and_no_other() -> None:
    left, right, merge = key_of(), key_of(), Counted(lambda a, b: (a, b))
    of = Join(left, right, merge)
    state = of.init((ROWS, ROWS))
    for change, matches in (
        (First(ZSet({(5, -1): 1})), EACH),
        (First(ZSet({(KEYS, 0): 1})), 0),
        (Second(ZSet({(5, -1): 1, (6, -1): 1})), 2 * EACH + 1),
        (Second(ZSet({(KEYS + 1, 0): 1})), 0),
        (Both(ZSet({(8, 50): 1}), ZSet({(9, 50): 1})), 2 * EACH),
    ):
        stepped(of, state, change, left, right, merge)
        assert merge.calls == matches
        assert left.calls + right.calls == sum(map(len, of_sides(change)))
    stepped(of, state, Both(ZSet({(1, 50): 1}), ZSet({(1, 50): 1})), left, right, merge)
    assert merge.calls == 2 * EACH + 1


def of_sides(change: Any) -> list[Any]:
    return [change.first, change.second] if isinstance(change, Both) else [change.change]


def test_steps_after_a_join_see_its_new_rows_only() -> None:
    seen = Counted(lambda row: row[0][1] == 3)
    of = Join(key_of(), key_of(), after=Chain([RowStep("filter", Fn(seen))]))
    state = of.init((ROWS, ROWS))
    moved = stepped(of, state, Second(ZSet({(5, 99): 1})), seen)
    assert seen.calls == EACH
    assert moved == ZSet({((5, 3), (5, 99)): 1})


@pytest.mark.parametrize("anti", [False, True])
def test_a_semi_join_gives_the_rows_of_a_key_only_when_it_comes_or_goes(anti: bool) -> None:
    left, right = key_of(), key_of()
    of = semi(left, right, anti=anti)
    state = of.init((ROWS, ZSet.of([(key, 0) for key in range(0, KEYS, 2)])))
    for change, rows in (
        (Second(ZSet({(4, 1): 1})), 0),
        (Second(ZSet({(4, 0): -1})), 0),
        (Second(ZSet({(4, 1): -1})), EACH),
        (Second(ZSet({(KEYS, 1): 1})), 0),
        (Both(ZSet({(4, 77): 1}), ZSet({(4, 1): 1})), EACH if anti else EACH + 1),
    ):
        moved = stepped(of, state, change, left, right)
        assert len(moved) == rows
        assert left.calls + right.calls == sum(map(len, of_sides(change)))


@pytest.mark.parametrize("anti", [True, False])
def test_a_right_row_in_the_place_of_another_of_its_key_writes_nothing(anti: bool) -> None:
    live = semi(lambda row: row[0], anti=anti).open((ROWS, ROWS))
    counts = live.state[1]
    counts.begin()
    moved = live.operator.step(live.state, Second(ZSet({(3, 0): -1, (3, EACH): 1})))[1]
    assert (moved, counts.commit()) == (ZSet(), [])
