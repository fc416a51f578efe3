"""Reducers: how a group of rows becomes one value, and how a row is taken out of it again.

A reducer is a triple (ι, ⊕, ⊖): an initial accumulator, `add`, which puts one row in, and `remove`,
which takes one out. It is an ordinary value: named, combined, pickled, and used in any number of
programs. What it computes is a fold, and how it follows a change is the two lines below it:

    fold(rows)           =  add(add(add(init, a), b), c) ...           in any order
    update(acc, change)  =  every removed row by `remove`, then every added row by `add`

The update is right for every change *exactly when* these laws hold (`ebbflow.laws.check` tests
them, `ebbflow.laws.prove` proves them where it can):

    add(add(acc, x), y)     == add(add(acc, y), x)
    remove(add(acc, x), x)  == acc            for every accumulator that rows can lead to

`remove` may decline: it returns `RECOMPUTE`, and that one group is folded again from its rows. A
reducer without `remove` always does that, unless it has an associative `merge`: then an aggregate
tree answers in O(log n).

Accumulators are values. `add` and `remove` return the new one and leave the old one as it was:
whoever keeps it can go back to it.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from ebbflow.algebra import Monoid
from ebbflow.algebra.value import blank, function_name, is_async
from ebbflow.change import BAG
from ebbflow.errors import AlgebraError, ChangeError, Text, place
from ebbflow.keywords import checked
from ebbflow.reducer.row import Key, key_text
from ebbflow.typevars import A, R, V, V_contra
from ebbflow.zset import ZSETS, ZSet

if TYPE_CHECKING:
    from ebbflow.operator import Operator
    from ebbflow.stream import Processor

CLASSES = ("distributive", "algebraic", "holistic")


class Recompute:
    """The type of `RECOMPUTE`, which `remove` returns when the rows themselves are needed.

    >>> lowest = Reducer(None, lambda low, x: x if low is None else min(low, x),
    ...                  lambda low, x: RECOMPUTE if x == low else low)
    >>> lowest.remove(3, 5), lowest.remove(3, 3)
    (3, RECOMPUTE)
    >>> Recompute() is RECOMPUTE
    True
    """

    _only: ClassVar[Recompute | None] = None

    def __new__(cls) -> Recompute:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "RECOMPUTE"

    def __reduce__(self) -> str:
        return "RECOMPUTE"


RECOMPUTE = Recompute()


def at_once(*parts: Any) -> None:
    """Refuse parts of a reducer that are async functions."""
    for each in parts:
        if is_async(each):
            raise AlgebraError(
                f"a reducer's function {function_name(each)} is async, and an epoch awaits nothing",
                created=place(),
                remedy="a plain function",
            )


class Reducer(Generic[V_contra, A, R]):
    """`init`, `add` and, where there is one, `remove`: a fold that can follow changes.

    >>> mean = Reducer((0, 0), lambda a, x: (a[0] + x, a[1] + 1),
    ...                lambda a, x: (a[0] - x, a[1] - 1), result=lambda a: a[0] / a[1])
    >>> mean([1, 2, 6])
    3.0
    >>> mean.update((9, 3), ZSet({6: -1, 3: 1}))
    (6, 3)

    `init` is a value, or a function without arguments that makes one. The rest is optional:

    - `remove`: takes one row out, or returns `RECOMPUTE`;
    - `merge`: puts two accumulators together, `merge(fold(a), fold(b)) == fold(a + b)`;
    - `result`: what is shown of an accumulator;
    - `repeat(acc, row, n)`: does what n calls of `add` (or -n of `remove`) do, in one;
    - `partial`: False promises that `remove` never returns RECOMPUTE, so no rows need be kept; True
      says that it may, also if few rows do not show it;
    - `aggregate`, `size`, `cost`: its class (distributive, algebraic or holistic), how large an
      accumulator gets, and what one row costs, to be shown;
    - `equal`: when two accumulators count as the same (default `==`);
    - `elements`: what `check` draws rows from: samples, whose fields it may mix, a Hypothesis
      strategy for exactly the rows there are, or a function returning either;
    - `inline`: how it is written inside a loop; see `ebbflow.reducer.inline`;
    - `type`: of the result, where the code of its functions does not tell.
    """

    type: Any = None

    @checked
    def __init__(
        self,
        init: Any,
        add: Callable[[Any, V_contra], Any],
        remove: Callable[[Any, V_contra], Any] | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
        result: Callable[[Any], R] | None = None,
        name: str | None = None,
        *,
        repeat: Callable[[Any, V_contra, int], Any] | None = None,
        partial: bool | None = None,
        aggregate: str = "",
        size: str = "",
        cost: str = "",
        equal: Callable[[Any, Any], bool] = operator.eq,
        elements: Any = None,
        inline: Any = None,
        type: Any = None,
        made: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> None:
        if not callable(add):
            raise AlgebraError(
                f"add must be a function of an accumulator and a row, not {add!r}",
                remedy="Reducer(0, lambda total, row: total + row.price)",
            )
        at_once(init, add, remove, merge, result, repeat)
        if aggregate and aggregate not in CLASSES:
            raise AlgebraError(
                f"{aggregate!r} is no class of aggregates", remedy=" or ".join(CLASSES)
            )
        self.init: A | Callable[[], A] = init
        self.add = add
        self.remove = remove
        self.merge = merge
        self.result = result
        self.name = name
        self.repeat = repeat
        self.partial = partial
        self.aggregate = aggregate
        self.size = size
        self.cost = cost
        self.equal = equal
        self.elements = elements
        self.inline = inline
        self.made = made
        if type is not None:
            self.type = type
        self.created: Text = place()

    def start(self) -> A:
        """The accumulator of no rows, a fresh one where it could be changed by accident."""
        if callable(self.init):
            return self.init()
        try:
            hash(self.init)
        except TypeError:
            return copy.deepcopy(self.init)
        return self.init

    def finish(self, acc: A) -> R:
        """What is shown of an accumulator."""
        return cast("R", acc) if self.result is None else self.result(acc)

    # ---- everything below is written with these and add, remove, repeat ----

    def added(self, acc: A, row: V_contra, count: int = 1) -> A:
        """The accumulator with `row` put in `count` times."""
        if self.repeat is not None:
            return cast("A", self.repeat(acc, row, count))
        for _ in range(count):
            acc = self.add(acc, row)
        return acc

    def removed(self, acc: A, row: V_contra, count: int = 1) -> A | Recompute:
        """The accumulator with `row` taken out `count` times, or RECOMPUTE."""
        if self.remove is None:
            return RECOMPUTE
        if self.repeat is not None:
            return cast("A", self.repeat(acc, row, -count))
        now: A | Recompute = acc
        for _ in range(count):
            if isinstance(now, Recompute):
                return now
            now = self.remove(now, row)
        return now

    def fold(self, rows: Iterable[V_contra] | ZSet[Any]) -> A:
        """The accumulator of a collection: a bag with weights, or any rows, each once.

        >>> Reducer(0, operator.add).fold([3, 5, 7])
        15
        """
        if isinstance(rows, ZSet):
            if not rows.is_bag:
                raise ChangeError(
                    f"{self!r}.fold: only a collection can be folded, and here a row is negative",
                    rows=rows,
                    remedy="update(acc, change), where negative weights take rows away",
                )
            return self.add_all(self.start(), rows)
        acc, add = self.start(), self.add
        for row in rows:
            acc = add(acc, row)
        return acc

    def __call__(self, rows: Iterable[V_contra] | ZSet[Any]) -> R:
        """What the reducer says about a collection, from scratch."""
        return self.finish(self.fold(rows))

    def update(self, acc: A, delta: ZSet[Any], bag: ZSet[Any] | None = None) -> A | Recompute:
        """The accumulator after a change: removals first, then additions. (Definition 11.)

        With `bag`, the collection before the change, the change is checked against it, and a
        request to recompute is answered from it. Without, that request is returned.

        >>> total = Reducer(0, operator.add, operator.sub, name="total")
        >>> total.update(15, ZSet({5: -1, 2: 1}))
        12
        >>> total.update(15, ZSet({5: -2}), ZSet.of([3, 5, 7]))
        Traceback (most recent call last):
        ebbflow.errors.ChangeError: ZSet({5: -2}) is not a valid change of this bag
            because    it takes away what is not there
            missing    ZSet({5: 1})
            value      ZSet({3: 1, 5: 1, 7: 1})
            try        taking away at most what is there, or ZSET, where a weight may be negative
        """
        if bag is not None and not BAG.valid(delta, bag):
            raise BAG.refusal(delta, bag)
        now: A | Recompute = acc
        for row, weight in delta.items():
            if weight < 0 and not isinstance(now, Recompute):
                now = self.removed(now, row, -weight)
        if not isinstance(now, Recompute):
            return self.add_all(now, delta)
        return now if bag is None else self.fold(BAG.apply(bag, delta))

    def add_all(self, acc: A, rows: ZSet[Any] | dict[Any, int]) -> A:
        """The accumulator with all rows of positive weight put in."""
        for row, weight in rows.items():
            if weight > 0:
                acc = self.added(acc, row, weight)
        return acc

    # ---- reducers from reducers ----

    @checked
    def on(self, *of: Key[V]) -> Reducer[V, A, R]:
        """The same of a part of each row: a field, several as a tuple, or a function.

        >>> Reducer(0, operator.add, name="total").on(len)(["to", "be", "known"])
        9
        """
        from ebbflow.reducer.combine import on

        return on(self, *of)

    @checked
    def where(self, predicate: Key[V]) -> Reducer[V, A, R]:
        """The same of those rows only for which `predicate(row)`, or a field, is true. A second
        `where` asks the rows that meet the first.

        >>> Reducer(0, operator.add).where(lambda x: x > 0)([3, -4, 5])
        8
        """
        from ebbflow.reducer.combine import where

        return where(self, predicate)

    @checked
    def then(self, f: Callable[[R], V]) -> Reducer[V_contra, A, V]:
        """The same with `f` of the result shown.

        >>> Reducer(0, operator.add).then(str)([3, 5])
        '8'
        """
        from ebbflow.reducer.combine import then

        return then(self, f)

    @checked
    def by(self, *key: Key[V]) -> Reducer[V]:
        """One result for each key among the rows, as a mapping.

        >>> Reducer(0, operator.add).by(lambda x: "odd" if x % 2 else "even")([1, 2, 3])
        Map({'even': 2, 'odd': 4})
        """
        from ebbflow.reducer.combine import by

        return by(self, *key)

    def __and__(self, other: Reducer[Any]) -> Reducer[V_contra]:
        """Both over the same rows, side by side; `a & b & c` gives a tuple of three.

        >>> count = Reducer(0, lambda n, _: n + 1)
        >>> (count & Reducer(0, operator.add) & Reducer(1, operator.mul))([2, 3, 4])
        (3, 9, 24)
        """
        if not isinstance(other, Reducer):
            return NotImplemented
        from ebbflow.reducer.combine import together

        return together(self, other)

    # ---- reducers in programs ----

    @checked
    def processor(
        self, *key: Key, source: Monoid[ZSet[Any]] = ZSETS
    ) -> Processor[ZSet[Any], ZSet[Any]]:
        """A stream processor: changes of rows in, changes of `(key, result)` out.

        Without a key there is one group, and its result is the row. See `ebbflow.reducer.running`.

        >>> live = Reducer(0, operator.add, operator.sub).processor().open()
        >>> live.send(ZSet.of([3, 5])), live.send(ZSet({5: -1}))
        (ZSet({8: 1}), ZSet({8: -1, 3: 1}))
        """
        from ebbflow.reducer.processor import Reducing

        return Reducing(self, key, source)

    @checked
    def operator(self, *key: Key) -> Operator[ZSet[Any], ZSet[Any], Any, Any]:
        """A differential operator: a bag in; out comes the bag of `(key, result)`.

        Without a key: the result itself, replaced when it changes.

        >>> from ebbflow.change import Replace
        >>> live = Reducer(0, operator.add, operator.sub).operator().open(ZSet.of([3, 5, 7]))
        >>> live.send(ZSet({5: -1, 2: 1}))
        Replace(value=12)
        """
        from ebbflow.reducer.running import ReduceAll, ReduceByKey

        return ReduceByKey(self, key) if key else ReduceAll(self)

    # ---- as a value ----

    def __repr__(self) -> str:
        if self.name:
            return self.name
        if self.made is not None:
            return _call_text(*self.made)
        functions = [function_name(f) for f in (self.add, self.remove) if f is not None]
        return f"Reducer({', '.join([_init_text(self.init), *functions])})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reducer):
            return NotImplemented
        if self.made is not None or other.made is not None:
            return self.made == other.made
        return self is other or self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.name, self.made[0] if self.made else self.add))

    def _parts(self) -> tuple[Any, ...]:
        functions = (self.add, self.remove, self.merge, self.result, self.repeat)
        return (self.name, self.init, *functions)

    def __identity__(self) -> Any:
        """What a fingerprint is taken of: not how it is shown and tested."""
        if self.made:
            make, arguments, named = self.made
            return make, arguments, {_STORED.get(name, name): x for name, x in named.items()}
        shown = ("created", "elements", "name", "size", "cost")
        return {k: v for k, v in vars(self).items() if k not in shown}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remade, self.made) if self.made else (blank, (type(self),), self.__dict__)


_STORED = {"order": "by"}
"""Names of parameters, as the names of state on disk have them."""


def _remade(make: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return make(*arguments, **named)


def _init_text(init: Any) -> str:
    return function_name(init) if callable(init) else repr(init)


def _call_text(make: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """As it was written: `sum('price')`, `sum('price').then(round)`, `count() & sum()`."""
    words = [key_text(each) for each in arguments]
    shown = {name: value for name, value in named.items() if name != "digits"}
    words += [f"{name}={key_text(value)}" for name, value in shown.items()]
    if make.__name__ == "together":
        return " & ".join(words)
    if make.__module__.endswith(".combine"):
        receiver = f"({words[0]})" if _side_by_side(arguments[0]) else words[0]
        return f"{receiver}.{make.__name__}({', '.join(words[1:])})"
    return f"{make.__name__}({', '.join(words)})"


def _side_by_side(reducer: Any) -> bool:
    made = None if reducer.name else reducer.made
    return made is not None and made[0].__name__ == "together"


def counted(
    init: Any, repeat: Callable[[Any, Any, int], Any], result: Callable[[Any], Any] | None = None,
    *, merge: Callable[[Any, Any], Any] | None = None, **rest: Any,
) -> Reducer[Any, Any, Any]:  # fmt: skip
    """A reducer from `repeat` alone: `add` is once, `remove` is minus once.

    >>> size = counted(0, lambda n, row, count: n + count)
    >>> size("abc"), size.update(3, ZSet({"a": -1}))
    (3, 2)
    """

    def add(acc: Any, row: Any) -> Any:
        return repeat(acc, row, 1)

    def remove(acc: Any, row: Any) -> Any:
        return repeat(acc, row, -1)

    return Reducer(init, add, remove, merge, result, repeat=repeat, **rest)
