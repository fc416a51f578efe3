"""A step imports nothing: an interrupt in the middle of an import may leave a module half made, and
its lock held. What a step needs is imported when the view is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STEPS = """
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from tempfile import mkdtemp
from typing import Annotated, Any, NamedTuple
from uuid import UUID
import ebbflow as ef

class Colour(Enum):
    RED = 1

class Row(NamedTuple):
    k: int
    name: str
    at: datetime
    zoned: Annotated[datetime, UTC]
    day: date
    value: Any

VALUES = [1, 1 << 80, 0.5, float("nan"), None, b"x", Decimal("1.5"), Fraction(1, 3), Colour.RED,
          time(1, 2), timedelta(1), UUID(int=7), (1, ("a", None)), frozenset({1}), True]
NOW = datetime(2024, 2, 29, 12)

def rows(n):
    return [Row(i % 3, f"n{i}", NOW + timedelta(i), NOW.replace(tzinfo=UTC), date(2024, 1, 1),
                VALUES[(n + i) % len(VALUES)]) for i in range(n)]

a, b = ef.Input("a", Row), ef.Input("b", Row, key="name")
both = a.join(b, on="k", select=lambda left, right: (left.value, right.at))
program = ef.program(
    both=both,
    best=a.select("k", "at").top_k(2, order="at", per="k"),
    sums=a.group_by("k").agg(n=ef.count(), last=ef.max("at"), x=ef.sum("k")),
    days=a.select("day").distinct(),
)
OPENED
before = set(sys.modules)
for n in range(1, 20):
    view.step(a=rows(n), b=[])
    view.input("b").upsert(*rows(n % 3))
view.step(a={row: -1 for row in rows(19)})
try:
    view.step(a={row: -1 for row in rows(25)})
except ef.EbbflowError:
    pass
else:
    raise SystemExit("not refused")
print(*sorted(set(sys.modules) - before))
"""


DISK = "program.run(path=mkdtemp(), memory=1)"
SPARK = """
from tests.spark.simulated import Driver
view = Driver(program.plan, "driver", mkdtemp())
"""


@pytest.mark.parametrize("opened", [f"view = {DISK}", SPARK], ids=["disk", "spark"])
def test_the_first_steps_of_a_view_import_no_module(opened: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEPS.replace("OPENED", opened)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
