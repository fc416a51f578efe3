"""What those see who watch a view: a record for each epoch, and numbers when they ask."""

from __future__ import annotations

import json
import logging
import re
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import ebbflow as ef
from ebbflow.engine.local.view import View
from ebbflow.engine.runtime.report import LOG, EpochStats


class Sale(NamedTuple):
    city: str
    price: int


sales = ef.Input("sales", Sale)
PROGRAM = ef.program(
    totals=sales.group_by("city").agg(total=ef.sum("price")),
    dear=sales.filter(lambda sale: sale.price > 10),
)
SECRET = "Montevideo"


def fields(record: Any) -> dict[str, Any]:
    names = ("view", "path", "epoch", "mode", "rows_in", "rows_out")
    return {name: getattr(record, name) for name in names}


def test_every_epoch_is_a_record_with_its_fields_and_no_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ebbflow")
    with PROGRAM.run(path=tmp_path) as view:
        view.step(sales=[Sale(SECRET, 30), Sale("Oslo", 1)])
        view.step(sales={Sale(SECRET, 30): -1})
        with pytest.raises(ef.EbbflowError):
            view.step(sales={Sale(SECRET, 30): -1})
    one, two = caplog.records
    assert (one.levelname, one.name) == ("INFO", "ebbflow")
    assert one.getMessage().startswith("totals, dear: epoch 1, local, 2 rows in, 3 out, ")
    assert fields(one) == {
        "view": "totals, dear", "path": str(tmp_path), "epoch": 1, "mode": "local",
        "rows_in": 2, "rows_out": {"totals": 2, "dear": 1},
    }  # fmt: skip
    assert (fields(two)["epoch"], fields(two)["rows_out"]) == (2, {"totals": 1, "dear": 1})
    assert 0 < one.seconds < 60  # type: ignore[attr-defined]
    assert SECRET not in "".join(str(vars(each)) for each in caplog.records)


def test_in_memory_epochs_are_many_and_are_logged_for_those_who_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    view = PROGRAM.run()
    for level, expected in ((logging.INFO, 0), (logging.DEBUG, 1)):
        caplog.set_level(level, "ebbflow")
        view.step(sales=[Sale("Rome", 1)])
        assert len(caplog.records) == expected


def test_nothing_is_made_for_a_record_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def made(*_: Any) -> Any:
        raise AssertionError("a record was made")

    def enabled(level: int) -> bool:
        asked.append(level)
        return False

    monkeypatch.setattr(View, "_record", made)
    monkeypatch.setattr(EpochStats, "log", made)
    monkeypatch.setattr(LOG, "isEnabledFor", enabled)
    view = PROGRAM.run()
    for _ in range(3):
        view.step(sales=[Sale("Rome", 1)])
    assert asked == [logging.DEBUG] * 3


def test_records_are_lines_of_json() -> None:
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(ef.metrics.JsonLines())
    handler.setLevel(logging.DEBUG)
    LOG.addHandler(handler)
    before = LOG.level
    LOG.setLevel(logging.DEBUG)
    try:
        PROGRAM.run().step(sales=[Sale("Rome", 30)])
        try:
            raise ValueError("no")
        except ValueError:
            LOG.exception("failed", extra={"where": Path("x")})
    finally:
        LOG.setLevel(before)
        LOG.removeHandler(handler)
    epoch, failed = map(json.loads, written.getvalue().splitlines())
    assert epoch["rows_out"] == {"totals": 1, "dear": 1}
    assert (epoch["level"], epoch["epoch"], epoch["mode"]) == ("DEBUG", 1, "local")
    assert "ValueError: no" in failed["error"]
    assert failed["where"] == "x"


SERIES = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (-?[0-9.e+-]+)')


def series(text: str) -> dict[tuple[str, str], float]:
    """What a Prometheus server reads; every line must be one it knows, and each series there
    once."""
    found: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SERIES.fullmatch(line)
            assert match, line
            assert match.group(1, 2) not in found
            found[match.group(1), match.group(2)] = float(match[3])
    return found


def named(found: dict[tuple[str, str], float], name: str) -> list[float]:
    return [value for (each, _), value in found.items() if each == f"ebbflow_{name}"]


class Broken(ef.Sink):
    name = 'a "broken" one'

    def publish(self, epoch: int, change: Any) -> None:
        if epoch > 1:
            raise OSError("down")


def test_numbers_as_prometheus_reads_them(tmp_path: Path) -> None:
    with PROGRAM.run(path=tmp_path) as view:
        view.add_sink(Broken())
        view.step(sales=[Sale("Rome", 30), Sale("Rome", 1)])
        with pytest.raises(OSError, match="down"):
            view.step(sales=[Sale("Oslo", 30)])
        found = series(ef.metrics.prometheus(view))
        assert named(found, "epoch") == [2]
        assert named(found, "sink_epochs_behind") == [1]
        now = view.metrics()
        assert named(found, "seconds_total")[0] == now.seconds >= now.last_seconds > 0
        assert now.bytes is not None
        assert sum(named(found, "state_bytes")) <= now.bytes
        labels = {each.label: each.entries for each in now.state}
        assert (labels["input sales"], labels["output dear"]) == (3, 2)
        assert labels["change of output totals"] > 0, "what the sink has not had"
        other = PROGRAM.run()
        both = series(ef.metrics.prometheus(view, other))
        assert named(both, "epoch") == [2, 0]


def test_whoever_asks_over_http_gets_them() -> None:
    view = PROGRAM.run()
    with ef.metrics.serve(view, port=0) as server:
        view.step(sales=[Sale("Rome", 1)])
        with urlopen(server.url) as answer:
            assert named(series(answer.read().decode()), "epoch") == [1]
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(HTTPError, match="404"):
            urlopen(server.url.replace("metrics", "secrets"))
        view.close()
        with pytest.raises(HTTPError, match="503: the view is closed"):
            urlopen(server.url)
