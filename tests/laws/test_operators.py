"""Operators and how they are put together: every axiom, on sequences of changes."""

from __future__ import annotations

import math
import operator
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow.change import (
    BAG,
    NATURAL,
    NUMBER,
    TEXT,
    Both,
    Delete,
    First,
    Insert,
    Replace,
    Second,
    mapping,
    pair,
    sequence,
)
from ebbflow.errors import AlgebraError, ChangeError, CompositionError, LawBroken
from ebbflow.laws import ACCEPTS, FROM_SCRATCH, INIT, OUTPUT_VALID, STEP, check, laws_of
from ebbflow.operator import (
    Operator,
    aggregate,
    binary,
    count,
    difference,
    distinct,
    each,
    group_aggregate,
    join,
    map_rows,
    on_input,
    select,
    seq,
    stateless,
)
from ebbflow.operator.text import concat, is_empty, length, lower, trim
from ebbflow.state import Tree
from ebbflow.zset import ZSet


def square_of(n: int) -> int:
    return n * n


def square_moves(n: int, k: int) -> int:
    return 2 * n * k + k * k


def triple(n: int) -> int:
    return 3 * n


def even(n: int) -> bool:
    return n % 2 == 0


square = on_input(square_of, square_moves, input=NUMBER, output=NUMBER)
tripled = stateless(triple, triple, input=NUMBER, output=NUMBER)


class Parity(Operator[int, int, str, Any]):
    """A state of its own: one bit, with an invariant that says what it means."""

    input = NATURAL
    output = sequence(TEXT)

    def f(self, x: int) -> str:
        return "odd" if x % 2 else "even"

    def init(self, x: int) -> bool:
        return bool(x % 2)

    def step(self, state: bool, change: int) -> tuple[bool, Any]:
        odd = state ^ bool(change % 2)
        if odd == state:
            return state, ()
        old = "odd" if state else "even"
        return odd, (Delete(0, len(old)), Insert(0, "odd" if odd else "even"))

    def invariant(self, x: int, state: bool) -> bool:
        return state is bool(x % 2)


OPERATORS = [
    square,
    tripled,
    Parity(),
    each(square),
    tripled >> square >> tripled,
    square * tripled,
    square & tripled,
    (square & tripled) >> (tripled * square),
    length >> Parity(),
    trim >> length >> Parity() >> (lower & length),
    select(even) >> (distinct() & count()),
    binary(select(even), distinct(), join(abs)),
]


@pytest.mark.parametrize("one", OPERATORS, ids=repr)
def test_004_O4_every_axiom_holds_of_operators_and_of_what_is_made_of_them(one: Any) -> None:
    laws = laws_of(one)
    assert all(law in laws for law in (INIT, ACCEPTS, FROM_SCRATCH, OUTPUT_VALID, STEP))
    check(one, examples=12)


@pytest.mark.parametrize("one", OPERATORS, ids=repr)
def test_004_O4_operators_can_be_pickled(one: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(one))) == repr(one)


def test_004_O4_the_shortest_sequence_that_fails_is_shown() -> None:
    class Forgetful(Parity):
        """Forgets to remember every second odd change."""

        def init(self, x: int) -> Any:
            return [bool(x % 2), 0]

        def invariant(self, x: int, state: Any) -> bool:
            return len(state) == 2

        def step(self, state: Any, change: int) -> tuple[Any, Any]:
            odd, output = Parity.step(self, state[0], change)
            times = state[1] + bool(change % 2)
            return [odd if times % 2 else state[0], times], output

    with pytest.raises(LawBroken) as caught:
        check(Forgetful())
    assert len(caught.value.case["changes"]) == 3, "two are right, the third is wrong"


def test_004_O5_the_worked_square() -> None:
    live = square.open(10)
    assert [live.send(k) for k in (1, -11)] == [21, -121]


