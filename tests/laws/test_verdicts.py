"""Every reducer of a list of right and wrong ones gets the verdict it deserves, and the reason."""

from __future__ import annotations

import importlib.util
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from ebbflow import LawBroken
from ebbflow import reducer as r
from ebbflow.errors import CheckError
from ebbflow.laws import (
    ADD_COMMUTES,
    INCREMENTAL,
    REMOVE_INVERTS,
    Judgement,
    check,
    close,
    judge,
    laws_of,
)
from ebbflow.laws.rows import Pool, contains
from ebbflow.reducer import RECOMPUTE, Reducer
from ebbflow.zset import ZSet

ROOT = Path(__file__).parents[2]


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


judged_reducers = load("judged_reducers")


@cache
def judged_once(name: str) -> Judgement:
    return judge(getattr(judged_reducers, name))


@pytest.mark.parametrize(("name", "expected"), judged_reducers.EXPECTED.items())
def test_000_R8_published_and_plausible_reducers_are_judged(name: str, expected: str) -> None:
    judged = judged_once(name)
    assert judged.verdict == expected, judged
    if expected == "refuted":
        assert judged.broken.remedy
        assert not judged.broken.law.holds(judged.thing, **judged.broken.case) or name in {
            "sampled", "remembers", "moody_result",
        }  # fmt: skip


def test_every_judged_reducer_has_an_expected_verdict() -> None:
    own = {name for name, each in vars(judged_reducers).items() if isinstance(each, Reducer)}
    assert own == set(judged_reducers.EXPECTED)


BROKEN_LAW = {
    "running_mean": "ADD_COMMUTES",
    "max_forgets_nothing": "REMOVE_INVERTS",
    "second_best_careless": "REMOVE_INVERTS",
    "dearest": "ADD_COMMUTES",
    "latest": "ADD_COMMUTES",
    "last_of_each_city": "ADD_COMMUTES",
    "first_price_of_each": "ADD_COMMUTES",
    "concatenation": "ADD_COMMUTES",
    "zero_buckets": "REMOVE_INVERTS",
    "appended_in_place": "ADD_KEEPS",
    "shared_start": "ADD_KEEPS",
    "sampled": "FOLD_REPEATS",
    "remembers": "FOLD_REPEATS",
    "moody_result": "RESULT_REPEATS",
    "promised": "ALWAYS_ANSWERS",
}


@pytest.mark.parametrize(("name", "law"), BROKEN_LAW.items())
def test_the_reason_is_the_law_that_tells_most(name: str, law: str) -> None:
    assert judged_once(name).broken.law.name == law


def test_000_R3_a_refutation_shows_the_rows_the_value_both_results_and_the_remedy() -> None:
    with pytest.raises(LawBroken) as error:
        check(judged_reducers.second_best_careless)
    text = str(error.value)
    assert error.value.case == {"rows": (0, 0), "value": 0}
    assert "remove does not undo add" in text
    assert "left side  (0, inf)" in text
    assert "right side (0, 0)" in text
    assert "RECOMPUTE" in error.value.remedy


def test_000_R8_the_same_failure_is_shown_as_an_update_that_goes_wrong() -> None:
    broken = judged_once("set_without_counts").broken
    text = str(broken)
    assert "update     0 leaves [0, 0]: the view says frozenset()" in text
    assert "recomputed the rows [0] give frozenset({0})" in text
    rows, value = broken.case["rows"], broken.case["value"]
    delta = ZSet({value: -1})
    assert not INCREMENTAL.holds(broken.thing, rows=(*rows, value), updates=(delta,))


def test_000_R2_two_orders_are_shown_with_their_results() -> None:
    text = str(judged_once("concatenation"))
    assert "one order  ['a', 'b'] give 'ab'" in text
    assert "another    ['b', 'a'] give 'ba'" in text


def test_a_refutation_by_rounding_names_the_exact_sum() -> None:
    broken = judged_once("naive_float_sum").broken
    assert "ebbflow.reducer.sum" in broken.remedy
    assert "floats" not in judged_once("mean_only").broken.remedy
    accepted = check(judged_reducers.int_sum, elements=[0.5, 0.25], equal=close())
    assert any("holds floats" in note for note in accepted.notes)


def test_000_R9_a_partial_reducer_that_answers_wrongly_once_is_refuted() -> None:
    def remove(low: float, x: int) -> Any:
        if x == 3:
            return low
        return RECOMPUTE if x == low else low

    sly = Reducer(float("inf"), min, remove, elements=range(5))
    broken = judge(sly).broken
    assert broken.law is REMOVE_INVERTS
    assert broken.case["value"] == 3


