"""Loops on a real session of Spark, in every mode, against batch."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.loops import (
    Edge,
    Node,
    by_twos,
    components,
    distances,
    epochs_of,
    made,
    reachable,
    roots,
    walks,
)
from tests.spark.test_oracle_session import followed

import ebbflow as ef
from ebbflow.errors import NoFixedPoint


@pytest.mark.parametrize(
    ("program", "mode"),
    [
        (reachable, "single_task"), (reachable, "staged"), (distances, "bulk"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [
            (reachable, "bulk"), (by_twos, "bulk"), (walks, "staged"), (components, "bulk"),
        ]),
    ],
)  # fmt: skip
def test_oracle_a_loop_on_spark_gives_what_batch_gives(
    spark: Any, tmp_path: Path, program: Any, mode: str
) -> None:
    loop = made(program)
    whole = loop if hasattr(loop, "plan") else ef.program(output=loop)
    epochs = epochs_of(whole, Random(mode), 3, nodes=8)
    modes = followed(spark, whole, tmp_path / "state", mode, epochs)
    assert modes[0] == mode


def test_outputs_of_a_fixpoint_are_tables_with_the_columns_of_their_variables(
    spark: Any, tmp_path: Path
) -> None:
    given = {"roots": [Node(0)], "edges": [Edge(0, 1), Edge(1, 2), Edge(2, 3)]}
    for mode in ("driver", "single_task", "staged", "bulk"):
        with by_twos().run(ef.spark(spark, path=tmp_path / mode, mode=mode, buckets=2)) as view:
            change = view.step(given)
            assert view.last.mode == mode
            assert sorted(change["odd"].collect()) == [(1, 1), (3, 1)]
            assert change["odd"].columns == ["n", "__weight"]
            assert view.value["even"].schema.simpleString() == "struct<n:bigint>"
            assert sorted(view.value["even"].collect()) == [(0,), (2,)]
            said = "rows that changed: 0 → 1, 1 → 1, 2 → 1, 3 → 1"
            assert said in view.explain("json"), mode


def test_an_endless_loop_in_a_task_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    endless = roots.iterate(
        lambda n: n.union(n.map(lambda each: Node(each.n + 1), type=Node)), limit=20
    )
    with endless.run(ef.spark(spark, path=tmp_path, mode="single_task", buckets=2)) as view:
        with pytest.raises(NoFixedPoint, match="after 20 rounds rows of 'n' still change"):
            view.step(roots=[Node(1)])
        assert view.epoch == 0
        assert view.value.count() == 0


@pytest.mark.parametrize("program", [reachable, walks])
def test_large_rounds_are_jobs_and_small_ones_are_not(
    spark: Any, tmp_path: Path, program: Any
) -> None:
    """Two hundred nodes behind the root, and a path behind these."""
    fan = [Edge(0, n) for n in range(1, 201)] + [Edge(n, 201) for n in range(1, 201)]
    path = [Edge(n, n + 1) for n in range(201, 210)]
    options = {"path": tmp_path, "mode": "staged", "buckets": 2, "small": 100}
    with program().run(ef.spark(spark, **options)) as view:
        for given in ({"roots": [Node(0)], "edges": [*fan, *path]}, {"edges": {fan[0]: -1}}):
            view.step(given)
            (jobs,) = view.last.jobs.values() or [0]
            assert (0 < jobs < 8) == ("roots" in given)
            assert ("jobs for its rounds" in view.explain()) == ("roots" in given)
            view.verify()
        assert "bulk: rounds led by the driver · wave 1" in view.explain()
