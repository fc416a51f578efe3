"""PostgreSQL: its tables as inputs of a view, and outputs of a view as its tables.

`changes` brings what is in some tables, and from then on what every transaction changes in them, by
logical decoding: no trigger, no polling of rows, and deletes are seen. `TableSink` keeps a table
equal to an output: the rows that an epoch changed and the number of the epoch are in one
transaction. Both go on exactly where they were, whoever is killed: this process, a connection, or
the server. It needs psycopg 3, `pip install '.[postgres]'` in a clone.

    source = postgres.changes(dsn, {"orders": "public.orders"}, slot="totals")
    with totals.run(path="state") as view:
        view.add_sink(postgres.TableSink(dsn, "totals", create=True))
        source.run(view)
"""

from ebbflow.connectors.postgres.sink import TableSink
from ebbflow.connectors.postgres.source import PostgresSource, changes

__all__ = ["PostgresSource", "TableSink", "changes"]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
