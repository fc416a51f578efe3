"""The total order of values: total, transitive, Python's own among values of one type."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.change import List, Text
from ebbflow.errors import AlgebraError
from ebbflow.frozen import Frozen
from ebbflow.hashing import stable_hash
from ebbflow.nan import NAN, one_nan
from ebbflow.ordering import Reversed, all_comparable, comparable, total_order_key
from ebbflow.state.tree import Tree

many = settings(max_examples=200)


class Point(NamedTuple):
    x: Any
    y: Any = 0


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int | None = None


@dataclass(frozen=True)
class Place:
    """Without an order of its own, and with a field that says nothing of what it is."""

    x: Any
    y: Any = 0
    seen: int = field(default=0, compare=False)


class Named(Place):
    pass


@dataclass(frozen=True)
class Written:
    """With an equality that somebody wrote."""

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Written) and abs(self.x) == abs(other.x)

    def __hash__(self) -> int:
        return abs(self.x)

    def __repr__(self) -> str:
        return f"Written({abs(self.x)})"


class Color(Enum):
    RED = 1
    BLUE = 2


class Unordered:
    """Equal by content, and printed by address."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unordered)

    def __hash__(self) -> int:
        return 1


ZONE = timezone(timedelta(hours=2))
DAYS = datetime(2024, 1, 1), datetime(2024, 1, 3)
numbers = (
    st.integers(-3, 3)
    | st.booleans()
    | st.floats(-3, 3)
    | st.sampled_from([NAN, float("inf"), Decimal("NaN"), Decimal("1.5"), Fraction(1, 2)])
)
single: Any = (
    numbers
    | st.none()
    | st.text("ab", max_size=2)
    | st.binary(max_size=2)
    | st.datetimes(*DAYS, timezones=st.sampled_from([None, UTC, ZONE]))
    | st.dates(date(2024, 1, 1), date(2024, 1, 3))
    | st.builds(Version, st.integers(0, 2), st.none() | st.integers(0, 2))
    | st.sampled_from([time(1), time(1, tzinfo=UTC), timedelta(1), 3j, range(3), UUID(int=7)])
    | st.sampled_from([*Color])
)
values: Any = st.recursive(
    single,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(Point, inner, inner)
        | st.builds(Place, inner, inner)
        | st.dictionaries(st.sampled_from("ab"), inner).map(Frozen)
        | st.frozensets(inner, max_size=3)
    ),
    max_leaves=5,
).map(one_nan)


def before(a: Any, b: Any) -> bool:
    return total_order_key(a) < total_order_key(b)


@many
@given(values, values, values)
def test_the_order_is_total_and_transitive(a: Any, b: Any, c: Any) -> None:
    assert before(a, b) + before(b, a) + (total_order_key(a) == total_order_key(b)) == 1
    assert not (before(a, b) and before(b, c)) or before(a, c)
    assert not (a is b or a == b) or total_order_key(a) == total_order_key(b)


@many
@given(values, values)
def test_values_that_are_comparable_are_ordered_by_python_as_by_their_keys(a: Any, b: Any) -> None:
    if comparable(a) and comparable(b):
        try:
            native = a < b
        except TypeError:
            return
        assert native == before(a, b)


@pytest.mark.parametrize(
    "ordered",
    [
        [-2, 0.5, Fraction(2, 3), 1, Decimal("1.5"), 2.0, float("inf")],
        ["", "a", "ab", "b"],
        [(), (1,), (1, 2), (2,)],
        [datetime(2024, 1, 1), datetime(2024, 1, 2)],
        [datetime(2024, 1, 1, 1, tzinfo=ZONE), datetime(2024, 1, 1, tzinfo=UTC)],
        [date(2024, 1, 1), date(2024, 1, 2)],
        [timedelta(1), timedelta(2)],
        [UUID(int=1), UUID(int=2)],
        [Version(1, 1), Version(1, 2), Version(2, 0)],
        [frozenset(), frozenset({2}), frozenset({1, 2}), frozenset({0, 1, 2})],
    ],
)
def test_among_values_of_one_type_the_order_is_that_of_python(ordered: list[Any]) -> None:
    assert all(a < b and before(a, b) for a, b in pairwise(ordered))


def test_every_type_has_its_place() -> None:
    ordered: list[Hashable] = [
        None, -1, 2.5, NAN, b"b", "a", (), (None,), (1, None), (1, 0), (1, NAN), ("a",),
        frozenset(), frozenset({2}), frozenset({1, 2}), frozenset({1, None, 2}),
        Version(1), Version(1, 0), date(2024, 1, 1), datetime(2024, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC), Color.BLUE, Color.RED, 3j,
    ]  # fmt: skip
    shuffled = Random(3).sample(ordered, len(ordered))
    assert sorted(shuffled, key=total_order_key) == ordered


