"""Expressions: what a simple function computes, as a value.

`lambda o: o.price * 2 > 100` over rows with the fields (id, city, price) is

    Operation(">", (Operation("*", (Get(0, "price", 2), Constant(2))), Constant(100)))

An expression speaks of its *arguments* by number: `Row(0)` is the first one itself, `Get(0, …)` a
field of it. It evaluates from left to right, as Python does, and means exactly what its `source`
means: Python text over the names of the arguments. Expressions are equal when they are built alike,
so equal ones can be found, and computed once.

An expression is *total* when nothing in it can raise. Only such parts may be dropped, repeated or
moved by a rewrite without anyone noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ebbflow.algebra.value import same
from ebbflow.decimals import Digits, operator
from ebbflow.errors import shown
from ebbflow.expression.schema import schema
from ebbflow.expression.value import constant_key, literal, tuple_text

Bind = Callable[[Any], str]

new = tuple.__new__

IF, OR, AND, NOT, COMPARE, UNARY, POWER, POSTFIX, ATOM = 0, 1, 2, 3, 4, 11, 12, 13, 14
BINARY = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9}
BINARY |= dict.fromkeys(("*", "/", "//", "%", "@"), 10)
COMPARISONS = {"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"}
FUNCTIONS = {each.__name__: each for each in (abs, bool, float, int, len, max, min, round, str)}
METHODS: dict[str, type] = {
    "startswith": bool, "endswith": bool, "lower": str, "upper": str, "strip": str,
}  # fmt: skip
"""Methods of texts that are operations, and what they give."""
SEARCHES = ("search", "match", "fullmatch")
"""Methods of regular expressions that are operations; they are given a text."""


class Expression:
    """One of `Row`, `Get`, `Constant`, `Operation`, `Tuple`, `Record`."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions it is made of, in the order in which they are evaluated."""
        return ()

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        """This expression with other parts."""
        return self

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        """The text of this expression, and how strongly its operator binds."""
        raise NotImplementedError

    # ---- everything below is written with these ----

    def __identity__(self) -> Any:
        """What a fingerprint is taken of."""
        return tuple([getattr(self, each.name) for each in fields(self)])  # type: ignore[arg-type]

    def walk(self) -> Iterator[Expression]:
        """Every expression in it: parts before the whole, in the order of evaluation."""
        for part in self.parts:
            yield from part.walk()
        yield self

    @property
    def total(self) -> bool:
        """Whether nothing in it can raise: it has no operation but `is`."""
        return all(
            not isinstance(each, Operation) or each.op in ("is", "is not") for each in self.walk()
        )

    @property
    def depth(self) -> int:
        """How deep its parts are nested."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def reads(self, arity: int = 1) -> list[frozenset[str] | None]:
        """For each argument the fields it reads; None where it uses the argument as a whole.

        >>> Operation("+", (Get(0, "price", 2), Get(1, "tax", 1))).reads()
        [frozenset({'price'}), frozenset({'tax'})]
        """
        found: list[set[str] | None] = [set() for _ in range(arity)]
        for each in self.walk():
            if isinstance(each, (Row, Get)):
                found += [set() for _ in range(each.arg + 1 - len(found))]
                names = found[each.arg]
                if isinstance(each, Row):
                    found[each.arg] = None
                elif names is not None:
                    names.add(each.name)
        return [None if names is None else frozenset(names) for names in found]

    def substitute(
        self, by: Mapping[Expression, Expression] | Callable[[Row | Get], Expression]
    ) -> Expression:
        """This expression with every `Row` and `Get` replaced: by a mapping, or a function of them.

        Parts may be dropped or repeated this way; `Fn.then` is the careful use of it.

        >>> twice = Operation("*", (Row(0), Constant(2)))
        >>> twice.substitute({Row(0): Get(1, "n", 0)}).text("a", "b")
        'b.n * 2'
        """
        if isinstance(self, (Row, Get)):
            return by(self) if callable(by) else by.get(self, self)
        return self.rebuilt(tuple([part.substitute(by) for part in self.parts]))

    def source(self, bind: Bind, rows: Sequence[str]) -> str:
        """Python text that computes it, safe to put next to any operator.

        `rows` are the names of the arguments; `bind(value)` gives a name for a value.

        >>> twice = Operation("*", (Get(0, "price", 2), Constant(2)))
        >>> twice.source(repr, ["row"])
        '(row[2] * 2)'
        """
        return _Source(bind, rows)(self, POSTFIX)

    def text(self, *names: str) -> str:
        """How a reader would write it: fields by name, and where there are several arguments,
        after the name of theirs.

        >>> more = Operation(">", (Get(0, "price", 2), Get(1, "price", 1)))
        >>> more.text("l", "r")
        'l.price > r.price'
        """
        return _ReadableText(names or _names(self))(self, IF)


@dataclass(frozen=True, slots=True)
class Row(Expression):
    """An argument itself."""

    arg: int

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        return by.row(self), ATOM


@dataclass(frozen=True, slots=True)
class Get(Expression):
    """The field `name` of an argument, which is its element number `index`."""

    arg: int
    name: str
    index: int

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        return by.get(self), POSTFIX


@dataclass(frozen=True, slots=True)
class GetAttribute(Get):
    """The same of an argument that is no tuple: an attribute, the field number `index`."""


def field_of(arg: int, name: str, index: int, row_type: Any) -> Get:
    """The field of an argument of this type."""
    tuples = not isinstance(row_type, type) or issubclass(row_type, tuple)
    return (Get if tuples else GetAttribute)(arg, name, index)


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """A value that never changes. Equal ones have the same type too.

    >>> Constant(1) == Constant(1), Constant(1) == Constant(True), Constant(0.0) == Constant(-0.0)
    (True, False, False)
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return bool(constant_key(self.value) == constant_key(other.value))

    def __hash__(self) -> int:
        return hash(constant_key(self.value))

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        text = by.constant(self.value)
        return text, UNARY if text.startswith("-") else ATOM


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """An operator of Python's on its operands.

    `op` is the sign: with one operand `-`, `+`, `~`, `not`; with two the arithmetic and comparing
    ones, `and`, `or`, `[]` (an element), `.` (an attribute: the second is its name as a constant);
    with three `if` (test, then, else) and `[:]` (of, from, to). A name is that built-in function,
    or that method of the first operand, a text or a regular expression.
    """

    op: str
    args: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.args

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Operation(self.op, parts)

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        op, args = self.op, self.args
        if op in FUNCTIONS:
            return f"{by.function(op)}({', '.join(by(each, IF) for each in args)})", POSTFIX
        if op in METHODS or op in SEARCHES:
            given = ", ".join([by(each, IF) for each in args[1:]])
            return f"{by.apart(args[0], POSTFIX)}.{op}({given})", POSTFIX
        if op in ("[]", "[:]", "."):
            return by.part_of(op, args), POSTFIX
        if op == "if":
            test, then, other = args
            return f"{by(then, OR)} if {by(test, OR)} else {by(other, IF)}", IF
        if len(args) == 1:
            return (
                (f"not {by(args[0], NOT)}", NOT)
                if op == "not"
                else (op + by(args[0], UNARY), UNARY)
            )
        left, right = args
        if op in ("is", "is not"):
            return f"{by.apart(left, COMPARE + 1)} {op} {by.apart(right, COMPARE + 1)}", COMPARE
        if op in COMPARISONS:
            return f"{by(left, COMPARE + 1)} {op} {by(right, COMPARE + 1)}", COMPARE
        if op in ("and", "or"):
            level = AND if op == "and" else OR
            return f"{by(left, level)} {op} {by(right, level)}", level
        if op == "**":
            return f"{by(left, POSTFIX)} ** {by(right, UNARY)}", POWER
        level = BINARY[op]
        return f"{by(left, level)} {op} {by(right, level + 1)}", level


