"""The laws of algebra: monoids, homomorphisms, partial orders, and change structures."""

from __future__ import annotations

from typing import Any

from ebbflow.algebra import Homomorphism, Monoid
from ebbflow.algebra.order import Order
from ebbflow.change import ChangeStructure
from ebbflow.errors import ChangeError
from ebbflow.laws.law import Law, fresh, own
from ebbflow.laws.moves import of_target

# ---- monoids ----

A, AB, ABC = {"a": "element"}, dict.fromkeys("ab", "element"), dict.fromkeys("abc", "element")


def _untouched(m: Monoid[Any], a: Any, b: Any) -> tuple[Any, Any]:
    before = fresh(a), fresh(b)
    m.combine(a, b)
    return own(m)(a, before[0]) and own(m)(b, before[1]), True


def _is_sum(m: Monoid[Any], a: Any, b: Any) -> tuple[Any, Any]:
    assert m.basis is not None
    total = dict(m.basis.parts(a))
    for generator, count in m.basis.parts(b).items():
        total[generator] = 1 if m.idempotent else total.get(generator, 0) + count
    return m.basis.build({g: n for g, n in total.items() if n}), m.combine(a, b)


ZERO_LEFT = Law(
    "ZERO_LEFT", "zero in front changes nothing", "zero · a == a", A,
    lambda m, a: (m.combine(m.zero, a), a),
    "give the monoid a zero that combine leaves alone", own,
)  # fmt: skip
ZERO_RIGHT = Law(
    "ZERO_RIGHT", "zero behind changes nothing", "a · zero == a", A,
    lambda m, a: (m.combine(a, m.zero), a),
    "give the monoid a zero that combine leaves alone", own,
)  # fmt: skip
ASSOCIATIVE = Law(
    "ASSOCIATIVE", "it matters which neighbours are combined first",
    "(a · b) · c == a · (b · c)", ABC,
    lambda m, a, b, c: (m.combine(m.combine(a, b), c), m.combine(a, m.combine(b, c))),
    "without it a stream cannot be batched; keep what combine loses (a mean needs its count), "
    "or pass equal= if the sides differ only by rounding", own,
)  # fmt: skip
ARGUMENTS_KEPT = Law(
    "ARGUMENTS_KEPT", "combine changes its arguments", "a and b after a · b are a and b", AB,
    _untouched, "build a new element in combine instead of changing one that was given",
)  # fmt: skip
COMMUTATIVE = Law(
    "COMMUTATIVE", "it is declared commutative, but the order matters", "a · b == b · a", AB,
    lambda m, a, b: (m.combine(a, b), m.combine(b, a)),
    "declare commutative=False, or make combine ignore the order", own,
)  # fmt: skip
IDEMPOTENT = Law(
    "IDEMPOTENT", "it is declared idempotent, but twice is not once", "a · a == a", A,
    lambda m, a: (m.combine(a, a), a), "declare idempotent=False", own,
)  # fmt: skip
INVERSE_LEFT = Law(
    "INVERSE_LEFT", "negate in front does not undo", "negate(a) · a == zero", A,
    lambda m, a: (m.combine(m.negate(a), a), m.zero),
    "mend negate, or leave it out: then it is a monoid, not a group", own,
)  # fmt: skip
INVERSE_RIGHT = Law(
    "INVERSE_RIGHT", "negate behind does not undo", "a · negate(a) == zero", A,
    lambda m, a: (m.combine(a, m.negate(a)), m.zero),
    "mend negate, or leave it out: then it is a monoid, not a group", own,
)  # fmt: skip
NEGATE_CLOSED = Law(
    "NEGATE_CLOSED", "negate gives what is no element", "zero · negate(a) == negate(a)", A,
    lambda m, a: (m.combine(m.zero, m.negate(a)), m.negate(a)),
    "give negate(a) in the form that combine gives: canonical, within bounds", own,
)  # fmt: skip
CANCEL = Law(
    "CANCEL", "cancel does not take the front off", "cancel(a, a · b) == b", AB,
    lambda m, a, b: (m.cancel(a, m.combine(a, b)), b), "mend cancel, or leave it out", own,
)  # fmt: skip
BASIS = Law(
    "BASIS", "its basis does not add up", "build(parts(a) + parts(b)) == a · b", AB, _is_sum,
    "parts(a) must list every generator of a with its count, and build must undo it", own,
)  # fmt: skip
LEFT_LINEAR = Law(
    "LEFT_LINEAR", "⊗ is not linear on the left", "(a + b) ⊗ n == a ⊗ n + b ⊗ n",
    {"a": "left", "b": "left", "n": "right"},
    lambda t, a, b, n: (
        t.of(t.left.combine(a, b), n), t.monoid.combine(t.of(a, n), t.of(b, n)),
    ),
)  # fmt: skip
RIGHT_LINEAR = Law(
    "RIGHT_LINEAR", "⊗ is not linear on the right", "m ⊗ (a + b) == m ⊗ a + m ⊗ b",
    {"m": "left", "a": "right", "b": "right"},
    lambda t, m, a, b: (
        t.of(m, t.right.combine(a, b)), t.monoid.combine(t.of(m, a), t.of(m, b)),
    ),
)  # fmt: skip


