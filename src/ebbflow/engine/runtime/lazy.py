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

Where a loop takes the least or the greatest value of each key, the facts are the keys with their
values, and of its derivations those with the best value count. A better one than it has suspends a
fact too; and facts come back in the order of their values, the best first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from sys import maxsize
from typing import Any

from ebbflow.engine.runtime.derive import Derivations, DerivedTerm
from ebbflow.engine.runtime.stage import Stage, fetched
from ebbflow.errors import NoFixedPoint
from ebbflow.flow.plan import Iterate, LoopInput
from ebbflow.flow.rewrite.monotone import Choice, Monotone, Term
from ebbflow.nan import NAN
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import not_there
from ebbflow.zset import trusted

Delta = dict[Any, int]
SAMPLE = 5


class LazyLoopStage(Stage):
    """A monotone loop; see the module. `rows_of` is the round of what it has as facts."""

    __slots__ = (
        "constants",
        "derivations",
        "exact",
        "facts",
        "fresh",
        "old",
        "pairs",
        "start",
        "terms",
        "was",
    )

    code = "run"
    certain = False

    def __init__(
        self, node: Iterate, reads: Iterable[int], found: Monotone, fresh: Callable[[], Any]
    ) -> None:
        (variable,) = node.variables
        made = [DerivedTerm(term, found.choice, variable) for term in found.terms]
        start = LoopInput(name=variable, type=node.starts[0].type)
        self.terms, self.fresh = made, fresh
        self.start = DerivedTerm(Term(start, ()), found.choice, variable)
        self.constants = [DerivedTerm(term, found.choice, variable) for term in found.constants]
        self.derivations: Cells[Any, dict[Any, int]] = Cells()
        self.facts: Cells[Any, Any] = Cells()
        self.pairs = [term for term in made if term.itself]
        indices = [each for term in made for each in (term.theirs, term.mine) if each is not None]
        super().__init__(node, reads, self.derivations, self.facts, *indices)
        self.old: dict[Any, Any] = {}
        self.was: dict[Any, Any] = {}
        self.exact = False

    def row_type(self, container: Any) -> Any:
        return Any

    def whole(self, *wholes: Any) -> Any:
        return self.fresh().run(*wholes)

    # ---- one epoch ----

    def run(self, start: Any, *outside: Any) -> Delta:
        self.old, self.was, self.exact = {}, {}, False
        for container, entry in ((self.derivations, self.old), (self.facts, self.was)):
            if container.journal is not None:
                container.journal.append(entry)
        named = dict(zip(self._iterate.outside, outside, strict=True))
        touched = self._count(self._given(start or {}, named))
        if not self._bring_back(self._suspend(touched, touched)):
            self._begin_again()
        out = self._changed()
        for term in self.terms:
            if term.mine is not None and out:
                term.mine.apply(out)
        tables = self.derivations.values
        for what in self.old:
            if what in tables and not tables[what]:
                del tables[what]
        return out

    @property
    def _iterate(self) -> Iterate:
        assert isinstance(self.node, Iterate)
        return self.node

    def _given(self, start: Delta, outside: dict[str, Delta | None]) -> Derivations:
        """The derivations that come and go because of changes from outside. The facts are as they
        were, the collections from outside as they are afterwards."""
        found: Derivations = []
        for row, weight in start.items():
            found += [(what, at, weight) for what, at, _ in self.start.consequences(row, 0)]
        for term in self.constants:
            for row, weight in (outside[term.term.input.name] or {}).items():
                found += [(what, at, weight) for what, at, _ in term.consequences(row, 1)]
        for term in self.terms:
            other = term.term.other
            change = None if term.itself or other is None else outside[other.name]
            if change and term.theirs is not None and term.mine is not None:
                by_key = term.theirs.grouped(change)
                term.theirs.bring(by_key)
                term.theirs.apply(change)
                term.mine.bring(by_key)
                facts = term.mine.groups
                if self.facts.backing is not None:
                    fetched(self.facts, self._keys(r for key in by_key for r in facts.get(key, ())))
                found += term.triggered(by_key, facts, self.facts.values)
        return found

    def _keys(self, rows: Iterable[Any]) -> Iterable[Any]:
        """The cells of some facts."""
        return rows

    def _derived(self, facts: list[tuple[Any, Any]], sign: int) -> Derivations:
        """What facts derive that come (1) or go (-1), each given with its round."""
        terms, rounds = self.terms, self.facts.values
        if self.facts.backing is not None:
            for term in terms:
                if term.theirs is not None:
                    keys = term.grouping([(fact, 1) for fact, _ in facts])
                    term.theirs.bring(keys)
                    if term.itself:
                        theirs = term.theirs.groups
                        term.theirs.bring(term.theirs.grouped(dict(facts)))
                        fetched(self.facts, [r for key in keys for r in theirs.get(key, ())])
        found: Derivations = []
        if self.pairs:
            return self._paired(facts, sign)
        if len(terms) == 1:
            (term,) = terms
            derive = term.consequences
            if term.theirs is None:
                for fact, number in facts:
                    found += derive(fact, number)
            else:
                groups = term.theirs.groups
                for fact, number in facts:
                    found += derive(fact, number, groups, rounds)
            return found
        for fact, number in facts:
            for term in terms:
                found += term.derive(fact, number, rounds)
        return found

    def _paired(self, facts: list[tuple[Any, Any]], sign: int) -> Derivations:
        """The same where facts are joined with facts: one after the other, so that of two that come
        or go together the later finds the earlier, or does not find it any more. A fact meets
        itself once: while it derives, it is among the right sides and not among the left ones."""
        rounds = self.facts.values
        found: Derivations = []
        sides = [(term.term.side, term.theirs) for term in self.pairs if term.theirs is not None]
        lefts = [index for side, index in sides if side == 1]
        rights = [index for side, index in sides if side == 0]
        first, last = (rights, lefts) if sign > 0 else (lefts, rights)
        for fact, number in facts:
            for index in first:
                index.apply({fact: sign})
            for term in self.terms:
                found += term.derive(fact, number, rounds)
            for index in last:
                index.apply({fact: sign})
        return found

    def _count(self, derived: Derivations, sign: int = 1) -> list[Any]:
        """Add derivations to the tables, or take them out, and say whose."""
        tables, old = self.derivations.values, self.old
        if self.derivations.backing is not None:
            keys = [what for what, _, _ in derived]
            fetched(self.derivations, keys)
            fetched(self.facts, keys)
        touched = []
        for what, at, count in derived:
            if what in old:
                table = tables[what]
            else:
                there = tables.get(what)
                old[what] = ABSENT if there is None else there
                table = tables[what] = {} if there is None else there.copy()
            count = table.get(at, 0) + sign * count
            if count > 0:
                table[at] = count
            elif count:
                raise not_there(what)
            else:
                del table[at]
            touched.append(what)
        return touched

    def _suspend(self, touched: list[Any], back: list[Any]) -> list[Any]:
        """Take out the facts that have lost their support, and those that they support; give all
        that may come back, with those that are given already."""
        facts, tables = self.facts.values, self.derivations.values
        while touched:
            gone: dict[Any, None] = {}
            for row in touched:
                number = facts.get(row)
                if number is None:
                    continue
                for each in tables[row]:
                    if each < number:
                        break
                else:
                    gone[row] = None
            touched = self._withdraw(gone)
            back += gone
        return back

    def _withdraw(self, gone: Iterable[Any]) -> list[Any]:
        """Take facts out, and the derivations made from them; say of what."""
        facts, was = self.facts.values, self.was
        numbers = [(row, facts[row]) for row in gone]
        derived = self._derived(numbers, -1)
        for row, number in numbers:
            was.setdefault(row, number)
            del facts[row]
        return self._count(derived, -1)

    def _begin_again(self) -> None:
        """Have every fact come back in its earliest round: rounds that are upper bounds say nothing
        about the limit."""
        for container in (self.derivations, self.facts):
            fetched(container, container.everything())
        self.exact = True
        everything = list(self.facts.values)
        self._withdraw(everything)
        self._bring_back([*self.derivations.values])
        self.exact = False

    def _bring_back(self, rows: list[Any]) -> bool:
        """Have what has derivations be facts again, in the order of their rounds. False when that
        takes more rounds than there may be, and rounds are not exact."""
        facts, tables, was, limit = (
            self.facts.values,
            self.derivations.values,
            self.was,
            self._limit,
        )
        waiting: dict[int, list[Any]] = {}
        for row in rows:
            if row not in facts and tables[row]:
                waiting.setdefault(min(tables[row]), []).append(row)
        heap = list(waiting)
        heapify(heap)
        while heap:
            number = heappop(heap)
            new = [row for row in dict.fromkeys(waiting.pop(number)) if row not in facts]
            number += 1
            if number > limit and new:
                if self.exact:
                    raise self._endless(number - 1, new)
                return False
            for row in new:
                was.setdefault(row, ABSENT)
                facts[row] = number
            derived = self._derived([(row, number) for row in new], 1)
            self._count(derived)
            for row, at, _ in derived:
                if row not in facts:
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
        return NoFixedPoint(
            f"iterate: after {number} rounds rows of {self._iterate.variables[0]!r} still change",
            changing=trusted(dict.fromkeys(rows[:SAMPLE], 1)),
            created=self.node.place,
            remedy="rounds=, a higher limit=, or a body that comes to an end; "
            "the step changed nothing",
        )


