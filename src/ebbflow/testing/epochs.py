"""Random changes that are valid for the inputs of a program.

An *epoch* is what happens at once: for some inputs, a Z-set of rows that come and go. Epochs follow
each other, so what may be taken away depends on what has come before. They are made from *edits*,
each of which always means something: add a row, take one of those that are there, put another in
its place, repeat it. Any list of edits gives valid epochs, and a shorter list simpler ones.

Rows have few different values, so that keys meet and rows repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from types import UnionType
from typing import Annotated, Any, NewType, Union, get_args, get_origin

from ebbflow.errors import CheckError, install
from ebbflow.flow.plan import Plan, Source
from ebbflow.flow.plan.time import ClockSource
from ebbflow.flow.program import Program
from ebbflow.record import fields_of, type_text
from ebbflow.testing.functions import Choices, Serial, dtype_of
from ebbflow.zset import ZSet

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:  # pragma: no cover
    raise CheckError("random changes need Hypothesis", remedy=install("laws")) from error

Epoch = dict[str, ZSet[Any]]
Rows = Callable[[int], Any]
Edit = tuple[int, int]  # what to do to which input, and with which row

NUMBERS = 1 << 20
POOL = 10
WHAT = ("add", "remove", "add", "replace", "add", "repeat", "add", "remove all")
TIMES = (1, 1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 20)
VALUES: dict[Any, tuple[Any, ...]] = {
    int: (0, 1, 2, 0, 1, 3, -1),  # a value that is there twice comes twice as often
    str: ("a", "b", "a", "ab", ""),
    bool: (False, True),
    float: (0.0, 0.5, 1.5, -1.0, 2.0**53, -0.0, 0.1, math.inf, -math.inf, math.nan),
    Serial: (1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
    datetime: tuple(datetime(2024, 3, 31, h, m) for h, m in ((0, 30), (2, 30), (12, 0), (23, 59))),
    Decimal: (Decimal("1.50"), Decimal("-0.01"), Decimal("1.5"), Decimal("99999999.99")),
    type(None): (None,),
}
ROME = timezone(timedelta(hours=2))
ZONED = (
    datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
    datetime(2024, 3, 31, 4, 30, tzinfo=ROME),  # the same instant
    datetime(2024, 3, 31, 12, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
)


def values_of(hint: Any) -> tuple[Any, ...] | None:
    """Some values of a type, the simplest first; None when none are known.

    >>> values_of(str | None)
    (None, 'a', 'b', 'a', 'ab', '')
    """
    if hint is None or hint in VALUES:
        return VALUES[type(None) if hint is None else hint]
    if get_origin(hint) is Annotated:
        return ZONED if dtype_of(hint) == "zoned" else values_of(get_args(hint)[0])
    if isinstance(hint, NewType):
        return values_of(hint.__supertype__)
    if get_origin(hint) in (Union, UnionType):
        parts = [values_of(part) for part in get_args(hint)]
        if None not in parts:
            every = [x for part in parts for x in part or ()]
            return tuple(sorted(every, key=lambda x: x is not None))
    return None


def row_maker(node: Source) -> Callable[[int], Any]:
    """The rows of an input by number, the simplest first.

    >>> row = row_maker(Source(name="words", type=str))
    >>> row(0), row(1), row(5)
    ('a', 'b', 'a')
    """
    fields = fields_of(node.type)
    if node.type is Any:
        return _rows(lambda *parts: parts, [VALUES[int], VALUES[str]])
    hints = {"": node.type} if fields is None else fields
    found = {name: values_of(hint) for name, hint in hints.items()}
    for name, values in found.items():
        if values is None:
            raise CheckError(
                f"no rows are known for input {node.name!r}",
                field=name or "the row",
                type=type_text(hints[name]),
                remedy=f"rows={{{node.name!r}: ...}}, where rows of it come from",
            )
    make = node.type if fields is not None else lambda part: part
    return _rows(make, [values or () for values in found.values()])


def _rows(make: Callable[..., Any], parts: list[tuple[Any, ...]]) -> Callable[[int], Any]:
    def row(number: int) -> Any:
        choices = Choices(number)
        return make(*[choices.pick(values) for values in parts])

    return row


# ---- edits to epochs ----


class _Inputs:
    """The inputs so far, to find what can be taken away."""

    def __init__(self, sources: Mapping[str, Source], rows: Mapping[str, Rows]) -> None:
        self.sources = sources
        self.rows = rows
        self.names = tuple(sources)
        self.there: dict[str, dict[Any, int]] = {name: {} for name in sources}

    def epoch(self, edits: Iterable[Edit]) -> Epoch:
        """What the edits do together, in their order."""
        change: dict[str, list[tuple[Any, int]]] = {}
        for number, row in edits if self.names else ():
            choices = Choices(number)
            what, name = choices.pick(WHAT), choices.pick(self.names)
            pairs = change.setdefault(name, [])
            for each, weight in self._meant(what, name, self.rows[name](row), choices):
                rows = self.there[name]
                rows[each] = rows.get(each, 0) + weight
                if not rows[each]:
                    del rows[each]
                pairs.append((each, weight))
        return {name: ZSet(pairs) for name, pairs in change.items()}

    def _alike(self, name: str) -> list[Any]:
        """The rows of all inputs of the same type, those of this one first."""
        hint = self.sources[name].type
        others = [each for each, node in self.sources.items() if node.type == hint]
        return [row for each in dict.fromkeys((name, *others)) for row in self.there[each]]

    def _meant(self, what: str, name: str, row: Any, choices: Choices) -> list[tuple[Any, int]]:
        rows, key, times = self.there[name], self.sources[name].key, choices.pick(TIMES)
        old = choices.pick([*rows][::-1]) if rows else None
        if isinstance(self.sources[name], ClockSource):
            ahead = old is None or row.now > old.now
            return [(row, 1), *([(old, -1)] if rows else [])] if ahead else []
        if key is not None:
            if what in ("remove", "remove all"):
                return [(old, -1)] if rows else []
            same = [(each, -1) for each in rows if key(each) == key(row)]
            return [*same, (row, 1)]
        if what == "add" or not rows:
            return [(row, times)]
        if what == "remove":
            return [(old, -min(times, rows[old]))]
        if what == "remove all":
            return [(old, -rows[old])]
        if what == "repeat":
            return [(choices.pick(self._alike(name)), times)]
        return choices.pick(([(old, -1), (row, 1)], [(row, 1), (old, -1)]))


def plan_of(program: Any) -> Plan:
    """The plan of a program, of a collection, or a plan itself.

    >>> from ebbflow.flow.source import Input
    >>> list(plan_of(Input("words", str)).outputs)
    ['output']
    """
    if isinstance(program, Plan):
        return program
    return program.plan if isinstance(program, Program) else Plan({"output": program.node})


def changes(
    program: Any,
    *,
    steps: int = 6,
    size: int = 6,
    rows: Mapping[str, SearchStrategy[Any]] | None = None,
) -> SearchStrategy[list[Epoch]]:
    """A Hypothesis strategy of at most `steps` epochs of at most `size` edits each.

    Each epoch is a dict from input names to changes, valid for what the inputs are by then: rows
    come, come again, go, or are replaced, in several inputs at once; now and then nothing happens.
    An input with a key never has two rows of one key. `rows` are strategies for the rows of some
    inputs; they are needed where the type of an input does not tell its rows.

    >>> from hypothesis import find, settings
    >>> from ebbflow.flow.source import Input
    >>> def changed(epochs): return any(epoch.get("words") for epoch in epochs)
    >>> find(changes(Input("words", str)), changed, settings=settings(database=None))
    [{'words': ZSet({'a': 1})}]
    """
    sources, given = plan_of(program).sources, rows or {}
    known = {name: row_maker(node) for name, node in sources.items() if name not in given}
    number = st.integers(0, NUMBERS - 1)
    edit = st.tuples(number, number)
    every = st.lists(st.lists(edit, max_size=size), max_size=steps)
    pools = st.fixed_dictionaries(
        {name: st.lists(each, min_size=1, max_size=POOL) for name, each in given.items()}
    )

    def epochs(pools: Mapping[str, Sequence[Any]], edits: list[list[Edit]]) -> list[Epoch]:
        inputs = _Inputs(sources, {**known, **{name: _picked(pools[name]) for name in pools}})
        return [inputs.epoch(each) for each in edits]

    return st.builds(epochs, pools, every)


def _picked(pool: Sequence[Any]) -> Rows:
    return lambda number: pool[number % len(pool)]


def random_epochs(
    program: Any,
    seed: int | Random,
    n: int,
    *,
    size: int = 6,
    rows: Mapping[str, Callable[[Random], Any]] | None = None,
) -> list[Epoch]:
    """`n` epochs of up to `size` edits from a seed, without Hypothesis.

    >>> from ebbflow.flow.source import Input
    >>> random_epochs(Input("words", str), 1, 3) == random_epochs(Input("words", str), 1, 3)
    True
    """
    dice = seed if isinstance(seed, Random) else Random(seed)
    sources, given = plan_of(program).sources, rows or {}
    made = {name: row_maker(node) for name, node in sources.items() if name not in given}
    made |= {name: _picked([each(dice) for _ in range(POOL)]) for name, each in given.items()}
    inputs = _Inputs(sources, made)

    def edit() -> Edit:
        return dice.randrange(NUMBERS), dice.randrange(NUMBERS)

    return [inputs.epoch([edit() for _ in range(dice.randint(0, size))]) for _ in range(n)]