def monoid_laws(m: Monoid[Any]) -> list[Law]:
    """The laws that a monoid owes, by what it declares."""
    laws = [ZERO_LEFT, ZERO_RIGHT, ASSOCIATIVE, ARGUMENTS_KEPT]
    laws += [COMMUTATIVE] * m.commutative + [IDEMPOTENT] * m.idempotent
    laws += [INVERSE_LEFT, INVERSE_RIGHT, NEGATE_CLOSED] * m.is_group
    return laws + [CANCEL] * m.is_left_cancellative + [BASIS] * (m.basis is not None)


TENSOR = [LEFT_LINEAR, RIGHT_LINEAR]

# ---- homomorphisms ----


def _after_call(f: Homomorphism[Any, Any], a: Any) -> bool:
    before = fresh(a)
    f(a)
    return own(f.source)(a, before)


SAME_TWICE = Law(
    "SAME_TWICE", "it gives different answers for the same input", "f(a) == f(a)", A,
    lambda f, a: (f(fresh(a)), f(fresh(a))),
    "take out what is random or remembered between calls", of_target,
)  # fmt: skip
ARGUMENT_KEPT = Law(
    "ARGUMENT_KEPT", "it changes its argument", "a after f(a) is a", A,
    lambda f, a: (_after_call(f, a), True), "copy the element before changing it",
)  # fmt: skip
KEEPS_ZERO = Law(
    "KEEPS_ZERO", "it makes something of nothing", "f(zero) == zero", {},
    lambda f: (f(f.source.zero), f.target.zero),
    "give zero for zero: say in a processor's `output` what is there before any input", of_target,
)  # fmt: skip
KEEPS_COMBINE = Law(
    "KEEPS_COMBINE", "it is not a homomorphism: the cut shows", "f(a · b) == f(a) · f(b)", AB,
    lambda f, a, b: (f(f.source.combine(a, b)), f.target.combine(f(a), f(b))),
    "what depends on more than one piece needs a state: write a processor, not a pure function",
    of_target,
)  # fmt: skip

HOMOMORPHISM = [SAME_TWICE, ARGUMENT_KEPT, KEEPS_ZERO, KEEPS_COMBINE]

# ---- partial orders ----

REFLEXIVE = Law(
    "REFLEXIVE", "a version is not below itself", "a <= a", {"a": "version"},
    lambda order, a: (order.leq(a, a), True),
)  # fmt: skip
ANTISYMMETRIC = Law(
    "ANTISYMMETRIC", "two versions are each below the other", "a <= b <= a only when a == b",
    dict.fromkeys("ab", "version"),
    lambda order, a, b: (order.leq(a, b) and order.leq(b, a), a == b),
)  # fmt: skip
TRANSITIVE = Law(
    "TRANSITIVE", "below does not carry on", "a <= b <= c implies a <= c",
    dict.fromkeys("abc", "version"),
    lambda order, a, b, c: (
        not (order.leq(a, b) and order.leq(b, c)) or order.leq(a, c), True,
    ),
)  # fmt: skip
BELOW = Law(
    "BELOW", "below(t) is not the list of versions <= t",
    "a in below(b) exactly when a <= b, each once", dict.fromkeys("ab", "version"),
    lambda order, a, b: (list(order.below(b)).count(a), int(order.leq(a, b))),
    "below(t) must list every version <= t, including t, once",
)  # fmt: skip
SMALLER_FIRST = Law(
    "SMALLER_FIRST", "below(t) lists a version before one that is below it",
    "below(t) is in order", {"t": "version"},
    lambda order, t: (_out_of_order(order, t), None), "list smaller versions first",
)  # fmt: skip
LEAST_UPPER = Law(
    "LEAST_UPPER", "join(a, b) is not the least version above both",
    "join(a, b) <= c exactly when a <= c and b <= c", dict.fromkeys("abc", "version"),
    lambda order, a, b, c: (
        (order.join(a, b) is None) or order.leq(order.join(a, b), c) ==
        (order.leq(a, c) and order.leq(b, c)), True,
    ),
)  # fmt: skip
MOBIUS_INVERTS = Law(
    "MOBIUS_INVERTS", "the Möbius coefficients do not invert summation",
    "Σ μ(a, r) for a <= r <= b  ==  1 if a == b else 0", dict.fromkeys("ab", "version"),
    lambda order, a, b: (
        sum(order.mobius(a, r) for r in order.below(b) if order.leq(a, r)), int(a == b),
    ),
)  # fmt: skip


