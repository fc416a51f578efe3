"""Arrow tables of a few numbers, each read, and made, at once.

To look at one column of an Arrow table takes as long as to add a row to a group, and to make one
takes longer. But Arrow writes a whole batch for another process as one *message*: a head, and
behind it the numbers of all columns, one column after the other. Where all are numbers of 64 bits,
and none is null, the head says how many columns and rows there are, and nothing else. So a batch
whose message begins as it should is read by unpacking the rest, and a table is made of the numbers
with that head before them.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any

import pyarrow as pa
from pyarrow.ipc import read_record_batch


def numbers_of(batch: Any, letters: str) -> tuple[Any, ...] | None:
    """The numbers of a batch, column by column; `letters` has for each column a "q", for ints, or a
    "d", for floats. None where some are null, or anything else is not as it should be.

    >>> batch = pa.record_batch({"id": [7, 8, 9], "price": [0.5, 1.5, 2.5]})
    >>> numbers_of(batch.slice(1), "qd")
    (8, 9, 1.5, 2.5)
    >>> numbers_of(pa.record_batch({"id": [7, None]}), "q")
    """
    rows = batch.num_rows
    head = _head(len(letters), rows)
    message = batch.serialize().to_pybytes()
    if not message.startswith(head):
        return None
    return _numbers(letters, rows).unpack_from(message, len(head))


def table_of_numbers(numbers: bytes, rows: int, schema: pa.Schema) -> pa.Table:
    """A table of so many rows with these numbers, column by column.

    >>> numbers = Struct("=qqdd").pack(7, 8, 0.5, 1.5)
    >>> schema = pa.schema([("id", pa.int64()), ("price", pa.float64())])
    >>> table_of_numbers(numbers, 2, schema).to_pydict()
    {'id': [7, 8], 'price': [0.5, 1.5]}
    """
    message = pa.py_buffer(_head(len(schema), rows) + numbers)
    return pa.Table.from_batches([read_record_batch(message, schema)])


@lru_cache(1 << 10)
def _head(columns: int, rows: int) -> bytes:
    """What comes before the numbers, for so many columns and rows."""
    zeros = pa.array([0] * rows, pa.int64())
    batch = pa.record_batch([zeros] * columns, [str(at) for at in range(columns)])
    message: bytes = batch.serialize().to_pybytes()
    return message[: len(message) - 8 * columns * rows]


@lru_cache(1 << 10)
def _numbers(letters: str, rows: int) -> Struct:
    return Struct("=" + "".join(f"{rows}{letter}" for letter in letters))
