"""A small DataFrame that only reads rows is collected, and goes the way of a table.

What it does must be what the frame would have done: the same rows and changes, as in a task that
reads the frame (`mode="staged"`) and as in this process.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ebbflow as ef
from ebbflow.engine.spark.tasks import asked
from ebbflow.errors import EbbflowError

NAN = float("nan")
INT = pa.int64()


class Sale(NamedTuple):
    id: int
    shop: str
    price: float
    paid: bool
    day: date
    note: str | None


SALES = ef.Input("sales", Sale)
PROGRAM = ef.program(
    shops=SALES.group_by("shop").agg(n=ef.count(), last=ef.max("id")),
    paid=SALES.filter(lambda sale: sale.paid),
)
FIRST = [
    (Sale(2**63 - 1, "", NAN, True, date(1, 1, 1), None), 1),
    (Sale(-(2**63), "Rome", -0.0, True, date(9999, 12, 31), ""), 2),
    (Sale(7, "Rome", 0.5, False, date(1970, 1, 1), "x"), 1),
    (Sale(7, "Rome", 0.5, False, date(1970, 1, 1), "x"), 1),
]
SECOND = [(FIRST[0][0], -1), (Sale(8, "Oslo", 1e300, True, date(2026, 1, 1), None), 1)]
THIRD = [(row, -weight) for row, weight in [*FIRST[1:], SECOND[1]]]


def frame(spark: Any, path: Path, rows: list[Any]) -> Any:
    """A frame of a file with these rows and their weights."""
    columns = {name: [row[i] for row, _ in rows] for i, name in enumerate(Sale._fields)}
    columns["id"] = pa.array(columns["id"], INT)
    columns["__weight"] = pa.array([weight for _, weight in rows], INT)
    columns["shop"], columns["note"] = (pa.array(columns[n], pa.string()) for n in ("shop", "note"))
    table = pa.table(columns)
    pq.write_table(table, path)
    return spark.read.parquet(str(path))


def shown(rows: Any) -> list[str]:
    """Rows with their weights; 0.0 and -0.0 are equal, and one NaN is like another."""
    return sorted(f"{row} {weight}".replace("-0.0", "0.0") for row, weight in rows.items())


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The frames that were collected."""
    found: list[Any] = []
    real = asked._collected
    monkeypatch.setattr(asked, "_collected", lambda each: found.append(each) or real(each))
    return found


@pytest.mark.parametrize("mode", ["auto", "driver", "staged"])
def test_frames_do_what_their_rows_do(
    spark: Any, tmp_path: Path, collected: list[Any], mode: str
) -> None:
    local = PROGRAM.run()
    with PROGRAM.run(ef.spark(spark, path=tmp_path / "state", mode=mode, buckets=2)) as view:
        for number, rows in enumerate([FIRST, SECOND, THIRD]):
            total: Counter[Sale] = Counter()
            for row, weight in rows:
                total[row] += weight
            wanted = local.step(sales=dict(total))
            changed = view.step(sales=frame(spark, tmp_path / f"{number}.parquet", rows))
            for name, rows_there in changed.items():
                assert rows_there.count() == len(wanted[name])
            for name, rows_there in view.zset().items():
                assert shown(rows_there) == shown(local[name].value)
        assert not any(view.zset().values())
    assert len(collected) == (0 if mode == "staged" else 3)


def test_a_row_that_is_refused_leaves_everything_as_it_was(
    spark: Any, tmp_path: Path, collected: list[Any]
) -> None:
    with PROGRAM.run(ef.spark(spark, path=tmp_path / "state")) as view:
        view.step(sales=frame(spark, tmp_path / "a.parquet", FIRST))
        before = view.zset()
        absent = frame(spark, tmp_path / "b.parquet", [(SECOND[1][0], -1)])
        nothing = frame(spark, tmp_path / "c.parquet", [(FIRST[2][0]._replace(shop=None), 1)])
        for given in (absent, nothing):
            with pytest.raises(EbbflowError, match="input 'sales'"):
                view.step(sales=given)
        (tmp_path / "c.parquet").unlink()
        with pytest.raises(EbbflowError, match="the epoch failed in Spark, and changed nothing"):
            view.step(sales=nothing)
        assert repr(view.zset()) == repr(before)
        assert view.epoch == 1
        view.step(sales=frame(spark, tmp_path / "d.parquet", SECOND))
        assert view.epoch == 2
    assert len(collected) == 5


def test_what_is_large_or_computed_or_has_more_columns_stays_in_spark(
    spark: Any, tmp_path: Path, collected: list[Any]
) -> None:
    plain = frame(spark, tmp_path / "a.parquet", FIRST)
    with PROGRAM.run(ef.spark(spark, path=tmp_path / "state")) as view:
        view.step(sales=plain.distinct())
        view.step(sales=plain.drop("__weight").selectExpr("*", "'c' AS op", "1L AS __unread"))
    with PROGRAM.run(ef.spark(spark, path=tmp_path / "other", small=1)) as view:
        view.step(sales=plain)
    assert not collected


def test_a_frame_of_more_rows_than_spark_guessed_is_not_collected_as_a_whole(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows take next to no room in a file, by whose size Spark guesses how many there are."""
    sizes: list[int] = []
    real = asked._collected

    def collected(each: Any) -> Any:
        table = real(each)
        sizes.append(table.num_rows)
        return table

    monkeypatch.setattr(asked, "_collected", collected)
    many = frame(spark, tmp_path / "a.parquet", [(FIRST[2][0], 1)] * 50_000)
    with PROGRAM.run(ef.spark(spark, path=tmp_path / "state", small=1_000)) as view:
        view.step(sales=many)
        assert [row.n for row in view.zset()["shops"]] == [50_000]
    assert sizes == [1_001]
