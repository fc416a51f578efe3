"""How much a change costs on Spark: tasks, jobs, and rows read from the state.

Rows that come from the state are counted where every one of them must pass: `Spine.probe`, which
gives what is there under keys, and `Spine.weights`, which only looks how often rows are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.flow.plan import Plan
from ebbflow.flow.program import Program
from ebbflow.state.spine.spine import Spine
from ebbflow.zset import ZSet

MANY = 100_000
MODES = ["driver", "single_task", "staged"]
each_mode = pytest.mark.parametrize("mode", MODES)


class Row(NamedTuple):
    k: int
    v: int


class Name(NamedTuple):
    k: int
    name: str


A, B = ef.Input("a", Row), ef.Input("b", Name)


class Reads:
    """What is read from the state: times asked, keys and rows found, weights looked up."""

    probes = keys = rows = weights = 0

    def reset(self) -> None:
        self.probes = self.keys = self.rows = self.weights = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    counted = Reads()
    probe, weights = Spine.probe, Spine.weights

    def counting(self: Spine, keys: Any) -> Any:
        found = probe(self, keys)
        counted.probes += 1
        counted.keys += len(found)
        counted.rows += sum(len(x) if self.layout == "bag" else 1 for x in found.values())
        return found

    def weighing(self: Spine, asked: Any) -> Any:
        counted.weights += len(asked)
        return weights(self, asked)

    monkeypatch.setattr(Spine, "probe", counting)
    monkeypatch.setattr(Spine, "weights", weighing)
    return counted


@pytest.fixture(scope="module")
def crowd() -> list[Row]:
    """Rows that all have one key."""
    return [Row(1, i) for i in range(MANY)]


def view_of(rows: Any, mode: str, path: Path, tasks: int = 3) -> View:
    plan = rows.plan if isinstance(rows, Program) else Plan({"output": rows.node})
    return View(plan, mode, tasks, path=str(path))


# ---- rows that are read ----


@each_mode
def test_a_row_of_a_crowded_key_that_meets_one_row_reads_a_few(
    mode: str, tmp_path: Path, reads: Reads, crowd: list[Row]
) -> None:
    view = view_of(A.join(B, on="k"), "driver", tmp_path)
    view.step({"a": crowd, "b": [Name(1, "one")]})
    view.mode = mode
    for change in ({Row(1, -1): 1}, {Row(1, 5): -1}, {Row(1, -1): -1, Row(1, 5): 1}):
        reads.reset()
        moved = view.step({"a": change})
        assert len(moved) == len(change)
        assert reads.rows <= 2 * len(change)
        assert reads.weights <= 2 * len(change)
    view.step({"b": {Name(1, "one"): -1}})
    assert reads.rows > MANY  # that one meets them all
    view.close()


@each_mode
@pytest.mark.parametrize("how", ["left", "semi", "anti", "full"])
def test_other_joins_read_a_few_rows_too(
    mode: str, how: str, tmp_path: Path, reads: Reads, crowd: list[Row]
) -> None:
    view = view_of(A.join(B, on="k", how=how), "driver", tmp_path)
    view.step({"a": crowd[:20_000], "b": [Name(1, "one")]})
    view.mode = mode
    for change in ({Row(1, -1): 1}, {Row(1, 5): -1}):
        reads.reset()
        view.step({"a": change})
        assert reads.rows <= 6
    view.close()


@each_mode
@pytest.mark.parametrize(
    "reducer",
    [ef.sum("v"), ef.count(), ef.mean("v"), ef.max("v")],
    ids=["sum", "count", "mean", "max"],
)
def test_a_group_reads_its_accumulator_and_no_rows(
    reducer: Any, mode: str, tmp_path: Path, reads: Reads, crowd: list[Row]
) -> None:
    view = view_of(A.group_by("k").agg(x=reducer), "driver", tmp_path)
    view.step({"a": crowd[:20_000]})
    view.mode = mode
    for change in ({Row(1, -1): 1}, {Row(1, 5): -1}):
        reads.reset()
        view.step({"a": change})
        assert 1 <= reads.rows <= 4  # the accumulator, the row at the input, the row of the output
    view.close()


@each_mode
def test_what_is_read_depends_on_the_change_and_not_on_the_state(
    mode: str, tmp_path: Path, reads: Reads
) -> None:
    program = ef.program(
        met=A.join(B, on="k"),
        sums=A.group_by("k").agg(s=ef.sum("v")),
        seen=A.map(lambda row: row.v % 7, type=int).distinct(),
    )
    found = []
    for size in (100, 10_000):
        view = view_of(program, "driver", tmp_path / str(size))
        rows = [Row(i // 10, i) for i in range(size)]
        view.step({"a": rows, "b": [Name(i, "x") for i in range(size // 10)]})
        view.mode = mode
        reads.reset()
        view.step({"a": {rows[3]: -1, Row(2, -5): 1}})
        found.append((reads.probes, reads.rows, reads.weights))
        view.close()
    assert found[0] == found[1]
    assert sum(found[0]) < 40


# ---- tasks ----


def calls(view: View) -> int:
    found, view.cluster.calls = view.cluster.calls, 0
    return found


def test_rows_of_one_key_all_go_to_one_task_and_the_others_have_nothing(tmp_path: Path) -> None:
    view = view_of(A.group_by("k").agg(s=ef.sum("v")), "staged", tmp_path, tasks=4)
    assert view.step({"a": [Row(1, i) for i in range(1_000)]}) == ZSet.of([(1, 499_500)])
    parts = [name.name for name in tmp_path.iterdir() if name.name.startswith("part-")]
    assert len(parts) <= 1 + 4  # the sum is written by one task, the rows of the input by all
    view.step({"a": {Row(1, 3): -1}})
    assert view.value == ZSet.of([(1, 499_497)])
    view.close()


def test_more_tasks_than_keys_are_no_matter(tmp_path: Path) -> None:
    view = view_of(A.join(B, on="k").distinct(), "staged", tmp_path, tasks=50)
    view.step({"a": [Row(1, 1)], "b": [Name(1, "x"), Name(2, "y")]})
    assert view.value == ZSet.of([(1, 1, "x")])
    view.close()


def test_a_node_that_many_read_runs_once(tmp_path: Path) -> None:
    shared = A.group_by("k").agg(s=ef.sum("v"))
    program = ef.program(
        one=shared, two=shared.filter(lambda g: g.s > 0), three=shared.map(lambda g: g.s, type=int)
    )
    for mode in MODES:
        view = view_of(program, mode, tmp_path / mode)
        done = []
        real = view.cluster.stage_reports if mode != "driver" else view.cluster.here

        def noting(*args: Any, real: Any = real, done: Any = done) -> Any:
            done.append(real(*args))
            return done[-1]

        setattr(view.cluster, real.__name__, noting)
        view.step({"a": [Row(i, i) for i in range(20)]})
        stages = view.replica.machine.stages
        into: Counter[str] = Counter()
        for number, rows_in, _, _ in done[0].stats:
            into[stages[number].label] += rows_in
        assert into["reduce"] == 20
        view.close()


def test_waves_follow_the_keys_and_not_the_number_of_views(tmp_path: Path) -> None:
    groups = {f"out{i}": A.group_by("k").agg(s=ef.sum(lambda r, i=i: r.v * i)) for i in range(12)}
    view = view_of(ef.program(**groups), "staged", tmp_path, tasks=2)
    view.step({"a": [Row(i, i) for i in range(20)]})
    assert calls(view) == 2  # one wave of two tasks
    view.close()


# ---- on a real session ----


def jobs_of(spark: Any, work: Any) -> int:
    """How many jobs of Spark's some work takes."""
    context = spark.sparkContext
    context.setJobGroup("counted", "counted")
    before = len(context.statusTracker().getJobIdsForGroup("counted"))
    try:
        work()
        return len(context.statusTracker().getJobIdsForGroup("counted")) - before
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.classic
@pytest.mark.parametrize("mode", ["single_task", "staged"])
@pytest.mark.parametrize("views", [1, 8])
def test_an_epoch_is_one_job_of_spark_however_many_views_there_are(
    spark: Any, tmp_path: Path, mode: str, views: int
) -> None:
    outputs: dict[str, Any] = {}
    for i in range(views):
        met = A.join(B, on="k").filter(lambda row, i=i: row.v % 8 != i)
        outputs[f"out{i}"] = met.group_by("name").agg(s=ef.sum("v"))
    engine = ef.spark(spark, path=tmp_path, mode=mode, buckets=2)
    with ef.program(**outputs).run(engine) as view:
        rows = {"a": [Row(i % 3, i) for i in range(50)], "b": [Name(1, "x"), Name(2, "y")]}
        assert jobs_of(spark, lambda: view.step(rows)) == 1
        frame = spark.createDataFrame([(1, 100, 1), (1, 1, -1)], "k long, v long, weight int")
        assert jobs_of(spark, lambda: view.step(a=frame)) == 1
        last = view.zset() if views == 1 else view.zset()[f"out{views - 1}"]
        assert len(last) == 2
    assert zset_of(spark.createDataFrame([(1, 1)], "value long, __weight long"), int) == ZSet.of(
        [1]
    )
