"""Z-sets: collections whose rows carry an integer weight.

A row of weight 2 is there twice; a row of weight -1 has been taken away. A *change* to a collection
is itself a Z-set, so adding the change to the old collection gives the new one. Everything else
here follows from `+`.

A Z-set never changes after it is made and has one form: a row of weight zero is absent, always, and
NaN is one row (see `ebbflow.nan`).
"""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from ebbflow import names
from ebbflow.algebra import Basis, Homomorphism, Monoid
from ebbflow.algebra.value import function_name
from ebbflow.errors import AlgebraError, CompositionError, install
from ebbflow.keywords import checked
from ebbflow.nan import one_nan, with_one_nan
from ebbflow.public import answer, dir_of, names_of, unknown
from ebbflow.typevars import T as R

S = TypeVar("S", bound=Hashable)
Q = TypeVar("Q", bound=Hashable)
K = TypeVar("K", bound=Hashable)
G = TypeVar("G")
_EXPORT = "ebbflow.engine.runtime.table.export"


class ZSet(Generic[R]):
    """Rows with integer weights, frozen.

    >>> ZSet({"a": 2, "b": 1}) - ZSet.of(["b", "c"])
    ZSet({'a': 2, 'c': -1})
    >>> ZSet([("a", 1), ("a", -1)])
    ZSet({})
    """

    __slots__ = ("_hash", "_origin", "_weights")
    _origin: tuple[Any, bool]
    """The row type, and whether this is a change: of those that a view gave (`from_view`)."""

    def __init__(self, weights: ZSet[R] | Mapping[R, int] | Iterable[tuple[R, int]] = ()) -> None:
        total: dict[R, int] = {}
        for row, weight in _pairs(weights):
            if type(weight) is not int:
                raise AlgebraError(
                    f"the weight of a row must be an int, not {type(weight).__name__}",
                    row=row,
                    weight=weight,
                    remedy="ZSet({row: weight}), or ZSet.of(rows) when every row counts once",
                )
            try:
                total[row] = total.get(row, 0) + weight
            except TypeError:
                _require_hashable(row)
                raise
        self._weights = with_one_nan({row: weight for row, weight in total.items() if weight})
        self._hash: int | None = None

    def __dir__(self) -> list[str]:
        return dir_of(self)

    @classmethod
    def of(cls, rows: Iterable[R]) -> ZSet[R]:
        """Every row once, and once more each time it is repeated.

        >>> ZSet.of("abca")
        ZSet({'a': 2, 'b': 1, 'c': 1})
        """
        total: dict[R, int] = {}
        get = total.get
        row: R | None = None
        try:
            for row in _iterable(rows):
                total[row] = get(row, 0) + 1
        except TypeError:
            _require_hashable(row)
            raise
        return trusted(with_one_nan(total))

    # ---- reading ----

    def weight(self, row: R) -> int:
        """How often `row` is there; 0 when it is not."""
        return self._weights.get(one_nan(row), 0)

    def items(self) -> Iterable[tuple[R, int]]:
        """Rows with their weights."""
        return self._weights.items()

    def rows(self) -> Iterator[R]:
        """Each row as often as it is there.

        >>> sorted(ZSet({"a": 2, "b": 1}).rows())
        ['a', 'a', 'b']
        """
        for row, weight in self._weights.items():
            if weight < 0:
                raise AlgebraError(
                    "a row of negative weight cannot be listed",
                    row=row,
                    weight=weight,
                    remedy="use items(), which gives rows with their weights",
                )
            for _ in range(weight):
                yield row

    @property
    def is_bag(self) -> bool:
        """Whether every weight is positive: a collection, not a change."""
        return not self._weights or min(self._weights.values()) > 0

    def __deepcopy__(self, memo: Any) -> ZSet[R]:
        return self

    def __iter__(self) -> Iterator[R]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __contains__(self, row: object) -> bool:
        return one_nan(row) in self._weights

    def __eq__(self, other: object) -> bool:
        return self._weights == other._weights if isinstance(other, ZSet) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._weights.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"ZSet({self._weights!r})"

    def _repr_html_(self) -> str:
        from ebbflow.notebook import html_of

        return html_of(self)

    def __shown__(self) -> object:
        return self._weights

    def __reduce__(self) -> tuple[Any, ...]:
        return trusted, (self._weights,)

    # ---- as tables of others ----

    def to_arrow(self, type: Any = None, *, weights: bool | None = None) -> Any:
        """The rows as a `pyarrow.Table`, with a column for each field of a row.

        What `view.value` gives has every row as often as it is there. A change, and any Z-set that
        is no value of a view, has every row once, with its weight in the column `__weight`; that is
        what `step` takes again. `weights` says it otherwise. A view knows the type of its rows; any
        other Z-set can be told, else its rows tell.

        >>> import ebbflow as ef
        >>> view = ef.Input("words", str).run()
        >>> change = view.step(words=["ebb", "ebb", "flow"])
        >>> change.to_arrow().to_pydict(), view.value.to_arrow().to_pydict()
        ({'value': ['ebb', 'flow'], '__weight': [2, 1]}, {'value': ['ebb', 'ebb', 'flow']})
        """
        known, change = getattr(self, "_origin", (Any, True))
        if weights is None:
            weights = change
        export = _export("to_arrow()")
        return export.arrow_table(self, known if type is None else type, weights=weights)

    def to_numpy(self, type: Any = None, *, weights: bool | None = None) -> dict[str, Any]:
        """The rows as a dict of NumPy arrays, one for each field of a row, as `to_arrow`; they
        cannot be written to. Texts, and fields that may be None, are arrays of Python's objects.

        >>> ZSet({2: 1, 3: -1}).to_numpy(int)["__weight"].tolist()
        [1, -1]
        """
        known, change = getattr(self, "_origin", (Any, True))
        if weights is None:
            weights = change
        export = _export("to_numpy()")
        arrays: dict[str, Any] = export.numpy_arrays(
            self, known if type is None else type, weights=weights
        )
        return arrays

    def to_pandas(self, type: Any = None, *, weights: bool | None = None) -> Any:
        """The rows as a pandas DataFrame, as `to_arrow`. An int, a float or a bool that may be None
        has the dtype that knows nulls: `Int64`, `Float64`, `boolean`.

        >>> ZSet({2: 1, 3: -1}).to_pandas(int).values.tolist()
        [[2, 1], [3, -1]]
        """
        return _export("to_pandas()").pandas_frame(self.to_arrow(type, weights=weights))

    def to_polars(self, type: Any = None, *, weights: bool | None = None) -> Any:
        """The rows as a Polars DataFrame, as `to_arrow`.

        >>> ZSet({2: 1, 3: -1}).to_polars(int).rows()
        [(2, 1), (3, -1)]
        """
        return _export("to_polars()").polars_frame(self.to_arrow(type, weights=weights))

    # ---- the group ----

    def __add__(self, other: ZSet[R]) -> ZSet[R]:
        if not isinstance(other, ZSet):
            return NotImplemented
        large, small = self._weights, other._weights
        if len(large) < len(small):
            large, small = small, large
        if not small:
            return self if large is self._weights else other
        total = large.copy()
        add_into(total, small)
        return trusted(total)

    def __neg__(self) -> ZSet[R]:
        return trusted({row: -weight for row, weight in self._weights.items()})

    def __sub__(self, other: ZSet[R]) -> ZSet[R]:
        if not isinstance(other, ZSet):
            return NotImplemented
        if len(self._weights) < len(other._weights):
            return -other + self
        total = self._weights.copy()
        get = total.get
        for row, weight in other._weights.items():
            weight = get(row, 0) - weight
            if weight:
                total[row] = weight
            else:
                del total[row]
        return trusted(total)

    def __mul__(self, count: int) -> ZSet[R]:
        if type(count) is not int:
            return NotImplemented
        if not count:
            return trusted({})
        return trusted({row: weight * count for row, weight in self._weights.items()})

    __rmul__ = __mul__

    # ---- linear functions: each gives on a sum the sum of what it gives on the parts ----

    def map(self, f: Callable[[R], S]) -> ZSet[S]:
        """Every row replaced by `f(row)`; rows that become equal add up.

        >>> ZSet({"apple": 2, "avocado": -1, "fig": 1}).map(lambda word: word[0])
        ZSet({'a': 1, 'f': 1})
        """
        total: dict[S, int] = {}
        get = total.get
        image: Any = None
        try:
            for row, weight in self._weights.items():
                image = f(row)
                total[image] = get(image, 0) + weight
        except TypeError:
            _require_hashable(image)
            raise
        return trusted(with_one_nan(without_zeros(total)))

    def filter(self, predicate: Callable[[R], object]) -> ZSet[R]:
        """Only the rows for which `predicate(row)` is true."""
        return trusted({row: weight for row, weight in self._weights.items() if predicate(row)})

    def flat_map(self, f: Callable[[R], Iterable[S]]) -> ZSet[S]:
        """Every row replaced by all of `f(row)`.

        >>> ZSet({"ab": 1, "bc": -1}).flat_map(list)
        ZSet({'a': 1, 'c': -1})
        """
        total: dict[S, int] = {}
        get = total.get
        image: Any = None
        try:
            for row, weight in self._weights.items():
                for image in f(row):
                    total[image] = get(image, 0) + weight
        except TypeError:
            _require_hashable(image)
            raise
        return trusted(with_one_nan(without_zeros(total)))

    def sum(self, f: Callable[[R], G], group: Monoid[G]) -> G:
        """`f(row)` added up over all rows, as often as each is there. (The linear extension of
        `f`.)

        >>> from ebbflow.algebra import ADD
        >>> ZSet({10: 2, 7: -1}).sum(lambda price: price, ADD)
        13
        """
        times = group.times
        return group.fold(
            f(row) if weight == 1 else times(weight, f(row))
            for row, weight in self._weights.items()
        )

    # ---- bilinear: linear on each side ----

    def join(
        self,
        other: ZSet[S],
        key: Callable[[R], K],
        other_key: Callable[[S], K] | None = None,
        merge: Callable[[R, S], Q] | None = None,
    ) -> ZSet[Q]:
        """Every row with every row of `other` that has the same key; weights multiply.

        >>> people, ages = ZSet.of([("ann", "Rome"), ("bob", "Oslo")]), ZSet.of([("ann", 30)])
        >>> people.join(ages, key=lambda row: row[0])
        ZSet({(('ann', 'Rome'), ('ann', 30)): 1})
        """
        right_key = cast("Callable[[S], K]", key) if other_key is None else other_key
        index: dict[K, list[tuple[S, int]]] = {}
        for row, weight in other._weights.items():
            at = one_nan(right_key(row))
            if at in index:
                index[at].append((row, weight))
            else:
                index[at] = [(row, weight)]
        total: dict[Any, int] = {}
        nothing: tuple[()] = ()
        if merge is None:
            for left, weight in self._weights.items():
                for right, right_weight in index.get(one_nan(key(left)), nothing):
                    total[left, right] = weight * right_weight
            return trusted(total)
        get = total.get
        for left, weight in self._weights.items():
            for right, right_weight in index.get(one_nan(key(left)), nothing):
                merged = one_nan(merge(left, right))
                total[merged] = get(merged, 0) + weight * right_weight
        return trusted(without_zeros(total))

    def product(self, other: ZSet[S]) -> ZSet[tuple[R, S]]:
        """Every row with every row of `other`; weights multiply."""
        right = other._weights.items()
        return trusted({(a, b): i * j for a, i in self._weights.items() for b, j in right})

    # ---- not linear ----

    def distinct(self) -> ZSet[R]:
        """Every row that is there, once; rows of negative weight are not there.

        >>> ZSet({"a": 3, "b": -2}).distinct()
        ZSet({'a': 1})
        """
        return trusted({row: 1 for row, weight in self._weights.items() if weight > 0})

    def positive(self) -> ZSet[R]:
        """What a change puts in: the rows of positive weight."""
        return trusted({row: weight for row, weight in self._weights.items() if weight > 0})

    def negative(self) -> ZSet[R]:
        """What a change takes out, with positive weights: `z == z.positive() - z.negative()`."""
        return trusted({row: -weight for row, weight in self._weights.items() if weight < 0})


