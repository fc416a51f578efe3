"""Splitting a stream, working on the parts, and merging: what makes a program parallel.

A *splitter* sends each piece of its input to one of several outputs and loses nothing: merged
again, the outputs are the input. When the parts are *independent* for a processor (it says about
both together what it says about each), one copy of the processor for each part computes the same as
one for all. That is why a join may be cut into buckets by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from numbers import Number
from typing import Any
from zlib import crc32

from ebbflow.algebra import Homomorphism, Monoid, product
from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError, CompositionError, place
from ebbflow.nan import is_nan
from ebbflow.stream.combine import parallel
from ebbflow.stream.processor import Named, Processor


def merge(monoid: Monoid[Any], ways: int = 2) -> Processor[tuple[Any, ...], Any]:
    """All parts together again; the monoid must be commutative, for parts have no order.

    >>> from ebbflow.algebra import ADD
    >>> merge(ADD)((1, 2))
    3
    """
    if not monoid.commutative:
        raise AlgebraError(
            f"merge({monoid!r}): it is not commutative, so the parts cannot be put together again",
            created=place(),
            remedy="split and merge streams without an order: SET, BAGS, ZSETS, ADD, dict_of(...)",
        )
    every = product(*[monoid] * ways)
    name = f"merge({monoid!r})" if ways == 2 else f"merge({monoid!r}, ways={ways})"
    return Named(Homomorphism(monoid.fold, every, monoid, name=name))


class Splitter(Processor[Any, tuple[Any, ...]]):
    """A processor that promises to be a splitter: `split >> merge ~ identity`; `check` it."""

    def __init__(self, inner: Processor[Any, tuple[Any, ...]]) -> None:
        made = inner.target.built
        if made is None or made[0] is not product or set(made[1]) != {inner.source}:
            raise CompositionError(
                f"Splitter({inner!r}): it reads {inner.source!r} and writes {inner.target!r}",
                created=place(),
                remedy="a splitter reads some monoid M and writes product(M, M, ...)",
            )
        self.inner = inner
        self.ways = len(made[1])
        self.source = inner.source
        self.target = inner.target
        self.created = inner.created

    def start(self) -> tuple[Any, tuple[Any, ...]]:
        return self.inner.start()

    def step(self, state: Any, change: Any) -> tuple[Any, tuple[Any, ...]]:
        return self.inner.step(state, change)

    def __repr__(self) -> str:
        return repr(self.inner) if isinstance(self.inner, Named) else f"Splitter({self.inner!r})"


def split_by(choose: Callable[[Any], int], source: Monoid[Any], *, ways: int = 2) -> Splitter:
    """Send each generator (each element of a set, each row of a Z-set) to part `choose(it) % ways`.

    Of a product, the generators are `(position, generator)`.

    >>> from ebbflow.zset import ZSETS, ZSet
    >>> split_by(lambda n: n, ZSETS)(ZSet({1: 1, 2: 5, 3: -1}))
    (ZSet({2: 5}), ZSet({1: 1, 3: -1}))
    """
    if source.basis is None:
        raise AlgebraError(
            f"split_by(..., {source!r}): it has no basis, so there is nothing to choose for",
            created=place(),
            remedy="use SET, BAGS, ZSETS or a product of them, or wrap a processor in Splitter",
        )
    name = f"split_by({function_name(choose)}, {source!r}, ways={ways})"
    return _split(choose, source, ways, name)


def _split(choose: Callable[[Any], int], source: Monoid[Any], ways: int, name: str) -> Splitter:
    f = partial(_parts, choose, source, ways)
    return Splitter(Named(Homomorphism(f, source, product(*[source] * ways), name=name)))


def _parts(
    choose: Callable[[Any], int], source: Monoid[Any], ways: int, element: Any
) -> tuple[Any, ...]:
    assert source.basis is not None
    parts: list[dict[Any, int]] = [{} for _ in range(ways)]
    for generator, count in source.basis.parts(element).items():
        parts[choose(generator) % ways][generator] = count
    return tuple(map(source.basis.build, parts))


def partition(processor: Processor[Any, Any], split: Splitter) -> Processor[Any, Any]:
    """One copy of `processor` for each part of the input: `split >> (σ * σ * ...) >> merge`.

    Equivalent to `processor` when the parts are independent inputs to it: `INDEPENDENT` in
    `ebbflow.laws` is that law, `equivalent(processor, partition(processor, split))` the whole
    claim.

    >>> from ebbflow.stream import join
    >>> from ebbflow.zset import ZSETS, ZSet
    >>> same = join(lambda a, b: a == b, ZSETS, ZSETS)
    >>> halves = partition(same, split_by(lambda side_and_row: side_and_row[1], same.source))
    >>> halves((ZSet.of([1, 2, 3]), ZSet.of([2, 3, 4]))) == same(
    ...     (ZSet.of([1, 2, 3]), ZSet.of([2, 3, 4])))
    True
    """
    if split.source != processor.source:
        raise CompositionError(
            f"partition: {processor!r} reads {processor.source!r}, not {split.source!r}",
            created=place(),
            remedy="split the stream that the processor reads",
        )
    return split >> parallel(*[processor] * split.ways) >> merge(processor.target, split.ways)


def split_join(
    keys: tuple[Callable[[Any], Any], Callable[[Any], Any]],
    source: Monoid[Any],
    *,
    ways: int = 2,
    bucket: Callable[[Any], int] | None = None,
) -> Splitter:
    """Split both inputs of a join by their key, so that rows that match meet in the same part.

    `bucket` turns a key into a number; the default is `stable_hash`.

    >>> from ebbflow.algebra import product
    >>> from ebbflow.zset import ZSETS, ZSet
    >>> cut = split_join((lambda row: row[0], lambda row: row[1]), product(ZSETS, ZSETS))
    >>> cut((ZSet.of([(1, "a")]), ZSet.of([("b", 1)])))[1]
    (ZSet({(1, 'a'): 1}), ZSet({('b', 1): 1}))
    """
    named = ", ".join(map(function_name, keys))
    how = "" if bucket is None else f", bucket={function_name(bucket)}"
    choose = partial(_bucket, keys, bucket or stable_hash)
    name = f"split_join(({named}), {source!r}, ways={ways}{how})"
    return _split(choose, source, ways, name)


def stable_hash(key: Any) -> int:
    """A hash that is the same in every process, and the same for keys that are equal.

    Python's own is not: that of a string differs from run to run, and state that was cut by it
    could not be resumed elsewhere. For numbers, text, bytes, None, dates and times, and tuples,
    frozensets and frozen dicts of them; for other keys give `bucket=` yourself.

    >>> stable_hash("Rome"), stable_hash((1, None)) == stable_hash((True, None))
    (3997176853, True)
    """
    if isinstance(key, Number):
        return 0 if is_nan(key) else hash(key)
    if isinstance(key, str):
        return crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return crc32(key)
    if key is None:
        return 1
    if isinstance(key, tuple):
        return crc32(repr([stable_hash(part) for part in key]).encode())
    if isinstance(key, frozenset):
        return sum(map(stable_hash, key))
    if isinstance(key, Mapping):
        return sum(map(stable_hash, key.items()))
    if isinstance(key, timedelta):
        return stable_hash((key.days, key.seconds, key.microseconds))
    if isinstance(key, datetime) and key.utcoffset() is not None:
        key = key.astimezone(UTC)
    if isinstance(key, (date, time)):
        return crc32(key.isoformat().encode())
    raise AlgebraError(
        f"a {type(key).__name__} has no hash that is the same in every process",
        key=key,
        remedy="bucket= with a function from the key to an int",
    )


def _bucket(keys: Any, bucket: Callable[[Any], int], generator: tuple[int, Any]) -> int:
    side, row = generator
    return bucket(keys[side](row))
