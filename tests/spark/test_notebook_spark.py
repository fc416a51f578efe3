"""A view on Spark in a notebook: it starts no job by being looked at, and shows rows when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
two = ef.program(dear=sales.filter(lambda sale: sale.price > 10), n=sales.agg(n=ef.count()))


@pytest.mark.classic
def test_looking_at_a_view_starts_no_job_and_show_prints_its_rows(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = two.run(ef.spark(spark, path=tmp_path, in_driver=True))
    view.step(sales=[Sale("<Rome>", 30), Sale("Oslo", 3)])
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    html = view._repr_html_()
    assert "Sale(city, price); show() or value runs a job" in html
    assert html.startswith("<p>&lt;View on Spark of dear, n: epoch 1&gt;</p><p>dear</p>")
    assert "<pre" in view.explain()._repr_html_()
    assert "<pre" in view.stats()._repr_html_()
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    view.show()
    shown = capsys.readouterr().out
    assert shown.index("dear:") < shown.index("<Rome>") < shown.index("\nn:\n")
    view.close()
    assert view._repr_html_() == "<p>&lt;View on Spark of dear, n, closed&gt;</p>"
