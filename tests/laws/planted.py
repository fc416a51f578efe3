"""Wrong things, each wrong in a way that people get wrong. The checker must refute every one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ebbflow.algebra import ADD, LIST, SET, Homomorphism, Monoid, Order, product
from ebbflow.change import TEXT, ChangeStructure, Insert
from ebbflow.stream import (
    Representation,
    Splitter,
    StreamFunction,
    elementwise,
    full_adder,
    processor,
    pure,
    tabulate,
)
from ebbflow.zset import ZSETS, ZSet

# ---- monoids ----

minus = Monoid(0, lambda a, b: a - b, name="minus", elements=range(-3, 4))
mean = Monoid(
    None, lambda a, b: b if a is None else a if b is None else (a + b) / 2,
    name="mean", elements=[None, 0, 1, 2, 4],
)  # fmt: skip
not_commutative = Monoid("", lambda a, b: a + b, name="text", commutative=True, elements=["a", "b"])
not_idempotent = Monoid(0, lambda a, b: a + b, name="sum", idempotent=True, elements=range(3))
wrong_inverse = Monoid(
    0, lambda a, b: (a + b) % 5, name="mod 5", negate=lambda a: -a, elements=range(5)
)
no_inverse = Monoid(0, max, name="max", negate=lambda a: -a, elements=range(3))
wrong_cancel = Monoid(
    frozenset(), lambda a, b: a | b, name="sets", cancel=lambda p, w: w - p,
    elements=st.frozensets(st.integers(0, 2)),
)  # fmt: skip
floats = Monoid(0.0, lambda a, b: a + b, name="floats", elements=[0.0, 0.1, 0.2, 0.3])


def _append(a: list[int], b: list[int]) -> list[int]:
    a += b
    return a


in_place = Monoid([], _append, name="in place", elements=st.lists(st.integers(0, 2), max_size=2))

# ---- homomorphisms ----

maximum = Homomorphism(lambda xs: max(xs, default=0), LIST, ADD, name="maximum")
count_plus_one = Homomorphism(lambda xs: len(xs) + 1, LIST, ADD, name="count plus one")
distinct = Homomorphism(lambda z: z.distinct(), ZSETS, ZSETS, name="distinct")

# ---- orders ----

not_antisymmetric = Order(
    lambda a, b: abs(a) <= abs(b),
    lambda t: sorted(range(-abs(t), abs(t) + 1), key=abs),
    name="by size", elements=range(-2, 3),
)  # fmt: skip
forgets_itself = Order(lambda a, b: a <= b, lambda t: range(t), name="below t", elements=range(4))

# ---- change structures ----


class Backwards(ChangeStructure[int, int]):
    """A difference the wrong way round."""

    nothing = 0

    def valid(self, change: object, value: int) -> bool:
        return isinstance(change, int)

    def apply(self, value: int, change: int) -> int:
        return value + change

    def diff(self, new: int, old: int) -> int:
        return old - new


class Careless(Backwards):
    """Merges two changes by forgetting the first."""

    def diff(self, new: int, old: int) -> int:
        return new - old

    def merge(self, first: int, second: int) -> int:
        return second


class Appended(ChangeStructure[Any, Any]):
    """Changes the value it was given."""

    nothing: list[int] = []

    def valid(self, change: object, value: Any) -> bool:
        return isinstance(change, list)

    def apply(self, value: Any, change: Any) -> Any:
        value.extend(change)
        return value


class Truncating(ChangeStructure[str, Insert]):
    """Says that every insert is valid, and raises for those that are not."""

    nothing = Insert(0, "")

    def valid(self, change: object, value: str) -> bool:
        return isinstance(change, Insert)

    def apply(self, value: str, change: Insert) -> str:
        return TEXT.patch(value, change)


backwards = Backwards(name="backwards", elements=range(-3, 4))
careless = Careless(name="careless", elements=range(-3, 4))
appended = Appended(
    name="appended", elements=st.lists(st.integers(0, 2), max_size=2),
    changes=lambda value: [[], [1]],
)  # fmt: skip
truncating = Truncating(
    name="truncating", elements=["", "a"], changes=lambda value: [Insert(0, "x"), Insert(1, "y")]
)

# ---- stream functions and processors ----

set_difference = StreamFunction(
    lambda both: both[0] - both[1],
    lambda p, a: a[0] - a[1] - p[1],
    source=product(SET, SET), target=SET, name="set difference",
)  # fmt: skip

_seen: list[Any] = []


def _remember_outside(state: Any, xs: list[Any]) -> Any:
    _seen.extend(xs)
    return state, [len(_seen)] * len(xs)


outside = processor(_remember_outside, source=LIST, target=LIST, name="outside")


class Shared(type(outside)):  # type: ignore[misc]
    """All runs get the same state object."""

    def start(self) -> Any:
        return self.initial, []


def _number(state: list[Any], xs: list[Any]) -> Any:
    state.extend(xs)
    return state, [len(state)] * len(xs)


shared = Shared(_number, [], [], LIST, LIST, "shared")
per_batch = processor(
    lambda n, xs: (n + 1, [(n, x) for x in xs]), state=0, source=LIST, target=LIST, name="per batch"
)
last_of_batch = processor(
    lambda last, xs: (xs[-1] if xs else last, [x - last for x in xs]), state=0,
    source=LIST, target=LIST, name="last of batch",
)  # fmt: skip
chatty = processor(lambda _, xs: (None, [*xs, 0]), source=LIST, target=LIST, name="chatty")
greedy = processor(
    lambda _, xs: (None, [xs.pop() for _ in range(len(xs))][::-1]),
    source=LIST, target=LIST, name="greedy",
)  # fmt: skip
forgets_on_empty = processor(
    lambda seen, s: (s and (seen | s), s - seen), state=frozenset(), source=SET, target=SET,
    name="forgets on empty",
)  # fmt: skip

# ---- splitters and representations ----


def _lose_two(s: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(x for x in s if x > 2), frozenset(x for x in s if x < 2)


lossy = Splitter(pure(_lose_two, SET, product(SET, SET), name="lossy"))
doubling = Splitter(pure(lambda z: (z, z), ZSETS, product(ZSETS, ZSETS), name="doubling"))

_adder = tabulate(full_adder(), [0, 1])


class Mirrored(type(_adder)):  # type: ignore[misc]
    """Looks every state up in the wrong row."""

    def decode(self, code: Any) -> Any:
        return lambda state: code[1 - state]


mirrored: Representation = Mirrored(full_adder(), [0, 1])
BITS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=3)

# ---- right ones beside them ----

right_mod_5 = Monoid(
    0, lambda a, b: (a + b) % 5, name="right mod 5", commutative=True,
    negate=lambda a: -a % 5, elements=range(5),
)  # fmt: skip
right_numbering = elementwise(lambda n, x: (n + 1, [(n, x)]), state=0, name="numbering")
right_size = Homomorphism(len, LIST, ADD, name="size")
right_rows = Homomorphism(lambda z: z.map(abs), ZSETS, ZSETS, name="abs rows")


def sample_zsets() -> Any:
    return st.dictionaries(st.integers(0, 2), st.integers(-1, 1)).map(ZSet)
