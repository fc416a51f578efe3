"""What a report says is so: no NaN taken for a change in place, nothing called different that is
equal, no rounding where nothing rounds, and few rows shown where few do."""

from __future__ import annotations

import math
import sys
from time import sleep
from typing import Any

import pytest
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.algebra import Monoid
from ebbflow.errors import CheckError, CompositionError, LawBroken
from ebbflow.laws import FROM_SCRATCH, check, judge
from ebbflow.laws.law import alike
from ebbflow.laws.reducers import ADD_KEEPS
from ebbflow.operator import count, join, map_rows, per_key, text
from ebbflow.operator.operator import Operator
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.stream import defunctionalise, full_adder, tabulate
from ebbflow.zset import ZSet

NAN = float("nan")


def plus(a: Any, x: Any) -> Any:
    return a + x


def minus(a: Any, x: Any) -> Any:
    return a - x


def lines(thing: Any, **options: Any) -> list[str]:
    broken = judge(thing, **options).broken
    assert broken is not None
    return [line for line in str(broken).splitlines() if not line.startswith("    created")]


# ---- NaN ----


def test_a_sum_that_nan_spoils_is_not_said_to_change_in_place() -> None:
    assert lines(Reducer(0.0, plus, minus, name="total"), elements=[1.0, NAN]) == [
        "total breaks a law: remove does not undo add",
        "    law        REMOVE_INVERTS: remove(add(acc, value), value) == acc or RECOMPUTE, "
        "acc = fold(rows)",
        "    rows       ()",
        "    value      nan",
        "    left side  nan",
        "    right side 0.0",
        "    update     nan leaves [nan]: the view says nan",
        "    recomputed the rows [] give 0.0",
        "    again      REMOVE_INVERTS.test(thing, rows=(), value=nan)",
        "    try        what was added to NaN or infinity cannot be had back from it: use "
        "ebbflow.reducer.sum or mean, which count them apart, or elements= without them",
    ]


@pytest.mark.parametrize("init", [0.0, (0.0, 0), {}], ids=["number", "pair", "dict"])
def test_nan_in_an_accumulator_is_nan(init: Any) -> None:
    def add(acc: Any, x: float) -> Any:
        if isinstance(acc, tuple):
            return acc[0] + x, acc[1] + 1
        return {**acc, "sum": acc.get("sum", 0.0) + x} if isinstance(acc, dict) else acc + x

    assert judge(Reducer(init, add), elements=[NAN, 1.0]).verdict == "refold"


def test_what_the_remedy_names_takes_nan_out_again() -> None:
    assert check(ef.sum(), elements=[1.0, NAN, math.inf]).verdict == "invertible"
    assert check(ef.mean(), elements=[1.0, NAN, math.inf]).verdict == "invertible"


def test_a_monoid_may_have_nan() -> None:
    assert check(Monoid(0.0, plus, name="sums", commutative=True, elements=[NAN, 1.0, 2.0]))
    assert alike(frozenset({NAN, 1}), frozenset({float("nan"), 1}))
    assert not alike([NAN], (NAN,))
    assert not alike({NAN}, {1.0})


# ---- equal accumulators ----


def test_equal_dicts_are_shown_with_what_differs() -> None:
    counts = Reducer(
        {}, lambda a, x: {**a, x: a.get(x, 0) + 1}, result=list, name="order", elements=range(3)
    )
    assert lines(counts)[4:] == [
        "    y          1",
        "    left side  {0: 1, 1: 1}, shown as [0, 1]",
        "    right side {1: 1, 0: 1}, shown as [1, 0]",
        "    one order  [0, 1] give {0: 1, 1: 1}, shown as [0, 1]",
        "    another    [1, 0] give {1: 1, 0: 1}, shown as [1, 0]",
        "    again      ADD_COMMUTES.test(thing, rows=(), x=0, y=1)",
        "    try        the accumulators are equal and are shown differently: let result depend "
        "neither on the order in a dict or set (sort there) nor on what equal= leaves out",
    ]


def test_floats_round_is_said_of_floats_only() -> None:
    hidden = Reducer(
        (frozenset(), 0), lambda a, x: (a[0] | {x}, a[1] + x), lambda a, x: RECOMPUTE,
        equal=lambda a, b: a[0] == b[0], result=lambda a: a[1] % 7, elements=[1],
    )  # fmt: skip
    alone = Reducer((frozenset(),), lambda a, x: (a[0] | {x},), lambda a, x: (a[0] - {x},))
    for broken in (judge(hidden).broken, judge(alone, elements=[0.5, 1.5]).broken):
        assert broken is None or "floats" not in broken.remedy
    drifts = judge(Reducer(0.0, plus, minus), elements=[0.1, 0.2, 0.3]).broken
    assert drifts is not None
    assert drifts.remedy.startswith("floats round: ")


def test_floats_that_are_kept_and_not_calculated_are_no_reason_for_a_note() -> None:
    largest = Reducer(-math.inf, max, lambda a, x: RECOMPUTE, elements=[0.5, 0.1])
    assert not any("floats" in note for note in check(largest).notes)


# ---- small cases, soon ----


