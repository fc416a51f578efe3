"""What can only be collected where PySpark is installed; and a Java that starts soon: what tests
run is over before a better compiler would pay."""

import os
from importlib.util import find_spec

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
collect_ignore = (
    []
    if find_spec("pyspark")
    else ["src/ebbflow/engine/spark/table/schema.py", "src/ebbflow/engine/spark/table/frame.py"]
)
