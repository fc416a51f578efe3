"""Joins on inequalities, conditions on one row of another collection, and the first rows in an
order: what they give as rows come and go, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import ChangeError, CompositionError, FunctionFailed
from ebbflow.nan import NAN
from ebbflow.zset import ZSet


class Line(NamedTuple):
    order: int
    supplier: str
    late: bool = False


class Hit(NamedTuple):
    user: str
    at: float | None


class Span(NamedTuple):
    user: str
    start: float
    end: float


LINES, HITS, SPANS = ef.Input("lines", Line), ef.Input("hits", Hit), ef.Input("spans", Span)


def rows(value: Any) -> list[tuple[Any, ...]]:
    return sorted([tuple(row) for row, n in value.items() for _ in range(n)], key=str)


# ---- inequalities ----


def test_who_alone_was_late_is_told_by_two_joins_with_another_supplier() -> None:
    """TPC-H Q21: some other supplier took part, and no other was late."""
    late = LINES.filter(lambda line: line.late)
    alone = late.join(LINES, on="order", where=ef.ne("supplier"), how="semi").join(
        late, on="order", where=ef.ne("supplier"), how="anti"
    )
    view = alone.run()
    view.step(lines=[Line(1, "a", True), Line(2, "a", True), Line(2, "b")])
    assert rows(view.value) == [(2, "a", True)]
    assert view.step(lines=[Line(2, "c", True)]) == ZSet({Line(2, "a", True): -1})
    assert view.step(lines={Line(2, "a", True): -1}) == ZSet({Line(2, "c", True): 1})
    assert view.step(lines={Line(2, "b"): -1}) == ZSet({Line(2, "c", True): -1})
    assert view.step(lines=[Line(1, "b")]) == ZSet({Line(1, "a", True): 1})


def test_a_value_between_two_ends_meets_the_intervals_around_it() -> None:
    met = HITS.join(SPANS, on="user", where=ef.between("at", "start", "end"))
    view = met.run()
    view.step(hits=[Hit("ann", 3), Hit("ann", 9), Hit("bob", 3)], spans=[Span("ann", 1, 4)])
    assert rows(view.value) == [("ann", 3, 1, 4)]
    view.step(spans=[Span("ann", 3, 9), Span("bob", 5, 6)])
    assert rows(view.value) == [("ann", 3, 1, 4), ("ann", 3, 3, 9), ("ann", 9, 3, 9)]
    view.step(hits={Hit("ann", 3): -1})
    assert rows(view.value) == [("ann", 9, 3, 9)]


@pytest.mark.parametrize("how", ["left", "right", "full"])
def test_rows_that_meet_nothing_are_kept_by_outer_joins(how: str) -> None:
    made = HITS.join(SPANS, where=(ef.ge("at", "start"), ef.lt("at", "end")), how=how,
                     select=lambda hit, span: (hit and hit.at, span and span.start))  # fmt: skip
    view = made.run()
    view.step(hits=[Hit("ann", 3), Hit("ann", 8)], spans=[Span("x", 1, 4), Span("y", 5, 6)])
    lonely = {"left": [(8, None)], "right": [(None, 5)], "full": [(8, None), (None, 5)]}[how]
    assert rows(view.value) == sorted([(3, 1), *lonely], key=str)


def test_none_compares_with_nothing() -> None:
    some = HITS.join(SPANS, where=ef.ne("at", "start"), how="semi")
    none = HITS.join(SPANS, where=ef.ne("at", "start"), how="anti")
    view = ef.program(some=some, none=none).run()
    view.step(hits=[Hit("ann", None), Hit("ann", 1), Hit("bob", NAN)], spans=[Span("x", 1, 2)])
    assert rows(view.value["some"]) == [("bob", NAN)]
    assert rows(view.value["none"]) == [("ann", 1), ("ann", None)]


def test_the_right_counts_once_however_often_it_is_there() -> None:
    earlier = HITS.join(SPANS, where=ef.gt("at", "start"), how="semi")
    view = earlier.run()
    view.step(hits={Hit("ann", 3): 2}, spans={Span("x", 1, 2): 3})
    assert view.value == ZSet({Hit("ann", 3): 2})
    assert not view.step(spans={Span("x", 1, 2): -2})
    assert view.step(spans={Span("x", 1, 2): -1}) == ZSet({Hit("ann", 3): -2})


def test_filters_and_fields_pass_a_join_on_inequalities() -> None:
    wide = LINES.with_fields(note=lambda line: "x" * line.order)
    made = wide.join(wide, on="order", where=ef.ne("supplier"), how="semi").filter(
        lambda line: line.order > 1
    )
    text = made.select("order").run().explain()
    above, _, below = text.partition("semi order where supplier !=")
    assert "filter" not in above
    assert "order > 1" in below


@pytest.mark.parametrize(
    ("build", "said", "remedy"),
    [
        (lambda: HITS.join(SPANS, where=ef.lt("at")), "no field 'at'", "one of its fields"),
        (lambda: HITS.join(SPANS, where=ef.lt("user", "start")), "different types", "same type"),
        (lambda: HITS.join(SPANS, where=lambda a, b: a < b), "asks for inequalities", ".filter("),
        (lambda: HITS.join(SPANS, where="at"), "asks for inequalities", "ebbflow.lt"),
        (lambda: HITS.join(SPANS, where=()), "nothing is compared", "ebbflow.lt"),
        (lambda: HITS.join(SPANS), "no key is given", "on="),
    ],
)
def test_inequalities_that_make_no_sense_are_refused(build: Any, said: str, remedy: str) -> None:
    with pytest.raises(CompositionError) as error:
        build()
    assert said in error.value.what
    assert remedy in error.value.remedy
    assert "test_compare.py" in str(error.value.facts["created"])


# ---- conditions on one row ----


def test_a_changed_threshold_moves_what_it_crosses() -> None:
    mean = HITS.agg(mean=ef.mean("at"))
    view = HITS.filter(lambda hit, all: hit.at > all.mean, mean).run()
    view.step(hits=[Hit("a", 1), Hit("b", 3), Hit("c", 5)])
    assert rows(view.value) == [("c", 5)]
    assert view.step(hits=[Hit("d", -9)]) == ZSet({Hit("a", 1): 1, Hit("b", 3): 1})
    view.step(hits=dict.fromkeys([Hit("a", 1), Hit("b", 3), Hit("c", 5)], -1))
    assert not view.value


def test_one_row_for_each_key_is_a_correlated_sub_query() -> None:
    first = HITS.group_by("user").agg(first=ef.min("at"))
    view = HITS.filter(lambda hit, own: hit.at == own.first, first, on="user").run()
    view.step(hits=[Hit("a", 1), Hit("a", 2), Hit("b", 5)])
    assert rows(view.value) == [("a", 1), ("b", 5)]
    assert view.step(hits={Hit("a", 1): -1}) == ZSet({Hit("a", 1): -1, Hit("a", 2): 1})


def test_without_the_one_row_nothing_passes() -> None:
    limit = ef.Input("limit", int)
    view = ef.Input("numbers", int).filter(lambda n, least: n != least, limit).run()
    assert not view.step(numbers=[1, 2])
    assert view.step(limit=[2]) == ZSet({1: 1})
    assert view.step(limit={2: -1}) == ZSet({1: -1})


def test_more_than_one_row_is_an_error_that_says_so_and_changes_nothing() -> None:
    limit = ef.Input("limit", int)
    made = ef.Input("numbers", int).filter(lambda n, least: n > least, limit)
    view = made.run()
    view.step(numbers=[1, 2, 3], limit=[1])
    for more in ([2], [1]):
        with pytest.raises(ChangeError, match="there are more") as error:
            view.step(limit=more)
        assert "agg(...)" in error.value.remedy
        assert "test_compare.py" in str(error.value.facts["created"])
        with pytest.raises(ChangeError, match="there are more"):
            evaluate(made.plan, {"numbers": ZSet.of([3]), "limit": ZSet.of([1, *more])})
    assert rows(ZSet.of([(n,) for n in view.value])) == [(2,), (3,)]


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda row, one: row < one, "<=": lambda row, one: row <= one,
    ">": lambda row, one: row > one, ">=": lambda row, one: one <= row,
    "==": lambda row, one: row == one, "!=": lambda row, one: one != row,
    "untraced": lambda row, one: bool([row for _ in [1] if row < one]),
}  # fmt: skip


@pytest.mark.parametrize("sign", SIGNS)
def test_a_condition_means_what_it_means_in_python(sign: str) -> None:
    """NaN compares with nothing, however many rows are kept in order."""
    made = ef.Input("rows", float).filter(SIGNS[sign], ef.Input("one", float))
    assert ("all are looked at again" in made.explain()) is (sign == "untraced")
    dice, view = Random(sign), made.run()
    values = [*range(60), 0.5, 7.25, NAN, float("inf")]
    there, one = ZSet[Any](), ZSet[Any]()
    for _ in range(40):
        some = ZSet.of([float(each) for each in dice.choices(values, k=6)])
        gone = ZSet.of([each for each in there if dice.random() < 0.1])
        next_one = ZSet.of([float(dice.choice(values))] if dice.random() < 0.9 else [])
        view.step(rows=some - gone, one=next_one - one)
        there, one = there + some - gone, next_one
        assert view.value == evaluate(made.plan, {"rows": there, "one": one})["output"]


def test_what_cannot_be_compared_fails_as_python_does() -> None:
    view = HITS.filter(lambda hit, one: hit.at > one.start, SPANS).run()
    view.step(hits=[Hit("a", 1), Hit("b", None)])
    with pytest.raises(FunctionFailed, match="NoneType"):
        view.step(spans=[Span("x", 0, 1)])
    view.step(hits={Hit("b", None): -1})
    assert view.step(spans=[Span("x", 0, 1)]) == ZSet({Hit("a", 1): 1})


def test_a_key_without_another_collection_is_refused() -> None:
    with pytest.raises(CompositionError, match="a key is for"):
        HITS.filter(lambda hit: hit.at > 1, on="user")
    with pytest.raises(CompositionError, match="called with two arguments"):
        HITS.filter(lambda hit: hit.at, SPANS)


# ---- the first rows ----


def test_limit_gives_rows_behind_an_offset_and_follows_every_change() -> None:
    made = HITS.limit(2, order=("at", ef.desc("user")), offset=1)
    view = made.run()
    view.step(hits=[Hit("a", 1), Hit("b", 1), Hit("c", 2), Hit("d", None)])
    assert rows(view.value) == [("a", 1), ("b", 1)]
    assert view.step(hits={Hit("d", None): -1}) == ZSet({Hit("b", 1): -1, Hit("c", 2): 1})
    assert rows(view.value) == [("a", 1), ("c", 2)]
    assert "2 smallest (at, desc(user)) after 1" in view.explain()


@pytest.mark.parametrize("descending", [False, True])
def test_a_large_limit_behind_a_large_offset(descending: bool) -> None:
    made = ef.Input("n", int).limit(40, order=lambda n: n // 3, offset=50, descending=descending)
    dice, view, there = Random(descending), made.run(), ZSet[Any]()
    for size in (300, *[2] * 60):
        some = ZSet.of(dice.choices(range(400), k=size))
        gone = ZSet.of(dice.sample(sorted(there), min(len(there), size - 1)))
        there = there + some - gone
        view.step(n=some - gone)
        assert view.value == evaluate(made.plan, {"n": there})["output"]


def test_texts_can_descend_in_top_k_and_per_key() -> None:
    view = HITS.top_k(1, order=ef.desc("user"), per="at").run()
    view.step(hits=[Hit("a", 1), Hit("b", 1), Hit("c", 2)])
    assert rows(view.value) == [("a", 1), ("c", 2)]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: HITS.limit(0, order="at"), "a positive number"),
        (lambda: HITS.limit(1, order="at", offset=-1), "cannot be left out"),
        (lambda: HITS.limit(1), "by what rows are compared"),
        (lambda: HITS.limit(1, order=ef.desc("att")), "no field 'att'"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(build: Any, said: str) -> None:
    with pytest.raises(CompositionError, match=said):
        build()


def test_desc_is_a_function_wherever_one_is_taken() -> None:
    by_name: Iterable[Hit] = sorted([Hit("a", 1), Hit("b", 2)], key=ef.desc("user"))
    assert [hit.user for hit in by_name] == ["b", "a"]
    last = HITS.reduce(ef.arg_max(ef.desc("user"), "at")).run()
    assert rows(last.step(hits=[Hit("a", 1), Hit("b", 2)])) == [(1,)]
