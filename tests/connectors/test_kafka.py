"""Topics of a real broker are inputs and outputs of a view, each message and each epoch once."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, NamedTuple

import pytest
from tests.servers.kafka import Kafka

import ebbflow as ef
from ebbflow.connectors.kafka import BadMessage, TopicSink, changes
from ebbflow.engine.runtime.batches import Batch
from ebbflow.errors import BrokerError, ChangeError, CompositionError, SinkError


class Order(NamedTuple):
    id: int
    city: str | None
    price: int


ORDERS = ef.Input("orders", Order, key="id")
TOTALS = ORDERS.group_by("city").agg(n=ef.count(), total=ef.sum("price"))
_numbers = count(1)
pytestmark = pytest.mark.slow  # a broker takes its time to start


class Topics:
    """Topics of a broker: to write to, and to read what is committed."""

    def __init__(self, kafka: Kafka) -> None:
        from confluent_kafka import Producer

        self.kafka = kafka
        self.producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 0})

    def make(self, partitions: int = 2) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic

        name = f"topic-{next(_numbers)}"
        admin = AdminClient({"bootstrap.servers": self.kafka.servers, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
        return name

    def send(self, topic: str, *messages: tuple[Any, Any]) -> None:
        for key, value in messages:
            data = value if isinstance(value, bytes) or value is None else json.dumps(value)
            self.producer.produce(topic, data, json.dumps(key))
        self.producer.flush(30)

    def read(self, topic: str) -> list[Any]:
        """The messages of a topic that are committed, in the order of each partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer({
            "bootstrap.servers": self.kafka.servers, "group.id": "tests", "log_level": 0,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        })  # fmt: skip
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found, ended = [], 0
        while ended < len(partitions):
            message = consumer.poll(30)
            assert message is not None
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended += 1
        consumer.close()
        return found


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    return Topics(kafka)


def upserted(messages: list[Any]) -> ef.ZSet[Any]:
    """What is left of upserts and tombstones, as a compacted topic has it."""
    left: dict[bytes, Any] = {}
    for message in messages:
        left[message.key()] = message.value()
    rows = [tuple(json.loads(value).values()) for value in left.values() if value is not None]
    return ef.ZSet.of(rows)


def added_up(messages: list[Any]) -> ef.ZSet[Any]:
    """What a log of changes adds up to."""
    found = [json.loads(message.value()) for message in messages]
    return ef.ZSet([(tuple(each["row"].values()), each["weight"]) for each in found])


def plain(value: ef.ZSet[Any]) -> ef.ZSet[Any]:
    return ef.ZSet([(tuple(row), weight) for row, weight in value.items()])


def epochs(messages: list[Any]) -> list[int]:
    """The epochs of messages, in the order in which each first came."""
    return list(dict.fromkeys(int(message.headers()[0][1]) for message in messages))


def test_rows_go_in_with_tombstones_and_out_as_upserts_and_changes(
    topics: Topics, tmp_path: Path
) -> None:
    orders, totals, log = topics.make(3), topics.make(2), topics.make(1)
    servers, dice = topics.kafka.servers, Random(3)
    source = changes(servers, {"orders": orders})
    truth: dict[int, Order] = {}
    for turn in range(4):
        with TOTALS.run(path=tmp_path) as view:
            view.add_sink(TopicSink(servers, totals))
            view.add_sink(TopicSink(servers, log, format="changes", name="log"))
            for _ in range(30):
                key = dice.randrange(25)
                if dice.random() < 0.3:
                    truth.pop(key, None)
                    topics.send(orders, ({"id": key}, None))
                else:
                    row = Order(key, dice.choice(["Rome", "Oslo", None]), dice.randrange(9))
                    truth[key] = row
                    topics.send(orders, ({"id": key}, {**row._asdict(), "more": 1}))
            source.run(view, follow=False)
            assert view.value == TOTALS.run().step(orders=list(truth.values()))
            (batch,) = view.batches()
            assert isinstance(batch.name, tuple)
            assert sum(batch.name[1].values()) == 30 * (turn + 1)  # type: ignore[union-attr]
            assert upserted(topics.read(totals)) == plain(view.value)
            assert added_up(topics.read(log)) == plain(view.value)
            assert epochs(topics.read(log)) == sorted(epochs(topics.read(log)))
            assert source.run(view, follow=False) == 0


def envelope(op: str, before: Any, after: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"lsn": 1}}


def test_envelopes_are_followed_and_written(topics: Topics) -> None:
    orders, copied = topics.make(1), topics.make(1)
    view = ORDERS.run()
    view.add_sink(TopicSink(topics.kafka.servers, copied, format="debezium"))
    first, second = Order(1, "Rome", 5)._asdict(), Order(2, None, 6)._asdict()
    topics.send(
        orders,
        ({"id": 1}, envelope("r", None, first)),
        ({"id": 2}, envelope("c", None, second)),
        ({"id": 1}, envelope("u", None, {**first, "price": 7})),
        ({"id": 3}, envelope("c", None, {**first, "id": 3})),
        ({"id": 3}, envelope("d", {"id": 3, "city": None, "price": 0}, None)),
        ({"id": 3}, None),
    )
    source = changes(topics.kafka.servers, {"orders": orders}, limit=2)
    source.run(view, follow=False)
    assert view.value == ef.ZSet.of([Order(1, "Rome", 7), Order(2, None, 6)])
    topics.send(
        orders, ({"id": 2}, envelope("u", None, {**second, "city": "__debezium_unavailable_value"}))
    )
    source.run(view, follow=False)
    assert view.input("orders").get(2) == Order(2, None, 6)
    topics.send(orders, ({}, envelope("t", None, None)), ({}, envelope("m", None, None)))
    topics.send(orders, ({"id": 9}, envelope("c", None, {**first, "id": 9})))
    other = ORDERS.run()
    changes(topics.kafka.servers, {"orders": copied}, format="debezium").run(other, follow=False)
    assert other.value == view.value, "what is written is what is read"
    source.run(view, follow=False)
    assert view.value == ef.ZSet.of([Order(9, "Rome", 5)])
    view.close()


