"""Chains: steps on one row at a time, one after the other, in a single loop.

A step keeps some rows (`filter`), turns each into another (`map`), or into several (`flat_map`). A
chain of them is *linear*: what it does to a change does not depend on what is there. So neighbours
fuse into one loop, and that loop into the operator behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ebbflow.codegen import GeneratedLoop
from ebbflow.expression.kept import one_of
from ebbflow.fn import Fn
from ebbflow.nan import one_nan
from ebbflow.zset import without_zeros

Delta = dict[Any, int]


class RowStep(NamedTuple):
    """`verb` is filter, map or flat_map; `owner` is to blame when `fn` raises."""

    verb: str
    fn: Fn
    owner: Any = None


DEEPEST = 8
"""How many flat_maps go into one loop: Python nests only so many."""


class Chain:
    """Steps, the first first.

    >>> chain = Chain([RowStep("filter", Fn(str.isalpha)), RowStep("map", Fn(str.upper))])
    >>> list(chain.rows("a"))
    ['A']
    >>> chain.compiled()({"a": 2, "A": -2, "b": 1, "1": 1})
    {'B': 1}
    """

    def __init__(self, steps: Iterable[Any] = (), sign: int = 1) -> None:
        self.steps = tuple(steps)
        self.sign = sign

    @property
    def one_to_one(self) -> bool:
        """Whether rows that differ stay different: then no weights have to be added up."""
        return all(step.verb == "filter" for step in self.steps)

    def rows(self, row: Any) -> Iterable[Any]:
        """What becomes of one row. This is the meaning of a chain, without a generated loop."""
        rows = [row]
        for step in self.steps:
            if step.verb == "filter":
                rows = [each for each in rows if step.fn(each)]
            elif step.verb == "map":
                rows = [one_nan(step.fn(each)) for each in rows]
            else:
                rows = [one_nan(new) for each in rows for new in step.fn(each)]
        return rows

    @property
    def last_row(self) -> str:
        """The variable that holds the row after the steps, in a loop over `row`."""
        made = sum(step.verb != "filter" for step in self.steps)
        return f"row{made}" if made else "row"

    def write(self, loop: GeneratedLoop) -> None:
        """Write the steps inside a loop over `row`."""
        row, made = "row", 0
        for step in self.steps:
            owner = step if step.owner is None else step.owner
            row_type = getattr(owner, "type", Any)
            if step.verb == "filter":
                loop.write(f"if not {step.fn.source(loop.bind, row)}: continue", owner, row)
                continue
            made += 1
            after = f"row{made}"
            if step.verb == "map":
                source = step.fn.kept(loop.bind, row, hint=row_type)
                loop.write(f"{after} = {source}", owner, row)
            else:
                loop.write(f"for {after} in {step.fn.source(loop.bind, row)}:", owner, row)
                loop.depth += 1
                one = one_of(after, loop.bind, row_type)
                if one != after:
                    loop.write(f"{after} = {one}", owner, after)
            row = after

    def compiled(self) -> Callable[[Delta], Delta]:
        """The chain as a function from a change to a change."""
        return gather([self])

    def __repr__(self) -> str:
        return " ".join(f"{step.verb}({step.fn.name})" for step in self.steps) or "nothing"


_GATHER = """
    for row, weight in $change.items():
        $steps
        out[$row] = $total
"""


def copies_first(chains: Sequence[Chain]) -> bool:
    """Whether `gather` begins with a copy of the first of several changes, a dict then.

    >>> copies_first([Chain(), Chain()]), copies_first([Chain()])
    (True, False)
    """
    return len(chains) > 1 and chains[0].sign == 1 and not chains[0].steps


def gather(chains: Sequence[Chain]) -> Callable[..., Delta]:
    """A function of one change for each chain: all of them through their chains, added up.

    >>> minus = gather([Chain(), Chain(sign=-1)])
    >>> minus({"a": 1, "b": 1}, {"b": 1, "c": 1})
    {'a': 1, 'c': -1}
    """
    loop = GeneratedLoop("gather", ", ".join(f"change{i}" for i in range(len(chains))))
    if len(chains) == 1 and chains[0].sign == 1 and not chains[0].steps:
        loop.write("return change0")
        return loop.function()
    certain = len(chains) == 1 and chains[0].one_to_one
    plain = copies_first(chains)
    loop.write("out = dict(change0)" if plain else "out = {}")
    if not certain:
        loop.write("get = out.get")
    for i, chain in enumerate(chains):
        if plain and i == 0:
            continue
        row, sign = chain.last_row, "-" if chain.sign < 0 else ""
        loop.template(
            _GATHER, _maker(chain), "row", change=f"change{i}", steps=partial(chain.write, loop),
            row=row, total=f"{sign}weight" if certain else f"get({row}, 0) {sign or '+'} weight",
        )  # fmt: skip
    loop.write("return out" if certain else f"return {loop.bind(without_zeros)}(out)")
    return loop.function()


def _maker(chain: Chain) -> Any:
    """The step that made the rows, to blame when one cannot be hashed."""
    makers = [step for step in chain.steps if step.verb != "filter"]
    last = makers[-1] if makers else None
    return last if last is None or last.owner is None else last.owner


_GROUPING = """
    found = {}
    for pair in pairs:
        row = pair[0]
        $steps
        key = $key
        $kept
        if key in found:
            found[key].append(pair)
        else:
            found[key] = [pair]
    return found
"""


def grouping(
    key: Callable[[Any], Any] | None,
    before: Chain | None = None,
    owner: Any = None,
    kept: Fn | None = None,
) -> Callable[[Any], dict[Any, Any]]:
    """A function that sorts the rows of a change by key: `{key: [(row, weight), ...]}`.

    `before` are steps that the rows go through first; they must be one to one. `kept` is what is
    kept of a row, where that and the key are all that it has.

    >>> grouping(len)({"fig": 1, "nut": -1, "pear": 2}.items())
    {3: [('fig', 1), ('nut', -1)], 4: [('pear', 2)]}
    """
    loop = GeneratedLoop("grouping", "pairs")
    steps = before or Chain()
    if key is None and not steps.steps:
        loop.write("return {(): pairs} if (pairs := list(pairs)) else {}")
        return loop.function()
    pair = "" if kept is None else f"pair = {kept.source(loop.bind, 'row')}, pair[1]"
    loop.template(
        _GROUPING, owner or key, "row", steps=partial(steps.write, loop), kept=pair,
        key=key_source(loop, key),
    )  # fmt: skip
    return loop.function()


def key_source(loop: GeneratedLoop, key: Callable[[Any], Any] | None, row: str = "row") -> str:
    """Python text of the key of a row; without a key all rows have the same."""
    if key is None:
        return "()"
    fn = key if isinstance(key, Fn) else Fn(key)
    return fn.kept(loop.bind, row)
