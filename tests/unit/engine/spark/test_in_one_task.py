"""Which stages have all their rows in one task, as `explain` says on Spark."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.spark.report import in_one_task


class Sale(NamedTuple):
    """Something sold."""

    city: str
    price: int


SALES, OTHERS = ef.Input("sales", Sale), ef.Input("others", Sale)
AT_LEAST = ef.le("price", "price")


@pytest.mark.parametrize(
    ("made", "alone"),
    [
        (SALES.filter(lambda sale, top: sale.price == top.most, SALES.agg(most=ef.max("price"))),
         ["filter", "reduce"]),
        (SALES.join(OTHERS, where=AT_LEAST, suffixes=("", "_other")), ["join"]),
        (SALES.join(OTHERS, on="city", where=AT_LEAST, suffixes=("", "_other")), []),
        (SALES.join(OTHERS, on="city", suffixes=("", "_other")), []),
        (SALES.top_k(3, order="price"), ["top_k"]),
        (SALES.top_k(3, order="price", per="city"), []),
        (SALES.agg(n=ef.count()), []),
        (SALES.distinct(), []),
    ],
)  # fmt: skip
def test_what_has_no_key_and_adds_nothing_up_runs_in_one_task(made: Any, alone: list[str]) -> None:
    stages = Machine(made.plan, apart=True).stages
    found = {stage.owner.verb for stage in stages if not stage.grouped and in_one_task(stage)}
    assert sorted(found) == alone
