"""On Spark an output has no column of pickles: a program that would have one does not start."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.table.untyped import require_types
from ebbflow.errors import CompositionError
from ebbflow.record import fields_of


class Sale(NamedTuple):
    id: int
    city: str
    day: date
    tags: list[str]
    sizes: dict[str, int]
    extra: Any = None


SALES = ef.Input("sales", Sale).select("id", "city", "day", "tags", "sizes")


def month(sale: Any) -> Any:
    return eval("sale.day.month")


def spelt(sale: Sale) -> str:
    return "".join(str(sale.day))


UNTYPED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a key": (
        lambda: SALES.group_by(month=month).agg(n=ef.count()),
        "output 'output': its column 'month' is of no known type",
        "month=ebbflow.typed(str, ...), with its type, or a function whose hints say",
    ),
    "a field": (
        lambda: SALES.select("id", month=month),
        "its column 'month' is of no known type",
        "month=ebbflow.typed(str, ...)",
    ),
    "a result": (
        lambda: SALES.group_by("city").agg(last=ef.Reducer(None, lambda acc, sale: eval("sale"))),
        "its column 'last' is of no known type",
        "last=ebbflow.typed(str, ...)",
    ),
    "one result": (
        lambda: SALES.reduce(ef.Reducer(None, lambda acc, sale: eval("sale"))),
        "its column 'value' is of no known type",
        "reduce(..., type=...)",
    ),
    "in order": (
        lambda: SALES.scan(lambda acc, sale: eval("(acc, sale)"), 0, order="day"),
        "its rows are of no known type",
        "scan(..., type=...)",
    ),
    "further on": (
        lambda: SALES.group_by(month=month).agg(n=ef.count()).filter(lambda row: row.n > 1),
        "its column 'month' is of no known type",
        "month=ebbflow.typed(str, ...)",
    ),
    "rows": (lambda: SALES.map(month), "its rows are of no known type", "map(..., type=...)"),
    "rows of an input": (
        lambda: ef.Input("rows").distinct(),
        "its rows are of no known type",
        "Input('rows', Row)",
    ),
    "a field of an input": (
        lambda: ef.Input("sales", Sale).filter(lambda sale: sale.id > 1),
        "its column 'extra' is of no known type",
        "Input('sales', Row)",
    ),
    "inside": (
        lambda: SALES.select(pair=lambda sale: (sale.id, month(sale))),
        "its column 'pair._1' is of no known type",
        "pair=ebbflow.typed(str, ...)",
    ),
    "no column": (
        lambda: SALES.select(gap=lambda sale: sale.day - sale.day),
        "its column 'gap' is a timedelta, and Spark has no column for it",
        "a function that makes a number",
    ),
}


@pytest.mark.parametrize("case", UNTYPED)
def test_an_output_of_no_type_is_refused_with_what_to_do(case: str) -> None:
    make, said, remedy = UNTYPED[case]
    with pytest.raises(CompositionError) as error:
        require_types(make().plan)
    assert said in error.value.what
    assert error.value.remedy.startswith(remedy)
    assert "test_untyped.py" in str(error.value.facts["made"])


TYPED: list[Callable[[], Any]] = [
    lambda: SALES.group_by(month=ef.typed(int, month)).agg(n=ef.count()),
    lambda: SALES.group_by(month=lambda sale: sale.day.strftime("%Y-%m")).agg(n=ef.count()),
    lambda: SALES.group_by(month=lambda sale: f"{sale.day:%Y-%m}").agg(n=ef.count()),
    lambda: SALES.select(text=spelt),
    lambda: SALES.map(month, type=int),
    lambda: SALES.agg(all=ef.collect("city"), set=ef.set_of("city"), how=ef.histogram("city")),
    lambda: SALES.agg(one=ef.count().by("city"), two=ef.top_k(2, "city")),
    lambda: SALES.select(pair=lambda sale: (sale.id, sale.city.upper())),
    lambda: SALES.reduce(ef.typed(int, ef.Reducer(None, lambda acc, sale: eval("3")))),
    lambda: SALES.reduce(ef.Reducer(0, lambda acc, sale: acc + sale.id)),
    lambda: SALES.reduce(ef.Reducer(None, lambda acc, sale: eval("3")), type=int),
    lambda: SALES.group_by("city").reduce(ef.Reducer(None, lambda a, s: eval("3")), type=int),
    lambda: SALES.agg(n=ef.Reducer(None, lambda acc, sale: eval("3"), type=int)),
    lambda: ef.Input("sales", Sale).select("tags", "sizes", extra=ef.typed(str, "extra")),
    lambda: ef.Input("rows").map(lambda row: str(row)),
]


@pytest.mark.parametrize("at", range(len(TYPED)))
def test_a_type_may_be_said_or_seen(at: int) -> None:
    require_types(TYPED[at]().plan)


def test_nothing_is_asked_of_what_is_inside_a_program() -> None:
    keyed = SALES.map(lambda sale: {1: sale}, type=Any).map(len, type=int)
    require_types(keyed.plan)


# ---- typed ----


def test_a_typed_function_does_what_it_did() -> None:
    double: Any = ef.typed(int, lambda n, by=2: n * by)
    assert double(4) == 8
    assert ef.Input("n", int).map(double).node.fn.text == "n * 2"  # type: ignore[attr-defined]
    assert ef.typed(str, str.upper)("a") == "A"
    assert ef.typed(float, "real")(3 + 4j) == 3.0
    total = ef.typed(float, ef.Reducer(0, lambda acc, n: acc + n, lambda acc, n: acc - n))
    assert total([1, 2]) == 3
    view = ef.Input("n").group_by(k=ef.typed(int, lambda n: n % 2)).agg(total=total).run()
    view.step(n=[1, 2, 3])
    view.step(n={2: -1})
    assert [tuple(row) for row in view.value] == [(1, 4)]
    assert fields_of(type(next(iter(view.value)))) == {"k": int, "total": float}


def test_typed_wants_a_type_and_something_that_gives_values() -> None:
    with pytest.raises(CompositionError, match="the first is a type"):
        ef.typed(lambda row: row, str)
    with pytest.raises(CompositionError, match="nothing that gives a int"):
        ef.typed(int, 3)


def test_timedeltas_stay_as_they_are_in_process() -> None:
    view = SALES.select(gap=lambda sale: sale.day - sale.day).run()
    view.step(sales=[Sale(1, "Rome", date(2026, 1, 1), ["a"], {"x": 1})])
    assert [tuple(row) for row in view.value] == [(timedelta(0),)]
