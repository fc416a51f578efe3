"""Sessions that cannot be used, for real: each is one sentence, and what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
pytest.importorskip("grpc", reason="Spark Connect is not tested: pip install '.[connect]'")

from tests.spark.servers import HOME, MODE, ROOT, Cluster, connect_server, connected

import ebbflow as ef
from ebbflow.engine.spark import checks
from ebbflow.engine.spark.checks import check_session, require_shared
from ebbflow.engine.spark.session import session
from ebbflow.errors import SparkError

ROWS = ef.Input("rows", int)


# ---- masters ----


@pytest.mark.parametrize(
    ("master", "what"),
    [
        ("locl[2]", "there is no master 'locl[2]'"),
        ("sc://127.0.0.1", "there is no master 'sc://127.0.0.1'"),
        ("yarn", "the master 'yarn' is found by HADOOP_CONF_DIR, which is not set"),
    ],
)
def test_a_master_that_is_none(master: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(SparkError) as caught:
        session(**{"spark.master": master})
    assert caught.value.what == what
    assert caught.value.remedy


# ---- Connect, from the client's side ----


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session of a server that is not there."""
    from pyspark.sql.connect.session import SparkSession

    monkeypatch.setenv(MODE, "1")
    made = SparkSession.builder.remote("sc://127.0.0.1:1").create()
    yield made
    made.client.close()  # to stop() it would ask the server, for ten minutes


def test_a_server_that_does_not_answer(
    nowhere: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "ANSWER", 0.3)
    with pytest.raises(SparkError, match="the Spark Connect server does not answer") as caught:
        ROWS.distinct().run(ef.spark(nowhere, path=tmp_path))
    assert "SparkSession.builder.remote" in caught.value.remedy
    assert not list(tmp_path.iterdir())


def test_two_kinds_of_sessions_in_one_process(
    nowhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MODE)
    with pytest.raises(SparkError, match=r"the functions of pyspark\.sql are not") as caught:
        check_session(nowhere)
    assert "one kind of session in a process" in caught.value.remedy


