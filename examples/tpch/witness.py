"""The tables of TPC-H in DuckDB."""

from __future__ import annotations

from examples.tpch.sql import SQL
from examples.tpch.tables import KEYS, ROWS
from examples.witness import Witness


class TpchWitness(Witness):
    """The tables and the queries of TPC-H."""

    sql, rows, keys = SQL, ROWS, KEYS
