"""Sketches: answers that are nearly right, from much less state, and still able to forget.

Most sketches only grow. These two are sums over the rows, so a row that leaves is subtracted and
the sketch is the one of the rows that are left, exactly; only what is read off it is approximate.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from numbers import Number
from typing import Any

from ebbflow.errors import AlgebraError
from ebbflow.reducer.hashed import Map, tally
from ebbflow.reducer.library import AnyReducer, arguments, ready, tally_merge
from ebbflow.reducer.ordered import Quantile, fraction, keep, tree_merge
from ebbflow.reducer.reducer import RECOMPUTE
from ebbflow.reducer.row import Key, same_nan
from ebbflow.state.tree import Tree


def stable_hash(x: Any) -> int:
    """64 bits of a value, the same in every process, and the same for equal values.

    >>> stable_hash("a") == stable_hash("a") != stable_hash("b"), stable_hash(1) == stable_hash(1.0)
    (True, True)
    """
    return int.from_bytes(blake2b(_bytes(x), digest_size=8).digest(), "big")


def _bytes(x: Any) -> bytes:
    if isinstance(x, str):
        return b"s" + x.encode(errors="surrogatepass")
    if isinstance(x, Number):
        return b"n%d" % (hash(x) if x == x else 0)
    if isinstance(x, tuple):
        return b"t" + b"".join(b"%d:%b" % (len(part), part) for part in map(_bytes, x))
    if isinstance(x, frozenset):
        return b"f" + b"".join(sorted(map(_bytes, x)))
    return b"o" + repr(x).encode(errors="surrogatepass")


# ---- distinct values ----

Distinct = tuple[Map[Any, int], Map[Any, int] | None]


class _Cells:
    """Rows counted by cell: register (some bits of the hash) and level (zeros that follow them).

    A HyperLogLog whose registers can go down again: a register is its highest level that has rows.
    The values themselves are kept beside it while no more than `exact` cells have rows.
    """

    def __init__(self, bits: int, exact: int) -> None:
        self.bits = bits
        self.exact = exact

    def __call__(self, acc: Distinct, x: Any, count: int) -> Any:
        cells, values = acc
        x = same_nan(x)
        code = stable_hash(x)
        rest = code >> self.bits
        cell = (code & (1 << self.bits) - 1, 65 - self.bits - rest.bit_length())
        was_large = len(cells) > self.exact
        cells = tally(cells, cell, count)
        if was_large or values is None:
            return RECOMPUTE if len(cells) <= self.exact else (cells, None)
        return cells, None if len(cells) > self.exact else tally(values, x, count)

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


def approx_count_distinct(of: Key | None = None, *, exact: int = 256, bits: int = 11) -> AnyReducer:
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
    if not (4 <= bits <= 18 and 0 <= exact < 1 << bits):
        raise AlgebraError("a sketch needs 4 <= bits <= 18 and 0 <= exact < 2**bits")
    cells = _Cells(bits, exact)
    named = {} if (exact, bits) == (256, 11) else {"exact": exact, "bits": bits}
    return ready(
        (approx_count_distinct, arguments(of), named), (Map(), Map()), cells, of, cells.estimate,
        merge=cells.merge, aggregate="holistic", partial=None,
    )  # fmt: skip


# ---- quantiles ----


class _Rounded:
    """Values put into buckets whose ends differ by a fixed ratio, each kept as its middle."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.log = math.log((1 + error) / (1 - error))

    def __call__(self, tree: Tree[Any], x: Any, count: int) -> Tree[Any]:
        return keep(tree, self.middle(x), count)

    def middle(self, x: Any) -> float:
        size = abs(float(x))
        if size == 0.0 or not math.isfinite(size):
            return float(x)
        bucket = math.ceil(math.log(size) / self.log)
        middle = math.exp(bucket * self.log) * (1 - self.error)
        return math.copysign(middle, x)


def approx_quantile(q: float, of: Key | None = None, *, error: float = 0.01) -> AnyReducer:
    """A value within `error`, relatively, of the discrete quantile `q`.

    holistic, approximated · invertible · state O(log(greatest / smallest) / error) · O(1) a row

    >>> 495 <= approx_quantile(0.5)(range(1, 1000)) <= 505
    True
    """
    if not 0 < error < 1:
        raise AlgebraError(f"an error of {error!r} makes no sketch", remedy="between 0 and 1")
    named = {} if error == 0.01 else {"error": error}
    return ready(
        (approx_quantile, arguments(q, of), named), Tree(), _Rounded(error), of,
        Quantile(fraction(q), True), merge=tree_merge, aggregate="holistic",
        elements=(0, 1, 2, 2.01, 1000, -3, 0.5, None),
    )  # fmt: skip
