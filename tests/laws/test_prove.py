"""Proofs: what z3 can show, what it refutes, and what it honestly declines."""

from __future__ import annotations

import math
import operator
import random
import re
import time
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

pytest.importorskip("z3")

from hypothesis import strategies as st

from ebbflow import reducer as r
from ebbflow.errors import CheckError
from ebbflow.laws import REMOVE_INVERTS, judge, prove, symbolic
from ebbflow.reducer import RECOMPUTE, Reducer


class Sale(NamedTuple):
    id: int
    city: str
    price: int
    paid: bool
    tip: int | None = None


def total(of: Any = lambda x: x, **rest: Any) -> Reducer:
    return Reducer(0, lambda a, x: a + of(x), lambda a, x: a - of(x), **rest)


PAIR = Reducer(
    (0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: (a[0] - x, a[1] - 1),
    lambda a, b: (a[0] + b[0], a[1] + b[1]),
)  # fmt: skip
RESET = Reducer(
    (0, 0), lambda a, x: (a[0] + x, a[1] + 1),
    lambda a, x: (0, 0) if a[1] == 1 else (a[0] - x, a[1] - 1),
)  # fmt: skip
MAXIMUM = Reducer(
    None, lambda a, x: x if a is None else max(a, x), lambda a, x: RECOMPUTE if x == a else a
)
ENCODED = Reducer(
    0, lambda a, x: a + (1 << 40) + x, lambda a, x: a - (1 << 40) - x, name="count and sum in one"
)

PROVED: list[tuple[str, Reducer, Any, str]] = [
    ("sum", total(), int, "every int"),
    ("sum by operators", Reducer(0, operator.add, operator.sub), int, "every int"),
    ("count", total(lambda x: 1), int, "every int"),
    ("mean state, with merge", PAIR, int, "every int"),
    ("mean state that resets at the last row", RESET, int, "every int"),
    ("sum of squares", total(lambda x: x * x), int, "every int"),
    ("sum of cubes", total(lambda x: x**3), int, "every int"),
    ("conditional sum", total(lambda x: x if x > 10 else 0), int, "every int"),
    ("absolute values", total(abs), int, "every int"),
    ("clamped values", total(lambda x: min(max(x, 0), 100)), int, "every int"),
    ("halves", total(lambda x: x // 2 + x % 3), int, "every int"),
    ("count and sum in one int", ENCODED, int, "every int"),
    ("modulo 7", Reducer(0, lambda a, x: (a + x) % 7, lambda a, x: (a - x) % 7), int, "every int"),
    ("paid prices", total(lambda s: s.price if s.paid else 0), Sale, "every Sale("),
    ("tips, where there are", total(lambda s: s.tip or 0), Sale, "every Sale("),
    ("pairs", total(lambda p: p[0] * p[1]), (int, int), "every (int, int)"),
    ("pairs, written as a type", total(lambda p: p[0] * p[1]), tuple[int, int], "every (int, int)"),
    ("parity of bools", Reducer(False, lambda a, x: a ^ x, lambda a, x: a ^ x), bool, "every bool"),
    ("maximum that recomputes", MAXIMUM, int, "every int"),
    ("minimum from infinity", Reducer(math.inf, min, lambda a, x: RECOMPUTE), int, "every int"),
    ("maximum by merge", Reducer(-math.inf, max, merge=max), int, "every int"),
    ("what the type says", total(lambda x: x if isinstance(x, int) else 99), int, "every int"),
    ("the library's count", r.count(), int, "every int"),
    ("the library's sum", r.sum(), int, "every int"),
    ("the library's mean", r.mean(), int, "every int"),
    ("the library's sum of a field", r.sum("price"), Sale, "every Sale("),
    ("the library's bool_and", r.bool_and(), bool, "every bool"),
    ("a combination", r.count() & r.sum().where(lambda x: x > 3), int, "every int"),
]


@pytest.mark.parametrize(("name", "reducer", "of", "domain"), PROVED, ids=[p[0] for p in PROVED])
def test_proved(name: str, reducer: Reducer, of: Any, domain: str) -> None:
    proof = prove(reducer, of)
    assert proof.answer == "proved", str(proof)
    assert proof.domain.startswith(domain)
    assert "not for floats" not in proof.domain


def test_over_the_reals_it_never_says_floats() -> None:
    for of in (float, (float, int)):
        pick = (lambda x: x) if of is float else (lambda x: x[0] * x[1])
        proof = prove(total(pick), of)
        assert proof.answer == "proved"
        assert "real number" in proof.domain
        assert proof.domain.endswith("not for floats, which round")
    judged = judge(total(), elements=[0.1, 0.2, 0.3], prove=True)
    assert judged.verdict == "refuted"


def test_ints_that_are_divided_are_not_claimed_for_python() -> None:
    halves = Reducer(0, lambda a, x: a + x / 2, lambda a, x: a - x / 2)
    assert "in exact arithmetic, not for floats" in prove(halves, int).domain


REFUTED: list[tuple[str, Reducer, Any, dict[str, Any] | None]] = [
    ("max that keeps", Reducer(0, max, lambda a, x: a), int, None),
    ("mean only", Reducer(0.0, lambda m, x: (m + x) / 2, lambda m, x: 2 * m - x), float, None),
    ("order matters", Reducer(0, lambda a, x: 3 * a + x, lambda a, x: (a - x) // 3), int, None),
    ("zeros", Reducer(1, operator.mul, operator.floordiv), int, {"rows": (), "value": 0}),
]


@pytest.mark.parametrize(("name", "reducer", "of", "case"), REFUTED, ids=[x[0] for x in REFUTED])
def test_refuted_with_a_case_that_fails_in_plain_python(
    name: str, reducer: Reducer, of: Any, case: dict[str, Any] | None
) -> None:
    proof = prove(reducer, of)
    assert proof.answer == "refuted", str(proof)
    assert not proof.broken.law.holds(reducer, **proof.broken.case)
    assert case is None or proof.broken.case == case


def test_a_proof_finds_what_no_test_would() -> None:
    rare = Reducer(
        0, lambda a, x: a + x, lambda a, x: a - x if x != 123_456_789 else a, name="rare"
    )
    assert judge(rare, elements=st.integers(0, 9)).verdict == "invertible"
    proof = prove(rare, int)
    assert proof.broken.law is REMOVE_INVERTS
    assert proof.broken.case["value"] == 123_456_789
    assert judge(rare, elements=st.integers(), prove=True).verdict == "refuted"
    inside = judge(rare, elements=range(9), prove=True)
    assert inside.verdict == "invertible"
    assert any("outside its elements" in note for note in inside.notes)


_memory: list[int] = []


def remembering(a: int, x: int) -> int:
    _memory.append(x)
    return a + x


def catching(a: int, x: int) -> int:
    try:
        return a + int(x)
    except Exception:
        return a


DECLINED: list[tuple[str, Reducer, Any, str]] = [
    ("xor of ints", Reducer(0, operator.xor, operator.xor), int, "bits of ints"),
    ("a set", Reducer(frozenset(), lambda a, x: a | {x}, lambda a, x: a - {x}), int, "frozenset"),
    ("a hash", total(hash), int, "hash"),
    ("a text", total(lambda x: len(str(x))), int, "text"),
    ("a rounding", total(round), float, "round"),
    ("a type", total(lambda x: x if type(x) is int else 0), int, "calls type"),
    ("identity", total(lambda x: 1 if x is True else 0), bool, "compares with `is`"),
    ("a square root", total(math.sqrt), float, "convert"),
    ("the clock", total(lambda x: x + time.time()), int, "calls time"),
    ("today", total(lambda x: x + datetime.now().day), int, "calls "),
    ("chance", total(lambda x: x + random.random()), int, "calls "),
    ("memory", Reducer(0, remembering, lambda a, x: a - x), int, "calls "),
    ("identity as a number", r.sum(id), int, "calls id"),
    ("identity as a reducer", Reducer(False, operator.is_, operator.is_), bool, "calls is_"),
    ("the clock of a library sum", r.sum(lambda x: time.time()), int, "calls time"),
    ("the clock itself", total().on(time.gmtime), int, "calls gmtime|convert"),
    ("a caught error", Reducer(0, catching, lambda a, x: a - x), int, "try|convert"),
    ("a float's floor", total(lambda x: x // 1), float, "not ints"),
    ("the library's max", r.max(), int, "Tree"),
    ("the library's xor", r.bit_xor(), int, "bits of ints"),
    ("the library's float sum", r.sum(), float, "as_integer_ratio"),
    ("a word that is looked at", total(lambda s: len(s.city)), Sale, "looks at a str"),
    ("a generator", total(lambda x: sum(x > n for n in range(9))), int, "generator"),
    ("an unknown power", total(lambda x: 2**x), int, "rare operation"),
]


@pytest.mark.parametrize(("name", "reducer", "of", "why"), DECLINED, ids=[d[0] for d in DECLINED])
def test_what_cannot_be_followed_is_declined_with_the_reason(
    name: str, reducer: Reducer, of: Any, why: str
) -> None:
    proof = prove(reducer, of)
    assert proof.answer == "not provable here", str(proof)
    assert re.search(why, proof.why), proof.why


def test_too_many_paths_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "PATHS", 10)
    steps = total(lambda x: sum([x if x > n else 0 for n in range(9)]))
    assert "too many paths" in prove(steps, int).why


def test_a_declined_proof_leaves_the_tested_verdict_and_says_so() -> None:
    judged = judge(r.bit_xor(), prove=True)
    assert judged.verdict == "invertible"
    assert "not provable here" in str(judged)
    assert "tested: 14 laws on up to 200 examples each" in str(judged)
    assert "proved for" not in str(judged)


def test_a_proof_is_part_of_the_report() -> None:
    text = str(judge(total(name="total"), elements=range(5), prove=True))
    assert "evidence   proved for every int: ADD_COMMUTES, REMOVE_INVERTS" in text
    assert "tested: 7 laws" in text


def test_unreachable_accumulators_prove_nothing() -> None:
    """From an odd accumulator `remove` is nonsense; no rows lead there, and z3 cannot know."""
    even = Reducer(0, lambda a, x: a + 2 * x, lambda a, x: a - 2 * x if a % 2 == 0 else 99)
    proof = prove(even, int)
    assert proof.answer == "not provable here"
    assert "could not show it from every accumulator" in proof.why


def test_rows_are_what_elements_are() -> None:
    assert prove(total(), elements=[1, 2]).domain == "every int"
    assert prove(total(lambda x: x or 0), elements=[1, None]).domain == "every int or None"
    assert prove(total(), elements=[Fraction(1, 2)]).domain.startswith("every real number")
    assert prove(total(lambda x: x[0]), elements=[(1, True)]).domain == "every (int, bool)"
    assert prove(r.count(), elements=st.booleans()).domain == "every bool"
    with pytest.raises(CheckError, match="not known what the rows"):
        prove(total())


def test_floor_division_is_pythons() -> None:
    """z3's own division rounds otherwise for negative divisors."""
    for divisor in (3, -3):
        same = total(lambda x, d=divisor: (x // d) * d + x % d - x)
        assert prove(same, int).answer == "proved"
        ends = Reducer(0, lambda a, x, d=divisor: a + x % d, lambda a, x, d=divisor: a - x % d)
        assert prove(ends, int).answer == "proved"
    below = Reducer(0, lambda a, x: a + (1 if x % -3 > 0 else 0), lambda a, x: a)
    assert prove(below, int).answer == "proved"


def counting_down(a: int, x: int) -> int:
    while x > 0:
        x -= 1
        a += 1
    return a


def test_a_loop_that_depends_on_a_row_is_declined() -> None:
    assert "loops" in prove(Reducer(0, counting_down, lambda a, x: a), int).why


def test_code_without_a_file_is_looked_through_too() -> None:
    made: dict[str, Any] = {}
    exec("add = lambda a, x: a + (x if type(x) is int else 0)", made)
    assert "calls type" in prove(Reducer(0, made["add"], lambda a, x: a), int).why


def test_a_division_in_remove_is_not_claimed_for_ints_either() -> None:
    """It is exact in the reals and rounds in Python, where the ints are large."""
    divides = Reducer(
        (0, 0), lambda a, x: (a[0] + x, a[1] + 1), lambda a, x: ((a[0] - x) * 3 / 3, a[1] - 1)
    )
    assert "not for floats" in prove(divides, int).domain
    large = 2**60 + 1
    assert divides.remove(divides.add((large, 1), 5), 5) != (large, 1)
