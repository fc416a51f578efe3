"""The page on Spark Connect, followed step by step: a server is started as it says, and its program
is run as a client of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
pytest.importorskip("grpc", reason="Spark Connect is not tested: pip install '.[connect]'")

from tests.spark.servers import ROOT, connect_server

PAGE = (ROOT / "docs" / "howto" / "connect.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("given", ["in the program", "by the environment"])
def test_the_page_on_connect(tmp_path: Path, given: str) -> None:
    server = re.search(r"^\$ \$\(python.*?spark-internal$", PAGE, re.M | re.S)
    program = re.search(r"^# shop\.py\n.*?(?=^```)", PAGE, re.M | re.S)
    output = re.search(r"^\$ python shop\.py\n(.*?)(?=^```)", PAGE, re.M | re.S)
    assert server
    assert program
    assert output
    assert "org.apache.spark.sql.connect.service.SparkConnectServer" in server[0]
    conf = dict(re.findall(r"--conf (\S+?)=(\S+)", server[0]))
    conf["spark.connect.grpc.binding.port"] = "0"
    with connect_server(tmp_path, "local[2]", conf) as address:
        text = program[0].replace("sc://localhost:15002", address)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        if given == "by the environment":
            environment["SPARK_REMOTE"] = address
            text = re.sub(r"^spark = .*\n", "", text, flags=re.M)
            text = text.replace('ef.spark(spark, path="state")', 'ef.spark(path="state")')
            text = text.replace("frame = spark.", "frame = view.session.")
            text = text.replace("\nspark.stop()", "\nview.session.stop()")
        (tmp_path / "shop.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "shop.py"], cwd=tmp_path, env=environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert output[1] in done.stdout
