"""A `Text` against the `str` it is equal to: every edit, what is shared, and what is remembered."""

from __future__ import annotations

import copy
import gc
import pickle
import random
from typing import Any

import pytest

from ebbflow.change import LIST, TEXT, Delete, Edit, Insert, InsertItems, List, Text
from ebbflow.change import edited as module
from ebbflow.change.remember import LONGEST
from ebbflow.change.rope import Rope
from ebbflow.errors import ChangeError

LETTERS = "ab \n\u00df\u03a3\ud800\U0001f600"


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rope, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)
    monkeypatch.setattr(module, "SHORT", 8)


def edit_of(rnd: random.Random, size: int, longest: int = 9) -> Edit:
    at = rnd.randint(0, size)
    if rnd.random() < 0.5:
        return Insert(at, "".join(rnd.choices(LETTERS, k=rnd.randint(0, longest))))
    return Delete(at, rnd.randint(0, min(longest, size - at)))


@pytest.mark.usefixtures("_small")
def test_a_text_is_the_str_after_every_edit_and_old_texts_stay() -> None:
    for seed in range(20):
        rnd = random.Random(seed)
        plain = "".join(rnd.choices(LETTERS, k=rnd.choice((0, 5, 80))))
        kept = [(Text(plain), plain)]
        for _ in range(60):
            text, plain = rnd.choice(kept)
            edit = edit_of(rnd, len(plain), rnd.choice((2, 30)))
            kept.append((text.edited(edit), TEXT.patch(plain, edit)))
        for text, plain in kept:
            assert str(text) == plain
            assert len(text) == len(plain)
            assert text == plain
            fresh = Text(plain)
            assert text == fresh
            assert hash(text) == hash(fresh)
            assert list(text) == list(plain)


@pytest.mark.usefixtures("_small")
def test_texts_are_equal_when_they_read_alike_and_in_no_other_case() -> None:
    rnd = random.Random(3)
    texts = [Text("".join(rnd.choices("ab", k=rnd.randint(9, 12)))) for _ in range(300)]
    for one in texts:
        for two in texts[:20]:
            assert (one == two) is (str(one) == str(two)) is not (one != two)
    assert len(set(texts)) == len(set(map(str, texts)))


def test_a_short_text_is_found_where_its_str_is() -> None:
    assert {"ebb": 1}[Text("ebb")] == 1
    assert Text("ebb") in {"ebb"}
    assert "ebb" in {Text("ebb")}


def test_a_long_text_is_found_as_a_text() -> None:
    long = "x" * (module.SHORT + 1)
    assert Text(long) == long
    assert Text(long) in {Text(long)}


def test_a_text_does_what_a_str_does() -> None:
    text = Text("ebb and flow")
    assert (text[0], text[-1], text[4:7], text[::-1]) == ("e", "w", "and", "wolf dna bbe")
    assert text.upper() == "EBB AND FLOW"
    assert text.split() == ["ebb", "and", "flow"]
    assert "and" in text
    assert "sea" not in text
    assert f"{text:>13}" == " ebb and flow"
    assert text + "!" == "ebb and flow!"
    assert "-" + text == "-ebb and flow"
    assert sorted([Text("b"), "a", Text("c")]) == ["a", "b", "c"]
    assert Text("a") < "b"
    assert not Text("")
    assert Text(text) is text
    assert repr(Text("a'b")) == 'Text("a\'b")'
    assert eval(repr(text)) == text
    assert "..." in repr(Text("x" * 9999))
    with pytest.raises(IndexError):
        text[12]
    with pytest.raises(AttributeError):
        text.no_such_method()
    with pytest.raises(TypeError):
        Text(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        List("ab")
    assert text != 3
    assert List([1]) != 1


def test_copies_and_pickles_are_equal_and_remember_nothing() -> None:
    old = Text("ebb")
    text = old.edited(Insert(3, " and flow"))
    text.notes["an operator"] = 1
    again = pickle.loads(pickle.dumps(text))
    assert again == text
    assert again.made_from(TEXT) is None
    assert not again.notes
    assert copy.copy(text) is text is copy.deepcopy(text)
    bare = text.forgetting()
    assert bare == text
    assert bare.made_from(TEXT) is None
    assert not bare.notes


# ---- what is remembered ----


def test_a_text_remembers_what_it_was_made_from_while_somebody_has_that() -> None:
    old = Text("ebb")
    new = old.edited(Insert(3, "!"), Delete(0, 1))
    assert new.made_from(TEXT) == (old, (Insert(3, "!"), Delete(0, 1)))
    assert new.made_from(LIST) is None
    del old
    gc.collect()
    assert new.made_from(TEXT) is None


def test_texts_that_nobody_looked_at_are_passed_over() -> None:
    first = Text("ebb")
    third = first.edited(Insert(3, "!")).edited(Insert(0, "?"))
    found = third.made_from(TEXT)
    assert found is not None
    assert found[0] is first
    assert len(found[1]) == 2


def test_a_text_that_was_looked_at_is_what_the_next_one_remembers() -> None:
    first = Text("ebb")
    second = first.edited(Insert(3, "!"))
    second.notes["an operator"] = "its state"
    assert second.edited(Delete(0, 1)).made_from(TEXT) == (second, (Delete(0, 1),))


def test_only_so_many_edits_are_remembered() -> None:
    first = text = Text("ebb")
    texts = []
    for _ in range(3 * LONGEST):
        text = text.edited(Insert(0, "x"))
        texts.append(text)
        found = text.made_from(TEXT)
        assert found is not None
        assert len(found[1]) <= LONGEST
        assert found[0].edited(*found[1]) == text
    assert len(first) == 3


def test_what_two_texts_differ_in_is_found() -> None:
    old = Text("the cat sat")
    new = old.following("the dog sat")
    assert new == "the dog sat"
    assert new.made_from(TEXT) == (old, (Delete(4, 3), Insert(4, "dog")))
    assert old.following(new) is new
    items: List[int] = List([1, 2, 3])
    assert items.following([1, 3]).made_from(LIST) is not None


def test_an_edit_that_does_not_fit_is_refused() -> None:
    for edit in (Insert(4, "x"), Delete(1, 3), "x"):
        with pytest.raises(ChangeError, match="not a valid change"):
            Text("abc").edited(edit)
    with pytest.raises(ChangeError, match="reaches to position"):
        List([1]).edited(InsertItems(2, (1,)))


@pytest.mark.usefixtures("_small")
def test_ropes_that_share_nodes_do_not_see_each_others_edits() -> None:
    def words(inside: Any, piece: str) -> tuple[Any, int]:
        begun = len(piece.split()) - (bool(inside) and piece[:1].strip() != "")
        return (not piece[-1].isspace() if piece else inside), begun

    rnd = random.Random(5)
    ropes = [(Rope("ab cd " * 20, words), "ab cd " * 20)]
    for _ in range(300):
        rope, plain = rnd.choice(ropes[-8:])
        if rnd.random() < 0.3:
            rope = copy.deepcopy(rope)
            ropes.append((rope, plain))
        edit = edit_of(rnd, len(plain), rnd.choice((3, 25)))
        rope.edit(edit)
        at = next(i for i, (each, _) in enumerate(ropes) if each is rope)
        ropes[at] = rope, TEXT.patch(plain, edit)
        for each, text in ropes[-8:]:
            assert str(each) == text
            assert each.total(False)[1] == len(text.split())
