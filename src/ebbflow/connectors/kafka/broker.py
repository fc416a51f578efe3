"""What sources and sinks of Kafka share: how brokers are asked, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbflow.errors import BrokerError, CheckError, Text, cause_of, install

WAIT = 30.0
"""How many seconds brokers may take to answer, unless told."""


def configuration(servers: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a client. What it would print about brokers that come and go is left
    out; what matters is raised."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise CheckError("Kafka needs confluent-kafka", remedy=install("kafka")) from error
    return {"bootstrap.servers": servers, "log_level": 0, "error_cb": _ignored, **settings}


def _ignored(error: Any) -> None:
    """Brokers come and go, and a client connects again."""


def partitions_of(client: Any, topic: str, wait: float) -> int:
    """How many partitions a topic has; an error where there is no such topic."""
    found = known(client, topic, wait)
    if found is None:
        raise BrokerError(
            f"there is no topic {topic!r}",
            remedy="create it; its number of partitions is best chosen by hand",
        )
    return found


def known(client: Any, topic: str, wait: float) -> int | None:
    """How many partitions a topic has; None where there is no such topic."""
    from confluent_kafka import KafkaException

    try:
        found = client.list_topics(topic, timeout=wait).topics[topic]
    except KafkaException as error:
        raise BrokerError(
            "no broker has answered",
            said=Text(error.args[0].str()),
            remedy="brokers that run, and can be reached from here; or wait=...",
        ) from cause_of(error)
    return None if found.error is not None else len(found.partitions)
