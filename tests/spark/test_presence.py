"""Rows of negative weight before every verb, in tasks and in a bulk load by native queries."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.presence import TABLE, check, program
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.spark.output.frames import zset_of


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
def test_every_verb_over_negative_weights_in_tasks(mode: str, tmp_path: Path) -> None:
    view = View(program().plan, mode, path=str(tmp_path))
    check(view.step, lambda: view.value, Random(9), 6)
    view.close()


NATIVE = ["union", "left"]


@pytest.mark.parametrize("verbs", [NATIVE, pytest.param([*TABLE], marks=pytest.mark.slow)], ids=len)
def test_verbs_over_negative_weights_in_a_session(
    spark: Any, tmp_path: Path, verbs: list[str]
) -> None:
    made = program(verbs)
    with made.run(ef.spark(spark, path=tmp_path, mode="bulk", buckets=2)) as view:

        def value() -> dict[str, Any]:
            nodes = made.plan.outputs
            return {name: zset_of(view.weighted[name], nodes[name].type) for name in nodes}

        check(view.step, value, Random(10), 1 if verbs is NATIVE else 4, verbs)
