"""Proofs: what z3 can show, what it refutes, and what it honestly declines."""

# ruff: noqa: E721

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
import random
import re
import time
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

pytest.importorskip("z3")

from hypothesis import strategies as st

from ebbflow import reducer as r
from ebbflow.errors import CheckError
from ebbflow.laws import ADD_COMMUTES, REMOVE_INVERTS, judge, prove, symbolic
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
    monkeypatch.setattr(symbolic, "PATHS", 4)

    def steps_of(x: int) -> int:
        low = (1 if x > 0 else 0) + (1 if x > 1 else 0) + (1 if x > 2 else 0)
        return low + (1 if x > 3 else 0) + (1 if x > 4 else 0) + (1 if x > 5 else 0)

    steps = total(steps_of)
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


# ---- laws that are false, behind the back of the prover ----


@dataclass(frozen=True)
class Order:
    kind: str
    run: str = ""
    term: int = 0
    mixed: bool = False


class OwnEqual(NamedTuple):
    n: int

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


class Keeps(NamedTuple):
    n: int
    memory = []


T = type
ENDLESS = itertools.count()
KINDS = (int, Iterable)
IDENTITY = operator.is_
LOOK = operator.attrgetter("kind")


def minus(a: Any, x: Any) -> Any:
    return a - x


def either(test: Callable[[Any], Any]) -> Reducer:
    """A sum where the test says yes; where it says no, the order matters."""
    return Reducer(0, lambda a, x: a + x if test(x) else 2 * a + x, minus)


def keeps_default(a: int, x: int, memo: list[int] = []) -> int:  # noqa: B006
    memo += [0]
    return a + x if len(memo) < 400 else 2 * a + x


def keeps_slice(a: int, x: int, memo: list[int] = []) -> int:  # noqa: B006
    memo[0:0] = [0]
    return a + x if len(memo) < 400 else 2 * a + x


def keeps_global(a: int, x: int) -> int:
    memo = _memory
    memo += [0]
    return a + x if len(memo) < 400 else 2 * a + x


def keeps_in_a_class(a: int, x: Any) -> int:
    memo = x.memory
    memo += [0]
    return a + x.n if len(memo) < 400 else 2 * a + x.n


def goes_on(a: int, x: int) -> int:
    n = 0
    for n in ENDLESS:  # noqa: B007
        break
    return a + x if n < 400 else 2 * a + x


def goes_on_in_a_list(a: int, x: int) -> int:
    n = [n for n, _ in zip(ENDLESS, (0,))]  # noqa: B905
    return a + x if n[0] < 400 else 2 * a + x


def in_a_cell() -> Callable[[int, int], int]:
    memo: list[int] = []

    def add(a: int, x: int) -> int:
        kept = memo
        kept += [0]
        return a + x if len(kept) < 400 else 2 * a + x

    return add


def typed(of: Any) -> Callable[[int, int], int]:
    return lambda a, x: 2 * a + x if of(x) == int else a + x


def keeps_on_itself(a: int, x: int) -> int:
    memo = keeps_on_itself.memory  # type: ignore[attr-defined]
    memo += [0]
    return a + x if len(memo) < 400 else 2 * a + x


keeps_on_itself.memory = []  # type: ignore[attr-defined]
SHELF = total(elements=[0])


def keeps_on_a_reducer(a: int, x: int) -> int:
    memo = SHELF.elements
    memo += [0]
    return a + x if len(memo) < 400 else 2 * a + x


class Callable_:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, a: int, x: int) -> int:
        self.calls += 1
        return a + x if self.calls < 400 else 2 * a + x


def flagged(s: Any, x: int) -> Any:
    n, flag = s
    if isinstance(flag, bool):
        return (n + 2, flag)
    return (n + 1, True) if n == 4 else (n + 1, flag)


def unflagged(s: Any, x: int) -> Any:
    return (s[0] - 1, 0) if s[0] == 5 else (s[0] - 1, s[1])


def matched(a: int, x: Any) -> int:
    match x:
        case [_, *_]:
            return 2 * a + 1
        case _:
            return a


