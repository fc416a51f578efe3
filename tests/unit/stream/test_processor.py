"""Processors as values: shown, pasted back, paused, pickled, resumed, and run without end."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from itertools import count, islice
from typing import Any

import cloudpickle
import pytest

import ebbflow.algebra as algebra
import ebbflow.stream as stream
from ebbflow.algebra import ADD, LIST, SET, product
from ebbflow.errors import AlgebraError, CompositionError
from ebbflow.laws.strategies import elements_of, examples
from ebbflow.stream import (
    Processor,
    StratifiedDifference,
    TickedDifference,
    by_cancelling,
    by_idempotence,
    chunks,
    datalog,
    decompose,
    defunctionalise,
    derivative,
    elementwise,
    filter_each,
    full_adder,
    function_of,
    fuse,
    identity,
    integral,
    join,
    loop,
    map_each,
    merge,
    pairs,
    parallel,
    partition,
    prefix_sum,
    processor,
    pure,
    reduce_in_processes,
    settle,
    split_by,
    split_join,
    stable_hash,
    tabulate,
)
from ebbflow.zset import ZSETS, ZSet


def one_more(state: int, x: int) -> tuple[int, list[int]]:
    return state + 1, [x + state]


def same(a: Any, b: Any) -> bool:
    return bool(a == b)


def second(generator: tuple[int, Any]) -> Any:
    return generator[1]


def rules(given: frozenset, derived: frozenset) -> frozenset:
    return given | {n - 1 for n in derived if n}


def gather(seen: list, xs: list) -> tuple[list, list]:
    said = list(seen) if xs else []
    seen += xs
    return seen, said


counting = elementwise(one_more, state=0)
PASTEABLE: list[Processor] = [
    prefix_sum(),
    derivative(),
    integral(algebra.STR),
    map_each(abs),
    filter_each(bool),
    identity(LIST),
    counting,
    prefix_sum() >> derivative() >> map_each(abs),
    prefix_sum() & (counting & counting),
    (prefix_sum() >> counting) * (map_each(abs) * prefix_sum()),
    parallel(prefix_sum(), counting, counting),
    pairs(ZSETS, ZSETS),
    join(same, SET, SET),
    TickedDifference(),
    StratifiedDifference(),
    datalog(rules),
    pure(len, LIST, ADD),
    fuse(map_each(abs) >> map_each(float) >> counting),
    decompose(prefix_sum()),
    split_by(second, product(ZSETS, ZSETS), ways=3),
    partition(join(same, ZSETS, ZSETS), split_by(second, product(ZSETS, ZSETS))),
    partition(join(same, ZSETS, ZSETS), split_join((abs, abs), product(ZSETS, ZSETS), ways=3)),
    processor(gather, state=[], source=LIST, target=LIST, output=["hi"]),
    full_adder(),
]
NAMES = {**vars(algebra), **vars(stream), "ZSETS": ZSETS, "same": same, "second": second,
         "rules": rules, "one_more": one_more, "gather": gather}  # fmt: skip


@pytest.mark.parametrize("one", PASTEABLE, ids=repr)
def test_a_repr_can_be_pasted_back(one: Processor) -> None:
    again = eval(repr(one), dict(NAMES))
    assert repr(again) == repr(one)
    assert again.start() == one.start()


@pytest.mark.parametrize("one", PASTEABLE, ids=repr)
def test_a_run_can_be_paused_pickled_and_resumed(one: Processor) -> None:
    inputs = [examples_of(one)[i] for i in (1, 2)]
    live = one.open()
    live.send(inputs[0])
    elsewhere = cloudpickle.loads(cloudpickle.dumps(live))
    assert repr(elsewhere) == repr(live)
    assert one.target.equal(elsewhere.send(inputs[1]), live.send(inputs[1]))


def examples_of(one: Processor) -> list[Any]:
    if repr(one) == "full_adder()":
        return [[], [(1, 1), (0, 1)], [(1, 0), (1, 1)]]
    if repr(one) == "StratifiedDifference()":
        a, b = frozenset("a"), frozenset("ab")
        return [[], [(b, a)], [(b, b), (a, a)]]
    if repr(one).startswith("integral(STR)"):
        return [[], ["a"], ["b", "c"]]
    if repr(one).startswith("loop(Consequences"):
        return [[], [frozenset({3})], [frozenset(), frozenset({1})]]
    return sorted(examples(elements_of(one.source), 60), key=lambda x: len(repr(x)))[-3:]


PAUSE = """
import pickle, sys
from ebbflow import ZSet
from ebbflow.algebra import product
from ebbflow.stream import partition, split_join, processor_of, by_cancelling, function_of
from ebbflow.operator import Operator
from ebbflow.stream import prefix_sum, join
from ebbflow.zset import ZSETS
import operator
first = operator.itemgetter(0)
names = [f"name {n}" for n in range(8)]
if sys.argv[1] == "pause":
    same = join(operator.eq, ZSETS, ZSETS)
    live = partition(same, split_join((first, first), same.source, ways=4)).open()
    live.send((ZSet.of((name,) for name in names), ZSet()))
    sys.stdout.buffer.write(pickle.dumps(live))
