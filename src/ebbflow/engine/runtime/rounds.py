"""The stages of a loop's body: state with versions, and the two rules that lift an operator.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from ebbflow.algebra.order import NATURALS, Order, order_product
from ebbflow.chain import grouping
from ebbflow.engine.runtime.failure import negative_before
from ebbflow.engine.runtime.stage import Stage
from ebbflow.flow.plan import Binary, Distinct, Join, Keyed, Node, Semi
from ebbflow.flow.plan.aligned import Aligned
from ebbflow.fn import Fn
from ebbflow.operator.joins import Join as JoinOperator
from ebbflow.state.index import Index, not_there
from ebbflow.zset import add_into, trusted

Version = tuple[int, ...]
Delta = dict[Any, int]
Groups = dict[Any, dict[Any, int]]


class Schedule:
    """The rounds of one loop at which something is waiting, for each version of the loops around
    it."""

    def __init__(self, around: Schedule | None) -> None:
        self.around = around
        self.depth: int = 1 if around is None else around.depth + 1
        self.order: Order[Version] = order_product(*[NATURALS] * self.depth)
        self.rounds: dict[Version, list[int]] = {}
        self.known: set[Version] = set()

    def add(self, version: Version) -> None:
        """Come to this version."""
        if version not in self.known:
            self.known.add(version)
            outer = version[:-1]
            heappush(self.rounds.setdefault(outer, []), version[-1])
            if self.around is not None:
                self.around.add(outer)

    def next(self, outer: Version) -> int | None:
        """The first round that is waiting, at a version of the loops around; it is not, then."""
        waiting = self.rounds.get(outer)
        if not waiting:
            self.rounds.pop(outer, None)
            return None
        found = heappop(waiting)
        self.known.discard((*outer, found))
        return found

    def clear(self) -> None:
        """Nothing is waiting."""
        self.rounds, self.known = {}, set()


class VersionedIndex:
    """The differences of a collection by key, each row with its version.

    Those of a `constant` collection, the same in every round of every loop around, have none.
    """

    __slots__ = ("constant", "grouping", "index", "order")

    def __init__(self, key: Fn | None, order: Order[Version], constant: bool, owner: Node) -> None:
        self.grouping: Callable[[Any], dict[Any, Any]] = grouping(key, None, owner)
        self.index: Index[Any, Any] = Index(None)
        self.constant, self.order = constant, order

    def grouped(self, change: Delta | None) -> dict[Any, Any]:
        """The rows of a change by key."""
        return self.grouping(change.items()) if change else {}

    def add(self, version: Version, found: dict[Any, Any]) -> None:
        """Add differences at a version, by key."""
        if not found:
            return
        if not self.constant:
            found = {
                key: [((version, row), weight) for row, weight in pairs]
                for key, pairs in found.items()
            }
        self.index.bring(found)
        self.index.put(found)

    def versions(self, key: Any) -> Iterable[Version]:
        """The versions at which a key has differences."""
        if self.constant:
            return ()
        return {version for version, _ in self.index.groups.get(key, ())}

    def rows(self, key: Any, version: Version) -> Delta:
        """The rows of a key at a version: the sum of all differences at or below it."""
        group = self.index.groups.get(key)
        if group is None:
            return {}
        if self.constant:
            return group
        leq, found = self.order.leq, dict[Any, int]()
        get = found.get
        for (at, row), weight in group.items():
            if leq(at, version):
                found[row] = get(row, 0) + weight
        return {row: weight for row, weight in found.items() if weight}

    def meeting(self, keys: Iterable[Any], version: Version) -> Iterator[tuple[Version, Groups]]:
        """The differences of some keys by the version at which they meet one at `version`."""
        groups = self.index.groups
        self.index.bring(keys)
        if self.constant:
            yield version, groups
            return
        join: Any = self.order.join
        found: dict[Version, Groups] = {}
        for key in keys:
            for (at, row), weight in groups.get(key, {}).items():
                group = found.setdefault(join(at, version), {}).setdefault(key, {})
                weight += group.get(row, 0)
                if weight:
                    group[row] = weight
                else:
                    del group[row]
        yield from found.items()


class LiftedStage(Stage):
    """A stage with state in the body of a loop; `schedule` is told what is for later versions."""

    __slots__ = ("later", "schedule")

    later_keys = False
    """Whether what is for later are keys to look at again, and not rows to give."""
    sides: Sequence[VersionedIndex]
    """What each of the slots that it reads is kept in, by key."""

    def __init__(
        self, node: Node, reads: Iterable[int], schedule: Schedule, *histories: VersionedIndex
    ) -> None:
        super().__init__(node, reads, *[each.index for each in histories])
        self.schedule = schedule
        self.later: dict[Version, Any] = {}

    @abstractmethod
    def run_at(self, version: Version, *changes: Any) -> Delta:
        """The difference of its slot at a version, from those of the slots that it reads."""

    def waits_for(self, version: Version) -> bool:
        """Whether there is something to do at a version even if nothing changes there."""
        return version in self.later

    def clear(self) -> None:
        """Forget what is for later."""
        self.later = {}


class LiftedJoin(LiftedStage):
    """A join in a loop, with the steps behind it."""

    __slots__ = ("join", "left", "right", "sides")

    def __init__(
        self, node: Join, reads: Iterable[int], schedule: Schedule, operator: JoinOperator,
        left_constant: bool, right_constant: bool,
    ) -> None:  # fmt: skip
        self.left = VersionedIndex(node.left_key, schedule.order, left_constant, node)
        self.right = VersionedIndex(node.right_key, schedule.order, right_constant, node)
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

    def _give(self, version: Version, out: Delta, at: Version, delta: Delta) -> None:
        if at == version:
            add_into(out, delta)
        elif delta:
            add_into(self.later.setdefault(at, {}), delta)
            self.schedule.add(at)


class LiftedByKey(LiftedStage):
    """Any other stage of a body: one that looks at the rows of a key together, of one slot or two.

    `evaluate` gives the rows for a key, from scratch, given those of each slot.
    """

    __slots__ = ("evaluate", "given", "sides")

    later_keys = True

    def __init__(
        self, node: Node, reads: Iterable[int], schedule: Schedule,
        keys: Iterable[tuple[Fn | None, bool]], evaluate: Callable[..., Delta],
    ) -> None:  # fmt: skip
        order = schedule.order
        self.sides = [VersionedIndex(key, order, constant, node) for key, constant in keys]
        self.given = VersionedIndex(None, order, False, node)
        self.evaluate = evaluate
        super().__init__(node, reads, schedule, *self.sides, self.given)

    def loops(self, stored: bool) -> tuple[Callable[..., Any], ...]:
        return (*(each.grouping for each in self.sides), self.evaluate)

    def run_at(self, version: Version, *changes: Any) -> Delta:
        histories, given = self.sides, self.given
        due: dict[Any, None] = self.later.pop(version, {})
        for history, change in zip(histories, changes, strict=True):
            found = history.grouped(change)
            history.add(version, found)
            due |= dict.fromkeys(found)
        for history in (*histories, given):
            history.index.bring(due)
        out: Delta = {}
        changed: dict[Any, Any] = {}
        join: Any = self.schedule.order.join
        for key in due:
            rows = [history.rows(key, version) for history in histories]
            delta = dict(self.evaluate(*rows)) if rows[0] else {}
            for row, weight in given.rows(key, version).items():
                weight = delta.get(row, 0) - weight
                if weight:
                    delta[row] = weight
                else:
                    del delta[row]
            if delta:
                changed[key] = delta.items()
                add_into(out, delta)
            for history in histories:
                for each in history.versions(key):
                    at = join(each, version)
                    if at != version:
                        self.later.setdefault(at, {})[key] = None
                        self.schedule.add(at)
        given.add(version, changed)
        return out


def evaluation(node: Node, operator: Any) -> Callable[..., Delta]:
    """What a node with state computes for one key, from scratch, as its operator does it."""
    if isinstance(node, Distinct):
        return _present
    if isinstance(node, Semi):
        return _unmatched if node.anti else _matched
    if isinstance(node, Aligned):
        return _aligned(node, operator)
    if isinstance(node, Binary):
        evaluate_key: Callable[..., Delta] = operator.evaluate
        return evaluate_key
    assert isinstance(node, Keyed)
    start, update, checked = operator.init, operator.update, node.parent.bag

    def evaluate(rows: Delta) -> Delta:
        _check(node, rows, checked)
        bag = trusted(rows)
        made: Delta = update(start(NOTHING), bag)
        return made

    return evaluate


NOTHING: Any = trusted({})


def _aligned(node: Aligned, operator: Any) -> Callable[..., Delta]:
    def evaluate(left: Delta, right: Delta) -> Delta:
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


def _present(rows: Delta) -> Delta:
    return {row: 1 for row, weight in rows.items() if weight > 0}


def _matched(left: Delta, right: Delta) -> Delta:
    return left if sum(right.values()) > 0 else {}


def _unmatched(left: Delta, right: Delta) -> Delta:
    return {} if sum(right.values()) > 0 else left
