"""Widths: what takes less room is read, hashed, looked up and merged as what takes more; also when
different rows have the same row hash.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.state.spine import ABSENT, Spine, Store, columns
from ebbflow.state.spine import spine as module
from ebbflow.state.spine.columns import (
    ColumnShape,
    common,
    decode,
    encode,
    narrowed,
    recast,
    repeated,
)
from ebbflow.state.spine.columns_hash import column_hashes, encoded_column
from ebbflow.state.spine.hashing import hashes
from ebbflow.state.spine.merge import joined
from ebbflow.state.spine.segment import Segment

WIDTHS = ["int8", "int16", "int32", "int"]
BITS = dict(zip(WIDTHS, (8, 16, 32, 64), strict=True))
TYPES = {kind: ColumnShape("one", (kind,)).types()[0] for kind in WIDTHS}


def integers(bits: int) -> st.SearchStrategy[int]:
    most = 2 ** (bits - 1)
    edges = [e for b in (8, 16, 32, 64) if b <= bits for e in (2 ** (b - 1) - 1, -(2 ** (b - 1)))]
    return st.one_of(st.sampled_from(edges), st.integers(-most, most - 1), st.integers(-3, 3))


class Row(NamedTuple):
    key: int
    number: Any
    text: str | None


def exact(value: Any) -> Any:
    parts = [exact(item) for item in value] if isinstance(value, tuple) else repr(value)
    return type(value), parts


# ---- one column ----


@settings(max_examples=80)
@given(st.sampled_from(WIDTHS), st.data())
def test_a_column_has_the_least_width_and_every_width_the_same_hashes(kind: str, data: Any) -> None:
    one = integers(BITS[kind])
    values = data.draw(st.lists(st.one_of(one, st.none()), min_size=1, max_size=90))
    shape, made = encode(values)
    there = [value for value in values if value is not None]
    least = next((k for k in WIDTHS if all(-(2 ** (BITS[k] - 1)) <= v < 2 ** (BITS[k] - 1)
                                           for v in there)), None)  # fmt: skip
    assert shape.encodings == (least if there else "none",)
    expected = hashes(values).tolist()
    given_columns = [pa.array(values, TYPES[k]) for k in WIDTHS[WIDTHS.index(kind) :]]
    for wide in [*made, *given_columns] if there else given_columns:
        own = ColumnShape("one", (next(k for k in WIDTHS if TYPES[k] == wide.type),))
        again, (narrow,) = narrowed(own, [wide])
        assert again.encodings == (least if there else "int8",)
        assert narrow.type == TYPES[again.encodings[0]]
        for shape, column in ((own, wide), (again, narrow)):
            assert exact(tuple(decode(shape, [column]))) == exact(tuple(values))
            assert column_hashes(shape, [column]).tolist() == expected
            assert column_hashes(shape, [column.slice(1)]).tolist() == expected[1:]


def test_what_is_under_a_null_does_not_count() -> None:
    column = pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1, 2**40, -3]))]
    )
    shape, (found,) = narrowed(ColumnShape("one", ("int",)), [column])
    assert (shape.encodings, found.to_pylist()) == (("int8",), [1, None, -3])


DAYS = [date(1880, 4, 14), date(2059, 9, 18), date(1970, 1, 1), date(1969, 12, 31)]
FAR = [date(1880, 4, 13), date(2059, 9, 19), date.min, date.max]


@given(st.lists(st.sampled_from([*DAYS, None]), min_size=1, max_size=90), st.booleans())
def test_dates_near_ours_take_half_the_room(values: list[Any], far: bool) -> None:
    values = [*values, DAYS[0], *(FAR if far else ())]
    shape, (made,) = encode(values)
    assert shape.encodings == ("date" if far else "date16",)
    wide = ColumnShape("one", ("date",))
    for own, column in ((shape, made), (wide, pa.array(values, pa.date32()))):
        again, (narrow,) = narrowed(own, [column])
        assert again == shape
        assert narrow.equals(made)
        assert decode(own, [column]) == values
        assert column_hashes(own, [column.slice(1)]).tolist() == hashes(values[1:]).tolist()
    assert common([shape, wide]) == wide
    assert recast(shape, wide, [made])[0].to_pylist() == values


def test_kinds_of_two_widths_have_the_wider_in_common() -> None:
    for i, one in enumerate(WIDTHS):
        for j, other in enumerate(WIDTHS):
            wide = WIDTHS[max(i, j)]
            assert common([ColumnShape("one", (k,)) for k in (one, other, "none")]).encodings == (
                wide,
            )
            into = ColumnShape("one", (wide,))
            (cast,) = recast(ColumnShape("one", (one,)), into, [pa.array([-128, None], TYPES[one])])
            assert (cast.type, cast.to_pylist()) == (TYPES[wide], [-128, None])
    for pair in (("text", "text64"), ("bytes", "bytes64")):
        assert common([ColumnShape("one", (k,)) for k in pair]).encodings == pair[1:]
    for wrong in (("int8", "float"), ("int8", "text"), ("text64", "bytes"), ("any", "int8"),
                  ("int8", "bool"), ("text", "decimal"), ("int16", "int8", "text")):  # fmt: skip
        assert common([ColumnShape("one", (k,)) for k in wrong]).encodings == ("any",)


# ---- segments of different widths ----

numbers = st.sampled_from([8, 16, 32, 64]).flatmap(
    lambda bits: st.lists(st.one_of(integers(bits), st.none()), max_size=6)
)
others = st.lists(st.sampled_from([1, 2**70, -(2**63) - 1, 1.5, "a", None, True]), max_size=3)
changes = st.lists(
    st.tuples(st.one_of(numbers, numbers, others), st.sampled_from([1, 1, -1, 2])), max_size=7
)


@settings(max_examples=60)
@given(changes, st.sampled_from([4, 8, 64]), st.booleans())
def test_segments_of_all_widths_are_merged(
    given_changes: list[Any], chunk: int, by_number: bool
) -> None:
    bag, cells = Spine("bag", row_type=Row, chunk=chunk), Spine("value", chunk=chunk)
    rows: dict[Any, dict[Any, int]] = {}
    values: dict[Any, Any] = {}
    for some, weight in given_changes:
        change: dict[Any, list[Any]] = {}
        for i, number in enumerate(some):
            row = Row(i * 100, number, None if i % 2 else "t")
            key = number if by_number else row.key
            change.setdefault(key, []).append((row, weight))
            group = rows.setdefault(key, {})
            group[row] = group.get(row, 0) + weight
        bag.append(change)
        put = {number: ABSENT if weight < 0 else (number, i) for i, number in enumerate(some)}
        cells.append(put)
        values.update(put)
    rows = {key: {row: w for row, w in group.items() if w} for key, group in rows.items()}
    values = {key: value for key, value in values.items() if value is not ABSENT}
    for _ in range(2):
        assert bag.probe(rows) == {key: group for key, group in rows.items() if group}
        assert cells.probe(values) == values
        asked = [(key, row) for key, group in rows.items() for row in group]
        assert bag.weights(asked) == [rows[key][row] for key, row in asked]
        assert sorted(map(repr, ((row, w) for _, row, w in bag.scan()))) == sorted(
            repr((row, w)) for group in rows.values() for row, w in group.items()
        ) or any(type(number) in (bool, float) for some, _ in given_changes for number in some)
        assert {k: exact(v) for k, v, _ in cells.scan()} == {k: exact(v) for k, v in values.items()}
        kinds = {segment.form for segment in bag.segments or bag.staged}
        for part in bag.chunks():
            assert part.form.row == common(form.row for form in kinds)
            assert part.hash.dtype == np.uint64
            assert part.second.dtype == np.uint32
            assert [c.type for c in part.rows] == part.form.row.types()
            assert [c.type for c in part.keys] == part.form.key.types()
        bag.hold()
        cells.hold()


def test_a_key_that_is_a_field_is_not_written_in_any_width() -> None:
    spine = Spine("bag", row_type=Row)
    for most, kind in ((5, "int8"), (300, "int16"), (2**20, "int32"), (2**40, "int")):
        rows = [Row(key, 0, "") for key in (1, most)]
        spine.append({0: [], 2**50: [], **{row.key: [(row, 1)] for row in rows}})
        form = spine.staged[-1].form
        assert (form.within, form.key.encodings, form.row.encodings[0]) == (((0,),), (kind,), kind)
        by_columns = Spine("bag", row_type=Row)
        keys = ColumnShape("one", ("int",)), [pa.array([1, most])]
        made = [pa.array([1, most]), pa.array([0, 0]), pa.array(["", ""])]
        by_columns.append_columns(keys, (ColumnShape("record", ("int", "int", "text")), made))
        assert by_columns.staged[0].form == form
        assert next(spine.chunks()).form == form
    assert spine.probe([1, 300]) == {1: {Row(1, 0, ""): 4}, 300: {Row(300, 0, ""): 1}}


# ---- texts that are too much for 32 bits ----


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(columns, "LIMIT", 2_000)
    return 2_000


@pytest.mark.parametrize(("kind", "make"), [("text", str), ("bytes", lambda i: b"%d" % i)])
def test_texts_have_64_bits_where_32_are_not_enough(limit: int, kind: str, make: Any) -> None:
    few, many = [make(i) for i in range(50)], [make(i) * 9 for i in range(400)]
    assert encode([*few, None])[0].encodings == (kind,)
    for values in (many, [*many, None]):
        shape, (column,) = encode(values)
        assert (shape.encodings, column.type) == ((f"{kind}64",), shape.types()[0])
        assert decode(shape, [column]) == values
        assert column_hashes(shape, [column]).tolist() == hashes(values).tolist()
        assert column_hashes(shape, [column[7:]]).tolist() == hashes(values[7:]).tolist()
        for array in (column, pa.chunked_array([column[:9], column[9:]])):
            for arrow in (array, array.cast(ColumnShape("one", (kind,)).types()[0])):
                assert encoded_column(arrow)[0] == f"{kind}64"
                assert encoded_column(arrow)[1].equals(column)
                assert encoded_column(arrow[:20])[0] == kind
                assert encoded_column(arrow[:20])[1].to_pylist() == values[:20]
    assert narrowed(shape, [column])[0] == shape
    assert narrowed(shape, [column[:9]])[0].encodings == (kind,)


def test_a_key_of_many_rows_is_repeated_in_64_bits_where_needed(limit: int) -> None:
    shape, found = repeated(*encode(["a" * 100, "b"]), np.array([3, 1]))
    assert (shape.encodings, decode(shape, found)) == (("text",), ["a" * 100] * 3 + ["b"])
    shape, found = repeated(*encode(["a" * 100, "b"]), np.array([30, 1]))
    assert (shape.encodings, decode(shape, found)) == (("text64",), ["a" * 100] * 30 + ["b"])
    spine = Spine("bag")
    spine.append({"a" * 100: [(i, 1) for i in range(30)], "b": [(0, 1)]})
    assert spine.staged[0].form.key.encodings == ("text64",)
    assert spine.probe(["a" * 100]) == {"a" * 100: dict.fromkeys(range(30), 1)}


@pytest.mark.parametrize("disk", [True, False])
@pytest.mark.parametrize("chunk", [4, 64])
@pytest.mark.parametrize("size", [1, 30, 150])
def test_what_is_merged_never_has_more_texts_than_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, size: int, chunk: int, disk: bool
) -> None:
    """Parts are joined here; the limit holds for each, or it has 64 bits."""
    seen = []

    def watched(parts: list[Any]) -> Any:
        found = joined(parts)
        seen.append("text64" in found.form.row.encodings)
        assert seen[-1] or found.texts <= limit
        return found

    monkeypatch.setattr("ebbflow.state.spine.merge.joined", watched)
    with Store(tmp_path, chunk=chunk) as store:
        spine = store.spine("rows", layout="bag") if disk else Spine("bag", chunk=chunk)
        expected = {}
        for epoch in range(9):
            rows = {i: (i, chr(97 + i % 26) * (size * (i % 7 == 0) + 1))
                    for i in range(epoch * 5, epoch * 5 + 9)}  # fmt: skip
            spine.append({i: [(row, 1)] for i, row in rows.items()})
            for row in rows.values():
                expected[row] = expected.get(row, 0) + 1
            if disk:
                store.commit(epoch)
            else:
                spine.hold()
            assert {row: w for _, row, w in spine.scan()} == expected
            assert spine.probe(range(99)) == {
                row[0]: {row: weight} for row, weight in expected.items()
            }
    assert seen
    assert not any(seen) or size > 1 or disk
    assert any(seen) or size < 150 or chunk < 64


def test_a_chunk_is_complete_before_its_texts_are_too_much(limit: int) -> None:
    spine = Spine("bag", chunk=4)
    for begin in (0, 100):
        shape, found = encode([str(i) * 13 for i in range(begin, begin + 100)])
        keys = encode([*range(begin, begin + 100)])
        spine.append_columns(keys, (shape, found))
        parts = [
            replace(p, form=replace(p.form, row=TEXT), rows=[p.rows[0].cast(pa.utf8())])
            for p in spine.staged[-1].parts()
        ]
        spine.staged[-1] = Segment.held(parts)
    spine.chunk = 1_000
    parts = [*spine.chunks()]
    assert {part.form.row for part in parts} == {TEXT}
    assert max(part.texts for part in parts) <= limit
    assert sum(map(len, parts)) == 200
    assert len(parts) < 20


TEXT = ColumnShape("one", ("text",))


# ---- different rows with one row hash ----


@pytest.mark.parametrize("different", [1, 2, 5])
@pytest.mark.parametrize("as_columns", [False, True])
def test_rows_with_one_row_hash_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, different: int, as_columns: bool
) -> None:
    words = module.row_words
    monkeypatch.setattr(module, "row_words", lambda found: words(found % np.uint64(different)))
    spine = Spine("bag", chunk=4)
    expected: dict[tuple[int, str], int] = {}
    dice = np.random.default_rng(different)
    for _ in range(12):
        rows = [(int(a), "xyz"[b]) for a, b in dice.integers(0, 3, (8, 2))]
        weights = dice.integers(-2, 3, 8)
        keys = [row[0] for row in rows]
        for row, weight in zip(rows, weights.tolist(), strict=True):
            expected[row] = expected.get(row, 0) + weight
        if as_columns:
            spine.append_columns(encode(keys), encode(rows), weights)
        else:
            spine.append({k: [(row, int(w)) for row, w in zip(rows, weights, strict=True)
                              if row[0] == k] for k in keys})  # fmt: skip
        asked = [(row[0], row) for row in expected]
        assert spine.weights(asked) == list(expected.values())
        assert spine.weights([(1, (1, "never"))]) == [0]
        there = {row: w for row, w in expected.items() if w}
        assert {row: w for _, row, w in spine.scan()} == there
        assert len([*spine.scan()]) == len(there)
        assert spine.probe([0, 1, 2]) == {
            k: group for k in (0, 1, 2) if (group := {r: w for r, w in there.items() if r[0] == k})
        }
        spine.hold()
    for segment in spine.segments:
        pairs = [{*zip(p.hash.tolist(), p.second.tolist(), strict=True)} for p in segment.parts()]
        assert sum(map(len, pairs)) == len(set().union(*pairs))


def test_one_key_with_many_rows_of_few_row_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    words = module.row_words
    monkeypatch.setattr(module, "row_words", lambda found: words(found % np.uint64(200)))
    spine = Spine("bag", chunk=64)
    rows = [(i, str(i)) for i in range(600)]
    spine.append({None: [(row, 1) for row in rows]})
    spine.append({None: [(row, -1) for row in rows[::2]]})
    spine.append({None: [(row, 2) for row in rows[::3]]})
    expected = {row: w for i, row in enumerate(rows) if (w := i % 2 + 2 * (i % 3 == 0))}
    assert {row: w for _, row, w in spine.scan()} == spine.probe([None])[None] == expected


def test_the_half_of_a_row_hash_that_is_stored_is_the_low_one() -> None:
    """This is part of the format on disk."""
    rows = [(1, "a"), (2, None)]
    spine = Spine("bag")
    spine.append({7: [(row, 1) for row in rows]})
    (part,) = spine.chunks()
    assert part.second.tolist() == sorted(int(word) & 0xFFFFFFFF for word in hashes(rows))


# ---- how much room it takes ----


def test_a_row_of_small_numbers_takes_little_room(tmp_path: Path) -> None:
    count = 20_000
    days = [date(1992, 1, 1 + i % 28) for i in range(28)]
    with Store(tmp_path) as store:
        spine = store.spine("rows", layout="bag")
        spine.append(
            {
                i: [((i, i * 7, i % 100, i % 7, i % 50, i * 500, i % 11, i % 9 or None,
                      days[i % 28], "TRUCK"), 1)]
                for i in range(count)
            }
        )  # fmt: skip
        store.commit(0)
        assert store.info()["bytes"] / count < 39
