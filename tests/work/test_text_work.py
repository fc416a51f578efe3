"""How much text operators look at: code points read, counted, in a large text."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ebbflow.change import Delete, First, Insert, Second
from ebbflow.operator import binary
from ebbflow.operator.text import (
    EditLine,
    Rope,
    concat,
    count,
    index_of,
    last_index_of,
    lower,
    replace,
    split_lines,
    trim,
    upper,
)
from ebbflow.operator.text.matcher import LOOKS, BackMatcher, Matcher

N = 1_000_000
PROSE = ("The quick brown fox jumps over the lazy dog. " * (N // 45 + 1))[:N]


def rope_of(state: Any) -> Rope:
    return state if isinstance(state, Rope) else state.rope


class Watch:
    """Counts what the `read` of a rope is given from now on."""

    def __init__(self, rope: Rope) -> None:
        self.calls = self.characters = 0
        inner = rope.read

        def read(state: Any, piece: str) -> tuple[Any, int]:
            self.calls += 1
            self.characters += len(piece)
            return inner(state, piece)

        rope.read = read

    def taken(self) -> tuple[int, int]:
        found = self.calls, self.characters
        self.calls = self.characters = 0
        return found


@pytest.mark.parametrize(
    "operator",
    [index_of("fox"), last_index_of("fox"), count("fox"), count("oo"), replace("fox", "cat"), trim,
     split_lines],
    ids=repr,
)  # fmt: skip
def test_004_O8_an_edit_reads_a_few_leaves_of_a_large_text(operator: Any) -> None:
    state = operator.init(PROSE)
    operator.step(state, Delete(0, 1))
    watch, rnd = Watch(rope_of(state)), random.Random(1)
    for _ in range(100):
        at = rnd.randrange(N // 2)
        edit = Insert(at, "fo x") if rnd.random() < 0.5 else Delete(at, 4)
        state, _ = operator.step(state, edit)
        calls, characters = watch.taken()
        assert calls <= 12
        assert characters <= 8 * Rope.chunk


@pytest.mark.parametrize("make", [index_of, last_index_of], ids=lambda make: make.__name__)
def test_004_O8_deleting_the_found_match_does_not_scan_the_text(make: Any) -> None:
    text = "needle" + "nee-dle." * (N // 8) + "needle"
    state = make("needle").init(text)
    found, away = (0, len(text) - 12) if make is index_of else (len(text) - 6, 6 - len(text))
    watch = Watch(rope_of(state))
    state, moved = make("needle").step(state, Delete(found, 6))
    assert moved == away
    assert watch.taken()[1] <= 4 * Rope.chunk
    state, moved = make("needle").step(state, Delete(max(found + moved, 0), 6))
    assert state.value == -1
    assert watch.taken()[1] <= 4 * Rope.chunk


def test_004_O8_deleting_match_after_match_reads_each_leaf_about_once() -> None:
    """Also from the front, where each deletion touches the leaf in which the next match is."""
    operator = index_of("fox")
    state = operator.init(PROSE)
    watch = Watch(state.rope)
    for _ in range(300):
        state, _ = operator.step(state, Delete(state.value, 3))
    assert state.value == PROSE.replace("fox", "", 300).find("fox")
    assert watch.characters <= 300 * 4 * Rope.chunk


def test_004_O8_edits_away_from_the_match_read_nothing() -> None:
    first, last = index_of("fox"), last_index_of("fox")
    ahead, behind = first.init(PROSE), last.init(PROSE)
    watches = [Watch(ahead.rope), Watch(behind.rope)]
    for at in range(1000, 400_000, 1000):
        ahead, moved = first.step(ahead, Insert(at, "a fox"))
        assert moved == 0
        behind, moved = last.step(behind, Insert(at, "a fox"))
        assert moved == 5
    assert [watch.taken() for watch in watches] == [(0, 0), (0, 0)]


def test_004_O8_the_second_phase_of_a_chain_is_read_once() -> None:
    """Counting "aa" in a's: an `a` in front moves every match. Each leaf is read in two states."""
    operator = count("aa")
    state = operator.init("a" * N)
    watch = Watch(state.rope)
    for i in range(20):
        state, moved = operator.step(state, Insert(0, "a"))
        assert moved == i % 2
    assert watch.characters <= N + 60 * Rope.chunk


def test_004_O8_case_of_ordinary_text_reads_nothing() -> None:
    for operator in (lower, upper):
        state = operator.init(PROSE)
        assert (getattr(state, "rope", None) is None) == (operator is upper)
        if operator is lower:
            watch = Watch(state.rope)
            for at in range(0, 400_000, 1000):
                state, change = operator.step(state, Insert(at, "Fox"))
                assert change == (Insert(at, "fox"),)
            assert watch.taken() == (0, 0)


