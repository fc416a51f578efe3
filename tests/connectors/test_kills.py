"""A process between two servers is killed at random moments, and so are they: afterwards the target
is what the source says, and every epoch was written once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.connectors.test_kafka import Topics, added_up
from tests.connectors.worker import TOTALS, Order
from tests.servers.kafka import Kafka
from tests.servers.postgres import Database

import ebbflow as ef

ROOT = Path(__file__).parents[2]
WORK = """import json, sys
from tests.connectors.worker import work
work(**json.loads(sys.argv[1]))"""


def started(**options: Any) -> subprocess.Popen[str]:
    """The worker, with its state open."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, json.dumps(options)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    if process.stdout.readline() != "open\n":
        raise AssertionError(process.communicate()[1])
    return process


def killed_again_and_again(
    kills: int, dice: Random, write: Callable[[], None], disturb: Callable[[int], None],
    **options: Any,
) -> None:  # fmt: skip
    """Have a worker killed so often, at random moments, while the source changes; then let one
    finish."""
    for turn in range(kills):
        process = started(follow=True, **options)
        end = time.monotonic() + dice.random() * (0.15 if turn % 2 else 1.0)
        while True:
            write()
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        disturb(turn)
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = started(follow=False, **options)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said


def random_order(dice: Random) -> Order:
    return Order(dice.randrange(30), dice.choice(["Rome", "Oslo", "Bonn"]), dice.randrange(100))


def kill_with_postgres(
    database: Database, path: Path, seed: int, kills: int, crashes: bool
) -> None:
    import psycopg

    dice = Random(seed)
    database.query("CREATE TABLE orders (id int PRIMARY KEY, city text, price int)")
    database.query("CREATE TABLE audit (number bigserial, epoch bigint)")
    database.query("""CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO audit (epoch) VALUES (NEW.epoch); RETURN NEW; END $$""")
    database.query("""CREATE TABLE ebbflow_epochs (
        sink text PRIMARY KEY, epoch bigint NOT NULL, written timestamptz NOT NULL)""")
    database.query("""CREATE TRIGGER noted AFTER INSERT OR UPDATE ON ebbflow_epochs
        FOR EACH ROW EXECUTE FUNCTION note()""")

    def write() -> None:
        with psycopg.connect(database.dsn) as connection:
            for _ in range(dice.randrange(1, 4)):
                row = random_order(dice)
                if dice.random() < 0.3:
                    connection.execute("DELETE FROM orders WHERE id = %s", (row.id,))
                else:
                    connection.execute(
                        "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
                        "city = excluded.city, price = excluded.price",
                        row,
                    )

    def disturb(turn: int) -> None:
        if crashes and turn % 5 == 4:
            database.server.stop("immediate")
            database.server.start()
        elif turn % 3 == 1:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            database.server.query(query, database.name)
            time.sleep(dice.random() * 0.3)

    write()
    killed_again_and_again(kills, dice, write, disturb, path=str(path), dsn=database.dsn)
    query = "SELECT city, count(*), sum(price)::bigint FROM orders GROUP BY city"
    expected = sorted(database.query(query))
    assert expected
    assert sorted(database.query("SELECT * FROM totals")) == expected
    written = [epoch for (epoch,) in database.query("SELECT epoch FROM audit ORDER BY number")]
    assert written == list(range(written[0], written[0] + len(written))), "each epoch once"
    with TOTALS.run(path=path) as view:
        assert view.epoch == written[-1]
        assert sorted(tuple(row) for row in view.value) == expected


def test_a_process_between_tables_is_killed(database: Database, tmp_path: Path) -> None:
    kill_with_postgres(database, tmp_path, seed=1, kills=2, crashes=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_a_process_between_tables_its_connections_and_the_server_are_killed_often(
    database: Database, tmp_path: Path, seed: int
) -> None:
    kill_with_postgres(database, tmp_path, seed, kills=10, crashes=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_process_between_topics_and_the_broker_are_killed_often(
    kafka: Kafka, tmp_path: Path, seed: int
) -> None:
    topics, dice = Topics(kafka), Random(seed)
    orders, log = topics.make(3), topics.make(1)
    truth: dict[int, Order] = {}

    def write() -> None:
        row = random_order(dice)
        if dice.random() < 0.3:
            truth.pop(row.id, None)
            topics.send(orders, ({"id": row.id}, None))
        else:
            truth[row.id] = row
            topics.send(orders, ({"id": row.id}, row._asdict()))

    def disturb(turn: int) -> None:
        if turn % 4 == 3:
            kafka.kill()
            kafka.start()

    killed_again_and_again(
        8, dice, write, disturb, path=str(tmp_path), servers=kafka.servers, orders=orders, log=log
    )
    expected = TOTALS.run().step(orders=list(truth.values()))
    written = [json.loads(each.value())["epoch"] for each in topics.read(f"{log}-epochs")]
    assert written == list(range(written[0], written[0] + len(written))), "each epoch once"
    messages = topics.read(log)
    assert added_up(messages) == ef.ZSet([(tuple(row), n) for row, n in expected.items()])
    numbers = [json.loads(each.value())["epoch"] for each in messages]
    assert numbers == sorted(numbers)
    with TOTALS.run(path=tmp_path) as view:
        assert (view.value, view.epoch) == (expected, written[-1])
