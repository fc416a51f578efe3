"""What is given to `run` and to inputs by mistake is refused with what was meant."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine import local
from ebbflow.errors import ChangeError, CompositionError, EbbflowError, install

ROOT = Path(__file__).parents[3]


class Order(NamedTuple):
    id: int
    city: str


orders = ef.Input("orders", Order)


def without_place(error: Exception) -> list[str]:
    return [line for line in str(error).splitlines() if not line.startswith("    created")]


# ---- options of run ----


def test_a_misspelt_option_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(CompositionError) as error:
        orders.run(pth="state")
    what, known, remedy = without_place(error.value)
    assert what == "run(pth=...): there is no such option"
    assert known.startswith("    options    path, check_input, readable, memory, ")
    assert remedy == "    try        did you mean path?"


def test_the_options_are_those_of_a_path() -> None:
    disk = pytest.importorskip("ebbflow.engine.runtime.durable", exc_type=ImportError).Disk
    asked = signature(disk).parameters.values()
    named = [each.name for each in asked if each.kind is each.KEYWORD_ONLY]
    assert (*local.OPTIONS,) == ("path", "check_input", "readable", *named)


def test_an_option_that_is_like_none_is_told_about_engines() -> None:
    with pytest.raises(CompositionError) as error:
        orders.run(buckets=3)
    assert error.value.remedy == "one of these, or an engine: run(engine)"


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ({"memory": -1}, "memory=-1 is no amount of memory"),
        ({"memory": "-3MB"}, "memory='-3MB' is no amount of memory"),
        ({"memory": "infGB"}, "memory='infGB' is no amount of memory"),
        ({"memory": [3]}, r"memory=\[3\] is no amount of memory"),
        ({"keep_epochs": "3"}, "that is no number of epochs"),
        ({"flush_every": 0}, r"run\(flush_every=0\): that is no number of epochs"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_and_nothing_made(
    tmp_path: Path, option: Any, what: str
) -> None:
    with pytest.raises(EbbflowError, match=what):
        ef.Input("words", str).run(path=tmp_path / "state", **option)
    assert not (tmp_path / "state").exists()


def test_an_option_of_a_path_without_one_and_beside_one(tmp_path: Path) -> None:
    with pytest.raises(CompositionError, match=r"run\(memory=...\): only with a path="):
        orders.run(memory="1MB")
    with pytest.raises(CompositionError, match=r"run\(flush_evry=...\): there is no such option"):
        orders.run(path=tmp_path / "state", flush_evry=2)
    assert not (tmp_path / "state").exists()


# ---- tables ----


def tables() -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"city": ["Rome", "Oslo"], "id": [1, 2]}
    return {"pandas": pandas.DataFrame(columns), "pyarrow": pyarrow.table(columns)}


ROWS = {
    "pandas": '[Order(*row) for row in table[["id", "city"]].itertuples(index=False, name=None)]',
    "pyarrow": '[Order(*row) for row in zip(*table.select(["id", "city"]).to_pydict().values())]',
}


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
@pytest.mark.parametrize("way", ["step", "apply", "add", "remove"])
@pytest.mark.parametrize("durable", [False, True], ids=["memory", "path"])
def test_a_table_is_refused_with_the_line_that_makes_rows(
    library: str, way: str, durable: bool, tmp_path: Path
) -> None:
    table = tables()[library]
    view = orders.run(path=tmp_path / "state") if durable else orders.run()
    with view, pytest.raises(ChangeError) as error:
        view.step(orders=table) if way == "step" else getattr(view.input("orders"), way)(table)
    name = f"{type(table).__module__}.{type(table).__qualname__}"
    assert without_place(error.value) == [
        f"input 'orders': a {type(table).__name__} of {library} was given where rows are asked",
        f"    given      {name}",
        f"    try        {ROWS[library]}",
    ]


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_the_line_makes_rows(library: str) -> None:
    rows = eval(ROWS[library], {"Order": Order, "table": tables()[library]})
    view = orders.run()
    view.step(orders=rows)
    assert set(view.value) == {Order(1, "Rome"), Order(2, "Oslo")}
    assert {type(row.id) for row in view.value} == {int}


def test_tables_for_inputs_without_fields_and_columns() -> None:
    table = tables()["pandas"]
    numbers = ef.Input("numbers", int).run()
    with pytest.raises(ChangeError) as error:
        numbers.step(numbers=table["id"])
    assert error.value.remedy == "numbers=column.tolist()"
    assert set(numbers.step(numbers=table["id"].tolist())) == {1, 2}
    anything = ef.Input("rows").run()
    with pytest.raises(ChangeError) as error:
        anything.step(rows=table)
    assert error.value.remedy == "rows, as in: list(table.itertuples(index=False, name=None))"


def test_values_of_those_libraries_are_rows_like_any_other() -> None:
    pandas = pytest.importorskip("pandas")
    times = ef.Input("times").run()
    times.step(times=[pandas.Timestamp("2024-01-01")])
    times.input("times").add(pandas.Timestamp("2024-01-02"))
    assert len(times.value) == 2


# ---- what to install ----


def test_remedies_work_from_a_clone() -> None:
    assert install("spark") == "pip install '.[spark]' in a clone of ebbflow"
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    published = [path for path in files if "install 'ebbflow[" in path.read_text()]
    assert published == []


def test_the_remedy_for_hypothesis() -> None:
    code = "import sys\nsys.modules['hypothesis'] = None\nfrom ebbflow.laws import check\n"
    code += "from ebbflow.algebra import ADD\ncheck(ADD)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-2:] == [
        "ebbflow.errors.CheckError: checking laws needs Hypothesis",
        "    try        pip install '.[laws]' in a clone of ebbflow",
    ]
