"""CSV files, in blocks of texts.

Every column is read as texts, and becomes what its field is afterwards, so that a value that does
not fit is known with its row. On which line a row is, is asked only for rows that do not fit: then
the file is gone through once more, by Python's own reader, as a row may have several lines.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ebbflow.engine.runtime.files import Rejected
from ebbflow.engine.runtime.table.file_columns import Block, FileColumns


class CsvFile:
    """A CSV file with a header; it may be compressed, as its name says. Its *records* are counted
    from 1, the header, without empty lines."""

    unit = "line"

    def __init__(
        self,
        path: str,
        columns: FileColumns,
        *,
        delimiter: str,
        null: tuple[str, ...],
        encoding: str,
        block_size: int,
    ) -> None:
        self.path, self._columns = path, columns
        self._delimiter, self._null, self._encoding = delimiter, null, encoding
        self._block_size = block_size
        self._broken: dict[int, Any] = {}
        self._starts = array("q")
        self._starting = self._lines()

    def blocks(self) -> Iterator[Block]:
        """Its rows, some at a time."""
        with self._open(()) as header:
            columns = self._columns.among(self.path, header.schema.names)
        self._broken.clear()
        blank = [n for n, each in columns.items() if each.form == "text" and not each.optional]
        record = 1
        with self._open(tuple(columns)) as reader:
            for batch in reader:
                table, records = pa.Table.from_batches([batch]), array("q")
                while len(records) < len(table):
                    record += 1
                    if record not in self._broken:
                        records.append(record)
                for name in blank:
                    at = table.column_names.index(name)
                    table = table.set_column(at, name, table.column(at).fill_null(""))
                yield table, self._line_of(records), self._rejected(record)
        yield pa.table({name: pa.array([], pa.string()) for name in columns}), int, self._rejected()

    def _open(self, names: tuple[str, ...]) -> Any:
        """A reader of these columns, or of all."""
        return pa_csv.open_csv(
            pa.input_stream(self.path),
            pa_csv.ReadOptions(
                use_threads=False, block_size=self._block_size, encoding=self._encoding
            ),
            pa_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=self._put_aside,
            ),
            pa_csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(names, pa.string()),
                null_values=list(self._null),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _put_aside(self, row: Any) -> str:
        self._broken[row.number] = row
        return "skip"

    def _rejected(self, last: float = inf) -> list[Rejected]:
        """Records up to this one that do not have as many fields as the header."""
        found = [n for n in sorted(self._broken) if n < last]
        rows = [self._broken.pop(number) for number in found]
        return [
            Rejected(
                self.path,
                self._line(row.number),
                "",
                f"it has {row.actual_columns} fields, and the header {row.expected_columns}",
                row.text,
            )
            for row in rows
        ]

    def _line_of(self, records: array[int]) -> Callable[[int], int]:
        return lambda at: self._line(records[at])

    def _line(self, record: int) -> int:
        """The line on which a record begins."""
        while len(self._starts) < record:
            self._starts.append(next(self._starting, record))
        return self._starts[record - 1]

    def _lines(self) -> Iterator[int]:
        with pa.input_stream(self.path) as file:
            text = io.TextIOWrapper(file, self._encoding, newline="")
            reader = csv.reader(text, delimiter=self._delimiter)
            start = 1
            with suppress(csv.Error, UnicodeError):
                for record in reader:
                    if record:
                        yield start
                    start = reader.line_num + 1
