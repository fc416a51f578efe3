"""Public methods of a view on Spark, called with wrong arguments or by wrong names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.wrong_calls import hunt

import ebbflow as ef
from ebbflow.errors import UnknownVerb


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS: Any = ef.Input("orders", Order, key="id")
WRONG: list[Any] = [None, 3, -1, "price > 3", [], {"x": 3}, len]
JOBS = {
    "add_sink", "deliver", "each_epoch", "on_change", "show", "step", "stream", "tick", "verify",
    "write_changes", "write_snapshot", "zset",
}  # fmt: skip
"""Methods that run jobs, or functions at the next step, with arguments that are not refused."""

CHANGES = (
    "{}.on_change(print), or a stream: "
    'spark.readStream.format("ebbflow").option("changes", True).load(path)'
)


def skipped(name: str, values: tuple[Any, ...]) -> bool:
    return name in JOBS and bool(values) and values != tuple(range(8))


def test_wrong_calls_are_refused_by_errors_of_ours(spark: Any, tmp_path: Path) -> None:
    with ORDERS.run(ef.spark(spark, path=tmp_path, in_driver=True)) as view:
        view.step(orders=[Order(1, "Rome", 3)])
        for of in (view, view["output"], view.input("orders")):
            assert list(hunt(lambda of=of: of, WRONG, skipped)) == []
        view.input("orders").replace([Order(1, "Rome", 3)])
        for of, name, remedy in (
            (view, "subscribe", "view.on_change(print)"),
            (view, "to_pandas", "view.zset().to_pandas()"),
            (view, "insert", 'view.input("orders").add(row), or view.step(orders=[row])'),
            (view, "branch", "a view in this process, run(), which has branch()"),
            (view, "fork", "a view in this process, run(), which has branch()"),
            (view, "astep", "await asyncio.to_thread(view.step, ...)"),
            (view, "changes", CHANGES.format("view")),
            (view["output"], "changes", CHANGES.format('view["output"]')),
            (view["output"], "to_df", "view.zset().to_pandas()"),
            (view.input("orders"), "update", 'view.input("orders").upsert(row)'),
        ):
            with pytest.raises(UnknownVerb) as error:
                getattr(of, name)
            assert error.value.remedy == remedy
        assert len(view.zset().to_pandas()) == 1
        with pytest.raises(ef.EbbflowError) as wrong:
            view.write_snapshot(tmp_path / "x", "csv")
        assert wrong.value.remedy.startswith("write_snapshot(path, format=...")
        epoch, rows = view.epoch, view.zset()
        for call in (
            lambda: view.input("orders").delete(77),
            lambda: view.input("orders").add([3]),
            lambda: view.input("orders").upsert({"id": [2], "city": ["Oslo"]}),
        ):
            with pytest.raises(ef.EbbflowError, match="input 'orders'"):
                call()
        frame = view.session.createDataFrame([(2, "Oslo", 5)], "id long, city string, price long")
        for call in (
            lambda: view.input("orders").upsert(frame, frame),
            lambda: view.input("orders").upsert([frame]),
            lambda: view.step(orders=[frame]),
        ):
            with pytest.raises(ef.EbbflowError, match="was given as a row") as wrong:
                call()
            assert "table, not in a list" in wrong.value.remedy
        assert (view.epoch, view.zset()) == (epoch, rows)


def test_outputs_of_several_have_a_page_without_a_job(spark: Any, tmp_path: Path) -> None:
    two = ef.program(a=ORDERS, n=ORDERS.agg(n=ef.count()))
    with two.run(ef.spark(spark, path=tmp_path, in_driver=True)) as view:
        for frames in (view.step(orders=[Order(1, "Rome", 3)]), view.value):
            assert "<p>a</p><p>DataFrame[id: bigint, city: string" in frames._repr_html_()
        assert "<p>n</p><table>" in view.zset()._repr_html_()
