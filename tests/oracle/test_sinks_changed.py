"""Programs change between runs, and what their sinks have is the output, whatever dies when.

The sinks are a change log in a folder, a table that notes its epoch and a list of calls. What they
have is added up here, and compared with the output that batch computes from the rows of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from tests.oracle.disk import Crash, Disk

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.sinks import folder as folders
from ebbflow.engine.runtime.sinks.sink import noted, restarting
from ebbflow.engine.runtime.table.arrow import from_arrow
from ebbflow.zset import ZSet


class Sale(NamedTuple):
    id: int
    city: str | None
    price: float


class City(NamedTuple):
    city: str
    country: str


SALES = ef.Input("sales", Sale, key="id")
CITIES = ef.Input("cities", City, key="city")


def filtered(least: int) -> Any:
    return SALES.filter(lambda sale: sale.price > least)


def grouped(least: int) -> Any:
    return filtered(least).group_by("city").agg(n=ef.count(), most=ef.max("price"))


def joined(least: int) -> Any:
    return filtered(least).join(CITIES, on="city").select("id", "country")


def topped(least: int) -> Any:
    return SALES.top_k(3, order=lambda sale: sale.price + least * (sale.id % 3), per="city")


def distinct(least: int) -> Any:
    return SALES.select(part=lambda sale: (sale.id + least) % 4).distinct()


PROGRAMS = [filtered, grouped, joined, topped, distinct]
OPTIONS: list[dict[str, Any]] = [
    {}, {"columns": True}, {"memory": "64KB"}, {"flush_every": 3}, {"keep_epochs": 3},
]  # fmt: skip
NAN = float("nan")


def program(of: Callable[[int], Any], least: int) -> Any:
    both = {"mine": of(least), "same": SALES.group_by("city").agg(n=ef.count())}
    return ef.program(**both, cities=CITIES)


class World:
    """The targets, which are outside of the state, and the rows that its inputs should have."""

    def __init__(self, path: Path, call: Callable[[], None] = lambda: None) -> None:
        self.path, self.call = path, call
        self.table: list[tuple[int, Any]] = []
        self.calls: list[tuple[int, Any]] = []

    def add(self, view: Any, sinks: str = "tcl") -> None:
        if "t" in sinks:
            view.add_sink(Table(self))
        if "c" in sinks:
            view.each_epoch(lambda change, epoch: self.calls.append((epoch, change)), name="calls")
        if "l" in sinks:
            view.write_changes(self.path)

    def require(self, view: Any, *, calls: bool = True) -> None:
        """All targets have the outputs of a view; the calls add up to them until one of them has
        everything again."""
        outputs = {name: node.type for name, node in view.plan.outputs.items()}
        expected = view.value
        called = [list(dict(self.calls).items())] if calls else []
        for given in (self.table, self.folder(outputs), *called):
            epochs = [epoch for epoch, _ in given]
            first = min(epochs, default=1)
            assert epochs == list(range(first, view.epoch + 1)), "each once, in order"
            for name in outputs:
                total = sum((change.get(name, ZSet()) for _, change in given), start=ZSet())
                assert total == expected[name], name

    def folder(self, outputs: dict[str, Any]) -> list[tuple[int, Any]]:
        found: dict[int, Any] = {}
        for name, row_type in outputs.items():
            for place in (self.path / name).glob("epoch=*"):
                rows = [from_arrow(pq.ParquetFile(file).read(), row_type)
                        for file in place.glob("*.parquet")]  # fmt: skip
                change = sum((ZSet(zip(*some, strict=True)) for some in rows), start=ZSet())
                found.setdefault(int(place.name.partition("=")[2]), {})[name] = change
        return sorted(found.items())


class Table(ef.Sink):
    name = "table"

    def __init__(self, world: World) -> None:
        self.world = world

    def had(self, known: int | None, first: int, last: int) -> int:
        return self.world.table[-1][0] if self.world.table else 0

    def publish(self, epoch: int, change: Any) -> None:
        self.world.call()
        self.world.table.append((epoch, change))
        self.world.call()

    def restart(self, epoch: int, value: Any) -> None:
        self.world.call()
        self.world.table[:] = [(epoch, value)]
        self.world.call()


def change(view: Any, dice: Random) -> None:
    """One epoch of random inserts, updates and deletes; some change nothing."""
    ids = range(20)
    prices = [*map(float, range(9)), NAN, -0.0]
    rows = [Sale(i, dice.choice(["Rome", "Oslo", None]), dice.choice(prices))
            for i in dice.sample(ids, dice.randrange(6))]  # fmt: skip
    gone = dice.sample([i for i in ids if all(i != row.id for row in rows)], dice.randrange(4))
    cities = [City("Rome", dice.choice(["Italy", "Lazio"]))][: dice.randrange(2)]
    sales = ef.upsert(rows, delete=gone, missing="ignore")
    view.step(sales=sales, cities=ef.upsert(cities))


@pytest.mark.parametrize("of", PROGRAMS, ids=lambda of: of.__name__)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sinks_have_the_output_of_whichever_program_runs(
    of: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    for seed in range(2):
        dice, path = Random(seed), tmp_path / str(seed)
        world = World(path / "log")
        for turn in range(6):
            least = dice.choice([0, 0, 2, 5])
            with program(of, least).run(path=path / "state", **options) as view:
                # some runs have not all of the sinks: those stay behind, over changed programs
                late = dice.random() < 0.5 and 0 < turn < 5
                world.add(view, dice.choice(["t", "c", "l", "tl", ""]) if late else "tcl")
                for _ in range(dice.randrange(3)):  # or none: the program changed, and no row
                    change(view, dice)
                contents = {name: view.input(name).value for name in view.plan.sources}
                assert view.value == evaluate(view.plan, contents)
                if not late:
                    view.deliver()
                    world.require(view)


def life(
    world: World, files: Any, least: int, steps: int, restart: bool, calls: bool = True
) -> None:
    """Open a program with all sinks, perhaps have them begin again, and step it so often."""
    view = program(grouped, least).run(path=files, keep_epochs=2)
    end = view._storage._end
    try:
        if restart:
            for name in view.sinks:
                view.restart_sink(name)
        world.add(view)
        for step in range(steps):
            change(view, Random(least + step))
        world.require(view, calls=calls)
        view.close()
    finally:
        end.detach()  # what has crashed closes nothing


def crash(path: Path, at: int, how: str, restart: bool) -> bool:
    """Stop before one call while the changed program is opened and has its sinks, and go on with
    it; gives whether there was such a call."""
    disk = Disk()
    world = World(path, lambda: world.disk.call(needs_room=False))  # type: ignore[attr-defined]
    world.disk = disk  # type: ignore[attr-defined]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            world.disk.call(needs_room=False)  # type: ignore[attr-defined]
            return function(*given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("settle", "make_folder", "make_folders", "allow_all"):
            patch.setattr(folders, name, counted(getattr(folders, name)))
        patch.setattr(folders.os, "rename", counted(folders.os.rename))
        life(world, disk, 0, 2, False)
        disk.crash_at = disk.calls + at
        crashed = False
        try:
            life(world, disk, 3, 1, restart, not restart)
        except Crash:
            crashed = True
            world.disk = after = disk.after(how, Random(at))  # type: ignore[attr-defined]
            life(world, after, 3, 1, False, not restart)
            assert restarting(after) == set()
            assert set(noted(after)) == {"table", "calls", f"changes to {path}"}
            assert [each.name for each in path.rglob(".epoch=*")] == []
    return crashed


@pytest.mark.parametrize("restart", [False, True], ids=["difference", "restart"])
@pytest.mark.parametrize("how", ["lost", "kept", "torn"])
def test_a_sample_of_crashes_with_a_changed_program(
    how: str, restart: bool, tmp_path: Path
) -> None:
    for at in range(3 + len(how), 60, 17):
        assert crash(tmp_path / str(at), at, how, restart)


@pytest.mark.slow
@pytest.mark.parametrize("restart", [False, True], ids=["difference", "restart"])
@pytest.mark.parametrize("how", ["lost", "kept", "torn"])
def test_all_crashes_with_a_changed_program(how: str, restart: bool, tmp_path: Path) -> None:
    at = len(how) % 3
    while crash(tmp_path / str(at), at, how, restart):
        at += 3
    assert at > 60
