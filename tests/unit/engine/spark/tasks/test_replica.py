"""A program whose state is elsewhere: it takes what it needs, stages what it did, and forgets."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import ebbflow as ef
from ebbflow.engine.runtime.inputs import BagInput, SharedInput
from ebbflow.engine.runtime.keyed_input import KeyedInput
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.errors import AbsentRow, ChangeError, FunctionFailed
from ebbflow.flow.plan import Plan
from ebbflow.state.spine import Snapshot, Store
from ebbflow.testing import random_epochs, random_program
from ebbflow.zset import ZSet


class Row(NamedTuple):
    k: int
    v: int


A, B = ef.Input("a", Row), ef.Input("b", Row)


def replica_of(rows: Any, **options: Any) -> Replica:
    return Replica(Plan({"output": rows.node}), **options)


def test_what_a_task_did_is_staged_and_forgotten(tmp_path: Path) -> None:
    replica = replica_of(A.group_by("k").agg(s=ef.sum("v")))
    with Store(tmp_path) as store:
        store.commit(0)
        replica.open(store)
        moved = replica.all_at_once({"a": ZSet.of([Row(1, 2), Row(1, 3)])})
        assert moved == {"output": {(1, 5): 1}}
        changed = {name for name, _ in replica.changed_spines()}
        labels = {part.label.split()[0] for part in replica.parts if part.name in changed}
        assert labels == {"input", "reduce"}
        store.commit(1)
        replica.detach()
        assert not any(part.contents for part in replica.parts)
        replica.open(Snapshot(tmp_path, unpickle=True))
        moved = replica.all_at_once({"a": ZSet({Row(1, 2): -1})})
        assert moved == {"output": {(1, 5): -1, (1, 3): 1}}


def test_a_task_that_fails_leaves_nothing_for_the_next(tmp_path: Path) -> None:
    replica = replica_of(A.map(lambda row: 10 // row.v, type=int).distinct())
    with Store(tmp_path) as store:
        store.commit(0)
        replica.open(store)
        with pytest.raises(FunctionFailed):
            replica.all_at_once({"a": ZSet.of([Row(1, 1), Row(1, 0)])})
        store.rollback()
        replica.open(store)
        assert replica.all_at_once({"a": ZSet.of([Row(1, 1)])}) == {"output": {10: 1}}


def test_an_input_whose_rows_an_index_has_does_not_keep_them_again() -> None:
    joined = replica_of(A.join(B, on="k", select=lambda left, right: (left.v, right.v)))
    assert {type(state) for state in joined.inputs.values()} == {SharedInput}
    assert type(replica_of(A.distinct()).inputs["a"]) is BagInput
    assert type(replica_of(ef.Input("a", Row, key="k").distinct()).inputs["a"]) is KeyedInput
    trusting = replica_of(A.distinct(), check_input=False)
    assert not trusting.inputs["a"].keeps


def test_an_index_tells_when_a_row_is_not_there(tmp_path: Path) -> None:
    replica = replica_of(A.join(B, on="k", select=lambda left, right: (left.v, right.v)))
    with Store(tmp_path) as store:
        store.commit(0)
        replica.open(store)
        with pytest.raises(AbsentRow, match="input 'a'"):
            replica.all_at_once({"a": ZSet({Row(1, 2): -1})})


@pytest.mark.parametrize("asked", [ef.upsert([Row(1, 2)]), ef.delete([1])])
def test_only_inputs_with_keys_are_changed_by_key(asked: Any, tmp_path: Path) -> None:
    replica = replica_of(A.distinct())
    with Store(tmp_path) as store:
        store.commit(0)
        replica.open(store)
        with pytest.raises(ChangeError, match=f"{asked.verb}: input 'a' has no key"):
            replica.all_at_once({"a": asked})


def test_names_that_are_known_need_not_be_found_again() -> None:
    plan = Plan({"output": A.join(B, on="k", select=lambda left, right: left.v).node})
    first = Replica(plan)
    again = Replica(plan, names=first.names)
    assert [part[:2] for part in again.parts] == [part[:2] for part in first.parts]


@pytest.mark.parametrize("seed", range(12))
def test_a_replica_that_forgets_everything_is_as_good_as_one_that_does_not(
    seed: int, tmp_path: Path
) -> None:
    program = random_program(seed)
    forgetful = Replica(program.plan)
    view = program.run()
    with Store(tmp_path) as store:
        store.commit(0)
        for epoch in random_epochs(program, Random(seed), 6):
            try:
                wanted = view.step(epoch)
            except ef.EbbflowError:
                continue
            used = {name: rows for name, rows in epoch.items() if name in program.plan.sources}
            forgetful.open(store)
            found = forgetful.all_at_once(used)
            store.commit(store.epoch + 1)
            forgetful.detach()
            if isinstance(wanted, ZSet):
                wanted = dict.fromkeys(program.plan.outputs, wanted)
            moved = {name: ZSet(rows) for name, rows in found.items()}
            assert {n: moved.get(n, ZSet()) for n in wanted} == wanted
