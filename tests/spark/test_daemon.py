"""The process that workers are forked from: which of their ends is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

WORKER = """
from ebbflow.engine.spark.tasks.daemon import silent_at_end
def work():
    raise {error}("said")
silent_at_end(work)()
"""


@pytest.mark.parametrize(
    ("error", "told"),
    [("BrokenPipeError", False), ("ConnectionResetError", False), ("ValueError", True)],
)
def test_a_worker_whose_socket_was_closed_ends_without_a_traceback(error: str, told: bool) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WORKER.format(error=error)], capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert ("Traceback" in ran.stderr) is told, ran.stderr
