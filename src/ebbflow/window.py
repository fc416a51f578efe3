"""Window functions, for `collection.over(per=..., order=...).with_fields(name=...)`.

>>> import ebbflow as ef
>>> from ebbflow.record import record
>>> Trade = record("Trade", share=str, at=int, price=int)
>>> trades = ef.Input("trades", Trade)
>>> view = trades.over(per="share", order="at").with_fields(
...     before=ef.window.lag("price"), highest=ef.max("price")).run()
>>> _ = view.step(trades=[Trade("x", 1, 30), Trade("x", 5, 20)])
>>> view.step(trades=[Trade("x", 3, 40)])
ZSet({Trade(share='x', at=3, price=40, before=30, highest=40): 1, \
Trade(share='x', at=5, price=20, before=30, highest=30): -1, \
Trade(share='x', at=5, price=20, before=40, highest=40): 1})
"""

from __future__ import annotations

from typing import Any

from ebbflow.keywords import checked
from ebbflow.operator.window import (
    Decay,
    DenseRank,
    FillForward,
    Island,
    IslandNumber,
    Lag,
    Lead,
    NthValue,
    Ntile,
    PercentRank,
    Rank,
    RowNumber,
)
from ebbflow.reducer.row import Key

__all__ = [
    "decay", "dense_rank", "fill_forward", "first_value", "island", "island_number", "lag",
    "last_value", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


@checked
def row_number() -> RowNumber:
    """The number of each row in its order, from 1; for `over(...)`.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Hit = record("Hit", page=str, at=int)
    >>> hits = ef.Input("hits", Hit)
    >>> view = hits.over(per="page", order="at").with_fields(n=ef.window.row_number()).run()
    >>> sorted(view.step(hits=[Hit("a", 5), Hit("a", 3)]).rows())
    [Hit(page='a', at=3, n=1), Hit(page='a', at=5, n=2)]
    """
    return RowNumber()


@checked
def rank() -> Rank:
    """One more than how many rows come before; rows at the same place have the same rank."""
    return Rank()


@checked
def dense_rank() -> DenseRank:
    """As `rank`, without gaps: one more than how many different places come before."""
    return DenseRank()


@checked
def percent_rank() -> PercentRank:
    """The rank as a part of all rows, from 0.0 to 1.0."""
    return PercentRank()


@checked
def ntile(n: int) -> Ntile:
    """Which of `n` parts of about the same size a row is in, from 1."""
    return Ntile(n)


@checked
def lag(of: Key, k: int = 1, default: Any = None) -> Lag:
    """The value of the row `k` rows before, `default` where there is none."""
    return Lag(of, k, default)


@checked
def lead(of: Key, k: int = 1, default: Any = None) -> Lead:
    """The value of the row `k` rows behind, `default` where there is none."""
    return Lead(of, k, default)


@checked
def first_value(of: Key) -> NthValue:
    """The value of the first row of the key."""
    return NthValue(of, 1)


@checked
def last_value(of: Key) -> NthValue:
    """The value of the last row of the key (and not, as in SQL by default, of this row)."""
    return NthValue(of, -1)


@checked
def nth_value(of: Key, n: int) -> NthValue:
    """The value of the `n`-th row of the key, from 1; from the end where `n` is negative."""
    return NthValue(of, n)


@checked
def fill_forward(of: Key) -> FillForward:
    """The last value that is not None, of this row or one before."""
    return FillForward(of)


@checked
def island(gap: Any = 1) -> Island:
    """Where the run of rows starts that a row is in; a run ends where the next row is further than
    `gap`."""
    return Island(gap)


@checked
def island_number(gap: Any = 1) -> IslandNumber:
    """The number of the run of rows that a row is in, from 1."""
    return IslandNumber(gap)


@checked
def decay(of: Key, half_life: Any) -> Decay:
    """The sum so far, in which a value counts half as much after every `half_life`."""
    return Decay(of, half_life)
