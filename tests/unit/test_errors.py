"""Errors can always be shown, whatever they are about."""

from __future__ import annotations

import ast
import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
import ebbflow.errors
from ebbflow.change import NATURAL
from ebbflow.errors import (
    ChangeError,
    EbbflowError,
    FunctionFailed,
    LawBroken,
    canonical,
    error_text,
    shown,
)


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_what_cannot_be_shown_is_said_to_be_so() -> None:
    assert "cannot be shown: RuntimeError: no" in shown(Broken())
    assert "cannot be shown" in str(EbbflowError("x", value=[Broken(), 1]))
    with pytest.raises(ChangeError):
        NATURAL.patch(1, -(10**5000))


def test_sets_are_shown_in_order_at_any_depth() -> None:
    assert canonical({"a": (frozenset({"y", "x"}),)}) == "{'a': (frozenset({'x', 'y'}),)}"
    assert canonical((set(), frozenset(), (), [], {})) == "(set(), frozenset(), (), [], {})"


def test_long_values_are_cut_in_the_middle() -> None:
    text = shown("0" + "a" * 10_000 + "9")
    assert len(text) <= 400
    assert text.startswith("'0aaa")
    assert text.endswith("a9'")
    assert shown(list(range(10_000))).endswith(", ...]")


def test_a_law_that_was_broken_elsewhere_still_has_its_attributes() -> None:
    assert LawBroken("x").case == {}
    assert LawBroken("x").law is None


