"""The daily job of the how-to: killed at many moments and run again, it counts everything once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "daily-job.md"
JOB = re.search(r"^```python\n(# job\.py\n.*?)^```$", PAGE.read_text(), re.M | re.S)
DAYS = 2


def write(folder: Path) -> None:
    """The job, and the files of some days, in which most orders are corrected and some deleted."""
    assert JOB is not None
    (folder / "job.py").write_text(JOB[1])
    dice = Random(17)
    customers: dict[int, str] = {}
    orders: dict[int, tuple[int, int]] = {}
    for day in range(DAYS):
        lines = {"customers": ["op,id,country"], "orders": ["op,id,customer,cents"]}
        for number in range(40):
            country = dice.choice(["Italy", "Norway"])
            op = "U" if number in customers else "I"
            lines["customers"].append(f"{op},{number},{country}")
            customers[number] = country
        for number in dice.sample(sorted(orders), len(orders) // 5):
            lines["orders"].append(f"D,{number},,")
            del orders[number]
        for number in {*dice.sample(range(400), 60)}:
            op = "U" if number in orders else "I"
            orders[number] = dice.randrange(40), dice.randrange(1000)
            lines["orders"].append(f"{op},{number},{orders[number][0]},{orders[number][1]}")
        (folder / f"day-{day}").mkdir()
        for name, each in lines.items():
            (folder / f"day-{day}" / f"{name}.csv").write_text("\n".join(each) + "\n")


def expected(folder: Path) -> dict[str, tuple[int, int]]:
    """The revenue by country, by DuckDB, from all the files: of each key the last line counts."""
    last = """select * from (select *, row_number() over (partition by id order by filename desc,
        op = 'D') as place from read_csv('{}/day-*/{}.csv', filename=true))
        where place = 1 and op <> 'D'"""
    customers, orders = (last.format(folder, name) for name in ("customers", "orders"))
    query = f"""select country, count(*), sum(cents)::bigint from ({orders}) o
        join ({customers}) c on o.customer = c.id group by country"""
    return {country: (n, cents) for country, n, cents in duckdb.sql(query).fetchall()}


def found(text: str) -> dict[str, tuple[int, int]]:
    groups = re.findall(r"country='(\w+)', orders=(\d+), cents=(\d+)", text)
    return {country: (int(n), int(cents)) for country, n, cents in groups}


def survive(folder: Path, program: list[str], delays: list[float]) -> str:
    """Bring every day, in a process that is killed after each of the delays and then left alone;
    and then everything once more."""
    output = ""
    for again in (False, True):
        for day in range(DAYS):
            for delay in () if again else delays:
                child = subprocess.Popen(
                    [*program, f"day-{day}"], cwd=folder, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
                time.sleep(delay)
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            done = subprocess.run(
                [*program, f"day-{day}"], cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            output = done.stdout
    return output


def test_it_is_killed_and_run_again(tmp_path: Path) -> None:
    write(tmp_path)
    output = survive(tmp_path, [sys.executable, "job.py"], [1.0])
    assert output.startswith(f"epoch {DAYS}:")
    assert found(output) == expected(tmp_path)


@pytest.mark.slow
def test_it_is_killed_at_many_moments_and_run_again(tmp_path: Path) -> None:
    write(tmp_path)
    dice = Random(3)
    output = survive(tmp_path, [sys.executable, "job.py"], [0.6 + dice.random() for _ in range(8)])
    assert output.startswith(f"epoch {DAYS}:")
    assert found(output) == expected(tmp_path)


@pytest.mark.slow
def test_it_is_killed_on_spark_and_run_again(tmp_path: Path, spark: Any) -> None:
    if spark is None:
        pytest.skip("PySpark is not installed")
    write(tmp_path)
    (tmp_path / "spark_job.py").write_text(
        "import sys\nimport ebbflow as ef, job\n"
        "if __name__ == '__main__':\n    job.main(sys.argv[1], ef.spark(path='spark-state'))\n"
    )
    output = survive(tmp_path, [sys.executable, "spark_job.py"], [13.0])
    assert output.splitlines()[-1].startswith(f"epoch {DAYS}:")
    assert found(output) == expected(tmp_path)
