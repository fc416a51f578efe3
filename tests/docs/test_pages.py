"""Every example in the README, the tutorial and the how-tos runs and shows what it says.

A fenced `python` block with `>>>` is a session: all sessions of a page share their names. A
`python` block without prompts is a program, run on its own; when a `text` block follows it, that is
its output. A `console` block of `$ ebbflow ...` and `$ python ...` lines is run by the shell's
rules, in a folder with the page's files: a `python` block whose first line is a comment naming a
file (`# shop.py`) is one, and so is what `$ cat orders.csv` shows of a file that is not there yet.
A block that begins with `# shop.py, continued` is put at the end of that file, which is run again;
a `text` block after it shows what is new. Links between pages lead to files that are there.

Sessions run in that folder too. Those that use Spark share one Spark session, `spark` in
`conftest.py`, and run as the main program. Where PySpark is not installed, sessions from the
first such block on, and programs that mention Spark, are not run, and the test says so. What needs
a cluster is a `text` block that follows no program, and is not run at all.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = sorted([*TOP, *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"# (\w+\.py)(, continued)?\n")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text()
    return [
        (found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


def run(page: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def on_spark(language: str, body: str) -> bool:
    """Whether a block is for Spark."""
    return language == "python" and re.search(r"\bspark\b", body) is not None


def named(pages: list[Path]) -> Any:
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


SPARK = [page for page in PAGES if any(on_spark(*block[:2]) for block in blocks(page))]


@named([page for page in PAGES if page not in SPARK])
def test_every_example_runs_and_shows_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(page, tmp_path, {"__name__": page.stem}, blocks(page))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The page as the main program, as in a notebook; its files lie in the folder it runs in."""
    before = set(sys.modules)
    made = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield made
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]


@named(SPARK)
def test_every_example_on_spark_runs_and_shows_what_it_says(
    page: Path, tmp_path: Path, module: ModuleType, spark: Any
) -> None:
    if spark is not None:
        check(page, tmp_path, vars(module), blocks(page))
        return
    found, used = [], False
    for block in blocks(page):
        is_session = block[0] == "python" and ">>>" in block[1]
        used = used or (is_session and on_spark(*block[:2]))
        if not on_spark(*block[:2]) and not (used and is_session):
            found.append(block)
    check(page, tmp_path, vars(module), found)
    pytest.skip("PySpark is not installed: what is shown on Spark was not run")


def check(
    page: Path, folder: Path, names: dict[str, Any], found: list[tuple[str, str, int]]
) -> None:
    """Run these blocks of a page."""
    parser, failures = doctest.DocTestParser(), []
    printed: dict[str, str] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for i, (language, body, line) in enumerate(found):
        where = f"{page.relative_to(ROOT)}:{line}"
        if language == "python" and ">>>" in body:
            session = parser.get_doctest(body, {}, where, str(page), line)
            session.globs = names
            runner.run(session, out=failures.append, clear_globs=False)
        elif language == "python":
            file = FILE.match(body)
            name = file[1] if file else f"program_{line}.py"
            before = (folder / name).read_text() if file and file[2] else ""
            (folder / name).write_text(before + body)
            shown = found[i + 1] if i + 1 < len(found) else ("", "", 0)
            expected = shown[1] if shown[0] == "text" else None
            if expected is not None or not file:
                done = run(page, folder, sys.executable, name)
                assert done.returncode == 0, f"{where}\n{done.stderr}"
                new = done.stdout.removeprefix(printed.get(name, "") if before else "")
                assert expected is None or new.strip() == expected.strip(), where
                printed[name] = done.stdout
        elif language == "console":
            shell(body, where, folder)
    assert not failures, "".join(failures)


def shell(body: str, where: str, folder: Path) -> None:
    """Run each line after a `$` and compare what it prints with what is shown below it."""
    for step in re.split(r"^\$ ", body, flags=re.M)[1:]:
        line, _, expected = step.partition("\n")
        program, *words = shlex.split(line)
        if program == "cat" and not (folder / words[0]).exists():
            (folder / words[0]).parent.mkdir(exist_ok=True)
            (folder / words[0]).write_text(expected)
        if program in ("ebbflow", "python"):
            command = [sys.executable, *(["-m", "ebbflow"] if program == "ebbflow" else [])]
            done = run(Path(where), folder, *command, *words)
            assert (done.stdout + done.stderr).strip() == expected.strip(), where


def test_the_pages_are_there() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "docs/ledger.md", "docs/pitfalls.md"} <= names
    assert ROOT / "docs" / "tutorial" / "9-the-same-on-spark.md" in SPARK


@named(PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    lost = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not lost
