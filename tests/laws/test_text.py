"""Operators on text: every axiom on alphabets chosen to break them, and long runs against `str`."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.change import (
    BOOL,
    NATURAL,
    NUMBER,
    TEXT,
    Both,
    Delete,
    Edit,
    First,
    Insert,
    Second,
    pair,
    sequence,
)
from ebbflow.errors import ChangeError, CompositionError, LawBroken
from ebbflow.laws import check
from ebbflow.operator import (
    binary,
    each,
    on_input,
    seq,
    stateless,
)
from ebbflow.operator import text as basic
from ebbflow.operator.text import (
    EDITS,
    LINES,
    DeleteLines,
    EditLine,
    InsertLines,
    Rope,
    TextOperator,
    concat,
    count,
    ends_with,
    index_of,
    is_empty,
    last_index_of,
    length,
    lines,
    lower,
    replace,
    split_lines,
    starts_with,
    substring,
    trim,
    trim_left,
    trim_right,
    upper,
    words,
)
from ebbflow.operator.text.basic import growth

CASES = "aΣσςß İIı\u0301.'ŉǆǅﬁΐ\ud800A"
SPACES = "a \t\x1c\x1f\x85\xa0\u2028\u3000\u200b"
LINE_ENDS = "ab\r\n\v\x1c\x85\u2028"
LETTERS = "aab"

OPERATORS = [
    (length, CASES),
    (is_empty, "ab"),
    (upper, CASES),
    (lower, CASES),
    (lower, "Σa.' "),
    (lower, "." * 30 + "ΣΣa "),
    (trim_left, SPACES),
    (trim_right, SPACES),
    (trim, SPACES),
    (split_lines, LINE_ENDS),
    (lines, LINE_ENDS),
    (words, SPACES),
    *((substring(*bounds), LETTERS) for bounds in ((0,), (3,), (0, 4), (2, 7), (5, 5))),
    *((make(piece), LETTERS) for make in (starts_with, ends_with) for piece in ("", "a", "aab")),
    *((make(pattern), LETTERS)
      for make in (index_of, last_index_of, count)
      for pattern in ("", "a", "aa", "aab", "aba", "abaabaab")),
    *((replace(old, new), LETTERS)
      for old, new in (("", "-"), ("a", ""), ("aa", "b"), ("aba", "xaby"), ("ab", "ab"))),
]  # fmt: skip
NAMES = [f"{operator!r}-{i}" for i, (operator, _) in enumerate(OPERATORS)]


def edits(alphabet: str) -> Callable[[str], st.SearchStrategy[Edit]]:
    words = st.text(alphabet, max_size=6)

    def of(value: str) -> st.SearchStrategy[Edit]:
        size = len(value)
        deletes = st.integers(0, size).flatmap(
            lambda at: st.builds(Delete, st.just(at), st.integers(0, size - at))
        )
        return st.builds(Insert, st.integers(0, size), words) | deletes

    return of


@pytest.fixture(autouse=True)
def _small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of four code points: patterns, runs and line ends lie across them."""
    monkeypatch.setattr(Rope, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)
    monkeypatch.setattr(Rope, "notes", 2)


def one_edit(rnd: random.Random, text: str, alphabet: str, longest: int) -> Edit:
    at = rnd.randint(0, len(text))
    if rnd.random() < 0.5:
        return Insert(at, "".join(rnd.choices(alphabet, k=rnd.randint(0, longest))))
    return Delete(at, rnd.randint(0, min(longest, len(text) - at)))


def run(operator: Any, text: str, alphabet: str, steps: int, longest: int, seed: int) -> None:
    """A long random run: the output patched by every change, against the method of `str`."""
    rnd = random.Random(seed)
    state, output = operator.init(text), operator.f(text)
    for _ in range(steps):
        edit = one_edit(rnd, text, alphabet, longest)
        assert operator.accepts(state, edit)
        state, change = operator.step(state, edit)
        text = TEXT.patch(text, edit)
        output = operator.output.patch(output, change)
        assert output == operator.f(text), (text, edit, change)
    assert operator.invariant(text, state)


@pytest.mark.parametrize(("operator", "alphabet"), OPERATORS, ids=NAMES)
def test_004_O8_every_axiom_holds(operator: Any, alphabet: str) -> None:
    check(operator, inputs=st.text(alphabet, max_size=12), changes=edits(alphabet), examples=6)


