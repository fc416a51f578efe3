"""Columns of state that are pieces of longer ones, or have no values."""

from __future__ import annotations

from datetime import date
from struct import pack
from typing import NamedTuple

import pyarrow as pa
import pytest

from ebbflow.engine.runtime.columnar.reducers import Number, PackedCells
from ebbflow.engine.runtime.columnar.stored_cells import StoredCell
from ebbflow.engine.runtime.table.entries import entries_to_arrow
from ebbflow.kernel.words import Texts
from ebbflow.state.spine import Spine
from ebbflow.state.spine.columns import ColumnShape


@pytest.mark.parametrize("encoding", ["bytes", "bytes64"])
@pytest.mark.parametrize("begin", range(5))
def test_cells_are_read_from_a_piece_of_a_column(encoding: str, begin: int) -> None:
    cell = StoredCell("tuple", (Number(0), PackedCells((2, 1), 0)), 3)
    rows = [[0, 0, 0], [1, 2, 3], [0, 0, 0], [4, 5, 6], [7, 8, 9]]
    sums = [pack("<qq", row[2], row[1]) if row[0] else None for row in rows]
    shape = ColumnShape("tuple", ("int", encoding))
    columns = [pa.array([row[0] for row in rows]), pa.array(sums, shape.types()[1])]
    found = zip(shape.encodings, [column.slice(begin) for column in columns], strict=True)
    assert cell.cells(shape, list(found), Texts()).tolist() == rows[begin:]


class Visit(NamedTuple):
    """Who came when."""

    id: int
    day: date | None


@pytest.mark.parametrize("days", [[None], [None, date(2020, 1, 1)], [date.min, None, date.max]])
def test_dates_of_any_width_and_none_are_columns_of_a_table(days: list[date | None]) -> None:
    spine = Spine("value", row_type=Visit)
    spine.append({key: Visit(key, day) for key, day in enumerate(days)})
    (part,) = spine.chunks()
    rows = entries_to_arrow(part, Visit, by_row=False).to_pylist()
    assert {row["id"]: row["day"] for row in rows} == dict(enumerate(days))
