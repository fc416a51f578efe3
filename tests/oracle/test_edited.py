"""Programs on edited fields against batch, which sees whole rows only, after every change."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.oracle.edited_docs import Doc, Failing, Model, doc, program

import ebbflow as ef
from ebbflow.change import Delete, Insert, List, Text
from ebbflow.change.rope import Rope
from ebbflow.engine.batch import evaluate
from ebbflow.engine.batch.difference import mismatch
from ebbflow.operator import lists, text


class Memo(NamedTuple):
    id: int
    body: Text
    items: List[int]


memos = ef.Input("notes", Memo, key="id")
lengths = memos.select("id", up=text.upper("body"), n=lists.length("items"))


@pytest.fixture(autouse=True)
def _small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in (Rope, *Rope.__subclasses__()):
        monkeypatch.setattr(cls, "chunk", 4)
    monkeypatch.setattr(Rope, "fan", 4)


def agree(view: Any, model: Model) -> None:
    found = {name: view[name].value for name in program.plan.outputs}
    assert mismatch(evaluate(program.plan, model.inputs()), found) is None


@pytest.mark.parametrize("seed", range(4))
def test_004_O8_local_equals_batch_after_every_edit(seed: int) -> None:
    model, view = Model(seed), program.run()
    done = []
    for kind in model.steps(view, 40):
        agree(view, model)
        done.append(kind)
    assert "edit" in done


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_oracle_local_equals_batch_in_long_runs(seed: int) -> None:
    model, view = Model(seed), program.run()
    for _ in model.steps(view, 150):
        agree(view, model)


def test_oracle_durable_equals_batch_also_when_it_is_opened_again(tmp_path: Path) -> None:
    model = Model(7)
    for _ in range(4):
        with program.run(path=tmp_path / "state") as view:
            for _ in model.steps(view, 6):
                pass
            agree(view, model)
    with program.run(path=tmp_path / "state", memory="1MB") as view:
        for _ in model.steps(view, 8):
            agree(view, model)


def test_texts_on_disk_are_read_without_trust(tmp_path: Path) -> None:
    for _ in range(2):
        with lengths.run(path=tmp_path / "state", unpickle=False) as view:
            view.input("notes").upsert(Memo(1, "ebb", [1]))  # type: ignore[arg-type]
            view.input("notes").edit(1, "body", Insert(3, "s"))
            assert view.value == ef.ZSet.of([(1, "EBBS", 1)])


def test_a_refused_epoch_changes_nothing_and_the_next_edit_is_right() -> None:
    model, view = Model(3), program.run()
    row: Any = doc(model.rnd, 1)._replace(body="ebb\n# flow")
    model.rows[1] = row
    view.input("docs").add(row)
    before = {name: view[name].value for name in program.plan.outputs}
    with pytest.raises(ef.EbbflowError, match="not this text"):
        view.input("docs").edit(1, "body", Insert(0, Failing.WORD))
    with pytest.raises(ef.EbbflowError, match="not a valid change"):
        view.input("docs").edit(1, "body", Insert(3, "x"), Delete(0, 99))
    assert {name: view[name].value for name in program.plan.outputs} == before
    model.rows[1] = row._replace(body="bb\n# flow")
    view.input("docs").edit(1, "body", Delete(0, 1))
    agree(view, model)
    assert view.verify()


def test_a_branch_is_edited_beside_its_view() -> None:
    model, view = Model(5), program.run()
    for _ in model.steps(view, 12):
        pass
    at = next(iter(model.rows))
    branch = view.branch()
    branch.input("docs").edit(at, "body", Insert(0, "ebb ebb"))
    assert branch.verify()
    old: Doc = model.rows[at]
    model.rows[at] = old._replace(body=Text("sea " + str(old.body)))
    view.input("docs").edit(at, "body", Insert(0, "sea "))
    agree(view, model)
