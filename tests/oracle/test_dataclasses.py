"""Frozen dataclasses are rows like NamedTuples: programs over either give the same.

The same random programs run over both, change by change: over dataclasses against batch, and the
two against each other, with rows taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.dataclass_rows import DATACLASSES

import ebbflow as ef
from ebbflow.engine.local import run
from ebbflow.testing import follow, random_epochs, random_program
from ebbflow.testing.programs import TYPES
from ebbflow.zset import ZSet

OF = dict(zip(DATACLASSES, TYPES, strict=True))


def apart(value: Any) -> Any:
    """A value with the NamedTuples that dataclasses were made of."""
    if is_dataclass(value) and type(value) in OF:
        return OF[type(value)](*[apart(getattr(value, each.name)) for each in fields(value)])
    if isinstance(value, tuple):
        inside = map(apart, value)
        return tuple(inside) if type(value) is tuple else tuple.__new__(type(value), inside)
    return value


def flat(rows: ZSet[Any]) -> dict[Any, int]:
    return {apart(row): weight for row, weight in rows.items()}


def compared(seed: int, path: Path | None = None) -> bool:
    """One program over both types of rows. False where batch refuses a change: behind an operator
    of a user's rows have no type, and a part of them has a number, which it has in a tuple alone.
    """
    program, other = (random_program(seed, types=types) for types in (DATACLASSES, TYPES))
    epochs = random_epochs(program, seed, 5)
    view = follow(run, program, epochs)
    if view.epoch < len(epochs):
        return False
    plain = run(other.plan)
    for epoch in epochs:
        plain.step({name: flat(ZSet(change)) for name, change in epoch.items()})
    both = (each.value for each in (view, plain))
    mine, theirs = ({"out": v} if isinstance(v, ZSet) else v for v in both)
    for name, rows in mine.items():
        assert flat(rows) == dict(theirs[name].items())
    if path is not None:
        for again in range(2):
            with program.run(path=path) as stored:
                if not again:
                    for epoch in epochs:
                        stored.step(epoch)
                assert (stored.value, stored.rebuilt) == (view.value, ())
                stored.verify()
    return True


def test_oracle_dataclasses_equal_batch_and_tuples() -> None:
    assert sum(map(compared, (*range(16), 174))) > 14  # in the last, rows tie in an `ntile`


@dataclass(frozen=True)
class Hit:
    user: int
    at: int


def test_sliding_windows_of_dataclasses_are_added_up_by_panes() -> None:
    hits = ef.Input("hits", Hit)
    view = (
        hits.sliding("at", 4, every=2)
        .group_by("window_start", "user")
        .agg(n=ef.count(), last=ef.sum("at"), product=ef.sum(lambda hit: hit.user * hit.at))
        .run()
    )
    view.step(hits=[Hit(1, 3), Hit(2, 3), Hit(1, 5)])
    view.step(hits={Hit(1, 3): -1})
    assert {tuple(row) for row in view.value} == {
        (0, 2, 1, 3, 6), (2, 2, 1, 3, 6), (2, 1, 1, 5, 5), (4, 1, 1, 5, 5),
    }  # fmt: skip
    view.verify()


def test_oracle_dataclasses_on_disk_equal_tuples(tmp_path: Path) -> None:
    assert all(compared(seed, tmp_path / str(seed)) for seed in range(3))


@pytest.mark.slow
def test_oracle_many_dataclasses_equal_batch_and_tuples(tmp_path: Path) -> None:
    paths = {seed: tmp_path / str(seed) if seed % 5 == 0 else None for seed in range(100, 300)}
    assert sum(compared(*each) for each in paths.items()) > 180
