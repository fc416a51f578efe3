"""Programs over Decimals with digits: columns give the values and the digits that rows give."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.oracle.decimal_programs import Line, epochs, line, program

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.engine.runtime.columnar import few
from ebbflow.errors import AlgebraError
from ebbflow.flow.plan import Plan
from ebbflow.flow.running import planned
from ebbflow.kernel import words
from ebbflow.testing import follow
from ebbflow.zset import ZSet

MORE = int(os.environ.get("EBBFLOW_MORE", "1"))
MOST = few.FEW


@pytest.fixture(autouse=True)
def few_rows_again() -> Iterator[None]:
    yield
    few.FEW = MOST


def given_up(view: Any) -> list[str]:
    stages = view._program.machine.stages
    return [stage.given_up for stage in stages if stage.in_columns and stage.given_up]


class Same:
    """A view in columns beside one in rows: every change is written alike, digit by digit."""

    def __init__(self, plan: Plan, seen: Counter[str], **options: Any) -> None:
        self.view = run(plan, columns=True, **options)
        self.rows = run(plan, columns=False, **options)
        for stage in self.view._program.machine.stages:
            seen[type(stage).__name__] += 1
            assert stage.in_columns, self.view.explain()

    def step(self, changes: Any) -> Any:
        made, expected = self.view.step(changes), self.rows.step(changes)
        for name in made if isinstance(made, dict) else [None]:
            ours, theirs = (made, expected) if name is None else (made[name], expected[name])
            assert written(ours) == written(theirs), self.view.explain()
        return made

    @property
    def value(self) -> Any:
        return self.view.value


def written(change: Any) -> list[str]:
    return sorted(f"{tuple(row)} {weight}" for row, weight in change.items())


def test_oracle_decimals_in_columns_equal_rows_and_batch() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150 * MORE):
        random = Random(seed)
        few.FEW = random.choice([0, MOST])
        plan = planned({"output": program(random).node})
        check, hard = random.random() < 0.6, random.choice([0, 0, 0.1])
        given = epochs(random, list(plan.sources), 8, hard)
        try:
            made = follow(
                lambda plan, check=check: Same(plan, seen, check_input=check), plan, given
            )  # type: ignore[misc]
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        gave = given_up(made.view)
        seen.update(gave)
        seen["easy"] += not hard
        seen["easy, and gave up"] += bool(gave) and not hard
    for each in ("Linear", "Reduce", "Arrange", "Join", "Group", "Semi", "Distinct", "Top"):
        assert seen[f"Column{each}Stage"] > 4, seen
    assert seen["a Decimal of more than 64 bits"] > 0, seen
    assert seen["easy, and gave up"] < seen["easy"] // 50, seen


# ---- inputs ----


def variants() -> dict[str, Any]:
    random = Random(3)
    rows = [line(random, 0)._replace(id=at) for at in range(300)]
    table = ZSet.of(rows).to_arrow(Line, weights=False)
    price, whole = table.column("price"), table.column("whole")
    return {
        "Arrow": table,
        "Arrow in pieces": pa.concat_tables(
            [table.slice(0, 100), table.slice(100, 7), table[107:]]
        ),
        "decimal256": table.set_column(2, "price", price.cast(pa.decimal256(40, 2))),
        "another scale": table.set_column(6, "whole", whole.cast(pa.decimal128(20, 3))),
        "ints": table.set_column(6, "whole", whole.cast(pa.int32())),
        "another order": table.select(table.column_names[::-1]),
        "a dictionary": table.set_column(2, "price", price.combine_chunks().dictionary_encode()),
        "pandas": table.to_pandas(),
        "pandas of Arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "Polars": pl.from_arrow(table),
        "a dict of lists": table.to_pydict(),
        "rows": rows,
    }


GIVEN = variants()


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("name", GIVEN)
def test_tables_of_decimals_are_read_in_columns(
    name: str, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ef.Input("lines", Line, key=key)
    sums = lines.group_by("city").agg(
        a=ef.sum("price"), b=ef.sum("rate"), c=ef.mean("long"), e=ef.max("whole"), f=ef.sum("wide")
    )
    view, expected = sums.run(columns=True), sums.run(columns=False)
    expected.step(lines=GIVEN["rows"])
    with monkeypatch.context() as patched:
        if name != "rows":
            patched.setattr(words, "words_of_decimals", None)  # makes words value by value
        view.step(lines=GIVEN[name])
    assert written(view.value) == written(expected.value)
    assert "in rows" not in view.explain()
    if key is None:
        change: Any = dict.fromkeys(GIVEN["rows"][:20], -1)
        assert written(view.step(lines=change)) == written(expected.step(lines=change))
    else:
        table = GIVEN["Arrow"].slice(0, 20)
        more = table.set_column(
            2, "price", pc.add(table["price"], table["price"]).cast(pa.decimal128(12, 2))
        )
        for request in (ef.upsert(more), ef.upsert(GIVEN["rows"][:1]), ef.delete([3, 4])):
            assert written(view.step(lines=request)) == written(expected.step(lines=request))
        assert written(view.input("lines").value) == written(expected.input("lines").value)
    assert view.value.to_arrow().schema.field("a").type == pa.decimal128(22, 2)
    assert view.value.to_arrow().to_pylist() == [row._asdict() for row in view.value]


def test_a_sum_of_more_digits_than_its_type_is_refused_as_in_rows() -> None:
    class Bit(NamedTuple):
        one: ef.decimal(1)  # type: ignore[valid-type]

    many = {Bit(Decimal(9)): 2**31 - 1}
    for columns in (True, False):
        view = ef.Input("bits", Bit).agg(total=ef.sum("one")).run(columns=columns)
        for _ in range(5):
            view.step(bits=many)
        with pytest.raises(AlgebraError, match=r"more digits than decimal\(11, 0\)"):
            view.step(bits=many)
        assert [str(row.total) for row in view.value] == [str(5 * 9 * (2**31 - 1))]


def test_explain_names_the_field_that_has_no_column() -> None:
    class Sale(NamedTuple):
        price: ef.decimal(12, 2)  # type: ignore[valid-type]
        plain: Decimal | None = None
        count: int = 0

    sales = ef.Input("sales", Sale)
    why = "field 'plain' is a Decimal of any scale"
    assert why in sales.agg(n=ef.count()).run(columns=True).explain()
    priced = sales.select("price", "count")
    assert "in rows" in priced.select(each=lambda r: r.price / r.count).run(columns=True).explain()
    assert why in priced.run(columns=True).explain()
