"""Requests one by one: what each does to what is there, and what is said when it cannot."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import AbsentRow, ChangeError, CompositionError, EbbflowError, UnknownField
from ebbflow.zset import ZSet


class Order(NamedTuple):
    id: int
    city: str
    version: int


ORDERS = ef.Input("orders", Order, key="id")
VERSIONED = ef.Input("orders", Order, key="id", sequence="version")
ROME, OSLO = Order(1, "Rome", 3), Order(2, "Oslo", 1)


def cities(view: Any) -> dict[int, str]:
    return {row.id: row.city for row in view.value}


def holding(*rows: Order, program: Any = ORDERS) -> Any:
    view = program.run()
    view.step(orders=list(rows))
    return view


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (ef.upsert([ROME, ROME._replace(city="x")]), "several rows of one key, and no order"),
        (
            ef.upsert({ROME: 1, ROME._replace(city="x"): 1}, duplicates="last"),
            "there is no last row",
        ),
        (ef.upsert([ROME], delete=[1]), "both to upsert and to delete"),
        (ef.upsert([ROME], order="verzion"), "have no field 'verzion', to order by"),
        (
            ef.upsert([ROME._replace(version=None), ROME], order="version"),
            "field 'version' must be an int, and it is missing",
        ),
        (
            ef.upsert([ROME._replace(version="a")], order="version"),
            "field 'version' must be an int, not the str 'a'",
        ),
        (ef.upsert(ef.delete([1])), "a request was given where rows are asked"),
        (ef.delete("1"), "one key of input 'orders' was given where several are asked"),
        (ef.delete([[1]]), "cannot be a list"),
        (ef.delete([1], at=3), "has no sequence, and at= says nothing"),
        (ef.delete([7]), "there is no row of this key"),
        (ef.delete([1, 1]), "a key was deleted twice"),
        (ef.forget(3), "has no sequence, and remembers nothing"),
        (ef.replace([ROME], where={"city": "Oslo"}), "`where` is not true"),
        (ef.replace([ROME], where={"town": "Oslo"}), "have no field 'town'"),
        (ef.replace([ROME], where=lambda row: row.town), "`where` failed on a row"),
        (ef.replace([ROME], where=7), "where is a mapping from fields to values"),
        (ef.replace({ROME: -1}), "is given a row to take away"),
        (ef.replace([ROME, ROME._replace(city="x")]), "more than one row of a key"),
        (ef.feed([ROME]), "a feed is a table, or a list of dicts"),
        (ef.feed([ROME._asdict()]), "no column of the feed says what happens"),
        (ef.feed([{**ROME._asdict(), "op": "z"}]), "op 'z' is no change of a row"),
        (ef.feed([{"op": "c", "id": 1}]), "there are no columns 'city', 'version'"),
        (ef.feed([{"op": "c", **ROME._asdict(), "city": None}]), "field 'city' is null"),
        (ef.feed([{"op": "d", "city": "Rome"}]), "field 'id' is null"),
        (ef.feed([{"op": "d", "id": 7}]), "there is no row of this key"),
        (ef.feed([{"op": "u", "before": None, "after": None}]), "'after' is null"),
        (ef.feed([{**ROME._asdict(), "op": "c"}], order="lsn"), "the feed has no column 'lsn'"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy_and_changes_nothing(
    asked: Any, text: str
) -> None:
    view = holding(ROME, OSLO)
    with pytest.raises(EbbflowError) as caught:
        view.step(orders=asked)
    assert text in str(caught.value)
    assert caught.value.remedy
    assert cities(view) == {1: "Rome", 2: "Oslo"}
    view.verify()


def test_options_that_are_none_are_refused_where_they_are_written() -> None:
    wrong: Any = "nothing"
    for make in (
        lambda: ef.delete([1], missing=wrong),
        lambda: ef.upsert([ROME], duplicates=wrong),
        lambda: ef.feed([], insert="I"),
        lambda: ef.feed([], op="what"),
    ):
        with pytest.raises(ChangeError):
            make()
    with pytest.raises(CompositionError, match="there is no key"):
        ef.Input("orders", Order, sequence="version")
    with pytest.raises(UnknownField):
        ef.Input("orders", Order, key="id", sequence="verzion")
    with pytest.raises(ChangeError, match="has a sequence, and a change cannot have another"):
        VERSIONED.run().step(orders=ef.upsert([ROME], order="version"))
    with pytest.raises(ChangeError, match="are not kept"):
        ef.Input("words", str).run(check_input=False).step(words=ef.replace(["a"]))


def test_whatever_input_is_refused_none_is_changed() -> None:
    other = ef.Input("others", Order, key="id", sequence="version")
    view = ef.program(a=ORDERS, b=other).run()
    for names in (("orders", "others"), ("others", "orders")):
        good, bad = names
        with pytest.raises(AbsentRow):
            view.step({good: ef.upsert([ROME]), bad: ef.delete([7])})
        assert view.value == {"a": ZSet(), "b": ZSet()}
    view.step(others=ef.upsert([ROME._replace(version=0)]))
    assert view.value["b"] == ZSet.of([ROME._replace(version=0)])


def test_by_an_order_the_newest_counts_and_none_older_than_what_is_there() -> None:
    view = holding(ROME)
    events = [Order(1, "old", 2), Order(2, "late", 5), Order(2, "later", 5), Order(2, "older", 4)]
    view.step(orders=ef.upsert(events, order="version"))
    assert cities(view) == {1: "Rome", 2: "later"}


def test_an_insert_and_its_delete_in_one_feed_are_nothing() -> None:
    view = holding(ROME)
    row = OSLO._asdict()
    assert view.step(orders=ef.feed([{**row, "op": "c"}, {"op": "d", "id": 2}])) == ZSet()
    assert view.epoch == 2


@pytest.mark.parametrize("turned", [False, True])
def test_with_a_sequence_events_may_come_in_any_order_and_again(turned: bool) -> None:
    view = VERSIONED.run()
    steps = [
        ef.upsert([Order(1, "a", 1)]),
        ef.delete([1], at=3),
        ef.upsert([Order(1, "b", 2)]),
        ef.feed([{"op": "d", "id": 2, "version": 5}]),
        ef.upsert([Order(2, "c", 4), Order(3, "d", 1)]),
    ]
    for step in [*(reversed(steps) if turned else steps), *steps]:
        view.step(orders=step)
    assert cities(view) == {3: "d"}
    assert view._program.inputs["orders"].beside.rows == {1: 3, 2: 5}
    view.step(orders=ef.upsert([Order(2, "back", 5)]))
    assert view._program.inputs["orders"].beside.rows == {1: 3}


def test_a_branch_remembers_deleted_keys_of_its_own() -> None:
    view = VERSIONED.run()
    view.step(orders=ef.delete([1], at=3))
    branch = view.branch()
    branch.step(orders=ef.delete([2], at=3))
    late = ef.upsert([Order(1, "x", 1), Order(2, "y", 1)])
    assert (branch.step(orders=late), view.step(orders=late)) == (
        ZSet(), ZSet({Order(2, "y", 1): 1})
    )  # fmt: skip


KILLED = """
import os, sys
from tests.unit.engine.runtime.test_events import VERSIONED, Order
import ebbflow as ef
view = VERSIONED.run(path=sys.argv[1])
view.step(orders=ef.upsert([Order(1, "a", 1), Order(2, "b", 1)]))
view.step(orders=ef.delete([1], at=3))
os._exit(1)
"""


def test_a_deleted_key_is_remembered_by_a_process_that_comes_after_one_that_was_killed(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyarrow")
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, check=False)
    with VERSIONED.run(path=tmp_path) as view:
        assert view.step(orders=ef.upsert([Order(1, "late", 2)])) == ZSet()
        view.step(orders=ef.forget(before=4))
    with VERSIONED.run(path=tmp_path, memory=1) as view:
        view.step(orders=ef.upsert([Order(1, "late", 2)]))
        assert cities(view) == {1: "late", 2: "b"}
    with ORDERS.run(path=tmp_path) as view:
        assert cities(view) == {1: "late", 2: "b"}
    with VERSIONED.run(path=tmp_path) as view:
        assert view.rebuilt == ()
        assert view.step(orders=ef.delete([2], at=0)) == ZSet()


def test_only_what_differs_flows_when_rows_are_replaced() -> None:
    calls: list[int] = []

    def seen(row: Order) -> int:
        calls.append(row.id)
        return row.id

    view = ef.Input("orders", Order).map(seen, type=int).run()
    rows = [Order(i, "Rome", 1) for i in range(1000)]
    view.step(orders=rows)
    calls.clear()
    view.step(orders=ef.replace([*rows[1:], Order(5000, "Oslo", 1)]))
    assert sorted(calls) == [0, 5000]


def test_tables_say_the_same_as_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    view = holding(ROME, OSLO)
    columns = {"id": [1, 3], "city": [None, "Bonn"], "version": [None, 1], "kind": ["D", "I"]}
    view.step(orders=ef.feed(pa.table(columns), op="kind", insert="I", delete="D"))
    assert cities(view) == {2: "Oslo", 3: "Bonn"}
    view.step(orders=ef.delete(pa.table({"id": [3]})))
    rows = pa.table({"id": [4], "city": ["Kiel"], "version": [1]})
    view.step(orders=ef.upsert(rows, delete=pa.table({"id": [2]})))
    assert cities(view) == {4: "Kiel"}
    for asked, text in (
        (ef.delete(pa.table({"idd": [3]})), "there is no column 'id'"),
        (ef.delete(pa.table({"id": ["3"]})), "column 'id' is string, not int"),
        (ef.delete(pa.table({"id": pa.array([None], pa.int64())})), "column 'id' is null"),
        (ef.feed(pa.table({"id": [1], "op": ["d"]})), "there are no columns"),
    ):
        with pytest.raises(ChangeError, match=text):
            view.step(orders=asked)


@pytest.mark.parametrize("texts", [("10", "9"), ("10.5", "9.75"), ("-9", "-10")])
def test_texts_of_numbers_in_a_column_are_ordered_as_numbers(texts: tuple[str, str]) -> None:
    pa = pytest.importorskip("pyarrow")
    newer, older = texts
    rows = [
        {"id": 1, "city": "new", "version": 1, "lsn": newer, "kind": "U"},
        {"id": 1, "city": "old", "version": 1, "lsn": older, "kind": "U"},
    ]
    for given in (rows, rows[::-1], pa.Table.from_pylist(rows)):
        view = holding(ROME)
        view.step(orders=ef.feed(given, op="kind", insert="I", update="U", delete="D", order="lsn"))
        assert cities(view) == {1: "new"}


def test_the_remedy_for_a_day_of_numpy_makes_a_datetime_of_it() -> None:
    np = pytest.importorskip("numpy")
    view = ef.Input("times", datetime).run()
    value = np.datetime64("2024-01-01")
    with pytest.raises(ChangeError) as refused:
        view.step(times=[value])
    view.step(times=[eval(refused.value.remedy, {"value": value})])
    assert list(view.value) == [datetime(2024, 1, 1)]
