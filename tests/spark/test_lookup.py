"""Rows found by key in a view on Spark, as in a local one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.oracle.test_lookup import ABSENT, KEYED, PROGRAM, Order

import ebbflow as ef
from ebbflow.engine.runtime.lookup import row_key
from ebbflow.errors import CheckError


def test_rows_are_found_by_key(spark: Any, tmp_path: Path) -> None:
    local = PROGRAM.run()
    with PROGRAM.run(ef.spark(spark, path=tmp_path, in_driver=True)) as view:
        for each in (local, view):
            each.step(
                orders=[Order(1, "a", 1.0), Order(2, "a", 7.0), Order(3, "b", 9.0)],
                tags=[(1, "x"), (1, "x"), (3, "y")],
            )
            each.input("orders").upsert(Order(2, "b", 6.0))
        for name in KEYED:
            key = row_key(PROGRAM.plan.outputs[name])
            assert key is not None
            keys = [*map(key, local.value[name]), ABSENT[name]]
            assert [view[name].get(at) for at in keys] == [local[name].get(at) for at in keys]
        orders, tags = view.input("orders"), view.input("tags")
        assert orders.get(2) == Order(2, "b", 6.0)
        assert (2 in orders, 9 in orders, len(orders), len(tags)) == (True, False, 3, 3)
        assert ((3, "y") in tags, (3, "x") in tags) == (True, False)
        assert sorted(map(tuple, orders.value.collect())) == sorted(local.input("orders").value)
    trusting = ef.Input("n", int).run(ef.spark(spark, path=tmp_path / "b"), check_input=False)
    with trusting, pytest.raises(CheckError, match="not kept"):
        trusting.input("n").value
