"""The doctests and the pure tests, in a Python that has little but Python: no compiled packages,
no processes, no threads. What needs one of those is left out, and said so.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WHAT = ("src", "tests/unit", "tests/work")
NOT_HERE = ("not support processes", "start new thread", "not implemented", "asyncio.run",
            "lacks multiprocessing")  # fmt: skip
LEFT_OUT = (
    "tests/unit/engine/local/test_view.py::test_an_interrupt_at_any_moment_leaves_an_epoch_done_or_not_done",
    "tests/unit/test_keywords.py::test_an_async_method_stays_one_and_checks_its_arguments",
)
"""One takes many minutes here, and one waits for an event loop."""
NOT_RUN = (
    "tests/unit/engine/runtime/test_subscribe.py",
    "tests/unit/state/test_interrupted.py",
)
"""The first file waits for an event loop, which this Python lacks. The second counts instructions,
and this Python reports few of them to a trace function."""


class Portable:
    """Leaves out what cannot run here."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        for name in _needed(collection_path) if collection_path.suffix == ".py" else ():
            try:
                importlib.import_module(name)
            except Exception as error:
                why = _lacks(error)
                if why is None:
                    raise
                self.left_out[f"files, {why}"] += 1
                return True
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        return (yield from self._tried())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        return (yield from self._tried())

    def _tried(self) -> Any:
        try:
            return (yield)
        except Exception as error:
            why = _lacks(error)
            if why is None:
                raise
            self.left_out[f"tests, {why}"] += 1
            pytest.skip(why)

    def pytest_terminal_summary(self) -> None:
        print(f"\nPython {sys.version.split()[0]} on {sys.platform}; left out:")
        for why, count in self.left_out.most_common():
            print(f"  {count} {why}")


def _lacks(error: BaseException | None) -> str | None:
    """What this Python does not have, if that is why something failed."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("ebbflow"):
            return f"needs {error.name}"
        if isinstance(error, ImportError) and str(error.name).startswith("ebbflow.state.spine"):
            return "needs pyarrow"
        if isinstance(error, (OSError, RuntimeError)):
            for each in NOT_HERE:
                if each in str(error):
                    return each
        failures = getattr(error, "failures", None) or [error]
        inside = getattr(failures[0], "exc_info", None)
        error = inside[1] if inside else error.__cause__ or error.__context__
    return None


def _needed(path: Path) -> list[str]:
    """The modules that a file imports when it is imported; for one of ours, itself."""
    if "src" in path.parts:
        inside = path.parts[path.parts.index("src") + 1 :]
        name = ".".join(inside).removesuffix(".py").removesuffix(".__init__")
        return [] if name.endswith("__main__") else [name]
    found: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def main(told: Any) -> int:
    """Run pytest; gives its exit code."""
    options = ["-p", "no:cacheprovider", "-m", "not slow", "--tb=short"]
    options += [f"--ignore={each}" for each in NOT_RUN]
    options += [f"--deselect={each}" for each in LEFT_OUT]
    return int(pytest.main([*options, *(list(told) or WHAT)], plugins=[Portable()]))
