"""Steps of reducers as text, to be put into a loop instead of a call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ebbflow.algebra.monoid import Composed
from ebbflow.codegen import GeneratedLoop
from ebbflow.nan import one_nan
from ebbflow.reducer.row import getter
from ebbflow.state.packed import unpacked


class PlacedPart(NamedTuple):
    """What is looked at is a pair: a place in an order, if there is one, and a part of the row."""

    by: Any
    part: Any


class Inline(NamedTuple):
    """How a reducer's step and result are written, and the functions that the text names.

    Inside the loop an accumulator is spread over variables, `slots` being their values for no rows.
    In the text `{0}`, `{1}`, … are these variables, `{x}` is the part of the row that the reducer
    looks at (`of`), `{n}` how often the row comes, or goes when negative, and `{size}` the number
    of rows of the group. `pack(size, slots)` is the accumulator, `unpack(acc)` the slots.

    `merge` is how an accumulator of other rows is added, `{m0}`, `{m1}`, … being its slots.

    Where order matters, or values are looked up, the values of a group are first put in a list
    `{seen}`, each with how often it comes or goes, and `close` is done once for each group.

    `when` are functions of the row, all of which have to hold, or the row is passed over.

    `sql` is what a database can compute of whole numbers: "count" when the slots are how many
    values there are, or nothing for how many rows, and "sum" when they are that and their sum.

    `stored(slots)` are as many values that have columns on disk, where the slots have none, and
    `restored` the slots again; None where slots are stored as they are.

    The reducer must be a group: whatever comes and goes, in whatever order, only the sum counts.
    With `close` it need not be.

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
    close: tuple[str, ...] = ()
    when: tuple[Any, ...] = ()
    stored: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
    restored: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None

    @property
    def can_merge(self) -> bool:
        """Whether an accumulator of other rows can be added."""
        return bool(self.merge) or not self.slots

    def where(self, predicate: Any) -> Inline:
        """The same of some rows only; a count of all rows has a slot of its own then."""
        some = self if self.slots else Inline(
            None, (0,), ("{0} += {n}",), "{0}", merge=("{0} += {m0}",), sql="count"
        )  # fmt: skip
        return some._replace(when=(*self.when, predicate))

    def on(self, of: Any) -> Inline | None:
        """The same of a part of each row; None where it looks at several parts itself."""
        if isinstance(self.of, PlacedPart):
            return None
        part = of if self.of is None else Composed(getter(of), getter(self.of))
        when = tuple([Composed(getter(of), getter(each)) for each in self.when])
        return self._replace(of=part, when=when)

    def then(self, f: Callable[[Any], Any]) -> Inline:
        """The same with `f` of the result."""
        name, names = f"then{len(self.names)}", {**dict(self.names), "one_nan": one_nan}
        return self._replace(
            result=f"{{one_nan}}({{{name}}}({self.result}))", names=(*names.items(), (name, f))
        )

    def text(self, loop: GeneratedLoop, template: str, slots: list[str], **holes: str) -> str:
        """The template with its holes filled."""
        names = {name: loop.bind(f) for name, f in self.names}
        return template.format(*slots, **holes, **names)


def called(
    of: Any, start: Any, plus: Callable[..., Any], merged: Callable[..., Any], shown: Any
) -> Inline:
    """A reducer whose steps are calls: `plus(acc, x, n)` for a value that is not None, and
    `merged(acc, other)`.

    >>> called("price", 0, max, max, str).slots
    (0,)
    """
    return Inline(
        of, (start,), ("if {x} is not None: {0} = {plus}({0}, {x}, {n})",),
        "{one_nan}({shown}({0}))",
        (("plus", plus), ("merged", merged), ("shown", shown), ("one_nan", one_nan)),
        merge=("{0} = {merged}({0}, {m0})",),
    )  # fmt: skip


def gathered(
    of: Any, start: Any, update: Callable[..., Any], shown: Any,
    unpack: Callable[[Any], Any] | None = None,
) -> Inline:  # fmt: skip
    """A reducer that takes all values of a change of a group at once: `update(acc, pairs)`. Those
    that are None, or have no place, are none. Where columns have stored the values as bytes
    (`ebbflow.state.packed`), `unpack(pairs)` is the accumulator.

    >>> gathered("price", 0, max, str).can_merge
    False
    """
    return Inline(
        of, (start,), ("if {placed} is not None: {seen}.append(({x}, {n}))",),
        "{0}" if shown is None else "{one_nan}({shown}({0}))",
        (("update", update), ("shown", shown), ("one_nan", one_nan)),
        close=("if {seen}: {0} = {update}({0}, {seen})",),
        restored=None if unpack is None else partial(_unpacked, unpack),
    )  # fmt: skip


def _unpacked(unpack: Callable[[Any], Any], slots: tuple[Any, ...]) -> tuple[Any, ...]:
    (stored,) = slots
    return (unpack(unpacked(stored)),) if type(stored) is bytes else slots
