"""Change structures, small and literal."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import cloudpickle
import pytest

import ebbflow.change
from ebbflow.algebra import ADD, LIST, MAX, dict_of
from ebbflow.change import (
    BAG,
    BOOL,
    KEEP,
    NATURAL,
    NUMBER,
    REPLACE,
    TEXT,
    ZSET,
    Both,
    ChangeStructure,
    Delete,
    Drop,
    First,
    Insert,
    Patch,
    Put,
    Replace,
    Second,
    group,
    mapping,
    pair,
    sequence,
)
from ebbflow.change.text import common_prefix
from ebbflow.errors import ChangeError
from ebbflow.zset import ZSet

STRUCTURES = [
    BAG, BOOL, NATURAL, NUMBER, REPLACE, TEXT, ZSET, pair(BAG, TEXT), sequence(TEXT),
    mapping(NUMBER), group(dict_of(ADD)), mapping(pair(sequence(TEXT), BOOL)),
]  # fmt: skip


def refused(structure: ChangeStructure[Any, Any], change: object, value: object) -> str:
    assert structure.valid(change, value) is False
    with pytest.raises(ChangeError) as caught:
        structure.patch(value, change)
    return str(caught.value)


# ---- structures as values ----


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_a_repr_pastes_back(structure: ChangeStructure[Any, Any]) -> None:
    names = {**vars(ebbflow.change), "ADD": ADD, "dict_of": dict_of}
    assert eval(repr(structure), names) == structure


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_structures_survive_the_trip_to_a_worker(
    structure: ChangeStructure[Any, Any], pickler: Any
) -> None:
    back = pickler.loads(pickler.dumps(structure))
    assert back == structure
    assert hash(back) == hash(structure)
    assert back.is_nothing(structure.nothing)


def test_constants_stay_the_same_object() -> None:
    assert pickle.loads(pickle.dumps(BAG)) is BAG
    assert pickle.loads(pickle.dumps(KEEP)) is KEEP


CHANGES = [
    Insert(0, "x"), Delete(1, 2), First(1), Second(Insert(0, "")), Both(1, KEEP), KEEP,
    Put(1), Drop(), Patch(Delete(0, 1)), Replace("x"),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_changes_are_frozen_paste_back_and_pickle(change: Any) -> None:
    assert eval(repr(change), vars(ebbflow.change)) == change
    assert pickle.loads(pickle.dumps(change)) == change
    hash(change)


def test_structures_are_equal_when_built_alike() -> None:
    assert pair(BAG, TEXT) == pair(BAG, TEXT)
    assert pair(BAG, TEXT) != pair(TEXT, BAG)
    assert sequence(TEXT) != mapping(TEXT)
    assert BAG != ZSET
    assert BAG != "BAG"
    assert len({sequence(TEXT), sequence(TEXT), TEXT}) == 2


def test_what_the_law_checker_draws_from_is_kept_and_is_no_part_of_equality() -> None:
    def changes(value: str) -> list[Insert]:
        return [Insert(0, value)]

    drawn = sequence(TEXT, elements=["a", "b"], changes=changes)
    assert (drawn.elements, drawn.changes) == (["a", "b"], changes)
    assert drawn == sequence(TEXT)
    assert (TEXT.elements, TEXT.changes) == (None, None)


class Thermostat(ChangeStructure[int, int]):
    def valid(self, change: object, value: int) -> bool:
        return isinstance(change, int) and value + change < 30

    def apply(self, value: int, change: int) -> int:
        return value + change


def test_a_structure_of_two_primitives_does_the_rest() -> None:
    warm = Thermostat()
    assert repr(warm) == "Thermostat()"
    assert warm.patch_all(20, [3, 4]) == 27
    assert warm.compress([1, 0, 2]) == (1, 0, 2)
    assert not warm.has_diff
    assert not warm.has_nothing
    assert not warm.is_nothing(0)
    assert "8 is not a valid change of this value" in refused(warm, 8, 25)
    with pytest.raises(ChangeError, match="no change that changes nothing"):
        warm.nothing
    with pytest.raises(ChangeError, match="has no diff"):
        sequence(warm).diff(1, 2)
    assert pickle.loads(pickle.dumps(warm)).patch(20, 1) == 21
    assert sequence(warm).nothing == ()
    assert pair(warm, NUMBER).nothing == Second(0)
    assert mapping(warm).diff({"x": 1}, {"x": 2}) == {"x": Replace(1)}


def test_a_structure_without_its_primitives_cannot_be_made() -> None:
    class Half(ChangeStructure[int, int]):
        def valid(self, change: object, value: int) -> bool:
            return True

    with pytest.raises(TypeError, match="apply"):
        Half()  # type: ignore[abstract]


# ---- numbers ----


@pytest.mark.parametrize("change", [True, "3", None, math.nan, Decimal("nan"), Decimal("sNaN"), 1j])
def test_what_is_not_a_number_is_no_change_of_one(change: object) -> None:
    text = refused(NUMBER, change, 7)
    assert repr(change) in text
    assert "value      7" in text
    with pytest.raises(ChangeError, match="no change of a number"):
        NUMBER.compose(change, 3)


@pytest.mark.parametrize("value", [True, "3", None, math.nan])
def test_what_is_not_a_number_has_no_changes(value: object) -> None:
    assert "the value is not a number" in refused(NUMBER, 1, value)


def test_numbers_that_cannot_be_added_are_not_valid() -> None:
    assert "do not mix" in refused(NUMBER, 0.5, Decimal(1))
    assert not NUMBER.valid(Fraction(1, 2), Decimal(1))
    assert not NUMBER.valid(-math.inf, math.inf)
    assert not NUMBER.valid(0.5, 10**400)
    assert not NUMBER.valid(1e308, 1e308)
    assert NUMBER.patch(10**400, 1) == 10**400 + 1
    assert NUMBER.patch(Decimal("1e999"), Decimal("1e999")) == Decimal("2e999")
    assert NUMBER.patch(Decimal("1.5"), 2) == Decimal("3.5")
    assert NUMBER.patch(math.inf, 2) == math.inf


def test_zero_leaves_a_number_alone_that_is_longer_than_the_decimal_context() -> None:
    long = Decimal("1." + "0" * 40 + "1")
    assert NUMBER.patch(long, 0) == long
    assert NUMBER.patch(2**53 + 1, 0.0) == 2**53 + 1


def test_floats_are_not_merged_and_their_difference_is_refused_where_it_rounds() -> None:
    assert NUMBER.compose(0.1, 0.2) == (0.1, 0.2)
    assert NUMBER.compress([1, 2, 0.5, 0.0, 3, -3, Fraction(1, 2)]) == (3, 0.5, Fraction(1, 2))
    assert NUMBER.diff(0.75, 0.5) == 0.25
    with pytest.raises(ChangeError, match="gives the new one back") as caught:
        NUMBER.diff(1.0, 1e16)
    assert "REPLACE" in caught.value.remedy
    with pytest.raises(ChangeError):
        NUMBER.diff(1.0, math.inf)
    with pytest.raises(ChangeError):
        NUMBER.diff(Decimal(1), 0.1)
    assert mapping(NUMBER).diff({"x": 1.0}, {"x": 1e16}) == {"x": Replace(1.0)}


def test_naturals_stop_at_zero() -> None:
    assert NATURAL.patch(3, -3) == 0
    text = refused(NATURAL, -4, 3)
    assert text.startswith("-4 is not a valid change of this natural")
    assert "3 + -4 is -1" in text
    assert "an int of at least -3" in text
    for change in (True, 1.0, "1"):
        refused(NATURAL, change, 3)
    refused(NATURAL, 1, -3)
    with pytest.raises(ChangeError, match="-1 is not a natural"):
        NATURAL.diff(-1, 3)


def test_bools_flip() -> None:
    assert [BOOL.patch(a, b) for a in (False, True) for b in (False, True)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert BOOL.diff(True, False) is True
    refused(BOOL, 1, True)
    refused(BOOL, True, 1)


# ---- bags ----


def test_a_bag_names_a_few_missing_rows_and_not_the_whole_bag() -> None:
    many = ZSet.of(range(100_000))
    text = refused(BAG, ZSet({-n: -1 for n in range(1, 50)} | {3: -2, 4: -1}), many)
    assert "a bag of 100000 different rows" in text
    assert "missing    ZSet({-1: 1, -2: 1, -3: 1, -4: 1, -5: 1})" in text
    assert len(text) < 700


def test_a_bag_counts_what_is_missing() -> None:
    text = refused(BAG, ZSet({"a": -3, "b": -1}), ZSet({"a": 1, "b": 1}))
    assert "missing    ZSet({'a': 2})" in text
    assert "value      ZSet({'a': 1, 'b': 1})" in text


def test_only_zsets_change_bags_and_only_bags_are_bags() -> None:
    assert "a list is no change of a bag" in refused(BAG, ["a"], ZSet())
    refused(BAG, ZSet(), ["a"])
    refused(ZSET, {"a": 1}, ZSet())
    with pytest.raises(ChangeError, match="is not a bag"):
        BAG.diff(ZSet({"a": -1}), ZSet())


def test_a_merged_change_may_fit_where_the_sequence_did_not() -> None:
    out, back = ZSet({"a": -1}), ZSet({"a": 1})
    assert not sequence(BAG).valid((out, back), ZSet())
    assert BAG.compress([out, back]) == ()


# ---- text ----


@pytest.mark.parametrize(
    "change", [Insert(0, "x"), Insert(3, "x"), Delete(0, 3), Delete(3, 0), Delete(0, 0)]
)
def test_edits_reach_both_ends(change: Any) -> None:
    assert TEXT.valid(change, "abc")


@pytest.mark.parametrize(
    "change",
    [Insert(4, "x"), Insert(-1, "x"), Insert(4, ""), Delete(3, 1), Delete(-1, 1), Delete(4, 0),
     Delete(2, -1), Insert(0, b"x"), Insert(None, "x"), Insert(True, "x"), Delete(0, 1.0), "x"],
)  # fmt: skip
def test_edits_do_not_reach_further(change: Any) -> None:
    text = refused(TEXT, change, "abc")
    assert text.startswith(f"{change!r} is not a valid change of this text")
    assert "value      'abc'" in text
    assert "try " in text


def test_positions_are_code_points() -> None:
    assert TEXT.patch("a😀b", Insert(2, "é")) == "a😀éb"
    assert TEXT.patch("a😀b", Delete(1, 1)) == "ab"
    assert TEXT.patch("e\u0301", Delete(1, 1)) == "e"
    assert TEXT.edits("a😀b", "a😁b") == (Delete(1, 1), Insert(1, "😀"))


@pytest.mark.parametrize(
    ("first", "second", "composed"),
    [
        (Insert(2, "ab"), Insert(3, "X"), (Insert(2, "aXb"),)),
        (Insert(2, "ab"), Insert(2, "X"), (Insert(2, "Xab"),)),
        (Insert(2, "ab"), Insert(4, "X"), (Insert(2, "abX"),)),
        (Insert(2, "ab"), Insert(5, "X"), (Insert(2, "ab"), Insert(5, "X"))),
        (Insert(2, "ab"), Insert(1, "X"), (Insert(2, "ab"), Insert(1, "X"))),
        (Insert(2, "abc"), Delete(3, 1), (Insert(2, "ac"),)),
        (Insert(2, "abc"), Delete(2, 3), ()),
        (Insert(2, "abc"), Delete(1, 4), (Delete(1, 1),)),
        (Insert(2, "abc"), Delete(1, 6), (Delete(1, 3),)),
        (Insert(2, "abc"), Delete(4, 2), (Insert(2, "abc"), Delete(4, 2))),
        (Insert(2, "abc"), Delete(0, 2), (Insert(2, "abc"), Delete(0, 2))),
        (Delete(2, 1), Delete(2, 1), (Delete(2, 2),)),
        (Delete(2, 1), Delete(1, 1), (Delete(1, 2),)),
        (Delete(2, 1), Delete(0, 4), (Delete(0, 5),)),
        (Delete(2, 1), Delete(3, 1), (Delete(2, 1), Delete(3, 1))),
        (Delete(2, 1), Delete(0, 1), (Delete(2, 1), Delete(0, 1))),
        (Delete(2, 1), Insert(2, "a"), (Delete(2, 1), Insert(2, "a"))),
        (Insert(9, ""), Delete(2, 1), (Delete(2, 1),)),
        (Delete(2, 0), Insert(1, ""), ()),
    ],
)
def test_edits_merge_when_they_touch(first: Any, second: Any, composed: Any) -> None:
    assert TEXT.compose(first, second) == composed


def test_a_merged_edit_is_offered_to_the_one_before_it() -> None:
    first, second, third = Insert(5, "abc"), Delete(7, 3), Delete(4, 3)
    assert TEXT.compose(first, second) == (first, second)
    assert TEXT.compose(second, third) == (Delete(4, 6),)
    whole = [first, second, third, Insert(0, "z")]
    assert TEXT.compress(whole) == (Delete(4, 3), Insert(0, "z"))


def test_an_edit_that_fits_no_text_does_not_merge() -> None:
    with pytest.raises(ChangeError, match="whatever its value"):
        TEXT.compose(Insert(0, "x"), Delete(0, -1))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("", "", 0), ("a", "", 0), ("ab", "ab", 2), ("ab", "abc", 2), ("é😀x", "é😀", 2)],
)
def test_common_prefix(a: str, b: str, same: int) -> None:
    assert common_prefix(a, b) == common_prefix(b, a) == same


def test_start_and_end_never_overlap() -> None:
    assert sequence(TEXT).diff("aa", "aaa") == (Delete(2, 1),)
    assert sequence(TEXT).diff("aaa", "aa") == (Insert(2, "a"),)
    assert sequence(TEXT).diff("same", "same") == ()


# ---- pairs and sequences ----


def test_a_pair_says_on_which_side_the_trouble_is() -> None:
    text = refused(pair(NATURAL, TEXT), Both(1, Delete(5, 1)), (3, "abc"))
    assert text.startswith("Both(first=1, second=Delete(at=5, count=1)) is not a valid change")
    assert "second: it ends at position 6" in text
    assert "value      'abc'" in text
    assert "an int does not say which side" in refused(pair(NATURAL, TEXT), 3, (3, "abc"))
    refused(pair(NATURAL, TEXT), First(1), [3, "abc"])
    refused(pair(NATURAL, TEXT), First(1), (3, "abc", 0))


def test_a_pair_compresses_each_side_alone() -> None:
    changes = [First(1), Second(Insert(0, "a")), First(2), Both(3, Insert(9, "b"))]
    assert pair(NUMBER, TEXT).compress(changes) == (Both(6, Insert(0, "a")), Second(Insert(9, "b")))
    assert pair(NUMBER, TEXT).compose(First(1), First(-1)) == ()
    apart = Both(1, Insert(5, "a")), Both(2, Insert(0, "b"))
    assert pair(NUMBER, TEXT).compose(*apart) == apart


def test_a_sequence_says_which_change_did_not_fit() -> None:
    text = refused(sequence(NATURAL), (1, -2, -5, 1), 3)
    assert "change 2 of 4: 2 + -5 is -3" in text
    assert "value      2" in text
    assert "a list is not a tuple of changes" in refused(sequence(NATURAL), [1], 3)
    with pytest.raises(ChangeError, match="no change of a natural"):
        sequence(NATURAL).compress([(1,), [2]])  # type: ignore[list-item]


# ---- dicts ----


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (Put(1), Patch(2), Put(3)),
        (Put(1), Replace(5), Put(5)),
        (Put(1), Drop(), None),
        (Patch(1), Patch(2), Patch(3)),
        (Patch(1), Patch(-1), None),
        (Patch(1), Drop(), Drop()),
        (Patch(1), Replace(5), Replace(5)),
        (Replace(1), Patch(2), Replace(3)),
        (Replace(1), Replace(5), Replace(5)),
        (Replace(1), Drop(), Drop()),
        (Drop(), Put(5), Replace(5)),
    ],
)
def test_two_changes_at_one_key_merge(first: Any, second: Any, merged: Any) -> None:
    composed = mapping(NUMBER).compose({"k": first}, {"k": second})
    assert composed == (() if merged is None else ({"k": merged},))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Put(1), Put(1)),
        (Patch(1), Put(1)),
        (Replace(1), Put(1)),
        (Drop(), Drop()),
        (Drop(), Patch(1)),
        (Drop(), Replace(1)),
        (Put(1), "x"),
    ],
)
def test_two_changes_that_can_never_follow_each_other_are_an_error(first: Any, second: Any) -> None:
    with pytest.raises(ChangeError, match=r"at 'k': .* can never follow"):
        mapping(NUMBER).compose({"k": first}, {"k": second})


def test_a_patch_that_does_not_fit_what_was_put_is_an_error() -> None:
    with pytest.raises(ChangeError, match="at 'k': -2 is not a valid change of this natural"):
        mapping(NATURAL).compose({"k": Put(1)}, {"k": Patch(-2)})


def test_patches_that_do_not_merge_stay_two_and_the_rest_still_merges() -> None:
    first = {"k": Patch(Insert(0, "a")), "only": Drop()}
    second = {"k": Patch(Insert(5, "b")), "other": Put("x")}
    assert mapping(TEXT).compress([first, second]) == (
        {"k": Patch(Insert(0, "a")), "only": Drop(), "other": Put("x")},
        {"k": Patch(Insert(5, "b"))},
    )
    assert mapping(TEXT).compose(first, second) == (first, second)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"here": Put(1)}, "at 'here': there is a value already"),
        ({"gone": Drop()}, "at 'gone': there is no value to drop"),
        ({"gone": Patch(1)}, "at 'gone': there is no value to patch"),
        ({"gone": Replace(1)}, "at 'gone': there is no value to replace"),
        ({"here": Patch(-9)}, "at 'here': 3 + -9 is -6"),
        ({"here": 4}, "at 'here': an int does not say what happens there"),
        ([("here", Drop())], "a list does not say at which key"),
    ],
)
def test_an_entry_that_does_not_fit_is_named(entry: object, reason: str) -> None:
    assert reason in refused(mapping(NATURAL), entry, {"here": 3})


def test_patching_a_dict_leaves_the_old_one_alone() -> None:
    old = {"a": 1, "b": 2}
    assert mapping(NUMBER).patch(old, {"a": Drop(), "c": Put(0)}) == {"b": 2, "c": 0}
    assert old == {"a": 1, "b": 2}
    nothing = mapping(NUMBER).nothing
    nothing["a"] = Drop()
    assert mapping(NUMBER).nothing == {}


def test_a_dict_of_values_without_a_difference_replaces_them() -> None:
    assert mapping(TEXT).diff({"a": "x", "b": "y"}, {"a": "z", "b": "y"}) == {"a": Replace("x")}


# ---- replace and group ----


def test_only_replace_and_keep_replace() -> None:
    assert "an int does not say" in refused(REPLACE, 3, "value")
    assert REPLACE.compose(KEEP, Replace(1)) == (Replace(1),)
    assert REPLACE.compose(KEEP, KEEP) == ()
    with pytest.raises(ChangeError, match="no change of a value"):
        REPLACE.compose(Replace(1), 2)


def test_a_group_combines_the_change_onto_the_value() -> None:
    text = refused(group(LIST), "b", ["a"])
    assert "'b' is not a valid change of this element of LIST" in text
    assert "combine(value, change) raised TypeError" in text
    assert group(LIST).diff([1, 2, 3], [1]) == [2, 3]
    with pytest.raises(ChangeError, match="nothing combined onto the old"):
        group(LIST).diff([1], [2])
    with pytest.raises(ChangeError, match="has no diff"):
        group(MAX).diff(1, 2)
    with pytest.raises(ChangeError, match="nothing combined onto the old"):
        group(ADD).diff(1.0, 1e16)
    with pytest.raises(ChangeError, match="can never follow"):
        group(LIST).compose(["a"], 3)  # type: ignore[arg-type]
    assert [group(ADD).has_diff, group(LIST).has_diff, group(MAX).has_diff] == [True, False, False]
