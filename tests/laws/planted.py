"""Wrong things, each wrong in a way that people get wrong. The checker must refute every one."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

from ebbflow.algebra import ADD, LIST, MAX, SET, Basis, Homomorphism, Monoid, Order, product, ticked
from ebbflow.change import NATURAL, NUMBER, TEXT, ChangeStructure, Insert
from ebbflow.operator import Operator
from ebbflow.stream import (
    Representation,
    Splitter,
    StreamFunction,
    commuting,
    elementwise,
    full_adder,
    integral,
    processor,
    pure,
    tabulate,
)
from ebbflow.tensor import Tensor
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

# ---- for each law that those above do not reach, something that breaks it ----

right_zero_only = Monoid(0, lambda a, b: b, name="second wins", elements=range(3))
wrong_basis = Monoid(
    frozenset(), lambda a, b: a | b, name="sets", commutative=True, idempotent=True,
    basis=Basis(lambda s: dict.fromkeys(list(s)[:1], 1), frozenset),
    elements=st.frozensets(st.integers(0, 2)),
)  # fmt: skip


class Lopsided(Tensor):
    """Forgets a pair when there is more than one on either side."""

    def of(self, m: Any, n: Any, matches: Any = None) -> Any:
        return super().of(m, n, matches) if len(m) < 2 and len(n) < 2 else frozenset()


lopsided = Lopsided(SET, SET, SET)
_calls = count()
random_length = Homomorphism(lambda xs: next(_calls) * len(xs), LIST, ADD, name="random length")
emptied = Homomorphism(lambda xs: xs.clear() or 0, LIST, ADD, name="emptied")
strictly = Order(lambda a, b: a < b, lambda t: range(t), name="<", elements=range(3))
near = Order(
    lambda a, b: 0 <= b - a <= 1, lambda t: [t - 1, t] if t else [0], name="near", elements=range(4)
)
upside_down = Order(
    lambda a, b: a <= b, lambda t: range(t, -1, -1), name="upside down", elements=range(4)
)
joined_too_high = Order(
    lambda a, b: a <= b, lambda t: range(t + 1), lambda a, b: a + b, name="sum", elements=range(4)
)
no_inversion = Order(
    lambda a, b: a <= b, lambda t: range(t + 1), name="ones", mobius=lambda a, b: 1,
    elements=range(4),
)  # fmt: skip


class Restless(Backwards):
    """`nothing` does something."""

    nothing = 1

    def diff(self, new: int, old: int) -> int:
        return new - old


class Unlikely(Backwards):
    """Gives a difference that it then refuses."""

    def valid(self, change: object, value: int) -> bool:
        return isinstance(change, int) and abs(change) < 3


class Growing(Careless):
    """Compresses one change into two."""

    def compress(self, changes: Any) -> tuple[int, ...]:
        return (*changes, 0)


restless = Restless(name="restless", elements=range(3))
unlikely = Unlikely(name="unlikely", elements=range(9), changes=lambda value: [0, 1])
growing = Growing(name="growing", elements=range(3))


stateful_output = processor(
    lambda seen, xs: (seen, (seen.extend(xs), seen)[1]) if xs else (seen, []), state=[],
    source=LIST, target=LIST, name="gives its state out",
)  # fmt: skip
cut_shows = StreamFunction(
    frozenset, lambda p, a: frozenset(a[:1]) if a else frozenset(), source=LIST, target=SET,
    name="first of a batch",
)  # fmt: skip


class Forgetful(type(_adder)):  # type: ignore[misc]
    """Encodes only the first two bits."""

    def encode(self, change: Any) -> Any:
        return super().encode(change[:2])


forgetful: Representation = Forgetful(full_adder(), [0, 1])


class Doubling(Operator[int, int, int, int]):
    """Right; those below each get one thing wrong."""

    input = output = NUMBER

    def f(self, x: int) -> int:
        return 2 * x

    def init(self, x: int) -> Any:
        return x

    def step(self, state: Any, change: int) -> tuple[Any, int]:
        return state + change, 2 * change


class WrongInit(Doubling):
    def init(self, x: int) -> Any:
        return 0

    def invariant(self, x: int, state: Any) -> bool:
        return bool(state == x)


class Picky(Doubling):
    def accepts(self, state: Any, change: int) -> bool:
        return state < 3


class Outside(Doubling):
    def __init__(self) -> None:
        self.calls = 0

    def step(self, state: Any, change: int) -> tuple[Any, int]:
        self.calls += 1
        return state + change, 2 * change + (self.calls > 5)


class OneStateForAll(Doubling):
    shared: list[int] = []

    def init(self, x: int) -> Any:
        self.shared[:] = [x]
        return self.shared

    def invariant(self, x: int, state: Any) -> bool:
        return True

    def f(self, x: int) -> int:
        return x * x

    def step(self, state: Any, change: int) -> tuple[Any, int]:
        state[0] += change
        return state, state[0] ** 2 - (state[0] - change) ** 2


class Halved(Doubling):
    def step(self, state: Any, change: int) -> tuple[Any, int]:
        return state + change, change


class Negative(Doubling):
    output = NATURAL

    def f(self, x: int) -> int:
        return abs(x)

    def step(self, state: Any, change: int) -> tuple[Any, int]:
        return state + change, abs(state + change) - abs(state) if change % 2 else -100


class Stale(Doubling):
    def step(self, state: Any, change: int) -> tuple[Any, int]:
        return state, 2 * change


class EveryChange(Doubling):
    """Counts changes, also those that change nothing."""

    def step(self, state: Any, change: int) -> tuple[Any, int]:
        return state + 1, 2 * change + (state == 4)


first_come = elementwise(
    lambda first, x: (x if first is None else first, frozenset() if first else frozenset({x})),
    source=SET, target=SET, name="first come",
)  # fmt: skip
counted_again = elementwise(lambda n, x: (n + 1, n + 1), state=0, source=SET, target=MAX)
in_pairs = elementwise(lambda s, row, weight: (s, weight // 2), source=ZSETS, target=ADD)
ticks = elementwise(
    lambda n, x: (n, 0), state=0, source=ticked(SET), target=ADD, tick=lambda n: (n + 1, 1)
)

# law -> what breaks it, and what to draw from
ONE_BY_ONE: dict[str, tuple[Any, Any]] = {
    "ZERO_RIGHT": (right_zero_only, None),
    "BASIS": (wrong_basis, None),
    "LEFT_LINEAR": (lopsided, None),
    "RIGHT_LINEAR": (lopsided, None),
    "INVERSE_RIGHT": (no_inverse, None),
    "SAME_TWICE": (random_length, None),
    "ARGUMENT_KEPT": (emptied, None),
    "REFLEXIVE": (strictly, None),
    "TRANSITIVE": (near, None),
    "SMALLER_FIRST": (upside_down, None),
    "LEAST_UPPER": (joined_too_high, None),
    "MOBIUS_INVERTS": (no_inversion, None),
    "NOTHING": (restless, None),
    "DIFF_VALID": (unlikely, None),
    "COMPRESS_SHORTENS": (growing, None),
    "UNDISTURBED": (shared, None),
    "OUTPUT_KEPT": (stateful_output, None),
    "CUT_STATE": (per_batch, None),
    "BATCHING": (per_batch, None),
    "UPDATE_EMPTY": (StreamFunction(
        frozenset, lambda p, a: frozenset(p) | frozenset(a), source=LIST, target=SET), None),
    "UPDATE_CUT": (cut_shows, None),
    "ANY_ORDER": (first_come, None),
    "AGAIN": (counted_again, None),
    "WEIGHTS_ADD": (in_pairs, None),
    "ONE_TICK": (ticks, None),
    "STEPS_COMMUTE": (commuting(integral(ADD)), None),
    "ENCODES": (forgetful, BITS),
    "INIT": (WrongInit(), None),
    "ACCEPTS": (Picky(), None),
    "RUNS_ALIKE": (Outside(), None),
    "RUNS_APART": (OneStateForAll(), None),
    "FROM_SCRATCH": (Halved(), None),
    "CUT_CHANGES": (EveryChange(), None),
    "OUTPUT_VALID": (Negative(), None),
    "STEP": (Stale(), None),
}  # fmt: skip

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
