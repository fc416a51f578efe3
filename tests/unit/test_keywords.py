"""Calls with arguments that a function does not take."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.errors import CompositionError, UnknownArgument
from ebbflow.keywords import checked


class Order(NamedTuple):
    id: int
    city: str
    price: int


ORDERS: Any = ef.Input("orders", Order, key="id")
FIRST: Any = ef.first
UPSERT: Any = ef.upsert
FEED: Any = ef.feed
DELETE: Any = ef.delete
STRING_AGG: Any = ef.string_agg
ARG_MAX: Any = ef.arg_max


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (lambda: ORDERS.top_k(3, by="price"), "top_k() has no argument 'by'", "order='price'"),
        (lambda: ORDERS.last(3, by="price"), "last() has no argument 'by'", "order='price'"),
        (lambda: ORDERS.limit(3, by="price"), "limit() has no argument 'by'", "order='price'"),
        (lambda: ORDERS.sample(0.1, by="city"), "sample() has no argument 'by'", "per='city'"),
        (lambda: ORDERS.join(ORDERS, by="id"), "join() has no argument 'by'", "on='id'"),
        (lambda: UPSERT([], by="price"), "upsert() has no argument 'by'", "order='price'"),
        (lambda: FEED([], by="lsn"), "feed() has no argument 'by'", "order='lsn'"),
        (lambda: FIRST("city", by=len), "first() has no argument 'by'", "order=..."),
        (lambda: ARG_MAX(by="price"), "arg_max() has no argument 'by'", "order='price'"),
        (lambda: STRING_AGG("city", by="id"), "string_agg() has no argument 'by'", "order='id'"),
        (lambda: ORDERS.over(partition_by="city"), "over() has no argument", "per='city'"),
        (lambda: ORDERS.limit(3, ascending=False), "limit() has no argument", "descending=..."),
        (lambda: ORDERS.top_k(3, ordr="price"), "top_k() has no argument", "order='price'"),
        (lambda: ORDERS.distinct(subset="city"), "distinct() has no argument", "distinct()"),
        (lambda: DELETE([1], ignore_missing=True), "delete() has no", "missing=..."),
        (lambda: ORDERS.top_k(), "top_k() missing 1 required", "top_k(n)"),
        (lambda: ORDERS.last(2), "last() missing 1 required", "last(order=...)"),
        (lambda: ORDERS.top_k(1, "price"), "top_k() takes 2 positional", "top_k(n, order=...)"),
    ],
)
def test_an_argument_that_is_not_known_is_answered_with_ours(
    call: Callable[[], object], what: str, remedy: str
) -> None:
    with pytest.raises(UnknownArgument) as error:
        call()
    assert error.value.what.startswith(what)
    assert error.value.remedy == remedy
    assert "test_keywords.py" in str(error.value)
    assert isinstance(error.value, CompositionError)
    assert isinstance(error.value, TypeError)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_a_type_error_inside_a_function_is_left_as_it_is() -> None:
    @checked
    def add(n: Any) -> Any:
        return n + 1

    with pytest.raises(TypeError, match="can only concatenate") as error:
        add("a")
    assert not isinstance(error.value, UnknownArgument)


def test_an_async_method_stays_one_and_checks_its_arguments() -> None:
    view: Any = ORDERS.run()
    assert inspect.iscoroutinefunction(view.astep)
    assert asyncio.run(view.astep(orders=[Order(1, "Rome", 3)])) == ef.ZSet.of(
        [Order(1, "Rome", 3)]
    )
    with pytest.raises(UnknownArgument, match=r"astep\(\) takes"):
        asyncio.run(view.astep(1, 2, 3))


def test_a_method_with_free_keywords_checks_its_positions() -> None:
    with pytest.raises(UnknownArgument) as error:
        ORDERS.with_fields("price * 2")
    assert error.value.remedy == "with_fields(name=...)"
    view: Any = ORDERS.run()
    with pytest.raises(ef.EbbflowError, match="name the input") as wrong:
        view.step({}, {})
    assert wrong.value.remedy == "step(orders=[row], people=[row])"


def test_a_value_with_the_name_of_a_field_goes_to_its_place() -> None:
    view: Any = ORDERS.run()
    for of in (view, view["output"], view.input("orders")):
        with pytest.raises(UnknownArgument) as error:
            of.get(id=3)
        assert error.value.remedy == "get(3)"
        assert error.value.what == "get() has no argument 'id'"


def test_a_checked_verb_has_its_signature_its_text_and_its_name() -> None:
    assert list(inspect.signature(ef.Collection.sample).parameters)[1:] == [
        "fraction", "per", "seed",
    ]  # fmt: skip
    assert (ef.Collection.top_k.__doc__ or "").startswith("The `n` rows at the top")
    assert pickle.loads(pickle.dumps(ef.upsert)) is ef.upsert
