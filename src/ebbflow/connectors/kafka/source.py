"""Topics of Kafka as inputs of a view, with the offsets of all partitions in the view's commit.

Messages come in order within a partition, and so do those of one key. What was read of all
partitions at once is one batch; its position is the next offset of every partition it has messages
of. The view keeps the position with the epoch, and nothing else does: no consumer group is told.
Started again, every partition is read from the offset that the view has, a new one from its
beginning. Only what is committed is read, where producers use transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Event
from time import monotonic
from typing import Any

from ebbflow.connectors.kafka.broker import WAIT, configuration, partitions_of
from ebbflow.connectors.kafka.messages import (
    AUTO,
    DEBEZIUM,
    ROWS,
    BadMessage,
    apply_message,
    json_decoder,
)
from ebbflow.connectors.source import (
    ChangeSource,
    InputEvents,
    SourceBatch,
    SourceRow,
    inputs_of,
    position_of,
    refused_event,
)
from ebbflow.errors import BrokerError, CompositionError, Text
from ebbflow.flow.plan import Source

LIMIT = 10_000
"""How many messages there are in a batch at most."""


def changes(
    servers: str,
    topics: Mapping[str, str],
    *,
    name: str = "kafka",
    format: str = AUTO,
    limit: int = LIMIT,
    bad: Callable[[BadMessage], object] | None = None,
    decode: Callable[[bytes], Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    wait: float = WAIT,
) -> KafkaSource:
    """The messages of topics, as `{input: topic}`, for `run(view)`; see the module. ::

        source = changes("localhost:9092", {"orders": "shop.orders"})
        source.run(view)                  # follows until it is stopped
        source.run(view, follow=False)    # what is there now, then it ends

    `format` is "rows" or "debezium"; "auto" tells them apart by message. `name` is that of the
    source, under which the view keeps its offsets. At most `limit` messages come in one epoch. A
    message that is no row is an error, which says where it is; with a function `bad` it is given to
    that, and left out. `decode` reads keys and values that are no JSON. `settings` are those of
    librdkafka, for the consumer. Without an answer of the brokers for `wait` seconds it fails,
    where it does not follow.
    """
    return KafkaSource(servers, topics, name, format, limit, bad, decode, settings or {}, wait)


class KafkaSource(ChangeSource):
    """The messages of some topics; see `changes`."""

    def __init__(
        self,
        servers: str,
        topics: Mapping[str, str],
        name: str,
        format: str,
        limit: int,
        bad: Callable[[BadMessage], object] | None,
        decode: Callable[[bytes], Any] | None,
        settings: Mapping[str, Any],
        wait: float,
    ) -> None:
        if format not in (ROWS, DEBEZIUM, AUTO) or not topics:
            raise CompositionError(
                f"changes(topics={dict(topics)!r}, format={format!r}): there is no such format"
                if topics
                else "changes: no topics",
                remedy='{"orders": "shop.orders"}, format="rows", "debezium" or "auto"',
            )
        self.topics, self.name, self.format, self.limit = dict(topics), name, format, limit
        self.bad, self.decode, self.wait = bad, decode, wait
        self.configuration = configuration(
            servers,
            {
                "group.id": f"ebbflow-{name}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                **settings,
            },
        )

    def batches(
        self, view: Any, *, follow: bool = True, stop: Event | None = None
    ) -> Iterator[SourceBatch]:
        """The messages that the view has not had, some at a time."""
        inputs = inputs_of(view, self.topics)
        position: dict[str, int] = dict(position_of(view, self.name) or {})
        with TopicReader(self, position, follow) as reader:
            while (stop is None or not stop.is_set()) and (follow or reader.waiting):
                messages = reader.read()
                if not messages:
                    continue
                done = False

                def confirm(messages: list[Any] = messages) -> None:
                    nonlocal done
                    done = True
                    position.update(after(messages))

                found = self._changes(view, inputs, messages)
                yield SourceBatch(found, (self.name, after(messages)), confirm)
                if not done:
                    reader.go_back()

    def _changes(
        self, view: Any, inputs: Mapping[str, Source], messages: list[Any]
    ) -> dict[str, Any]:
        """What some messages change in the inputs."""
        rows = {name: SourceRow(view, name, InputEvents(source)) for name, source in inputs.items()}
        decodes = {
            name: self.decode or json_decoder(source.type) for name, source in inputs.items()
        }
        for message in messages:
            for name, topic in self.topics.items():
                if topic == message.topic():
                    self._apply(rows[name], message, decodes[name])
        changes = {name: row.events.change() for name, row in rows.items()}
        return {name: change for name, change in changes.items() if change is not None}

    def _apply(self, row: SourceRow, message: Any, decode: Callable[[bytes], Any]) -> None:
        key, value = message.key(), message.value()
        try:
            apply_message(row, key, value, self.format, decode)
        except (ValueError, TypeError, KeyError) as error:
            where = message.topic(), message.partition(), message.offset()
            if self.bad is None:
                topic, partition, offset = where
                place = f"topic {topic!r}, partition {partition}, offset {offset}"
                raise refused_event(place, value, error, row.events.source) from None
            self.bad(BadMessage(*where, key, value, str(error)))


def after(messages: list[Any]) -> dict[str, int]:
    """The next offsets after some messages, by partition."""
    return {f"{each.topic()}/{each.partition()}": each.offset() + 1 for each in messages}


class TopicReader:
    """A consumer of all partitions, each from its position on, which is that of the source."""

    def __init__(self, source: KafkaSource, position: Mapping[str, int], follow: bool) -> None:
        from confluent_kafka import Consumer

        self._source, self._position, self._follow = source, position, follow
        self._consumer = Consumer(source.configuration)
        self._answered = monotonic()
        self.waiting: set[str] = set()
        """The partitions whose end was not seen yet."""
        self._partitions: list[tuple[str, int]] = []

    def __enter__(self) -> TopicReader:
        try:
            for topic in sorted(set(self._source.topics.values())):
                found = partitions_of(self._consumer, topic, self._source.wait)
                self._partitions += [(topic, each) for each in range(found)]
            self.waiting = {f"{topic}/{each}" for topic, each in self._partitions}
            self.go_back()
        except BaseException:
            self._consumer.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._consumer.close()

    def go_back(self) -> None:
        """Read on from the position."""
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        self._consumer.assign(
            [
                TopicPartition(topic, each, self._position.get(f"{topic}/{each}", OFFSET_BEGINNING))
                for topic, each in self._partitions
            ]
        )

    def read(self) -> list[Any]:
        """The next messages; none where there are none for a short time."""
        first = self._consumer.poll(0.1)
        if first is None:
            if not self._follow and monotonic() - self._answered > self._source.wait:
                raise BrokerError(
                    f"source {self._source.name!r}: no broker has answered",
                    seconds=self._source.wait,
                    remedy="brokers that run, and can be reached from here; or wait=...",
                )
            return []
        self._answered = monotonic()
        found = [first, *self._consumer.consume(self._source.limit - 1, 0)]
        return [each for each in found if self._is_message(each)]

    def _is_message(self, message: Any) -> bool:
        from confluent_kafka import KafkaError

        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self.waiting.discard(f"{message.topic()}/{message.partition()}")
            return False
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            where = f"{message.topic()}/{message.partition()}"
            raise BrokerError(
                f"source {self._source.name!r}: the topic does not have offset "
                f"{self._position.get(where, 'of its beginning')} of {where} any more",
                said=Text(error.str()),
                remedy="a longer retention; to begin again with what is there now, another name=",
            )
        if error.fatal():
            raise BrokerError(
                f"source {self._source.name!r}: Kafka says: {error.str()}",
                remedy="see what it says",
            )
        return False
