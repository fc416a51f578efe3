"""How the columns of a table say what changes: which are the row, and what happens to it.

A table of changes has one of five *layouts*, which its column names tell apart:

    rows       the columns of a row: every row is added
    weight     and `weight` or `__weight`: how often it is added; removed when negative
    feed       and `_change_type`, as the change feed of a Delta table and Spark's `read.changes`
               have it
    op         and `op` or `__op`, as Debezium writes it when it is told to unwrap
    images     `op`, and the row before and after in two structs, as Debezium writes it

A name that is a field of the row is that field, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ebbflow.engine.runtime.table.column_types import WEIGHT, Column, columns_of
from ebbflow.errors import ChangeError, Text
from ebbflow.flow.plan import Source
from ebbflow.record import fields_of, name_of, type_text

ADDED = {"feed": ("insert", "update_postimage"), "op": ("c", "r")}
REMOVED = {"feed": ("delete", "update_preimage"), "op": ("d",)}
CHANGED = "u"
BEFORE, AFTER = "before", "after"
_FEED = {"_commit_version", "_commit_timestamp", "_metadata"}
_OP = {"op", "source", "transaction", "ts_ms", "ts_us", "ts_ns"}


@dataclass(frozen=True)
class Layout:
    """`how` the changes are laid out, and the column `by` which they are told."""

    how: str
    by: str = ""


def layout_of(source: Source, names: Sequence[str]) -> Layout:
    """The layout of a table with these columns; an error when they do not make a row.

    >>> from ebbflow.record import record
    >>> orders = Source(name="orders", type=record("Order", id=int))
    >>> layout_of(orders, ["id", "_change_type", "_commit_version"])
    Layout(how='feed', by='_change_type')
    >>> layout_of(orders, ["idd"])
    Traceback (most recent call last):
    ebbflow.errors.ChangeError: input 'orders': there is no column 'id'
        columns    idd
        fields     id
        try        rename 'idd' to 'id'
    """
    fields = {name for name, _ in columns_of(source.type)}
    names = _read(source, names)
    found = layout_by_names(set(names) - fields)
    if found.how == "images":
        return found
    require_event(source, names)
    require_columns(source, [name for name in names if name in fields or not is_extra(found, name)])
    return found


def layout_by_names(others: set[str]) -> Layout:
    """The layout, by the columns that are no fields."""
    if WEIGHT in others:
        return Layout("weight", WEIGHT)
    if "_change_type" in others:
        return Layout("feed", "_change_type")
    if {"op", BEFORE, AFTER} <= others:
        return Layout("images", "op")
    for name in ("op", "__op"):
        if name in others:
            return Layout("op", name)
    return Layout("weight", "weight") if "weight" in others else Layout("rows")


def is_extra(layout: Layout, name: str) -> bool:
    """Whether a column that is no field belongs to the layout."""
    if layout.how == "feed":
        return name in _FEED or name == layout.by
    if layout.how == "op":
        return name in _OP or name.startswith("__")
    return name == layout.by


def require_columns(source: Source, names: Sequence[str], where: str = "") -> None:
    """An error when these are not just the columns of a row; `where` they are, if inside one."""
    fields = [name for name, _ in columns_of(source.type)]
    names = _read(source, names)
    if fields_of(source.type) is None and list(names) != fields:
        raise _wrong(
            source,
            f"a table was given, and the rows of this input are of type {type_text(source.type)}",
            names,
            f"Input({source.name!r}, Order) with a NamedTuple class, or one column named 'value'",
        )
    missing = [field for field in fields if field not in names]
    extra = [name for name in names if name not in fields]
    if missing:
        near = get_close_matches(missing[0], extra or names, n=1)
        remedy = f"rename {near[0]!r} to {missing[0]!r}" if near else "all fields of the row"
        there = "there is no" if len(missing) == 1 else "there are no"
        raise _wrong(source, f"{there} {_listed(missing)}{where}", names, remedy)
    if extra:
        keep = ", ".join(repr(field) for field in fields)
        what = f"{type_text(source.type)} has no field for {_listed(extra)}{where}"
        raise _wrong(source, what, names, f"select the columns of a row: {keep}")
    twice = [name for name in fields if list(names).count(name) > 1]
    if twice:
        raise _wrong(source, f"there are several columns {twice[0]!r}", names, "one of each name")


def require_event(source: Source, names: Sequence[str]) -> None:
    """An error when these are some of the columns of an event of Debezium, and neither all of them
    nor those of a row."""
    if {name for name, _ in columns_of(source.type)} & set(names):
        return
    if "payload" in names:
        what = "an event of Debezium was given with its envelope, 'schema' and 'payload'"
        raise _wrong(source, what, names, 'event["payload"] alone')
    image = [name for name in ("op", BEFORE, AFTER) if name in names]
    missing = [name for name in ("op", BEFORE, AFTER) if name not in names]
    if image and missing:
        what = f"an event of Debezium has op, before and after, and here is no {missing[0]!r}"
        null = f"{missing[0]!r} as well, null for a row that does not exist"
        raise _wrong(source, what, names, "'op': c, r, u or d" if "op" in missing else null)


def _read(source: Source, names: Sequence[str]) -> list[str]:
    """The columns but for fields that the input does not keep."""
    return [name for name in names if name not in source.unread]


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(repr(name) for name in names)
    return f"column {text}" if len(names) == 1 else f"columns {text}"


def _wrong(source: Source, what: str, names: Sequence[str], remedy: str) -> ChangeError:
    fields = Text(", ".join(name for name, _ in columns_of(source.type)))
    shown = {"columns": Text(", ".join(names)), "fields": fields}
    return refused(source, what, remedy=remedy, **shown)


def refused(source: Source, what: str, *, remedy: str, **facts: object) -> ChangeError:
    """The error for a change of this input."""
    place = {"created": source.place} if source.place else {}
    return ChangeError(f"input {source.name!r}: {what}", **facts, **place, remedy=remedy)


def wrong_type(source: Source, name: str, found: str, column: Column) -> ChangeError:
    """The error for a column that is not what the hint of its field says."""
    what = type_mismatch(source, name, found, column)
    return refused(source, what, remedy=cast(source, name, found, column))


def type_mismatch(source: Source, name: str, found: str, column: Column) -> str:
    """What is wrong with a column of this type."""
    if column.form == "any":
        hint = name_of(_hint(source, name))
        return (
            f"column {name!r} is {found}, and the field {hint}, which only rows of Python's can "
            "fill"
        )
    return f"column {name!r} is {found}, not {column}"


def _hint(source: Source, name: str) -> Any:
    return (fields_of(source.type) or {}).get(name, source.type)


def cast(source: Source, name: str, found: str, column: Column) -> str:
    """What to do about it."""
    if name not in {each for each, _ in columns_of(source.type)}:  # a weight, or a kind of change
        return f"cast the column to {column}"
    if column.form == "any" and _hint(source, name) is not Any:
        return f"rows instead of a table: {source.name}=[row, ...]"
    if column.form == "any":
        return f"a hint for the field {name!r}, or rows instead of a table"
    spark = "[" not in found
    if column.form == "time" and "timestamp" in found:
        how = "cast to timestamp_ntz" if spark else ".dt.tz_convert(None) in pandas"
        return f"the hint Annotated[datetime, UTC] for {name!r}, or {how}"
    if column.form == "instant" and "timestamp" in found:
        how = "cast to a timestamp with a zone" if spark else '.dt.tz_localize("UTC") in pandas'
        return f"the hint datetime for {name!r}, or {how}"
    if column.form == "date" and "timestamp" in found:
        how = "cast to date" if spark else ".dt.date in pandas"
        return f"the hint datetime for {name!r}, or {how}"
    return f"cast the column, or another hint for the field {name!r}"


def image_text(name: str) -> str:
    """What is wrong when the row before or after a change is not there."""
    verbs = "updated or deleted" if name == BEFORE else "added or updated"
    return f"a row is {verbs}, and {name!r} is null"


def image_remedy(name: str) -> str:
    """What to do about it."""
    if name == BEFORE:
        full = "have the database log old rows, as with REPLICA IDENTITY FULL of PostgreSQL"
        return f"{full}; or, for an input with a key, ebbflow.feed(...), which needs keys alone"
    return "leave such records out"
