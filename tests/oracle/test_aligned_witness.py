"""As-of and interval joins against DuckDB, and against pandas for what DuckDB does not have."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.zset import ZSet

duckdb = pytest.importorskip("duckdb")
NOON = datetime(2024, 5, 1, 12)


class Trade(NamedTuple):
    stock: str
    at: datetime | None
    size: int


class Quote(NamedTuple):
    stock: str
    at: datetime | None
    bid: int


TRADES, QUOTES = ef.Input("trades", Trade), ef.Input("quotes", Quote)


def time(dice: Random) -> datetime | None:
    """One that is on both sides now and then; or none."""
    return None if dice.random() < 0.08 else NOON + timedelta(seconds=dice.randrange(40))


def stepped(view: Any, dice: Random, epochs: int) -> Any:
    """Changes of both sides, and all rows after each. No two quotes of a stock are at one time:
    which of them is taken SQL leaves open."""
    trades: list[Trade] = []
    quotes: dict[Any, Quote] = {}
    for _ in range(epochs):
        change = {"trades": ZSet[Any](), "quotes": ZSet[Any]()}
        for _ in range(dice.randrange(4)):
            trades.append(Trade(dice.choice("ab"), time(dice), dice.randrange(3)))
            change["trades"] += ZSet.of(trades[-1:])
            quote = Quote(dice.choice("ab"), time(dice), dice.randrange(99))
            old = quotes.pop(quote[:2], None)
            if old is not None:
                change["quotes"] -= ZSet.of([old])
            if old is None or dice.random() < 0.5:
                quotes[quote[:2]] = quote
                change["quotes"] += ZSet.of([quote])
        if trades and dice.random() < 0.5:
            gone = trades.pop(dice.randrange(len(trades)))
            change["trades"] -= ZSet.of([gone])
        view.step(change)
        yield trades, list(quotes.values())


@pytest.fixture(scope="module")
def base() -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE trades (stock VARCHAR, moment TIMESTAMP, size INT)")
    connection.execute("CREATE TABLE quotes (stock VARCHAR, moment TIMESTAMP, bid INT)")
    return connection


def with_bid(trade: Trade, quote: Quote | None) -> tuple[Any, ...]:
    return (*trade, None if quote is None else quote.bid)


def asked(base: Any, sql: str, trades: list[Trade], quotes: list[Quote]) -> ZSet[Any]:
    for name, rows in (("trades", trades), ("quotes", quotes)):
        base.execute(f"DELETE FROM {name}")
        if rows:
            base.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", list(map(list, rows)))
    return ZSet.of(base.execute(sql).fetchall())


BOTH = "SELECT t.stock, t.moment, t.size, q.bid FROM trades t"


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize(("direction", "sign", "exact"), [
    ("backward", ">=", True), ("backward", ">", False), ("forward", "<=", True),
    ("forward", "<", False),
])  # fmt: skip
def test_as_of_joins_are_those_of_duckdb(
    base: Any, how: str, direction: str, sign: str, exact: bool
) -> None:
    sql = f"{BOTH} ASOF {how} JOIN quotes q ON t.stock = q.stock AND t.moment {sign} q.moment"
    joined = TRADES.asof_join(
        QUOTES, on="stock", order="at", direction=direction, allow_exact=exact, how=how
    )
    view = joined.run()
    for rows in stepped(view, Random(f"{how}{sign}"), 12):
        assert view.value == asked(base, sql, *rows)


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_interval_joins_are_those_of_duckdb(base: Any, how: str) -> None:
    span = "t.moment - INTERVAL 3 SECOND AND t.moment + INTERVAL 6 SECOND"
    on = f"t.stock = q.stock AND q.moment BETWEEN {span}"
    sql = f"{BOTH} {how} JOIN quotes q ON {on}"
    if lonely := how in ("semi", "anti"):
        sql = f"SELECT t.* FROM trades t {how} JOIN quotes q ON {on}"
    view = TRADES.interval_join(
        QUOTES, on="stock", order="at", low=timedelta(seconds=-3), high=timedelta(seconds=6),
        how=how, select=None if lonely else with_bid,
    ).run()  # fmt: skip
    for rows in stepped(view, Random(how), 12):
        assert view.value == asked(base, sql, *rows)


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("tolerance", [None, 3])
def test_as_of_joins_are_those_of_pandas(direction: str, tolerance: int | None) -> None:
    pd: Any = pytest.importorskip("pandas")
    span = None if tolerance is None else timedelta(seconds=tolerance)
    view = TRADES.asof_join(
        QUOTES, on="stock", order="at", direction=direction, tolerance=span
    ).run()  # fmt: skip
    for trades, quotes in stepped(view, Random(f"{direction} {tolerance}"), 12):
        if not trades or not quotes:
            continue
        frames = []
        for rows, fields in ((trades, Trade._fields), (quotes, Quote._fields)):
            placed = sorted([row for row in rows if row.at is not None], key=lambda row: row.at)
            frames.append(pd.DataFrame(placed, columns=fields).astype({"at": "datetime64[us]"}))
        merged = pd.merge_asof(
            *frames, on="at", by="stock", direction=direction,
            tolerance=None if span is None else pd.Timedelta(span),
        )  # fmt: skip
        expected = [
            (row.stock, row.at.to_pydatetime(), row.size_, None if pd.isna(row.bid) else row.bid)
            for row in merged.rename(columns={"size": "size_"}).itertuples()
        ]
        expected += [(*row, None) for row in trades if row.at is None]
        assert view.value == ZSet.of(expected)
