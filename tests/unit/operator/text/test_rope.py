"""Ropes: every edit and every question against a plain `str`, and the shape of the tree."""

from __future__ import annotations

import copy
import pickle
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.change import TEXT, Delete, Insert
from ebbflow.change.rope import _splices
from ebbflow.errors import ChangeError
from ebbflow.operator.text import Hit, Rope, index_of, last_index_of, matcher, replace, search
from ebbflow.operator.text.matcher import BackMatcher, Matcher

WORDS = st.text("ab ", max_size=30)
PLANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), WORDS), max_size=12)
SIZES = [(2, 4, 0), (3, 4, 1), (4, 4, 5), (5, 7, 512), (16, 32, 3)]


def words(inside: bool | None, piece: str) -> tuple[bool | None, int]:
    """How many words begin: the state is whether the text so far ends inside one."""
    if not piece:
        return inside, 0
    begun = len(piece.split()) - (bool(inside) and not piece[0].isspace())
    return not piece[-1].isspace(), begun


def assert_sound(rope: Rope) -> None:
    """All leaves equally deep, nothing too full or too empty, sizes right, and what is known so."""
    root = rope._tree()

    def walk(node: Any, height: int, root: bool) -> str:
        if not height:
            assert len(node.text) <= rope._leaf
            assert root or 4 * len(node.text) >= rope._leaf
            text = node.text
        else:
            assert 2 <= len(node.kids) <= rope.fan
            assert root or 4 * len(node.kids) >= rope.fan
            parts = [walk(kid, height - 1, False) for kid in node.kids]
            assert [len(part) for part in parts] == node.sizes
            text = "".join(parts)
        for state, found in node.known.items():
            assert rope.read(state, text) == found
        return text

    assert len(walk(root, len(rope._heights), True)) == len(rope)


def edited(rope: Rope, text: str, at: int, count: int, new: str) -> str:
    at = at % (len(text) + 1)
    if new:
        rope.insert(at, new)
        return text[:at] + new + text[at:]
    count = min(count, len(text) - at)
    rope.delete(at, count)
    return text[:at] + text[at + count :]


@pytest.mark.parametrize(("chunk", "fan", "notes"), SIZES)
def test_a_rope_is_a_str(chunk: int, fan: int, notes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("chunk", chunk), ("fan", fan), ("notes", notes)):
        monkeypatch.setattr(Rope, name, value)

    @given(WORDS, PLANS)
    @settings(max_examples=40)
    def same(text: str, plan: list[tuple[int, int, str]]) -> None:
        rope = Rope(text)
        for at, count, new in plan:
            text = edited(rope, text, at, count, new)
            assert len(rope) == len(text)
        assert str(rope) == text
        assert_sound(rope)
        for start in range(0, len(text) + 2, 3):
            for stop in range(0, len(text) + 2, 5):
                assert rope.slice(start, stop) == text[start:stop]

    same()


@pytest.mark.parametrize(("chunk", "fan", "notes"), SIZES)
def test_questions_are_answered_as_by_reading_the_whole_text(
    chunk: int, fan: int, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("chunk", chunk), ("fan", fan), ("notes", notes)):
        monkeypatch.setattr(Rope, name, value)
    rnd = random.Random(chunk)
    text = "".join(rnd.choices("ab  ", k=300))
    rope = Rope(text, words)
    for _ in range(150):
        new = "".join(rnd.choices("ab  ", k=rnd.choice([0, 0, 1, 2, 40])))
        text = edited(rope, text, rnd.randint(0, 999), rnd.choice([0, 1, 3, 50]), new)
        at = rnd.randint(0, len(text))
        assert rope.upto(at, False) == words(False, text[:at])
        assert rope.total(False) == words(False, text)
        assert_sound(rope)


def test_first_and_last_stop_at_the_nearest_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rope, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)
    rnd = random.Random(1)
    text = "".join(rnd.choices("a......", k=200))
    rope = Rope(text, lambda state, piece: (state, piece.count("a")))
    for _ in range(200):
        new = "".join(rnd.choices("a......", k=rnd.choice([0, 1, 9])))
        text = edited(rope, text, rnd.randint(0, 999), rnd.choice([1, 9]), new)
        at = rnd.randint(0, len(text))
        hit = rope.first(at)
        assert (hit.at + hit.piece.find("a") if hit else -1) == text.find("a", at)
        hit = rope.last(at)
        assert (hit.at + hit.piece.rfind("a") if hit else -1) == text.rfind("a", 0, at)
        assert rope.total() == rope.total(back=True) == (None, text.count("a"))


def test_the_state_travels_with_a_hit() -> None:
    rope = Rope("ab cd", words)
    assert rope.first(1, True) == Hit(1, True, "b cd")
    assert rope.first(5, True) is None


def test_a_large_insertion_and_a_large_deletion_keep_the_shape() -> None:
    rope, text = Rope("ab" * 10_000), "ab" * 10_000
    rope.insert(10_001, "xyz" * 500_000)
    text = text[:10_001] + "xyz" * 500_000 + text[10_001:]
    assert_sound(rope)
    assert str(rope) == text
    rope.delete(5, 1_500_000)
    assert_sound(rope)
    assert str(rope) == text[:5] + text[1_500_005:]
    rope.delete(0, len(rope))
    assert (str(rope), len(rope)) == ("", 0)
    rope.insert(0, "new")
    assert str(rope) == "new"


class Watched(Rope):
    """A rope that tells which edits its tree sees."""

    __slots__ = ("carried",)

    def _splice(self, splices: list[tuple[int, int, str]]) -> None:
        self.carried += splices
        super()._splice(splices)


def watched(text: str) -> Any:
    rope: Any = Watched(text)
    rope.carried = []
    return rope


