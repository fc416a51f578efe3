"""What someone would try who wants to break the local engine: odd plans, odd rows, functions that
change their mind, and interrupts at every line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.change import BAG, ZSET
from ebbflow.engine.batch import evaluate
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    EbbflowError,
    FunctionFailed,
    NotDeterministic,
)
from ebbflow.operator import Operator
from ebbflow.state.top_buffer import Ranking, TopBuffer
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet


class Row(NamedTuple):
    k: int
    v: int


A, B, C = (ef.Input(name, Row) for name in "abc")


def called(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, but one that cannot be traced."""

    def call(*rows: Any) -> Any:
        try:
            return f(*rows)
        finally:
            pass

    return call


def agree(program: Any, **changes: Any) -> Any:
    """One epoch of a new view and of batch: the same value, or the same kind of error."""
    view = program.run()
    inputs = {name: ZSet.of(rows) for name, rows in changes.items()}
    try:
        right: Any = evaluate(view.plan, inputs)
    except EbbflowError as error:
        with pytest.raises(type(error)):
            view.step(**changes)
        return None
    view.step(**changes)
    assert {name: view[name].value for name in view} == right
    return view


# ---- behind `-` ----


def test_a_row_that_a_filter_drops_may_be_negative_before_it() -> None:
    rows = {"a": [Row(1, 5)], "b": [Row(1, -5)]}
    positive = called(lambda row: row.v > 0)
    minus = A - B
    highest = minus.filter(positive).group_by("k").reduce(ef.max("v"))
    agree(ef.program(minus=minus, highest=highest), **rows)
    joined = minus.join(C, on="k", select=lambda left, right: Row(left.k, left.v), type=Row)
    highest = joined.filter(positive).group_by("k").reduce(ef.max("v"))
    assert agree(ef.program(highest=highest), **rows, c=[Row(1, 1)]) is not None


@pytest.mark.parametrize("join_first", [True, False])
def test_a_negative_row_is_refused_also_where_a_join_has_the_same_rows_by_the_same_key(
    join_first: bool,
) -> None:
    minus = A - B
    joined = minus.join(C, on="k", select=lambda left, right: (left.v, right.v))
    highest = minus.group_by("k").reduce(ef.max("v"))
    outputs = {"j": joined, "m": highest} if join_first else {"m": highest, "j": joined}
    assert agree(ef.program(**outputs), a=[Row(1, 5)], b=[Row(1, -5)]) is None


def test_an_operator_that_gives_differences_may_owe_rows_at_the_output() -> None:
    class Negated(Operator[Any, Any, Any, Any]):
        input, output = BAG, ZSET

        def f(self, x: Any) -> Any:
            return -x

        def init(self, x: Any) -> None:
            return None

        def step(self, state: Any, change: Any) -> Any:
            return None, -change

    view = A.through(Negated()).run()
    assert view.step(a=[Row(1, 2)]) == ZSet({Row(1, 2): -1})
    view.verify()


# ---- functions that change their mind ----

NUMBERS, OTHERS = ef.Input("a", int), ef.Input("b", int)


def counting() -> Callable[[Any], int]:
    numbers = iter(range(100))
    return lambda row: next(numbers)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda f: NUMBERS.map(f).distinct(), "distinct"),
        (lambda f: NUMBERS.map(f).join(OTHERS, on=lambda x: x), "map("),
        (lambda f: NUMBERS.join(OTHERS, left_on=f, right_on=lambda x: x), "key is another"),
        (lambda f: OTHERS.join(NUMBERS, left_on=lambda x: x, right_on=f, how="semi"), "semi"),
        (lambda f: OTHERS.join(NUMBERS, left_on=lambda x: x, right_on=f, how="anti"), "anti|semi"),
        (lambda f: NUMBERS.group_by(f).reduce(ef.sum()), "reduce(sum())"),
        (lambda f: NUMBERS.group_by(f).reduce(ef.max()), "reduce(max())"),
        (lambda f: NUMBERS.top_k(2, order=f), "place in the order is another"),
        (lambda f: NUMBERS.top_k(2, order=lambda x: x, per=f), "key is another"),
        (lambda f: NUMBERS.session(f, 2), "key or time is another"),
    ],
    ids=range(10),
)
def test_what_does_not_cancel_is_an_error_that_names_the_node_and_changes_nothing(
    program: Any, told: str
) -> None:
    view = program(counting()).run()
    view.step(a=[5, 6, 7])
    before, epoch = view.value, view.epoch
    with pytest.raises(NotDeterministic) as caught:
        view.step(a={7: -1})
    assert any(each in str(caught.value) for each in told.split("|")), caught.value
    assert "test_local_adversarial.py" in str(caught.value)
    assert (view.value, view.epoch) == (before, epoch)