@pytest.mark.parametrize(
    "equal",
    [
        [1, 1.0, True, Decimal(1), Fraction(1)],
        [(1, "a"), (1.0, "a"), Point(True, "a")],
        [frozenset({1, 2}), frozenset({2.0, 1.0})],
        [datetime(2024, 1, 1, 2, tzinfo=ZONE), datetime(2024, 1, 1, tzinfo=UTC)],
        [Place(1, "a"), Place(1.0, "a"), Place(True, "a", seen=3)],
        [Place(Place(1)), Place(Place(1.0))],
        [Named(1), Named(1.0)],
        [Written(1), Written(-1)],
        [Frozen(a=1, b=2), Frozen(b=2, a=1.0)],
        [range(0), range(3, 1), range(0, 0, 5)],
        [range(0, 3, 2), range(0, 4, 2)],
    ],
)
def test_equal_values_have_one_place_and_one_hash(equal: list[Any]) -> None:
    assert all(a == b for a in equal for b in equal)
    assert len({total_order_key(x) for x in equal}) == 1
    assert Tree.of(equal).distinct == 1
    assert len({stable_hash(x) for x in equal}) == 1


def test_dataclasses_are_ordered_by_their_fields_as_tuples_are() -> None:
    tuples = [(2, "a"), (10, "a"), (10, None), (None, "b"), (9, NAN), (-3, 1), (Place(9), 1)]
    tuples += [(Place(10), 1)]
    ordered = sorted(tuples, key=total_order_key)
    places = sorted([Place(*each) for each in tuples], key=total_order_key)
    assert [(each.x, each.y) for each in places] == ordered
    assert len({total_order_key(each) for each in (Place(1), Named(1), Place(2))}) == 3
    assert stable_hash(Place(1)) != stable_hash(Place(2))


def test_a_value_that_prints_differently_each_time_has_no_place() -> None:
    with pytest.raises(AlgebraError, match="Unordered has no place in an order"):
        total_order_key(Unordered())
    with pytest.raises(AlgebraError, match="signaling NaN"):
        total_order_key((1, Decimal("sNaN")))


def test_a_tree_keeps_its_order_when_what_comes_is_not_comparable() -> None:
    odd = [NAN, None, "a", frozenset({1}), (1, NAN), Version(1)]
    for late in odd:
        tree = Tree.of(range(300)).add(late)
        assert tree.invariant()
        expected = sorted([*range(300), late], key=total_order_key)
        assert [x for x, _ in tree] == expected
        assert [tree.rank(x) for x in expected] == list(range(301))
        assert Tree.of(range(300)).count(late) == 0
        assert tree.remove(late) == Tree.of(range(300))


# ---- the other way round ----

anything = st.recursive(
    numbers | st.none() | st.text("ab", max_size=2) | st.sampled_from([b"a", DAYS[0], Color.RED]),
    lambda inside: st.tuples(inside) | st.tuples(inside, inside),
    max_leaves=4,
).map(one_nan)


few = settings(max_examples=40)


@given(st.lists(anything, max_size=6))
@few
def test_what_is_reversed_is_in_the_reverse_of_the_order(values: list[Any]) -> None:
    down = sorted(map(Reversed, values), key=total_order_key)
    up = sorted(values, key=total_order_key)
    assert [total_order_key(each.value) for each in down] == [*map(total_order_key, up)][::-1]


@given(anything, anything)
@few
def test_reversed_values_are_equal_and_hash_as_theirs_and_travel(a: Any, b: Any) -> None:
    assert (Reversed(a) == Reversed(b)) == (a is b or a == b)
    assert Reversed(a) == Reversed(a)
    assert hash(Reversed(a)) == hash(Reversed(a))
    assert pickle.loads(pickle.dumps(Reversed(a))) == Reversed(a)
    if comparable(Reversed(a)) and comparable(Reversed(b)):
        with suppress(TypeError):
            less = Reversed(a) < Reversed(b)
            assert less == (total_order_key(Reversed(a)) < total_order_key(Reversed(b)))


def test_reversed_values_are_tokens_of_a_tree() -> None:
    tree = Tree.of([("x", Reversed("b")), ("x", Reversed("a")), ("a", Reversed(None))])
    assert [token[1].value for token, _ in tree] == [None, "b", "a"]
    mixed = tree.add(("x", Reversed(3)))
    assert [token[1].value for token, _ in mixed] == [None, "b", "a", 3]
    assert mixed.invariant()
    assert Reversed(1) != 1
    with pytest.raises(TypeError):
        Reversed(1) < 2  # noqa: B015


def test_texts_and_lists_to_be_edited_have_the_place_of_what_they_equal() -> None:
    assert total_order_key(Text("ebb")) == total_order_key("ebb")
    assert total_order_key(List([1, "a"])) == total_order_key((1, "a"))
    found = sorted([Text("b"), 3, "a", Text("c"), List([1])], key=total_order_key)
    assert found == [3, "a", "b", "c", (1,)]


def test_values_are_comparable_together_where_each_of_them_is() -> None:
    random = Random(1)
    single: list[Any] = [1, True, "a", None, 1.5, NAN, -0.0, date(2024, 1, 1), frozenset(), []]
    usual = single[:5]
    for _ in range(2000):
        some = random.choice([single, usual])
        width = random.randrange(3)
        values = [
            tuple(random.choice(some) for _ in range(random.choice([width, width, width, 1])))
            if random.random() < 0.7
            else random.choice([random.choice(some), (1, (2, random.choice(some)))])
            for _ in range(random.randrange(4))
        ]
        assert all_comparable(values) == all(map(comparable, values)), values
