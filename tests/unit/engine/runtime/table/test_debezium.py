"""Events of Debezium with parts missing: applied, or refused with the part and the remedy."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ebbflow as ef

pa: Any = pytest.importorskip("pyarrow")


class Order(NamedTuple):
    id: int
    city: str


ROW, NEW = {"id": 1, "city": "Rome"}, {"id": 1, "city": "Oslo"}
KEYED = ef.Input("orders", Order, key="id")
BAG = ef.Input("orders", Order)
APPLIED: list[tuple[dict[str, Any], list[Order]]] = [
    ({"op": "u", "before": None, "after": NEW}, [Order(**NEW)]),
    ({"op": "u", "before": {"id": 1}, "after": NEW}, [Order(**NEW)]),
    ({"op": "u", "before": ROW, "after": NEW, "source": {"lsn": 3}, "ts_ms": 1}, [Order(**NEW)]),
    ({"op": "d", "before": {"id": 1}, "after": None}, []),
    ({"op": "d", "before": {"id": 1, "city": None}, "after": None}, []),
    ({"op": None, "before": None, "after": None}, [Order(**ROW)]),
]
"""Events that an input with a key follows, each with the rows after it."""
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"op": "u", "after": NEW}, "here is no 'before'"),
    ({"op": "u", "before": ROW}, "here is no 'after'"),
    ({"op": "d"}, "here is no 'before'"),
    ({"op": "d", "after": None}, "here is no 'before'"),
    ({"op": "d", "before": None, "after": None}, "'before' is null"),
    ({"op": "u", "before": ROW, "after": None}, "'after' is null"),
    ({"before": ROW, "after": NEW}, "here is no 'op'"),
    ({"op": None, "before": None, "after": NEW}, "op None is no change of a row"),
    ({"op": "t", "before": None, "after": None}, "op 't' is no change of a row"),
    ({"op": ["u"], "before": ROW, "after": NEW}, "is no change of a row"),
    ({"op": 1, "before": ROW, "after": NEW}, "op 1 is no change of a row"),
    ({"op": "u", "before": None, "after": "Oslo"}, "'after'"),
    ({"op": "u", "before": None, "after": {"id": 1}}, "no column 'city' in 'after'"),
    ({"op": "u", "before": None, "after": {**NEW, "zip": 3}}, "no field for column 'zip'"),
    ({"schema": {"name": "orders"}, "payload": {"op": "u"}}, "with its envelope"),
]


def running(source: Any) -> Any:
    view = source.run()
    view.step(orders=[Order(**ROW)])
    return view


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize(("event", "rows"), APPLIED)
def test_feed_applies_an_event_that_names_the_row(
    event: dict[str, Any], rows: list[Order], as_table: bool
) -> None:
    view = running(KEYED)
    view.input("orders").feed(pa.Table.from_pylist([event]) if as_table else [event])
    assert list(view.value) == rows


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize(("event", "what"), REFUSED)
def test_feed_refuses_an_event_that_says_too_little(
    event: dict[str, Any], what: str, as_table: bool
) -> None:
    view = running(KEYED)
    with pytest.raises(ef.EbbflowError) as error:
        view.input("orders").feed(pa.Table.from_pylist([event]) if as_table else [event])
    assert what in error.value.what
    assert error.value.remedy
    assert (view.epoch, list(view.value)) == (1, [Order(**ROW)])


@pytest.mark.parametrize("event", [each for each, _ in [*REFUSED, *APPLIED[:2], *APPLIED[3:5]]])
def test_input_without_a_key_refuses_events_without_the_old_row(event: dict[str, Any]) -> None:
    view = running(BAG)
    with pytest.raises(ef.EbbflowError) as error:
        view.step(orders=pa.Table.from_pylist([event]))
    assert "input 'orders'" in error.value.what
    assert error.value.remedy
    with pytest.raises(ef.EbbflowError, match="input 'orders'"):
        view.step(orders=[event])
    with pytest.raises(ef.EbbflowError, match="input 'orders' has no key"):
        view.input("orders").feed([event])
    assert (view.epoch, list(view.value)) == (1, [Order(**ROW)])


def test_input_without_a_key_follows_events_with_the_old_row() -> None:
    view = running(BAG)
    event = {"op": "u", "before": ROW, "after": NEW}
    assert view.step(orders=pa.Table.from_pylist([event])) == ef.ZSet(
        {Order(**ROW): -1, Order(**NEW): 1}
    )
