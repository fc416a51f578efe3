"""The program behind a real table or topic changes: the difference is one epoch, exactly once, and
a sink that begins again rewrites its target."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import pytest
from tests.connectors.test_kafka import Topics, upserted
from tests.servers.kafka import Kafka
from tests.servers.postgres import Database

import ebbflow as ef
from ebbflow.connectors.kafka import TopicSink
from ebbflow.connectors.postgres import TableSink
from ebbflow.errors import DatabaseError, SinkError

ROOT = Path(__file__).parents[2]


class Sale(NamedTuple):
    id: int
    city: str | None
    price: int


SALES = ef.Input("sales", Sale, key="id")
ROWS = [Sale(i, ["Rome", "Oslo", None][i % 3], i) for i in range(30)]


def totals(least: int) -> Any:
    return SALES.filter(lambda sale: sale.price > least).group_by("city").agg(
        n=ef.count(), total=ef.sum("price")
    )  # fmt: skip


def bag(least: int) -> Any:
    return SALES.filter(lambda sale: sale.price > least).select(part=lambda sale: sale.price % 4)


def table(database: Database, name: str = "totals") -> ef.ZSet[Any]:
    return ef.ZSet.of(database.query(f"SELECT * FROM {name}"))


def plain(value: ef.ZSet[Any]) -> ef.ZSet[Any]:
    return ef.ZSet([(tuple(row), weight) for row, weight in value.items()])


def epochs_of(database: Database) -> list[tuple[str, int]]:
    return sorted(database.query("SELECT sink, epoch FROM ebbflow_epochs"))


# ---- PostgreSQL ----


def test_a_table_has_what_the_changed_program_gives(database: Database, tmp_path: Path) -> None:
    sink = TableSink(database.dsn, "totals", create=True)
    counted = TableSink(database.dsn, "bag", count="n", create=True)
    with totals(0).run(path=tmp_path / "a") as view, bag(0).run(path=tmp_path / "b") as other:
        view.add_sink(sink)
        other.add_sink(counted)
        view.step(sales=ROWS[:20])
        other.step(sales=ROWS[:20])
    with totals(0).run(path=tmp_path / "a") as view:
        view.step(sales=ROWS[20:])  # the table is behind
    for least in (5, 14, 0):
        with totals(least).run(path=tmp_path / "a") as view:
            if least != 5:
                view.add_sink(TableSink(database.dsn, "totals"))
                assert table(database) == plain(view.value), "and no row has changed"
        with bag(least).run(path=tmp_path / "b") as other:
            other.add_sink(TableSink(database.dsn, "bag", count="n"))
            rows = ef.ZSet([((part,), n) for part, n in database.query("SELECT * FROM bag")])
            assert rows == plain(other.value)
    assert epochs_of(database) == [("table bag", 4), ("table totals", 5)]


def test_a_table_that_was_edited_by_hand_is_rewritten(database: Database, tmp_path: Path) -> None:
    view = totals(0).run(path=tmp_path)
    view.add_sink(TableSink(database.dsn, "totals", create=True))
    view.step(sales=ROWS)
    database.query("UPDATE totals SET n = 77 WHERE city = 'Rome'")
    database.query("INSERT INTO totals VALUES ('Nowhere', 1, 1)")
    view.restart_sink("table totals")
    assert table(database) == plain(view.value)
    assert epochs_of(database) == [("table totals", 1)]
    view.step(sales=ef.delete([1]))
    assert table(database) == plain(view.value)
    view.close()


def test_a_wider_column_is_refused_and_a_restart_makes_it(
    database: Database, tmp_path: Path
) -> None:
    with totals(0).run(path=tmp_path) as view:
        view.add_sink(TableSink(database.dsn, "totals", create=True))
        view.step(sales=ROWS)
    database.query("CREATE ROLE reader")
    database.query("GRANT SELECT ON totals TO reader")
    wider = SALES.group_by("city").agg(mean=ef.mean("price"), total=ef.mean("price"))
    with wider.run(path=tmp_path) as view:
        with pytest.raises(SinkError, match="then the program changed") as caught:
            view.add_sink(TableSink(database.dsn, "totals"))
        assert "total: int" in str(caught.value.facts["why"])
        assert table(database) == plain(totals(0).run().step(sales=ROWS))
        view.restart_sink("table totals")
        with pytest.raises((SinkError, DatabaseError), match="column"):
            view.add_sink(TableSink(database.dsn, "totals"))
        assert table(database) == plain(totals(0).run().step(sales=ROWS)), "all or nothing"
    with wider.run(path=tmp_path) as view:
        view.add_sink(TableSink(database.dsn, "totals", create=True))
        found = ef.ZSet.of(database.query("SELECT city, mean, total FROM totals"))
        assert found == plain(view.value)
        view.step(sales=ef.delete([3, 4]))
        found = ef.ZSet.of(database.query("SELECT city, mean, total FROM totals"))
        assert found == plain(view.value)
    types = dict(database.query(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'totals'"
    ))  # fmt: skip
    assert types == {"city": "text", "mean": "double precision", "total": "double precision"}
    assert database.query("SELECT has_table_privilege('reader', 'totals', 'SELECT')") == [(True,)]
    database.query("REVOKE ALL ON totals FROM reader")
    database.query("DROP ROLE reader")


def test_a_column_that_would_round_is_refused(database: Database, tmp_path: Path) -> None:
    database.query("CREATE TABLE means (city text PRIMARY KEY, mean bigint)")
    view = SALES.filter(lambda sale: sale.city is not None).group_by("city").agg(
        mean=ef.mean("price")
    ).run(path=tmp_path)  # fmt: skip
    view.step(sales=ROWS)
    with pytest.raises(SinkError, match="'mean' would round the values"):
        view.add_sink(TableSink(database.dsn, "means", key="city"))
    database.query("ALTER TABLE means ALTER COLUMN mean TYPE double precision")
    view.add_sink(TableSink(database.dsn, "means", key="city"))
    assert table(database, "means") == plain(view.value)
    view.close()


def test_a_restart_makes_another_key_and_other_columns(database: Database, tmp_path: Path) -> None:
    class Money(NamedTuple):
        id: int
        city: str
        cents: Annotated[int, "cents"]

    money = ef.Input("sales", Money, key="id")
    with money.run(path=tmp_path) as view:
        view.add_sink(TableSink(database.dsn, "t", create=True))
        view.step(sales=[Money(1, "Rome", 5), Money(2, "Rome", 6)])
    with money.group_by("city").agg(n=ef.count()).run(path=tmp_path) as view:
        view.restart_sink("table t")
        view.add_sink(TableSink(database.dsn, "t", create=True))
        assert database.query("SELECT * FROM t") == [("Rome", 2)]
        view.step(sales=[Money(3, "Oslo", 5)])
        assert table(database, "t") == plain(view.value)


def test_a_table_of_another_state_is_taken_over_by_a_restart(
    database: Database, tmp_path: Path
) -> None:
    view = totals(0).run(path=tmp_path / "old")
    view.add_sink(TableSink(database.dsn, "totals", create=True))
    for row in ROWS[:5]:
        view.step(sales=[row])
    view.close()
    view = totals(0).run(path=tmp_path / "new")
    view.step(sales=ROWS[3:])
    sink = TableSink(database.dsn, "totals")
    with pytest.raises(SinkError, match="not a sink of this state") as caught:
        view.add_sink(sink)
    assert "view.restart_sink('table totals')" in caught.value.remedy
    view.restart_sink("table totals")
    view.add_sink(sink)
    assert table(database) == plain(view.value)
    view.step(sales=ef.delete([5]))
    assert table(database) == plain(view.value)
    assert epochs_of(database) == [("table totals", 2)]
    view.close()


WORK = """import json, sys
from tests.connectors.test_sinks_changed import work
work(**json.loads(sys.argv[1]))"""


def work(path: str, dsn: str, least: int, restart: bool) -> None:
    """What a nightly job does, to be killed."""
    print("begin", flush=True)
    with totals(least).run(path=path) as view:
        if restart and "table totals" in view.sinks:
            view.restart_sink("table totals")
        view.add_sink(TableSink(dsn, "totals", create=True))
        view.step(sales=ef.upsert([Sale(view.epoch % 30, "Rome", view.epoch)]))


@pytest.mark.parametrize("restart", [False, True], ids=["difference", "restart"])
@pytest.mark.slow
def test_a_job_whose_program_changes_is_killed_at_random(
    database: Database, tmp_path: Path, restart: bool
) -> None:
    dice = Random(7)
    with totals(0).run(path=tmp_path) as view:
        view.add_sink(TableSink(database.dsn, "totals", create=True))
        view.step(sales=ROWS)
    for turn in range(12):
        given = {"path": str(tmp_path), "dsn": database.dsn, "least": turn % 3 * 4,
                 "restart": restart and turn % 2 == 0}  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", WORK, json.dumps(given)], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n", process.communicate()[1]
        try:
            process.communicate(timeout=dice.random() * 0.5)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        with totals(given["least"]).run(path=tmp_path) as view:
            view.add_sink(TableSink(database.dsn, "totals"))
            assert table(database) == plain(view.value), turn
            assert epochs_of(database) == [("table totals", view.epoch)]


# ---- Kafka ----


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    return Topics(kafka)


@pytest.mark.slow
@pytest.mark.parametrize("transactions", [True, False])
def test_a_topic_of_upserts_has_what_the_changed_program_gives(
    topics: Topics, tmp_path: Path, transactions: bool
) -> None:
    topic, servers = topics.make(2), topics.kafka.servers

    def sink() -> TopicSink:
        return TopicSink(servers, topic, transactions=transactions, name=f"to {topic}")

    with totals(0).run(path=tmp_path) as view:
        view.add_sink(sink())
        view.step(sales=ROWS)
    with totals(28).run(path=tmp_path) as view:
        view.add_sink(sink())
        assert upserted(topics.read(topic)) == plain(view.value)
        topics.send(topic, ({"city": "Nowhere"}, {"city": "Nowhere", "n": 1, "total": 1}))
        topics.send(topic, ({"city": None}, {"city": None, "n": 7, "total": 1}))
        view.restart_sink(f"to {topic}")
        assert upserted(topics.read(topic)) == plain(view.value)
        view.step(sales=ef.delete([29]))
        assert upserted(topics.read(topic)) == plain(view.value)


@pytest.mark.slow
def test_logs_say_where_they_begin_again(topics: Topics, tmp_path: Path) -> None:
    changes, debezium, servers = topics.make(1), topics.make(1), topics.kafka.servers
    view = totals(0).run(path=tmp_path)
    view.add_sink(TopicSink(servers, changes, format="changes", name=f"to {changes}"))
    view.add_sink(TopicSink(servers, debezium, format="debezium", name=f"to {debezium}"))
    view.step(sales=ROWS)
    topics.send(debezium, ({"city": "Nowhere"}, {"op": "c", "before": None, "after": {}}))
    for name in list(view.sinks):
        view.restart_sink(name)
    view.step(sales=ef.delete([3]))
    said = [json.loads(each.value()) for each in topics.read(changes)]
    begins = next(i for i, each in enumerate(said) if each.get("snapshot"))
    assert begins == 3
    total = ef.ZSet([(tuple(each["row"].values()), each["weight"]) for each in said[begins:]])
    assert total == plain(view.value)
    messages = [
        (json.loads(each.key()), json.loads(each.value())) for each in topics.read(debezium)
    ]
    ops = [(key["city"], said["op"]) for key, said in messages[4:]]
    assert ops[0] == ("Nowhere", "d")
    assert sorted(ops[1:4], key=str) == [("Oslo", "r"), ("Rome", "r"), (None, "r")]
    assert [op for _, op in ops[4:]] == ["u"]
    view.close()
