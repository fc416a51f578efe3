"""The contestants of `live.py`: a view that a stream feeds, and what else one would do with it.

View         this engine, with inputs that are checked: a row that goes must have been there
Trusting     this engine, without that check, as `transformWithState` has none either
Floor        only writes what comes: what Spark takes for a micro-batch
Recompute    appends what comes to a table, computes everything again, overwrites the result
Merge        a Delta table by MERGE; then the sums of the customers whose orders changed, from
             that table, and those by MERGE, too. Deletion vectors are on. It needs Delta's jar
KeptBySpark  `transformWithState` with the same sums, and retractions
"""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import spark_rivals as rivals

import ebbflow as ef

WEIGHT = "__weight"
SCHEMA = f"orderkey long, custkey long, total long, {WEIGHT} long"
PATIENCE = 600
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
DELTA_SETTINGS = {
    "spark.jars.packages": DELTA,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}


class Order(NamedTuple):
    orderkey: int
    custkey: int
    total: int


TOTALS = ef.Input("orders", Order).group_by("custkey").agg(total=ef.sum("total"), n=ef.count())


def bag(view: Any) -> rivals.Bag:
    return {tuple(row): n for row, n in view.zset().items()}


class Fed:
    """A stream that looks for files in a folder, and says when it is done with one."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        (folder / "in").mkdir(parents=True)
        self.done, self.at = Event(), 0.0
        self.frame = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))

    def finished(self) -> None:
        self.at = perf_counter()
        self.done.set()

    def step(self, table: Any) -> float:
        """How long it takes from the arrival of a file until it is done with."""
        self.count += 1
        hidden = self.folder / "in" / f".{self.count}"
        pq.write_table(table, hidden)
        self.done.clear()
        begin = perf_counter()
        hidden.rename(self.folder / "in" / f"{self.count:06}.parquet")
        while not self.done.wait(1.0):
            self.require_running()
            if perf_counter() > begin + PATIENCE:
                raise AssertionError(f"{type(self).__name__}: a file was not taken")
        return self.at - begin

    def require_running(self) -> None:
        """Raise why the stream has ended, if it has."""
        raise NotImplementedError


class View(Fed):
    """This engine."""

    checked = True

    def __init__(self, spark: Any, folder: Path) -> None:
        super().__init__(spark, folder)
        engine = ef.spark(spark, path=folder / "state")
        self.view = TOTALS.run(engine, check_input=self.checked)
        self.view.each_epoch(lambda change, epoch: self.finished(), name="bench")
        self.stream = self.view.stream(orders=self.frame)

    def require_running(self) -> None:
        if not self.stream.active:
            self.stream.wait()

    def value(self) -> rivals.Bag:
        return bag(self.view)

    def close(self) -> None:
        self.view.close()


class Trusting(View):
    """This engine; what goes is not looked for among what is there."""

    checked = False


class Batches(Fed):
    """A plain stream: what `take` does with every batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        super().__init__(spark, folder)
        writer = self.frame.writeStream.foreachBatch(self._take)
        self.query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    def _take(self, batch: Any, number: int) -> None:
        self.take(batch, number)
        self.finished()

    def take(self, batch: Any, number: int) -> None:
        raise NotImplementedError

    def require_running(self) -> None:
        if not self.query.isActive:
            self.query.awaitTermination()

    def close(self) -> None:
        self.query.stop()


class Floor(Batches):
    """Only writes what comes."""

    def take(self, batch: Any, number: int) -> None:
        batch.write.mode("append").parquet(str(self.folder / "out"))


class Recompute(Batches):
    """Appends what comes, computes everything again, and overwrites the result."""

    def take(self, batch: Any, number: int) -> None:
        batch.write.mode("append").parquet(str(self.folder / "all"))
        session = batch.sparkSession
        rows = session.read.schema(SCHEMA).parquet(str(self.folder / "all"))
        found = session.sql(
            f"""SELECT custkey, sum(total * {WEIGHT}) AS total, sum({WEIGHT}) AS n
                FROM {{rows}} GROUP BY custkey HAVING sum({WEIGHT}) != 0""",
            rows=rows,
        )
        found.write.mode("overwrite").parquet(str(self.folder / "out"))

    def value(self) -> rivals.Bag:
        found = self.spark.read.parquet(str(self.folder / "out")).collect()
        return {tuple(row): 1 for row in found}


class Merge(Batches):
    """Merges what comes into a table, computes again what it touches, and merges that."""

    def _run(self, session: Any, query: str, **frames: Any) -> Any:
        places = {name: f"delta.`{self.folder / name}`" for name in ("orders", "totals")}
        return session.sql(query.format(**places, **{name: f"{{{name}}}" for name in frames}),
                           **frames)  # fmt: skip

    def take(self, batch: Any, number: int) -> None:
        session = batch.sparkSession
        batch.persist()
        if not number:
            table = (
                "(orderkey long, custkey long, total long)",
                "(custkey long, total long, n long)",
            )
            for name, columns in zip(("{orders}", "{totals}"), table, strict=True):
                made = f"CREATE TABLE {name} {columns} USING delta"
                self._run(session, f"{made} TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
            self._run(session, "INSERT INTO {orders} SELECT orderkey, custkey, total FROM {rows}",
                      rows=batch)  # fmt: skip
        else:
            self._run(session, f"""MERGE INTO {{orders}} t USING (
                SELECT orderkey, max_by(custkey, {WEIGHT}) AS custkey,
                       max_by(total, {WEIGHT}) AS total, max({WEIGHT}) AS weight
                FROM {{rows}} GROUP BY orderkey) s ON t.orderkey = s.orderkey
                WHEN MATCHED AND s.weight < 0 THEN DELETE
                WHEN MATCHED THEN UPDATE SET t.custkey = s.custkey, t.total = s.total
                WHEN NOT MATCHED THEN INSERT (orderkey, custkey, total)
                     VALUES (s.orderkey, s.custkey, s.total)""", rows=batch)  # fmt: skip
        self._run(session, """MERGE INTO {totals} t USING (
            SELECT k.custkey, sum(o.total) AS total, count(o.orderkey) AS n
            FROM (SELECT DISTINCT custkey FROM {rows}) k
            LEFT JOIN {orders} o ON o.custkey = k.custkey GROUP BY k.custkey) s
            ON t.custkey = s.custkey
            WHEN MATCHED AND s.n = 0 THEN DELETE
            WHEN MATCHED THEN UPDATE SET t.total = s.total, t.n = s.n
            WHEN NOT MATCHED AND s.n > 0 THEN INSERT *""", rows=batch)  # fmt: skip
        batch.unpersist()

    def value(self) -> rivals.Bag:
        found = self._run(self.spark, "SELECT custkey, total, n FROM {totals}").collect()
        return {tuple(row): 1 for row in found}


class KeptBySpark:
    """`transformWithState`."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.kept, self.file = rivals.TransformWithState(spark, folder), folder / "next.parquet"

    def step(self, table: Any) -> float:
        pq.write_table(table, self.file)
        begin = perf_counter()
        self.kept.step(self.file)
        return perf_counter() - begin

    def value(self) -> rivals.Bag:
        return self.kept.value()

    def close(self) -> None:
        self.kept.close()