_starts = itertools.count()
NOT_NONE = Reducer(0, lambda a, o: a if o is None else a + 1, lambda a, o: a - 1)
FALSE: list[tuple[str, Reducer, Any]] = [
    ("a field called kind", Reducer(0, lambda a, o: a + (o.kind == "sale"), lambda a, o: a), Order),
    ("a field called run", Reducer(0, lambda a, o: a + (o.run == "x"), lambda a, o: a), Order),
    ("a field by a getter", Reducer(0, lambda a, o: a + (LOOK(o) == "x"), lambda a, o: a), Order),
    ("a library field", r.sum("term").where(lambda o: o.mixed), Order),
    ("an int's term", either(lambda x: x.term is None), int),
    ("an int's mixed", either(lambda x: not x.mixed), int),
    ("None is an object", NOT_NONE, object),
    ("None is anything", NOT_NONE, Any),
    ("a pattern", Reducer(0, matched, lambda a, x: a), object),
    ("iterable", either(lambda x: isinstance(x, Iterable)), int),
    ("sized", either(lambda x: isinstance(x, Sized)), int),
    ("callable", either(lambda x: isinstance(x, Callable)), int),  # type: ignore[arg-type]
    ("one of several classes", Reducer(
        0, lambda a, x: a + x if not isinstance(x, KINDS) else 2 * a + x, minus), int),
    ("a bool that joins an int", Reducer((0, 0), flagged, unflagged), int),
    ("a fraction is no float", either(lambda x: isinstance(x, float)), Fraction),
    ("int and fraction", either(lambda x: isinstance(x + Fraction(1, 2), float)), int),
    ("power zero", either(lambda x: isinstance(x**0, int)), float),
    ("shift", Reducer(0, lambda a, x: a + (x << 1), lambda a, x: a - (x << 1)), float),
    ("shift right", Reducer(0, lambda a, x: a + (x >> 1), lambda a, x: a - (x >> 1)), float),
    ("and", Reducer(0, lambda a, x: a + (x & 1), lambda a, x: a - (x & 1)), float),
    ("or", Reducer(0, lambda a, x: a + (x | 1), lambda a, x: a - (x | 1)), float),
    ("type by another name", either(lambda x: T(x) != int), int),
    ("type in builtins", either(lambda x: builtins.type(x) != int), int),
    ("type in a default", Reducer(
        0, lambda a, x, t=type: 2 * a + x if t(x) == int else a + x, minus), int),
    ("type in a cell", Reducer(0, typed(type), minus), int),
    ("a function's attribute", Reducer(0, keeps_on_itself, minus), int),
    ("a reducer's attribute", Reducer(0, keeps_on_a_reducer, minus), int),
    ("type as a part", either(lambda k: k != int).on(type), int),
    ("type in a partial", Reducer(0, functools.partial(
        lambda t, a, x: 2 * a + x if t(x) == int else a + x, type), minus), int),
    ("identity by another name", either(lambda x: not IDENTITY(x, x)), int),
    ("a default that keeps", Reducer(0, keeps_default, minus), int),
    ("a slice of a default", Reducer(0, keeps_slice, minus), int),
    ("a global that keeps", Reducer(0, keeps_global, minus), int),
    ("a class that keeps", Reducer(0, keeps_in_a_class, lambda a, x: a - x.n), Keeps),
    ("a cell that keeps", Reducer(0, in_a_cell(), minus), int),
    ("a partial that keeps", Reducer(
        0, functools.partial(lambda m, a, x: keeps_default(a, x, m), []), minus), int),
    ("an object that keeps", Reducer(0, Callable_(), minus), int),
    ("an iterator that goes on", Reducer(0, goes_on, minus), int),
    ("an iterator in a list", Reducer(0, goes_on_in_a_list, minus), int),
    ("an init that changes", Reducer(
        lambda: next(_starts) // 3, operator.add, operator.sub, operator.add), int),
    ("a complex number", either(lambda x: x != (1 + 0j)), int),
    ("NaN", Reducer(math.nan, lambda a, x: a, lambda a, x: a), int),
    ("NaN inside", Reducer((0, math.nan), lambda a, x: (a[0], a[1] + 0), lambda a, x: a), int),
    ("an __eq__ of its own", Reducer(
        OwnEqual(0), lambda a, x: OwnEqual(a.n + x), lambda a, x: OwnEqual(a.n - x)), int),
    ("an equal of its own", Reducer(0, operator.add, operator.sub, equal=lambda a, b: False), int),
    ("a list", Reducer(0, lambda a, x: a + x, minus), list[int]),
    ("a tuple of any length", Reducer(
        0, lambda a, x: a + x[0], lambda a, x: a - x[0]), tuple[int, ...]),
    ("an invariant without unknowns", Reducer(
        (0, 0), lambda s, x: (s[0] + 1, s[0] == 4 or s[1]), lambda s, x: (s[0] - 1, 0)), int),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reducer", "of"), FALSE, ids=[f[0] for f in FALSE])
def test_a_law_that_is_false_is_never_called_proved(name: str, reducer: Reducer, of: Any) -> None:
    assert prove(reducer, of).answer != "proved"


def test_elements_of_several_types_are_not_taken_for_one() -> None:
    wrong = Reducer(0, operator.add, lambda a, x: a - x if isinstance(x, float) else a + x)
    for elements in ([1, 2.5], [True, 2.5], [Fraction(1, 2)]):
        assert prove(wrong, elements=elements).answer != "proved"


def test_a_repeat_is_not_covered_and_the_proof_says_so() -> None:
    wrong = Reducer(0, operator.add, operator.sub, repeat=lambda a, x, n: 0)
    assert str(prove(wrong, int)).endswith("REMOVE_INVERTS; repeat is not covered")
    assert "not covered" not in str(prove(total(), int))


def test_what_is_carried_along_may_be_anything() -> None:
    assert prove(r.count(), object).domain == "every object or None"
    assert prove(r.count(), Order).domain == "every Order"


# ---- what is called proved holds in plain Python ----


ALSO: list[tuple[str, Reducer, Any]] = [
    ("floor by 3", total(lambda x: (x // 3) * 3 + x % 3 - x), int),
    ("floor by -3", total(lambda x: (x // -3) * -3 + x % -3 - x), int),
    ("modulo 3", total(lambda x: x % 3), int),
    ("modulo -3", total(lambda x: x % -3), int),
    ("never above", Reducer(0, lambda a, x: a + (1 if x % -3 > 0 else 0), lambda a, x: a), int),
    ("sum of reals", total(), Fraction),
    ("halves of reals", total(lambda x: x / 2), Fraction),
    ("products of reals", total(lambda x: x[0] * x[1]), (Fraction, int)),
    ("anything", r.count(), Order),
]
REPLAYED = [*ALSO, *[each[:3] for each in PROVED]]


def a_row(of: Any, rng: random.Random) -> Any:
    if of is Fraction:
        return Fraction(a_row(int, rng), rng.randint(1, 9))
    if of is Order:
        return Order(rng.choice(["sale", "return"]))
    if of is int:
        return rng.choice([0, 1, -1, rng.randint(-9, 9), rng.randint(-(2**70), 2**70)])
    if of is bool:
        return rng.random() < 0.5
    if of is Sale:
        tip = rng.choice([None, 0, a_row(int, rng)])
        return Sale(a_row(int, rng), rng.choice("ab"), a_row(int, rng), a_row(bool, rng), tip)
    return tuple(a_row(part, rng) for part in (of if isinstance(of, tuple) else of.__args__))


@pytest.mark.parametrize(("name", "reducer", "of"), REPLAYED, ids=[x[0] for x in REPLAYED])
def test_what_is_proved_holds_on_random_rows(name: str, reducer: Reducer, of: Any) -> None:
    if all(name != each[0] for each in PROVED):  # else it was proved above
        assert prove(reducer, of).answer == "proved"
    rng = random.Random(name)
    for size in [*range(8)] * 25:
        rows = tuple(a_row(of, rng) for _ in range(size))
        x, y = a_row(of, rng), a_row(of, rng)
        ADD_COMMUTES.test(reducer, rows=rows, x=x, y=y)
        if reducer.remove is not None:
            REMOVE_INVERTS.test(reducer, rows=rows, value=x)
        if reducer.merge is not None:
            both = reducer.merge(reducer.fold(rows), reducer.fold((x, y)))
            assert both == reducer.fold((*rows, x, y))
