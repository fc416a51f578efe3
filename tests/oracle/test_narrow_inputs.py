"""Inputs that keep only what is read of their rows, against batch over whole rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.asked import follow_requests, program_of
from tests.oracle.column_programs import epochs, program
from tests.oracle.random_requests import RandomRequests
from tests.oracle.test_narrow_joins import PROGRAMS, row

import ebbflow as ef
from ebbflow.change import Insert, Text
from ebbflow.engine.batch import evaluate
from ebbflow.engine.local import run
from ebbflow.errors import AbsentRow, ChangeError, StateError, UnknownField
from ebbflow.flow.running import planned
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.zset import ZSet


def narrowed(view: Any) -> int:
    return sum(source.narrow is not None for source in view.plan.sources.values())


@pytest.mark.parametrize("columns", [False, None])
def test_oracle_random_programs_with_narrow_inputs_equal_batch(columns: bool | None) -> None:
    seen: Counter[bool] = Counter()
    for seed in range(60):
        random = Random(f"narrow {seed}")
        plan = planned({"output": program(random).node})
        check = random.random() < 0.6
        view = follow(
            lambda plan, check=check: run(plan, narrow=True, columns=columns, check_input=check),  # type: ignore[misc]
            plan, epochs(random, list(plan.sources), 8, 0.05),
        )  # fmt: skip
        seen[narrowed(view) > 0] += 1
    assert seen[True] > 20, seen


def test_oracle_programs_of_all_verbs_with_narrow_inputs_equal_batch() -> None:
    seen = 0
    for seed in range(120):
        random = Random(f"narrow {seed}")
        made = random_program(random, size=4)
        view = follow(lambda plan: run(plan, narrow=True), made, random_epochs(made, random, 6))
        seen += narrowed(view)
    assert seen > 10


@pytest.mark.parametrize("name", PROGRAMS)
def test_joins_over_narrow_inputs_are_what_recomputing_whole_rows_gives(
    name: str, tmp_path: Path
) -> None:
    random, program = Random(name), PROGRAMS[name]
    view = program.run(path=tmp_path, narrow=True)
    assert narrowed(view), name
    there: dict[str, ZSet[Any]] = {each: ZSet() for each in view.plan.sources}
    for number in range(30):
        change = {}
        for each, rows in there.items():
            gone = [old for old in rows if random.random() < 0.2]
            new = [row(random, each) for _ in range(random.randrange(4))]
            if each == "items":
                left = {old.id for old in rows if old not in gone}
                new = [*{item.id: item for item in new if item.id not in left}.values()]
            change[each] = ZSet.of(new) - ZSet({old: rows.weight(old) for old in gone})
            there[each] = rows + change[each]
        view.step(change)
        (expected,) = evaluate(program.plan, there).values()
        assert view.value == expected
        if number == 15:
            view.close()
            view = program.run(path=tmp_path, narrow=True)
            assert view.rebuilt == view.converted == ()
    view.close()


def test_oracle_requests_of_narrow_inputs_give_what_batch_gives() -> None:
    done: Counter[str] = Counter()
    seen = 0
    for seed in range(110):
        dice = Random(f"narrow {seed}")
        asked = program_of(dice)
        view = asked.run(narrow=True)
        seen += narrowed(view)
        done += follow_requests(view, asked.plan, RandomRequests(asked, dice), 6)
    assert all(done[verb] > 3 for verb in ("weights", "upsert", "delete", "replace")), done
    assert seen > 5


# ---- what comes in, and what is there ----


class Order(NamedTuple):
    id: int
    city: str
    price: int
    weight: str = "light"
    tags: list[str] = []


ORDERS = [Order(1, "Rome", 3), Order(2, "Oslo", 4, "heavy"), Order(3, "Rome", 5)]


def totals(key: Any = "id") -> Any:
    return ef.Input("orders", Order, key=key).group_by("city").agg(total=ef.sum("price"))


@pytest.mark.parametrize("key", [None, "id"])
def test_rows_dicts_and_tables_with_all_fields_or_without_those_that_nobody_reads(key: Any) -> None:
    whole = [each._asdict() for each in ORDERS]
    columns = {name: [each[name] for each in whole] for name in Order._fields}
    less = {name: columns[name] for name in ("id", "city", "price")}
    signed = less | {"__weight": [1, 1, 1]}
    for given in (ORDERS, dict.fromkeys(map(_hashable, ORDERS), 1), whole, columns, less, signed):
        view = totals(key).run(narrow=True)
        view.step(orders=given)
        assert {tuple(each) for each in view.value} == {("Rome", 8), ("Oslo", 4)}
        kept = view.input("orders").value
        assert {each._fields for each in kept} == {("id", "city", "price") if key else
                                                   ("city", "price")}  # fmt: skip
        view.verify()
    with pytest.raises(ChangeError, match="note"):
        totals(key).run(narrow=True).step(orders=[whole[0] | {"note": "x"}])
    with pytest.raises(ChangeError, match="price"):
        totals(key).run(narrow=True).step(orders={"id": [1], "city": ["Rome"]})


def _hashable(row: Order) -> Order:
    return row._replace(tags=())  # type: ignore[arg-type]


def test_a_row_is_what_is_read_of_it_when_it_is_replaced_taken_away_or_looked_up() -> None:
    view = totals().run(narrow=True)
    view.step(orders=ORDERS)
    assert view.input("orders").get(2) == (2, "Oslo", 4)
    assert not view.input("orders").upsert(Order(2, "Oslo", 4, "light", ["new"]))
    assert view.input("orders").upsert(Order(2, "Oslo", 5)) == ZSet(
        {("Oslo", 4): -1, ("Oslo", 5): 1}
    )
    with pytest.raises(AbsentRow):
        view.step(orders={_hashable(Order(2, "Oslo", 4, "heavy")): -1})
    view.step(orders={_hashable(Order(2, "Oslo", 5, "another")): -1})
    assert 2 not in view.input("orders")
    assert "without tags, weight" in view.explain()
    changed = {"id": 3, "city": "Rome", "price": 7, "weight": "d", "tags": [], "op": "u"}
    gone = dict.fromkeys(Order._fields) | {"id": 1, "op": "d"}
    view.step(orders=ef.feed([changed, gone]))
    assert view.value == ZSet({("Rome", 7): 1})
    before = {"id": 3, "city": "Rome", "price": 7, "weight": "x", "tags": []}
    images = [{"op": "u", "before": before, "after": before | {"price": 8}}]
    view.step(orders=ef.feed(images))
    assert view.value == ZSet({("Rome", 8): 1})
    view.verify()


def test_what_nobody_can_know_is_kept_whole() -> None:
    orders = ef.Input("orders", Order, key="id")
    opaque = orders.map(lambda row: hash(row), type=int)
    for each in (orders, orders.distinct(), opaque, orders.filter("price")):
        assert not narrowed(each.run(narrow=True))
    by = ef.Input("orders", Order, key=lambda row: repr(row)).group_by("city").agg(n=ef.count())
    assert not narrowed(by.run(narrow=True))


class Doc(NamedTuple):
    id: int
    body: Text
    note: str


def test_texts_of_narrow_rows_are_edited_and_fields_that_are_not_kept_are_no_fields() -> None:
    docs = ef.Input("docs", Doc, key="id").select("id", "body")
    view = docs.run(narrow=True)
    view.step(docs=[{"id": 1, "body": "ebb", "note": "x"}])
    view.input("docs").edit(1, "body", Insert(3, " flow"))
    assert view.value == ZSet({(1, Text("ebb flow")): 1})
    view.input("docs").upsert(Doc(1, "ebb flows", "y"))  # type: ignore[arg-type]
    assert type(view.input("docs").get(1).body) is Text
    for refused in (
        lambda: view.input("docs").edit(1, "note", Insert(0, "x")),
        lambda: view.step(docs=ef.upsert([Doc(1, Text("a"), "b")], order="note")),
    ):
        with pytest.raises(UnknownField, match="no field 'note'"):
            refused()
    assert view.value == ZSet({(1, Text("ebb flows")): 1})
    view.verify()


# ---- on disk, when the program changes ----


def test_a_program_that_reads_more_than_was_kept_is_refused_and_one_that_reads_less_goes_on(
    tmp_path: Path,
) -> None:
    orders = ef.Input("orders", Order, key="id")
    by_city, by_weight = (
        orders.group_by(name).agg(total=ef.sum("price")) for name in ("city", "weight")
    )
    both = ef.program(cities=by_city, weights=by_weight)
    with ef.program(cities=by_city).run(path=tmp_path, narrow=True) as view:
        view.step(orders=ORDERS)
    with pytest.raises(StateError, match="'weight' is read now, and was not kept") as refused:
        both.run(path=tmp_path, narrow=True)
    assert "narrow=True" in str(refused.value)
    with pytest.raises(StateError, match="is read now, and was not kept"):  # no default is made up
        both.run(path=tmp_path)
    with ef.program(cities=by_city).run(path=tmp_path, narrow=True) as view:
        assert view.value == ZSet({("Rome", 8): 1, ("Oslo", 4): 1})


def test_state_with_whole_rows_goes_on_with_narrow_ones(tmp_path: Path) -> None:
    orders = ef.Input("orders", Order, key="id")
    by_city, by_weight = (
        orders.group_by(name).agg(total=ef.sum("price")) for name in ("city", "weight")
    )
    with ef.program(cities=by_city, weights=by_weight).run(path=tmp_path) as view:
        view.step(orders=ORDERS)
    for outputs, gone in (
        ({"cities": by_city, "weights": by_weight}, "tags"), ({"cities": by_city}, "weight"),
    ):  # fmt: skip
        with ef.program(**outputs).run(path=tmp_path, narrow=True) as view:
            assert any(f"{gone} is kept no longer" in each for each in view.converted)
            assert view["cities"].value == ZSet({("Rome", 8): 1, ("Oslo", 4): 1})
            view.verify()
    with ef.program(cities=by_city).run(path=tmp_path, narrow=True) as view:
        view.step(orders={_hashable(ORDERS[0]): -1})
        assert view.value == ZSet({("Rome", 5): 1, ("Oslo", 4): 1})
