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

from ebbflow.operator.window import (
    decay,
    dense_rank,
    fill_forward,
    first_value,
    island,
    island_number,
    lag,
    last_value,
    lead,
    nth_value,
    ntile,
    percent_rank,
    rank,
    row_number,
)

__all__ = [
    "decay",
    "dense_rank",
    "fill_forward",
    "first_value",
    "island",
    "island_number",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
]
