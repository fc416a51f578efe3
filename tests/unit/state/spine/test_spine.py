"""Spines: what merging does, when it is done, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ebbflow.errors import AlgebraError
from ebbflow.state.spine import ABSENT, Folder, Spine, Store
from ebbflow.state.spine.merge import _by_row
from ebbflow.state.spine.segment import Segment
from ebbflow.state.spine.spine import FANOUT, due


class Order(NamedTuple):
    id: int
    city: str


def everything(spine: Spine) -> list[Any]:
    return sorted(spine.scan())


def folded(spine: Spine, *, last: bool) -> Spine:
    """A spine of one segment: all of this one merged."""
    parts = list(spine.merged(spine.staged, last=last))
    return Spine(spine.layout, segments=[Segment.held(parts)] if parts else [])


def test_weights_add_up_over_segments_and_zero_is_absent() -> None:
    spine = Spine("bag")
    spine.append({"a": [("x", 2), ("y", 1)], "b": [("z", -1)]})
    spine.append({"a": [("x", -2)], "b": [("z", -1)], "c": [("w", 1), ("w", -1)]})
    assert spine.probe("abc") == {"a": {"y": 1}, "b": {"z": -2}}
    merged = folded(spine, last=False)
    assert everything(merged) == [("a", "y", 1), ("b", "z", -2)]
    assert len(merged) == 2


def test_the_newest_value_counts() -> None:
    spine = Spine("value")
    spine.append({"a": 1, "b": 2, "c": 3})
    spine.append({"a": 5, "b": ABSENT, "d": ABSENT})
    spine.append({"b": 7, "c": None})
    assert spine.probe("abcd") == {"a": 5, "b": 7, "c": None}
    assert everything(spine)[:2] == [("a", 5, 1), ("b", 7, 1)]


def test_what_says_taken_away_stays_until_nothing_older_is_left() -> None:
    spine = Spine("value")
    spine.append({"a": 1})
    spine.append({"a": ABSENT, "b": ABSENT})
    assert len(folded(spine, last=False)) == 2
    assert len(folded(spine, last=True)) == 0
    only = Spine("value")
    only.append({"a": ABSENT})
    assert only.probe("a") == {}
    assert everything(only) == []


def test_a_key_is_found_under_any_equal_key_and_given_back_as_asked() -> None:
    spine = Spine("value")
    spine.append({1: "one", ("a", 2): "pair"})
    (found,) = spine.probe([True])
    assert found is True
    assert spine.probe([("a", 2.0)]) == {("a", 2.0): "pair"}
    spine.append({1.0: "uno"})
    assert spine.probe([1]) == {1: "uno"}
    assert len(folded(spine, last=True)) == 2


def test_rows_come_back_as_what_they_were() -> None:
    spine = Spine("bag", row_type=Order)
    spine.append({"Rome": [(Order(1, "Rome"), 1)]})
    spine.append({"Oslo": [((2, "Oslo"), 1)]})
    ((rome, _),) = spine.probe(["Rome"])["Rome"].items()
    ((oslo, _),) = spine.probe(["Oslo"])["Oslo"].items()
    assert (type(rome), type(oslo)) == (Order, tuple)
    kinds = {key: type(row) for key, row, _ in spine.scan()}
    assert kinds == {"Rome": Order, "Oslo": tuple}


def test_nothing_appended_is_nothing_staged() -> None:
    spine = Spine("bag")
    spine.append({})
    spine.append({"a": []})
    spine.append({"a": [("x", 1), ("x", -1)]})
    assert spine.staged == []
    assert spine.probe("a") == spine.probe([]) == {}
    assert everything(spine) == []


def test_rollback_forgets_what_is_staged() -> None:
    spine = Spine("bag")
    spine.append({"a": [("x", 1)]})
    spine.hold()
    spine.append({"a": [("x", -1)]})
    assert spine.probe("a") == {}
    spine.rollback()
    assert spine.probe("a") == {"a": {"x": 1}}


def test_wrong_use_is_said() -> None:
    with pytest.raises(AlgebraError, match="bag or holds values"):
        Spine("tree")
    with pytest.raises(AlgebraError, match="64 bits"):
        Spine("bag").append({"a": [("x", 2**64)]})


# ---- when to merge ----


def test_there_are_few_segments_and_little_is_written_again() -> None:
    sizes: list[int] = []
    written = most = 0
    for _ in range(4_096):
        sizes.append(256)
        while (begin := due(sizes)) is not None:
            total = sum(sizes[begin:])
            written += total
            sizes[begin:] = [total]
        most = max(most, len(sizes))
    assert sum(sizes) == 4_096 * 256
    assert most <= FANOUT * 7
    assert written <= 4_096 * 256 * 9


def test_state_that_was_taken_back_is_merged_away() -> None:
    assert due([100_000, 60_000, 39_999]) is None
    assert due([100_000, 60_000, 40_000]) == 0
    assert due([100_000, 60_000, 40_000], first=False) is None


def test_a_step_reads_a_piece_of_each_segment() -> None:
    spine = Spine("bag", chunk=64)
    for i in range(4):
        spine.append({key: [(i, 1)] for key in range(1_000)})
    steps = list(spine.merge(spine.staged, last=True))
    assert sum(read for read, _ in steps) == 4_000
    assert max(read for read, _ in steps) <= 4 * 2 * 16
    assert max(len(part) for _, part in steps if part is not None) <= 4 * 64


@pytest.mark.parametrize("different", [2, 50, 2**32 - 1])
def test_entries_of_one_key_are_sorted_by_row_hash(different: int) -> None:
    dice = np.random.default_rng(different % 97)
    group = np.sort(dice.integers(0, 40, 500))
    rows = dice.integers(0, different, 500, np.uint32)
    assert _by_row(group, rows).tolist() == np.lexsort((rows, group)).tolist()
    one = np.zeros(500, np.int64)
    assert _by_row(one, rows).tolist() == np.argsort(rows, kind="stable").tolist()


# ---- a spine over many epochs ----


def test_large_merges_are_spread_over_epochs_and_files_go(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=256) as store:
        spine = store.spine("rows", layout="bag")
        at_once = []
        for epoch in range(120):
            before = store._jobs.written
            spine.append({key: [((key, epoch % 7), 1)] for key in range(epoch % 50, 1_000, 50)})
            spine.append({key: [((key, epoch % 5), -1)] for key in range(epoch % 30, 1_000, 30)})
            store.commit(epoch)
            at_once.append(store._jobs.written - before)
            assert len(spine.segments) <= 30
        assert sum(map(bool, at_once)) >= 3
        assert len(Folder(tmp_path).names()) <= 32
        total: dict[Any, int] = {}
        for epoch in range(120):
            for key in range(epoch % 50, 1_000, 50):
                total[key, epoch % 7] = total.get((key, epoch % 7), 0) + 1
            for key in range(epoch % 30, 1_000, 30):
                total[key, epoch % 5] = total.get((key, epoch % 5), 0) - 1
        assert {row: w for _, row, w in spine.scan()} == {r: w for r, w in total.items() if w}


def test_state_shrinks_when_rows_are_taken_back(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=128) as store:
        spine = store.spine("rows", layout="bag")
        cells = store.spine("cells", layout="value")
        epoch = 0
        for sign in (1, -1):
            for start in range(0, 4_000, 200):
                keys = range(start, start + 200)
                spine.append({key: [((key, "row" * 5), sign)] for key in keys})
                cells.append({key: key if sign > 0 else ABSENT for key in keys})
                store.commit(epoch)
                epoch += 1
            if sign > 0:
                full = store.info()["bytes"]
        while store.work():
            pass
        assert store.info()["bytes"] < full / 2
        store.compact()
        assert len(spine) == len(cells) == 0
        assert store.info()["bytes"] < 1_000
        assert len(Folder(tmp_path).names()) == 2


def test_compacting_gives_one_segment_and_the_same_answers(tmp_path: Path) -> None:
    with Store(tmp_path, chunk=64) as store:
        spine = store.spine("cells", layout="value")
        for epoch in range(9):
            spine.append({key: (epoch, str(key)) for key in range(epoch, 500, epoch + 1)})
            store.commit(epoch)
        before = everything(spine)
        store.compact()
        assert (len(spine.segments), everything(spine), store.epoch) == (1, before, 8)
    with Store(tmp_path) as store:
        assert everything(store.spine("cells", layout="value")) == before


def test_mapped_files_are_let_go_of_and_read_again(tmp_path: Path) -> None:
    calls: list[int] = []

    class Counting(Folder):
        def forget(self, view: memoryview) -> None:
            calls.append(len(view))
            super().forget(view)

    with Store(Counting(tmp_path), memory=0) as store:
        spine = store.spine("cells", layout="value")
        for epoch in range(3):
            spine.append({key: (key, epoch) for key in range(epoch, 20_000)})
            store.commit(epoch)
        assert sum(calls) > 500_000
        store.let_go()
        assert spine.probe([0, 1, 19_999]) == {0: (0, 0), 1: (1, 1), 19_999: (19_999, 2)}


def test_space_around_old_segments_is_given_back(tmp_path: Path) -> None:
    """A spine that is hardly ever written must not keep the large file it once shared."""
    with Store(tmp_path) as store:
        quiet, busy = store.spine("quiet", layout="value"), store.spine("busy", layout="value")
        quiet.append({"a": 1})
        busy.append(dict.fromkeys(range(1000), "x" * 5000))
        store.commit(0)
        first = store.manifest.name
        busy.append(dict.fromkeys(range(1_000), ABSENT))
        store.commit(1)
        busy.append({"b": 2})
        store.commit(2)
        assert not (tmp_path / first).exists()
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 100_000
        assert quiet.probe("a") == {"a": 1}
    with Store(tmp_path, verify=True) as store:
        assert store.spine("quiet", layout="value").probe("a") == {"a": 1}


def test_rows_stay_columns_when_they_are_merged_with_what_was_only_taken_away() -> None:
    class Order(NamedTuple):  # in here it cannot be pickled
        id: int
        city: str

    spine = Spine("value", None, Order)
    spine.append({1: Order(1, "Rome"), 2: Order(2, "Oslo")})
    spine.append({1: ABSENT})
    (part,) = spine.merged(spine.staged, last=False)
    assert part.form.row.how == "record"
    spine.segments = [*spine.staged]
    spine.staged = []
    assert spine.probe([1, 2]) == {2: Order(2, "Oslo")}
