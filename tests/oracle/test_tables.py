"""Tables against the rows in them: random types and values, in the form of every library.

The rows are made by Hypothesis. Each library makes its table of the plain values in them, by its
own constructor and with types of its own; what comes out of the view must be the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.forms import some_form

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.errors import EbbflowError
from ebbflow.nan import one_nan
from ebbflow.record import record
from ebbflow.testing import random_epochs, random_program

Inner = record("Inner", n=int, word=str | None)
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])
WORDS = st.text("abcé€𝄞 ,\"'\n", max_size=4)
KINDS: dict[str, tuple[Any, Any, Any, Any]] = {
    "int": (int, st.integers(-(2**63), 2**63 - 1), pa.int64(), pl.Int64),
    "small": (int, st.integers(0, 200), pa.uint8(), pl.UInt8),
    "float": (float, st.floats(), pa.float64(), pl.Float64),
    "bool": (bool, st.booleans(), pa.bool_(), pl.Boolean),
    "text": (str, WORDS, pa.large_string(), pl.String),
    "word": (str, WORDS, pa.dictionary(pa.int8(), pa.string()), pl.Categorical),
    "bytes": (bytes, st.binary(max_size=3), pa.binary(), pl.Binary),
    "date": (date, st.dates(), pa.date32(), pl.Date),
    "time": (datetime, TIMES, pa.timestamp("us"), pl.Datetime("us")),
    "instant": (Annotated[datetime, UTC], TIMES.map(lambda at: at.replace(tzinfo=UTC)),
                pa.timestamp("us", "Asia/Kolkata"), pl.Datetime("us", "UTC")),
    "cost": (Annotated[Decimal, (12, 3)], st.decimals(-10**8, 10**8, places=3),
             pa.decimal128(20, 3), pl.Decimal(20, 3)),
    "choice": (Literal["a", "b"], st.sampled_from("ab"), pa.string(), pl.Enum(["a", "b"])),
    "list": (tuple[int | None, ...], st.lists(st.none() | st.integers(-9, 9), max_size=3).map(
        tuple), pa.large_list(pa.int16()), pl.List(pl.Int16)),
    "record": (Inner, st.builds(Inner, st.integers(-9, 9), st.none() | WORDS),
               pa.struct([("word", pa.string()), ("n", pa.int8())]),
               pl.Struct({"word": pl.String, "n": pl.Int8})),
    "records": (tuple[Inner, ...], st.lists(st.builds(Inner, st.integers(-9, 9), WORDS),
                                            max_size=2).map(tuple),
                pa.list_(pa.struct([("n", pa.int64()), ("word", pa.string())])),
                pl.List(pl.Struct({"n": pl.Int64, "word": pl.String}))),
}  # fmt: skip


@st.composite
def tables(draw: Any) -> tuple[Any, list[str], list[Any]]:
    """A row type, the kinds of its fields, and rows."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    optional = [draw(st.booleans()) for _ in kinds]
    hints = [KINDS[kind][0] | None if may else KINDS[kind][0]
             for kind, may in zip(kinds, optional, strict=True)]  # fmt: skip
    row_type = record("Row", **{f"f{i}": hint for i, hint in enumerate(hints)})
    values = [st.none() | KINDS[kind][1] if may else KINDS[kind][1]
              for kind, may in zip(kinds, optional, strict=True)]  # fmt: skip
    rows = draw(st.lists(st.builds(row_type, *values), max_size=5))
    return row_type, kinds, rows


def plain(value: Any) -> Any:
    """A value as libraries have it: records are dicts, and sequences lists."""
    if isinstance(value, Inner):
        return {name: plain(each) for name, each in value._asdict().items()}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def columns(rows: Sequence[Any], kinds: list[str]) -> dict[str, list[Any]]:
    return {f"f{i}": [plain(row[i]) for row in rows] for i in range(len(kinds))}


def as_arrow(rows: Sequence[Any], kinds: list[str]) -> Any:
    return pa.table({
        name: pa.array(values, KINDS[kind][2])
        for (name, values), kind in zip(columns(rows, kinds).items(), kinds, strict=True)
    })  # fmt: skip


def as_polars(rows: Sequence[Any], kinds: list[str]) -> Any:
    schema = {f"f{i}": KINDS[kind][3] for i, kind in enumerate(kinds)}
    return pl.DataFrame(columns(rows, kinds), schema=schema, strict=False)


