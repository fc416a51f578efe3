"""The tables of Nexmark in DuckDB."""

from __future__ import annotations

from typing import get_type_hints

from examples.nexmark.sql import SQL
from examples.nexmark.tables import KEYS, ROWS
from examples.witness import Witness


class NexmarkWitness(Witness):
    """The tables and the queries of Nexmark."""

    sql, rows, keys = SQL, ROWS, KEYS

    def __init__(self, threads: int = 1) -> None:
        import pyarrow as pa

        columns = {int: pa.int64(), str: pa.string()}
        super().__init__(
            {
                name: pa.schema(
                    [(f, columns[t]) for f, t in get_type_hints(row).items()]
                ).empty_table()
                for name, row in ROWS.items()
            },
            threads,
        )