@pytest.mark.parametrize(("operator", "alphabet"), OPERATORS, ids=NAMES)
def test_004_O8_long_runs_equal_the_method_of_str(operator: Any, alphabet: str) -> None:
    for seed in range(12):
        run(operator, "".join(random.Random(seed).choices(alphabet, k=60)), alphabet, 80, 9, seed)


EVERY = [
    (is_empty, "ab", 2),
    (upper, "aßΐ", 3),
    (lower, "aΣ.İ", 3),
    (lower, "aΣ.", 4),
    *((op, "a ", 5) for op in (trim_left, trim_right, trim)),
    (split_lines, "a\r\n", 4),
    (lines, "a\r\n", 4),
    (words, "a ", 5),
    *((substring(*bounds), "ab", 5) for bounds in ((0,), (2,), (1, 3), (0, 2))),
    *((make("ab"), "ab", 5) for make in (starts_with, ends_with)),
    *((make(pattern), "ab", 5)
      for make in (index_of, last_index_of, count) for pattern in ("a", "ab", "aa", "aba")),
    *((replace(old, new), "ab", 5) for old, new in (("a", "ba"), ("aa", "b"), ("aba", ""))),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "alphabet", "size"), EVERY, ids=lambda x: repr(x))
def test_004_O8_every_edit_of_every_small_text(operator: Any, alphabet: str, size: int) -> None:
    """Exhaustive: with the invariant kept by each, one step is as good as many."""
    texts = ["".join(t) for n in range(size + 1) for t in product(alphabet, repeat=n)]
    words = [text for text in texts if len(text) <= 2]
    for text in texts:
        places = range(len(text) + 1)
        inserts = [Insert(at, word) for at in places for word in words]
        deletes = [Delete(at, end - at) for at in places for end in places[at:]]
        for edit in [*inserts, *deletes]:
            state, change = operator.step(operator.init(text), edit)
            new = TEXT.patch(text, edit)
            assert operator.output.patch(operator.f(text), change) == operator.f(new), (text, edit)
            assert operator.invariant(new, state), (text, edit)


@pytest.mark.parametrize(("operator", "alphabet"), OPERATORS, ids=NAMES)
def test_004_O8_long_runs_with_ordinary_leaves(
    operator: Any, alphabet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("chunk", 256), ("fan", 8), ("notes", 512)):
        monkeypatch.setattr(Rope, name, value)
    text = "".join(random.Random(7).choices(alphabet, k=6000))
    run(operator, text, alphabet, 60, 300, 7)


@pytest.mark.parametrize(("operator", "alphabet"), OPERATORS, ids=NAMES)
def test_004_O8_operators_and_their_states_survive_pickling(operator: Any, alphabet: str) -> None:
    again = pickle.loads(pickle.dumps(operator))
    assert repr(again) == repr(operator)
    names = dict(vars(basic))
    assert repr(eval(repr(operator), names)) == repr(operator)
    text = alphabet * 3
    state = operator.init(text)
    for copied in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert operator.invariant(text, copied)
        new, _ = again.step(copied, Delete(1, 2))
        assert operator.invariant(TEXT.patch(text, Delete(1, 2)), new)
    assert operator.invariant(text, state)


@pytest.mark.parametrize("operator", [o for o, _ in OPERATORS], ids=repr)
def test_004_O8_an_edit_past_the_end_is_refused(operator: Any) -> None:
    for edit in (Insert(4, "x"), Delete(1, 3), Delete(-1, 1), "x"):
        with pytest.raises(ChangeError):
            operator.open("abc").send(edit)


@given(st.text(), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), st.text(max_size=9))))
@settings(max_examples=50)
def test_004_O8_case_is_right_for_all_of_unicode(text: str, plan: list[Any]) -> None:
    runs = [[op, op.init(text), op.f(text)] for op in (lower, upper)]
    for at, size, new in plan:
        at %= len(text) + 1
        edit = Insert(at, new) if new else Delete(at, min(size, len(text) - at))
        text = TEXT.patch(text, edit)
        for each_run in runs:
            op, state, output = each_run
            each_run[1], change = op.step(state, edit)
            each_run[2] = op.output.patch(output, change)
            assert each_run[2] == op.f(text)


