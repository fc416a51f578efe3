"""ebbflow keeps derived data up to date while its inputs change.

Values flow in (⊕) and ebb out (⊖); the views stay right. Start with `ZSet`, a collection that can
be added to and taken from, and the reducers below, which follow it. The parts:

    ebbflow.flow       programs over collections: Input, Collection, program
    ebbflow.reducer    how a group of rows becomes one value, and how a row is taken out again
    ebbflow.operator   functions kept up to date: joins, aggregates, edited text, your own
    ebbflow.stream     stream functions and stream processors
    ebbflow.change     what a change is: to a bag, a number, a text, a pair, a dict
    ebbflow.algebra    monoids, groups, partial orders, Möbius inversion
    ebbflow.laws       laws as values, and a checker that prints the smallest counter-example
"""

from ebbflow.errors import EbbflowError, LawBroken
from ebbflow.flow import Collection, Input, program
from ebbflow.reducer import (
    RECOMPUTE,
    Reducer,
    approx_count_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    bit_xor,
    bool_and,
    bool_or,
    collect,
    count,
    count_distinct,
    covariance,
    first,
    histogram,
    last,
    max,
    mean,
    median,
    min,
    mode,
    naive_sum,
    product,
    quantile,
    rank,
    set_of,
    stddev,
    string_agg,
    sum,
    top_k,
    variance,
    weighted_mean,
)
from ebbflow.zset import ZSet, linear

__version__ = "0.1.0"

__all__ = [
    "RECOMPUTE",
    "Collection",
    "EbbflowError",
    "Input",
    "LawBroken",
    "Reducer",
    "ZSet",
    "__version__",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect",
    "count",
    "count_distinct",
    "covariance",
    "first",
    "histogram",
    "last",
    "linear",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "naive_sum",
    "product",
    "program",
    "quantile",
    "rank",
    "set_of",
    "stddev",
    "string_agg",
    "sum",
    "top_k",
    "variance",
    "weighted_mean",
]