def trusted(weights: dict[Any, int]) -> ZSet[Any]:
    """A Z-set around a dict that holds no zeros and will not change: not checked, not copied.

    >>> trusted({"a": 1})
    ZSet({'a': 1})
    """
    new: ZSet[Any] = ZSet.__new__(ZSet)
    new._weights = weights
    new._hash = None
    return new


def from_view(weights: dict[Any, int], origin: tuple[Any, bool]) -> ZSet[Any]:
    """The same for what a view gives: it knows its row type, and whether it is a change.

    >>> from_view({}, (int, True)).to_arrow().column_names
    ['value', '__weight']
    """
    if type(weights) is not dict:
        return OfColumns(weights, origin)
    new: ZSet[Any] = ZSet.__new__(ZSet)
    new._weights = weights
    new._hash = None
    new._origin = origin
    return new


answer(ZSet, names.ZSET, lambda zset, name: unknown("a ZSet", name, names.ZSET, names_of(ZSet)))


class OfColumns(ZSet[Any]):
    """A Z-set that a view gave as columns (`ebbflow.kernel.columns`): rows are made when they are
    looked at, and none where a table is asked for."""

    __slots__ = ("columns",)

    def __init__(self, columns: Any, origin: tuple[Any, bool]) -> None:
        self.columns = columns
        self._hash = None
        self._origin = origin

    @property
    def _weights(self) -> dict[Any, int]:  # type: ignore[override]
        weights: dict[Any, int] = self.columns.rows
        return weights

    def __len__(self) -> int:
        return len(self.columns)

    def items(self) -> Iterable[tuple[Any, int]]:
        found: Iterable[tuple[Any, int]] = self.columns.items()
        return found

    def to_numpy(self, type: Any = None, *, weights: bool | None = None) -> dict[str, Any]:
        """The rows as a dict of NumPy arrays; see `ZSet`."""
        if type is None and weights is None and self._origin == (self.columns.type, True):
            arrays: dict[str, Any] = self.columns.arrays()
            return arrays
        return super().to_numpy(type, weights=weights)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_view, (self._weights, self._origin)


