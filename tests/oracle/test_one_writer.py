"""One process writes to a state, and nobody is told "done" who was not the one.

Forked processes, locks and folders that go away while a view is open, two writers who meet, and
views that are dropped or left open at exit.
"""

from __future__ import annotations

import errno
import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.interrupts import interrupted
from tests.oracle.kept_shop import SHOP, advance, change, right

import ebbflow as ef
from ebbflow.errors import InUse, Lost, StateError
from ebbflow.state.spine import Folder, Snapshot, Store

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
ROOT = Path(__file__).parents[2]
WAYS: list[dict[str, Any]] = [{}, {"memory": 1}, {"flush_every": 3}]


def in_a_fork(act: Callable[[], object]) -> str:
    """What an act says, or is refused with, in a forked process."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            said = str(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as told:
        found = told.read()
    assert os.waitpid(pid, 0)[1] == 0
    return found


def files_of(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.iterdir() if each.is_file()}


# ---- forked processes ----


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_forked_process_can_read_a_view_and_cannot_step_it(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with SHOP.run(path=tmp_path, **options) as view:
        advance(view, 4)
        before = files_of(tmp_path)
        assert "Lost: this state was opened by another process" in in_a_fork(
            lambda: view.step(change(5))
        )
        assert "Lost" in in_a_fork(lambda: view.input("orders").add(SHOP))
        assert in_a_fork(lambda: right(view, 4)) == "None"
        assert in_a_fork(view.close) == "None"
        assert files_of(tmp_path) == before
        advance(view, 8)
        right(view, 8)
    with SHOP.run(path=tmp_path) as view:
        right(view, 8)


def test_a_store_cannot_be_written_by_a_forked_process(tmp_path: Path) -> None:
    with Store(tmp_path, group=4) as store:
        cells = store.spine("n", layout="value")
        for epoch in range(6):
            cells.append({epoch: epoch})
            store.commit(epoch)
        for act in (lambda: store.commit(6), store.flush, store.work, store.compact):
            assert in_a_fork(act).startswith("Lost")
        assert store.epoch == 5
    assert Snapshot(tmp_path).epoch == 5


def test_a_process_that_lives_on_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    view = SHOP.run(path=tmp_path)
    hold, release = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(release)
        os.read(hold, 1)
        os._exit(0)
    try:
        view.close()
        with SHOP.run(path=tmp_path) as view:
            advance(view, 2)
    finally:
        os.close(release)
        os.close(hold)
        os.waitpid(pid, 0)


# ---- the lock ----


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_view_whose_lock_was_removed_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """Two writers, the second one let in by somebody who removed the lock of the first."""
    first = SHOP.run(path=tmp_path, **options)
    advance(first, 4)
    (tmp_path / "lock").unlink()
    with pytest.raises(Lost, match="its lock was"):
        first.step(change(5))
    with SHOP.run(path=tmp_path) as second:
        with pytest.raises(Lost):
            first.step(change(5))
        epoch = second.epoch
        advance(second, epoch + 2)
        right(first, 4)
        before = files_of(tmp_path)
        if options.get("flush_every"):
            with pytest.raises(Lost):
                first.close()
        first.close()
        assert files_of(tmp_path) == before
        advance(second, epoch + 4)
        right(second)


def test_a_lock_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("do not lose me")
    (tmp_path / "state").mkdir()
    for link in (os.symlink, os.link):
        link(precious, tmp_path / "state" / "lock")
        with pytest.raises(StateError, match="cannot be kept here"):
            SHOP.run(path=tmp_path / "state")
        assert precious.read_text() == "do not lose me"
        (tmp_path / "state" / "lock").unlink()
    (tmp_path / "state" / "lock").write_text("a file of mine")
    with pytest.raises(StateError, match="something else"):
        SHOP.run(path=tmp_path / "state")
    assert (tmp_path / "state" / "lock").read_text() == "a file of mine"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_whoever_is_interrupted_while_taking_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    for point in range(1, 5000):
        if not interrupted(lambda: Folder(tmp_path / "state").lock(), point, published=False):
            break
        again = Folder(tmp_path / "state")
        again.lock()
        again.unlock()
    assert 50 < point < 4999


def test_a_lock_of_a_process_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("123456789\n")
    with Store(tmp_path):
        assert (tmp_path / "lock").read_text().strip() == str(os.getpid())
        with pytest.raises(InUse, match=str(os.getpid())):
            Store(tmp_path)
    with Store(tmp_path) as store:
        store.commit(0)


# ---- the folder ----


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("how", ["removed", "made anew", "moved", "copied"])
def test_a_view_whose_folder_is_another_one_acknowledges_nothing(
    tmp_path: Path, how: str, options: dict[str, Any]
) -> None:
    path = tmp_path / "state"
    view = SHOP.run(path=path, **options)
    advance(view, 4)
    if how == "removed":
        shutil.rmtree(path)
    else:
        path.rename(tmp_path / "elsewhere")
        if how == "made anew":
            path.mkdir()
        elif how == "copied":
            shutil.copytree(tmp_path / "elsewhere", path)
    before = files_of(path) if path.exists() else None
    for _ in range(2):
        with pytest.raises(Lost, match="was removed or replaced"):
            view.step(change(5))
    right(view, 4)
    if options.get("flush_every"):
        with pytest.raises(Lost):
            view.close()
    view.close()
    assert (files_of(path) if path.exists() else None) == before
    if how == "moved":
        with SHOP.run(path=tmp_path / "elsewhere") as view:
            right(view)


def test_a_folder_behind_a_link_is_held_as_well(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    path = tmp_path / "state"
    path.symlink_to("a")
    with SHOP.run(path=path) as view:
        advance(view, 2)
        path.unlink()
        path.symlink_to("b")
        with pytest.raises(Lost):
            view.step(change(3))
        path.unlink()
        path.symlink_to("a")
        advance(view, 3)
        right(view, 3)


# ---- publishing ----


def test_an_epoch_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    """As when two writers were let in after all."""
    with Store(tmp_path) as store:
        store.commit(0)
        cells = store.spine("n", layout="value")
        cells.append({1: "mine"})
        (tmp_path / "epoch-000000000001-0000").write_bytes(b"theirs")
        with pytest.raises(InUse, match="somebody else has written this epoch"):
            store.commit(1)
        assert store.epoch == 0
        assert (tmp_path / "epoch-000000000001-0000").read_bytes() == b"theirs"
        assert not [each for each in tmp_path.iterdir() if each.suffix == ".tmp"]


@pytest.mark.parametrize("taken", [True, False])
def test_a_file_system_without_hard_links_does_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    def refused(*args: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with SHOP.run(path=tmp_path) as view:
        advance(view, 3)
        if taken:
            (tmp_path / "epoch-000000000004-0000").write_bytes(b"theirs")
            with pytest.raises(InUse, match="somebody else"):
                view.step(change(4))
            right(view, 3)
            (tmp_path / "epoch-000000000004-0000").unlink()
        advance(view, 5)
    with SHOP.run(path=tmp_path) as view:
        right(view, 5)


def test_whether_a_file_was_published_is_known_at_every_moment(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    names = "a.tmp", "a"
    assert not folder.published(*names)
    (tmp_path / "a.tmp").write_text("a")
    assert not folder.published(*names)
    os.link(tmp_path / "a.tmp", tmp_path / "a")
    assert folder.published(*names)
    os.unlink(tmp_path / "a.tmp")
    assert folder.published(*names)
    (tmp_path / "a.tmp").write_text("a")
    assert not folder.published(*names)


# ---- views that nobody closes ----


@pytest.mark.parametrize(
    "end",
    [
        "raise ValueError",
        pytest.param("", marks=pytest.mark.slow),
        pytest.param("sys.exit(3)", marks=pytest.mark.slow),
        pytest.param("forked()", marks=pytest.mark.slow),
    ],
)
def test_epochs_that_wait_are_written_at_exit(tmp_path: Path, end: str) -> None:
    code = f"""
