"""Delta: tables of a lakehouse as inputs of a view, and outputs of a view as such tables.

`changes` brings what is in some tables, and from then on what every version changes in them, by
their change feed. `TableSink` keeps a table equal to an output, by one MERGE for each epoch;
`LogSink` appends what every epoch changed. A view in this process reads and writes with the library
`deltalake`, which needs no Java: `pip install ebbflow[delta]`. A view on Spark does it through
Spark, with the jar `io.delta:delta-spark_4.2_2.13:4.4.0` in the session.

    source = delta.changes({"orders": "lake/orders"})
    with totals.run(path="state") as view:
        view.add_sink(delta.TableSink("lake/totals"))
        source.run(view, follow=False)

Both go on exactly where they were when the process is killed: the version of a table is committed
with the rows of the view, and the number of the epoch with those of the table.
"""

from ebbflow.connectors.delta.sink import LogSink, TableSink
from ebbflow.connectors.delta.source import DeltaSource, changes

__all__ = ["DeltaSource", "LogSink", "TableSink", "changes"]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
