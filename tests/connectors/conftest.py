"""Real servers, one of each for all tests here, started when the first one asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres

_numbers = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`, what needs a server runs in the process that has it."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "connectors" in item.path.parts[-2:] and "spark" not in item.fixturenames:  # type: ignore[attr-defined]
                for server in ("postgres", "kafka"):
                    if server in item.fixturenames:  # type: ignore[attr-defined]
                        item.add_marker(pytest.mark.xdist_group(server))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A Kafka broker."""
    broker = Kafka()
    yield broker
    broker.remove()


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Any]:
    """An empty database on it."""
    name = f"test_{next(_numbers)}"
    postgres.query(f"CREATE DATABASE {name}")
    yield postgres.database(name)
    postgres.query(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active "
        f"AND database = '{name}'"
    )
    postgres.query(f"DROP DATABASE {name} WITH (FORCE)")
