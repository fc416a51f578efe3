"""What may go into a view, and what is said to what may not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from runpy import run_path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow.engine.runtime.rows import Rows
from ebbflow.errors import (
    AbsentRow,
    ChangeError,
    CompositionError,
    EbbflowError,
    FunctionFailed,
    NotDeterministic,
    Text,
)
from ebbflow.flow.plan import Source
from ebbflow.fn import Fn
from ebbflow.zset import ZSet

recomputing: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "recomputing.py")))
Order, Person = recomputing.Order, recomputing.Person
view_of, everything = recomputing.view_of, recomputing.everything
ROME, OSLO = Order(1, "Rome", 5), Order(2, "Oslo", 20)
ANN, BOB = Person(1, "Ann"), Person(2, "Bob")


def orders(**options: Any) -> Any:
    source = Source(name="orders", type=Order, place=Text("shop.py:7"))
    return view_of(orders=source, **options)


def words(**options: Any) -> Any:
    return view_of(words=Source(name="words", place=Text("talk.py:3")), **options)


def people(**options: Any) -> Any:
    key = Fn(lambda person: person.id)
    return view_of(people=Source(name="people", type=Person, key=key), **options)


def refused(view: Any, error: type[EbbflowError], act: Any) -> str:
    """The text of the error of an act that must leave everything as it was."""
    before = everything(view)
    with pytest.raises(error) as caught:
        act(view)
    assert everything(view) == before
    return str(caught.value)


# ---- how a change may be given ----


@pytest.mark.parametrize(
    "change",
    [
        ZSet({ROME: 2, OSLO: 1}),
        {ROME: 2, OSLO: 1},
        MappingProxyType({ROME: 2, OSLO: 1}),
        Counter([ROME, OSLO, ROME]),
        [ROME, OSLO, ROME],
        (ROME, OSLO, ROME),
        (row for row in [ROME, OSLO, ROME]),
    ],
    ids=lambda change: type(change).__name__,
)
def test_a_change_is_a_zset_a_mapping_or_rows(change: Any) -> None:
    view = orders()
    assert view.step(orders=change) == ZSet({ROME: 2, OSLO: 1})
    assert view.value == ZSet({ROME: 2, OSLO: 1})


def test_changes_can_be_given_by_position_and_by_name() -> None:
    view = view_of(words=recomputing.MINUS)
    assert view.step({"words": ["a", "b"]}, stop=["b"]) == ZSet({"a": 1})


def test_an_input_given_two_changes_in_one_step_is_refused() -> None:
    text = refused(words(), ChangeError, lambda view: view.step({"words": ["a"]}, words=["b"]))
    assert "two changes" in text
    assert "words" in text


def test_a_set_of_rows_adds_each_once() -> None:
    assert words().step(words={"a", "b"}) == ZSet({"a": 1, "b": 1})


def test_a_weight_of_zero_is_no_change() -> None:
    view = words()
    assert view.step(words={"a": 0, "b": 1}) == ZSet({"b": 1})
    assert view.step(words={"c": 0}) == ZSet()


def test_a_dict_that_is_changed_later_changes_nothing_in_the_view() -> None:
    view, given_rows = words(), {"a": 1}
    change = view.step(words=given_rows)
    given_rows["a"] = 9
    assert change == view.value == ZSet({"a": 1})
    view.verify()


def test_an_epoch_without_changes_counts_and_changes_nothing() -> None:
    view = words()
    assert view.step() == ZSet()
    assert view.step(words=[]) == ZSet()
    assert view.input("words").add() == ZSet()
    assert view.epoch == 3


# ---- what is refused, and says so ----


def test_an_unknown_input_is_refused_with_the_names_and_the_nearest() -> None:
    view = view_of(a=recomputing.MINUS, b=recomputing.ORDERS)
    text = refused(view, CompositionError, lambda view: view.step(wrods=["a"]))
    assert "no input 'wrods'" in text
    assert "inputs     words, stop, orders" in text
    assert text.endswith("try        words")
    with pytest.raises(CompositionError, match="no input 'stip'"):
        view.input("stip")


@pytest.mark.parametrize("weight", [1.0, True, "1", None])
def test_a_weight_that_is_no_int_is_refused_with_its_row(weight: Any) -> None:
    text = refused(words(), ChangeError, lambda view: view.step(words={"b": 1, "a": weight}))
    assert f"a weight must be an int, not {type(weight).__name__}" in text
    assert "row        'a'" in text
    assert "created    talk.py:3" in text


@pytest.mark.parametrize("row", [["x"], {"x": 1}, ("x", ["y"])])
def test_a_row_that_cannot_be_hashed_is_refused_with_its_input(row: Any) -> None:
    for act in (
        lambda view: view.step(words=["a", row]),
        lambda view: view.input("words").add("a", row),
        lambda view: view.input("words").remove("a", row),
    ):
        text = refused(words(), ChangeError, act)
        assert "input 'words': a row must be hashable" in text
        assert f"row        {row!r}" in text


def test_one_row_where_a_change_is_asked_is_refused_with_the_remedy() -> None:
    assert "orders=[row]" in refused(orders(), ChangeError, lambda view: view.step(orders=ROME))
    assert "words=[row]" in refused(words(), ChangeError, lambda view: view.step(words="flow"))
    assert "words=[row]" in refused(words(), ChangeError, lambda view: view.step(words=ROME))


def test_what_is_no_change_at_all_is_refused() -> None:
    assert "a value of type int is not a change" in refused(
        words(), ChangeError, lambda view: view.step(words=7)
    )


@pytest.mark.parametrize(
    "act",
    [
        lambda view: view.step(orders=[OSLO, (1, "Rome", 5)]),
        lambda view: view.step(orders={(1, "Rome", 5): 1}),
        lambda view: view.step(orders=ZSet({(1, "Rome", 5): 1})),
        lambda view: view.input("orders").add((1, "Rome", 5)),
    ],
)
def test_a_plain_tuple_is_no_order_and_the_remedy_makes_one_of_it(act: Any) -> None:
    text = refused(orders(), ChangeError, act)
    assert "a row must be of type Order, not tuple" in text
    assert "created    shop.py:7" in text
    assert text.endswith("try        Order(*row)")


def test_a_row_of_another_shape_is_refused_without_that_remedy() -> None:
    text = refused(orders(), ChangeError, lambda view: view.step(orders=[ANN]))
    assert "not Person" in text
    assert text.endswith("try        give rows made by Order(...)")


def test_a_plain_tuple_removes_no_order_though_it_equals_one() -> None:
    view = orders()
    view.step(orders=[ROME])
    refused(view, ChangeError, lambda view: view.input("orders").remove(tuple(ROME)))


def test_an_instance_of_a_subclass_is_an_order() -> None:
    class Special(Order):  # type: ignore[misc, valid-type]
        pass

    assert orders().step(orders=[Special(1, "Rome", 5)]) == ZSet({ROME: 1})


def test_rows_of_an_input_typed_otherwise_are_not_looked_at() -> None:
    assert view_of(n=Source(name="n", type=float)).step(n=[1]) == ZSet({1: 1})


# ---- a plain input ----


def test_000_R6_removing_a_row_that_is_not_there_is_refused_with_all_the_facts() -> None:
    view = words()
    view.step(words=["a", "b"])
    text = refused(view, AbsentRow, lambda view: view.step(words={"c": 1, "a": -1, "x": -2}))
    assert text.split("\n") == [
        "input 'words': a row is taken away that is not there",
        "    row        'x'",
        "    there      0 times",
        "    taken      2 times",
        "    created    talk.py:3",
        "    try        remove only rows that were added, as often as they were; "
        "nothing was changed",
    ]


def test_000_R6_removing_a_row_too_often_is_refused_and_says_how_often_it_is_there() -> None:
    view = words()
    view.step(words=["a", "b"])
    text = refused(view, AbsentRow, lambda view: view.input("words").remove("a", "a"))
    assert "that is not there that often" in text
    assert "there      once" in text
    assert "taken      2 times" in text


def test_removing_from_an_input_that_is_empty_is_refused() -> None:
    refused(words(), AbsentRow, lambda view: view.step(words={"a": 1, "b": -1}))


def test_a_row_may_be_removed_as_often_as_it_was_added() -> None:
    view = words()
    view.input("words").add("a", "a", "a")
    assert view.input("words").remove("a") == ZSet({"a": -1})
    assert view.input("words").remove("a", "a") == ZSet({"a": -2})
    refused(view, AbsentRow, lambda view: view.input("words").remove("a"))


def test_when_one_input_is_refused_the_other_is_not_changed() -> None:
    view = view_of(words=recomputing.MINUS)
    view.step(words=["a"])
    refused(view, AbsentRow, lambda view: view.step(words=["b"], stop={"c": -1}))
    view.step(stop=["a"])
    assert view.value == ZSet()


def test_a_plain_input_has_no_upsert_and_no_delete() -> None:
    assert "'words' has no key" in refused(
        words(), ChangeError, lambda view: view.input("words").upsert("a")
    )
    refused(words(), ChangeError, lambda view: view.input("words").delete("a"))


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(-2, 2))))
def test_an_input_accepts_exactly_the_changes_that_leave_a_bag(steps: list[Any]) -> None:
    view, right = words(), ZSet[Any]()
    for change in steps:
        after = right + ZSet(change)
        if after.is_bag:
            assert view.step(words=change) == ZSet(change)
            right = after
        else:
            refused(view, AbsentRow, lambda view, change=change: view.step(words=change))
        assert view.value == view._program.inputs["words"].snapshot() == right


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([-2, -1, 1, 2]))))
def test_keeping_adds_up_and_keeping_twice_is_keeping_once(steps: list[Any]) -> None:
    rows, right = Rows(), ZSet[Any]()
    for change in steps:
        rows.prepare(change)
        assert rows.snapshot() == right
        prepared = rows._delta, rows._after, rows._gone
        rows.keep()
        right += ZSet(change)
        assert rows.snapshot() == right
        rows.keep()
        assert rows.snapshot() == right
        assert (len(rows._delta), len(rows._after), len(rows._gone)) == (0, 0, 0)
        rows._delta, rows._after, rows._gone = prepared
        rows.keep()
        assert rows.snapshot() == right
        rows._after, rows._gone = prepared[1:]
        rows.keep()
        assert rows.snapshot() == right


# ---- an input with a key ----


def test_upsert_puts_a_row_in_or_in_place_of_the_one_that_has_its_key() -> None:
    view = people()
    assert view.input("people").upsert(ANN, BOB) == ZSet({ANN: 1, BOB: 1})
    assert view.input("people").upsert(Person(1, "Anna")) == ZSet({ANN: -1, Person(1, "Anna"): 1})
    assert view.value == ZSet({Person(1, "Anna"): 1, BOB: 1})
    assert view.verify().rows == {"people": 2}


def test_upsert_of_the_same_row_changes_nothing() -> None:
    view = people()
    view.input("people").upsert(ANN)
    assert view.input("people").upsert(ANN) == ZSet()
    assert view.value == ZSet({ANN: 1})
    view.input("people").delete(1)
    assert view.value == ZSet()
    state = view._program.inputs["people"]
    assert (len(state._added), len(state._gone)) == (0, 0)


def test_of_several_upserts_of_one_key_the_last_wins() -> None:
    view = people()
    assert view.input("people").upsert(ANN, BOB, Person(1, "Anna")) == ZSet(
        {Person(1, "Anna"): 1, BOB: 1}
    )
    assert view.input("people").upsert(ANN, Person(1, "Anna")) == ZSet()


def test_delete_finds_the_row_by_its_key() -> None:
    view = people()
    view.input("people").upsert(ANN, BOB)
    assert view.input("people").delete(2) == ZSet({BOB: -1})
    assert view.value == ZSet({ANN: 1})
    assert view.input("people").upsert(BOB) == ZSet({BOB: 1})


def test_deleting_a_key_that_is_not_there_or_twice_is_refused() -> None:
    view = people()
    view.input("people").upsert(ANN, BOB)
    text = refused(view, AbsentRow, lambda view: view.input("people").delete(1, 3))
    assert "no row of this key" in text
    assert "key        3" in text
    assert "twice" in refused(view, AbsentRow, lambda view: view.input("people").delete(1, 1))
    refused(view, ChangeError, lambda view: view.input("people").delete([[1]]))


def test_adding_a_row_of_a_key_that_is_there_is_refused_and_upsert_is_the_remedy() -> None:
    view = people()
    view.input("people").add(ANN)
    for row in (Person(1, "Anna"), ANN):
        text = refused(view, ChangeError, lambda view, row=row: view.input("people").add(row))
        assert "more than one row of a key" in text
        assert "also       Person(id=1, name='Ann')" in text
        assert "view.input('people').upsert(row)" in text


def test_two_new_rows_of_one_key_are_refused() -> None:
    anna = Person(1, "Anna")
    text = refused(people(), ChangeError, lambda view: view.input("people").add(ANN, anna))
    assert "more than one row of a key" in text
    assert "also       Person(id=1, name='Ann')" in text
    text = refused(people(), ChangeError, lambda view: view.step(people={ANN: 2}))
    assert "also       2 times" in text


def test_removing_a_row_must_name_the_row_that_is_there() -> None:
    view = people()
    view.input("people").add(ANN, BOB)
    refused(view, AbsentRow, lambda view: view.input("people").remove(Person(1, "Anna")))
    refused(view, AbsentRow, lambda view: view.input("people").remove(ANN, ANN))
    assert view.input("people").remove(ANN) == ZSet({ANN: -1})
    refused(view, AbsentRow, lambda view: view.input("people").remove(ANN))


@pytest.mark.parametrize("turned", [False, True])
def test_a_change_may_take_the_old_row_and_put_the_new_in_any_order(turned: bool) -> None:
    view = people()
    view.input("people").add(ANN)
    new = Person(1, "Anna")
    change = {new: 1, ANN: -1} if turned else {ANN: -1, new: 1}
    assert view.input("people").apply(change) == ZSet(change)
    assert view.value == ZSet({new: 1})
    assert view.input("people").delete(1) == ZSet({new: -1})


def test_a_key_that_fails_names_the_row_and_chains_the_cause() -> None:
    view = view_of(words=Source(name="words", key=Fn(lambda word: word[0]), place=Text("w.py:1")))
    text = refused(view, FunctionFailed, lambda view: view.step(words=["a", ""]))
    assert "row        ''" in text
    assert "IndexError" in text
    assert "created    w.py:1" in text
    with pytest.raises(FunctionFailed) as caught:
        view.input("words").upsert("")
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_key_and_a_row_that_cannot_be_hashed_are_refused() -> None:
    view = view_of(words=Source(name="words", key=Fn(lambda word: [word])))
    assert "a key must be hashable" in refused(
        view, ChangeError, lambda view: view.input("words").upsert("a")
    )
    refused(view, ChangeError, lambda view: view.step(words=["a"]))
    view = view_of(rows=Source(name="rows", key=Fn(len)))
    assert "a row must be hashable" in refused(
        view, ChangeError, lambda view: view.input("rows").upsert(["a"], ["b"])
    )


def test_rows_of_a_typed_input_with_a_key_are_checked_too() -> None:
    for act in (
        lambda view: view.input("people").upsert((1, "Ann")),
        lambda view: view.step(people=[(1, "Ann")]),
    ):
        assert refused(people(), ChangeError, act).endswith("try        Person(*row)")


PERSONS = st.builds(Person, st.integers(0, 2), st.sampled_from("xy"))
KEYED_ACTS = st.one_of(
    st.tuples(st.just("upsert"), st.lists(PERSONS)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 2), max_size=2)),
    st.tuples(st.just("apply"), st.dictionaries(PERSONS, st.integers(-2, 2))),
)


@given(st.lists(KEYED_ACTS))
def test_an_input_with_a_key_is_a_dict_from_key_to_row(acts: list[Any]) -> None:
    view = people()
    right: dict[int, Any] = {}
    for verb, what in acts:
        after = dict(right)
        fine = True
        if verb == "upsert":
            after.update({row.id: row for row in what})
        elif verb == "delete":
            fine = len(set(what)) == len(what) and all(key in right for key in what)
            after = {key: row for key, row in right.items() if key not in what}
        else:
            rows = ZSet.of(right.values()) + ZSet(what)
            after = {row.id: row for row in rows}
            fine = all(weight == 1 for _, weight in rows.items()) and len(after) == len(rows)
        if fine:
            change = getattr(view.input("people"), verb)(*([what] if verb == "apply" else what))
            assert change == ZSet.of(after.values()) - ZSet.of(right.values())
            right = after
        else:
            before = everything(view)
            with pytest.raises((AbsentRow, ChangeError)):
                getattr(view.input("people"), verb)(*([what] if verb == "apply" else what))
            assert everything(view) == before
        assert view.value == ZSet.of(right.values())
    view.verify()


# ---- inputs that are trusted ----


def test_a_trusted_input_is_not_checked_and_keeps_nothing() -> None:
    view = orders(check_input=False)
    assert view.input("orders").add((1, 2)) == ZSet({(1, 2): 1})
    assert view.input("orders").remove((1, 2)) == ZSet({(1, 2): -1})
    assert view.stats().inputs == {"orders": None}


def test_a_trusted_input_that_lies_is_found_out_where_an_output_cannot_follow() -> None:
    view = words(check_input=False)
    text = refused(view, NotDeterministic, lambda view: view.step(words={"a": -1}))
    assert "check_input=False" in text


def test_a_trusted_input_still_says_which_row_cannot_be_hashed() -> None:
    view = words(check_input=False)
    refused(view, ChangeError, lambda view: view.step(words=[["a"]]))


def test_an_input_with_a_key_keeps_its_rows_even_then() -> None:
    view = people(check_input=False)
    view.input("people").upsert(ANN)
    assert view.input("people").upsert(Person(1, "Anna")) == ZSet({ANN: -1, Person(1, "Anna"): 1})
    assert view.stats().inputs == {"people": 1}
    view.verify()


def test_handles_say_what_they_are_of() -> None:
    view = words()
    assert repr(view.input("words")) == "<input words of <View of words: epoch 0>>"
    assert view.input("words").name == "words"
