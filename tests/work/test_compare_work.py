"""What a changed row costs in a key of 100,000 rows, counted: the rows that a join on inequalities
meets or turns, the rows that a threshold crosses, and no others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.operator.range_join import RangeJoin, range_join
from ebbflow.operator.scalar import Threshold, scalar_filter
from ebbflow.state.spots import SpotIndex
from ebbflow.zset import ZSet

MANY = 100_000
CALLS: Counter[str] = Counter()


class Value:
    """A value of a row, which counts how often it is asked for."""

    def __init__(self, side: str) -> None:
        self.side = side

    def __call__(self, row: int) -> int:
        CALLS[self.side] += 1
        return row


LEFT, RIGHT = Value("left"), Value("right")


def filled(of: Any, left: Any, right: Any) -> Any:
    """The operator with so many rows, and with its orders made."""
    live = of.open((ZSet.of(left), ZSet.of(right)))
    for index in live.state:
        if isinstance(index, SpotIndex):
            index.order(())
    return live


def work(live: Any, left: Any = (), right: Any = ()) -> tuple[Any, dict[str, int]]:
    """What a change gives, and how many values were asked for."""
    CALLS.clear()
    of = live.operator
    found = of.by_left(dict(left).items()), of.by_right(dict(right).items())
    return of.update_groups(live.state, *found), dict(CALLS)


@pytest.fixture(scope="module")
def cheaper() -> Any:
    """Rows of the left for which the right has a smaller one."""
    of: RangeJoin = range_join(None, None, where=[(LEFT, ">", RIGHT)], how="semi")
    return filled(of, range(MANY), range(50_000, 50_000 + MANY, 2))


def test_a_row_of_the_right_that_is_not_the_smallest_touches_no_row(cheaper: Any) -> None:
    for change in ({70_001: 1}, {60_000: -1}, {60_000: 1, 70_001: -1}):
        moved, calls = work(cheaper, right=change)
        assert not moved
        assert calls == {"right": len(change)}


def test_a_new_smallest_row_turns_those_in_between_and_no_others(cheaper: Any) -> None:
    moved, calls = work(cheaper, right={49_990: 1})
    assert moved == dict.fromkeys(range(49_991, 50_001), 1)
    assert calls == {"right": 1}
    assert work(cheaper, right={49_990: -1})[0] == dict.fromkeys(range(49_991, 50_001), -1)


def test_a_row_of_the_left_asks_once(cheaper: Any) -> None:
    moved, calls = work(cheaper, left={-5: 1, 200_000: 1})
    assert (moved, calls) == ({200_000: 1}, {"left": 2 * 2})


def test_another_value_is_told_by_two_of_them() -> None:
    of = range_join(None, None, where=[(LEFT, "!=", RIGHT)], how="semi")
    live = filled(of, range(MANY), range(MANY))
    moved, calls = work(live, right={7: -1, MANY + 3: 1})
    assert not moved
    assert calls == {"right": 2}
    alone = filled(of, range(1000), [7])
    assert work(alone, right={9: 1}) == ({7: 1}, {"right": 3})
    assert work(alone, right={7: -1}) == ({9: -1}, {"right": 3})


def test_an_inner_join_looks_at_the_rows_it_meets() -> None:
    where = [(LEFT, ">=", RIGHT), (LEFT, "<", lambda row: RIGHT(row) + 5)]
    live = filled(range_join(None, None, where=where), range(MANY), range(0, MANY, 100))
    moved, calls = work(live, right={50_050: 1})
    assert sorted(moved) == [(row, 50_050) for row in range(50_050, 50_055)]
    assert calls["right"] <= 2 * 2
    moved, calls = work(live, left={333_333: 1, 40_002: 1})
    assert moved == {(40_002, 40_000): 1}
    assert calls["left"] <= 2 * 2 * 2


def test_a_changed_threshold_looks_at_the_rows_that_it_crosses() -> None:
    seen: list[int] = []

    def above(row: int, one: int) -> bool:
        seen.append(row)
        return row > one

    of = scalar_filter(above, threshold=Threshold(LEFT, ">", RIGHT))
    live = filled(of, range(MANY), [50_000])
    seen.clear()
    moved, calls = work(live, right={50_000: -1, 50_007: 1})
    assert moved == dict.fromkeys(range(50_001, 50_008), -1)
    assert len(seen) == 2 * 7
    assert calls.get("left", 0) == 0
    seen.clear()
    assert work(live, left={60_000: -1, 10: -1})[0] == {60_000: -1}
    assert len(seen) == 2


def test_a_condition_that_is_no_comparison_looks_at_every_row_and_explain_says_so() -> None:
    seen: list[int] = []

    def far(row: int, one: int) -> bool:
        seen.append(row)
        return abs(row - one) > 3

    rows, one = ef.Input("rows", int), ef.Input("one", int)
    view = rows.filter(far, one).run()
    view.step(rows=range(1000), one=[500])
    seen.clear()
    assert view.step(one={500: -1, 501: 1}) == ZSet({504: -1, 497: 1})
    assert len(seen) == 2 * 1000
    assert "when it changes, all are looked at again" in view.explain()


def test_a_view_sends_on_what_crossed_and_nothing_else() -> None:
    rows, one = ef.Input("rows", int), ef.Input("one", int)
    behind: list[int] = []

    def told(row: int) -> int:
        behind.append(row)
        return row

    view = rows.filter(lambda row, least: row > least, one).map(told).run()
    view.step(rows=range(20_000), one=[10_000])
    behind.clear()
    view.step(one={10_000: -1, 10_002: 1})
    assert sorted(behind) == [10_001, 10_002]