else:
    live = pickle.loads(sys.stdin.buffer.read())
    print(len(live.send((ZSet(), ZSet.of((name,) for name in names)))))
"""


def test_a_partitioned_join_goes_on_in_another_process_with_other_hashes() -> None:
    run = lambda seed, what, data: subprocess.run(
        [sys.executable, "-c", PAUSE, what], input=data, capture_output=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    ).stdout  # fmt: skip
    paused = run("1", "pause", b"")
    assert run("2", "resume", paused).strip() == b"8"


def test_stable_hashes_agree_with_equality_and_refuse_what_they_do_not_know() -> None:
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    assert stable_hash(("a", 1)) == stable_hash(("a", 1.0)) != stable_hash(("b", 1))
    assert stable_hash(frozenset("ab")) == stable_hash(frozenset("ba"))
    assert stable_hash("\ud800") >= 0
    with pytest.raises(AlgebraError, match="no hash that is the same"):
        stable_hash(object())


def test_what_is_made_of_named_functions_needs_no_cloudpickle() -> None:
    for thing in (
        by_cancelling(sorted, source=LIST, target=LIST),
        by_idempotence(frozenset, source=LIST, target=SET),
        function_of(prefix_sum()),
        tabulate(full_adder(), [0, 1]).decode(((0, [1]), (1, [0]))),
    ):
        pickle.loads(pickle.dumps(thing))


def test_a_resumed_run_goes_on_where_it_was_and_leaves_the_first_alone() -> None:
    live = (prefix_sum() >> counting).open()
    assert live.send([1, 2]) == [1, 4]
    copied = pickle.loads(pickle.dumps(live))
    assert copied.send([3]) == [8]
    assert live.send([3, 0]) == [8, 9]


def test_a_run_made_with_lambdas_travels_by_cloudpickle() -> None:
    live = processor(
        lambda n, s: (n + len(s), len(s)), state=0, source=algebra.STR, target=ADD
    ).open()
    live.send("abc")
    assert cloudpickle.loads(cloudpickle.dumps(live)).state == 3


def test_an_endless_stream_runs_in_bounded_memory() -> None:
    program = map_each(abs) >> prefix_sum() >> derivative() >> filter_each(bool) >> counting
    outputs = program.run(chunks(count(), 500))
    next(islice(outputs, 20, None))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    next(islice(outputs, 200, None))
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    assert peak - before < 500_000


def test_running_is_lazy_and_takes_one_piece_at_a_time() -> None:
    taken = []
    outputs = prefix_sum().run(taken.append(n) or [n] for n in count())
    assert [next(outputs) for _ in range(3)] == [[], [0], [1]]
    assert taken == [0, 1]


def test_chunks_cover_the_stream_and_keep_its_order() -> None:
    assert list(chunks([], 3)) == []
    assert list(chunks("abcdefg", 3)) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


def test_every_run_gets_its_own_state_and_its_own_first_output() -> None:
    one = processor(gather, state=[], source=LIST, target=LIST, output=["hi"])
    one.open().send([1])
    assert one.open().send([2]) == []
    one.open().output.append("mine")
    assert one.open().output == ["hi"]
    other = processor(gather, state=[], source=LIST, target=LIST)
    other.open().output.append("mine")
    assert other.open().output == []


def test_a_thousand_stages_run_fused_and_unfused() -> None:
    program = map_each(abs)
    for _ in range(1000):
        program = program >> map_each(abs)
    assert program([-1]) == fuse(program)([-1]) == [1]


def test_only_processors_compose_with_processors() -> None:
    for compose in (lambda p: p >> abs, lambda p: p * 3, lambda p: p & "x"):
        with pytest.raises(TypeError):
            compose(prefix_sum())


def test_a_monoid_made_twice_is_told_from_one_made_once() -> None:
    make = lambda: algebra.Monoid(0, lambda a, b: a + b, name="plus")
    one, two = make(), make()
    with pytest.raises(CompositionError, match="make the monoid once"):
        identity(one) >> identity(two)
    assert (identity(one) >> identity(one))(3) == 3


def test_a_missing_state_is_named() -> None:
    modulo_3 = elementwise(lambda n, x: ((n + x) % 3, [n]), state=0)
    with pytest.raises(AlgebraError, match="reaches state 2"):
        reduce_in_processes(modulo_3, [1] * 9, states=[0, 1], alphabet=[1], workers=1, pool=HERE)
    with pytest.raises(AlgebraError, match="reaches state 2"):
        reduce_in_processes(modulo_3, [1] * 2 + [0] * 2, states=[0, 1], workers=2, pool=HERE)


class Here:
    map = staticmethod(map)


HERE: Any = Here()


def test_what_does_not_fit_is_refused_where_it_is_put_together() -> None:
    with pytest.raises(CompositionError) as caught:
        prefix_sum() >> pairs(SET, SET)
    assert "test_processor.py:" in str(caught.value)
    with pytest.raises(CompositionError, match="reads LIST"):
        prefix_sum() & merge(SET)


def test_settle_needs_a_loop() -> None:
    with pytest.raises(CompositionError, match="needs a run of a loop"):
        settle(prefix_sum().open(), [1])


def test_a_loop_shows_its_body() -> None:
    assert repr(loop(pure(tuple, product(ADD, ADD), product(ADD, ADD)))) == (
        "loop(pure(tuple, product(ADD, ADD), product(ADD, ADD)))"
    )


# ---- representations at work ----

ALPHABET = [(0, 0), (0, 1), (1, 0), (1, 1)]


def bits_of(a: int, b: int, size: int) -> list[tuple[int, int]]:
    return [(a >> i & 1, b >> i & 1) for i in range(size)]


@pytest.mark.parametrize("alphabet", [None, ALPHABET])
@pytest.mark.parametrize("workers", [1, 3])
def test_003_H12_a_long_sum_is_reduced_in_several_processes(alphabet: Any, workers: int) -> None:
    size = 20_000
    a, b = 3**12_000, 7**7_000
    pairs_of_bits = bits_of(a, b, size)
    carry, total = reduce_in_processes(
        full_adder(), pairs_of_bits, states=[0, 1], alphabet=alphabet, workers=workers
    )
    assert sum(bit << i for i, bit in enumerate(total)) + (carry << size) == a + b
    assert total == full_adder()(pairs_of_bits)


def test_003_H12_runs_that_meet_share_their_work() -> None:
    from ebbflow.stream.represent import BLOCK, _reduce_part

    bits = [(0, 0)] * (BLOCK * 3)
    runs = _reduce_part((tabulate(full_adder(), [0, 1]), None, bits))
    (_, zero), (_, one) = runs[0], runs[1]
    assert zero[0] != one[0], "they start with different carries"
    assert all(x is y for x, y in zip(zero[1:], one[1:], strict=True)), "and then are one run"


def test_003_H12_what_is_not_in_the_alphabet_or_the_states_is_refused() -> None:
    with pytest.raises(AlgebraError, match="not in the alphabet"):
        defunctionalise(full_adder(), [(0, 0)]).encode([(1, 1)])
    with pytest.raises(AlgebraError, match="not among the states"):
        tabulate(full_adder(), [1, 2])
    with pytest.raises(AlgebraError, match="needs one that reads LIST"):
        defunctionalise(merge(SET), [1])


def test_a_large_alphabet_uses_tuples_of_codes() -> None:
    shifted = defunctionalise(map_each(abs), range(300))
    assert shifted.encode([5, 299]) == (5, 299)
    assert shifted.decode((5, 299))(None)[1] == [5, 299]


def test_zset_join_processor_takes_rows_back() -> None:
    live = join(same, ZSETS, ZSETS).open()
    one = ZSet.of([1])
    assert live.send((one, one)) == ZSet({(1, 1): 1})
    assert live.send((-one, ZSet())) == ZSet({(1, 1): -1})
    assert live.send((ZSet(), -one)) == ZSet()
