"""The how-tos on PostgreSQL and Kafka, followed step by step against the real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.connectors.test_kafka import Topics
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def follow(page: str, folder: Path, replaced: dict[str, str], **environment: str) -> int:
    """Write the files of a page, run its commands, and compare what they print; how many ran."""
    path = f"{Path(sys.executable).parent}:{environment.pop('PATH', '')}:{os.environ['PATH']}"
    ran = 0
    for language, body in BLOCK.findall((HOWTO / page).read_text()):
        for shown, real in replaced.items():
            body = body.replace(shown, real)
        file = re.match(r"# (\w+\.py)\n", body)
        if language == "python" and file:
            (folder / file[1]).write_text(body)
        commands = [f"psql -q shop <<'END'\n{body}END\n"] if language == "sql" else []
        if language == "sh":
            commands = re.split(r"^\$ ", body, flags=re.M)[1:]
        for command in commands:
            line, expected = (command, "") if language == "sql" else command.split("\n", 1)
            done = subprocess.run(
                line, shell=True, cwd=folder, text=True, capture_output=True, timeout=120,
                check=False, env={**os.environ, "PATH": path, **environment},
            )  # fmt: skip
            assert tidy(done.stdout + done.stderr) == tidy(expected), line
            ran += 1
    return ran


def tidy(text: str) -> list[str]:
    """The lines of a text that say something, without the blanks at their ends."""
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.slow
def test_the_page_on_postgres(postgres: Postgres, tmp_path: Path) -> None:
    assert postgres.pg_ctl is not None
    where = {"PGHOST": str(postgres.folder), "PGUSER": "ebbflow"}
    ran = follow("postgres.md", tmp_path, {}, PATH=str(Path(postgres.pg_ctl).parent), **where)
    postgres.query("DROP DATABASE shop")
    assert ran == 11


@pytest.mark.slow
def test_the_page_on_kafka(kafka: Kafka, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": Topics(kafka).kafka.servers, "log_level": 0})
    admin.create_topics([NewTopic("shop.orders", 3, 1)])["shop.orders"].result(30)
    assert follow("kafka.md", tmp_path, {"localhost:9092": kafka.servers}) == 6
