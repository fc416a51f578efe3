"""Making a case that breaks a reducer's law small: fewer rows, then simpler ones.

Rows are left out, half of them at first, for as long as the case still fails in the same way; then
equal rows are exchanged for simpler ones of the pool, or for larger numbers of which fewer are
needed. It ends when nothing helps, or when enough has been spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, process_time
from typing import Any

from ebbflow.errors import LawBroken, Text
from ebbflow.laws.law import Equal, simplest
from ebbflow.laws.rows import Pool, broken_by
from ebbflow.zset import ZSet

EFFORT = 200_000
SECONDS = 3.0


def now() -> float:
    """A clock that runs slower on a busy machine, so that searches find the same cases there."""
    return process_time() + monotonic() / 4


class _Smaller:
    """A failure, and what may still be spent on making it smaller, in rows and in seconds."""

    def __init__(self, broken: LawBroken, equal: Equal | None, end: float) -> None:
        self.broken, self.equal, self.effort, self.end = broken, equal, EFFORT, end

    def fails(self, case: dict[str, Any]) -> LawBroken | None:
        """How the law is broken by another case, if it still is and in the same way."""
        case = _possible(case)
        self.effort -= _weight(case)
        if self.effort < 0 or now() > self.end:
            return None
        again = broken_by(self.broken.thing, self.broken.law, self.equal, case)
        if again is None or isinstance(again.left, Text) != isinstance(self.broken.left, Text):
            return None
        return again

    def takes(self, name: str, value: Any) -> bool:
        """Whether the law still fails with this value instead; then the case has it from now on."""
        again = self.fails({**self.broken.case, name: value})
        self.broken = again or self.broken
        return again is not None

    def shorten(self, name: str) -> None:
        """Leave out half of a tuple, a quarter, ..., single ones."""
        size = len(self.broken.case[name])
        while size:
            at = 0
            while at < len(whole := self.broken.case[name]):
                if not self.takes(name, whole[:at] + whole[at + size :]):
                    at += size
            size //= 2

    def lessen(self, name: str) -> None:
        """Change less in every update."""
        for at in range(len(self.broken.case[name])):
            for row, _ in list(self.broken.case[name][at].items()):
                while weight := self.broken.case[name][at].weight(row):
                    all_of = self.broken.case[name]
                    fewer = (0, weight // 2 if weight > 0 else -(-weight // 2))
                    less = (
                        (*all_of[:at], all_of[at] + ZSet({row: w - weight}), *all_of[at + 1 :])
                        for w in dict.fromkeys(fewer)
                    )
                    if not any(self.takes(name, updates) for updates in less):
                        break

    def lower(self, name: str) -> None:
        """Repeat less often."""
        while (n := self.broken.case[name]) > 1:
            if not any(self.takes(name, m) for m in dict.fromkeys((1, n // 2, n - 1))):
                break

    def leave_out(self) -> None:
        """Fewer rows, changes and repetitions, until none can be spared."""
        size, before = _weight(self.broken.case), 0
        while size != before:
            for name, role in self.broken.law.variables.items():
                if role in ("rows", "updates"):
                    self.shorten(name)
                if role == "updates":
                    self.lessen(name)
                if role == "count":
                    self.lower(name)
            before, size = size, _weight(self.broken.case)

    def exchange(self, pool: Pool) -> None:
        """Put a simpler row in the place of all that are equal, or a larger number for fewer."""
        simple = sorted(dict.fromkeys(pool), key=simplest)[:12]
        numbers = [row for row in dict.fromkeys(pool) if type(row) in (int, float)]
        large = sorted(numbers, key=abs)[-2:]
        for old in dict.fromkeys(_rows(self.broken.case)):
            for new in (*simple, *large):
                kept = self.broken
                again = None if new == old else self.fails(_exchanged(kept.case, old, new))
                if again is None:
                    continue
                self.broken = again
                if new in large:
                    self.leave_out()
                if _measure(self.broken) < _measure(kept):
                    break
                self.broken = kept


def large(broken: LawBroken) -> bool:
    """Whether a case has more rows than Hypothesis is asked for, so that it finds no better one."""
    return len(broken.case.get("rows", ())) > 8 or broken.case.get("count", 0) > 3


def smaller(broken: LawBroken, equal: Equal | None, pool: Pool, end: float) -> LawBroken:
    """The same failure with fewer and simpler rows. It stops at `end`, by the clock `now`."""
    if "order" in broken.law.variables.values():
        return broken
    case = _Smaller(broken, equal, end)
    case.leave_out()
    before = None
    while before != (measure := _measure(case.broken)):
        before = measure
        case.exchange(pool)
        case.leave_out()
    return case.broken


def _measure(broken: LawBroken) -> tuple[int, int, str]:
    """Smaller for fewer rows, then for shorter text."""
    return (_weight(broken.case), *simplest(broken.case))


def _weight(case: Mapping[str, Any]) -> int:
    """About how many rows a case stands for."""
    changed = (weight for each in case.get("updates", ()) for _, weight in each.items())
    rows = len(case.get("rows", ())) + len(case.get("more", ()))
    updates, count = len(case.get("updates", ())), int(case.get("count", 0))
    return 10 + rows + updates + count + sum(abs(int(weight)) for weight in changed)


def _rows(case: Mapping[str, Any]) -> list[Any]:
    """All rows that a case speaks of."""
    rows = [*case.get("rows", ()), *case.get("more", ())]
    rows += [case[name] for name in ("value", "x", "y") if name in case]
    return rows + [row for each in case.get("updates", ()) for row, _ in each.items()]


def _exchanged(case: Mapping[str, Any], old: Any, new: Any) -> dict[str, Any]:
    """The case with one row in the place of another, everywhere."""

    def turned(row: Any) -> Any:
        return new if row == old else row

    def value_of(name: str, value: Any) -> Any:
        if name in ("rows", "more"):
            return tuple(map(turned, value))
        if name == "updates":
            return tuple(ZSet([(turned(row), n) for row, n in each.items()]) for each in value)
        return turned(value) if name in ("value", "x", "y") else value

    return {name: value_of(name, value) for name, value in case.items()}


def _possible(case: dict[str, Any]) -> dict[str, Any]:
    """A case whose updates take away at most what is there."""
    if "updates" not in case:
        return case
    bag, updates = ZSet.of(case["rows"]), []
    for each in case["updates"]:
        updates.append(ZSet({row: max(n, -bag.weight(row)) for row, n in each.items()}))
        bag = bag + updates[-1]
    return {**case, "updates": tuple(updates)}
