"""What large epochs have brought is out of the collector's way, and nothing else for long."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest

import ebbflow as ef
from ebbflow.engine.runtime import gc_paused
from ebbflow.record import record

Hit = record("Hit", page=int, at=int)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Epochs are large from 2,000 rows on, and none follows another closely; nothing is frozen
    before and behind."""
    monkeypatch.setattr(gc_paused, "FREEZE", 2_000)
    monkeypatch.setattr(gc_paused, "BUSY", -1)
    monkeypatch.setattr("ebbflow.engine.runtime.machine.LARGE", 1_000)
    held = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if held:
        gc.freeze()


def loaded(rows: int = 3_000, **options: Any) -> Any:
    hits = ef.Input("hits", Hit)
    view = hits.group_by("page").agg(last=ef.max("at")).run(**options)
    view.step(hits=[Hit(n, n) for n in range(rows)])
    return view


def test_a_large_epoch_is_frozen_until_its_view_is_closed() -> None:
    view = loaded()
    assert gc.get_freeze_count() > 3_000
    view.step(hits=[Hit(1, 7)])
    view.close()
    assert gc.get_freeze_count() == 0


def test_or_dropped() -> None:
    view = loaded()
    dead = ref(view)
    del view
    assert dead() is None
    assert gc.get_freeze_count() == 0


def test_as_long_as_another_view_has_something_frozen_all_stays() -> None:
    one, other = loaded(), loaded()
    one.close()
    assert gc.get_freeze_count() > 3_000
    other.close()
    assert gc.get_freeze_count() == 0


def test_a_view_that_is_lost_in_a_cycle_is_found_when_another_is_closed() -> None:
    class Node:
        view: Any

    other, node = loaded(), Node()
    node.me = node  # type: ignore[attr-defined]
    node.view = loaded()
    lost = ref(node.view)
    del node
    gc.collect()
    assert lost() is not None, "it is frozen"
    other.close()
    assert lost() is None
    assert gc.get_freeze_count() == 0


def test_garbage_of_the_host_is_collected_and_not_frozen() -> None:
    class Node:
        pass

    a, b = Node(), Node()
    a.other, b.other = b, a  # type: ignore[attr-defined]
    gone = ref(a)
    del a, b
    with_view = loaded()
    assert gone() is None
    with_view.close()


def test_small_epochs_freeze_nothing() -> None:
    view = loaded(500)
    assert gc.get_freeze_count() == 0
    view.close()


@pytest.mark.parametrize("patience", [0.0, 1e6])
def test_all_is_looked_at_again_when_as_much_has_come_and_it_has_been_long(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc_paused, "PATIENCE", patience)
    monkeypatch.setattr(gc_paused, "BUSY", float("inf"))
    collected: list[tuple[str, int]] = []
    gc.callbacks.append(lambda phase, info: collected.append((phase, info["generation"])))
    try:
        view = loaded(4_000)
        assert ("start", 2) in collected, "what was there before"
        collected.clear()
        for n in range(3):
            view.step(hits=[Hit(n, 9_000 + n) for n in range(1_500)])
        assert ("start", 2) not in collected, "as much again has not come yet"
        for _ in range(2):
            view.step(hits=[Hit(n, 9_100) for n in range(1_500)])
        assert (("start", 2) in collected) == (patience == 0)
        view.close()
    finally:
        gc.callbacks.pop()


def test_a_stream_of_large_epochs_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_paused, "BUSY", float("inf"))
    monkeypatch.setattr(gc_paused, "FREEZE", 10_000)
    view = loaded(1_500)
    batches = [[Hit(k, n) for n in range(1_500)] for k in range(4)]
    gc.collect()
    looked: list[int] = []
    gc.callbacks.append(lambda _, info: looked.append(info["generation"]))
    try:
        before = gc.get_freeze_count()
        for batch in batches:
            view.step(hits=batch)
        assert gc.get_freeze_count() > before + 4_000
        assert not looked, "neither while an epoch runs nor behind it"
    finally:
        gc.callbacks.pop()
    view.close()
    assert gc.get_freeze_count() == 0


def test_epochs_that_do_not_follow_each_other_closely_freeze_nothing() -> None:
    view = loaded(1_500)
    assert gc.get_freeze_count() == 0
    view.close()


def test_not_where_it_is_not_wanted() -> None:
    view = loaded(freeze=False)
    assert gc.get_freeze_count() == 0
    view.close()
    gc.disable()
    try:
        view = loaded()
        assert gc.get_freeze_count() == 0
        view.close()
    finally:
        gc.enable()


def test_what_the_host_has_frozen_stays_frozen() -> None:
    gc.freeze()
    there = gc.get_freeze_count()
    view = loaded()
    view.close()
    assert gc.get_freeze_count() == pytest.approx(there, rel=0.1)
    assert gc.get_freeze_count() > 0


def test_what_the_host_has_frozen_is_not_counted_in_every_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python goes over all of it to count it, which is as long as a collection."""
    monkeypatch.setattr(gc_paused, "BUSY", 10**9)
    monkeypatch.setattr("ebbflow.engine.runtime.machine.LARGE", 100)
    gc.freeze()
    counted, count = list[int](), gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())
    view = loaded()
    for epoch in range(5):
        view.step(hits=[Hit(n, epoch) for n in range(200)])
    assert len(counted) == 1
    view.close()


@pytest.mark.parametrize(("large", "most"), [(100, 2), (1_000_000, None)])
def test_garbage_is_not_looked_for_while_an_epoch_runs(
    large: int, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbflow.engine.runtime.machine.LARGE", large)
    hits = ef.Input("hits", Hit)
    both = hits.join(hits, on="page", suffixes=("", "_too"))
    view = both.run(check_input=False, freeze=False)
    rows = [Hit(n, n) for n in range(3_000)]
    begun: list[str] = []
    gc.callbacks.append(lambda phase, _: begun.append(phase))
    try:
        view.step(hits=rows)
    finally:
        gc.callbacks.pop()
    count = begun.count("start")
    assert count > 4 if most is None else count <= most


def test_many_small_loads_are_frozen_as_a_large_one_is() -> None:
    view = loaded(1_500)
    assert gc.get_freeze_count() == 0
    view.step(hits=[Hit(n, 9_000) for n in range(1_500)])
    assert gc.get_freeze_count() > 1_500
    view.close()
