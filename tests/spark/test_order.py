"""Rows in order on a real session of Spark: late and withdrawn rows, against batch."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.spark.test_oracle_session import followed

import ebbflow as ef
from ebbflow import window as w
from ebbflow.testing import random_epochs


class Event(NamedTuple):
    k: int
    t: int
    v: int


EVENTS = ef.Input("events", Event)


def machine(state: int, row: Event) -> tuple[int, list[Event]]:
    new = 0 if row.v % 3 == 0 else (state + row.v) % 4
    return new, [row] if new == 3 else []


def told() -> Any:
    """Window functions and a state machine per key, and one fold over a key that is cut."""
    over = EVENTS.over(per="k", order="t")
    return ef.program(
        over=over.with_fields(n=w.row_number(), then=w.lead("v"), total=ef.sum("v")),
        scan=EVENTS.scan(machine, 0, per="k", order="t", type=Event),
        fold=EVENTS.fold(machine, 0, order="t", states=range(4), cuts=(0, 3), type=int),
    )


@pytest.mark.parametrize(
    "mode", ["single_task", *(pytest.param(m, marks=pytest.mark.slow) for m in ("staged", "bulk"))]
)
def test_oracle_rows_in_order_on_spark(spark: Any, tmp_path: Path, mode: str) -> None:
    program = told()
    epochs = list(random_epochs(program, Random(mode), 4, size=12))
    assert mode in followed(spark, program, tmp_path / "state", mode, epochs)
