"""Window functions: what a row is told of the rows around it.

The rows of a key are in an order. A function that looks back is a state which goes from row to row:
`start`, `next(state, row, place)`, and `show(state, last)`, the value of the row just passed. Those
that look at all rows of the key are shown the state behind the last row as well. Others look at
rows *near* a row, so many before and behind it, or within a distance: `Lead` and `FrameReducer`.

`of` is the part of a row that is looked at, a field or a function; when a function runs, it is one.
`place` is where the row is in the order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ebbflow.algebra.value import function_name
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.reducer.row import Key


@dataclass(frozen=True)
class WindowFunction:
    """A value for each row, of the rows around it."""

    def __repr__(self) -> str:
        held = [(each, getattr(self, each.name)) for each in fields(self)]
        shown = [_text(value) for each, value in held if value != each.default]
        name = "".join("_" + c.lower() if c.isupper() else c for c in type(self).__name__)
        return f"{name[1:]}({', '.join(shown)})"


def _text(x: Any) -> str:
    if isinstance(x, Fn):
        return x.text
    return function_name(x) if callable(x) else repr(x)


@dataclass(frozen=True, repr=False)
class Along(WindowFunction):
    """A function whose value depends on a state that goes from row to row."""

    def start(self) -> Any:
        """The state before any row."""
        return 0

    def next(self, state: Any, row: Any, place: Any) -> Any:
        """The state after a row."""
        return state + 1

    def show(self, state: Any, last: Any) -> Any:
        """The value of a row, from the state after it and the state behind the last row."""
        return state

    @property
    def looks_ahead(self) -> bool:
        """Whether `show` looks at the state behind the last row."""
        return False

    by_place: ClassVar[bool] = False
    """Whether `next` looks at the place of a row."""

    def next_source(self, loop: GeneratedLoop, state: str) -> str:
        """Python text for the state after `row`, from the text of the one before it."""
        at = "place" if self.by_place else "None"
        return f"{loop.bind(self.next)}({state}, row, {at})"

    def show_source(self, loop: GeneratedLoop, state: str) -> str:
        """Python text for the value, from the text of the state; where it does not look ahead."""
        return f"{loop.bind(self.show)}({state}, None)"


@dataclass(frozen=True, repr=False)
class RowNumber(Along):
    """1 for the first row, 2 for the second, and so on."""

    def next_source(self, loop: GeneratedLoop, state: str) -> str:
        return f"{state} + 1"

    def show_source(self, loop: GeneratedLoop, state: str) -> str:
        return state


@dataclass(frozen=True, repr=False)
class Rank(Along):
    """One more than how many rows are before all that have the same place."""

    by_place: ClassVar[bool] = True

    def start(self) -> Any:
        return 0, 0, ()

    def next(self, state: Any, row: Any, place: Any) -> Any:
        n, rank, at = state
        return n + 1, rank if at == (place,) else n + 1, (place,)

    def show(self, state: Any, last: Any) -> Any:
        return state[1]


@dataclass(frozen=True, repr=False)
class DenseRank(Rank):
    """One more than how many different places are before."""

    def next(self, state: Any, row: Any, place: Any) -> Any:
        n, rank, at = state
        return (n, rank, at) if at == (place,) else (n, rank + 1, (place,))


@dataclass(frozen=True, repr=False)
class PercentRank(Rank):
    """`(rank - 1) / (rows - 1)`, and 0.0 for a row that is alone."""

    def show(self, state: Any, last: Any) -> Any:
        return (state[1] - 1) / (last[0] - 1) if last[0] > 1 else 0.0

    @property
    def looks_ahead(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class Ntile(Along):
    """In which of `n` parts a row is; parts that are as equal as can be, the larger ones first."""

    n: int

    def show(self, state: Any, last: Any) -> Any:
        size, larger = divmod(last, self.n)
        i = state - 1
        if i < larger * (size + 1):
            return i // (size + 1) + 1
        return larger + (i - larger * (size + 1)) // size + 1

    @property
    def looks_ahead(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class Lag(Along):
    """The value `k` rows before, and `default` where there is none."""

    of: Any
    k: int = 1
    default: Any = None

    def start(self) -> Any:
        return ()

    def next(self, state: Any, row: Any, place: Any) -> Any:
        return (*state[-self.k :], self.of(row))

    def show(self, state: Any, last: Any) -> Any:
        return state[0] if len(state) > self.k else self.default


@dataclass(frozen=True, repr=False)
class NthValue(Along):
    """The value of the `n`-th row, from the end where `n` is negative; None where there is none."""

    of: Any
    n: int = 1

    def start(self) -> Any:
        return 0, ()

    def next(self, state: Any, row: Any, place: Any) -> Any:
        n, seen = state
        if self.n > 0:
            return (n + 1, (self.of(row),)) if n + 1 == self.n else (min(n + 1, self.n), seen)
        return 0, (*seen[self.n + 1 or len(seen) :], self.of(row))

    def show(self, state: Any, last: Any) -> Any:
        seen = last[1]
        if self.n > 0:
            return seen[0] if seen else None
        return seen[0] if len(seen) == -self.n else None

    @property
    def looks_ahead(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class FillForward(Along):
    """The last value that is not None, of this row or of one before."""

    of: Any

    def start(self) -> Any:
        return None

    def next(self, state: Any, row: Any, place: Any) -> Any:
        value = self.of(row)
        return state if value is None else value


@dataclass(frozen=True, repr=False)
class Island(Along):
    """Where the run of rows starts that a row is in: rows no further than `gap` from each other."""

    by_place: ClassVar[bool] = True

    gap: Any

    def start(self) -> Any:
        return None

    def next(self, state: Any, row: Any, place: Any) -> Any:
        follows = state is not None and place - state[1] <= self.gap
        return (state[0] if follows else place), place

    def show(self, state: Any, last: Any) -> Any:
        return state[0]


@dataclass(frozen=True, repr=False)
class IslandNumber(Along):
    """The number of the run of rows that a row is in, from 1."""

    by_place: ClassVar[bool] = True

    gap: Any

    def start(self) -> Any:
        return 0, None

    def next(self, state: Any, row: Any, place: Any) -> Any:
        number, at = state
        return (number if at is not None and place - at <= self.gap else number + 1), place

    def show(self, state: Any, last: Any) -> Any:
        return state[0]


@dataclass(frozen=True, repr=False)
class Decay(Along):
    """The sum of values each of which counts half as much after every `half_life`. None counts
    nothing."""

    by_place: ClassVar[bool] = True

    of: Any
    half_life: Any

    def start(self) -> Any:
        return 0.0, None

    def next(self, state: Any, row: Any, place: Any) -> Any:
        total, at = state
        value = self.of(row)
        if at is not None:
            total *= 0.5 ** ((place - at) / self.half_life)
        return total + (0.0 if value is None else value), place

    def show(self, state: Any, last: Any) -> Any:
        return state[0]


@dataclass(frozen=True, repr=False)
class RunningReducer(Along):
    """A reducer of all rows up to this one; with `whole`, of all rows of the key."""

    reducer: Any
    whole: bool = False

    def start(self) -> Any:
        return self.reducer.start()

    def next(self, state: Any, row: Any, place: Any) -> Any:
        return self.reducer.add(state, row)

    def show(self, state: Any, last: Any) -> Any:
        return self.reducer.finish(last if self.whole else state)

    def next_source(self, loop: GeneratedLoop, state: str) -> str:
        return f"{loop.bind(self.reducer.add)}({state}, row)"

    def show_source(self, loop: GeneratedLoop, state: str) -> str:
        result = self.reducer.result
        return state if result is None else f"{loop.bind(result)}({state})"

    @property
    def looks_ahead(self) -> bool:
        return self.whole

    def __repr__(self) -> str:
        return f"{self.reducer!r}{' of all' if self.whole else ''}"


# ---- rows near a row ----


@dataclass(frozen=True, repr=False)
class Lead(WindowFunction):
    """The value `k` rows behind, and `default` where there is none."""

    of: Any
    k: int = 1
    default: Any = None


@dataclass(frozen=True, repr=False)
class FrameReducer(WindowFunction):
    """A reducer of the rows near a row: those from `low` to `high`, both included, counted in rows
    or, with `by_range`, in the distance of their places. None is as far as there are rows."""

    reducer: Any
    low: Any
    high: Any
    by_range: bool = False

    def __repr__(self) -> str:
        counted = "range" if self.by_range else "rows"
        return f"{self.reducer!r} of {counted} ({self.low!r}, {self.high!r})"


# ---- what a program says ----


def row_number() -> RowNumber:
    """The number of each row in its order, from 1; for `over(...)`.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> Hit = record("Hit", page=str, at=int)
    >>> hits = ef.Input("hits", Hit)
    >>> view = hits.over(per="page", order="at").with_fields(n=ef.window.row_number()).run()
    >>> sorted(view.step(hits=[Hit("a", 5), Hit("a", 3)]).rows())
    [Hit(page='a', at=3, n=1), Hit(page='a', at=5, n=2)]
    """
    return RowNumber()


def rank() -> Rank:
    """One more than how many rows come before; rows at the same place have the same rank."""
    return Rank()


def dense_rank() -> DenseRank:
    """As `rank`, without gaps: one more than how many different places come before."""
    return DenseRank()


def percent_rank() -> PercentRank:
    """The rank as a part of all rows, from 0.0 to 1.0."""
    return PercentRank()


def ntile(n: int) -> Ntile:
    """Which of `n` parts of about the same size a row is in, from 1."""
    return Ntile(n)


def lag(of: Key, k: int = 1, default: Any = None) -> Lag:
    """The value of the row `k` rows before, `default` where there is none."""
    return Lag(of, k, default)


def lead(of: Key, k: int = 1, default: Any = None) -> Lead:
    """The value of the row `k` rows behind, `default` where there is none."""
    return Lead(of, k, default)


def first_value(of: Key) -> NthValue:
    """The value of the first row of the key."""
    return NthValue(of, 1)


def last_value(of: Key) -> NthValue:
    """The value of the last row of the key (and not, as in SQL by default, of this row)."""
    return NthValue(of, -1)


def nth_value(of: Key, n: int) -> NthValue:
    """The value of the `n`-th row of the key, from 1; from the end where `n` is negative."""
    return NthValue(of, n)


def fill_forward(of: Key) -> FillForward:
    """The last value that is not None, of this row or one before."""
    return FillForward(of)


def island(gap: Any = 1) -> Island:
    """Where the run of rows starts that a row is in; a run ends where the next row is further than
    `gap`."""
    return Island(gap)


def island_number(gap: Any = 1) -> IslandNumber:
    """The number of the run of rows that a row is in, from 1."""
    return IslandNumber(gap)


def decay(of: Key, half_life: Any) -> Decay:
    """The sum so far, in which a value counts half as much after every `half_life`."""
    return Decay(of, half_life)
