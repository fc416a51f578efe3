"""Many threads and one view: one epoch at a time, and nobody sees half of one."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from ebbflow.errors import AbsentRow, ViewClosed
from ebbflow.flow.plan import Map
from ebbflow.fn import Fn
from ebbflow.zset import ZSet

recomputing: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "recomputing.py")))
view_of, WORDS = recomputing.view_of, recomputing.WORDS


@pytest.fixture(autouse=True)
def _threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Run these at the same time; raise what any of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def guarded(work: Callable[[], None]) -> None:
        try:
            start.wait(300)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def writer(view: Any, seed: int, sums: list[ZSet[Any]], steps: int = 200) -> Callable[[], None]:
    """Steps that add any rows, and remove some that this writer added; their sum in `sums`."""

    def work() -> None:
        choose = random.Random(seed)
        mine = ZSet[Any]()
        for _ in range(steps):
            change = ZSet.of(choose.choices("abcdefgh", k=choose.randint(0, 2)))
            if mine and choose.random() < 0.5:
                change -= ZSet({choose.choice(list(mine)): 1})
            view.step(words=change)
            mine += change
        sums.append(mine)

    return work


def test_eight_writers_come_to_the_sum_of_what_they_did() -> None:
    view = view_of(words=WORDS)
    sums: list[ZSet[Any]] = []
    heard: list[Any] = []
    view.on_change(heard.append)
    together(*(writer(view, seed, sums) for seed in range(8)))
    right = sum(sums, ZSet[Any]())
    assert len(sums) == 8
    assert view.value == right
    assert sum(heard, ZSet[Any]()) == right
    assert view.epoch == 8 * 200
    view.verify()


def test_two_writers_cannot_both_take_the_last_of_a_row() -> None:
    view = view_of(words=WORDS)
    taken: list[int] = []

    def take() -> None:
        for n in range(150):
            try:
                view.step(words={n: -1})
                taken.append(n)
            except AbsentRow:
                pass

    view.step(words=range(150))
    together(take, take, take)
    assert sorted(taken) == list(range(150))
    assert view.value == ZSet()
    assert view.epoch == 151


def test_readers_never_see_half_an_epoch() -> None:
    view = view_of(
        words=WORDS,
        doubled=Map(parent=WORDS, fn=Fn(lambda n: 2 * n)),
        negated=Map(parent=WORDS, fn=Fn(lambda n: -n)),
    )
    done = threading.Event()
    seen: set[int] = set()

    def write() -> None:
        try:
            for n in range(100_000):
                view.step(words={n: 1, n - 1: -1} if n else [n])
                if n >= 300 and len(seen) > 1:  # a busy machine may let readers wait
                    break
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            value = view.value
            assert value["doubled"] == value["words"].map(lambda n: 2 * n)
            assert value["negated"] == value["words"].map(lambda n: -n)
            assert len(value["words"]) <= 1
            seen.update(value["words"])

    together(write, read, read)
    assert len(seen) > 1


def test_callbacks_hear_of_epochs_in_their_order_whoever_made_them() -> None:
    view = view_of(words=WORDS)
    inside = threading.Lock()
    heard: list[Any] = []

    def callback(change: Any) -> None:
        assert inside.acquire(blocking=False), "two callbacks at the same time"
        heard.append(change)
        sleep(0.0002)
        inside.release()

    order = view.changes(limit=10_000)
    view.on_change(callback)
    together(*(lambda at=at: [view.step(words=[(at, n)]) for n in range(100)] for at in range(4)))
    assert [change["words"] for change in order._buffer] == [dict(c.items()) for c in heard]
    assert len(heard) == 400


def test_a_step_returns_when_its_callbacks_were_called() -> None:
    view = view_of(words=WORDS)
    heard: set[Any] = set()
    view.on_change(lambda change: sleep(0.0002) or heard.update(change))

    def work(at: int) -> None:
        for n in range(100):
            view.step(words=[(at, n)])
            assert (at, n) in heard

    together(*(lambda at=at: work(at) for at in range(4)))


def test_what_a_callback_raises_is_raised_in_the_thread_whose_step_it_heard_of() -> None:
    view = view_of(words=WORDS)

    def callback(change: Any) -> None:
        sleep(0.0002)
        raise ValueError(next(iter(change)))

    view.on_change(callback)

    def work(at: int) -> None:
        for n in range(100):
            with pytest.raises(ValueError) as caught:
                view.step(words=[(at, n)])
            assert caught.value.args == ((at, n),)

    together(*(lambda at=at: work(at) for at in range(4)))
    assert view.epoch == 400


def test_a_callback_may_wait_for_a_thread_that_reads_the_view() -> None:
    view = view_of(words=WORDS)
    seen: list[Any] = []

    def callback(change: Any) -> None:
        reader = threading.Thread(target=lambda: seen.append(view.value))
        reader.start()
        reader.join(300)
        assert not reader.is_alive()

    view.on_change(callback)
    view.step(words=["a"])
    assert seen == [ZSet({"a": 1})]


def test_callbacks_in_two_threads_may_step_the_view() -> None:
    view = view_of(words=WORDS)
    heard: list[Any] = []

    def answer(change: Any) -> None:
        heard.extend(change)
        for kind, at, n in change:
            if kind == "ping":
                view.step(words=[("pong", at, n)])

    view.on_change(answer)
    together(
        *(lambda at=at: [view.step(words=[("ping", at, n)]) for n in range(50)] for at in range(3))
    )
    assert len(heard) == 300
    assert set(heard) == set(view.value)


def test_closing_while_others_write_ends_them_cleanly() -> None:
    view = view_of(words=WORDS)
    started = threading.Event()

    def forever() -> None:
        while True:
            view.step(words=["a"])
            started.set()

    def write() -> None:
        with pytest.raises(ViewClosed):
            forever()

    def close() -> None:
        assert started.wait(300)
        view.close()

    together(write, write, close)


def test_subscribing_while_others_write_hears_of_every_epoch_from_then_on() -> None:
    view = view_of(words=WORDS)
    found: list[bool] = []

    def write() -> None:
        for n in range(200):
            view.step(words=[n])

    def subscribe() -> None:
        heard: list[Any] = []
        stop = view.on_change(lambda change: heard.extend(change))
        while len(heard) < 20:
            if view.epoch == 200:
                break
        stop()
        found.append(heard == list(range(heard[0], heard[0] + len(heard))) if heard else True)

    together(write, subscribe, subscribe)
    assert found == [True, True]
