"""What can only be collected where PySpark is installed; a Java that starts soon: what tests run is
over before a better compiler would pay; and garbage that is collected, whatever came before."""

import gc
import os
from importlib.util import find_spec

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
collect_ignore = (
    []
    if find_spec("pyspark")
    else ["src/ebbflow/engine/spark/table/schema.py", "src/ebbflow/engine/spark/table/frame.py"]
)


def pytest_runtest_setup() -> None:
    """A test of interrupts may have interrupted who was about to start the collector again."""
    gc.enable()
