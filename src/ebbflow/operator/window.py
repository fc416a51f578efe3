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
from itertools import pairwise
from typing import Any, ClassVar

from ebbflow.algebra.value import function_name
from ebbflow.codegen import GeneratedLoop
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.reducer.inline import Inline
from ebbflow.reducer.strategy import part_of_row

_SIZE = "{size}"


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

    # ---- in a generated loop, where the state is in variables ----

    def certain(self, row_type: Any) -> bool:
        """Whether it surely says the same of the same rows every time: what it calls is traced."""
        return all(
            isinstance(each, Fn) and each.expression is not None
            for each in vars(self).values()
            if callable(each)
        )

    def starts(self) -> tuple[Any, ...]:
        """The values of the variables before any row."""
        return (self.start(),)

    def part_source(self, loop: GeneratedLoop, row_type: Any) -> str:
        """Python text for what it looks at of `row`, computed once for several states."""
        return ""

    def write_next(self, loop: GeneratedLoop, state: list[str], part: str, row_type: Any) -> None:
        """Lines that bring the variables behind `row`, which is at `place`; `part` is what it looks
        at."""
        at = "place" if self.by_place else "None"
        loop.write(f"{state[0]} = {loop.bind(self.next)}({state[0]}, row, {at})")

    def show_source(self, loop: GeneratedLoop, state: list[str], last: list[str]) -> str:
        """Python text for the value, with one NaN; `last` are the variables behind the last row."""
        return f"{loop.bind(one_nan)}({loop.bind(self.show)}({state[0]}, {last[0]}))"


def _source(of: Any, loop: GeneratedLoop) -> str:
    """Python text for the part of `row` that a function looks at, with one NaN."""
    return (of if isinstance(of, Fn) else Fn(of)).kept(loop.bind, "row")


@dataclass(frozen=True, repr=False)
class RowNumber(Along):
    """1 for the first row, 2 for the second, and so on."""

    def write_next(self, loop: GeneratedLoop, state: list[str], part: str, row_type: Any) -> None:
        loop.write(f"{state[0]} += 1")

    def show_source(self, loop: GeneratedLoop, state: list[str], last: list[str]) -> str:
        return state[0]


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

    def starts(self) -> tuple[Any, ...]:
        return (one_nan(self.default),) * (self.k + 1)

    def part_source(self, loop: GeneratedLoop, row_type: Any) -> str:
        return _source(self.of, loop)

    def write_next(self, loop: GeneratedLoop, state: list[str], part: str, row_type: Any) -> None:
        for one, behind in pairwise([*state, part]):
            loop.write(f"{one} = {behind}")

    def show_source(self, loop: GeneratedLoop, state: list[str], last: list[str]) -> str:
        return state[0]


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

    def part_source(self, loop: GeneratedLoop, row_type: Any) -> str:
        return _source(self.of, loop)

    def write_next(self, loop: GeneratedLoop, state: list[str], part: str, row_type: Any) -> None:
        loop.write(f"if {part} is not None: {state[0]} = {part}")

    def show_source(self, loop: GeneratedLoop, state: list[str], last: list[str]) -> str:
        return state[0]


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

    @property
    def inline(self) -> Inline | None:
        """How the reducer is written in a loop, where it takes one row after another."""
        inline: Inline | None = self.reducer.inline
        return None if inline is None or inline.close else inline

    def certain(self, row_type: Any) -> bool:
        inline = self.inline
        if inline is None:
            return False
        asked = (*([] if inline.of is None else [inline.of]), *inline.when)
        return all(part_of_row(each, row_type).expression is not None for each in asked)

    def starts(self) -> tuple[Any, ...]:
        inline = self.inline
        if inline is None:
            return (self.reducer.start(),)
        return (*inline.slots, *([0] if _SIZE in inline.result else []))

    def part_source(self, loop: GeneratedLoop, row_type: Any) -> str:
        inline = self.inline
        if inline is None or (inline.of is None and not inline.when):
            return ""
        asked = inline.when or (inline.of,)
        texts = [part_of_row(each, row_type).source(loop.bind, "row") for each in asked]
        return " and ".join(texts) if inline.when else texts[0]

    def write_next(self, loop: GeneratedLoop, state: list[str], part: str, row_type: Any) -> None:
        inline = self.inline
        if inline is None:
            loop.write(f"{state[0]} = {loop.bind(self.reducer.add)}({state[0]}, row)")
            return
        if _SIZE in inline.result:
            loop.write(f"{state[-1]} += 1")
        depth, x = loop.depth, part or "row"
        if inline.when:
            loop.write(f"if {part}:")
            loop.depth += 1
            x = "row"
            if inline.of is not None:
                x = "x"
                loop.write(f"x = {part_of_row(inline.of, row_type).source(loop.bind, 'row')}")
        for line in inline.step:
            loop.write(inline.text(loop, line, state, n="1", x=x))
        loop.depth = depth

    def show_source(self, loop: GeneratedLoop, state: list[str], last: list[str]) -> str:
        shown, inline = last if self.whole else state, self.inline
        if inline is not None:
            return inline.text(loop, inline.result, shown, size=shown[-1])
        return f"{loop.bind(one_nan)}({loop.bind(self.reducer.finish)}({shown[0]}))"

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
