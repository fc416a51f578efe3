"""Traced expressions on columns: each becomes a function of columns, made of the arithmetic of
arrays (`arithmetic`).

What has no exact form on arrays (strings but for equality, powers, ints beside floats beyond 2**53)
is `NotInColumns` when it is compiled, or wrong in the vector. What is in a text is looked for in
its bytes (`text_search`), as long as it has no number; all else that Python computes of one text,
it computes once for each text.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np

from ebbflow.decimals import literal_digits
from ebbflow.errors import value_text
from ebbflow.expression.bytecode import attributes_read
from ebbflow.expression.node import (
    METHODS,
    SEARCHES,
    Constant,
    DecimalOperation,
    Expression,
    Get,
    Operation,
    Record,
    Row,
    Tuple,
)
from ebbflow.fn import Fn
from ebbflow.kernel import DoesNotFit
from ebbflow.kernel.arithmetic import (
    BITS,
    EQUALS,
    MATCH,
    NONE,
    ORDERED,
    Computed,
    NotInColumns,
    arithmetic,
    both,
    choice,
    compared,
    constant,
    identity,
    negation,
    of_one,
    required,
    truth,
)
from ebbflow.kernel.decimal_arithmetic import on_decimals, same_scale, whole_part
from ebbflow.kernel.forms import decimal_form, no_columns
from ebbflow.kernel.instructions import (
    CHOICE,
    DAY,
    GIVEN,
    MONTH,
    WORD,
    YEAR,
    Instructions,
    Sides,
)
from ebbflow.kernel.pending import Pending
from ebbflow.kernel.text_search import TextSearch, pieces_of
from ebbflow.kernel.words import NULL, Texts, WordForm, decoded, encoded, form_of, forms_of
from ebbflow.record import fields_of

_TEXT_OPERATIONS = {
    "in": "bool", "[:]": "text", "len": "int",
    **{name: "bool" if made is bool else "text" for name, made in METHODS.items()},
    **dict.fromkeys(SEARCHES, "bool"),
}  # fmt: skip
"""What is computed once for each text, and what it gives."""
_OF_DAYS = {"year": YEAR, "month": MONTH, "day": DAY}


def on_columns(expression: Expression, types: Sequence[Any], texts: Texts) -> Computed:
    """An expression of rows of these types, to be computed on columns.

    >>> from ebbflow.record import record
    >>> Order = record("Order", price=int)
    >>> twice = Operation("*", (Get(0, "price", 0), Constant(2)))
    >>> computed = on_columns(twice, [Order], Texts())
    >>> computed.words([lambda at: np.array([3, 4])], 2, WordForm("int")).tolist()
    [6, 8]
    """
    return _Compiler(types, texts)(expression)


def condition_on_columns(expression: Expression, types: Sequence[Any], texts: Texts) -> Computed:
    """Whether an expression of rows of these types is true.

    >>> from ebbflow.record import record
    >>> Order = record("Order", price=int)
    >>> price = Get(0, "price", 0)
    >>> computed = condition_on_columns(Operation("and", (price, price)), [Order], Texts())
    >>> computed.words([lambda at: np.array([3, 0])], 2, WordForm("bool")).tolist()
    [1, 0]
    """
    return _Compiler(types, texts).test(expression)


def fits(computed: WordForm, declared: WordForm) -> bool:
    """Whether values of one form are values of another; where they may be None, their words are.

    >>> fits(WordForm("int"), WordForm("float", True))
    True
    """
    same = (computed.name == declared.name and computed.digits == declared.digits) or (
        computed.name in ("int", "bool") and declared.name in ("int", "float")
        and not computed.optional
    )  # fmt: skip
    return same and (declared.optional or not computed.optional)


class _Compiler:
    def __init__(self, types: Sequence[Any], texts: Texts) -> None:
        self.types, self.texts = types, texts

    def __call__(self, of: Expression) -> Computed:
        match of:
            case Get():
                return self._field(of)
            case Constant():
                return self._constant(of.value)
            case Operation():
                return self._operation(of)
        raise NotInColumns(f"{type(of).__name__.lower()} {of.text()}")

    def test(self, of: Expression) -> Computed:
        """Whether an expression is true."""
        match of:
            case Operation(op="and" | "or"):
                return both(of.op, *map(self.test, of.args))
            case Operation(op="not"):
                return negation(self.test(of.args[0]))
        return truth(self(of))

    def _field(self, of: Get) -> Computed:
        forms = forms_of(self.types[of.arg])
        if forms is None:
            raise NotInColumns(f"a field of {self.types[of.arg]}")
        return Computed(forms[of.index], (GIVEN, (of.arg, of.index)))

    def _constant(self, value: Any) -> Computed:
        if value is None:
            return NONE
        form = form_of(type(value))
        if type(value) is Decimal:
            form = decimal_form(literal_digits(value))
        if form is None:
            raise NotInColumns(f"the constant {value_text(value)}")
        try:
            word = encoded(form, [value], self.texts)[0]
        except DoesNotFit as error:
            raise NotInColumns(str(error)) from error
        return constant(form, int(word))

    def _operation(self, of: Operation) -> Computed:
        op = of.op
        if _of_one_text(of, self.types):
            return self._by_text(of)
        if op == "not in":
            return negation(self._operation(Operation("in", of.args)))
        if op == "in":
            return self._among(of)
        if op == ".":
            return self._part(of)
        if op == "not":
            return self.test(of)
        if op == "if":
            return choice(self.test(of.args[0]), *map(self, of.args[1:]))
        if isinstance(of, DecimalOperation) and op == "round":
            return on_decimals(of, [self(of.args[0])])
        parts = [self(each) for each in of.args]
        if isinstance(of, DecimalOperation):
            return on_decimals(of, parts)
        if op in ("is", "is not"):
            return identity(op, *parts)
        if op in ("and", "or") or (op in BITS and all(p.form == WordForm("bool") for p in parts)):
            return both(op, *parts)
        if op == "str" and [each.form for each in parts] == [WordForm("text")]:
            return parts[0]
        if op in EQUALS or op in ORDERED:
            return _compared(op, *parts)
        if op == "int" and [each.form.name for each in parts] == ["decimal"]:
            return whole_part(parts[0])
        if op in ("+", "-", "*", "/", "//", "%") and len(parts) == 2:
            return arithmetic(op, *parts)
        if op in ("-", "abs", "+", "float", "bool") and len(parts) == 1:
            return of_one(op, parts[0])
        raise NotInColumns(f"{op} in {of.text()}")

    def _by_text(self, of: Operation) -> Computed:
        """What Python computes of a text, once for each text; what is in it, of its bytes."""
        get = next(each for each in of.walk() if isinstance(each, Get))
        texts, arg, index = self.texts, get.arg, get.index
        bound: dict[str, Any] = {}

        def bind(value: Any) -> str:
            name = f"v{len(bound)}"
            bound[name] = value
            return name

        code = of.substitute({get: Row(0)}).source(bind, ["text"])
        code = f"{code} is not None" if of.op in SEARCHES else code
        function = eval(f"lambda text: {code}", bound)
        form = WordForm(_TEXT_OPERATIONS[of.op])
        search = _search(of, function)
        of_texts: Any = None
        known, done = np.empty(0, np.int64), np.empty(0, np.bool_)

        def computed(sides: Sides) -> Any:
            nonlocal known, done, of_texts
            pending = pending_field(sides[arg], index)
            if search is not None and pending is not None:
                memory = pending.in_memory()
                if memory is not None:
                    return search(memory)
            apart = None if pending is None else pending.unnumbered()
            if apart is not None:
                values, places = apart
                found = encoded(form, list(map(function, values)), texts)
                return found if places is None else found[places]
            words, now = sides[arg](index), texts.now
            if of_texts is not now:  # some were forgotten
                known, done, of_texts = known[:0], done[:0], now
            if len(done) < len(now.known):
                more = 2 * len(now.known) - len(done)
                known = np.concatenate([known, np.zeros(more, np.int64)])
                done = np.concatenate([done, np.zeros(more, np.bool_)])
            new = np.unique(words[~done[words]])
            if len(new):
                known[new] = encoded(form, [function(now.known[at]) for at in new.tolist()], texts)
                done[new] = True
            return known[words]

        if of.op in SEARCHES:
            return Computed(MATCH, (CHOICE, (GIVEN, computed), (WORD, 1), (WORD, NULL)))
        return Computed(form, (GIVEN, computed))

    def _among(self, of: Operation) -> Computed:
        inside, values = of.args[1], None
        if isinstance(inside, Tuple) and all(isinstance(each, Constant) for each in inside.items):
            values = [each.value for each in inside.items if isinstance(each, Constant)]
        elif isinstance(inside, Constant) and isinstance(inside.value, (tuple, list, frozenset)):
            values = list(inside.value)
        if values is None:
            raise NotInColumns(f"{of.op} in {of.text()}")
        one = self(of.args[0])
        found = constant(WordForm("bool"), 0)
        for value in values:
            found = both("or", found, _compared("==", one, self._constant(value)))
        return found

    def _part(self, of: Operation) -> Computed:
        whole, name = self(of.args[0]), of.args[1].value  # type: ignore[attr-defined]
        part = _OF_DAYS.get(name)
        if whole.form != WordForm("date") or part is None:
            raise NotInColumns(f".{name} in {of.text()}")
        return Computed(WordForm("int"), (part, whole.how))


def _compared(op: str, one: Computed, other: Computed) -> Computed:
    """Whether one value compares so with another."""
    names = {one.form.name, other.form.name}
    if "decimal" in names and names <= {"decimal", "int", "bool", "none"}:
        one, other = same_scale(one, other)
    return compared(op, one, other)


def _of_one_text(of: Operation, types: Sequence[Any]) -> bool:
    """Whether it is a function of one field, a text, that cannot fail."""
    fields = {each for each in of.walk() if isinstance(each, (Get, Row))}
    if len(fields) != 1 or of.op not in _TEXT_OPERATIONS:
        return False
    (get,) = fields
    parts = [each for each in of.args if not isinstance(each, Constant)]
    forms = forms_of(types[get.arg])
    return (
        parts == [get] and isinstance(get, Get) and forms is not None
        and forms[get.index] == WordForm("text")
        and (of.op not in METHODS or of.args[0] == get)
        and (of.op not in SEARCHES or of.args[1] == get)
        and (of.op != "in" or (of.args[1] == get and isinstance(of.args[0].value, str)))  # type: ignore[attr-defined]
    )  # fmt: skip


def _search(of: Operation, function: Any) -> TextSearch | None:
    """What looks for the pieces of an operation on a text, if it does."""
    wanted = pieces_of(of)
    try:
        return None if wanted is None else TextSearch(wanted, function)
    except UnicodeEncodeError:  # half of a surrogate pair: Arrow has no such text
        return None


def pending_field(side: Any, at: int) -> Pending | None:
    """A field whose words were not made so far."""
    given = getattr(getattr(side, "__self__", None), "given", None)
    field = None if given is None else given[at]
    return field if isinstance(field, Pending) else None


def by_calling(fn: Fn, row_type: Any, texts: Texts) -> Computed:
    """Whether a function that could not be read is true for a row, where it is known which fields
    it reads: it is called with a row of these alone."""
    forms, names = forms_of(row_type), tuple(fields_of(row_type) or ())
    reads = attributes_read(fn.call)
    if forms is None or not reads or not reads <= {*names}:
        raise NotInColumns(f"{fn.name} is a function that could not be read")
    places = [at for at, name in enumerate(names) if name in reads]
    function, some = fn.call, namedtuple("Row", [names[at] for at in places])

    def called(lists: Sequence[Any]) -> Any:
        rows = map(tuple.__new__, repeat(some), zip(*lists, strict=True))
        try:
            return np.fromiter([1 if function(row) else 0 for row in rows], np.int64)
        except Exception as error:
            raise DoesNotFit("a row that is refused") from error

    def computed(sides: Sides) -> Any:
        pending = pending_field(sides[0], places[0]) if len(places) == 1 else None
        apart = None if pending is None else pending.unnumbered()
        if apart is not None:
            found = called([apart[0]])
            return found if apart[1] is None else found[apart[1]]
        return called([decoded(forms[at], sides[0](at), texts) for at in places])

    return Computed(WordForm("bool"), (GIVEN, computed))


# ---- rows ----


class RowOnColumns:
    """A function that makes a row of rows, field by field. `passed` are the fields that are only
    passed on: the side and the number of each, by its place; the others are computed together."""

    __slots__ = ("passed", "program", "width")

    def __init__(self, fields: Sequence[Computed], forms: Sequence[WordForm]) -> None:
        self.width = len(fields)
        pairs = list(enumerate(zip(fields, forms, strict=True)))
        self.passed = {
            at: field.field
            for at, (field, form) in pairs
            if field.field is not None and field.form.encoding == form.encoding
        }
        others = [field.as_words(form) for at, (field, form) in pairs if at not in self.passed]
        self.program = Instructions(others) if others else None

    def fields(self, sides: Sides, count: int, passed: Sequence[Any]) -> list[Any]:
        """The words of each field; those that are passed on are what `passed` has of each side."""
        found = iter(()) if self.program is None else iter(self.program.fields(sides, count))
        of = self.passed
        return [
            passed[of[at][0]][of[at][1]] if at in of else next(found) for at in range(self.width)
        ]


def row_on_columns(
    expression: Expression, types: Sequence[Any], made: Any, texts: Texts
) -> RowOnColumns:
    """A function from rows to a row of the type `made`, on columns."""
    forms = forms_of(made)
    if forms is None:
        raise NotInColumns(no_columns(made))
    if isinstance(expression, Row):
        items: tuple[Expression, ...] = tuple(
            Get(expression.arg, "", at) for at in range(len(forms))
        )
        if forms_of(types[expression.arg]) != forms:
            raise NotInColumns("rows of another type")
    elif isinstance(expression, Record) and len(expression.items) == len(forms):
        items = expression.items
    else:
        raise NotInColumns(f"rows made by {expression.text()}")
    pairs = zip(items, forms, strict=True)
    fields = [_declared(on_columns(item, types, texts), form) for item, form in pairs]
    return RowOnColumns(fields, forms)


def _shown(form: WordForm) -> str:
    return f"a decimal{form.digits}" if form.digits is not None else f"a {form.name}"


def _declared(field: Computed, form: WordForm) -> Computed:
    """A field of a row that is declared so; where it may be None and must not, None is wrong."""
    if field.form.name == "none" and form.optional:
        return field
    if field.form.optional and not form.optional and field.form.name != "none":
        field = required(field)
    if not fits(field.form, form):
        raise NotInColumns(f"{_shown(field.form)} where {_shown(form)} is declared")
    return field
