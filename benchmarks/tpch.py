"""How fast are the 22 queries of TPC-H kept up to date, and how much faster than computed again?

The tables are made by `tpchgen-cli`, with all their columns, and money is exact. For each query:

    load         all tables in one batch, rows a second
    by N         all tables from nothing in batches of N rows, of all tables at once; rows a second
    refresh      milliseconds for a refresh, which adds, takes away or corrects a thousandth of the
                 orders with their lines; the median of each kind, and the mean of these
    DuckDB       milliseconds for DuckDB, with two threads, to compute the query again
    faster       how many refreshes that is
    worst        the longest refresh beside the median one
    MB           memory of the view, by resident size

Rows a second are of processor time. Inputs are trusted (`check_input=False`). After the load and
after every refresh the result is compared with DuckDB's, outside the clock.

With `--columns` the view runs in columns and is given Arrow tables, refreshes as well. Its inputs
have no keys then: one with a key keeps its rows, and checks them, also where it is trusted.

With `--engine spark` the view is on Spark, beside Spark SQL: `tpch_spark.py` says what it asks.

    python benchmarks/tpch.py [--scale 0.1] [--queries q1,q3] [--batches 1000,100000]
                              [--refreshes 9] [--data FOLDER] [--columns] [--quick] [--json]
                              [--engine spark] [--keep read,all]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from tempfile import gettempdir
from time import perf_counter, process_time
from typing import Any

from harness import Row, publish

sys.path.insert(0, str(Path(__file__).parents[1]))

import ebbflow as ef
from ebbflow.zset import ZSet
from examples.tpch import queries
from examples.tpch.data import Business, Refresh, made, rows_of
from examples.tpch.queries import QUERIES
from examples.tpch.tables import ROWS
from examples.tpch.witness import TpchWitness
from examples.witness import Witness, differences

QUESTION = (__doc__ or "").splitlines()[0]
Tables = dict[str, Any]
"""What a view is given, by name: lists of rows, or Arrow tables."""
MOST = 40_000
"""How many rows are streamed one by one."""


def without_keys() -> None:
    """Have the queries read inputs that have no keys."""
    for name, row in ROWS.items():
        setattr(queries, name, ef.Input(name, row))


def cut(rows: Any, first: int, end: int) -> Any:
    """Some of the rows, from one on and before the end."""
    return rows[first:end] if isinstance(rows, list) else rows.slice(first, end - first)


def in_batches(tables: Tables, size: int) -> Iterator[Tables]:
    """All rows in batches of about this size, each with its share of every table."""
    total = sum(map(len, tables.values()))
    count = max(1, round(total / size))
    for k in range(count):
        yield {
            name: part
            for name, rows in tables.items()
            if len(part := cut(rows, len(rows) * k // count, len(rows) * (k + 1) // count))
        }


def resident() -> float:
    """The memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def streamed(query: str, tables: Tables, size: int, columns: bool) -> float:
    """Rows a second from nothing, in batches of this size."""
    view = QUERIES[query]().run(check_input=False, columns=columns)
    batches = list(in_batches(tables, size))
    if size == 1:
        batches = batches[:MOST]
    rows = sum(len(part) for batch in batches for part in batch.values())
    gc.collect()
    begin = process_time()
    for batch in batches:
        view.step(batch)
    return rows / (process_time() - begin)


def loaded(view: Any, tables: Tables) -> float:
    """The seconds of processor time in which a view takes all rows at once."""
    gc.collect()
    begin = process_time()
    view.step(tables)
    return process_time() - begin