@dataclass(frozen=True, slots=True)
class DecimalOperation(Operation):
    """An operation on Decimals, whose result has these digits (`ebbflow.decimals`).

    `round` may have the number of places as a second operand, a constant. The sign `decimal` stands
    for its operand, brought to the digits without loss.
    """

    digits: Digits

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return DecimalOperation(self.op, parts, self.digits)

    @property
    def places(self) -> int | None:
        """The places that `round` was given."""
        if self.op != "round" or len(self.args) == 1:
            return None
        places: int = self.args[1].value  # type: ignore[attr-defined]
        return places

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        return by.decimal(self)


@dataclass(frozen=True, slots=True)
class Tuple(Expression):
    """A plain tuple of these."""

    items: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Tuple(parts)

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        return by.items(self.items), ATOM


@dataclass(frozen=True, slots=True)
class Record(Expression):
    """A row of the NamedTuple class `type` with these as its fields."""

    type: Any
    items: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, parts: tuple[Expression, ...]) -> Expression:
        return Record(self.type, parts)

    def __identity__(self) -> Any:
        return schema(self.type), self.items

    def written(self, by: ExpressionWriter) -> tuple[str, int]:
        return by.record(self), POSTFIX


# ---- writing ----


class ExpressionWriter:
    """Writes expressions as text. `by(expression, level)` puts what binds weaker in brackets."""

    def __call__(self, expression: Expression, level: int) -> str:
        text, strength = expression.written(self)
        return text if strength >= level else f"({text})"

    def items(self, items: Sequence[Expression]) -> str:
        return tuple_text([self(each, IF) for each in items])

    def part_of(self, op: str, args: tuple[Expression, ...]) -> str:
        whole = self.apart(args[0], POSTFIX)
        if op == ".":
            return f"{whole}.{args[1].value}"  # type: ignore[attr-defined]
        if op == "[]":
            return f"{whole}[{self(args[1], IF)}]"
        return f"{whole}[{self._bound(args[1])}:{self._bound(args[2])}]"

    def _bound(self, limit: Expression) -> str:
        return "" if limit == Constant(None) else self(limit, IF)

    def apart(self, expression: Expression, level: int) -> str:
        """An operand as text, in a place where Python would warn of a literal."""
        return self(expression, level)

    def row(self, row: Row) -> str:
        raise NotImplementedError

    def get(self, get: Get) -> str:
        raise NotImplementedError

    def constant(self, value: Any) -> str:
        raise NotImplementedError

    def function(self, name: str) -> str:
        return name

    def record(self, record: Record) -> str:
        raise NotImplementedError

    def decimal(self, operation: DecimalOperation) -> tuple[str, int]:
        """An operation on Decimals as it was written."""
        if operation.op == "decimal":
            return operation.args[0].written(self)
        return Operation.written(operation, self)


