"""Keyed operators of every sort, made of functions that can be wrapped, and changes for them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from random import Random
from typing import Any

from ebbflow.chain import Chain, RowStep
from ebbflow.change import BAG, Both, First, Second, pair
from ebbflow.fn import Fn
from ebbflow.operator import (
    Operator,
    aggregate,
    count,
    distinct,
    per_key,
    select,
    semi,
    sessions,
    top_rows,
)
from ebbflow.operator.joins import Join
from ebbflow.operator.range_join import range_join
from ebbflow.operator.relation import RowChain
from ebbflow.operator.scalar import Threshold, scalar_filter
from ebbflow.reducer import RECOMPUTE, Reducer, mean, median
from ebbflow.reducer import count as how_many
from ebbflow.reducer import max as greatest
from ebbflow.reducer import min as least
from ebbflow.reducer import sum as total
from ebbflow.reducer.combine import together
from ebbflow.reducer.running import ReduceByKey
from ebbflow.reducer.shape import ResultShape
from ebbflow.zset import ZSet

AnyOperator = Operator[Any, Any, Any, Any]
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
Make = Callable[[Wrap], AnyOperator]


def odd(x: int) -> bool:
    return x % 2 == 1


def half(x: int) -> int:
    return x // 2


def third(x: int) -> int:
    return x % 3


def fifth(x: int) -> int:
    return x % 5


def itself(x: Any) -> Any:
    return x


def around(x: int) -> list[int]:
    return [x - x % 4, x + 1][: x % 3]


def low(acc: Any, x: Any) -> Any:
    return x if acc is None else min(acc, x)


def unless_lowest(acc: Any, x: Any) -> Any:
    return RECOMPUTE if x <= acc else acc


def sorted_in(acc: tuple[Any, ...], x: Any) -> tuple[Any, ...]:
    return tuple(sorted((*acc, x)))


def sorted_together(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(a + b))


def lowest(w: Wrap = itself) -> Reducer[Any, Any, Any]:
    """A reducer that declines to remove now and then."""
    return Reducer(None, w(low), w(unless_lowest))


def listed(w: Wrap = itself) -> Reducer[Any, Any, Any]:
    """A reducer without remove, but with a merge."""
    return Reducer((), w(sorted_in), None, w(sorted_together))


def mixed(w: Wrap = itself) -> Reducer[Any, Any, Any]:
    return total(w(half)) & greatest(w(third)) & lowest(w) & listed(w) & median(w(fifth))


class Hoarder(Operator[Any, Any, Any, Any]):
    """Each row once, with a state that only a copy can bring back."""

    input = BAG
    output = BAG

    def __init__(self, told: Callable[[Any], Any] = itself) -> None:
        self.told = told

    def f(self, x: Any) -> Any:
        return ZSet.of(set(x))

    def init(self, x: Any) -> dict[Any, int]:
        return dict(x.items())

    def step(self, state: Any, change: Any) -> tuple[Any, Any]:
        out = {}
        for row, weight in change.items():
            was = state.get(row, 0)
            state[row] = was + weight
            self.told(row)
            if not state[row]:
                del state[row]
            if (was > 0) != (was + weight > 0):
                out[row] = 1 if weight > 0 else -1
        return state, ZSet(out)


def steps(w: Wrap, *verbs: tuple[str, Callable[..., Any]]) -> Chain:
    return Chain([RowStep(verb, Fn(w(function))) for verb, function in verbs])


FILTERED = (("filter", odd), ("map", half))
SPREAD = (("flat_map", around), ("filter", itself), ("map", half))

ONE: dict[str, Make] = {
    "top": lambda w: top_rows(2, w(half), w(third)),
    "top of all": lambda w: top_rows(3, w(third), smallest=True),
    "sessions": lambda w: sessions(w(half), 1, w(third)),
    "sessions of all": lambda w: sessions(itself, 2, merge=w(spanned)),
    "count per key": lambda w: per_key(count(), w(third)),
    "distinct per key": lambda w: per_key(distinct(), w(third)),
    "top per key": lambda w: per_key(top_rows(1, w(operator.neg)), w(odd)),
    "max per key per key": lambda w: per_key(per_key(aggregate(max), w(half)), w(third)),
    "network per key": lambda w: per_key(select(w(odd)) >> distinct() >> count(), w(fifth)),
    "hoarder per key": lambda w: per_key(Hoarder(w(itself)), w(third)),
    "hoarder": lambda w: per_key(Hoarder(w(itself)), width=0),
    "distinct": lambda w: distinct(),
    "no steps": lambda w: RowChain(Chain()),
    "steps": lambda w: RowChain(steps(w, *SPREAD)),
    "sum": lambda w: ReduceByKey(total(w(half)), Fn(w(third))),
    "inline": lambda w: ReduceByKey(total(w(half)) & how_many() & mean(w(fifth)), Fn(w(third))),
    "inline behind steps": lambda w: ReduceByKey(
        total() & how_many(), Fn(w(third)), before=steps(w, *SPREAD)
    ),
    "max": lambda w: ReduceByKey(greatest(w(half)), Fn(w(third))),
    "mixed": lambda w: ReduceByKey(mixed(w), Fn(w(third))),
    "mixed behind steps": lambda w: ReduceByKey(mixed(w), Fn(w(third)), before=steps(w, *FILTERED)),
    "tree": lambda w: ReduceByKey(listed(w), Fn(w(third))),
    "tree and median": lambda w: ReduceByKey(
        listed(w) & median(), Fn(w(third)), before=steps(w, *SPREAD)
    ),
    "partial": lambda w: ReduceByKey(lowest(w), Fn(w(third))),
    "one side by side": lambda w: ReduceByKey(together(greatest(w(half))), Fn(w(third))),
    "spread": lambda w: ReduceByKey(mixed(w), Fn(w(third)), ResultShape(width=1, spread=True)),
    "all rows": lambda w: ReduceByKey(
        least(w(third)) & total(), None, ResultShape(width=0, spread=True)
    ),
}  # fmt: skip
TWO: dict[str, Make] = {
    "semi": lambda w: semi(w(third), w(half)),
    "anti": lambda w: semi(w(third), w(half), anti=True),
    "join": lambda w: Join(w(third), w(fifth)),
    "join of equal rows": lambda w: Join(w(fifth), w(fifth), w(operator.add)),
    "join then steps": lambda w: Join(
        w(fifth), w(fifth), w(operator.mul), after=steps(w, *SPREAD)
    ),
    "join then a filter": lambda w: Join(
        w(third), w(third), after=Chain([RowStep("filter", Fn(w(uneven)))])
    ),
    "join one to one": lambda w: Join(w(third), w(third), w(flipped), one_to_one=True),
    "join one to one then steps": lambda w: Join(
        w(third), w(third), w(flipped), one_to_one=True, after=steps(w, ("map", min))
    ),
    "range join": lambda w: range_join(w(third), w(third), where=[(w(half), "<", w(fifth))]),
    "interval anti": lambda w: range_join(
        w(odd), w(odd), where=[(itself, ">", w(half)), (w(fifth), "!=", w(fifth))], how="anti"
    ),
    "scalar filter": lambda w: RowChain(Chain()) * top_rows(1, w(half)) >> scalar_filter(
        w(operator.gt), threshold=Threshold(itself, ">", itself)
    ),
}  # fmt: skip
EVERY = {**ONE, **TWO}


def spanned(row: Any, start: Any, end: Any) -> Any:
    return start, end, row


def uneven(row: tuple[int, int]) -> bool:
    return (row[0] + row[1]) % 3 > 0


def flipped(a: Any, b: Any) -> Any:
    return b, a


def both(of: AnyOperator) -> bool:
    return bool(of.input == pair(BAG, BAG))


def random_change(x: Any, rows: list[Any], random: Random) -> Any:
    """A valid change: some rows go, some come, some of them twice; of two bags, one or both."""
    if isinstance(x, tuple):
        left, right = (random_change(side, rows, random) for side in x)
        return random.choice([First(left), Second(right), Both(left, right)])
    there = list(x)
    gone = random.sample(there, random.randint(0, min(len(there), 6)))
    change = {row: -random.randint(1, x.weight(row)) for row in gone}
    for _ in range(random.randint(0, 6)):
        row = random.choice(rows)
        change[row] = change.get(row, 0) + random.randint(1, 2)
    return ZSet(change)
