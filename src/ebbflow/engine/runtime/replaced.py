"""Replacing the rows of an input: the difference between what there is to be and what is there.

That is `diff(new, old)` of bags (004 §3.1): the new rows, less the old ones. Where only some rows
are replaced, those of which `where` is true, the others are neither old nor new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ebbflow.algebra.value import function_name, is_async
from ebbflow.change.requests import ReplaceRows
from ebbflow.engine.runtime.changes import read
from ebbflow.engine.runtime.rows import Weights
from ebbflow.engine.runtime.values.check import canonical_part
from ebbflow.errors import (
    ChangeError,
    FunctionFailed,
    Text,
    UnknownField,
    cause_of,
    error_text,
    value_text,
)
from ebbflow.expression.callables import takes
from ebbflow.flow.plan import Source
from ebbflow.fn import Fn
from ebbflow.record import fields_of
from ebbflow.zset import without_zeros

if TYPE_CHECKING:
    from ebbflow.engine.runtime.inputs import InputState


def difference(state: InputState, request: ReplaceRows) -> Weights:
    """What is to be done to the rows of an input for it to have those that are asked."""
    require_rows(state)
    source = state.source
    new = weights_given(source, request.rows, parse=request.parse)
    chosen = chooser(source, request.where, parse=request.parse)
    require_inside(source, new, chosen)
    total = dict(new)
    for row, weight in state.snapshot().items():
        if chosen is None or chosen(row):
            total[row] = total.get(row, 0) - weight
    return without_zeros(total)


def require_rows(state: InputState) -> None:
    """Refuse an input whose rows nobody knows."""
    if not state.keeps:
        raise ChangeError(
            f"replace: the rows of input {state.name!r} are not kept, so nobody knows what differs",
            created=state.source.place,
            remedy="run() without check_input=False, or the difference as rows with weights",
        )


def weights_given(source: Source, rows: Any, *, parse: bool = False) -> Weights:
    """The rows that there are to be, each with how often."""
    total = read(source, rows, parse=parse)
    for row, weight in total.items():
        if weight < 0:
            raise takes_away(source, row=row)
    return total


def takes_away(source: Source, **facts: Any) -> ChangeError:
    """The error for rows with negative weights where rows are asked that are to be there."""
    return ChangeError(
        f"replace: input {source.name!r} is given a row to take away",
        **facts,
        created=source.place,
        remedy="the rows that are to be there, all of them, and no weights or kinds of change",
    )


def require_inside(source: Source, rows: Any, chosen: Callable[[Any], bool] | None) -> None:
    """Refuse new rows that are not of the part that is replaced."""
    if chosen is not None:
        for row in rows:
            if not chosen(row):
                raise outside(source, row)


def outside(source: Source, row: Any) -> ChangeError:
    """The error for a new row that is not of the part that is replaced."""
    return ChangeError(
        f"replace: input {source.name!r} is given a row of which `where` is not true",
        row=row,
        created=source.place,
        remedy="leave such rows out, or another where; nothing was changed",
    )


def chooser(source: Source, where: Any, *, parse: bool = False) -> Callable[[Any], bool] | None:
    """Whether a row is of the part that is replaced, as a function; None where all are."""
    if where is None:
        return None
    if isinstance(where, Mapping):
        return _Fields(source, where, parse)
    if not callable(where) or not takes(where, 1):
        raise ChangeError(
            "replace: where is a mapping from fields to values, or a function of a row",
            given=Text(value_text(where)),
            created=source.place,
            remedy='where={"day": day}, or where=lambda row: row.day == day',
        )
    if is_async(where):
        raise ChangeError(
            f"replace: where={function_name(where)} is async, and an epoch awaits nothing",
            created=source.place,
            remedy='where={"day": day}, or where=lambda row: row.day == day',
        )
    return _Function(source, where)


class _Fields:
    """Whether fields of a row have these values."""

    def __init__(self, source: Source, where: Mapping[str, Any], parse: bool) -> None:
        fields = fields_of(source.type)
        for name in where:
            if fields is None or name not in fields:
                raise UnknownField(
                    f"replace: rows of input {source.name!r} have no field {name!r}",
                    fields=Text(", ".join(fields or ()) or "none"),
                    created=source.place,
                    remedy="where={field: value} with one of its fields, or a function of the row",
                )
        self.wanted = {
            name: canonical_part(source, Fn.of(name, source.type), "where", value, parse=parse)
            for name, value in where.items()
        }

    def __call__(self, row: Any) -> bool:
        for name, value in self.wanted.items():
            found = getattr(row, name)
            if found is not value and found != value:
                return False
        return True


class _Function:
    """What a function says of a row, or an error that names the row."""

    def __init__(self, source: Source, where: Callable[[Any], Any]) -> None:
        self.name, self.place, self.where = source.name, source.place, where

    def __call__(self, row: Any) -> bool:
        try:
            return bool(self.where(row))
        except Exception as error:
            raise FunctionFailed(
                f"replace: `where` failed on a row of input {self.name!r}",
                row=row,
                error=Text(error_text(error)),
                created=self.place,
                remedy="make it work for every row of this input",
            ) from cause_of(error)
