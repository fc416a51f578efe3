"""Any function as an operator: patch the input, compute again, and take the difference.

Not every function has a clever step. Whatever has a difference of any two of its results can be
kept up to date all the same, at the cost of computing it again from the whole input for each change
of it. With a key, the whole input is the rows of one key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.algebra.value import function_name
from ebbflow.change import BAG, REPLACE, ChangeStructure
from ebbflow.errors import CompositionError, place
from ebbflow.operator.operator import DX, DY, OfFunction, Operator, X, Y


class Again(OfFunction[X, DX, Y, DY]):
    """A function that is computed again for each change; its state is its input and its output. See
    `of`."""

    def init(self, x: X) -> tuple[X, Y]:
        return x, self._f(x)

    def step(self, state: Any, change: DX) -> tuple[Any, DY]:
        x, y = state
        x = self.input.patch(x, change)
        new = self._f(x)
        return (x, new), self.output.diff(new, y)

    def accepts(self, state: Any, change: DX) -> bool:
        return self.input.valid(change, state[0])

    @property
    def recomputes(self) -> bool:
        return True

    def recalled(self, state: Any) -> Any:
        return state[1]

    def __repr__(self) -> str:
        return self.name or f"of({function_name(self._f)}, {self.input!r}, {self.output!r})"


def of(
    f: Callable[[X], Y],
    before: ChangeStructure[X, DX] = BAG,  # type: ignore[assignment]
    after: ChangeStructure[Y, DY] = REPLACE,  # type: ignore[assignment]
    *,
    name: str = "",
) -> Operator[X, DX, Y, DY]:
    """Any function as an operator: for each change it is computed again, from the whole input.

    `before` and `after` are the change structures of its argument and of its result. The latter
    needs a difference; `REPLACE` has one for values of every kind. Give equal results for equal
    inputs: the difference is taken from the result before.

    >>> from ebbflow.change import NATURAL
    >>> from ebbflow.zset import ZSet
    >>> def longest(words):
    ...     return max(map(len, words), default=0)
    >>> live = of(longest, BAG, NATURAL).open(ZSet.of(["fig", "pear"]))
    >>> live.send(ZSet({"pear": -1}))
    -1
    """
    named = name or function_name(f)
    if not callable(f) or isinstance(f, Operator):
        raise CompositionError(
            f"of({named}): that is no function of a value",
            created=place(),
            remedy="a function; an operator is one already",
        )
    for structure in (before, after):
        if not isinstance(structure, ChangeStructure):
            raise CompositionError(
                f"of({named}, ...): {structure!r} is no change structure",
                created=place(),
                remedy="one of ebbflow.change for the argument, and one for the result",
            )
    if not after.has_diff:
        raise CompositionError(
            f"of({named}, ..., {after!r}): {after!r} has no difference of any two results",
            created=place(),
            remedy=f"sequence({after!r})" if after.has_edits else "REPLACE, or NUMBER, BAG, ...",
        )
    return Again(f, before, after, name)
