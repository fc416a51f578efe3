"""The messages of `pgoutput`, PostgreSQL's own format of what transactions changed (version 1).

A transaction is a Begin, its changes, and a Commit. Before the first change of a table comes its
Relation: its name and columns, by which the values of rows are read. What a message says of a row
before depends on the table's REPLICA IDENTITY: the columns of its key where they changed or the row
is deleted, or with FULL the whole row. A large value that an update left as it was is not sent:
`UNCHANGED`.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, NamedTuple


class Unchanged:
    """The value of a column that an update did not change, and that is not sent."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = Unchanged()
RowValues = list[Any]
"""The values of the columns of a row: bytes of text, None, or UNCHANGED."""


class RelationColumn(NamedTuple):
    """A column: its name, the number of its type, and whether it is part of the identity."""

    name: str
    oid: int
    identity: bool


class Relation(NamedTuple):
    """A table: its number, its name with its schema, its columns."""

    number: int
    name: str
    columns: tuple[RelationColumn, ...]


class RowChange(NamedTuple):
    """What happened to a row of a table: `old` is what is known of it before, all of it or `by_key`
    the columns of the identity alone; `new` is the row after. None for what there is not."""

    relation: int
    old: RowValues | None
    new: RowValues | None
    by_key: bool = False


class Truncate(NamedTuple):
    """Tables were emptied."""

    relations: tuple[int, ...]


class Commit(NamedTuple):
    """The end of a transaction: `end` is the position in the log after it."""

    end: int


def decode(data: bytes) -> Relation | RowChange | Truncate | Commit | None:
    """The message in these bytes; None for one that says nothing of rows.

    >>> decode(b"C" + bytes(9) + (42).to_bytes(8, "big") + bytes(8))
    Commit(end=42)
    >>> decode(b"I" + (7).to_bytes(4, "big") + b"N" + b"\\0\\2" + b"t" + b"\\0\\0\\0\\1x" + b"n")
    RowChange(relation=7, old=None, new=[b'x', None], by_key=False)
    """
    match chr(data[0]):
        case "I" | "U" | "D":
            return _row_change(data)
        case "R":
            return _relation(data)
        case "T":
            count = unpack_from(">I", data, 1)[0]
            return Truncate(unpack_from(f">{count}I", data, 6))
        case "C":
            return Commit(unpack_from(">Q", data, 10)[0])
        case _:
            return None


def _row_change(data: bytes) -> RowChange:
    relation = unpack_from(">I", data, 1)[0]
    old = new = None
    by_key, at = False, 5
    while at < len(data):
        side = chr(data[at])
        values, at = _values(data, at + 1)
        if side == "N":
            new = values
        else:
            old, by_key = values, side == "K"
    return RowChange(relation, old, new, by_key)


def _values(data: bytes, at: int) -> tuple[RowValues, int]:
    (count,) = unpack_from(">H", data, at)
    at += 2
    found: RowValues = []
    for _ in range(count):
        how = data[at]
        at += 1
        if how == 0x6E:  # n
            found.append(None)
        elif how == 0x75:  # u
            found.append(UNCHANGED)
        else:
            (size,) = unpack_from(">I", data, at)
            at += 4
            found.append(data[at : at + size])
            at += size
    return found, at


def _relation(data: bytes) -> Relation:
    (number,) = unpack_from(">I", data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    (count,) = unpack_from(">H", data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        (oid,) = unpack_from(">I", data, at)
        at += 8
        columns.append(RelationColumn(name, oid, bool(flags & 1)))
    return Relation(number, f"{schema}.{table}", tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def position(text: str) -> int:
    """A position in the log as a number.

    >>> position("1/0000000A") == 2**32 + 10, lsn(2**32 + 10)
    (True, '1/A')
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn(number: int) -> str:
    """A position in the log as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
