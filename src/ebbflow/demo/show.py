"""How the demo is printed: at most 100 columns, each line as soon as it is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.notebook import amount, table

Facts = dict[str, Any]
WIDTH = 100
COLUMNS = (
    ("epoch", 5), ("what happens", -20), ("changes in", 10), ("changes out", 11), ("time", 9),
    ("recompute", 9), ("ratio", 8), ("verified", -8),
)  # fmt: skip
_WHERE = {"spark": "on Spark", "local": "in this process"}
_NOWHERE = re.compile(r"\s*<frozen importlib[^>]*>:\d+")
_FOLDER = re.compile(r"\S*/(?=shop\.py:\d+)")


class Printer:
    """Tells what happens, line by line; the plan only with `explain`."""

    def __init__(
        self, write: Callable[[str], object] | None = None, *, explain: bool = False
    ) -> None:
        self._write = write or partial(print, flush=True)
        self._explain = explain

    def start(self, facts: Facts) -> None:
        where = _WHERE[facts["engine"]]
        self._say(f"A shop with {facts['rows']:,} order lines, {where}. Every view is compared,")
        self._say(f"row by row, with {facts['against']}.")

    def laws(self, facts: Facts) -> None:
        sound, broken = facts["sound"], facts["broken"]
        self._say("")
        self._say(f"{sound['name']} is {sound['verdict']}: {sound['why']}")
        self._say(f"    {sound['evidence']}")
        self._say(f"{broken['name']}, its twin that rounds too early, is {broken['verdict']}")
        if "law" in broken:
            self._say(f"    {broken['law']}: {broken['what'].partition(' breaks a law: ')[2]}")
            for name, value in broken["case"].items():
                self._say(f"    {name:<10} {value}")
            self._say(f"    {'gives':<10} {broken['left']} one way, {broken['right']} the other")

    def loaded(self, facts: Facts) -> None:
        speed = facts["rows"] / facts["seconds"]
        self._say("")
        self._say(
            f"cold start: loaded {facts['rows']:,} rows in {span(facts['seconds'])}, "
            f"{speed:,.0f} rows/s; {facts['out']:,} rows in 6 views; verified: {_yes(facts)}"
        )
        self._wrong(facts)
        for view, sample in facts["samples"].items():
            self._say("")
            self._say(f"the view {view!r}, {len(sample['rows'])} rows of it:")
            self._table(sample["columns"], sample["rows"])

    def corrected(self, facts: Facts) -> None:
        self._say("")
        self._say("The best seller is a mistake: an order line has a quantity of a million. It is")
        self._say("corrected: the old line is taken back (-1), the right one comes (+1). And a")
        self._say("referral is withdrawn: who came through that customer counts no further up.")
        self._changes(facts["input"])
        self._say("")
        self._say(
            f"What that did to the views, in {span(facts['seconds'])} beside "
            f"{span(facts['recompute'])} to compute them again; verified: {_yes(facts)}"
        )
        self._wrong(facts)
        self._changes(facts["output"])
        self._say("")
        self._row(*(name for name, _ in COLUMNS))

    def epoch(self, facts: Facts) -> None:
        ratio = facts["recompute"] / facts["seconds"]
        self._row(
            f"{facts['epoch']}", facts["what"], f"{facts['in']:,}", f"{facts['out']:,}",
            span(facts["seconds"]), span(facts["recompute"]), f"{ratio:,.1f}×", _yes(facts),
        )  # fmt: skip
        self._wrong(facts)

    def killed(self, facts: Facts) -> None:
        batch, epoch, logged = facts["batch"], facts["epoch"], facts["logged"]
        ended = "and that it is over" if facts["over"] else "and not that it is over"
        self._say("")
        self._say(
            f"A stream of {facts['files']} files feeds a view in another process. It is killed"
        )
        self._say(f"(SIGKILL) when Spark has noted what is in batch {batch} {ended}; its state")
        self._say(f"has epoch {epoch}. Started again, it goes on, to epoch {facts['last']}.")
        self._say(
            f"The log of changes has epochs {logged[0]} to {logged[-1]}, each once; all of it in "
            f"{span(facts['seconds'])}; verified: {_yes(facts)}"
        )

    def end(self, facts: Facts) -> None:
        if self._explain:
            self._say("")
            for line in without_places(facts["explain"]).splitlines():
                self._say(line)
        self._say("")
        state = facts["state"]
        on_disk = "bytes" in state
        self._say(f"{'what is kept':<40}{'entries':>12}" + (f"{'bytes':>10}" if on_disk else ""))
        for part in state["parts"]:
            size = f"{amount(part['bytes']):>10}" if on_disk else ""
            name = without_places(part["part"])
            many = f" ({part['spines']})" if part["spines"] > 1 else ""
            self._say(f"{name + many:<40}{part['entries']:>12,}{size}")
        entries = sum(part["entries"] for part in state["parts"])
        kept = f"{entries:,} entries of state"
        where = f"{amount(state['bytes'])} on disk in {state['files']} files" if on_disk else (
            "in memory"
        )  # fmt: skip
        self._say(f"{kept}, {where}; all of it in {span(facts['seconds'])}")

    def _wrong(self, facts: Facts) -> None:
        for text in facts["wrong"]:
            self._say(f"       {text}")

    def _changes(self, changes: dict[str, Facts]) -> None:
        """Rows that left and entered, each behind its weight."""
        for name, change in changes.items():
            rows = [[f"{weight:+d}", *row] for *row, weight in change["rows"]]
            self._table([name, *change["columns"]], rows)

    def _table(self, head: list[str], rows: list[list[Any]]) -> None:
        """A table, if there are rows: numbers to the right, the rest to the left."""
        if not rows:
            return
        cells = [tuple(map(_cell, row)) for row in rows]
        left = tuple(i for i, value in enumerate(rows[0]) if isinstance(value, str))
        for line in table(tuple(head), cells, left):
            self._say(f"    {line}")

    def _row(self, *cells: str) -> None:
        made = [
            cell.ljust(-width) if width < 0 else cell.rjust(width)
            for cell, (_, width) in zip(cells, COLUMNS, strict=True)
        ]
        self._say("  ".join(made).rstrip())

    def _say(self, line: str) -> None:
        self._write(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")


class Silent:
    """Tells nothing."""

    def start(self, facts: Facts) -> None:
        """Nothing."""

    laws = loaded = corrected = epoch = killed = end = start


def _cell(value: Any) -> str:
    """A value as people read it.

    >>> _cell(1234567), _cell(0.5), _cell("Italy")
    ('1,234,567', '0.50', 'Italy')
    """
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _yes(facts: Facts) -> str:
    return "yes" if facts["verified"] else "NO"


def without_places(text: str) -> str:
    """A plan without where its nodes were written, when that is not in the shop.

    >>> without_places("1 join  <frozen importlib._bootstrap>:241")
    '1 join'
    >>> without_places("1 join  src/ebbflow/demo/shop.py:9")
    '1 join  shop.py:9'
    """
    return _FOLDER.sub("", _NOWHERE.sub("", text))


def span(seconds: float) -> str:
    """A time as people say it.

    >>> span(0.0123), span(1.5), span(0.000321)
    ('12 ms', '1.50 s', '0.32 ms')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"