def test_a_trusted_input_is_blamed_for_its_own_rows() -> None:
    joined = A.join(B, on="k", select=lambda left, right: (left.v, right.v))
    view = joined.run(check_input=False)
    with pytest.raises(AbsentRow, match="input 'a'"):
        view.step(a={Row(1, 1): -1})
    with pytest.raises(NotDeterministic, match="trusted"):
        A.distinct().run(check_input=False).step(a={Row(1, 1): -1})


# ---- errors ----


def fails(row: Any) -> Any:
    raise ValueError("no")


def test_the_row_is_named_where_a_part_of_it_is_reduced() -> None:
    view = A.group_by("k").reduce(ef.max(lambda row: fails(row))).run()
    with pytest.raises(FunctionFailed) as caught:
        view.step(a=[Row(1, 2)])
    assert caught.value.facts["row"] == Row(1, 2)


def test_the_key_and_its_change_are_named_where_an_operator_fails() -> None:
    class Picky(Operator[Any, Any, Any, Any]):
        input, output = BAG, BAG

        def f(self, x: Any) -> Any:
            return x

        def init(self, x: Any) -> None:
            return None

        def step(self, state: Any, change: Any) -> Any:
            if change.weight(Row(2, 2)):
                raise ValueError("no")
            return None, change

    view = A.through(Picky(), per="k").run()
    with pytest.raises(FunctionFailed) as caught:
        view.step(a=[Row(1, 1), Row(2, 2)])
    assert "row" not in caught.value.facts
    assert (caught.value.facts["key"], caught.value.facts["change"]) == (2, ZSet({Row(2, 2): 1}))


# ---- rows ----


class Other(Row):
    @property
    def v(self) -> int:  # type: ignore[override]
        return 99


class Same(Row):
    def doubled(self) -> int:
        return self.v * 2


def test_rows_whose_fields_are_not_their_elements_are_refused() -> None:
    view = A.map(lambda row: row.v).run()
    with pytest.raises(ChangeError, match="type Row, not Other"):
        view.step(a=[Other(1, 2)])
    assert view.step(a=[Same(1, 2)]) == ZSet({2: 1})


@pytest.mark.parametrize(
    "program",
    [
        NUMBERS.top_k(3, order=lambda x: x),
        NUMBERS.session(lambda x: x, 2),
        NUMBERS.agg(high=ef.max(), low=ef.min(), middle=ef.median(), n=ef.count()),
    ],
    ids=["top_k", "session", "agg"],
)
def test_a_row_may_be_there_more_often_than_an_index_can_say(program: Any) -> None:
    many = 2**70
    view = program.run()
    view.step(a=dict.fromkeys(range(0, 600, 2), many))
    view.verify()
    view.step(a=dict.fromkeys(range(200, 600, 2), -many) | {198: 1 - many})
    view.verify()


def test_the_order_of_top_rows_need_not_be_hashable() -> None:
    view = A.top_k(1, order=called(lambda row: [row.v])).run()
    view.step(a=[Row(0, v) for v in range(300)])
    for v in reversed(range(100, 300)):
        view.step(a={Row(0, v): -1})
    assert view.value == ZSet({Row(0, 99): 1})


# ---- work ----


@pytest.mark.parametrize("up", [True, False])
def test_how_the_outermost_shift_is_what_sorting_would_give(up: bool) -> None:
    dice = Random(5)
    for _ in range(400):
        least = dice.randint(1, 8)
        ends = Ranking(up, least)
        was = {x: dice.randint(1, 3) for x in dice.sample(range(12), dice.randint(0, 12))}
        now = dict(was)
        moved = dice.sample(range(12), dice.randint(1, 4))
        for x in moved:
            now[x] = dice.choice([n for n in range(4) if n != now.get(x, 0)])
        now = {x: n for x, n in now.items() if n}
        one, other = (TopBuffer(Tree.counted(each.items())) for each in (was, now))
        shift = ends.shift(one, other, moved)
        assert len(shift) == len(dict(shift))
        assert ZSet(shift) == ZSet.of(ends.best(other)) - ZSet.of(ends.best(one))