def test_004_O8_every_code_point_is_mapped_as_str_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rope, "chunk", 4096)
    everything = "".join(map(chr, range(0x110000)))
    for op in (lower, upper):
        state, at = op.init("xΣ"), 1
        state, change = op.step(state, Insert(at, everything))
        new = TEXT.patch("xΣ", Insert(at, everything))
        assert op.output.patch(op.f("xΣ"), change) == op.f(new)
        state, change = op.step(state, Delete(at, 0x110000))
        assert op.output.patch(op.f(new), change) == op.f("xΣ")


@pytest.mark.parametrize(
    ("text", "edit", "changes"),
    [
        ("ΑΣ", Insert(2, "Α"), (Insert(2, "α"), Delete(1, 1), Insert(1, "σ"))),
        ("ΑΣ.'", Insert(4, "Α"), (Insert(4, "α"), Delete(1, 1), Insert(1, "σ"))),
        ("ΑΣ ", Insert(3, "Α"), (Insert(3, "α"),)),
        (" Σ", Insert(1, "Α"), (Insert(1, "α"), Delete(2, 1), Insert(2, "ς"))),
        ("İΣ", Delete(0, 1), (Delete(0, 2), Delete(0, 1), Insert(0, "σ"))),
        ("ΑΣΣ", Delete(2, 1), (Delete(2, 1), Delete(1, 1), Insert(1, "ς"))),
    ],
)
def test_004_O8_an_edit_rewrites_the_sigma_beside_it(text: str, edit: Edit, changes: Any) -> None:
    assert lower.open(text).send(edit) == changes


def test_004_O8_upper_needs_no_text_until_a_character_grows() -> None:
    live = upper.open("abc")
    assert live.state.rope is None
    assert live.send(Insert(1, "ß")) == Insert(1, "SS")
    assert live.state.rope is not None
    assert live.send(Insert(3, "ŉ")) == Insert(4, "ʼN")
    assert live.send(Delete(1, 1)) == Delete(1, 2)
    assert live.send(Delete(2, 1)) == Delete(2, 2)
    assert live.state.extra == 0
    assert live.send(Insert(3, "d")) == Insert(3, "D")
    assert live.send(Insert(1, "ß")) == Insert(1, "SS")
    assert live.send(Delete(4, 1)) == Delete(5, 1)
    assert upper.invariant("aßbc", live.state)


def test_004_O8_a_match_can_be_made_and_broken_by_the_join_of_two_halves() -> None:
    live = index_of("needle").open("a nee--dle, a needle")
    assert live.send(Delete(5, 2)) == 2 - 14
    assert live.send(Insert(4, "x")) == 13 - 2
    assert live.send(Delete(13, 6)) == -1 - 13


def test_004_O8_count_is_from_the_left_and_not_local() -> None:
    live = count("aa").open("a" * 9 + "b" + "a" * 9)
    assert live.send(Insert(0, "a")) == 1
    assert live.send(Delete(10, 1)) == 0
    assert live.send(Insert(19, "a")) == 1


def test_004_O8_replace_moves_the_matches_of_a_chain() -> None:
    live, text = replace("aa", "-").open("aaaaaab"), "aaaaaab"
    output = text.replace("aa", "-")
    for edit in (Insert(0, "a"), Insert(0, "b"), Delete(0, 2), Delete(5, 1), Insert(3, "b")):
        output = EDITS.patch(output, live.send(edit))
        text = TEXT.patch(text, edit)
        assert output == text.replace("aa", "-")


def test_004_O8_line_ends_come_apart_and_together() -> None:
    live = split_lines.open("a\r\nb")
    assert live.send(Insert(2, "x")) == (InsertLines(1, ("x",)),)
    assert live.send(Delete(2, 1)) == (DeleteLines(1, 1),)
    assert live.send(Delete(1, 1)) == ()
    assert live.send(Delete(1, 1)) == (EditLine(0, Insert(1, "b")), DeleteLines(1, 1))


def test_004_O8_lines_are_a_change_structure() -> None:
    lines = st.lists(st.text("ab", max_size=3), max_size=5)

    def changes(value: list[str]) -> st.SearchStrategy[Any]:
        size = len(value)
        inserts = st.builds(InsertLines, st.integers(0, size), lines.map(tuple))
        deletes = st.integers(0, size).flatmap(
            lambda at: st.builds(DeleteLines, st.just(at), st.integers(0, size - at))
        )
        if not value:
            return inserts | deletes
        inside = st.integers(0, size - 1).flatmap(
            lambda at: st.builds(EditLine, st.just(at), edits("ab")(value[at]))
        )
        return inserts | deletes | inside

    check(LINES, elements=lines, changes=changes, examples=25)
    alone = sequence(LINES)
    check(alone, elements=lines, changes=lambda v: changes(v).map(lambda c: (c,)), examples=15)
    assert pickle.loads(pickle.dumps(LINES)) is LINES
    for wrong in (InsertLines(2, ()), InsertLines(0, (1,)), DeleteLines(0, 2), DeleteLines(True, 0),
                  EditLine(1, Insert(0, "")), EditLine(0, Delete(0, 2)), "x"):  # fmt: skip
        assert not LINES.valid(wrong, ["a"])
    with pytest.raises(ChangeError, match="does not fit a list of 1 lines"):
        LINES.patch(["a"], DeleteLines(0, 2))