def test_004_O3_a_stateless_operator_is_lifted_to_sequences() -> None:
    lifted = each(tripled)
    assert (lifted.input, lifted.output) == (sequence(NUMBER), sequence(NUMBER))
    assert lifted.open(0).send((1, 2)) == (3, 6)
    assert each(lower).output == sequence(TEXT), "a sequence of sequences is one sequence"


@given(st.integers(-9, 9), st.lists(st.integers(-9, 9), max_size=6))
def test_004_O9_seq_is_composition(x: int, changes: list[int]) -> None:
    both = tripled >> square
    live, y = both.open(x), both.f(x)
    for change in changes:
        x, y = x + change, y + live.send(change)
        assert y == square_of(triple(x)) == both.f(x)


def test_004_O9_nested_sequences_are_flat_and_lifted_where_they_must_be() -> None:
    a = (tripled >> square) >> tripled
    b = tripled >> (square >> tripled)
    assert repr(a) == repr(b) == repr(seq(tripled, square, tripled))
    assert repr(lower >> length) == "lower >> each(length)"
    to_sequences = stateless(int, lambda c: c, input=sequence(NUMBER), output=sequence(NUMBER))
    assert repr(tripled >> to_sequences).startswith("each(stateless(triple")


def test_004_O9_one_output_feeds_several_operators_and_is_computed_once() -> None:
    calls = []
    watched = stateless(triple, lambda n: calls.append(n) or triple(n), input=NUMBER, output=NUMBER)
    network = watched >> (square & tripled & tripled)
    live = network.open(1)
    assert live.send(1) == Both(Both(27, 9), 9)
    assert calls == [1]


def test_004_O9_binary_takes_either_side_or_both() -> None:
    live = binary(lower, lower, concat).open(("Ab", "Cd"))
    assert live.send(First(Insert(0, "X"))) == (Insert(0, "x"),)
    assert live.send(Second(Delete(0, 1))) == (Delete(3, 1),)
    assert live.send(Both(Delete(0, 1), Insert(1, "E"))) == (Delete(0, 1), Insert(3, "e"))


def test_what_does_not_fit_is_refused_where_it_is_put_together() -> None:
    with pytest.raises(CompositionError, match="the first writes changes of NUMBER") as caught:
        square >> length
    assert "test_operators.py:" in str(caught.value)
    with pytest.raises(CompositionError, match="both sides of & read the same"):
        square & length
    for compose in (lambda o: o >> abs, lambda o: o * 3, lambda o: o & "x"):
        with pytest.raises(TypeError):
            compose(square)


@pytest.mark.parametrize(
    ("one", "x", "junk"),
    [
        (tripled, 1, "x"),
        (length, "abc", "x"),
        (length, "abc", Delete(-1, 2)),
        (each(tripled), 1, 3),
        (each(tripled), 1, ("x",)),
        (square * length, (1, "a"), 5),
        (square * length, (1, "a"), First("x")),
        (map_rows(abs), ZSet(), "x"),
        (square, 1, None),
        (trim >> length, "abc", Insert(9, "x")),
        (distinct(), ZSet(), "ab"),
        (distinct(), ZSet(), {"a": 1}),
        (difference(), (ZSet(), ZSet()), First("ab")),
        (join(abs), (ZSet(), ZSet()), First("ab")),
        (aggregate(max), ZSet(), {"a": 1}),
        (group_aggregate(abs, max), ZSet(), "ab"),
    ],
)
def test_what_is_no_change_is_refused_and_nothing_moves(one: Any, x: Any, junk: Any) -> None:
    live = one.open(x)
    before = repr(live)
    with pytest.raises(ChangeError, match=r"cannot take this change|is no change of"):
        live.send(junk)
    assert repr(live) == before


ROWS = ZSet.of


def fails(*_: Any) -> Any:
    raise RuntimeError("in the user's function")


def fails_at_9(n: int) -> int:
    return n if n != 9 else fails()


