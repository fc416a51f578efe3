"""Every public method, called with wrong arguments: see `wrong_calls`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.wrong_calls import WRONG, hunt

import ebbflow as ef


class Order(NamedTuple):
    id: int
    city: str
    price: int


FOLDER = tempfile.TemporaryDirectory()
ORDERS: Any = ef.Input("orders", Order, key="id")
HITS: Any = ef.Input("hits", Order)


def view_of(program: Any, **rows: Any) -> Any:
    view = program.run()
    view.step(rows)
    return view


def one() -> Any:
    return view_of(ORDERS, orders=[Order(1, "Rome", 3)])


def on_disk() -> Any:
    source: Any = ef.Input("orders", Order, key="id", sequence="price")
    view = source.run(path=tempfile.mkdtemp(dir=FOLDER.name), keep_epochs=3, readable=True)
    view.step(orders=[Order(1, "Rome", 3)])
    return view


def reader() -> Any:
    with on_disk() as view:
        return ef.open(view.metrics().path)


OBJECTS: dict[str, Callable[[], Any]] = {
    "view": one,
    "two outputs": lambda: view_of(ef.program(a=ORDERS, b=HITS), hits=[Order(1, "Rome", 3)]),
    "branch": lambda: one().branch(),
    "input": lambda: one().input("orders"),
    "input without a key": lambda: view_of(HITS, hits=[Order(1, "Rome", 3)]).input("hits"),
    "output": lambda: one()["output"],
    "collection": lambda: ORDERS,
    "groups": lambda: ORDERS.group_by("city"),
    "order": lambda: ORDERS.over(per="city", order="id"),
    "program": lambda: ef.program(a=ORDERS, b=HITS),
    "module": lambda: ef,
    "window": lambda: ef.window,
    "view on disk": on_disk,
    "input on disk": lambda: on_disk().input("orders"),
    "reader": reader,
}
INSIDE = ("snapshot", "glance", "known", "values")
"""Methods of a reader that only its own classes call."""


def skipped(name: str, values: tuple[Any, ...]) -> bool:
    """Whether a call would write into the working directory, or is not for users."""
    writes = name in ("run", "write_changes", "write_snapshot", "open", "object_store")
    texts = any(isinstance(each, (str, bytes)) for each in values)
    return (writes and texts) or name in ("redact", "linear", *INSIDE)


@pytest.mark.parametrize("of", OBJECTS)
def test_wrong_arguments_are_accepted_or_refused_by_an_error_of_ours(of: str) -> None:
    pytest.importorskip("pyarrow")
    assert list(hunt(OBJECTS[of], WRONG, skipped)) == []


@pytest.mark.parametrize("option", ["format", "mode", "output", "permissions"])
@pytest.mark.parametrize("method", ["write_changes", "write_snapshot"])
def test_wrong_options_of_writing_are_refused(tmp_path: Path, method: str, option: str) -> None:
    pytest.importorskip("pyarrow")
    if (method, option) == ("write_changes", "mode"):
        return
    for of in (one(), one()["output"]):
        for value in (3, [], {}, "nope", object()):
            if option == "output" and of is not None and not hasattr(type(of), "step"):
                continue
            with pytest.raises(ef.EbbflowError) as error:
                getattr(of, method)(tmp_path / "x", **{option: value})
            assert error.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_requests_name_the_value_and_leave_the_view_as_it_was() -> None:
    view = one()
    asked = view.input("orders")
    for call, says in (
        (lambda: asked.delete(77), "key        77"),
        (lambda: asked.delete("77"), "must be an int, not the str '77'"),
        (lambda: asked.add([3]), "a row must be of type Order, not int"),
        (lambda: asked.add((2, "Oslo", 5)), "Order(*row)"),
        (lambda: asked.upsert({"id": 2}), "input 'orders'"),
        (lambda: asked.get(id=1), "get(1)"),
        (lambda: asked.delete([1], parse="yes"), "parse is True or False"),
        (lambda: ef.View(ORDERS, None), "run() makes views"),
    ):
        with pytest.raises(ef.EbbflowError) as error:
            call()  # type: ignore[no-untyped-call]
        assert says in str(error.value)
        assert (view.epoch, list(view.value)) == (1, [Order(1, "Rome", 3)])
