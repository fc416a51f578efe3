"""Rows on their way from task to task, and programs on their way to workers."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("pyspark")

import ebbflow as ef
from ebbflow.engine.spark.tasks import transport as shipping
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.report import TaskReport, error_in, task_failed
from ebbflow.engine.spark.tasks.transport import (
    add,
    limits,
    pack_program,
    packed,
    ranges,
    replica_of,
    routed,
    unpacked,
)
from ebbflow.errors import AbsentRow, CompositionError, EbbflowError
from ebbflow.flow.plan import Plan
from ebbflow.state.spine.hashing import hashes
from ebbflow.state.spine.segment import Ref
from ebbflow.zset import without_zeros


class Row(NamedTuple):
    k: int
    v: Any


def plan_of(rows: Any) -> Plan:
    return Plan({"output": rows.node})


# ---- rows ----

ROWS = [Row(1, "a"), Row(2, None), Row(3, 2**80), Row(4, ("x", 1.5))]


def test_rows_come_back_as_they_were_with_their_class() -> None:
    found = unpacked([packed(ROWS, [1, 2, -3, 4])])
    assert found == dict(zip(ROWS, [1, 2, -3, 4], strict=True))
    assert {type(row) for row in found} == {Row}


@pytest.mark.parametrize(
    "rows", [[1, 2.5, "a", None], [Row(1, 1), (2, 2)], [(1, 2)], [frozenset([1])], []], ids=str
)
def test_rows_of_any_kind_can_be_sent(rows: list[Any]) -> None:
    found = unpacked([packed(rows, [1] * len(rows))])
    assert list(found) == rows
    assert list(map(type, found)) == list(map(type, rows))


def test_what_arrives_in_parts_is_added_up_and_what_cancels_is_gone() -> None:
    blobs = [packed(["a", "b"], [1, 2]), packed(["b", "c"], [-2, 1]), packed(["c"], [3])]
    assert unpacked(blobs) == {"a": 1, "c": 4}


def test_rows_that_are_repeated_in_one_batch_are_added_up() -> None:
    total: dict[Any, int] = {}
    add(total, ["a", "b", "a"], [1, 1, -1])
    assert total == {"a": 0, "b": 1}
    add(total, ["b"], [-1])
    assert without_zeros(total) == {}


# ---- which task ----


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 200, 1 << 20])
def test_the_ranges_of_tasks_are_all_hashes_and_no_hash_twice(tasks: int) -> None:
    some = range(0, tasks, max(1, tasks // 50))
    assert limits(0, tasks)[0] == 0
    assert limits(tasks - 1, tasks)[1] == 1 << 64
    for task in some:
        low, high = limits(task, tasks)
        assert low < high
        assert task + 1 == tasks or limits(task + 1, tasks)[0] == high
        ends = np.array([low, high - 1], np.uint64)
        assert ranges(ends, tasks).tolist() == [task, task]


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_rows_go_to_the_task_that_has_the_hash_of_their_key(tasks: int) -> None:
    delta = {Row(i % 9, i): 1 + i % 3 for i in range(100)}
    arrived: dict[Any, int] = {}
    for task, blob in routed(delta, lambda row: row.k, tasks):
        low, high = limits(task, tasks)
        for row, weight in unpacked([blob]).items():
            assert low <= int(hashes([row.k])[0]) < high
            arrived[row] = weight
    assert arrived == delta


def test_equal_keys_go_to_the_same_task_whatever_their_type() -> None:
    delta: dict[Any, int] = {("a", 1): 1, ("b", 1.0): 1, ("c", True): 1}
    assert len(list(routed(delta, lambda row: row[1], 1000))) == 1


# ---- errors ----


def test_an_error_of_ours_is_heard_through_what_spark_says_of_it() -> None:
    error = AbsentRow("no such row", row=("Rome", 3), remedy="add it first")
    said = task_failed(error, "5ec2e7")
    found = error_in(f"Job aborted due to stage failure: {said}\n  at org.apache.spark.X", "5ec2e7")
    assert type(found) is AbsentRow
    assert str(found) == str(error)


@pytest.mark.parametrize("secret", ["5ec2e8", "ebbflow"])
def test_an_error_is_heard_by_who_knows_its_secret_alone(secret: str) -> None:
    said = task_failed(EbbflowError("no such row"), "5ec2e7")
    assert error_in(f"Job aborted: {said}", secret) is None


def test_what_is_no_error_behind_a_secret_is_not_heard() -> None:
    good = '{"kind": "AbsentRow", "what": "x", "remedy": "", "facts": {}}'
    assert type(error_in(f"s{good}", "s")) is AbsentRow
    for bad in ("", "{", "[1]", good.replace("AbsentRow", "Popen"), good.replace('"x"', "1"),
                good.replace("{}", '{"row": [1]}'), good.replace("{}", "[]"),
                good.replace('"AbsentRow"', "[]"), good.replace('"facts"', '"fact"')):  # fmt: skip
        assert error_in(f"s{bad}", "s") is None


def test_an_error_of_a_user_travels_as_the_class_of_ours_it_is() -> None:
    class Mine(AbsentRow):
        pass

    assert type(error_in(str(task_failed(Mine("no such row"), "5ec2e7")), "5ec2e7")) is AbsentRow


# ---- notes ----

REF = Ref("part-000000000007-1f", 0, 10, 4, 99, 3)
FILE = f"000000000007-{'1f' * 16}-0.parquet"
NOTE = TaskReport(2, [("a", "bag", REF)], [("out", FILE, 3)], [(0, 1, 2, 0.5)], 7, None, "", False)


def test_a_note_is_read_as_it_was_written() -> None:
    assert TaskReport.read(NOTE.line()[2]) == NOTE
    failed = TaskReport.failed(AbsentRow("no such row", row=3), 1)
    found = TaskReport.read(failed.line()[2])
    assert (type(found.error), str(found.error)) == (AbsentRow, str(failed.error))
    assert "AbsentRow: no such row" in found.trace


@pytest.mark.parametrize(
    "change",
    [
        {"wave": "2"}, {"rows_in": None}, {"too_many": 1}, {"trace": 3}, {"more": 1},
        {"segments": [["a", "bag"]]}, {"segments": [["a", "bag", ["../x", 0, 1, 1, 1, 1]]]},
        {"changes": [["out", "../../x.parquet", 3]]}, {"changes": [["out", FILE]]},
        {"stats": [[0, 1, 2]]}, {"error": {"kind": "Popen"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_note_is_refused(change: dict[str, Any]) -> None:
    blob = json.dumps({**json.loads(NOTE.line()[2]), **change}).encode()
    with pytest.raises(ValueError, match="not the note of a task"):
        TaskReport.read(blob)
    with pytest.raises(ValueError):
        TaskReport.read(pickle.dumps(NOTE))


def test_other_errors_are_left_as_they_are() -> None:
    error = ValueError("x")
    assert task_failed(error, "s") is error
    assert error_in("ValueError: x", "s") is None


# ---- programs ----


def test_a_program_becomes_the_same_replica_once_in_every_process() -> None:
    rows = ef.Input("rows", Row)
    replica = Replica(plan_of(rows.group_by("k").agg(n=ef.count())))
    shipped = pack_program(replica, True)
    assert repr(shipped).count("payload") == 0  # it is in the plans that Spark shows
    found = replica_of(pickle.loads(pickle.dumps(shipped)))
    assert found is replica_of(shipped)
    assert found is not replica
    assert found.names == replica.names


def test_old_replicas_are_forgotten() -> None:
    rows = ef.Input("rows", Row)
    for _ in range(shipping._KEPT + 3):
        replica_of(pack_program(Replica(plan_of(rows)), True))
    assert len(shipping._replicas) <= shipping._KEPT


def test_what_cannot_be_sent_is_said_before_anything_runs() -> None:
    lock = threading.Lock()
    rows = ef.Input("rows", Row).map(lambda row: (lock, row.k))
    with pytest.raises(CompositionError, match="cannot be sent") as caught:
        pack_program(Replica(plan_of(rows)), True)
    assert isinstance(caught.value, EbbflowError)
    assert "lock" in str(caught.value)


def test_classes_are_put_where_pickle_looks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Bid:
        price: int

    monkeypatch.delitem(sys.modules, "a_script_of_a_user", raising=False)
    Bid.__module__, Bid.__qualname__ = "a_script_of_a_user", "Bid"
    shipping._install(Bid)
    try:
        assert isinstance(sys.modules["a_script_of_a_user"], ModuleType)
        assert pickle.loads(pickle.dumps(Bid(3))) == Bid(3)
    finally:
        del sys.modules["a_script_of_a_user"]
