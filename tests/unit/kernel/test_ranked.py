"""Rows and values in an order, as kernels, beside plain Python, with steps that are taken back."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("numba")

from ebbflow.kernel import DoesNotFit  # noqa: E402
from ebbflow.kernel import ranked as kernel_ranked  # noqa: E402
from ebbflow.kernel.firsts import PlacedColumns  # noqa: E402
from ebbflow.kernel.groups import SEEN, TOTAL, Addend, Groups, Result  # noqa: E402
from ebbflow.kernel.text_order import TextOrder  # noqa: E402
from ebbflow.kernel.top import FirstRows  # noqa: E402
from ebbflow.kernel.word_order import WordOrder  # noqa: E402
from ebbflow.kernel.words import NULL, Texts, WordForm, encoded  # noqa: E402

Row = tuple[int, int, int]
"""A key, and the two fields that rows are ordered by: one up and one down."""
ORDER = [WordOrder("int", True), WordOrder("int", False), WordOrder("int", True)]
WORDS = ["", "a", "a\0", "ab", "ebbflow", "ebbflow-1", "ebbflow-2", "ebbflow-12", "Łódź", "\ud83d",
         "\U0001f600", "\uffff", "z" * 40, "z" * 41]  # fmt: skip


def stepped(top: FirstRows, change: list[tuple[Row, int]]) -> Counter[Any]:
    rows = np.array([row for row, _ in change], np.int64).reshape(-1, 3)
    weights = np.array([weight for _, weight in change], np.int64)
    out, weights = top.step(np.ascontiguousarray(rows[:, :1]), rows[:, [1, 2, 0]], weights)
    found = Counter(dict(zip(zip(*out.tolist(), strict=True), weights.tolist(), strict=True)))
    assert len(found) == len(weights)
    assert 0 not in found.values()
    return found


def expected(rows: Counter[Row], n: int, offset: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key in {row[0] for row in rows}:
        mine = sorted(
            (row for row in rows.elements() if row[0] == key), key=lambda row: (-row[1], row[2])
        )
        found.update((a, b, key) for _, a, b in mine[offset : offset + n])
    return found


def same(some: Counter[Any], others: Counter[Any]) -> bool:
    keys = some.keys() | others.keys()
    return all(some[key] == others[key] for key in keys)


@pytest.mark.parametrize("seed", range(12))
def test_the_first_rows_are_the_first_of_all_sorted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_ranked, "FEW_GONE", 20)
    random = Random(seed)
    n, offset = random.choice([1, 2, 3, 20]), random.choice([0, 0, 1, 4])
    top = FirstRows(1, ORDER, n, offset)
    rows: Counter[Row] = Counter()
    shown: Counter[Any] = Counter()
    for _ in range(60):
        before, old = Counter(rows), Counter(shown)
        top.begin()
        for _ in range(random.randrange(1, 3)):
            change = [
                ((random.randrange(3), random.randrange(9), random.randrange(4)), 1)
                for _ in range(random.randrange(30))
            ] + [(row, -1) for row in rows.elements() if random.random() < 0.4]
            random.shuffle(change)
            for row, weight in change:
                rows[row] += weight
            rows = +rows
            for row, weight in stepped(top, change).items():
                shown[row] += weight
            assert same(shown, expected(rows, n, offset))
        if random.random() < 0.3:
            top.rollback()
            rows, shown = before, old
        else:
            top.commit()
        words, weights = top.read()
        read: Counter[Any] = Counter()
        for *row, weight in zip(*words.tolist(), weights.tolist(), strict=True):
            read[tuple(row)] += weight
        assert same(read, expected(rows, n, offset))
        assert len(top.table) == len({row[0] for row in rows})
    top.begin()
    stepped(top, [(row, -weight) for row, weight in rows.items()])
    top.commit()
    assert len(top) == len(top.table) == 0


def test_a_row_that_is_not_there_changes_nothing() -> None:
    top = FirstRows(1, ORDER, 2)
    stepped(top, [((1, 5, 5), 1), ((1, 6, 6), 1)])
    for wrong in ([((1, 9, 9), 1), ((1, 7, 7), -1)], [((2, 1, 1), 2**62), ((2, 1, 1), 2**62)]):
        with pytest.raises(DoesNotFit, match="not there"):
            stepped(top, wrong)
        assert sorted(top.read()[0][0].tolist()) == [5, 6]
        assert (len(top), len(top.table)) == (2, 1)


def test_rows_that_are_there_more_often_than_are_wanted_are_shown_in_part() -> None:
    top = FirstRows(1, ORDER, 3)
    assert stepped(top, [((1, 5, 0), 7)]) == {(5, 0, 1): 3}
    assert stepped(top, [((1, 6, 0), 2)]) == {(6, 0, 1): 2, (5, 0, 1): -2}
    change = [((1, 9, 0), 1), ((1, 6, 0), -1), ((1, 4, 0), 5)]
    assert stepped(top, change) == {(9, 0, 1): 1, (6, 0, 1): -1}
    assert stepped(top, [((1, 5, 0), -7)]) == {(5, 0, 1): -1, (4, 0, 1): 1}


def test_texts_are_in_the_order_of_texts_also_when_numbers_are_given_again() -> None:
    random = Random(1)
    texts = Texts()
    order = TextOrder(texts)
    known = list(WORDS)
    for _ in range(30):
        random.shuffle(known)
        numbers = texts.words(known)
        order.follow()
        for a, x in zip(known, numbers, strict=True):
            for b, y in zip(known, numbers, strict=True):
                assert order.is_behind(x, y) == (a > b) or a == b, (a, b)
            assert order.is_behind(x, NULL)
            assert not order.is_behind(NULL, x)
        texts.forget(random.sample(numbers, 4))
        known = [*WORDS, *(f"new {random.random()}" for _ in range(random.randrange(6)))]


@pytest.mark.parametrize("last", [False, True])
def test_the_first_value_of_a_group_is_that_of_the_first_row(last: bool) -> None:
    random, texts = Random(int(last)), Texts()
    placed = PlacedColumns((0, 1), (WordOrder("float", last), WordOrder("text", last)), 1)
    groups = Groups(1, [Addend(SEEN, 1)], [Result(TOTAL, 1)], (), [placed], TextOrder(texts))
    rows: Counter[Any] = Counter()
    nan = float("nan")
    for _ in range(60):
        change: Counter[Any] = Counter()
        for _ in range(random.randrange(12)):
            place = random.choice([nan, -0.5, 0.0, 2.5, -7.0, None, float("inf")])
            change[random.randrange(3), place, random.choice(WORDS)] += 1
        for row in list(rows.elements()):
            change[row] -= random.random() < 0.4
        keys = np.array([[row[0]] for row in change], np.int64).reshape(-1, 1)
        words = [
            encoded(WordForm("float", True), [row[1] for row in change], texts),
            encoded(WordForm("text"), [row[2] for row in change], texts),
        ]
        weights = np.array(list(change.values()), np.int64)
        groups.begin()
        groups.step(keys, np.ascontiguousarray(np.array(words).T), weights)
        if random.random() < 0.3:
            groups.rollback()
        else:
            groups.commit()
            for row, weight in change.items():
                rows[row] += weight
            rows = +rows
        for (key,), (_, word) in zip(*[each.tolist() for each in groups.everything()], strict=True):
            there = [row[1:] for row in rows if row[0] == key and row[1] is not None]
            there.sort(key=lambda row: (row[0] != row[0], row), reverse=last)
            assert (None if word == NULL else texts.known[word]) == (there[0][1] if there else None)
    assert len(groups.values) < 200