def test_edits_that_touch_are_one_edit_of_the_tree() -> None:
    rope = watched("....")
    for i, letter in enumerate("hello"):
        rope.insert(2 + i, letter)
    for i in reversed(range(4, 7)):
        rope.delete(i, 1)
    assert str(rope) == "..he.."
    assert rope.carried == [(2, 0, "he")]
    rope.delete(2, 2)
    rope.insert(2, "she")
    assert str(rope) == "..she.."
    assert rope.carried[1:] == [(2, 2, "she")]


def test_what_is_put_in_and_taken_back_is_no_edit_of_the_tree() -> None:
    rope = watched("0123456789")
    rope.insert(4, "xyz")
    rope.delete(4, 3)
    assert (str(rope), rope.carried) == ("0123456789", [])
    rope.insert(4, "xyz")
    rope.delete(2, 7)
    assert str(rope) == "016789"
    assert rope.carried == [(2, 4, "")]


def test_edits_apart_are_edits_apart() -> None:
    rope = watched("0123456789")
    rope.insert(2, "ab")
    rope.insert(7, "c")
    rope.delete(0, 1)
    assert str(rope) == "1ab234c56789"
    assert rope.carried == [(2, 0, "ab"), (7, 0, "c"), (0, 1, "")]


@pytest.mark.parametrize("most", [0, 5, 1000])
def test_edits_taken_together_are_the_edits_one_by_one(most: int) -> None:
    rnd = random.Random(most)
    for _ in range(2000):
        text = one_by_one = "0123456789" * 2
        notes: list[tuple[int, Any]] = []
        near = 5
        for _ in range(rnd.randint(1, 8)):
            at = min(max(near + rnd.randint(-2, 4), 0), len(one_by_one))
            if rnd.random() < 0.5:
                new = "abcdefg"[: rnd.randint(0, 7)]
                notes.append((at, new))
                one_by_one = one_by_one[:at] + new + one_by_one[at:]
            else:
                count = min(rnd.randint(0, 6), len(one_by_one) - at)
                notes.append((at, count))
                one_by_one = one_by_one[:at] + one_by_one[at + count :]
            near = at
        for at, less, new in _splices(notes, most):
            text = text[:at] + new + text[at + less :]
        assert text == one_by_one


@pytest.mark.parametrize("edit", [("insert", 4, "x"), ("insert", -1, ""), ("delete", 2, 2),
                                  ("delete", 0, -1), ("delete", -1, 1)], ids=str)  # fmt: skip
def test_an_edit_that_does_not_fit_is_refused(edit: tuple[str, int, Any]) -> None:
    rope = Rope("abc")
    with pytest.raises(ChangeError, match="does not fit this text"):
        getattr(rope, edit[0])(*edit[1:])
    assert str(rope) == "abc"


def test_a_copy_is_a_rope_of_its_own() -> None:
    rope = Rope("ab cd", words)
    for other in (copy.copy(rope), copy.deepcopy(rope), pickle.loads(pickle.dumps(rope))):
        other.insert(2, "x")
        assert (str(other), str(rope)) == ("abx cd", "ab cd")
        assert other.total(False) == (True, 2)


def test_a_rope_shows_how_it_begins() -> None:
    assert repr(Rope("abc")) == "<rope of 3: 'abc'>"
    assert repr(Rope("x" * 50)) == f"<rope of 50: {'x' * 20!r}...>"


# ---- matchers ----


@pytest.mark.parametrize("looks", [0, 1, 16])
def test_what_is_begun_of_a_pattern_is_the_longest_there_is(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pattern and every text of a few letters, however soon it is read letter by letter."""
    monkeypatch.setattr(matcher, "LOOKS", looks)
    texts = ["".join(letters) for n in range(7) for letters in product("ab", repeat=n)]
    for pattern in [text for text in texts if 2 <= len(text) <= 5]:
        forth, back, size = Matcher(pattern), BackMatcher(pattern), len(pattern)
        for text in [text for text in texts if pattern not in text]:
            ends = [k for k in range(size) if text.endswith(pattern[:k])]
            assert forth.begun(text) == max(ends), (pattern, text)
            begins = [k for k in range(size) if text.startswith(pattern[size - k :])]
            assert back.ended(text) == max(begins), (pattern, text)


@pytest.mark.parametrize("looks", [0, 16])
@pytest.mark.parametrize("pattern", ["ab" * 9, "a" * 17, "a" * 12 + "b", "aabaab" * 4])
def test_a_pattern_longer_than_a_leaf_is_found(
    pattern: str, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a rope whose leaves were not made to be longer than the pattern."""
    monkeypatch.setattr(matcher, "LOOKS", looks)
    monkeypatch.setattr(Rope, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)
    for at_least, seed in product((0, 2 * len(pattern)), range(4)):
        monkeypatch.setattr(
            search, "_rope", lambda t, _, m, least=at_least: Rope(t, m, chunk=least)
        )
        rnd = random.Random(seed)
        pieces = [pattern, pattern[:-1], pattern[1:], "a", "b"]
        for make in (index_of, last_index_of, search.count, lambda p: replace(p, "-")):
            operator, text = make(pattern), "".join(rnd.choices(pieces, k=12))
            state, output = operator.init(text), operator.f(text)
            for _ in range(30):
                at = rnd.randint(0, len(text))
                gone = Delete(at, rnd.randint(0, min(4, len(text) - at)))
                edit = rnd.choice([gone, Insert(at, rnd.choice(pieces))])
                state, change = operator.step(state, edit)
                text, output = TEXT.patch(text, edit), operator.output.patch(output, change)
                assert output == operator.f(text), (text, edit, change)
            assert operator.invariant(text, state)
