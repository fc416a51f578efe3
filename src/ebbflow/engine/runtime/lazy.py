"""Lazy rounds: monotone loops, in which only the facts that an epoch affects are looked at.

In reachability, a shorter path changes the round of everything behind it, and the rows not at all.
So a row of a monotone loop, a *fact*, keeps a round that is only an upper bound, and a table of its
derivations: how many there are, by their round, which is the largest round of the facts they are
made from. The start has the round 0, and what is there without any fact the round 1. The invariant:

    every fact has a derivation whose round is smaller than its own

Therefore no facts hold each other up in a circle. A better derivation of a known fact changes
nothing. When the last derivation with a smaller round goes, the fact is suspended, and the
derivations made from it are withdrawn; so are the facts that then lack support, and so on. What is
suspended and has derivations left comes back in the order of their rounds, with a new round. What
did not come back is gone.

Facts of the same round could not hold each other up, and many would be suspended only to come back.
So a round has eight *places*, and its facts take them in turn: the numbers that are kept and
compared are `8 * round + place`. The first place is for what comes from outside. A fact that is
held by one of its own round has a smaller round than it would have in truth, though. Where the
limit of the loop is so small that one may count on it, only facts of earlier rounds hold others.

When half of all facts have been suspended in an epoch, or half as many rows go as there are keys
that facts are joined with, the rest would cost more than it saves: the loop is computed again, from
the derivations that come from outside (`recomputed` counts how often).

Where a loop takes the least or the greatest value of each key, see `lazy_choice`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from sys import maxsize
from typing import Any

from ebbflow.engine.runtime.derive import Derivations
from ebbflow.engine.runtime.facts import Delta, FactsStage, Lost
from ebbflow.engine.runtime.stage import fetched
from ebbflow.errors import NoFixedPoint
from ebbflow.flow.endless import no_fixed_point
from ebbflow.kernel.pausing import pausing_gc
from ebbflow.state.cells import ABSENT

PLACES = 3
"""How many bits of a number tell the place in its round."""
FACTS_PLACES = (1 << PLACES) - 1
"""How many places there are for facts, those behind the first."""
FEW = 1_000
"""So many facts are suspended rather than computed again, however few there are."""
COUNTED = 1_000
"""Up to this limit rounds are upper bounds, so that the limit is seen when it is reached."""
AT_ONCE = -1
"""Enough suspended facts before there are any."""


class LazyLoopStage(FactsStage):
    """A monotone loop; see the module.

    Of the last epoch, `rows_per_round` says how many facts came or came back in each round,
    `suspended` how many facts were, and `derived` how many derivations came or went. `recomputed`
    says in how many epochs the loop was computed again.
    """

    __slots__ = ()

    def whole(self, *wholes: Any) -> Any:
        return self.fresh().run(*wholes)

    # ---- one epoch ----

    @pausing_gc
    def run(self, start: Any, *outside: Any) -> Delta:
        self.was, self.exact = {}, False
        self.rows_per_round, self.suspended, self.derived = {}, 0, 0
        self.enough, self.least = self._bounds()
        if self.facts.journal is not None:
            self.facts.journal.append(self.was)
        given = self._given(start or {}, dict(zip(self._iterate.outside, outside, strict=True)))
        lost = self._count(given, 1)
        back, bettered = self._looked_at(given)
        if lost or bettered:
            back += self._suspend(lost, bettered)
        if self.suspended > self.enough or (back and not self._bring_back(back)):
            self._compute_again()
        out = self._changed()
        for term in self.terms:
            if term.mine is not None and out:
                term.mine.apply(out)
        self.derivations.drop_empty()
        return out

    def _given(self, start: Delta, outside: dict[str, Delta | None]) -> Derivations:
        """The derivations that come and go because of changes from outside. The facts are as they
        were, the collections from outside as they are afterwards."""
        found: Derivations = self.start.entering(start, 0)
        for term in self.constants:
            found += term.entering(outside[term.term.input.name] or {}, 1 << PLACES)
        for term in self.terms:
            other = term.term.other
            change = None if term.itself or other is None else outside[other.name]
            if not change or term.theirs is None:
                continue
            if len(change) > self.least and _gone(change) > len(term.theirs.groups) // 2:
                term.theirs.apply(change)
                self.enough = AT_ONCE
            else:
                found += self._triggered(term, change)
        return found

    def _suspend(self, lost: Lost, gone: dict[Any, Any]) -> list[Any]:
        """Take out the facts that are `gone` or have lost their support, and those that they
        support, and give them all. It ends early when that is enough to compute the loop again."""
        facts, tables = self.facts.values, self.derivations.values
        counted = self._limit <= COUNTED
        back: list[Any] = []
        while (lost or gone) and self.suspended <= self.enough:
            for row, at in lost:
                number = facts.get(row)
                if number is not None and at < number and row not in gone:
                    least = self._begin(number) if counted else number
                    for each in tables[row]:
                        if each < least:
                            break
                    else:
                        gone[row] = number
            if not gone:
                break
            lost = self._withdraw(gone)
            back += gone
            gone = {}
        return back

    def _begin(self, number: Any) -> Any:
        """The first number of the round of a number."""
        return number >> PLACES << PLACES

    def _looked_at(self, came: Derivations) -> tuple[list[Any], dict[Any, Any]]:
        """Of what derivations came or went: what is no fact, and the facts for which a better value
        has come, which are none where there are no values."""
        facts = self.facts.values
        return [what for what, _, _ in came if what not in facts], {}

    def _withdraw(self, gone: dict[Any, Any]) -> Lost:
        """Take facts out, and the derivations made from them; say whose last of a round has
        gone."""
        facts, was = self.facts.values, self.was
        self.suspended += len(gone)
        derived = self._derived(gone.items(), -1)
        for fact, number in gone.items():
            if fact not in was:
                was[fact] = number
            del facts[fact]
        return self._count(derived, -1)

    def _bounds(self) -> tuple[int, int]:
        """How many suspended facts are enough to compute the loop again, and how many rows a change
        from outside must have for that. Where only some of the facts are in memory, none are
        enough: reading the others would cost more."""
        backing, facts = self.facts.backing, len(self.facts.values)
        if not facts or (backing is not None and backing.resident is not None):
            return maxsize, maxsize
        return max(facts // 2, FEW), FEW

    def _compute_again(self) -> None:
        """Have no fact, and derive them all from what comes from outside, in their earliest rounds.
        So this is also done when the limit is reached: rounds that are upper bounds say nothing
        about it."""
        for container in (self.derivations, self.facts):
            fetched(container, container.everything())
        self.exact, self.enough = True, maxsize
        self.recomputed += 1
        if self.elsewhere is None:
            self._forget_facts()
        else:  # tables may be elsewhere
            self._withdraw(dict(self.facts.values))
        self._bring_back([*self.derivations.values])

    def _forget_facts(self) -> None:
        """Have no facts, and no derivations that are made from any."""
        facts = self.facts.values
        self.was.update({fact: at for fact, at in facts.items() if fact not in self.was})
        for term in self.pairs:
            assert term.theirs is not None
            term.theirs.apply(dict.fromkeys(facts, -1))
        facts.clear()
        self.derivations.keep(self._from_outside)

    def _from_outside(self, at: Any) -> bool:
        """Whether a derivation of this number is made from no fact."""
        return not at & FACTS_PLACES

    def _bring_back(self, rows: list[Any]) -> bool:
        """Have what has derivations be facts again, in the order of their rounds. False when that
        takes more rounds than there may be, and rounds are not exact."""
        facts, tables, was, limit = (
            self.facts.values,
            self.derivations.values,
            self.was,
            self._limit,
        )
        came = self.rows_per_round = self.rows_per_round or {}
        waiting: dict[int, list[Any]] = {}
        for row in rows:
            if row not in facts and tables[row]:
                waiting.setdefault(min(tables[row]) >> PLACES, []).append(row)
        heap = list(waiting)
        heapify(heap)
        while heap:
            number = heappop(heap)
            rows = [row for row in waiting.pop(number) if row not in facts]
            if not rows:
                continue
            if number >= limit:
                if self.exact:
                    raise self._endless(number, list(dict.fromkeys(rows)))
                return False
            first = (number + 1 << PLACES) + 1
            new = {row: first + i % FACTS_PLACES for i, row in enumerate(rows)}
            came[number] = came.get(number, 0) + len(new)
            for row in new:
                if row not in was:
                    was[row] = ABSENT
            facts.update(new)
            derived = self._derived(new.items(), 1)
            self._count(derived, 1)
            for row, at, _ in derived:
                if row not in facts:
                    at >>= PLACES
                    if at in waiting:
                        waiting[at].append(row)
                    else:
                        waiting[at] = [row]
                        heappush(heap, at)
        return True

    def _changed(self) -> Delta:
        """What the epoch has done to the facts."""
        facts = self.facts.values
        out = {}
        for row, before in self.was.items():
            weight = (row in facts) - (before is not ABSENT)
            if weight:
                out[row] = weight
        return out

    @property
    def _limit(self) -> int:
        return self._iterate.limit

    def _endless(self, number: int, rows: list[Any]) -> NoFixedPoint:
        node = self._iterate
        return no_fixed_point(node, number, {node.variables[0]: dict.fromkeys(rows, 1)})


def _gone(change: Delta) -> int:
    """How many rows go with a change."""
    return sum([weight < 0 for weight in change.values()])
