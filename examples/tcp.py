"""A model of TCP: four processors in a loop that deliver a text over a network that loses it.

The sender numbers what it is given and sends it again when it is asked to. The receiver puts what
arrives in order, hands on what is complete, and asks for the first number it is missing. Between
them are two networks that drop, delay and reorder. Whatever they do, the receiver hands on exactly
what the sender was given, as long as no packet is lost for ever.

    python examples/tcp.py

Events travel in lists, one list a round. A round's new data and the requests that came back are one
stream for the sender: `interleave` puts the data first. That is the one stage here that is no
processor of its own: two streams side by side have no order, and a sender's answers do. The rounds
of a loop fix the order, so inside a loop it is fine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from ebbflow.algebra import LIST, product
from ebbflow.stream import Loop, Processor, elementwise, identity, loop, processor

TWO_LISTS = product(LIST, LIST)


@dataclass(frozen=True)
class Data:
    """Something the sender is asked to deliver."""

    item: Any


@dataclass(frozen=True)
class Packet:
    """An item on its way, with its number."""

    number: int
    item: Any


@dataclass(frozen=True)
class Request:
    """The receiver is waiting for this number."""

    number: int


@dataclass(frozen=True)
class Clock:
    """A round has passed; it keeps things moving when all else is lost."""


def _send(sent: list[Any], event: Any) -> tuple[list[Any], list[Any]]:
    match event:
        case Data(item):
            sent.append(item)
            return sent, [Packet(len(sent) - 1, item)]
        case Request(number) if number < len(sent):
            return sent, [Packet(number, sent[number])]
        case Clock():
            return sent, [event]
    return sent, []


def _receive(state: Any, event: Any) -> Any:
    early, wanted = state
    ready = []
    if isinstance(event, Packet) and event.number >= wanted:
        early[event.number] = event.item
        while wanted in early:
            ready.append(early.pop(wanted))
            wanted += 1
    clock = [event] if isinstance(event, Clock) else []
    return (early, wanted), (ready, [Request(wanted), *clock])


@dataclass
class Weather:
    """What a network has on its way, and the dice that decide its fate."""

    dice: Random
    delayed: list[tuple[int, Any]]
    seen: dict[int, int]
    round: int = 0


@dataclass(frozen=True)
class PassOn:
    """Each number is dropped or held back at will, until it has been seen `patience` times."""

    patience: int
    loss: float
    delay: int

    def __call__(self, sky: Weather, event: Any) -> tuple[Weather, list[Any]]:
        if isinstance(event, Clock):
            sky.round += 1
            due = [e for when, e in sky.delayed if when <= sky.round]
            sky.delayed = [(when, e) for when, e in sky.delayed if when > sky.round]
            sky.dice.shuffle(due)
            return sky, [*due, event]
        times = sky.seen[event.number] = sky.seen.get(event.number, 0) + 1
        if times > self.patience:
            return sky, [event]
        if sky.dice.random() < self.loss:
            return sky, []
        sky.delayed.append((sky.round + sky.dice.randint(0, self.delay), event))
        return sky, []


def sender() -> Processor[list[Any], list[Any]]:
    """Data and requests to packets."""
    return elementwise(_send, state=[], name="sender()")


def receiver() -> Processor[list[Any], Any]:
    """Packets to items in order, and requests for the first one missing."""
    return elementwise(_receive, state=({}, 0), target=TWO_LISTS, name="receiver()")


def network(
    seed: int, *, patience: int = 3, loss: float = 0.5, delay: int = 4
) -> Processor[list[Any], list[Any]]:
    """Loses, delays and reorders, but a number that came `patience` times gets through at once."""
    weather = Weather(Random(seed), [], {})
    return elementwise(PassOn(patience, loss, delay), state=weather, name=f"network({seed})")


def _interleave(_: None, streams: tuple[list[Any], list[Any]]) -> tuple[None, list[Any]]:
    data, back = streams
    return None, [*data, *(event for event in back if not isinstance(event, Clock)), Clock()]


def connection(seed: int, **weather: Any) -> Loop:
    """The four in a circle: a list of rounds of `Data` to a list of rounds of items."""
    interleave = processor(_interleave, source=TWO_LISTS, target=LIST, name="interleave")
    there, back = network(seed, **weather), network(seed + 1, **weather)
    return loop(interleave >> sender() >> there >> receiver() >> identity(LIST) * back)


def deliver(
    items: list[Any], seed: int, *, rounds: int = 10_000, **weather: Any
) -> tuple[list[Any], int]:
    """Send `items` in the first round, then wait. Gives what arrived, and after how many rounds."""
    live = connection(seed, **weather).open()
    arrived: list[Any] = []
    for number in range(1, rounds + 1):
        [ready] = live.send([[Data(item) for item in items] if number == 1 else []])
        arrived += ready
        assert arrived == items[: len(arrived)], "what arrives is a beginning of what was sent"
        if len(arrived) == len(items):
            return arrived, number
    return arrived, rounds


if __name__ == "__main__":
    text = "values flow in and ebb out"
    for loss in (0.0, 0.5, 0.9):
        arrived, rounds = deliver(list(text), seed=7, loss=loss, patience=20)
        print(f"loss {loss:3.0%}: {''.join(arrived)!r} after {rounds} rounds")