class LazyChoiceStage(LazyLoopStage):
    """A monotone loop that takes the least or the greatest value of each key.

    A fact is the key with the mark of its value and its round; a derivation is known by the mark of
    its value and its round. `row` makes the row of a key and a mark.
    """

    __slots__ = ("row",)

    def __init__(
        self, node: Iterate, reads: Iterable[int], found: Monotone, fresh: Callable[[], Any],
        row: Callable[[Any, Any], Any],
    ) -> None:  # fmt: skip
        super().__init__(node, reads, found, fresh)
        self.row = row

    def _keys(self, rows: Iterable[Any]) -> Iterable[Any]:
        key = self.start.choice.reduce.width  # type: ignore[union-attr]
        return [row[0] if key == 1 else tuple(row[:key]) for row in rows]

    def _suspend(self, touched: list[Any], back: list[Any]) -> list[Any]:
        facts, tables = self.facts.values, self.derivations.values
        while touched:
            gone: dict[Any, None] = {}
            for key in touched:
                fact = facts.get(key)
                if fact is not None:
                    table = tables[key]
                    best = min(table) if table else None
                    if best is None or best[0] != fact[0] or best[1] >= fact[1]:
                        gone[key] = None
            touched = self._withdraw(gone)
            back += gone
        return back

    def _withdraw(self, gone: Iterable[Any]) -> list[Any]:
        facts, was, row = self.facts.values, self.was, self.row
        known = [(key, facts[key]) for key in gone]
        derived = self._derived([(row(key, mark), number) for key, (mark, number) in known], -1)
        for key, fact in known:
            was.setdefault(key, fact)
            del facts[key]
        return self._count(derived, -1)

    def _bring_back(self, keys: list[Any]) -> bool:
        """The best value first: no value is better than the one that it is derived from, so what
        has come back stays. A fact that was there all the time may get a better value yet."""
        facts, tables, was = self.facts.values, self.derivations.values, self.was
        row, limit = self.row, self._limit
        waiting: dict[Any, list[Any]] = {}
        heap: list[Any] = []

        def wait(keys: Iterable[Any]) -> None:
            for key in keys:
                if key not in facts and tables[key]:
                    best = min(tables[key])
                    if best not in waiting:
                        waiting[best] = []
                        heappush(heap, best)
                    waiting[best].append(key)

        wait(keys)
        while heap:
            best = heappop(heap)
            new = [key for key in dict.fromkeys(waiting.pop(best)) if key not in facts]
            mark, number = best
            if number >= limit and new:
                if not self.exact:
                    return False
                self._require_end()
                limit = maxsize
            for key in new:
                was.setdefault(key, ABSENT)
                facts[key] = mark, number + 1
            touched = self._count(self._derived([(row(key, mark), number + 1) for key in new], 1))
            better = [
                key for key in touched if key in facts and min(tables[key])[0] < facts[key][0]
            ]  # fmt: skip
            wait(self._suspend(better, touched))
        return True

    def _require_end(self) -> None:
        """Raise unless the loop comes to its end within its limit. A value may be there in an
        earlier round than its derivation says, from one that was not the best yet; so the values
        of each round are counted here as they would come by themselves."""
        tables, best = self.derivations.values, dict[Any, Any]()
        entered = [(key, mark, at) for key, table in tables.items() for mark, at in table if at < 2]
        new = [(key, mark) for key, mark, at in entered if at == 0]
        for number in range(1, self._limit + 1):
            derived = self._derived([(self.row(key, mark), 1) for key, mark in new], 1)
            given = [(key, mark) for key, (mark, _), _ in derived]
            if number == 1:
                given += [(key, mark) for key, mark, _ in entered]
            better: dict[Any, Any] = {}
            for key, mark in given:
                if key not in best or mark < best[key]:
                    best[key] = better[key] = mark
            new = list(better.items())
            if not new:
                return
        raise self._endless(self._limit, [self.row(key, mark) for key, mark in new])

    def _changed(self) -> Delta:
        facts, row = self.facts.values, self.row
        out: Delta = {}
        for key, before in self.was.items():
            after = facts.get(key, ABSENT)
            if before is not ABSENT and (after is ABSENT or after[0] != before[0]):
                out[row(key, before[0])] = -1
            if after is not ABSENT and (before is ABSENT or after[0] != before[0]):
                out[row(key, after[0])] = 1
        return out


def row_maker(choice: Choice, make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function from a key and a mark to a row; `make` makes it from a key and a value."""
    sign = -1 if choice.greatest else 1
    if choice.is_float:
        number = choice.greatest  # what marks of numbers begin with; see `derive.mark_source`
        return lambda key, mark: make(key, sign * mark[1] if mark[0] == number else NAN)
    return lambda key, mark: make(key, sign * mark)
