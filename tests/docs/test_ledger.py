"""The ledger tells the truth: every row is there, and what is done has its module and its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs" / "ledger.md").read_text().splitlines()
    if re.match(r"\| [RDHO]\d", line)
]
PAPER = {"R": "000", "D": "002", "H": "003", "O": "004"}
EXPECTED = [*(f"R{n}" for n in range(1, 13)), *(f"D{n}" for n in range(1, 11)),
            *(f"H{n}" for n in range(1, 14)), *(f"O{n}" for n in range(1, 13))]  # fmt: skip


def test_no_row_is_dropped() -> None:
    assert [row[0] for row in ROWS] == EXPECTED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_done_has_its_code_and_its_test(row: list[str]) -> None:
    name, _, module, test, state = row
    if state == "not yet":
        assert (module, test) == ("–", "–")
        return
    assert state == "done"
    for each in module.split(", "):
        assert (ROOT / each.strip("`")).is_file()
    for each in test.split(", "):
        file, function = re.fullmatch(r"`(.+)`: `(.+)`", each).groups()  # type: ignore[union-attr]
        assert function.startswith(f"test_{PAPER[name[0]]}_{name}_")
        assert f"def {function}(" in (ROOT / file).read_text()