import os, sys
from tests.oracle.kept_shop import SHOP, advance
def forked():
    pid = os.fork()
    if not pid:
        sys.exit(0)
    os.waitpid(pid, 0)
    advance(view, 9)
view = SHOP.run(path={str(tmp_path)!r}, flush_every=100)
advance(view, 8)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert not done.stderr or "raise ValueError" in code, done.stderr
    with SHOP.run(path=tmp_path) as view:
        right(view, 9 if end == "forked()" else 8)


def test_a_view_that_is_dropped_is_written_and_lets_others_in(tmp_path: Path) -> None:
    view = SHOP.run(path=tmp_path, flush_every=100)
    advance(view, 5)
    del view
    gc.collect()
    with SHOP.run(path=tmp_path) as view:
        right(view, 5)


def test_exit_waits_for_a_step_that_is_under_way(tmp_path: Path) -> None:
    started, go = threading.Event(), threading.Event()

    def slow(n: int) -> int:
        if n == 7:
            started.set()
            go.wait(300)
        return n

    view = ef.Input("n", int).map(slow, type=int).run(path=tmp_path, flush_every=100)
    view.step(n=[1])
    thread = threading.Thread(target=lambda: view.step(n=[7]))
    thread.start()
    assert started.wait(300)
    closing = threading.Thread(target=view._storage._end)
    closing.start()
    time.sleep(0.02)
    assert Snapshot(tmp_path).epoch == 0
    go.set()
    closing.join()
    thread.join()
    assert Snapshot(tmp_path).epoch == 2


def test_a_view_that_was_closed_is_not_closed_again(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path) as first:
        advance(first, 1)
    with SHOP.run(path=tmp_path) as second:
        del first
        gc.collect()
        advance(second, 3)
        with pytest.raises(InUse):
            SHOP.run(path=tmp_path)
