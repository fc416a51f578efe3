"""Plans as text, graphs and JSON.

The golden files beside this one hold what `explain` says about the programs beside them. After a
change that is meant: `EBBFLOW_GOLDEN=write pytest tests/unit/test_show.py`, and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ebbflow.flow.plan import Plan
from ebbflow.flow.rewrite import ALL, LOCAL, optimise, share
from ebbflow.flow.show import explain

GOLDEN = Path(__file__).parent / "golden"


def planned(name: str) -> Plan:
    """The plan of a program beside the golden files; its places are lines of that file."""
    source = (GOLDEN / f"{name}.py").read_text()
    scope: dict[str, object] = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec"), scope)
    return scope["program"].plan  # type: ignore[attr-defined, no-any-return]


def golden(name: str, found: str) -> None:
    path = GOLDEN / name
    if os.environ.get("EBBFLOW_GOLDEN") == "write":
        path.write_text(found + "\n")
    assert path.exists(), f"{name} is missing: EBBFLOW_GOLDEN=write pytest {__file__}"
    assert found + "\n" == path.read_text()


PROGRAMS = ["shop", "people", "words", "shared", "reducers", "everything"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_it_was_written(name: str) -> None:
    golden(f"{name}.txt", explain(planned(name)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_it_runs_here(name: str) -> None:
    golden(f"{name}.local.txt", explain(optimise(planned(name), LOCAL)))


@pytest.mark.parametrize("name", ["people", "everything"])
def test_a_program_as_it_runs_where_rows_are_written_down(name: str) -> None:
    golden(f"{name}.all.txt", explain(optimise(planned(name), ALL)))


@pytest.mark.parametrize("format", ["mermaid", "dot", "json"])
@pytest.mark.parametrize("name", ["shop", "shared"])
def test_a_program_in_the_other_formats(name: str, format: str) -> None:
    golden(f"{name}.{format}", explain(share(planned(name)), format))