def test_things_can_be_made_where_there_is_no_folder(tmp_path: object) -> None:
    code = (
        "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)\n"
        "from ebbflow.algebra import Monoid; Monoid(0, max)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert done.returncode == 0


# ---- values that are hard to show ----


class Person(NamedTuple):
    name: str
    salary: Any


class Loud:
    def __repr__(self) -> str:
        return "x" * 5_000_000


class Wrong:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


def nested(levels: int, leaf: Any = ()) -> Any:
    for _ in range(levels):
        leaf = (leaf,)
    return leaf


def cyclic() -> list[Any]:
    found: list[Any] = [1]
    found.append({"again": found})
    return found


def doubled(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found, found]
    return found


def row_of(value: Any) -> Any:
    return Person("Ann", value)


HARD = {
    "deep": nested(500), "deeper": nested(100_000), "cyclic": cyclic(), "doubled": doubled(60),
    "loud": Loud(), "wrong": Wrong(), "broken": Broken(), "mute": Mute(), "text": "é" * 10**7,
    "bytes": b"x" * 10**7, "integer": 1 << 10**6, "list": [0] * 10**6, "set": {*range(10**5)},
    "dict": dict.fromkeys(range(10**5)), "rows": ef.ZSet.of(range(10**5)),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("around", [lambda x: x, lambda x: [x], row_of], ids=["", "list", "row"])
def test_any_value_can_be_shown_and_is_short(name: str, around: Any) -> None:
    value = around(HARD[name])
    assert len(shown(value)) <= 400
    error = EbbflowError("no such row", row=value, error=error_text(Mute(value)))
    assert len(str(error)) < 1500
    assert "no such row" in str(pickle.loads(pickle.dumps(error)))


def test_a_large_value_is_not_written_out_first() -> None:
    calls = []

    class Counted:
        def __repr__(self) -> str:
            calls.append(1)
            return "counted"

    shown([[Counted() for _ in range(1000)] for _ in range(100)])
    assert len(calls) < 500


def test_an_error_of_a_view_can_be_shown_whatever_the_row_is() -> None:
    def fail(row: Any) -> Any:
        raise Mute(row)

    for value in (nested(500), Loud(), Broken(), Wrong()):
        view = ef.Input("people", Person).map(fail).run()
        with pytest.raises(FunctionFailed) as caught:
            view.step(people=[Person("Ann", value)])
        assert "raised Mute" in str(caught.value)
        assert len(str(caught.value)) < 1500


# ---- redaction ----

SECRET = "hunter2"


@pytest.fixture
def redacted() -> Iterator[None]:
    ef.redact()
    yield
    ef.redact(False)


def told(error: BaseException) -> str:
    """All that Python prints, and what logs have."""
    record = logging.LogRecord("x", 40, "x", 1, "x", (), (type(error), error, error.__traceback__))
    printed = "".join(traceback.format_exception(error))
    return printed + logging.Formatter().format(record) + str(error) + repr(error)


people = ef.Input("people", Person)


def raises(row: Any) -> Any:
    raise KeyError(row.name)


def unhashable(row: Any) -> Any:
    return [row.name]


FAILING = {
    "map": people.map(raises),
    "filter": people.filter(raises),
    "key": people.group_by(raises).agg(n=ef.count()),
    "reducer": people.agg(n=ef.Reducer(0, lambda acc, row: acc + {}[row.name], lambda a, r: a)),
    "unhashable": people.map(unhashable),
    "join": people.join(people, on="name", select=lambda left, right: raises(left)),
    "top_k": people.top_k(1, order=raises),
    "input key": ef.Input("people", Person, key=raises).distinct(),
    "lambda": people.map(lambda row: row.salary + 1),
}


@pytest.mark.usefixtures("redacted")
@pytest.mark.parametrize("name", FAILING)
def test_redacted_errors_of_functions_say_where_and_not_what(name: str) -> None:
    view = FAILING[name].run()
    with pytest.raises(EbbflowError) as caught:
        view.step(people=[Person(SECRET, SECRET), Person("Ann", 3), Person(SECRET, None)])
    assert SECRET not in told(caught.value)
    assert "created" in str(caught.value)
    assert SECRET not in repr(pickle.dumps(caught.value))


def test_without_redaction_they_say_it() -> None:
    with pytest.raises(FunctionFailed) as caught:
        FAILING["map"].run().step(people=[Person(SECRET, 1)])
    assert isinstance(caught.value.__cause__, KeyError)
    assert str(caught.value).count(SECRET) == 2


@pytest.mark.usefixtures("redacted")
@pytest.mark.parametrize(
    "wrong",
    [
        {"people": {Person(SECRET, 1): -1}},
        {"people": {Person(SECRET, 1): SECRET}},
        {"people": [SECRET]},
        {"people": Person(SECRET, 1)},
        {"people": [Person(SECRET, [SECRET])]},
        {"people": SECRET},
    ],
    ids=str,
)
def test_redacted_errors_of_changes_do_not_have_the_row(wrong: Any) -> None:
    view = people.distinct().run()
    with pytest.raises(EbbflowError) as caught:
        view.step(**wrong)
    assert SECRET not in told(caught.value)


@pytest.mark.usefixtures("redacted")
def test_redacted_errors_name_the_exception_and_its_line() -> None:
    with pytest.raises(FunctionFailed) as caught:
        FAILING["map"].run().step(people=[Person(SECRET, 1)])
    assert "raised KeyError at test_errors.py:" in str(caught.value)
    assert "row        <Person>" in str(caught.value)
    assert caught.value.facts["row"] == Person(SECRET, 1), "for those who handle it"


@pytest.mark.usefixtures("redacted")
def test_a_view_that_is_not_right_is_told_without_its_rows() -> None:
    import random

    view = people.map(lambda row: (row.name, random.random())).run()
    view.step(people=[Person(SECRET, 1)])
    with pytest.raises(LawBroken) as caught:
        view.verify()
    assert SECRET not in told(caught.value)


def test_redaction_can_be_had_from_the_environment() -> None:
    code = "import ebbflow as ef; print(ef.EbbflowError('x', row='hunter2'))"
    env = {**os.environ, "EBBFLOW_REDACT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert "<str>" in done.stdout
    assert SECRET not in done.stdout


# ---- what may be written ----

HOME = Path(ef.__file__).parent
ROWS = {"row", "rows", "value", "values", "change", "key", "element", "error", "low", "high"}
NOT_ROWS = {
    ("cli.py", "error"): "of an import",
    ("fn.py", "rows"): "the name of their type",
    ("hdfs.py", "error"): "of a connection",
    ("values.py", "value"): "a constant of a program",
    ("record.py", "error"): "of a type",
    ("sketch.py", "error"): "how exact a sketch is",
}


def test_no_error_writes_a_row_by_itself() -> None:
    """A value in the text of an error goes through `value_text` or `error_text`, which are safe."""
    found = {
        (file.name, part.value.id)
        for file in HOME.rglob("*.py")
        if file.relative_to(HOME).parts[0] not in ("laws", "testing", "demo")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and node.exc is not None
        for part in ast.walk(node.exc)
        if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
    }
    assert {each for each in found if each[1] in ROWS} <= {*NOT_ROWS}


# ---- one home ----

SRC = Path(ef.__file__).parent
INSIDE = {"RowsNeeded", "RowsWanted"}
"""Errors that end a way of computing and never reach a user."""
HERE = {
    name: each
    for name, each in vars(ebbflow.errors).items()
    if isinstance(each, type) and issubclass(each, Exception)
}


def test_every_exception_that_a_user_may_catch_is_in_one_module() -> None:
    others = {
        node.name
        for path in SRC.rglob("*.py")
        if path.name != "errors.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id in HERE for base in node.bases)
    }
    assert others == INSIDE


def test_the_page_on_errors_lists_every_exception() -> None:
    page = (SRC.parents[1] / "docs" / "errors.md").read_text()
    assert [each for each in HERE if f"| `{each}` |" not in page] == []


@pytest.mark.parametrize("name", [each for each in HERE if issubclass(HERE[each], EbbflowError)])
def test_every_exception_comes_back_from_a_pickle_with_its_text(name: str) -> None:
    error = HERE[name]("no such row", row=("Rome", 3), remedy="add it first")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back)) == (type(error), str(error))
    assert type(error).__module__ == "ebbflow.errors"
