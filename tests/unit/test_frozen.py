"""Inputs whose rows are hinted with lists, dicts and sets: rows hold what can be hashed."""

import pickle
from collections import deque
from dataclasses import dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import ChangeError, CompositionError
from ebbflow.frozen import Frozen, apart, frozen
from ebbflow.record import fields_of
from ebbflow.zset import ZSet


class Place(NamedTuple):
    city: str
    zips: list[int]


class Post(NamedTuple):
    id: int
    tags: list[str]
    counts: dict[str, int]
    places: list[Place]
    words: set[str] | None = None


POSTS = ef.Input("posts", Post, key="id")
ONE = Post(1, ["a", "b"], {"x": 1}, [Place("Rome", [1, 2])], {"w"})
HELD = Post(1, ("a", "b"), Frozen(x=1), (Place("Rome", (1, 2)),), frozenset({"w"}))  # type: ignore[arg-type]
TWO = Post(2, ["b"], {}, [], None)


@pytest.fixture(params=["in memory", "on disk"])
def options(request: Any, tmp_path: Path) -> dict[str, Any]:
    return {} if request.param == "in memory" else {"path": tmp_path}


def test_a_row_holds_tuples_frozen_dicts_and_frozensets(options: dict[str, Any]) -> None:
    with POSTS.filter(lambda post: "a" in post.tags).run(**options) as view:
        view.step(posts=[ONE, TWO])
        (row,) = view.value
        assert (row, type(row)) == (HELD, Post)
        assert [type(part) for part in row] == [type(part) for part in HELD]
        assert [type(row.places[0]), type(row.places[0].zips)] == [Place, tuple]


def test_rows_with_lists_are_found_again(options: dict[str, Any]) -> None:
    tags = ef.Input("posts", Post).flat_map(lambda post: post.tags)
    with tags.group_by(tag=lambda tag: tag).agg(n=ef.count()).run(**options) as view:
        view.step(posts=[ONE, TWO, ONE])
        assert sorted(map(tuple, view.value)) == [("a", 2), ("b", 3)]
        view.input("posts").remove(ONE)
        view.step(posts={HELD: -1})
        assert sorted(map(tuple, view.value)) == [("b", 1)]


def test_upserts_and_state_that_is_opened_again(tmp_path: Path) -> None:
    program = POSTS.select("id", "tags", n=lambda post: post.counts["x"])
    with program.run(path=tmp_path) as view:
        view.input("posts").upsert(ONE)
    with program.run(path=tmp_path) as view:
        view.input("posts").upsert(ONE._replace(counts={"x": 5}))
        assert [tuple(row) for row in view.value] == [(1, ("a", "b"), 5)]


def test_the_types_say_what_rows_hold() -> None:
    chosen = POSTS.select("tags", "counts", "words", first=lambda post: post.tags[0])
    assert fields_of(chosen.type) == {
        "tags": tuple[str, ...], "counts": Frozen[str, int], "words": frozenset[str] | None,
        "first": str,
    }  # fmt: skip
    assert POSTS.flat_map(lambda post: post.tags).type is str
    joined = POSTS.join(ef.Input("more", Place), left_on="id", right_on=lambda p: p.zips[0])
    assert (fields_of(joined.type) or {})["zips"] == tuple[int, ...]


def test_only_an_input_may_hint_at_lists() -> None:
    with pytest.raises(CompositionError, match="a list in the field 'tags'"):
        POSTS.map(lambda post: post, type=Post)


def test_a_row_with_a_list_where_no_hint_says_so_is_refused() -> None:
    view = ef.Input("words", tuple).run()
    with pytest.raises(ChangeError, match="a row must be hashable"):
        view.step(words=[("a", ["b"])])
    view = ef.Input("posts", Post).run()
    with pytest.raises(ChangeError, match="a row must be hashable"):
        view.step(posts=[Post(1, [bytearray(b"x")], {}, [])])  # type: ignore[list-item]


def test_what_is_hashable_already_is_left_alone() -> None:
    assert frozen(HELD) == HELD
    assert frozen("text") == "text"


@dataclass(frozen=True)
class Holding:
    inside: Any


class Marker:
    """Steps may know an object without attributes by its identity."""


class Counting:
    """An object that gets its attributes later."""

    count = 0

    def add(self) -> None:
        self.count += 1


class Holder:
    def __init__(self) -> None:
        self.inside: list[int] = []


class Pair(NamedTuple):
    name: str
    inside: Any


class Color(Enum):
    RED = 1


UNALTERED = [
    None, 1, "a", (1, ("a", None)), Fraction(1, 2), frozenset({(1, 2)}), Holding((1, 2)), Color.RED,
    Frozen(a=(1,)), ZSet({(1, 2): 1}), Marker(), object(), date(2026, 1, 1), Pair("a", 1),
]  # fmt: skip
ALTERED = [
    [1], (1, [2]), (1, (2, {})), Holding([1]), Holding((1, {2})), Holder(), (Holder(), 1),
    Frozen(a=Holder()), frozenset({Holder()}), bytearray(b"a"), deque([1]), Pair("a", [1]),
    Counting(), SimpleNamespace(),
]  # fmt: skip


@pytest.mark.parametrize("state", UNALTERED, ids=lambda state: type(state).__name__)
def test_a_state_that_cannot_be_altered_is_its_own_copy(state: Any) -> None:
    copied = apart(state)
    assert copied is state or (type(copied) is Fraction and copied == state)


@pytest.mark.parametrize("state", ALTERED, ids=lambda state: type(state).__name__)
def test_a_state_that_holds_what_can_be_altered_is_copied(state: Any) -> None:
    copied = apart(state)
    assert copied is not state
    assert type(copied) is type(state)


MARKER, OTHER = Marker(), object()
AROUND: list[Any] = [
    [MARKER, OTHER], {"a": MARKER, OTHER: 1}, ([], MARKER, OTHER), deque([(MARKER, OTHER)]),
    SimpleNamespace(a=MARKER, b=[OTHER]), {MARKER, OTHER, Holder()}, Pair("a", [MARKER, OTHER]),
    Holding([MARKER, {1: OTHER}]),
]  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return leaves([*value, *value.values()])
    if isinstance(value, (list, tuple, set, deque)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value, *leaves(list(getattr(value, "__dict__", {}).values()))]


@pytest.mark.parametrize("state", AROUND, ids=lambda state: type(state).__name__)
def test_a_copied_state_holds_the_same_markers(state: Any) -> None:
    copied = apart(state)
    pickle.dumps(MARKER)  # which notes something in its class
    found = leaves(apart(copied))
    assert copied is not state
    assert any(each is MARKER for each in found)
    assert any(each is OTHER for each in found)


def test_a_list_that_a_state_holds_twice_is_one_list_in_its_copy() -> None:
    inside: list[Any] = []
    inside.append(inside)
    first, second = apart((inside, inside))
    assert first is second
    assert first is first[0]
    assert first is not inside
