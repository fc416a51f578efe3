"""Which stages on columns can have their state stored in columns, and those that have it nowhere
but in spines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnGroupStage,
    ColumnJoinStage,
    ColumnKeyStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.stages import ColumnReduceStage
from ebbflow.engine.runtime.columnar.stored import require_plain
from ebbflow.engine.runtime.columnar.stored_reduces import (
    StoredGroupStage,
    StoredReduceStage,
    StoredTopStage,
)
from ebbflow.engine.runtime.columnar.stored_stages import (
    StoredArrangeStage,
    StoredDistinctStage,
    StoredJoinStage,
    StoredKeyStage,
    StoredSemiStage,
)
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.engine.runtime.stage import Stage
from ebbflow.kernel.arithmetic import NotInColumns

Made = Callable[[Stage, dict[int, Stage]], Stage] | None


def storable(stages: Sequence[Stage], why: dict[int, str], made: Made = None) -> list[Stage]:
    """Stages on columns, as they are or `made` into others; where their state cannot be stored in
    columns they are in rows, and `why` says why."""
    found: dict[int, Stage] = {}
    for stage in stages:
        try:
            _require_storable(stage, found)
            found[stage.slot] = stage if made is None else made(stage, found)
        except NotInColumns as error:
            why[stage.slot] = str(error)
            found[stage.slot] = stage.by_rows  # type: ignore[attr-defined]
    return [found[stage.slot] for stage in stages]


def stored_stages(stages: Sequence[Stage], why: dict[int, str]) -> list[Stage]:
    """The same, with state that is nowhere but in spines."""
    return storable(stages, why, _stored)


def _require_storable(stage: Stage, found: dict[int, Stage]) -> None:
    match stage:
        case ColumnArrangeStage():
            if not stage.key_of.parts:
                raise NotInColumns("all of its rows have one key")
            require_plain(stage.by_rows.key, stage.key_of.forms)
        case ColumnKeyStage():
            if stage.key_of.parts:
                require_plain(stage.by_rows.key, stage.key_of.forms)
        case ColumnJoinStage() | ColumnSemiStage():
            if not all(found[each.slot].in_columns for each in (stage.left, stage.right)):
                raise NotInColumns("a side of it is in rows")
        case ColumnDistinctStage():
            pass
        case ColumnTopStage():
            if stage.key_of.parts:
                require_plain(stage.by_rows.node.key, stage.key_of.forms)  # type: ignore[attr-defined]
        case ColumnReduceStage():
            if stage.key_of.parts:
                require_plain(stage.by_rows.operator.key, stage.key_of.forms)
        case ColumnGroupStage():
            if not found[stage.arranged.slot].in_columns:
                raise NotInColumns("its rows are in rows")
        case _ if stage.in_columns and stage.containers:
            raise NotInColumns("its state is not stored in columns")


def _stored(stage: Stage, found: dict[int, Stage]) -> Stage:
    match stage:
        case ColumnArrangeStage():
            return StoredArrangeStage(stage)
        case ColumnKeyStage():
            return StoredKeyStage(stage)
        case ColumnJoinStage():
            return StoredJoinStage(stage, found[stage.left.slot], found[stage.right.slot])
        case ColumnSemiStage():
            return StoredSemiStage(stage, found[stage.left.slot], found[stage.right.slot])
        case ColumnDistinctStage():
            return StoredDistinctStage(stage)
        case ColumnReduceStage():
            return StoredReduceStage(stage)
        case ColumnTopStage():
            return StoredTopStage(stage)
        case ColumnGroupStage():
            return StoredGroupStage(stage, found[stage.arranged.slot])
    return stage
