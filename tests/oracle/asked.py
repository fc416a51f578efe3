"""A view beside batch, by random requests: after each epoch, what batch computes of what the inputs
must hold by then; after one that must be refused, what was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.oracle.random_requests import RandomRequests

from ebbflow.change.requests import DeleteKeys, Feed, ReplaceRows, Upsert
from ebbflow.engine.batch import evaluate
from ebbflow.engine.runtime.events import is_several, key_fields
from ebbflow.errors import EbbflowError
from ebbflow.flow.plan import Plan
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.source import Input
from ebbflow.record import fields_of
from ebbflow.testing import random_program
from ebbflow.testing.programs import Event, Measurement, Stock, Tag
from ebbflow.zset import ZSet


class Version(NamedTuple):
    """Rows that say which of two is the newer one."""

    k: int
    v: int
    s: str


def program_of(dice: Random, size: int = 5) -> Any:
    """A random program whose inputs have keys, most of them with a sequence."""
    inputs = [
        Input("a", Version, key="k", sequence="v"),
        Input("b", Stock, key=("k", "s")),
        Input("c", Event, key=lambda row: row.k % 3, sequence=lambda row: row.t),
        Input("d", Tag),
        Input("e", Measurement, key="x", sequence=("k", "n")),
    ]
    while True:
        made = random_program(dice, inputs=dice.sample(inputs, 2), size=size)
        sources = made.plan.sources.values()
        if not any(isinstance(source, ClockSource) for source in sources):
            return made


def follow_requests(
    view: Any,
    plan: Plan,
    asked: RandomRequests,
    epochs: int,
    formed: Callable[[str, Any], Any] = lambda name, change: change,
) -> Counter[str]:
    """Some epochs; how often what was asked."""
    done: Counter[str] = Counter()
    total = expected = evaluate(plan, {})
    seen = []
    for _ in range(epochs):
        before = {name: held.copy() for name, held in asked.held.items()}
        changes, verbs, refused = asked.epoch()
        seen.append(changes)
        try:
            expected = evaluate(plan, asked.contents()) if not refused else expected
        except EbbflowError:
            refused, asked.held = True, before
        given = {name: formed(name, change) for name, change in changes.items()}
        if refused:
            with pytest.raises(EbbflowError):
                view.step(given)
            done["refused"] += 1
        else:
            change = outputs(plan, view.step(given))
            total = {name: rows + change[name] for name, rows in total.items()}
            done.update(verbs)
        assert total == expected, (seen, plan)
        assert outputs(plan, view.value) == expected, (seen, plan)
    return done


def outputs(plan: Plan, found: Any) -> dict[str, ZSet[Any]]:
    return {next(iter(plan.outputs)): found} if isinstance(found, ZSet) else found


def tables(asked: RandomRequests, dice: Random) -> Callable[[str, Any], Any]:
    """The rows of requests as tables, half of the time, in every layout of Arrow and of every
    library; changes with weights, feeds and deletes too."""
    import pyarrow as pa
    from tests.spark.forms import formed as as_table
    from tests.spark.forms import laid_out

    from ebbflow.engine.runtime.table.arrow import arrow_schema, to_arrow

    def rows(row_type: Any, given: list[Any]) -> Any:
        return pa.Table.from_batches([to_arrow(given, [1] * len(given), row_type)])

    def formed(name: str, change: Any) -> Any:
        source = asked.sources[name]
        if dice.random() < 0.5 or not hasattr(source.type, "_fields"):
            return change
        fields = key_fields(source)
        if any(fields_of(source.type)[each] is float for each in fields or ()):
            return change  # NaN is no key of a table
        if isinstance(change, ZSet):
            table = as_table(change, source.type, "arrow")
            return change if table is change else laid_out(table, dice)
        if isinstance(change, (Upsert, ReplaceRows)):
            return change.taking(laid_out(rows(source.type, change.rows), dice))
        plain = arrow_schema(source.type, weight=False)
        if isinstance(change, DeleteKeys) and fields is not None:
            keys = [key if is_several(source.key) else (key,) for key in change.rows]
            columns = [list(column) for column in zip(*keys, strict=True)] or [[]] * len(fields)
            types = [plain.field(each).type for each in fields]
            keyed = pa.table(list(map(pa.array, columns, types)), list(fields))
            return change.taking(laid_out(keyed, dice))
        if isinstance(change, Feed) and change.rows:
            more = [each for each in change.rows[0] if each not in plain.names]
            found = [pa.field(each, pa.string()) for each in more]
            if "before" in more:
                row = pa.struct([pa.field(each.name, each.type) for each in plain])
                found = [pa.field("op", pa.string()), pa.field("before", row),
                         pa.field("after", row)]  # fmt: skip
                plain = pa.schema([])
            fed = pa.Table.from_pylist(change.rows, pa.schema([*plain, *found]))
            return change.taking(laid_out(fed, dice))
        return change

    return formed
