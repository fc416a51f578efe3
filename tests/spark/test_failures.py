"""What goes wrong in tasks, as the user sees it: one error in their terms; nothing has happened.

Most is tried on the cluster that is not there; what Spark itself has a part in, on a real one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import traceback
from itertools import count
from pathlib import Path
from random import random
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.tasks import task
from ebbflow.errors import (
    AbsentRow,
    CompositionError,
    EbbflowError,
    FunctionFailed,
    InUse,
    NotDeterministic,
    SchemaMismatch,
    SparkError,
)
from ebbflow.flow.plan import Plan
from ebbflow.state.spine import Store
from ebbflow.zset import ZSet

MODES = ["driver", "single_task", "staged"]
each_mode = pytest.mark.parametrize("mode", MODES)


class Row(NamedTuple):
    k: int
    v: int


A, B = ef.Input("a", Row), ef.Input("b", Row)
FIRST = [Row(1, 2), Row(2, 3), Row(3, 4)]
BAD = Row(1, 0)


def share(row: Row) -> int:
    return 100 // row.v


def pair(left: Row, right: Row) -> tuple[int, int]:
    return left.k, right.k


def plan_of(rows: Any) -> Plan:
    return Plan({"output": rows.node})


def begun(rows: Any, mode: str, path: Path, **options: Any) -> View:
    """A view with some rows in all inputs."""
    view = View(plan_of(rows), mode, 3, path=str(path), **options)
    view.step(dict.fromkeys(view.plan.sources, FIRST))
    return view


def files_in(path: Path) -> set[str]:
    """The files of a state, with those that are still to be cleaned away."""
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()}


# ---- a function of the user's raises ----

FAILING = {
    "map": A.map(share, type=int),
    "map behind state": A.distinct().map(share, type=int),
    "filter": A.filter(lambda row: 100 // row.v > 0),
    "flat_map": A.flat_map(lambda row: [100 // row.v], type=int),
    "merge": A.join(B, on="k", select=lambda left, right: 100 // left.v),
    "reducer": A.group_by("k").agg(n=ef.sum(share)),
    "max": A.group_by("k").reduce(ef.max(share)),
    "top_k": A.top_k(2, order=share, per="k"),
    "session": A.session(share, gap=3, per="k"),
}
KEYS = {
    "group_by": A.group_by(share).agg(n=ef.count()),
    "group_by behind state": A.distinct().group_by(share).agg(n=ef.count()),
    "join": A.join(B, left_on=share, right_on="k", select=pair),
    "join behind state": A.distinct().join(B, left_on=share, right_on="k", select=pair),
    "semi": A.join(B, left_on=share, right_on="k", how="semi"),
    "anti": A.join(B, left_on=share, right_on="k", how="anti"),
    "key of an input": ef.Input("a", Row, key=share).distinct(),
}


def refused(view: View, change: Any) -> EbbflowError:
    """The error for a change; the view is as it was, and goes on."""
    epoch, value = view.epoch, view.value
    with pytest.raises(EbbflowError) as caught:
        view.step({"a": change})
    assert (view.epoch, view.value) == (epoch, value)
    view.step({"a": {Row(1, 2): -1, Row(9, 9): 1}})
    rows = {"a": ZSet.of([*FIRST, Row(9, 9)]) - ZSet.of([Row(1, 2)]), "b": ZSet.of(FIRST)}
    expected = evaluate(view.plan, {name: rows[name] for name in view.plan.sources})
    assert view.value == expected["output"]
    view.close()
    return caught.value


def names_the_row(error: EbbflowError) -> None:
    assert isinstance(error, FunctionFailed)
    assert "ZeroDivisionError" in str(error)
    rows = [str(each) for each in error.facts.values() if str(each).startswith("Row(")]
    assert rows
    assert rows[0].endswith("v=0)")  # of a row that was narrowed, what is left
    assert "test_failures.py" in str(error.facts["created"])
    assert len(str(error).splitlines()) < 8


@each_mode
@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_raises_is_one_error_with_place_and_row(
    name: str, mode: str, tmp_path: Path
) -> None:
    error = refused(begun(FAILING[name], mode, tmp_path), [BAD, Row(5, 5)])
    names_the_row(error)
    assert "ZeroDivisionError" in str(error.__cause__) or mode == "driver"


@each_mode
@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_raises_is_one_error_with_place_and_row(
    name: str, mode: str, tmp_path: Path
) -> None:
    names_the_row(refused(begun(KEYS[name], mode, tmp_path), [BAD, Row(5, 5)]))


@each_mode
def test_a_key_that_is_not_hashable_is_refused(mode: str, tmp_path: Path) -> None:
    by = A.join(B, left_on=lambda row: row.v or [], right_on="k", select=pair)
    error = refused(begun(by, mode, tmp_path), [BAD])
    assert "hashable" in str(error)


# ---- rows that are not there, keys that change ----


@each_mode
@pytest.mark.parametrize("change", [{Row(1, 9): -1}, {Row(1, 2): -2}, {Row(7, 1): -1, BAD: 1}])
@pytest.mark.parametrize(
    "rows",
    [
        A,
        A.distinct(),
        A.join(B, on="k", select=pair),
        A.group_by("k").agg(s=ef.sum("v")),
        A.group_by("k").agg(s=ef.max("v")),
        ef.Input("a", Row, key="k").distinct(),
    ],
    ids=["rows", "distinct", "join", "sum", "max", "keyed"],
)
def test_a_row_that_is_not_there_is_refused(
    rows: Any, change: Any, mode: str, tmp_path: Path
) -> None:
    error = refused(begun(rows, mode, tmp_path), change)
    assert isinstance(error, AbsentRow)
    assert "input 'a'" in str(error)
    assert "Row(k=" in str(error.facts["row"])


@each_mode
@pytest.mark.parametrize(
    "rows",
    [
        A.group_by(lambda row: random()).agg(n=ef.count()),
        A.map(lambda row: random(), type=float).distinct(),
        A.map(lambda row: random(), type=float),
    ],
    ids=["key", "row", "output"],
)
def test_a_function_that_changes_its_mind_is_found_out(
    rows: Any, mode: str, tmp_path: Path
) -> None:
    view = begun(rows, mode, tmp_path)
    value = view.value
    with pytest.raises(NotDeterministic, match="the same answer for the same row"):
        view.step({"a": {Row(1, 2): -1}})
    assert view.value == value
    view.close()


# ---- what cannot be sent, or does not fit ----


def test_a_function_that_holds_a_lock_cannot_be_sent(tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(row: Row) -> int:
        with lock:
            return row.k

    with pytest.raises(CompositionError, match="cannot be sent to Spark's workers") as caught:
        View(plan_of(A.map(locked, type=int)), "single_task", path=str(tmp_path))
    assert "lock" in str(caught.value)
    assert caught.value.remedy


@each_mode
@pytest.mark.parametrize("most", [2**63, -(2**63) - 1])
def test_a_row_that_does_not_fit_the_columns_of_an_output_is_refused(
    mode: str, most: int, tmp_path: Path
) -> None:
    error = refused(begun(A.map(lambda row: row.v or most, type=int), mode, tmp_path), [BAD])
    assert isinstance(error, SchemaMismatch)
    assert str(error).startswith("output 'output': ")
    assert "64 bits" in str(error)
    assert "test_failures.py" in str(error.facts["created"])


@pytest.mark.parametrize("mode", ["single_task", "staged"])
def test_rows_of_a_class_that_a_function_defines_can_be_sent(mode: str, tmp_path: Path) -> None:
    class Local(NamedTuple):
        k: int
        v: int

    rows = ef.Input("a", Local)
    view = View(plan_of(rows.distinct()), mode, path=str(tmp_path))
    assert view.step({"a": [Local(1, 2)]}) == ZSet.of([Local(1, 2)])
    view.reopen()
    assert view.step({"a": {Local(1, 2): -1}}) == ZSet({Local(1, 2): -1})
    view.close()


class Maybe(NamedTuple):
    k: int
    w: int | None


@each_mode
@pytest.mark.parametrize("reducer", [ef.arg_max("w"), ef.arg_min("w"), ef.max("w"), ef.min("w")])
def test_what_is_best_of_nothing_fits_its_column(mode: str, reducer: Any, tmp_path: Path) -> None:
    rows = ef.Input("a", Maybe).group_by("k").agg(best=reducer)
    view = View(plan_of(rows), mode, path=str(tmp_path))
    assert view.step({"a": [Maybe(0, None)]}) == ZSet.of([(0, None)])
    view.close()


# ---- the driver dies, or cannot write ----


class Crash(BaseException):
    """The end of a process."""


WORK = ef.program(
    met=A.join(B, on="k", select=pair),
    sums=A.group_by("k").agg(s=ef.sum("v")),
    best=B.group_by("k").agg(s=ef.max("v")).filter(lambda group: group.s > 0),
).plan
SECOND = {"a": {Row(1, 2): -1, Row(2, 9): 1}, "b": [Row(2, 2), Row(4, 4)]}


def working(mode: str, path: Path) -> View:
    view = View(WORK, mode, 3, path=str(path))
    if view.epoch == 0:
        view.step({"a": FIRST, "b": FIRST})
    return view


@each_mode
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Store, "adopt"), (Store, "commit"), (Store, "_publish"), (task, "write_parquet"),
        (task.Piece, "add"), (task.Piece, "finish"), (os, "fsync"), (os, "link"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
def test_a_driver_that_dies_at_any_instant_leaves_the_last_epoch(
    owner: Any, name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(owner, name)
    died = True
    for at in count():
        place = tmp_path / str(at)
        view = working(mode, place)
        value, epoch, after = view.value, view.epoch, expected_after(view)
        calls = count()

        def dying(*args: Any, at: int = at, calls: Any = calls, **options: Any) -> Any:
            if next(calls) == at:
                raise Crash
            return real(*args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(owner, name, dying)
            try:
                view.step(SECOND)
            except Crash:
                died = True
            else:
                died = False
        shutil.copytree(place, tmp_path / f"{at} later")
        view.close()
        view = working(mode, tmp_path / f"{at} later")
        if died and view.epoch == epoch:
            assert view.value == value
            view.step(SECOND)
        assert (view.epoch, view.value) == (epoch + 1, after)
        view.close()
        if not died or at > 12:
            break
    assert at > 0 or (mode == "driver" and owner in (task.Piece,)) or name == "adopt"


def expected_after(view: View) -> Any:
    inputs = {
        "a": ZSet.of([Row(2, 3), Row(3, 4), Row(2, 9)]),
        "b": ZSet.of([*FIRST, Row(2, 2), Row(4, 4)]),
    }
    return evaluate(view.plan, inputs)


@each_mode
def test_a_commit_that_fails_changes_nothing_and_can_be_tried_again(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = working(mode, tmp_path)
    value = view.value

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_manifest", full)
        with pytest.raises((OSError, EbbflowError)):
            view.step(SECOND)
    assert view.value == value
    view.disk.store.rollback()
    view.step(SECOND)
    assert view.value == expected_after(view)
    view.close()


def test_a_state_is_open_once(tmp_path: Path) -> None:
    view = working("single_task", tmp_path)
    with pytest.raises(InUse):
        working("single_task", tmp_path)
    view.close()
    working("single_task", tmp_path).close()


# ---- what failed epochs leave behind ----


def fail_often(path: Path) -> View:
    rows = ef.program(
        fine=A.group_by("k").agg(n=ef.count()), out=A.distinct().map(share, type=int).distinct()
    )
    view = View(rows.plan, "staged", 3, path=str(path))
    view.step({"a": FIRST})
    for _ in range(3):
        with pytest.raises(FunctionFailed):
            view.step({"a": [BAD, Row(5, 5), Row(6, 6), Row(7, 7)]})
    return view


def test_segments_of_failed_epochs_are_removed(tmp_path: Path) -> None:
    view = fail_often(tmp_path)
    view.reopen()
    view.step({"a": [Row(5, 5)]})
    listed = view.disk.store.manifest.spines
    needed = {ref.file for spine in listed for ref in spine.segments}
    there = {name for name in os.listdir(tmp_path) if name.startswith("part-")}
    assert there <= needed
    view.close()


def test_changes_of_failed_epochs_are_removed(tmp_path: Path) -> None:
    view = fail_often(tmp_path)
    assert len(os.listdir(tmp_path / "changes")) <= 2 * 3  # of the first epoch
    view.close()


# ---- on a real session ----


def run(rows: Any, spark: Any, path: Path, mode: str) -> Any:
    return rows.run(ef.spark(spark, path=path, mode=mode, buckets=2))


def said_once(error: BaseException, err: str) -> None:
    """The error is short, and so is what it comes from; nothing else is said."""
    while error is not None:
        text = str(error)
        assert len(text.splitlines()) < 40, text
        assert "at org.apache" not in text
        assert "java" not in text.lower()
        error = error.__cause__
    assert "at org.apache" not in err


@pytest.mark.parametrize("mode", ["single_task", "staged", "bulk"])
@pytest.mark.parametrize("name", ["map", "merge", "reducer"])
def test_a_function_that_raises_on_spark_is_one_error_without_java(
    spark: Any, tmp_path: Path, capfd: Any, name: str, mode: str
) -> None:
    rows = FAILING[name]
    with run(rows, spark, tmp_path, mode) as view:
        others = {"b": FIRST} if name == "merge" else {}
        with pytest.raises(EbbflowError) as caught:
            view.step({**others, "a": [*FIRST, BAD]})
        names_the_row(caught.value)
        said_once(caught.value, capfd.readouterr().err)
        assert view.epoch == 0
        view.step({**others, "a": FIRST})
        inputs = {name: ZSet.of(rows) for name, rows in {**others, "a": FIRST}.items()}
        assert view.zset() == evaluate(view.plan, inputs)["output"]


def test_a_row_is_put_in_by_key_whatever_its_type(spark: Any, tmp_path: Path) -> None:
    words = ef.Input("words", str, key=lambda word: word[:1])
    with run(words.distinct(), spark, tmp_path, "driver") as view:
        view.input("words").upsert("ebb")
        view.input("words").upsert("east", "flow")
        assert view.zset() == ZSet.of(["east", "flow"])


@pytest.mark.parametrize("mark", ["op string", "weight int"])
def test_what_is_put_in_by_key_takes_nothing_away(spark: Any, tmp_path: Path, mark: str) -> None:
    gone = "d" if mark.startswith("op") else -1
    marked = spark.createDataFrame([(2, 2, gone)], f"k long, v long, {mark}")
    with run(ef.Input("a", Row, key="k"), spark, tmp_path, "single_task") as view:
        view.step(a=[Row(1, 1), Row(2, 2)])
        try:
            view.input("a").upsert(marked)
        except EbbflowError:
            assert view.zset() == ZSet.of([Row(1, 1), Row(2, 2)])
        else:
            assert view.zset() == ZSet.of([Row(1, 1)])


def test_a_load_whose_output_does_not_fit_is_refused(spark: Any, tmp_path: Path) -> None:
    squares = A.map(lambda row: Row(row.k, row.v * row.v), type=Row)
    with run(squares, spark, tmp_path, "bulk") as view:
        with pytest.raises(EbbflowError, match="64 bits"):
            view.step(a=[Row(1, 2**40), Row(2, 3)])
        assert view.epoch == 0


def test_a_load_by_a_key_that_raises_says_of_which_row(spark: Any, tmp_path: Path) -> None:
    keyed = ef.Input("a", Row, key=lambda row: 100 // row.v if row.v < 5 else str(row))
    with run(keyed.distinct(), spark, tmp_path, "bulk") as view:
        with pytest.raises(EbbflowError) as caught:
            view.step(a=[*FIRST, BAD])
        names_the_row(caught.value)


def dying(marker: str) -> Any:
    def once(row: Row) -> int:
        if row.v == 2 and not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        return row.k

    return once


@pytest.mark.parametrize("mode", ["single_task", "staged"])
def test_a_worker_that_dies_is_one_error_and_the_epoch_can_be_stepped_again(
    spark: Any, tmp_path: Path, capfd: Any, mode: str
) -> None:
    rows = A.map(dying(str(tmp_path / "marker")), type=int).distinct()
    with run(rows, spark, tmp_path / "state", mode) as view:
        with pytest.raises(SparkError, match="changed nothing") as caught:
            view.step(a=FIRST)
        assert len(str(caught.value).splitlines()) < 8
        assert "at org.apache" not in str(caught.value)
        assert "at org.apache" not in capfd.readouterr().err
        assert view.epoch == 0
        assert zset_of(view.step(a=FIRST), int) == ZSet.of([1, 2, 3])
        assert view.epoch == 1
        view.verify()


PROGRAM = """
from dataclasses import dataclass
from typing import NamedTuple
import ebbflow as ef

