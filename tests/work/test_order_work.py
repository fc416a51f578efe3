"""What a late row costs in a long key: steps, and rows that go out; counted, not timed."""

from __future__ import annotations

import sys
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import window as w

SIZE = 100_000
FEW = 64
"""A small multiple of log n, and of the rows of a leaf."""


class Event(NamedTuple):
    at: int
    value: int


class Counted:
    """A function that counts its calls."""

    def __init__(self, f: Any) -> None:
        self.f, self.calls = f, 0

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        return self.f(*given)


@pytest.fixture(scope="module")
def rows() -> list[Event]:
    return [Event(2 * i, i % 7) for i in range(SIZE)]


LATE = [Event(2 * at + 1, 3) for at in (50_000, 17, 99_990, 50_003, 71_234)]


def lag(counted: Any, events: Any) -> Any:
    return events.over(order="at").with_fields(x=w.lag(counted))


def fill(counted: Any, events: Any) -> Any:
    return events.over(order="at").with_fields(x=w.fill_forward(counted))


def machine(state: int, row: Event) -> tuple[int, list[int]]:
    new = 0 if row.value % 5 == 0 else min(state + 1, 3)
    return new, [row.at] if new == 3 != state else []


def value(row: Event) -> int:
    return row.value


@pytest.mark.parametrize("make", [lag, fill])
def test_a_late_row_calls_few_functions_where_rows_behind_it_stay(make: Any, rows: Any) -> None:
    counted = Counted(value)
    view = make(counted, ef.Input("events", Event)).run(check_input=False)
    view.step(events=rows)
    for weight in (1, -1):
        for row in LATE:
            counted.calls = 0
            out = view.step(events={row: weight})
            assert counted.calls <= FEW
            assert len(out) <= 3


def test_a_late_row_steps_a_machine_of_four_states_until_its_state_is_the_old_one(
    rows: Any,
) -> None:
    step = Counted(machine)
    view = ef.Input("events", Event).scan(step, 0, order="at", type=int).run(check_input=False)
    view.step(events=rows)
    assert step.calls == SIZE
    for weight in (1, -1):
        for row in LATE:
            step.calls = 0
            assert len(view.step(events={row: weight})) <= 4
            assert step.calls <= FEW


def test_a_running_sum_steps_through_the_rows_that_change_and_no_others(rows: Any) -> None:
    add = Counted(lambda total, row: (total + row.value, [(row.at, total + row.value)]))
    view = ef.Input("events", Event).scan(add, 0, order="at", type=tuple).run(check_input=False)
    view.step(events=rows)
    for weight in (1, -1):
        add.calls = 0
        out = view.step(events={Event(2 * (SIZE - 1_000) + 1, 3): weight})
        assert len(out) == 2 * 999 + 1
        assert add.calls <= len(out) + FEW


def test_the_total_at_the_end_alone_merges_few_parts(rows: Any) -> None:
    add = Counted(lambda a, b: a + b)
    step = Counted(lambda total, row: (total + row.value, []))
    total = ef.Input("events", Event).fold(
        step, 0, order="at", of=value, merge=add, act=add, type=int
    )
    view = total.run(check_input=False)
    view.step(events=rows)
    for weight in (1, -1):
        for row in LATE:
            add.calls = 0
            assert len(view.step(events={row: weight})) == 2
            assert add.calls <= 200
    assert step.calls == 0


def test_rows_far_apart_are_each_reached_without_the_rows_between(rows: Any) -> None:
    step = Counted(machine)
    view = ef.Input("events", Event).scan(step, 0, order="at", type=int).run(check_input=False)
    view.step(events=rows)
    step.calls = 0
    view.step(events=dict.fromkeys(LATE, 1))
    assert step.calls <= FEW * len(LATE)


def test_a_running_total_looks_at_each_row_behind_the_late_one_once(rows: Any) -> None:
    counted = Counted(value)
    view = (
        ef.Input("events", Event)
        .over(order="at")
        .with_fields(x=ef.sum(counted))
        .run(check_input=False)
    )
    view.step(events=rows)
    assert counted.calls == SIZE
    for weight in (1, -1):
        counted.calls = 0
        out = view.step(events={Event(2 * (SIZE - 1_000) + 1, 3): weight})
        assert len(out) == 2 * 999 + 1
        assert counted.calls <= 999 + FEW


def test_what_is_known_of_states_behind_a_late_row_stays_known(rows: Any) -> None:
    """Late rows from right to left, then one behind all of them: no leaf between is stepped through
    again, and no more calls are made than before the first."""
    step = Counted(machine)
    view = ef.Input("events", Event).scan(step, 0, order="at", type=int).run(check_input=False)
    view.step(events=rows)

    def calls(row: Event) -> int:
        made: list[Any] = []
        sys.setprofile(lambda _frame, event, _of: made.append(event == "call"))
        try:
            view.step(events=[row])
        finally:
            sys.setprofile(None)
        return sum(made)

    last = Event(2 * 60_000 + 1, 3)
    before = calls(last)
    view.step(events={last: -1})
    for place in range(59_900, 50_000, -100):
        step.calls = 0
        view.step(events=[Event(2 * place + 1, 3)])
        assert step.calls <= FEW
    step.calls = 0
    assert calls(last) <= before + 20
    assert step.calls <= FEW


@pytest.mark.parametrize("make", [lag, fill])
def test_a_late_row_is_one_way_down_and_few_calls(make: Any, rows: Any) -> None:
    """A step is some thirty calls beside what the operator does, whatever that is, and few more
    where the rows behind it are in another leaf. One of them is the first, or at the end
    of a node above."""
    view = make("value", ef.Input("events", Event)).run(check_input=False)
    view.step(events=rows)
    made: list[int] = []
    for at in range(50_000, 50_064):
        for weight in (1, -1):
            calls: list[Any] = []
            change = {Event(2 * at + 1, 3): weight}
            sys.setprofile(lambda _frame, event, _of, to=calls: to.append(event))
            try:
                view.step(events=change)
            finally:
                sys.setprofile(None)
            made.append(calls.count("call"))
    made.sort()
    assert made[len(made) // 2] <= 54
    assert made[-2] <= 64


def test_rows_are_not_kept_where_most_of_them_change_and_nobody_asks(rows: Any) -> None:
    view = ef.Input("events", Event).over(order="at").with_fields(x=ef.sum("value")).run()
    view.step(events=rows)
    [output] = view._program.outputs.values()
    assert output.rows is None
    assert len(view.value) == SIZE
    kept = output.rows
    view.step(events=[Event(2 * SIZE, 3)])
    assert output.rows is kept
    view.step(events=[Event(1, 3)])
    assert output.rows is None
    assert view.value.weight((1, 3, rows[0].value + 3)) == 1
    assert len(output.rows.rows) == SIZE + 2


def test_states_that_cannot_be_altered_are_not_copied(rows: Any, monkeypatch: Any) -> None:
    """A state of tuples is handed on as it is; one that holds a list is copied for each row."""
    copies = Counted(deepcopy)
    monkeypatch.setattr("ebbflow.frozen.deepcopy", copies)

    def pair(state: Any, row: Event) -> tuple[Any, list[int]]:
        return (row.at, (state[0], "x")), []

    for step, start, expected in (
        (machine, 0, 0),
        (pair, (0, ()), 0),
        (lambda s, row: (s, []), ([],), 100),
    ):
        copies.calls = 0
        program = ef.Input("events", Event).scan(step, start, order="at", type=int)
        program.run(check_input=False).step(events=rows[:100])
        assert expected <= copies.calls <= expected * 1.1
