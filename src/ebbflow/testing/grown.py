"""The collections of a generated program: what a verb is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ebbflow.testing.functions import Choices, RowShape


@dataclass(frozen=True)
class Grown:
    """A collection of a generated program, with what the generator knows of it."""

    rows: Any
    shape: RowShape
    bag: bool = True
    degree: int = 1

    @property
    def type(self) -> Any:
        """The type of its rows."""
        return self.rows.node.type

    def then(self, rows: Any, dtypes: Sequence[str] | None = None, **facts: Any) -> Grown:
        """The collection that was made of this one: `rows` of the same shape, or of parts of these
        dtypes."""
        whole = facts.pop("whole", self.shape.whole if dtypes is None else False)
        dtypes = self.shape.dtypes if dtypes is None else tuple(dtypes)
        shape = RowShape(dtypes, whole=True) if whole else RowShape.of(dtypes, rows.node.type)
        return Grown(rows, shape, **{"bag": self.bag, "degree": self.degree, **facts})


MOST = 3
Pool = list[Grown]
Verb = Callable[[Pool, Choices], "Grown | None"]


def one(pool: Pool, choices: Choices, fits: Callable[[Grown], object] = bool) -> Grown | None:
    """One of the collections that fit, the newest first and most often; None when none does."""
    found = [each for each in reversed(pool) if fits(each)]
    return choices.pick([*found[:1] * 2, *found[1:]]) if found else None


def two(pool: Pool, choices: Choices) -> tuple[Grown, Grown] | None:
    """Two collections to be multiplied, whose result stays small."""
    left = one(pool, choices, lambda each: each.degree < MOST)
    if left is None:
        return None
    right = one(pool, choices, lambda each: left.degree + each.degree <= MOST)
    return None if right is None else (left, right)


def chosen(left: Grown, right: Grown, how: str, choices: Choices) -> tuple[str, list[str]]:
    """What `select=` makes of two rows, one of which may be None."""
    ours, theirs = left.shape.number(choices, "l"), right.shape.number(choices, "r")
    dtypes = ["int", "int"]
    if how in ("right", "full"):
        ours, dtypes[0] = f"None if l is None else {ours}", "maybe"
    if how in ("left", "full"):
        theirs, dtypes[1] = f"None if r is None else {theirs}", "maybe"
    return f"({ours}, {theirs})", dtypes
