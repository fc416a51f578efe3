"""Names of other libraries, each with the equivalent here.

People who come from SQL, pandas or Spark try the names they know. `ebbflow.public` answers these
with the remedies of this module; those of collections are in `ebbflow.flow.verbs.unknown`.
"""

from __future__ import annotations

REDUCERS: dict[str, str] = {
    **{
        each: each
        for each in (
            "approx_count_distinct", "approx_quantile", "arg_max", "arg_min", "bit_xor", "bool_and",
            "bool_or", "collect", "count", "count_distinct", "covariance", "first", "histogram",
            "last", "max", "mean", "median", "min", "mode", "product", "quantile", "rank", "set_of",
            "stddev", "string_agg", "sum", "top_k", "variance", "weighted_mean",
        )
    },
    **dict.fromkeys(("avg", "average"), "mean"),
    **dict.fromkeys(("std", "stdev", "stddev_pop", "stddev_samp", "standard_deviation"), "stddev"),
    **dict.fromkeys(("var", "var_pop", "var_samp"), "variance"),
    **dict.fromkeys(("covar", "cov", "covar_pop", "covar_samp"), "covariance"),
    **dict.fromkeys(("size", "len", "length", "cardinality", "count_star"), "count"),
    **dict.fromkeys(("nunique", "n_unique", "countDistinct", "uniq", "distinct"), "count_distinct"),
    **dict.fromkeys(("approxCountDistinct", "approx_distinct"), "approx_count_distinct"),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), "approx_quantile"),
    **dict.fromkeys(("percentile", "percentile_cont", "quantile_cont"), "quantile"),
    **dict.fromkeys(("argmax", "max_by", "idxmax"), "arg_max"),
    **dict.fromkeys(("argmin", "min_by", "idxmin"), "arg_min"),
    **dict.fromkeys(("collect_list", "array_agg", "list", "to_list", "implode"), "collect"),
    **dict.fromkeys(("collect_set", "set", "unique"), "set_of"),
    **dict.fromkeys(("listagg", "group_concat", "concat_ws", "join_strings"), "string_agg"),
    **dict.fromkeys(("every", "all", "logical_and"), "bool_and"),
    **dict.fromkeys(("any", "some", "logical_or"), "bool_or"),
    **dict.fromkeys(("first_value", "any_value"), "first"),
    **dict.fromkeys(("nlargest", "top", "topk", "largest"), "top_k"),
    **dict.fromkeys(("prod",), "product"),
    "last_value": "last", "nth": "rank", "hist": "histogram", "xor": "bit_xor",
}  # fmt: skip
"""Reducers by the names that others use for them, each with ours."""

VERBS = (
    "asof_join", "cross", "distinct", "except_", "explode", "fill_null", "filter", "flat_map",
    "fold", "group_by", "intersect", "interval_join", "join", "limit", "map", "match", "over",
    "pivot", "reduce", "rename", "sample", "scan", "select", "session", "sliding", "through",
    "tumbling", "union", "unpivot", "with_fields", "within",
)  # fmt: skip
"""Verbs of collections."""

VIEWS = (
    "add_sink", "at", "branch", "changes", "each_epoch", "epoch", "get", "input", "metrics",
    "on_change", "show", "stats", "step", "tick", "value", "verify", "write_changes",
    "write_snapshot",
)  # fmt: skip
"""Methods and properties of a view."""

INPUTS = ("add", "apply", "delete", "edit", "feed", "forget", "remove", "replace", "upsert")
"""Methods of an input of a view."""

_THEIR_VERBS = (
    "agg", "groupBy", "groupby", "orderBy", "order_by", "select_expr", "sort", "sort_values",
    "where", "withColumn", "with_columns", "query", "merge_asof", "head", "tail",
)  # fmt: skip
_LISTEN = ("subscribe", "listen", "watch", "observe", "on", "on_update", "add_listener", "foreach")
_INSERT = ("insert", "append", "extend", "push", "put", "ingest", "load", "add_all", "add_rows",
           "add_many", "insert_many", "bulk_insert", "insert_all")  # fmt: skip
_UPDATE = ("update", "merge", "save", "upsert_all", "replace_row")
_DELETE = ("discard", "pop", "drop", "delete_all", "remove_all", "delete_row")
_ROWS = ("collect", "rows", "result", "results", "data", "values", "fetch", "fetchall", "read",
         "snapshot", "current", "to_list", "tolist", "items")  # fmt: skip
_PANDAS = ("df", "to_pandas", "toPandas", "to_df", "toDF", "to_frame", "dataframe", "pandas")
_TABLES = ("to_arrow", "to_polars", "to_numpy")

