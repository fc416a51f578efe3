"""The page on declarative pipelines, followed to the letter: files, commands, figures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "pipelines.md"
NEEDED = ("pyspark", "grpc", "yaml", "duckdb")
CITIES, ORDERS = 1_000, 100_000


def blocks() -> dict[str, str]:
    """The files that the page shows, by where they belong."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    python = {body.split("\n")[0]: body for language, body in found if language == "python"}
    (spec,) = (body for language, body in found if language == "yaml")
    return {
        "view.py": python["# view.py"],
        "transformations/totals.py": python["# totals.py"],
        "spark-pipeline.yml": spec,
    }


def days(folder: Path) -> None:
    """The orders of two days; those of the second are not there yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(name: str, rows: list[tuple[int, str, int, int]]) -> None:
        columns = zip(("id", "city", "price", "weight"), zip(*rows, strict=True), strict=True)
        pq.write_table(pa.table({each: list(values) for each, values in columns}), folder / name)

    there = [(i, f"city {i % CITIES}", i % 97, 1) for i in range(ORDERS)]
    write("orders/day-1.parquet", there)
    new = [(ORDERS + i, f"city {500 + i}", 5, 1) for i in range(10)]
    write("day-2.parquet", [*((*row[:3], -1) for row in there[:10]), *new])


def records(log: Path) -> list[int]:
    """How many records each stage of the last run read, by its event log."""
    files = [each for each in log.rglob("*") if each.is_file() and each.suffix != ".crc"]
    found: dict[int, int] = {}
    for line in max(files, key=lambda each: each.stat().st_mtime).read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            read = event["Task Metrics"]["Input Metrics"]["Records Read"]
            found[event["Stage ID"]] = found.get(event["Stage ID"], 0) + read
    return sorted(found.values(), reverse=True)


class Shop:
    """The folder of the page, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("orders", "transformations", "conf"):
            (folder / name).mkdir()
        for name, body in blocks().items():
            (folder / name).write_text(body.replace("file://SHOP", folder.as_uri()))
        days(folder)
        source = str(ROOT / "src")
        self.environment = {
            **os.environ, "SHOP": str(folder), "PYTHONPATH": source,
            "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(folder / "conf"),
        }  # fmt: skip

    def run(self, *command: str, tries: int = 1) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        if done.returncode and tries > 1 and "failed to connect back" in said:
            return self.run(*command, tries=tries - 1)  # on a busy machine Spark gives up early
        assert done.returncode == 0, said[-3000:]
        return done.stdout

    def step(self, day: int) -> str:
        return self.run(sys.executable, "view.py", f"orders/day-{day}.parquet").strip()

    def update(self, day: int) -> list[int]:
        """Run the pipeline; gives how many records its stages read."""
        log = self.folder / f"log-{day}"
        log.mkdir()
        settings = {
            "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false", "spark.eventLog.dir": log.as_uri(),
            "spark.driver.memory": "1g", "spark.ui.enabled": "false",
        }  # fmt: skip
        lines = [f"{name} {value}" for name, value in settings.items()]
        (self.folder / "conf" / "spark-defaults.conf").write_text("\n".join(lines))
        command = Path(sys.executable).parent / "spark-pipelines"
        settled = "spark.sql.catalogImplementation=hive"
        self.run(str(command), "run", "--conf", settled, tries=4)
        return records(log)

    def table(self, query: str) -> list[Any]:
        import duckdb

        where = f"{self.folder}/spark-warehouse"
        return duckdb.sql(
            re.sub(r"@(\w+)", rf"read_parquet('{where}/\1/*.parquet')", query)
        ).fetchall()


@pytest.mark.slow
def test_the_page_is_followed(tmp_path: Path) -> None:
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        pytest.skip(f"declarative pipelines were not run: {', '.join(lacking)} is not installed")
    text = PAGE.read_text()
    shop = Shop(tmp_path)
    assert f"day-1.parquet\n{shop.step(1)}" in text
    shop.update(1)
    (tmp_path / "day-2.parquet").rename(tmp_path / "orders" / "day-2.parquet")
    assert f"day-2.parquet\n{shop.step(2)}" in text
    read = shop.update(2)
    assert ORDERS + 20 in read, "it is recomputed"
    assert shop.table("select count(*) from @live") == [(CITIES,)]
    same = "select city, n, total from @{} order by all"
    assert shop.table(same.format("live")) == shop.table(same.format("recomputed"))
    right = f"""
        select city, sum(weight), sum(price * weight)
        from read_parquet('{tmp_path}/orders/*.parquet') group by all order by all
    """
    assert shop.table(same.format("live")) == shop.table(right), "DuckDB says so too"
    followed = """
        select city, n, total from @history group by all having sum(__weight) <> 0 order by all
    """
    assert shop.table(followed) == shop.table(same.format("live"))
    counted = "select __epoch, count(*) from @history group by all order by all"
    assert shop.table(counted) == [(1, CITIES), (2, 40)], "each epoch once"
