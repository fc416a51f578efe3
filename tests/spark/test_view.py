"""A view on Spark: what it refuses, what it lets go of, older epochs, and how it shows progress."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.spark import view as module
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.progress import Progress
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.errors import (
    ChangeError,
    CompositionError,
    FunctionFailed,
    SparkError,
    StateError,
    ViewClosed,
)
from ebbflow.frozen import frozen
from ebbflow.record import record
from ebbflow.state.spine import Store
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    city: str
    price: int


class Total(NamedTuple):
    city: str
    total: int


sales = ef.Input("sales", Sale)
totals = sales.group_by("city").agg(total=ef.sum("price"))
two = ef.program(totals=totals, dear=sales.filter(lambda sale: sale.price > 10))


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Any:
    views: list[Any] = []

    def opened(program: Any = totals, **options: Any) -> Any:
        views.append(program.run(ef.spark(spark, path=tmp_path, in_driver=True, **options)))
        return views[-1]

    yield opened
    for view in views:
        view.close()


# ---- what is refused ----


def test_a_name_that_is_not_there_is_told_with_the_nearest_that_is(run: Any) -> None:
    view = run(two)
    with pytest.raises(CompositionError, match="the program has no input 'sale'") as caught:
        view.step(sale=[])
    assert (caught.value.remedy, str(caught.value.facts["inputs"])) == ("sales", "sales")
    with pytest.raises(CompositionError, match="the program has no output 'total'") as caught:
        view["total"]
    assert caught.value.remedy == "totals"
    for wrong in (view.input, view.write_snapshot, view.write_changes):
        with pytest.raises(CompositionError, match="the program has no"):
            wrong("nowhere", output="dea") if wrong != view.input else wrong("dea")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Sale("Rome", 1), "one row was given where a change is asked"),
        ("Rome", "one row was given where a change is asked"),
        (7, "a value of type int is not a change"),
        ({Sale("Rome", 1): 1.5}, "a weight must be an int"),
        ([["Rome", 1]], "a row must be hashable"),
    ],
)
def test_what_is_no_change_is_refused_as_by_the_local_view(
    run: Any, given: Any, words: str
) -> None:
    view = run()
    for each in (view, totals.run()):
        with pytest.raises(ChangeError, match=words):
            each.step(sales=given)
    with pytest.raises(ChangeError, match="an input was given two changes"):
        view.step({"sales": []}, sales=[])
    assert view.epoch == 0


def test_a_closed_view_can_only_be_closed_again(run: Any) -> None:
    view = run()
    view.close()
    view.close()
    for use in (
        view.step, lambda: view.value, lambda: view.weighted, view.zset, view.stats, view.explain,
        view.verify, view.deliver, lambda: view.at(0), lambda: view["output"].value,
        lambda: view.on_change(print), lambda: view.write_snapshot("x"),
    ):  # fmt: skip
        with pytest.raises(ViewClosed, match="the view is closed"):
            use()


def test_a_session_that_was_stopped_is_said_in_one_sentence(run: Any) -> None:
    view = run()
    view.session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(SparkError, match="the Spark session of this view was stopped"):
        view.step(sales=[])
    view.close()


def test_the_state_is_let_go_of_when_a_view_cannot_be_made(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise CompositionError("cannot be sent")

    monkeypatch.setattr(module, "pack_program", fails)
    with pytest.raises(CompositionError, match="cannot be sent"):
        run()
    Store(tmp_path).close()


def test_an_epoch_that_failed_changed_nothing_and_can_be_stepped_again(run: Any) -> None:
    rows: list[Any] = []

    def price(sale: Sale) -> int:
        return rows[sale.price]

    view = run(sales.map(price, type=int))
    heard: list[Any] = []
    view.on_change(heard.append)
    with pytest.raises(FunctionFailed, match="price"):
        view.step(sales=[Sale("Rome", 0)])
    assert (view.epoch, heard, view.stats().epochs) == (0, [], ())
    rows.append(7)
    view.step(sales=[Sale("Rome", 0)])
    assert (view.epoch, len(heard)) == (1, 1)


# ---- epochs ----


def test_older_epochs_can_be_read_while_they_are_kept(run: Any) -> None:
    view = run(keep_epochs=2)
    for price in (1, 2, 3):
        view.step(sales=[Sale("Rome", price)])
    assert [tuple(row) for row in view.at(2).collect()] == [("Rome", 3)]
    assert [tuple(row) for row in view.at(3).collect()] == [("Rome", 6)]
    with pytest.raises(StateError, match="epoch 1 is not there") as caught:
        view.at(1)
    assert caught.value.facts["epochs"] == [2, 3]


def test_an_epoch_of_another_program_is_not_read_as_if_it_were_of_this_one(run: Any) -> None:
    view = run(keep_epochs=3)
    view.step(sales=[Sale("Rome", 1)])
    view.close()
    other = run(sales.group_by("city").agg(total=ef.max("price")), keep_epochs=3)
    with pytest.raises(StateError, match="was another one at epoch 1"):
        other.at(1)


def test_all_outputs_that_value_gives_are_of_one_epoch(run: Any) -> None:
    view = run(two)
    view.step(sales=[Sale("Rome", 20)])
    value, weighted = view.value, view.weighted
    view.step(sales=[Sale("Rome", 30)])
    assert value["dear"].count() == 1
    assert zset_of(weighted["totals"], Total) == ZSet({Total("Rome", 20): 1})


def test_changes_that_belong_to_no_epoch_are_removed(run: Any, tmp_path: Path) -> None:
    view = run()
    view.step(sales=[Sale("Rome", 1)])
    view.close()
    changes = tmp_path / "changes"
    (there,) = changes.iterdir()
    for name in ("000000000002-ab-0.parquet", "000000000002-ab-1.tmp"):
        (changes / name).write_text("of a task that was killed")
    run()
    assert list(changes.iterdir()) == [there]


# ---- progress ----


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def tracker(done: int, total: int) -> Any:
    """A session with one job, of two stages; the second has not begun."""
    stages = {1: SimpleNamespace(numCompletedTasks=done, numTasks=total), 2: None}
    told = SimpleNamespace(
        getActiveJobsIds=iter([[], *[[5]] * 1000]).__next__,
        getJobInfo=lambda job: SimpleNamespace(stageIds=[1, 2]),
        getStageInfo=stages.get,
    )
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: told))


def written(what: str) -> None:
    """Wait for somebody to write this, however busy the machine is."""
    while what not in sys.stderr.getvalue():  # type: ignore[attr-defined]
        sleep(0.01)


def test_a_long_epoch_is_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(tracker(3, 8), "epoch 7", after=0.01) as shown:
        written("epoch 7")
        shown.rows = 1000
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert re.match(r"\repoch 7: 3 of 8 tasks, \d+ s", text)
    assert re.match(r"epoch 7: 1,000 rows in \d+\.\d", text.rpartition("\r")[2])
    assert text.endswith("rows/s\n")
    assert text.count("\n") == 1


def test_a_short_epoch_and_one_without_a_terminal_write_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stream, wanted in ((Terminal(), None), (StringIO(), None), (Terminal(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(tracker(1, 2), "epoch 1", wanted, after=5 if wanted is None else 0):
            sleep(0.02)
        assert stream.getvalue() == ""


def test_progress_can_be_asked_for_and_never_fails_an_epoch(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(StringIO):
        def write(self, text: str) -> int:
            raise OSError("no such terminal")

    monkeypatch.setattr("ebbflow.engine.spark.progress.AFTER", 0.0)
    for stream, session in ((Broken(), None), (StringIO(), None)):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(session, "epoch 1", wanted=True, after=0):
            sleep(0.02) if isinstance(stream, Broken) else written("epoch 1: ")
    with suppress(ValueError), Progress(None, "epoch 2", True, after=0):
        written("epoch 2")
        raise ValueError
    assert "epoch 2: failed after " in stream.getvalue()
    monkeypatch.setattr(sys, "stderr", Broken())
    view = run(progress=True)
    view.step(sales=[Sale("Rome", 1)])
    assert view.epoch == 1


def test_rows_of_inputs_whose_names_differ_in_case_are_not_mixed_up(
    spark: Any, tmp_path: Path
) -> None:
    Small, Large = record("Small", k=int, v=int), record("Large", k=int, w=str)
    small, large = ef.Input("a", Small), ef.Input("A", Large)
    joined = small.join(large, on="k").run(ef.spark(spark, path=tmp_path, mode="single_task"))
    left = spark.createDataFrame([(1, 10), (2, 20)], "k long, v long")
    right = spark.createDataFrame([(1, "x"), (3, "y")], "k long, w string")
    with joined as view:
        assert [tuple(row) for row in view.step(a=left, A=right).collect()] == [(1, 10, "x", 1)]
        view.verify()


# ---- types ----


class Place(NamedTuple):
    city: str
    zip: int


class Post(NamedTuple):
    id: int
    at: datetime
    cost: Annotated[Decimal, (10, 2)]
    paid: bool | None
    note: str | None
    tags: list[str]
    sizes: dict[str, int]
    home: Place
    seen: Annotated[datetime, UTC]


def test_what_a_row_holds_comes_from_a_table_and_goes_to_one(spark: Any, tmp_path: Path) -> None:
    posts = ef.Input("posts", Post)
    whole = posts.select("id", "tags", "sizes", "home", "seen", "cost")
    groups = posts.group_by("seen").agg(
        paid=ef.bool_and("paid"), some=ef.bool_or("paid"), notes=ef.string_agg("note", "; "),
        cost=ef.sum("cost"), ids=ef.set_of("id"), all=ef.collect("id"), how=ef.histogram("id"),
    )  # fmt: skip
    months = posts.group_by(month=lambda post: post.at.strftime("%Y-%m")).agg(n=ef.count())
    program = ef.program(whole=whole, groups=groups, months=months)
    noon = datetime(2026, 1, 2, 12)
    row = Post(
        1, noon, Decimal("1.50"), None, None, ["a", "b"], {"x": 1}, Place("Rome", 7),
        noon.replace(tzinfo=UTC),
    )  # fmt: skip
    frame = spark.createDataFrame([row], schema_of(Post))
    with program.run(ef.spark(spark, path=tmp_path, in_driver=True)) as view:
        view.step(posts=frame)
        view.step(posts=[row._replace(id=2, tags=[])])
        view.step(posts={frozen(row._replace(id=2, tags=[])): -1})
        assert {each.dataType.simpleString() for each in view.value["whole"].schema} == {
            "bigint", "array<string>", "map<string,bigint>", "struct<city:string,zip:bigint>",
            "timestamp", "decimal(10,2)",
        }  # fmt: skip
        (kept,) = view.zset()["whole"]
        assert tuple(kept) == (1, ("a", "b"), {"x": 1}, Place("Rome", 7), row.seen, row.cost)
        (found,) = view.value["groups"].drop("seen").collect()
        assert found.asDict() == {
            "paid": None, "some": None, "notes": None, "cost": Decimal("1.50"), "ids": [1],
            "all": [1], "how": {1: 1},
        }  # fmt: skip
        assert [tuple(each) for each in view.value["months"].collect()] == [("2026-01", 1)]
        view.verify()


def test_an_output_of_no_type_is_refused_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    program = sales.group_by(first=lambda sale: eval("sale.city[0]")).agg(n=ef.count())
    with pytest.raises(CompositionError, match="its column 'first' is of no known type"):
        program.run(ef.spark(spark, path=tmp_path / "state"))
    assert not (tmp_path / "state").exists()
