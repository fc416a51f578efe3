"""Keyed operators with planted bugs: each must be refuted, and the right one must not."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any

import pytest

from ebbflow.change import Both, First, Second
from ebbflow.errors import LawBroken, NotDeterministic
from ebbflow.fn import Fn
from ebbflow.laws import FROM_SCRATCH, check
from ebbflow.operator import top_rows
from ebbflow.operator.joins import Join, Semi
from ebbflow.operator.session import Run, SessionRows
from ebbflow.reducer import Reducer
from ebbflow.reducer import max as greatest
from ebbflow.reducer.inline import Inline
from ebbflow.reducer.running import ReduceByKey
from ebbflow.state.index import Index
from ebbflow.state.search import rank_at, totals
from ebbflow.state.top_buffer import Ranking
from ebbflow.zset import ZSet


def third(x: int) -> int:
    return x % 3


def itself(x: Any) -> Any:
    return x


def spanned(row: Any, start: Any, end: Any) -> Any:
    return start, end, row


class StaleSemi(Semi):
    """Judges the rows of the left by the counts of the right as they were before the step."""

    @cached_property
    def join_delta(self) -> Any:
        semi = Semi(self.left_key, self.right_key, self.anti).join_delta

        def stale(from_left: Any, from_right: Any, lefts: Any, counts: Any) -> Any:
            there = dict(counts.values)
            before: Any = Index(
                self.left_key, ZSet([p for group in lefts.values() for p in group.items()])
            )
            before.apply({row: -weight for pairs in from_left.values() for row, weight in pairs})
            out = semi({}, from_right, before.groups, counts)
            for key, pairs in from_left.items():
                if (there.get(key, 0) > 0) is not self.anti:
                    for row, weight in pairs:
                        out[row] = out.get(row, 0) + weight
            return {row: weight for row, weight in out.items() if weight}

        return stale


SMALL = [ZSet(), ZSet({3: 1}), ZSet({1: 1, 6: 2}), ZSet({3: 1, 9: 1})]
SMALL_CHANGES = [*SMALL[1:], ZSet({3: -1}), ZSet({1: -1, 6: -1}), ZSet({9: -1, 1: 1})]
PAIRS = [(a, b) for a in SMALL for b in SMALL]
PAIR_CHANGES = [First(a) for a in SMALL_CHANGES] + [Second(a) for a in SMALL_CHANGES] + [
    Both(a, b) for a in SMALL_CHANGES for b in SMALL_CHANGES
]  # fmt: skip


@pytest.mark.parametrize("anti", [False, True])
def test_a_semi_join_with_old_counts_when_both_sides_change_is_refuted(anti: bool) -> None:
    with pytest.raises(LawBroken) as caught:
        check(StaleSemi(third, third, anti), inputs=PAIRS, changes=PAIR_CHANGES, examples=40)
    assert isinstance(caught.value.case["changes"][-1], Both)
    check(Semi(third, third, anti), inputs=PAIRS, changes=PAIR_CHANGES,
          laws=[FROM_SCRATCH], examples=40)  # fmt: skip


def test_a_join_that_is_wrongly_said_to_be_one_to_one_is_refuted() -> None:
    several = [(ZSet.of([0, 3, 6, 9]), ZSet.of([0, 3])), *PAIRS]
    more = [First(ZSet.of([12, 15])), Second(ZSet.of([6, 9])), *PAIR_CHANGES]
    for make in (operator.add, lambda a, b: 0):
        with pytest.raises(LawBroken):
            check(Join(third, third, make, one_to_one=True), inputs=several, changes=more,
                  laws=[FROM_SCRATCH], examples=40)  # fmt: skip
        check(Join(third, third, make), inputs=several, changes=more,
              laws=[FROM_SCRATCH], examples=40)  # fmt: skip


class ForgetsToMerge(SessionRows):
    """Looks only at the session before a time, not at the one after it."""

    def touched(self, tree: Any, times: list[Any]) -> list[Run]:
        found = []
        for time in times:
            before, _ = totals(tree, rank_at(tree, time, behind=True), self.monoid.merge)
            if before and time - before[-1].last <= self.gap:
                found.append(before[-1])
        return list(dict.fromkeys(found))


class WalksTwice(SessionRows):
    """Counts a session once for each of its rows that changed."""

    def touched(self, tree: Any, times: list[Any]) -> list[Run]:
        return [run for time in times for run in super(WalksTwice, self).touched(tree, [time])]


class ForgetsNewRows(SessionRows):
    """Takes the rows of a session that begins and ends as it did to be the same as well."""

    def shift(self, key: Any, was: Any, now: Any, pairs: Any) -> Any:
        spans = [run[:2] for run in self.touched(was, [self.time(row) for row, _ in pairs])]
        for row, _ in pairs:
            if any(first <= self.time(row) <= last for first, last in spans):
                return []
        return super().shift(key, was, now, pairs)


@pytest.mark.parametrize("planted", [ForgetsToMerge, WalksTwice, ForgetsNewRows])
def test_sessions_that_forget_to_merge_two_runs_or_count_one_twice_are_refuted(
    planted: Any,
) -> None:
    runs = [ZSet.of([1, 2, 7, 8]), ZSet.of([1, 9]), ZSet.of([4])]
    changes = [ZSet({5: 1}), ZSet({4: 1, 6: 1}), ZSet({2: -1}), ZSet({8: 1, 7: 1})]
    arguments = (itself, 3, None, spanned, None)
    with pytest.raises(LawBroken):
        check(planted(*arguments), inputs=runs, changes=changes, examples=20)
    check(SessionRows(*arguments), inputs=runs, changes=changes, examples=20)


class ForgetsToRefill(Ranking):
    """When too few are left, takes those for all there are."""

    __slots__ = ()

    def update(self, buffer: Any, pairs: Any, everything: Any) -> Any:
        return super().update(buffer, pairs, lambda: dict(buffer.tree))


class ForgetsTheFloor(Ranking):
    """Puts every element among the outermost, also one far behind them."""

    __slots__ = ()

    def update(self, buffer: Any, pairs: Any, everything: Any) -> Any:
        if buffer.all:
            return super().update(buffer, pairs, everything)
        return buffer._replace(tree=buffer.tree.update(pair for pair in pairs if pair[1] > 0))


MANY = [ZSet.of(range(100))]
DRAINS = [ZSet({99: -1}), ZSet(dict.fromkeys(range(20, 99), -1)), ZSet({-5: 1})]
"""The first goes alone, so that others are held in its place, and then many of those go."""


@pytest.mark.parametrize("planted", [ForgetsToRefill, ForgetsTheFloor])
def test_outermost_rows_that_are_not_picked_anew_are_refuted(planted: Any) -> None:
    top = top_rows(2, itself)
    top.ranking = planted(True, 2)
    reduced = ReduceByKey(greatest(), Fn(lambda row: 0))
    part: Any = reduced.parts[0]
    part.ranking = planted(True)
    for of in (top, reduced):
        with pytest.raises(LawBroken):
            check(of, inputs=MANY, changes=DRAINS, laws=[FROM_SCRATCH], examples=60)
    check(top_rows(2, itself), inputs=MANY, changes=DRAINS, laws=[FROM_SCRATCH], examples=10)


def test_an_inline_sum_that_ignores_weights_is_refuted() -> None:
    def planted(line: str) -> ReduceByKey:
        adding = Reducer(0, operator.add, operator.sub, partial=False)
        adding.inline = Inline(None, (0,), (line,), "{0}")
        return ReduceByKey(adding, Fn(third))

    for line in ("{0} += {x}", "{0} += {x} * abs({n})", "{0} = {x} * {n}"):
        with pytest.raises((LawBroken, NotDeterministic)):
            check(planted(line), inputs=SMALL, changes=SMALL_CHANGES, examples=20)
    check(planted("{0} += {x} * {n}"), inputs=SMALL, changes=SMALL_CHANGES, examples=20)


class ForgetsKeys(Join):
    """Joins what changed on the left with all of the right, and forgets the other way round."""

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        state, moved = super().step(state, change)
        return state, ZSet() if isinstance(change, Second) else moved


def test_a_join_that_follows_one_side_only_is_refuted() -> None:
    with pytest.raises(LawBroken) as caught:
        check(ForgetsKeys(third, third), inputs=PAIRS, changes=PAIR_CHANGES, examples=60)
    assert caught.value.law is FROM_SCRATCH