# ---- concat and the paper's pipeline ----


def sides(alphabet: str) -> Callable[[tuple[str, str]], st.SearchStrategy[Any]]:
    of = edits(alphabet)
    return lambda value: (
        of(value[0]).map(First)
        | of(value[1]).map(Second)
        | st.builds(Both, of(value[0]), of(value[1]))
    )


def pairs(alphabet: str) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(st.text(alphabet, max_size=8), st.text(alphabet, max_size=8))


def test_004_O8_concat_holds_every_axiom() -> None:
    check(concat, inputs=pairs("ab"), changes=sides("ab"), examples=20)
    assert not concat.accepts((1, 2), Second(Delete(0, 3)))
    assert not concat.accepts((1, 2), "x")


def test_004_O9_a_pair_whose_sides_change_by_sequences_is_taken_one_by_one() -> None:
    both_sides = binary(trim, upper, concat)
    check(both_sides, inputs=pairs("aß "), changes=sides("aß "), examples=25)
    either = binary(upper, trim, concat)
    check(either, inputs=pairs("aß "), changes=sides("aß "), examples=25)
    with pytest.raises(CompositionError, match="the second reads"):
        binary(length, upper, concat)


def test_004_O8_concat_pickles_as_itself() -> None:
    assert pickle.loads(pickle.dumps(concat)) is concat


PIPELINE = binary(lower, upper, concat) >> last_index_of("A")


def test_004_O9_the_papers_pipeline_holds_every_axiom() -> None:
    joined = "lower * upper >> concat"
    assert repr(PIPELINE) == f"{joined} >> each(last_index_of('A'))"
    assert repr(pickle.loads(pickle.dumps(PIPELINE))) == repr(PIPELINE)
    alphabet = "aAΣßİ. "
    assert PIPELINE.f(("aA", "ba")) == 3
    check(PIPELINE, inputs=pairs(alphabet), changes=sides(alphabet), examples=40)


def test_004_O9_networks_of_text_operators() -> None:
    both = trim >> (length & index_of("ab"))
    check(both, inputs=st.text("ab ", max_size=8), changes=edits("ab "), examples=25)
    deep = seq(trim, lower, replace("ab", "b"), split_lines)
    alphabet = "abA\n\r "
    check(deep, inputs=st.text(alphabet, max_size=8), changes=edits(alphabet), examples=25)
    assert isinstance(each(count("a")).open("aab").send((Delete(0, 1), Insert(0, "b"))), tuple)


# ---- simpler kinds of operators ----


def test_004_O3_stateless_operators_lift_to_sequences() -> None:
    size = stateless(len, growth, input=TEXT, output=NATURAL, name="size")
    assert size.init("abc") is None
    check(size, examples=30)
    assert each(size).open("abc").send((Insert(0, "xy"), Delete(1, 4))) == (2, -4)
    check(each(size), examples=20)


def test_004_O8_length_keeps_the_length_to_refuse_what_does_not_fit() -> None:
    assert length.init("abc") == 3
    check(length, examples=30)
    live = length.open("abc")
    assert live.send(Delete(0, 2)) == -2
    for edit in (Delete(0, 100), Delete(0, 2), Insert(2, "x")):
        with pytest.raises(ChangeError, match="cannot take this change"):
            live.send(edit)
    assert live.send(Delete(0, 1)) == -1
    lifted = each(length)
    assert lifted.open("abc").send((Insert(0, "xy"), Delete(1, 4))) == (2, -4)
    check(lifted, examples=20)
    assert (lower >> length).open("İ").send(Insert(1, "İa")) == (3,)


def _squared(n: int) -> int:
    return n * n


def _square_change(n: int, k: int) -> int:
    return 2 * n * k + k * k


