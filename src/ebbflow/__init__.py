"""ebbflow keeps derived data up to date while its inputs change.

Values flow in (⊕) and ebb out (⊖); the views stay right. Write a program over collections, run it,
and tell it what changed:

    >>> import ebbflow as ef
    >>> words = ef.Input("words", str)
    >>> sizes = words.group_by(size=len).agg(n=ef.count(), last=ef.max())
    >>> view = sizes.run()
    >>> view.step(words=["ebb", "flow", "sea"])
    ZSet({Group(size=3, n=2, last='sea'): 1, Group(size=4, n=1, last='flow'): 1})
    >>> view.input("words").remove("sea")
    ZSet({Group(size=3, n=2, last='sea'): -1, Group(size=3, n=1, last='ebb'): 1})

`Input` is where rows come in, a `Collection` has the verbs (map, filter, join, group_by, top_k,
windows, ...), `program` puts several results together, and `run` gives a view: `step`, `value`,
`on_change`, `explain`, `verify`. `sum`, `count`, `max` and the other reducers say what becomes of a
group; `Reducer` makes one of your own. A field declared as `Text` or `List` is edited inside its
row: `view.input("docs").edit(key, "body", Insert(7, "x"))`. `ZSet` is a collection whose rows carry
weights, and a change of one. The parts:

    ebbflow.flow       programs over collections: Input, Collection, program
    ebbflow.engine     running them: from scratch (batch), or kept up to date (local)
    ebbflow.reducer    how a group of rows becomes one value, and how a row is taken out again
    ebbflow.operator   functions kept up to date: joins, aggregates, edited text, your own
    ebbflow.stream     stream functions and stream processors
    ebbflow.change     what a change is: to a bag, a number, a text, a pair, a dict
    ebbflow.algebra    monoids, groups, partial orders, Möbius inversion
    ebbflow.laws       laws as values, and a checker that prints the smallest counter-example
    ebbflow.testing    random programs and changes, and an engine beside batch
    ebbflow.metrics    how views are doing: Prometheus, JSON lines, listeners of Spark's
"""

from typing import TYPE_CHECKING

from ebbflow import window
from ebbflow.change.edited import List, Text
from ebbflow.change.requests import delete, feed, forget, upsert
from ebbflow.change.requests import replace_rows as replace
from ebbflow.decimals import decimal
from ebbflow.errors import EbbflowError, LawBroken, redact
from ebbflow.flow import (
    Collection,
    Input,
    between,
    clock,
    desc,
    empty,
    fixpoint,
    ge,
    gt,
    iterate,
    le,
    lt,
    ne,
    program,
    typed,
)
from ebbflow.flow.match import many, once
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

if TYPE_CHECKING:
    from ebbflow import metrics
    from ebbflow.engine.local import View
    from ebbflow.engine.runtime.files import read_csv, read_json, read_parquet
    from ebbflow.engine.runtime.reader.reader import open
    from ebbflow.engine.runtime.sinks.sink import Sink
    from ebbflow.engine.spark.engine import spark
    from ebbflow.state.spine.place import object_store
else:
    _FILES = "ebbflow.engine.runtime.files"
    _LATER = {
        "Sink": "ebbflow.engine.runtime.sinks.sink",
        "View": "ebbflow.engine.local",
        "object_store": "ebbflow.state.spine.place",
        "open": "ebbflow.engine.runtime.reader.reader",
        "read_csv": _FILES,
        "read_json": _FILES,
        "read_parquet": _FILES,
        "spark": "ebbflow.engine.spark.engine",
    }

    def __getattr__(name: str) -> object:
        """`View`, `spark` and what else runs programs is there when it is asked for; no engine is
        loaded before."""
        from importlib import import_module

        if name == "metrics":
            return import_module("ebbflow.metrics")
        if name not in _LATER:
            from ebbflow.flow.verbs.unknown import INSTEAD
            from ebbflow.public import unknown_of_module

            raise unknown_of_module(name, __all__, INSTEAD)
        try:
            return getattr(import_module(_LATER[name]), name)
        except ModuleNotFoundError as error:
            if error.name in (None, "ebbflow") or str(error.name).startswith("ebbflow."):
                raise
            from ebbflow.errors import CompositionError, install

            extra = {"spark": "spark", "open": "durable", "object_store": "durable"}
            raise CompositionError(
                f"ebbflow.{name} needs {error.name}", remedy=install(extra.get(name, "tables"))
            ) from error

    def __dir__() -> list[str]:
        """The public names, and the attributes that every module has."""
        return sorted({*__all__, *(each for each in globals() if each.startswith("__"))})


__version__ = "0.1.0"

__all__ = [
    "RECOMPUTE", "Collection", "EbbflowError", "Input", "LawBroken", "List", "Reducer", "Sink",
    "Text", "View", "ZSet", "__version__", "approx_count_distinct", "approx_quantile", "arg_max",
    "arg_min", "between", "bit_xor", "bool_and", "bool_or", "clock", "collect", "count",
    "count_distinct", "covariance", "decimal", "delete", "desc", "empty", "feed", "first",
    "fixpoint", "forget", "ge", "gt", "histogram", "iterate", "last", "le", "linear", "lt", "many",
    "max", "mean", "median", "metrics", "min", "mode", "naive_sum", "ne", "object_store", "once",
    "open", "product", "program", "quantile", "rank", "read_csv", "read_json", "read_parquet",
    "redact", "replace", "set_of", "spark", "stddev", "string_agg", "sum", "top_k", "typed",
    "upsert", "variance", "weighted_mean", "window",
]  # fmt: skip
