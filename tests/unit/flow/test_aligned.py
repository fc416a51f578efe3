"""As-of joins, interval joins and patterns in programs: types, what is refused, what is shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.compile import Compiler
from ebbflow.errors import ChangeError, CompositionError, FunctionFailed, UnknownField, UnknownVerb
from ebbflow.flow.describe import details, verb
from ebbflow.flow.kept import kept
from ebbflow.zset import ZSet


class Trade(NamedTuple):
    stock: str
    at: int
    size: int


class Quote(NamedTuple):
    stock: str
    at: int
    bid: int


class Name(NamedTuple):
    stock: str
    name: str


class Visit(NamedTuple):
    user: str
    at: datetime


TRADES, QUOTES = ef.Input("trades", Trade), ef.Input("quotes", Quote)
NAMES, VISITS = ef.Input("names", Name), ef.Input("visits", Visit)


def pair(left: Any, right: Any) -> tuple[Any, Any]:
    return left, right


def large(row: Trade) -> bool:
    return row.size > 5


# ---- types ----


def test_an_as_of_join_has_the_fields_of_both_and_the_place_of_the_left() -> None:
    left = TRADES.asof_join(QUOTES, on="stock", order="at")
    inner = TRADES.asof_join(QUOTES, on="stock", order="at", how="inner")
    fields = {"stock": str, "at": int, "size": int}
    assert left.type.__annotations__ == fields | {"bid": int | None}
    assert inner.type.__annotations__ == fields | {"bid": int}


def test_a_match_has_the_key_and_a_field_for_each_step() -> None:
    found = TRADES.match(
        first=large, rest=ef.many(large, ef.max("size")), n=ef.many(large), order="at", per="stock"
    )
    fields = {"stock": str, "first": Trade, "rest": int, "n": int}
    assert found.type.__annotations__ == fields


# ---- what is refused ----


@pytest.mark.parametrize(("given", "what", "remedy"), [
    ({}, "asof_join(...): no order is given", 'order="field"'),
    ({"left_order": "at"}, "the order of the other side is not given", "right_order="),
    ({"order": "at", "left_order": "at"}, "order= is the order of both sides", "order= alone"),
    ({"order": "at", "direction": "backwards"}, "no such direction", "direction='backward'"),
    ({"order": "at", "how": "outer"}, "how='outer'", "left, inner"),
    ({"order": "at", "tolerance": 0}, "tolerance must be a positive span", "a number"),
    ({"order": "at", "tolerance": timedelta(1)}, "the time is of type int", "a number"),
])  # fmt: skip
def test_as_of_joins_that_make_no_sense_are_refused(given: Any, what: str, remedy: str) -> None:
    with pytest.raises(CompositionError) as caught:
        TRADES.asof_join(QUOTES, on="stock", **given)
    assert what in caught.value.what
    assert remedy in caught.value.remedy
    assert "test_aligned.py" in str(caught.value.facts["created"])


def test_places_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(CompositionError, match="the orders are of different types"):
        TRADES.asof_join(NAMES, on="stock", left_order="at", right_order="name")
    with pytest.raises(CompositionError, match="in which no time can be counted"):
        NAMES.asof_join(NAMES, order="name", direction="nearest", select=pair)
    with pytest.raises(UnknownField, match="'att'"):
        TRADES.asof_join(QUOTES, order="att")


@pytest.mark.parametrize(("given", "what"), [
    ({"low": 5, "high": 0}, "nothing is between them"),
    ({"low": 0, "high": timedelta(1)}, "one is a timedelta, the other not"),
    ({"low": "a", "high": 1}, "'a' is no distance"),
    ({"low": timedelta(0), "high": timedelta(1)}, "it is of type int"),
    ({"low": 0, "high": 1, "how": "full"}, "how='full'"),
    ({"low": 0, "high": 1, "how": "semi", "select": pair}, "nothing is merged"),
    ({"low": 0, "high": 1}, "both sides have a field 'at'"),
])  # fmt: skip
def test_interval_joins_that_make_no_sense_are_refused(given: Any, what: str) -> None:
    with pytest.raises(CompositionError) as caught:
        TRADES.interval_join(QUOTES, on="stock", order="at", **given)
    assert what in caught.value.what


def test_an_interval_of_numbers_between_times_is_refused() -> None:
    with pytest.raises(CompositionError, match="it is a datetime, and 1 is a number"):
        VISITS.interval_join(VISITS, on="user", order="at", low=0, high=1, how="semi")


@pytest.mark.parametrize(("given", "what"), [
    ({}, "no step is given"),
    ({"a": 1}, "1 is no part of a row"),
    ({"a": ef.count()}, "a step is a condition"),
    ({"a": ef.many(large, len)}, "len is not a reducer"),  # type: ignore[arg-type]
    ({"stock": large}, "the key has a field 'stock' already"),
    ({"_a": large}, "'_a' cannot be the name of a field"),
    ({"a": large, "within": timedelta(1)}, "the time is of type int"),
    ({"a": large, "within": -1}, "within must be a positive span"),
])  # fmt: skip
def test_patterns_that_make_no_sense_are_refused(given: Any, what: str) -> None:
    with pytest.raises(CompositionError) as caught:
        TRADES.match(order="at", per="stock", **given)
    assert what in caught.value.what


def test_a_step_is_given_once() -> None:
    with pytest.raises(CompositionError, match="given twice"):
        TRADES.match({"a": large}, a=large, order="at")


@pytest.mark.parametrize(("theirs", "ours"), [
    ("merge_asof", "asof_join("), ("asof", "asof_join("), ("match_recognize", "match("),
    ("interval", "interval_join("),
])  # fmt: skip
def test_verbs_of_other_libraries_are_answered_with_ours(theirs: str, ours: str) -> None:
    with pytest.raises(UnknownVerb) as caught:
        getattr(TRADES, theirs)
    assert caught.value.remedy.startswith(ours)


# ---- when it runs ----


def test_a_function_that_fails_is_named_with_the_row_and_its_line() -> None:
    view = TRADES.asof_join(QUOTES, on="stock", order="at", select=lambda t, q: q.bid).run()
    with pytest.raises(FunctionFailed, match="asof_join raised AttributeError") as caught:
        view.step(trades=[Trade("a", 1, 1)])
    assert caught.value.facts["row"] == Trade("a", 1, 1)
    assert "test_aligned.py" in str(caught.value.facts["created"])


def test_a_place_in_which_nothing_can_be_counted_is_named_with_the_join() -> None:
    anything = ef.Input("anything")
    joined = anything.asof_join(anything, order=lambda row: row, direction="nearest")
    with pytest.raises(CompositionError, match="in which no time can be counted") as caught:
        joined.run().step(anything=["a"])
    assert str(caught.value.facts["node"]) == "asof_join"


def test_negative_rows_are_refused() -> None:
    owing = TRADES - ef.Input("more", Trade)
    view = owing.asof_join(QUOTES, on="stock", order="at").run()
    with pytest.raises(ChangeError, match="a row before it is negative"):
        view.step(more=[Trade("a", 1, 1)])
    view.step(trades=[Trade("a", 1, 1)], more=[Trade("a", 1, 1)])
    assert view.value == ZSet()


def test_a_right_side_that_owes_rows_has_those_that_are_present() -> None:
    owing = QUOTES - ef.Input("more", Quote)
    view = TRADES.asof_join(owing, on="stock", order="at").run()
    view.step(trades=[Trade("a", 9, 1)], quotes=[Quote("a", 5, 7)], more=[Quote("a", 8, 7)])
    assert view.value == ZSet.of([("a", 9, 1, 7)])


def test_rows_without_a_place_meet_nothing() -> None:
    pairs = ef.Input("pairs", tuple[int | None, int])
    place: Any = lambda row: row[0]
    for direction in ("backward", "forward", "nearest"):
        view = pairs.asof_join(pairs, order=place, direction=direction, allow_exact=False).run()
        view.step(pairs=[(None, 1), (None, 2), (3, 3)])
        assert {right for _, right in view.value} == {None}


# ---- what is kept and shown ----


def test_joins_by_the_same_order_share_their_indices() -> None:
    near = {"on": "stock", "order": "at", "select": pair}
    found = TRADES.interval_join(QUOTES, low=0, high=9, how="left", **near)
    labels = [stage.label for stage in Compiler(found.plan).stages]
    assert labels.count("index") == 2


def test_explain_says_how_rows_meet_and_what_is_kept() -> None:
    asof = TRADES.asof_join(QUOTES, on="stock", order="at", tolerance=9, allow_exact=False)
    assert details(asof.node) == "backward by at within 9, at another place per stock"
    assert kept(asof.node) == [
        "the left rows of each stock in the order of at",
        "the right rows of each stock in the order of at",
    ]
    near = TRADES.interval_join(QUOTES, order="at", low=-3, high=9, how="anti")
    assert f"{verb(near.node)} {details(near.node)}" == (
        "interval_anti -3 <= right at - left at <= 9"
    )
    assert kept(near.node)[1] == "the right rows in the order of at"
    steps = TRADES.match(a=ef.many(large), b=large, order="at", within=9, adjacent=True)
    assert details(steps.node) == "a (many) → b within 9, adjacent in the order of at"
    assert "asof_join backward by at" in asof.explain()