@pytest.mark.parametrize(
    ("one", "x", "change"),
    [
        (join(abs, merge=fails), (ROWS([1]), ZSet()), Second(ROWS([1]))),
        (join(abs, merge=lambda a, b: [a]), (ROWS([1]), ZSet()), Second(ROWS([1]))),
        (join(abs, fails_at_9), (ROWS([1]), ROWS([1])), Both(ROWS([2]), ROWS([9]))),
        (group_aggregate(abs, lambda a, b: fails()), ROWS([1]), ROWS([1])),
        (group_aggregate(abs, max, value=lambda n: [n]), ROWS([1]), ROWS([1, 2])),
        (distinct() >> map_rows(fails_at_9), ROWS([1]), ROWS([9])),
        (distinct() & aggregate(max), ROWS([1.0]), ROWS([float("nan")])),
        (distinct() & map_rows(fails_at_9), ROWS([2]), ROWS([9])),
        (select(lambda n: True) >> distinct(), ROWS([1]), ZSet({2: -1})),
        (map_rows(abs) >> aggregate(max), ROWS([1]), ZSet({5: -1})),
        (each(distinct()), ROWS([1]), (ROWS([2]), ZSet({3: -1}))),
        (each(difference()), (ROWS([1]), ZSet()), (First(ROWS([2])), Second(ZSet({3: -1})))),
        (each(is_empty), "abc", (Insert(0, "x"), Delete(0, 100))),
        (aggregate(max), ROWS([1.0]), ROWS([float("nan")])),
        (aggregate(max), ROWS([(1.0,)]), ROWS([(float("nan"),)])),
    ],
    ids=repr,
)  # fmt: skip
def test_a_change_that_fails_half_way_leaves_everything_as_it_was(
    one: Any, x: Any, change: Any
) -> None:
    live = one.open(x)
    with pytest.raises((ChangeError, RuntimeError, TypeError, AlgebraError)):
        live.send(change)
    assert one.invariant(x, live.state)


def test_max_has_a_place_for_rows_that_python_does_not_compare() -> None:
    live = aggregate(max).open(ROWS([1, 2]))
    assert live.send(ZSet({"x": 1, 2: -1})) == Replace("x")
    assert aggregate(max).f(ROWS([1, "x"])) == "x"


def test_weights_may_be_larger_than_any_machine_word() -> None:
    many = 2**70
    assert aggregate(max).open(ROWS([1])).send(ZSet({2: many})) == Replace(2)
    assert count().f(ZSet({1: many})) == many
    total = aggregate(operator.add, empty=0, output=NUMBER)
    assert total.open(ZSet()).send(ZSet({3: many})) == 3 * many


@pytest.mark.parametrize(
    "rows",
    [
        [("a", frozenset(s)) for s in ("yz", "xy", "y", "x")],
        [(1, (2, frozenset(s))) for s in ("yz", "xy", "y", "x")],
        [Decimal(0), 6, "b", Decimal(7), None, 2.5],
        [datetime(2024, 1, 1), datetime(2023, 1, 1, tzinfo=UTC), datetime(2025, 1, 1)],
    ],
)
def test_004_O7_rows_of_any_kind_come_and_go(rows: list[Any]) -> None:
    live = aggregate(operator.add, value=lambda row: 1, empty=0, output=NUMBER).open(ZSet())
    for order in (rows, rows[::-1]):
        assert [live.send(ROWS([row])) for row in order] == [1] * len(rows)
        assert [live.send(-ROWS([row])) for row in order[1:] + order[:1]] == [-1] * len(rows)


def test_004_O7_nan_inside_a_row_is_behind_all_numbers() -> None:
    assert Tree.of([(math.nan,), (1.0,)]).last == (math.nan,)


def test_a_structure_says_what_is_a_change_of_it_at_all() -> None:
    assert pair(NUMBER, TEXT).is_change(Both(1, Insert(0, "a")))
    assert not pair(NUMBER, TEXT).is_change(Both(1, 2))
    assert sequence(TEXT).is_change(())
    assert not sequence(TEXT).is_change([Insert(0, "a")])
    assert not mapping(NUMBER).is_change({"a": 1})
    assert BAG.is_change(ZSet({"a": -1}))
    assert not BAG.is_change({"a": -1})