def test_004_O8_a_growing_character_that_comes_and_goes_reads_a_few_leaves() -> None:
    """The text is taken in once: not again for each "ß" that is typed and deleted."""
    state = upper.init(PROSE)
    state, _ = upper.step(state, Insert(N // 2, "ß"))
    state, _ = upper.step(state, Delete(N // 2, 1))
    rope, watch = state.rope, Watch(state.rope)
    for at in range(1000, N, 10_000):
        state, change = upper.step(state, Insert(at, "ß"))
        assert change == Insert(at, "SS")
        state, change = upper.step(state, Insert(at + 1, "x"))
        assert change == Insert(at + 2, "X")
        state, change = upper.step(state, Delete(at, 2))
        assert change == Delete(at, 3)
        assert watch.taken()[1] <= 8 * Rope.chunk
    assert state.rope is rope


class Counted(str):
    """A text that counts the letters that are copied out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        found = super().__getitem__(key)
        Counted.copied += len(found)
        return found


@pytest.mark.parametrize("back", [False, True])
def test_004_O8_a_long_pattern_that_is_almost_there_everywhere_is_read_once(back: bool) -> None:
    """Comparing at every "a" would copy and compare m letters m times."""
    m = 20_000
    pattern, tail = "a" * m + "b", "a" * (m // 2) + "c" + "a" * (m // 2 - 1)
    matcher: Any = BackMatcher(pattern[::-1]) if back else Matcher(pattern)
    begun = matcher.ended if back else matcher.begun
    Counted.copied = 0
    assert begun(Counted(tail)) == (m // 2 if back else m // 2 - 1)
    assert Counted.copied <= (LOOKS + 1) * m
    table = matcher._borders
    begun(tail)
    assert table is matcher._borders is not None


def test_004_O8_a_pattern_longer_than_a_leaf_has_longer_leaves() -> None:
    """What an edit leaves begun would otherwise be carried over many leaves, at O(m) each."""
    m = 10 * Rope.chunk
    operator = count("a" * m + "b")
    state = operator.init("a" * N)
    watch = Watch(state.rope)
    for at in (N // 2, N // 4, N // 3):
        state, moved = operator.step(state, Insert(at, "c"))
        assert moved == 0
        assert watch.taken()[0] <= 4


@pytest.mark.parametrize("back", [False, True])
def test_004_O8_a_search_in_vain_is_remembered(back: bool) -> None:
    """By the branches too: the next search does not go down to every leaf."""
    visits = 0

    class Visited(Rope):
        def _seek(self, *args: Any) -> Any:
            nonlocal visits
            visits += 1
            return super()._seek(*args)

    rope = Visited(PROSE, lambda state, piece: (state, piece.count("!")))

    def search(margin: int) -> int:
        nonlocal visits
        visits = 0
        assert (rope.last(rope.size - margin) if back else rope.first(margin)) is None
        return visits

    assert search(0) > N // Rope.chunk
    assert search(0) == 1
    assert search(10) <= 3 * Rope.fan
    rope.insert(N // 2, "?")
    assert search(0) <= 3 * Rope.fan
    assert search(0) == 1


def test_004_O8_a_sigma_far_from_any_solid_character_is_found_by_its_leaves() -> None:
    """A million full stops are passed over by leaf, not one by one."""
    state = lower.init("Σ" + "." * N + "A")
    watch = Watch(state.rope)
    state, change = lower.step(state, Delete(N // 2, 1))
    watch.taken()
    state, change = lower.step(state, Insert(N // 2, "a"))
    assert change == (Insert(N // 2, "a"),)
    state, change = lower.step(state, Insert(0, "a"))
    assert change == (Insert(0, "a"),)
    assert watch.taken()[1] <= 40 * Rope.chunk


def test_004_O8_a_letter_typed_in_a_very_long_line_is_one_edit_of_that_line() -> None:
    text = "x" * N + "\n" + "y" * N
    state = split_lines.init(text)
    watch = Watch(state)
    state, changes = split_lines.step(state, Insert(N + 1 + N // 2, "z"))
    assert changes == (EditLine(1, Insert(N // 2, "z")),)
    assert watch.taken()[1] <= 8 * Rope.chunk


def test_004_O9_the_pipeline_reads_nothing_for_edits_before_the_last_match() -> None:
    operator = binary(lower, upper, concat) >> last_index_of("A")
    state = operator.init((PROSE, PROSE))
    watches = [Watch(state[0][0].rope), Watch(state[2].rope)]
    for at in range(0, 200_000, 1000):
        state, moved = operator.step(state, First(Insert(at, "abc")))
        assert moved == (3,)
        state, moved = operator.step(state, Second(Delete(at, 3)))
        assert moved == (-3,)
    assert [watch.taken() for watch in watches] == [(0, 0), (0, 0)]
