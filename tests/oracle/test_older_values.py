"""State from before inputs checked values opens with the values of its types, or is refused.

Such state is made here by an input that believes every row. The oracle is a fresh run over rows
that are canonical.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime import changes, durable
from ebbflow.errors import StateError
from ebbflow.zset import ZSet

Money = Annotated[Decimal, (12, 2)]


class State(StrEnum):
    OPEN = "open"


class Order(NamedTuple):
    id: int
    state: str
    price: float
    level: int | None


class Bill(NamedTuple):
    id: int
    price: Money


FinerBill: Any = NamedTuple("Bill", [("id", int), ("price", Annotated[Decimal, (14, 3)])])
ODD = [
    Order(1, State.OPEN, 1.0, np.uint8(200)),  # type: ignore[arg-type]
    Order(2, "open", 2, True),
    Order(3, "open", -0.0, None),
]
PLAIN = [Order(1, "open", 1.0, 200), Order(2, "open", 2.0, 1), Order(3, "open", 0.0, None)]


def orders(key: str | None) -> Any:
    """A program with rows in an index, in cells and in an output."""
    rows = ef.Input("orders", Order, key=key)
    return ef.program(
        states=rows.group_by("state").agg(
            n=ef.count(), level=ef.sum("level"), most=ef.max("level")
        ),
        pairs=rows.join(rows, on="id", select=lambda a, b: (a.price, b.level)),
        prices=rows.map(lambda row: row.price).distinct(),
    )


def bills() -> Any:
    rows = ef.Input("bills", Bill, key="id")
    return rows.group_by(lambda row: row.id % 2).agg(sum=ef.sum("price"), mean=ef.mean("price"))


def stored(
    program: Any, path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], **options: Any
) -> None:
    """State of a version that believed its rows, and did not say that it checks them."""
    with monkeypatch.context() as older:
        older.setattr(changes, "tester", lambda row_type: lambda rows: True)
        older.setattr(changes, "canonical_rows", lambda source, weights, parse: weights)
        older.setattr(durable, "VALUES", "unknown")
        with program.run(path=path, **options) as view:
            view.step(given)


def exactly(rows: Any) -> Any:
    """Rows as text, which tells apart what is equal: 1 and True, 1.0 and 1.00."""
    if isinstance(rows, dict):
        return {name: exactly(each) for name, each in rows.items()}
    return sorted((repr(row), weight) for row, weight in rows.items())


@pytest.mark.parametrize("key", [None, "id"])
def test_older_rows_become_canonical_and_what_they_made_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    stored(orders(key), tmp_path, monkeypatch, {"orders": ODD})
    program = orders(key)
    there = ZSet.of(PLAIN)
    for first in (True, False):
        with program.run(path=tmp_path) as view:
            assert len(view.converted) == first
            assert exactly(view.value) == exactly(evaluate(program.plan, {"orders": there}))
            view.verify()
            if not first:
                view.step(orders={PLAIN[0]: -1})
                there -= ZSet.of(PLAIN[:1])
                assert exactly(view.value) == exactly(evaluate(program.plan, {"orders": there}))


def test_older_rows_that_are_canonical_are_used_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(orders(None), tmp_path, monkeypatch, {"orders": PLAIN})
    with orders(None).run(path=tmp_path) as view:
        assert (view.converted, view.rebuilt, view.epoch) == ((), (), 1)
        view.verify()


def test_what_an_older_version_computed_of_decimals_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [Bill(1, Decimal("1")), Bill(3, Decimal("1.0")), Bill(5, Decimal("2.000"))]
    stored(bills(), tmp_path, monkeypatch, {"bills": given})
    there = ZSet.of([Bill(row.id, row.price.quantize(Decimal("0.01"))) for row in given])
    with bills().run(path=tmp_path) as view:
        assert exactly(view.value) == exactly(evaluate(bills().plan, {"bills": there})["output"])
        view.step(bills=ef.delete([5]))
        view.verify()


def test_older_rows_are_converted_beside_a_type_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(bills(), tmp_path, monkeypatch, {"bills": [Bill(1, Decimal("1.5"))]})
    rows = ef.Input("bills", FinerBill, key="id")
    grown = rows.group_by(lambda row: row.id % 2).agg(sum=ef.sum("price"))
    with grown.run(path=tmp_path) as view:
        assert [row.sum for row in view.value] == [Decimal("1.500")]
        assert str(view.value).count("1.500") == 1
        view.verify()


def test_an_older_row_that_is_refused_now_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row: Any = Order("1", "open", 1.0, 2)  # type: ignore[arg-type]
    stored(orders(None), tmp_path, monkeypatch, {"orders": [row]})
    for _ in range(2):
        with pytest.raises(StateError) as refused:
            orders(None).run(path=tmp_path)
        text = str(refused.value)
        assert "holds a row that is refused now" in text
        assert "field 'id'" in text
        assert "'1'" in text


def test_older_rows_are_not_converted_where_that_is_not_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(orders(None), tmp_path, monkeypatch, {"orders": ODD})
    with pytest.raises(StateError, match=r"(?s)did not check values.*strict=False"):
        orders(None).run(path=tmp_path, strict=True)
    trusting = tmp_path / "trusting"
    rows = ef.Input("bills", Bill)
    mean = rows.group_by(lambda row: row.id % 2).agg(mean=ef.mean("price"))
    bill = Bill(1, Decimal("1.50"))
    stored(mean, trusting, monkeypatch, {"bills": [bill]}, check_input=False)
    with pytest.raises(StateError, match="rows were not kept"):
        mean.run(path=trusting, check_input=False)
