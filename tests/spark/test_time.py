"""Windows, clocks and numbered rows on Spark: what they give in this process, in every mode."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import ChangeError
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    """Something sold."""

    who: str
    at: int
    price: int


SALES, NOW = ef.Input("sales", Sale), ef.clock("now")
PROGRAM = ef.program(
    visits=SALES.session("at", 5, per="who")
    .group_by("who", "window_start", "window_end")
    .agg(n=ef.count(), total=ef.sum("price"), best=ef.max("price")),
    recent=SALES.within("at", NOW, 30),
    tied=SALES.top_k(2, order="price", per="who", ties=True),
    last=SALES.last(2, order="at", per="who", number="place"),
    sliding=SALES.sliding("at", 20, 5).group_by("who", "window_start").agg(n=ef.count()),
)


@pytest.mark.parametrize(
    ("mode", "epochs"),
    [
        ("single_task", 2),
        pytest.param("single_task", 4, marks=pytest.mark.slow),
        pytest.param("staged", 4, marks=pytest.mark.slow),
    ],
)
def test_windows_and_clocks_give_what_they_give_in_this_process(
    spark: Any, mode: str, epochs: int, tmp_path: Path
) -> None:
    dice, there, local = Random(mode), list[Sale](), PROGRAM.run()
    views = [PROGRAM.run(ef.spark(spark, path=tmp_path, mode=mode))]
    for epoch in range(epochs):
        change = ZSet[Any]()
        for _ in range(15):
            if there and dice.random() < 0.3:
                change -= ZSet.of([there.pop(dice.randrange(len(there)))])
            else:
                there.append(Sale(dice.choice("ab"), dice.randrange(90), dice.randrange(5)))
                change += ZSet.of(there[-1:])
        local.step(sales=change, now=25 * epoch)
        views[0].step(sales=change, now=25 * epoch)
        assert views[0].zset() == {name: local[name].value for name in local}
        if epoch == 1:
            views.pop().close()
            views.append(PROGRAM.run(ef.spark(spark, path=tmp_path, mode=mode)))
    with pytest.raises(ChangeError, match="a clock cannot go back"):
        views[0].input("now").set(3)
    views[0].tick(200)
    assert not views[0].zset()["recent"]
    assert views[0].verify()
    views[0].close()
