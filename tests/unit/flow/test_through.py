"""`through`: stream processors, operators on two collections, and any function, in a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import ZSet
from ebbflow.algebra import ADD
from ebbflow.change import BAG, NATURAL, pair
from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError
from ebbflow.operator import count, difference, join, of, select
from ebbflow.stream import by_cancelling, processor, processor_of, pure
from ebbflow.stream import join as matching
from ebbflow.testing import follow
from ebbflow.zset import ZSETS


class Bid(NamedTuple):
    item: str
    price: int


class Ask(NamedTuple):
    thing: str
    least: int


bids, asks = ef.Input("bids", Bid), ef.Input("asks", Ask)


def kept(rows: ZSet[Any]) -> ZSet[Any]:
    return rows.distinct()


once = processor_of(by_cancelling(kept, source=ZSETS, target=ZSETS, name="once"))


def item_of(bid: Bid) -> str:
    return bid.item


def met(bid: Bid, ask: Ask) -> bool:
    return bid.item == ask.thing and bid.price >= ask.least


EPOCHS: list[dict[str, Any]] = [
    {"bids": ZSet.of([Bid("fig", 3), Bid("fig", 3), Bid("nut", 1)])},
    {"asks": ZSet.of([Ask("fig", 2), Ask("nut", 5)]), "bids": ZSet.of([Bid("nut", 7)])},
    {"bids": ZSet({Bid("fig", 3): -1})},
    {"asks": ZSet({Ask("nut", 5): -1}), "bids": ZSet({Bid("fig", 3): -1})},
    {"bids": ZSet({Bid("nut", 1): -1, Bid("nut", 7): -1}), "asks": ZSet({Ask("fig", 2): -1})},
]
PROGRAMS = {
    "a processor": bids.through(once),
    "a processor for each key": bids.through(once, per="item"),
    "operators and processors": bids.through(select(len) >> once >> count(), per="item", type=int),
    "a processor that gives a number": bids.through(
        pure(lambda rows: sum(w * row.price for row, w in rows.items()), ZSETS, ADD), type=int
    ),
    "two collections": bids.through(difference(), asks, left_per="price", right_per="least"),
    "two collections and a processor": bids.through(
        matching(met, ZSETS, ZSETS), asks, left_per="item", right_per="thing"
    ),
    "two collections without a key": bids.through(matching(met, ZSETS, ZSETS), asks),
    "one collection twice": bids.through(join(item_of, item_of), bids),
    "any function": bids.through(of(len, BAG, NATURAL), per="item", type=int),
    "any function of two": bids.through(
        of(lambda two: abs(len(two[0]) - len(two[1])), pair(BAG, BAG), NATURAL), asks, type=int
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_goes_through_is_what_batch_computes(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    known = program.plan.sources
    epochs = [{name: rows for name, rows in epoch.items() if name in known} for epoch in EPOCHS]
    follow(run, program, epochs)
    view = program.run(path=str(tmp_path))
    for epoch in epochs[:3]:
        view.step(epoch)
    view.close()
    view = program.run(path=str(tmp_path))
    for epoch in epochs[3:]:
        view.step(epoch)
    assert view.verify()
    view.close()


def test_both_sides_of_a_key_meet_in_one_operator() -> None:
    sold = PROGRAMS["two collections and a processor"].run()
    assert sold.step(EPOCHS[0]) == ZSet()
    assert sold.step(EPOCHS[1]) == ZSet({
        ("fig", (Bid("fig", 3), Ask("fig", 2))): 2, ("nut", (Bid("nut", 7), Ask("nut", 5))): 1,
    })  # fmt: skip
    assert sold.step(EPOCHS[2]) == ZSet({("fig", (Bid("fig", 3), Ask("fig", 2))): -1})
    assert [*PROGRAMS["two collections"].type._fields] == ["price", "value"]


def test_a_key_that_only_the_right_side_has_gives_a_value_too() -> None:
    sizes = of(lambda two: (len(two[0]), len(two[1])), pair(BAG, BAG), name="sizes")
    view = bids.through(sizes, asks, left_per="item", right_per="thing", type=tuple[int, int]).run()
    assert view.step(asks=[Ask("fig", 2)]) == ZSet.of([("fig", (0, 1))])
    assert view.step(bids=[Bid("fig", 2)], asks={Ask("fig", 2): -1}) == ZSet(
        {("fig", (0, 1)): -1, ("fig", (1, 0)): 1}
    )
    assert view.step(bids={Bid("fig", 2): -1}) == ZSet({("fig", (1, 0)): -1})


def test_a_state_that_is_altered_in_place_goes_back_with_its_epoch() -> None:
    def remember(seen: dict[Any, int], rows: ZSet[Any]) -> tuple[dict[Any, int], ZSet[Any]]:
        for row, weight in rows.items():
            seen[row] = seen.get(row, 0) + weight
            if row.price > 99:
                raise ValueError("too dear")
        return seen, rows

    remembering = processor(remember, state={}, source=ZSETS, target=ZSETS)
    view = bids.through(remembering, per="item", type=Bid).run()
    view.step(bids=[Bid("fig", 3)])
    for wrong in (Bid("fig", 100), Bid("nut", 100)):
        with pytest.raises(EbbflowError, match="too dear"):
            view.step(bids=[Bid("fig", 4), wrong])
        assert view.verify()
    assert view.step(bids={Bid("fig", 3): -1}) == ZSet({("fig", Bid("fig", 3)): -1})


def test_processors_and_two_collections_in_the_rounds_of_a_loop() -> None:
    edges, roots = ef.Input("edges", tuple[int, int]), ef.Input("roots", int)
    step = matching(lambda node, edge: node == edge[0], ZSETS, ZSETS)
    reached = roots.iterate(
        lambda found: (found + found.through(step, edges).map(lambda two: two[1][1], type=int))
        .through(once, type=int)
    )  # fmt: skip
    changes: list[dict[str, Any]] = [
        {"roots": ZSet.of([1]), "edges": ZSet.of([(1, 2), (2, 3), (3, 1), (4, 5)])},
        {"edges": ZSet({(2, 3): -1, (2, 4): 1})},
        {"edges": ZSet({(1, 2): -1})},
        {"roots": ZSet({1: -1})},
    ]
    view = follow(run, reached, changes)
    assert view.value == ZSet()


def test_a_function_is_computed_again_for_the_keys_that_change_and_no_others() -> None:
    calls: list[int] = []

    def median(rows: ZSet[Bid]) -> int:
        calls.append(len(rows))
        prices = sorted(bid.price for bid in rows)
        return prices[len(prices) // 2] if prices else 0

    medians = bids.through(of(median, BAG, NATURAL), per="item", type=int)
    view = medians.run()
    view.step(bids=[Bid(item, price) for item in "abcdef" for price in range(50)])
    calls.clear()
    view.step(bids={Bid("c", 7): -1})
    assert calls == [49]


def test_explain_says_what_is_computed_again() -> None:
    program = ef.program(
        all=bids.through(of(len, BAG, NATURAL)),
        by_item=bids.through(select(bool) >> of(len, BAG, NATURAL), per="item"),
        counted=bids.through(count(), per="item"),
        both=bids.through(of(len, pair(BAG, BAG), NATURAL), asks, left_per="item",
                          right_per="thing"),
    )  # fmt: skip
    text = program.explain()
    assert text.count("computed again") == 3
    assert "follows  computed again from all rows, when they change" in text
    assert "follows  computed again from all rows of one item, when they change" in text
    assert "per item = thing" in text


def middle(rows: ZSet[Bid]) -> int:
    prices = sorted(bid.price for bid in rows.rows())
    return prices[len(prices) // 2]


def dearest(rows: ZSet[Bid]) -> ZSet[int]:
    return ZSet.of([max(bid.price for bid in rows)])


@pytest.mark.parametrize(
    "made",
    [
        of(middle),
        of(dearest, BAG, BAG),
        select(bool) >> of(middle),
        of(dearest, BAG, BAG) >> select(bool),
        of(dearest, BAG, BAG) >> count(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("per", [None, "item"])
def test_a_function_is_not_asked_about_no_rows_at_all(made: Any, per: Any) -> None:
    with pytest.raises((IndexError, ValueError)):
        made.f(ZSet())
    epochs = [{"bids": epoch["bids"]} for epoch in EPOCHS if "bids" in epoch]
    view = follow(run, bids.through(made, per=per, type=int), epochs)
    assert view.value == ZSet()
    with pytest.raises(EbbflowError):
        view.step(bids={Bid("fig", 3): -1})
