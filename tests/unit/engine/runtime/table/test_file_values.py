"""The values of files pass the rules of their inputs, as those of tables and rows do."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ebbflow as ef
from ebbflow.errors import ChangeError
from ebbflow.nan import NAN
from ebbflow.record import record

Cents = Annotated[Decimal, (10, 2)]
Instant = Annotated[datetime, UTC]
MICROSECONDS = 253_402_300_800_000_000
"""From 1970 to the year 10000."""


def instants(zone: str | None) -> Any:
    return pa.array([MICROSECONDS], pa.int64()).cast(pa.timestamp("us", zone))


def read(folder: Path, hint: Any, form: str, value: Any) -> Any:
    """The value that a file with this field gives to a row."""
    kind = record("Row", id=int, f=hint)
    path = folder / f"rows.{form}"
    if form == "csv":
        path.write_text(f"id,f\n1,{value}\n")
        rows = ef.read_csv(path, kind)
    elif form == "json":
        path.write_text(json.dumps({"id": 1, "f": value}) + "\n")
        rows = ef.read_json(path, kind)
    else:
        pq.write_table(pa.table({"id": [1], "f": value}), path)
        rows = ef.read_parquet(path, kind)
    view = ef.Input("x", kind, key="id").run()
    view.step(x=rows)
    (row,) = view.value
    return row.f


@pytest.mark.parametrize(
    ("hint", "form", "value", "wanted"),
    [
        (float, "csv", "-0.0", 0.0), (float, "json", -0.0, 0.0),
        (float, "parquet", pa.array([-0.0]), 0.0), (float, "parquet", [2**60], 2.0**60),
        (float, "csv", "nan", NAN), (float, "json", float("nan"), NAN),
        (float, "parquet", pa.array([-float("nan")]), NAN),
        (int, "parquet", pa.array([200], pa.uint8()), 200), (int, "parquet", [True], 1),
        (Cents, "csv", "1.5", Decimal("1.50")), (Cents, "json", 1.5, Decimal("1.50")),
        (Cents, "parquet", pa.array([Decimal("1.5000")]), Decimal("1.50")),
        (Decimal, "csv", "1.50", Decimal("1.5")), (Decimal, "json", "1.50", Decimal("1.5")),
        (date, "json", "9999-12-31", date.max),
        (Instant, "csv", "2026-05-01T12:00:00+02:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_value_of_a_file_is_the_value_of_a_row(
    tmp_path: Path, hint: Any, form: str, value: Any, wanted: Any
) -> None:
    found = read(tmp_path, hint, form, value)
    assert (repr(found), type(found)) == (repr(wanted), type(wanted))
    assert found is NAN or found == wanted


@pytest.mark.parametrize(
    ("hint", "form", "value", "why"),
    [
        (int, "csv", "1.0", "'1.0' is no int"),
        (int, "json", "1.0", "'1.0' is no int"),
        (int, "parquet", [1.0], "double, not int"),
        (float, "parquet", [2**53 + 1], "no float"),
        (float, "parquet", [2**63 - 1], "no float"),
        (Cents, "csv", "1.234", "'1.234' is no"),
        (Cents, "json", 100_000_000, "100000000 is no"),
        (tuple[Cents, ...], "json", [1, 100_000_000], "is no"),
        (Cents, "parquet", [Decimal("1.234")], "is no"),
        (date, "csv", "10000-01-01", "no date"),
        (date, "json", "10000-01-01", "no date"),
        (date, "parquet", pa.array([3_000_000], pa.int32()).cast(pa.date32()), "years 1 to 9999"),
        (datetime, "parquet", instants(None), "years 1 to 9999"),
        (Instant, "parquet", instants("UTC"), "years 1 to 9999"),
        (Instant, "csv", "9999-12-31T23:59:59-05:00", "years 1 to 9999"),
        (Instant, "json", "9999-12-31T23:59:59-05:00", "years 1 to 9999"),
        (datetime, "csv", "2026-05-01T12:00:00.1234567", "no datetime"),
        (Literal["a", "b"], "csv", "c", "'c' is not one of"),
        (Literal["a", "b"], "json", "c", "'c' is not one of"),
        (Literal["a", "b"], "parquet", ["c"], "'c'"),
    ],
)  # fmt: skip
def test_a_value_of_a_file_that_a_row_refuses_is_refused(
    tmp_path: Path, hint: Any, form: str, value: Any, why: str
) -> None:
    with pytest.raises(ChangeError, match=why) as caught:
        read(tmp_path, hint, form, value)
    assert "'f'" in caught.value.what


def test_structs_of_tables_are_matched_by_name_at_every_depth() -> None:
    part = record("Part", a=int, b=float)
    kind = record(
        "Row", p=part, ps=tuple[part, ...], named=dict[str, part], both=record("Q", q=part)
    )
    inner = pa.struct([("b", pa.float64()), ("a", pa.int32())])
    one = {"b": 0.5, "a": 1}
    table = pa.table({
        "p": pa.array([one], inner), "ps": pa.array([[one, one]], pa.list_(inner)),
        "named": pa.array([[("k", one)]], pa.map_(pa.string(), inner)),
        "both": pa.array([{"q": one}], pa.struct([("q", inner)])),
    })  # fmt: skip
    view = ef.Input("x", kind).run()
    view.step(x=table)
    (row,) = view.value
    assert (row.p, row.ps, row.named["k"], row.both.q) == (
        (1, 0.5),
        ((1, 0.5),) * 2,
        (1, 0.5),
        (1, 0.5),
    )
    wrong = pa.table({**{name: table[name] for name in ("ps", "named", "both")},
                      "p": pa.array([{"b": 0.5, "A": 1}])})  # fmt: skip
    with pytest.raises(ChangeError, match="column 'p' is struct"):
        view.step(x=wrong)
