"""What can only be collected where PySpark is installed."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("pyspark")
    else ["src/ebbflow/engine/spark/table/schema.py", "src/ebbflow/engine/spark/table/frame.py"]
)
