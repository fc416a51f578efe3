"""What does one late row, or one withdrawn, cost in the middle of a long key?

A key has 100,000 rows, and 1,000,000, in the order of time. A row comes in the middle, and goes
again; a time is that of one of the two. Where the rows behind it do not change (the value before,
the last known value, a machine of four states), it should cost the way to its place; where all
do (a running total), what is written; and the total at the end alone the way to its place again.

An as-of join gives each of as many rows of another collection the last of these rows that is not
behind it; the late row is the answer for one of them.

`replay` is a program by hand that goes through the rows of the key once more; DuckDB and Polars
take the row in and compute the key again, where they are installed and have the verb. All times are
medians: of processor time for what runs in one thread of ours, and of what the clock shows for
DuckDB and Polars, which have several. `per output` is the time for one changed row of the result,
and `writing` what it costs to make such a row and put it into a dict, of as many rows as change: a
dict of a million rows is slower per row than one of a hundred thousand. A running total is measured
twice: as it is, where the rows of the output are computed when they are asked for, and `kept`,
after they were asked for once. They are let go then, as most of them change; `asked` asks for them
after each row as well.

    python benchmarks/order.py [--quick] [--json]
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Callable
from statistics import median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from harness import Row, main

import ebbflow as ef

QUESTION = "What does one late row, or one withdrawn, cost in the middle of a long key?"
ROUNDS = 15


class Event(NamedTuple):
    at: int
    value: int | None


class Asked(NamedTuple):
    when: int


class Total(NamedTuple):
    at: int
    value: int | None
    total: int


def machine(state: int, row: Event) -> tuple[int, list[int]]:
    """Four states: rows that go on, and rows that begin again."""
    value = row.value or 0
    new = 0 if value % 5 == 0 else min(state + 1, 3)
    return new, [row.at] if new == 3 != state else []


def added(total: int, row: Event) -> tuple[int, list[int]]:
    """A running total, of which only the end is asked for."""
    return total + (row.value or 0), []


def value_of(row: Event) -> int:
    """What a row adds to the total."""
    return row.value or 0


def plus(a: int, b: int) -> int:
    """One part of the total and another."""
    return a + b


def works() -> dict[str, ef.Collection]:
    """The programs by name."""
    events = ef.Input("events", Event)
    over = events.over(order="at")
    return {
        "lag": over.with_fields(before=ef.window.lag("value")),
        "fill forward": over.with_fields(known=ef.window.fill_forward("value")),
        "machine of 4 states": events.scan(machine, 0, order="at", type=int),
        "running total": over.with_fields(total=ef.sum("value")),
        "as-of join": ef.Input("asked", Asked).asof_join(
            events, left_order="when", right_order="at"
        ),
        "total at the end": events.fold(
            added, 0, order="at", of=value_of, merge=plus, act=plus, type=int
        ),
    }


QUERIES = {
    "lag": 'SELECT *, lag(value) OVER (ORDER BY "at") AS x FROM events',
    "fill forward": 'SELECT *, last_value(value IGNORE NULLS) OVER (ORDER BY "at") AS x '
    "FROM events",
    "running total": 'SELECT *, sum(value) OVER (ORDER BY "at" ROWS UNBOUNDED PRECEDING) AS x '
    "FROM events",
    "total at the end": "SELECT sum(value) AS x FROM events",
    "as-of join": 'SELECT * FROM asked ASOF LEFT JOIN events ON asked."when" >= events."at"',
}


# ---- contestants ----


def asked(rows: list[Event]) -> list[Asked]:
    """The rows of the other side of an as-of join: one behind each."""
    return [Asked(row.at + 1) for row in rows]


def by_hand(work: str, rows: list[Event]) -> Any:
    """Everything again, in one loop."""
    if work == "as-of join":
        last, found, behind = None, {}, iter(rows)
        row = next(behind, None)
        for each in asked(rows):
            while row is not None and row.at <= each.when:
                last, row = row, next(behind, None)
            found[each] = last
        return found
    if work == "lag":
        return {(row, before) for before, row in zip([None, *rows], rows, strict=False)}
    if work == "fill forward":
        known, out = None, set()
        for row in rows:
            known = known if row.value is None else row.value
            out.add((row, known))
        return out
    if work == "machine of 4 states":
        state, said = 0, []
        for row in rows:
            state, more = machine(state, row)
            said += more
        return said
    total, totals = 0, {}
    for row in rows:
        total += row.value or 0
        totals[row] = total
    return totals if work == "running total" else total


def timed(call: Callable[[], Any], clock: Callable[[], float] = thread_time) -> float:
    begin = clock()
    call()
    return clock() - begin


def rivals(rows: list[Event], late: Event) -> dict[str, Callable[[str], Callable[[], Any] | None]]:
    """DuckDB and Polars with the rows, if they are installed."""
    found: dict[str, Callable[[str], Callable[[], Any] | None]] = {}
    columns = {"at": [row.at for row in rows], "value": [row.value for row in rows]}
    try:
        import duckdb
        import pyarrow as pa

        connection = duckdb.connect(config={"threads": 2})
        connection.register("given", pa.table(columns))
        connection.execute("CREATE TABLE events AS SELECT * FROM given")
        connection.register("given_asked", pa.table({"when": [row.when for row in asked(rows)]}))
        connection.execute("CREATE TABLE asked AS SELECT * FROM given_asked")

        def in_duckdb(work: str) -> Callable[[], Any] | None:
            query = QUERIES.get(work)

            def again() -> None:
                connection.execute("BEGIN")
                connection.execute("INSERT INTO events VALUES (?, ?)", list(late))
                connection.execute(f"CREATE OR REPLACE TEMP TABLE result AS {query}").fetchall()
                connection.execute("ROLLBACK")

            return None if query is None else again

        found["DuckDB"] = in_duckdb
    except ImportError:
        pass
    try:
        import polars as pl

        frame = pl.DataFrame(columns)

        def taken_in() -> pl.DataFrame:
            return frame.vstack(pl.DataFrame([late], schema=frame.schema, orient="row"))

        def in_order() -> pl.DataFrame:
            return taken_in().sort("at")

        asking = pl.DataFrame({"when": [row.when for row in asked(rows)]}).sort("when")
        makers = {
            "lag": lambda: in_order().with_columns(x=pl.col("value").shift()),
            "fill forward": lambda: in_order().with_columns(x=pl.col("value").forward_fill()),
            "running total": lambda: in_order().with_columns(x=pl.col("value").cum_sum()),
            "total at the end": lambda: taken_in().select(pl.col("value").sum()),
            "as-of join": lambda: asking.join_asof(in_order(), left_on="when", right_on="at"),
        }
        found["Polars"] = makers.get  # type: ignore[assignment]
    except ImportError:
        pass
    return found


def writing(count: int) -> float:
    """Seconds to make a row and put it into a dict."""
    rows = [Event(i, i) for i in range(count)]

    def write() -> dict[Any, int]:
        out: dict[Any, int] = {}
        new = tuple.__new__
        for row in rows:
            made = new(Total, row + (7,))  # noqa: RUF005
            out[made] = out.get(made, 0) + 1
        return out

    gc.collect()
    gc.disable()  # as for the engine
    try:
        return median(timed(write) for _ in range(3)) / count
    finally:
        gc.enable()


def measure(quick: bool) -> list[Row]:
    found = []
    for size in (10_000, 100_000) if quick else (100_000, 1_000_000):
        rows = [Event(2 * i, None if i % 7 == 3 else i % 23) for i in range(size)]
        others = rivals(rows, Event(size + 1, 4))
        write = writing(size)
        for work, program in works().items():
            found.append(one(work, program, rows, others, write))
            if work == "running total":
                found += [one(work, program, rows, {}, write, mode) for mode in ("kept", "asked")]
    return found


def one(
    work: str, program: ef.Collection, rows: list[Event], others: dict[str, Any], write: float,
    mode: str = "",
) -> Row:  # fmt: skip
    size = len(rows)
    view = program.run(check_input=False)
    given = {"events": rows, **({"asked": asked(rows)} if work == "as-of join" else {})}
    view.step(**given)
    if mode:
        assert len(view.value) == size
    late = [Event(2 * (size // 2 + 37 * i) + 1, 4) for i in range(ROUNDS)]
    spans, changed = [], 1
    gc.collect()
    gc.disable()
    for row in late:
        for weight in (1, -1):
            begin = thread_time()
            out = view.step(events={row: weight})
            if mode == "asked":
                assert view.value
            spans.append(thread_time() - begin)
            changed = max(len(out), 1)
    gc.enable()
    view.close()
    ours = median(spans)
    again = list(rows)
    again.insert(bisect_left(again, late[0]), late[0])
    replay = median(timed(lambda: by_hand(work, again)) for _ in range(3))
    result: Row = {
        "work": f"{work}, {mode}" if mode else work, "rows": size, "changed rows": changed,
        "ms": ours * 1e3, "replay ÷ ours": replay / ours,
    }  # fmt: skip
    for name, made in others.items():
        call = made(work)
        result[f"{name} ÷ ours"] = (
            "" if call is None else median(timed(call, perf_counter) for _ in range(7)) / ours
        )
    result["per output ÷ writing"] = ours / changed / write if changed > 100 else ""
    return result


if __name__ == "__main__":
    main(QUESTION, measure)
