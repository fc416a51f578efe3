"""Every benchmark runs, and says what it found as JSON."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

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


SIZES = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
TIMES = ["Q1 ms", "recompute", "hand", "list", "Q2 ms", "Q2 recompute", "merged"]
KINDS = [1, 2, 3, 4, 5]
RELATIVE = [(2_000, 20), (2_000, 100), (2_000, 200),
            (200_000, 2_000), (200_000, 10_000), (200_000, 20_000)]  # fmt: skip
SMALL = [500, 1_000, 4_000, 8_000, 16_000, 32_000]


@pytest.fixture(scope="module")
def paper_004() -> Any:
    return run(FOLDER / "paper_004.py")


def test_004_O10_the_papers_figures_are_printed(paper_004: Any) -> None:
    """Figure 6: both times of both queries at every size. Figure 7 is looked at below."""
    assert [name for name in paper_004 if name.startswith("figure")] == [
        "figure 6", "figure 7", "figure 7 expected",
    ]  # fmt: skip
    figure, equal = paper_004["figure 6"], paper_004["equal changes"]
    assert [row["size"] for row in figure] == [row["pairs"] for row in equal] == SIZES
    for row in figure:
        assert all(row[name] > 0 for name in [*TIMES, "MB", "Q2 MB"]), row
        assert row["faster"] == pytest.approx(row["recompute"] / row["Q1 ms"])
        assert row["Q2 faster"] == pytest.approx(row["Q2 recompute"] / row["Q2 ms"])
    assert all(row["max µs"] > 0 and row["merged µs"] > 0 for row in equal)
    large, small = figure[-1], figure[0]
    assert (large["paper"], large["paper's recompute"]) == (0.16, 76.8)
    assert large["faster"] > small["faster"]
    assert large["faster"] > 10


def test_004_O10_figure_7_has_every_kind_at_every_size(paper_004: Any) -> None:
    figure = paper_004["figure 7"]
    wanted = [(size, "plain", edit, kind) for size, edit in RELATIVE for kind in KINDS]
    wanted += [(1_000_000, text, 20, kind) for text in ("plain", "accented") for kind in KINDS]
    wanted += [(size, "plain", 20, 2) for size in SMALL]
    assert [(r["size"], r["text"], r["edit"], r["kind"]) for r in figure] == wanted
    for row in figure:
        for time, ratio in (("edit_us", "speedup"), ("sustained_us", "sustained_speedup")):
            assert row[time] > 0
            assert row[ratio] == pytest.approx(row["recompute_us"] / row[time], rel=0.05, abs=0.01)
        assert row["size"] < 1_000_000 or row["speedup"] > 3, row
    expected = paper_004["figure 7 expected"]
    assert [row["kind"][:3] for row in expected] == [f"({kind})" for kind in KINDS]
    assert [row["the paper expects"].split()[0] for row in expected] == [
        "constant", "linear", "constant", "linear", "linear",
    ]  # fmt: skip
    for row in expected:
        assert [value > 0 for name, value in row.items() if name.startswith("ours")] == [True] * 2


def test_004_O10_every_target_says_what_was_found_and_wanted(paper_004: Any) -> None:
    targets = paper_004["targets"]
    for row in targets:
        assert set(row) == {"target", "found", "", "wanted", "met"}
        assert row["found"] > 0
        holds = row["found"] >= row["wanted"] if row[""] == ">=" else row["found"] <= row["wanted"]
        unasked = "1,000,000" in row["target"]
        assert row["met"] == ("not asked" if unasked else "yes" if holds else "NO"), row
    about = [(row["target"].split(",")[0], row["wanted"]) for row in targets]
    assert len([name for name, _ in about if name.startswith(("Q1", "Q2", "its"))]) == 6
    assert about.count(("1 % of 200", 10.0)) == 2
    assert about.count(("20 code points in 1", 1000.0)) == 8
    worst = min(row["speedup"] for row in paper_004["figure 7"]
                if (row["size"], row["edit"]) == (200_000, 2_000) and row["kind"] < 5)  # fmt: skip
    found = {row["target"]: row["found"] for row in targets}
    assert found["1 % of 200,000, kinds 1-4, per edit"] == worst


def test_004_O10_figure_7_is_drawn_with_all_its_bars(
    paper_004: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without matplotlib: what it would be asked to draw."""
    monkeypatch.syspath_prepend(str(FOLDER))
    strings = importlib.import_module("paper_004_strings")
    pyplot = MagicMock()
    panels = [MagicMock() for _ in range(3)]
    pyplot.subplots.return_value = chart, _ = MagicMock(), panels
    strings.draw(pyplot, paper_004["figure 7"], "figure7.png")
    assert [axes.bar.call_count for axes in panels] == [3, 3, 1]
    for axes in panels:
        for call in axes.bar.call_args_list:
            assert len(call.args[0]) == len(call.args[1]) == len(KINDS)
    chart.savefig.assert_called_once_with("figure7.png", dpi=150)
