"""At what rate are tables read into rows, beside rows that are there already?

A table of a million rows with four columns (an int, a text of a thousand different ones, a float
and a bool) is read into NamedTuples with their weights, by the function that every input uses. The
*floor* makes NamedTuples of the same table in the shortest way that Python has, and does not look
at them; *rows* are NamedTuples in a list, which only have to be counted. The last two rows are
whole epochs of a view that keeps its rows and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from harness import Row, in_turns, main

import ebbflow as ef
from ebbflow.engine.runtime.changes import read

QUESTION = "At what rate are tables read into rows, beside rows that are there already?"


class Order(NamedTuple):
    id: int
    city: str
    price: float
    paid: bool


ORDERS = ef.Input("orders", Order)


def measure(quick: bool) -> list[Row]:
    size = 20_000 if quick else 1_000_000
    dice = np.random.default_rng(1)
    cities = np.array([f"city {i}" for i in range(1_000)])
    columns = {
        "id": np.arange(size),
        "city": cities[dice.integers(0, 1_000, size)],
        "price": dice.random(size),
        "paid": dice.random(size) < 0.5,
    }
    table = pa.table(columns)
    lists = {name: column.tolist() for name, column in columns.items()}
    structured = np.rec.fromarrays(list(columns.values()), names=list(columns))
    rows = list(map(Order, *lists.values()))
    given: dict[str, Any] = {
        "Arrow": table,
        "Arrow, with weights": table.append_column("weight", pa.array(np.ones(size, np.int64))),
        "pandas": table.to_pandas(),
        "Polars": pl.from_arrow(table),
        "NumPy, structured": structured,
        "dict of lists": lists,
        "rows": rows,
    }
    contestants: dict[str, Callable[[], Any]] = {
        "floor": lambda: list(map(Order, *[column.to_pylist() for column in table.columns])),
        **{name: lambda each=each: read(ORDERS.node, each) for name, each in given.items()},
        "an epoch of Arrow": lambda: ORDERS.run().step(orders=table),
        "an epoch of rows": lambda: ORDERS.run().step(orders=rows),
    }
    assert (
        read(ORDERS.node, table)
        == read(ORDERS.node, pd.DataFrame(columns))
        == dict.fromkeys(rows, 1)
    )
    seconds = in_turns(contestants, rounds=3 if quick else 5)
    return [
        {
            "given": name,
            "rows": size,
            "seconds": each,
            "rows/s": size / each,
            "times the floor": each / seconds["floor"],
            "times rows": each / seconds["an epoch of rows" if "epoch" in name else "rows"],
        }
        for name, each in seconds.items()
    ]


if __name__ == "__main__":
    main(QUESTION, measure)
