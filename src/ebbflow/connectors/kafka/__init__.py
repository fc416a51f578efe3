"""Kafka: topics as inputs of a view, and outputs of a view as topics.

`changes` brings the messages of topics: rows as JSON, with tombstones as deletes, or the envelopes
that Debezium writes. The offsets of all partitions are in the view's own commit, so nothing is
asked of consumer groups. `TopicSink` writes what each epoch changed in one transaction, with the
number of the epoch: as upserts with tombstones, as a log of changes, or as envelopes. Both go on
exactly where they were, whoever is killed: this process or a broker. It needs confluent-kafka,
`pip install '.[kafka]'` in a clone.

    source = kafka.changes("localhost:9092", {"orders": "shop.orders"})
    with totals.run(path="state") as view:
        view.add_sink(kafka.TopicSink("localhost:9092", "totals"))
        source.run(view)
"""

from ebbflow.connectors.kafka.messages import BadMessage
from ebbflow.connectors.kafka.sink import TopicSink
from ebbflow.connectors.kafka.source import KafkaSource, changes

__all__ = ["BadMessage", "KafkaSource", "TopicSink", "changes"]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
