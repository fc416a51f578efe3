"""How fast are the queries of Nexmark kept up to date, while bids are also cancelled?

The events come from a seed (see `examples/nexmark`), two in a hundred taken back. For each query:

    by N         events a second, from nothing, in batches of N events of all tables at once
    step         milliseconds for a batch of a thousand events, when all others are there
    DuckDB       milliseconds for DuckDB, with one thread, to compute the query again
    faster       how many such batches that is
    worst        the longest of these steps beside the median one
    Pathway      events a second in batches of a thousand, where it is installed, for some queries

All times are of the processor. Inputs are trusted (`check_input=False`). After the last
batch and after every step the result is compared with DuckDB's, outside the clock.

With `--columns` the view runs in columns and is given Arrow tables. Its inputs have no keys then:
one with a key keeps its rows, and checks them, also where it is trusted.

    python benchmarks/nexmark.py [--events 100000] [--queries q4,q9] [--batches 1000,10000]
                                 [--steps 9] [--columns] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from harness import Row, publish

sys.path.insert(0, str(Path(__file__).parents[1]))

import ebbflow as ef
from ebbflow.zset import ZSet
from examples.nexmark import queries
from examples.nexmark.data import Change, Market
from examples.nexmark.queries import QUERIES
from examples.nexmark.tables import ROWS
from examples.nexmark.witness import NexmarkWitness
from examples.witness import differences

QUESTION = (__doc__ or "").splitlines()[0]
BASE = {"q4": 146, "q5": 95, "q9": 35, "q11": 7, "q15": 62, "q16": 26, "q18": 33, "q19": 43}
"""Thousand events a second when this was first measured; three times as much is asked."""
MOST = 20_000
"""How many events are streamed one by one."""


def events(count: int, size: int) -> list[Change]:
    """So many events in batches of this size, behind what is there before."""
    market = Market(seed=1)
    return [market.opening(), *market.batches(min(count, MOST) if size == 1 else count, size)]


def without_keys() -> None:
    """Have the queries read inputs that have no keys."""
    for name, row in ROWS.items():
        setattr(queries, name, ef.Input(name, row))


def given_to(view: Any, change: Change, columns: bool) -> dict[str, Any]:
    """What a view is given of a change: of the tables that it reads rows, or Arrow tables."""
    mine = {name: rows for name, rows in change.changes.items() if name in view.plan.sources}
    if columns:
        return {
            name: ZSet(rows).to_arrow(ROWS[name]) if name in ROWS else rows
            for name, rows in mine.items()
        }
    return mine


def streamed(query: str, given: list[Change], columns: bool) -> tuple[Any, float]:
    """The view behind a stream, and events a second."""
    view = QUERIES[query]().run(check_input=False, columns=columns)
    batches = [given_to(view, change, columns) for change in given]
    gc.collect()
    begin = process_time()
    for batch in batches:
        view.step(batch)
    return view, given[-1].now / (process_time() - begin)


def measured(query: str, streams: dict[int, list[Change]], asked: argparse.Namespace) -> Row:
    """The figures of one query."""
    row: Row = {"work": "nexmark", "query": query}
    if asked.columns:  # loops are compiled once in a process
        streamed(query, streams[1_000], True)
    for size, given in streams.items():
        if size != 1_000:
            row[f"by {size:,}"] = streamed(query, given, asked.columns)[1]
    view, row["by 1,000"] = streamed(query, streams[1_000], asked.columns)
    witness, market = NexmarkWitness(threads=1), Market(seed=1)
    witness.apply(market.opening())
    for change in market.batches(asked.events, 1_000):
        witness.apply(change)
    require(query, "the stream", view, witness, change.now)
    times, again = [], []
    for number in range(asked.steps):
        change = market.events(1_000)
        mine = given_to(view, change, asked.columns)
        begin = process_time()
        view.step(mine)
        times.append(process_time() - begin)
        witness.apply(change)
        begin = process_time()
        witness.ask(query, now=change.now)
        again.append(process_time() - begin)
        require(query, f"step {number}", view, witness, change.now)
    row["step ms"], row["DuckDB ms"] = 1000 * median(times), 1000 * median(again)
    row["faster"], row["worst"] = row["DuckDB ms"] / row["step ms"], max(times) / median(times)
    if find_spec("pathway") and query in PATHWAY:
        row["Pathway"] = by_pathway(query, streams[1_000])
    return row


def require(query: str, when: str, view: Any, witness: NexmarkWitness, now: int) -> None:
    """Stop where the view is not what DuckDB computes."""
    wrong = differences(view.value, witness.ask(query, now=now))
    if wrong:
        raise SystemExit(f"{query} is wrong after {when}: {wrong}")


# ---- Pathway ----


def _pathway_q4(pw: Any, bid: Any, auction: Any) -> Any:
    joined = bid.join(auction, bid.auction == auction.id).select(
        auction=bid.auction, price=bid.price, category=auction.category, at=bid.date_time,
        opened=auction.date_time, expires=auction.expires,
    )  # fmt: skip
    valid = joined.filter((pw.this.at >= pw.this.opened) & (pw.this.at <= pw.this.expires))
    final = valid.groupby(pw.this.auction, pw.this.category).reduce(
        pw.this.category, final=pw.reducers.max(pw.this.price)
    )
    return final.groupby(pw.this.category).reduce(
        pw.this.category, average=pw.reducers.avg(pw.this.final)
    )


def _pathway_q17(pw: Any, bid: Any, auction: Any) -> Any:
    return bid.groupby(pw.this.auction).reduce(
        pw.this.auction, n=pw.reducers.count(), low=pw.reducers.min(pw.this.price),
        high=pw.reducers.max(pw.this.price), mean=pw.reducers.avg(pw.this.price),
        total=pw.reducers.sum(pw.this.price),
    )  # fmt: skip


def _pathway_q18(pw: Any, bid: Any, auction: Any) -> Any:
    return bid.groupby(pw.this.bidder, pw.this.auction).reduce(
        last=pw.reducers.argmax(pw.this.date_time)
    )


PATHWAY = {"q4": _pathway_q4, "q17": _pathway_q17, "q18": _pathway_q18}


def by_pathway(query: str, given: list[Change]) -> float:
    """Events a second of Pathway, a time of its own for every batch."""
    import pathway as pw

    class BidRow(pw.Schema):  # type: ignore[misc]
        auction: int
        bidder: int
        price: int
        channel: str
        url: str
        date_time: int = pw.column_definition(primary_key=True)
        extra: str

    class AuctionRow(pw.Schema):  # type: ignore[misc]
        id: int = pw.column_definition(primary_key=True)
        item_name: str
        description: str
        initial_bid: int
        reserve: int
        date_time: int
        expires: int
        seller: int
        category: int
        extra: str

    pw.parse_graph.G.clear()
    tables = []
    for name, schema in (("bid", BidRow), ("auction", AuctionRow)):
        rows = [
            (*row, 2 * time, 1 if weight > 0 else -1)
            for time, change in enumerate(given)
            for row, weight in change.changes.get(name, {}).items()
        ]
        tables.append(pw.debug.table_from_rows(schema, rows, is_stream=True))
    pw.io.null.write(PATHWAY[query](pw, *tables))
    begin = process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return given[-1].now / (process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--events", type=int, help="how many; 100,000 unless it is said")
    parser.add_argument("--queries", default=",".join(QUERIES), help="which, as q4,q9")
    parser.add_argument("--batches", default="1,1000,10000", help="sizes of streamed batches")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--columns", action="store_true", help="run in columns, given tables")
    parser.add_argument("--quick", action="store_true", help="fewer events, for a first look")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    asked = parser.parse_args()
    chosen = asked.queries.split(",")
    if unknown := set(chosen) - set(QUERIES):
        parser.error(f"no such query: {', '.join(sorted(unknown))}")
    asked.events = asked.events or (10_000 if asked.quick else 100_000)
    sizes = {1_000, *(int(each) for each in asked.batches.split(",") if each)}
    streams = {size: events(asked.events, size) for size in sorted(sizes)}
    if asked.columns:
        without_keys()
    found = [measured(query, streams, asked) for query in chosen]
    publish(asked, QUESTION, found, judged(found, asked.quick), {"events": asked.events}, [])


def judged(rows: list[Row], quick: bool) -> list[Row]:
    """Three times what was measured first, and no step ten times as long as the others."""
    asked = [
        (f"{row['query']}, by 1,000", row["by 1,000"], ">=", 3_000.0 * BASE[row["query"]])
        for row in rows
        if row["query"] in BASE
    ]
    slowest = max(rows, key=lambda row: row["worst"])
    asked.append((f"worst step ({slowest['query']})", slowest["worst"], "<=", 10.0))
    return [
        {"target": name, "found": found, "": sign, "wanted": wanted,
         "met": "not asked" if quick else
         "yes" if (found >= wanted if sign == ">=" else found <= wanted) else "NO"}
        for name, found, sign, wanted in asked
    ]  # fmt: skip


if __name__ == "__main__":
    main()
