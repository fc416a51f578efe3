"""Files of JSON Lines, in blocks of lines.

A block is read by pyarrow as a whole; where that fails, by halves, until the lines are known that
are no objects of the right shape, and of such a line the field, by reading it field by field.
pyarrow is less exact with times than a hint is: a zone that is not there is UTC to it, and one that
should not be there is lost. So times are read as texts.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from ebbflow.engine.runtime.files import Rejected
from ebbflow.engine.runtime.table.arrow import arrow_type
from ebbflow.engine.runtime.table.column_types import Column
from ebbflow.engine.runtime.table.file_columns import Block, FileColumns
from ebbflow.errors import CompositionError, value_text

_TEXTS = ("date", "time", "instant")


class JsonFile:
    """A file of JSON Lines; it may be compressed, as its name says."""

    unit = "line"

    def __init__(self, path: str, columns: FileColumns, *, block_size: int) -> None:
        self.path, self._columns, self._block_size = path, columns, block_size
        self._types = {name: _type(name, each) for name, each in columns.known.items()}
        self._decimals = {name for name, each in columns.known.items() if _has_decimals(each)}

    def blocks(self) -> Iterator[Block]:
        """Its rows, some at a time."""
        line, rest = 1, b""
        with pa.input_stream(self.path) as file:
            while chunk := file.read(self._block_size):
                *whole, rest = (rest + chunk).split(b"\n")
                if whole:
                    yield self._block(whole, line)
                    line += len(whole)
        yield self._block([rest], line)

    def _block(self, lines: list[bytes], first: int) -> Block:
        numbers = [first + i for i, line in enumerate(lines) if line.strip()]
        lines = [line for line in lines if line.strip()]
        bad: dict[int, Rejected] = {}
        tables = list(self._tables(lines, numbers, bad))
        numbers = [number for number in numbers if number not in bad]
        if not tables:
            return self._empty(), int, list(bad.values())
        table = pa.concat_tables(tables)
        marks = [each for each in self._columns.marks if table.column(each).null_count < len(table)]
        names = list(self._columns.among(self.path, [*self._columns.fields, *marks]))
        return table.select(names), numbers.__getitem__, list(bad.values())

    def _empty(self) -> Any:
        fields = self._columns.fields
        return pa.schema([(name, self._types[name]) for name in fields]).empty_table()

    def _tables(
        self, lines: list[bytes], numbers: list[int], bad: dict[int, Rejected]
    ) -> Iterator[Any]:
        """Tables of all lines that can be read; those that cannot are `bad`, by number."""
        if not lines:
            return
        try:
            yield self._read(lines, self._types)
        except pa.ArrowException as error:
            if len(lines) == 1:
                bad[numbers[0]] = self._rejected(numbers[0], lines[0], error)
                return
            half = len(lines) // 2
            yield from self._tables(lines[:half], numbers[:half], bad)
            yield from self._tables(lines[half:], numbers[half:], bad)

    def _read(self, lines: list[bytes], types: dict[str, Any]) -> Any:
        data = b"\n".join(lines)
        table = pa_json.read_json(
            io.BytesIO(data),
            pa_json.ReadOptions(block_size=len(data) + 1),
            pa_json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
            ),
        )
        if len(table) != len(lines):
            raise pa.ArrowInvalid("there is more than one object in a line")
        for name in table.column_names:
            if name in self._decimals:  # pyarrow reads more digits than the type has
                table.column(name).validate(full=True)
        return table

    def _rejected(self, number: int, line: bytes, error: Exception) -> Rejected:
        text = line.decode("utf-8", "replace")
        try:
            row = json.loads(text)
        except ValueError as wrong:
            return Rejected(self.path, number, "", f"it is no object of JSON: {wrong}", text)
        if not isinstance(row, dict):
            return Rejected(self.path, number, "", "it is no object of JSON", text)
        for name, each in self._types.items():
            try:
                self._read([line], {name: each})
            except pa.ArrowException:
                why = f"{value_text(row.get(name))} is no {self._columns.known[name]}"
                return Rejected(self.path, number, name, why, row)
        return Rejected(self.path, number, "", str(error), text)


def _has_decimals(column: Column) -> bool:
    return column.form == "decimal" or any(_has_decimals(part) for _, part in column.parts)


def _type(name: str, column: Column) -> Any:
    """The type in which a column is read: texts for what JSON has texts for."""
    if column.form in _TEXTS:
        return pa.string()
    if column.form in ("map", "bytes"):
        raise CompositionError(
            f"read_json: the field {name!r} is a {column}, which pyarrow does not read from JSON",
            remedy="a record for a dict, a text for bytes; or read_parquet",
        )
    if column.form in ("list", "set"):
        return pa.list_(_type(name, column.parts[0][1]))
    if column.form == "record":
        return pa.struct([(each, _type(name, part)) for each, part in column.parts])
    return arrow_type(replace(column, optional=True))
