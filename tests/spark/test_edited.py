"""Edits inside rows on Spark: edits in, changed rows out, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.oracle.edited_docs import Model, program
from tests.oracle.test_edited import evaluate, mismatch

import ebbflow as ef
from ebbflow.change import Delete, Insert, InsertItems, List, Replace, Text
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.errors import ChangeError
from ebbflow.operator import lists, text


class Doc(NamedTuple):
    id: int
    body: Text
    items: List[int]


docs = ef.Input("docs", Doc, key="id")
values = docs.select("id", up=text.upper("body"), n=lists.length("items"))
words = docs.through(text.words("body"), per="id").group_by("value").agg(n=ef.count())
both = ef.program(values=values, words=words)


def test_a_text_is_a_string_and_a_list_an_array() -> None:
    shown = schema_of(Doc).simpleString()
    assert shown == "struct<id:bigint,body:string,items:array<bigint>>"


STAGED, BULK = (pytest.param({"mode": mode}, marks=pytest.mark.slow) for mode in ("staged", "bulk"))


@pytest.mark.parametrize("how", [{"in_driver": True}, STAGED, BULK], ids=str)
def test_edits_go_in_and_changed_rows_come_out(spark: Any, tmp_path: Path, how: Any) -> None:
    with both.run(ef.spark(spark, path=tmp_path, **how)) as view:
        view.step(docs=[Doc(1, "ebb and flow", [1]), Doc(2, "sea", [])])  # type: ignore[arg-type]
        view.input("docs").edit(1, "body", Delete(4, 4), Insert(3, " or"))
        view.input("docs").edit(2, "items", InsertItems(0, (3, 4)))
        with pytest.raises(ChangeError, match="not a valid change"):
            view.input("docs").edit(1, "body", Insert(99, "x"))
        found = zset_of(view["values"].weighted, values.type)
        assert sorted(found) == [(1, "EBB OR FLOW", 1), (2, "SEA", 2)]
        counts = zset_of(view["words"].weighted, words.type)
        assert {row.value for row in counts} == {"ebb", "or", "flow", "sea"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"in_driver": True}, {"mode": "staged"}, {"mode": "bulk"}], ids=str
)
def test_oracle_spark_equals_batch_after_edits(spark: Any, tmp_path: Path, how: Any) -> None:
    model = Model(11)
    with program.run(ef.spark(spark, path=tmp_path, **how)) as view:
        for _ in model.steps(view, 15):
            pass
        view.input("docs").edit(next(iter(model.rows)), "body", Replace("ebb and flow"))
        at = next(iter(model.rows))
        model.rows[at] = model.rows[at]._replace(body=Text("ebb and flow"))
        found = {
            name: zset_of(view[name].weighted, node.type)
            for name, node in program.plan.outputs.items()
        }
        assert mismatch(evaluate(program.plan, model.inputs()), found) is None
