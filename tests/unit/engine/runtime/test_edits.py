"""Edits inside rows, small and literal: what they do, and what is refused."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.change import (
    BAG,
    NATURAL,
    TEXT,
    Delete,
    Drop,
    Insert,
    InsertItems,
    List,
    Patch,
    Put,
    Replace,
    ReplaceItem,
    Text,
)
from ebbflow.errors import AbsentRow, ChangeError, CompositionError, UnknownField
from ebbflow.operator import lists, stateless, text
from ebbflow.zset import ZSet


class Doc(NamedTuple):
    id: int
    title: str
    body: Text
    notes: Text | None
    tags: list[str]
    scores: dict[str, int]
    items: List[float | frozenset[int]]


docs = ef.Input("docs", Doc, key="id")


def row(body: str = "ebb", notes: str | None = None) -> Any:
    return Doc(1, "title", body, notes, ["a"], {"x": 1}, [1, 2])  # type: ignore[arg-type]


@pytest.fixture
def view() -> Any:
    made = docs.run()
    made.step(docs=[row()])
    return made


def now(view: Any) -> Any:
    return next(iter(view.value))


def test_rows_hold_what_their_fields_are_declared_to_hold(view: Any) -> None:
    found = now(view)
    assert [type(each) for each in found[2:]] == [
        Text, type(None), tuple, type(found.scores), List,
    ]  # fmt: skip
    assert found == Doc(1, "title", "ebb", None, ("a",), {"x": 1}, (1, 2))  # type: ignore[arg-type]


def test_each_kind_of_field_is_edited(view: Any) -> None:
    given = view.input("docs")
    given.edit(1, "body", Insert(3, " and flow"), Delete(0, 1))
    given.edit(1, "tags", InsertItems(1, ("b",)), ReplaceItem(0, "c"))
    given.edit(1, "scores", {"x": Patch(2), "y": Put(5)})
    given.edit(1, "items", InsertItems(0, (7,)))
    assert now(view)[2:] == ("bb and flow", None, ("c", "b"), {"x": 3, "y": 5}, [7, 1, 2])
    given.edit(1, "scores", {"x": Drop(), "y": Replace(1)})
    given.edit(1, "notes", Replace("new"))
    given.edit(1, "notes", Insert(3, "er"))
    given.edit(1, "body", Replace("sea"), Insert(0, "a "))
    given.edit(1, "items", Replace([]))
    assert now(view)[2:] == ("a sea", "newer", ("c", "b"), {"y": 1}, [])
    assert view.verify()


def test_items_are_held_as_rows_hold_them(view: Any) -> None:
    view.input("docs").edit(1, "items", InsertItems(0, [{1}, float("nan")]))  # type: ignore[arg-type]
    view.input("docs").edit(1, "items", ReplaceItem(0, float("nan")))
    assert now(view).items == (math.nan, math.nan, 1, 2)


def test_an_edit_gives_the_old_row_and_the_new(view: Any) -> None:
    change = view.input("docs").edit(1, "body", Insert(0, "x"))
    assert change == ZSet({now(view): 1}) - ZSet({now(view)._replace(body=Text("ebb")): 1})


def test_an_edit_that_changes_nothing_changes_nothing(view: Any) -> None:
    assert not view.input("docs").edit(1, "body", Insert(0, "x"), Delete(0, 1))
    assert not view.input("docs").edit(1, "body")
    assert not view.input("docs").edit(1, "body", Replace("ebb"))


@pytest.mark.parametrize(
    ("error", "match", "key", "field", "change"),
    [
        (AbsentRow, "no row of this key", 2, "body", Insert(0, "x")),
        (ChangeError, "a key must be hashable", [1], "body", Insert(0, "x")),
        (UnknownField, "no field 'boddy'", 1, "boddy", Insert(0, "x")),
        (ChangeError, "'title' of input 'docs' is not declared to be edited", 1, "title",
         Insert(0, "x")),
        (ChangeError, "'id' of input 'docs' is not declared", 1, "id", Insert(0, "x")),
        (ChangeError, "inserts at position 9, and the text ends at 5", 1, "body", Insert(9, "x")),
        (ChangeError, "is not a valid change of this text", 1, "body", InsertItems(0, ("x",))),
        (ChangeError, "the value is not a str", 1, "notes", Insert(0, "x")),
        (ChangeError, "reaches to position 3", 1, "items", ReplaceItem(2, 1)),
        (ChangeError, "there is no value to drop", 1, "scores", {"z": Drop()}),
        (ChangeError, "a row must be hashable", 1, "items", InsertItems(0, (bytearray(),))),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_and_nothing_changes(
    view: Any, error: Any, match: str, key: Any, field: str, change: Any
) -> None:
    before = view.value
    with pytest.raises(error, match=match):
        view.input("docs").edit(key, field, *[Insert(0, "ab")] * (field == "body"), change)
    assert view.value == before
    assert view.verify()


def test_an_input_without_a_key_or_without_fields_is_not_edited() -> None:
    with pytest.raises(ChangeError, match="input 'docs' has no key"):
        ef.Input("docs", Doc).run().input("docs").edit(1, "body", Insert(0, "x"))
    words = ef.Input("words", str, key=len).run()
    words.step(words=["ebb"])
    with pytest.raises(ChangeError, match="have no known fields"):
        words.input("words").edit(3, "body", Insert(0, "x"))


def test_an_edit_of_the_key_is_refused() -> None:
    class Named(NamedTuple):
        name: Text

    view = ef.Input("names", Named, key="name").run()
    view.step(names=[Named("ebb")])  # type: ignore[arg-type]
    with pytest.raises(ChangeError, match="would give its row another key"):
        view.input("names").edit("ebb", "name", Insert(0, "x"))


def test_texts_are_rows_too() -> None:
    view = ef.Input("words", Text).run()
    view.step(words=["ebb", "ebb"])
    assert view.value == ZSet({Text("ebb"): 2})
    view.step(words={"ebb": -1})
    assert view.value == ZSet({Text("ebb"): 1})


# ---- operators on fields: what is refused where it is written ----


def test_operators_are_refused_where_they_cannot_be_applied() -> None:
    with pytest.raises(UnknownField, match=r"upper.*'boddy'"):
        docs.select(x=text.upper("boddy"))
    with pytest.raises(CompositionError, match="applied to a Text, and the field 'id' is int"):
        docs.select(x=text.upper("id"))
    with pytest.raises(CompositionError, match="applied to a List or list"):
        docs.select(x=lists.length("body"))
    with pytest.raises(CompositionError, match="gives rows, and here one value is wanted"):
        docs.select(x=text.words("body"))
    with pytest.raises(CompositionError, match="gives one value for each row"):
        docs.through(text.upper("body"), per="id")
    with pytest.raises(CompositionError, match="applied to two fields"):
        text.concat("body")
    with pytest.raises(CompositionError, match="applied to one field"):
        text.upper("body", "notes")
    with pytest.raises(CompositionError, match="applied to one field"):
        text.upper(3)  # type: ignore[arg-type]
    with pytest.raises(CompositionError, match="it is not said of which field"):
        docs.select(x=text.upper)  # type: ignore[arg-type]
    with pytest.raises(CompositionError, match="it is not said of which field"):
        docs.filter(text.is_empty)
    with pytest.raises(CompositionError, match="counted from the start"):
        text.substring(-1)
    with pytest.raises(CompositionError, match="a function here needs a name"):
        docs.select(text.upper("body"))  # type: ignore[arg-type]


def test_operators_on_fields_may_stand_wherever_a_function_may() -> None:
    grouped = docs.group_by(size=text.length("body")).agg(n=ef.count())
    total = docs.agg(n=ef.sum(text.length("body")))
    kept = docs.filter(text.starts_with("e")("body")).map(text.upper("body"))
    view = ef.program(grouped=grouped, kept=kept, total=total).run()
    view.step(docs=[row("ebb"), row("flow")._replace(id=2)])
    view.input("docs").edit(2, "body", Replace("east"))
    assert sorted(view["kept"].value) == ["EAST", "EBB"]
    assert {(each.size, each.n) for each in view["grouped"].value} == {(3, 1), (4, 1)}
    assert [each.n for each in view["total"].value] == [7]
    assert kept.type is Text
    assert text.words.output is BAG


def test_equal_operators_share_what_they_know() -> None:
    one, two = text.count("a"), text.count("a")
    view = docs.select(x=one("body"), y=two("body")).run()
    view.step(docs=[row("abba")])
    held = view._program.inputs["docs"].rows[1]
    assert list(held.body.notes) == [one]


def test_004_O3_a_stateless_operator_follows_the_edits_of_a_field() -> None:
    asked: list[Any] = []

    def delta(edit: Any) -> int:
        asked.append(edit)
        return len(edit.text) if isinstance(edit, Insert) else -edit.count

    size = stateless(len, delta, input=TEXT, output=NATURAL, name="size")
    shouted = text.lower >> size
    view = docs.select(size=size("body"), low=shouted("body")).run()
    view.step(docs=[row("ebb")])
    assert asked == []
    view.input("docs").edit(1, "body", Insert(3, "ing"), Delete(0, 1))
    assert asked == [Insert(3, "ing"), Delete(0, 1)] * 2
    assert view.value == ZSet({docs.select(size=size("body"), low=shouted("body")).type(5, 5): 1})
    assert view.verify()
