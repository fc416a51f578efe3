"""Views with their state on disk against batch: whatever is evicted, flushed or reopened between.

`reopened` closes views and opens them again between epochs.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.reopened import OPTIONS, folder, followed

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime import durable
from ebbflow.engine.runtime.same_program import READ
from ebbflow.errors import EbbflowError, StateError
from ebbflow.flow.source import Input
from ebbflow.operator import aggregate
from ebbflow.state.spine import Store
from ebbflow.testing import VERB_NAMES, random_program
from ebbflow.testing.functions import Choices, RowShape
from ebbflow.testing.programs import Stock
from ebbflow.testing.reducers import MAKERS, SORTS
from ebbflow.zset import ZSet

# ---- random programs ----


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_oracle_views_on_disk_equal_batch(options: dict[str, Any]) -> None:
    for seed in range(3):
        followed(random_program(seed), Random(f"{options} {seed}"), **options)


@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step_on_disk(kind: str) -> None:
    for seed, options in enumerate([{"memory": 1}, {"keep_epochs": 3}]):
        dice = Random(f"{kind} {seed}")
        followed(random_program(dice, verbs=[kind], size=2), dice, epochs=6, **options)


def test_oracle_a_large_state_is_read_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "EAGER", -1)  # every state is large
    for seed in range(6):
        followed(random_program(seed), Random(f"in part {seed}"), epochs=6)


def test_a_large_state_is_opened_without_reading_it_and_can_have_branches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "EAGER", 100)
    with BY_CITY.run(path=tmp_path) as view:
        view.input("people").upsert(*[Person(i, f"city {i % 50}") for i in range(200)])
        value = view.value
    with BY_CITY.run(path=tmp_path) as view:
        rows = view._program.inputs["people"].rows
        assert not rows
        view.input("people").upsert(Person(3, "Rome"))
        assert len(rows) == 1
        with view.branch() as branch:
            assert len(rows) == 200
            branch.step(people={Person(3, "Rome"): -1})
        view.input("people").upsert(Person(3, "city 3"))
        assert view.value == value
        view.verify()


@pytest.mark.parametrize("sort", SORTS)
def test_reducers_of_every_sort_come_back_from_disk(sort: str) -> None:
    items = Input("items", Stock)
    for seed, options in enumerate([{"memory": 1}, {"keep_epochs": 2}]):
        dice = Random(f"{sort} {seed}")
        made, _ = MAKERS[sort](RowShape.of_type(Stock), Choices(dice.randrange(1 << 24)))
        grouped = dice.choice([items, items.group_by("k"), items.group_by("k", "s")])
        reduced = grouped.reduce(made) if dice.randint(0, 1) else grouped.agg(x=made, y=made)
        followed(reduced, dice, **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_oracle_many_views_on_disk_equal_batch(options: dict[str, Any]) -> None:
    for seed in range(3, 33):
        followed(random_program(seed), Random(f"{options} {seed}"), epochs=12, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", VERB_NAMES)
def test_oracle_each_kind_of_step_on_disk_often(kind: str) -> None:
    for seed in range(2, 9):
        dice = Random(f"{kind} {seed}")
        options = dice.choice(OPTIONS)
        followed(random_program(dice, verbs=[kind], size=3), dice, epochs=10, **options)


# ---- what random programs do not reach ----


def test_state_of_another_format_is_refused_by_name() -> None:
    with folder() as path:
        with Store(path) as store:
            store.commit(0, {"format": READ[0] - 1, "parts": {}, "inputs": {}, "rows": {}})
        with pytest.raises(StateError, match="another version") as caught:
            Input("items", Stock).run(path=path)
        assert caught.value.facts["format"] == READ[0] - 1


def test_the_rows_that_a_merge_ranks_come_back_from_disk() -> None:
    best = aggregate(lambda a, b: a if a[0] >= b[0] else b)
    program = Input("pairs", tuple[int, int]).through(best, per=lambda pair: pair[1] % 3)
    rows = [(n, n % 7) for n in range(200)]
    with folder() as path:
        with program.run(path=path) as view:
            view.step(pairs=rows)
        for row in reversed(rows[-60:]):
            with program.run(path=path) as view:
                view.step(pairs={row: -1})
                rows.remove(row)
        kept = {row[1] % 3: row for row in rows}
        with program.run(path=path) as view:
            assert view.value == ZSet.of(list(kept.items()))


class Person(NamedTuple):
    id: int
    city: str | None


PEOPLE = Input("people", Person, key="id")
BY_CITY = PEOPLE.group_by("city").agg(n=ef.count(), ids=ef.set_of("id"))


@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 4}], ids=str)
def test_upserts_and_deletes_find_rows_that_are_on_disk(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    dice, there = Random(7), dict[int, Person]()
    view = BY_CITY.run(path=tmp_path, **options)
    for _ in range(40):
        if dice.random() < 0.2:
            view.close()
            view = BY_CITY.run(path=tmp_path, **options)
        if there and dice.random() < 0.3:
            gone = dice.sample(sorted(there), dice.randint(1, len(there)))
            view.input("people").delete(*gone)
            there = {key: row for key, row in there.items() if key not in gone}
        else:
            rows = [Person(dice.randrange(9), dice.choice(["Rome", "Oslo", None])) for _ in "abc"]
            view.input("people").upsert(*rows)
            there |= {row.id: row for row in rows}
        expected = evaluate(view.plan, {"people": ZSet.of(there.values())})
        assert view.value == expected["output"]
    with pytest.raises(EbbflowError, match="no row of this key"):
        view.input("people").delete(99)
    view.verify()
    view.close()


@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 4}], ids=str)
def test_a_refused_epoch_leaves_nothing_behind(tmp_path: Path, options: dict[str, Any]) -> None:
    numbers = Input("numbers", int)
    halves = numbers.map(lambda n: 100 // n).distinct()
    view = halves.run(path=tmp_path, **options)
    view.step(numbers=[1, 2])
    for bad in ({0: 1, 5: 1}, {1: -1, 7: -1}, {3: 1, 2: -2}):
        with pytest.raises(EbbflowError):
            view.step(numbers=bad)
        assert (view.epoch, view.value) == (1, ZSet.of([100, 50]))
    view.step(numbers=[5])
    view.close()
    view = halves.run(path=tmp_path, **options)
    assert (view.epoch, view.value) == (2, ZSet.of([100, 50, 20]))
    view.verify()
    view.close()


def test_rows_come_back_as_the_class_they_were(tmp_path: Path) -> None:
    class Local(NamedTuple):
        k: int
        v: int | None

    rows = Input("rows", Local)
    program = ef.program(rows=rows, kept=rows.filter(lambda r: r.k > 1).distinct())
    with program.run(path=tmp_path) as view:
        view.step(rows=[Local(1, None), Local(2, 5)])
    with program.run(path=tmp_path) as view:
        assert {type(row) for name in view for row in view[name].value} == {Local}
        assert view.input("rows").remove(Local(2, 5))["kept"] == ZSet({Local(2, 5): -1})


def test_an_epoch_that_is_not_retained_is_refused_and_says_which_are(tmp_path: Path) -> None:
    with PEOPLE.run(path=tmp_path, keep_epochs=2) as view:
        for i in range(5):
            view.input("people").upsert(Person(i, None))
        assert len(view.at(4)) == 4
        with pytest.raises(StateError, match=r"(?s)epoch 3 is not there.*\[4, 5\]"):
            view.at(3)


def test_two_containers_that_hold_the_same_are_kept_apart(tmp_path: Path) -> None:
    def by(table: list[int]) -> Any:
        return lambda n: (table[n % 2], n)

    def twins() -> Any:
        marked = numbers.map(by([0, 1]))
        return marked.join(numbers, left_on=lambda p: p[1], right_on=lambda n: n, select=max_of)

    numbers = Input("numbers", int)
    program = ef.program(one=twins(), two=twins())
    with program.run(path=tmp_path) as view:
        view.step(numbers=[1, 2, 2])
    with program.run(path=tmp_path, memory=1) as view:
        assert view.value["one"] == view.value["two"] == ZSet({(1, 1): 1, (0, 2): 4})
        view.step(numbers={2: -1})
        assert view.value["one"] == view.value["two"] == ZSet({(1, 1): 1, (0, 2): 1})
        view.verify()


def max_of(pair: tuple[int, int], n: int) -> tuple[int, int]:
    return pair if pair[1] >= n else (n, n)


def test_rows_that_cancel_on_the_way_to_a_group_leave_it_as_it_is(tmp_path: Path) -> None:
    items = Input("items", Stock)
    sums = items.map(lambda item: item.v, type=int).group_by(lambda v: v % 2).agg(n=ef.count())
    with sums.run(path=tmp_path, memory=1) as view:
        view.step(items=[Stock(1, 3, "a"), Stock(2, 4, "a")])
        view.step(items={Stock(1, 3, "a"): -1, Stock(9, 3, "b"): 1})
        assert view.value == ZSet.of([(1, 1), (0, 1)])
        view.step(items={Stock(9, 3, "b"): -1})
        assert view.value == ZSet.of([(0, 1)])
        view.verify()


def held(view: Any) -> int:
    return sum(len(part.contents) for part in view._program.parts)


def test_memory_stays_near_its_limit_however_much_is_there(tmp_path: Path) -> None:
    items = Input("items", Stock)
    joined = items.join(items, on="k", select=lambda a, b: (a.v, b.v))
    program = ef.program(joined=joined, sums=items.group_by("k").agg(total=ef.sum("v")))
    sizes = []
    with program.run(path=tmp_path, memory="200KB") as view:
        for i in range(60):
            view.step(items=[Stock(100 * i + n // 2, n, str(n)) for n in range(100)])
            sizes.append(held(view))
        assert max(sizes) < 3_000
        assert max(sizes[30:]) <= 1.2 * max(sizes[:30])
        view.verify()
    with program.run(path=tmp_path) as view:
        assert held(view) > 12_000


def test_groups_that_grow_are_let_go_too(tmp_path: Path) -> None:
    items = Input("items", Stock)
    joined = items.join(Input("tags", Stock), on="k", select=lambda a, b: (a.v, b.v))
    rows = 0
    with joined.run(path=tmp_path, memory="100KB") as view:
        for i in range(40):
            view.step(items=[Stock(n % 5, 100 * i + n, "") for n in range(100)])
            indices = [part for part in view._program.parts if part.layout == "bag"]
            rows = max(
                rows, sum(len(group) for part in indices for group in part.contents.values())
            )
    assert rows < 2_000


def test_options_need_a_path_and_memory_is_an_amount(tmp_path: Path) -> None:
    with pytest.raises(EbbflowError, match="only with a path"):
        PEOPLE.run(memory="1GB")
    with pytest.raises(EbbflowError, match="no amount of memory"):
        PEOPLE.run(path=tmp_path, memory="a lot")


class Measured(NamedTuple):
    at: float
    value: int


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("key", [None, "at"])
def test_every_nan_is_one_key_before_and_after(
    key: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    measured = Input("measured", Measured, key=key)
    program = measured.group_by("at").agg(total=ef.sum("value"), n=ef.count())

    def nan(value: int) -> Measured:
        return Measured(float("nan"), value)

    with program.run(path=tmp_path, **options) as view:
        view.step(measured=[nan(1)])
        if key is None:
            view.step(measured=[nan(2), Measured(1.0, 1)])
            view.step(measured={nan(1): -1, nan(4): 1})
        else:
            view.input("measured").upsert(nan(6), Measured(1.0, 1))
    with program.run(path=tmp_path, **options) as view:
        wanted = {f"Group(at=nan, total=6, n={1 if key else 2})", "Group(at=1.0, total=1, n=1)"}
        assert set(map(str, view.value)) == wanted
        view.verify()
        if key is None:
            view.input("measured").remove(nan(2), nan(4))
        else:
            view.input("measured").delete(float("nan"))
        assert set(map(str, view.value)) == {"Group(at=1.0, total=1, n=1)"}
        view.verify()


def test_a_row_that_is_nested_too_deep_for_the_disk_is_refused(tmp_path: Path) -> None:
    row: Any = ()
    for _ in range(600):
        row = (row,)
    with Input("rows", Any).distinct().run(path=tmp_path) as view:
        with pytest.raises(StateError, match="nested too deep, or holds itself"):
            view.step(rows=[row])
        view.step(rows=[1])
        assert view.value == ZSet({1: 1})
        view.verify()
