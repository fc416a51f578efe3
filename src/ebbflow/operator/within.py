"""Rows that are there for a span of time: from their own time on, as a clock tells.

A row of time `t` is *within* while `now - span < t <= now`. What comes in are the rows and the
time, one after the other: pairs `(ROW, row)` and `(NOW, time)`. A row comes out when its time has
come and is withdrawn when the span is over. From then on it is *over* and forgotten: a clock does
not go back, so it will not be seen again, and when it is taken away later nothing is left to do. So
the state is what is within, and what has still to come.

The rows are kept by *panes*, pieces of time of which a span has some thousands, and a tree has
the numbers of the panes that have rows, in order. When the clock moves, the rows that leave are in
the first panes, and those that come in the panes behind the old time: no others are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.errors import ChangeError
from ebbflow.operator.by_key import ByKey
from ebbflow.operator.relation import Bag
from ebbflow.state.cells import ABSENT, Cells
from ebbflow.state.index import Grouped, Index
from ebbflow.state.tree import Tree
from ebbflow.zset import ZSet, without_zeros

Pairs = Iterable[tuple[Any, int]]
ROW, NOW = 0, 1
CLOCK, PANES = "clock", "panes"
UNSET: Any = (None, False)
"""What is known of the time before it is known: the latest so far, and whether it is known now."""


class WithinRows(ByKey):
    """The rows that are within; see `within_rows`."""

    def __init__(self, time: Any, span: Any, pane: Any, owner: Any) -> None:
        super().__init__(None, owner)
        self.time, self.span, self.pane = time, span, pane

    def f(self, x: Bag) -> Bag:
        (now,) = _times({value: count for (tag, value), count in x.items() if tag == NOW}) or (
            None,
        )
        rows = [(value, count) for (tag, value), count in x.items() if tag == ROW]
        start = None if now is None else now - self.span
        return ZSet(
            [pair for pair in rows if now is not None and start < self.time(pair[0]) <= now]
        )

    def by_pane(self, pairs: Iterable[tuple[Any, int]]) -> Grouped:
        """Rows with their weights, by pane."""
        found: Grouped = {}
        time, pane = self.time, self.pane
        for row, weight in pairs:
            found.setdefault(pane(time(row)), []).append((row, weight))  # type: ignore[attr-defined]
        return found

    def init(self, x: Bag) -> tuple[Index[Any, Any], Cells[Any, Any]]:
        index: Index[Any, Any] = Index(self._pane_of, None, self.by_pane, bag=True)
        state = index, Cells[Any, Any]()
        self.update(state, x)
        return state

    def _pane_of(self, row: Any) -> Any:
        return self.pane(self.time(row))

    def keys(self, change: Bag) -> set[Any]:
        """What is known of the time and of the panes; rows are fetched as they are found."""
        return {CLOCK, PANES}

    def update(self, state: Any, change: Any) -> dict[Any, int]:
        """Take a change in, and give the rows that came or left."""
        index, cells = state
        latest, known = cells.values.get(CLOCK, UNSET)
        times = {latest: 1} if known else {}
        rows = []
        for (tag, value), weight in change.items():
            if tag == NOW:
                times[value] = times.get(value, 0) + weight
            else:
                rows.append((value, weight))
        (now,) = _times(times) or (None,)
        if now is not None and latest is not None and now < latest:
            raise backwards(latest, now)
        past = TimesWithin(self, latest)
        old, new = past if known else TimesWithin(self, None), TimesWithin(self, now)
        came = self.by_pane(rows)
        for pane in [pane for pane in came if pane <= past.start_pane] if past else ():
            came[pane] = past.not_over(pane, came[pane])
            if not came[pane]:
                del came[pane]
        index.apply_groups(came)
        out = {row: n for pane, pairs in came.items() for row, n in old.within(pane, pairs)}
        panes = cells.values.get(PANES, _NO_PANES)
        panes = panes.update(_entries(panes, index, came))
        if now != old.now:
            panes = self._after_tick(index, panes, old, new, out)
        self._keep(cells, (latest if now is None else now, now is not None), panes)
        return without_zeros(out)

    def _after_tick(
        self, index: Index[Any, Any], panes: Tree[Any], old: TimesWithin, new: TimesWithin, out: Any
    ) -> Tree[Any]:
        """The panes that have rows after the time has changed; what comes and leaves is counted,
        and what is over forgotten."""
        looked = list(self._moving(panes, old, new))
        index.bring(looked)
        gone: dict[Any, Any] = {}
        for pane in looked:
            pairs = list(index.groups.get(pane, {}).items())
            for row, count in old.within(pane, pairs):
                out[row] = out.get(row, 0) - count
            for row, count in new.within(pane, pairs):
                out[row] = out.get(row, 0) + count
            if new and pane <= new.start_pane:
                kept = dict(new.not_over(pane, pairs))
                over = [(row, -count) for row, count in pairs if row not in kept]
                if over:
                    gone[pane] = over
        return panes.update(_entries(panes, index, index.apply_groups(gone)))

    def _moving(self, panes: Tree[Any], old: TimesWithin, new: TimesWithin) -> Iterable[Any]:
        """The panes that have rows which come or leave when the time changes; all where it was not
        known, or is not any more."""
        if not old or not new:
            return [pane for pane, _ in panes]
        first = takewhile(lambda each: each <= new.start_pane, (pane for pane, _ in panes))
        come = (pane for pane, _ in panes.between(panes.rank(old.now_pane), panes.size))
        return dict.fromkeys([*first, *takewhile(lambda each: each <= new.now_pane, come)])

    def _keep(self, cells: Cells[Any, Any], clock: Any, panes: Tree[Any]) -> None:
        values = cells.values
        new: dict[Any, Any] = {}
        if clock != values.get(CLOCK, UNSET):
            new[CLOCK] = clock
        if panes is not values.get(PANES, _NO_PANES):
            new[PANES] = panes if panes.size else ABSENT
        if new:
            cells.swap(new)

    def dump(self, key: Any, value: Any) -> Any:
        """What is known of the time, or the numbers of panes, to be written down."""
        return tuple([pane for pane, _ in value]) if key == PANES else value

    def load(self, key: Any, stored: Any) -> Any:
        """What was written down."""
        return Tree.of(stored) if key == PANES else stored

    def accepts(self, state: Any, change: Bag) -> bool:
        latest = state[1].values.get(CLOCK, UNSET)[0]
        kept = self._not_over([(row, n) for (tag, row), n in change.items() if tag == ROW], latest)
        return self.input.is_change(change) and bool(state[0].holds(kept))

    def _not_over(self, pairs: list[tuple[Any, int]], latest: Any) -> ZSet[Any]:
        start = None if latest is None else latest - self.span
        return ZSet([pair for pair in pairs if start is None or self.time(pair[0]) > start])

    def invariant(self, x: Bag, state: Any) -> bool:
        index, cells = state[0], state[1].values
        latest, known = cells.get(CLOCK, UNSET)
        times = [value for (tag, value), _ in x.items() if tag == NOW]
        kept = self._not_over([(row, n) for (tag, row), n in x.items() if tag == ROW], latest)
        panes = cells.get(PANES, _NO_PANES)
        return (
            times == ([latest] if known else [])
            and index == Index(self._pane_of, kept)
            and [pane for pane, _ in panes] == sorted(index.groups)
        )

    def __repr__(self) -> str:
        return f"within_rows({function_name(self.time)}, {self.span!r})"


class TimesWithin:
    """The times that are within at a moment: after its start, and not after it. False when no
    moment is known, and then there are none."""

    __slots__ = ("now", "now_pane", "start", "start_pane", "time")

    def __init__(self, of: WithinRows, now: Any) -> None:
        self.now, self.time = now, of.time
        if now is not None:
            self.start = now - of.span
            self.start_pane, self.now_pane = of.pane(self.start), of.pane(now)

    def __bool__(self) -> bool:
        return self.now is not None

    def within(self, pane: Any, pairs: Pairs) -> Pairs:
        """Those of the rows of a pane that are within."""
        if self.now is None or not self.start_pane <= pane <= self.now_pane:
            return []
        if self.start_pane < pane < self.now_pane:
            return pairs
        start, now, time = self.start, self.now, self.time
        return [pair for pair in pairs if start < time(pair[0]) <= now]

    def not_over(self, pane: Any, pairs: Pairs) -> Any:
        """Those of the rows of a pane that are within, or will be."""
        if pane != self.start_pane:
            return pairs if pane > self.start_pane else []
        start, time = self.start, self.time
        return [pair for pair in pairs if time(pair[0]) > start]


_NO_PANES: Tree[Any] = Tree()


def _entries(
    panes: Tree[Any], index: Index[Any, Any], changed: Grouped
) -> Iterator[tuple[Any, int]]:
    """The edits after which a tree has the panes that have rows, when these have changed."""
    less = [pane for pane, pairs in changed.items() if max(weight for _, weight in pairs) < 0]
    index.bring(less)
    full = dict.fromkeys(changed, True) | {pane: pane in index.groups for pane in less}
    for pane, has_rows in full.items():
        if shift := has_rows - panes.count(pane):
            yield pane, shift


def _times(weights: dict[Any, int]) -> tuple[Any, ...]:
    """The one time there is, if there is one."""
    left = {time: weight for time, weight in weights.items() if weight}
    if any(weight != 1 for weight in left.values()) or len(left) > 1:
        raise ChangeError(
            "a clock is a collection of one row, and here are more, or fewer than none",
            times=left,
            remedy="ebbflow.clock(name), or agg(now=ebbflow.max(field)), which gives one row",
        )
    return tuple(left)


def backwards(latest: Any, now: Any) -> ChangeError:
    """The error for a clock that goes back."""
    return ChangeError(
        "a clock cannot go back: what was over by then is forgotten",
        was=latest,
        now=now,
        remedy="a time that is not before the last one; nothing was changed",
    )


def tenth(time: Any) -> Any:
    """Panes of ten units of time, for numbers.

    >>> tenth(25), tenth(-1)
    (2, -1)
    """
    return time // 10


def within_rows(
    time: Callable[[Any], Any], span: Any, pane: Callable[[Any], Any] = tenth, *, owner: Any = None
) -> WithinRows:
    """The rows with `now - span < time <= now`, as the clock goes. `pane(time)` numbers pieces of
    time; it grows with the time, and changes the speed and nothing else.

    >>> live = within_rows(lambda at: at, 60).open(ZSet.of([(ROW, 5), (ROW, 20), (NOW, 10)]))
    >>> live.send(ZSet({(NOW, 10): -1, (NOW, 30): 1}))
    ZSet({20: 1})
    >>> live.send(ZSet({(NOW, 30): -1, (NOW, 65): 1}))
    ZSet({5: -1})
    """
    return WithinRows(time, span, pane, owner)
