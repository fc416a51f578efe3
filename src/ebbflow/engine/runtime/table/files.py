"""Files as tables of rows that fit, one after the other, and the rows that do not fit put aside."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbflow.algebra.value import function_name, is_async
from ebbflow.engine.runtime.files import Progress, ReadProgress, Rejected, Rejecting
from ebbflow.engine.runtime.table.arrow import arrow_schema
from ebbflow.engine.runtime.table.file_columns import Block, FileColumns
from ebbflow.errors import ChangeError, CompositionError, EbbflowError, Text, cause_of
from ebbflow.record import type_text

_ROWS = 1 << 16


class FileTables:
    """Tables of the rows of files, each of a few megabytes; made by `read_csv` and its like.

    It can be given to `step` as it is, for one epoch, or table by table, for many; each time it is
    read from the start. It has the Arrow C stream interface, so others can read it too.
    """

    def __init__(
        self,
        verb: str,
        paths: Any,
        row_type: Any,
        opened: Callable[..., Any],
        options: Mapping[str, Any],
        rejected: Rejecting,
        progress: Progress,
    ) -> None:
        self.verb = verb
        self.paths = _found(verb, paths)
        self._columns = FileColumns(verb, row_type)
        self._opened, self._options = opened, options
        self._rejected, self._progress = rejected, progress

    def __iter__(self) -> Iterator[Any]:
        return self._tables()

    def table(self) -> Any:
        """All rows, as one Arrow table."""
        tables = list(self._tables())
        return pa.concat_tables(tables) if tables else self._empty()

    def _empty(self) -> Any:
        return arrow_schema(self._columns.row_type, weight=False).empty_table()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        tables = self._tables()
        first = next(tables, self._empty())

        def batches() -> Iterator[Any]:
            yield from first.to_batches()
            for table in tables:
                yield from table.to_batches()

        reader = pa.RecordBatchReader.from_batches(first.schema, batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        files = "1 file" if len(self.paths) == 1 else f"{len(self.paths)} files"
        return f"<{self.verb} of {files}: {type_text(self._columns.row_type)}>"

    def _tables(self) -> Iterator[Any]:
        marks: list[str] | None = None
        rows = aside = 0
        with ExitStack() as stack:
            put_aside = _putting(self._rejected, stack)
            for number, path in enumerate(self.paths, 1):
                for unit, raw, line, broken in self._blocks(path):
                    table, bad = self._columns.fitted(path, raw, line)
                    for each in sorted([*broken, *bad], key=lambda each: each.line):
                        put_aside(each, unit)
                        aside += 1
                    rows += len(table)
                    if len(table):
                        found = [name for name in table.column_names if name in self._columns.marks]
                        marks = found if marks is None else marks
                        if found != marks:
                            raise _other_marks(path, found, marks)
                        yield table
                    if self._progress is not None:
                        self._progress(ReadProgress(path, number, len(self.paths), rows, aside))

    def _blocks(self, path: str) -> Iterator[tuple[Any, ...]]:
        """The blocks of a file; an error that names it where it cannot be read."""
        try:
            file = self._opened(path, self._columns, **self._options)
            for block in file.blocks():
                yield file.unit, *block
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise ChangeError(
                f"{path}: {self.verb} cannot read this file",
                cause=error,
                remedy="a file of this format, or other options",
            ) from cause_of(error)


def _found(verb: str, paths: Any) -> list[str]:
    """The files of paths and patterns, each once."""
    given: list[Any] = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[str, None] = {}
    for each in [str(os.fspath(path)) for path in given]:
        some = [each] if os.path.exists(each) else sorted(glob.glob(each, recursive=True))
        if not some:
            raise EbbflowError(
                f"{verb}: there is no file {each!r}",
                remedy="a path, or a pattern such as 'orders-*' that some file has",
            )
        if os.path.isdir(some[0]):
            raise EbbflowError(
                f"{verb}: {some[0]!r} is a folder",
                remedy=f"{os.path.join(some[0], '*')!r}, all files in it",
            )
        found.update(dict.fromkeys(some))
    return list(found)


def _putting(rejected: Rejecting, stack: ExitStack) -> Callable[[Rejected, str], object]:
    """What is done with a row that does not fit."""
    if rejected is None:
        return _refuse
    if isinstance(rejected, list):
        return lambda each, unit: rejected.append(each)
    if callable(rejected) and is_async(rejected):
        raise CompositionError(
            f"rejected={function_name(rejected)}: it is async, and its coroutine would never run",
            remedy="rejected=rows.append, or the path of a file",
        )
    if callable(rejected):
        return lambda each, unit: rejected(each)
    file = Path(rejected).open("w", encoding="utf-8")  # noqa: SIM115  (the stack closes it)
    stack.enter_context(file)
    return lambda each, unit: file.write(json.dumps(each._asdict(), default=str) + "\n")


def _refuse(each: Rejected, unit: str) -> None:
    where = f", column {each.column!r}" if each.column else ""
    raise ChangeError(
        f"{each.path}, {unit} {each.line}{where}: {each.reason}",
        row=each.row,
        remedy="rejected=[], or a path, puts such rows aside",
    )


def _other_marks(path: str, found: list[str], marks: list[str]) -> ChangeError:
    return ChangeError(
        f"{path}: the columns that say what changes are not those that came before",
        columns=Text(", ".join(found) or "none"),
        wanted=Text(", ".join(marks) or "none"),
        remedy="files that say it in the same way, or one read for each kind",
    )


class ParquetFile:
    """A file of Parquet. Its lines are its rows."""

    unit = "row"

    def __init__(self, path: str, columns: FileColumns) -> None:
        self.path, self._columns = path, columns

    def blocks(self) -> Iterator[Block]:
        """Its rows, some at a time."""
        with pq.ParquetFile(self.path) as file:
            names = list(self._columns.among(self.path, file.schema_arrow.names))
            start = 1
            for batch in file.iter_batches(_ROWS, columns=names):
                yield pa.Table.from_batches([batch]), start.__add__, []
                start += len(batch)
