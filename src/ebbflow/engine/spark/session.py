"""A Spark session that is fit to run on.

`session()` starts a local one, with the settings that matter here; `checks` looks at one that
somebody else has started. What is missing is said in one sentence, before Spark says it in a
hundred: the packages, Java, the master.

The settings, and why:

    unix domain sockets    else every Python stage of a job waits 40 ms for an acknowledgement; in a
                           folder that only this user can enter
    partitions = cores     200, the default, are 200 tasks for ten rows
    adaptive execution     small shuffles become one task
    worker reuse           else every task starts a Python
    our daemon             else every Python that is started imports all it needs
    no call sites          else every column made takes the stack of Python along, and every error
                           is printed as well as raised
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbflow.engine.spark.connect import is_connect
from ebbflow.errors import SparkError, Text, cause_of, cut, install, is_redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
VERSIONS = (4, 1), (4, 3)
_INSTALL = install("spark")
_PLACES = [
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
]
SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKET_FOLDER = "spark.python.unix.domain.socket.dir"
_HERE = (_SOCKET_FOLDER, "spark.driver.host", "spark.driver.bindAddress")
PARTITIONS = "spark.sql.shuffle.partitions"
_JVM = "spark.driver.extraJavaOptions"
_SOCKET_PATH = 104
_SOCKET_NAME = 70
_JAVA = re.compile(r"\s*(at [\w.$/]+\(|\.\.\. \d+ more|Driver stacktrace:|JVM stacktrace:)")

_AGAIN = "close its views, and run() them again on the same paths with a new session"


class Remote(Exception):
    """What was raised elsewhere, as text: with the trace of it in a task, without that of Java."""

    def __str__(self) -> str:
        return f"\n{self.args[0].rstrip()}"


# ---- starting one ----


def session(
    app: str = "ebbflow", cores: int | None = None, ui: bool = False, **conf: Any
) -> SparkSession:
    """A local Spark session, with all cores or so many; `conf` are settings of Spark's, by name.

    When a session is running already, it is this one, checked. ::

        spark = session(cores=2, **{"spark.driver.memory": "4g"})
    """
    require_packages()
    from pyspark.sql import SparkSession

    from ebbflow.engine.spark.checks import check_session

    running = SparkSession.getActiveSession()
    if running is not None:
        return check_session(running)
    if "SPARK_REMOTE" in os.environ:
        return check_session(SparkSession.builder.config(map=conf).getOrCreate())
    home = find_java()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app)
    ours, submitted = settings(cores, ui), _submitted()
    master = str(conf.get("spark.master", submitted.get("spark.master", "local")))
    _require_master(master)
    if not master.startswith("local"):
        for name in _HERE:  # the workers are elsewhere
            ours.pop(name, None)
    if _JVM in conf:
        conf[_JVM] = f"{ours[_JVM]} {conf[_JVM]}"
    for name, value in {**ours, **submitted, **conf}.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        builder = builder.config(name, text)
    try:
        made = builder.getOrCreate()
    except Exception as error:
        if not master.startswith("local"):
            raise SparkError(
                f"Spark could not be started on the master {master!r}",
                cause=Text(reason(plain(str(error)))),
                remedy="is there a cluster at this address, and does this machine reach it? "
                "See what Java printed above",
            ) from said_by(error)
        raise SparkError(
            "Spark could not be started",
            cause=Text(reason(plain(str(error)))),
            java=Text(home or os.environ.get("JAVA_HOME", "the one on the PATH")),
            remedy="look at what Java printed above; try session(cores=1)",
        ) from said_by(error)
    made.sparkContext.setLogLevel("ERROR")
    return check_session(made)


def settings(cores: int | None = None, ui: bool = False) -> dict[str, Any]:
    """The settings of a local session.

    >>> settings(cores=2)["spark.master"], settings(cores=2)["spark.sql.shuffle.partitions"]
    ('local[2]', 2)
    """
    count = cores or _cores()
    quiet = Path(__file__).with_name("quiet.properties")
    found = {
        "spark.master": f"local[{count}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_memory()}m",
        _JVM: f"-Dlog4j2.configurationFile={quiet.as_uri()}",
        "spark.ui.enabled": ui,
        "spark.ui.showConsoleProgress": False,
        "spark.speculation": False,
        "spark.python.worker.reuse": True,
        "spark.python.daemon.module": "ebbflow.engine.spark.tasks.daemon",
        PARTITIONS: count,
        "spark.default.parallelism": count,
        "spark.sql.adaptive.enabled": True,
        "spark.sql.execution.arrow.pyspark.enabled": True,
        "spark.sql.session.timeZone": "UTC",
        "spark.python.sql.dataFrameDebugging.enabled": False,
    }
    if sys.platform != "win32":
        found[SOCKETS] = True
        found[_SOCKET_FOLDER] = _private_folder()
    return found


@cache
def _private_folder() -> str:
    """A folder for sockets that nobody else can enter; removed when this process ends."""
    place = tempfile.gettempdir()
    short = len(place) + _SOCKET_NAME <= _SOCKET_PATH
    made = tempfile.mkdtemp(prefix="ebbflow-", dir=place if short else "/tmp")
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    """Half of the memory there is, in megabytes, and not more than eight gigabytes."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (AttributeError, ValueError, OSError):
        there = 4096
    return max(1024, min(8192, there // 2))


def _submitted() -> dict[str, str]:
    """The settings that `spark-submit` was given, where it has started this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # else a SparkConf knows nothing of them
    return dict(SparkConf().getAll())


def _require_master(master: str) -> None:
    """An error where a master is none, which Spark would only say in Java."""
    if not re.match(r"local\b|spark://|k8s://|yarn$", master):
        raise SparkError(
            f"there is no master {master!r}",
            remedy="'local[2]', 'spark://host:7077', 'yarn' or 'k8s://https://host:443'",
        )
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(os.environ):
        raise SparkError(
            "the master 'yarn' is found by HADOOP_CONF_DIR, which is not set",
            remedy="HADOOP_CONF_DIR=/etc/hadoop/conf, or where the cluster's configuration is",
        )


# ---- what it needs ----


def require_packages() -> None:
    """An error when a Python package is missing that Spark needs."""
    missing = [n for n in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(n) is None]
    if missing:
        raise SparkError(
            f"the Spark engine needs {' and '.join(missing)}",
            python=Text(sys.executable),
            remedy=_INSTALL,
        )


def find_java() -> str | None:
    """Where a Java is that Spark can use: a folder for JAVA_HOME, or None when it will be found
    without. An error when there is none.
    """
    install = f"install Java {JAVA} or newer, as in: apt install openjdk-{JAVA}-jre-headless"
    home = os.environ.get("JAVA_HOME")
    if home:
        version = java_version(os.path.join(home, "bin", "java"))
        if version is None:
            raise SparkError(
                "there is no Java where JAVA_HOME points to",
                java_home=Text(home),
                remedy="unset JAVA_HOME, or set it to the folder that holds bin/java",
            )
        if version < JAVA:
            raise SparkError(
                f"Spark needs Java {JAVA} or newer, and JAVA_HOME is Java {version}",
                java_home=Text(home),
                remedy=f"set JAVA_HOME to a Java {JAVA} or newer, or {install}",
            )
        return home
    first = shutil.which("java")
    version = None if first is None else java_version(first)
    if version is not None and version >= JAVA:
        return None
    known = {place: java_version(os.path.join(place, "bin", "java")) for place in _homes()}
    usable = {place: found for place, found in known.items() if found and found >= JAVA}
    if usable:
        return min(usable, key=lambda place: (usable[place], place))
    if version is None:
        raise SparkError("Spark needs Java, and there is none", remedy=install)
    raise SparkError(
        f"Spark needs Java {JAVA} or newer, and this is Java {version}",
        java=Text(first or ""),
        remedy=install,
    )


def _homes() -> Iterator[str]:
    for places in _PLACES:
        yield from sorted(glob(places))


def java_version(command: str) -> int | None:
    """The major version of a Java, or None when it does not run.

    >>> java_version("/no/such/java") is None
    True
    """
    try:
        ran = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    return int(found.group(1)) if found else None


# ---- whether it runs ----


def require_running(session: Any, what: str = "this Spark session") -> None:
    """An error when a Spark session was stopped."""
    if is_stopped(session):
        raise SparkError(f"{what} was stopped", remedy=_AGAIN)


def is_stopped(session: Any) -> bool:
    """Whether a Spark session was stopped."""
    try:
        if is_connect(session):
            return bool(session.is_stopped)
        context = session.sparkContext
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:
        return True


def plain(text: str) -> str:
    """What Spark says of an error, without the pages of Java.

    >>> plain("Job aborted\\n\\tat org.apache.X.run(X.java:3)\\n\\t... 3 more\\nCaused by: no disk")
    'Job aborted\\nCaused by: no disk'
    """
    lines = [line for line in text.splitlines() if line.strip() and not _JAVA.match(line)]
    return "\n".join(dict.fromkeys(lines))


def failed(error: Exception, what: str, after: str = "") -> SparkError:
    """What to raise `from said_by(error)` when Spark has failed, other than by what a user's
    function raised; `after` is what to do then."""
    remedy = _AGAIN if is_gone(error) else f"see the chained error for all that Spark says{after}"
    return SparkError(what, cause=Text(_in_a_line(error)), remedy=remedy)


def is_gone(error: BaseException) -> bool:
    """Whether a Connect server does not know the session any more.

    >>> is_gone(ValueError("[INVALID_HANDLE.SESSION_CLOSED] The handle 7 is invalid"))
    True
    """
    return re.search(r"INVALID_HANDLE\.SESSION|NO_ACTIVE_SESSION", str(error)) is not None


def said_by(error: Exception) -> BaseException | None:
    """All that Spark says of an error, to be chained; nothing where rows are redacted."""
    return cause_of(Remote(plain(str(error))))


def _in_a_line(error: Exception) -> str:
    """The line that says most. It may have rows in it; Spark's name for the error has none."""
    if not is_redacted():
        return cut(reason(str(error)), 1000)
    known = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    name = known() if known is not None else None
    return f"{type(error).__name__}{f' {name}' if name else ''}"


def reason(text: str) -> str:
    """The line that says most: the last one of a traceback of Python's; or that with the name of an
    error of Spark's; or the message of an exception of Java's; or the first.

    >>> reason("An error occurred while calling o1.f.\\n: org.X: [NO_FILE] File a does not exist")
    '[NO_FILE] File a does not exist'
    >>> reason("An error occurred while calling o1.f.\\n: java.lang.StateException: it is stopped")
    'it is stopped'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    for pattern in (r"\[[A-Z][A-Z_0-9.]+\] \S.*", r"(?:: |Caused by: )[\w.$]+: (\S.*)"):
        if not errors:
            found = filter(None, (re.search(pattern, line) for line in lines))
            errors = [each.group(each.lastindex or 0) for each in found]
    return (errors or lines or [""])[0]