def weights_of(rows: ZSet[R]) -> dict[R, int]:
    """The dict inside a Z-set, to be read and never changed.

    >>> weights_of(ZSet.of("aba"))
    {'a': 2, 'b': 1}
    """
    return rows._weights


def _export(call: str) -> Any:
    """What makes tables of Z-sets; it needs pyarrow, which nothing else here does."""
    known = sys.modules.get(_EXPORT)
    if known is not None:
        return known
    try:
        return importlib.import_module(_EXPORT)
    except ModuleNotFoundError as error:
        raise CompositionError(f"{call} needs {error.name}", remedy=install("durable")) from error


def _iterable(rows: Any) -> Iterable[Any]:
    if not isinstance(rows, Iterable):
        raise AlgebraError(
            "a Z-set is made of rows, or of rows with weights", given=rows,
            remedy="ZSet.of([row, ...]), or ZSet({row: weight})",
        )  # fmt: skip
    return rows


def _pairs(weights: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(weights, (ZSet, Mapping)):
        yield from weights.items()
        return
    for item in _iterable(weights):
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise AlgebraError(
                "a Z-set is made of (row, weight) pairs",
                item=item,
                remedy="ZSet.of(rows) makes one of rows alone",
            )
        yield item[0], item[1]


def _require_hashable(row: object) -> None:
    try:
        hash(row)
    except TypeError as error:
        raise AlgebraError(
            f"a row must be hashable, and a {type(row).__name__} is not",
            row=row,
            remedy="use tuples for lists, frozensets for sets, a NamedTuple for a dict",
        ) from error


def add_into(total: dict[Any, int], delta: Mapping[Any, int]) -> None:
    """Add weights to a dict, in place; zeros leave it.

    >>> total = {"a": 1, "b": 1}
    >>> add_into(total, {"a": -1, "b": 1}); total
    {'b': 2}
    """
    get = total.get
    for row, weight in delta.items():
        weight += get(row, 0)
        if weight:
            total[row] = weight
        else:
            del total[row]


def without_zeros(weights: dict[Any, int]) -> dict[Any, int]:
    """The same weights, in a new dict only where there is a zero to leave out.

    >>> without_zeros({"a": 1, "b": 0})
    {'a': 1}
    """
    if 0 in weights.values():
        return {row: weight for row, weight in weights.items() if weight}
    return weights


def _minus_bag(prefix: ZSet[Any], whole: ZSet[Any]) -> ZSet[Any]:
    rest = whole - prefix
    if not rest.is_bag:
        raise AlgebraError("the second does not contain the first", first=prefix, second=whole)
    return rest


_of_rows = partial(
    Monoid, ZSet(), operator.add, home=__name__, commutative=True,
    basis=Basis(lambda z: MappingProxyType(weights_of(z)), ZSet),
)  # fmt: skip
ZSETS: Monoid[ZSet[Any]] = _of_rows(name="ZSETS", negate=operator.neg)
BAGS: Monoid[ZSet[Any]] = _of_rows(name="BAGS", cancel=_minus_bag)


@checked
def linear(
    f: Callable[[Any], G], group: Monoid[G], *, name: str = ""
) -> Homomorphism[ZSet[Any], G]:
    """The one linear function on Z-sets that gives `f(row)` for a single row.

    What is known for every row is known for every collection and for every change of one.

    >>> from ebbflow.algebra import ADD, dict_of
    >>> revenue = linear(lambda row: {row[0]: row[1]}, dict_of(ADD))
    >>> revenue(ZSet({("Rome", 10): 2, ("Oslo", 7): 1}))
    {'Rome': 20, 'Oslo': 7}
    """
    if not (group.is_group and group.commutative):
        raise AlgebraError(
            f"linear(f, {group!r}): rows can be taken back, which needs a commutative group",
            created=group.created,
            remedy="use ADD, ZSETS, dict_of(ADD), a product of these, or a monoid with negate=",
        )
    named = name or f"linear({function_name(f)}, {group!r})"
    return Homomorphism(partial(ZSet.sum, f=f, group=group), ZSETS, group, name=named)
