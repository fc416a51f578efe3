"""One vocabulary: a class has a name of its own, a private name stays in its package, and words
that were given up do not come back as names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "ebbflow"
Trees = dict[str, ast.Module]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """All files of the library, by path. They are read where these tests run, and let go: a million
    objects that stayed would be gone over whenever garbage is collected."""
    return {str(path.relative_to(SRC)): ast.parse(path.read_text()) for path in SRC.rglob("*.py")}


SHARED = {
    "Distinct": "the plan node, and the operator that runs it",
    "Join": "the plan node, and the operator that runs it",
    "Map": "the plan node, and the mapping that reducers count with",
    "Semi": "the plan node, and the operator that runs it",
    "TableSink": "that of PostgreSQL, and that of Delta",
    "Text": "the text that a row holds, and a fact of an error that is printed as it is",
}
"""Names that two classes have, with what each of them is."""

RETIRED = {
    "anyhow": "total_order_key",
    "calm": "gc_paused",
    "contest": "TopBuffer",
    "kind": "row_type, hint, cls, shape",
    "kinds": "column_types",
    "misfit": "ColumnMismatch",
    "moved": "update, delta",
    "outermost": "TopBuffer",
    "owed": "negative",
    "ship": "pack_program",
    "shipped": "PackedProgram",
    "unfit": "SchemaMismatch",
}
"""Words that are no part of a name any more, with what is written instead."""

RETIRED_ALONE = {"heard": "received", "met": "join_delta", "told": "sent"}
"""Words that are no names by themselves."""

RETIRED_CLASSES = {
    "Counting": "SemiJoin",
    "Done": "EpochResult",
    "Front": "TopBuffer",
    "Gathered": "GroupByKey",
    "Given": "InputChange",
    "Indexing": "Arrange",
    "Meeting": "Join",
    "Moving": "Linear",
    "Note": "TaskReport",
    "Outer": "TopBuffer",
    "Regrouping": "GroupReduce",
    "Sorted": "GroupByKey",
    "Sql": "Queries",
    "Swapping": "FusedReduce",
    "Ways": "Lowering",
    "Written": "FusedReduce",
}
"""Words that name no class any more; as verbs and adjectives they are fine."""

RETIRED_MODULES = {
    "laws/watch.py": "laws/purity.py",
    "loop.py": "codegen.py",
    "reducer/parts.py": "reducer/strategy.py",
    "reducer/written.py": "reducer/fused.py",
    "state/outer.py": "state/top_buffer.py",
}
MODES = {"here": "driver", "whole": "single_task"}
"""How an epoch runs on Spark, as it was once written, and as it is written now."""


def names(tree: ast.AST) -> Iterator[str]:
    """What a module calls things: classes, functions, arguments, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case ast.ImportFrom() | ast.Import():
                yield from (alias.asname for alias in node.names if alias.asname)


def words(name: str) -> set[str]:
    """The words of a name: `keep_owed`, `KeepOwed` and `_KEEP_OWED` have the same two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def retired(tree: ast.AST) -> set[str]:
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    wrong = {name for name in names(tree) if words(name) & set(RETIRED)}
    wrong |= {name for name in names(tree) if name.strip("_").lower() in RETIRED_ALONE}
    return wrong | {name for name in classes if name.strip("_") in RETIRED_CLASSES}


def private(own: str, tree: ast.AST) -> set[str]:
    """Private names of other packages that a module imports, or takes from a module it imports."""
    package = ["ebbflow", *own.split("/")[:-1]]
    wrong, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ebbflow"):
            home = str(node.module).split(".")
            inside = home[: len(package)] == package
            for alias in node.names:
                path = [*home[1:], alias.name]
                if SRC.joinpath(*path).with_suffix(".py").is_file():
                    modules[alias.asname or alias.name] = inside
                if _is_private(alias.name) and not inside:
                    wrong.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            outside = modules.get(node.value.id) is False
            if outside and _is_private(node.attr):
                wrong.add(f"{node.value.id}.{node.attr}")
    return wrong


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_public_classes_have_names_of_their_own(trees: Trees) -> None:
    homes = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    repeated = {name: found for name, found in homes.items() if len(found) > 1}
    allowed = set(SHARED)
    assert {name: found for name, found in repeated.items() if name not in allowed} == {}
    assert set(SHARED) - set(repeated) == set(), "a name of one class only is not to be listed"


def test_no_private_name_is_imported_from_another_package(trees: Trees) -> None:
    found = {f"{path}: {name}" for path, tree in trees.items() for name in private(path, tree)}
    assert found == set()


def test_words_that_were_given_up_are_no_names(trees: Trees) -> None:
    found = {f"{path}: {name}" for path, tree in trees.items() for name in retired(tree)}
    assert found | set(trees) & set(RETIRED_MODULES) == set()


def test_the_modes_of_an_epoch_are_spelt_in_one_way(trees: Trees) -> None:
    for path, tree in trees.items():
        if path.startswith("engine/spark/"):
            texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            assert set(MODES) & {text for text in texts if isinstance(text, str)} == set(), path


@pytest.mark.parametrize(
    "source",
    [
        "class Outermost: ...",
        "class _Moving: ...",
        "def rows_moved(): ...",
        "def f(*, kind): ...",
        "self.owed = 1",
        "Misfit_ = 1",
    ],
)
def test_the_check_itself_sees_a_retired_word(source: str) -> None:
    assert retired(ast.parse(source))


def test_the_check_itself_sees_a_private_import() -> None:
    source = "from ebbflow.state.index import _look\nfrom ebbflow import zset\nzset._add(1)"
    assert private("engine/local/view.py", ast.parse(source)) == {
        "ebbflow.state.index._look",
        "zset._add",
    }
    assert private("state/cells.py", ast.parse("from ebbflow.state.index import _look")) == set()
