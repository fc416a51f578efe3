"""What does money in Decimals cost, beside floats and ints, in columns and in rows?

A table of a million sales (a tenth of it in rows) is loaded into `sum(price * quantity)` and
`mean(price)` by key, for a thousand keys. Prices and quantities are Decimals of (15, 2), or the
same numbers as floats, or their hundredths as ints. Times are of the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from harness import Row, in_turns, main

import ebbflow as ef

QUESTION = "What does money in Decimals cost, beside floats and ints, in columns and in rows?"
Amount = ef.decimal(15, 2)


class InDecimals(NamedTuple):
    key: int
    price: Amount  # type: ignore[valid-type]
    quantity: Amount  # type: ignore[valid-type]


class InFloats(NamedTuple):
    key: int
    price: float
    quantity: float


class InInts(NamedTuple):
    key: int
    price: int
    quantity: int


def decimals(cents: Any) -> Any:
    """Hundredths as Decimals of Arrow's: the same units, in 128 bits."""
    halves = np.stack([cents, cents >> 63], axis=1)
    buffers = [None, pa.py_buffer(halves)]
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), buffers)


TYPES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "decimals": (InDecimals, decimals),
    "floats": (InFloats, lambda cents: cents / 100),
    "ints": (InInts, lambda cents: cents),
}


def measure(quick: bool) -> list[Row]:
    size = 20_000 if quick else 1_000_000
    dice = np.random.default_rng(1)
    keys = dice.integers(0, 1_000, size)
    prices, quantities = dice.integers(1, 10**7, size), dice.integers(1, 5_000, size)
    contestants: dict[str, Callable[[], Any]] = {}
    counts: dict[str, int] = {}
    for name, (row_type, made) in TYPES.items():
        table = pa.table({"key": keys, "price": made(prices), "quantity": made(quantities)})
        program = (
            ef.Input("sales", row_type)
            .group_by("key")
            .agg(total=ef.sum(lambda sale: sale.price * sale.quantity), usual=ef.mean("price"))
        )
        for how, count in (("columns", size), ("rows", size // 10)):
            given, columns = table.slice(0, count), how == "columns"

            def load(program: Any = program, given: Any = given, columns: bool = columns) -> Any:
                view = program.run(check_input=False, columns=columns)
                view.step(sales=given)
                return view

            assert ("in columns" in load().explain()) == columns
            contestants[f"{name} in {how}"] = load
            counts[f"{name} in {how}"] = count
    seconds = in_turns(contestants, rounds=3 if quick else 5)
    each = {name: seconds[name] / count for name, count in counts.items()}
    return [
        {
            "given": name,
            "rows": counts[name],
            "seconds": seconds[name],
            "rows/s": 1 / found,
            "times ints": found / each[f"ints in {name.split()[-1]}"],
        }
        for name, found in each.items()
    ]


if __name__ == "__main__":
    main(QUESTION, measure)
