"""How much work a view adds to its machine: rows hashed, rows copied, calls made."""

from __future__ import annotations

from typing import Any

import pytest

from ebbflow.engine.local.view import View
from ebbflow.engine.runtime.rows import Rows
from ebbflow.errors import AbsentRow
from ebbflow.flow.plan import Concat, Plan, Source
from ebbflow.fn import Fn
from ebbflow.zset import ZSet

SIZES = [100, 1_000, 10_000]


class Row:
    """A row that counts how often any row is hashed."""

    hashed = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        Row.hashed += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.number == other.number


class Passing:
    """A machine that gives what it gets, and can read the output without looking at a row."""

    listed: frozenset[str] = frozenset()

    def __init__(self, *, reads: bool) -> None:
        self.reads = reads

    def run(self, changes: dict[str, Any]) -> dict[str, Any]:
        return {"rows": changes["rows"]} if changes else {}

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def read(self, name: str) -> dict[Any, int] | None:
        return {} if self.reads else None

    def stats(self) -> list[Any]:
        return []


def view_of(source: Source, *, reads: bool = True, check_input: bool = True) -> View:
    return View(Plan({"rows": source}), Passing(reads=reads), check_input=check_input)


ROWS = Source(name="rows")


def loaded(n: int, **options: Any) -> View:
    view = view_of(ROWS, **options)
    view.step(rows=[Row(i) for i in range(n)])
    return view


def hashes(view: View, change: Any) -> int:
    Row.hashed = 0
    view.step(rows=change)
    return Row.hashed


@pytest.mark.parametrize("reads", [True, False])
def test_a_step_looks_at_the_rows_of_the_change_and_at_no_other(reads: bool) -> None:
    found = set()
    for n in SIZES:
        view = loaded(n, reads=reads)
        added, removed, more = {Row(-1): 1}, {Row(5): -1}, {Row(6): 1}
        found.add(tuple(hashes(view, change) for change in (added, removed, more)))
    stores = 1 if reads else 2
    assert found == {(stores, 2 * stores, 2 * stores)}


@pytest.mark.parametrize("k", [1, 10, 100])
def test_checking_a_change_costs_at_most_two_hashes_a_row(k: int) -> None:
    view = loaded(1_000)
    change = {Row(i): -1 for i in range(k)} | {Row(-i - 1): 1 for i in range(k)}
    assert hashes(view, change) == 3 * k


def test_a_trusted_step_hashes_nothing() -> None:
    assert hashes(loaded(100, check_input=False), {Row(-1): 1, Row(5): -1}) == 0


@pytest.mark.parametrize("make", [dict, ZSet], ids=["dict", "ZSet"])
def test_loading_an_empty_view_hashes_no_row_again(make: Any) -> None:
    load = make({Row(i): 1 for i in range(1_000)})
    assert hashes(view_of(ROWS, reads=False), load) == 0


def test_loading_a_list_hashes_every_row_once() -> None:
    assert hashes(view_of(ROWS, reads=False), [Row(i) for i in range(1_000)]) == 1_000


def test_a_refused_step_stops_at_the_row_that_is_refused() -> None:
    view = loaded(100)
    change = {Row(-1): -1} | {Row(i): -1 for i in range(50)}
    Row.hashed = 0
    with pytest.raises(AbsentRow):
        view.step(rows=change)
    assert Row.hashed == 1


def test_the_output_is_copied_when_it_is_read_and_then_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = loaded(100, reads=False)
    copies: list[int] = []
    whole = Rows.whole
    monkeypatch.setattr(Rows, "whole", lambda rows: copies.append(len(rows.rows)) or whole(rows))
    for i in range(10):
        view.step(rows=[Row(-i - 1)])
    assert copies == []
    assert view.value is view.value is view["rows"].value
    assert copies == [110]
    view.step()
    view.value
    assert copies == [110]


def test_the_key_is_asked_once_for_each_row_of_a_change() -> None:
    calls: list[Any] = []

    def key(row: Any) -> Any:
        calls.append(row)
        return row[0]

    view = view_of(Source(name="rows", key=Fn(key)))
    rows = view.input("rows")
    rows.upsert(*((i, "old") for i in range(100)))
    assert len(calls) == 100
    calls.clear()
    rows.upsert((1, "new"), (2, "old"))
    assert calls == [(1, "new"), (2, "old")]
    calls.clear()
    rows.delete(1, 2)
    assert calls == []
    rows.apply({(3, "old"): -1, (3, "new"): 1})
    assert len(calls) == 2


def test_nobody_is_told_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    view = loaded(10)
    monkeypatch.setattr(
        type(view._subscribers), "post", lambda hub, epoch, moved: told.append(epoch) and None
    )
    view.step(rows=[Row(-1)])
    stop = view.on_change(lambda change: None)
    view.step(rows=[Row(-2)])
    stop()
    view.step(rows=[Row(-3)])
    stream = view.changes()
    view.step(rows=[Row(-4)])
    del stream
    view.step(rows=[Row(-5)])
    assert told == [3, 5]


def test_adding_to_what_waits_costs_the_change_and_not_what_waits() -> None:
    found = set()
    for n in SIZES:
        view = view_of(ROWS, check_input=False)
        stream = view.changes(limit=1)
        view.step(rows={Row(i): 1 for i in range(n)})
        view.step(rows={Row(-1): 1})
        waiting = stream._buffer[0]["rows"]
        found.add(hashes(view, {Row(-2): 1}))
        assert stream._buffer[0]["rows"] is waiting
    assert found == {2}


def test_a_dict_that_is_given_is_not_the_dict_that_is_used() -> None:
    view, given = view_of(ROWS), {Row(1): 1}
    change = view.step(rows=given)
    given.clear()
    assert change == ZSet({Row(1): 1})


def test_a_plan_is_looked_at_when_the_view_is_made_and_not_when_it_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node: Any = ROWS
    for _ in range(20):
        node = Concat(parts=(node, node), signs=(1, 1))
    view = View(Plan({"rows": node}), Passing(reads=True))
    monkeypatch.setattr(Plan, "nodes", None)
    view.step(rows=[Row(1)])
