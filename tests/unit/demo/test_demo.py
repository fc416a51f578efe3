"""The demo: what it prints is so, and it would say if it were not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.cli import main
from ebbflow.demo import engines, shop
from ebbflow.demo import run as running
from ebbflow.demo.again import VIEWS, recompute_rows
from ebbflow.demo.data import RECIPES, WEIGHT, Shop, rows_of
from ebbflow.demo.run import check_laws, run
from ebbflow.demo.show import COLUMNS, Printer, Silent
from ebbflow.laws import judge

ROWS, EPOCHS = 1_500, len(RECIPES) + 1
TIMES = ("seconds", "recompute")

once = cache(check_laws)


@pytest.fixture(autouse=True)
def _laws_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "check_laws", once)


def told(explain: bool = False, **options: Any) -> tuple[list[str], dict[str, Any]]:
    lines: list[str] = []
    printer = Printer(lines.append, explain=explain)
    found = run(printer, engine="local", rows=ROWS, epochs=EPOCHS, **options)
    return lines, found


def table(lines: list[str]) -> list[list[str]]:
    """The cells of the table of epochs."""
    first = next(i for i, line in enumerate(lines) if line.startswith("epoch ")) + 1
    cells, edges = [], [0]
    for _, width in COLUMNS:
        edges.append(edges[-1] + abs(width) + 2)
    for line in lines[first : lines.index("", first)]:
        cells.append([line[a:b].strip() for a, b in pairwise(edges)])
    return cells


# ---- the whole ----


def test_every_epoch_is_verified_and_has_a_line() -> None:
    lines, found = told()
    rows = table(lines)
    assert [row[0] for row in rows] == [str(n) for n in range(1, EPOCHS + 1)]
    assert {row[-1] for row in rows} == {"yes"}
    assert [int(row[2].replace(",", "")) for row in rows] == [each["in"] for each in found["steps"]]
    assert all(each["in"] > 0 and each["out"] > 0 for each in found["steps"])
    assert found["verified"]
    assert found["load"]["inputs"]["lines"] == ROWS
    assert max(map(len, lines)) <= 100


def test_it_shows_the_laws_first_then_the_plan_if_asked_and_what_is_kept() -> None:
    lines, _ = told(explain=True)
    text = "\n".join(lines)
    parts = [
        "late share is invertible", "rounded share", "refuted", "    ADD_COMMUTES: the order",
        "cold start: loaded", "epoch  what", "revenue\n└─", "entries of state, in memory",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "importlib" not in text
    assert "└─" not in "\n".join(told()[0])


def test_it_shows_rows_a_correction_and_the_rows_that_changed() -> None:
    lines, found = told()
    sample = found["load"]["samples"]["best"]["rows"]
    assert len(sample) == 10
    assert sample == sorted(sample, key=lambda row: -row[-1])
    correction = found["correction"]
    assert correction["verified"]
    (gone, come) = correction["input"]["lines"]["rows"]
    assert (gone[3], gone[-1], come[-1]) == (1_000_000, -1, 1)
    (left, entered) = correction["output"]["best"]["rows"]
    assert left == [*sample[0], -1]
    assert entered[-1] == 1
    assert entered[:-1] not in sample[:3]
    first = next(i for i, line in enumerate(lines) if line.startswith("the view 'best'"))
    shown = [line.split() for line in lines[first + 2 : first + 12]]
    assert [row[-1] for row in shown] == [f"{row[-1]:,}" for row in sample]
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["lines"])
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["-1", "+1"]


def test_a_referral_that_is_withdrawn_takes_a_whole_tree_from_those_before_it() -> None:
    lines, found = told()
    correction = found["correction"]
    ((customer, by, weight),) = correction["input"]["referrals"]["rows"]
    assert weight == -1
    changed = correction["output"]["referred"]["rows"]
    before = {through: (buyers, revenue) for through, buyers, revenue, n in changed if n < 0}
    after = {through: (buyers, revenue) for through, buyers, revenue, n in changed if n > 0}
    assert by in before
    assert customer not in before
    assert set(after) <= set(before)
    lost = {before[each][0] - after.get(each, (0, 0))[0] for each in before}
    assert len(before) > 1
    assert len(lost) == 1
    assert max(lost) > 1
    sample = found["load"]["samples"]["referred"]["rows"]
    assert sample == sorted(sample, key=lambda row: -row[-1])
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["referrals"])
    assert lines[head + 1].split() == ["-1", f"{customer:,}", f"{by:,}"]


def test_a_seed_gives_the_same_again_and_another_gives_another() -> None:
    def facts(seed: int) -> Any:
        found = run(Silent(), engine="local", rows=ROWS, epochs=2, seed=seed)
        steps = [found["load"], *found["steps"]]
        return [{name: each[name] for name in each if name not in TIMES} for each in steps]

    assert facts(3) == facts(3)
    assert facts(3) != facts(4)


# ---- it would say so ----


def test_the_broken_twin_is_refuted_and_the_sound_one_is_not() -> None:
    found = once()
    assert found["sound"]["verdict"] == "invertible"
    assert found["broken"]["verdict"] == "refuted"
    assert found["broken"]["left"] != found["broken"]["right"]
    broken = judge(shop.ROUNDED).broken
    assert broken is not None
    with pytest.raises(ef.LawBroken):
        broken.law.test(shop.ROUNDED, **broken.case)


def test_with_the_broken_twin_in_the_program_the_table_says_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = {name: ef.Collection(node) for name, node in shop.program.plan.outputs.items()}
    paid = shop.payments.join(shop.placed, on="order", select=shop.received)
    kept["late"] = paid.group_by("country").agg(paid=ef.sum("amount"), late=shop.ROUNDED)
    monkeypatch.setattr(engines, "program", ef.program(**kept))
    lines, found = told()
    assert not found["verified"]
    assert "NO" in {row[-1] for row in table(lines) if row[0]}
    assert {text.split(":")[0] for each in found["steps"] for text in each["wrong"]} == {"late"}


@pytest.mark.parametrize("view", VIEWS)
def test_one_wrong_row_in_any_view_is_seen(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = engines.Local.outputs

    def outputs(self: Any) -> Any:
        found = honest(self)
        found[view].popitem()
        return found

    monkeypatch.setattr(engines.Local, "outputs", outputs)
    found = run(Silent(), engine="local", rows=300, epochs=1)
    assert not found["verified"]
    assert [text.split(":")[0] for text in found["load"]["wrong"]] == [view]


def test_what_it_is_compared_with_is_what_the_program_means() -> None:
    made = Shop(ROWS)
    view = shop.program.run()
    rows = {name: rows_of(name, each) for name, each in made.tables.items()}
    view.step(rows)
    view.verify()
    again = recompute_rows(rows)
    assert again == {name: dict(found.items()) for name, found in view.value.items()}
    assert all(again.values())


def test_a_long_line_is_cut_at_a_hundred_columns() -> None:
    lines: list[str] = []
    facts = {"epoch": 1, "what": "refunds", "in": 1, "out": 1, "seconds": 1.0, "recompute": 2.0}
    Printer(lines.append).epoch({**facts, "verified": False, "wrong": ["late: " + "x" * 200]})
    assert [len(line) for line in lines] == [len(lines[0]), 100]
    assert lines[0].endswith("2.0×  NO")
    assert lines[1].endswith("x…")


# ---- the rows ----


def counted(made: Shop) -> dict[str, Counter[Any]]:
    return {name: Counter(rows_of(name, each)) for name, each in made.tables.items()}


def test_an_epoch_is_the_difference_of_the_tables_and_has_no_row_twice() -> None:
    made = Shop(ROWS, seed=1)
    for number in range(1, 2 * len(RECIPES) + 1):
        before, epoch, after = counted(made), made.epoch(number), counted(made)
        for name, rows in before.items():
            change = epoch.changes.get(name, {WEIGHT: None})
            given = [] if change[WEIGHT] is None else rows_of(name, change)
            weights = [] if change[WEIGHT] is None else change[WEIGHT].tolist()
            assert len(set(given)) == len(given)
            rows.update(dict(zip(given, weights, strict=True)))
            assert {row: n for row, n in rows.items() if n} == after[name]
            assert min(rows.values(), default=0) >= 0


def test_everything_at_once_adds_and_takes_away_in_one_epoch() -> None:
    made = Shop(10_000)
    sizes = [made.epoch(number).size for number in range(1, 4)]
    assert sizes == [10, 100, 1_000]
    changes = made.epoch(4).changes
    assert set(changes) == set(shop.TYPES)
    both = {name for name, change in changes.items() if set(change[WEIGHT].tolist()) == {1, -1}}
    assert both >= set(shop.TYPES) - {"refunds"}


def test_the_shop_has_what_the_views_are_about() -> None:
    made = Shop(ROWS)
    found = recompute_rows({name: rows_of(name, each) for name, each in made.tables.items()})
    assert len(found["best"]) == 3 * 8
    assert len(found["basket"]) == len(found["late"]) == 12
    assert 0 < len(found["idle"]) < len(made.tables["customers"]["id"])
    assert all(0 < share < 10_000 for _, _, share in found["late"])


# ---- the command ----


def test_the_command_gives_json_needs_no_spark_and_keeps_its_path(tmp_path: Path) -> None:
    code = (
        "import sys; from ebbflow.cli import main; status = main(sys.argv[1:]); "
        "sys.exit(status if 'pyspark' not in sys.modules else 9)"
    )
    words = ["demo", "--engine", "local", "--rows", "300", "--epochs", "2", "--json"]
    command = [sys.executable, "-c", code, *words, "--path", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["rows"], found["seed"], len(found["steps"])) == (300, 0, 2)
    assert found["state"]["bytes"] > 0
    assert all(part["bytes"] > 0 for part in found["state"]["parts"])
    assert main(["state", str(tmp_path / "state")]) == 0


def test_a_path_with_state_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["demo", "--engine", "local", "--rows", "100", "--epochs", "1", "--path", str(tmp_path)]
    assert main(words) == 0
    assert "on disk" in capsys.readouterr().out
    assert main(words) == 2
    assert "there is state" in capsys.readouterr().err


def test_the_command_fails_when_a_view_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines.Local, "outputs", lambda self: {view: {} for view in VIEWS})
    assert main(["demo", "--engine", "local", "--rows", "100", "--epochs", "1"]) == 1
    assert "NO" in capsys.readouterr().out