def test_a_client_that_was_stopped(nowhere: Any) -> None:
    nowhere.client.close()
    with pytest.raises(SparkError, match="this Spark session was stopped") as caught:
        check_session(nowhere)
    assert "a new session" in caught.value.remedy


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "5.0.0"])
def test_a_server_of_another_version(
    nowhere: Any, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    nowhere.__dict__["version"] = version
    monkeypatch.setattr(checks, "_check_server", lambda _: None)
    with pytest.raises(SparkError, match=f"the Spark Connect server is Spark {version}"):
        check_session(nowhere)


# ---- a real cluster ----


def test_workers_that_see_another_folder(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of one name, which is another one for each process."""
    here = tmp_path / "state"
    here.mkdir()
    (here / "lock").write_text("1\n")
    require_shared(connect, str(here))
    monkeypatch.chdir(here)
    with pytest.raises(SparkError, match="the workers do not see the folder") as caught:
        require_shared(connect, "/proc/self/cwd")
    assert "under the same name" in caught.value.remedy


@pytest.mark.slow
def test_a_cluster_without_workers_is_said_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checks, "WAIT", 1.0)
    made = Cluster(tmp_path, workers=0)
    try:
        with connect_server(tmp_path, made.url) as address, connected(address) as client:
            looking = threading.Thread(target=check_session, args=[client])
            looking.start()
            until = monotonic() + 120
            while "does its cluster have workers" not in caplog.text and monotonic() < until:
                sleep(0.1)
            assert looking.is_alive()
            made.add_worker()
            looking.join()
            assert check_session(client) is client
    finally:
        made.stop()
    assert "does its cluster have workers" in caplog.text


@pytest.mark.slow
def test_a_master_that_does_not_answer(tmp_path: Path) -> None:
    said = driver(tmp_path, "session(**{'spark.master': 'spark://127.0.0.1:1'})")
    assert said["what"] == "Spark could not be started on the master 'spark://127.0.0.1:1'"
    assert "is there a cluster at this address" in said["remedy"]


# ---- Pythons ----


def bare(folder: Path, *packages: str) -> Path:
    """A Python that has these packages, and no others."""
    venv.create(folder / "bare", symlinks=True)
    (site,) = (folder / "bare" / "lib").glob("python*/site-packages")
    for name in packages:
        origin = Path(find_spec(name).origin or "").parent  # type: ignore[union-attr]
        os.symlink(origin, site / name)
        if (libs := origin.with_name(f"{name}.libs")).exists():
            os.symlink(libs, site / libs.name)
    command = folder / "python3"
    zips = os.pathsep.join(map(str, (HOME / "python" / "lib").glob("*.zip")))
    command.write_text(f'#!/bin/sh\nexport PYTHONPATH={zips}\nexec {folder}/bare/bin/python "$@"\n')
    command.chmod(0o755)
    return command


DRIVER = """
import json
from pyspark.sql import SparkSession
import ebbflow as ef
from ebbflow.engine.spark.checks import check_session
from ebbflow.errors import SparkError
from ebbflow.engine.spark.session import session

def theirs():
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}
    return SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()

try:
    %s
except SparkError as error:
    facts = {name: str(fact) for name, fact in error.facts.items()}
    print(json.dumps({"what": error.what, "remedy": error.remedy, "facts": facts}))
"""


def driver(folder: Path, line: str, **environment: str | None) -> dict[str, Any]:
    """What a driver of its own says when it runs a line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    given = {**kept, "PYTHONPATH": str(ROOT / "src"), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER % line], cwd=folder, text=True,
        env={name: value for name, value in given.items() if value is not None},
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_workers_without_pyarrow(tmp_path: Path) -> None:
    python = bare(tmp_path, "numpy")
    said = driver(tmp_path, "check_session(theirs())", PYSPARK_PYTHON=str(python))
    assert said["what"] == "the workers cannot import pyarrow"
    assert said["facts"]["python"] == str(python)
    assert "set PYSPARK_PYTHON to a Python that has it" in said["remedy"]


@pytest.mark.slow
def test_workers_without_ebbflow(tmp_path: Path) -> None:
    python = bare(tmp_path, "numpy", "pyarrow", "pandas", "dateutil", "pytz")
    said = driver(tmp_path, "check_session(theirs())", PYSPARK_PYTHON=str(python))
    assert said["what"] == "the workers cannot import ebbflow"


@pytest.mark.slow
def test_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    bare(tmp_path)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    said = driver(tmp_path, "check_session(theirs())", PATH=path)
    assert said["what"] == "the workers cannot import pyarrow"
    assert said["facts"]["python"] == "python3, as PYSPARK_PYTHON is not set"
    line = "print(json.dumps({'fine': bool(session(cores=1, **{'spark.driver.memory': '512m'}))}))"
    assert driver(tmp_path, line, PATH=path) == {"fine": True}


@pytest.mark.slow
def test_workers_with_another_python(tmp_path: Path) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = [f"3.{minor}" for minor in range(10, 16) if f"3.{minor}" != here]
    found = {name: other for name in others if (other := _python(name)) is not None}
    if not found:
        pytest.skip("there is no other Python on this machine for workers to run")
    name, other = found.popitem()
    said = driver(tmp_path, "check_session(theirs())", PYSPARK_PYTHON=other)
    assert said["what"] == f"the workers run Python {name}, and this is Python {here}"
    assert "the same Python for both" in said["remedy"]


def _python(version: str) -> str | None:
    """A Python of a version that runs."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = str(installed[0]) if installed else shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "-c", ""], check=False).returncode:
        return None
    return found


@pytest.mark.slow
def test_a_session_that_was_stopped(tmp_path: Path) -> None:
    said = driver(tmp_path, "s = session(cores=1); s.stop(); check_session(s)")
    assert said["what"] == "this Spark session was stopped"


@pytest.mark.slow
def test_a_server_whose_python_lacks_ebbflow(tmp_path: Path) -> None:
    python = bare(tmp_path, "numpy", "pyarrow", "pandas", "dateutil", "pytz")
    conf = {"spark.python.daemon.module": "pyspark.daemon"}
    with (
        connect_server(tmp_path, "local[1]", conf, PYSPARK_PYTHON=str(python)) as address,
        connected(address) as client,
        pytest.raises(SparkError, match="the workers cannot import ebbflow") as caught,
    ):
        check_session(client)
    assert "set PYSPARK_PYTHON of the server" in caught.value.remedy
    assert "addArtifacts" in caught.value.remedy
