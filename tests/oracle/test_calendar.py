"""Windows of days, weeks and months in many zones, near changes of their clocks: in every mode they
are what a walk through the minutes gives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.oracle.calendars import LATENESS, PLACES, Sale, Shop, input_of, program
from tests.spark.simulated import View

import ebbflow as ef
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime import gate
from ebbflow.reducer.panes import ReduceByPane

ZONES = list(PLACES)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("zone", ZONES)
def test_windows_are_those_that_the_clock_shows(zone: str, columns: bool) -> None:
    shop, view = Shop(zone, 1), program(zone).run(columns=columns)
    for _ in range(6):
        view.step(sales=shop.change())
        assert view.value == shop.right
    assert view.verify()
    assert evaluate(program(zone).plan, {"sales": shop.there}) == shop.right


def test_sliding_calendar_windows_are_added_up_by_panes() -> None:
    view = program("Europe/Rome").run()
    stages = view._program.machine.stages
    found = [each for each in stages if isinstance(getattr(each, "operator", None), ReduceByPane)]
    assert len(found) == 1


@pytest.mark.parametrize("zone", ZONES)
def test_on_disk_windows_are_the_same_after_opening_again(zone: str, tmp_path: Path) -> None:
    shop = Shop(zone, 2)
    for _ in range(3):
        with program(zone).run(path=tmp_path) as view:
            for _ in range(2):
                view.step(sales=shop.change())
                assert view.value == shop.right
            assert view.verify()


@pytest.mark.parametrize("mode", ["driver", "single_task", "staged"])
@pytest.mark.parametrize("zone", ["Europe/Rome", "America/Havana", "Pacific/Apia"])
def test_tasks_of_spark_give_the_same_windows(zone: str, mode: str) -> None:
    shop, view = Shop(zone, 3), View(program(zone).plan, mode)
    for epoch in range(4):
        view.step({"sales": shop.change()})
        assert view.value == shop.right
        if epoch == 1:
            view.reopen()
    view.close()


@pytest.mark.parametrize("zone", ZONES)
def test_late_rows_are_put_aside_and_closed_windows_stay(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 0)
    shop, view = Shop(zone, 4, late=True), program(zone, late=True).run()
    for _ in range(12):
        view.step(sales=shop.change())
        assert view.value == shop.right
        assert view.input("sales").late.count == shop.put_aside
    assert shop.put_aside
    assert shop.latest
    assert view.input("sales").late.before == shop.latest - LATENESS


@pytest.mark.parametrize("end", ["window_start", "window_end"])
@pytest.mark.parametrize("options", [{"days": 1}, {"weeks": 1}, {"months": 1}])
def test_rows_and_groups_of_closed_windows_are_forgotten(
    options: dict[str, int], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 0)
    sales, clock = input_of(late=True), ZoneInfo("Europe/Rome")
    windows = sales.tumbling("at", zone="Europe/Rome", **options).group_by(end)
    view = windows.agg(n=ef.count()).run()
    start = datetime(2026, 2, 20, tzinfo=UTC)
    for day in range(90):
        at = start + timedelta(days=day)
        view.step(sales=[Sale("ann", at, at.replace(tzinfo=None), at.date(), day)])
    forgetting = view._program.forgetting
    kept = [len(each.container.contents) for each in forgetting.closable]
    assert sum(len(state) for state in forgetting.gates.values()) < 10
    assert kept
    assert max(kept) < 20
    assert sum(row.n for row in view.value) == 90
    assert all(row[0].astimezone(clock).hour == 0 for row in view.value)


@pytest.mark.parametrize("end", ["window_start", "window_end"])
def test_windows_at_both_ends_of_time_can_be_closed(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "LEAST", 0)
    sales = input_of(late=True)
    view = sales.tumbling("at", days=1, zone="Europe/Rome").group_by(end).agg(n=ef.count()).run()
    for number, time in enumerate(
        (datetime(1, 1, 2), datetime(1, 1, 3), datetime(9999, 12, 29), datetime(9999, 12, 30, 3))
    ):
        row = Sale("ann", time.replace(hour=12, tzinfo=UTC), time, time.date(), number)
        view.step(sales=[row])
        view.step(sales=[row])
    assert [row.n for row in view.value] == [2, 2, 2, 2]
