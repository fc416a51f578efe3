"""Sealed auctions: the highest bid wins and pays the second highest, and bids may be withdrawn.

The second price is a reducer of our own, and a *partial* one. Its accumulator is the two highest
bids. A lower bid that leaves does not touch them; when one of the two leaves, two numbers cannot
say who is next, so `remove` returns RECOMPUTE and that one lot is folded again from its bids.
Nearly all withdrawals are cheap, and none is wrong:

    ebbflow check examples.auctions

Lots without a bid are shown too: a right join keeps every row of the right side.

    python examples/auctions.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ebbflow as ef


class Lot(NamedTuple):
    id: int
    title: str
    reserve: int


class Bid(NamedTuple):
    lot: int
    bidder: str
    minute: int
    amount: int


class Result(NamedTuple):
    title: str
    winner: str | None
    price: int
    bids: int


def outbid(two: tuple[int, ...], amount: int) -> tuple[int, ...]:
    return tuple(sorted((*two, amount), reverse=True)[:2])


def withdrawn(two: tuple[int, ...], amount: int) -> Any:
    return ef.RECOMPUTE if amount >= two[-1] else two


def second(two: tuple[int, ...]) -> int:
    return two[1] if len(two) > 1 else 0


second_price = ef.Reducer((), outbid, withdrawn, result=second, name="second", elements=range(5))


def result(row: Any) -> Result:
    sold = row.best is not None and row.best >= row.reserve
    winner, price = (row.winner, max(row.second, row.reserve)) if sold else (None, row.reserve)
    return Result(row.title, winner, price, row.bids or 0)


lots = ef.Input("lots", Lot, key="id")
bids = ef.Input("bids", Bid)

standing = bids.group_by("lot").agg(
    best=ef.max("amount"),
    second=second_price.on("amount"),
    winner=ef.arg_max(lambda bid: (bid.amount, -bid.minute), "bidder"),
    bids=ef.count(),
)
program = standing.join(lots, left_on="lot", right_on="id", how="right").map(result)

start = {
    "lots": [Lot(1, "clock", 50), Lot(2, "vase", 200), Lot(3, "chair", 20)],
    "bids": [
        Bid(1, "ann", 1, 60),
        Bid(1, "bob", 2, 90),
        Bid(1, "cat", 3, 75),
        Bid(2, "bob", 4, 150),
    ],
}


def tell(change: ef.ZSet) -> None:
    for row in sorted(change.positive()):
        outcome = f"goes to {row.winner} for {row.price}" if row.winner else "is not sold"
        print(f"  the {row.title} {outcome}, bids: {row.bids}")


def main() -> None:
    view = program.run()
    view.on_change(tell)
    print("the first bids")
    view.step(start)
    print("ann withdraws 60: neither of the two highest, so the price stays")
    view.input("bids").remove(Bid(1, "ann", 1, 60))
    print("cat withdraws 75: the price falls to the reserve")
    view.input("bids").remove(Bid(1, "cat", 3, 75))
    print("dan bids 90 as well, but later; and 260 for the vase")
    view.input("bids").add(Bid(1, "dan", 9, 90), Bid(2, "dan", 9, 260))
    print("the reserve of the vase is raised to 300")
    view.input("lots").upsert(Lot(2, "vase", 300))
    print("the clock is taken out of the sale")
    view.input("lots").delete(1)
    print(f"recomputed from scratch, epoch {view.verify().epoch} is the same")


if __name__ == "__main__":
    main()