class Bid(NamedTuple):
    lot: int
    price: int

@dataclass(frozen=True)
class Total:
    sum: int = 0

def add(total, bid):
    return Total(total.sum + bid.price)

def remove(total, bid):
    return Total(total.sum - bid.price)

def twice(bid):
    return Bid(bid.lot, 2 * bid.price)

def run(running):
    bids = ef.Input("bids", Bid)
    total = ef.Reducer(Total(), add, remove, result=ef.typed(int, lambda total: total.sum))
    program = ef.program(
        best=bids.group_by("lot").agg(best=ef.arg_max("price")),
        total=bids.group_by("lot").agg(total=total),
        pairs=bids.join(bids.map(twice, type=Bid), on="lot", select=lambda a, b: (a, b.price)),
    )
    for mode in ("single_task", "staged"):
        with program.run(ef.spark(running, path=f"state-{mode}", mode=mode, buckets=2)) as view:
            view.step(bids=[Bid(1, 5), Bid(1, 7), Bid(2, 1)])
            view.step(bids={Bid(1, 7): -1, Bid(2, 3): 1})
            view.verify()
"""
SCRIPT = f"""{PROGRAM}
if __name__ == "__main__":
    from ebbflow.engine.spark.session import session

    running = session("main", cores=1)
    run(running)
    running.stop()
    print("done")
