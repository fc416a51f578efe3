"""Loops in exact rounds that are computed again, where that is less than to follow a change.

A row that goes is followed through all rounds in which it made a difference, and what comes in its
place through as many; computing a loop from nothing is half of that. So when a fourth of the rows
that enter a loop go at once, it is computed again from those that are there now, by an empty loop
of the same body. Its state is what following the change would have left, because differences by
version are determined by the values of the collections (002, Proposition 1). The stages get it as a
change of their state, so an epoch that is refused is undone, and a stored one written, as ever.

That needs the whole of what enters, which a loop does not keep: it is read from the rows of the
inputs and the state before the loop, where these tell (`entering`). And it needs what the loop has
given so far, which its stages tell, by the sum over all versions of what they gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ebbflow.engine.runtime.stage import Stage, nested
from ebbflow.engine.runtime.versions import Delta
from ebbflow.zset import add_into

if TYPE_CHECKING:
    from ebbflow.engine.runtime.inputs import InputState
    from ebbflow.engine.runtime.loop import LoopStage

FEW = 1_000
"""Up to so many rows that go are followed, however few there are."""
PART = 4
"""Of so many rows one must go."""


class NotTold(Exception):
    """The stages of a loop do not tell what it has given."""


def read_entering(machine: Any, inputs: Mapping[str, InputState], changes: Any) -> None:
    """Have the loops of a machine read what enters them from what is before them, where that tells
    it; `changes()` are those of the inputs in the epoch that runs."""
    if not hasattr(machine, "tells"):
        return
    kept = {name for name, state in inputs.items() if state.keeps}

    def rows(name: str) -> Delta:
        state = inputs[name]
        found = dict(state.snapshot().items())
        if not any(each is state.holder for each in machine.open):  # it has the change already
            add_into(found, changes().get(name, {}))
        return found

    def entering(stage: Stage) -> Callable[[], list[Delta]]:
        def wholes() -> list[Delta]:
            known: dict[int, Any] = {}
            wholes = [machine.whole(slot, rows, known) for slot in stage.reads]
            return [getattr(whole, "rows", whole) for whole in wholes]

        return wholes

    for stage in machine.stages:
        if hasattr(stage, "entering") and machine.tells(stage.reads, kept):
            stage.entering = entering(stage)


def wholes_if_replaced(loop: LoopStage, changes: Sequence[Any]) -> list[Delta] | None:
    """All rows that enter a loop, if a fourth of those that did go with these changes."""
    gone = sum(sum([w < 0 for w in change.values()]) for change in changes if change)
    if gone <= FEW or loop.entering is None or loop.elsewhere is not None:
        return None
    for each in loop.containers:
        if each.backing is not None and each.backing.resident is not None:
            return None  # reading all of the state would cost more
    came = sum(len(change) for change in changes if change) - gone
    wholes = loop.entering()
    there = sum(map(len, wholes)) + gone - came
    return wholes if PART * gone >= there else None


def replaced(loop: LoopStage, changes: Sequence[Any], wholes: Sequence[Delta]) -> Delta:
    """Compute a loop again from all that enters it, and give the change of what leaves it. An error
    `NotTold` when its stages do not tell what has left it."""
    node: Any = loop.node
    before = [dict(whole) for whole in wholes]
    for rows, change in zip(before, changes, strict=True):
        add_into(rows, {row: -weight for row, weight in (change or {}).items()})
    out = {row: -weight for row, weight in _given(loop, before[len(node.variables) :]).items()}
    fresh = loop.inner = loop.fresh()
    add_into(out, fresh.run(*wholes))
    for mine, new in zip(loop.containers, fresh.containers, strict=True):
        mine.put(_differing(mine.groups, new.groups))  # type: ignore[attr-defined]
    for (stage, _), (other, _) in zip(nested(loop.inside), nested(fresh.inside), strict=True):
        stage.counts.rows_in += other.counts.rows_in
        stage.counts.rows_out += other.counts.rows_out
        stage.counts.seconds += other.counts.seconds
    loop.rows_per_round, loop.inner = fresh.rows_per_round, None  # type: ignore[attr-defined]
    return out


def _differing(old: Any, new: Any) -> dict[Any, list[tuple[Any, int]]]:
    """What makes the groups of one index those of another."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    for key, group in new.items():
        was = old.get(key)
        if was is None:
            found[key] = list(group.items())
        elif was != group:
            rows = dict(group)
            add_into(rows, {row: -weight for row, weight in was.items()})
            found[key] = list(rows.items())
    for key, group in old.items():
        if key not in new:
            found[key] = [(row, -weight) for row, weight in group.items()]
    return found


def _given(loop: LoopStage, outside: Sequence[Delta]) -> Delta:
    """All that a loop has given, in all versions of the loops around: the sum of what its body gave
    for the variables, as the start is gone after one round; given the same of the collections from
    outside."""
    node: Any = loop.node
    if node.rounds == 0 or (node.rounds is not None and any(node.priorities)):
        raise NotTold
    body = loop.body
    by_slot = {stage.slot: stage for stage in body.stages}
    known: dict[int, Any] = dict(zip(body.outside, outside, strict=True))
    variables = dict(zip(body.variables, body.results, strict=True))
    begun: set[int] = set()

    def given(slot: int) -> Delta:
        if slot not in known:
            if slot in begun:  # a variable that is part of itself
                raise NotTold
            begun.add(slot)
            if slot in variables:
                known[slot] = given(variables[slot])
            else:
                stage: Any = by_slot[slot]
                if stage.looping:
                    cut = len(stage.node.variables)
                    known[slot] = _given(stage, [given(each) for each in stage.reads[cut:]])
                elif stage.linear:
                    known[slot] = stage.run(*[given(each) for each in stage.reads])
                else:
                    known[slot] = stage.total()
        rows: Delta = known[slot]
        return rows

    if len(node.variables) == 1:
        return dict(given(body.results[0]))
    return {
        (name, row): weight
        for name, slot in zip(node.variables, body.results, strict=True)
        for row, weight in given(slot).items()
    }
