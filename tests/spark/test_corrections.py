"""Large changes of a state that is there: the bulk path gives what waves and batch give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'ebbflow[spark]'")

import ebbflow as ef
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.errors import AbsentRow, ChangeError
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    id: int
    shop: int
    price: int | None


class Shop(NamedTuple):
    shop: int
    city: str


sales, shops = ef.Input("sales", Sale), ef.Input("shops", Shop)
by_id = ef.Input("sales", Sale, key="id")
joined = by_id.join(shops, on="shop")
PROGRAMS = {
    "sums": sales.group_by("shop").agg(t=ef.sum("price"), n=ef.count(), m=ef.mean("price")),
    "sums by key": by_id.filter(lambda r: r.id % 3 > 0).group_by("shop").agg(t=ef.sum("price")),
    "a reducer that must look": by_id.group_by("shop").agg(top=ef.max("price"), n=ef.count()),
    "a join kept": sales.join(shops, on="shop"),
    "sum of a join": joined.group_by("city").agg(t=ef.sum("price"), n=ef.count()),
    "a join with a join": joined.join(by_id, on="shop", suffixes=("", "_2"))
    .group_by("city")
    .agg(n=ef.count(), t=ef.sum("price_2")),
    "left": sales.join(shops, on="shop", how="left"),
    "anti": shops.join(sales, on="shop", how="anti"),
    "distinct": sales.select("shop").distinct(),
    "several": {
        "rows": by_id.filter(lambda r: r.shop > 1),
        "cities": joined.select("city").distinct(),
        "sums": by_id.group_by("shop").agg(t=ef.sum("price")),
        "sums of sums": by_id.group_by("shop").agg(n=ef.count()).group_by("n").agg(k=ef.count()),
        "a function": by_id.map(lambda r: Shop(r.shop, str(r.price)[:1])),
    },
}


class History:
    """Rows of both inputs, and changes of them: some are taken away, some are corrected."""

    def __init__(self, seed: int, by_key: bool) -> None:
        self.random, self.by_key, self.next = Random(seed), by_key, 0
        self.rows: dict[str, list[Any]] = {"sales": [], "shops": []}

    def sale(self, number: int) -> Sale:
        price = self.random.choice([None, *range(-3, 300)])
        return Sale(number, self.random.randrange(6), price)

    def change(self, size: int) -> dict[str, ZSet[Any]]:
        found: dict[str, ZSet[Any]] = {"sales": ZSet(), "shops": ZSet()}
        for name, count in (("sales", size), ("shops", 2)):
            rows = self.rows[name]
            self.random.shuffle(rows)
            gone, self.rows[name] = rows[:count], rows[count:]
            again = gone[::2] if name == "sales" else []
            made: list[Any] = [self.sale(row.id) for row in again]
            self.next += 2 * count
            new = range(self.next - count, self.next)
            if name == "sales":
                made += [self.sale(i if self.by_key else i % 9) for i in new]
            else:
                made += [Shop(i if self.by_key else i % 8, "xyz"[i % 3]) for i in new]
                made += [Shop(i % 6, "abc"[i % 3]) for i in new] if not self.by_key else []
            self.rows[name] += made
            found[name] = ZSet.of(made) - ZSet.of(gone)
        return found


def run(spark: Any, path: Path, program: Any, **options: Any) -> Any:
    plan = ef.program(**program) if isinstance(program, dict) else program
    return plan.run(ef.spark(spark, path=path, mode="bulk", buckets=2, **options))


def values(view: Any) -> dict[str, Any]:
    found = view.zset()
    return found if isinstance(found, dict) else {"": found}


def changes(view: Any, made: Any) -> Iterator[tuple[str, Any]]:
    for name, node in view.plan.outputs.items():
        frame = made[name] if len(view.plan.outputs) > 1 else made
        yield name if len(view.plan.outputs) > 1 else "", zset_of(frame, node.type)


ALIKE = ("several", "a join kept", "anti")
"""Programs that others are much like: these are in the slow suite."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in ALIKE)) for each in PROGRAMS],
)
def test_oracle_corrections_give_what_batch_computes_and_tell_what_changed(
    spark: Any, tmp_path: Path, name: str
) -> None:
    with run(spark, tmp_path, PROGRAMS[name]) as view:
        keyed = any(each.key is not None for each in view.plan.sources.values())
        history = History(sum(map(ord, name)), keyed)
        wanted = view.plan.sources
        before = values(view)
        for size in (60, 25, 40):
            given = {n: each for n, each in history.change(size).items() if n in wanted}
            made = view.step(given)
            assert view.last.mode == "bulk"
            after = values(view)
            for output, change in changes(view, made):
                assert before[output] + change == after[output]
            view.verify()
            before = after


REFUSED: dict[str, list[tuple[dict[Sale, int], Any]]] = {
    "sums": [({Sale(1, 1, 2): -1}, AbsentRow), ({Sale(1, 1, 1): -2}, AbsentRow)],
    "sums by key": [
        ({Sale(1, 1, 2): -1}, AbsentRow),
        ({Sale(1, 1, 2): 1}, ChangeError),
        ({Sale(3, 1, 2): 1, Sale(3, 1, 3): 1}, ChangeError),
    ],
    "a join kept": [({Sale(1, 1, 2): -1}, AbsentRow), ({Sale(1, 1, 1): -2}, AbsentRow)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_correction_of_what_is_not_there_is_refused_and_changes_nothing(
    spark: Any, tmp_path: Path, name: str
) -> None:
    with run(spark, tmp_path, PROGRAMS[name]) as view:
        view.step(sales=[Sale(i, i % 2, i) for i in range(5)])
        before = view.zset()
        for bad, error in REFUSED[name]:
            with pytest.raises(error, match="input 'sales'"):
                view.step(sales={**bad, Sale(8, 0, 8): 1})
            assert (view.epoch, view.zset()) == (1, before)
        view.step(sales={Sale(1, 1, 1): -1, Sale(8, 0, 8): 1})
        assert (view.epoch, view.last.mode) == (2, "bulk")
        view.verify()


class Weight(NamedTuple):
    id: int
    kilos: float


weights, weight_by_id = ef.Input("w", Weight), ef.Input("w", Weight, key="id")


@pytest.mark.parametrize(
    "program",
    [
        weights.group_by("id").agg(n=ef.count()),
        weight_by_id.group_by("id").agg(n=ef.count()),
        weights.join(ef.Input("other", Weight), on="id", suffixes=("", "_2")),
    ],
)
def test_rows_that_columns_cannot_compare_are_looked_up_one_by_one(
    spark: Any, tmp_path: Path, program: Any
) -> None:
    nan = float("nan")
    with run(spark, tmp_path, program) as view:
        view.step(w=[Weight(1, nan), Weight(2, 0.0), Weight(3, 1.5)])
        view.step(w={Weight(1, nan): -1, Weight(1, 2.0): 1, Weight(2, -0.0): -1})
        assert view.last.mode == "bulk"
        view.verify()
        with pytest.raises(AbsentRow):
            view.step(w={Weight(1, nan): -1})
