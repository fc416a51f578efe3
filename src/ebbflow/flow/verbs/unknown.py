"""Verbs of other libraries, and what does the same here.

Who comes from Spark, pandas or SQL writes their verbs first. A collection has few, so each of
theirs is answered with ours.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ebbflow.errors import UnknownVerb, place
from ebbflow.names import VIEWS
from ebbflow.record import fields_of

_FILTER = "filter(lambda row: ...)"
_SELECT = 'select("field", new=lambda row: ...), which names all fields of the result'
_ADD = "with_fields(new=lambda row: ...)"
_RENAME = 'rename(new="old")'
_GROUP = 'group_by("field").agg(n=ebbflow.count())'
_FIRST = "limit(n, order=...)"
_TOP = "top_k(n, order=...)"
_ORDER = f"{_FIRST} for the first or last rows; rows have no order: sorted(view.value, key=...)"
_UNPIVOT = 'unpivot("field", "field", name="name", value="value")'
_PIVOT = 'pivot("field", ("value", ...), using=ebbflow.sum("field"), per="field")'
_COMPARE = 'join(other, where=ebbflow.lt("field"))'
_COUNT = "agg(n=ebbflow.count())"
_RUN = "view = c.run(), then view.value"
_WINDOW = "tumbling(time, size), sliding(...) or session(...), then group_by"
_OVER = 'over(per=..., order=..., rows=7).with_fields(total=ebbflow.sum("field"))'
_LAG = 'over(per=..., order=...).with_fields(before=ebbflow.window.lag("field"))'
_NUMBER = "over(per=..., order=...).with_fields(n=ebbflow.window.row_number())"
_SCAN = "scan(step, start, per=..., order=...), or fold(...) for the last state"
_ASOF = 'asof_join(other, on="key", order="time"), with direction= and tolerance='
_INTERVAL = 'interval_join(other, on="key", order="time", low=..., high=...)'
_MATCH = 'match(first=lambda row: ..., then=lambda row: ..., per="key", order="time", within=...)'
_CHANGE = 'view = c.run(), then view.input("name").upsert(row), or add, remove, delete'
_PLAIN = "nothing: a collection is a value of Python, without name or index"
_KEEP = "nothing: a running view keeps its state"

INSTEAD: dict[str, str] = {
    **dict.fromkeys(("where", "where_", "query", "having", "loc", "mask", "qualify"), _FILTER),
    **dict.fromkeys(("dropna", "drop_nulls", "isnull", "is_null", "notnull", "isna", "notna"),
                    "filter(lambda row: row.field is not None)"),
    **dict.fromkeys(("withColumn", "withColumns", "with_columns", "assign", "mutate"), _ADD),
    **dict.fromkeys(("astype", "cast", "with_column", "extend", "add_column", "derive", "eval"),
                    _ADD),
    **dict.fromkeys(("drop", "drop_columns", "selectExpr", "project", "expr"), _SELECT),
    **dict.fromkeys(("withColumnRenamed", "withColumnsRenamed", "toDF", "rename_columns"), _RENAME),
    **dict.fromkeys(("fillna", "fill_nan", "coalesce", "ifnull", "nvl"), "fill_null(field=0)"),
    **dict.fromkeys(("groupBy", "groupby", "group", "rollup", "cube", "value_counts"), _GROUP),
    **dict.fromkeys(("pivot_table", "crosstab", "pivot_wider", "unstack"), _PIVOT),
    **dict.fromkeys(("melt", "stack", "pivot_longer", "wide_to_long"), _UNPIVOT),
    **dict.fromkeys(("orderBy", "order_by", "sort", "sort_values", "sort_by", "arrange"), _ORDER),
    **dict.fromkeys(("head", "take", "first", "fetch", "nsmallest"), _FIRST),
    **dict.fromkeys(("offset", "skip", "slice", "iloc"), "limit(n, order=..., offset=...)"),
    **dict.fromkeys(("tail", "nlargest", "top"), _TOP),
    **dict.fromkeys(("tablesample", "sampleBy", "sample_by", "randomSplit"), "sample(0.1)"),
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
    **dict.fromkeys(("drop_duplicates", "dropDuplicates", "unique", "dedup",
                     "deduplicate"), "distinct()"),
    **dict.fromkeys(("merge", "inner_join", "innerJoin", "connect"), 'join(other, on="field")'),
    **dict.fromkeys(("left_join", "leftJoin"), 'join(other, on="field", how="left")'),
    **dict.fromkeys(("outer_join", "full_join", "fullJoin", "outerJoin", "full_outer_join"),
                    'join(other, on="field", how="full")'),
    **dict.fromkeys(("right_join", "rightJoin"),
                    'join(c, on="field", how="left") of the other collection'),
    **dict.fromkeys(("semi_join", "semijoin", "exists", "isin"),
                    'join(other, on="field", how="semi")'),
    **dict.fromkeys(("anti_join", "antijoin", "not_exists"), 'join(other, on="field", how="anti")'),
    **dict.fromkeys(("join_where", "conditional_join", "range_join"), _COMPARE),
    **dict.fromkeys(("scalar", "subquery"), "filter(lambda row, one: ..., other)"),
    **dict.fromkeys(("merge_asof", "join_asof", "asof", "asofJoin", "as_of_join"), _ASOF),
    **dict.fromkeys(("interval",), _INTERVAL),
    **dict.fromkeys(("match_recognize", "pattern", "sequence", "funnel", "cep"), _MATCH),
    **dict.fromkeys(("crossJoin", "cross_join", "product"), "cross(other)"),
    **dict.fromkeys(("unionAll", "union_all", "unionByName", "concat", "append"), "c + other"),
    **dict.fromkeys(("subtract", "except_all", "minus", "difference"), "except_(other)"),
    "exceptAll": "c - other",
    **dict.fromkeys(("intersectAll", "intersection"), "intersect(other)"),
    **dict.fromkeys(("apply", "transform", "mapPartitions", "mapValues", "process",
                     "map_partitions", "map_elements", "applymap", "pipe"), "map(f, type=...)"),
    **dict.fromkeys(("window", "withWatermark", "watermark", "resample", "hop", "hopping", "tumble",
                     "tumbling_window", "sliding_window", "hopping_window", "session_window"),
                    _WINDOW),
    **dict.fromkeys(("rolling", "expanding", "partitionBy", "cumsum", "cummax", "cumcount"), _OVER),
    **dict.fromkeys(("shift", "lag", "lead", "diff", "pct_change"), _LAG),
    **dict.fromkeys(("ffill", "row_number", "rank", "rowNumber", "dense_rank", "ntile"), _NUMBER),
    **dict.fromkeys(("mapWithState", "flatMapGroupsWithState", "transformWithState"), _SCAN),
    **dict.fromkeys(("accumulate", "foldLeft", "aggregateByKey"), _SCAN),
    "flatMap": "flat_map(f)",
    **dict.fromkeys(("unnest", "explode_outer", "posexplode", "flatten"), 'explode("field")'),
    **dict.fromkeys(("collect", "show", "toPandas", "to_pandas", "values", "iterrows",
                     "itertuples", "toLocalIterator", "items", "display", "print", "start",
                     "execute", "compute", "materialize", "run_async", "keys", "get", "copy"),
                    _RUN),
    **dict.fromkeys(("write", "writeStream", "foreach", "foreachBatch"),
                    f"{_RUN}; or view.on_change"),
    **dict.fromkeys(("to_csv", "to_parquet", "save"),
                    "view = c.run(), then view.write_snapshot(path)"),
    **dict.fromkeys(("sink", "to_sink"), "view = c.run(), then view.add_sink"),
    **dict.fromkeys(("schema", "printSchema", "columns", "dtypes", "describe", "info", "key"),
                    "c.type"),
    **dict.fromkeys(("debug", "inspect", "to_sql", "sql"), "c.explain()"),
    **dict.fromkeys(("alias", "as_", "createOrReplaceTempView", "set_index", "reset_index", "index",
                     "as_table"), _PLAIN),
    **dict.fromkeys(("loop", "recursive"), "iterate(...), or ebbflow.fixpoint(...)"),
    **dict.fromkeys(("nest", "implode"), 'group_by("field").agg(rows=ebbflow.collect("field"))'),
    **dict.fromkeys(("zip", "enumerate"), _NUMBER),
    **dict.fromkeys(("repartition", "partition_by", "keyBy", "key_by", "groupByKey"),
                    "nothing: an engine partitions by the fields of joins and groups"),
    **dict.fromkeys(("cache", "persist", "checkpoint"), _KEEP),
    **{
        each: f"view = c.run(), then view.{each}"
        for each in VIEWS if each not in ("changes", "get", "show")
    },
    **dict.fromkeys(("subscribe", "listen", "on_update"), "view = c.run(), then view.on_change"),
    **dict.fromkeys(("insert", "add", "upsert", "delete", "update", "remove", "feed"), _CHANGE),
    **dict.fromkeys(("rows", "data", "result", "results", "to_arrow", "to_polars", "df"), _RUN),
}  # fmt: skip
"""What of ours does what a verb of theirs does."""


def unknown_verb(name: str, hint: Any, ours: list[str]) -> UnknownVerb:
    """The error for a verb that a collection does not have.

    >>> print(unknown_verb("orderBy", int, []).remedy.partition(" for ")[0])
    limit(n, order=...)
    """
    near = get_close_matches(name, ours, n=1, cutoff=0.7)
    if name in INSTEAD:
        remedy = INSTEAD[name]
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
    found = INSTEAD.get(name, "")
    remedy = found if found.startswith("agg(") else otherwise
    return UnknownVerb(f"group_by(...) has no {name!r}", created=place(), remedy=remedy)
