"""Lazy rounds where a loop takes the least or the greatest value of each key.

The facts are the keys with their values, and of the derivations of a key those with the best value
count. A better one than it has suspends a fact too. Facts come back in the order of their values,
the best first: no value is better than the one that it is derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from sys import maxsize
from typing import Any

from ebbflow.engine.runtime.derive import Derivations, row_maker
from ebbflow.engine.runtime.facts import Delta, Known
from ebbflow.engine.runtime.lazy import FACTS_PLACES, PLACES, LazyLoopStage
from ebbflow.flow.plan import Iterate
from ebbflow.flow.rewrite.monotone import Monotone
from ebbflow.state.cells import ABSENT


class LazyChoiceStage(LazyLoopStage):
    """A monotone loop that takes the least or the greatest value of each key.

    A fact is a key with the mark of its value and its round, `(mark, round)`, and so is a
    derivation. `row` makes the row of a key and a mark.
    """

    __slots__ = ("row", "width")

    def __init__(
        self, node: Iterate, reads: Iterable[int], found: Monotone, fresh: Callable[[], Any],
        whole: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(node, reads, found, fresh, whole)
        assert found.choice is not None
        self.row, self.width = row_maker(found.choice), found.choice.reduce.width

    def _keys(self, rows: Iterable[Any]) -> Iterable[Any]:
        width = self.width
        return [row[0] if width == 1 else tuple(row[:width]) for row in rows]

    def _rows(self, facts: Known) -> list[tuple[Any, int]]:
        row = self.row
        return [(row(key, mark), 1) for key, (mark, _) in facts]

    def _begin(self, number: Any) -> Any:
        return number[0], super()._begin(number[1])

    def _looked_at(self, came: Derivations) -> tuple[list[Any], dict[Any, Any]]:
        get, tables = self.facts.values.get, self.derivations.values
        out, bettered = list[Any](), dict[Any, Any]()
        for key, at, _ in came:
            fact = get(key)
            if fact is None:
                out.append(key)
            elif at[0] < fact[0] and at in tables[key]:
                bettered[key] = fact
        return out, bettered

    def _bring_back(self, keys: list[Any]) -> bool:
        """The best value first: what has come back stays. A fact that was there all the time may
        get a better value yet."""
        facts, tables, was = self.facts.values, self.derivations.values, self.was
        get, limit, before = facts.get, self._limit, self.suspended
        came = self.rows_per_round = self.rows_per_round or {}
        waiting: dict[Any, list[Any]] = {}
        heap: list[Any] = []

        def wait(key: Any, mark: Any, number: int) -> None:
            at = mark, number >> PLACES
            if at in waiting:
                waiting[at].append(key)
            else:
                waiting[at] = [key]
                heappush(heap, at)

        def wait_for_best(keys: Iterable[Any]) -> None:
            for key in keys:
                if key not in facts and tables[key]:
                    wait(key, *min(tables[key]))

        wait_for_best(keys)
        while heap:
            best = heappop(heap)
            mark, number = best
            keys = [key for key in waiting.pop(best) if key not in facts]
            if self.suspended > before:  # what they wait for may have been withdrawn since
                late = {key: None for key in keys if self._best(key) != best}
                wait_for_best(late)
                keys = [key for key in keys if key not in late]
            if not keys:
                continue
            if number >= limit:
                if not self.exact:
                    return False
                self._require_end()
                limit = maxsize
            first = (number + 1 << PLACES) + 1
            places = [(mark, first + place) for place in range(min(FACTS_PLACES, len(keys)))]
            new = {key: places[i % FACTS_PLACES] for i, key in enumerate(keys)}
            came[number] = came.get(number, 0) + len(new)
            for key in new:
                if key not in was:
                    was[key] = ABSENT
            facts.update(new)
            derived = self._derived(new.items(), 1)
            self._count(derived, 1)
            gone = {}
            for key, at, _ in derived:
                fact = get(key)
                if fact is None:
                    wait(key, *at)
                elif at[0] < fact[0]:
                    gone[key] = fact
            if gone:
                withdrawn = self._suspend([], gone)
                if self.suspended > self.enough:
                    return False
                wait_for_best(withdrawn)
        return True

    def _from_outside(self, at: Any) -> bool:
        return super()._from_outside(at[1])

    def _best(self, key: Any) -> tuple[Any, int] | None:
        """The mark and the round of the best derivation of a key."""
        table = self.derivations.values[key]
        if not table:
            return None
        mark, number = min(table)
        return mark, number >> PLACES

    def _require_end(self) -> None:
        """Raise unless the loop comes to its end within its limit. A value may be there in an
        earlier round than its derivation says, from one that was not the best yet; so the values
        of each round are counted here as they would come by themselves."""
        tables, best = self.derivations.values, dict[Any, Any]()
        entered = [
            (key, mark, at >> PLACES)
            for key, table in tables.items()
            for mark, at in table
            if at >> PLACES < 2
        ]
        new = [(key, mark) for key, mark, at in entered if at == 0]
        for number in range(1, self._limit + 1):
            derived = self._derived([(key, (mark, 1)) for key, mark in new], 1)
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
