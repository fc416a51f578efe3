"""The events of Nexmark, from a seed: of fifty one is a person, three are auctions, the rest bids.

An event happens every millisecond. Half of the bids are for one auction among the last hundred, and
most bidders and sellers are a few. Other than in Nexmark some is taken back: bids are cancelled,
auctions corrected, people deleted, and what is looked up changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from examples.nexmark.tables import SIDE, Auction, Bid, Person, Side

OPEN = 100
"""How many auctions are bid for at a time, about."""
HOT = ("Google", "Facebook", "Baidu", "Apple")
STATES = ("az", "ca", "id", "or", "wa", "wy")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond",
          "Seattle", "Kent", "Cheyenne")  # fmt: skip
NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TABLES = ("person", "auction", "bid", "side")
FIRST = 1000
"""The first number of a person and of an auction."""


class Change(NamedTuple):
    """What some events add and take away, and the time behind them."""

    added: Mapping[str, list[Any]]
    removed: Mapping[str, list[Any]]
    now: int

    @property
    def changes(self) -> dict[str, Any]:
        """The change of each table; the clock is one of them. A row that goes and comes, such as an
        auction that is corrected to what it was, is in none."""
        found: dict[str, Any] = {}
        for name in TABLES:
            added, removed = (dict.fromkeys(part.get(name, ())) for part in self[:2])
            found[name] = {row: -1 for row in removed if row not in added}
            found[name] |= {row: 1 for row in added if row not in removed}
        return {name: change for name, change in found.items() if change} | {"now": self.now}


class Market:
    """The people, auctions and bids as they are, and what happens next."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.number = 0
        self.people: dict[int, Person] = {}
        self.auctions: dict[int, Auction] = {}
        self.bids: list[Bid] = []
        self.sides = {key: Side(key, f"side {key}") for key in range(SIDE)}
        self.next_person = self.next_auction = FIRST

    def opening(self) -> Change:
        """What is there before the first event: the table that is looked up."""
        return Change({"side": [*self.sides.values()]}, {}, 0)

    def events(self, count: int, withdrawn: float = 0.02) -> Change:
        """The next events; beside them a part of the rows is taken back or corrected."""
        added: dict[str, dict[Any, None]] = {name: {} for name in TABLES}
        removed: dict[str, list[Any]] = {name: [] for name in TABLES}
        for _ in range(count):
            kind = self.number % 50
            self.number += 1
            if kind == 0:
                added["person"][self._person()] = None
            elif kind < 4:
                added["auction"][self._auction()] = None
            else:
                added["bid"][self._bid()] = None
        for name, was, then in self._withdrawals(round(count * withdrawn)):
            if was in added[name]:
                del added[name][was]
            else:
                removed[name].append(was)
            if then is not None:
                added[name][then] = None
        return Change({name: [*rows] for name, rows in added.items()}, removed, self.number)

    def batches(self, count: int, size: int, withdrawn: float = 0.02) -> Iterator[Change]:
        """So many events, in batches of a size."""
        for done in range(0, count, size):
            yield self.events(min(size, count - done), withdrawn)

    # ---- one event each ----

    def _person(self) -> Person:
        pick, number = self.random.choice, self.next_person
        self.next_person += 1
        name = f"{pick(NAMES)} {pick(NAMES)}son"
        made = Person(
            number, name, f"{name.replace(' ', '.').lower()}@example.com",
            f"{self.random.randrange(10**16):016}", pick(CITIES), pick(STATES), self.number,
            self._text(20),
        )  # fmt: skip
        self.people[number] = made
        return made

    def _auction(self) -> Auction:
        random, number = self.random, self.next_auction
        self.next_auction += 1
        price, length = self._price(), 1 + random.randrange(2 * OPEN * 50 // 3)
        made = Auction(
            number, self._text(10), self._text(30), price, price + self._price(), self.number,
            self.number + length, self._someone(4), 10 + random.randrange(5), self._text(20),
        )  # fmt: skip
        self.auctions[number] = made
        return made

    def _bid(self) -> Bid:
        random = self.random
        last = max(self.next_auction - 1, FIRST)
        hot = max(last // 100 * 100, FIRST)
        auction = hot if random.random() < 0.5 else max(FIRST, last - random.randrange(OPEN))
        number = random.randrange(10_000)
        channel = random.choice(HOT) if random.random() < 0.5 else f"channel-{number}"
        url = f"https://www.nexmark.com/{self._text(3)}/{self._text(3)}/{self._text(3)}/item.htm"
        url += f"?query=1&channel_id={number}" if channel not in HOT else "?query=1"
        bidder = self._someone(4)
        made = Bid(auction, bidder, self._price(), channel, url, self.number, self._text(20))
        self.bids.append(made)
        return made

    def _someone(self, ratio: int) -> int:
        """A person: mostly one of a few."""
        last = max(self.next_person - 1, FIRST)
        if self.random.randrange(ratio):
            return max(last // 10 * 10, FIRST)
        return max(FIRST, last - self.random.randrange(1000))

    def _price(self) -> int:
        return round(10 ** (self.random.random() * 6) * 100)

    def _text(self, length: int) -> str:
        return "".join(self.random.choices(LETTERS, k=length))

    # ---- taken back ----

    def _withdrawals(self, count: int) -> Iterator[tuple[str, Any, Any]]:
        """Of a table the row that goes, and the one that comes instead, if any."""
        random = self.random
        for _ in range(count):
            kind = random.randrange(20)
            if kind < 14 and self.bids:
                at = random.randrange(max(0, len(self.bids) - 5000), len(self.bids))
                self.bids[at], self.bids[-1] = self.bids[-1], self.bids[at]
                yield "bid", self.bids.pop(), None
            elif kind < 18 and self.auctions:
                key = max(FIRST, self.next_auction - 1 - random.randrange(3 * OPEN))
                was = self.auctions[key]
                then = was._replace(
                    category=10 + random.randrange(5), expires=was.expires + random.randrange(500)
                )
                self.auctions[key] = then
                yield "auction", was, then
            elif kind == 18 and len(self.people) > 1:
                key = max(FIRST, self.next_person - 1 - random.randrange(1000))
                if key in self.people:
                    yield "person", self.people.pop(key), None
            else:
                key = random.randrange(SIDE)
                was_side = self.sides[key]
                self.sides[key] = Side(key, f"side {random.randrange(10**6)}")
                yield "side", was_side, self.sides[key]
