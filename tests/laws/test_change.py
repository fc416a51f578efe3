"""The laws of change structures, for every structure that ships and for structures made of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from itertools import product as pairs
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.algebra import ADD, LIST, MAX, STR, dict_of, product
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
from ebbflow.errors import ChangeError
from ebbflow.zset import ZSet


class Case(NamedTuple):
    """A structure, values of it, and for each value some valid changes of it."""

    of: ChangeStructure[Any, Any]
    values: st.SearchStrategy[Any]
    changes: Callable[[Any], st.SearchStrategy[Any]]

    def __str__(self) -> str:
        return repr(self.of)


small = st.integers(-5, 5)
exact = small | st.integers() | st.fractions(max_denominator=9)
floats = st.floats(allow_nan=False, allow_infinity=False, width=16) | st.floats(-1e9, 1e9)
letters = st.text("abé😀", max_size=4)
rows = st.sampled_from("abcd")
zsets = st.dictionaries(rows, small, max_size=4).map(ZSet)
bags = st.dictionaries(rows, st.integers(1, 3), max_size=4).map(ZSet)


@st.composite
def bag_changes(draw: st.DrawFn, bag: ZSet[str]) -> ZSet[str]:
    return ZSet({row: draw(st.integers(-bag.weight(row), 2)) for row in draw(st.sets(rows))})


@st.composite
def edits(draw: st.DrawFn, text: str) -> Insert | Delete:
    at = draw(st.integers(0, len(text)))
    if draw(st.booleans()):
        return Insert(at, draw(letters))
    return Delete(at, draw(st.integers(0, len(text) - at)))


def paired(a: Case, b: Case) -> Case:
    def changes(value: Any) -> st.SearchStrategy[Any]:
        first, second = a.changes(value[0]), b.changes(value[1])
        return first.map(First) | second.map(Second) | st.builds(Both, first, second)

    return Case(pair(a.of, b.of), st.tuples(a.values, b.values), changes)


def sequenced(inner: Case) -> Case:
    return Case(sequence(inner.of), inner.values, lambda value: walks(inner, value).map(tuple))


def mapped(inner: Case) -> Case:
    @st.composite
    def changes(draw: st.DrawFn, value: dict[str, Any]) -> dict[str, Any]:
        change: dict[str, Any] = {}
        for key in draw(st.sets(st.sampled_from("xyz"))):
            if key not in value:
                change[key] = Put(draw(inner.values))
            else:
                patch = inner.changes(value[key]).map(Patch)
                change[key] = draw(patch | st.just(Drop()) | inner.values.map(Replace) | patch)
        return change

    values = st.dictionaries(st.sampled_from("xyz"), inner.values)
    return Case(mapping(inner.of), values, changes)


@st.composite
def walks(draw: st.DrawFn, case: Case, value: Any, most: int = 6) -> list[Any]:
    """Changes that are valid one after the other, from `value` on."""
    changes = []
    for _ in range(draw(st.integers(0, most))):
        changes.append(draw(case.changes(value)))
        value = case.of.patch(value, changes[-1])
    return changes


def grouped(monoid: Any, values: st.SearchStrategy[Any]) -> Case:
    return Case(group(monoid), values, lambda value: values)


number = Case(NUMBER, exact, lambda value: exact)
natural = Case(NATURAL, st.integers(0, 9), lambda value: st.integers(-value, 9))
boolean = Case(BOOL, st.booleans(), lambda value: st.booleans())
zset = Case(ZSET, zsets, lambda value: zsets)
bag = Case(BAG, bags, bag_changes)
text = Case(TEXT, letters, edits)
anything = small | letters | st.none() | st.lists(small, max_size=2)
replace = Case(REPLACE, anything, lambda value: anything.map(Replace) | st.just(KEEP))
totals = st.dictionaries(rows, small.filter(bool), max_size=3)

CASES = [
    number,
    natural,
    boolean,
    zset,
    bag,
    text,
    replace,
    paired(bag, text),
    paired(natural, natural),
    paired(paired(number, boolean), replace),
    sequenced(bag),
    sequenced(text),
    sequenced(paired(text, text)),
    sequenced(sequenced(natural)),
    mapped(number),
    mapped(text),
    mapped(bag),
    mapped(sequenced(text)),
    mapped(mapped(natural)),
    grouped(ADD, small),
    grouped(LIST, st.lists(small, max_size=3)),
    grouped(MAX, small),
    grouped(STR, letters),
    grouped(dict_of(ADD), totals),
    grouped(product(ADD, STR), st.tuples(small, letters)),
]
WITH_DIFF = [case for case in CASES if case.of.has_diff]

every_structure = pytest.mark.parametrize("case", CASES, ids=str)
every_difference = pytest.mark.parametrize("case", WITH_DIFF, ids=str)
quick = settings(max_examples=10)
thorough = settings(max_examples=25)

STRANGE = [
    None, 0, 1, -1, 3.5, float("nan"), True, "x", b"x", (), ("x",), [], ["x"], {}, {"x": "x"},
    {"x": 1}, set(), object(), object, len, Insert("0", "x"), Insert(0, 7), Insert(-1, "x"),
    Insert(True, "x"), Insert(99, "x"), Delete(0, None), Delete(-1, 1), Delete(1, -1),
    Delete(0, 99), First("x"), First(None), Second(object()), Both(None, None), Both(1, 2),
    {"x": Patch("x")}, {"x": Put(None)}, {"x": Drop()}, {"z": Replace(None)}, {(): Patch(())},
    Put(1), Drop(), Patch(1), Replace(1), KEEP, ZSet({"a": -99}), (Insert(0, "x"), 3),
    (Delete(0, 0), (Delete(0, 0),)), 1j, range(3), NotImplemented, ChangeError("x"),
]  # fmt: skip


# ---- O1: validity, patch, difference ----


@every_structure
@quick
@given(data=st.data())
def test_004_O1_a_valid_change_patches_and_leaves_the_old_value_alone(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    change = data.draw(case.changes(value))
    before, change_before = copy.deepcopy(value), copy.deepcopy(change)
    assert case.of.valid(change, value) is True
    new = case.of.patch(value, change)
    assert new == case.of.apply(value, change)
    assert (value, change) == (before, change_before)


@every_structure
@settings(max_examples=6)
@given(data=st.data())
def test_004_O1_validity_is_total_and_patch_refuses_exactly_what_is_not_valid(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    for change in STRANGE:
        valid = case.of.valid(change, value)
        assert valid is True or valid is False
        if valid:
            case.of.patch(value, change)
        else:
            with pytest.raises(ChangeError, match="is not a valid change of this") as caught:
                case.of.patch(value, change)
            assert caught.value.remedy
            assert "    because " in str(caught.value)
            assert "    value " in str(caught.value)


@every_structure
def test_004_O1_validity_is_total_for_values_of_another_kind_too(case: Case) -> None:
    for change, value in pairs([*STRANGE, case.of.nothing], STRANGE):
        if not case.of.valid(change, value):
            with pytest.raises(ChangeError, match="is not a valid change of this"):
                case.of.patch(value, change)


@every_difference
@thorough
@given(data=st.data())
def test_004_O1_the_difference_is_valid_and_leads_from_old_to_new(
    case: Case, data: st.DataObject
) -> None:
    new, old = data.draw(case.values), data.draw(case.values)
    change = case.of.diff(new, old)
    assert case.of.valid(change, old)
    assert case.of.patch(old, change) == new
    assert case.of.is_nothing(case.of.diff(old, old))


@pytest.mark.parametrize("of", [TEXT, pair(BAG, TEXT), group(MAX), sequence(group(MAX))], ids=repr)
def test_004_O1_a_structure_without_a_difference_says_so(of: ChangeStructure[Any, Any]) -> None:
    assert not of.has_diff
    with pytest.raises(ChangeError, match="has no diff") as caught:
        of.diff("new", "old")
    assert caught.value.remedy


@quick
@given(floats, floats)
def test_004_O1_a_difference_of_floats_is_right_or_is_refused(new: float, old: float) -> None:
    try:
        change = NUMBER.diff(new, old)
    except ChangeError:
        assert old + (new - old) != new
    else:
        assert NUMBER.patch(old, change) == new


@quick
@given(st.lists(floats, max_size=6), exact | floats)
def test_004_O1_float_changes_are_never_regrouped(changes: list[float], value: float) -> None:
    one_by_one = value
    for change in changes:
        one_by_one = one_by_one + change if change else one_by_one
    assert NUMBER.patch_all(value, NUMBER.compress(changes)) == one_by_one


@quick
@given(letters, letters, letters, letters)
def test_004_O1_edits_of_texts_are_at_most_two_and_keep_start_and_end(
    start: str, end: str, new: str, old: str
) -> None:
    found = TEXT.edits(start + new + end, start + old + end)
    assert TEXT.patch_all(start + old + end, found) == start + new + end
    assert len(found) <= 2
    assert sum(e.count for e in found if isinstance(e, Delete)) <= len(old)
    assert sum(len(e.text) for e in found if isinstance(e, Insert)) <= len(new)


@quick
@given(bags, bags)
def test_004_O1_a_bag_may_lose_exactly_what_it_contains(whole: ZSet[str], taken: ZSet[str]) -> None:
    contained = all(whole.weight(row) >= count for row, count in taken.items())
    assert BAG.valid(-taken, whole) == contained == (whole - taken).is_bag


# ---- O2: pairs, sequences, replace ----


@quick
@given(bags, letters, st.data())
def test_004_O2_a_pair_changes_side_by_side(a: ZSet[str], b: str, data: st.DataObject) -> None:
    both, da, db = pair(BAG, TEXT), data.draw(bag_changes(a)), data.draw(edits(b))
    assert both.patch((a, b), First(da)) == (BAG.patch(a, da), b)
    assert both.patch((a, b), Second(db)) == (a, TEXT.patch(b, db))
    assert both.patch((a, b), Both(da, db)) == (BAG.patch(a, da), TEXT.patch(b, db))


@quick
@given(zsets, zsets, zsets)
def test_004_O2_a_pair_is_valid_where_its_sides_are(
    a: ZSet[str], da: ZSet[str], db: ZSet[str]
) -> None:
    a = a.positive()
    both = pair(BAG, BAG)
    assert both.valid(First(da), (a, a)) == BAG.valid(da, a)
    assert both.valid(Both(da, db), (a, a)) == (BAG.valid(da, a) and BAG.valid(db, a))


@every_structure
@quick
@given(data=st.data())
def test_004_O2_a_sequence_is_its_changes_one_after_the_other(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    changes = data.draw(walks(case, value))
    row = sequence(case.of)
    assert row.valid(tuple(changes), value)
    assert row.patch(value, tuple(changes)) == case.of.patch_all(value, changes)
    assert row.apply(value, tuple(changes)) == case.of.patch_all(value, changes)


@quick
@given(st.lists(zsets, max_size=4), bags)
def test_004_O2_a_sequence_is_valid_when_each_change_is_for_what_was_left(
    changes: list[ZSet[str]], value: ZSet[str]
) -> None:
    steps = [sum(changes[:n], value) for n in range(1, len(changes) + 1)]
    assert sequence(BAG).valid(tuple(changes), value) == all(step.is_bag for step in steps)


@quick
@given(anything, anything)
def test_004_O2_replacing_is_always_valid_and_forgets_the_old(new: Any, old: Any) -> None:
    assert REPLACE.valid(Replace(new), old)
    assert REPLACE.patch(old, Replace(new)) is new
    assert REPLACE.patch(old, KEEP) is old


# ---- O12: no change, composing, compressing ----


@every_structure
@quick
@given(data=st.data())
def test_004_O12_nothing_is_valid_everywhere_and_changes_nothing(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    nothing = case.of.nothing
    assert case.of.is_nothing(nothing)
    assert case.of.valid(nothing, value)
    assert case.of.patch(value, nothing) == value


@every_structure
@thorough
@given(data=st.data())
def test_004_O12_two_changes_composed_do_what_the_two_do(case: Case, data: st.DataObject) -> None:
    value = data.draw(case.values)
    first = data.draw(case.changes(value))
    second = data.draw(case.changes(case.of.patch(value, first)))
    composed = case.of.compose(first, second)
    assert case.of.patch_all(value, composed) == case.of.patch_all(value, [first, second])
    assert len(composed) < 2 or composed == (first, second)
    if case.of.is_nothing(first):
        assert case.of.patch(value, first) == value


@every_structure
@thorough
@given(data=st.data())
def test_004_O12_a_compressed_sequence_is_valid_does_the_same_and_is_never_longer(
    case: Case, data: st.DataObject
) -> None:
    value = data.draw(case.values)
    changes = data.draw(walks(case, value, most=10))
    compressed = case.of.compress(iter(changes))
    assert isinstance(compressed, tuple)
    assert len(compressed) <= len(changes)
    assert not any(map(case.of.is_nothing, compressed))
    assert case.of.patch_all(value, compressed) == case.of.patch_all(value, changes)


@pytest.mark.parametrize(
    "case", [c for c in CASES if "TEXT" not in repr(c.of)], ids=str
)  # fmt: skip
@quick
@given(data=st.data())
def test_004_O12_where_all_changes_merge_one_is_left(case: Case, data: st.DataObject) -> None:
    value = data.draw(case.values)
    assert len(case.of.compress(data.draw(walks(case, value)))) <= 1


def test_004_O12_two_edits_merge_whenever_one_edit_could_do_what_they_do() -> None:
    """Every pair of small edits, against every single edit there is."""
    longest = "abcdefghi"
    values = [longest[:size] for size in range(len(longest) + 1)]

    def some(piece: str) -> list[Insert | Delete]:
        inserts = [Insert(at, piece[:n]) for at in range(4) for n in range(1, 4)]
        return inserts + [Delete(at, n) for at in range(4) for n in range(1, 4)]

    for first, second in pairs(some("XYZ"), some("123")):
        before = [v for v in values if sequence(TEXT).valid((first, second), v)]
        after = [TEXT.patch_all(v, (first, second)) for v in before]
        composed = TEXT.compose(first, second)
        assert [TEXT.patch_all(v, composed) for v in before] == after
        found = TEXT.edits(after[0], before[0])
        alone = len(found) == 1 and all(TEXT.valid(found[0], v) for v in before)
        alone = alone and [TEXT.patch(v, found[0]) for v in before] == after
        assert len(composed) == (0 if after == before else 1 if alone else 2), (first, second)


@quick
@given(st.lists(st.fractions(max_denominator=5) | small, max_size=6), exact)
def test_004_O12_exact_numbers_compress_to_their_sum(
    changes: list[Fraction], value: Fraction
) -> None:
    total = sum(changes)
    assert NUMBER.compress(changes) == ((total,) if total else ())
    assert NUMBER.patch(value, total) == NUMBER.patch_all(value, changes)
