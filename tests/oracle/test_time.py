"""Sessions with their results, and clocks: beside the plain definition, and beside DuckDB."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import duckdb
import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import ChangeError, CheckError, CompositionError
from ebbflow.laws import check
from ebbflow.operator.within import NOW, ROW, within_rows
from ebbflow.reducer.sessions import KEY, SessionResults
from ebbflow.state.search import rank_at, totals
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    """Something sold."""

    who: str
    at: int
    price: int


SALES = ef.Input("sales", Sale)
VISITS = SALES.session("at", 5, per="who").group_by("who", "window_start", "window_end")
RESULTS = VISITS.agg(n=ef.count(), total=ef.sum("price"), best=ef.max("price"), low=ef.min("price"))


def itself(x: Any) -> Any:
    return x


def sale(dice: Random) -> Sale:
    return Sale(dice.choice("ab"), dice.randrange(120), dice.randrange(9))


def edits(dice: Random, there: list[Sale], most: int = 6) -> ZSet[Any]:
    """Rows that come and go, of those that are there."""
    pairs = []
    for _ in range(dice.randint(1, most)):
        if there and dice.random() < 0.4:
            pairs.append((there.pop(dice.randrange(len(there))), -1))
        else:
            there.append(sale(dice))
            pairs.append((there[-1], 1))
    return ZSet(pairs)


# ---- sessions ----


def test_session_results_fulfil_the_laws_of_operators() -> None:
    runs = [ZSet.of([1, 2, 7, 8]), ZSet.of([1, 9]), ZSet.of([4]), ZSet({3: 2, 20: 1})]
    changes = [ZSet({5: 1}), ZSet({4: 1, 6: 1}), ZSet({2: -1}), ZSet({8: 1, 7: 1}), ZSet({3: -1})]
    both = ef.count() & ef.sum() & ef.max() & ef.min() & ef.mean()
    check(SessionResults(itself, 3, None, both), inputs=runs, changes=changes, examples=6)
    third = SessionResults(
        itself, 3, lambda x: x % 3, ef.count(), front=(KEY, 0), width=1, spread=False
    )
    check(third, inputs=runs, changes=changes, examples=6)


class ForgetsToJoin(SessionResults):
    """Gives the runs before and behind a time as sessions of their own."""

    def touched(self, tree: Any, times: Any) -> Any:
        found = []
        for time in times:
            before, behind = totals(tree, rank_at(tree, time), self.monoid.merge)
            found += [*(before[-1:] if before else ()), *(behind[:1] if behind else ())]
        return list(dict.fromkeys(found))


def test_sessions_that_are_not_joined_are_refuted() -> None:
    with pytest.raises(ef.LawBroken):
        check(
            ForgetsToJoin(itself, 3, None, ef.count()),
            inputs=[ZSet.of([1, 4])],
            changes=[ZSet({2: 1}), ZSet({8: 1})],
            examples=10,
        )


SESSIONS_SQL = """
    SELECT who, min(t), max(t) + 5, count(*), sum(price), max(price), min(price) FROM (
        SELECT *, sum(jump) OVER (PARTITION BY who ORDER BY t RANGE UNBOUNDED PRECEDING) AS n
        FROM (SELECT *, coalesce(t - lag(t) OVER (PARTITION BY who ORDER BY t) > 5, TRUE)::INT
                        AS jump FROM sales))
    GROUP BY who, n
