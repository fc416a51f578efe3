"""What the page on clusters says, on one: executors that are processes of their own.

Spark's `local-cluster` starts a master, workers and executors on this machine. Python gets to the
executors as the page says, in an archive that is unpacked where they run; here it holds only a
script that starts the Python of this test.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

PROGRAM = """
import json, os
from typing import NamedTuple
import ebbflow as ef
from ebbflow.engine.spark.session import session

class Order(NamedTuple):
    id: int
    city: str
    price: int

orders = ef.Input("orders", Order)
paid = orders.filter(lambda order: order.price > 0)
by_city = paid.group_by("city").agg(n=ef.count(), total=ef.sum("price"))
program = ef.program(by_city=by_city, best=paid.top_k(1, order="price", per="city"))

spark = session(**{
    "spark.master": "local-cluster[2,1,1024]",
    "spark.archives": "environment.tar.gz#environment",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
})

def where(rows):
    import os
    yield os.getcwd(), os.environ["PYSPARK_PYTHON"]

said = {"modes": []}
said["workers"] = spark.sparkContext.parallelize(range(8), 8).mapPartitions(where).collect()
many = spark.range(60_000).selectExpr("id", "concat('city ', id % 50) AS city", "id % 100 AS price")
with program.run(ef.spark(spark, path="state", small=10_000)) as view:
    view.step(orders=many)
    said["modes"].append(view.last.mode)
    view.step(orders=[Order(60_000, "Bonn", 5)])
    said["modes"].append(view.last.mode)
with program.run(ef.spark(spark, path="state", mode="staged", buckets=3)) as view:
    view.step(orders={Order(60_000, "Bonn", 5): -1, Order(60_001, "Oslo", 7): 1})
    said["modes"].append(view.last.mode)
    said["verified"] = view.verify().rows
spark.stop()
print(json.dumps(said))
"""


@pytest.fixture
def work() -> Iterator[None]:
    """What the executors write beside PySpark goes again."""
    import pyspark

    folder = Path(pyspark.__file__).parent / "work"
    before = set(folder.glob("app-*"))
    yield
    for made in set(folder.glob("app-*")) - before:
        shutil.rmtree(made, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


@pytest.mark.slow
@pytest.mark.usefixtures("work")
def test_a_program_runs_on_executors_that_got_their_python_in_an_archive(tmp_path: Path) -> None:
    start = f'#!/bin/sh\nexec {sys.executable} "$@"\n'.encode()
    entry = tarfile.TarInfo("bin/python")
    entry.size, entry.mode = len(start), 0o755
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.addfile(entry, io.BytesIO(start))
    (tmp_path / "app.py").write_text(PROGRAM)
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": "./environment/bin/python"}
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    wrong = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
    assert done.returncode == 0, "\n".join(wrong)
    said = json.loads(done.stdout.splitlines()[-1])
    folders = {folder for folder, _ in said["workers"]}
    assert len(folders) == 2
    assert str(tmp_path) not in folders
    assert {python for _, python in said["workers"]} == {"./environment/bin/python"}
    assert said["modes"] == ["bulk", "single_task", "staged"]
    assert said["verified"] == {"by_city": 51, "best": 51}