def test_a_message_that_is_no_row_is_refused_with_its_place_or_put_aside(topics: Topics) -> None:
    orders = topics.make(1)
    good = Order(1, "Rome", 5)._asdict()
    topics.send(orders, (1, good), (2, b"{"), (3, {**good, "id": "x"}), (4, {**good, "id": 4}))
    view = ORDERS.run()
    servers = topics.kafka.servers
    with pytest.raises(ChangeError, match=rf"topic '{orders}', partition 0, offset 1: "):
        changes(servers, {"orders": orders}).run(view, follow=False)
    assert view.epoch == 0
    aside: list[BadMessage] = []
    changes(servers, {"orders": orders}, bad=aside.append).run(view, follow=False)
    assert [(each.offset, each.why) for each in aside][1] == (2, "field 'id': 'x' is no int")
    assert sorted(row.id for row in view.value) == [1, 4]
    assert view.batches() == [Batch(("kafka", {f"{orders}/0": 4}), 1)]


def test_errors_say_what_to_do(topics: Topics) -> None:
    view, servers = ORDERS.run(), topics.kafka.servers
    with pytest.raises(BrokerError, match="there is no topic 'none'"):
        changes(servers, {"orders": "none"}).run(view, follow=False)
    with pytest.raises(BrokerError, match="there is no topic 'none'"):
        view.add_sink(TopicSink(servers, "none"))
    with pytest.raises(BrokerError, match="no broker has answered"):
        changes("127.0.0.1:1", {"orders": "none"}, wait=0.5).run(view, follow=False)
    with pytest.raises(CompositionError, match="no such format"):
        changes(servers, {"orders": "none"}, format="avro")
    with pytest.raises(CompositionError, match="no key that the program shows"):
        ef.Input("orders", Order).run().add_sink(TopicSink(servers, "none"))
    topic = topics.make(1)
    bag = ef.Input("orders", Order).run()
    bag.add_sink(TopicSink(servers, topic, key="city"))
    with pytest.raises(SinkError, match="several rows of one key"):
        bag.step(orders=[Order(1, "Rome", 5), Order(2, "Rome", 5)])
    bag.close()


def test_a_topic_that_has_dropped_what_was_not_read_is_told(topics: Topics) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    orders = topics.make(1)
    source = changes(topics.kafka.servers, {"orders": orders})
    view = ORDERS.run()
    for number in range(2):
        topics.send(orders, (number, Order(number, "Rome", 5)._asdict()))
    source.run(view, follow=False)
    for number in range(3):
        topics.send(orders, (number, Order(number, "Oslo", 5)._asdict()))
    admin = AdminClient({"bootstrap.servers": topics.kafka.servers, "log_level": 0})
    (deleted,) = admin.delete_records([TopicPartition(orders, 0, 4)]).values()
    deleted.result(30)
    with pytest.raises(BrokerError, match=r"does not have offset 2 of (.|\n)*retention"):
        source.run(view, follow=False)


def test_a_sink_that_was_taken_over_stops(topics: Topics) -> None:
    topic = topics.make(1)
    view, other = TOTALS.run(), TOTALS.run()
    view.add_sink(TopicSink(topics.kafka.servers, topic))
    view.step(orders=[Order(1, "Rome", 5)])
    other.step(orders=[Order(1, "Rome", 5)])
    other.add_sink(TopicSink(topics.kafka.servers, topic))
    with pytest.raises(SinkError, match="taken over by another process"):
        view.step(orders=[Order(2, "Rome", 5)])
    other.step(orders=[Order(3, "Oslo", 6)])
    assert epochs(topics.read(topic)) == [1, 2]
    assert upserted(topics.read(topic)) == plain(other.value)
    view.close()
    other.close()


def test_without_transactions_upserts_are_written_again_and_do_no_harm(
    topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make(1)
    for turn in range(2):
        with TOTALS.run(path=tmp_path) as view:
            view.add_sink(TopicSink(topics.kafka.servers, topic, transactions=False))
            view.step(orders=[Order(turn, "Rome", 5)])
            assert upserted(topics.read(topic)) == plain(view.value)


def test_it_follows_until_it_is_stopped_through_the_death_of_the_broker(
    topics: Topics, tmp_path: Path
) -> None:
    orders, totals = topics.make(2), topics.make(1)
    servers, stop = topics.kafka.servers, Event()
    with TOTALS.run(path=tmp_path) as view:
        view.add_sink(TopicSink(servers, totals, wait=60))
        follower = Thread(target=lambda: changes(servers, {"orders": orders}).run(view, stop=stop))
        follower.start()
        for number in range(200):
            topics.send(orders, (number, Order(number, "Rome", number)._asdict()))
            if number in (60, 140):
                topics.kafka.kill()
                topics.kafka.start()
        while view.value != ef.ZSet.of([TOTALS.type("Rome", 200, sum(range(200)))]):
            assert follower.is_alive()
            stop.wait(0.1)
        stop.set()
        follower.join(30)
        found = topics.read(totals)
        assert upserted(found) == plain(view.value)
        assert len(found) == len({message.headers()[0][1] for message in found}), "each epoch once"
