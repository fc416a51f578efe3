"""Imports only point down, and the core needs nothing but Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "ebbflow"

# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {"errors", "keywords", "names", "paths", "places", "public"},
    {"algebra"},
    {
        "change",
        "decimals",
        "zset",
        "tensor",
        "expression",
        "fn",
        "frozen",
        "record",
        "codegen",
        "chain",
        "ordering",
        "hashing",
        "nan",
        "notebook",
        "typevars",
    },
    {"state"},
    {"operator", "reducer", "stream", "window"},
    {"laws"},
    {"flow"},
    {"kernel"},
    {"engine.batch"},
    {"engine.runtime"},
    {"engine.local", "engine.spark"},
    {"connectors", "metrics"},
    {"testing"},
    {"demo"},
    {"cli", "cli_compile", "cli_state"},
]
APART = [{"engine.local", "engine.spark"}]  # of one layer, and yet neither imports the other
OPTIONAL = {
    "hypothesis": {"laws", "testing"},
    "z3": {"laws"},
    "pyspark": {"connectors", "engine.spark"},
    "numba": {"kernel"},
    "pyarrow": {"connectors", "engine.runtime", "engine.spark", "kernel", "state", "demo"},
    "deltalake": {"connectors"},
    "psycopg": {"connectors"},
    "confluent_kafka": {"connectors"},
    "numpy": {"engine.runtime", "engine.spark", "kernel", "state", "demo"},
    "obstore": {"state"},
}
FILES = sorted(SRC.rglob("*.py"))
HINTED = {"flow/collection.py", "flow/program.py"}  # `run` is hinted with the views of the engines


def layer(module: str) -> str:
    """The layer that a module is in, by its name after `ebbflow.`: its folder or, at the top, its
    own name. Each engine is one of its own."""
    return ".".join(module.split(".")[: 2 if module.startswith("engine.") else 1])


def without_hints(tree: ast.AST) -> Iterator[ast.AST]:
    """What a module runs: all nodes but those that are there for a type checker alone."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from without_hints(node)


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            module = node.module or ""
            whole = module in ("ebbflow", "ebbflow.engine")
            found |= {f"{module}.{a.name}" if whole else module for a in node.names}
    return found


def violations(path: Path, source: str) -> list[str]:
    own = layer(".".join(path.relative_to(SRC).with_suffix("").parts))
    if own in {"__init__", "__main__", "engine.__init__"}:
        return []
    level = next(i for i, names in enumerate(LAYERS) if own in names)
    apart = set().union(*(names - {own} for names in APART if own in names))
    allowed = set().union(*LAYERS[: level + 1]) - apart
    wrong = []
    tree = ast.parse(source)
    hinted = path.relative_to(SRC).as_posix() in HINTED
    for name in imports(without_hints(tree) if hinted else ast.walk(tree)):
        top, _, rest = name.partition(".")
        if top == "ebbflow" and rest and layer(rest) not in allowed:
            wrong.append(f"{own} imports {name}, which is above it")
        if top in OPTIONAL and own not in OPTIONAL[top]:
            wrong.append(f"{own} imports {top}, which only {sorted(OPTIONAL[top])} may")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    assert violations(path, path.read_text()) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("algebra/new.py", "from ebbflow.zset import ZSet"),
        ("algebra/new.py", "import ebbflow.laws.check"),
        ("change/new.py", "from ebbflow import laws"),
        ("stream/new.py", "def f():\n    from ebbflow.laws import check"),
        ("stream/new.py", "import hypothesis"),
        ("zset.py", "from pyspark.sql import functions"),
        ("zset.py", "if TYPE_CHECKING:\n    from ebbflow.flow import Input"),
        ("flow/collection.py", "from ebbflow.engine.local import View"),
        ("engine/runtime/new.py", "from pyspark.sql import functions"),
        ("engine/runtime/new.py", "from ebbflow.engine.local import view"),
        ("engine/runtime/new.py", "from ebbflow.engine import local"),
        ("engine/spark/tasks/new.py", "from ebbflow.engine.local.view import View"),
        ("engine/batch/__init__.py", "from ebbflow.engine.runtime.stage import Stage"),
    ],
)
def test_the_check_itself_sees_an_upward_import(path: str, source: str) -> None:
    assert violations(SRC / path, source)


def test_importing_ebbflow_loads_no_third_party_package() -> None:
    code = (
        "import sys; before = set(sys.modules); import ebbflow, ebbflow.stream, ebbflow.change, "
        "ebbflow.cli; print(sorted({m.split('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names) - {'ebbflow'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_spark_engine_asks_stages_and_knows_no_class_of_them() -> None:
    from ebbflow.engine.runtime.compile import Stage  # all classes of it are there then

    known = {each.__name__ for each in Stage.__subclasses__()}
    assert {"JoinStage", "KeyedStage"} <= known
    for path in (SRC / "engine" / "spark").rglob("*.py"):
        names = {
            node.id for node in ast.walk(ast.parse(path.read_text())) if type(node) is ast.Name
        }
        assert not names & known, path
