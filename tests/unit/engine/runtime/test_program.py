"""A program runs an epoch, and then keeps it or is as it was, wherever its state is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.engine.runtime.inputs import input_state_of
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.runtime.machine import Machine
from ebbflow.engine.runtime.program import Memory, RunningProgram
from ebbflow.errors import ChangeError, CompositionError, ViewClosed
from ebbflow.flow.plan import Plan, Source
from ebbflow.fn import Fn
from ebbflow.zset import ZSet


class Row(NamedTuple):
    k: int
    v: int


ROWS, PEOPLE = ef.Input("rows", Row), ef.Input("people", Row, key="k")


def program_of(**outputs: Any) -> RunningProgram:
    plan = Plan({name: output.node for name, output in outputs.items()})
    inputs = {name: input_state_of(source, True) for name, source in plan.sources.items()}
    return RunningProgram(plan, Machine(plan), inputs, {})


def sums() -> RunningProgram:
    return program_of(
        sums=ROWS.group_by("k").agg(s=ef.sum("v")), keys=PEOPLE.map(lambda row: row.k, type=int)
    )


def values(program: RunningProgram) -> dict[str, ZSet[Any]]:
    return {name: output.value() for name, output in program.outputs.items()}


def kept(program: RunningProgram, number: int, *given: Any) -> Any:
    deltas = program.run(number, *given)
    assert program.pending is not None
    program.keep(program.pending)
    return deltas


def test_an_epoch_is_kept_or_was_never_there() -> None:
    program = sums()
    assert kept(program, 1, {"rows": [Row(1, 2), Row(1, 3)]}) == {"sums": {(1, 5): 1}}
    before = values(program)
    assert program.run(2, {"rows": {Row(1, 2): -1}}) == {"sums": {(1, 5): -1, (1, 3): 1}}
    program.rollback()
    assert values(program) == before
    assert kept(program, 2, {"rows": {Row(1, 2): -1}}) == {"sums": {(1, 5): -1, (1, 3): 1}}
    assert values(program)["sums"] == ZSet({(1, 3): 1})


def test_keeping_an_epoch_twice_is_keeping_it_once() -> None:
    program = sums()
    program.run(1, {"rows": [Row(1, 2)], "people": [Row(7, 0)]})
    pending = program.pending
    assert pending is not None
    program.keep(pending)
    program.keep(pending)
    assert values(program) == {"sums": ZSet({(1, 2): 1}), "keys": ZSet({7: 1})}


def test_what_is_done_to_an_input_is_said_by_a_request() -> None:
    program = sums()
    upsert = ef.upsert((Row(1, 0), Row(2, 0), Row(1, 5)), duplicates="last")
    kept(program, 1, {"people": upsert})
    assert program.inputs["people"].snapshot() == ZSet({Row(1, 5): 1, Row(2, 0): 1})
    assert kept(program, 2, {"people": ef.delete([1])}) == {"keys": {1: -1}}
    with pytest.raises(ChangeError, match="upsert: input 'rows' has no key"):
        program.run(3, {"rows": ef.upsert([Row(1, 1)])})
    with pytest.raises(CompositionError, match="the program has no input 'people_'"):
        program.run(3, {"people_": []})


def test_the_keys_of_an_upsert_are_computed_once_and_looked_through_once() -> None:
    asked: list[Any] = []

    def key(row: Row) -> int:
        asked.append(row)
        return row.k

    state = KeyedInput(Source(name="people", type=Row, key=Fn(key)))
    two = ef.upsert({Row(1, 2): 1, Row(2, 2): 1})
    assert state.upsert(two) == {Row(1, 2): 1, Row(2, 2): 1}
    assert len(asked) == 2
    with pytest.raises(ChangeError, match="several rows of one key, and no order"):
        state.upsert(ef.upsert(ZSet.of([Row(1, 2), Row(1, 3)])))
    assert len(asked) == 4
    with pytest.raises(ChangeError, match="a row to take away"):
        state.upsert(ef.upsert({Row(1, 2): -1}))
    last = ef.upsert([Row(1, 2), Row(1, 3)], duplicates="last")
    assert state.upsert(last) == {Row(1, 3): 1}


def test_state_that_is_attached_is_staged_and_can_be_forgotten(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from ebbflow.state.spine import Store

    program, again = sums(), sums()
    assert program.names == again.names
    with Store(tmp_path) as store:
        program.attach(store, limited=True)
        program.run(1, {"rows": [Row(1, 2)]})
        staged = list(program.staged())
        for owner, change in staged:
            owner.backing.append(change)
        labels = {program.part(owner).label.split()[0] for owner, _ in staged}
        assert labels == {"input", "reduce"}
        store.commit(1)
        program.detach()
        assert program.pending is None
        assert not any(part.contents for part in program.parts)
        again.attach(store, limited=False)
        assert values(again)["sums"] == ZSet({(1, 2): 1})
        again.run(2, {"rows": [Row(1, 3)]})
        again.reload()
        assert values(again)["sums"] == ZSet({(1, 2): 1})


def test_memory_has_nothing_to_write_and_can_undo_again() -> None:
    program = sums()
    memory = Memory(program)
    memory.advance(1, {"rows": [Row(1, 2)]})
    for error in (ValueError(), None):
        memory.undo(error, 0)
        assert values(program)["sums"] == ZSet()
    program.machine.rollback = lambda: {}["what is not there"]  # type: ignore[method-assign]
    with pytest.raises(KeyError, match="what is not there"):
        memory.undo(ValueError(), 0)
    with pytest.raises(ViewClosed, match="of no use any more"):
        memory.undo(None, 0)
    with pytest.raises(CompositionError, match="knows its last epoch only"):
        memory.at(1)
    assert (memory.epoch, memory.rebuilt, memory.assumed) == (0, (), {})
