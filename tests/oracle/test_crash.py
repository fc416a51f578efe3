"""Whatever moment the process dies at, the state is that of the last epoch that was acknowledged.

The oracle is a pair of dicts. A run of epochs is stopped before every call to the disk in turn, on
a disk that forgets what it may forget (`disk.py`); a few runs are killed for real.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ebbflow.errors import StateError
from ebbflow.state.spine import ABSENT, Files, Folder, Piece, Snapshot, Spine, Store
from ebbflow.state.spine.hashing import hashes

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("disk", HERE / "disk.py")
assert spec is not None
assert spec.loader is not None
disk: Any = importlib.util.module_from_spec(spec)
sys.modules["disk"] = disk
spec.loader.exec_module(disk)
Crash, Disk = disk.Crash, disk.Disk

EPOCHS = 24
KEYS = 60
CHUNK = 64
HOWS = ["lost", "kept", "torn"]
STRIDE = 13  # every thirteenth call; each way of crashing begins at another
State = tuple[dict[Any, dict[Any, int]], dict[Any, Any]]


def change(epoch: int) -> tuple[dict[Any, list[tuple[Any, int]]], dict[Any, Any]]:
    """What an epoch does to the bag and to the values; the same every time."""
    dice = Random(epoch)
    bag: dict[Any, list[tuple[Any, int]]] = {}
    for _ in range(40):
        key = dice.randrange(KEYS)
        bag.setdefault(key, []).append(((key, dice.choice("ab")), dice.choice([-1, 1, 1])))
    cells = {
        f"k{dice.randrange(KEYS)}": dice.choice([ABSENT, epoch, (epoch, "x")]) for _ in range(30)
    }
    return bag, cells


def oracle(epochs: int) -> list[State]:
    """The state after every epoch; the last entry is the one before the first."""
    bag: dict[Any, dict[Any, int]] = {}
    cells: dict[Any, Any] = {}
    found: list[State] = []
    for epoch in range(epochs):
        rows, values = change(epoch)
        bag = {key: dict(group) for key, group in bag.items()}
        for key, pairs in rows.items():
            group = bag.setdefault(key, {})
            for row, weight in pairs:
                group[row] = group.get(row, 0) + weight
            bag[key] = {row: weight for row, weight in group.items() if weight}
        bag = {key: group for key, group in bag.items() if group}
        cells = {k: v for k, v in {**cells, **values}.items() if v is not ABSENT}
        found.append((bag, cells))
    return [*found, ({}, {})]


STATES = oracle(EPOCHS + 8)


def spines(store: Snapshot) -> tuple[Any, Any]:
    return store.spine("rows", layout="bag"), store.spine("cells", 3, layout="value")


def add(store: Store, rows: Any, values: Any, tasks: int) -> None:
    """Stage an epoch: here, or by tasks that write pieces, one of which writes twice."""
    bag, cells = spines(store)
    if not tasks:
        bag.append(rows)
        cells.append(values)
        return
    for task in range(tasks):
        for attempt in range(2 if task == 1 else 1):
            own = Spine("bag", chunk=CHUNK), Spine("value", chunk=CHUNK)
            for spine, change in zip(own, (rows, values), strict=True):
                hashed = hashes(list(change)).tolist()
                mine = zip(change.items(), hashed, strict=True)
                spine.append(dict(item for item, at in mine if at * tasks >> 64 == task))
            piece = Piece(store.files, store.epoch + 1, f"{task}{attempt}")
            piece.add("rows", own[0])
            piece.add("cells", own[1])
            found = piece.finish()
        for name, layout, ref in found:
            store.adopt(name, ref, layout=layout, bucket=3 if name == "cells" else 0)


def run(
    files: Files, first: int, last: int, acknowledge: Any, tasks: int = 0, **options: Any
) -> None:
    """Epochs, with an occasional rollback and merge."""
    with_store = Store(files, chunk=CHUNK, **options)
    bag, _ = spines(with_store)
    for epoch in range(first, last):
        rows, values = change(epoch)
        if epoch % 7 == 3:
            bag.append({1: [((1, "z"), 5)]})
            with_store.rollback()
        add(with_store, rows, values, tasks)
        with_store.commit(epoch)
        acknowledge(with_store)
        if epoch % 9 == 5:
            with_store.work(200)
        if epoch == 17:
            with_store.compact()
    with_store.close()


def state(store: Snapshot) -> State:
    bag, cells = spines(store)
    rows = bag.probe(range(KEYS))
    values = cells.probe(f"k{i}" for i in range(KEYS))
    scanned: dict[Any, dict[Any, int]] = {}
    for key, row, weight in bag.scan():
        scanned.setdefault(key, {})[row] = weight
    assert scanned == rows
    assert {key: value for key, value, _ in cells.scan()} == values
    return rows, values


def uncrashed(**options: Any) -> Any:
    whole = Disk()
    run(whole, 0, EPOCHS, lambda store: None, **options)
    return whole


def calls(**options: Any) -> int:
    return int(uncrashed(**options).calls)


def crash(at: int, how: str, **options: Any) -> None:
    """Stop before one call, open what is left, compare, and go on from there."""
    broken = Disk(crash_at=at)
    safe = [-1]
    with pytest.raises(Crash):
        run(broken, 0, EPOCHS, lambda store: safe.append(store.safe), **options)
    left = broken.after(how, Random(at))
    with Store(left, verify=True, chunk=CHUNK) as store:
        assert safe[-1] <= store.epoch <= safe[-1] + options.get("group", 1)
        assert state(store) == STATES[store.epoch]
        assert not [name for name in left.names() if name.endswith(".tmp")]
        needed = store.manifest.files().union(*store.manifest.retained.values())
        assert set(left.names()) - {"newest"} <= needed
        again = store.epoch + 1
    run(left, again, again + 3, lambda store: None)
    with Store(left) as store:
        assert state(store) == STATES[again + 2]


@pytest.mark.parametrize("how", HOWS)
def test_a_sample_of_crashes_leaves_the_last_acknowledged_epoch(how: str) -> None:
    for at in range(HOWS.index(how), calls(), 401):
        crash(at, how)


def test_a_crash_between_a_rename_and_its_safety_leaves_one_or_the_other() -> None:
    for at in uncrashed().settles[::5]:
        crash(at, "torn")


def test_a_sample_of_crashes_with_epochs_retained_and_grouped() -> None:
    for at in range(0, calls(keep_epochs=3), 599):
        crash(at, "torn", keep_epochs=3)
    for at in range(0, calls(group=5), 151):
        crash(at, "torn", group=5)


@pytest.mark.parametrize("how", HOWS)
def test_a_sample_of_crashes_with_pieces_of_tasks(how: str) -> None:
    for at in range(HOWS.index(how), calls(tasks=3), 1_999):
        crash(at, how, tasks=3)


def test_a_crash_around_the_rename_never_leaves_a_manifest_without_its_pieces() -> None:
    points = uncrashed(tasks=3).settles
    for at in points[::13]:
        crash(at, "torn", tasks=3)
    for at in uncrashed(tasks=3, group=4).settles[::13]:
        crash(at, "torn", tasks=3, group=4)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"keep_epochs": 3}, {"group": 5}], ids=str)
def test_many_crashes_with_pieces_of_tasks(options: dict[str, int]) -> None:
    for at in range(0, calls(tasks=3, **options), 97):
        crash(at, "torn", tasks=3, **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_many_crashes_leave_the_last_acknowledged_epoch(how: str) -> None:
    total = calls()
    assert total > 1_000
    for at in range(HOWS.index(how), total, STRIDE):
        crash(at, how)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"keep_epochs": 3}, {"group": 5}], ids=str)
def test_many_crashes_with_epochs_retained_or_grouped(options: dict[str, int]) -> None:
    for at in range(3, calls(**options), STRIDE):
        crash(at, "torn", **options)


# ---- no room ----


def full(at: int, count: int) -> None:
    """The disk is full for some calls; an epoch that fails is tried again, or given up."""
    files = Disk(full_at=at, full_for=count)
    failed = 0
    store = Store(files, chunk=CHUNK)
    bag, cells = spines(store)
    for epoch in range(EPOCHS):
        rows, values = change(epoch)
        while True:
            bag.append(rows)
            cells.append(values)
            try:
                store.commit(epoch)
                break
            except StateError as error:
                said = str(error)
            assert "No space left" in said
            failed += 1
            store.rollback()
            assert state(store) == STATES[epoch - 1]
        assert state(store) == STATES[epoch]
    assert failed <= count
    store.close()
    files.full = range(0)
    with Store(files, verify=True) as store:
        assert state(store) == STATES[EPOCHS - 1]


def test_a_sample_of_full_disks_fails_the_epoch_and_nothing_else() -> None:
    for at in range(0, calls(), 997):
        full(at, 1)
        full(at, 5)


@pytest.mark.slow
def test_many_full_disks_fail_the_epoch_and_nothing_else() -> None:
    for at in range(0, calls(), 17):
        full(at, 1 + at % 7)


# ---- killed for real ----


class Killing(Folder):
    """A folder on whose n-th call the process is killed."""

    def __init__(self, path: str, at: int) -> None:
        super().__init__(path)
        self.left = at

    def call(self) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)

    def create(self, name: str) -> Any:
        self.call()
        writer = super().create(name)
        write, sync = writer.write, writer.sync

        def counted_write(data: bytes) -> None:
            self.call()
            write(data)

        def counted_sync() -> None:
            self.call()
            sync()
            self.call()

        writer.write, writer.sync = counted_write, counted_sync  # type: ignore[method-assign]
        return writer

    def publish(self, name: str, final: str) -> None:
        self.call()
        os.link(self.path / name, self.path / final)
        self.call()
        os.unlink(self.path / name)
        self.call()
        self.settle()
        self.call()

    def remove(self, name: str) -> None:
        self.call()
        super().remove(name)


def child(path: str, at: str) -> None:
    """Run, and say after each epoch that it is safe."""

    def acknowledge(store: Store) -> None:
        os.write(1, f"{store.safe}\n".encode())

    run(Killing(path, int(at)), 0, EPOCHS, acknowledge)


def forked(root: str, *points: str) -> None:
    """One process that is killed for each point, and a look at what it left."""
    for at in map(int, points):
        path = os.path.join(root, str(at))
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            os.dup2(into, 1)
            child(path, str(at))
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as said:
            safe = [-1, *map(int, said.read().split())][-1]
        _, status = os.waitpid(pid, 0)
        check_left(path, safe)
        print(at, "killed" if os.WIFSIGNALED(status) else "ended")


def check_left(path: str, safe: int) -> None:
    with Store(path, verify=True) as store:
        assert safe <= store.epoch <= safe + 1, (safe, store.epoch)
        assert state(store) == STATES[store.epoch]


def killed(tmp_path: Path, points: range) -> int:
    command = [sys.executable, __file__, "forked", str(tmp_path), *map(str, points)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.count("killed")


def test_a_process_killed_at_a_call_leaves_the_last_acknowledged_epoch(tmp_path: Path) -> None:
    points = range(5, 2_000, 397)
    assert killed(tmp_path, points) >= len(points) // 2


@pytest.mark.slow
def test_processes_killed_at_many_calls_leave_the_last_acknowledged_epoch(tmp_path: Path) -> None:
    assert killed(tmp_path, range(1, 1_500, 17)) > 60


@pytest.mark.parametrize(
    "rounds", [pytest.param(1, id="once"), pytest.param(25, id="often", marks=pytest.mark.slow)]
)
def test_a_process_killed_at_some_moment_leaves_the_last_acknowledged_epoch(
    tmp_path: Path, rounds: int
) -> None:
    for i in range(rounds):
        path = str(tmp_path / str(i))
        command = [sys.executable, __file__, "child", path, "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(Random(i).random() * 0.15)
        process.kill()
        rest, _ = process.communicate()
        check_left(path, int((first + rest).split()[-1]))


if __name__ == "__main__":
    {"child": child, "forked": forked}[sys.argv[1]](*sys.argv[2:])