def test_000_R9_a_partial_verdict_says_when_it_recomputes() -> None:
    judged = check(judged_reducers.max_recomputes)
    assert "for example when 0 leaves [0]" in judged.why


def test_a_report_says_class_verdict_evidence_and_cost() -> None:
    judged = check(judged_reducers.sum_and_count, examples=50)
    assert isinstance(judged, Judgement)
    assert str(judged).splitlines() == [
        "sum_and_count: invertible",
        "    because    remove undoes add on every accumulator that rows lead to",
        "    class      algebraic",
        "    cost       one call of add or remove for each row that comes or goes",
        "    evidence   tested: 9 laws on up to 50 examples each",
        "    note       removing and adding commute (not required)",
        "    note       partial=False would save the engines from keeping its rows",
    ]


def test_000_R5_a_class_that_is_not_declared_is_measured() -> None:
    grows = Reducer((), lambda a, x: tuple(sorted((*a, x))), elements=range(30))
    assert check(grows).aggregate.startswith("holistic (measured")
    assert check(judged_reducers.int_sum).aggregate == "distributive"
    assert check(judged_reducers.sum_and_count).aggregate == "algebraic"


def test_a_wrong_merge_and_a_wrong_repeat_are_refuted() -> None:
    merges = Reducer(0, lambda a, x: a + x, merge=max, elements=range(3))
    assert judge(merges).broken.law.name == "MERGES"
    repeats = Reducer(
        0, lambda a, x: a + x, lambda a, x: a - x, repeat=lambda a, x, n: a + x, elements=range(3)
    )
    assert judge(repeats).broken.law.name == "REPEATS"
    only_back = Reducer(
        0, lambda a, x: a + x, lambda a, x: a - x, repeat=lambda a, x, n: a + x * abs(n),
        elements=range(3),
    )  # fmt: skip
    assert judge(only_back).broken.law.name == "REPEATS_BACK"


def test_a_merge_that_changes_its_argument_is_caught() -> None:
    def merge(a: list[int], b: list[int]) -> list[int]:
        a += b
        a.sort()
        return a

    leaky = Reducer([], lambda a, x: sorted([*a, x]), merge=merge, elements=range(3))
    assert judge(leaky).broken.law.name == "MERGE_KEEPS"


def test_a_remove_that_changes_its_argument_is_caught() -> None:
    def remove(counts: dict[int, int], x: int) -> dict[int, int]:
        counts[x] -= 1
        return {key: n for key, n in counts.items() if n}

    leaky = Reducer(
        {}, lambda counts, x: {**counts, x: counts.get(x, 0) + 1}, remove, elements=range(3)
    )
    assert judge(leaky).broken.law.name == "REMOVE_KEEPS"


def test_a_result_that_changes_its_argument_is_caught() -> None:
    leaky = Reducer(
        [], lambda a, x: sorted([*a, x]), result=lambda a: a and a.pop(), elements=range(3)
    )
    assert judge(leaky).broken.law.name == "RESULT_KEEPS"


def test_an_accumulator_without_equality_is_told_what_it_needs() -> None:
    class Box:
        def __init__(self, total: int) -> None:
            self.total = total

    boxed = Reducer(
        lambda: Box(0), lambda b, x: Box(b.total + x), lambda b, x: Box(b.total - x),
        elements=range(3),
    )  # fmt: skip
    assert "__eq__" in judge(boxed).broken.remedy
    same = Reducer(boxed.init, boxed.add, boxed.remove, elements=range(3),
                   equal=lambda a, b: a.total == b.total)  # fmt: skip
    assert check(same).verdict == "invertible"
    assert check(boxed, equal=lambda a, b: a.total == b.total).verdict == "invertible"


