"""Whatever an object store answers, or does not, a view on it is never silently wrong.

The oracle is batch. The store is moto over HTTP (`tests/object_server.py`): answers are lost after
the put has happened, puts are retried, lists are old, downloads are cut. A view is stopped before
and after each of its requests; and two processes take the state away from each other.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest
from tests.object_server import Crash, ObjectServer, Request, Stopped, on, place, server
from tests.oracle import kept_shop
from tests.oracle.stepping import SAID

import ebbflow as ef
from ebbflow.errors import InUse, Lost, StateError, Unsure
from ebbflow.state.spine import cache, objects

__all__ = ["place", "server"]
SHOP = kept_shop.SHOP
advance, change, right = kept_shop.advance, kept_shop.change, kept_shop.right
EPOCHS = 6


# ---- answers that go wrong ----


@pytest.mark.parametrize("options", [{"keep_epochs": 3}, {"flush_every": 3}], ids=str)
def test_oracle_a_view_on_an_object_store_equals_batch(place: Any, options: Any) -> None:
    with SHOP.run(path=place, **options) as view:
        advance(view, 12, lambda _: right(view))
    with SHOP.run(path=place, **options) as view:
        assert (view.epoch, view.rebuilt) == (12, ())
        right(view)
        view.verify()
        assert ef.open(place, SHOP, unpickle=True).value == view.value


def test_oracle_random_faults_fail_no_step_and_nothing_is_counted_twice(
    server: ObjectServer, place: Any
) -> None:
    dice = Random(3)
    faults = ["lost", "late", "drop", 500, 503, -500, "cut"]

    def fault(request: Request) -> Any:
        again = len(server.requests) > 1 and server.requests[-2].path == request.path
        spared = request.what in ("LIST", "DELETE", "HEAD") or request.name == "owner"
        return dice.choice(faults) if not spared and not again and dice.random() < 0.5 else None

    with SHOP.run(path=place) as view, server.faulty(fault):
        advance(view, 10, lambda _: right(view))
    with SHOP.run(path=server.again(place)) as view:
        assert view.epoch == 10
        right(view)
        view.verify()


@pytest.mark.parametrize("happened", [True, False])
def test_an_epoch_of_which_nobody_can_tell_is_known_when_the_store_answers(
    server: ObjectServer, place: Any, happened: bool
) -> None:
    hasty = server.again(place, patience=0.1, cache=place.cache)
    with SHOP.run(path=hasty) as view:
        advance(view, 3)
        down: list[Request] = []

        def fault(request: Request) -> Any:
            if request.name == "owner":
                return None
            down.append(request)
            return "lost" if happened and len(down) == 1 else "drop"

        with server.faulty(fault):
            with pytest.raises(Unsure, match="nobody can tell"):
                view.step(change(4))
            with pytest.raises(Unsure, match="nobody can tell"):
                view.epoch
        assert view.epoch == (4 if happened else 3)
        right(view)
        advance(view, 6)
        right(view)


def test_a_refused_put_fails_the_step_and_leaves_the_state_untouched(
    server: ObjectServer, place: Any
) -> None:
    with SHOP.run(path=place) as view:
        advance(view, 3)
        before = server.names(place)

        def refuse(*_: Any) -> Any:
            raise PermissionError("403")

        files = view._storage.files
        files.bucket.create, kept = refuse, files.bucket.create
        with pytest.raises(StateError, match="could not be written"):
            view.step(change(4))
        assert (view.epoch, server.names(place)) == (3, before)
        right(view)
        files.bucket.create = kept
        advance(view, 4)
        right(view)


def test_a_list_that_is_old_does_not_hide_the_newest_epoch(
    server: ObjectServer, place: Any
) -> None:
    with SHOP.run(path=place, keep_epochs=9) as view:
        advance(view, 2)
    stale = server.faulty(on("LIST", "stale", times=99))
    with stale, pytest.raises(InUse, match="somebody else has written"):
        SHOP.run(path=place)
    server.lists.clear()
    ef.open(place, SHOP)
    with server.faulty(on("LIST", "stale", times=99)), SHOP.run(path=place, keep_epochs=9) as view:
        advance(view, 4)
    with server.faulty(on("LIST", "stale", times=99)):
        assert ef.open(place, SHOP).epoch == 4
        with SHOP.run(path=place, keep_epochs=9) as view:
            assert view.epoch == 4
            advance(view, 6)
            right(view)


def test_oracle_of_large_objects_the_blocks_are_downloaded_that_are_needed(
    server: ObjectServer, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "WHOLE", 100)
    monkeypatch.setattr(cache, "BLOCK", 512)
    with SHOP.run(path=place, keep_epochs=2) as view:
        advance(view, 9)
    elsewhere = server.again(place, cache=f"{place.cache}-of-another-machine")
    with server.faulty(on("GET", "cut", times=2, name="epoch-")):
        view = SHOP.run(path=elsewhere, keep_epochs=2)
    right(view)
    advance(view, view.epoch + 3)
    right(view)
    view.verify()
    assert ef.open(elsewhere, SHOP, unpickle=True).value == view.value
    view.close()


# ---- stopped at a request ----


def crash(
    server: ObjectServer, stopped: Stopped, folder: Path, at: int, after: bool, **options: Any
) -> bool:
    """Stop at a request, open what is left, compare, and go on; whether it came so far."""
    place, known = server.place(cache=folder, lease=1e6), [0]
    stopped.within(at, after)
    try:
        kept_shop.whole_life(place, EPOCHS, known, **options)
        came = False
    except Crash:
        came = True
    stopped.over()
    with SHOP.run(path=server.again(place, cache=folder, take_over=True), **options) as view:
        group = options.get("flush_every", 1)
        assert known[-1] - group < view.epoch <= known[-1] + 1, (at, known[-1], view.epoch)
        assert view.rebuilt == ()
        right(view)
        advance(view, view.epoch + 2)
        right(view)
        view.verify()
    return came


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_sample_of_crashes_leaves_the_last_acknowledged_epoch(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    stopped = Stopped(monkeypatch)
    for at in (1, 14) if after else (9, 16):
        assert crash(server, stopped, tmp_path, at, after)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("options", [{}, {"flush_every": 3}, {"keep_epochs": 3}], ids=str)
def test_every_crash_leaves_the_last_acknowledged_epoch(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, options: Any
) -> None:
    stopped, at = Stopped(monkeypatch), 0
    while crash(server, stopped, tmp_path, at, after, **options):
        at += 1
    assert at > 12


# ---- two at once ----


def test_who_takes_over_fences_the_other_off_whose_step_changes_nothing(
    server: ObjectServer, place: Any
) -> None:
    first = SHOP.run(path=place)
    advance(first, 3)
    with pytest.raises(InUse, match="open already"):
        SHOP.run(path=place)
    second = SHOP.run(path=server.again(place, take_over=True))
    before = server.names(place)
    with pytest.raises(Lost, match="taken over"):
        first.step(change(4))
    assert server.names(place) == before
    right(first, 3)
    advance(second, 6)
    first.close()
    advance(second, 8)
    right(second)
    second.close()
    with SHOP.run(path=place) as view:
        right(view, 8)


def test_of_two_who_publish_one_epoch_one_wins_and_the_other_has_changed_nothing(
    server: ObjectServer, place: Any
) -> None:
    """The other takes over between the look and the put: the name is there, or is not."""
    first = SHOP.run(path=place)
    advance(first, 3)
    owner = first._storage.files.owner
    second = SHOP.run(path=server.again(place, take_over=True))
    owner.confirm = lambda: None
    advance(first, 4)
    with pytest.raises(InUse, match="somebody else has written this epoch"):
        second.step(change(4))
    assert second.epoch == 3
    second.close()
    with SHOP.run(path=server.again(place, take_over=True)) as third:
        right(third, 4)
        advance(third, 5)
        with pytest.raises(InUse):
            first.step(change(5))
        first.close()
        right(third, 5)
        third.verify()


def fight(server: ObjectServer, folder: Path, steps: int, seed: int) -> int:
    """Two processes at once; gives how often the one came after the other."""
    place = server.place(cache=folder)
    script = Path(__file__).with_name("stepping.py")
    command = [sys.executable, str(script), place.url, server.url, str(folder)]
    both = [
        subprocess.Popen([*command, name, str(steps), str(seed)], stdout=-1, stderr=-1)
        for name in "ab"
    ]
    said = [each.communicate() for each in both]
    assert all(each.returncode == 0 for each in both), said[0][1] + said[1][1]
    lines = [line.split() for out, _ in said for line in out.decode().splitlines()]
    epochs = {int(epoch): name for epoch, name, _ in lines}
    assert len(epochs) == len(lines), "two have been told that an epoch was theirs"
    assert Counter(name for _, name, _ in lines) == {"a": steps, "b": steps}
    with SAID.run(path=server.again(place, cache=folder, take_over=True)) as view:
        assert dict(view.value.items()) == {(n, i): 1 for n in "ab" for i in range(steps)}
        assert view.epoch == max(epochs) == len(epochs)
    order = [epochs[each] for each in sorted(epochs)]
    return sum(one != other for one, other in pairwise(order))


def test_two_processes_at_once_acknowledge_every_epoch_once(
    server: ObjectServer, tmp_path: Path
) -> None:
    fight(server, tmp_path, 4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_at_once_acknowledge_every_epoch_once_hundreds_of_times(
    server: ObjectServer, tmp_path: Path, seed: int
) -> None:
    assert fight(server, tmp_path, 150, seed) > 20


# ---- killed for real ----


@pytest.mark.slow
def test_processes_killed_at_many_moments_leave_what_they_have_acknowledged(
    server: ObjectServer, tmp_path: Path
) -> None:
    place, dice, known = server.place(cache=tmp_path), Random(7), 0
    script = Path(__file__).with_name("stepping.py")
    for life in range(12):
        command = [sys.executable, str(script), place.url, server.url, str(tmp_path), f"{life}"]
        process = subprocess.Popen([*command, "1000", "once"], stdout=-1, text=True)
        assert process.stdout is not None
        said = [process.stdout.readline()]
        sleep(dice.random() * 0.3)
        process.kill()
        said += process.stdout.readlines()
        process.stdout.close()
        process.wait()
        last = int(said[-1].split()[2]) if len(said[-1].split()) == 3 else int(said[-2].split()[2])
        with SAID.run(path=place) as view:  # the one who had it is no more: nobody is asked
            rows = {row: weight for row, weight in view.value.items() if row[0] == f"{life}"}
            assert last <= len(rows) <= last + 1
            assert set(rows.values()) == {1}
            known += len(rows)
            assert sum(weight for _, weight in view.value.items()) == known
