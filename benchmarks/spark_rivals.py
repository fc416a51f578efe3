"""The rivals of `spark.py`: recomputing with Spark SQL, and `transformWithState`.

Where a choice was to be made, it was made in their favour.

    recompute     The inputs are cached in memory, laid out by the key of the large join; the
                  changes since then are read from Parquet and unioned in, with weights. Nothing has
                  to be consolidated before the join: joins and sums are linear in the weights, so
                  a row that came and went adds nothing. Both group-bys come from one pass, by a
                  finer grouping. It is asked with each strategy of joining that Spark has, and the
                  fastest counts. When the changes have grown to 5 % of the inputs, these are cached
                  anew, which is not timed.
    query alone   The same without the change: the inputs as they are cached, and no weights. This
                  is what recomputing would take if bringing its inputs up to date were free.
    tws           Sum and count by key in the Row API of `transformWithState`: RocksDB with a
                  changelog, no count of its rows, two partitions for two cores, files as source,
                  memory as sink. It gives the old row with weight -1 and the new one with 1. It
                  needs `protobuf`.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spark_data import KEYS, TYPES, WEIGHT, Tables

Bag = dict[Any, int]
JOINS = {"merge": "MERGE(o)", "hash": "SHUFFLE_HASH(o)", "broadcast": "BROADCAST(o)"}
OLD = 0.05
PARTITIONS = 2

ORDERS = """o AS (
  SELECT /*+ BROADCAST(c) */ orderkey, o.custkey, month, nation, {order} AS weight
  FROM {{orders}} o JOIN {{customer}} c ON o.custkey = c.custkey)"""
WHOLE = """WITH {orders}, fine AS (
  SELECT /*+ {join} */ nation, month, mode, sum(price * {line}) AS total, sum({line}) AS n
  FROM {{lineitem}} l JOIN o ON l.orderkey = o.orderkey GROUP BY ALL)
SELECT nation, month, mode, sum(total), sum(n) FROM fine
GROUP BY GROUPING SETS ((nation, month), (mode)) HAVING sum(n) > 0"""
BEST = """WITH {orders}, spent AS (
  SELECT nation, custkey, sum(price * {line}) AS spent
  FROM {{lineitem}} l JOIN o ON l.orderkey = o.orderkey GROUP BY ALL HAVING sum({line}) > 0)
SELECT nation, max(spent), count(*) FROM spent GROUP BY nation"""
TWO_WAY = """SELECT l.*, custkey, month, priority, total
FROM {lineitem} l JOIN {orders} o ON l.orderkey = o.orderkey"""
SIMPLEST = """SELECT custkey, sum(total * __weight), sum(__weight) FROM {orders}
GROUP BY custkey HAVING sum(__weight) > 0"""


def written(text: str, *, join: str = "merge", weights: bool = True) -> str:
    """A query over weighted inputs, or over inputs whose rows are all there once."""
    order = f"o.{WEIGHT} * c.{WEIGHT}" if weights else "1L"
    line = f"l.{WEIGHT} * o.weight" if weights else "1L"
    return text.format(orders=ORDERS.format(order=order), line=line, join=JOINS[join])


class Recompute:
    """Plain Spark SQL over cached inputs and the changes since."""

    def __init__(self, spark: Any, tables: Tables, folder: Path, *, cache: bool = True) -> None:
        self.spark = spark
        self.tables = tables
        self.folder = folder
        self.cached: dict[str, Any] = {}
        self.read(folder / "start", written=True, cache=cache)

    def read(self, place: Path, *, written: bool = False, cache: bool = True) -> None:
        """Take the inputs as they are now; without `cache`, every query reads them again."""
        from pyspark.sql import functions as f

        if not written:
            shutil.rmtree(place, ignore_errors=True)
            self.tables.write(place)
        self.close()
        self.changes: list[dict[str, Path]] = []
        self.behind = 0
        for name in TYPES:
            frame = self.spark.read.parquet(str(place / name))
            frame = frame.withColumn(WEIGHT, f.lit(1).cast("long"))
            if cache:
                if name != "customer":
                    frame = frame.repartition(PARTITIONS, KEYS["orders"][0])
                frame = frame.cache()
                frame.count()
            self.cached[name] = frame

    def settle(self) -> None:
        """Cache anew when many changes have come since."""
        if self.behind > OLD * self.tables.rows:
            self.read(self.folder / "now")

    def take(self, files: dict[str, Path], keys: int) -> None:
        self.changes.append(files)
        self.behind += keys

    def now(self) -> dict[str, Any]:
        """The inputs with all that has changed, lazily."""
        return {name: self.with_changes(name) for name in TYPES}

    def with_changes(self, name: str) -> Any:
        cached = self.cached[name]
        files = [str(files[name]) for files in self.changes if name in files]
        if not files:
            return cached
        return cached.unionAll(self.spark.read.parquet(*files).select(cached.columns))

    def run(self, join: str) -> list[Any]:
        """The whole program, from all changes so far."""
        found: list[Any] = self.spark.sql(written(WHOLE, join=join), **self.now()).collect()
        return found

    def alone(self) -> None:
        """The whole program over what is cached, as if nothing had changed since."""
        plain = {name: cached.drop(WEIGHT) for name, cached in self.cached.items()}
        self.spark.sql(written(WHOLE, join="hash", weights=False), **plain).collect()

    def whole(self) -> dict[str, Bag]:
        """What the program's outputs should be."""
        found: dict[str, Bag] = {"revenue": {}, "modes": {}}
        for nation, month, mode, total, n in self.run("merge"):
            if mode is None:
                found["revenue"][nation, month, total] = 1
            else:
                found["modes"][mode, n, total, total / n] = 1
        return found

    def six(self) -> dict[str, Bag]:
        rows = self.spark.sql(written(BEST), **self.now()).collect()
        return {**self.whole(), "best": {tuple(row): 1 for row in rows}}

    def simplest(self) -> dict[str, Bag]:
        rows = self.spark.sql(SIMPLEST, orders=self.with_changes("orders")).collect()
        return {"": {tuple(row): 1 for row in rows}}

    def close(self) -> None:
        for frame in self.cached.values():
            frame.unpersist(blocking=True)
        self.cached = {}


