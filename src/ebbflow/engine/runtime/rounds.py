"""The stages of a loop's body: the two rules that lift an operator.

Inside a loop a collection has a value for every *version*: the round, and in nested loops one round
for each loop, `(i, j)`. Versions are ordered position by position. What is kept and sent are
differences: the value at a version is the sum of all differences at or below it (002, section 2).
The differences of finished epochs are added up, so there is one for each version, not for each
epoch.

    linear steps    run on each difference as they are                               (Proposition 1)
    a join          a difference at r meets one at s, and gives one at r ∨ s         (Proposition 2)
    the rest        key by key: f of the rows up to a version, less what was given   (Proposition 1)
                    up to it; done wherever the sum can change, which is at the version of a new
                    difference and at its joins with those that the key has already

A stage runs at one version after another, smaller ones first. What it finds out for later ones it
keeps until then, and has the *schedule* come back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ebbflow.engine.runtime.failure import negative_before
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.versions import Delta, Schedule, Version, VersionedIndex
from ebbflow.flow.plan import Binary, Distinct, Join, Keyed, Node, Reduce, Semi
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.fn import Fn
from ebbflow.operator.joins import Join as JoinOperator
from ebbflow.state.index import not_there
from ebbflow.zset import add_into, trusted, without_zeros


class LiftedStage(Stage):
    """A stage with state in the body of a loop; `schedule` is told what is for later versions."""

    __slots__ = ("histories", "later", "schedule")

    later_keys = False
    """Whether what is for later are keys to look at again, and not rows to give."""
    sides: Sequence[VersionedIndex]
    """What each of the slots that it reads is kept in, by key."""

    def __init__(
        self, node: Node, reads: Iterable[int], schedule: Schedule, *histories: VersionedIndex
    ) -> None:
        super().__init__(node, reads, *[each.index for each in histories])
        self.schedule, self.histories = schedule, histories
        self.later: dict[Version, Any] = {}

    @abstractmethod
    def run_at(self, version: Version, *changes: Any) -> Delta:
        """The difference of its slot at a version, from those of the slots that it reads."""

    @abstractmethod
    def total(self) -> Delta:
        """What it has given at all versions, added up."""

    def waits_for(self, version: Version) -> bool:
        """Whether there is something to do at a version even if nothing changes there."""
        return version in self.later

    def clear(self) -> None:
        """Forget what is for later, and the sums that are at hand."""
        self.later = {}
        self.forget_sums()

    def forget_sums(self) -> None:
        """Have no sums at hand: the epoch is over, or state has changed elsewhere."""
        for each in self.histories:
            each.sums = {}


class LiftedJoin(LiftedStage):
    """A join in a loop, with the steps behind it."""

    __slots__ = ("join", "left", "right", "sides")

    def __init__(
        self, node: Join, reads: Iterable[int], schedule: Schedule, operator: JoinOperator,
        left_constant: bool, right_constant: bool,
    ) -> None:  # fmt: skip
        self.left = VersionedIndex(node.left_key, schedule.depth, left_constant, node)
        self.right = VersionedIndex(node.right_key, schedule.depth, right_constant, node)
        self.sides = self.left, self.right
        self.join = operator.join_delta
        super().__init__(node, reads, schedule, *self.sides)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        return self.left.grouping, self.right.grouping, self.join

    def run_at(self, version: Version, *changes: Any) -> Delta:
        left, right = self.left.grouped(changes[0]), self.right.grouped(changes[1])
        out: Delta = self.later.pop(version, {})
        if right:
            self.right.add(version, right)
        if left:
            for at, groups in self.right.meeting(left, version):
                self._give(version, out, at, self.join(left, {}, {}, groups))
        if right:
            for at, groups in self.left.meeting(right, version):
                self._give(version, out, at, self.join({}, right, groups, {}))
        if left:
            self.left.add(version, left)
        return out

    def total(self) -> Delta:
        left, right = self.left.totals(), self.right.totals()
        made: Delta = self.join({key: rows.items() for key, rows in left.items()}, {}, {}, right)
        return made

    def _give(self, version: Version, out: Delta, at: Version, delta: Delta) -> None:
        if at == version:
            add_into(out, delta)
        elif delta:
            add_into(self.later.setdefault(at, {}), delta)
            self.schedule.add(at)


class LiftedByKey(LiftedStage):
    """Any other stage of a body: one that looks at the rows of a key together, of one slot or two.

    `evaluate` gives the rows for a key, from scratch, given the key and its rows of each slot.
    """

    __slots__ = ("evaluate", "given", "sides")

    later_keys = True

    def __init__(
        self, node: Node, reads: Iterable[int], schedule: Schedule,
        keys: Iterable[tuple[Fn | None, bool]], evaluate: Callable[..., Delta],
    ) -> None:  # fmt: skip
        depth = schedule.depth
        self.sides = [VersionedIndex(key, depth, constant, node) for key, constant in keys]
        self.given = VersionedIndex(None, depth, False, node)
        self.evaluate = evaluate
        super().__init__(node, reads, schedule, *self.sides, self.given)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        return (*(each.grouping for each in self.sides), self.evaluate)

    def run_at(self, version: Version, *changes: Any) -> Delta:
        given, evaluate = self.given, self.evaluate
        due: dict[Any, None] = self.later.pop(version, {})
        for side, change in zip(self.sides, changes, strict=True):
            found = side.grouped(change)
            side.add(version, found)
            due = {**due, **dict.fromkeys(found)} if due else dict.fromkeys(found)
        for history in (*self.sides, given):
            history.index.bring(due)
        first, *others = self.sides
        out: Delta = {}
        changed: dict[Any, Any] = {}
        for key in due:
            rows, later = first.at(key, version)
            if others:
                parts = [each.at(key, version) for each in others]
                for _, more in parts:
                    later = {**later, **more}
                made = evaluate(key, rows, *[part for part, _ in parts]) if rows else {}
            else:
                made = evaluate(key, rows) if rows else {}
            if later:
                self._look_again(key, version, later)
            before, _ = given.at(key, version)
            if made != before:
                changed[key] = (made if not before else _less(made, before)).items()
                for row, weight in changed[key]:
                    out[row] = out.get(row, 0) + weight
        given.add(version, changed)
        return without_zeros(out)

    def total(self) -> Delta:
        out: Delta = {}
        for rows in self.given.totals().values():
            add_into(out, rows)
        return out

    def _look_again(self, key: Any, version: Version, later: Iterable[Version]) -> None:
        """Come back to a key where differences at other versions meet those at this one."""
        for each in later:
            at = self.schedule.join(each, version)
            self.later.setdefault(at, {})[key] = None
            self.schedule.add(at)


def _less(made: Delta, before: Delta) -> Delta:
    found = made.copy()
    for row, weight in before.items():
        weight = found.get(row, 0) - weight
        if weight:
            found[row] = weight
        else:
            del found[row]
    return found


def evaluation(node: Node, operator: Any) -> Callable[..., Delta]:
    """What a node with state computes for one key, from scratch, as its operator does it."""
    if isinstance(node, Distinct):
        return _present
    if isinstance(node, Semi):
        return _unmatched if node.anti else _matched
    if isinstance(node, Aligned):
        return _aligned(node, operator)
    if isinstance(node, Binary):
        return _compared(operator.evaluate)
    assert isinstance(node, Keyed)
    checked = node.parent.bag
    from_scratch = operator.from_scratch if isinstance(node, Reduce) else _updated(operator)

    def evaluate(key: Any, rows: Delta) -> Delta:
        _check(node, rows, checked)
        made: Delta = from_scratch(key, rows)
        return made

    return evaluate


NOTHING: Any = trusted({})


def _updated(operator: Any) -> Callable[[Any, Delta], Delta]:
    """From nothing to these rows, in one step."""
    start, update = operator.init, operator.update

    def from_scratch(key: Any, rows: Delta) -> Delta:
        made: Delta = update(start(NOTHING), trusted(rows))
        return made

    return from_scratch


def _compared(evaluate: Callable[..., Delta]) -> Callable[..., Delta]:
    return lambda key, left, right: evaluate(left, right)


def _aligned(node: Aligned, operator: Any) -> Callable[..., Delta]:
    def evaluate(key: Any, left: Delta, right: Delta) -> Delta:
        for parent, rows in zip(node.parents, (left, right), strict=True):
            _check(node, rows, parent.bag)
        made: Delta = operator.from_scratch(left, right)
        return made

    return evaluate


def _check(node: Node, rows: Delta, checked: bool) -> None:
    """Refuse rows of negative weight; where rows were `checked`, a function is at fault."""
    if rows and min(rows.values()) < 0:
        row = next(row for row, weight in rows.items() if weight < 0)
        raise not_there(row) if checked else negative_before(node, row=row)


def _present(key: Any, rows: Delta) -> Delta:
    return {row: 1 for row, weight in rows.items() if weight > 0}


def _matched(key: Any, left: Delta, right: Delta) -> Delta:
    return left if sum(right.values()) > 0 else {}


def _unmatched(key: Any, left: Delta, right: Delta) -> Delta:
    return {} if sum(right.values()) > 0 else left
