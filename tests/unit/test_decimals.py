"""Decimals: types, the digits of results, and values that no context of the thread changes."""

from __future__ import annotations

import decimal
import random
from collections.abc import Iterator
from decimal import Decimal, Inexact
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow import decimals
from ebbflow.engine.batch import evaluate
from ebbflow.errors import AlgebraError, CompositionError, EbbflowError
from ebbflow.flow.plan import Plan
from ebbflow.record import fields_of


class Order(NamedTuple):
    id: int
    city: str
    price: ef.decimal(12, 2)  # type: ignore[valid-type]
    tax: ef.decimal(4, 3)  # type: ignore[valid-type]
    weight: Decimal
    tip: ef.decimal(6, 1) | None  # type: ignore[valid-type]


ORDERS = ef.Input("orders", Order)
ROWS = [
    Order(1, "Rome", Decimal("1.00"), Decimal("0.100"), Decimal(1), None),
    Order(2, "Rome", Decimal("1.00"), Decimal("0.250"), Decimal(1), Decimal("0.5")),
    Order(3, "Rome", Decimal("2.25"), Decimal("0.000"), Decimal(2), Decimal("2.0")),
    Order(4, "Oslo", Decimal("-7.35"), Decimal("-0.005"), Decimal("0.1"), None),
]


def test_a_type_of_decimals_is_a_decimal_with_its_digits() -> None:
    assert ef.decimal(12, 2) == Annotated[Decimal, (12, 2)]
    assert ef.decimal(5) == Annotated[Decimal, (5, 0)]


@pytest.mark.parametrize(
    "digits", [(0, 0), (39, 2), (2, 3), (2, -1), (True, 0), ("2", 0), (2.0, 1)]
)
def test_digits_that_there_are_not_are_refused(digits: tuple[Any, Any]) -> None:
    with pytest.raises(CompositionError, match="no such number of digits"):
        ef.decimal(*digits)