def _out_of_order(order: Order[Any], t: Any) -> Any:
    listed = list(order.below(t))
    return next(
        ((a, b) for i, a in enumerate(listed) for b in listed[i + 1 :] if order.leq(b, a)), None
    )


ORDER = [
    REFLEXIVE, ANTISYMMETRIC, TRANSITIVE, BELOW, SMALLER_FIRST, LEAST_UPPER, MOBIUS_INVERTS,
]  # fmt: skip


# ---- change structures ----

VALUE_AND_CHANGE = {"value": "value", "change": "any change"}
VALUE_AND_CHANGES = {"value": "value", "changes": "changes"}


def _patches(structure: Any, value: Any, change: Any) -> bool:
    try:
        structure.patch(value, change)
    except ChangeError:
        return False
    return True


def _value_kept(structure: Any, value: Any, change: Any) -> tuple[Any, Any]:
    before = fresh(value)
    if structure.valid(change, value):
        structure.patch(value, change)
    return value, before


VALIDITY = Law(
    "VALIDITY", "valid and patch disagree", "patch raises ChangeError exactly when not valid",
    VALUE_AND_CHANGE, lambda s, value, change: (_patches(s, value, change), s.valid(change, value)),
    "say in `valid` for which values the change makes sense; patch asks it",
)  # fmt: skip
VALUE_KEPT = Law(
    "VALUE_KEPT", "patch changes the value it was given", "value after patch is value",
    VALUE_AND_CHANGE, _value_kept, "build a new value in `apply`",
)  # fmt: skip
NOTHING = Law(
    "NOTHING", "`nothing` does something", "patch(value, nothing) == value", {"value": "value"},
    lambda s, value: (s.patch(value, s.nothing), value),
)  # fmt: skip
DIFF_VALID = Law(
    "DIFF_VALID", "diff gives a change that is not valid", "valid(diff(new, old), old)",
    {"new": "value", "old": "value"},
    lambda s, new, old: (s.valid(s.diff(new, old), old), True),
    "give the change from old to new, in this order",
)  # fmt: skip
DIFF_PATCHES = Law(
    "DIFF_PATCHES", "the difference does not patch back", "patch(old, diff(new, old)) == new",
    {"new": "value", "old": "value"},
    lambda s, new, old: (s.patch(old, s.diff(new, old)), new),
    "give the change from old to new, in this order",
)  # fmt: skip
COMPRESS = Law(
    "COMPRESS", "compressed changes are not equivalent",
    "patch_all(value, compress(changes)) == patch_all(value, changes)", VALUE_AND_CHANGES,
    lambda s, value, changes: (
        s.patch_all(value, s.compress(changes)), s.patch_all(value, changes),
    ),
    "compose(first, second) must give changes that do the same as first and then second",
)  # fmt: skip
COMPRESS_SHORTENS = Law(
    "COMPRESS_SHORTENS", "compressing makes a sequence longer",
    "len(compress(changes)) <= len(changes)", VALUE_AND_CHANGES,
    lambda s, value, changes: (len(s.compress(changes)) <= len(changes), True),
)  # fmt: skip


def change_laws(structure: ChangeStructure[Any, Any]) -> list[Law]:
    """The laws that a change structure owes: two more where it has a `diff`."""
    laws = [VALIDITY, VALUE_KEPT, COMPRESS, COMPRESS_SHORTENS]
    laws += [NOTHING] * structure.has_nothing
    return laws + [DIFF_VALID, DIFF_PATCHES] * structure.has_diff
