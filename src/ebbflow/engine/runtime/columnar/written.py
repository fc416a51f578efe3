"""Reducers that somebody wrote, on columns: `Reducer(init, add, remove)` as a generated loop.

That can be where the accumulator is an int, a truth value, or a flat tuple of these, and where
`add`, `remove` and `result` can be read as expressions (`ebbflow.expression.trace`): of the
accumulator, and of the value that the reducer looks at. What they compute of the row alone becomes
columns, computed for all rows at once; what needs the accumulator is written as steps on numbers
(`ebbflow.kernel.scalars`), and compiled into a loop (`ebbflow.kernel.folds`).

Floats may come in and go out, and not be kept: a sum of floats depends on the order of the rows,
which is not the same in rows and in columns. Ints are exact in any order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from ebbflow.engine.runtime.columnar.steps import traced
from ebbflow.expression.node import (
    FUNCTIONS,
    Constant,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.expression.trace import trace
from ebbflow.flow.inferred import inferred
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import NONE, Computed, NotInColumns, both, choice, truth
from ebbflow.kernel.expressions import on_columns
from ebbflow.kernel.folds import Accumulator, FoldText
from ebbflow.kernel.scalars import Scalar, Scalars, as_form
from ebbflow.kernel.words import LARGEST, Texts, WordForm, encoded
from ebbflow.record import record
from ebbflow.reducer.combine import on, then, where
from ebbflow.reducer.reducer import Reducer
from ebbflow.reducer.strategy import FoldStrategy, GroupStrategy

_OPERATORS: dict[Any, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.xor: "^",
    operator.and_: "&", operator.or_: "|",
}  # fmt: skip
_NUMBERS = ("int", "bool", "float")
ACC, VALUE, TIMES = 0, 1, 2
"""The arguments of a step: the accumulator, the row, and how often, where it is told."""


class KeptNumbers(NamedTuple):
    """An accumulator in cells, each number as `ebbflow.kernel.folds` has it: one number, or several
    in a tuple of the type `several`."""

    accumulator: Accumulator
    several: Any

    def of_cells(self, cells: Sequence[int]) -> Any:
        """The accumulator of the row path."""
        found = [
            word ^ none if form == "int" else (word ^ none) != 0
            for word, form, none in zip(cells, *self.accumulator, strict=True)
        ]
        if self.several is None:
            return found[0]
        return tuple(found) if self.several is tuple else self.several(*found)

    def cells(self, values: Sequence[Any]) -> Any:
        """The cells of accumulators of the row path that are tuples, one row for each."""
        forms, words = self.accumulator
        if any(not isinstance(row, tuple) or len(row) != len(forms) for row in values):
            raise DoesNotFit("an accumulator of another shape")
        texts = Texts()
        columns = [
            encoded(WordForm(form), [row[at] for row in values], texts) ^ words[at]
            for at, form in enumerate(forms)
        ]
        return np.stack(columns, axis=1)


class WrittenFold(NamedTuple):
    """A reducer as a loop: the columns it reads, the form of its result, and what it keeps."""

    columns: list[Computed]
    loop: Callable[..., bool]
    form: WordForm
    kept: KeptNumbers


def written_fold(strategy: GroupStrategy, row_type: Any, texts: Texts) -> WrittenFold:
    """The loop of a reducer of rows of this type; an error says why there is none."""
    reducer: Reducer[Any, Any, Any] = strategy.reducer
    view = _View(row_type)
    shown: list[Any] = []
    while reducer.made is not None and reducer.made[0] in (on, where, then):
        make, (inner, *given), _ = reducer.made
        if make is then:
            shown.insert(0, given[0])
        elif make is where:
            view.where(given[0])
        else:
            view.on(given)
        reducer = inner
    folds = type(strategy) is FoldStrategy and type(reducer) is Reducer
    if reducer.made is not None or not folds:
        raise NotInColumns(f"there is no kernel for {strategy.reducer!r}")
    if reducer.remove is None:
        raise NotInColumns(f"{reducer!r} has no remove")
    return _Writer(reducer, view, shown, texts).fold()


class _View:
    """What a reducer looks at, as expressions of the row: `value`, for rows for which all of
    `tests` hold. `parts` are computed for these rows, whether or not a step uses them."""

    def __init__(self, row_type: Any) -> None:
        self.row_type = self.type = row_type
        self.value: Expression = Row(VALUE)
        self.parts: list[Expression] = []
        self.tests: list[Expression] = []

    def where(self, test: Any) -> None:
        self.tests.append(self._of(test))

    def on(self, of: Sequence[Any]) -> None:
        part = Fn.of(of[0] if len(of) == 1 else tuple(of), self.type)
        self.value, self.type = self._of(part), inferred(part, self.type)
        self.parts += self.value.items if isinstance(self.value, Tuple) else (self.value,)

    def _of(self, given: Any) -> Expression:
        return _put_in(traced(Fn.of(given, self.type)), 0, self.value)


class _Writer:
    """Writes the steps of a reducer."""

    def __init__(
        self, reducer: Reducer[Any, Any, Any], view: _View, shown: Sequence[Any], texts: Texts
    ) -> None:
        self.reducer, self.view, self.shown, self.texts = reducer, view, shown, texts
        self.init = reducer.start()
        several = isinstance(self.init, tuple)
        self.start: Sequence[Any] = self.init if several else (self.init,)
        self.several: Any = type(self.init) if several else None
        self.type: Any = type(self.init)
        if self.several is tuple:  # so that its elements are fields, and known to be there
            fields = {f"slot_{at}": type(each) for at, each in enumerate(self.start)}
            self.type = record("Accumulator", **fields)
        self.accumulator = Accumulator(*zip(*map(_kept, self.start), strict=True))
        self.columns: list[Computed] = []
        self.places: dict[Expression, int] = {}
        self.numbered = 0
        tests = [truth(self._computed(test)) for test in view.tests]
        self.guard = reduce(partial(both, "and"), tests) if tests else None
        if self.guard is not None:
            self.columns.append(self.guard)

    def fold(self) -> WrittenFold:
        reducer, repeat = self.reducer, self.reducer.repeat
        if repeat is not None:
            add = remove = self._step("repeat", repeat, 3)
        else:
            remove, add = self._step("remove", reducer.remove, 2), self._step("add", reducer.add, 2)
        result, last = self._result()
        forms = [each.form for each in self.columns]
        text = FoldText(
            self.accumulator, forms, self.guard is not None, repeat is not None, remove, add,
            result, last,
        )  # fmt: skip
        form = WordForm(last.form, bool(last.null))
        kept = KeptNumbers(self.accumulator, self.several)
        return WrittenFold(self.columns, text.loop(), form, kept)

    # ---- steps ----

    def _step(self, name: str, call: Any, arity: int) -> list[str]:
        """The lines of a step, which leave the new accumulator in its variables."""
        read = self._read(name, call, [self.type, self.view.type, int][:arity])
        step = _put_in(read, VALUE, self.view.value)
        writer = self._scalars()
        for part in self.view.parts:
            if not part.total:
                self._forced(writer, part)
        found = [
            self._kept(writer, self._number(step, at), form)
            for at, form in enumerate(self.accumulator.forms)
        ]
        self.numbered = writer.numbered
        return [*writer.lines, f"{', '.join(self.accumulator.names)} = {', '.join(found)}"]

    def _kept(self, writer: Scalars, of: Expression, form: str) -> str:
        """The text of a number of the accumulator."""
        found = writer.required(writer(of), of)
        if found.form == "float":
            raise NotInColumns(_FLOATS)
        if found.form == "int" and form == "bool":
            raise NotInColumns("its accumulator is a truth value first, and then an int")
        return as_form(found, form)

    def _forced(self, writer: Scalars, part: Expression) -> None:
        """Have a part of the row computed, as the row path does before a step."""
        if self._column(part) is None:
            writer(part)

    def _result(self) -> tuple[list[str], Scalar]:
        """The lines of the result, and what is shown."""
        writer, result = self._scalars(), self.reducer.result
        found: Expression = Row(ACC)
        if result is not None:
            found = self._read("result", result, [self.type])
        for call in self.shown:
            writer(found)
            found = _put_in(self._read("then", call, [Any]), 0, found)
        return writer.lines, writer(found)

    def _read(self, name: str, call: Any, types: Sequence[Any]) -> Expression:
        """What one of its functions computes."""
        rows = tuple(Row(at) for at in range(len(types)))
        sign = _OPERATORS.get(call) if callable(call) and call in _OPERATORS else None
        if sign is not None and len(types) == 2:
            return Operation(sign, rows)
        if any(call is each for each in FUNCTIONS.values()):
            return Operation(call.__name__, rows)
        found = trace(call, types)
        if found is None:
            raise NotInColumns(f"the {name} of {self.reducer!r} could not be read")
        return found

    def _number(self, of: Expression, at: int) -> Expression:
        """The number at a place of an accumulator that is computed so."""
        if self.several is None:
            return of
        match of:
            case Row(arg=0):
                return Get(ACC, "", at)
            case Tuple() if self.several is tuple and len(of.items) == len(self.start):
                return of.items[at]
            case Record() if of.type is self.several:
                return of.items[at]
            case Operation(op="if"):
                test, *ways = of.args
                return Operation("if", (test, *[self._number(each, at) for each in ways]))
        raise NotInColumns(f"an accumulator that is {of.text('acc', 'x', 'n')}")

    # ---- what a step is made of ----

    def _scalars(self) -> Scalars:
        def leaf(of: Expression) -> Scalar | None:
            at = self._place(of)
            if at is not None:
                return Scalar(self.accumulator.forms[at], f"a{at}")
            match of:
                case Row(arg=2):
                    return Scalar("int", "weight")
                case Operation() if writer.inside and not of.total:
                    found = writer.tried(of)  # where a branch is not taken it must not fail
                    if found is not None:
                        return found
            place = self._column(of)
            if place is None or self.columns[place].form.name not in _NUMBERS:
                return None
            form = self.columns[place].form
            return Scalar(form.name, f"x{place}", f"null{place}" if form.optional else "")

        writer = Scalars(leaf, self.numbered)
        return writer

    def _place(self, of: Expression) -> int | None:
        """Which number of the accumulator an expression is."""
        match of:
            case Row(arg=0) if self.several is None:
                return 0
            case Get(arg=0):
                return of.index
            case Operation(op="[]", args=(Row(arg=0), Constant(value=int(at)))):
                size = len(self.start)
                if self.several is not None and -size <= at < size:
                    return at % size
        return None

    def _column(self, of: Expression) -> int | None:
        """The column with what is computed of the row alone; None where there is none."""
        if set(_arguments(of)) != {VALUE}:
            return None
        if of not in self.places:
            try:
                computed = self._computed(of)
                if self.guard is not None:
                    computed = choice(self.guard, computed, NONE)
            except NotInColumns:
                return None
            self.places[of] = len(self.columns)
            self.columns.append(computed)
        return self.places[of]

    def _computed(self, of: Expression) -> Computed:
        return on_columns(
            of.substitute(lambda each: _of_argument(each, 0)), [self.view.row_type], self.texts
        )


_FLOATS = "its accumulator has a float, and what floats add up to depends on the order of rows"


def _kept(number: Any) -> tuple[str, int]:
    """The form of a number of the accumulator of no rows, and its word."""
    if type(number) is float:
        raise NotInColumns(_FLOATS)
    if type(number) not in (int, bool) or abs(number) > LARGEST:
        raise NotInColumns("its accumulator is no int, no truth value and no tuple of these")
    return type(number).__name__, int(number)


def _arguments(of: Expression) -> Iterator[int]:
    for each in of.walk():
        if isinstance(each, (Row, Get)):
            yield each.arg


def _of_argument(of: Row | Get, arg: int) -> Expression:
    """The same of another argument."""
    return Row(arg) if isinstance(of, Row) else type(of)(arg, of.name, of.index)


def _put_in(of: Expression, arg: int, value: Expression) -> Expression:
    """An expression with a value in the place of an argument."""

    def by(each: Row | Get) -> Expression:
        if each.arg != arg:
            return each
        if isinstance(each, Row):
            return value
        if isinstance(value, Row):
            return _of_argument(each, value.arg)
        if isinstance(value, (Tuple, Record)):
            return value.items[each.index]
        raise NotInColumns(f"a part of {value.text()}")

    return _without_elements(of.substitute(by))


def _without_elements(of: Expression) -> Expression:
    """An expression in which an element of a tuple that was just made is the element."""
    parts = tuple([_without_elements(each) for each in of.parts])
    match of, parts:
        case Operation(op="[]"), (Tuple(items=items), Constant(value=int(at))):
            if -len(items) <= at < len(items):
                return items[at]
    return of.rebuilt(parts) if parts else of
