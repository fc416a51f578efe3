"""Texts of batches have the numbers that Python's dict gives, however they are looked up."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ebbflow.kernel import arrow_texts
from ebbflow.kernel.arrow_batches import batch_words, layout_of
from ebbflow.kernel.arrow_texts import TextColumn
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.words import NULL, Texts, WordForm
from ebbflow.record import record

Row = record("Row", text=str)
SOME = [
    "",
    "a",
    "ebb",
    "eight by",
    "eight by eight",
    "Łódź",
    "flow" * 9,
    "flow" * 9 + "s",
    "\0",
    "\0\0",
]


def column(texts: Texts, values: list[Any], first: int, end: int, optional: bool) -> TextColumn:
    batch = pa.record_batch({"text": pa.array(values, pa.utf8())}).slice(first, end - first)
    found = batch_words(batch, layout_of(batch.schema.types, [0], [optional]), 8)
    assert found is not None
    return TextColumn(WordForm("text", optional), batch, 0, found[1][0], texts.now, "text")


@pytest.mark.parametrize("most", [4, 1024])
@pytest.mark.parametrize("seed", range(20))
def test_the_words_of_texts_are_their_numbers(
    most: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_texts, "MOST", most)
    draw, texts = random.Random(seed), Texts()
    optional = draw.random() < 0.5
    for _ in range(12):
        known = SOME + [f"text {draw.randrange(40)}" for _ in range(3)]
        count = draw.randint(1, 30)
        nulls = optional and draw.random() < 0.5
        values = [
            None if nulls and draw.random() < 0.3 else draw.choice(known) for _ in range(count)
        ]
        first = draw.randrange(count)
        end = draw.randint(first + 1, count)
        given = column(texts, values, first, end, optional)
        rows = np.array([draw.randrange(end - first) for _ in range(draw.randrange(12))], np.int64)
        if draw.random() < 0.5:
            given()
        some = given.chosen(rows)
        words = given().tolist()
        expected = [NULL if each is None else texts.numbers[each] for each in values[first:end]]
        assert words == expected
        assert some.tolist() == [expected[at] for at in rows.tolist()]
        assert [texts.known[word] for word in words if word != NULL] == [
            each for each in values[first:end] if each is not None
        ]
        if draw.random() < 0.2 and 0 in texts.numbers.values():
            texts.forget([0])


def test_texts_that_are_many_are_given_without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_texts, "MOST", 2)
    texts = Texts()
    few = column(texts, ["a", "b"], 0, 2, False)
    assert few.unnumbered() is None
    few()
    many = column(texts, ["c"], 0, 1, False)
    many()
    assert many.unnumbered() is None
    later = column(texts, ["d", "e", "d"], 0, 3, False)
    assert later.unnumbered() == (["d", "e", "d"], None)
    chosen = Columns(Row, [later], np.ones(3, np.int64), texts).taken(np.array([2, 0, 1, 2]))
    found = chosen.given[0].unnumbered()
    assert [found[0][at] for at in found[1].tolist()] == ["d", "d", "e", "d"]
    assert "d" not in texts.numbers
    assert [texts.known[word] for word in chosen.words(0).tolist()] == ["d", "d", "e", "d"]


def test_a_text_that_is_known_by_its_bytes_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts, asked = Texts(), []
    kind = type(texts.now)
    plain = kind.words
    monkeypatch.setattr(
        kind, "words", lambda self, some: asked.append(len(some)) or plain(self, some)
    )
    for _ in range(3):
        column(texts, ["ebb", "flow"] * 50, 0, 100, False)()
    assert asked == [100]