class _Source(ExpressionWriter):
    """For Python to compile. It never warns: what Python can see to be constant is kept apart where
    it would frown at that, as in `5[0]`."""

    def __init__(self, bind: Bind, rows: Sequence[str]) -> None:
        self.bind = bind
        self.rows = rows

    def row(self, row: Row) -> str:
        return self.rows[row.arg]

    def get(self, get: Get) -> str:
        row = self.rows[get.arg]
        return f"{row}.{get.name}" if isinstance(get, GetAttribute) else f"{row}[{get.index}]"

    def constant(self, value: Any) -> str:
        text = literal(value)
        return self.bind(value) if text is None else text

    def function(self, name: str) -> str:
        return self.bind(FUNCTIONS[name])

    def record(self, record: Record) -> str:
        return made_text(self.bind, record.type, self.items(record.items))

    def decimal(self, operation: DecimalOperation) -> tuple[str, int]:
        op, args = operation.op, operation.args
        args = args[:1] if op == "round" else args
        call = operator(op, operation.digits, len(args), operation.places)
        return f"{self.bind(call)}({', '.join([self(each, IF) for each in args])})", POSTFIX

    def apart(self, expression: Expression, level: int) -> str:
        if isinstance(expression, Constant):
            compared = level == COMPARE + 1 and type(expression.value) in (type(None), bool)
            return self(expression, level) if compared else self.bind(expression.value)
        fixed = not any(isinstance(each, (Row, Get)) for each in expression.walk())
        text = self(expression, IF if fixed else level)
        if fixed or isinstance(expression, Tuple):
            return f"{self.bind(same)}({text})"
        return text


def made_text(bind: Bind, cls: Any, items: str) -> str:
    """Python text of a tuple of this class from the text of a plain one."""
    return items if cls is tuple else f"{bind(new)}({bind(cls)}, {items})"


class _ReadableText(ExpressionWriter):
    """For people."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def row(self, row: Row) -> str:
        return self.names[row.arg]

    def get(self, get: Get) -> str:
        return f"{self.names[get.arg]}.{get.name}" if len(self.names) > 1 else get.name

    def constant(self, value: Any) -> str:
        return shown(value, width=60)

    def record(self, record: Record) -> str:
        inside = ", ".join([self(each, IF) for each in record.items])
        return f"{record.type.__name__}({inside})"


def _names(expression: Expression) -> tuple[str, ...]:
    count = len(expression.reads())
    return {1: ("row",), 2: ("l", "r")}.get(count, tuple(f"row{i}" for i in range(count)))
