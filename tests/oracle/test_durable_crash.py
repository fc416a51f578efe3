"""Whatever happens to the process or to its files, a view on disk is never silently wrong.

The oracle is batch. A view is stopped before every call to the disk in turn, on a disk that forgets
what it may forget (`disk.py`); is killed for real at random moments; runs out of room; and finds
its files torn, flipped and gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.oracle import kept_shop as the_shop
from tests.oracle.disk import Crash, Disk
from tests.oracle.kept_shop import SHOP, Order, advance, change, inputs, right, shop

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.errors import InUse, StateError
from ebbflow.state.spine import Files

ROOT = Path(__file__).parents[2]
EPOCHS = 8
HOWS = ["lost", "kept", "torn"]
OPTIONS: list[dict[str, Any]] = [{}, {"memory": 1}, {"flush_every": 3}, {"keep_epochs": 3}]
# ---- stopped before a call to the disk ----


def calls(**options: Any) -> int:
    whole = Disk()
    the_shop.whole_life(whole, EPOCHS, [], **options)
    return int(whole.calls)


def crash(at: int, how: str, **options: Any) -> None:
    """Stop before one call, open what is left, compare, and go on from there."""
    broken, known = Disk(crash_at=at), [0]
    with pytest.raises(Crash):
        the_shop.whole_life(broken, EPOCHS, known, **options)
    left = broken.after(how, Random(at))
    with SHOP.run(path=left, **options) as view:
        group = options.get("flush_every", 1)
        assert known[-1] - group < view.epoch <= known[-1] + 1, (at, known[-1], view.epoch)
        assert view.rebuilt == ()
        right(view)
        advance(view, view.epoch + 2)
        right(view)
        view.verify()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_sample_of_crashes_leaves_the_last_acknowledged_epoch(options: dict[str, Any]) -> None:
    total = calls(**options)
    for at in range(OPTIONS.index(options), total, total // 5):
        crash(at, HOWS[at % 3], **options)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_crashes_leave_the_last_acknowledged_epoch(options: dict[str, Any], how: str) -> None:
    for at in range(HOWS.index(how), calls(**options), 29):
        crash(at, how, **options)


def changed_crash(at: int, how: str) -> bool:
    """Stop while a changed program is opened; both versions find their way after it."""
    state = Disk()
    with SHOP.run(path=state) as view:
        advance(view, 5)
    state.crash_at = state.calls + at
    try:
        shop(3).run(path=state).close()
        done = True
    except Crash:
        done = False
    for version in (SHOP, shop(3)):
        with version.run(path=state.after(how, Random(at))) as view:
            assert view.value == evaluate(version.plan, inputs(5))
            view.step(change(6))
            assert view.value == evaluate(version.plan, inputs(6))
    return done


def test_a_crash_while_a_changed_program_is_opened_spoils_nothing() -> None:
    at = 0
    while not changed_crash(at, HOWS[at % 3]):
        at += 29
    assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_many_crashes_while_a_changed_program_is_opened_spoil_nothing(how: str) -> None:
    at = HOWS.index(how)
    while not changed_crash(at, how):
        at += 5


# ---- no room ----


def refusal(call: Callable[[], Any]) -> str:
    """What a call is refused with, or nothing."""
    try:
        call()
    except (StateError, OSError) as error:
        return str(error)
    return ""


def full(at: int, count: int, **options: Any) -> int:
    """The disk is full for some calls; a step that fails is repeated. Gives how many failed."""
    files, failed, views = Disk(full_at=at, full_for=count), 0, list[Any]()
    while said := refusal(lambda: views.append(SHOP.run(path=files, **options))):
        assert "No space left" in said
        failed += 1
    view = views[0]
    for epoch in range(1, EPOCHS + 1):
        while said := refusal(lambda epoch=epoch: advance(view, epoch)):
            assert "could not be written" in said
            assert "No space left" in said
            failed += 1
            assert view.epoch == epoch - 1
            right(view)
        right(view, epoch)
    while refusal(view.close):
        assert files.locked
        right(view)
        failed += 1
    files.full = range(0)
    with SHOP.run(path=files, **options) as view:
        assert view.epoch == EPOCHS
        right(view)
        view.verify()
    return failed


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_full_disk_fails_the_step_which_can_be_repeated(options: dict[str, Any]) -> None:
    total = calls(**options)
    assert sum(full(at, 3, **options) for at in range(0, total, total // 4)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_full_disks_fail_the_step_which_can_be_repeated(options: dict[str, Any]) -> None:
    for at in range(0, calls(**options), 31):
        full(at, 1 + at % 5, **options)


def test_a_step_that_failed_for_want_of_room_may_be_given_up(tmp_path: Path) -> None:
    files = Disk()
    view = SHOP.run(path=files)
    advance(view, 3)
    files.full = range(files.calls, files.calls + 1)
    with pytest.raises(StateError, match="No space left"):
        view.step(orders=[Order(99, "a", 8)])
    right(view, 3)
    advance(view, 5)
    right(view, 5)
    view.close()
    with SHOP.run(path=files) as view:
        right(view, 5)


# ---- killed for real ----


def child(path: str, into: int) -> None:
    """Go on with the view at a path, and say after each epoch that it is safe."""
    view = SHOP.run(path=path, **OPTIONS[len(path) % 2])
    advance(view, 1 << 30, lambda epoch: os.write(into, f"{epoch}\n".encode()))


def forked(path: str, seed: str, rounds: str) -> None:
    """Processes that are killed at some moment, one after the other, on the same path."""
    dice, epoch = Random(seed), 0
    for _ in range(int(rounds)):
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(out)
            child(path, into)
        os.close(into)
        with os.fdopen(out) as said:
            first = said.readline()
            time.sleep(dice.random() * 0.03)
            os.kill(pid, signal.SIGKILL)
            known = [epoch, *map(int, (first + said.read()).split())][-1]
        os.waitpid(pid, 0)
        with SHOP.run(path=path) as view:
            assert known <= view.epoch <= known + 1, (known, view.epoch)
            assert view.rebuilt == ()
            right(view)
            epoch = view.epoch
    print(epoch)


def killed(tmp_path: Path, seed: int, rounds: int) -> int:
    words = [str(tmp_path / "state"), str(seed), str(rounds)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.oracle.test_durable_crash", *words], cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_process_killed_at_some_moment_leaves_the_last_acknowledged_epoch(tmp_path: Path) -> None:
    assert killed(tmp_path, 1, 4) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_processes_killed_at_many_moments_leave_the_last_acknowledged_epoch(
    tmp_path: Path, seed: int
) -> None:
    assert killed(tmp_path, seed, 30) >= 30


# ---- spoilt files ----


def damages(data: bytes, dice: Random) -> dict[str, bytes | None]:
    at = dice.randrange(len(data))
    flipped = data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
    return {
        "gone": None,
        "torn": data[:at],
        "flipped": flipped,
        "longer": data + b"\0",
        "empty": b"",
    }


def spoilt(folder: Path, seed: int, **options: Any) -> int:
    """Damage one file after the other; gives how often that was found."""
    dice, found = Random(seed), 0
    whole = folder / "whole"
    with SHOP.run(path=whole) as view:
        advance(view, 15)
    for file in sorted(whole.iterdir()):
        if file.name in ("lock", "newest"):
            continue
        for what, data in damages(file.read_bytes(), dice).items():
            shutil.rmtree(folder / "copy", ignore_errors=True)
            shutil.copytree(whole, folder / "copy")
            if data is None:
                (folder / "copy" / file.name).unlink()
            else:
                (folder / "copy" / file.name).write_bytes(data)
            said = refusal(lambda: used(folder / "copy", **options))
            assert not said or file.name in said, (what, said)
            found += bool(said)
    return found


def used(path: Path, **options: Any) -> None:
    with SHOP.run(path=path, **options) as view:
        view.verify()
        advance(view, 18)
        right(view, 18)
        view.verify()


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_a_spoilt_file_is_named_or_does_no_harm(tmp_path: Path, options: dict[str, Any]) -> None:
    assert spoilt(tmp_path, 3, **options) > 4


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_any_spoilt_file_is_named_or_does_no_harm(tmp_path: Path, options: dict[str, Any]) -> None:
    for seed in range(12):
        spoilt(tmp_path / str(seed), seed, **options)


# ---- two at once ----


def test_a_second_view_of_a_path_is_refused_while_the_first_is_open(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path) as view:
        advance(view, 2)
        with pytest.raises(InUse, match=f"(?s)open already.*process.*{os.getpid()}"):
            SHOP.run(path=tmp_path)
        code = "import sys; from ebbflow import Input; Input('a', int).run(path=sys.argv[1])"
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode
        assert "open already" in done.stderr
        assert str(os.getpid()) in done.stderr
        advance(view, 4)
    with SHOP.run(path=tmp_path) as view:
        right(view, 4)


def test_a_view_that_could_not_be_opened_keeps_nobody_out(tmp_path: Path) -> None:
    with SHOP.run(path=tmp_path) as view:
        advance(view, 2)
    with pytest.raises(StateError, match="another program"):
        ef.Input("words", str).run(path=tmp_path)
    with SHOP.run(path=tmp_path) as view:
        right(view, 2)


def test_files_of_another_kind_serve_as_a_path() -> None:
    files: Files = Disk()
    with SHOP.run(path=files) as view:
        advance(view, 2)
    with pytest.raises(StateError, match="Disk object"):
        ef.Input("words", str).run(path=files)


if __name__ == "__main__":
    forked(*sys.argv[1:])
