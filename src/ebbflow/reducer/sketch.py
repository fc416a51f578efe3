"""Sketches: answers that are nearly right, from much less state, and still able to forget.

Most sketches only grow. These two are sums over the rows, so a row that leaves is subtracted and
the sketch is the one of the rows that are left, exactly; only what is read off it is approximate.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ebbflow.errors import AlgebraError
from ebbflow.hashing import stable_hash
from ebbflow.keywords import checked
from ebbflow.nan import is_nan, one_nan
from ebbflow.reducer.hashed import Map, tally
from ebbflow.reducer.library import arguments, ready, tally_merge
from ebbflow.reducer.ordered import fraction, keep, tree_merge, value_at
from ebbflow.reducer.reducer import RECOMPUTE, Reducer
from ebbflow.reducer.row import Key
from ebbflow.state.tree import Tree
from ebbflow.typevars import V

# ---- distinct values ----

Cell = tuple[int, int]
Distinct = tuple[Map[Cell, int], Map[Any, int] | None]


def _cell(x: Any, bits: int) -> Cell:
    code = stable_hash(x, in_memory=True)
    rest = code >> bits
    return code & (1 << bits) - 1, 65 - bits - rest.bit_length()


_cell_of_int = lru_cache(maxsize=1024)(_cell)


class Many(NamedTuple):
    """A row that stands for the ints below `size`: laws are tried on few rows, and with it they
    meet the place where a sketch stops to be exact.

    >>> Many(300)
    <300 values>
    """

    size: int

    def __repr__(self) -> str:
        return f"<{self.size} values>"


class _Cells:
    """Rows counted by cell: register (some bits of the hash) and level (zeros that follow them).

    A HyperLogLog whose registers can go down again: a register is its highest level that has rows.
    The values themselves are kept beside it while no more than `exact` cells have rows.
    """

    def __init__(self, bits: int, exact: int) -> None:
        self.bits = bits
        self.exact = exact

    def __call__(self, acc: Distinct, x: Any, count: int) -> Any:
        if type(x) is Many:
            return self._each(acc, x, count)
        x = one_nan(x)
        return self._move(acc, x, _cell(x, self.bits), count)

    def _move(self, acc: Distinct, x: Any, cell: Cell, count: int) -> Any:
        cells, values = acc
        was_large = len(cells) > self.exact
        cells = tally(cells, cell, count)
        if was_large or values is None:
            return RECOMPUTE if len(cells) <= self.exact else (cells, None)
        return cells, None if len(cells) > self.exact else tally(values, x, count)

    def _each(self, acc: Any, many: Many, count: int) -> Any:
        for x in range(many.size):
            if acc is not RECOMPUTE:
                acc = self._move(acc, x, _cell_of_int(x, self.bits), count)
        return acc

    def elements(self) -> tuple[Any, ...]:
        """What `check` draws from: with a row that is more values than are kept."""
        size = 0
        acc: Distinct = (Map(), Map())
        while acc[1] is not None:
            size, acc = size + 1, self(acc, size, 1)
        return (0, 1, 2, "a", Many(size), None)

    def merge(self, a: Distinct, b: Distinct) -> Distinct:
        cells = tally_merge(a[0], b[0])
        if len(cells) > self.exact or a[1] is None or b[1] is None:
            return cells, None
        return cells, tally_merge(a[1], b[1])

    def estimate(self, acc: Distinct) -> int:
        cells, values = acc
        if values is not None:
            return len(values)
        levels: dict[int, int] = {}
        for register, level in cells:
            levels[register] = max(level, levels.get(register, 0))
        size = 1 << self.bits
        empty = size - len(levels)
        harmonic = empty + math.fsum(2.0**-level for level in levels.values())
        raw = 0.7213 / (1 + 1.079 / size) * size * size / harmonic
        if empty and raw <= 2.5 * size:
            raw = size * math.log(size / empty)
        return round(raw)


@checked
def approx_count_distinct(
    of: Key[V] | None = None, *, exact: int = 256, bits: int = 11
) -> Reducer[V]:
    """About how many different values there are: exact while they are few, then within about
    1.04 / 2**(bits / 2), which is 2.3 %. When many leave again, the group is folded once more and
    is exact again.

    holistic, approximated · partial · state O(1): at most a few cells for each of 2**bits registers
    · O(1) a row

    >>> approx_count_distinct()("banana")
    3
    >>> 9_500 < approx_count_distinct()(range(10_000)) < 10_500
    True
    """
    whole = type(bits) is int and type(exact) is int
    if not (whole and 4 <= bits <= 18 and 0 <= exact < 1 << bits):
        raise AlgebraError(
            f"approx_count_distinct(exact={exact!r}, bits={bits!r}) makes no sketch",
            remedy="ints with 4 <= bits <= 18 and 0 <= exact < 2**bits",
        )
    cells = _Cells(bits, exact)
    named = {} if (exact, bits) == (256, 11) else {"exact": exact, "bits": bits}
    return ready(
        (approx_count_distinct, arguments(of), named), (Map(), Map()), cells, of, cells.estimate,
        merge=cells.merge, aggregate="holistic", partial=True, elements=cells.elements,
    )  # fmt: skip


# ---- quantiles ----


_LARGEST = math.log(sys.float_info.max)


class _Rounded:
    """Values put into buckets whose ends differ by a fixed ratio, each kept as its middle."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.log = math.log((1 + error) / (1 - error))

    def __call__(self, tree: Tree[Any], x: Any, count: int) -> Tree[Any]:
        return keep(tree, self.middle(x), count)

    def middle(self, x: Any) -> float:
        near = _as_float(x)
        size = abs(near)
        if size == 0.0 or not math.isfinite(size):
            return near
        bucket = math.ceil(math.log(size) / self.log)
        try:
            middle = math.exp(bucket * self.log) * (1 - self.error)
        except OverflowError:
            middle = math.exp(min(bucket * self.log + math.log1p(-self.error), _LARGEST))
        return math.copysign(middle, near)


def _as_float(x: Any) -> float:
    if is_nan(x):
        return math.nan
    try:
        near = float(x)
    except (OverflowError, ValueError):
        near = math.inf
    if near in (math.inf, -math.inf) and x != near:
        raise AlgebraError(
            "a sketch of quantiles keeps floats, and there is none near this value",
            value=x,
            remedy="quantile(q, discrete=True), which keeps the values themselves",
        )
    return near


@checked
def approx_quantile(q: float, of: Key[V] | None = None, *, error: float = 0.01) -> Reducer[V]:
    """A value within `error`, relatively, of the discrete quantile `q`.

    holistic, approximated · invertible · state O(log(greatest / smallest) / error) · O(1) a row

    >>> 495 <= approx_quantile(0.5)(range(1, 1000)) <= 505
    True
    """
    if not isinstance(error, (int, float)) or not 0 < error < 1:
        raise AlgebraError(f"an error of {error!r} makes no sketch", remedy="between 0 and 1")
    named = {} if error == 0.01 else {"error": error}
    return ready(
        (approx_quantile, arguments(q, of), named), Tree(), _Rounded(error), of,
        partial(value_at, fraction(q), True), merge=tree_merge, aggregate="holistic",
        elements=(0, 1, 2, 2.01, 1000, -3, 0.5, None),
    )  # fmt: skip
