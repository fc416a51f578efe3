"""Formats: an Arrow table as a file that others can read.

parquet    every type as it is
csv        a header, then a line for each row; null is empty and an empty text is ""; what has
           parts (lists, maps, records) is JSON in a text, bytes are base64
jsonl      an object for each row on a line of its own; times and Decimals are texts, as JSON
           has no types for them, and so are NaN and the infinities; bytes are base64
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from ebbflow.engine.runtime.sinks.plain import plain


def _parquet(table: Any, file: Path) -> None:
    pq.write_table(table, file)


def _csv(table: Any, file: Path) -> None:
    pc.write_csv(pa.table([_flat(each) for each in table.columns], table.column_names), file)


def _jsonl(table: Any, file: Path) -> None:
    names = table.column_names
    columns = [_values(column) for column in table.columns]
    with open(file, "w", encoding="utf-8") as out:
        for values in zip(*columns, strict=True):
            out.write(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False) + "\n")


FORMATS: dict[str, Callable[[Any, Path], None]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
}
"""What writes a table into a file, by the name of the format, which is the end of the file name."""


def write_part(table: Any, folder: Path, number: int, format: str) -> None:
    """Write a table as one of the files of a folder."""
    FORMATS[format](table, folder / f"part-{number:05d}.{format}")


def _flat(column: Any) -> Any:
    """A column that can be written in one field: what has parts as JSON, bytes as text."""
    nested = pa.types.is_nested(column.type)
    if not (nested or pa.types.is_binary(column.type)):
        return column
    found = _values(column)
    if nested:
        found = [None if x is None else json.dumps(x, ensure_ascii=False) for x in found]
    return pa.chunked_array([pa.array(found, pa.string())])


def _values(column: Any) -> list[Any]:
    found = column.to_pylist()
    if pa.types.is_map(column.type):
        found = [None if pairs is None else dict(pairs) for pairs in found]
    return list(map(plain, found))
