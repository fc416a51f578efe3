"""What can only be collected where PySpark is installed; a Java that starts soon: what tests run is
over before a better compiler would pay; what is made for a whole file of tests, made once; garbage
that is collected, whatever came before, among what tests have made; and examples that may take as
long as a busy machine needs."""

import atexit
import gc
import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
TESTS = Path(__file__).parent / "tests"
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
collect_ignore = (
    []
    if find_spec("pyspark")
    else ["src/ebbflow/engine/spark/table/schema.py", "src/ebbflow/engine/spark/table/frame.py"]
)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Doctests are looked for in `src` alone: looking through all tests takes long, in each of the
    processes that run them."""
    found = yield
    if TESTS not in file_path.parents:
        return found
    return [each for each in found if type(each) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """With `--dist loadgroup`, tests that share what is made for their file run in one process, so
    that it is made once."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.get_closest_marker("xdist_group") is None and _has_shared(item):
                item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_finish() -> None:
    """Modules and tests are there to stay: garbage is not looked for among them, each time anew."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # what a library sees freed at the end, it says nothing of


def _has_shared(item: Any) -> bool:
    made = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(each[-1].scope == "module" for each in made.values())


def pytest_runtest_setup() -> None:
    """A test of interrupts may have interrupted who was about to start the collector again."""
    gc.enable()
