"""mypy, pyright and ebbflow find the mistakes in programs, each at its line, and nothing else.

`mistakes.py` has programs with what is said of them written below; `right.py` those that nobody has
anything to say of. The page on types shows what the checkers print, and that is compared as well.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from tests.typing import mistakes, right

from ebbflow.errors import EbbflowError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "howto" / "types.md"
SAID = re.compile(r"\s*# (?:by )?(mypy|pyright|ebbflow|remedy): (.*)")

Said = dict[int, list[str]]
"""What is said of a file, by line: as it is printed, behind the number of the line."""


def expected(file: Path, who: str) -> dict[int, str]:
    """What someone is to say of each line: it stands in the comments below it."""
    found, at = {}, 0
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        said = SAID.match(line)
        if said is None:
            at = number
        elif said[1] == who:
            found[at] = said[2]
    return found


@cache
def mypy(*files: Path) -> str:
    """What it says of the library and of these files, with the options of the library; all of it is
    read once."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: nothing was checked")
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", "src", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode < 2, done.stdout + done.stderr
    return done.stdout


def by_mypy(*files: Path) -> dict[Path, Said]:
    found: dict[Path, Said] = {file: {} for file in files}
    for file, line, text in re.findall(r"^(.*?):(\d+):( error: .*)$", mypy(*files), re.M):
        for here in files:
            if here.name == Path(file).name:  # the folder may be that of a result in the cache
                found[here].setdefault(int(line), []).append(text)
    return found


def by_pyright(*files: Path) -> dict[Path, Said]:
    command = Path(sysconfig.get_path("scripts")) / "basedpyright"
    if not command.exists():
        pytest.skip("basedpyright is not installed: nothing was checked")
    done = subprocess.run(
        [command, "--outputjson", "-p", HERE / "pyrightconfig.json", *files,
         "--pythonpath", sys.executable],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[Path, Said] = {file: {} for file in files}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        at = each["range"]["start"]
        text = f"{at['character'] + 1} - {each['severity']}: {each['message']}"
        found[Path(each["file"])].setdefault(at["line"] + 1, []).append(text)
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the page, in a folder."""
    folder = tmp_path_factory.mktemp("page")
    for name, body in re.findall(
        r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.M | re.S
    ):
        (folder / name).write_text(f"# {name}\n{body}")
    return folder


FILES = (HERE / "mistakes.py", HERE / "right.py")
in_one_process = pytest.mark.xdist_group("types")  # so that all is read once


@in_one_process
def test_the_library_is_right_by_mypy(shown: Path) -> None:
    said = mypy(*FILES, *shown.glob("*.py"))
    assert f"{FILES[0].relative_to(ROOT)}:" in said, "it finds mistakes"
    assert re.findall(r"^src.*: error: .*$", said, re.M) == []


@in_one_process
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_a_type_checker_finds_each_mistake_at_its_line_and_nothing_else(
    check: Callable[..., dict[Path, Said]], shown: Path
) -> None:
    who = check.__name__.removeprefix("by_")
    found = check(*FILES, *shown.glob("*.py"))
    wrong, right = (found[file] for file in FILES)
    assert right == {}
    wanted = expected(FILES[0], who)
    assert wrong.keys() == wanted.keys(), (who, wrong.keys() ^ wanted.keys())
    for line, (text, *more) in wrong.items():
        assert wanted[line] in text, (who, line)
        assert not more, (who, line)

    page = re.search(rf"^\$ {who} shop.py\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert page is not None
    printed = {file.name: as_printed(file, found[file]) for file in shown.glob("*.py")}
    assert printed == {"shop.py": page[1].splitlines(), "dashboard.py": []}


def as_printed(file: Path, said: Said) -> list[str]:
    """What is said of a file as the command prints it, of each text the first line."""
    texts = [(line, text) for line, several in sorted(said.items()) for text in several]
    return [f"{file.name}:{line}:{text.splitlines()[0]}" for line, text in texts]


def programs(module: ModuleType) -> Iterator[Callable[[], None]]:
    for each in vars(module).values():
        if inspect.isfunction(each) and each.__module__ == module.__name__:
            yield each


@pytest.mark.parametrize("program", programs(mistakes), ids=lambda each: each.__name__)
def test_ebbflow_finds_each_mistake_at_its_line_when_the_program_is_built(
    program: Callable[[], None],
) -> None:
    lines, start = inspect.getsourcelines(program)
    wanted = {
        line: text
        for line, text in expected(FILES[0], "ebbflow").items()
        if start <= line < start + len(lines)
    }
    if not wanted:
        program()
        return
    with pytest.raises(EbbflowError) as error:
        program()
    ((line, said),) = wanted.items()
    assert error.value.what == said
    assert expected(FILES[0], "remedy").get(line, "") in (error.value.remedy or "")
    assert f"mistakes.py:{line}" in str(error.value)


@pytest.mark.parametrize("program", programs(right), ids=lambda each: each.__name__)
def test_a_program_that_checkers_find_right_can_be_built(program: Callable[..., None]) -> None:
    if not inspect.signature(program).parameters:
        program()
