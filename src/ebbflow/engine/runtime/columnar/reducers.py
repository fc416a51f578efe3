"""Reducers of the library on columns: what of them is added up in the cells of groups, and how
their results are read off. Those that somebody wrote are in `written`.

Each has its accumulator in the row path as well, which is made of the cells when rows take over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from ebbflow.decimals import Digits
from ebbflow.engine.runtime.columnar.few import Part
from ebbflow.engine.runtime.columnar.slots import (
    Accumulated,
    AllValues,
    DecimalTotal,
    FirstValue,
    Number,
    Others,
    PackedCells,
    Slot,
    Times,
)
from ebbflow.engine.runtime.columnar.steps import traced
from ebbflow.engine.runtime.columnar.written import written_fold
from ebbflow.fn import Fn
from ebbflow.kernel.arithmetic import NONE, TRUE, Computed, NotInColumns, both, choice
from ebbflow.kernel.expressions import condition_on_columns, on_columns
from ebbflow.kernel.firsts import PlacedColumns
from ebbflow.kernel.fixed import whole_units
from ebbflow.kernel.folds import GroupFold
from ebbflow.kernel.forms import LARGEST, NAMES, decimal_form
from ebbflow.kernel.groups import (
    ADD,
    ADD_FLOAT,
    ADD_SQUARE,
    ALL,
    ANY,
    CELLS,
    COUNT,
    COUNT_TRUE,
    DECIMAL_MEAN,
    DECIMAL_TOTAL,
    FLOAT_MEAN,
    FLOAT_TOTAL,
    MEAN,
    SEEN,
    STDDEV,
    TOTAL,
    TOTAL_OR_NULL,
    VARIANCE,
    XOR,
    Addend,
    Groups,
    Result,
)
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.values import Looked
from ebbflow.kernel.word_order import WordOrder
from ebbflow.kernel.words import NULL, Texts, WordForm, decoded
from ebbflow.reducer import (
    arg_max,
    arg_min,
    bit_xor,
    bool_and,
    bool_or,
    count,
    count_distinct,
    exact,
    first,
    last,
    mean,
    moments,
    sum,
)
from ebbflow.reducer import max as greatest
from ebbflow.reducer import min as smallest
from ebbflow.reducer.combine import where
from ebbflow.reducer.hashed import Map
from ebbflow.reducer.inline import PlacedPart
from ebbflow.reducer.numeric import stddev, variance
from ebbflow.reducer.strategy import NO_END, GroupStrategy, part_of_row
from ebbflow.state.tree import Tree

Slots = Callable[[list[int], Mapping[int, dict[Any, int]]], tuple[Any, ...]]
_WHOLE = ("int", "bool")
_NUMBER = (*_WHOLE, "float", "decimal")
_SORTED = (*_NUMBER, "text", "date", "time")


class _Value(NamedTuple):
    """What a reducer looks at: its form, its column, and the cell that counts those that are not
    None."""

    form: WordForm
    column: int
    counted: int


class Reducers:
    """The reducers of a group-by as totals, results and values of `Groups`."""

    def __init__(self, row_type: Any, texts: Texts, order: TextOrder | None = None) -> None:
        self.row_type, self.texts, self.order = row_type, texts, order
        self.values: list[Computed] = []
        self.parts: list[Part] = []
        """The same values, for rows."""
        self.totals: list[Addend] = []
        self.results: list[Result] = []
        self.looked: list[Looked] = []
        self.seen: list[WordForm] = []
        """The forms of the values that are looked at."""
        self.placed: list[PlacedColumns] = []
        self.places: list[tuple[WordForm, ...]] = []
        """The forms of the values that are in an order."""
        self.folds: list[GroupFold] = []
        self.forms: list[WordForm] = []
        self.width = 1
        self.spread: list[Slots] = []
        """For each reducer, its slots in the row path from the cells here, and from the values that
        are counted."""
        self.stored: list[Sequence[Slot]] = []
        """For each reducer what these slots are made of where they are stored in columns."""

    def groups(self, width: int, looked: Sequence[Looked] | None = None) -> Groups:
        """The kernel, for keys of so many words; values may be `looked` at in other columns."""
        seen = self.looked if looked is None else looked
        return Groups(width, self.totals, self.results, seen, self.placed, self.order, self.folds)

    def add(self, strategy: GroupStrategy) -> None:
        """Have one more."""
        reducer, inline = strategy.reducer, strategy.inline
        made = whole = reducer.made
        while whole is not None and whole[0] is where and inline is not None:
            whole = whole[1][0].made
            if whole is not None and (not inline.close or whole[0] is count_distinct):
                made = whole  # others have other slots in rows where they look at some rows alone
        known = None if made is None or inline is None else _KNOWN.get(made[0])
        if known is None or made is None or inline is None:
            self._fold(strategy)
            return
        if isinstance(inline.of, PlacedPart):
            self._in_place(reducer, inline.of, last=made[0] in (last, arg_max))
            return
        counts_rows = inline.of is None and made[0] is count
        if counts_rows and not inline.when:
            self._result(WordForm("int"), Result(TOTAL, 0), lambda cells, _: (), ())
            return
        if inline.of is None and not counts_rows:
            raise NotInColumns(f"{reducer!r} looks at the row as a whole")
        part = None if counts_rows else part_of_row(inline.of, self.row_type)
        computed = TRUE if part is None else self._computed(part)
        forms, add = known
        if forms is not None and computed.form.name not in forms:
            raise NotInColumns(f"there is no kernel for {reducer!r} of a {computed.form.name}")
        when = [part_of_row(each, self.row_type) for each in inline.when]
        if when:
            computed = choice(reduce(partial(both, "and"), self._tests(when)), computed, NONE)
        at = self._value(computed, Part(part, computed.form, tuple(when)))
        counted = self._total(COUNT, at) if computed.form.optional else 0
        add(self, _Value(computed.form, at, counted), *made[2:])

    def _value(self, computed: Computed, part: Part) -> int:
        """The column of what is computed of each row."""
        self.values.append(computed)
        self.parts.append(part)
        return len(self.values) - 1

    def _fold(self, strategy: GroupStrategy) -> None:
        """Have one that somebody wrote."""
        made = written_fold(strategy, self.row_type, self.texts)
        first, at = len(self.values), self.width
        self.values += made.columns
        places = [self._total(SEEN, first) for _ in made.kept.accumulator.forms]
        last = self._total(SEEN, first)
        self.folds.append(GroupFold(made.loop, first, at))
        slots: Slots = lambda cells, _: (made.kept.of_cells(cells[at:last]),)
        stored = [Accumulated(tuple(places), made.kept)]
        self._result(made.form, Result(TOTAL, last), slots, stored)

    def _computed(self, fn: Fn) -> Computed:
        return on_columns(traced(fn), [self.row_type], self.texts)

    def _tests(self, when: Sequence[Fn]) -> list[Computed]:
        return [condition_on_columns(traced(each), [self.row_type], self.texts) for each in when]

    def cell(
        self, cells: list[int], values: Mapping[int, dict[Any, int]] | None = None
    ) -> tuple[Any, ...]:
        """A cell of the row path: the size, then the slots of each reducer."""
        found = values or {}
        return (cells[0], *[slot for slots in self.spread for slot in slots(cells, found)])

    def _total(self, how: int, column: int) -> int:
        """The cell in which something is added up."""
        at = self.width
        self.width += CELLS[how]
        self.totals.append(Addend(how, column))
        return at

    def _result(self, form: WordForm, result: Result, slots: Slots, stored: Sequence[Slot]) -> None:
        self.forms.append(form)
        self.results.append(result)
        self.spread.append(slots)
        self.stored.append(stored)

    # ---- one by one ----

    def _count(self, of: _Value, _: Any) -> None:
        counted = of.counted
        slots: Slots = lambda cells, _: (cells[counted],)
        self._result(WordForm("int"), Result(TOTAL, counted), slots, [Number(counted)])

    def _sum(self, of: _Value, named: Mapping[str, Any]) -> None:
        optional = of.form.optional
        if of.form.name == "float":
            self._of_floats(of, FLOAT_TOTAL)
            return
        if of.form.name == "decimal":
            self._of_decimals(of, DECIMAL_TOTAL, named.get("digits"))
            return
        total = self._total(ADD, of.column)
        how = TOTAL_OR_NULL if optional else TOTAL
        self._of_ints(WordForm("int", optional), how, total, of.counted)

    def _mean(self, of: _Value, named: Mapping[str, Any]) -> None:
        if of.form.name == "float":
            self._of_floats(of, FLOAT_MEAN)
            return
        if of.form.name == "decimal":
            self._of_decimals(of, DECIMAL_MEAN, named.get("digits"))
            return
        total = self._total(ADD, of.column)
        self._of_ints(WordForm("float", of.form.optional), MEAN, total, of.counted)

    def _of_ints(self, form: WordForm, how: int, total: int, counted: int) -> None:
        slots: Slots = lambda cells, _: (cells[counted], cells[total])
        stored = Number(counted), Number(total)
        self._result(form, Result(how, total, counted), slots, stored)

    def _of_floats(self, of: _Value, how: int) -> None:
        total, counted = self._total(ADD_FLOAT, of.column), of.counted

        def slots(cells: list[int], _: Any) -> tuple[Any, ...]:
            return exact.of_units(cells[counted], whole_units(*cells[total : total + 2]))

        stored = Number(counted), PackedCells((total + 1, total), counted)
        form = WordForm("float", of.form.optional)
        self._result(form, Result(how, total, counted), slots, stored)

    def _of_decimals(self, of: _Value, how: int, digits: Digits) -> None:
        form = decimal_form(digits)
        if form is None:
            raise NotInColumns("its result is a Decimal of more than 18 digits after the point")
        scale, optional, counted = of.form.scale, of.form.optional, of.counted
        total = self._total(ADD, of.column)

        def slots(cells: list[int], _: Any) -> tuple[Any, ...]:
            return exact.of_decimal_units(cells[counted], cells[total], scale)

        less = 10 ** (form.scale - scale) if how == DECIMAL_MEAN else form.largest + 1
        if how == DECIMAL_TOTAL and form.largest == LARGEST:
            how, less = TOTAL_OR_NULL if optional else TOTAL, 0
        stored = Number(counted), DecimalTotal(counted, total, scale)
        self._result(
            form._replace(optional=optional), Result(how, total, counted, less), slots, stored
        )

    def _all(self, of: _Value, _: Any) -> None:
        self._votes(of, ALL)

    def _any(self, of: _Value, _: Any) -> None:
        self._votes(of, ANY)

    def _votes(self, of: _Value, how: int) -> None:
        true, counted = self._total(COUNT_TRUE, of.column), of.counted
        slots: Slots = lambda cells, _: (cells[true], cells[counted] - cells[true])
        stored = Number(true), Others(counted, true)
        form = WordForm("bool", of.form.optional)
        self._result(form, Result(how, true, counted), slots, stored)

    def _xor(self, of: _Value, _: Any) -> None:
        total, counted = self._total(XOR, of.column), of.counted
        slots: Slots = lambda cells, _: ((cells[counted], cells[total]),)
        result = Result(TOTAL_OR_NULL, total, counted)
        stored = [PackedCells((counted, total), None)]
        self._result(WordForm("int", of.form.optional), result, slots, stored)

    def _variance(self, of: _Value, named: Mapping[str, int], how: int = VARIANCE) -> None:
        less, counted = named.get("ddof", 1), of.counted
        if type(less) is not int or not 0 <= less < 1 << 30:
            raise NotInColumns(f"a variance with ddof={less!r}")
        total = self._total(ADD, of.column)
        squares = self._total(ADD_SQUARE, of.column)

        def slots(cells: list[int], _: Any) -> tuple[Any, ...]:
            sums = cells[total], whole_units(*cells[squares : squares + 2])
            exact = tuple(moments.Exact(each, 0, Fraction(0)) for each in sums)
            return (moments.Moments(cells[counted], 0, 0, 0, 0, exact),)

        stored = [PackedCells((counted, total, squares + 1, squares), None)]
        result = Result(how, total, counted, less)
        self._result(WordForm("float", True), result, slots, stored)

    def _stddev(self, of: _Value, named: Mapping[str, int]) -> None:
        self._variance(of, named, STDDEV)

    def _greatest(self, of: _Value, _: Any) -> None:
        self._extreme(of, True)

    def _smallest(self, of: _Value, _: Any) -> None:
        self._extreme(of, False)

    def _extreme(self, of: _Value, greatest: bool) -> None:
        number, cell = self._look(of, WordOrder(of.form.name, greatest))
        form, texts = of.form, self.texts

        def slots(cells: list[int], values: Mapping[int, dict[Any, int]]) -> tuple[Any, ...]:
            if cells[cell] == NULL:
                return NO_END
            (best,) = decoded(form, np.array([cells[cell]]), texts)
            return best, values[number][best], None

        stored = FirstValue(cell, form.or_none), Times(number), None
        self._result(of.form, Result(TOTAL, cell), slots, stored)

    def _in_place(self, reducer: Any, placed: PlacedPart, *, last: bool) -> None:
        """The value of the row that comes first, or last."""
        if placed.part is None:
            raise NotInColumns(f"{reducer!r} shows the row as a whole")
        columns, forms = [], []
        for each in placed:
            part = part_of_row(each, self.row_type)
            computed = self._computed(part)
            if computed.form.name not in NAMES:
                raise NotInColumns(f"there is no kernel for {reducer!r} of a {computed.form.name}")
            columns.append(self._value(computed, Part(part, computed.form)))
            forms.append(computed.form)
        cell, orders = self._total(SEEN, columns[-1]), [WordOrder(f.name, last) for f in forms]
        self.placed.append(PlacedColumns(tuple(columns), tuple(orders), cell))
        self.places.append(tuple(forms))
        number, (by, shown) = -len(self.placed), forms

        def slots(_: list[int], values: Mapping[int, dict[Any, int]]) -> tuple[Any, ...]:
            return (Tree().update(values.get(number, {}).items()),)

        form = shown._replace(optional=by.optional or shown.optional)
        stored = [AllValues(number, tuple(forms))]
        self._result(form, Result(TOTAL, cell), slots, stored)

    def _different(self, of: _Value, _: Any) -> None:
        number, cell = self._look(of, None)
        slots: Slots = lambda _, values: (Map(values.get(number, {})),)
        self._result(WordForm("int"), Result(TOTAL, cell), slots, [AllValues(number, (of.form,))])

    def _look(self, of: _Value, order: WordOrder | None) -> tuple[int, int]:
        """Count values; gives which of those that do it is, and the cell."""
        number, cell = len(self.looked), self._total(SEEN, of.column)
        self.looked.append(Looked(of.column, cell, order))
        self.seen.append(of.form)
        return number, cell

    def counted_values(self, groups: Groups) -> dict[int, dict[int, dict[Any, int]]]:
        """How often each value is there: by the slot of its group, and by which of those that count
        values it is."""
        found: dict[int, dict[int, dict[Any, int]]] = {}
        if groups.values is None:
            return found
        of, words, counts = groups.values.everything()
        width = len(self.seen)
        for number, form in enumerate(self.seen):
            mine = np.flatnonzero(of % width == number)
            values = decoded(form, words[mine], self.texts)
            slots = (of[mine] // width).tolist()
            for slot, value, times in zip(slots, values, counts[mine].tolist(), strict=True):
                found.setdefault(slot, {}).setdefault(number, {})[value] = times
        for number, forms in enumerate(self.places):
            at, words, counts = groups.values.placed_values(number)
            parts = [
                decoded(form, each, self.texts) for form, each in zip(forms, words, strict=True)
            ]
            entries = zip(at.tolist(), zip(*parts, strict=True), counts.tolist(), strict=True)
            for slot, value, times in entries:
                found.setdefault(slot, {}).setdefault(-1 - number, {})[value] = times
        return found


_KNOWN: dict[Any, tuple[tuple[str, ...] | None, Any]] = {
    count: (None, Reducers._count),
    sum: (_NUMBER, Reducers._sum),
    mean: (_NUMBER, Reducers._mean),
    bool_and: (_NUMBER, Reducers._all),
    bool_or: (_NUMBER, Reducers._any),
    bit_xor: (_WHOLE, Reducers._xor),
    variance: (_WHOLE, Reducers._variance),
    stddev: (_WHOLE, Reducers._stddev),
    greatest: (_SORTED, Reducers._greatest),
    smallest: (_SORTED, Reducers._smallest),
    **dict.fromkeys((first, last, arg_min, arg_max), ((), Reducers._in_place)),
    count_distinct: (None, Reducers._different),
}
"""The reducers that have kernels: of values of which forms, and how."""
