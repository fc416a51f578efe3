"""The TCP model of the stream paper: whatever the networks do, what was sent arrives in order."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbflow.laws import check

PATH = Path(__file__).parents[2] / "examples" / "tcp.py"
spec = importlib.util.spec_from_file_location("tcp", PATH)
assert spec is not None
tcp: Any = importlib.util.module_from_spec(spec)
sys.modules["tcp"] = tcp
spec.loader.exec_module(tcp)  # type: ignore[union-attr]

NUMBERS = st.integers(0, 3)
PACKETS = st.builds(tcp.Packet, NUMBERS, st.sampled_from("xyz"))
REQUESTS = st.builds(tcp.Request, NUMBERS)
CLOCK = st.just(tcp.Clock())
WEATHER = {"loss": st.floats(0, 1), "patience": st.integers(0, 5), "delay": st.integers(0, 6)}


@pytest.mark.parametrize(
    ("part", "events"),
    [
        (tcp.sender(), st.builds(tcp.Data, st.sampled_from("xyz")) | REQUESTS | CLOCK),
        (tcp.receiver(), PACKETS | CLOCK),
        (tcp.network(3), PACKETS | REQUESTS | CLOCK),
    ],
    ids=["sender", "receiver", "network"],
)
def test_003_H11_each_part_is_a_processor(part: Any, events: Any) -> None:
    check(part, elements=st.lists(events, max_size=5), examples=60)


def test_003_H11_the_whole_connection_is_a_processor_of_rounds() -> None:
    rounds = st.lists(st.lists(st.sampled_from("xyz").map(tcp.Data), max_size=2), max_size=4)
    check(tcp.connection(5), elements=rounds, examples=60)


def test_003_H11_the_receiver_hands_on_what_is_complete_and_asks_for_the_first_missing() -> None:
    late, first = tcp.Packet(1, "b"), tcp.Packet(0, "a")
    live = tcp.receiver().open()
    assert live.send([late]) == ([], [tcp.Request(0)])
    assert live.send([first]) == (["a", "b"], [tcp.Request(2)])
    assert live.send([first]) == ([], [tcp.Request(2)]), "what came before is not handed on again"


def test_003_H11_the_network_reorders() -> None:
    packets = [tcp.Packet(n, n) for n in range(20)]
    sky = tcp.network(1, loss=0.0, patience=10**9, delay=3)
    arrived = [e for e in sky([*packets, *[tcp.Clock()] * 5]) if isinstance(e, tcp.Packet)]
    assert sorted(arrived, key=lambda p: p.number) == packets != arrived
    due_at_once = tcp.network(1, loss=0.0, patience=10**9, delay=0)
    shuffled = [e for e in due_at_once([*packets, tcp.Clock()]) if isinstance(e, tcp.Packet)]
    assert sorted(shuffled, key=lambda p: p.number) == packets != shuffled


def test_003_H11_joining_two_streams_is_not_one_by_itself() -> None:
    """Which is why the model needs the rounds of a loop; see `interleave`."""
    from ebbflow.errors import LawBroken
    from ebbflow.stream import processor

    interleave = processor(tcp._interleave, source=tcp.TWO_LISTS, target=tcp.LIST)
    with pytest.raises(LawBroken):
        check(interleave)


@given(st.lists(st.integers(), max_size=12), st.integers(0, 10**6), st.fixed_dictionaries(WEATHER))
@settings(max_examples=60)
def test_003_H11_delivers_under_loss_reordering_and_delay(
    items: list[int], seed: int, weather: dict[str, Any]
) -> None:
    arrived, rounds = tcp.deliver(items, seed, **weather)
    assert arrived == items
    per_item = 2 * (weather["patience"] + 1) + 1
    assert rounds <= 1 + per_item * len(items), "the bound of the proof"


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=8), st.integers(0, 10**6))
@settings(max_examples=30)
def test_003_H11_delivers_data_that_comes_over_many_rounds(batches: list, seed: int) -> None:
    live = tcp.connection(seed).open()
    sent = [item for batch in batches for item in batch]
    arrived: list[int] = []
    for batch in [*batches, *[[]] * (9 * len(sent) + 1)]:
        [ready] = live.send([[tcp.Data(item) for item in batch]])
        arrived += ready
        assert arrived == sent[: len(arrived)]
    assert arrived == sent


def test_003_H11_a_network_that_loses_for_ever_is_the_only_way_to_fail() -> None:
    arrived, rounds = tcp.deliver(["a"], seed=1, loss=1.0, patience=10**9, rounds=200)
    assert (arrived, rounds) == ([], 200)
