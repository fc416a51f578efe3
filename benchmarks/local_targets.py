"""What `local.py` is to show, and whether it does."""

from __future__ import annotations

from typing import Any

from harness import Row

TRUSTING, ENGINE = "engine trusting", "engine"
PAIRS = ((TRUSTING, "dict"), (ENGINE, "dict kept"))


class Figures:
    """The figures of a run, and what was wanted of them: `judged`."""

    def __init__(self, rows: list[Row], quick: bool) -> None:
        self.by = {(row["work"], row["contestant"]): row for row in rows}
        self.quick = quick
        self.judged: list[Row] = []

    def check(self, what: str, value: float | None, sign: str, wanted: float) -> None:
        """Judge a figure, if there is one."""
        if value is not None:
            holds = value <= wanted if sign == "<=" else value >= wanted
            met = "not asked" if self.quick else "yes" if holds else "NO"
            self.judged.append(
                {"target": what, "found": value, "": sign, "wanted": wanted, "met": met}
            )

    def ratio(self, work: str, one: str, other: str, unit: str) -> float | None:
        a, b = self.figure(work, one, unit), self.figure(work, other, unit)
        return None if a is None or b is None else a / b

    def figure(self, work: str, name: str, unit: str) -> Any:
        return self.by.get((work, name), {}).get(unit)


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """Every target that the figures speak about; at small sizes they are shown, not judged."""
    found = Figures(rows, quick)
    check, ratio, figure = found.check, found.ratio, found.figure
    for work, allowed in (("a", 1.5), ("b", 1.5), ("q1", 2.0), ("q2", 2.0)):
        for engine, floor in PAIRS:
            check(f"{work}: {engine} / {floor}", ratio(work, engine, floor, "µs"), "<=", allowed)
    for work, wanted, names in (
        ("a", 10.0, ("Pathway", "DuckDB", "Polars")),
        ("b", 5.0, ("Pathway",)),
    ):
        for name in names:
            check(f"{work}: {name} / {ENGINE}", ratio(work, name, ENGINE, "µs"), ">=", wanted)
    for engine, most in ((TRUSTING, 5.0), (ENGINE, 10.0)):
        check(f"e: µs of {engine}", figure("e", engine, "µs"), "<=", most)
    for work, least in (("l-a", 500_000.0), ("l-b", 300_000.0)):
        check(f"{work}: rows/s of {ENGINE}", figure(work, ENGINE, "rows/s"), ">=", least)
    for work in ("m-a", "m-b"):
        for engine, floor in PAIRS:
            check(f"{work}: {engine} / {floor}", ratio(work, engine, floor, "MB"), "<=", 2.0)
    return found.judged
