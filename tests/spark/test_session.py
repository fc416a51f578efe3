"""A session that is fit to run on, and one sentence when it is not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")

import ebbflow as ef
from ebbflow.engine.spark import checks
from ebbflow.engine.spark import session as module
from ebbflow.engine.spark.checks import check_session
from ebbflow.engine.spark.session import (
    find_java,
    java_version,
    require_packages,
    session,
    settings,
)
from ebbflow.errors import EbbflowError, SparkError


def fake_java(home: Path, version: str) -> str:
    """A Java that can only say which one it is."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    command.chmod(0o755)
    return str(command)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(module, "_PLACES", [str(tmp_path / "jvm" / "*")])
    return monkeypatch


# ---- Java ----


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25)]
)
def test_java_says_its_version(tmp_path: Path, text: str, major: int) -> None:
    assert java_version(fake_java(tmp_path, text)) == major


def test_no_java_is_one_sentence(bare: Any) -> None:
    with pytest.raises(SparkError) as caught:
        find_java()
    assert caught.value.what == "Spark needs Java, and there is none"
    assert "install Java 17" in caught.value.remedy


def test_an_old_java_on_the_path_is_named(bare: Any, tmp_path: Path) -> None:
    command = fake_java(tmp_path / "old", "11.0.2")
    bare.setenv("PATH", str(Path(command).parent) + os.pathsep + "/bin")
    with pytest.raises(SparkError, match="Spark needs Java 17 or newer, and this is Java 11"):
        find_java()


def test_a_newer_one_elsewhere_is_used_instead(bare: Any, tmp_path: Path) -> None:
    command = fake_java(tmp_path / "old", "11.0.2")
    bare.setenv("PATH", str(Path(command).parent) + os.pathsep + "/bin")
    for name, version in (("a", "25"), ("b", "17.0.1"), ("c", "11")):
        fake_java(tmp_path / "jvm" / name, version)
    assert find_java() == str(tmp_path / "jvm" / "b")


def test_a_good_one_on_the_path_needs_nothing(bare: Any, tmp_path: Path) -> None:
    command = fake_java(tmp_path / "new", "21.0.2")
    bare.setenv("PATH", str(Path(command).parent) + os.pathsep + "/bin")
    assert find_java() is None


def test_java_home_is_believed_and_checked(bare: Any, tmp_path: Path) -> None:
    bare.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(SparkError, match="there is no Java where JAVA_HOME points to"):
        find_java()
    fake_java(tmp_path / "old", "11.0.2")
    bare.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SparkError, match="and JAVA_HOME is Java 11"):
        find_java()
    fake_java(tmp_path / "new", "17")
    bare.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert find_java() == str(tmp_path / "new")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SparkError, match="the Spark engine needs pyspark and pyarrow and pandas"):
        require_packages()


def test_a_long_temporary_folder_moves_the_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "spark.python.unix.domain.socket.dir"
    monkeypatch.setattr(module, "_private_folder", module._private_folder.__wrapped__)
    assert Path(settings()[folder]).parent == Path(module.tempfile.gettempdir())
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: "/" + "x" * 80)
    assert Path(settings()[folder]).parent == Path("/tmp")


def test_sockets_are_where_nobody_else_can_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(settings()["spark.python.unix.domain.socket.dir"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert settings()["spark.python.unix.domain.socket.dir"] == str(folder), "one for a process"
    made = module._private_folder.__wrapped__()
    module._remove(made, os.getpid() + 1)
    assert Path(made).is_dir(), "a child of a fork leaves it"
    module._remove(made, os.getpid())
    assert not Path(made).exists()


# ---- somebody else's session ----


class Settings(dict[str, str]):
    set = dict.__setitem__


def other(version: str = "4.2.0", **conf: str) -> Any:
    good = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    names = {name.replace("_", "."): value for name, value in conf.items()}
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context), isStopped=lambda: False)
    return SimpleNamespace(version=version, conf=Settings(good | names), sparkContext=context)


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "4.4.0", "5.0.0"])
def test_another_version_of_spark_is_refused(version: str) -> None:
    with pytest.raises(SparkError, match=f"this is Spark {version}"):
        check_session(other(version))


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        ({}, ""),
        ({"spark_python_unix_domain_socket_enabled": "false"}, "costs 40 ms"),
        ({"spark_python_worker_reuse": "false"}, "every task starts a Python"),
        ({"spark_sql_shuffle_partitions": "200"}, "is 200 for 2 cores"),
        ({"spark_sql_shuffle_partitions": "200", "spark_master": "yarn"}, ""),
        ({"spark_sql_ansi_enabled": "false"}, ""),
    ],
)
def test_what_could_be_better_is_said(conf: dict[str, str], text: str) -> None:
    remarks = list(checks._remarks(other(**conf)))
    assert len(remarks) == bool(text)
    assert text in "".join(remarks)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
         "driver: 3.11, PySpark cannot run", ("3.9", "")),
        ("ModuleNotFoundError: No module named 'ebbflow'", ("", "ebbflow")),
        ("ModuleNotFoundError: No module named 'pyarrow.lib'", ("", "pyarrow")),
        ("the cluster is on fire", ("", "")),
    ],
)  # fmt: skip
def test_a_failed_look_at_the_workers_is_understood(said: str, found: tuple[str, str]) -> None:
    assert checks._from_failure(said, "3.11") == found


