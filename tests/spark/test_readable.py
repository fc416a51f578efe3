"""What was committed can be read: what would not be exact in columns is found out before."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import ChangeError, EbbflowError
from ebbflow.zset import ZSet


class Row(NamedTuple):
    n: int
    x: float
    s: str


A = ef.Input("a", Row)
EXACT = ef.program(
    more=A.filter(lambda row: row.n > row.x),
    same=A.filter(lambda row: row.x == row.n),
    least=A.filter(lambda row: not row.n < row.x),
    among=A.filter(lambda row: row.n in (row.x, 3.0)),
    shown=A.select("s", big=lambda row: row.n >= row.x),
    pairs=A.join(A, on="s", select=lambda one, other: (one.n <= other.x, other.n)),
)
INTS = [0, 3, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, 3.0, -0.5, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**62, math.inf, -math.inf]


def run(rows: Any, spark: Any, path: Path, mode: str) -> Any:
    return rows.run(ef.spark(spark, path=path, mode=mode, buckets=2))


@pytest.mark.parametrize("mode", ["single_task", "bulk"])
def test_large_numbers_beside_floats_are_read_as_python_compares_them(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    draw = Random(7)
    rows = [Row(draw.choice(INTS), draw.choice([*FLOATS, math.nan]), draw.choice("ab"))
            for _ in range(40)]  # fmt: skip
    with run(EXACT, spark, tmp_path, mode) as view:
        assert view._replica.derived == set(EXACT.plan.outputs), "all are queries"
        view.step(a=rows)
        assert view.zset() == evaluate(EXACT.plan, {"a": ZSet.of(rows)})


MISFITS = [Row(2**70, 1.0, "a"), Row(None, 1.0, "a"), Row(1, "x", "a"), Row(1, 1.0, "\ud800")]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged", "bulk"])
def test_a_row_that_does_not_fit_its_columns_is_refused_however_it_comes(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    with run(A.filter(lambda row: row.s == "b"), spark, tmp_path, mode) as view:
        for row in MISFITS:
            with pytest.raises(ChangeError, match="input 'a': field"):
                view.step(a=[row])
        assert view.epoch == 0


@pytest.mark.parametrize(
    ("rows", "mode"), [(A, "driver"), (A.map(lambda row: row.n.bit_length(), type=int), "staged")]
)
def test_a_row_is_not_there_more_often_than_a_column_can_tell(
    spark: Any, tmp_path: Path, rows: Any, mode: str
) -> None:
    often = {Row(1, 1.0, "a"): 3 * 2**61}
    with run(rows, spark, tmp_path, mode) as view:
        view.step(a=often)
        with pytest.raises(EbbflowError, match="64 bits can tell"):
            view.step(a=often)
        assert [weight for _, weight in view.zset().items()] == [3 * 2**61]
        with pytest.raises(Exception, match=r"more than 2\*\*31 times: read view.weighted"):
            view.value.collect()


@pytest.mark.parametrize("weight", [2**20, 2**40])
def test_weights_that_are_multiplied_fit_or_are_refused(
    spark: Any, tmp_path: Path, weight: int
) -> None:
    pairs = A.join(A, on="s", select=lambda one, other: (one.n, other.n))
    with run(pairs, spark, tmp_path, "bulk") as view:
        assert view._replica.derived
        if weight**2 < 2**63:
            view.step(a={Row(1, 1.0, "a"): weight})
            assert view.zset() == ZSet({(1, 1): weight**2})
        else:
            with pytest.raises(EbbflowError, match="64 bits"):
                view.step(a={Row(1, 1.0, "a"): weight})
            assert view.epoch == 0
