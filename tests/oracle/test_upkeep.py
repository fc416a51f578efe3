"""What `ebbflow state` does to a state: damaged in any way and repaired, a view has what computing
it from scratch gives at the epoch that the repair names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle.sales import Customer, Order, sales

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.sinks.sink import noted
from ebbflow.engine.runtime.upkeep.copies import compact, copy
from ebbflow.engine.runtime.upkeep.inspect import Inspection, inspect
from ebbflow.engine.runtime.upkeep.repair import Repaired, end_sink, repair
from ebbflow.errors import InUse, StateError
from ebbflow.state.spine import Folder, Snapshot

program = ef.program(
    cities=sales.group_by("city").agg(n=ef.count(), total=ef.sum("price"), most=ef.max("price")),
    last=sales.top_k(3, order=lambda row: (row.price, row.id)),
)
Values = dict[int, dict[str, Any]]


def steps(view: Any, known: dict[str, Any], values: Values, count: int, seed: int) -> None:
    """Run epochs of random changes; what computing from scratch gives at each goes to `values`."""
    dice = Random(seed)
    for _ in range(count):
        number = view.epoch + 1
        rows = [Order(dice.randrange(40), dice.randrange(6), dice.randrange(90)) for _ in range(9)]
        gone = [key for key in list(known["orders"]) if dice.random() < 0.1]
        kept = {row.id: row for row in rows if row.id not in gone}
        view.step(
            {"orders": ef.upsert(list(kept.values()), gone),
             "customers": {Customer(number % 6, f"city {number % 3}"): 1}},
            batch=("feed", number),
        )  # fmt: skip
        known["orders"] = {k: r for k, r in (known["orders"] | kept).items() if k not in gone}
        known["customers"].append(Customer(number % 6, f"city {number % 3}"))
        values[view.epoch] = expected(known)


def expected(known: dict[str, Any]) -> dict[str, Any]:
    rows = {
        "orders": ef.ZSet.of(known["orders"].values()),
        "customers": ef.ZSet.of(known["customers"]),
    }
    return dict(evaluate(program.plan, rows))


def copied(known: dict[str, Any]) -> dict[str, Any]:
    return {"orders": dict(known["orders"]), "customers": list(known["customers"])}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Values, dict[int, Any]]:
    """A state of twelve epochs, of which three are retained, with a sink that is behind."""
    path = tmp_path_factory.mktemp("upkeep") / "state"
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {}
    inputs: dict[int, Any] = {}
    with program.run(path=path, keep_epochs=3) as view:
        for i in range(12):
            steps(view, known, values, 1, i)
            inputs[view.epoch] = copied(known)
            if i == 8:
                view.each_epoch(lambda change, epoch: None, name="late")()
                view.each_epoch(lambda change, epoch: epoch > 10 and 1 / 0, name="stuck")
            if i == 9:
                view._all_sinks().active.clear()
    return path, values, inputs


def damage(file: Path, how: str, dice: Random) -> None:
    content = bytearray(file.read_bytes())
    if how == "gone":
        file.unlink()
    elif how == "short":
        file.write_bytes(content[: dice.randrange(len(content))])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        for _ in range(1 if how == "bit" else 50):
            at = dice.randrange(len(content))
            content[at] ^= 1 << dice.randrange(8)
        file.write_bytes(content)


def attempt(files: Folder, found: Inspection) -> tuple[str, Repaired | None]:
    """Repair without a loss, or by going back when that is what is asked for."""
    try:
        return "repaired", repair(files)
    except StateError as error:
        said = str(error)
    if not found.whole:
        assert "no epoch of this state is whole" in said
        return "lost", None
    assert "--back" in said
    done = repair(files, back=True)
    assert (done.epoch, done.content) == (found.epoch + 1, found.epochs[-1])
    return "gone back", done


def repaired(path: Path, values: Values, inputs: dict[int, Any]) -> str:
    """Verify, repair and go on; gives what had to be done."""
    files = Folder(path)
    found = inspect(files)
    told = "nothing"
    content = found.epoch
    if found.problems:
        told, done = attempt(files, found)
        if done is None:
            return told
        content = done.content
        assert inspect(files).problems == (), done
    with program.run(path=path, keep_epochs=3) as view:
        assert view.value == values[content], told
        later = copied(inputs[content])
        steps(view, later, {}, 2, 99)
        assert view.value == expected(later)
        assert view.verify()
    return told


KINDS = ["bit", "bits", "short", "empty", "gone"]


@pytest.mark.parametrize("how", KINDS)
def test_oracle_every_file_damaged_and_repaired(
    how: str, state: tuple[Path, Values, dict[int, Any]], tmp_path: Path
) -> None:
    path, values, inputs = state
    done = set()
    for number, name in enumerate(Folder(path).names()):
        if name.startswith("sink-"):
            continue
        for seed in range(2 if how == "bit" else 1):
            other = tmp_path / f"{number}-{seed}"
            shutil.copytree(path, other)
            damage(other / name, how, Random(f"{how} {number} {seed}"))
            done.add(repaired(other, values, inputs))
    assert "gone back" in done or how == "bit"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_oracle_several_files_damaged_and_repaired(
    seed: int, state: tuple[Path, Values, dict[int, Any]], tmp_path: Path
) -> None:
    path, values, inputs = state
    dice = Random(seed)
    for number in range(12):
        other = tmp_path / str(number)
        shutil.copytree(path, other)
        names = [name for name in Folder(path).names() if not name.startswith("sink-")]
        for name in dice.sample(names, dice.randrange(1, min(4, len(names)) + 1)):
            damage(other / name, dice.choice(KINDS), dice)
        repaired(other, values, inputs)


def test_what_an_operator_keeps_is_computed_again(tmp_path: Path) -> None:
    """Only the rows of inputs and the batches cannot be: with them, nothing is lost."""
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {}
    with program.run(path=tmp_path / "state") as view:
        steps(view, known, values, 5, 1)
    files = Folder(tmp_path / "state")
    compact(files)
    manifest = Snapshot(files).manifest
    labels = manifest.notes["parts"]
    rows = set(manifest.notes["rows"].values())
    outcome = {}
    for number, spine in enumerate(manifest.spines):
        other = tmp_path / str(number)
        shutil.copytree(tmp_path / "state", other)
        (ref,) = spine.segments
        content = bytearray((other / ref.file).read_bytes())
        content[ref.offset + ref.length - ref.directory + 2] ^= 1
        (other / ref.file).write_bytes(content)
        label = labels.get(spine.operator, spine.operator)
        (problem,) = inspect(Folder(other)).problems
        assert problem.epochs == (5,)
        if spine.operator in rows or label == "batches":
            with pytest.raises(StateError, match="no epoch of this state is whole"):
                repair(Folder(other), back=True)
            continue
        done = repair(Folder(other))
        assert done.lost == ()
        assert label in done.done[0]
        assert done.content == 5
        with program.run(path=other) as again:
            assert again.rebuilt == (label,)
            assert again.value == values[5]
            assert again.batches() == [(("feed", 5), 5)]
        outcome[label.split()[0]] = done
    assert {"reduce", "index", "top_k"} == set(outcome)


def test_going_back_never_uses_the_number_of_a_lost_epoch_again(tmp_path: Path) -> None:
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {}
    had: list[int] = []
    with program.run(path=tmp_path, keep_epochs=3) as view:
        view.each_epoch(lambda change, epoch: had.append(epoch), name="ahead")
        steps(view, known, values, 6, 1)
    newest = max(tmp_path.glob("epoch-*"))
    newest.write_bytes(newest.read_bytes()[:-30])
    done = repair(Folder(tmp_path), back=True)
    assert (done.epoch, done.content) == (7, 5)
    assert "epoch 6" in done.lost[0]
    assert "'ahead'" in done.lost[1]
    assert newest.name in {each.name for each in Path(done.aside).iterdir()}
    with program.run(path=tmp_path, keep_epochs=3) as view:
        assert view.epoch == 7
        assert view.value == values[5]
        assert view.at(5) == values[5]
        with pytest.raises(ef.EbbflowError, match="the changes of some after that are not there"):
            view.each_epoch(lambda change, epoch: None, name="ahead")
        view.end_sink("ahead")
        view.each_epoch(lambda change, epoch: None, name="ahead")
        view.step(batch=("feed", 6))  # it did not happen in what was gone back to
        assert view.batches()[-1] == (("feed", 6), 8)


# ---- copies ----


def test_a_copy_is_another_state_with_the_same_rows(
    state: tuple[Path, Values, dict[int, Any]], tmp_path: Path
) -> None:
    path, values, inputs = state
    for epoch in (None, 11, 10):
        other = Folder(tmp_path / str(epoch))
        made = copy(Folder(path), other, epoch)
        assert made.epoch == (epoch or 12)
        assert noted(other) == {}
        assert inspect(other).problems == ()
        assert len(other.names()) == 1
        with program.run(path=other.path) as view:
            assert view.value == values[made.epoch]
            assert view.batches()[-1] == (("feed", made.epoch), made.epoch)
            later = copied(inputs[made.epoch])
            steps(view, later, {}, 1, 5)
            assert view.value == expected(later)
    with pytest.raises(StateError, match="there is something in the place to copy to"):
        copy(Folder(path), other)
    with pytest.raises(StateError, match="epoch 3 is not there"):
        copy(Folder(path), Folder(tmp_path / "none"), 3)


def test_a_copy_that_takes_over_knows_how_far_sinks_are(
    state: tuple[Path, Values, dict[int, Any]], tmp_path: Path
) -> None:
    path, _, _ = state
    other = Folder(tmp_path / "other")
    copy(Folder(path), other, sinks=True)
    assert noted(other) == noted(Folder(path)) == {"stuck": 10}
    had: list[int] = []
    with program.run(path=other.path) as view:
        view.each_epoch(lambda change, epoch: had.append(epoch), name="stuck")
    assert had == [11, 12]


def test_a_state_is_copied_while_it_is_written(tmp_path: Path) -> None:
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {0: {}}
    with program.run(path=tmp_path / "state") as view:
        for i in range(5):
            steps(view, known, values, 3, i)
            made = copy(Folder(tmp_path / "state"), Folder(tmp_path / f"{i}"))
            assert made.epoch == view.epoch
            with program.run(path=tmp_path / f"{i}") as other:
                assert other.value == view.value
        with pytest.raises(InUse):
            compact(Folder(tmp_path / "state"))
        with pytest.raises(InUse):
            repair(Folder(tmp_path / "state"))


def test_compacted_every_part_is_one_segment_and_the_same(tmp_path: Path) -> None:
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {}
    with program.run(path=tmp_path, keep_epochs=2) as view:
        steps(view, known, values, 9, 3)
    before, after = compact(Folder(tmp_path))
    spines = Snapshot(tmp_path).manifest.spines
    assert before > after == len(spines)
    assert all(len(each.segments) == 1 for each in spines)
    assert inspect(Folder(tmp_path)).epochs == [8, 9]
    with program.run(path=tmp_path, keep_epochs=2) as view:
        assert (view.value, view.at(8)) == (values[9], values[8])
        steps(view, known, values, 3, 4)
        assert view.value == values[12]


def test_a_sink_that_is_gone_is_ended_from_outside(
    state: tuple[Path, Values, dict[int, Any]], tmp_path: Path
) -> None:
    shutil.copytree(state[0], tmp_path / "state")
    files = Folder(tmp_path / "state")
    with pytest.raises(ef.EbbflowError, match="there is no sink 'gone'"):
        end_sink(files, "gone")
    end_sink(files, "stuck")
    with program.run(path=files.path) as view:
        view.step()
        assert view.sinks == {}
        assert json.dumps(view._logged()) == "[]"
