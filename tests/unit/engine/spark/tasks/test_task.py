"""What runs in tasks, called by hand: rows that come in, and what is sent on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.runtime.gc_paused import gc_paused
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.given import table_of
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import REPORT, TaskReport
from ebbflow.engine.spark.tasks.single import SingleTask, struct_of
from ebbflow.engine.spark.tasks.task import (
    EnterTables,
    EnterTask,
    EpochJob,
    in_slices,
    lines_of,
)
from ebbflow.engine.spark.tasks.transport import PackedProgram, pack_program, partials, unpacked
from ebbflow.errors import ChangeError
from ebbflow.flow.plan import Plan
from ebbflow.state.spine import Folder, Store
from ebbflow.zset import trusted


class Row(NamedTuple):
    k: int
    v: int


class Inner(NamedTuple):
    at: int


class Nested(NamedTuple):
    k: int
    inner: Inner


A, B = ef.Input("a", Row), ef.Input("b", Row)
JOINED = A.join(B, on="k", select=lambda a, b: Row(a.v, b.v))


def made(rows: Any, tasks: int = 2, path: str = ".") -> tuple[Replica, EpochJob]:
    replica = Replica(Plan({"output": rows.node}))
    program: PackedProgram = pack_program(replica, True)
    return replica, EpochJob(program, Folder(path), 0, tasks)


def notes(lines: Any) -> list[Any]:
    return [TaskReport.read(blob) for _, port, blob in lines if port == REPORT]


# ---- what is sent ----


def test_a_sum_is_sent_one_line_for_each_key_and_not_the_rows() -> None:
    replica, job = made(A.group_by("k").agg(s=ef.sum("v"), n=ef.count()))
    rows = {Row(i % 3, i): 1 for i in range(600)}
    lines = list(lines_of(EnterTask(job, 0)(iter(table_of(A.node, rows).to_batches()))))
    (port,) = [i for i, each in enumerate(replica.waves().ports) if each.adds is not None]
    found = partials(blob for _, at, blob in lines if at == port)
    wanted = {k: (200, 200, sum(range(k, 600, 3))) for k in range(3)}
    assert {key: cell[:3] for key, cell in found} == wanted
    assert len(found) == 3
    (note,) = notes(lines)
    assert note.rows_in == 600
    assert sum(rows_in for _, rows_in, _, _ in note.stats) == 600


@pytest.mark.parametrize("reducer", [ef.max("v"), ef.median("v"), ef.reducer.Reducer(0, max)])
def test_what_does_not_add_up_is_sent_as_rows(reducer: Any) -> None:
    replica, _ = made(A.group_by("k").agg(s=reducer))
    assert all(port.adds is None for port in replica.waves().ports)


# ---- what comes in ----


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tables_in_slices_come_in_as_tables_do(count: int) -> None:
    replica, job = made(JOINED, tasks=1)
    given = {"a": {Row(i, i): 1 for i in range(7)}, "b": {Row(i, -i): -1 for i in range(3)}}
    tables = [table_of(source.node, given[source.node.name]) for source in (A, B)]
    tasks = [EnterTask(job, replica.machine.inputs[name]) for name in given]
    sliced = in_slices(tables, count)
    assert sliced.column("table").to_pylist() == [0, 1] * count
    lines = list(lines_of(EnterTables(tuple(tasks))(iter(sliced.to_batches()))))
    arrived: dict[int, list[bytes]] = {}
    for _, port, blob in lines:
        if port != REPORT:
            arrived.setdefault(port, []).append(blob)
    ports = replica.waves().ports
    names = {slot: name for name, slot in replica.machine.inputs.items()}
    assert len(arrived) == 2
    for port, blobs in arrived.items():
        assert unpacked(blobs) == given[names[ports[port].slot]]
    assert sum(note.rows_in for note in notes(lines)) == 10


def side_by_side(**rows: Any) -> Any:
    """Rows of several inputs in one batch, each in a struct in the column of its input."""
    width = sum(map(len, rows.values()))
    columns, begin = {}, 0
    for number, values in enumerate(rows.values()):
        kind = type(values[0])
        there = [{**dict(zip(kind._fields, row, strict=True)), "__weight": 1} for row in values]
        column = [None] * begin + there + [None] * (width - begin - len(there))
        columns[struct_of(number)] = pa.array(column, pa.struct(list(arrow_schema(kind))))
        begin += len(values)
    return pa.RecordBatch.from_pydict(columns)


def test_the_rows_of_all_inputs_come_in_one_table(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.commit(0)
        _, job = made(JOINED, path=str(tmp_path))
        task = SingleTask(job, (("a", None), ("b", None)), 100, (), ("a", "b"))
        batch = side_by_side(a=[Row(1, 1), Row(2, 2), Row(1, 1)], b=[Row(1, 5)])
        (note,) = notes(lines_of(task(iter([batch, batch.slice(3)]))))
        assert note.error is None
        assert note.rows_in == 3, "equal rows are added up"
        assert [(name, rows) for name, _, rows in note.changes] == [("output", 1)]


def test_too_many_rows_are_read_to_the_end_and_nothing_is_done() -> None:
    _, job = made(A.group_by("k").agg(s=ef.sum("v")))
    read = []

    def given() -> Iterator[Any]:
        for i in range(5):
            read.append(i)
            yield side_by_side(a=[Row(i, 1), Row(i, 2)])

    (note,) = notes(lines_of(SingleTask(job, (("a", None),), 4, (), ("a",))(given())))
    assert note.too_many
    assert read == [0, 1, 2, 3, 4]


def test_a_row_that_does_not_fit_is_told_with_its_input() -> None:
    nested = ef.Input("nested", Nested)
    _, job = made(nested.group_by("k").agg(n=ef.count()))
    inner = pa.array([None], pa.struct([("at", pa.int64())]))
    fields = pa.StructArray.from_arrays([pa.array([1]), inner, pa.array([1])],
                                        ["k", "inner", "__weight"])  # fmt: skip
    batch = pa.RecordBatch.from_arrays([fields], [struct_of(0)])
    (note,) = notes(
        lines_of(SingleTask(job, (("nested", "apply"),), 9, (), ("nested",))(iter([batch])))
    )
    assert isinstance(note.error, ChangeError)
    assert "input 'nested'" in str(note.error)


# ---- calm ----


def test_the_search_for_cycles_goes_on_after_a_task_however_it_ends() -> None:
    @gc_paused
    def task(given: Iterator[int]) -> Iterator[bool]:
        for each in given:
            yield gc.isenabled() and bool(1 / each)

    assert gc.isenabled()
    assert list(task(iter([1, 2]))) == [False, False]
    assert gc.isenabled()
    begun = task(iter([1, 2]))
    next(begun)
    begun.close()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        list(gc_paused(lambda: iter([1 / 0]))())
    assert gc.isenabled()


def test_partial_sums_of_trusted_rows_are_those_of_a_zset() -> None:
    replica, _ = made(A.group_by("k").agg(n=ef.count()))
    (stage,) = [each for each in replica.machine.stages if each.label == "reduce"]
    assert replica.added(stage.slot, trusted({Row(1, 1): 2, Row(1, 2): -2})) == {1: (0,)}


# ---- NaN ----


class Measured(NamedTuple):
    k: float
    v: int


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_every_nan_is_one_key(mode: str, tmp_path: Path) -> None:
    rows = ef.Input("a", Measured).group_by("k").agg(s=ef.sum("v"), top=ef.max("v"))
    view = View(Plan({"output": rows.node}), mode, path=str(tmp_path))

    def nan(v: int) -> Measured:
        return Measured(float("nan"), v)

    view.step({"a": [nan(1), nan(2), Measured(1.0, 1)]})
    view.step({"a": [nan(5)]})
    view.step({"a": {nan(2): -1, nan(7): 1}})
    assert sorted(map(str, view.value)) == ["Group(k=1.0, s=1, top=1)", "Group(k=nan, s=13, top=7)"]
    assert {weight for _, weight in view.value.items()} == {1}
    view.close()
