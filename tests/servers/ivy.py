"""Jars by their coordinates: the Ivy that comes with PySpark fetches them, once, into a cache of
this user's."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from ebbflow.paths import own_cache


def jars(organisation: str, module: str, version: str, what: str) -> Path:
    """The folder with a module and all that it needs. Where they cannot be had, `what` was not run,
    and why."""
    not_run = f"{what} tests were not run: "
    if shutil.which("java") is None:
        pytest.skip(f"{not_run}there is no java here")
    found = Path(own_cache(), what.lower(), version)
    if found.is_dir():
        return found
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        pytest.skip(f"{not_run}there is no pyspark, whose Ivy fetches the server")
    fetched = Path(tempfile.mkdtemp(prefix=f"{what.lower()}-", dir=own_cache()))
    command = [
        "java", "-cp", str(Path(spark.origin).parent / "jars" / "*"), "org.apache.ivy.Main",
        "-cache", str(fetched / "ivy"), "-confs", "default",
        "-dependency", organisation, module, version,
        "-retrieve", str(fetched / "jars" / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    coordinates = f"{organisation}:{module}:{version}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode or not any(fetched.glob(f"jars/{module}-{version}.jar")):
            pytest.skip(f"{not_run}{coordinates} cannot be fetched here")
        found.parent.mkdir(exist_ok=True)
        if not found.is_dir():
            os.rename(fetched / "jars", found)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{not_run}{coordinates} was not fetched in time")
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
    return found


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