def _shouted(text: str, edit: Edit) -> tuple[Edit, ...]:
    return TEXT.edits(TEXT.patch(text, edit).upper(), text.upper())


def test_004_O5_square_keeps_its_input_as_state() -> None:
    square = on_input(_squared, _square_change, input=NATURAL, output=NATURAL, name="square")
    check(square, examples=30)
    assert square.open(10).send(-10) == -100
    check(length >> square, examples=30)
    shout = on_input(str.upper, _shouted, input=TEXT, output=EDITS, name="shout")
    check(shout, inputs=st.text(CASES, max_size=6), changes=edits(CASES), examples=20)


# ---- planted bugs ----


class TrimRightThatForgetsBlankTexts(TextOperator):
    """The paper's Figure 2 without its corner case: where all is white space, a space that is put
    in front is also one at the end."""

    output = EDITS

    def f(self, x: str) -> str:
        return x.rstrip()

    def init(self, x: str) -> tuple[int, int]:
        return len(x), len(x) - len(x.rstrip())

    def size(self, state: tuple[int, int]) -> int:
        return state[0]

    def accepts(self, state: Any, change: object) -> bool:
        return True

    def step(self, state: tuple[int, int], change: Edit) -> tuple[Any, Any]:
        size, spaces = state
        if change.text.isspace():
            return (size + 1, spaces + (change.at > 0)), () if change.at else (change,)
        if change.at == 0:
            return (size + 1, spaces), (change,)
        return (size + 1, 0), (Insert(size - spaces, " " * spaces + change.text),)


def test_004_O11_trim_right_without_the_blank_case_is_refuted() -> None:
    def ends(value: str) -> list[Edit]:
        return [Insert(at, c) for at in (0, len(value)) for c in " a"]

    texts = st.text(" a", max_size=4)
    with pytest.raises(LawBroken) as broken:
        check(TrimRightThatForgetsBlankTexts(), inputs=texts, changes=ends, examples=60)
    assert broken.value.case["x"].strip() == ""
    assert len(broken.value.case["changes"]) == 1


class IndexOfThatMissesJoins(type(index_of("ab"))):  # type: ignore[misc]
    """Looks for new matches in the inserted text alone."""

    def _around(self, rope: Rope, at: int, more: int) -> tuple[int, str]:
        return at, rope.slice(at, at + more)


def test_004_O11_index_of_that_misses_a_match_made_by_joining_is_refuted() -> None:
    texts = st.text("ab", max_size=6)
    check(IndexOfThatMissesJoins("a"), inputs=texts, changes=edits("ab"), examples=10)
    with pytest.raises(LawBroken) as broken:
        check(IndexOfThatMissesJoins("ab"), inputs=texts, changes=edits("ab"), examples=40)
    assert broken.value.law.name == "FROM_SCRATCH"
    assert len(broken.value.case["changes"]) == 1


def _upper_edit(edit: Edit) -> Edit:
    return Insert(edit.at, edit.text.upper()) if isinstance(edit, Insert) else edit


def test_004_O11_a_case_mapping_that_assumes_lengths_stay_is_refuted() -> None:
    naive = stateless(str.upper, _upper_edit, input=TEXT, output=TEXT, name="naive_upper")
    check(naive, inputs=st.text("ab", max_size=6), changes=edits("ab"), examples=10)
    with pytest.raises(LawBroken) as broken:
        check(naive, inputs=st.text("aß", max_size=6), changes=edits("aß"), examples=40)
    assert "ß" in repr(broken.value.case)


def _lower_edit(edit: Edit) -> Edit:
    return Insert(edit.at, edit.text.lower()) if isinstance(edit, Insert) else edit


def test_004_O11_a_case_mapping_that_forgets_the_final_sigma_is_refuted() -> None:
    naive = stateless(str.lower, _lower_edit, input=TEXT, output=TEXT, name="naive_lower")
    with pytest.raises(LawBroken) as broken:
        check(naive, inputs=st.text("AΣ", max_size=6), changes=edits("AΣ"), examples=40)
    assert "Σ" in repr(broken.value.case)


def test_004_O8_scalars_have_the_structures_one_expects() -> None:
    assert (length.output, is_empty.output, count("a").output) == (NATURAL, BOOL, NATURAL)
    assert (index_of("a").output, last_index_of("a").output) == (NUMBER, NUMBER)
    assert (concat.input, concat.output) == (pair(TEXT, TEXT), EDITS)