_FUNCTION = "a field name, or a function of the row: lambda row: row.price * 2"
_SCALARS = (
    "abs", "cast", "ceil", "coalesce", "concat_str", "cut", "date_trunc", "extract", "floor",
    "greatest", "if_else", "ifelse", "ifnull", "iff", "is_null", "isna", "isnull", "json",
    "json_path", "least", "lower", "notnull", "nullif", "nvl", "regexp_replace", "round", "split",
    "sqrt", "struct", "substring", "to_date", "to_datetime", "to_timestamp", "trim", "upper",
)  # fmt: skip
_DURABLE = "nothing: each step is one epoch, and durable with run(path=...)"

MODULE: dict[str, str] = {
    **{
        theirs: f"ebbflow.{ours}(...)" for theirs, ours in REDUCERS.items()
        if theirs != ours and theirs not in ("list", "set", "all", "any", "len", "distinct")
    },
    **{each: f"a method of a collection: ebbflow.Input(...).{each}(...)" for each in VERBS},
    **dict.fromkeys(("agg", "aggregate"), 'collection.agg(n=ebbflow.count())'),
    **dict.fromkeys(("groupby", "groupBy", "group"), 'collection.group_by("field")'),
    **dict.fromkeys(("where", "query"), "collection.filter(lambda row: ...)"),
    **dict.fromkeys(("col", "column", "lit", "literal", "expr", "F", "functions", "when", "case",
                     "udf", "lambda_", "field", "Field", "Column",), _FUNCTION),
    **dict.fromkeys(_SCALARS, _FUNCTION),
    **dict.fromkeys(("table", "Table", "DataFrame", "Source", "source", "from_pandas", "dataframe",
                     "createDataFrame", "Stream", "Relation", "from_rows", "Dataset", "dataset",
                     "LazyFrame", "Series", "from_arrow", "from_polars", "from_records",
                     "from_dicts", "from_", "values", "register", "create_table"),
                    'ebbflow.Input("orders", Order), then view.step(orders=rows)'),
    **dict.fromkeys(("now", "today", "current_timestamp", "current_date", "watermark",
                     "withWatermark"), "ebbflow.clock"),
    **dict.fromkeys(("key", "Key", "primary_key", "PrimaryKey"),
                    'ebbflow.Input("orders", Order, key="id")'),
    **dict.fromkeys(("sink", "add_sink"), "ebbflow.Sink, then view.add_sink(sink)"),
    **dict.fromkeys(("cumsum", "rolling", "rolling_sum", "rolling_mean", "ewm", "expanding"),
                    'collection.over(per=..., order=...).with_fields(total=ebbflow.sum("field"))'),
    **dict.fromkeys(("shift", "diff"), 'ebbflow.window.lag("field")'),
    **dict.fromkeys(("cumcount", "rowNumber"), "ebbflow.window.row_number()"),
    **dict.fromkeys(("sum_if", "sumIf", "count_if", "countIf", "count_where"),
                    "collection.filter(lambda row: ...) before the reducer"),
    **dict.fromkeys(("verify", "at", "branch", "show"),
                    "a method of a view: see dir(ebbflow.View)"),
    **dict.fromkeys(("print", "display"), "view.show()"),
    **dict.fromkeys(("explain", "plan", "debug", "describe"), "collection.explain()"),
    **dict.fromkeys(("save", "write", "write_csv", "write_parquet", "to_csv", "to_parquet",
                     "export"), "view.write_snapshot(path)"),
    **dict.fromkeys(("checkpoint", "commit", "flush"), _DURABLE),
    **dict.fromkeys(("transaction", "batch", "send", "execute_step"),
                    "view.step(orders=rows), which is one epoch"),
    **dict.fromkeys(("insert_into", "insert_rows", "upsert_all"), 'view.input("orders").add(row)'),
    **dict.fromkeys(("read", "scan_csv"), "ebbflow.read_csv(path)"),
    "scan_parquet": "ebbflow.read_parquet(path)",
    **dict.fromkeys(("scan_ndjson", "read_ndjson", "read_jsonl"), "ebbflow.read_json(path)"),
    **dict.fromkeys(("Flow", "Pipeline", "pipeline", "Dataflow", "Graph", "graph", "Circuit",
                     "circuit", "Program", "outputs"), "ebbflow.program(name=collection, ...)"),
    **dict.fromkeys(("incremental", "materialize", "materialized_view", "create_view",
                     "MaterializedView", "Query"), "view = collection.run()"),
    **dict.fromkeys(("Int", "Integer", "IntegerType", "Float", "FloatType", "String", "StringType",
                     "Boolean", "Date", "Datetime", "types", "dtypes"),
                    "Python's types as fields of a row: int, float, str, bool, datetime.date, ..."),
    **dict.fromkeys(("exceptions", "Error", "Exception"), "ebbflow.errors"),
    **dict.fromkeys(("run", "view", "start", "step"), "view = collection.run()"),
    **dict.fromkeys((*_INSERT, "add"), 'view.input("orders").add(row)'),
    "remove": 'view.input("orders").remove(row)',
    **dict.fromkeys(("deduplicate", "drop_duplicates"), "collection.distinct()"),
    **dict.fromkeys(("nulls_first", "nulls_last"), "lambda row: (row.field is None, row.field)"),
    **dict.fromkeys(("skew", "kurtosis", "corr", "mad", "udaf", "json_agg", "object_agg"),
                    "ebbflow.Reducer, for a reducer of your own"),
    **dict.fromkeys(("update", "merge"), "ebbflow.upsert(rows)"),
    **dict.fromkeys(("on_change", *_LISTEN), "view.on_change(print)"),
    **dict.fromkeys(("asc", "ascending"), "the field alone: orders ascend"),
    **dict.fromkeys(("descending", "Desc"), 'ebbflow.desc("field")'),
    **{
        each: f"ebbflow.window.{each}(...)"
        for each in ("row_number", "dense_rank", "lag", "lead", "ntile", "percent_rank",
                     "nth_value", "fill_forward")
    },
    **dict.fromkeys(("SparkSession", "Spark", "pyspark", "Engine", "Session", "Context"),
                    'ebbflow.spark(path="state/")'),
    **dict.fromkeys(("sql", "query_sql", "execute"),
                    "the verbs of a collection: filter, join, group_by, ..."),
    **dict.fromkeys(("eq", "equal"), 'collection.join(other, on="field")'),
    **dict.fromkeys(("Decimal", "DecimalType", "numeric"),
                    "decimal.Decimal, or ebbflow.decimal(...) as a type"),
    **dict.fromkeys(("Record", "Row", "Schema", "schema", "Model"),
                    "a NamedTuple or a frozen dataclass as the type of rows, or "
                    "ebbflow.record.record(name, field=type)"),
    **dict.fromkeys(("read_sql", "read_table", "read_delta", "read_kafka", "delta", "kafka",
                     "postgres", "postgresql", "connect"), "ebbflow.connectors"),
    **dict.fromkeys(("loads", "load_state", "Reader", "read_state"), "ebbflow.open(path)"),
    **dict.fromkeys(("Zset", "Bag", "Multiset"), "ebbflow.ZSet"),
    **dict.fromkeys(("loop", "recursive", "fix", "fixed_point"), "ebbflow.fixpoint(...)"),
}  # fmt: skip
"""What stands in `ebbflow` for a name of another library."""

