"""Delta tables in and out of a view on Spark, with Delta's own jar; killed after a MERGE and before
that is noted, it goes on without counting anything twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("delta_tables.py")


def run(folder: Path, *arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("Delta on Spark was not tested: its jar cannot be had here")
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


@pytest.mark.slow
def test_oracle_delta_in_and_out_on_spark_killed_and_resumed(tmp_path: Path) -> None:
    assert run(tmp_path, "1", "2") == -signal.SIGKILL
    assert run(tmp_path, "2", "1") == -signal.SIGKILL
    assert run(tmp_path, "3") == 0


@pytest.mark.slow
def test_oracle_delta_without_a_change_feed_by_spark_s_own_changes(tmp_path: Path) -> None:
    assert run(tmp_path, "4", "tracked") == 0