def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a smaller case for a moment only."""
    monkeypatch.setattr(sys.modules["ebbflow.laws.check"], "SECONDS", 0.2)


def test_rows_beyond_a_limit_are_few_and_simple() -> None:
    total = Reducer(0, plus, lambda a, x: a - x - (a >= 1000), elements=range(100))
    case = judge(total).broken.case
    assert len(case["rows"]) <= 12
    unsorted = Reducer((), lambda a, x: (*a, x) if len(a) > 50 else tuple(sorted((*a, x))))
    case = judge(unsorted, elements=st.text()).broken.case
    assert set(case["rows"]) == {""}
    assert len(case["rows"]) == 50


def test_a_slow_reducer_is_refuted_after_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def slow(a: int, x: int) -> int:
        nonlocal calls
        calls += 1
        sleep(0.0005)
        return a - x if x < 50 else a

    soon(monkeypatch)
    assert judge(Reducer(0, plus, slow), elements=st.integers(0, 100)).verdict == "refuted"
    assert calls < 3000


# ---- a first accumulator ----


class Box:
    def __init__(self) -> None:
        self.total = 0

    def __repr__(self) -> str:
        return f"Box({self.total})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.total == other.total

    def __hash__(self) -> int:
        return 1


def into(box: Box, x: int) -> Box:
    box.total += x
    return box


def test_a_zero_that_add_changes_is_put_back() -> None:
    zero = Box()
    assert lines(Reducer(zero, into, name="boxed"), elements=range(3))[:6] == [
        "boxed breaks a law: add changes the accumulator it is given in place",
        "    law        ADD_KEEPS: acc after add(acc, value) is acc, acc = fold(rows)",
        "    rows       ()",
        "    value      1",
        "    left side  Box(1)",
        "    right side Box(0)",
    ]
    assert zero.total == 0


@pytest.mark.parametrize("shared", [[], {}, set()], ids=["list", "dict", "set"])
def test_a_zero_that_a_function_shares_is_put_back_too(shared: Any) -> None:
    def add(acc: Any, x: int) -> Any:
        if isinstance(acc, dict):
            acc[x] = 1
        else:
            acc.add(x) if isinstance(acc, set) else acc.append(x)
        return acc

    broken = judge(Reducer(lambda: shared, add), elements=range(3)).broken
    assert broken is not None
    assert broken.law is ADD_KEEPS
    assert not shared


def test_a_first_accumulator_that_is_asked_for_by_identity_stays_the_same() -> None:
    class Missing:
        def __init__(self, name: str) -> None:
            self.name = name

    missing = Missing("none yet")
    most = Reducer(missing, lambda a, x: x if a is missing else max(a, x))
    assert check(most, elements=range(3)).verdict == "refold"


# ---- operators, programs and representations ----


def test_changes_for_an_operator_are_made_of_the_inputs_given() -> None:
    seen: set[Any] = set()

    def size(word: str) -> int:
        seen.add(word)
        return len(word)

    check(map_rows(size), inputs=[ZSet.of(["a", "bb"]), ZSet.of(["ccc"])], examples=15)
    assert seen == {"a", "bb", "ccc"}
    bags = ZSet.of(["a"]), ZSet.of(["bb"])
    check(join(len, len), inputs=[bags, bags[::-1]], examples=5)


class Forgetful(Operator[Any, Any, Any, Any]):
    """Counts rows, and forgets that one can go."""

    input = count().input
    output = count().output

    def f(self, x: Any) -> Any:
        return count().f(x)

    def init(self, x: Any) -> Any:
        return count().init(x)

    def step(self, state: Any, change: Any) -> Any:
        come = ZSet({row: n for row, n in change.items() if n > 0})
        return count().step(state, come)


def test_removals_of_what_was_given_are_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    soon(monkeypatch)
    with pytest.raises(LawBroken, match="recomputing") as error:
        check(Forgetful(), inputs=[ZSet.of(["a", "bb"])], laws=[FROM_SCRATCH])
    assert set(error.value.case["x"]) <= {"a", "bb"}


def test_per_key_refuses_what_takes_no_bags() -> None:
    with pytest.raises(CompositionError) as error:
        per_key(str.upper, len)  # type: ignore[arg-type]
    assert str(error.value).splitlines()[0] == (
        "per_key(str.upper): the rows of a key are a bag, and str.upper is no operator"
    )
    with pytest.raises(CompositionError) as error:
        per_key(text.upper, len)
    assert [line for line in str(error.value).splitlines() if "created" not in line] == [
        "per_key(upper): the rows of a key are a bag, and upper takes TEXT",
        "    try        an operator on bags, such as count() or map_rows(f)",
    ]


@pytest.mark.parametrize("make", [lambda rows: rows.map(str), lambda rows: ef.program(all=rows)])
def test_a_program_is_told_how_it_is_tested(make: Any) -> None:
    with pytest.raises(CheckError) as error:
        check(make(ef.Input("rows", int)))
    assert error.value.what == (
        "a program owes no laws; it has to give what computing it from scratch gives"
    )
    assert error.value.remedy == (
        "compare the two: in a test with changes(program) and follow of ebbflow.testing, in a "
        "running view with view.verify(); check its reducers by name"
    )


def test_representations_are_shown_as_they_were_made() -> None:
    assert repr(tabulate(full_adder(), [0, 1])) == "tabulate(full_adder(), [0, 1])"
    words = defunctionalise(full_adder(), [(0, 0), (0, 1)])
    assert repr(words) == "defunctionalise(full_adder(), [(0, 0), (0, 1)])"
    assert str(
        check(tabulate(full_adder(), [0, 1]), elements=[[(0, 1)], [(1, 1), (0, 0)]])
    ).startswith("tabulate(full_adder(), [0, 1]): ")
