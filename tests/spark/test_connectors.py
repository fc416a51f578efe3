"""The same sources and sinks on Spark: tables in and out of a real PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.connectors.conftest import database, postgres  # noqa: F401
from tests.connectors.worker import TOTALS
from tests.servers.postgres import Database

import ebbflow as ef
from ebbflow.connectors.postgres import TableSink, changes

QUERY = "SELECT city, count(*), sum(price)::bigint FROM orders GROUP BY city ORDER BY city"


@pytest.mark.slow
def test_tables_go_in_and_out_on_spark(
    spark: Any,
    database: Database,  # noqa: F811
    tmp_path: Path,
) -> None:
    dice = Random(7)
    database.query("CREATE TABLE orders (id int PRIMARY KEY, city text, price int)")
    database.query(
        "INSERT INTO orders SELECT i, 'city ' || i % 300, i FROM generate_series(1, 5000) i"
    )
    source = changes(database.dsn, {"orders": "orders"}, slot="spark")
    for turn in range(3):
        with TOTALS.run(ef.spark(spark, path=tmp_path)) as view:
            view.add_sink(TableSink(database.dsn, "totals", create=True))
            source.run(view, follow=False)
            for _ in range(2):
                keys = [dice.randrange(5000) for _ in range(5)]
                database.query("DELETE FROM orders WHERE id = ANY(%s)", keys[:2])
                database.query("UPDATE orders SET price = price + 1 WHERE id = ANY(%s)", keys)
                database.query("INSERT INTO orders VALUES (%s, 'new', 1)", 10_000 + view.epoch)
                source.run(view, follow=False)
                found = database.query("SELECT * FROM totals ORDER BY city")
                assert found == database.query(QUERY)
                assert {tuple(row) for row in view.zset()} == set(found)
            assert view.batches()[-1].epoch == view.epoch == 2 + 2 * (turn + 1)