def measured(
    query: str, rows: Tables, tables: Tables, witness: Witness, asked: argparse.Namespace
) -> Row:
    """The figures of one query, from tables of rows that are also Arrow tables."""
    given = tables if asked.columns else rows
    program = QUERIES[query]()
    view = program.run(check_input=False, columns=asked.columns)
    mine = {name: given[name] for name in view.plan.sources}
    count = sum(map(len, mine.values()))
    row: Row = {"work": "tpch", "query": query, "rows": count}
    before = resident()
    seconds = loaded(view, mine)
    row["MB"] = resident() - before
    if asked.columns:  # the first load has read compiled loops from files, once in a process
        seconds = loaded(program.run(check_input=False, columns=True), mine)
    row["load"] = count / seconds
    require(query, "the load", view, witness)
    business = Business(rows["orders"], rows["lineitem"], seed=1)
    times: dict[str, list[float]] = {}
    again: list[float] = []
    undo: list[Refresh] = []
    for number in range(asked.refreshes):
        kind = (business.insert, business.delete, business.correct)[number % 3]
        refresh = kind(max(1, len(rows["orders"]) // 1000))
        change: dict[str, Any] = {
            name: ZSet(each).to_arrow(ROWS[name]) if asked.columns else each
            for name, each in refresh.changes.items()
            if name in mine and each
        }
        begin = perf_counter()
        view.step(change)
        times.setdefault(refresh.kind, []).append(perf_counter() - begin)
        witness.apply(refresh)
        undo.append(refresh)
        begin = perf_counter()
        witness.ask(query)
        again.append(perf_counter() - begin)
        require(query, f"refresh {number} ({refresh.kind})", view, witness)
    every = [each for some in times.values() for each in some]
    row["refresh ms"] = 1000 * mean(median(some) for some in times.values())
    row["DuckDB ms"] = 1000 * median(again)
    row["faster"] = row["DuckDB ms"] / row["refresh ms"]
    row["worst"] = max(every) / median(every)
    for refresh in reversed(undo):
        witness.apply(Refresh("undo", refresh.removed, refresh.added))
    del view
    for size in asked.batches:
        row[f"by {size:,}"] = streamed(query, mine, size, asked.columns)
    return row


def require(query: str, when: str, view: Any, witness: Witness) -> None:
    """Stop where the view is not what DuckDB computes."""
    wrong = differences(view.value, witness.ask(query))
    if wrong:
        raise SystemExit(f"{query} is wrong after {when}: {wrong}")


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--scale", type=float, help="of TPC-H; 0.1 unless it is said")
    parser.add_argument("--queries", default=",".join(QUERIES), help="which, as q1,q3")
    parser.add_argument("--batches", default="1,1000,100000", help="sizes of streamed batches")
    parser.add_argument("--columns", action="store_true", help="run in columns, given tables")
    parser.add_argument("--refreshes", type=int, default=9)
    parser.add_argument("--engine", choices=["memory", "spark"], default="memory")
    parser.add_argument("--data", type=Path, help="where the tables are, or are made")
    parser.add_argument(
        "--keep", default="read", help="fields that inputs keep on Spark: read, all, or read,all"
    )
    parser.add_argument("--quick", action="store_true", help="a small scale, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    asked = parser.parse_args()
    asked.batches = [int(each) for each in asked.batches.split(",") if each]
    chosen = asked.queries.lower().split(",")
    if unknown := set(chosen) - set(QUERIES):
        parser.error(f"no such query: {', '.join(sorted(unknown))}")
    scale = asked.scale or (0.01 if asked.quick else 0.1)
    tables = made(asked.data or Path(gettempdir(), f"ebbflow-tpch-{scale}"), scale)
    witness = TpchWitness(tables, threads=2)
    if asked.engine == "spark":
        import tpch_spark

        with tpch_spark.spark_session() as spark:
            found = [
                tpch_spark.measured(spark, each, keep, tables, witness, asked)
                for each in chosen for keep in asked.keep.split(",")
            ]  # fmt: skip
        publish(asked, QUESTION, found, tpch_spark.judged(found, scale), {"scale": scale}, [])
        return
    rows = {name: rows_of(name, table) for name, table in tables.items()}
    gc.collect()
    gc.freeze()  # these rows are not the engine's, and are not looked at whenever it makes some
    if asked.columns:
        without_keys()
    found = [measured(query, rows, tables, witness, asked) for query in chosen]
    gc.unfreeze()
    wanted = COLUMNS if asked.columns else IN_ROWS
    publish(asked, QUESTION, found, judged(found, wanted, asked.quick), {"scale": scale}, [])


IN_ROWS = {"load": 400_000.0, "by 1,000": 500_000.0, "faster": 8.0}
COLUMNS = {"load": 3_000_000.0, "by 1,000": 1_000_000.0, "faster": 20.0}


def judged(rows: list[Row], asked: dict[str, float], quick: bool) -> list[Row]:
    """The targets, each with the query that is farthest from it."""
    found = []
    for name, wanted in asked.items():
        least = min((row for row in rows if name in row), key=lambda row: row[name], default=None)
        if least is not None:
            met = "not asked" if quick else "yes" if least[name] >= wanted else "NO"
            found.append({
                "target": f"{name}, every query ({least['query']} is last)",
                "found": least[name], "": ">=", "wanted": wanted, "met": met,
            })  # fmt: skip
    return found


if __name__ == "__main__":
    main()