VIEW: dict[str, str] = {
    **dict.fromkeys(_LISTEN, "view.on_change(print)"),
    **dict.fromkeys(("poll", "stream_changes", "stream"), "view.changes(), with async for"),
    **dict.fromkeys(_INSERT, "{input}.add(row), or {step}"),
    **dict.fromkeys(_UPDATE, "{update}"),
    **dict.fromkeys(_DELETE, "{delete}"),
    **{each: f"{{input}}.{each}(...)" for each in INPUTS},
    **dict.fromkeys(("process", "send", "execute", "transact", "change", "advance"), "{step}"),
    **dict.fromkeys(_PANDAS, "{zset}.to_pandas()"),
    **{each: f"{{zset}}.{each}()" for each in _TABLES},
    **dict.fromkeys(_ROWS, "{value}"),
    **dict.fromkeys(("print", "display"), "view.show()"),
    **dict.fromkeys(("count", "size", "shape", "len"), "len({value})"),
    **dict.fromkeys(("keys", "iterrows", "itertuples", "iter", "first", "take", "to_dict"),
                    "{value}, a Z-set of rows"),
    **dict.fromkeys(("output", "outputs"), "{output}"),
    **dict.fromkeys(("inputs", "sources"), "{input}"),
    **dict.fromkeys(("stop", "shutdown", "terminate", "end"), "view.close()"),
    **dict.fromkeys(("commit", "checkpoint", "flush", "persist", "cache"), _DURABLE),
    **dict.fromkeys(("wait", "sync", "awaitTermination", "await_termination", "join_all",
                     "processAllAvailable"),
                    "nothing: a step returns when its epoch is complete"),
    **dict.fromkeys(("start", "run", "resume"), "{step}: a view runs already"),
    **dict.fromkeys(("transaction", "begin", "batch", "begin_transaction"),
                    "{step}: each step is one transaction, with changes of several inputs"),
    **dict.fromkeys(("deltas", "delta", "diff", "last_change"),
                    "view.on_change(print), or the result of {step}"),
    **dict.fromkeys(("history", "log", "as_of", "asof", "version", "versions", "epochs"),
                    "view.at(epoch) with run(path=..., keep_epochs=n), or view.epoch"),
    **dict.fromkeys(("remove_sink", "drop_sink", "delete_sink", "stop_sink"),
                    "view.end_sink(name)"),
    **dict.fromkeys(("sink", "sink_to", "to_sink", "attach", "connect"), "view.add_sink(sink)"),
    **dict.fromkeys(("restart", "reset_sink", "resync"), "view.restart_sink(name)"),
    **dict.fromkeys(("unsubscribe", "off", "remove_listener"),
                    "the function that view.on_change(print) returns"),
    **dict.fromkeys(("reset", "clear", "truncate"), "{input}.replace([])"),
    **dict.fromkeys(("lookup", "find", "get_row", "loc"), "view.get(key)"),
    **dict.fromkeys(("schema", "printSchema", "columns", "dtypes", "describe", "info", "type"),
                    "view.explain()"),
    **dict.fromkeys(("path", "name", "engine", "config", "options", "mode", "is_active"),
                    "repr(view)"),
    **dict.fromkeys(("compact", "vacuum", "optimize"),
                    "nothing: views merge their files themselves"),
    **dict.fromkeys(("table", "tables", "index", "materialize"), "{value}"),
    **dict.fromkeys(("profile", "memory", "status", "progress", "lastProgress"), "view.stats()"),
    **dict.fromkeys(("rollback", "undo", "copy", "fork", "clone"), "view.branch()"),
    **dict.fromkeys(("check", "validate", "recompute", "refresh"), "view.verify()"),
    **dict.fromkeys(("to_parquet", "to_csv", "write", "save_as", "export", "dump", "write_csv",
                     "write_parquet"),
                    "view.write_snapshot(path)"),
    **{
        each: f"a verb of collections: write collection.{each}(...) before run()"
        for each in (*VERBS, *_THEIR_VERBS)
    },
}  # fmt: skip
"""For a view. Braces stand for an input, an output and requests of the program that runs."""

