"""Files of rows: types of the row type, rows put aside with their line, many files in blocks."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow.engine.runtime.files import Rejected
from ebbflow.errors import ChangeError, CompositionError, EbbflowError
from ebbflow.record import record


class Order(NamedTuple):
    id: int
    city: str
    price: Annotated[Decimal, (8, 2)] | None = None
    at: Annotated[datetime, UTC] | None = None
    day: date | None = None
    state: Literal["open", "done"] = "open"


ORDERS = ef.Input("orders", Order)
AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
ROME = Order(1, "Rome", Decimal("2.50"), AT, date(2024, 2, 29), "done")
HEADER = "id,city,price,at,day,state\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def weights(change: Any) -> dict[Any, int]:
    return dict(change.items())


def rows(tables: Any, kind: Any = Order) -> dict[Any, int]:
    return weights(ef.Input("orders", kind).run().step(orders=tables))


# ---- CSV ----


def test_csv_has_the_types_of_the_row_type(tmp_path: Path) -> None:
    text = HEADER + (
        '1,Rome,2.5,2024-01-02T05:04:05+02:00,2024-02-29,done\n'
        '2,,,,,open\n'
        '3,"",,,,open\n'
        '4,"a ""b"",\nc",0.1,,,open\n'
    )  # fmt: skip
    path = written(tmp_path / "orders.csv", text)
    assert rows(ef.read_csv(path, Order)) == {
        ROME: 1, Order(2, ""): 1, Order(3, ""): 1, Order(4, 'a "b",\nc', Decimal("0.10")): 1,
    }  # fmt: skip
    Maybe = record("Maybe", id=int, city=str | None)
    assert rows(ef.read_csv(path, Maybe), Maybe) == {
        (1, "Rome"): 1, (2, None): 1, (3, ""): 1, (4, 'a "b",\nc'): 1,
    }  # fmt: skip


def test_rows_that_do_not_fit_are_put_aside_with_line_column_and_reason(tmp_path: Path) -> None:
    text = HEADER + (
        "one,Rome,,,,open\n"
        "\n"
        "2,Rome,1.234,,,open\n"
        '3,"a\nb",,,,open\n'
        "4,Rome,,2024-01-01 00:00:00,,open\n"
        "5,Rome,,,,shut\n"
        "6,Rome\n"
        ",Rome,,,,open\n"
        "8,Rome,x,,y,open\n"
        "9,Rome,,,,open,more\n"
    )
    path = written(tmp_path / "orders.csv", text)
    bad: list[Rejected] = []
    assert rows(ef.read_csv(path, Order, rejected=bad)) == {Order(3, "a\nb"): 1}
    assert [(each.line, each.column, each.reason) for each in bad] == [
        (2, "id", "'one' is no int"),
        (4, "price", "'1.234' is no Annotated[Decimal, (8, 2)] | None"),
        (7, "at", "'2024-01-01 00:00:00' is no Annotated[datetime, UTC] | None"),
        (8, "state", "'shut' is not one of 'open', 'done'"),
        (9, "", "it has 2 fields, and the header 6"),
        (10, "id", "it is missing, and its hint is int"),
        (11, "price", "'x' is no Annotated[Decimal, (8, 2)] | None"),
        (12, "", "it has 7 fields, and the header 6"),
    ]
    assert {each.path for each in bad} == {str(path)}
    assert bad[0].row["city"] == "Rome"
    assert bad[4].row == "6,Rome"
    with pytest.raises(ChangeError) as error:
        rows(ef.read_csv(path, Order))
    assert error.value.what == f"{path}, line 2, column 'id': 'one' is no int"
    assert error.value.remedy == "rejected=[], or a path, puts such rows aside"


@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_lines_are_right_in_every_block(tmp_path: Path, block_size: int) -> None:
    lines = [f"{i},c{i}" if i % 7 else f"{i}" if i % 2 else f"x{i},c" for i in range(200)]
    path = written(tmp_path / "rows.csv", "id,city\n" + "\n".join(lines) + "\n")
    kind = record("Row", id=int, city=str)
    bad: list[Rejected] = []
    found = rows(ef.read_csv(path, kind, rejected=bad, block_size=block_size), kind)
    assert found == {kind(i, f"c{i}"): 1 for i in range(200) if i % 7}
    assert [each.line for each in bad] == [i + 2 for i in range(200) if i % 7 == 0]


def test_where_rows_are_put(tmp_path: Path) -> None:
    path = written(tmp_path / "orders.csv", "id,city,weight\nx,Rome,1\n1,Oslo,-1\n")
    kind = record("Row", id=int, city=str)
    seen: list[Rejected] = []
    for _ in range(2):
        tables = list(ef.read_csv(path, kind, rejected=seen.append))
        assert [table.to_pylist() for table in tables] == [[{"id": 1, "city": "Oslo",
                                                             "weight": -1}]]  # fmt: skip
    assert len(seen) == 2
    aside = tmp_path / "aside.jsonl"
    list(ef.read_csv(path, kind, rejected=aside))
    assert [json.loads(line) for line in aside.read_text().splitlines()] == [
        {"path": str(path), "line": 2, "column": "id", "reason": "'x' is no int",
         "row": {"id": "x", "city": "Rome", "weight": "1"}},
    ]  # fmt: skip


def test_columns_that_say_what_changes_and_others(tmp_path: Path) -> None:
    kind = record("Row", id=int)
    view = ef.Input("rows", kind).run()
    view.step(rows=[kind(1), kind(2)])
    path = written(tmp_path / "a.csv", "note,op,id\nx,d,1\ny,c,3\n")
    assert weights(view.step(rows=ef.read_csv(path, kind))) == {(1,): -1, (3,): 1}
    bad: list[Rejected] = []
    path = written(tmp_path / "b.csv", "id,weight\n4,2\n5,\n6,1.5\n")
    assert weights(view.step(rows=ef.read_csv(path, kind, rejected=bad))) == {(4,): 2}
    assert [(each.line, each.column) for each in bad] == [(3, "weight"), (4, "weight")]
    with pytest.raises(ChangeError, match="the columns that say what changes are not those"):
        view.step(rows=ef.read_csv([tmp_path / "a.csv", path], kind, rejected=bad))
    assert view.epoch == 3


def test_many_files_patterns_compression_and_progress(tmp_path: Path) -> None:
    kind = record("Row", id=int, word=str)
    for i in range(3):
        lines = "".join(f"{10 * i + j};w{j}\n" for j in range(10))
        data = f"id;word\n{lines}".encode("latin-1")
        if i == 2:
            (tmp_path / "part-2.csv.gz").write_bytes(gzip.compress(data + b"bad;\xe9\n"))
        else:
            (tmp_path / f"part-{i}.csv").write_bytes(data)
    seen: list[Any] = []
    bad: list[Rejected] = []
    given = ef.read_csv(
        [tmp_path / "part-*", tmp_path / "part-1.csv"], kind, delimiter=";", encoding="latin-1",
        rejected=bad, progress=seen.append,
    )  # fmt: skip
    assert repr(given) == "<read_csv of 3 files: Row(id, word)>"
    assert len(rows(given, kind)) == 30
    assert (seen[-1].file, seen[-1].files, seen[-1].rows, seen[-1].rejected) == (3, 3, 30, 1)
    assert (bad[0].path, bad[0].line) == (str(tmp_path / "part-2.csv.gz"), 12)
    assert pl.DataFrame(given).shape == (30, 2)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(EbbflowError, match=r"read_csv: there is no file '.*nothing-\*'"):
        ef.read_csv(tmp_path / "nothing-*", Order)
    with pytest.raises(EbbflowError, match="is a folder"):
        ef.read_csv(tmp_path, Order)
    with pytest.raises(ChangeError, match=r"empty\.csv: read_csv cannot read this file"):
        list(ef.read_csv(written(tmp_path / "empty.csv", ""), Order))
    path = written(tmp_path / "some.csv", "id,City\n")
    with pytest.raises(ChangeError) as error:
        list(ef.read_csv(path, record("Row", id=int, city=str)))
    assert str(error.value).startswith(
        f"{path}: there is no column 'city'\n    columns    id, City"
    )
    (tmp_path / "no.parquet").write_bytes(b"no")
    with pytest.raises(ChangeError, match=r"no\.parquet: read_parquet cannot read this file"):
        list(ef.read_parquet(tmp_path / "no.parquet", Order))
    with pytest.raises(CompositionError, match="is of no type that files have"):
        ef.read_csv(path, record("Row", id=Any))
    listed = record("Row", id=tuple[int, ...])
    with pytest.raises(ChangeError, match=r"some\.csv: column 'id' is string, not tuple"):
        list(ef.read_csv(written(tmp_path / "some.csv", "id\n1\n"), listed))
    none = written(tmp_path / "none.csv", HEADER)
    assert rows(ef.read_csv(none, Order)) == {}


# ---- JSON ----


class Event(NamedTuple):
    id: int
    at: datetime
    days: tuple[date, ...]
    inner: record("Inner", n=int, when=Annotated[datetime, UTC] | None)  # type: ignore[valid-type]
    cost: Decimal | None


def test_json_has_the_types_of_the_row_type(tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "at": "2024-01-02T03:04:05", "days": ["2024-02-29"], "cost": 0.1, "x": {},'
        ' "inner": {"n": 1, "when": "2024-01-02T05:04:05+02:00"}}',
        "",
        '{"id": 2, "at": "2024-01-02T03:04:05Z", "days": [], "inner": {"n": 1}}',
        '{"id": 3, "at": "2024-01-02", "days": [null], "inner": {"n": 1}}',
        '{"id": 4, "at": "2024-01-02", "days": [], "inner": {"n": 1.5}}',
        '{"id": 5',
        "[5]",
        '{"id": 6}{"id": 7}',
        '{"id": "8", "at": "2024-01-02", "days": [], "inner": {"n": 1}, "cost": "2.50"}',
        '{"id": 9, "at": "2024-01-02", "days": [], "inner": {"n": 1}, "cost": "2.50"}',
        '{"id": 10, "at": "2024-01-02", "days": [], "inner": {"when": null}}',
    ]
    path = written(tmp_path / "events.jsonl", "\n".join(lines))
    bad: list[Rejected] = []
    found = rows(ef.read_json(path, Event, rejected=bad), Event)
    assert found == {
        (1, datetime(2024, 1, 2, 3, 4, 5), (date(2024, 2, 29),), (1, AT), Decimal("0.1")): 1,
        (9, datetime(2024, 1, 2), (), (1, None), Decimal("2.5")): 1,
    }
    assert [(each.line, each.column) for each in bad] == [
        (3, "at"), (4, "days"), (5, "inner"), (6, ""), (7, ""), (8, ""), (9, "id"), (11, "inner"),
    ]  # fmt: skip
    reasons = {each.line: each.reason for each in bad}
    assert reasons[9] == "'8' is no int"
    assert reasons[4] == "[0]: None is not allowed here"
    assert reasons[8].startswith("it is no object of JSON")
    with pytest.raises(ChangeError, match=r"events\.jsonl, line 3, column 'at': '2024-01-02T03"):
        rows(ef.read_json(path, Event), Event)


@pytest.mark.parametrize("block_size", [40, 1 << 20])
def test_json_lines_with_changes(tmp_path: Path, block_size: int) -> None:
    kind = record("Row", id=int)
    lines = [json.dumps({"id": i, "op": "c", "extra": i % 2 or "text"}) for i in range(50)]
    path = written(tmp_path / "rows.jsonl", "\n".join(lines))
    assert rows(ef.read_json(path, kind, block_size=block_size), kind) == {
        (i,): 1 for i in range(50)
    }
    with pytest.raises(CompositionError, match="which pyarrow does not read from JSON"):
        list(ef.read_json(path, record("Row", id=dict[str, int])))


# ---- Parquet ----


def test_parquet_rows_and_blocks(tmp_path: Path) -> None:
    kind = record("Row", id=int, tags=tuple[str, ...])
    size = 70_000
    ids: list[int | None] = list(range(size))
    ids[66_000] = None
    tags: list[Any] = [["a"]] * size
    tags[5] = [None]
    table = pa.table({"tags": tags, "id": pa.array(ids, pa.int32()), "other": ids})
    pq.write_table(table, tmp_path / "rows.parquet")
    bad: list[Rejected] = []
    tables = list(ef.read_parquet(tmp_path / "rows.parquet", kind, rejected=bad))
    assert [table.num_rows for table in tables] == [65_535, size - 65_536 - 1]
    assert [(each.line, each.column) for each in bad] == [(6, "tags"), (66_001, "id")]
    with pytest.raises(ChangeError, match=r"rows\.parquet, row 6, column 'tags': \[0\]: None is"):
        list(ef.read_parquet(tmp_path / "rows.parquet", kind))
    wrong = record("Row", id=str)
    with pytest.raises(ChangeError, match=r"rows\.parquet: column 'id' is int32, not str"):
        list(ef.read_parquet(tmp_path / "rows.parquet", wrong))


# ---- against Python's own writer ----

VALUES = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.text("ab,;\"'\n\r é", max_size=5),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.booleans(),
    st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
)


@settings(max_examples=30)
@given(st.lists(VALUES, max_size=8))
def test_oracle_what_pythons_csv_writes_is_read_back(tmp_path_factory: Any, some: Any) -> None:
    kind = record("Row", n=int, word=str, x=float | None, yes=bool | None, at=datetime | None)
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(kind._fields)
        writer.writerows(some)
    assert rows(ef.read_csv(path, kind), kind) == weights(ef.ZSet.of([kind(*row) for row in some]))
