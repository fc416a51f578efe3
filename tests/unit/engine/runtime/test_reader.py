"""Readers: types from the state, rows that equal the writer's, and clear words where it ends."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.change import List, Text
from ebbflow.engine.runtime.reader.stored import needs_program
from ebbflow.engine.runtime.table.column_types import columns_of
from ebbflow.engine.runtime.table.stored import row_type_of, stored_type
from ebbflow.errors import CompositionError, StateError
from ebbflow.frozen import Frozen
from ebbflow.reducer import Map
from ebbflow.zset import ZSet


class Inner(NamedTuple):
    a: int
    b: str | None


class Wide(NamedTuple):
    id: int
    at: Annotated[datetime, UTC] | None
    day: date
    cost: Annotated[Decimal, (10, 2)]
    share: float | None
    tags: tuple[str, ...]
    some: frozenset[int]
    per: dict[str, int]
    inner: Inner | None
    pair: tuple[int, str]


WIDE = Wide(
    1, datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 1), Decimal("1.50"), None, ("a",),
    frozenset({1}), Frozen(a=1), Inner(1, None), (2, "b"),
)  # fmt: skip


@pytest.mark.parametrize(
    "row_type",
    [Wide, int, str | None, Any, tuple[int, ...], tuple[int, str] | None, Text, List[int],
     Map[str, int], bytes, bool, Decimal, dict[str, tuple[int, ...]]],
    ids=str,
)  # fmt: skip
def test_a_type_that_was_noted_comes_back_with_the_same_columns(row_type: Any) -> None:
    found = row_type_of(stored_type(row_type))
    assert [name for name, _ in columns_of(found)] == [name for name, _ in columns_of(row_type)]
    assert stored_type(found) == stored_type(row_type)


def test_rows_come_with_the_names_and_fields_of_their_class(tmp_path: Path) -> None:
    with ef.Input("wide", Wide).run(path=tmp_path) as view:
        view.step(wide={WIDE: 2})
        reader = ef.open(tmp_path, unpickle=True)
        assert reader.value == view.value
        (row,) = reader.value
        assert (type(row).__name__, row._fields, row.inner.a) == ("Wide", Wide._fields, 1)
        assert reader.value.to_arrow().schema == view.value.to_arrow().schema
        assert reader.value.to_arrow().num_rows == 2
        assert reader.outputs["output"].__name__ == "Wide"
        assert repr(reader) == "<Reader of output: epoch 1>"


def test_with_the_program_a_change_is_one_that_a_view_takes(tmp_path: Path) -> None:
    wide = ef.Input("wide", Wide)
    with wide.run(path=tmp_path) as view, wide.run() as copy:
        following = ef.open(tmp_path, wide, unpickle=True).changes(wait=0)
        for change in ({WIDE: 2}, {WIDE: -1}, {WIDE._replace(id=2): 1}):
            view.step(wide=change)
            for _, given in following:
                copy.step(wide=given)
            assert copy.value == view.value


class Point(complex):
    """A class of the program's own, which has no columns."""


def test_a_pickled_value_is_not_loaded_unless_asked_for(tmp_path: Path) -> None:
    with ef.Input("points", Point).run(path=tmp_path) as view:
        view.step(points=[Point(1)])
        with pytest.raises(StateError, match=r"pickled .*Point(?s:.*)unpickle=True"):
            _ = ef.open(tmp_path).value
        assert ef.open(tmp_path, unpickle=True).value == ZSet.of([Point(1)])


TOTALS = ef.Input("n", int).agg(total=ef.sum())


