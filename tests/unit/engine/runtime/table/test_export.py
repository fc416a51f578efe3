"""Z-sets as tables: the columns of the row type, also of none; nothing is a little different."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.errors import AlgebraError, SchemaMismatch
from ebbflow.frozen import Frozen
from ebbflow.record import record
from ebbflow.zset import ZSet


class Inner(NamedTuple):
    a: int
    b: str | None


class Sale(NamedTuple):
    id: int
    units: int | None
    price: float | None
    paid: bool | None
    at: Annotated[datetime, UTC]
    day: date
    cost: Annotated[Decimal, (10, 2)]
    tags: tuple[str, ...]
    inner: Inner | None
    note: str | None


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BIG = 2**62 + 1  # no float has it
FIRST = Sale(1, BIG, math.inf, True, NOON, date(2026, 1, 1), Decimal("1.50"), ("a",),
             Inner(1, None), "x")  # fmt: skip
SECOND = Sale(2, None, None, None, NOON, date(1, 1, 1), Decimal("0.01"), (), None, None)
sales = ef.Input("sales", Sale)


@pytest.fixture(params=["memory", "disk"])
def view(request: Any, tmp_path: Path) -> Any:
    options = {"path": tmp_path, "keep_epochs": 3} if request.param == "disk" else {}
    with sales.run(**options) as found:
        yield found


def rows_of(table: Any, row_type: Any = Sale) -> ZSet[Any]:
    return ZSet(zip(*from_arrow(table, row_type), strict=True))


def test_a_value_has_each_row_as_often_as_it_is_there_a_change_its_weight(view: Any) -> None:
    change = view.step(sales={FIRST: 2, SECOND: 1})
    assert change.to_arrow().column_names == [*Sale._fields, "__weight"]
    assert view.value.to_arrow().column_names == [*Sale._fields]
    assert change.to_arrow().num_rows == 2
    assert view.value.to_arrow().num_rows == 3
    assert rows_of(change.to_arrow()) == change
    assert rows_of(view.value.to_arrow()) == view.value
    assert rows_of(view.value.to_arrow(weights=True)) == view.value
    assert rows_of(view["output"].value.to_arrow()) == view.value


def test_what_is_empty_has_the_same_columns(view: Any) -> None:
    schemas = [view.value.to_arrow().schema, view.step().to_arrow().schema]
    view.step(sales=[FIRST])
    gone = view.step(sales={FIRST: -1})
    assert [view.value.to_arrow().schema, gone.to_arrow().schema] == schemas
    assert (
        view.value.to_pandas().dtypes.to_dict()
        == ZSet().to_pandas(Sale, weights=False).dtypes.to_dict()
    )


def test_pandas_columns_keep_their_types_beside_nulls(view: Any) -> None:
    view.step(sales=[FIRST, SECOND])
    frame = view.value.to_pandas().set_index("id")
    types = {name: str(found) for name, found in frame.dtypes.items()}
    assert (types["units"], types["price"]) == ("Int64", "Float64")
    assert types["paid"] == "boolean"
    assert types["at"] == "datetime64[us, UTC]"
    assert frame.loc[1, "units"] == BIG
    assert frame.loc[1, "cost"] == Decimal("1.50")
    assert frame.loc[2, "day"] == date(1, 1, 1)
    assert frame[["units", "price", "paid", "note", "inner"]].isna().sum().tolist() == [1] * 5
    assert frame["units"].sum() == BIG


def test_polars_columns_are_those_of_the_row(view: Any) -> None:
    import polars as pl

    view.step(sales=[FIRST, SECOND])
    frame = view.value.to_polars().sort("id")
    assert frame.schema["at"] == pl.Datetime("us", "UTC")
    assert frame.schema["cost"] == pl.Decimal(10, 2)
    assert frame["units"].to_list() == [BIG, None]
    assert frame["inner"].to_list() == [{"a": 1, "b": None}, None]


def test_older_epochs_callbacks_and_streams_know_their_columns(tmp_path: Path) -> None:
    received: list[Any] = []
    with sales.run(path=tmp_path, keep_epochs=3) as view:
        view.on_change(received.append)
        view["output"].on_change(received.append)
        view.step(sales=[FIRST])
        view.step(sales={FIRST: -1})
        assert view.at(0).to_arrow().schema == view.value.to_arrow().schema
        assert rows_of(view.at(1).to_arrow()) == ZSet.of([FIRST])
        with view.branch() as branch:
            branch.step(sales=[SECOND])
            assert rows_of(branch.compare().to_arrow()) == ZSet.of([SECOND])
    assert [each.to_arrow().column_names[-1] for each in received] == ["__weight"] * 4


def test_several_outputs_have_columns_of_their_own() -> None:
    totals = sales.group_by("day").agg(n=ef.count())
    with ef.program(totals=totals, ids=sales.select("id")).run() as view:
        change = view.step(sales=[FIRST, SECOND])
        assert change["totals"].to_pandas()["n"].sum() == 2
        assert view.value["ids"].to_pandas()["id"].tolist() == [1, 2]
        assert view.step()["ids"].to_arrow().column_names == ["id", "__weight"]


def test_a_row_that_does_not_fit_its_hints_is_named() -> None:
    view = ef.Input("rows", record("Row", n=int)).run()
    with pytest.raises(SchemaMismatch, match="field 'n': 'three' is a str, not int"):
        ZSet.of([("three",)]).to_arrow(record("Row", n=int))
    with pytest.raises(SchemaMismatch, match="more than 64 bits"):
        view.step(rows=[record("Row", n=int)(2**64)]).to_pandas()


Loose = record("Loose", x=Any)


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        ([1, None], "int64"),
        ([1, True], "int64"),
        ([1, 2.5], "double"),
        (["a", "b"], "string"),
        ([NOON], "timestamp[us, tz=UTC]"),
        ([datetime(2026, 1, 1)], "timestamp[us]"),
        ([(1, "a"), (2, None)], "struct<_0: int64 not null, _1: string>"),
        ([(1,), (1, 2)], "list<element: int64 not null>"),
        ([(), ()], "list<element: string>"),
        ([Inner(1, "b")], "struct<a: int64 not null, b: string>"),
        ([frozenset("ab")], "list<element: string not null>"),
        ([Frozen(a=1)], "map<string, int64>"),
        ([None], "null"),
        ([], "null"),
    ],
    ids=str,
)
def test_a_field_of_no_known_type_is_what_its_values_are(values: list[Any], arrow: str) -> None:
    rows = ZSet.of([Loose(value) for value in values])
    assert str(rows.to_arrow(Loose).schema.field("x").type).replace(" ('value')", "") == arrow
    assert rows.to_arrow().num_rows == len(rows)


@pytest.mark.parametrize("values", [[1, "a"], [object()], [(1, object())], [NOON, date(1, 1, 1)]])
def test_no_column_is_ever_a_pickle(values: list[Any]) -> None:
    with pytest.raises(SchemaMismatch, match="field 'x': its type is not known"):
        ZSet.of([Loose(value) for value in values]).to_pandas()


def test_weights_are_listed_or_refused() -> None:
    assert ZSet({2: 1, 3: -1}).to_arrow().to_pydict() == {"value": [2, 3], "__weight": [1, -1]}
    with pytest.raises(AlgebraError, match=r"negative weight(?s:.*)weights=True"):
        ZSet({2: 1, 3: -1}).to_pandas(weights=False)


def test_many_rows_are_written_piece_by_piece() -> None:
    many = ZSet.of(range(70_000))
    assert many.to_arrow(int, weights=False).column("value").to_pylist() == list(range(70_000))
