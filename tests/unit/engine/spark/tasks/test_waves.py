"""Which stages of a plan run together in tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import ebbflow as ef
from ebbflow.engine.runtime.stage import by_nothing, by_row
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.waves import Waves
from ebbflow.flow.plan import Plan
from ebbflow.testing import random_program


class Row(NamedTuple):
    k: int
    v: int


class Name(NamedTuple):
    k: int
    name: str


A, B = ef.Input("a", Row), ef.Input("b", Name)


def waves_of(rows: Any, *given: str, check_input: bool = True, **options: Any) -> Waves:
    plan = rows.plan if hasattr(rows, "plan") else Plan({"output": rows.node})
    return Replica(plan, check_input=check_input).waves(given, **options)


def shown(waves: Waves) -> list[str]:
    """The waves, as the labels of what runs in them."""
    return [
        " ".join(
            [f"check {name}" for name in wave.checks.values()]
            + [f"look up {name}" for name in wave.lookups.values()]
            + [act.stage.label for act in wave.acts]
            + [f"keep {name}" for name in wave.keeps.values()]
        )
        for wave in waves.waves
    ]


def test_a_step_on_one_row_at_a_time_needs_no_wave_of_its_own() -> None:
    waves = waves_of(A.map(lambda row: row.k, type=int).filter(lambda k: k > 1), check_input=False)
    assert shown(waves) == ["", "keep output"]


def test_an_input_that_is_checked_and_a_reduce_run_side_by_side() -> None:
    waves = waves_of(A.group_by("k").agg(s=ef.sum("v")))
    assert shown(waves) == ["", "check a reduce"]
    keys = {port.end: port.key for port in waves.ports}
    assert keys["a"] is by_row


def test_a_join_runs_with_the_indexes_that_it_reads() -> None:
    waves = waves_of(A.join(B, on="k").group_by("name").agg(s=ef.sum("v")))
    assert shown(waves)[1:] == ["index index join", "reduce"]


def test_a_reduce_of_all_rows_is_one_place() -> None:
    waves = waves_of(A.agg(s=ef.sum("v")))
    assert by_nothing in [port.key for port in waves.ports]


def test_an_input_given_by_key_is_looked_up_first() -> None:
    people = ef.Input("people", Row, key="k")
    rows = people.group_by("v").agg(n=ef.count())
    assert shown(waves_of(rows)) == ["", "check people reduce"]
    assert shown(waves_of(rows, "people")) == ["", "look up people", "reduce"]
    waves = waves_of(rows, "people")
    (port,) = waves.looked_up.values()
    assert port not in [number for ports in waves.routes.values() for number in ports]


def test_an_index_that_two_waves_read_is_written_once() -> None:
    sums = A.group_by("k").agg(s=ef.sum("v"))
    late = A.join(sums, left_on="k", right_on="k", select=lambda row, group: (row, group.s))
    soon = A.join(B, on="k")
    waves = waves_of(ef.program(soon=soon, late=late))
    runs = [
        (number, id(act.stage.index))
        for number, wave in enumerate(waves.waves)
        for act in wave.acts
        if act.stage.index is not None
    ]
    (shared,) = {index for _, index in runs if [at for _, at in runs].count(index) == 2}
    assert [number for number, index in runs if index == shared] == [1, 2]
    assert [shared in wave.writes for wave in waves.waves[1:3]] == [True, False]


def test_what_is_provided_does_not_run_and_comes_in_as_it_is() -> None:
    rows = A.join(B, on="k").group_by("name").agg(s=ef.sum("v"))
    replica = Replica(Plan({"output": rows.node}))
    join = next(stage for stage in replica.machine.stages if stage.label == "join")
    waves = replica.waves(provided=[join.slot])
    assert "join" not in " ".join(shown(waves))
    assert waves.entered == [join.slot]


@pytest.mark.parametrize("seed", range(60))
def test_every_stage_runs_in_one_wave_behind_those_that_it_reads(seed: int) -> None:
    program = random_program(seed)
    replica = Replica(program.plan, check_input=seed % 3 > 0)
    keyed = [name for name, each in program.plan.sources.items() if each.key is not None]
    used = [name for name in keyed if name in replica.machine.inputs]
    for given in ((), used):
        waves = replica.waves(given)
        ran: dict[int, int] = {}
        for number, wave in enumerate(waves.waves):
            for stage, sources in wave.acts:
                if not stage.arranges:
                    assert stage.slot not in ran
                    ran[stage.slot] = number
                for source in sources:
                    if source.port:
                        assert waves.ports[source.at].wave == number
                    else:
                        assert source.at in [act.stage.slot for act in wave.acts]
        stages = replica.machine.stages
        wanted = [s for s in stages if not (s.arranges or s.linear)]
        assert set(ran) == {stage.slot for stage in wanted}
        containers = [id(x) for stage in stages for x in stage.containers]
        written = [one for wave in waves.waves for one in wave.writes]
        assert sorted(written) == sorted(containers)