def test_a_change_of_many_top_rows_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    view = A.top_k(2000, order="v").run()
    view.step(a=[Row(0, v) for v in range(5000)])
    view.step(a={Row(0, -1): 1})

    def refuse(*_: Any) -> Any:
        raise AssertionError("all top rows were listed")

    monkeypatch.setattr(Ranking, "best", refuse)
    assert view.step(a={Row(0, 6000): 1}) == ZSet({Row(0, 6000): 1, Row(0, 3000): -1})
    assert view.step(a={Row(0, 4000): -1}) == ZSet({Row(0, 4000): -1, Row(0, 3000): 1})


def test_stages_that_a_change_cannot_reach_are_not_looked_at() -> None:
    outputs = {f"o{i}": ef.Input(f"i{i}", Row).distinct() for i in range(50)}
    view = ef.program(**outputs).run()
    view.step(i3=[Row(1, 1)])
    stages, reached = view._program.machine._reach(("i3",))
    assert [name for name, _ in reached] == ["o3"]
    assert len(stages) == 1
    both = view.step(i3=[Row(1, 2)], i4=[Row(1, 2)])
    assert {name for name, change in both.items() if change} == {"o3", "o4"}


# ---- what it says of itself ----


def test_stats_count_the_rows_of_sessions_and_not_their_keys() -> None:
    view = A.session("v", 1, per="k").run()
    view.step(a=[Row(k, v) for k in range(2) for v in range(5)])
    (node,) = [node for node in view.stats().nodes if node.label == "session"]
    assert node.state_rows == 10


def test_explain_says_that_a_max_keeps_rows_and_with_whom_it_shares_them() -> None:
    highest = A.group_by("k").reduce(ef.max("v"))
    alone = A.join(B, on="k", how="anti")
    view = ef.program(highest=highest, alone=alone).run()
    assert "an accumulator for each k · rows by k" in view.explain()
    assert view.explain().count("the same as for") == 2
    view.step(a=[Row(1, 2)])
    assert sum(node.label == "index" for node in view.stats().nodes) == 1


# ---- interrupts ----


class Interrupt(BaseException):
    """What may come at any line."""


def interrupted(line: int, call: Callable[[], Any]) -> bool:
    """Run a call that is cut short at its `line`-th line; whether it has so many."""
    package, passed = os.path.dirname(ef.__file__), 0

    def count(frame: Any, event: str, _: Any) -> Any:
        nonlocal passed
        if event == "line":
            passed += 1
            if passed == line:
                sys.settrace(None)
                raise Interrupt
        return count

    def trace(frame: Any, event: str, _: Any) -> Any:
        ours = frame.f_code.co_filename.startswith((package, "<ebbflow"))
        return count if ours else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def state(view: Any) -> list[Any]:
    held = [each for stage in view._program.machine.stages for each in stage.containers]
    return [
        {at: dict(group) for at, group in each.groups.items()}
        if hasattr(each, "groups")
        else dict(each.values)
        for each in held
    ]


@pytest.mark.parametrize(
    "program",
    [
        ef.program(join=A.join(B, on="k", select=lambda left, right: (left.v, right.v))),
        ef.program(anti=A.join(B, on="k", how="anti")),
        ef.program(top=(A + B).top_k(2, order="v", per="k")),
        ef.program(low=(A + B).group_by("k").reduce(ef.min("v"))),
        ef.program(once=(A + B).distinct(), total=(A + B).group_by("k").reduce(ef.sum("v"))),
    ],
    ids=["join", "anti", "top_k", "min", "distinct"],
)
def test_an_interrupt_at_any_line_leaves_all_of_an_epoch_or_nothing(program: Any) -> None:
    first = {"a": {Row(1, 5): 1, Row(1, 6): 1, Row(2, 7): 2}, "b": {Row(1, 1): 1, Row(2, 2): 1}}
    second = {
        "a": {Row(1, 13): 2, Row(1, 5): -1, Row(3, 8): 1, Row(2, 7): -2},
        "b": {Row(1, 1): -1, Row(1, 13): 1, Row(3, 3): 1},
    }

    def begun() -> Any:
        view = program.run()
        view.step(first)
        return view

    before, after = begun(), begun()
    after.step(second)
    line = 0
    while True:
        line += 1
        view = begun()
        if not interrupted(line, lambda view=view: view.step(second)):  # type: ignore[misc]
            break
        if view.epoch == 1:
            assert (state(view), view.value) == (state(before), before.value)
            view.step(second)
        assert (state(view), view.value, view.epoch) == (state(after), after.value, 2)
    assert line > 100
