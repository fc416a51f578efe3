"""A changed row of an as-of join, an interval join or a pattern touches the rows near it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.change import Both, First, Second
from ebbflow.operator.asof import asof_join
from ebbflow.operator.interval import interval_join
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet

MANY = 100_000


class Counted:
    """The number itself, with a count of how often it was asked for."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        return given[0] if len(given) == 1 else given

    def since(self) -> int:
        calls, self.calls = self.calls, 0
        return calls


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_a_right_row_touches_the_left_rows_between_it_and_its_neighbours(direction: str) -> None:
    place, other, merge = Counted(), Counted(), Counted()
    of = asof_join(place, other, merge=merge, direction=direction)
    live = of.open((ZSet.of(range(MANY)), ZSet.of(range(0, MANY, 1000))))
    for each in (place, other, merge):
        each.since()
    found = live.send(Second(ZSet({50_500: 1})))
    assert abs(sum(weight > 0 for _, weight in found.items()) - 500) <= 1
    assert abs(merge.since() - 1000) <= 2
    assert place.since() < 150
    assert other.since() < 60
    gone = live.send(Second(ZSet({50_500: -1})))
    assert gone == -found


def test_a_right_row_that_is_no_answer_touches_no_left_row() -> None:
    place, merge = Counted(), Counted()
    of = asof_join(place, merge=merge, tolerance=10)
    live = of.open((ZSet.of(range(0, MANY, 100)), ZSet.of([50])))
    merge.since()
    assert not live.send(Second(ZSet({5_050: 1})))
    assert merge.since() == 0


def test_a_left_row_is_one_search() -> None:
    place, other = Counted(), Counted()
    live = asof_join(place, other).open((ZSet(), ZSet.of(range(0, MANY, 2))))
    place.since(), other.since()
    assert live.send(First(ZSet({70_001: 1}))) == ZSet({(70_001, 70_000): 1})
    assert place.since() + other.since() < 20


class At(NamedTuple):
    at: int


def test_one_row_in_a_program_is_one_edit_of_one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    edits = []
    edited = Tree.edited
    monkeypatch.setattr(
        Tree, "edited", lambda tree, pairs: edits.append(tree.size) or edited(tree, pairs)
    )
    left, right = ef.Input("left", At), ef.Input("right", At)
    select = lambda one, other: (one.at, other and other.at)
    view = left.asof_join(right, order="at", select=select, type=tuple).run()
    view.step(left=map(At, range(1_000)), right=map(At, range(0, 1_000, 100)))
    edits.clear()
    assert len(view.step(right=[At(550)])) == 100
    assert edits == [10]
    view.verify()
    edits.clear()
    assert len(view.step(right={At(550): -1})) == 100
    assert edits == [11]


class Quote(NamedTuple):
    at: int
    bid: int


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_one_row_of_either_side_is_one_way_down_each_tree_and_few_calls(
    direction: str, side: str
) -> None:
    """A step is some thirty calls beside what the operator does, and more where the left rows are
    in two leaves. One of the trees is edited; the other is searched once, and in none are rows
    counted."""
    left, right = ef.Input("left", At), ef.Input("right", Quote)
    view = left.asof_join(right, order="at", direction=direction).run(check_input=False)
    view.step(
        left=[At(2 * n + 1) for n in range(MANY)], right=[Quote(2 * n, n) for n in range(MANY)]
    )
    made: list[int] = []
    for n in range(50_000, 50_064):
        for weight in (1, -1):
            row = Quote(2 * n + 1, 7) if side == "right" else At(2 * n)
            calls: list[str] = []

            def count(frame: Any, event: str, of: Any, to: list[str] = calls) -> None:
                if event == "call":
                    to.append(frame.f_code.co_name)

            sys.setprofile(count)
            try:
                out = view.step({side: {row: weight}})
            finally:
                sys.setprofile(None)
            assert len(out) == (2 if side == "right" else 1)
            made.append(len(calls))
    made.sort()
    assert made[len(made) // 2] <= 54
    assert made[-3] <= 64


def test_a_row_of_the_right_that_is_there_already_is_not_looked_for_on_the_left() -> None:
    place, merge = Counted(), Counted()
    live = asof_join(place, lambda x: x, merge=merge).open((ZSet.of(range(MANY)), ZSet.of([5])))
    merge.since(), place.since()
    assert not live.send(Second(ZSet({5: 2})))
    assert not live.send(Second(ZSet({5: -2})))
    assert (merge.since(), place.since()) == (0, 0)


def test_an_output_that_nobody_asks_for_is_not_made() -> None:
    left, right = ef.Input("left", At), ef.Input("right", Quote)
    view = left.asof_join(right, order="at").run(check_input=False)
    view.step(left=map(At, range(100)), right=[Quote(50, 1)])
    [output] = view._program.outputs.values()
    assert output.rows is None
    assert len(view.value) == 100
    assert output.rows is not None
    view.step(right=[Quote(60, 2)])
    assert view.value.weight((99, 2)) == 1


def test_a_first_load_looks_at_each_row_a_few_times() -> None:
    n, calls = 2_000, []
    for make in (asof_join, lambda *orders: interval_join(*orders, 0, 1)):
        place, other = Counted(), Counted()
        live = make(place, other).open((ZSet(), ZSet()))
        live.send(Both(ZSet.of(range(n)), ZSet.of(range(n))))
        calls.append((place.since() + other.since()) / n)
    assert max(calls) < 16


def test_an_interval_join_looks_at_the_rows_within_the_interval() -> None:
    place, other, merge = Counted(), Counted(), Counted()
    of = interval_join(place, other, 0, 5, merge=merge)
    live = of.open((ZSet.of(range(MANY)), ZSet.of([0, 50_000, 90_000])))
    for each in (place, other, merge):
        each.since()
    assert len(live.send(Second(ZSet({50_500: 1})))) == 6
    assert (merge.since(), place.since() + other.since() < 60) == (6, True)
    assert len(live.send(First(ZSet({49_998: 1})))) == 1
    assert (merge.since(), place.since() + other.since() < 60) == (1, True)


class Event(NamedTuple):
    at: int
    kind: str


def test_a_late_row_in_a_long_key_steps_through_the_rows_near_it() -> None:
    seen = Counted()
    kinds = ("view", "cart", "other", "buy")
    events = ef.Input("events", Event)

    def is_view(row: Event) -> bool:
        seen(row)
        return row.kind == "view"

    funnel = events.match(
        view=is_view, cart=lambda e: e.kind == "cart", buy=lambda e: e.kind == "buy",
        order="at", within=100,
    )  # fmt: skip
    view = funnel.run()
    view.step(events=[Event(10 * n, kinds[n % 4]) for n in range(8_000)])
    seen.since()
    assert not view.step(events=[Event(40_005, "other")])
    assert seen.since() < 400
    assert len(view.step(events={Event(40_000, "view"): -1})) == 1
    assert seen.since() < 400
