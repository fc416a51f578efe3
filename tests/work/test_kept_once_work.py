"""What is hashed where joins read the rows that an input keeps, and where a reduce adds them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.zset import ZSet


class Mark:
    """A value that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        Mark.hashed += 1
        return 7


class Line(NamedTuple):
    id: int
    part: int
    mark: Mark


class Part(NamedTuple):
    part: int
    name: str


lines, parts = ef.Input("lines", Line, key="id"), ef.Input("parts", Part, key="part")
PROGRAMS = {
    "join": lines.select("part", "mark").join(parts, on="part"),
    "semi": lines.select("part", "mark").join(parts, on="part", how="semi"),
    "sum": lines.join(parts, on="part").group_by("name").agg(n=ef.count()),
    "left": lines.join(parts, on="part", how="left").group_by("name").agg(n=ef.count()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_meet_nothing_are_not_hashed(name: str) -> None:
    view = PROGRAMS[name].run(check_input=False, columns=False)
    rows = [Line(n, n % 10, Mark()) for n in range(100)]
    Mark.hashed = 0
    view.step(lines=rows)
    assert Mark.hashed == 0


@pytest.mark.parametrize("name", ["sum", "left"])
def test_rows_that_a_reduce_adds_up_are_not_hashed(name: str) -> None:
    view = PROGRAMS[name].run(check_input=False, columns=False)
    rows = [Line(n, n % 10, Mark()) for n in range(100)]
    Mark.hashed = 0
    view.step(lines=rows, parts=[Part(n, "a") for n in range(10)])
    view.step(parts={Part(3, "a"): -1, Part(3, "b"): 1})
    assert Mark.hashed == 0
    assert view.value == ZSet({("a", 90): 1, ("b", 10): 1})


def test_a_row_of_the_input_is_the_row_of_the_index() -> None:
    view: Any = PROGRAMS["join"].run(columns=False)
    row = Line(1, 2, Mark())
    view.step(lines=[row])
    machine, kept = view._program.machine, view._program.inputs["lines"].rows
    assert kept == {1: row}
    held = [each.groups for stage in machine.stages for each in stage.containers]
    assert held[0][2][1] is kept[1]
