"""What an edit inside a row costs: steps and no beginnings, a path of nodes and no whole text."""

from __future__ import annotations

import gc
import random
from typing import Any, NamedTuple
from weakref import ref

import pytest

import ebbflow as ef
from ebbflow.change import Delete, Insert, Text, tree
from ebbflow.operator import lists, text
from ebbflow.operator.text.matcher import Matcher

N = 1_000_000
PROSE = ("The quick brown fox jumps over the lazy dog.\n" * (N // 45 + 1))[:N]


class Doc(NamedTuple):
    id: int
    body: Text


class Counted:
    """Counts the calls of functions that it stands before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, int] = {}
        self.patch = monkeypatch

    def watch(self, owner: Any, name: str) -> None:
        inner, label = getattr(owner, name), f"{getattr(owner, '__name__', owner)}.{name}"
        self.calls[label] = 0

        def call(*given: Any) -> Any:
            self.calls[label] += 1
            return inner(*given)

        self.patch.setattr(owner, name, call)

    def taken(self, *labels: str) -> int:
        found = sum(self.calls[label] for label in labels)
        for label in labels:
            self.calls[label] = 0
        return found


docs = ef.Input("docs", Doc, key="id")
FINDS = text.count("fox")
HEADS = text.lines >> lists.keep(str.isupper)
selected = docs.select("id", up=text.upper("body"), n=FINDS("body"), heads=HEADS("body"))
chained = selected.select("id", n=text.count("FOX")("up"), m=lists.length("heads"))
words = docs.through(text.words("body"), per="id").group_by("value").agg(n=ef.count())
PROGRAM = ef.program(selected=selected, chained=chained, words=words)


@pytest.fixture
def view() -> Any:
    made = PROGRAM.run()
    made.step(docs=[Doc(1, PROSE), Doc(2, PROSE + "2")])  # type: ignore[arg-type]
    made.input("docs").edit(1, "body", Insert(0, "x"))
    return made


def test_004_O9_an_edit_steps_every_operator_and_begins_none(
    view: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, rnd = Counted(monkeypatch), random.Random(1)
    classes = {type(each) for each in (text.upper, FINDS, text.lines, lists.keep(str.isupper))}
    for cls in {*classes, type(text.words), type(lists.length)}:
        for name in ("init", "f", "step"):
            counted.watch(cls, name)
    for _ in range(20):
        at = rnd.randrange(N)
        edit = Insert(at, "fox ") if rnd.random() < 0.5 else Delete(at, 3)
        view.input("docs").edit(1, "body", edit)
    assert not {label: n for label, n in counted.calls.items() if n and not label.endswith("step")}
    assert counted.taken(*(f"{type(x).__name__}.step" for x in (text.upper, text.words))) == 40
    monkeypatch.undo()
    assert view.verify()


def test_an_edit_copies_a_few_nodes_and_no_whole_text(
    view: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, rnd = Counted(monkeypatch), random.Random(2)
    for cls in (tree._Leaf, tree._Branch):
        counted.watch(cls, "copy")
    counted.watch(Text, "__str__")
    ropes = 9  # of the two texts and the state of each operator; two for lines >> keep
    for _ in range(20):
        view.input("docs").edit(1, "body", Insert(rnd.randrange(N), "a"))
        assert counted.taken("_Leaf.copy", "_Branch.copy") <= 6 * ropes
        assert counted.taken("Text.__str__") == 0


def test_what_an_edit_reads_does_not_grow_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[int, int] = {}
    for size in (N // 10, N):
        view = docs.select(n=text.count("fox")("body"), m=text.count("o")("body")).run()
        view.step(docs=[Doc(1, PROSE[:size])])  # type: ignore[arg-type]
        view.input("docs").edit(1, "body", Insert(5, "x"))
        seen = 0
        inner = Matcher.__call__

        def call(self: Any, state: int, piece: str, inner: Any = inner) -> Any:
            nonlocal seen
            seen += len(piece)
            return inner(self, state, piece)

        with monkeypatch.context() as patch:
            patch.setattr(Matcher, "__call__", call)
            for at in range(1000, 90_000, 9_000):
                view.input("docs").edit(1, "body", Insert(at, "x"))
        read[size] = seen
    assert 0 < read[N] <= 1.5 * read[N // 10]


def test_a_whole_text_put_in_place_of_another_is_followed_by_what_differs(
    view: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    for cls in (type(text.upper), type(text.words)):
        for name in ("init", "f", "step"):
            counted.watch(cls, name)
    view.input("docs").upsert(Doc(1, PROSE[:5000] + "fox" + PROSE[5004:]))  # type: ignore[arg-type]
    assert counted.taken("_Upper.init", "_Upper.f", "_Words.init", "_Words.f") == 0
    assert counted.taken("_Upper.step", "_Words.step") > 0


def test_a_row_that_is_taken_away_and_put_in_again_is_followed_too(
    view: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    for name in ("init", "f", "step"):
        counted.watch(type(text.upper), name)
    old, new = Doc(2, PROSE + "2"), Doc(2, PROSE + "3")  # type: ignore[arg-type]
    view.step(docs={old: -1, new: 1})
    assert counted.taken("_Upper.init", "_Upper.f") == 0
    assert counted.taken("_Upper.step") == 2


def test_rows_that_are_not_edited_cost_nothing(view: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    counted.watch(type(text.upper), "step")
    view.input("docs").upsert(Doc(2, PROSE + "2"))  # type: ignore[arg-type]
    assert counted.taken("_Upper.step") == 0


def test_old_texts_are_let_go(view: Any) -> None:
    rows = view._program.inputs["docs"].rows
    seen = []
    for at in range(5):
        seen.append(ref(rows[1].body))
        view.input("docs").edit(1, "body", Insert(at, "y"))
    gc.collect()
    assert sum(each() is not None for each in seen) <= 1
