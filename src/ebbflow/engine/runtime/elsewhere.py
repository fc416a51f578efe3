"""Elsewhere: who may do a part of the work of a loop, where that is much.

A loop goes through its rounds in one place, which has the schedule and all that is waiting. What
one round does to the state can be cut by key into parts that know nothing of each other, as any
operator can (003 Lemma 3.62). An engine that has other places than this one gives a loop somebody
who is asked before each such piece of work: he does it, and gives what it gave, or gives
nothing, and it is done here. What a loop keeps is the same, whoever has done it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ebbflow.engine.runtime.derive import Derivations, DerivedTerm
    from ebbflow.engine.runtime.facts import FactsStage
    from ebbflow.engine.runtime.rounds import LiftedStage
    from ebbflow.engine.runtime.versions import Version


class Elsewhere(Protocol):
    """Who is asked; see the module."""

    def run_at(
        self, stage: LiftedStage, version: Version, reads: list[Any]
    ) -> dict[Any, int] | None:
        """What a stage of a body does at a version."""

    def triggered(
        self, stage: FactsStage, term: DerivedTerm, change: dict[Any, int]
    ) -> Derivations | None:
        """What derivations come and go with a change of the rows that facts are joined with."""

    def derived(
        self, stage: FactsStage, facts: list[tuple[Any, Any]], sign: int
    ) -> Derivations | None:
        """What facts derive that come or go; these are joined with no other facts."""

    def counted(self, stage: FactsStage, derived: Derivations, sign: int) -> bool:
        """Whether derivations are counted. The tables of what they are of are here then, as far as
        their best derivation goes, and the facts too."""
