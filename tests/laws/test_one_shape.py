"""Operators are processors, processors are operators, and what is made of both keeps both laws."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.algebra import ADD, LIST, STR, product
from ebbflow.change import (
    BAG,
    BOOL,
    NATURAL,
    NUMBER,
    REPLACE,
    TEXT,
    ZSET,
    Both,
    First,
    Insert,
    Second,
    group,
    mapping,
    pair,
    sequence,
)
from ebbflow.errors import ChangeError, CompositionError, LawBroken
from ebbflow.laws import (
    BATCHING,
    CUT,
    CUT_CHANGES,
    EQUIVALENT,
    OUTPUT_KEPT,
    check,
    equivalent,
    independent,
    laws_of,
)
from ebbflow.laws.changes import changes_of, values_of
from ebbflow.laws.moves import MOVES
from ebbflow.laws.streams import ProcessorPair, processor_laws
from ebbflow.operator import (
    Operator,
    count,
    distinct,
    each,
    flat_map_rows,
    join,
    map_rows,
    of,
    on_input,
    operator_of,
    per_key,
    select,
    seq,
    sessions,
    top_rows,
    union,
)
from ebbflow.operator.text import length
from ebbflow.stream import (
    Processor,
    Sequential,
    by_cancelling,
    elementwise,
    fuse,
    identity,
    merge,
    partition,
    prefix_sum,
    processor,
    processor_of,
    pure,
    split_by,
    stable_hash,
)
from ebbflow.stream import join as pairs_that_match
from ebbflow.zset import ZSETS, ZSet


def even(n: int) -> bool:
    return n % 2 == 0


def alike(a: int, b: int) -> bool:
    return abs(a) == abs(b)


def once(rows: ZSet[Any]) -> ZSet[Any]:
    return rows.distinct()


square = on_input(lambda n: n * n, lambda n, k: 2 * n * k + k * k, input=NUMBER, output=NUMBER)
numbered = elementwise(lambda n, x: (n + 1, [(n, x)]), state=0, name="numbered")
once_each = processor_of(by_cancelling(once, source=ZSETS, target=ZSETS, name="once"))
matching = pairs_that_match(alike, ZSETS, ZSETS)

STREAMS = [
    NUMBER,
    NATURAL,
    BOOL,
    ZSET,
    BAG,
    group(LIST),
    pair(BAG, NUMBER),
    sequence(TEXT),
    sequence(mapping(NUMBER)),
]


# ---- change structures whose changes are a stream ----


@pytest.mark.parametrize("structure", STREAMS, ids=repr)
@given(data=st.data())
@settings(max_examples=20)
def test_changes_put_together_do_what_they_do_one_after_the_other(
    structure: Any, data: st.DataObject
) -> None:
    assert structure.is_stream
    value = data.draw(values_of(structure) | st.just(structure.empty))
    one = data.draw(changes_of(structure, value))
    between = structure.patch(value, one)
    other = data.draw(changes_of(structure, between))
    monoid = structure.monoid
    assert structure.patch(value, monoid.combine(one, other)) == structure.patch(between, other)
    assert structure.patch(value, monoid.zero) == value
    assert monoid.equal(monoid.combine(monoid.zero, one), monoid.combine(one, monoid.zero))


def test_what_is_no_stream_says_so() -> None:
    assert not TEXT.is_stream
    assert not REPLACE.is_stream
    assert not pair(BAG, TEXT).is_stream
    assert not sequence(REPLACE).is_stream
    with pytest.raises(ChangeError, match=r"sequence\(TEXT\)"):
        _ = length.source
    with pytest.raises(ChangeError, match="could start from"):
        each(of(str, REPLACE)).start()


def test_moves_are_put_together_end_to_end() -> None:
    check(MOVES, elements=[None, (1, 1)])
    assert MOVES.combine((1, 2), (2, 5)) == (1, 5)
    assert MOVES.equal((3, 3), None)
    assert not MOVES.equal((3, 4), None)
    assert not MOVES.equal((3, 4), (3, 5))


# ---- an operator is a processor ----


def test_an_operator_runs_as_a_processor_from_the_empty_input() -> None:
    assert isinstance(count(), Processor)
    assert list(count().run([ZSet.of("ab"), ZSet({"a": -1})])) == [0, 2, -1]
    assert count()(ZSet.of("abc")) == 3
    assert list(each(length).run([(Insert(0, "ab"), Insert(0, "c")), ()])) == [(), (2, 1), ()]
    live = union().open()
    assert live.output == ZSet()
    assert live.send(Both(ZSet.of("a"), ZSet.of("a"))) == ZSet({"a": 2})
    assert pickle.loads(pickle.dumps(live)).send(First(ZSet({"a": -1}))) == ZSet({"a": -1})


def test_what_is_said_first_is_what_the_empty_input_gives() -> None:
    plus_one = on_input(lambda n: n + 1, lambda n, k: k, input=NUMBER, output=NUMBER)
    assert list((plus_one >> square).run([2, 3])) == [1, 8, 27]
    assert (plus_one >> square)(5) == 36


@pytest.mark.parametrize("one", [distinct(), select(even) >> once_each >> count()], ids=repr)
def test_operators_keep_every_law_of_processors(one: Operator[Any, Any, Any, Any]) -> None:
    assert len(processor_laws(one)) == 8
    check(one, laws=processor_laws(one), examples=6)


class FirstOnly(Operator[ZSet[int], ZSet[int], int, int]):
    """Right for changes of one row, and wrong for two that came together."""

    input, output = BAG, NATURAL

    def f(self, x: ZSet[int]) -> int:
        return sum(weight for _, weight in x.items())

    def init(self, x: ZSet[int]) -> None:
        return None

    def step(self, state: None, change: ZSet[int]) -> tuple[None, int]:
        return None, next((weight for _, weight in change.items()), 0)


def test_an_operator_that_depends_on_the_cut_breaks_the_law_of_processors() -> None:
    assert CUT_CHANGES in laws_of(count())
    assert CUT_CHANGES not in laws_of(length)
    one, two, nothing = ZSet.of([1]), ZSet.of([2]), ZSet[int]()
    assert CUT_CHANGES.holds(FirstOnly(), x=two, changes=(one, nothing))
    with pytest.raises(LawBroken, match="how the changes were cut") as caught:
        CUT_CHANGES.test(FirstOnly(), x=nothing, changes=(one, two, nothing))
    assert (caught.value.left, caught.value.right) == (2, 1)
    assert CUT.holds(count(), p=one, a=one, b=two)
    assert not CUT.holds(FirstOnly(), p=one, a=one, b=two)
    assert not BATCHING.holds(FirstOnly(), pieces=[one, two])


def test_a_change_that_is_altered_later_is_found() -> None:
    class Reusing(FirstOnly):
        output = group(LIST)

        def f(self, x: ZSet[int]) -> list[int]:  # type: ignore[override]
            return []

        def init(self, x: ZSet[int]) -> list[int]:  # type: ignore[override]
            return []

        def step(self, state: Any, change: Any) -> tuple[Any, Any]:
            state += [0] * bool(change)
            return state, state

    with pytest.raises(LawBroken, match="changes an output that was already given"):
        OUTPUT_KEPT.test(Reusing(), p=ZSet.of([1]), a=ZSet.of([2]))
    OUTPUT_KEPT.test(count(), p=ZSet.of([1]), a=ZSet.of([2]))


def test_operators_are_compared_as_processors() -> None:
    equivalent(select(even) >> select(bool), select(lambda n: n % 2 == 0 and n), examples=15)
    with pytest.raises(LawBroken) as caught:
        EQUIVALENT.test(ProcessorPair(distinct(), select(even)), pieces=[ZSet.of([2, 2])])
    assert (caught.value.left, caught.value.right) == (
        (ZSet(), ZSet.of([2])),
        (ZSet(), ZSet.of([2, 2])),
    )


# ---- a processor is an operator ----


@pytest.mark.parametrize(
    "one",
    [
        operator_of(once_each),
        operator_of(matching),
        operator_of(numbered),
        operator_of(once_each, input=BAG, output=BAG) >> count(),
    ],
    ids=repr,
)
def test_processors_keep_every_law_of_operators(one: Operator[Any, Any, Any, Any]) -> None:
    check(one, examples=8)


def test_a_processor_of_a_group_takes_back() -> None:
    live = operator_of(matching).open((ZSet.of([1, 2]), ZSet.of([-1])))
    assert live.send(Second(ZSet({-1: -1, -2: 1}))) == ZSet({(1, -1): -1, (2, -2): 1})
    assert live.send(Both(ZSet({2: -1}), ZSet({-2: -1}))) == ZSet({(2, -2): -1})
    counted = count()
    assert operator_of(counted) is counted


def test_ends_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CompositionError, match="are no changes of TEXT"):
        operator_of(once_each, input=TEXT)
    with pytest.raises(CompositionError, match="are no changes of NUMBER"):
        operator_of(once_each, output=NUMBER)


# ---- the two mixed ----


def test_signs_mix_operators_and_processors_from_either_side() -> None:
    rows = ZSet.of([1, 2, 2, 4])
    for mixed in (
        select(even) >> once_each >> count(),
        once_each >> select(even) >> count(),
        select(even) >> (once_each >> count()),
        (select(even) >> once_each) >> count(),
    ):
        assert isinstance(mixed, Operator)
        assert mixed.f(rows) == mixed(rows) == 2
        assert mixed.open(rows).send(ZSet({2: -2, 6: 1})) == 0
    beside = once_each * count()
    assert beside.open((rows, rows)).send(First(ZSet({2: -1}))) == First(ZSet())
    assert (count() * once_each).input == pair(BAG, ZSET)
    for both in (once_each & count(), operator_of(once_each, input=BAG) & count()):
        assert both.open(rows).send(ZSet({2: -2})) == Both(ZSet({2: -1}), -2)
    assert (count() & once_each).f(rows) == (4, ZSet.of([1, 2, 4]))


def test_a_splitter_feeds_operators_side_by_side_and_a_merge_comes_after() -> None:
    parts = split_by(abs, ZSETS) >> (distinct() * select(even)) >> merge(ZSETS)
    assert isinstance(parts, Operator)
    assert parts.f(ZSet.of([1, 2, 2, 3])) == ZSet.of([2])
    assert list(parts.run([ZSet.of([2]), ZSet.of([2, 4])])) == [ZSet(), ZSet.of([2]), ZSet.of([4])]


def test_a_list_becomes_a_bag_on_its_way_to_an_operator() -> None:
    distinct_words = pure(ZSet.of, LIST, ZSETS) >> distinct() >> count()
    assert distinct_words.input == group(LIST)
    assert distinct_words.f(["a", "b", "a"]) == 2
    assert list(distinct_words.run([["a"], ["a", "b"]])) == [0, 1, 1]


def test_where_values_are_no_elements_the_whole_is_a_processor() -> None:
    edits = processor(lambda n, edits: (n + len(edits), len(edits)), state=0,
                      source=sequence(NUMBER).monoid, target=ADD)  # fmt: skip
    mixed = each(length) >> edits
    assert isinstance(mixed, Sequential)
    assert list(mixed.run([(Insert(0, "a"), Insert(0, "b")), ()])) == [0, 2, 0]
    fanned = each(length) & processor(lambda s, edits: (s, len(edits)), source=each(length).source,
                                      target=ADD)  # fmt: skip
    assert list(fanned.run([(Insert(0, "ab"),)])) == [((), 0), ((2,), 1)]


def test_what_does_not_fit_is_refused_in_both_orders() -> None:
    with pytest.raises(CompositionError, match="writes ADD, the second reads ZSETS"):
        count() >> once_each
    with pytest.raises(CompositionError, match="writes LIST, the second reads ZSETS"):
        prefix_sum() >> count()
    with pytest.raises(CompositionError, match="the second"):
        count() & prefix_sum()
    with pytest.raises(TypeError):
        count() >> 3  # type: ignore[operator]
    with pytest.raises(TypeError):
        3 & count()  # type: ignore[operator]


# ---- any function ----


def longest_run(rows: ZSet[int]) -> int:
    """How many whole numbers in a row there are, at most."""
    starts = [n for n in rows if n - 1 not in rows]
    return max((next(k for k in range(1, 99) if n + k not in rows) for n in starts), default=0)


def longest(words: ZSet[str]) -> int:
    return max(map(len, words), default=0)


def test_any_function_is_an_operator_that_computes_it_again() -> None:
    calls = []

    def spelled(rows: ZSet[int]) -> str:
        calls.append(len(rows))
        return ",".join(map(str, sorted(rows)))

    again = of(spelled, BAG, sequence(TEXT), name="spelled")
    check(again, examples=12)
    calls.clear()
    live = again.open(ZSet.of([1, 3]))
    assert TEXT.patch_all("1,3", live.send(ZSet.of([2]))) == "1,2,3"
    assert calls == [2, 3]
    assert again.recomputes
    assert (select(even) >> again).recomputes
    assert (again * count()).recomputes
    assert (count() & again).recomputes
    assert not (count() & distinct()).recomputes
    with pytest.raises(ChangeError):
        live.send(ZSet({7: -1}))


def test_a_function_without_a_difference_of_its_results_is_refused() -> None:
    with pytest.raises(CompositionError, match=r"TEXT has no difference(.|\n)*sequence\(TEXT\)"):
        of(str, BAG, TEXT)
    with pytest.raises(CompositionError, match="no change structure"):
        of(len, BAG, int)  # type: ignore[arg-type]
    with pytest.raises(CompositionError, match="an operator is one already"):
        of(count(), BAG, NATURAL)  # type: ignore[arg-type]
    assert repr(of(longest, BAG, NATURAL)) == "of(longest, BAG, NATURAL)"


def test_a_pair_is_a_product_and_its_changes_are_pieces_of_it() -> None:
    labelled = processor(lambda s, piece: (s, piece), source=product(ZSETS, STR),
                         target=product(ZSETS, STR))  # fmt: skip
    made = operator_of(labelled)
    assert made.input == made.output == pair(ZSET, group(STR))
    assert made.open((ZSet(), "")).send(First(ZSet.of("a"))) == Both(ZSet.of("a"), "")
    assert made.open().send(Second("x")) == Both(ZSet(), "x")
    assert identity(ZSETS)(ZSet.of("a")) == ZSet.of("a")
    assert join(even, even).input == pair(BAG, BAG)


# ---- one fusion ----


def both(n: int) -> list[int]:
    return [n, n + 1]


def test_003_H5_operators_on_one_row_at_a_time_become_one_loop() -> None:
    plain = select(even) >> map_rows(abs) >> flat_map_rows(both) >> distinct() >> map_rows(abs)
    fused = fuse(plain)
    assert repr(fused) == (
        "fuse(select(even) >> map_rows(abs) >> flat_map_rows(both)) >> distinct() >> map_rows(abs)"
    )
    assert repr(fuse(fused)) == repr(fused)
    equivalent(plain, fused, examples=15)
    assert fused.f(ZSet.of([2, 3, -4])) == plain.f(ZSet.of([2, 3, -4]))
    assert repr(fuse(select(even) >> map_rows(abs))) == "fuse(select(even) >> map_rows(abs))"
    counted = count()
    assert fuse(counted) is counted
    assert repr(fuse(distinct() >> select(even))) == "distinct() >> select(even)"


def test_003_H5_only_as_many_flat_maps_as_python_nests_go_into_one_loop() -> None:
    deep = fuse(seq(*[flat_map_rows(both)] * 20))
    assert [len(stage.chain.steps) for stage in deep.stages] == [8, 8, 4]
    assert sum(deep.f(ZSet.of([0])).weight(n) for n in range(21)) == 2**20


def test_003_H5_what_goes_through_a_program_is_fused() -> None:
    numbers = ef.Input("numbers", int)
    passed = numbers.through(select(even) >> map_rows(abs) >> count(), type=int)
    assert repr(passed.node.operator) == "fuse(select(even) >> map_rows(abs)) >> count()"
    assert passed.run().step(numbers=[1, 2, -4]) == ZSet.of([(2,)])


# ---- one partition rule ----


def third(n: int) -> int:
    return n // 3


each_once = per_key(operator_of(once_each, input=BAG), third)


@pytest.mark.parametrize(
    "one",
    [
        per_key(count(), third),
        each_once,
        per_key(of(longest_run, BAG, NATURAL), third),
        top_rows(1, abs, third),
        sessions(abs, 1, third),
        ef.sum().operator(third),
    ],
    ids=repr,
)
def test_003_H7_the_key_of_an_operator_says_how_it_may_be_cut(one: Any) -> None:
    """What a program is cut by on Spark is the key of its operators; the law is that of streams."""
    by_key = split_by(lambda row: stable_hash(third(row)), ZSETS, ways=3)
    independent(one, by_key, examples=12)
    rows = ZSet.of(range(9))
    assert partition(one, by_key)(rows) == one(rows)
    anyhow = partition(one, split_by(lambda row: row, ZSETS, ways=3))
    assert (anyhow(rows) == one(rows)) == (one is each_once), (
        "it looks at the rows of a key together"
    )