def as_objects(rows: Sequence[Any], kinds: list[str]) -> Any:
    series = {
        name: pd.Series(values, dtype=object) for name, values in columns(rows, kinds).items()
    }
    return pd.DataFrame(series)


FORMS: dict[str, Callable[[Sequence[Any], list[str]], Any]] = {
    "arrow": as_arrow,
    "chunks": lambda rows, kinds: pa.concat_tables(
        [as_arrow(rows[:1], kinds), as_arrow(rows[1:], kinds)]
    ),
    "reader": lambda rows, kinds: as_arrow(rows, kinds).to_reader(max_chunksize=2),
    "polars": as_polars,
    "columns of python": lambda rows, kinds: {
        f"f{i}": [row[i] for row in rows] for i in range(len(kinds))
    },
    "pandas, arrow": lambda rows, kinds: as_arrow(rows, kinds).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pandas, objects": as_objects,
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(table=tables(), signs=st.lists(st.integers(-2, 2), min_size=5, max_size=5))
def test_oracle_a_table_is_the_rows_in_it(form: str, table: Any, signs: list[int]) -> None:
    row_type, kinds, rows = table
    if form.startswith("pandas, objects"):
        rows = [row for row in rows if not any(value != value for value in row)]
    source = ef.Input("rows", row_type)
    expected = ef.ZSet.of([one_nan(row) for row in rows])
    view = source.run()
    assert view.step(rows=FORMS[form](rows, kinds)) == expected
    assert view.value == expected
    signed = list(zip(rows, signs, strict=False))
    changed = FORMS[form](rows, kinds)
    weights = [sign for _, sign in signed]
    if form == "polars":
        changed = changed.with_columns(weight=pl.Series(weights, dtype=pl.Int8))
    elif form == "columns of python":
        changed = {**changed, "weight": weights}
    elif form.startswith("pandas"):
        changed = changed.assign(weight=np.array(weights, "i4"))
    else:
        changed = pa.table(changed).append_column("weight", pa.array(weights, pa.int32()))
    both = [ef.Input("rows", row_type).run() for _ in range(2)]
    for each in both:
        each.step(rows=dict.fromkeys(map(one_nan, rows), 10))
    by_rows = both[0].step(rows=ef.ZSet((one_nan(row), sign) for row, sign in signed))
    assert both[1].step(rows=changed) == by_rows


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-(2**53) + 1, 2**53 - 1), st.none() | WORDS,
            st.none() | st.booleans(), st.none() | TIMES, st.none() | st.floats(allow_nan=False),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_oracle_pandas_by_its_own_choice_of_types(rows: list[Any]) -> None:
    """Integers with missing values are floats there, texts are objects, and so on."""
    kind = record("Row", n=int | None, word=str | None, yes=bool | None, at=datetime | None,
                  x=float | None)  # fmt: skip
    expected = ef.ZSet.of([kind(*row) for row in rows])
    frame = pd.DataFrame(rows, columns=list(kind._fields))
    for each in (frame, frame.astype({"word": "category"}), frame.assign(op="c")):
        assert ef.Input("rows", kind).run().step(rows=each) == expected
    types = {"n": "Int64", "word": "string", "yes": "boolean", "x": "Float64"}
    assert ef.Input("rows", kind).run().step(rows=frame.astype(types)) == expected


def test_oracle_random_programs_are_told_the_same_by_tables_as_by_rows() -> None:
    """Every change of a random program, in the form of some library, with weights or operations."""
    tables_given = 0
    for seed in range(25):
        program, dice = random_program(seed), Random(seed)
        by_rows, by_tables = run(program.plan), run(program.plan)
        for epoch in random_epochs(program, seed, 5):
            sources = program.plan.sources
            formed = {name: some_form(change, sources[name].type, dice)
                      for name, change in epoch.items()}  # fmt: skip
            tables_given += sum(formed[name] is not change for name, change in epoch.items())
            try:
                expected = by_rows.step(epoch)
            except EbbflowError as refused:
                with pytest.raises(type(refused)):
                    by_tables.step(formed)
                continue
            assert by_tables.step(formed) == expected
        assert by_tables.value == by_rows.value
    assert tables_given > 50
