"""Entries of state become tables without a row in between."""

from datetime import UTC, date, datetime
from typing import Annotated, Any, NamedTuple

import pytest

from ebbflow.engine.runtime.table.entries import entries_to_arrow
from ebbflow.state.spine import Spine

DAYS = [date(2026, 11, 18), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]


class Loan(NamedTuple):
    book: int
    back: date | None
    at: Annotated[datetime, UTC] | None = None


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(
    "days", [[None], DAYS[:2], DAYS, [*DAYS[:2], None]], ids=["none", "near", "far", "some"]
)
def test_dates_of_every_width_are_dates_of_a_table(days: list[date | None], by_row: bool) -> None:
    rows = [Loan(book, day) for book, day in enumerate(days)]
    rows += [Loan(99, days[0], datetime(2026, 11, 18, 5, 30, tzinfo=UTC))]
    kind: Any = {"key_type": Loan} if by_row else {"row_type": Loan}
    spine = Spine("value" if by_row else "bag", **kind)
    spine.append(dict.fromkeys(rows, 1) if by_row else {row.book: [(row, 1)] for row in rows})
    tables = [entries_to_arrow(part, Loan, by_row=by_row) for part in spine.chunks()]
    found = [Loan(one["book"], one["back"], one["at"]) for t in tables for one in t.to_pylist()]
    assert sorted(found, key=lambda row: row.book) == rows
