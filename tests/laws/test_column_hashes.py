"""Columns are hashed as the values they hold, to the bit."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.errors import AlgebraError
from ebbflow.state.spine import columns_hash
from ebbflow.state.spine.columns import ColumnShape, decode, encode
from ebbflow.state.spine.columns_hash import column_hashes, encoded_column
from ebbflow.state.spine.hashing import hashes, places_in_order


class Row(NamedTuple):
    id: Any
    text: Any


P = 2**61 - 1
edges = [0, 1, -1, -2, P, -P, P - 1, P + 1, -P - 1, -P - 2, 2 * P, 2**63 - 1, -(2**63), 4 * P - 1]
numbers = [
    0.0, -0.0, 1.0, -1.0, -2.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e308,
    2.0**61, -(2.0**61), 2.0**60, 0.1, 1 / 3, -1e-9, float(2**53), -(2.0**-61), 2.0**-1074, 1e22,
]  # fmt: skip
kinds: dict[str, st.SearchStrategy[Any]] = {
    "int": st.one_of(st.sampled_from(edges), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)),
    "float": st.one_of(st.sampled_from(numbers), st.floats(), st.integers(-9, 9).map(float)),
    "bool": st.booleans(),
    "text": st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=12),
        st.integers(0, 140).map(lambda n: "xé"[n % 2] * n),
    ),
    "bytes": st.one_of(st.binary(max_size=20), st.binary(min_size=60, max_size=70)),
    "date": st.dates(),
    "time": st.datetimes(),
    "utc": st.datetimes(timezones=st.just(UTC)),
    "decimal": st.one_of(
        st.decimals(allow_nan=False),
        st.builds(
            lambda units, scale: Decimal(f"{units}E-{scale}"),
            st.one_of(st.sampled_from(edges), st.integers(-(10**38) + 1, 10**38 - 1)),
            st.integers(0, 18),
        ),
        st.sampled_from([Decimal("1E+30"), Decimal(P) / 4, Decimal(-1), Decimal("-1.00")]),
    ),
    "none": st.none(),
    "any": st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.floats())),
}
lists = {
    kind: st.lists(st.one_of(one, one, st.none()), min_size=1, max_size=12)
    for kind, one in kinds.items()
}


def check(values: list[Any], row_type: Any = None) -> ColumnShape:
    shape, columns = encode(values, row_type)
    expected = hashes(decode(shape, columns, row_type))
    assert expected.tolist() == hashes(values).tolist()
    found = column_hashes(shape, columns)
    assert found.dtype == np.uint64
    assert found.tolist() == expected.tolist()
    sliced = [column.slice(1) for column in columns]
    assert column_hashes(shape, sliced).tolist() == expected[1:].tolist()
    return shape


@pytest.mark.parametrize("kind", sorted(kinds))
def test_a_column_is_hashed_as_its_values(kind: str) -> None:
    @settings(max_examples=60)
    @given(lists[kind])
    def run(values: list[Any]) -> None:
        shape = check(values)
        assert kind == "any" or shape.encodings[0].rstrip("123468") in (kind, "none", "any")

    run()


@pytest.mark.parametrize("size", [18, 19, 20, 21, 22, 30, 38, 40])
def test_long_decimals_are_hashed_as_their_values(size: int) -> None:
    """Arrow takes some texts that are too large for 128 bits, such as these of 30 digits."""
    digits = "675830517640746643005476088844" + "7" * size
    for places in (0, 1, 17, 18, 19):
        for sign in ("", "-"):
            check([Decimal(f"{sign}{digits[:size]}").scaleb(-places)])
            check([Decimal(f"{sign}{digits[:size]}.{digits[:places]}"), Decimal(1)])


@settings(max_examples=60)
@given(st.data(), st.sampled_from(sorted(kinds)), st.sampled_from(sorted(kinds)), st.booleans())
def test_rows_are_hashed_as_tuples(data: Any, one: str, other: str, record: bool) -> None:
    make: Any = Row if record else lambda *items: items
    pairs = st.builds(make, st.one_of(kinds[one], st.none()), kinds[other])
    check(data.draw(st.lists(pairs, min_size=1, max_size=9)), Row)


@pytest.mark.parametrize("values", [edges, numbers, ["", "x" * 64, "x" * 65, "\0", "é" * 40]])
def test_the_edges_are_hashed_alike(values: list[Any]) -> None:
    check(values)
    check([*values, None])
    check([(value, 1) for value in values])


@pytest.mark.parametrize("kind", sorted(kinds))
def test_no_rows_have_no_hashes(kind: str) -> None:
    shape = ColumnShape("one", (kind,))
    assert column_hashes(shape, [pa.nulls(0, shape.types()[0])]).tolist() == []
    assert (
        column_hashes(shape, [pa.nulls(2, shape.types()[0])]).tolist()
        == [int(hashes([None])[0])] * 2
    )


# ---- columns of Arrow arrays ----

NOON = datetime(2024, 5, 1, 12, 0, 0, 7)
ARROWS: list[tuple[Any, list[Any], str]] = [
    (pa.int64(), [1, None, -(2**63)], "int"),
    (pa.int32(), [1, None, -5], "int"),
    (pa.string(), ["a", None, ""], "text"),
    (pa.large_string(), ["é", None], "text"),
    (pa.bool_(), [True, None, False], "bool"),
    (pa.float64(), [1.5, None, -0.0, math.nan], "float"),
    (pa.float32(), [1.5, None], "float"),
    (pa.binary(), [b"\xff", None], "bytes"),
    (pa.large_binary(), [b"", None], "bytes"),
    (pa.date32(), [date(2024, 5, 1), date(1, 1, 1), None], "date"),
    (pa.timestamp("us"), [NOON, datetime(1, 1, 1), None], "time"),
    (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=UTC), None], "utc"),
    (pa.timestamp("us", "Europe/Rome"), [NOON.replace(tzinfo=UTC), None], "utc"),
    (pa.null(), [None, None], "none"),
    (
        pa.decimal128(38, 18),
        [Decimal("0E-18"), Decimal("-1.500000000000000000"), Decimal("1E-18"), None],
        "decimal",
    ),
    (pa.decimal128(12, 2), [Decimal("0.00"), Decimal("-0.05"), Decimal("12345.60")], "decimal"),
    (pa.decimal128(9, 0), [Decimal(0), Decimal(-7)], "decimal"),
]


@pytest.mark.parametrize(("arrow", "values", "kind"), ARROWS, ids=str)
def test_an_arrow_array_becomes_a_column_of_the_same_values(
    arrow: Any, values: list[Any], kind: str
) -> None:
    array = pa.array([values[0], *values], arrow).slice(1)
    for given_array in (array, pa.chunked_array([array[:1], array[1:]])):
        found, column = encoded_column(given_array)
        shape = ColumnShape("one", (found,))
        assert (found, column.type) == (kind, shape.types()[0])
        decoded = decode(shape, [column])
        assert [(type(v), repr(v)) for v in decoded] == [(type(v), repr(v)) for v in values]
        assert column_hashes(shape, [column]).tolist() == hashes(values).tolist()


@settings(max_examples=100)
@given(st.integers(0, 18), st.integers(-(10**18) + 1, 10**18 - 1))
def test_a_decimal_is_written_as_python_writes_it(scale: int, digits: int) -> None:
    value = Decimal(digits).scaleb(-scale)
    array = pa.array([value], pa.decimal128(18, scale))
    _, column = encoded_column(array)
    assert column.to_pylist() == [str(array[0].as_py())]


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.list_(pa.int64()), pa.time64("us")])
def test_a_type_that_has_no_kind_is_refused(arrow: Any) -> None:
    with pytest.raises(AlgebraError, match="cannot be stored as it is"):
        encoded_column(pa.nulls(1, arrow))


def test_long_columns_are_hashed_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [(i, None if i % 3 else "x" * (i % 70), i / 7) for i in range(100)]
    shape, columns = encode(values)
    monkeypatch.setattr(columns_hash, "BLOCK", 7)
    assert column_hashes(shape, columns).tolist() == hashes(values).tolist()
    sliced = column_hashes(shape, [column.slice(5, 60) for column in columns])
    assert sliced.tolist() == hashes(values[5:65]).tolist()


@given(st.integers(0, 2**32), st.integers(490, 3000), st.integers(0, 63), st.integers(1, 64))
def test_places_in_order_are_those_of_a_stable_sort(
    number: int, count: int, low: int, width: int
) -> None:
    """Whichever bits tell words apart, and however many are equal."""
    dice = np.random.default_rng(number)
    words = (dice.integers(0, 2**63, count, np.uint64) >> np.uint64(64 - width)) << np.uint64(low)
    for some in (words, np.sort(words), np.repeat(words[::7], 7), np.sort(words)[::-1].copy()):
        assert places_in_order(some).tolist() == np.argsort(some, kind="stable").tolist()
