"""Splitting a stream, working on the parts, and merging: what makes a program parallel.

A *splitter* sends each piece of its input to one of several outputs and loses nothing: merged
again, the outputs are the input. When the parts are *independent* for a processor (it says about
both together what it says about each), one copy of the processor for each part computes the same as
one for all. That is why a join may be cut into buckets by its key.

A processor whose steps *commute* asks for less. What each input would do to its state can be worked
out for every part alone, wherever its elements have gone, and put together in any order. Then even
a list may be split, by a splitter that scatters it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ebbflow.algebra import LIST, Homomorphism, Monoid, product
from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError, CompositionError, place
from ebbflow.hashing import stable_hash
from ebbflow.stream.combine import parallel
from ebbflow.stream.generators import elementwise
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
    """A processor that promises to be a splitter: `split >> merge ~ identity`; `check` it.

    One that `scatters` promises to lose no element, and may lose their order: it is for processors
    whose steps commute (`map_reduce`).
    """

    def __init__(self, inner: Processor[Any, tuple[Any, ...]], *, scatters: bool = False) -> None:
        made = inner.target.built
        if made is None or made[0] is not product or set(made[1]) != {inner.source}:
            raise CompositionError(
                f"Splitter({inner!r}): it reads {inner.source!r} and writes {inner.target!r}",
                created=place(),
                remedy="a splitter reads some monoid M and writes product(M, M, ...)",
            )
        self.inner = inner
        self.scatters = scatters
        self.ways = len(made[1])
        self.source = inner.source
        self.target = inner.target
        self.created = inner.created

    def start(self) -> tuple[Any, tuple[Any, ...]]:
        return self.inner.start()

    def step(self, state: Any, change: Any) -> tuple[Any, tuple[Any, ...]]:
        return self.inner.step(state, change)

    def __repr__(self) -> str:
        if isinstance(self.inner, Named):
            return repr(self.inner)
        return f"Splitter({self.inner!r}{', scatters=True' if self.scatters else ''})"


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
    _reads_what_is_split("partition", processor, split)
    return split >> parallel(*[processor] * split.ways) >> merge(processor.target, split.ways)


class Commuting(Processor[Any, Any]):
    """A processor that promises that its steps commute; see `commuting`."""

    commuting = True

    def __init__(self, inner: Processor[Any, Any]) -> None:
        self.inner = inner
        self.source = inner.source
        self.target = inner.target
        self.created = inner.created

    def start(self) -> tuple[Any, Any]:
        return self.inner.start()

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        return self.inner.step(state, change)

    def __repr__(self) -> str:
        return f"commuting({self.inner!r})"


def commuting(processor: Processor[Any, Any]) -> Processor[Any, Any]:
    """The processor, with the promise that its steps commute: `a` then `b` says in all, and leaves,
    what `b` then `a` does. `check` tries it.

    Where the input has no order, that is so anyway, and the processor is given back as it is.

    >>> from ebbflow.algebra import ADD, LIST
    >>> from ebbflow.stream import pure
    >>> commuting(pure(sum, LIST, ADD))
    commuting(pure(sum, LIST, ADD))
    """
    return processor if processor.source.commutative else Commuting(processor)


def map_reduce(processor: Processor[Any, Any], split: Splitter) -> Processor[Any, Any]:
    """`σ ~ split >> (pure f * pure f * ...) >> merge >> eval σ`: what each input would do is worked
    out for the parts side by side, put together in any order, and then done.

    For processors whose steps commute, and for nothing else: `commuting` declares it.

    >>> from ebbflow.algebra import ADD, LIST
    >>> from ebbflow.stream import pure
    >>> map_reduce(commuting(pure(sum, LIST, ADD)), round_robin(3))([1, 2, 3, 4])
    10
    """
    from ebbflow.stream.rewrite import commutes, evaluate, hypotheticals

    _reads_what_is_split("map_reduce", processor, split)
    if not commutes(processor):
        raise AlgebraError(
            f"map_reduce({processor!r}, ...): what its inputs do may depend on their order, which "
            "is lost when parts are put together again",
            created=place(),
            remedy=f"commuting({processor!r}), if its steps commute",
        )
    work = hypotheticals(processor)
    merged = merge(work.target, split.ways)
    return split >> parallel(*[work] * split.ways) >> merged >> evaluate(processor)


def round_robin(ways: int = 2) -> Splitter:
    """The elements of a list to one part after the other, in turn. It keeps no order between parts,
    so it is a splitter for processors whose steps commute.

    >>> list(round_robin(2).run([[1, 2, 3], [4]]))
    [([], []), ([1, 3], [2]), ([], [4])]
    """
    name = f"round_robin({ways})"
    each = elementwise(partial(_in_turn, ways), state=0, target=product(*[LIST] * ways), name=name)
    return Splitter(each, scatters=True)


def _in_turn(ways: int, turn: int, element: Any) -> tuple[int, tuple[list[Any], ...]]:
    return (turn + 1) % ways, tuple([element] if i == turn else [] for i in range(ways))


def _reads_what_is_split(verb: str, processor: Processor[Any, Any], split: Splitter) -> None:
    if split.source != processor.source:
        raise CompositionError(
            f"{verb}: {processor!r} reads {processor.source!r}, not {split.source!r}",
            created=place(),
            remedy="split the stream that the processor reads",
        )


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


def _bucket(keys: Any, bucket: Callable[[Any], int], generator: tuple[int, Any]) -> int:
    side, row = generator
    return bucket(keys[side](row))
