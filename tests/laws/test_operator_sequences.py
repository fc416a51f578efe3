"""Sequences of operators: a side that changes alone, and an aggregate that leans on a join."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pytest

from ebbflow.change import NUMBER, TEXT, Both, Delete, First, Insert, Second, pair
from ebbflow.errors import ChangeError, EbbflowError
from ebbflow.laws import check
from ebbflow.operator import (
    Operator,
    aggregate,
    binary,
    distinct,
    join,
    map_rows,
    on_input,
    product,
    select,
)
from ebbflow.operator.aggregate import Leaning
from ebbflow.operator.text import concat, last_index_of, length, lower, upper
from ebbflow.state.cells import Cells
from ebbflow.zset import ZSet


def greater(a: Any, b: Any) -> Any:
    return a if a > b else b


def third(x: int) -> int:
    return x % 3


def zero(x: int) -> int:
    return 0


def large(x: int) -> bool:
    return x > 3


LEANING: list[Operator[Any, Any, Any, Any]] = [
    join(third) >> aggregate(max),
    join(third) >> aggregate(greater, empty=()),
    join(third, merge=lambda a, b: a - b) >> aggregate(min, empty=0, output=NUMBER),
    (select(large) * map_rows(third)) >> product() >> aggregate(greater),
    map_rows(third) >> distinct() >> aggregate(greater),
]


@pytest.mark.parametrize("network", LEANING, ids=repr)
def test_004_O9_an_aggregate_that_leans_fulfils_every_axiom(network: Any) -> None:
    assert any(isinstance(lean, Leaning) for lean in network._leaning)
    check(network, examples=8)


@pytest.mark.parametrize("merge", [max, min, greater])
def test_004_O9_what_runs_out_is_read_from_the_operator_before(merge: Any) -> None:
    network: Any = join(lambda x: x % 10) >> aggregate(merge)
    rows = list(range(200))
    x = ZSet.of(rows), ZSet.of(rows)
    state, random = network.init(x), Random(3)
    while rows:
        row = merge(rows) if merge is not greater and random.random() < 0.8 else random.choice(rows)
        row = max(rows) if merge is greater and random.random() < 0.8 else row
        rows.remove(row)
        change = Both(ZSet({row: -1}), ZSet({row: -1}))
        state, _ = network.step(state, change)
        x = network.input.patch(x, change)
        assert network.stages[-1].now(state[-1]) == network.f(x)
        assert network.invariant(x, state) if len(rows) % 20 == 0 else True


def test_004_O9_an_aggregate_behind_a_join_keeps_few_rows_and_reads_seldom() -> None:
    network: Any = join(zero) >> aggregate(greater)
    read, calls = network._leaning[1].read, []

    def counted(state: Any) -> Any:
        calls.append(state)
        return read(state)

    network._leaning[1].read = counted
    x = ZSet.of(range(100)), ZSet.of(range(100))
    state = network.init(x)
    (_, cells) = state[-1]
    assert isinstance(cells, Cells)
    assert len(cells.values[()].tree) <= 200
    for n in range(99, 49, -1):
        state, _ = network.step(state, First(ZSet({n: -1})))
    assert len(calls) <= 12
    assert network.stages[-1].now(state[-1]) == (49, 99)


def test_004_O9_an_aggregate_by_a_tree_does_not_lean() -> None:
    network: Any = join(third) >> aggregate(lambda a, b: (a[0] + b[0], 0))
    assert network._leaning == [None, None]


def test_004_O9_a_refused_change_leaves_what_leans_as_it_was() -> None:
    network: Any = join(zero) >> aggregate(max)
    live = network.open((ZSet.of(range(9)), ZSet.of(range(9))))
    with pytest.raises(ChangeError):
        live.send(First(ZSet({50: -1})))
    with pytest.raises(EbbflowError):
        live.send(First(ZSet({float("nan"): 1})))
    assert network.invariant((ZSet.of(range(9)), ZSet.of(range(9))), live.state)
    again = pickle.loads(pickle.dumps(live.state))
    assert network.invariant((ZSet.of(range(9)), ZSet.of(range(9))), again)


# ---- a side that changes alone ----


def both_lengths(x: tuple[str, str]) -> int:
    return len(x[0]) + 2 * len(x[1])


def longer(x: tuple[str, str], change: Any) -> int:
    return both_lengths(pair(TEXT, TEXT).patch(x, change)) - both_lengths(x)


plain = on_input(both_lengths, longer, input=pair(TEXT, TEXT), output=NUMBER, name="plain")
TEXTS: list[Operator[Any, Any, Any, Any]] = [
    binary(lower, upper, concat) >> last_index_of("A"),
    binary(upper, upper, concat) >> last_index_of("A"),
    binary(upper, lower, concat) >> length,
    binary(lower, upper, plain),
    binary(upper, upper, plain),
    (lower * lower) >> concat >> lower >> length,
]


@pytest.mark.parametrize("network", TEXTS, ids=repr)
def test_004_O9_a_side_alone_is_handed_on_as_it_would_be_wrapped(network: Any) -> None:
    check(network, examples=12)
    x, random = ("Σaİß-ΟΔΟΣ", "xAΣ y"), Random(1)
    state = network.init(x)
    y = network.f(x)
    for _ in range(200):
        edits = []
        for text in x:
            at = random.randint(0, len(text))
            new = Insert(at, random.choice(["Σ", "aA", "İ", " ", "ß"]))
            edits.append(new if random.random() < 0.6 else Delete(at, min(2, len(text) - at)))
        change = random.choice([First(edits[0]), Second(edits[1]), Both(*edits)])
        state, moved = network.step(state, change)
        x, y = network.input.patch(x, change), network.output.patch(y, moved)
        assert y == network.f(x)
    assert network.invariant(x, state)


@pytest.mark.parametrize("network", TEXTS, ids=repr)
def test_004_O9_what_is_no_change_of_a_pair_is_refused(network: Any) -> None:
    with pytest.raises(EbbflowError):
        network.step(network.init(("a", "b")), Insert(0, "x"))