def failing(text: str) -> Any:
    def fail(*_: Any) -> Any:
        raise RuntimeError(text)

    return SimpleNamespace(range=fail)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("No module named 'ebbflow'", "the workers cannot import ebbflow"),
        ("PYTHON_VERSION_MISMATCH: worker 3.2", "the workers run Python 3.2, and this is Python"),
        ("Py4JJavaError: x\nValueError: no disk\n  at java", "a small job .* failed"),
    ],
)
def test_workers_that_do_not_do_are_one_sentence(said: str, text: str) -> None:
    with pytest.raises(SparkError, match=text) as caught:
        checks._check_workers(failing(said))
    assert caught.value.remedy


# ---- a real one ----


@pytest.mark.classic
def test_the_session_has_the_settings_that_matter(spark: Any) -> None:
    wanted = {name: str(value).lower() for name, value in settings(cores=2).items()}
    wanted["spark.driver.memory"] = "1g"
    found = {name: spark.conf.get(name).lower() for name in wanted}
    assert found == wanted
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.classic
def test_a_running_session_is_taken(spark: Any) -> None:
    assert session() is spark


def test_a_session_is_looked_at_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check_workers", lambda _: pytest.fail("again"))
    assert check_session(spark) is spark


SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.inMemoryColumnarStorage.compressed": "true",
}


@pytest.fixture
def theirs(spark: Any) -> Iterator[Any]:
    """A session with settings of somebody's own, which must be the same afterwards."""
    made = spark.newSession()
    for name, value in SETTINGS.items():
        made.conf.set(name, value)
    yield made
    assert {name: made.conf.get(name) for name in SETTINGS} == SETTINGS


class Pair(NamedTuple):
    k: int
    v: int


PAIRS = ef.Input("pairs", Pair)
SQUARES = PAIRS.map(lambda pair: Pair(pair.k, pair.v * pair.v), type=Pair)


@pytest.mark.classic
def test_arithmetic_is_exact_in_a_session_that_wraps(theirs: Any, tmp_path: Path) -> None:
    rows = SQUARES.group_by("k").agg(total=ef.sum("v"))
    with rows.run(ef.spark(theirs, path=tmp_path, mode="bulk", buckets=2)) as view:
        with pytest.raises(EbbflowError, match="64 bits"):
            view.step(pairs=[Pair(1, 2**40), Pair(2, 3)])
        view.step(pairs=[Pair(1, 2**30), Pair(1, 2)])
        assert [tuple(row) for row in view.value.collect()] == [(1, 2**60 + 4)]


@pytest.mark.classic
def test_settings_are_put_back_after_epochs_that_overlap_and_fail(
    theirs: Any, tmp_path: Path
) -> None:
    failing = PAIRS.map(lambda pair: 100 // pair.v, type=int)

    def work(number: int) -> None:
        path, mode = tmp_path / str(number), ("single_task", "staged", "bulk")[number % 3]
        with failing.run(ef.spark(theirs, path=path, mode=mode, buckets=2)) as view:
            with pytest.raises(EbbflowError):
                view.step(pairs=[Pair(1, 0)])
            view.step(pairs=[Pair(1, 7)])
            assert [row.value for row in view.value.collect()] == [14]

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_the_workers_run_this_python(spark: Any) -> None:
    def who(batches: Any) -> Any:
        import sys

        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"python": [sys.executable]})

    (found,) = spark.range(0, 1, 1, 1).mapInArrow(who, "python string").collect()
    assert found.python == sys.executable
