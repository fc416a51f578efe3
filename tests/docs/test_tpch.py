"""The queries of TPC-H are right after every refresh: what DuckDB computes again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import ebbflow as ef
from examples.tpch.data import Business, made, rows_of
from examples.tpch.queries import QUERIES
from examples.tpch.witness import TpchWitness
from examples.witness import differences

SHARE = 8
"""One in so many orders is there."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    import pyarrow.compute as pc

    found = made(Path(tmp_path_factory.mktemp("tpch")), 0.01)
    for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        some = pc.equal(pc.bit_wise_and(pc.divide(found[name][key], 4), SHARE - 1), 0)
        found[name] = found[name].filter(some)
    return found


def followed(view: Any, tables: dict[str, Any], epochs: int, value: Any) -> set[str]:
    """Refresh a view and DuckDB alike, and compare every query; gives those that had an answer."""
    witness, random = TpchWitness(tables), Random(7)
    business = Business(*(rows_of(name, tables[name]) for name in ("orders", "lineitem")))
    view.step({name: rows_of(name, table) for name, table in tables.items()})
    answered = set()
    for epoch in range(epochs + 1):
        found = value()
        for name in found:
            theirs = witness.ask(name)
            wrong = differences(found[name], theirs)
            assert not wrong, f"{name}, refresh {epoch}: {wrong}"
            answered |= {name} if theirs else set()
        refresh = business.refresh(random.choice([1, 10, 100]))
        view.step({name: change for name, change in refresh.changes.items() if change})
        witness.apply(refresh)
    return answered


@pytest.mark.parametrize("columns", [False, True])
def test_every_query_is_what_duckdb_computes_after_every_refresh(
    columns: bool, tables: dict[str, Any]
) -> None:
    view = ef.program(**{name: made() for name, made in QUERIES.items()}).run(columns=columns)
    answered = followed(view, tables, 6, lambda: view.value)
    assert answered >= {*QUERIES} - {"q17", "q18", "q19", "q20"}, (
        "at this scale, few have no answer"
    )


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_runs_in_columns(name: str) -> None:
    stages = QUERIES[name]().run(columns=True)._program.machine.stages
    others = [stage.label for stage in stages if not stage.in_columns]
    assert not others or name == "q11", "q11 compares rows in an order, which has no kernel"


def test_queries_in_columns_on_disk_are_what_duckdb_computes(
    tables: dict[str, Any], tmp_path: Path
) -> None:
    program = ef.program(**{name: QUERIES[name]() for name in ("q1", "q8", "q9", "q14")})
    with program.run(path=tmp_path, columns=True) as view:
        followed(view, tables, 2, lambda: view.value)
        value = view.value
        assert "in rows" not in view.explain()
    with program.run(path=tmp_path, columns=False) as rows:
        assert rows.value == value


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("mode", ["staged", "bulk"])
def test_every_query_is_right_on_spark(mode: str, tables: dict[str, Any], tmp_path: Path) -> None:
    from ebbflow.engine.spark.session import session

    program = ef.program(**{name: made() for name, made in QUERIES.items()})
    with program.run(ef.spark(session(), path=tmp_path, mode=mode)) as view:
        followed(view, tables, 1, view.zset)


def test_every_column_of_every_query_has_a_type_that_spark_has() -> None:
    from ebbflow.engine.runtime.table.untyped import require_types

    require_types(ef.program(**{name: made() for name, made in QUERIES.items()}).plan)
