"""Inequalities between rows of two collections, and conditions on one row of another.

`lt("at", "end")` and its like say what is compared, part by part, so that a join can keep its rows
in that order. A condition of a scalar sub-query is a function of two rows; where it is traced to a
comparison of a value of the one with a value of the other, that is found out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ebbflow.errors import Text, place
from ebbflow.expression.node import Operation
from ebbflow.flow import attributes, types
from ebbflow.flow.parts import TWO_ROWS, function, part, part_type, plain, refuse, rows_of
from ebbflow.flow.plan import Node
from ebbflow.flow.plan.compare import Comparison, ScalarFilter
from ebbflow.flow.rewrite.traced import of_side, written
from ebbflow.fn import Fn
from ebbflow.keywords import checked
from ebbflow.record import name_of

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "==": "=="}
NAMES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "!=": "ne"}


@dataclass(frozen=True)
class Inequality:
    """A part of the left row, a sign, and a part of the right row; see `lt`."""

    left: Any
    sign: str
    right: Any

    def __repr__(self) -> str:
        return f"ebbflow.{NAMES[self.sign]}({self.left!r}, {self.right!r})"


def _inequality(sign: str, left: Any, right: Any) -> Inequality:
    return Inequality(left, sign, left if right is None else right)


@checked
def lt(left: Any, right: Any = None) -> Inequality:
    """For `join(where=...)`: a part of the left row is less than one of the right row, by default
    the same. A part is a field or a function of a row. None compares with nothing, as in SQL;
    otherwise the order is `ebbflow.ordering`'s.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> bids = ef.Input("bids", record("Bid", item=str, price=int))
    >>> outbid = bids.join(bids, on="item", where=ef.lt("price"), how="semi")
    >>> outbid
    <Bid(item, price): (bids) → semi>
    """
    return _inequality("<", left, right)


@checked
def le(left: Any, right: Any = None) -> Inequality:
    """For `join(where=...)`: the part of the left row is at most that of the right row; see `lt`.

    >>> le("start", "at")
    ebbflow.le('start', 'at')
    """
    return _inequality("<=", left, right)


@checked
def gt(left: Any, right: Any = None) -> Inequality:
    """For `join(where=...)`: the part of the left row is greater than that of the right row; see
    `lt`.

    >>> gt("price")
    ebbflow.gt('price', 'price')
    """
    return _inequality(">", left, right)


@checked
def ge(left: Any, right: Any = None) -> Inequality:
    """For `join(where=...)`: the part of the left row is at least that of the right row; see `lt`.

    >>> ge("at", "start")
    ebbflow.ge('at', 'start')
    """
    return _inequality(">=", left, right)


@checked
def ne(left: Any, right: Any = None) -> Inequality:
    """For `join(where=...)`: the part of the left row is another than that of the right row; see
    `lt`.

    >>> ne("supplier")
    ebbflow.ne('supplier', 'supplier')
    """
    return _inequality("!=", left, right)


@checked
def between(left: Any, low: Any, high: Any) -> tuple[Inequality, Inequality]:
    """For `join(where=...)`: the part of the left row is between two of the right row, the ends
    included; see `lt`.

    >>> between("at", "start", "end")
    (ebbflow.ge('at', 'start'), ebbflow.le('at', 'end'))
    """
    return ge(left, low), le(left, high)


# ---- joins ----


def comparisons(left: Node, right: Node, given: Any) -> tuple[Comparison, ...]:
    """What `where=` asks for, checked.

    >>> import ebbflow as ef
    >>> words = ef.Input("words", str).node
    >>> str(comparisons(words, words, lt(len))[0])
    'len < len'
    """
    flat = list(_flat(given))
    if not flat:
        refuse("join(where=()): nothing is compared", 'where=ebbflow.lt("field")')
    return tuple([_comparison(left, right, each) for each in flat])


def _flat(given: Any) -> Iterator[Inequality]:
    if isinstance(given, (tuple, list)):
        for each in given:
            yield from _flat(each)
        return
    if not isinstance(given, Inequality):
        remedy = 'where=ebbflow.lt("field"), or le, gt, ge, ne, between; several in a tuple'
        if callable(given):
            remedy += "; join(...).filter(...) for any other condition"
        refuse(f"join(where={given!r}): it asks for inequalities", remedy)
    yield given


def _comparison(left: Node, right: Node, given: Inequality) -> Comparison:
    name = f"join(where=ebbflow.{NAMES[given.sign]}"
    for each in (given.left, given.right):
        plain(f"{name}({{}}))", each)
    ours = part(f"{name}({{}}, ...))", left, given.left)
    theirs = part(f"{name}(..., {{}}))", right, given.right)
    one, other = part_type(left, given.left), part_type(right, given.right)
    if types.common(types.without_none(one), types.without_none(other)) is None:
        refuse(
            "join(where=...): values of different types are compared",
            "parts of the same type on both sides",
            left=Text(f"{ours.text}: {name_of(one)}"),
            right=Text(f"{theirs.text}: {name_of(other)}"),
        )
    return Comparison(ours, given.sign, theirs)


def mirrored(where: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """The same comparisons as seen from the right."""
    return tuple([Comparison(each.right, MIRRORED[each.sign], each.left) for each in where])


# ---- scalar sub-queries ----


def scalar_filtered(
    left: Node, right: Node, f: Callable[[Any, Any], Any], ours: Fn, theirs: Fn
) -> ScalarFilter:
    """The node of `filter` with another collection, of which there is one row for each key."""
    function("filter({}, other)", f, TWO_ROWS)
    plain("filter({}, other)", f)
    attributes.check("filter({}, other)", f, [(each.type, rows_of(each)) for each in (left, right)])
    fn = Fn.of(f, left.type, right.type, arity=2)
    return ScalarFilter(
        left=left, right=right, left_key=ours, right_key=theirs, fn=fn,
        threshold=_threshold(fn), type=left.type, place=place(),
    )  # fmt: skip


def _threshold(fn: Fn) -> Comparison | None:
    """The comparison of a value of each row that a condition is, if it is one."""
    made = fn.expression
    if not isinstance(made, Operation) or made.op not in MIRRORED or len(made.args) != 2:
        return None
    first, second = (written(each, *fn.types) for each in made.args)
    for one, other, sign in ((first, second, made.op), (second, first, MIRRORED[made.op])):
        ours, theirs = of_side(one, 0), of_side(other, 1)
        if ours is not None and theirs is not None:
            return Comparison(ours, sign, theirs)
    return None
