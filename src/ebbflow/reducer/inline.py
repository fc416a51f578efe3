"""Steps of reducers as text, to be put into a loop instead of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ebbflow.codegen import GeneratedLoop


class Inline(NamedTuple):
    """How a reducer's step and result are written, and the functions that the text names.

    Inside the loop an accumulator is spread over variables, `slots` being their values for no rows.
    In the text `{0}`, `{1}`, … are these variables, `{x}` is the part of the row that the reducer
    looks at (`of`), `{n}` how often the row comes, or goes when negative, and `{size}` the number
    of rows of the group. `pack(size, slots)` is the accumulator, `unpack(acc)` the slots.

    `merge` is how an accumulator of other rows is added, `{m0}`, `{m1}`, … being its slots.

    `sql` is what a database can compute of whole numbers: "count" when the slots are how many
    values there are, or nothing for how many rows, and "sum" when they are that and their sum.

    The reducer must be a group: whatever comes and goes, in whatever order, only the sum counts.

    >>> votes = Inline(None, (0,), ("{0} += {n}",), "{0}")
    >>> votes.text(GeneratedLoop("f", ""), "{0} += {n}", ["a"], n="n")
    'a += n'
    >>> votes.pack(5, (3,)), votes.unpack(3)
    (3, (3,))
    """

    of: Any
    slots: tuple[Any, ...]
    step: tuple[str, ...]
    result: str
    names: tuple[tuple[str, Any], ...] = ()
    pack: Callable[[int, tuple[Any, ...]], Any] = lambda size, slots: slots[0]
    unpack: Callable[[Any], tuple[Any, ...]] = lambda acc: (acc,)
    merge: tuple[str, ...] = ()
    sql: str = ""

    @property
    def can_merge(self) -> bool:
        """Whether an accumulator of other rows can be added."""
        return bool(self.merge) or not self.slots

    def text(self, loop: GeneratedLoop, template: str, slots: list[str], **holes: str) -> str:
        """The template with its holes filled."""
        names = {name: loop.bind(f) for name, f in self.names}
        return template.format(*slots, **holes, **names)
