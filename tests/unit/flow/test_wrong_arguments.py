"""What is given to `run` and to inputs by mistake is refused with what was meant."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
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
    assert known.startswith("    options    path, check_input, narrow, columns, freeze, readable, ")
    assert remedy == "    try        did you mean path?"


def test_the_options_are_those_of_a_path() -> None:
    disk = pytest.importorskip("ebbflow.engine.runtime.durable", exc_type=ImportError).Disk
    asked = signature(disk).parameters.values()
    named = [each.name for each in asked if each.kind is each.KEYWORD_ONLY]
    memory = ("check_input", "narrow", "columns", "freeze")
    assert (*local.OPTIONS,) == ("path", *memory, "readable", *named)


def test_run_names_every_option_in_its_signature_and_on_the_page_with_its_default() -> None:
    pytest.importorskip("ebbflow.engine.runtime.durable", exc_type=ImportError)
    page = (ROOT / "docs" / "options.md").read_text()
    tables = page.split("## ")[1:]
    for call, table in zip((ef.Collection.run, ef.spark), tables, strict=True):
        told = dict(re.findall(r"^\| `(\w+)` \| [\w ]+ \| (?:`(.+?)`)? ?\|", table, re.M))
        asked = {
            name: each.default
            for name, each in signature(call).parameters.items()
            if name not in ("self", "engine")
        }
        assert [*told] == [*asked]
        for name, default in asked.items():
            written = told[name] or "None"
            assert eval(written, {"timedelta": timedelta}) == default, name
    asked = signature(ef.Collection.run).parameters
    assert [*asked] == ["self", "engine", *local.OPTIONS]
    assert asked["engine"].annotation == "Engine | None"
    assert "run(ef.spark(path=" in str(ef.Collection.run.__doc__)
    assert signature(type(ef.program(orders=orders)).run).parameters == asked
    defaults = signature(disk_of_state()).parameters
    for name in local.OPTIONS[5:]:
        if name in defaults:
            assert defaults[name].default == asked[name].default, name


def disk_of_state() -> Any:
    from ebbflow.engine.runtime.durable import Disk

    return Disk


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
        ({"keep_for": 3600}, r"run\(keep_for=3600\): it must be a time"),
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


def test_rows_without_the_name_of_their_input_and_a_callback_that_cannot_be_called() -> None:
    view = orders.run()
    rows: Any = [Order(1, "Rome")]
    for given in (rows, Order(1, "Rome")):
        with pytest.raises(ChangeError) as error:
            view.step(given)
        assert error.value.what == "step: which input is this a change of?"
    callback: Any = 3
    with pytest.raises(CompositionError, match="a callback is a function of a change"):
        view.on_change(callback)
    assert view.step(orders=rows)
    assert view.epoch == 1


@pytest.mark.parametrize("frame", [{"rows": 2}, {"rows": (-1, 1)}, {"range": 3}], ids=str)
def test_a_frame_that_would_not_be_looked_at_is_refused(frame: Any) -> None:
    framed, whole = orders.over(order="id", **frame), orders.over(order="id", rows=None)
    for function in (ef.window.first_value("id"), ef.window.nth_value("id", 2)):
        with pytest.raises(CompositionError, match="a frame, rows= or range=, is for reducers"):
            framed.with_fields(found=function)
        assert whole.with_fields(found=function).type._fields[-1] == "found"
    first = framed.with_fields(n=ef.window.row_number(), found=ef.first("id", order="id"))
    assert first.type._fields[-2:] == ("n", "found")


def test_what_is_not_installed_is_named_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    monkeypatch.setattr("importlib.import_module", fails)
    with pytest.raises(CompositionError) as error:
        ef.open("state")
    assert error.value.what == "ebbflow.open needs pyarrow"
    assert error.value.remedy == "pip install '.[durable]' in a clone of ebbflow"


# ---- tables: what is none, though it is nearly one ----


def test_a_column_is_no_table() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1, 2])
    numbers = ef.Input("numbers", int).run()
    with pytest.raises(ChangeError) as error:
        numbers.step(numbers=column)
    assert error.value.remedy == "numbers=column.tolist()"
    assert set(numbers.step(numbers=column.tolist())) == {1, 2}
    with pytest.raises(ChangeError) as error:
        orders.run().step(orders=column)
    assert without_place(error.value) == [
        "input 'orders': a Series of pandas was given where rows are asked",
        "    given      pandas.core.series.Series",
        "    try        orders=table, with all columns of a row: id, city",
    ]


@pytest.mark.parametrize("way", ["step", "add", "upsert"])
def test_a_table_is_no_row(way: str) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": [1], "city": ["Rome"]})
    view = ef.Input("orders", Order, key="id").run()
    with pytest.raises(ChangeError) as error:
        view.step(orders=[table]) if way == "step" else getattr(view.input("orders"), way)(
            table, table
        )
    assert error.value.what == "input 'orders': a DataFrame of pandas was given as a row"
    assert error.value.remedy == "orders=table, not in a list; several tables put into one"


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
