"""Laws as values: a name, an equation, how to test it, what it means, and what to do when it is
broken.

A law speaks about a *thing* (a monoid, a processor, ...) and some *variables*, each of a kind that
the thing can provide (an element, a value, a change, ...). Its two sides are computed for a *case*,
which gives every variable a value; the law holds for the case when the sides are equal.

    >>> from ebbflow.algebra import ADD
    >>> from ebbflow.laws import COMMUTATIVE
    >>> COMMUTATIVE.test(ADD, a=1, b=2)
    >>> COMMUTATIVE.holds(ADD, a=1, b=2)
    True
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ebbflow.errors import CheckError, LawBroken, Text, canonical, shown
from ebbflow.notebook import Preformatted
from ebbflow.zset import ZSet

Equal = Callable[[Any, Any], bool]
RAISED = "mend what raises here, or pass elements= with the inputs that can occur"


def exactly(_: Any) -> Equal:
    """The equality of laws whose sides are ordinary values: `==`, and NaN is NaN."""
    return alike


def own(thing: Any) -> Equal:
    """The equality that a thing brings; where that is `==`, NaN is NaN."""
    return alike if thing.equal is operator.eq else thing.equal


def simplest(value: Any) -> tuple[int, str]:
    """A key that orders values by how short their text is."""
    text = canonical(value)
    return len(text), text


def alike(a: Any, b: Any) -> bool:
    """Equal, where NaN is NaN, also inside tuples, lists, dicts and sets.

    >>> nan = float("nan")
    >>> alike((nan, [1]), (float("nan"), [1])), alike(nan, 1.0), alike({"a": nan}, {"b": nan})
    (True, False, False)
    """
    if a is b or bool(a == b):
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(alike(value, b[key]) for key, value in a.items())
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(alike(x, y) for y in b - a) for x in a - b)
    return isinstance(a, (float, complex, Decimal)) and bool(a != a) and bool(b != b)


@dataclass(frozen=True)
class Law:
    """An equation that a thing owes.

    >>> law = Law("EVEN", "every element is even", "n % 2 == 0", {"n": "element"},
    ...           sides=lambda thing, n: (n % 2, 0))
    >>> law.holds(None, n=4), law.holds(None, n=3)
    (True, False)
    """

    name: str
    sentence: str
    equation: str
    variables: Mapping[str, str]
    sides: Callable[..., tuple[Any, Any]]
    remedy: str = ""
    equality: Callable[[Any], Equal] = field(default=exactly, repr=False)

    def __post_init__(self) -> None:
        if taken := {"thing", "equal"} & self.variables.keys():
            raise CheckError(f"{self.name}: a variable cannot be called {taken.pop()!r}")

    def test(self, thing: Any, *, equal: Equal | None = None, **case: Any) -> None:
        """Raise `LawBroken` when the law does not hold for this case."""
        left, right, same = self._compare(thing, equal, case)
        if not same:
            raise self._broken(thing, case, left, right)

    def holds(self, thing: Any, *, equal: Equal | None = None, **case: Any) -> bool:
        """Whether the law holds for this case."""
        return self._compare(thing, equal, case)[2]

    def __repr__(self) -> str:
        return f"<law {self.name}: {self.equation}>"

    def _compare(
        self, thing: Any, equal: Equal | None, case: Mapping[str, Any]
    ) -> tuple[Any, Any, bool]:
        try:
            left, right = self.sides(thing, **{name: fresh(value) for name, value in case.items()})
            said_yes_or_no = type(left) is bool and type(right) is bool
            same = self.equality(thing) if equal is None or said_yes_or_no else equal
            return left, right, bool(same(left, right))
        except Exception as error:
            raised = Text(f"raised {type(error).__name__}: {error}".replace("\n", "\n" + " " * 15))
            return raised, Text("nothing raised"), False

    def _broken(self, thing: Any, case: Mapping[str, Any], left: Any, right: Any) -> LawBroken:
        created = getattr(thing, "created", None)
        arguments = "".join(f", {name}={canonical(value)}" for name, value in case.items())
        facts = {
            "law": Text(f"{self.name}: {self.equation}"),
            **case,
            "left side": left,
            "right side": right,
            **({"created": created} if created else {}),
            "again": Text(f"{self.name}.test(thing{arguments})"),
        }
        what = f"{shown(thing, width=160)} breaks a law: {self.sentence}"
        broken = LawBroken(what, remedy=RAISED if isinstance(left, Text) else self.remedy)
        broken.facts = facts
        broken.law, broken.thing, broken.case = self, thing, dict(case)
        broken.left, broken.right = left, right
        return broken


ATOMS = {int, float, complex, bool, str, bytes, type(None), type(len), type(exactly), ZSet}


def fresh(value: Any) -> Any:
    """A copy of its own where the value could be changed."""
    return value if _frozen(value) else copy.deepcopy(value)


def _frozen(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_frozen, value))
    return type(value) in ATOMS


@dataclass(frozen=True)
class Report(Preformatted):
    """What a check found: the laws that were tried, on how many examples. All of them held."""

    thing: Any
    laws: Sequence[Law]
    examples: int

    def __str__(self) -> str:
        width = max((len(law.name) for law in self.laws), default=0)
        lines = [f"    {law.name:<{width}}  {law.equation}" for law in self.laws]
        head = f"{shown(self.thing, width=160)}: {len(self.laws)} laws hold"
        return "\n".join([f"{head}, each on up to {self.examples} examples", *lines])
