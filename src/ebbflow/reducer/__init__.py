"""Reducers: how a group of rows becomes one value, and how a row is taken out of it again.

Write one with `Reducer(init, add, remove)`, combine them with `&`, `.on`, `.where`, `.then` and
`.by`, or take one from the library:

>>> from ebbflow.reducer import count, max, mean
>>> (count() & mean() & max())([1, 2, 6])
(3, 3.0, 6)

`ebbflow.laws.check(reducer)` tells whether it survives changes, and shows the change that breaks
it.
"""

from ebbflow.reducer.hashed import Map
from ebbflow.reducer.library import (
    bit_xor,
    bool_and,
    bool_or,
    count,
    count_distinct,
    histogram,
    mean,
    naive_sum,
    set_of,
    sum,
)
from ebbflow.reducer.numeric import covariance, product, stddev, variance, weighted_mean
from ebbflow.reducer.ordered import max, median, min, quantile, rank, top_k
from ebbflow.reducer.placed import arg_max, arg_min, collect, first, last, mode, string_agg
from ebbflow.reducer.processor import Reducing
from ebbflow.reducer.reducer import RECOMPUTE, Recompute, Reducer
from ebbflow.reducer.running import ReduceAll, ReduceByKey
from ebbflow.reducer.sketch import approx_count_distinct, approx_quantile

__all__ = [
    "RECOMPUTE", "Map", "Recompute", "ReduceAll", "ReduceByKey", "Reducer", "Reducing",
    "approx_count_distinct", "approx_quantile", "arg_max", "arg_min", "bit_xor", "bool_and",
    "bool_or", "collect", "count", "count_distinct", "covariance", "first", "histogram", "last",
    "max", "mean", "median", "min", "mode", "naive_sum", "product", "quantile", "rank", "set_of",
    "stddev", "string_agg", "sum", "top_k", "variance", "weighted_mean",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
