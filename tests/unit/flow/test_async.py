"""Async functions are refused: their coroutines would never run."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import ebbflow as ef


class Order(NamedTuple):
    id: int
    city: str
    price: int


class Later:
    async def __call__(self, *row: Any) -> bool:
        return True


async def later(*row: Any) -> Any:
    return True


async def many_later(row: Any) -> Any:
    yield row


class LateSink(ef.Sink):
    async def publish(self, epoch: int, change: Any) -> None:  # type: ignore[override]
        pass


C: Any = ef.Input("orders", Order, key="id")
VIEW: Any = C.run()
PLACES: dict[str, Callable[[Any], object]] = {
    "filter": lambda f: C.filter(f),
    "map": lambda f: C.map(f),
    "flat_map": lambda f: C.flat_map(f),
    "select": lambda f: C.select(name=f),
    "with_fields": lambda f: C.with_fields(name=f),
    "group_by": lambda f: C.group_by(f),
    "group_by by name": lambda f: C.group_by(k=f),
    "join": lambda f: C.join(C, on=f),
    "join select": lambda f: C.join(C, on="id", select=f),
    "top_k": lambda f: C.top_k(3, order=f),
    "limit per": lambda f: C.limit(3, order="id", per=f),
    "desc": lambda f: C.limit(3, order=ef.desc(f)),
    "scan": lambda f: C.scan(f, 0, order="id"),
    "fold": lambda f: C.fold(f, 0, order="id"),
    "iterate": lambda f: C.iterate(f),
    "match": lambda f: C.match(first=f, order="id"),
    "tumbling": lambda f: C.tumbling(f, 60),
    "sum": lambda f: C.agg(n=ef.sum(f)),
    "where": lambda f: C.agg(n=ef.sum("price").where(f)),
    "then": lambda f: C.agg(n=ef.sum("price").then(f)),
    "Reducer": lambda f: ef.Reducer(0, f),
    "Input key": lambda f: ef.Input("late", Order, key=f),
    "replace": lambda f: VIEW.input("orders").replace([], where=f),
    "on_change": lambda f: VIEW.on_change(f),
    "on_change of an output": lambda f: VIEW["output"].on_change(f),
    "each_epoch": lambda f: VIEW.each_epoch(f, name="late"),
}


@pytest.fixture(autouse=True)
def every_coroutine_is_awaited_or_closed() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "f", [later, Later(), functools.partial(later)], ids=["function", "object", "partial"]
)
def test_async_function_is_refused_where_it_is_given(place: str, f: Any) -> None:
    with pytest.raises(ef.EbbflowError, match="is async") as error:
        PLACES[place](f)
    assert error.value.remedy
    assert VIEW.step(orders=[]) == ef.ZSet()


def test_async_generator_is_refused() -> None:
    with pytest.raises(ef.EbbflowError, match="is async"):
        C.flat_map(many_later)


def test_function_that_calls_an_async_one_is_refused() -> None:
    for make in (C.filter, C.map, C.group_by):
        with pytest.raises(ef.EbbflowError, match="is async"):
            make(lambda row: later(row))


def test_callback_that_gives_a_coroutine_fails_and_the_epoch_stays() -> None:
    view: Any = C.run()
    end = view.on_change(lambda change: later(change))
    with pytest.raises(ef.EbbflowError, match=r"on_change.* is async"):
        view.step(orders=[Order(1, "Rome", 3)])
    assert (view.epoch, len(view.value)) == (1, 1)
    end()
    end = view.each_epoch(lambda change, epoch: later(), name="late")
    with pytest.raises(ef.EbbflowError, match=r"each_epoch.* is async"):
        view.step(orders=[Order(2, "Rome", 3)])
    end()
    view.step(orders=[Order(3, "Rome", 3)])
    assert len(view.value) == 3


def test_sink_with_an_async_method_is_refused() -> None:
    with pytest.raises(ef.EbbflowError, match="publish: it is async"):
        VIEW.add_sink(LateSink())


@pytest.mark.parametrize("method", ["begin", "restart", "had", "close"])
def test_sink_with_another_async_method_is_refused(method: str) -> None:
    sink = type("OtherSink", (ef.Sink,), {"publish": lambda *_: None, method: later})()
    with pytest.raises(ef.EbbflowError, match=f"{method}: it is async"):
        VIEW.add_sink(sink)
    assert not VIEW.sinks


def test_function_that_gives_a_coroutine_as_its_sink_begins_again_is_refused() -> None:
    view: Any = C.run()
    view.step(orders=[Order(1, "Rome", 3)])
    end = view.each_epoch(lambda change, epoch: later(), name="late")
    with pytest.raises(ef.EbbflowError, match=r"each_epoch\(late\): it is async"):
        view.restart_sink("late")
    end()