"""


def test_classes_of_the_main_program_work_in_workers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAM, "program.py", "exec"), vars(main))
    main.run(spark)


@pytest.mark.slow
def test_classes_of_a_script_work_in_workers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr[-3000:]


# ---- rows that must not be in logs ----


class Person(NamedTuple):
    name: str
    salary: int


SECRET = "hunter2"
people = ef.Input("people", Person)


def tell(row: Person) -> int:
    if row.name == SECRET:
        raise KeyError(row.name)
    return row.salary


@pytest.fixture
def redacted() -> Any:
    ef.redact()
    yield
    ef.redact(False)


def said(error: BaseException) -> str:
    return str(error) + "".join(traceback.format_exception(error))


@pytest.mark.usefixtures("redacted")
@pytest.mark.parametrize("mode", ["bulk", "single_task", "staged"])
def test_redacted_errors_of_tasks_have_no_rows(mode: str, spark: Any, tmp_path: Path) -> None:
    program = people.map(tell, type=int).distinct()
    with program.run(ef.spark(spark, path=tmp_path, mode=mode)) as view:
        with pytest.raises(FunctionFailed) as caught:
            view.step(people=[Person("Ann", 1), Person(SECRET, 2)])
        assert SECRET not in said(caught.value)
        assert "raised KeyError at test_failures.py:" in str(caught.value)


@pytest.mark.usefixtures("redacted")
@pytest.mark.parametrize("mode", ["driver", "single_task"])
def test_redacted_errors_of_spark_have_no_rows(mode: str, spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(SECRET,)], "name string")
    cast = frame.selectExpr("name", "cast(name as int) as salary")
    with people.distinct().run(ef.spark(spark, path=tmp_path, mode=mode)) as view:
        with pytest.raises(SparkError) as caught:
            view.step(people=cast)
        assert SECRET not in said(caught.value)
        assert view.epoch == 0


@pytest.mark.usefixtures("redacted")
def test_redacted_errors_of_tables_have_no_rows(spark: Any, tmp_path: Path) -> None:
    with people.distinct().run(ef.spark(spark, path=tmp_path)) as view:
        for given in (
            spark.createDataFrame([("Ann", 1, SECRET)], "name string, salary int, op string"),
            pa.table({"name": ["Ann"], "salary": [1], "op": [SECRET]}),
            [Person("Ann", SECRET)],  # type: ignore[arg-type]
            {Person(SECRET, 1): -1},
        ):
            with pytest.raises(EbbflowError) as caught:
                view.step(people=given)
            assert SECRET not in said(caught.value)
        assert view.epoch == 0
