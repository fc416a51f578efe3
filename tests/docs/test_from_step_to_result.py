"""The page that follows a change from `view.step` to the result names the files it goes through."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

from tests.unit.test_layers import LAYERS

import ebbflow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-it-works" / "0-from-step-to-result.md"
PACKAGE = Path(ebbflow.__file__).parent


def executed(work: Any) -> set[str]:
    """The files of this package of which a call executes something."""
    found = set()

    def called(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            found.add(path.relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def test_a_step_executes_the_files_that_the_page_names_ten_at_most() -> None:
    text = PAGE.read_text()
    example = doctest.DocTestParser().get_examples(text)
    names: dict[str, Any] = {"__name__": "page"}
    for each in example[:-1]:
        exec(compile(each.source, "page", "single"), names)
    last = compile(example[-1].source.strip(), "page", "eval")
    named = re.findall(r"^\| \d+ \| `([\w/.]+)`", text, re.M)
    assert executed(lambda: eval(last, names)) == set(named)
    assert len(named) == len(set(named)) <= 10


def test_every_file_that_the_page_names_is_there() -> None:
    files = re.findall(r"`([\w/.]+/[\w.]+\.py|\w+\.py)`", PAGE.read_text())
    homes = (PACKAGE, PACKAGE / "engine" / "spark", ROOT)
    assert [file for file in files if not any((home / file).exists() for home in homes)] == []


def test_contributing_lists_the_layers_as_the_import_test_has_them() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = re.search(r"```text\n(cli .*?)```", text, re.S)
    assert listed is not None
    first, *_ = lines = listed[1].splitlines()
    width = first.index("the command line")
    words = [word for line in lines for word in line[:width].split()]
    found = [word.rstrip("/").replace("/", ".") for word in words]
    assert len(found) == len(set(found))
    assert set(found) == set().union(*LAYERS)
    level = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    assert [level[name] for name in found] == sorted((level[name] for name in found), reverse=True)