def two_way(spark: Any, place: Path) -> Any:
    """Every line with its order, from Parquet."""
    return spark.sql(
        TWO_WAY,
        lineitem=spark.read.parquet(str(place / "lineitem")),
        orders=spark.read.parquet(str(place / "orders")),
    )


def differences(one: Any, other: Any) -> int:
    """How many rows two DataFrames of rows do not have equally often; `one` has weights."""
    from pyspark.sql import functions as f

    names = other.columns
    minus = other.withColumn(WEIGHT, f.lit(-1).cast("long"))
    both = one.select(*names, WEIGHT).unionAll(minus)
    left = both.groupBy(*names).agg(f.sum(WEIGHT).alias(WEIGHT)).filter(f.col(WEIGHT) != 0)
    return int(left.count())


# ---- transformWithState ----


def tws_missing() -> str:
    """Why it cannot be asked, or nothing."""
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        return "transformWithState is left out: it needs protobuf, as in: pip install '.[bench]'"
    return ""


class TransformWithState:
    """A running query: sum and count of orders by customer, in state of Spark's own."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder / "in"
        self.folder.mkdir(parents=True)
        self.count = 0
        store = "spark.sql.streaming.stateStore"
        rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        spark.conf.set(f"{store}.providerClass", rocks)
        spark.conf.set(f"{store}.rocksdb.changelogCheckpointing.enabled", "true")
        spark.conf.set(f"{store}.rocksdb.trackTotalNumberOfRows", "false")
        spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
        rows = spark.readStream.schema(f"custkey long, total long, {WEIGHT} long")
        groups = rows.parquet(str(self.folder)).groupBy("custkey")
        kept = groups.transformWithState(
            statefulProcessor=sum_and_count(),
            outputStructType=f"custkey long, total long, n long, {WEIGHT} long",
            outputMode="Append",
            timeMode="None",
        )
        sink = kept.writeStream.format("memory").queryName("tws").outputMode("append")
        self.query = sink.option("checkpointLocation", str(folder / "state")).start()

    def step(self, file: Path) -> None:
        """One micro-batch: a file comes, and all of it is done."""
        self.count += 1
        shutil.copyfile(file, self.folder / f".{self.count}")
        (self.folder / f".{self.count}").rename(self.folder / f"{self.count:06}.parquet")
        self.query.processAllAvailable()

    def batches(self) -> int:
        """How many micro-batches there have been that had rows."""
        return len({p["batchId"] for p in self.query.recentProgress if p["numInputRows"]})

    def value(self) -> Bag:
        found = self.spark.sql(
            f"""SELECT custkey, total, n, sum({WEIGHT}) FROM tws
                GROUP BY ALL HAVING sum({WEIGHT}) != 0"""
        )
        return {(key, total, n): weight for key, total, n, weight in found.collect()}

    def close(self) -> None:
        self.query.stop()


def sum_and_count() -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    given = Row("custkey", "total", "n", WEIGHT)

    class SumAndCount(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.kept = handle.getValueState("kept", "total long, n long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            old = tuple(self.kept.get() or (0, 0))
            total, n = old
            for row in rows:
                total += row.total * row[2]
                n += row[2]
            if (total, n) == old:
                return
            if n:
                self.kept.update((total, n))
            else:
                self.kept.clear()
            if old[1]:
                yield given(key[0], *old, -1)
            if n:
                yield given(key[0], total, n, 1)

        def close(self) -> None:
            pass

    return SumAndCount()
