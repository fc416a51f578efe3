"""Spines without rows: entries given as columns, and ranges of hashes read as columns."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from ebbflow.errors import AlgebraError
from ebbflow.state.spine import ABSENT, Piece, Spine, Store
from ebbflow.state.spine.columns import ColumnShape, encode
from ebbflow.state.spine.hashing import hashes


class Order(NamedTuple):
    id: int
    city: str | None
    price: float


def orders(count: int) -> list[Order]:
    return [Order(i, None if i % 5 == 0 else f"city {i % 40}", i / 4) for i in range(count)]


def grouped(keys: list[Any], rows: list[Any], weights: list[int]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, row, weight in zip(keys, rows, weights, strict=True):
        found.setdefault(key, []).append((row, weight))
    return found


def same_entries(one: Spine, other: Spine) -> bool:
    """Whether what is staged is the same to the byte."""
    (left,), (right,) = one.staged, other.staged
    assert (left.form, left.chunks) == (right.form, right.chunks)
    pairs = zip(left.parts(), right.parts(), strict=True)
    return all(a.batch().equals(b.batch()) for a, b in pairs)


@pytest.mark.parametrize("weighted", [True, False])
def test_columns_are_staged_as_their_rows_would_be(weighted: bool) -> None:
    rows = orders(1_000)
    keys = [(row.city, row.id % 3) for row in rows]
    weights = [1 + row.id % 2 if weighted else 1 for row in rows]
    by_rows = Spine("bag", row_type=Order, chunk=64)
    by_rows.append(grouped(keys, rows, weights))
    by_columns = Spine("bag", row_type=Order, chunk=64)
    given = np.array(weights) if weighted else None
    by_columns.append_columns(encode(keys), encode(rows, Order), given)
    assert same_entries(by_rows, by_columns)
    assert by_columns.probe(keys) == by_rows.probe(keys)


def test_equal_entries_add_up_and_zeros_go() -> None:
    spine = Spine("bag")
    keys, rows = encode([1, 2, 1, 2, 3]), encode(["a", "b", "a", "b", "c"])
    spine.append_columns(keys, rows, np.array([1, 1, 2, -1, 0]))
    assert [*spine.scan()] == [(1, "a", 3)]
    spine.append_columns(encode([1]), encode(["a"]), np.array([-3]))
    assert spine.probe([1]) == {}
    cancelled = Spine("bag")
    cancelled.append_columns(encode([1, 1]), encode(["a", "a"]), np.array([1, -1]))
    assert cancelled.staged == []


def test_values_can_be_columns_and_the_last_one_counts() -> None:
    spine = Spine("value", row_type=Order)
    spine.append_columns(encode([1, 2, 1]), encode(orders(3), Order))
    assert spine.probe([1, 2]) == {1: orders(3)[2], 2: orders(3)[1]}
    spine.append({2: ABSENT})
    assert [key for key, _, _ in spine.scan()] == [1]
    by_rows = Spine("value", row_type=Order)
    by_rows.append(dict(zip(range(300), orders(300), strict=True)))
    by_columns = Spine("value", row_type=Order)
    by_columns.append_columns(encode(range(300)), encode(orders(300), Order))
    assert same_entries(by_rows, by_columns)


@pytest.mark.parametrize("gone", [[1], [0, 1, 2], []], ids=["one", "all", "none"])
def test_values_that_are_not_live_are_taken_away(gone: list[int]) -> None:
    rows, spine = orders(3), Spine("value", row_type=Order)
    spine.append_columns(encode(range(3)), encode(rows, Order))
    live = np.array([i not in gone for i in range(3)])
    spine.append_columns(encode(range(3)), encode(rows[::-1], Order), live=live)
    wanted = {i: rows[2 - i] for i in range(3) if i not in gone}
    assert spine.probe(range(3)) == wanted
    assert {key: row for key, row, _ in spine.scan()} == wanted
    spine.hold()
    assert spine.probe(range(3)) == wanted


def test_no_entries_are_nothing_staged() -> None:
    for layout in ("bag", "value"):
        spine = Spine(layout)
        shape = ColumnShape("one", ("int",))
        spine.append_columns(
            (shape, [pa.array([], pa.int64())]), (shape, [pa.array([], pa.int64())])
        )
        assert spine.staged == []


def test_columns_that_do_not_fit_are_refused() -> None:
    bag, value = Spine("bag"), Spine("value")
    ints, texts = ColumnShape("one", ("int",)), ColumnShape("one", ("text",))
    one, two = pa.array([1]), pa.array([1, 2])
    for keys, rows in (
        ((ints, [one]), (texts, [pa.array(["a"], pa.large_utf8())])),
        ((texts, [one]), (ints, [one])),
        ((ints, [one]), (ColumnShape("tuple", ("int", "int")), [one])),
        ((ints, [one]), (ColumnShape("record", ("int",)), [one])),
    ):
        with pytest.raises(AlgebraError, match="not of this shape"):
            bag.append_columns(keys, rows)
    pairs = ColumnShape("tuple", ("int", "int"))
    for spine, keys, rows, weights in (
        (bag, (ints, [one]), (ints, [two]), None),
        (bag, (ints, [two]), (pairs, [two, one]), None),
        (bag, (ints, [two]), (ints, [two]), [1]),
        (value, (ints, [two]), (ints, [two]), [1, 1]),
    ):
        with pytest.raises(AlgebraError, match="do not belong together"):
            spine.append_columns(keys, rows, weights)
        assert spine.staged == []


def test_columns_go_through_a_piece_into_the_state(tmp_path: Path) -> None:
    rows = orders(500)
    with Store(tmp_path) as store:
        spine = Spine("bag", row_type=Order)
        spine.append_columns(encode([row.city for row in rows]), encode(rows, Order))
        piece = Piece(tmp_path, 0, "0")
        piece.add("orders", spine)
        for name, layout, ref in piece.finish():
            store.adopt(name, ref, layout=layout, row_type=Order)
        store.commit(0)
        found = store.spine("orders", layout="bag", row_type=Order).probe(["city 7"])
        assert found == {"city 7": {row: 1 for row in rows if row.city == "city 7"}}


# ---- ranges ----


@pytest.mark.parametrize("layout", ["bag", "value"])
def test_ranges_of_hashes_are_disjoint_and_together_all(layout: str) -> None:
    spine = Spine(layout, chunk=32)
    for i in range(3):
        keys = range(i * 100, i * 100 + 400)
        spine.append({k: [((k, i % 2), 1)] if layout == "bag" else (k, i) for k in keys})
    everything = [*spine.scan()]
    hashed = dict(zip(range(700), hashes(range(700)).tolist(), strict=True))
    lasts = sorted({chunk.last for segment in spine.staged for chunk in segment.chunks})
    some_hashes = sorted(hashed.values())[::97]
    for cuts in ([0, 2**64], [0, 2**63, 2**64], [0, *some_hashes, 2**64], [0, *lasts, 2**64]):
        found = []
        for low, high in pairwise(cuts):
            some = [*spine.scan(low, high)]
            assert all(low <= hashed[key] < high for key, *_ in some)
            found += some
        assert found == everything
    first = min(hashed.values())
    assert [hashed[key] for key, *_ in spine.scan(first, first + 1)][:1] == [first]
    assert [*spine.scan(first, first)] == [*spine.scan(5, 5)] == []


def test_only_chunks_in_the_range_are_read(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        spine = store.spine("rows", layout="bag")
        spine.append({key: [(key, 1)] for key in range(5_000)})
        store.commit(0)
    with Store(tmp_path, chunk=64) as store:
        spine = store.spine("rows", layout="bag")
        (segment,) = spine.segments
        read: list[int] = []
        whole = segment._reader

        class Counting:
            def get_batch(self, i: int) -> Any:
                read.append(i)
                return whole.get_batch(i)

        segment._reader = Counting()
        some = sum(len(part) for part in spine.chunks(2**60, 2**61))
        assert 200 < some < 450
        assert len(read) <= some // 64 + 2
        assert segment._loaded == {}
