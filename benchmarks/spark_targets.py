"""What `spark.py` is to show, and whether it does."""

from __future__ import annotations

from typing import Any

from harness import Row

LARGE, SMALL = 10_000_000, 1_000_000
TIMES_RECOMPUTING = {1_000: 30.0, 100_000: 8.0}
"""How many times as fast as recomputing an epoch of so many changes is to be."""


def targets(rows: list[Row], quick: bool) -> list[Row]:
    """Every target that the figures speak about; at other sizes it is shown, not judged."""
    found: list[Row] = []

    def check(what: str, value: Any, sign: str, wanted: float, asked: bool = True) -> None:
        if value is not None:
            holds = value <= wanted if sign == "<=" else value >= wanted
            met = "not asked" if quick or not asked else "met" if holds else "NOT MET"
            found.append({"target": what, "found": value, "": sign, "wanted": wanted, "met": met})

    join = [row for row in rows if row["work"] == "join"]
    for row in join:
        wanted = TIMES_RECOMPUTING.get(row["changes"])
        if wanted is not None and row["rows"] == max(r["rows"] for r in join):
            what = f"join: recompute / epoch of {row['changes']:,} changes at {row['rows']:,} rows"
            check(what, row.get("ratio"), ">=", wanted, row["rows"] >= LARGE)
    for keys in dict.fromkeys(row["changes"] for row in join):
        seen = {row["rows"]: row.get("step s") for row in join if row["changes"] == keys}
        least, most = min(seen), max(seen)
        if least < most and seen[most] is not None:
            what = f"join: epoch of {keys:,} changes at {most:,} rows / at {least:,}"
            grown = seen[most] / seen[least]
            check(what, grown, "<=", 1.2, (least, most) == (SMALL, LARGE))
    for row in rows:
        work, size = row["work"], row.get("rows", 0)
        if work == "six":
            check(f"six: s of an epoch at {size:,} rows", row.get("step s"), "<=", 1.0)
        elif work == "bulk":
            what = f"bulk: rows/s into a {row['into']}"
            check(what, row.get("rows/s"), ">=", 600_000.0, size >= LARGE)
        elif work in ("join", "tws") and row["changes"] >= 100_000:
            what = f"{work}: changed keys/s in epochs of {row['changes']:,} at {size:,} rows"
            check(what, row.get("keys/s"), ">=", 250_000.0, size >= LARGE)
        elif work == "loops" and row["changes"] == 100:
            what = f"loops: recompute / epoch of 100 changes at {size:,} edges"
            check(what, row.get("ratio"), ">=", 10.0, size >= SMALL)
        elif work == "state":
            check(f"state: bytes / Parquet at {size:,} rows", row["loaded / Parquet"], "<=", 3.0)
            what = f"state: the same after {row['epochs']} epochs"
            check(what, row["after / Parquet"], "<=", 3.0, row["epochs"] >= 16)
    return found
