"""The row of an output that has a key, found by it.

An output *has a key* where its plan shows that there is at most one row of each: the results of
groups have the key of the group, the rows of an input with a key have that, and some of such rows,
as after a filter, still do. Where the output is the state of an operator, a row is found in that;
else the rows are kept by key from the first time that one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ebbflow.engine.runtime.events import key_fields
from ebbflow.engine.runtime.program import Pending, RunningProgram
from ebbflow.engine.runtime.values.check import canonical_key, canonical_output_key
from ebbflow.errors import ChangeError, Text, cause_of
from ebbflow.flow.plan import Distinct, Filter, Node, Reduce, Semi, Source, TopK
from ebbflow.flow.plan.compare import CompareSemi, ScalarFilter
from ebbflow.flow.plan.order import Fold
from ebbflow.nan import one_nan
from ebbflow.record import fields_of, type_text

_SOME_OF = (Filter, Distinct, TopK, Semi, CompareSemi, ScalarFilter)
"""Nodes that give some of the rows of their first parent."""


def origin(node: Node) -> Node:
    """The node whose rows these are, or some of them."""
    while isinstance(node, _SOME_OF):
        node = node.parents[0]
    return node


def row_key(node: Node) -> Callable[[Any], Any] | None:
    """The key of the rows that a node gives; None where there may be several of each.

    >>> import ebbflow as ef
    >>> words = ef.Input("words", tuple[str, int])
    >>> totals = words.group_by(word=lambda w: w[0]).agg(n=ef.sum(lambda w: w[1]))
    >>> row_key(totals.filter(lambda row: row.n > 1).node)(("ebb", 3))
    'ebb'
    >>> row_key(words.node) is None
    True
    """
    node = origin(node)
    if isinstance(node, Source):
        return node.key
    if isinstance(node, (Reduce, Fold)) and node.width:
        width = node.width
        return (lambda row: row[0]) if width == 1 else lambda row: tuple(row[:width])
    return None


def key_columns(node: Node) -> tuple[str, ...] | None:
    """The columns of the key of the rows that a node gives; None where it has none, or one that is
    made otherwise.

    >>> import ebbflow as ef
    >>> key_columns(ef.Input("words", str).group_by(size=len).agg(n=ef.count()).node)
    ('size',)
    """
    first = origin(node)
    if isinstance(first, Source):
        return key_fields(first)
    if isinstance(first, (Reduce, Fold)) and first.width:
        return tuple(fields_of(node.type) or ())[: first.width] or None
    return None


def required_key(program: RunningProgram, name: str) -> Callable[[Any], Any]:
    """The key of the rows of an output; an error where it has none."""
    node = program.plan.outputs[name]
    key = row_key(node)
    if key is None:
        raise ChangeError(
            f"get: output {name!r} has no key, so there may be several rows of each",
            rows=Text(type_text(node.type)),
            created=node.place,
            remedy="group_by(...).agg(...), or an input with a key, and no map after it; or look "
            "through the value",
        )
    return key


def asked(node: Node, key: Any) -> Any:
    """A key of the rows that a node gives, as they have it."""
    try:
        hash(key)
    except TypeError as error:
        raise ChangeError(
            f"get: a key is hashable, and a {type(key).__name__} is not",
            key=key,
            remedy="a tuple of the parts of a key of several fields",
        ) from cause_of(error)
    first = origin(node)
    if isinstance(first, Source) and first.key is not None:
        return canonical_key(first, key)
    columns = key_columns(node)
    return one_nan(key) if columns is None else canonical_output_key(node, columns, key)


def in_state(program: RunningProgram, name: str, key: Any) -> tuple[bool, Any]:
    """Whether the output is the state of an operator, and then the row of a key in it, or None."""
    reader = program.machine.readers.get(name)
    if reader is None or reader.in_columns or not isinstance(reader.node, (Reduce, Fold)):
        return False, None
    cells = reader.cells
    if cells.backing is not None:
        cells.backing.fetch([key])
    if key not in cells.values:
        return True, None
    return True, next(iter(reader.output_of({key: cells.values[key]})), None)


class OutputByKey:
    """The rows of an output by their key. It observes the program, which tells it of every epoch
    before that is kept, perhaps twice."""

    def __init__(self, program: RunningProgram, name: str) -> None:
        self.name = name
        self._key = required_key(program, name)
        self.rows = {self._key(row): row for row in program.outputs[name].value()}
        program.observers.append(self.keeping)

    def keeping(self, pending: Pending) -> None:
        """Have what an epoch changes. Doing it twice is doing it once."""
        key, rows = self._key, self.rows
        delta = pending[2].get(self.name, {})
        for row, weight in delta.items():
            if weight < 0 and rows.get(at := key(row)) == row:
                del rows[at]
        rows.update((key(row), row) for row, weight in delta.items() if weight > 0)
