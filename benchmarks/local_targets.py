"""What `local.py` is to show, and whether it does."""

from __future__ import annotations

from typing import Any

from harness import Row

TRUSTING, ENGINE = "engine trusting", "engine"
PAIRS = ((TRUSTING, "dict"), (ENGINE, "dict kept"))


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """Every target that the figures speak about; at small sizes they are shown, not judged."""
    by = {(row["work"], row["contestant"]): row for row in rows}
    found: list[Row] = []

    def check(what: str, value: float | None, sign: str, wanted: float) -> None:
        if value is not None:
            holds = value <= wanted if sign == "<=" else value >= wanted
            met = "not asked" if quick else "yes" if holds else "NO"
            found.append({"target": what, "found": value, "": sign, "wanted": wanted, "met": met})

    def ratio(work: str, one: str, other: str, unit: str) -> float | None:
        a, b = figure(work, one, unit), figure(work, other, unit)
        return None if a is None or b is None else a / b

    def figure(work: str, name: str, unit: str) -> Any:
        return by.get((work, name), {}).get(unit)

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
    return found
