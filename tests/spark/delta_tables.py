"""Delta tables in and out of a view on Spark, in a process of its own: a session has Delta's jar
from its start. Run as `python delta_tables.py FOLDER SEED [KILL]`: every round changes the table,
has the view follow it, and compares it and the tables of its sinks with what computing from scratch
gives. With KILL it kills itself: after so many MERGEs and before they are noted. What is in the
folder is gone on with. With "tracked" for KILL, the table has no change feed: Spark is asked for
what changes (`spark.read.changes`), which it knows from the numbers of rows. The exit status is 77
where the jar cannot be had.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"
NO_JAR = 77


class Order(NamedTuple):
    id: int
    city: str | None
    price: int


def session() -> Any:
    from ebbflow.engine.spark.session import session as started

    settings = {
        "spark.driver.memory": "1g",
        "spark.jars.packages": JAR,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    try:
        found = started("ebbflow-delta", cores=2, **settings)
        found.sql("DESCRIBE DETAIL delta.`/nowhere`")
    except Exception as error:
        said = str(error)
        if "DELTA" in said or "not a Delta table" in said:
            return found
        print(said.partition("\n")[0])
        sys.exit(NO_JAR)
    return found


def totals() -> Any:
    import ebbflow as ef

    orders = ef.Input("orders", Order, key="id")
    return orders.group_by("city").agg(n=ef.count(), total=ef.sum("price"))


def holds(spark: Any, path: Path, columns: list[str]) -> Counter[Any]:
    return Counter(
        tuple(row) for row in spark.read.format("delta").load(str(path)).select(*columns).collect()
    )


def expected(spark: Any, path: Path) -> Counter[Any]:
    from ebbflow.engine.batch import evaluate
    from ebbflow.zset import ZSet

    rows = holds(spark, path / "orders", list(Order._fields))
    value = evaluate(totals().plan, {"orders": ZSet({Order(*row): n for row, n in rows.items()})})
    return Counter({tuple(row): weight for row, weight in value["output"].items()})


def change(spark: Any, path: Path, dice: Random, used: int) -> None:
    """One commit of any kind."""
    table, where = f"delta.`{path / 'orders'}`", f"id % {dice.randrange(2, 5)} = 1"
    new = ", ".join(f"({used + i}, {dice.choice(['NULL', chr(39) + 'Rome' + chr(39)])}, {i}, 'x')"
                    for i in range(3))  # fmt: skip
    match dice.randrange(5):
        case 0:
            spark.sql(f"INSERT INTO {table} VALUES {new}")
        case 1:
            spark.sql(f"DELETE FROM {table} WHERE {where}")
        case 2:
            spark.sql(f"UPDATE {table} SET price = price + 10 WHERE {where}")
        case 3:
            given = f"SELECT id + 1 AS id, city, price, note FROM {table} WHERE {where}"
            spark.sql(
                f"MERGE INTO {table} t USING ({given}) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET price = 1 WHEN NOT MATCHED THEN INSERT *"
            )
        case 4:
            spark.sql(f"INSERT OVERWRITE {table} VALUES {new}")


def begin_again(spark: Any, path: Path) -> None:
    """Change the program behind the sinks, and a table by hand, and have the sinks begin again."""
    import ebbflow as ef
    from ebbflow.connectors import delta

    def of(least: int, how: Any) -> Any:
        orders = ef.Input("orders", Order, key="id").filter(lambda order: order.price > least)
        return orders.group_by("city").agg(n=ef.count(), total=how("price"))

    def right(view: Any) -> None:
        rows = Counter(tuple(row) for row in view.value.collect())
        assert holds(spark, path / "totals", ["city", "n", "total"]) == rows
        log: Counter[Any] = Counter()
        for row in spark.read.format("delta").load(str(path / "log")).collect():
            log[row["city"], row["n"], row["total"]] += row["__weight"]
        assert Counter({row: n for row, n in log.items() if n}) == rows

    for turn, (least, how) in enumerate([(6, ef.sum), (0, ef.sum), (0, ef.mean)]):
        with of(least, how).run(ef.spark(spark, path=path / "state", in_driver=True)) as view:
            if turn == 2:
                for name in view.sinks:
                    view.restart_sink(name)
            view.add_sink(delta.TableSink(path / "totals"))
            view.add_sink(delta.LogSink(path / "log"))
            right(view)
            spark.sql(f"DELETE FROM delta.`{path / 'totals'}` WHERE n > 0")
            view.restart_sink(f"delta {path / 'totals'}")
            right(view)
            view.step(orders=ef.upsert([Order(7 + turn, "Rome", 100 + turn)]))
            right(view)


def main(folder: str, seed: str, kill: str = "") -> None:
    import ebbflow as ef
    from ebbflow.connectors import delta
    from ebbflow.connectors.delta.frames import SparkTable

    spark, path, dice = session(), Path(folder), Random(seed)
    spark.sparkContext.setLogLevel("ERROR")
    orders, tracked = f"delta.`{path / 'orders'}`", kill == "tracked"
    how = "delta.enableRowTracking" if tracked else "delta.enableChangeDataFeed"
    if tracked:
        spark.conf.set("spark.databricks.delta.changelogV2.enabled", "true")
    if not (path / "orders").is_dir():
        spark.sql(f"CREATE TABLE {orders} (id BIGINT, city STRING, price BIGINT, note STRING) "
                  f"USING delta TBLPROPERTIES ('{how}' = 'true')")  # fmt: skip
        spark.sql(
            f"INSERT INTO {orders} VALUES (1, 'Rome', 5, ''), (2, NULL, 6, ''), (3, 'Oslo', 7, '')"
        )
    if kill and not tracked:
        real, count = SparkTable.merge, [0]

        def merge(self: Any, *given: Any) -> None:
            real(self, *given)
            count[0] += 1
            if count[0] == int(kill):
                os.kill(os.getpid(), signal.SIGKILL)

        SparkTable.merge = merge  # type: ignore[method-assign]
    follow = delta.changes({"orders": path / "orders"})
    with totals().run(ef.spark(spark, path=path / "state", in_driver=True)) as view:
        view.add_sink(delta.TableSink(path / "totals"))
        view.add_sink(delta.LogSink(path / "log"))
        follow.run(view, follow=False)
        for step in range(2):
            change(spark, path, dice, 1000 * (view.epoch + 1))
            follow.run(view, follow=False)
            right = expected(spark, path)
            assert Counter(tuple(row) for row in view.value.collect()) == right, step
            assert holds(spark, path / "totals", ["city", "n", "total"]) == right, step
            log: Counter[Any] = Counter()
            for row in spark.read.format("delta").load(str(path / "log")).collect():
                log[row["city"], row["n"], row["total"]] += row["__weight"]
            assert Counter({row: n for row, n in log.items() if n}) == right, step
        before = spark.sql(f"DESCRIBE HISTORY delta.`{path / 'totals'}`").count()
        assert follow.run(view, follow=False) == 0
    with totals().run(ef.spark(spark, path=path / "state", in_driver=True)) as view:
        view.add_sink(delta.TableSink(path / "totals"))
        view.add_sink(delta.LogSink(path / "log"))
        assert follow.run(view, follow=False) == 0
    assert spark.sql(f"DESCRIBE HISTORY delta.`{path / 'totals'}`").count() == before
    if not kill:
        begin_again(spark, path)
    if tracked:
        last = spark.sql(f"DESCRIBE HISTORY {orders} LIMIT 1").collect()[0]["version"]
        with totals().run(ef.spark(spark, path=path / "stepped")) as view:
            for version in range(1, last + 1):
                between = {"startingVersion": version, "endingVersion": version}
                view.step(orders=spark.read.options(**between).changes(orders).drop("note"))
            assert Counter(tuple(row) for row in view.value.collect()) == expected(spark, path)
    print("as computed from scratch")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
