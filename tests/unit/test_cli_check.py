"""Reducers judged from the shell and in a user's test suite."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import ebbflow
from ebbflow.cli import main

SHOP = """
from typing import NamedTuple

from ebbflow.reducer import RECOMPUTE, Reducer, count, sum


class Order(NamedTuple):
    city: str
    price: int


ORDERS = [Order("Rome", 10), Order("Rome", 30), Order("Oslo", 7)]

revenue = Reducer(
    0, lambda total, order: total + order.price, lambda total, order: total - order.price,
    name="revenue", elements=ORDERS,
)
bits = Reducer(0, lambda a, x: a ^ x, lambda a, x: a ^ x, name="bits", elements=range(4))
largest = Reducer(0, max, lambda best, x: best, name="largest", elements=range(4))
unknown = Reducer(0, max, name="unknown")
orders = count() & sum("price")
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_reducers.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "shop_reducers", raising=False)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["check", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_report_has_verdict_class_cost_and_proof(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("z3")
    status, out, _ = run(capsys, "shop_reducers:revenue")
    assert status == 0
    assert out.splitlines() == [
        "ok      shop_reducers:revenue: revenue: invertible",
        "    because    remove undoes add on every accumulator that rows lead to",
        "    class      distributive",
        "    cost       one call of add or remove for each row that comes or goes",
        "    evidence   proved for every Order(str, int): ADD_COMMUTES, REMOVE_INVERTS",
        "               tested: 7 laws on up to 200 examples each",
        "    note       removing and adding commute (not required)",
        "    note       partial=False would save the engines from keeping its rows",
    ]


def test_what_is_not_provable_is_said_to_be_tested(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("z3")
    status, out, _ = run(capsys, "shop_reducers:bits", "--examples", "50")
    assert status == 0
    assert "not provable here: it works on the bits of ints" in out
    assert "tested: 7 laws on up to 50 examples each" in out


def test_a_refuted_reducer_exits_with_1_and_shows_the_update(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "shop_reducers:largest")
    assert status == 1
    assert out.startswith("BROKEN  shop_reducers:largest: largest breaks a law: remove does not")
    assert "update     1 leaves [1]: the view says 1" in out
    assert "recomputed the rows [] give 0" in out
    assert "created    shop_reducers.py:" in out


def test_all_gives_a_line_for_each_reducer(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "shop_reducers", "--all")
    assert status == 1
    verdicts = {line.split()[1].partition(":")[2]: line.split()[0] for line in out.splitlines()}
    assert verdicts == {
        "revenue": "invertible", "bits": "invertible", "largest": "refuted",
        "unknown": "unchecked", "orders": "unchecked",
    }  # fmt: skip


def test_all_without_refutations(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "shop_reducers:revenue", "shop_reducers:bits", "--all")
    assert (status, len(out.splitlines())) == (0, 2)
    status, out, _ = run(
        capsys, "shop_reducers:orders", "--elements", "shop_reducers:ORDERS", "--all"
    )
    assert (status, out.split()[0]) == (0, "invertible")
    assert run(capsys, "shop_reducers:unknown", "--all")[0] == 2
    status, _, err = run(capsys, "ebbflow.algebra:ADD", "--all")
    assert (status, "no reducer to judge" in err) == (2, True)


def test_all_says_what_failed_and_what_is_in_doubt(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("z3")
    (shop / "doubtful_reducers.py").write_text(DOUBTFUL)
    status, out, _ = run(capsys, "doubtful_reducers", "--all")
    inside, maybe, fails = out.splitlines()
    assert status == 1
    assert inside.startswith("refuted ")
    assert inside.endswith("remove does not undo add: rows=(), value=1000")
    assert maybe.startswith("invertible ")
    assert "; but z3 finds that it breaks REMOVE_INVERTS for rows possibly outside" in maybe
    assert fails.startswith("refuted ")
    assert "fails for some rows: ZeroDivisionError" in fails
    assert "in place" not in fails


DOUBTFUL = """
from hypothesis import strategies as st

from ebbflow.reducer import Reducer

inside = Reducer(0, lambda a, x: a + x, lambda a, x: a - x if x != 1000 else a,
                 name="inside", elements=st.integers(0, 2000))
maybe = Reducer(inside.init, inside.add, inside.remove, name="maybe", elements=st.integers(0, 500))
fails = Reducer(0, lambda a, x: a + 1 // x, name="fails", elements=range(3))
"""


def test_without_elements_the_remedy_is_said(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "shop_reducers:unknown")
    assert status == 2
    assert "pass elements=" in out


def test_a_program_is_told_what_to_do(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "shop_program.py").write_text(PROGRAM)
    status, out, _ = run(capsys, "shop_program:sizes")
    assert status == 2
    assert out.splitlines() == [
        "unknown shop_program:sizes: a program owes no laws; it has to give what computing it "
        "from scratch gives",
        "    value      <int: words → map>",
        "    try        compare the two: in a test with changes(program) and follow of "
        "ebbflow.testing, in a running view with view.verify(); check its reducers by name",
    ]


PROGRAM = """
import ebbflow as ef

sizes = ef.Input("words", str).map(len, type=int)
"""


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"ebbflow {ebbflow.__version__}\n"


# ---- in a test suite ----

SUITE = """
import sys
import shop_reducers


def test_starting_up_loads_no_hypothesis():
    assert "hypothesis" not in sys.modules


def test_one_thing(check_laws):
    assert check_laws(shop_reducers.revenue, examples=30)[0].verdict == "invertible"


def test_a_module(check_laws):
    check_laws("shop_reducers")


def test_nothing(check_laws):
    check_laws("json")
"""


def test_the_fixture_checks_a_module_and_fails_with_every_refutation(shop: Path) -> None:
    (shop / "test_shop.py").write_text(SUITE)
    installed = {point.value for point in entry_points(group="pytest11")}
    plugin = [] if "ebbflow.laws.plugin" in installed else ["-p", "ebbflow.laws.plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider",
         *plugin, "--tb=short", "test_shop.py"],
        capture_output=True, text=True, cwd=shop, check=False,
    )  # fmt: skip
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "shop_reducers.largest: largest breaks a law" in done.stdout
    assert "shop_reducers.unknown: it is not known what unknown is made of" in done.stdout
    assert "json defines nothing that owes laws" in done.stdout
