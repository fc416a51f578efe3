"""The facts of a monotone loop and their derivations: what is kept, derived and counted.

A fact has a number, and a table of its derivations: how many there are, by their number. Which
facts there are is decided elsewhere (`lazy`); here is what they derive when they come or go, and
how that is counted. Both can be cut by key, and done by others in parts (`elsewhere`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from sys import maxsize
from typing import Any

from ebbflow.engine.runtime.derive import Derivations, DerivedTerm
from ebbflow.engine.runtime.elsewhere import Elsewhere
from ebbflow.engine.runtime.stage import Stage, fetched
from ebbflow.flow.plan import Iterate, LoopInput, Node
from ebbflow.flow.rewrite.monotone import Monotone
from ebbflow.flow.rewrite.terms import Term
from ebbflow.state.cells import Cells
from ebbflow.state.tallies import Tallies

Delta = dict[Any, int]
Known = Collection[tuple[Any, Any]]
"""Facts with their numbers."""
Lost = list[tuple[Any, Any]]
"""What has no derivation of a number any more, with that number."""


class FactsStage(Stage):
    """A monotone loop, as far as it has facts and derivations; see the module.

    Of the last epoch, `derived` says how many derivations came or went.
    """

    __slots__ = (
        "constants",
        "derivations",
        "derived",
        "elsewhere",
        "enough",
        "exact",
        "facts",
        "fresh",
        "least",
        "pairs",
        "recomputed",
        "rows_per_round",
        "start",
        "suspended",
        "terms",
        "was",
    )

    code = "run"
    certain = False
    looping = True

    def __init__(
        self, node: Iterate, reads: Iterable[int], found: Monotone, fresh: Callable[[], Any],
        whole: bool = True,
    ) -> None:  # fmt: skip
        (variable,) = node.variables
        made = [DerivedTerm(term, found.choice, variable, whole) for term in found.terms]
        start = LoopInput(name=variable, type=node.starts[0].type)
        self.terms, self.fresh = made, fresh
        self.start = DerivedTerm(Term(start, ()), found.choice, variable)
        self.constants = [DerivedTerm(term, found.choice, variable) for term in found.constants]
        self.derivations: Tallies[Any, Any] = Tallies()
        self.facts: Cells[Any, Any] = Cells()
        self.pairs = [term for term in made if term.itself]
        indices = [each for term in made for each in (term.theirs, term.mine) if each is not None]
        super().__init__(node, reads, self.derivations, self.facts, *indices)
        self.was: dict[Any, Any] = {}
        self.exact = False
        self.rows_per_round: dict[int, int] | None = None
        self.suspended = self.derived = self.recomputed = 0
        self.enough = self.least = maxsize
        self.elsewhere: Elsewhere | None = None

    def row_type(self, container: Any) -> Any:
        return Any

    def code_of(self, stored: bool) -> Iterator[tuple[Node, Callable[..., Any]]]:
        for each in self.constants:
            yield self.node, each.entering
        for each in self.terms:
            for loop in each.loops():
                yield each.term.join or self.node, loop

    @property
    def _iterate(self) -> Iterate:
        assert isinstance(self.node, Iterate)
        return self.node

    def _triggered(self, term: DerivedTerm, change: Delta) -> Derivations:
        """The derivations that come and go because of a change of what facts are joined with."""
        if self.elsewhere is not None:
            found = self.elsewhere.triggered(self, term, change)
            if found is not None:
                return found
        assert term.theirs is not None
        by_key = term.theirs.apply(change)
        if term.mine is None:
            fetched(self.facts, by_key)
            return term.triggered(by_key, self.facts.values)  # type: ignore[no-any-return]
        term.mine.bring(by_key)
        facts = term.mine.groups
        if self.facts.backing is not None:
            fetched(self.facts, self._keys(r for key in by_key for r in facts.get(key, ())))
        return term.triggered(by_key, facts, self.facts.values)  # type: ignore[no-any-return]

    def _keys(self, rows: Iterable[Any]) -> Iterable[Any]:
        """The cells of some facts."""
        return rows

    def _rows(self, facts: Known) -> list[tuple[Any, int]]:
        """The rows of some facts, as a change."""
        return [(fact, 1) for fact, _ in facts]

    def _derived(self, facts: Known, sign: int) -> Derivations:
        """What facts derive that come (1) or go (-1), each given with its round."""
        if self.elsewhere is not None:
            away = self.elsewhere.derived(self, list(facts), sign)
            if away is not None:
                return away
        terms, rounds = self.terms, self.facts.values
        if self.facts.backing is not None:
            self._fetch_for(facts)
        if self.pairs:
            return self._paired(facts, sign)
        if len(terms) == 1:
            return terms[0].derive(facts, rounds)
        return [each for term in terms for each in term.derive(facts, rounds)]

    def _fetch_for(self, facts: Known) -> None:
        """Have here what these facts are joined with."""
        rows = self._rows(facts)
        for term in self.terms:
            if term.theirs is not None:
                keys = term.grouping(rows)
                term.theirs.bring(keys)
                if term.itself:
                    theirs = term.theirs.groups
                    term.theirs.bring(term.theirs.grouped(dict(rows)))
                    fetched(self.facts, [r for key in keys for r in theirs.get(key, ())])

    def _paired(self, facts: Known, sign: int) -> Derivations:
        """The same where facts are joined with facts: one after the other, so that of two that come
        or go together the later finds the earlier, or does not find it any more. A fact meets
        itself once: while it derives, it is among the right sides and not among the left ones."""
        rounds = self.facts.values
        found: Derivations = []
        sides = [(term.term.side, term.theirs) for term in self.pairs if term.theirs is not None]
        lefts = [index for side, index in sides if side == 1]
        rights = [index for side, index in sides if side == 0]
        first, last = (rights, lefts) if sign > 0 else (lefts, rights)
        for each in facts:
            change = {each[0]: sign}
            for index in first:
                index.apply(change)
            for term in self.terms:
                found += term.derive((each,), rounds)
            for index in last:
                index.apply(change)
        return found

    def _count(self, derived: Derivations, sign: int) -> Lost:
        """Add derivations to the tables (1), or take them out (-1); say whose last one of a round
        has gone."""
        self.derived += len(derived)
        if self.elsewhere is not None and self.elsewhere.counted(self, derived, sign):
            return [(what, at) for what, at, count in derived if sign * count < 0]
        if self.derivations.backing is not None:
            keys = [what for what, _, _ in derived]
            fetched(self.derivations, keys)
            fetched(self.facts, keys)
        tables = self.derivations
        return tables.count(derived) if sign > 0 else tables.discount(derived)

    # ---- parts of an epoch, for who does them elsewhere ----

    def trigger_part(self, number: int, change: Delta) -> Derivations:
        """What some of the changed rows that the facts of a term are joined with do."""
        return self._triggered(self.terms[number], change)

    def derive_part(self, facts: Known, sign: int) -> Derivations:
        """What some of the facts derive that come or go."""
        return self._derived(facts, sign)

    def count_part(self, derived: Derivations, sign: int) -> dict[Any, Any]:
        """Count derivations, all that there are of what they are of, and give the best of those
        that it has now; None for none."""
        self._count(derived, sign)
        tables = self.derivations.values
        best = {what: min(tables[what], default=None) for what, _, _ in derived}
        self.derivations.drop_empty()
        return best
