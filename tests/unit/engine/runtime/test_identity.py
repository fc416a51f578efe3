"""Names of state that are the same on every version of Python: those of typed rows and of functions
that can be traced."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Literal, NamedTuple, Optional

import ebbflow as ef
from ebbflow.engine.runtime.identity import Names
from ebbflow.expression.schema import schema
from ebbflow.record import record, type_text


class Order(NamedTuple):
    id: int
    city: str | None
    price: Optional[Decimal]  # noqa: UP045
    day: datetime.date
    kind: Literal["new", "old"]
    tags: tuple[str, ...] = ()


def test_types_are_told_apart_by_what_they_are_made_of() -> None:
    different = [int | None, str | None, Optional[bytes], list[int], list[str], list[int | None]]  # noqa: UP045
    different += [dict[str, int], dict[int, str], tuple[int, ...], tuple[int], Literal[1, 2]]
    assert len({schema(each) for each in different}) == len(different)
    assert len({schema(record("R", x=each)) for each in different}) == len(different)
    assert len({Names().of_value(each) for each in different}) == len(different)
    assert schema(int | None) == schema(Optional[int]) == schema(None | int) == "int | None"  # noqa: UP045
    assert Names().of_value(int | str) == Names().of_value(str | int)
    assert type_text(int | None) == "int | None"


def test_the_names_of_typed_rows_and_traced_functions_are_the_same_on_every_python() -> None:
    assert schema(Order) == (
        "Order(id: int, city: str | None, price: Decimal | None, day: date, "
        "kind: Literal['new', 'old'], tags: tuple[str, Ellipsis])"
    )
    orders = ef.Input("orders", Order)
    paid = orders.filter(lambda order: order.price is not None and order.price > 10)
    cities = paid.group_by("city").agg(n=ef.count(), total=ef.sum("price"))
    best = paid.top_k(3, order="price", per="city")
    plan = ef.program(cities=cities, best=best).plan
    names = Names().of(plan)
    assert [names[id(plan.outputs[name])] for name in ("cities", "best")] == [
        "f85ec974996ab1ad9eef22f0",
        "884a05fe60a4558ee3b60d04",
    ]


def test_a_limit_without_an_offset_has_the_name_of_a_top_k_and_one_with_has_another() -> None:
    orders = ef.Input("orders", Order)
    first = orders.top_k(3, order="price", smallest=True)
    pages = [orders.limit(3, order="price", offset=offset) for offset in (0, 1, 2)]
    plans = [each.plan for each in (first, *pages)]
    names = [Names().of(plan)[id(plan.outputs["output"])] for plan in plans]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_a_reducer_in_an_order_has_the_name_that_it_had_when_its_order_was_by() -> None:
    reducers = [
        ef.string_agg("city", order="id"), ef.string_agg("city", separator=";", order="id"),
        ef.first("a", order="b"), ef.arg_max("b", "a"),
    ]  # fmt: skip
    assert [Names().of_value(each) for each in reducers] == [
        "1cfb9c9c5f42ced02f855d40813110f57310881d1c6472bea66d1ee63a8ca621",
        "adf9b42ca9a679e3afd91425f5ad200d478eadea032eabd8165d2226aaf6634e",
        "e5644f11b3391b49953da908ed19247db0ee7635d69a0f899ba6cb7fe6c4f945",
        "2314cda8a26c9b6247ca3bc97cd7e5f211e362f24e4ee331432ec028e12d4e4c",
    ]