INPUT: dict[str, str] = {
    **dict.fromkeys(_INSERT, "{input}.add(row)"),
    **dict.fromkeys(_UPDATE, "{update}"),
    **dict.fromkeys(_DELETE, "{delete}"),
    **dict.fromkeys(("clear", "truncate", "overwrite"), "{input}.replace([])"),
    **dict.fromkeys(("step", "send", "change", "process"), "{input}.apply(change)"),
    **dict.fromkeys((*_ROWS, *_PANDAS, *_TABLES, "keys", "show", "display"), "{input}.value"),
    **dict.fromkeys(("commit", "flush"), _DURABLE),
    **dict.fromkeys(("write", "from_pandas", "read_csv", "write_rows"), "{input}.add(rows)"),
    **dict.fromkeys(("lookup", "find"), "{input}.get(key)"),
    **dict.fromkeys(("schema", "key", "type", "columns"), "view.explain()"),
    **dict.fromkeys(("verify", "check"), "view.verify()"),
    **dict.fromkeys(("on_change", *_LISTEN), "view.on_change(print), for the outputs"),
    **dict.fromkeys(("count", "size", "len"), "len({input})"),
    "contains": "row in {input}",
    **{
        each: f"a verb of collections: write collection.{each}(...) before run()"
        for each in (*VERBS, *_THEIR_VERBS)
    },
}  # fmt: skip
"""For an input of a view."""

