"""Batches of Arrow's become the words that their columns become one by one."""

from __future__ import annotations

import random
import sys
from datetime import date, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from ebbflow.kernel.arrow_batches import batch_words, layout_of
from ebbflow.kernel.arrow_words import arrow_words
from ebbflow.kernel.words import LARGEST, Texts, WordForm

HARD: dict[str, list[Any]] = {
    "int64": [0, -1, 2**63 - 1, -(2**63) + 1],
    "int32": [0, -1, 2**31 - 1, -(2**31)],
    "int16": [0, -1, 2**15 - 1, -(2**15)],
    "int8": [0, -1, 127, -128],
    "uint32": [0, 1, 2**32 - 1],
    "uint16": [0, 1, 2**16 - 1],
    "uint8": [0, 1, 128, 255],
    "float64": [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, sys.float_info.max],
    "bool": [True, False],
    "date32": [date(1970, 1, 1), date.min, date.max],
    "timestamp": [datetime(1970, 1, 1), datetime.min, datetime.max],
}
TYPES = {name: getattr(pa, name)() for name in HARD if name not in ("bool", "timestamp")}
TYPES |= {"bool": pa.bool_(), "timestamp": pa.timestamp("us")}


class Field(NamedTuple):
    """A column of a random batch."""

    type: str
    optional: bool

    @property
    def form(self) -> WordForm:
        names = {"float64": "float", "bool": "bool", "date32": "date", "timestamp": "time"}
        return WordForm(names.get(self.type, "int"), self.optional)


def some(field: Field, count: int, draw: random.Random) -> list[Any]:
    values = [draw.choice(HARD[field.type]) for _ in range(count)]
    return [None if field.optional and draw.random() < 0.3 else value for value in values]


def layout(fields: list[Field], types: list[Any]) -> Any:
    most = [field.form.largest for field in fields]
    return layout_of(types, most, [field.optional for field in fields])


@pytest.mark.parametrize("seed", range(60))
def test_a_batch_is_the_words_of_its_columns(seed: int) -> None:
    draw = random.Random(seed)
    fields = [Field(draw.choice([*HARD]), draw.random() < 0.5) for _ in range(draw.randint(1, 5))]
    count = draw.randint(1, 40)
    arrays = [pa.array(some(field, count, draw), TYPES[field.type]) for field in fields]
    names = [f"f{at}" for at in range(len(fields))]
    weights = [draw.choice([1, -1, 3, 8]) for _ in range(count)]
    if draw.random() < 0.5:
        arrays.append(pa.array(weights, pa.int64()))
        names.append("__weight")
    else:
        weights = [1] * count
    first = draw.randrange(count)
    end = draw.randint(first + 1, count)
    batch = pa.record_batch(arrays, names).slice(first, end - first)
    found = batch_words(batch, layout(fields, batch.schema.types), 8)
    assert found is not None
    words, _ = found
    for at, field in enumerate(fields):
        assert words[at].tolist() == arrow_words(field.form, batch.column(at), Texts()).tolist()
    assert words[-1].tolist() == weights[first:end]


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        ([1, -(2**63)], [1, 1]),
        ([1, None], [1, 1]),
        ([1, 2], [1, 0]),
        ([1, 2], [9, 1]),
        ([1, 2], [1, -9]),
        ([1, 2], [1, None]),
        ([1, 2], [1, -(2**63)]),
    ],
)
def test_what_is_unfit_gives_no_words(values: list[Any], weights: list[Any]) -> None:
    columns = {"n": pa.array(values, pa.int64()), "__weight": pa.array(weights, pa.int64())}
    batch = pa.record_batch(columns)
    assert batch_words(batch, layout([Field("int64", False)], batch.schema.types), 8) is None
    for at in range(2):  # it is only so where the row is that is unfit
        row = batch.slice(at, 1)
        good = values[at] not in (None, -(2**63)) and weights[at] in (1, 2)
        found = batch_words(row, layout([Field("int64", False)], row.schema.types), 8)
        assert (found is not None) == good


def test_texts_are_left_out_and_their_nulls_are_seen() -> None:
    batch = pa.record_batch({"t": pa.array(["a", None]), "n": pa.array([7, 8])})
    types = batch.schema.types
    found = batch_words(batch, layout_of(types, [0, LARGEST], [True, False]), 8)
    assert found is not None
    assert found[0][1:].tolist() == [[7, 8], [1, 1]]
    assert batch_words(batch, layout_of(types, [0, LARGEST], [False, False]), 8) is None


def test_a_type_that_is_not_known_has_no_layout() -> None:
    assert layout_of([pa.decimal256(5, 2)], [99_999], [False]) is None


def test_memory_of_a_batch_is_let_go() -> None:
    before = pa.total_allocated_bytes()
    for _ in range(50):
        batch = pa.record_batch({"n": pa.array(list(range(10_000)), pa.int64())})
        assert batch_words(batch, layout_of(batch.schema.types, [LARGEST], [False]), 8) is not None
        del batch
    assert pa.total_allocated_bytes() - before < 10_000 * 8 * 5
