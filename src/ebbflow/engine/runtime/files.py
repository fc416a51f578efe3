"""Files of rows: CSV, JSON Lines and Parquet, read by pyarrow into the columns of a row type.

What these functions add to those of pyarrow: the type of a column is that of the field, and is held
to (a Decimal keeps its digits, a time has a zone or has none, a Literal is one of its values, an
empty field is None only where that may be); rows that do not fit are put aside, each with its file,
its line and the reason, or are an error that says the same; there may be many files; and what is
read is never in memory as a whole, unless it is given to one step.

    for table in ef.read_csv("orders-*.csv", Order):     one epoch for each few megabytes
        view.step(orders=table)
    view.step(orders=ef.read_csv("orders-*.csv", Order)) one epoch for all
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ebbflow.engine.runtime.tables import require_arrow
from ebbflow.errors import CompositionError
from ebbflow.keywords import checked

if TYPE_CHECKING:
    from ebbflow.engine.runtime.table.files import FileTables

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]
BLOCK = 4 << 20


class Rejected(NamedTuple):
    """A row of a file that does not fit: where it is, and why. The line is the number of the row
    in a file of Parquet; the column is empty where the line as a whole is wrong."""

    path: str
    line: int
    column: str
    reason: str
    row: Any


class ReadProgress(NamedTuple):
    """How far reading has come: in which file, of how many, and with how many rows so far."""

    path: str
    file: int
    files: int
    rows: int
    rejected: int


Rejecting = list[Rejected] | Callable[[Rejected], object] | Path | None
Progress = Callable[[ReadProgress], object] | None


@checked
def read_csv(
    paths: Paths,
    row_type: Any,
    *,
    rejected: Rejecting = None,
    progress: Progress = None,
    delimiter: str = ",",
    null: Sequence[str] = ("",),
    encoding: str = "utf8",
    block_size: int = BLOCK,
) -> FileTables:
    """The rows of CSV files with a header, as tables to give to `step`.

    `paths` are a path, a pattern such as `"orders-*.csv"`, or several. Columns are found by their
    names; those that are no field are left out, but for one that says what changes: `weight`, `op`.
    A field that is one of `null`, and not in quotes, is None; in a field of `str` it is empty.

    Rows that do not fit are added to a list, given to a function, or written to a path as lines of
    JSON: see `Rejected`. Without `rejected` the first is an error. `progress` is called after each
    block of `block_size` bytes, with a `ReadProgress`.

    >>> import ebbflow as ef, tempfile, pathlib
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str | None)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orders.csv"
    >>> _ = path.write_text("id,city\\n1,Rome\\ntwo,Oslo\\n3,\\n")
    >>> bad = []
    >>> view = ef.Input("orders", Order).run()
    >>> view.step(orders=ef.read_csv(path, Order, rejected=bad))
    ZSet({Order(id=1, city='Rome'): 1, Order(id=3, city=None): 1})
    >>> [(each.line, each.column, each.reason) for each in bad]
    [(3, 'id', "'two' is no int")]
    """
    require_arrow("read_csv takes")
    from ebbflow.engine.runtime.table.csv_files import CsvFile
    from ebbflow.engine.runtime.table.files import FileTables

    if isinstance(null, str) or not isinstance(null, Sequence):
        raise CompositionError(
            f"read_csv(null={null!r}): the texts that stand for None are a list",
            remedy='null=["", "NULL"]',
        )
    options = {"delimiter": delimiter, "null": tuple(null), "encoding": encoding}
    made = {**options, "block_size": block_size}
    return FileTables("read_csv", paths, row_type, CsvFile, made, rejected, progress)


@checked
def read_json(
    paths: Paths,
    row_type: Any,
    *,
    rejected: Rejecting = None,
    progress: Progress = None,
    block_size: int = BLOCK,
) -> FileTables:
    """The rows of files of JSON Lines, one object in each line, as tables to give to `step`.

    A name that is missing in an object is null. Times and dates are texts as ISO 8601 has them, and
    a Decimal is a number or a text. The rest is as with `read_csv`.

    >>> import ebbflow as ef, tempfile, pathlib
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, tags=tuple[str, ...])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orders.jsonl"
    >>> _ = path.write_text('{"id": 1, "tags": ["a", "b"]}')
    >>> ef.Input("orders", Order).run().step(orders=ef.read_json(path, Order))
    ZSet({Order(id=1, tags=('a', 'b')): 1})
    """
    require_arrow("read_json takes")
    from ebbflow.engine.runtime.table.files import FileTables
    from ebbflow.engine.runtime.table.json_files import JsonFile

    options = {"block_size": block_size}
    return FileTables("read_json", paths, row_type, JsonFile, options, rejected, progress)


@checked
def read_parquet(
    paths: Paths, row_type: Any, *, rejected: Rejecting = None, progress: Progress = None
) -> FileTables:
    """The rows of Parquet files, as tables to give to `step`. Only the columns of a row are read,
    and one that says what changes; the rest is as with `read_csv`.

    >>> import ebbflow as ef, tempfile, pathlib, pyarrow, pyarrow.parquet
    >>> from ebbflow.record import record
    >>> Order = record("Order", id=int, city=str)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orders.parquet"
    >>> table = pyarrow.table({"id": [1, 2], "city": ["Rome", None], "tax": [1, 2]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> bad = []
    >>> ef.Input("orders", Order).run().step(orders=ef.read_parquet(path, Order, rejected=bad))
    ZSet({Order(id=1, city='Rome'): 1})
    >>> bad[0].line, bad[0].column, bad[0].reason
    (2, 'city', 'it is missing, and its hint is str')
    """
    require_arrow("read_parquet takes")
    from ebbflow.engine.runtime.table.files import FileTables, ParquetFile

    return FileTables("read_parquet", paths, row_type, ParquetFile, {}, rejected, progress)
