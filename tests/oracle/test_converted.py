"""State that was written with an older type of an input opens with a newer one.

The oracle is batch: what is opened equals a fresh run of the new program over the rows as they are
now, which `schemas.py` makes without any help of what is tested.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import pytest
from tests.oracle import disk, schemas

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import StateError
from ebbflow.record import record
from ebbflow.zset import ZSet

HOWS = ["lost", "kept", "torn"]


def program(of: Any, key: str | None, **options: Any) -> Any:
    """A program that keeps rows in every way: under a key, in an index, in cells, as an output."""
    rows = ef.Input("rows", of, key=key, **options)
    some = next(name for name in ("f0", "f0_new") if name in of.__annotations__)
    return ef.program(
        rows=rows,
        pairs=rows.join(rows, on="id", select=lambda left, right: (left, right)),
        ids=rows.group_by("id").agg(n=ef.count()),
        some=rows.map(lambda row: getattr(row, some)).distinct(),
    )


def opened(seed: int, flavour: str, path: Any) -> None:
    """Store rows of one version, open with another, and go on; then open again."""
    dice = Random(seed)
    old = schemas.version(dice, flavour)
    key = dice.choice([None, "id"])
    weights = {row: 1 if key else dice.randrange(1, 3) for row in old.rows}
    with program(old.type, key).run(path=path) as view:
        view.step(rows=weights)
        view.step(rows={old.rows[0]: -weights[old.rows[0]]})
    new, renamed = schemas.grown(dice, old)
    later = program(new.type, key, renamed=renamed)
    there = ZSet(zip(new.rows[1:], list(weights.values())[1:], strict=True))
    for again in (False, True):
        with later.run(path=path, memory=dice.choice([None, 1])) as view:
            assert view.value == evaluate(later.plan, {"rows": there})
            changed = described(new.type) != described(old.type)
            assert len(view.converted) == (changed and not again)
            view.verify()
            view.step(rows={new.rows[1]: -1})
            there -= ZSet.of(new.rows[1:2])
            assert view.value == evaluate(later.plan, {"rows": there})
            view.step(rows=new.rows[1:2])
            there += ZSet.of(new.rows[1:2])


def described(of: Any) -> str:
    from ebbflow.expression.schema import schema

    return schema(of)


@pytest.mark.parametrize("flavour", ["tuple", "frozen", "slots"])
def test_oracle_a_new_version_of_a_type_equals_a_fresh_run(tmp_path: Path, flavour: str) -> None:
    for seed in range(4):
        opened(seed, flavour, tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["tuple", "frozen", "slots"])
def test_oracle_many_versions_of_types_equal_fresh_runs(tmp_path: Path, flavour: str) -> None:
    for seed in range(100, 160):
        opened(seed, flavour, tmp_path / str(seed))


# ---- what is said ----


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Priced(NamedTuple):
    id: int
    price: float
    town: str | None
    note: str = ""


ORDERS = [Order(1, "Rome", 3), Order(2, "Oslo", 4)]
PRICED = [Priced(1, 3.0, "Rome"), Priced(2, 4.0, "Oslo")]
RENAMED = {"city": "town"}


def stored(path: Any, of: Any = Order, rows: Any = ORDERS, **options: Any) -> None:
    with ef.Input("orders", of).run(path=path, **options) as view:
        view.step(orders=rows)


def test_what_was_converted_is_said_once(tmp_path: Path, caplog: Any) -> None:
    stored(tmp_path)
    orders = ef.Input("orders", Priced, renamed=RENAMED)
    with caplog.at_level(logging.WARNING), orders.run(path=tmp_path) as view:
        assert view.value == ZSet.of(PRICED)
        (said,) = view.converted
    assert said == (
        "input orders: Order is Priced, price int to float, city renamed town, town str to "
        "str | None, note added as '', the fields of Priced in another order"
    )
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path} is converted: {said}"
    ]
    with orders.run(path=tmp_path, strict=True) as view:
        assert (view.converted, view.value) == ((), ZSet.of(PRICED))
    with ef.Input("orders", Priced).run(path=tmp_path) as view:
        assert view.converted == ()


def test_an_epoch_from_before_is_an_error(tmp_path: Path) -> None:
    stored(tmp_path, keep_epochs=5)
    with ef.Input("orders", Priced, renamed=RENAMED).run(path=tmp_path, keep_epochs=5) as view:
        assert view.epoch == 2
        with pytest.raises(StateError, match="was another one at epoch 1"):
            view.at(1)


def test_a_new_input_is_empty(tmp_path: Path) -> None:
    stored(tmp_path)
    orders, others = ef.Input("orders", Order), ef.Input("others", Order)
    with ef.program(a=orders, b=others).run(path=tmp_path) as view:
        assert view.value == {"a": ZSet.of(ORDERS), "b": ZSet()}


# ---- what is refused ----


class Shorter(NamedTuple):
    id: int
    city: str


class Texts(NamedTuple):
    id: int
    city: str
    price: str


class Longer(NamedTuple):
    id: int
    city: str
    price: int
    note: str


class Cents(NamedTuple):
    id: int
    city: str
    price: Annotated[Decimal, (10, 2)]


class Digits(NamedTuple):
    id: int
    city: str
    price: Annotated[Decimal, (10, 4)]


def refusal(path: Path, orders: Any, **options: Any) -> str:
    with pytest.raises(StateError) as raised:
        orders.run(path=path, **options)
    return str(raised.value)


@pytest.mark.parametrize(
    ("of", "what", "remedy"),
    [
        (Shorter, "field 'price' is not there any more", "keep `price: int`"),
        (Texts, "field 'price' was int, which is not always str", "a new field beside it"),
        (Longer, "field 'note' is new and has no default", "a default in Longer"),
        (Priced, "field 'town' is new and has no default", "renamed={'city': 'town'}"),
        (int, "a row was Order(id: int, city: str, price: int), which is not always int", "path"),
    ],
)
def test_anything_else_is_refused_with_both_types(
    tmp_path: Path, of: Any, what: str, remedy: str
) -> None:
    stored(tmp_path)
    said = refusal(tmp_path, ef.Input("orders", of))
    assert f"than when its rows were stored: {what}" in said
    assert "stored     Order(id: int, city: str, price: int)" in said
    assert f"now        {of.__name__}" in said
    assert remedy in said
    with ef.Input("orders", Order).run(path=tmp_path) as view:
        assert view.value == ZSet.of(ORDERS)


def test_digits_may_become_more_and_not_fewer(tmp_path: Path) -> None:
    stored(tmp_path, Cents, [Cents(1, "Rome", Decimal("3.20"))])
    assert "is not always Annotated[Decimal, (10, 4)]" in refusal(
        tmp_path, ef.Input("orders", Digits)
    )


def test_a_key_stays_what_it_is(tmp_path: Path) -> None:
    with ef.Input("orders", Order, key="id").run(path=tmp_path) as view:
        view.step(orders=ORDERS)
    assert "its key was id and is None" in refusal(tmp_path, ef.Input("orders", Order))
    assert "its key was id and is city" in refusal(tmp_path, ef.Input("orders", Order, key="city"))
    other = ef.Input("orders", Priced, key="price", renamed=RENAMED)
    said = refusal(tmp_path, other)
    assert "a row that is stored has another key now" in said
    assert "stored     1\n    now        3.0" in said
    with ef.Input("orders", Priced, key=lambda o: o.id, renamed=RENAMED).run(path=tmp_path) as view:
        assert view.value == ZSet.of(PRICED)


def test_a_field_gets_a_type_that_all_its_values_have(tmp_path: Path) -> None:
    untyped, typed = record("Order", id=Any, price=Any), record("Order", id=int, price=float)
    stored(tmp_path, untyped, [untyped(1, 2), untyped(2, 3.5)])
    with ef.Input("orders", typed).run(path=tmp_path) as view:
        assert sorted(map(repr, view.value)) == [
            "Order(id=1, price=2.0)", "Order(id=2, price=3.5)",
        ]  # fmt: skip
        view.verify()


def test_a_value_that_is_not_of_the_new_type_is_refused(tmp_path: Path) -> None:
    untyped, typed = record("Order", id=Any, price=Any), record("Order", id=int, price=float)
    stored(tmp_path, untyped, [untyped(1, "2")])
    said = refusal(tmp_path, ef.Input("orders", typed))
    assert "a value of a row that is stored must be a float, not the str '2'" in said


def test_a_number_that_is_no_float_is_refused(tmp_path: Path) -> None:
    stored(tmp_path, rows=[Order(1, "Rome", 2**53 + 1)])
    said = refusal(tmp_path, ef.Input("orders", Priced, renamed=RENAMED))
    assert "would lose digits" in said
    assert str(2**53 + 1) in said


def test_rows_that_are_not_kept_cannot_be_converted(tmp_path: Path) -> None:
    stored(tmp_path, check_input=False)
    orders = ef.Input("orders", Priced, renamed=RENAMED)
    assert "they were not kept" in refusal(tmp_path, orders, check_input=False)


def test_strict_refuses_to_convert(tmp_path: Path) -> None:
    stored(tmp_path)
    said = refusal(tmp_path, ef.Input("orders", Priced, renamed=RENAMED), strict=True)
    assert "they would be converted" in said
    assert "note added as ''" in said


def test_names_lead_to_fields(tmp_path: Path) -> None:
    for renamed in ({"city": "twon"}, {"a": "b", "b": "a"}):
        with pytest.raises(ef.errors.CompositionError, match="renamed="):
            ef.Input("orders", Priced, renamed=renamed)
    stored(tmp_path)
    chain = ef.Input("orders", Priced, renamed={"place": "city", "city": "town"})
    with chain.run(path=tmp_path) as view:
        assert view.value == ZSet.of(PRICED)


@dataclass(frozen=True)
class Dated:
    id: int
    city: str
    price: int
    note: str = "none"


def test_a_tuple_becomes_a_dataclass(tmp_path: Path) -> None:
    stored(tmp_path)
    with ef.Input("orders", Dated).run(path=tmp_path) as view:
        assert view.value == ZSet.of([Dated(*row) for row in ORDERS])
        assert "Dated is a dataclass now" in view.converted[0]


# ---- crashes ----


def reads(program: Any, state: Any) -> bool:
    try:
        program.run(path=state).close()
    except StateError:
        return False
    return True


def crashed(at: int, how: str) -> bool:
    """Stop while rows are converted: the old program finds the old state, or the new one its."""
    state = disk.Disk()
    with ef.Input("orders", Order).distinct().run(path=state) as view:
        view.step(orders=ORDERS)
    later = ef.Input("orders", Priced, renamed=RENAMED).distinct()
    state.crash_at = state.calls + at
    try:
        later.run(path=state).close()
        done = True
    except disk.Crash:
        done = False
    left = state.after(how, Random(at))
    before = ef.Input("orders", Order).distinct()
    if reads(before, left):
        with before.run(path=left) as view:
            assert (view.epoch, view.value, done) == (1, ZSet.of(ORDERS), False)
    else:
        with later.run(path=left) as view:
            assert (view.epoch, view.converted) == (2, ())
    with later.run(path=left) as view:
        assert view.value == ZSet.of(PRICED)
    return done


def test_a_crash_while_rows_are_converted_leaves_the_old_state_or_the_new() -> None:
    at = 0
    while not crashed(at, HOWS[at % 3]):
        at += 4
    assert at > 5


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_any_crash_while_rows_are_converted_leaves_the_old_state_or_the_new(how: str) -> None:
    at = 0
    while not crashed(at, how):
        at += 1
    assert at > 5
