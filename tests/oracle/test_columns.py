"""Programs in columns against batch, change by change: kernel = operator on every change."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.oracle.asked import follow_requests, program_of, tables
from tests.oracle.column_programs import Sale, Shop, epochs, program, sale, shop
from tests.oracle.interrupts import instants, interrupted
from tests.oracle.random_requests import RandomRequests

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.columnar import few, forgetting
from ebbflow.errors import AbsentRow, ChangeError
from ebbflow.flow.plan import Plan
from ebbflow.flow.running import planned
from ebbflow.kernel import undisturbed
from ebbflow.kernel.compiled import compiled
from ebbflow.kernel.words import Texts
from ebbflow.record import record
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))


def in_columns(plan: Plan, seen: Counter[str], **options: Any) -> Any:
    view = run(plan, columns=True, **options)
    for stage in view._program.machine.stages:
        seen[type(stage).__name__] += 1
    return view


def gave_up(view: Any) -> list[str]:
    stages = view._program.machine.stages
    return [stage.given_up for stage in stages if stage.in_columns and stage.given_up]


MOST, KEPT = few.FEW, forgetting.MANY


@pytest.fixture(autouse=True)
def few_rows_again() -> Iterator[None]:
    yield
    few.FEW, forgetting.MANY = MOST, KEPT


def followed(seeds: range, seen: Counter[str]) -> None:
    for seed in seeds:
        random = Random(seed)
        few.FEW = random.choice([0, MOST])
        forgetting.MANY = KEPT if seed % 2 else -100  # texts are forgotten after every epoch
        plan = planned({"output": program(random).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.02, 0.2])
        view = follow(
            lambda plan, check=check: in_columns(plan, seen, check_input=check),  # type: ignore[misc]
            plan, epochs(random, list(plan.sources), 10, hard),
        )  # fmt: skip
        seen.update(gave_up(view))


def test_oracle_programs_in_columns_equal_batch() -> None:
    seen: Counter[str] = Counter()
    followed(range(100 * MORE), seen)
    for each in ("Linear", "Reduce", "Arrange", "Join", "Group"):
        assert seen[f"Column{each}Stage"] > 4, seen
    assert seen["a row that Python would refuse, or an int of more than 64 bits"] > 0


def test_oracle_different_values_of_some_rows_in_columns_equal_batch() -> None:
    seen: Counter[str] = Counter()
    some: list[Any] = [lambda r: r.price > 1, lambda r: r.paid, lambda r: r.city != "" and r.id]
    for seed in range(40 * MORE):
        random = Random(seed)
        forgetting.MANY = KEPT if seed % 2 else -100
        fields = random.sample(["city", "tax", "rate", "price", "day"], 3)
        named = {
            f"of_{each}": ef.count_distinct(each).where(random.choice(some)) for each in fields
        }
        if random.random() < 0.5:
            named |= {"twice": ef.count_distinct("id").where(some[0]).where(random.choice(some))}
        named |= {"n": ef.count().where(random.choice(some)), "sum": ef.sum("price")}
        sales = ef.Input("sales", Sale)
        grouped: Any = sales.group_by("city") if random.random() < 0.7 else sales
        plan, hard = planned({"output": grouped.agg(**named).node}), random.choice([0, 0.02, 0.2])
        changes = epochs(random, ["sales"], 12, hard)
        seen.update(gave_up(follow(lambda plan: in_columns(plan, seen), plan, changes)))
    assert seen["ColumnGroupStage"] == 40 * MORE, seen
    assert seen["a sum of too many bits"] > 0, seen


def test_oracle_requests_of_inputs_in_columns_give_what_batch_gives() -> None:
    done: Counter[str] = Counter()
    inputs: Counter[str] = Counter()
    for seed in range(110 * MORE):
        dice = Random(f"columns {seed}")
        asked = program_of(dice)
        view = asked.run(columns=True)
        inputs.update(type(state).__name__ for state in view._program.inputs.values())
        requests = RandomRequests(asked, dice)
        done += follow_requests(view, asked.plan, requests, 6, tables(requests, dice))
    assert all(done[verb] > 3 for verb in ("weights", "upsert", "delete", "replace")), done
    assert inputs["KeyedColumnInput"] > 3, inputs


@pytest.mark.parametrize("key", [None, "id"])
def test_a_value_asked_for_late_is_computed_from_columns(key: Any) -> None:
    sales = ef.Input("sales", Sale, key=key)
    twice = sales + sales.filter(lambda row: row.price > 2) - sales.distinct()
    view, expected = twice.run(columns=True), twice.run(columns=False)
    rows = {row.id: row for row in some(40)}.values()
    for each in (view, expected):
        each.step(sales=list(rows))
    assert view.value == expected.value != ZSet()
    with view.branch() as branch:
        branch.step(sales={next(iter(rows)): -1})
    assert view.value == expected.value
    view.step(sales={next(iter(rows)): -1})
    view.verify()


def test_upserts_of_tables_in_columns_are_those_of_rows() -> None:
    sales = ef.Input("sales", Sale, key="id")
    sums = sales.group_by("city").agg(n=ef.count(), sum=ef.sum("price"))
    view, expected = sums.run(columns=True), sums.run(columns=False)
    random = Random(5)
    for _ in range(20):
        rows = {row.id: row._replace(tax=1) for row in some(12, random.randrange(99))}
        table = ZSet.of(rows.values()).to_arrow(Sale, weights=False)
        assert view.step(sales=ef.upsert(table)) == expected.step(sales=ef.upsert(table))
        gone = random.sample(list(rows), 3)
        change = ef.delete(gone)
        assert view.step(sales=change) == expected.step(sales=change)
        there = expected.input("sales").value
        assert view.input("sales").value == there
        swap = dict.fromkeys(list(there)[:4], -1)
        swap |= {row._replace(price=row.price + 1): 1 for row in list(swap)[:2]}
        assert view.step(sales=swap) == expected.step(sales=swap)
        assert view.input("sales").get(5) == expected.input("sales").get(5)
        with pytest.raises(ef.errors.ChangeError):
            view.step(sales=[next(iter(view.input("sales").value))])
        view.verify()
    assert view._program.inputs["sales"].by_key is not None


@pytest.mark.parametrize("key", [None, "id"])
def test_texts_that_are_gone_are_forgotten_and_changes_that_were_given_keep_theirs(
    key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "MANY", 50)
    sales = ef.Input("sales", Sale, key=key)
    known = sales.group_by("city").agg(n=ef.count(), ids=ef.count_distinct("id"))
    starts = sales.select(start=lambda row: row.city[:5], id="id").distinct()
    joined = sales.join(sales.filter(lambda row: row.city != "never"), on="city", how="semi")
    plan = planned({"known": known.node, "starts": starts.node, "joined": joined.node})
    view, texts, given = run(plan, columns=True), [], []
    old: list[Sale] = []
    for epoch in range(40):
        new = [row._replace(id=at, city=f"{epoch}-{at}") for at, row in enumerate(some(20))]
        change = ZSet.of(new) - ZSet.of(old)
        table = change.to_arrow(Sale)
        given.append((view.step(sales=table), change))
        old = new
        texts.append(len(stage_texts(view).known))
    assert max(texts) < 250, texts
    assert "never" in stage_texts(view).known
    view.verify()
    for found, change in given:
        assert {row.city: weight for row, weight in found["joined"].items()} == {
            row.city: weight for row, weight in change.items()
        }
    assert view.value["known"] == known.run(columns=False).step(sales=old)


def stage_texts(view: Any) -> Texts:
    """The texts of a program in columns."""
    (texts,) = {stage.texts for stage in view._program.machine.stages if stage.in_columns}
    return texts


def has_tax(row: Any) -> bool:
    return row.tax is not None


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(
    "made",
    [ef.sum("tax"), ef.max("tax"), ef.median("tax"), ef.Reducer(0, lambda n, row: n + row.tax)],
    ids=["sum", "max", "median", "own"],
)
def test_a_second_condition_of_a_reducer_is_asked_of_rows_that_meet_the_first(
    made: Any, columns: bool
) -> None:
    sales = [row._replace(tax=row.id % 3 or None) for row in some(40)]
    taxed = [row for row in sales if row.tax is not None and row.tax > 1]
    reducer = made.where(has_tax).where(lambda row: row.tax > 1)
    view = ef.Input("sales", Sale).agg(x=reducer).run(columns=columns)
    view.step(sales=sales)
    assert [row.x for row in view.value] == [made(taxed)] == [reducer(sales)]
    view.verify()
    other = made.where(lambda row: row.tax > 1).where(has_tax)
    view = ef.Input("sales", Sale).agg(x=other).run(columns=columns)
    with pytest.raises(ef.errors.FunctionFailed):
        view.step(sales=sales)


def test_a_condition_on_a_part_of_a_row_comes_before_one_on_the_row() -> None:
    pairs = [("a", None), ("a", 5), ("b", 0)]
    reducer = ef.count().where(lambda n: n is not None).on(lambda pair: pair[1])
    reducer = reducer.where(lambda pair: pair[1] > 1)
    assert reducer(pairs) == 1
    view = ef.Input("pairs", tuple).agg(n=reducer).run()
    assert view.step(pairs=pairs) == ZSet({(1,): 1})
    view.verify()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_oracle_thousands_of_programs_in_columns_equal_batch(part: int) -> None:
    seen: Counter[str] = Counter()
    followed(range(1000 + 400 * part, 1400 + 400 * part), seen)
    assert seen["a sum of too many bits"] > 1


def test_oracle_any_program_may_be_asked_to_run_in_columns() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40 * MORE):
        grown = random_program(seed)
        follow(lambda plan: in_columns(plan, seen), grown, random_epochs(grown, seed, 5))
    assert seen["ColumnLinearStage"] > 2
    assert seen["KeyedStage"] > 10


def arrays(table: Any) -> Any:
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.mark.parametrize("form", [lambda table: table, lambda table: table.to_pandas(), arrays])
def test_oracle_tables_of_any_library_make_the_same_columns(form: Any) -> None:
    for seed in range(6):
        random = Random(seed)
        joined = ef.Input("sales", Sale).filter(lambda r: r.price > 0)
        joined = joined.join(ef.Input("shops", Shop), on="city")
        grouped = joined.group_by("city", "owner").agg(n=ef.count(), sum=ef.sum("price"))
        views = [grouped.run(columns=True), grouped.run(columns=False)]
        for epoch in epochs(random, ["sales", "shops"], 8, 0):
            sales, shops = epoch.get("sales", ZSet()), epoch.get("shops", ZSet())
            tables = {
                "sales": sales.map(lambda r: r._replace(tax=1)).to_arrow(Sale),
                "shops": shops.map(lambda r: r._replace(score=0.5)).to_arrow(Shop),
            }
            changes = [view.step({n: form(t) for n, t in tables.items()}) for view in views]
            assert changes[0] == changes[1]
            assert views[0].value == views[1].value
        assert not gave_up(views[0])


def test_texts_in_an_array_of_objects_are_texts_and_no_numbers() -> None:
    """Also those that look like numbers."""
    cities = ef.Input("cities", record("City", name=str, size=int)).filter(lambda c: c.size > 0)
    table = {"name": np.array(["1", "0", "Rome"], object), "size": np.array([1, 2, 3])}
    given = [cities.run(columns=how).step(cities=table) for how in (True, False)]
    assert given[0] == given[1]
    assert sorted(name for name, _ in given[0]) == ["0", "1", "Rome"]


def totals(**options: Any) -> Any:
    return ef.Input("sales", Sale).group_by("city").agg(n=ef.count(), sum=ef.sum("price")).run(
        **options
    )  # fmt: skip


def some(count: int, seed: int = 0) -> ZSet[Any]:
    random = Random(seed)
    return ZSet.of(sale(random, 0) for _ in range(count))


def test_no_row_is_made_where_tables_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from ebbflow.kernel import columns

    view, expected = totals(columns=True), totals(columns=False)
    table = some(500).to_arrow(Sale, weights=True)
    right = expected.step(sales=table).to_arrow()
    monkeypatch.setattr(columns, "decoded", None)
    change = view.step(sales=table).to_arrow()
    assert sorted(change.to_pylist(), key=str) == sorted(right.to_pylist(), key=str)
    again = view.step(sales=table.set_column(7, "__weight", pa.array(-np.array(table["__weight"]))))
    assert set(again.to_arrow()["__weight"].to_pylist()) == {-1}
    assert view.value.to_arrow().num_rows == 0


@pytest.mark.parametrize("how", [True, False])
def test_changes_and_values_are_given_as_arrays(how: bool) -> None:
    sales = ef.Input("sales", Sale).filter(lambda r: r.price > 0)
    view = sales.run(columns=how)
    rows = {row._replace(rate=0.5): n + 1 for n, row in enumerate(some(20))}
    change = view.step(sales=rows)
    arrays = change.to_numpy()
    kinds = {name: array.dtype.kind for name, array in arrays.items()}
    assert kinds == {"id": "i", "city": "O", "price": "i", "tax": "O", "rate": "f", "day": "M",
                     "paid": "b", "__weight": "i"}  # fmt: skip
    listed = zip(*[array.tolist() for array in arrays.values()], strict=True)
    assert {Sale(*row): weight for *row, weight in listed} == dict(change.items())
    assert not any(array.flags.writeable for array in arrays.values())
    assert len(view.value.to_numpy()["id"]) == sum(view.value._weights.values())
    assert {len(array) for array in view.step(sales=[]).to_numpy().values()} == {0}
    back = view.step(sales={**arrays, "__weight": -arrays["__weight"]})
    assert back == -change


def test_arrays_given_are_not_kept_and_those_taken_not_written_to() -> None:
    sales = ef.Input("pairs", record("Pair", a=int, b=int)).filter(lambda r: r.a > 0)
    view = sales.run(columns=True)
    given = {"a": np.array([1, 2, 3]), "b": np.array([5, 6, 7])}
    change = view.step(pairs=given)
    given["a"][:] = 9
    assert sorted(change) == [(1, 5), (2, 6), (3, 7)]
    table = pa.table({"a": [4, 5], "b": [1, 1], "__weight": [1, -(2**31) - 1]})
    with pytest.raises(AbsentRow):
        view.step(pairs=table)
    smallest = pa.table({"a": [4, -(2**63)], "b": [1, 1]})
    assert sorted(view.step(pairs=smallest)) == [(4, 1)]
    view.verify()


def test_a_large_first_table_has_a_view_run_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from ebbflow.engine.runtime.columnar import program

    monkeypatch.setattr(program, "MANY", 100)
    large, small = totals(), totals()
    table = some(200).to_arrow(Sale, weights=False)
    large.step(sales=table)
    small.step(sales=table.slice(0, 50))
    small.step(sales=table.slice(50))
    assert "in columns" in large.explain()
    assert "in columns" not in small.explain()
    assert large.value == small.value
    assert "in columns" not in totals(columns=False).explain()


def test_explain_says_what_is_in_columns_and_why_not() -> None:
    sales = ef.Input("sales", Sale)
    view = sales.group_by("city").agg(top=ef.median("price")).filter(lambda r: r.top > 1).run(
        columns=True
    )  # fmt: skip
    assert "in rows: there is no kernel for median('price')" in view.explain()
    view = sales.group_by("city").agg(top=ef.max("price")).run(columns=True)
    assert "in columns" in view.explain()


def test_a_filter_that_cannot_be_read_is_called_with_the_fields_that_it_asks_for() -> None:
    sales = ef.Input("sales", Sale)
    seen: list[Any] = []

    def wanted(row: Any) -> bool:
        seen.append((row.city, row.price))
        return 6 // (row.price - 100) < 0

    view = sales.filter(lambda r: r.price > 0).filter(wanted).group_by("city").agg(n=ef.count())
    columns, rows = view.run(columns=True), view.run(columns=False)
    assert "in rows" not in columns.explain()
    table = some(60).to_arrow(Sale, weights=True)
    assert columns.step(sales=table) == rows.step(sales=table)
    assert all(price > 0 for _, price in seen)
    before = columns.value
    with pytest.raises(ef.errors.FunctionFailed):
        columns.step(sales=[row._replace(price=100) for row in some(20)])
    assert columns.value == before
    assert columns.step(sales=-some(60)) == rows.step(sales=-some(60))
    whole = sales.filter(lambda r: len({*r}) > 2).run(columns=True)
    why = " ".join(whole.explain().split())
    assert "in rows:" in why
    assert "is a function that could not be read" in why


def test_explain_says_why_nothing_is_in_columns() -> None:
    view = ef.Input("sales", Sale).group_by("city").agg(m=ef.median("price")).run(columns=True)
    assert "in rows: there is no kernel for" in view.explain()
    view.step(sales=some(9))
    view.verify()


def test_rows_take_over_where_columns_cannot_go_on_and_nothing_is_lost() -> None:
    view, expected = totals(columns=True), totals(columns=False)
    rows = some(50)
    large = next(iter(rows))._replace(price=2**70)
    for change in (rows, ZSet.of([large]), -rows, ZSet({large: -1})):
        assert view.step(sales=change) == expected.step(sales=change)
        assert view.value == expected.value
    assert gave_up(view) == ["an int of more than 64 bits"]
    assert "in rows, since an int of more than 64 bits came" in view.explain()


def test_a_refused_epoch_leaves_columns_as_they_were() -> None:
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    joined = sales.join(shops, on="city")
    outputs = ef.program(
        joined=joined, sums=joined.group_by("city").agg(n=ef.sum("price")),
        odd=joined.map(lambda r: 1 // (r.price - 100)),
    )  # fmt: skip
    view = outputs.run(columns=True)
    random = Random(3)
    view.step(sales=some(60), shops=[shop(random, 0) for _ in range(9)])
    before = view.value
    wrong = sale(random, 0)._replace(price=100, city="Rome", id=99)
    rome = shop(random, 0)._replace(city="Rome", size=77)
    gone = next(iter(view.input("sales").value))
    with pytest.raises(ef.errors.FunctionFailed):
        view.step(sales={wrong: 1, gone: -1}, shops=[rome])
    assert view.value == before
    view.verify()
    with pytest.raises(AbsentRow):
        view.step(sales={wrong: -1}, shops=[rome])
    assert view.value == before
    view.step(sales={gone: -1}, shops=[rome])
    view.verify()


@pytest.mark.parametrize("apart", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_columns_done_or_not_done(apart: int) -> None:
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop, key=("city", "size"))
    joined = sales.join(shops, on="city")
    view = ef.program(
        sums=joined.group_by("city").agg(n=ef.count(), sum=ef.sum("price")),
        alone=sales.join(shops, on="city", how="anti").select("city").distinct(),
    ).run(columns=True)  # fmt: skip
    random = Random(apart)
    hit = {True: 0, False: 0}
    places = {shop(random, 0)._replace(city="Rome", size=n, score=0.5) for n in range(3)}
    view.step(sales=some(6, 1), shops=list(places))
    for moment in instants(1, 100_000, apart):
        there = view.input("sales").value
        change = {"sales": some(3, moment) - ZSet.of(list(there)[:3]), "shops": _swapped(view)}
        before = view.epoch
        if not interrupted(lambda change=change: view.step(change), moment, published=False):  # type: ignore[misc]
            break
        hit[view.epoch > before] += 1
        view.verify()
    assert hit[False] > 10
    assert hit[True] > 0 or apart > 1


@pytest.mark.parametrize("apart", [211, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_while_rows_take_over_from_columns_loses_nothing(apart: int) -> None:
    sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
    joined = sales.join(shops, on="city")
    program = ef.program(
        sums=sales.group_by("city").agg(n=ef.count(), sum=ef.sum("price")),
        groups=joined.group_by("city").agg(low=ef.min("price")),
        alone=sales.join(shops, on="city", how="anti").distinct(),
    )  # fmt: skip
    first = sale(Random(1), 0)._replace(city="Rome", price=2)
    place = shop(Random(1), 0)._replace(city="Rome", size=1)
    large = {"sales": [first._replace(price=2**63), first._replace(city="Oslo")], "shops": [place]}
    for moment in instants(1, 100_000, apart):
        view = program.run(columns=True)
        view.step(sales=[first], shops=[place])
        cut = interrupted(lambda: view.step(large), moment, published=False)  # noqa: B023
        if view.epoch == 1:
            view.step(large)
        view.step(sales=[first._replace(city="Oslo", price=5)])
        view.verify()
        assert {group.n for group in view.value["sums"]} == {2}
        if not cut:
            break
    assert moment > 9 * apart
    assert "in rows, since" in view.explain()


def test_kernels_are_compiled_where_no_interrupt_comes() -> None:
    interrupted, finished = Event(), Event()

    def compiling() -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        interrupted.wait(300)
        finished.set()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    was = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            undisturbed(compiling)
    finally:
        signal.signal(signal.SIGALRM, was)
    assert not finished.is_set()
    interrupted.set()
    assert finished.wait(300), "it goes on"
    with pytest.raises(ZeroDivisionError):
        undisturbed(divmod, 1, 0)
    compiler: Any = compiled(lambda n: n)
    assert compiler._compile_for_args.func is undisturbed


def test_an_interrupt_leaves_no_text_whose_number_is_unknown() -> None:
    moment = 1
    while True:
        texts = Texts()
        texts.words(["ebb"])
        cut = interrupted(lambda: texts.words(["flow", "ebb", "tide"]), moment, published=False)  # noqa: B023
        texts.words(["tide", "moon", "flow"])
        assert {texts.known[number]: number for number in texts.numbers.values()} == texts.numbers
        if not cut:
            break
        moment += 1
    assert moment > 10


def _swapped(view: Any) -> ZSet[Any]:
    old = next(iter(view.input("shops").value))
    return ZSet({old: -1, old._replace(city="Oslo" if old.city == "Rome" else "Rome"): 1})


def test_a_branch_takes_rows() -> None:
    view = totals(columns=True)
    view.step(sales=some(30))
    with view.branch() as branch:
        branch.step(sales=some(5, 1))
        assert branch.compare() != ZSet()
    view.verify()
    assert "in columns" not in view.explain()
    assert view.get("Rome") in set(view.value)


def test_state_comes_back_when_rows_leave() -> None:
    view = totals(columns=True, check_input=False)
    (stage,) = view._program.machine.stages
    for seed in range(30):
        rows = some(100, seed).map(lambda row, seed=seed: row._replace(city=f"{seed}"))  # type: ignore[misc]
        view.step(sales=rows)
        view.step(sales=-rows)
    assert len(stage.groups) == 0
    assert len(stage.groups.table.keys) < 100


@pytest.mark.parametrize("columns", [True, None], ids=["asked for", "by a large table"])
def test_a_difference_may_be_grouped_in_columns(
    columns: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What checks that no row is owed gives rows of the difference, and not those of the groups."""
    monkeypatch.setattr("ebbflow.engine.runtime.columnar.program.MANY", 100)
    sales, gone = ef.Input("sales", Sale), ef.Input("gone", Sale)
    left = (sales - gone).group_by("city").agg(sum=ef.sum("price"), best=ef.max("price"))
    rows = some(300)
    view, expected = left.run(columns=columns), left.run(columns=False)
    for each in (view, expected):
        each.step(sales=rows.to_arrow(Sale), gone=ZSet.of([*rows][:40]))
        each.step(gone=ZSet.of([*rows][40:50]))
    assert view.value == expected.value != ZSet()
    assert any(stage.in_columns for stage in view._program.machine.stages)
    with pytest.raises(ChangeError, match="took away more"):
        view.step(gone=ZSet.of([*rows][:1]))
    view.verify()
