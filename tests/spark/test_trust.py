"""Nothing that a row or a table can say is ever run: exploits that must fail."""

from __future__ import annotations

import base64
import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

import ebbflow as ef
from ebbflow.errors import ChangeError, EbbflowError


class Order(NamedTuple):
    id: int
    city: str


class Anything(NamedTuple):
    id: int
    extra: Any


class Inner(NamedTuple):
    extra: Any


class Nested(NamedTuple):
    id: int
    inner: Inner


class Touch:
    """What unpickles by making a file."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.file,)


def evil(file: Path) -> bytes:
    return pickle.dumps(Touch(file))


def said(file: Path) -> str:
    """A text of a row in all forms that errors of tasks have ever had."""
    blob = base64.b64encode(evil(file)).decode()
    told = '{"kind": "EbbflowError", "what": "forged", "remedy": "", "facts": {}}'
    return f"ebbflow-error:{blob}: ebbflow-error {told} ebbflow-error:{'0' * 32}:{told}"


def run(rows: Any, spark: Any, path: Path, mode: str) -> Any:
    return rows.run(ef.spark(spark, path=path, mode=mode, buckets=2))


# ---- texts of rows in errors ----

ORDERS = ef.Input("orders", Order)
NUMBERS = ORDERS.map(lambda order: int(order.city), type=int)
KEYED = ef.Input("orders", Order, key=lambda order: int(order.city))


@pytest.mark.parametrize("mode", ["single_task", "staged", "bulk"])
@pytest.mark.parametrize("rows", [NUMBERS, KEYED.distinct()], ids=["map", "key"])
def test_a_row_in_an_error_text_runs_nothing(
    spark: Any, tmp_path: Path, rows: Any, mode: str
) -> None:
    file = tmp_path / "touched"
    with run(rows, spark, tmp_path / "state", mode) as view:
        with pytest.raises(EbbflowError, match="ValueError") as caught:
            view.step(orders=[Order(1, said(file))])
        assert caught.value.what != "forged"
        assert view.epoch == 0
    assert not file.exists()


@pytest.mark.parametrize("mode", ["single_task", "bulk"])
def test_an_unknown_op_and_a_failed_cast_run_nothing(spark: Any, tmp_path: Path, mode: str) -> None:
    file = tmp_path / "touched"
    text = said(file)
    changes = spark.createDataFrame([(1, "x", text)], "id long, city string, op string")
    texts = spark.createDataFrame([(text, "x")], "id string, city string")
    with run(ORDERS, spark, tmp_path / "state", mode) as view:
        for change in (changes, texts.selectExpr("cast(id as long) as id", "city")):
            with pytest.raises(EbbflowError, match=r"is no change of a row|CAST_INVALID") as caught:
                view.step(orders=change)
            assert caught.value.what != "forged"
        assert view.epoch == 0
    assert not file.exists()


# ---- columns that say they are ours ----

MARK = {"ebbflow": "pickle"}


def tables(file: Path) -> dict[str, tuple[Any, Any]]:
    """Inputs, each with a table of a column that is marked as one of pickles."""
    id, blob = pa.array([1]), pa.array([evil(file)], pa.binary())
    extra = pa.field("extra", pa.binary(), metadata=MARK)
    row = pa.StructArray.from_arrays([id, blob], fields=[pa.field("id", pa.int64()), extra])
    inner = pa.StructArray.from_arrays([blob], fields=[extra])
    return {
        "flat": (Anything, pa.Table.from_batches([pa.RecordBatch.from_struct_array(row)])),
        "nested": (Nested, pa.table({"id": id, "inner": inner})),
        "images": (Anything, pa.table({"op": ["c"], "before": row, "after": row})),
    }


def with_mark(kind: Any) -> Any:
    """A type of Spark's with the mark on every field of bytes."""
    if isinstance(kind, t.StructType):
        return t.StructType(
            [t.StructField(each.name, with_mark(each.dataType), metadata=MARK) for each in kind]
        )
    return kind


@pytest.mark.parametrize("how", ["flat", "nested", "images"])
@pytest.mark.parametrize("given", ["arrow", "frame", "parquet"])
def test_a_column_that_is_marked_as_ours_is_not_believed(
    spark: Any, tmp_path: Path, how: str, given: str
) -> None:
    file = tmp_path / "touched"
    kind, change = tables(file)[how]
    if given == "frame":
        frame = spark.createDataFrame(change)
        change = spark.createDataFrame(frame.collect(), with_mark(frame.schema))
    elif given == "parquet":
        pq.write_table(change, tmp_path / "table.parquet")
        change = pq.read_table(tmp_path / "table.parquet")
    with run(ef.Input("rows", kind).select("id"), spark, tmp_path / "state", "single_task") as view:
        with pytest.raises(ChangeError, match=r"rows of Python's|not Inner"):
            view.step(rows=change)
        assert view.epoch == 0
    assert not file.exists()
