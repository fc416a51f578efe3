"""A topic of Kafka that has what every epoch changed in an output.

The messages of an epoch and its number are written in one transaction: the number into a small
topic, `ebbflow-epochs`, under the name of the sink. Who reads what is committed sees all of an
epoch or nothing, and an epoch once. Started again, the sink takes over from the one that was
killed: what that had not committed is aborted, and the small topic says which epoch was the last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from ebbflow.connectors.kafka.broker import WAIT, configuration, known, partitions_of
from ebbflow.connectors.rows import OutputSink, required_key
from ebbflow.engine.runtime.lookup import key_columns
from ebbflow.engine.runtime.sinks.plain import plain
from ebbflow.engine.runtime.table.column_types import VALUE
from ebbflow.errors import BrokerError, CompositionError, SinkError, Text, cause_of
from ebbflow.record import fields_of

UPSERTS, CHANGES, DEBEZIUM = "upserts", "changes", "debezium"
Message = tuple[bytes | None, bytes | None]
"""A key and a value."""


class TopicSink(OutputSink):
    """Write every change of an output to a topic: for `view.add_sink`. ::

        view.add_sink(TopicSink("localhost:9092", "totals", format="upserts"))

    By `format` a message is

        upserts     the key as `{"city": "Rome"}`, and the row; a row that is gone, a tombstone. Of
                    a compacted topic what is left is the output
        changes     {"row": {...}, "weight": -1, "epoch": 7}; the key is that of the row, or the row
        debezium    {"op": "u", "before": {...}, "after": {...}, "source": {"epoch": 7}}; the key is
                    that of the row

    A sink that begins again (`view.restart_sink`) writes all rows in one transaction. For `upserts`
    and `debezium` (`"op": "r"`) it also deletes the other keys of the topic. Messages of `changes`
    have `"snapshot": true` then; readers that add up weights begin again there.

    `key` are fields of which no two rows have the same; where the program shows them, it can be
    left out. All messages have the epoch in a header. `create` makes the topic, with so many
    partitions, where there is none. `transactions=False` needs no rights to transactions: then an
    epoch that was cut short is written again, which does no harm to upserts. `settings` are those
    of librdkafka, for the producer.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        format: str = UPSERTS,
        key: str | Sequence[str] | None = None,
        output: str | None = None,
        name: str | None = None,
        create: int | None = None,
        transactions: bool = True,
        epochs: str = "ebbflow-epochs",
        settings: Mapping[str, Any] | None = None,
        wait: float = WAIT,
    ) -> None:
        if format not in (UPSERTS, CHANGES, DEBEZIUM):
            raise CompositionError(
                f"TopicSink(format={format!r}): there is no such format",
                remedy='"upserts", "changes" or "debezium"',
            )
        self.topic, self.output, self.name = topic, output, name or f"topic {topic}"
        self.format, self.transactions, self.epochs, self.wait = format, transactions, epochs, wait
        self._create, self._servers = create, servers
        self._key = key
        mine = {"transactional.id": f"ebbflow {self.name}"} if transactions else {}
        self._settings = configuration(
            servers, {"enable.idempotence": True, **mine, **(settings or {})}
        )
        self._producer: Any = None
        self._failed: Any = None

    def attach(self, view: Any) -> None:
        """Know the key; an error where there is none and one is needed."""
        super().attach(view)
        self._fields: Sequence[str] | None = None
        if self.format != CHANGES or (self._key or key_columns(self.node)) is not None:
            otherwise = 'format="changes"'
            call = f"TopicSink({self.topic!r})"
            self._fields = required_key(call, self.node, self._key, otherwise)

    def had(self, known: int | None, first: int, last: int) -> int | None:
        """The last epoch that is committed, as the brokers say; without transactions, what was
        noted."""
        return self._retried(self._last_epoch) if self.transactions else known

    def publish(self, epoch: int, change: Any) -> None:
        """Write what an epoch changed, and its number, unless it is there."""
        self._retried(lambda: self._write(epoch, self._messages(epoch, change)))

    def restart(self, epoch: int, value: Any) -> None:
        """Write all rows, and delete the other keys of the topic, in one transaction."""
        self._retried(lambda: self._write(epoch, self._snapshot(epoch, value), again=True))

    def close(self) -> None:
        """Let go of the brokers."""
        producer, self._producer = self._producer, None
        if producer is not None and self.transactions:
            with suppress(Exception):
                producer.abort_transaction(1)

    # ---- one transaction ----

    def _retried(self, work: Callable[[], Any]) -> Any:
        """Do something; when brokers fail, take over from oneself, and do it again."""
        from confluent_kafka import KafkaError, KafkaException

        end, pause = monotonic() + self.wait, 0.1
        while True:
            try:
                return work()
            except KafkaException as error:
                self.close()
                said = error.args[0]
                if said.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
                    raise SinkError(
                        f"the sink {self.name!r} was taken over by another process",
                        said=Text(said.str()),
                        remedy="one process for each sink, or another name=",
                    ) from cause_of(error)
                hopeless = said.code() in (
                    KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED,
                    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                )  # fmt: skip
                if hopeless or monotonic() + pause > end:
                    raise BrokerError(
                        f"the sink {self.name!r}: Kafka says: {said.str()}",
                        remedy="brokers that run, messages that they take, and a user that may "
                        f"write to {self.topic!r} and {self.epochs!r}, and use transactions",
                    ) from cause_of(error)
            except BaseException:
                self.close()
                raise
            sleep(pause)
            pause = min(2 * pause, 2.0)

    def _started(self) -> Any:
        """The producer; a new one takes over: what an older one had not committed is aborted."""
        from confluent_kafka import Producer

        if self._producer is None:
            self._make_topics()
            producer = Producer(self._settings)
            if self.transactions:
                producer.init_transactions(self.wait)
            self._producer = producer
        return self._producer

    def _write(self, epoch: int, messages: Iterator[Message], *, again: bool = False) -> None:
        fresh = self._producer is None
        producer = self._started()
        if self.transactions:
            if fresh and not again:
                last = self._last_epoch()
                if last is not None and last >= epoch:
                    return
            producer.begin_transaction()
        self._failed = None
        header = [("epoch", str(epoch).encode())]
        for key, value in messages:
            self._produce(self.topic, key, value, header)
        if not self.transactions:
            self._flush()
            return
        noted = json.dumps({"sink": self.name, "epoch": epoch}).encode()
        self._produce(self.epochs, self.name.encode(), noted, header)
        producer.commit_transaction(self.wait)

    def _produce(self, topic: str, key: Any, value: Any, headers: Any) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, headers=headers, on_delivery=self._delivered
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _delivered(self, error: Any, message: Any) -> None:
        self._failed = self._failed or error

    def _flush(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        left = self._producer.flush(self.wait)
        if left or self._failed:
            raise KafkaException(self._failed or KafkaError(KafkaError._TIMED_OUT))

    def _last_epoch(self) -> int | None:
        """The last epoch that is committed. To be sure of it the older producer is fenced first."""
        self._started()
        mine = self.name.encode()
        found = [value for key, value in self._committed(self.epochs) if key == mine]
        return int(json.loads(found[-1] or b"")["epoch"]) if found else None

    def _committed(self, topic: str) -> Iterator[Message]:
        """The messages of a topic that are committed."""
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

        consumer = Consumer(
            configuration(
                self._servers,
                {
                    **{k: v for k, v in self._settings.items() if not k.startswith(_PRODUCER)},
                    "group.id": "ebbflow-epochs",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                    "enable.partition.eof": True,
                },
            )
        )
        try:
            left = partitions_of(consumer, topic, self.wait)
            consumer.assign([TopicPartition(topic, number, 0) for number in range(left)])
            end = monotonic() + self.wait
            while left:
                message = consumer.poll(0.5)
                if message is None:
                    if monotonic() > end:
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                    continue
                error = message.error()
                if error is None:
                    end = monotonic() + self.wait
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    left -= 1
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()

    def _make_topics(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        plain = {k: v for k, v in self._settings.items() if not k.startswith(_PRODUCER)}
        admin = AdminClient(plain)
        compact = {"cleanup.policy": "compact"}
        wanted = []
        if self.transactions and known(admin, self.epochs, self.wait) is None:
            wanted.append(NewTopic(self.epochs, 1, -1, config=compact))
        if self._create is None:
            partitions_of(admin, self.topic, self.wait)
        elif known(admin, self.topic, self.wait) is None:
            config = compact if self.format == UPSERTS else {}
            wanted.append(NewTopic(self.topic, self._create, -1, config=config))
        for made in (admin.create_topics(wanted) if wanted else {}).values():
            made.result(self.wait)

    # ---- messages ----

    def _messages(self, epoch: int, change: Any) -> Iterator[Message]:
        if self.format == CHANGES:
            for block in self.blocks(change):
                for row, weight in block:
                    value = {"row": plain(row), "weight": weight, "epoch": epoch}
                    yield _json(self._key_of(row) if self._fields else plain(row)), _json(value)
            return
        for key, (before, after) in self._by_key(change).items():
            if self.format == UPSERTS:
                yield key, None if after is None else _json(plain(after))
                continue
            op = "c" if before is None else "d" if after is None else "u"
            images = {"before": plain(before), "after": plain(after)}
            yield key, _json({"op": op, **images, "source": {"epoch": epoch}})

    def _snapshot(self, epoch: int, value: Any) -> Iterator[Message]:
        """Messages for all rows, and deletes for the keys of the topic without a row."""
        if self.format == CHANGES:
            for key, message in self._messages(epoch, value):
                yield key, _json({**json.loads(message or b""), "snapshot": True})
            return
        rows, source = self._by_key(value), {"epoch": epoch, "snapshot": True}
        upserts = self.format == UPSERTS
        gone: dict[bytes | None, bool] = {}
        for key, message in self._committed(self.topic):
            gone[key] = message is None or (not upserts and json.loads(message).get("op") == "d")
        left = [key for key, is_gone in gone.items() if not is_gone and key not in rows]
        for each in left:
            end = {"op": "d", "before": None, "after": None, "source": source}
            yield each, None if upserts else _json(end)
        for key, (_, row) in rows.items():
            read = {"op": "r", "before": None, "after": plain(row), "source": source}
            yield key, _json(plain(row) if upserts else read)

    def _by_key(self, change: Any) -> dict[bytes, list[Any]]:
        """The row of each key before and after; None for none."""
        net: dict[Any, int] = {}
        for block in self.blocks(change):
            for row, weight in block:
                net[row] = net.get(row, 0) + weight
        found: dict[bytes, list[Any]] = {}
        for row, weight in net.items():
            if weight:
                images = found.setdefault(_json(self._key_of(row)), [None, None])
                if abs(weight) > 1 or images[weight > 0] is not None:
                    raise SinkError(
                        f"the sink {self.name!r}: there are several rows of one key",
                        row=row,
                        key=self._key_of(row),
                        created=self.node.place,
                        remedy='more fields in key=..., or format="changes"',
                    )
                images[weight > 0] = row
        return found

    def _key_of(self, row: Any) -> dict[str, Any]:
        one = fields_of(self.node.type) is None
        return {
            name: plain(row if one and name == VALUE else getattr(row, name))
            for name in self._fields or ()
        }


_PRODUCER = ("transaction", "enable.idempotence", "queue.buffering", "linger", "batch", "compress",
             "acks", "delivery", "message.send")  # fmt: skip
"""How the settings begin that only a producer knows."""


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