def test_an_output_that_is_computed_needs_its_program_or_to_be_kept(tmp_path: Path) -> None:
    mine = ef.Reducer(0, lambda total, n: total + n, lambda total, n: total - n)
    own = ef.Input("n", int).agg(total=mine)
    with own.run(path=tmp_path / "own") as view:
        view.step(n=[1, 2])
        reader = ef.open(tmp_path / "own")
        assert reader.epoch == 1
        with pytest.raises(
            StateError, match=r"keeps no rows(?s:.*)a function of the(?s:.*)open\(path, program\)"
        ):
            _ = reader.value
        assert ef.open(tmp_path / "own", own).value == view.value
    with TOTALS.run(path=tmp_path) as view:
        view.step(n=[1, 2])
        assert ef.open(tmp_path).value == ef.open(tmp_path, TOTALS).value == view.value
        with pytest.raises(StateError, match="another program"):
            ef.open(tmp_path, ef.program(other=TOTALS))
    with TOTALS.run(path=tmp_path, readable=True) as view:
        assert view.rebuilt == ("output output",)
        following = ef.open(tmp_path).changes(since=view.epoch, wait=0)
        view.step(n={2: -1})
        assert view.verify()
        assert dict(following) == {view.epoch: ZSet({(3,): -1, (1,): 1})}
        assert ef.open(tmp_path, TOTALS).value == ef.open(tmp_path).value == view.value


def test_epoch_of_an_earlier_version_says_to_step_the_view_once() -> None:
    said = needs_program("totals", {"part": None, "type": {}})
    assert "an earlier version of ebbflow wrote this epoch" in str(said)
    assert said.remedy is not None
    assert "step() once" in said.remedy


def test_an_output_that_is_computed_from_inputs_is_so_by_the_reader(tmp_path: Path) -> None:
    program = ef.Input("n", int).filter(lambda n: n > 1)
    with program.run(path=tmp_path) as view:
        view.step(n=[1, 2])
        other = ef.program(output=ef.Input("n", int).filter(lambda n: n > 0))
        assert ef.open(tmp_path, program).value == view.value
        assert ef.open(tmp_path, other).value == view.value, "its rows are those that are kept"


def test_where_there_is_nothing_to_read_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no state of a view(?s:.*)run\(path=\.\.\.\)"):
        ef.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(CompositionError, match="that is not a program"):
        ef.open(tmp_path, print)
    with pytest.raises(CompositionError, match="path="):
        ef.open("s3a://bucket/state")
    with TOTALS.run(path=tmp_path, keep_epochs=2, readable=True) as view:
        for n in range(4):
            view.step(n=[n])
    reader = ef.open(tmp_path)
    with pytest.raises(StateError, match=r"epoch 1 is not there(?s:.*)\[3, 4\]"):
        reader.at(1)
    with pytest.raises(StateError, match="the newest epoch is 4"):
        reader.changes(since=9)
    with pytest.raises(StateError, match="since epoch 1 is not kept any more"):
        next(reader.changes(since=1))
    for each in tmp_path.glob("epoch-*"):
        each.write_bytes(each.read_bytes()[:-1])
    with pytest.raises(StateError, match="damaged"):
        _ = reader.value


def test_another_state_in_the_same_place_is_noticed(tmp_path: Path) -> None:
    with TOTALS.run(path=tmp_path / "a", readable=True) as view:
        view.step(n=[1])
        view.step(n=[1])
    following = ef.open(tmp_path / "a").changes(since=2, wait=0)
    (tmp_path / "a").rename(tmp_path / "b")
    with TOTALS.run(path=tmp_path / "a", readable=True) as view:
        view.step(n=[1])
        with pytest.raises(StateError, match="it is another one"):
            next(following)


def test_a_program_that_changes_is_read_as_it_is_then(tmp_path: Path) -> None:
    numbers = ef.Input("n", int)
    with numbers.map(lambda n: n + 1).run(path=tmp_path) as view:
        view.step(n=[1])
        reader = ef.open(tmp_path)
        following = reader.changes(wait=0)
        assert list(following) == [(1, ZSet.of([2]))]
    with numbers.map(lambda n: str(n), type=str).run(path=tmp_path) as view:
        assert reader.value == view.value == ZSet.of(["1"])
        assert reader.outputs == {"output": str}
        assert list(following) == [(2, ZSet({"1": 1, 2: -1}))]
