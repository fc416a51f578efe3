"""Decimals as words: what Arrow and Python have comes back, and operations are those of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ebbflow.decimals import decimal, operator
from ebbflow.errors import EbbflowError
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.arrow_batches import batch_words, layout_of
from ebbflow.kernel.arrow_words import arrow_column, arrow_words
from ebbflow.kernel.decimal_words import texts_of_words, words_of_texts
from ebbflow.kernel.expressions import on_columns
from ebbflow.kernel.scaled import quotient_half_up
from ebbflow.kernel.words import LARGEST, NULL, Texts, WordForm, decoded, encoded, value_of, word_of
from ebbflow.record import record

MOST = 2**63 - 1


def any_word(random: Random) -> int:
    sign, kind = random.choice([1, -1]), random.randrange(5)
    if kind == 0:
        return sign * random.randrange(20)
    if kind == 1:
        return sign * int(10 ** random.randrange(19))
    if kind == 2:
        return sign * (2 ** random.randrange(1, 63) + random.randrange(-1, 2))
    if kind == 3:
        return sign * (MOST - random.randrange(3))
    return sign * random.randrange(2 ** random.randrange(1, 63))


def test_oracle_quotients_are_those_of_whole_numbers_rounded_half_up() -> None:
    random, fitted = Random(5), 0
    for _ in range(30_000):
        a, b, c = (any_word(random) for _ in range(3))
        top, bottom = abs(a * b), abs(c)
        whole = (2 * top + bottom) // (2 * bottom) if c else MOST + 1
        fits = whole <= MOST
        sign = -1 if (a * b < 0) != (c < 0) else 1
        assert quotient_half_up(a, b, c) == (fits, sign * whole if fits else 0), (a, b, c)
        fitted += fits
    assert fitted > 10_000


FORM = WordForm("decimal", True, (18, 4))
VALUES = [Decimal("0.0000"), Decimal("-0.0001"), Decimal("99999999999999.9999"), None]


def test_decimals_are_words_and_come_back_with_their_digits() -> None:
    words = encoded(FORM, VALUES, Texts())
    assert words.tolist() == [0, -1, 10**18 - 1, NULL]
    assert list(map(str, decoded(FORM, words, Texts()))) == list(map(str, VALUES))
    assert list(map(word_of(FORM, Texts()), VALUES)) == words.tolist()
    assert list(map(str, map(value_of(FORM, Texts()), words.tolist()))) == list(map(str, VALUES))


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+19"), Decimal("0.00001"), 1, 1.5]
)
def test_what_is_no_decimal_of_these_digits_does_not_fit(value: Any) -> None:
    for make in (word_of(FORM, Texts()), lambda one: encoded(FORM, [one, None], Texts())):
        with pytest.raises(DoesNotFit):
            make(value)


@pytest.mark.parametrize("form", [FORM, WordForm("decimal", True, (38, 18))])
def test_arrow_has_the_same_units(form: WordForm) -> None:
    words = np.array([0, -1, 7, NULL, 10**18 - 1, 1 - 10**18])
    array = arrow_column(form, words, Texts())
    array.validate(full=True)
    assert form.digits is not None
    assert array.type == pa.decimal128(*form.digits)
    assert list(map(str, array.to_pylist())) == list(map(str, decoded(form, words, Texts())))
    wide = array.cast(pa.decimal256(40, form.scale))
    for each in (array, pa.chunked_array([array.slice(2), array.slice(0, 2)]), wide):
        expected = [*words[2:], *words[:2]] if isinstance(each, pa.ChunkedArray) else [*words]
        assert arrow_words(form, each, Texts()).tolist() == expected
    absent = words == NULL
    texts = texts_of_words(words, form.scale, absent)
    assert texts.to_pylist() == [None if v is None else str(v) for v in array.to_pylist()]
    assert words_of_texts(texts, form.scale)[~absent].tolist() == words[~absent].tolist()


def test_arrow_values_of_more_than_64_bits_do_not_fit() -> None:
    form = WordForm("decimal", False, (38, 2))
    for units in (2**63, -(2**63), 2**64, -(2**64) - 1):
        array = pa.array([Decimal(units).scaleb(-2)], pa.decimal128(38, 2))
        with pytest.raises(DoesNotFit):
            arrow_words(form, array, Texts())
        batch = pa.record_batch({"x": array})
        assert batch_words(batch, layout_of(batch.schema.types, [LARGEST], [False]), 8) is None
    short = pa.array([Decimal("9.99"), Decimal("10.00")], pa.decimal128(4, 2)).view(
        pa.decimal128(3, 2)
    )
    batch = pa.record_batch({"x": short})
    assert batch_words(batch, layout_of(batch.schema.types, [999], [False]), 8) is None
    with pytest.raises(DoesNotFit):
        arrow_words(WordForm("decimal", False, (3, 2)), short, Texts())


def test_a_batch_of_decimals_is_read_in_one_loop() -> None:
    values = [Decimal("1.50"), None, Decimal("-0.01"), Decimal("0.00")]
    batch = pa.record_batch({"x": pa.array(values, pa.decimal128(12, 2))})
    form = WordForm("decimal", True, (12, 2))
    for first in range(4):
        part = batch.slice(first)
        found = batch_words(part, layout_of(part.schema.types, [form.largest], [True]), 8)
        assert found is not None
        assert found[0][0].tolist() == [150, NULL, -1, 0][first:]


# ---- operations ----

TWO: list[Callable[[Any], Any]] = [
    lambda r: r.x + r.y,
    lambda r: r.x - r.y,
    lambda r: r.x * r.y,
    lambda r: r.x / r.y,
    lambda r: r.x // r.y,
    lambda r: r.x % r.y,
    lambda r: r.x * r.n - r.y,
    lambda r: r.x / 7,
    lambda r: r.x * Decimal("0.075"),
    lambda r: round(r.x * r.y, 2),
    lambda r: -abs(r.x),
    lambda r: round(r.x, -1),
    lambda r: round(r.x),
    lambda r: int(r.x),
    lambda r: float(r.x),
    lambda r: r.x if r.n else r.y,
    lambda r: r.x < r.y,
    lambda r: r.x == r.y,
    lambda r: r.n >= r.x,
    lambda r: None if r.x > r.y else r.x,
]


def some_digits(random: Random) -> tuple[int, int]:
    precision = random.choice([1, 3, 6, 9, 12, 15, 18, 19, 25, 38])
    return precision, random.randrange(min(precision, 8) + 1)


def some_value(random: Random, digits: tuple[int, int]) -> Decimal:
    most = min(10 ** digits[0] - 1, MOST)
    units = random.choice([0, 1, 5, most, most // 2, random.randrange(most + 1), 15, 250])
    return Decimal(min(units, most) * random.choice([1, -1])).scaleb(-digits[1])


def test_oracle_operations_on_words_are_those_on_decimals() -> None:
    random, seen = Random(11), Counter[str]()
    for round_ in range(600):
        one, other = some_digits(random), some_digits(random)
        row_type: Any = record("R", x=decimal(*one), y=decimal(*other), n=int)
        fn = Fn.of(TWO[round_ % len(TWO)], row_type)
        assert fn.expression is not None
        try:
            computed = on_columns(fn.expression, [row_type], Texts())
        except NotInColumns:
            seen["not in columns"] += 1
            continue
        for _ in range(6):
            row = row_type(
                some_value(random, one), some_value(random, other), random.randrange(-3, 4)
            )
            try:
                expected = fn(row)
            except (EbbflowError, ZeroDivisionError):
                expected = "refused"
            columns = [
                encoded(form, [value], Texts())
                for form, value in zip(forms(one, other), row, strict=True)
            ]
            try:
                words = computed.words([columns.__getitem__], 1, computed.form)
            except DoesNotFit:
                seen["refused" if expected == "refused" else "does not fit"] += 1
                continue
            (found,) = decoded(computed.form, words, Texts())
            assert repr(found) == repr(expected), (fn.text, row, one, other)
            seen["computed"] += 1
    assert seen["computed"] > 1500, seen
    assert seen["refused"] > 0, seen
    assert seen["does not fit"] < 400, seen


def forms(one: tuple[int, int], other: tuple[int, int]) -> list[WordForm]:
    return [
        WordForm("decimal", False, one), WordForm("decimal", False, other), WordForm("int"),
    ]  # fmt: skip


def test_none_is_brought_to_other_digits_as_none() -> None:
    row_type: Any = record("R", x=decimal(6, 1) | None, y=decimal(6, 3))
    fn = Fn.of(lambda r: r.x if r.y > 0 else r.y, row_type)
    assert fn.expression is not None
    computed = on_columns(fn.expression, [row_type], Texts())
    columns = [np.array([NULL, 15, 15]), np.array([1, 1, 0])]
    words = computed.words([columns.__getitem__], 3, computed.form)
    assert list(map(str, decoded(computed.form, words, Texts()))) == ["None", "1.500", "0.000"]
    same = Fn.of(lambda r: r.x == r.y, row_type)
    assert same.expression is not None
    tested = on_columns(same.expression, [row_type], Texts())
    columns = [np.array([NULL, 15, 15]), np.array([1, 1500, 1501])]
    assert tested.words([columns.__getitem__], 3, tested.form).tolist() == [0, 1, 0]


def test_more_digits_than_the_type_has_are_wrong() -> None:
    assert operator("+", (3, 1))(Decimal("99.8"), Decimal("0.1")) == Decimal("99.9")
    row_type: Any = record("R", x=decimal(2, 0))
    fn = Fn.of(lambda r: round(r.x, -1), row_type)
    assert fn.expression is not None
    computed = on_columns(fn.expression, [row_type], Texts())
    assert computed.words([lambda at: np.array([95])], 1, computed.form).tolist() == [100]
