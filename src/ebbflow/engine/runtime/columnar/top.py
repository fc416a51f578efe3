"""The first rows of each key on columns.

What rows are ordered by is read off the function of the node: fields and what is computed of them,
several in a tuple, each up or down (`ebbflow.desc`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ebbflow.engine.runtime.columnar.stages import ColumnStage
from ebbflow.engine.runtime.columnar.steps import KeyOnColumns, SideBySide, traced
from ebbflow.engine.runtime.stages import KeyedStage
from ebbflow.expression.node import Expression, Tuple
from ebbflow.expression.parts import Parts, Then
from ebbflow.fn import Fn
from ebbflow.kernel.arithmetic import Computed, NotInColumns
from ebbflow.kernel.columns import Columns
from ebbflow.kernel.expressions import on_columns
from ebbflow.kernel.forms import NAMES
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.top import MOST, FirstRows
from ebbflow.kernel.word_order import WordOrder
from ebbflow.kernel.words import Texts, WordForm, forms_of
from ebbflow.ordering import Reversed


class OrderedBy(NamedTuple):
    """A part of a row that rows are ordered by, and whether in reverse."""

    expression: Expression
    down: bool


def order_of(by: Fn, *, down: bool = False) -> Iterator[OrderedBy]:
    """What rows are ordered by, one part after the other.

    >>> import ebbflow as ef
    >>> from ebbflow.record import record
    >>> sales = ef.Input("sales", record("Sale", city=str, price=int))
    >>> node = sales.limit(2, order=("city", ef.desc("price"))).node
    >>> [(part.expression.name, part.down) for part in order_of(node.by)]
    [('city', False), ('price', True)]
    """
    call = by.call
    if by.expression is None and isinstance(call, Parts) and call.cls is tuple:
        for each in call.parts:
            yield from order_of(each, down=down)
    elif by.expression is None and isinstance(call, Then) and call.after.call is Reversed:
        yield from order_of(call.first, down=not down)
    else:
        yield from (OrderedBy(item, down) for item in _items(traced(by)))


def _items(expression: Expression) -> Iterator[Expression]:
    """The items of a tuple, also of one in it, which are compared one after the other."""
    if isinstance(expression, Tuple):
        for item in expression.items:
            yield from _items(item)
    else:
        yield expression


class ColumnTopStage(ColumnStage):
    """The first rows of each key, in `FirstRows`: its columns are what rows are ordered by, and the
    fields that are not among that."""

    __slots__ = (
        "columns_of_fields", "forms", "key_of", "order", "reads_type", "rows_of", "top",
    )  # fmt: skip

    by_rows: KeyedStage

    def __init__(
        self, by_rows: KeyedStage, texts: Texts, order: TextOrder, reads_type: Any,
    ) -> None:  # fmt: skip
        node: Any = by_rows.node
        if node.offset + node.n >= MOST:
            raise NotInColumns("the top is of too many rows")
        self.reads_type, self.order = reads_type, order
        self.key_of = KeyOnColumns(node.key, reads_type, texts)
        fields = forms_of(reads_type) or ()
        parts: list[Computed] = []
        ranks: list[WordOrder] = []
        found: dict[int, int] = {}
        for part in order_of(node.by):
            computed = on_columns(part.expression, [reads_type], texts)
            if computed.form.name not in NAMES:
                raise NotInColumns(f"an order of a {computed.form.name}")
            if computed.field is not None:
                if computed.field[1] in found:
                    continue
                found[computed.field[1]] = len(parts)
            ranks.append(WordOrder(computed.form.name, part.down == node.smallest))
            parts.append(computed)
        for at, form in enumerate(fields):
            if at not in found:
                found[at] = len(parts)
                ranks.append(WordOrder(form.name, not node.smallest))
                field = Fn.of(reads_type._fields[at], reads_type)
                parts.append(on_columns(traced(field), [reads_type], texts))
        self.columns_of_fields = [found[at] for at in range(len(fields))]
        self.rows_of = SideBySide(parts)
        self.forms: Sequence[WordForm] = self.rows_of.forms
        self.top = FirstRows(len(self.key_of.parts), ranks, node.n, node.offset, order)
        super().__init__(by_rows, texts, self.top)

    def step(self, change: Any) -> Any:
        columns = self.columns(change, self.reads_type)
        rows = self.rows_of(columns)
        return self._columns(*self.top.step(self.key_of(columns), rows, columns.weights))

    def _columns(self, words: Any, weights: Any) -> Columns:
        fields = [words[at] for at in self.columns_of_fields]
        return Columns(self.type, fields, weights, self.texts, canonical=True)

    def whole(self, *_: Any) -> Any:
        return self.by_rows.whole() if self.given_up else self._columns(*self.top.read())

    def fill(self) -> None:
        rows = self._columns(*self.top.everything()).rows
        self.by_rows.operator.update(self.by_rows.state, rows)