COMPUTED = {
    "plus": (lambda o: o.price + o.tax, (14, 3), "2.250"),
    "minus": (lambda o: o.price - 1, (13, 2), "1.25"),
    "times": (lambda o: o.price * o.tax, (17, 5), "0.00000"),
    "twice": (lambda o: 2 * o.price, (14, 2), "4.50"),
    "by_int": (lambda o: o.price * o.id, (33, 2), "6.75"),
    "divided": (lambda o: o.price / 3, (16, 6), "0.750000"),
    "floored": (lambda o: o.price // 2, (10, 0), "1"),
    "rest": (lambda o: o.price % 2, (3, 2), "0.25"),
    "negative": (lambda o: -o.price, (12, 2), "-2.25"),
    "size": (lambda o: abs(o.price), (12, 2), "2.25"),
    "near": (lambda o: round(o.price, 1), (12, 1), "2.3"),
    "tens": (lambda o: round(o.price, -1), (11, 0), "0"),
    "most": (lambda o: max(o.price, o.tax), (13, 3), "2.250"),
    "chosen": (lambda o: o.tax if o.id > 5 else o.price, (13, 3), "2.250"),
    "taxed": (lambda o: o.price * (1 - o.tax), (18, 5), "2.25000"),
    "weighed": (lambda o: o.price * o.weight, None, "4.5"),
    "third": (lambda o: o.weight / 3, None, "0.666666666666666667"),
    "square": (lambda o: o.price**2, None, "5.0625"),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_arithmetic_has_the_digits_of_its_type(name: str) -> None:
    f, digits, text = COMPUTED[name]
    program = ORDERS.select("id", value=f)
    assert (fields_of(program.node.type) or {})["value"] == decimals.hint_of(digits)
    view = program.run()
    view.step(orders=ROWS)
    assert {row.id: str(row.value) for row in view.value}[3] == text
    view.verify()


def test_a_decimal_is_rounded_to_a_whole_number_half_up() -> None:
    view = ORDERS.select("id", value=lambda o: round(o.price * 2)).run()
    view.step(orders=ROWS)
    assert sorted(row.value for row in view.value) == [-15, 2, 2, 5]


def test_a_result_with_more_digits_than_its_type_is_refused() -> None:
    most = 10**38 - 1
    with pytest.raises(AlgebraError, match="more digits than decimal"):
        decimals.operator("*", (38, 0))(Decimal(most), 10)
    with pytest.raises(ZeroDivisionError):
        decimals.operator("/", (16, 6))(Decimal("1.00"), 0)


def test_a_field_takes_a_result_without_loss() -> None:
    class Cheap(NamedTuple):
        id: int
        price: ef.decimal(12, 1)  # type: ignore[valid-type]

    view = ORDERS.map(lambda o: Cheap(o.id, round(o.price, 1))).run()
    view.step(orders=ROWS)
    assert {str(row.price) for row in view.value} == {"1.0", "2.3", "-7.4"}
    with pytest.raises(EbbflowError, match="would lose digits"):
        ORDERS.map(lambda o: Cheap(o.id, o.price)).run().step(orders=ROWS)


def test_reducers_give_the_digits_of_their_type() -> None:
    program = ORDERS.group_by("city").agg(
        total=ef.sum("price"), mean=ef.mean("price"), net=ef.sum(lambda o: o.price * (1 - o.tax)),
        weight=ef.sum("weight"), each=ef.mean("weight"), middle=ef.median("price"),
        spread=ef.variance("price"), tips=ef.sum("tip"), some=ef.sum("price").where("tip"),
    )  # fmt: skip
    view = program.run()
    view.step(orders=ROWS)
    rome = next(row for row in view.value if row.city == "Rome")
    assert [str(value) for value in rome[1:]] == [
        "4.25", "1.416667", "3.90000", "4", "1.333333333333333333", "1.000000",
        "0.520833333333333333", "2.5", "3.25",
    ]  # fmt: skip
    hints = fields_of(program.node.type) or {}
    assert hints["total"] == ef.decimal(22, 2)
    assert hints["mean"] == ef.decimal(16, 6)
    assert hints["net"] == ef.decimal(28, 5)
    assert hints["tips"] == ef.decimal(16, 1) | None
    assert hints["each"] is Decimal
    view.verify()


def test_zeros_after_the_point_leave_nothing_behind() -> None:
    """`Decimal("1.0")` in and `Decimal("1.00")` out are one row."""
    view = ef.Input("n", Decimal).group_by(lambda n: n > 0).agg(total=ef.sum()).run()
    view.step(n=[Decimal("1"), Decimal("2.5")])
    view.step(n={Decimal("1"): -1})
    assert str(next(iter(view.value)).total) == "2.5"
    view.step(n=[Decimal("1.5")])
    assert str(next(iter(view.value)).total) == "4"


@pytest.fixture
def odd_context() -> Iterator[None]:
    with decimal.localcontext() as context:
        context.prec, context.rounding, context.capitals = 3, decimal.ROUND_DOWN, 0
        for signal in (Inexact, decimal.Rounded, decimal.FloatOperation, decimal.Subnormal):
            context.traps[signal] = True
        yield


def _everything(rows: list[Order]) -> tuple[str, ...]:
    fields: dict[str, Any] = {name: f for name, (f, _, _) in COMPUTED.items()}
    selected = ORDERS.select("id", **fields)
    grouped = ORDERS.group_by("city").agg(
        total=ef.sum("price"), mean=ef.mean("weight"), spread=ef.stddev("price"),
        net=ef.sum(lambda o: o.price / 7), middle=ef.quantile(0.3, "price"), top=ef.max("price"),
        product=ef.product("weight"), all=ef.covariance("price", "weight"),
    )  # fmt: skip
    found = []
    for program in (selected, grouped):
        view = program.run()
        view.step(orders=rows)
        view.step(orders={rows[0]: -1})
        found.append(repr(sorted(view.value, key=repr)))
        again = evaluate(Plan({"out": program.node}), {"orders": ef.ZSet.of(rows[1:])})["out"]
        assert repr(sorted(again, key=repr)) == found[-1]
    return tuple(found)


def test_the_context_of_the_thread_changes_nothing(odd_context: None) -> None:
    here = _everything(ROWS)
    with decimal.localcontext(decimal.Context()):
        assert _everything(ROWS) == here


def _with_tip(order: Order) -> Decimal:
    try:
        return order.price * Decimal("1.105") / 3
    except ValueError:
        return Decimal(0)


@pytest.mark.parametrize("columns", [False, True])
def test_functions_that_are_only_called_compute_in_one_context(columns: bool) -> None:
    """A row is removed under another context than it was inserted under."""
    if columns:
        pytest.importorskip("numba")
    programs = {
        "rows": ORDERS.select("id", paid=_with_tip),
        "sums": ORDERS.agg(total=ef.sum(_with_tip), n=ef.count()),
        "parts": ORDERS.select("id", parts=lambda o: divmod(o.price, 7)),
        "groups": ORDERS.group_by(key=_with_tip).agg(n=ef.count()),
    }
    odd = decimal.Context(prec=3, traps=[Inexact, decimal.Rounded])
    for program in programs.values():
        expected, view = program.run(columns=columns), program.run(columns=columns)
        for at, change in enumerate([ROWS, {ROWS[0]: -1}, dict.fromkeys(ROWS[1:], -1), ROWS[:2]]):
            expected.step(orders=change)
            with decimal.localcontext(odd if at != 1 else decimal.Context()):
                view.step(orders=change)
                view.verify()
            assert repr(view.value) == repr(expected.value)


def test_a_result_is_the_exact_one_rounded_half_up_once() -> None:
    dice = random.Random(36)
    for _ in range(400):
        one = tuple(sorted((dice.randint(1, 18), dice.randint(0, 18)), reverse=True))
        other = tuple(sorted((dice.randint(1, 18), dice.randint(0, 18)), reverse=True))
        a, b = (_drawn(dice, each) for each in (one, other))
        for op in "+-*/":
            if op == "/" and not b:
                continue
            digits = decimals.result(op, one, other)  # type: ignore[arg-type]
            exact = {"+": Fraction(a) + Fraction(b), "-": Fraction(a) - Fraction(b),
                     "*": Fraction(a) * Fraction(b),
                     "/": Fraction(a) / Fraction(b) if b else Fraction(0)}[op]  # fmt: skip
            found = decimals.operator(op, digits)(a, b)
            assert found == decimals.of_fraction(exact, digits)
            if digits is not None:
                assert -found.as_tuple().exponent == digits[1]
                assert abs(Fraction(found) - exact) * 10 ** digits[1] * 2 <= 1


def _drawn(dice: random.Random, digits: tuple[int, ...]) -> Decimal:
    precision, scale = digits
    return Decimal(dice.randint(-(10**precision) + 1, 10**precision - 1)).scaleb(-scale)
