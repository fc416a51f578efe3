"""Every benchmark runs, and says what it found as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
QUESTIONS = sorted(FOLDER.glob("bench_*.py"))


def run(path: Path) -> Any:
    done = subprocess.run(
        [sys.executable, str(path), "--quick", "--json"], cwd=FOLDER,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.name)
def test_a_benchmark_asks_one_question_and_answers_it(path: Path) -> None:
    found = run(path)
    assert found["question"].endswith(("?", "."))
    assert found["rows"]


def test_004_O10_the_papers_figures_are_printed() -> None:
    found = run(FOLDER / "paper_004.py")
    sizes = [row["size"] for row in found["figure 6"]]
    assert sizes == sorted(sizes)
    for row in found["figure 6"]:
        assert row["Q1 ms"] > 0
        assert row["Q2 recompute"] > 0
    assert {row["kind"] for row in found["figure 7"]} >= {1, 2, 3, 4, 5}
