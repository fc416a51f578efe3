"""Stream processors, operators on two collections and any function, in the tasks of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import ebbflow as ef
from ebbflow.change import BAG, NATURAL
from ebbflow.engine.batch import evaluate
from ebbflow.operator import of
from ebbflow.stream import by_cancelling, join, processor_of
from ebbflow.testing.epochs import plan_of
from ebbflow.zset import ZSETS, ZSet


class Bid(NamedTuple):
    item: str
    price: int


class Ask(NamedTuple):
    thing: str
    least: int


class Sale(NamedTuple):
    bid: Bid
    ask: Ask


def once(rows: ZSet[Any]) -> ZSet[Any]:
    return rows.distinct()


def met(bid: Bid, ask: Ask) -> bool:
    return bid.price >= ask.least


bids, asks = ef.Input("bids", Bid), ef.Input("asks", Ask)
program = ef.program(
    different=bids.through(
        processor_of(by_cancelling(once, source=ZSETS, target=ZSETS)), per="item", type=Bid
    ),
    sold=bids.through(
        join(met, ZSETS, ZSETS), asks, left_per="item", right_per="thing", type=Sale
    ),
    prices=bids.through(of(len, BAG, NATURAL), per="item", type=int),
)  # fmt: skip
EPOCHS: list[dict[str, ZSet[Any]]] = [
    {"bids": ZSet.of([Bid("fig", 3), Bid("fig", 3), Bid("nut", 1)]), "asks": ZSet()},
    {"bids": ZSet.of([Bid("nut", 7)]), "asks": ZSet.of([Ask("fig", 2), Ask("nut", 5)])},
    {"bids": ZSet({Bid("fig", 3): -2, Bid("nut", 1): -1}), "asks": ZSet({Ask("nut", 5): -1})},
]


def test_what_goes_through_on_spark_is_what_batch_computes(spark: Any, tmp_path: Path) -> None:
    inputs: dict[str, ZSet[Any]] = {"bids": ZSet(), "asks": ZSet()}
    view: Any = program.run(ef.spark(spark, path=tmp_path, small=0))
    for epoch in EPOCHS:
        view.step(epoch)
        inputs = {name: rows + epoch[name] for name, rows in inputs.items()}
        expected = evaluate(plan_of(program), inputs)
        found = {name: view.value[name] for name in expected}
        assert {name: ZSet.of(_rows(frame)) for name, frame in found.items()} == {
            name: rows.map(_plain) for name, rows in expected.items()
        }
    assert view.verify()
    view.close()


def _rows(frame: Any) -> list[Any]:
    return [_plain(row) for row in frame.collect()]


def _plain(row: Any) -> Any:
    return tuple(_plain(each) for each in row) if isinstance(row, tuple) else row