OUTPUT: dict[str, str] = {
    **dict.fromkeys(_LISTEN, "{output}.on_change(print)"),
    **dict.fromkeys(_PANDAS, "{zset}.to_pandas()"),
    **{each: f"{{zset}}.{each}()" for each in _TABLES},
    **dict.fromkeys(_ROWS, "{output}.value"),
    **dict.fromkeys(("keys", "iterrows", "first", "take"), "{output}.value, a Z-set of rows"),
    **dict.fromkeys(("sink", "add_sink"), "{output}.on_change(function), or view.add_sink(sink)"),
    **dict.fromkeys(("write", "to_parquet", "to_csv", "save", "export"),
                    "{output}.write_snapshot(path)"),
    **dict.fromkeys(("schema", "type", "columns", "dtypes", "describe"), "view.explain()"),
    **{each: f"view.{each}" for each in ("at", "epoch", "input", "verify", "branch", "stats")},
    **dict.fromkeys(("print", "display", "head"), "{output}.show()"),
    **dict.fromkeys((*_INSERT, *INPUTS, "step"), "{step}"),
    **dict.fromkeys(_UPDATE, "{update}"),
    **dict.fromkeys(_DELETE, "{delete}"),
    **dict.fromkeys(("count", "size"), "len({output})"),
    **{
        each: f"a verb of collections: write collection.{each}(...) before run()"
        for each in (*VERBS, *_THEIR_VERBS) if each != "head"
    },
}  # fmt: skip
"""For an output of a view."""

_OF_CHANGES = (
    "view.on_change(print), or a stream: "
    'spark.readStream.format("ebbflow").option("changes", True).load(path)'
)

ON_SPARK: dict[str, str] = {
    **VIEW,
    **dict.fromkeys(("branch", "copy", "fork", "clone", "rollback", "undo"),
                    "a view in this process, run(), which has branch()"),
    **dict.fromkeys(("changes", "poll", "stream_changes"), _OF_CHANGES),
    "astep": "await asyncio.to_thread(view.step, ...)",
}  # fmt: skip
"""For a view on Spark."""

OUTPUT_ON_SPARK: dict[str, str] = {
    **OUTPUT,
    "branch": ON_SPARK["branch"],
    "changes": _OF_CHANGES.replace("view.on", "{output}.on"),
}
"""For an output of a view on Spark."""

PROGRAM: dict[str, str] = {
    **{each: f"view = program.run(), then view.{each}" for each in VIEWS},
    **dict.fromkeys(("start", "execute", "open", "view"), "view = program.run()"),
    **dict.fromkeys(_LISTEN, "view = program.run(), then view.on_change(print)"),
    **dict.fromkeys((*_ROWS, *_PANDAS), "view = program.run(), then view.value"),
    **dict.fromkeys(("output", "outputs", "inputs", "sources", "names", "keys"), "program.plan"),
    **dict.fromkeys(VERBS, "a verb of the collections that program(...) was given"),
}
"""For a program of several outputs."""

ZSET: dict[str, str] = {
    **dict.fromkeys(("sort", "sorted", "orderBy", "order_by", "sort_values"), "sorted(zset)"),
    **dict.fromkeys(("head", "take", "first", "show", "limit"), "list(zset)[:n]"),
    **dict.fromkeys(("collect", "to_list", "toList", "tolist", "values", "data"), "list(zset)"),
    **dict.fromkeys(("to_dict", "toDict", "keys", "weights"), "dict(zset.items())"),
    **dict.fromkeys(("count", "size", "shape", "total"), "len(zset)"),
    **dict.fromkeys(("get", "index", "loc", "iloc"), "zset.weight(row)"),
    **dict.fromkeys(("iterrows", "itertuples", "elements", "iter", "last"), "list(zset)"),
    **dict.fromkeys(("union", "merge", "update", "concat", "extend"), "zset + other"),
    **dict.fromkeys(("subtract", "difference"), "zset - other"),
    **dict.fromkeys(("negate", "neg"), "-zset"),
    "copy": "nothing: a Z-set is immutable",
    **dict.fromkeys(
        ("min", "max", "sorted_by", "nlargest"), "a function of Python: max(zset, key=...)"
    ),
    **dict.fromkeys(
        ("to_csv", "to_parquet", "to_json", "write"), "zset.to_pandas() and its writers"
    ),
    **dict.fromkeys(("columns", "schema", "dtypes"), "zset.to_arrow().schema"),
    **{each: "zset.to_pandas()" for each in _PANDAS if each != "to_pandas"},
    **dict.fromkeys((*_INSERT, "add"), "zset + ebbflow.ZSet.of([row])"),
    **dict.fromkeys((*_DELETE, "remove", "delete"), "zset - ebbflow.ZSet.of([row])"),
    **dict.fromkeys(("where", "query"), "zset.filter(lambda row: ...)"),
    **{
        each: f"a verb of collections: write collection.{each}(...) before run()"
        for each in (
            "agg",
            "aggregate",
            "group_by",
            "groupBy",
            "groupby",
            "select",
            "with_fields",
            "withColumn",
        )
    },
}
"""For a Z-set."""
