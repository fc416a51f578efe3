"""Verbs of other libraries, and what does the same here.

Who comes from Spark, pandas or SQL writes their verbs first. A collection has few, so each of
theirs is answered with ours.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ebbflow.errors import UnknownVerb, place
from ebbflow.record import fields_of

_FILTER = "filter(lambda row: ...)"
_SELECT = 'select("field", new=lambda row: ...), which names all fields of the result'
_RENAME = 'select("field", new="old"), which names all fields of the result'
_GROUP = 'group_by("field").agg(n=ebbflow.count())'
_TOP = "top_k(n, by=...)"
_ORDER = f"{_TOP} for the first or last rows; rows have no order: sorted(view.value, key=...)"
_COUNT = "agg(n=ebbflow.count())"
_RUN = "view = c.run(), then view.value"
_WINDOW = "tumbling(time, size), sliding(...) or session(...), then group_by"
_ASOF = 'asof_join(other, on="key", order="time"), with direction= and tolerance='
_INTERVAL = 'interval_join(other, on="key", order="time", low=..., high=...)'
_MATCH = 'match(first=lambda row: ..., then=lambda row: ..., per="key", order="time", within=...)'
_KEEP = "nothing: a running view keeps its state"

_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("where", "query", "having", "loc", "mask", "qualify"), _FILTER),
    "dropna": "filter(lambda row: row.field is not None)",
    **dict.fromkeys(("withColumn", "withColumns", "with_columns", "assign", "mutate"), _SELECT),
    **dict.fromkeys(("drop", "selectExpr", "project", "fillna", "astype", "cast", "expr"), _SELECT),
    **dict.fromkeys(("withColumnRenamed", "withColumnsRenamed", "rename", "toDF"), _RENAME),
    **dict.fromkeys(("groupBy", "groupby", "group", "rollup", "cube"), _GROUP),
    **dict.fromkeys(("pivot", "pivot_table", "crosstab", "value_counts"), _GROUP),
    **dict.fromkeys(("orderBy", "order_by", "sort", "sort_values", "sort_by"), _ORDER),
    **dict.fromkeys(("limit", "head", "tail", "take", "first", "nlargest", "fetch"), _TOP),
    "nsmallest": "top_k(n, by=..., smallest=True)",
    **dict.fromkeys(("count", "size", "shape", "nunique"), _COUNT),
    **{
        each: f'agg({each}=ebbflow.{ours}("field"))'
        for each, ours in {
            "sum": "sum", "min": "min", "max": "max", "mean": "mean", "avg": "mean",
            "median": "median", "std": "stddev", "stddev": "stddev", "var": "variance",
            "variance": "variance", "quantile": "quantile", "mode": "mode",
        }.items()
    },
    **dict.fromkeys(("aggregate", "summarize", "summarise"), 'agg(total=ebbflow.sum("field"))'),
    **dict.fromkeys(("drop_duplicates", "dropDuplicates", "unique", "dedup"), "distinct()"),
    **dict.fromkeys(("merge", "inner_join", "innerJoin"), 'join(other, on="field")'),
    **dict.fromkeys(("left_join", "leftJoin"), 'join(other, on="field", how="left")'),
    **dict.fromkeys(("merge_asof", "join_asof", "asof", "asofJoin", "as_of_join"), _ASOF),
    **dict.fromkeys(("join_where", "range_join", "interval"), _INTERVAL),
    **dict.fromkeys(("match_recognize", "pattern", "sequence", "funnel", "cep"), _MATCH),
    **dict.fromkeys(("crossJoin", "cross_join", "product"), "cross(other)"),
    **dict.fromkeys(("unionAll", "union_all", "unionByName", "concat", "append"), "c + other"),
    **dict.fromkeys(("subtract", "except_all", "minus", "difference"), "except_(other)"),
    "exceptAll": "c - other",
    **dict.fromkeys(("intersectAll", "intersection"), "intersect(other)"),
    **dict.fromkeys(("apply", "transform", "mapPartitions", "pipe"), "map(f, type=...)"),
    **dict.fromkeys(("flatMap", "explode"), "flat_map(f)"),
    **dict.fromkeys(("over", "window", "withWatermark", "resample", "rolling"), _WINDOW),
    **dict.fromkeys(("collect", "show", "toPandas", "to_pandas", "values", "iterrows"), _RUN),
    **dict.fromkeys(("write", "writeStream", "to_csv", "foreach"), f"{_RUN}; or view.on_change"),
    **dict.fromkeys(("cache", "persist", "checkpoint"), _KEEP),
}  # fmt: skip
"""What of ours does what a verb of theirs does."""


def unknown(name: str, hint: Any, ours: list[str]) -> UnknownVerb:
    """The error for a verb that a collection does not have.

    >>> print(unknown("orderBy", int, []).remedy.partition(" for ")[0])
    top_k(n, by=...)
    """
    near = get_close_matches(name, ours, n=1, cutoff=0.7)
    if name in _INSTEAD:
        remedy = _INSTEAD[name]
    elif name in (fields_of(hint) or ()):
        remedy = f'select("{name}"), or a function of the row: lambda row: row.{name}'
    else:
        remedy = f"{near[0]}(...)" if near else ", ".join(ours)
    return UnknownVerb(f"a collection has no {name!r}", created=place(), remedy=remedy)


def unknown_of_groups(name: str, otherwise: str) -> UnknownVerb:
    """The error for a verb that groups do not have.

    >>> unknown_of_groups("avg", "").remedy
    'agg(avg=ebbflow.mean("field"))'
    """
    found = _INSTEAD.get(name, "")
    remedy = found if found.startswith("agg(") else otherwise
    return UnknownVerb(f"group_by(...) has no {name!r}", created=place(), remedy=remedy)
