"""The engine against DuckDB, which shares no code with it or with the oracle."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.oracle import duckdb_verbs
from tests.oracle.witnessed import Beside, act_on

from ebbflow.flow import joins


def in_memory(seed: Any, epochs: int = 6, **how: Any) -> None:
    case = Beside(seed, **how)
    view = case.program.run()
    case.follow(lambda done: act_on(view, done), lambda: view.value, epochs)


def on_disk(seed: Any, epochs: int = 6, **options: Any) -> None:
    case, dice = Beside(seed), Random(seed)
    with TemporaryDirectory(prefix="witness-") as path:
        views = [case.program.run(path=Path(path) / "state", **options)]

        def act(done: Any) -> None:
            if dice.random() < 0.4:
                views.pop().close()
                views.append(case.program.run(path=Path(path) / "state", **options))
            act_on(views[0], done)

        case.follow(act, lambda: views[0].value, epochs)
        views[0].close()


@pytest.mark.parametrize("part", range(4))
def test_oracle_random_programs_agree_with_duckdb(part: int) -> None:
    for seed in range(part, 72, 4):
        in_memory(seed)


@pytest.mark.parametrize("verb", sorted({*duckdb_verbs.VERBS}))
def test_oracle_each_verb_agrees_with_duckdb(verb: str) -> None:
    for seed in range(2):
        in_memory(f"{verb} {seed}", size=3, verbs=["sum", verb, verb])


@pytest.mark.parametrize("options", [{}, {"memory": 1}, {"flush_every": 3}], ids=str)
def test_oracle_random_programs_on_disk_agree_with_duckdb(options: Any) -> None:
    for seed in range(4):
        on_disk(f"disk {seed}", **options)


def test_the_witness_finds_what_oracle_and_engine_agree_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        joins, "present", lambda node: node
    )  # negative rows take from the other side

    def search() -> None:
        for seed in range(20):
            in_memory(f"planted {seed}", size=4, verbs=["sum", "sets"])

    with pytest.raises(AssertionError, match="DuckDB and the engine differ"):
        search()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_oracle_many_programs_agree_with_duckdb(part: int) -> None:
    for seed in range(1000 + part, 1600, 8):
        in_memory(seed, 8, size=4 + seed % 7)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_oracle_many_programs_on_disk_agree_with_duckdb(part: int) -> None:
    for seed in range(1000 + part, 1120, 4):
        on_disk(f"disk {seed}", 8, **({"memory": 1} if seed % 3 else {}))