"""


def test_results_of_sessions_agree_with_duckdb_change_by_change() -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE sales (who TEXT, t INT, price INT)")
        for seed in range(4):
            dice, there, view = Random(seed), list[Sale](), RESULTS.run()
            assert "session reduce" in view.explain()
            for _ in range(12):
                view.step(sales=edits(dice, there))
                db.execute("DELETE FROM sales")
                if there:
                    db.executemany("INSERT INTO sales VALUES (?, ?, ?)", there)
                found = db.execute(SESSIONS_SQL).fetchall()
                assert sorted(map(tuple, view.value)) == sorted(found)


@pytest.mark.parametrize(
    ("made", "one"),
    [
        (VISITS.agg(n=ef.count()), True),
        (VISITS.agg(n=ef.count("price"), spent=ef.sum(lambda sale: sale.price)), True),
        (VISITS.reduce(ef.mean("price")), True),
        (VISITS.agg(all=ef.collect("price")), False),
        (VISITS.agg(spread=ef.median("price")), False),
        (VISITS.agg(until=ef.max("window_end")), False),
        (VISITS.agg(left=ef.sum(lambda sale: sale.window_end - sale.at)), False),
        (VISITS.agg(rough=ef.naive_sum("price")), False),
        (SALES.session("at", 5, per="who").group_by("window_start").agg(n=ef.count()), False),
        (SALES.session("at", 5).group_by("who", "window_start").agg(n=ef.count()), False),
        (SALES.session("at", 5).group_by("window_start").agg(n=ef.count()), True),
        (SALES.session("at", 5, per=("who", "price")).group_by("price", "who", "window_start")
         .agg(n=ef.count()), True),
        (SALES.session("at", 5, per=lambda sale: sale.price % 2)
         .group_by("window_start", odd=lambda sale: sale.price % 2).agg(n=ef.count()), True),
    ],
)  # fmt: skip
def test_only_sessions_whose_groups_they_are_become_one_node(made: Any, one: bool) -> None:
    view = made.run()
    assert ("session reduce" in view.explain()) == one
    dice, there = Random(1), list[Sale]()
    for _ in range(6):
        view.step(sales=edits(dice, there))
        assert view.verify()


# ---- clocks ----


def test_within_follows_rows_and_the_clock_as_computed_from_scratch() -> None:
    for seed in range(20):
        dice, of = Random(seed), within_rows(itself, 25)
        rows: list[Any] = []
        now, x = None, ZSet[Any]()
        live, y = of.open(x), of.f(x)
        for _ in range(25):
            change = ZSet[Any]()
            for _ in range(dice.randint(0, 4)):
                if rows and dice.random() < 0.4:
                    change -= ZSet.of([(ROW, rows.pop(dice.randrange(len(rows))))])
                else:
                    rows.append(dice.randrange(100))
                    change += ZSet.of([(ROW, rows[-1])])
            if dice.random() < 0.7:
                later = (now or 0) + dice.randrange(15)
                change += ZSet.of([(NOW, later)]) - ZSet.of([(NOW, now)] if now is not None else [])
                now = later
            elif now is not None and dice.random() < 0.2:
                change -= ZSet.of([(NOW, now)])
                x, y = x + change, y + live.send(change)
                assert not y
                change = ZSet.of([(NOW, now)])
            y += live.send(change)
            x += change
            assert y == of.f(x)
            assert of.invariant(x, live.state)


def test_a_filter_on_time_agrees_with_duckdb() -> None:
    now = ef.clock("now")
    view = (
        SALES.within("at", now, 30).group_by("who").agg(n=ef.count(), spent=ef.sum("price")).run()
    )
    query = """SELECT who, count(*), sum(price) FROM sales
               WHERE t <= ? AND t > ? - 30 GROUP BY who"""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE sales (who TEXT, t INT, price INT)")
        dice, there, time = Random(3), list[Sale](), 0
        for _ in range(30):
            time += dice.randrange(8)
            view.step(sales=edits(dice, there), now=time)
            db.execute("DELETE FROM sales")
            if there:
                db.executemany("INSERT INTO sales VALUES (?, ?, ?)", there)
            assert sorted(map(tuple, view.value)) == sorted(
                db.execute(query, [time, time]).fetchall()
            )
        assert view.verify()


def test_the_state_of_a_clock_is_found_again_on_disk(tmp_path: Path) -> None:
    recent = SALES.within("at", ef.clock("now"), 10)
    for limit in ({}, {"memory": "1kB"}):
        path = tmp_path / str(len(limit))
        with recent.run(path=path, **limit) as view:
            view.step(sales=[Sale("a", at, 1) for at in range(0, 40, 2)], now=12)
            assert sorted(row.at for row in view.value) == [4, 6, 8, 10, 12]
        with recent.run(path=path, **limit) as view:
            with pytest.raises(ChangeError, match="cannot go back"):
                view.input("now").set(11)
            view.tick(30)
            view.input("sales").remove(Sale("a", 2, 1), Sale("a", 26, 1))
            assert sorted(row.at for row in view.value) == [22, 24, 28, 30]
            assert view.verify()


def test_any_collection_of_one_row_is_a_clock_but_it_may_not_go_back() -> None:
    latest = SALES.agg(now=ef.max("at"))
    view = SALES.within("at", latest, 10).run()
    view.step(sales=[Sale("a", 1, 1), Sale("a", 20, 1)])
    assert view.value == ZSet.of([Sale("a", 20, 1)])
    with pytest.raises(ChangeError, match="a clock cannot go back") as caught:
        view.input("sales").remove(Sale("a", 20, 1))
    assert "test_time.py" in str(caught.value)
    assert view.value == ZSet.of([Sale("a", 20, 1)])
    two = SALES.within("at", SALES.select("at"), 10).run()
    with pytest.raises(ChangeError, match="a clock is a collection of one row"):
        two.step(sales=[Sale("a", 1, 1), Sale("a", 2, 1)])
    with pytest.raises(ChangeError, match="a clock has one row"):
        evaluate(two.plan, {"sales": ZSet.of([Sale("a", 1, 1), Sale("a", 2, 1)])})


class Dated(NamedTuple):
    """Something with every kind of time."""

    day: date
    when: datetime
    zoned: Annotated[datetime, UTC]
    seconds: float


@pytest.mark.parametrize(
    ("field", "kind", "now", "later", "span"),
    [
        ("day", date, date(2026, 1, 2), date(2026, 1, 9), {"days": 7}),
        ("when", datetime, datetime(2026, 1, 2), datetime(2026, 1, 2, 0, 31), {"minutes": 30}),
        ("zoned", Annotated[datetime, UTC], datetime(2026, 1, 2, tzinfo=UTC),
         datetime(2026, 1, 2, 2, tzinfo=UTC), {"hours": 2}),
        ("seconds", float, 86_400.5, 86_402.0, {"span": 1.5}),
    ],
)  # fmt: skip
def test_clocks_of_every_kind(field: str, kind: Any, now: Any, later: Any, span: Any) -> None:
    row = Dated(date(2026, 1, 2), datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), 86_400.5)
    view = ef.Input("rows", Dated).within(field, ef.clock("now", kind), **span).run()
    view.step(rows=[row])
    assert not view.value
    assert view.input("now").set(now) == ZSet.of([row])
    assert view.input("now").set(later) == ZSet({row: -1})
    assert view.verify()
    assert not view.tick() or kind is float


def test_what_clocks_refuse() -> None:
    now, view = ef.clock("now"), SALES.within("at", ef.clock("now"), 10).run()
    assert repr(now) == "clock('now')"
    assert repr(ef.clock("t", datetime)) == "clock('t', datetime)"
    view.tick(5)
    for wrong in (
        lambda: view.input("now").set(4), lambda: view.input("now").delete(0),
        lambda: view.step(now={now.type(5): -1}), lambda: view.input("now").set("noon"),
        lambda: view.input("sales").set(3), lambda: view.step(now=[now.type(7)]),
    ):  # fmt: skip
        with pytest.raises(ChangeError):
            wrong()
    assert view.input("now").set(5) == ZSet()
    with pytest.raises(CheckError, match="no clock"):
        SALES.run().tick()
    for refused, why in {
        lambda: ef.clock("now", str): "the time is an int",
        lambda: SALES.within("at", now): "given once",
        lambda: SALES.within("at", now, 5, days=1): "given once",
        lambda: SALES.within("at", 5, 5): "the clock must be a collection",
        lambda: SALES.within("at", SALES, 5): "a clock has one field",
        lambda: SALES.within("at", now, days=7): "the time is of type int",
        lambda: SALES.within("at", now, 0): "positive span",
        lambda: SALES.within("at", ef.clock("t", datetime), 5): "the clock tells a datetime",
        lambda: SALES.within("att", now, 5): "no field 'att'",
    }.items():
        with pytest.raises(CompositionError, match=why) as caught:
            refused()
        assert "test_time.py" in str(caught.value)


def test_a_day_of_the_week_before() -> None:
    hour = timedelta(hours=1)
    moments = ef.Input("moments", datetime)
    view = moments.within(itself, ef.clock("now", datetime), hour).run()
    noon = datetime(2026, 1, 1, 12)
    view.step(moments=[noon, noon + hour / 2], now=noon + hour / 2)
    assert view.tick(noon + hour) == ZSet({noon: -1})
