"""One NaN: which values get it, where nobody looks, and what is not changed by it."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import ebbflow as ef
from ebbflow.errors import AlgebraError
from ebbflow.expression import fingerprint
from ebbflow.fn import Fn
from ebbflow.nan import (
    NAN,
    WAYS,
    finder,
    loads,
    loads_each,
    marked,
    may_hold,
    one_nan,
    with_one_nan,
)
from ebbflow.record import record
from ebbflow.reducer.hashed import Map
from ebbflow.zset import ZSet


class Plain(NamedTuple):
    id: int
    name: str | None


class Measured(NamedTuple):
    id: int
    x: float | None
    pair: tuple[float, ...] = ()


@dataclass(frozen=True)
class Held:
    id: int
    x: float
    next: Held | None = None


@dataclass(frozen=True, slots=True)
class Lazy:
    id: int
    x: float = field(init=False, compare=False)


def nan() -> float:
    return float("nan")


NANS: list[Any] = [
    nan, lambda: -nan(), lambda: 0 * math.inf, lambda: np.float64("nan"), lambda: np.float32("nan"),
    lambda: Decimal("nan"), lambda: Decimal("-NaN123"), lambda: complex(1, nan()),
    lambda: np.datetime64("NaT", "s"), lambda: (1, (nan(), "a")), lambda: frozenset([nan(), nan()]),
    lambda: Measured(1, nan()), lambda: Measured(1, None, (nan(),)), lambda: Held(1, nan()),
    lambda: Held(1, 2.0, Held(3, nan())), lambda: Map({nan(): nan()}),
]  # fmt: skip


@pytest.mark.parametrize("make", NANS)
def test_values_with_nan_are_equal_and_found(make: Any) -> None:
    a, b = one_nan(make()), one_nan(make())
    assert {a: 1} == {b: 1}
    assert one_nan(a) is a
    again = loads(pickle.dumps(make()))
    assert {a: 1}[one_nan(again)] == 1


@pytest.mark.parametrize("make", NANS)
def test_what_is_read_from_a_pickle_has_one_nan_wherever_it_is(make: Any) -> None:
    value = one_nan(make())
    for inside in ([value], {"a": value}, {value: 1}, {"x": {value}}, [[Held(value, 0.0)]]):
        assert loads(pickle.dumps(inside)) == inside
        assert loads_each([pickle.dumps(inside), None]) == [inside, None]


def test_values_without_nan_are_not_touched() -> None:
    for value in (1, 1.5, "NaN", None, (1, 2.5), Measured(1, 2.0), Held(1, 2.0), frozenset([1.5])):
        assert one_nan(value) is value
    weights = {Measured(1, 2.0): 1}
    assert with_one_nan(weights, Measured) is weights


def test_a_signaling_nan_is_refused() -> None:
    with pytest.raises(AlgebraError, match="signaling"):
        one_nan(Decimal("sNaN"))


@pytest.mark.parametrize("kind", [int, str | None, Plain, tuple[int, Plain], Annotated[bool, "x"]])
def test_nobody_looks_where_types_have_no_room_for_nan(kind: Any) -> None:
    assert not may_hold(kind)
    assert finder(kind) is None


@pytest.mark.parametrize("kind", [float, Any, Measured, Held, float | None, dict[str, float]])
def test_somebody_looks_where_types_may_hold_nan(kind: Any) -> None:
    assert may_hold(kind)


def test_a_function_is_written_as_it_is_where_its_result_cannot_be_nan() -> None:
    row = record("Row", n=int, x=float, name=str)
    for given in ("n", "x", lambda r: r.n * 2, lambda r: (r.x, r.n > 1), lambda r: r.name + "!"):
        fn = Fn.of(given, row)
        assert "_x" not in fn.kept(repr, "row")
    for given in (lambda r: r.x * 2, lambda r: (r.n, -r.x), lambda r: r.x if r.n else r.x / 2):
        fn = Fn.of(given, row)
        assert "_x" in fn.kept(repr, "row")
        assert one_nan(result := fn.keeping()(row(1, nan(), "a"))) is result


def test_what_was_met_so_far_is_no_part_of_a_function() -> None:
    """State is found by the fingerprint of functions; it must not depend on the rows that came."""
    before = fingerprint(WAYS), fingerprint(one_nan)
    one_nan(type("New", (float,), {})(1.0))
    assert (fingerprint(WAYS), fingerprint(one_nan)) == before
    assert pickle.loads(pickle.dumps(WAYS)) is WAYS


def test_zsets_have_one_nan() -> None:
    one = ZSet.of([nan(), 1.0])
    assert one == ZSet({nan(): 1, 1.0: 1})
    assert not one - ZSet.of([1.0, nan()])
    assert one.map(lambda x: (x * 0,)) == ZSet({(NAN,): 1, (0.0,): 1})
    assert one.weight(nan()) == 1
    assert nan() in one
    assert one.join(one, key=lambda x: x * 1.0) == ZSet({(NAN, NAN): 1, (1.0, 1.0): 1})


def test_a_field_that_is_not_compared_may_be_missing() -> None:
    lazy = Lazy(1)
    assert one_nan(lazy) is lazy
    assert with_one_nan({lazy: 1}, Lazy) == {lazy: 1}


def test_rows_may_be_nested_deeper_than_calls_are() -> None:
    row: Any = (1.5,)
    for _ in range(600):
        row = (row,)
    assert one_nan(row) is row
    view = ef.Input("rows", Any).run()
    view.step(rows=[row])
    assert view.step(rows={row: -1}) == ef.ZSet({row: -1})


def test_a_long_pickle_without_nan_is_read_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance it looks as if it held one, and what finds them in pickles is slow."""
    rows = [(n, f"{n}", n / 8) for n in range(0x7F00, 0x7F00 + 3000)] + [(0x7F47, "G\x7f", 1.0)]
    blob = pickle.dumps((tuple, rows, {"G\x7f": [1, None]}))
    assert marked(blob)
    with monkeypatch.context() as patch:
        patch.setattr("ebbflow.nan.Unpickler", None)
        assert loads(blob) == (tuple, rows, {"G\x7f": [1, None]})
    found = loads(pickle.dumps([rows, (1, float("nan"))]))
    assert found[1][1] is NAN