def test_an_add_that_raises_is_refuted_with_the_error() -> None:
    fails = Reducer(0, lambda a, x: a + 1 // x, elements=range(3))
    text = str(judge(fails))
    assert "fails for some rows: ZeroDivisionError" in text
    assert "rows it is meant for" in text


def test_checking_needs_rows_and_says_so() -> None:
    with pytest.raises(CheckError, match="pass elements="):
        check(Reducer(0, max))
    with pytest.raises(CheckError, match="must be hashable"):
        check(Reducer(0, max), elements=[[1]])


def test_elements_may_be_a_strategy_or_a_function() -> None:
    total = Reducer(0, lambda a, x: a + x, lambda a, x: a - x)
    assert check(total, elements=st.integers()).verdict == "invertible"
    assert check(total, elements=lambda: st.integers(0, 3)).verdict == "invertible"
    wrong = Reducer(0, lambda a, x: a + x, lambda a, x: a - x + (x > 1000))
    assert judge(wrong, elements=st.integers()).verdict == "refuted"


def test_the_same_check_gives_the_same_report() -> None:
    one, other = (str(judge(judged_reducers.heaviest_mean, seed=5)) for _ in range(2))
    assert one == other
    assert [law.name for law in laws_of(r.count())][:4] == [
        "FOLD_REPEATS", "ADD_KEEPS", "REMOVE_KEEPS", "MERGE_KEEPS",
    ]  # fmt: skip


def test_a_law_can_be_tried_by_hand() -> None:
    ADD_COMMUTES.test(r.sum(), rows=(0.1,), x=1, y=0.1)
    with pytest.raises(LawBroken, match="the order of the rows matters"):
        ADD_COMMUTES.test(r.naive_sum(), rows=(0.1,), x=1, y=0.1)


def test_randomness_is_caught_whatever_the_seed() -> None:
    random.seed(1)
    for seed in range(5):
        assert judge(judged_reducers.sampled, seed=seed).verdict == "refuted"


# ---- a proof's case inside and outside the elements ----


def _but(rare: int) -> Reducer[int, int, int]:
    return Reducer(0, lambda a, x: a + x, lambda a, x: a - x if x != rare else a, name="but")


@pytest.mark.parametrize(
    ("source", "row", "expected"),
    [
        (range(5), 3, True), (range(5), 7, False), (st.integers(0, 2000), 1000, True),
        (st.integers(), -123_456, True), (st.integers(0, 500), 1000, None),
        (lambda: st.integers(0, 9), 7, True), (lambda: [1, 2], 3, False),
        (st.tuples(st.integers(0, 9), st.integers(0, 2000)), (3, 1000), True),
        (st.integers().map(lambda x: 2 * x), 7, None), (st.floats(-1, 1), 2.0, None),
        (st.nothing(), 0, None),
    ],
)  # fmt: skip
def test_whether_a_row_is_among_the_elements(source: Any, row: Any, expected: bool | None) -> None:
    assert contains(source, row) is expected


def test_000_R3_a_case_that_z3_finds_inside_the_elements_refutes() -> None:
    pytest.importorskip("z3")
    judged = judge(_but(1000), elements=st.integers(0, 2000), prove=True)
    assert judged.verdict == "refuted"
    assert judged.broken.case == {"rows": (), "value": 1000}
    assert "update     1000 leaves [1000]" in str(judged)


def test_a_case_that_may_be_outside_is_a_doubt_and_one_that_is_outside_a_note() -> None:
    pytest.importorskip("z3")
    maybe = judge(_but(1000), elements=st.integers(0, 500), prove=True)
    assert maybe.verdict == "invertible"
    assert "rows possibly outside its elements" in maybe.doubt
    assert maybe.doubt in maybe.notes
    outside = judge(_but(1000), elements=range(500), prove=True)
    assert outside.doubt == ""
    assert any("for rows outside its elements" in note for note in outside.notes)


# ---- many rows, and rows that cancel ----


def _count_up_to(limit: int) -> Reducer[Any, Any, Any]:
    def add(counts: dict[int, int], x: int) -> dict[int, int]:
        return {**counts, x: min(counts.get(x, 0) + 1, limit)}

    return Reducer({}, add, lambda counts, x: _counted(counts, x), name="capped")


def _counted(counts: dict[int, int], x: int) -> dict[int, int]:
    return {key: n - (key == x) for key, n in counts.items() if n > (key == x)}


def _without(kept: tuple[int, ...], x: int) -> tuple[int, ...]:
    return kept if x not in kept else kept[: kept.index(x)] + kept[kept.index(x) + 1 :]


best_20 = Reducer((), lambda kept, x: tuple(sorted((*kept, x)))[-20:], _without, name="best_20")


@pytest.mark.parametrize(
    ("wrong", "elements", "most"),
    [
        (best_20, range(1000), 20),
        (_count_up_to(5), range(100), 5),
        (_count_up_to(6), range(100), 6),
        (_count_up_to(40), range(100), 40),
        (Reducer(0, lambda a, x: min(a + x, 10**6), lambda a, x: a - x), range(1000), 3000),
    ],
    ids=["best 20", "5 of each", "6 of each", "40 of each", "a million"],
)
def test_000_R9_a_limit_that_only_many_rows_reach_is_found_and_the_case_made_small(
    wrong: Reducer[Any, Any, Any], elements: Any, most: int
) -> None:
    broken = judge(wrong, elements=elements).broken
    assert broken is not None
    assert len(broken.case["rows"]) <= most
    assert not broken.law.holds(wrong, **broken.case)


def test_a_repeat_that_is_wrong_for_large_counts_only_is_found() -> None:
    wrong = Reducer(
        0, lambda a, x: a + x, lambda a, x: a - x, elements=range(3),
        repeat=lambda a, x, n: a + x * n if abs(n) < 50 else a,
    )  # fmt: skip
    broken = judge(wrong).broken
    assert broken.case["count"] == 50
    assert broken.case["rows"] == ()


def test_a_wrong_update_is_made_small_and_stays_possible() -> None:
    def add(acc: tuple[int, int], x: int) -> tuple[int, int]:
        return acc[0] + x, max(acc[1], acc[0] + x)

    highest = Reducer((0, 0), add, lambda acc, x: (acc[0] - x, acc[1]),
                      elements=range(1, 900), equal=lambda a, b: a[0] == b[0],
                      result=lambda acc: acc[1] > 20_000)  # fmt: skip
    broken = judge(highest).broken
    assert broken.law is INCREMENTAL
    bag = sum(broken.case["updates"], ZSet.of(broken.case["rows"]))
    assert bag.is_bag
    assert len(broken.case["updates"]) == 1
    assert len(broken.case["rows"]) < 60


@pytest.mark.parametrize(
    "elements", [st.integers(), range(-50, 50), range(-1000, 1000), st.integers(1) | st.just(-3)]
)
def test_000_R9_rows_that_cancel_are_tried(elements: Any) -> None:
    emptied = Reducer(
        (0, 0),
        lambda acc, x: (acc[0] + x, acc[1] + 1),
        lambda acc, x: (acc[0] - x, acc[1] - 1) if acc[0] else (0, 0),
    )
    assert judge(emptied, elements=elements).verdict == "refuted"


def test_rows_that_were_not_given_are_not_tried() -> None:
    assert Pool([1, 5, 9], [1, 5, 9]) == [1, 5, 9]
    assert Pool([2, 6], st.sampled_from([2, 6])) == [2, 6]
    assert set(Pool([3, 90], st.integers(0, 99))) == {3, 90, 0, 2, 4, 89, 91}
    assert [3, 0, 4, 2] in Pool([3, 90], st.integers(0, 99)).near
    assert Pool([0, 1.0], [0, 1.0]).near == [[0, 1.0], [1.0, 0]]
    tried: set[int] = set()
    check(Reducer(0, lambda a, x: a + (tried.add(x) or x), lambda a, x: a - x), elements=[2, -5])
    assert tried == {2, -5}


# ---- what is shown ----


class _AllAlike:
    def __init__(self, total: int) -> None:
        self.total = total

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_an_equality_that_says_yes_to_everything_does_not_hide_a_wrong_remove() -> None:
    alike = Reducer(
        lambda: _AllAlike(0), lambda a, x: _AllAlike(a.total + x), lambda a, x: a,
        result=lambda a: a.total, elements=range(5),
    )  # fmt: skip
    broken = judge(alike).broken
    assert broken.law is INCREMENTAL
    assert "shown as" in str(broken.facts["update"])
    assert "shown as" in str(broken.facts["recomputed"])
    ignores = Reducer(
        (0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: (a[0], a[1] - 1),
        result=lambda a: a[0], equal=lambda a, b: a[1] == b[1], elements=range(5),
    )  # fmt: skip
    assert judge(ignores).broken.law is INCREMENTAL
    assert judge(ignores, equal=lambda a, b: True).verdict == "invertible"


def test_results_may_be_nan_drift_with_equal_and_fail_for_no_rows() -> None:
    def mean(equal: Any, result: Any) -> Reducer[Any, Any, Any]:
        return Reducer(
            (0.0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: (a[0] - x, a[1] - 1),
            result=result, equal=equal, elements=[0.1, 0.2, 0.7],
        )  # fmt: skip

    assert judge(mean(close(), lambda a: a[0] / a[1])).verdict == "invertible"
    assert judge(mean(close(), lambda a: float("nan"))).verdict == "invertible"
    assert judge(mean(lambda a, b: a == b, lambda a: a[0] / a[1])).verdict == "refuted"
