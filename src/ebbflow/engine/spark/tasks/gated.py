"""Inputs that put late rows aside, on Spark: the driver lets rows in, and tasks take what comes.

Rows that are here are looked at one by one, as in a local view. Of a table in Spark one query finds
the latest time and how many changes are late; those are left out by a filter. What is forgotten is
looked for by the driver as well (`ebbflow.engine.runtime.gate`): it reads the keys of what can be
closed whenever as many rows have come as were left the last time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ebbflow.engine.runtime.gate import LATEST, LISTED, Gate, GatedInput, no_time
from ebbflow.engine.runtime.table.column_types import WEIGHT
from ebbflow.engine.runtime.table.given import rows_of, table_of, total
from ebbflow.engine.spark.output.frames import zset_of
from ebbflow.engine.spark.tasks.epochs import InputChange
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.zset import trusted

Noted = dict[str, dict[str, Any]]
"""What the gates will note of an epoch."""


def let_in(
    gates: Mapping[str, GatedInput], given: Mapping[str, InputChange]
) -> tuple[dict[str, InputChange], Noted, int]:
    """Changes without what is late; what the gates are to note, and how many rows came to them."""
    found, noted, came = dict(given), Noted(), 0
    for name, state in gates.items():
        if name not in given:
            continue
        gate, change = state.beside, given[name]
        if change.request is not None:
            state.request(change.request)
        if change.frame is not None:
            found[name], rows = _of_frame(gate, change.frame, change.added)
        else:
            found[name], rows = _of_rows(gate, change)
        noted[name] = gate.waiting
        came += rows
    return {name: each._replace(together=None) for name, each in found.items()}, noted, came


def _of_rows(gate: Gate, change: InputChange) -> tuple[InputChange, int]:
    """Rows that are here, or a table of them, without those that are late; and how many came."""
    given = change.rows
    if given is None:
        given = total(*rows_of(gate.source, change.table))
    rows = gate.let_in(given)
    if rows is given:
        return change, len(given)
    table = table_of(gate.source, trusted(rows))
    return change._replace(rows=rows, size=len(rows), table=table), len(given)


def _of_frame(gate: Gate, frame: DataFrame, added: bool) -> tuple[InputChange, int]:
    """A DataFrame without its late rows, and how many rows it has."""
    source, closing = gate.source, gate.closing
    assert source.time is not None
    time, weight = f.col(source.time.text), f.col(WEIGHT)
    late = f.lit(False) if closing is None else time < _literal(closing, frame, source.time.text)
    counts = frame.agg(f.count("*"), f.sum(f.when(late, f.abs(weight))), f.count_if(time.isNull()))
    came, aside, unknown = counts.collect()[0]
    if unknown:
        row = next(iter(zset_of(frame.where(time.isNull()).limit(1), source.type)), None)
        raise no_time(source, row, "its time is None")
    last = zset_of(frame.where(late).limit(LISTED), source.type) if aside else {}
    inside = frame.where(~late) if aside else frame
    newest = zset_of(inside.orderBy(time.desc()).limit(1), source.type)
    gate.let_in(dict(newest.items()))
    gate.note(gate.waiting.get(LATEST, gate.rows.get(LATEST)), aside or 0, dict(last.items()))
    return InputChange(None, None, inside, added=added), came


def _literal(time: Any, frame: DataFrame, name: str) -> Any:
    """A time as a value of the type of a column."""
    said = time.isoformat() if isinstance(time, (date, datetime)) else time
    return f.lit(said).cast(frame.schema[name].dataType)


def stage_gates(replica: Replica, noted: Noted, came: int) -> None:
    """Stage what the gates note of an epoch, and what is forgotten with it."""
    for name, values in noted.items():
        if values:
            replica.inputs[name].beside.backing.append(values)
    for each in replica.forgetting.due(came):
        each.store.backing.append(each.stored)
